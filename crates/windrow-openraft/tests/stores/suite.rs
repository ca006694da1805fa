//! openraft's suite for storage, as it is.

use openraft::StorageError;
use openraft::testing::{StoreBuilder, Suite};
use tempfile::TempDir;
use windrow::Options;

use crate::common::{Append, Config, Log, Machine};

struct Builder;

impl StoreBuilder<Config, Log, Machine, TempDir> for Builder {
    async fn build(&self) -> Result<(TempDir, Log, Machine), StorageError<u64>> {
        let folder = tempfile::tempdir().unwrap();
        let opened = windrow_openraft::open(folder.path(), Options::default(), Append).await;
        let (log, machine) = opened.unwrap();
        Ok((folder, log, machine))
    }
}

#[test]
fn the_suite_of_openraft_passes() {
    Suite::test_all(Builder).unwrap();
}

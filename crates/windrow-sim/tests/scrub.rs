//! A mapped block that was verified is trusted for the scrub interval and no longer.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use windrow::vfs::Vfs;
use windrow::{BlockSource, Db, ErrorKind, Options};
use windrow_sim::{SimDisk, SteppedRuntime};

#[test]
fn a_mapping_that_changes_is_noticed_after_the_interval() {
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let folder = Path::new("/db");
    let mut options = Options::default();
    options.block_source = BlockSource::Mapped;
    options.scrub_interval = Duration::from_secs(60);
    let options = options
        .with_vfs(Arc::new(disk.clone()))
        .with_runtime(Arc::new(runtime.clone()));
    let db = Db::open(folder, options).unwrap();
    let keyspace = db.keyspace("letters").unwrap();
    keyspace.insert("key", "value".repeat(20)).unwrap();
    db.flush().unwrap();
    assert!(keyspace.get("key").unwrap().is_some());

    let files = disk.list(folder).unwrap();
    let is_table = |name: &&String| Path::new(name).extension() == Some("table".as_ref());
    let table = files.iter().find(is_table).unwrap();
    // In the middle of the value.
    disk.damage_mapped(&folder.join(table), 60, 0xff).unwrap();
    runtime.advance(Duration::from_secs(30));
    runtime.step();
    assert!(keyspace.get("key").is_ok());
    runtime.advance(Duration::from_secs(31));
    runtime.step();
    let error = keyspace.get("key").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
}

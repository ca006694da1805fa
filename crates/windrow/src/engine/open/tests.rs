//! Openings of databases whose numbers are nearly used up.

use std::path::Path;
use std::sync::Arc;

use super::super::Handle;
use super::*;
use crate::manifest::{Edit, ManifestStore, Record};
use crate::options::KeyspaceOptions;
use crate::vfs::OsVfs;

/// Opens a database whose manifest holds `records`.
fn open_with(directory: &Path, records: Vec<Record>) -> Result<Handle> {
    let mut state = ManifestState::default();
    state.apply(&Edit { records }).unwrap();
    let number = FileNumber(state.next_id);
    ManifestStore::start(Arc::new(OsVfs), directory, number, state)?;
    Handle::open(directory, Options::default())
}

#[test]
fn the_last_keyspace_has_no_successor() {
    let directory = tempfile::tempdir().unwrap();
    let last = Record::CreateKeyspace {
        id: KeyspaceId(u32::MAX),
        name: "last".to_owned(),
    };
    let handle = open_with(directory.path(), vec![last]).unwrap();
    let open = |name| {
        let options = KeyspaceOptions::default();
        handle.engine().open_keyspace(name, options)
    };
    assert_eq!(open("last").unwrap().id(), KeyspaceId(u32::MAX));
    let error = open("another").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
}

#[test]
fn numbers_that_no_database_reaches_are_damage() {
    for (next, is_sound) in [
        (1 << 40, true),
        (FILE_NUMBER_MAX / 2 - 2, true),
        (FILE_NUMBER_MAX / 2 - 1, false),
        (FILE_NUMBER_MAX - 1, false),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let opened = open_with(directory.path(), vec![Record::NextId(next)]);
        let kind = opened.err().map(|error| error.kind());
        assert_eq!(kind, (!is_sound).then_some(ErrorKind::Corruption), "{next}");
    }
}

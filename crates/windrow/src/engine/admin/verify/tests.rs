//! The full check of counts that the manifest cannot check itself.

use std::path::Path;
use std::sync::Arc;

use crate::base::{FileNumber, Kind};
use crate::engine::{Access, Handle, Write};
use crate::manifest::{
    Edit, ManifestState, ManifestStore, Record, ReferenceChanges, ValueFileState, read_manifest,
};
use crate::options::{Durability, Options};
use crate::table::Referred;
use crate::vfs::OsVfs;

fn options() -> Options {
    let mut options = Options::default();
    options.keyspace.max_space_amp = f64::INFINITY;
    options
}

/// A database with two value logs in use, each with garbage. An open begins a new one.
fn make(folder: &Path) {
    for keys in [0..20_u8, 10..30] {
        let handle = Handle::open(folder, options(), Access::ReadWrite).unwrap();
        let engine = handle.engine();
        let keyspace = engine.open_keyspace("map", None).unwrap();
        for key in keys.clone().chain(keys.take(5)) {
            let write = Write::One {
                keyspace: &keyspace,
                kind: Kind::Value,
                key: &[key],
                value: &[key; 2000],
            };
            engine.commit(&write, Durability::Buffered).unwrap();
        }
        engine.flush_all().unwrap();
        drop(keyspace);
        handle.close().unwrap();
    }
}

/// The value logs that tables refer to.
fn logs(state: &ManifestState) -> Vec<&ValueFileState> {
    let keyspace = state.keyspaces.values().next().unwrap();
    let files = keyspace.values.files.values();
    files.filter(|it| it.referred.entries > 0).collect()
}

/// What `verify` finds after the counts of references have moved from one log to the other in the manifest.
fn damage_after(folder: &Path, moved: Referred) -> Vec<String> {
    let (_, mut state) = read_manifest(&OsVfs, folder).unwrap().unwrap();
    let numbers: Vec<FileNumber> = logs(&state).iter().map(|log| log.file.number).collect();
    let [from, to] = numbers[..] else {
        panic!("{numbers:?}");
    };
    let mut changes = ReferenceChanges::default();
    changes.uncount(from, moved);
    changes.count(to, moved);
    let keyspace = *state.keyspaces.keys().next().unwrap();
    let records = Vec::from_iter(Record::count_references(keyspace, &changes));
    state.apply(&Edit { records }).unwrap();
    let number = FileNumber(state.next_id);
    drop(ManifestStore::start(Arc::new(OsVfs), folder, number, state).unwrap());
    let handle = Handle::open(folder, options(), Access::ReadOnly).unwrap();
    let report = handle.engine().verify().unwrap();
    report.damage.iter().map(ToString::to_string).collect()
}

/// The sum of all counts is right, so no edit shows it. A log whose count is too small would be deleted too early.
#[test]
fn counts_that_moved_to_another_log_are_found() {
    for (entries, bytes) in [(0, 0), (1, 2010), (0, 1)] {
        let folder = tempfile::tempdir().unwrap();
        make(folder.path());
        let found = damage_after(folder.path(), Referred { entries, bytes });
        let counts = found.iter().filter(|it| it.contains("the manifest counts"));
        let expected = if bytes == 0 { 0 } else { 2 };
        assert_eq!(counts.count(), expected, "{found:?}");
        assert_eq!(found.is_empty(), bytes == 0, "{found:?}");
    }
}

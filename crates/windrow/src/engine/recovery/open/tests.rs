//! Opens of databases whose numbers are nearly used up.

use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::base::Kind;
use crate::engine::{Access, Handle, Write};
use crate::manifest::{Edit, ManifestStore, Record};
use crate::options::Durability;
use crate::vfs::{OsVfs, Vfs};

/// Opens a database whose manifest holds `records`.
fn open_with(directory: &Path, records: Vec<Record>) -> Result<Handle> {
    let mut state = ManifestState::default();
    state.apply(&Edit { records }).unwrap();
    let number = FileNumber(state.next_id);
    ManifestStore::start(Arc::new(OsVfs), directory, number, state)?;
    Handle::open(directory, Options::default(), Access::ReadWrite)
}

#[test]
fn no_keyspace_follows_the_last_number() {
    let directory = tempfile::tempdir().unwrap();
    let last = Record::CreateKeyspace {
        id: KeyspaceId(u32::MAX),
        name: "last".to_owned(),
    };
    let handle = open_with(directory.path(), vec![last]).unwrap();
    let open = |name| handle.engine().open_keyspace(name, None);
    assert_eq!(open("last").unwrap().id(), KeyspaceId(u32::MAX));
    let error = open("another").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
}

#[test]
fn impossible_numbers_are_corruption() {
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

#[test]
fn options_of_another_version_are_unsupported_and_unknown_names_are_kept() {
    let recorded = |fields: &[(&str, &str)]| {
        let own = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        let create = Record::CreateKeyspace {
            id: KeyspaceId(1),
            name: "main".to_owned(),
        };
        let options = Record::KeyspaceOptions {
            keyspace: KeyspaceId(1),
            options: fields.iter().map(own).collect(),
        };
        vec![create, options]
    };
    for wrong in [
        ("level0_runs", "many"),
        ("level0_runs", "0"),
        ("compression", "brotli"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let error = open_with(directory.path(), recorded(&[wrong])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        let sentence = error.to_string();
        assert!(
            sentence.contains(wrong.0) && sentence.contains("main"),
            "{sentence}"
        );
    }
    let directory = tempfile::tempdir().unwrap();
    let fields = [("colour", "green"), ("level0_runs", "7")];
    let handle = open_with(directory.path(), recorded(&fields)).unwrap();
    let core = handle.engine().open_keyspace("main", None).unwrap();
    assert_eq!(core.options().level0_runs, 7);
    handle.close().unwrap();
    let (_, state) = read_manifest(&OsVfs, directory.path()).unwrap().unwrap();
    let kept = &state.keyspaces[&KeyspaceId(1)].options;
    assert_eq!(kept.get("colour").map(String::as_str), Some("green"));
}

/// No manifest names a value file yet.
#[test]
fn a_value_file_needs_a_manifest() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("000099.values");
    let create = || drop(OsVfs.create(&path).unwrap());
    let open = || Handle::open(directory.path(), Options::default(), Access::ReadWrite);
    // A value file shows that there was a database.
    create();
    let error = open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    assert!(error.to_string().contains("CURRENT"), "{error}");
    OsVfs.remove(&path).unwrap();
    drop(open().unwrap());
    create();
    let handle = open().unwrap();
    assert!(!path.exists());
    // Its number is not used again.
    assert!(handle.engine().open_keyspace("main", None).is_ok());
    drop(handle);
    let names = OsVfs.list(directory.path()).unwrap();
    let numbers = names
        .iter()
        .filter_map(|name| FileName::parse(name)?.number());
    assert!(numbers.into_iter().all(|number| number > FileNumber(99)));
}

/// Later writes would leave a gap in the sequence numbers that no log explains.
#[test]
fn numbers_beyond_the_kept_logs_are_corruption() {
    for (beyond, is_sound) in [(0, true), (1, false)] {
        let directory = tempfile::tempdir().unwrap();
        let open = || Handle::open(directory.path(), Options::default(), Access::ReadWrite);
        let handle = open().unwrap();
        let write = Write::One {
            keyspace: &handle.engine().open_keyspace("main", None).unwrap(),
            kind: Kind::Value,
            key: b"apple",
            value: b"red",
        };
        handle
            .engine()
            .commit(&write, Durability::Buffered)
            .unwrap();
        handle.close().unwrap();
        let (_, mut state) = read_manifest(&OsVfs, directory.path()).unwrap().unwrap();
        let used = Record::Used {
            keyspace: KeyspaceId(1),
            sequence: state.last_sequence() + 1 + beyond,
        };
        let edit = Edit {
            records: vec![used],
        };
        state.apply(&edit).unwrap();
        let number = FileNumber(state.next_id);
        ManifestStore::start(Arc::new(OsVfs), directory.path(), number, state).unwrap();
        let kind = open().err().map(|error| error.kind());
        assert_eq!(
            kind,
            (!is_sound).then_some(ErrorKind::Corruption),
            "{beyond}"
        );
    }
}

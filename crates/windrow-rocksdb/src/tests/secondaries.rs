//! Readers beside a process that writes.

use std::path::Path;
use std::sync::Arc;

use windrow::{Error, ErrorKind};
use windrow_ffi::leveldb::KEYSPACE;

use super::{at, creating, get, open, open_with, put};
use crate::batch::{DEFAULT_FAMILY, Write, WriteBatch};
use crate::database::{Access, Database};
use crate::families::Family;
use crate::options::{FamilyOptions, OpenOptions, ReadOptions, WriteOptions};
use crate::status;

/// Opens `default` and the named families for reading.
fn read(
    folder: &Path,
    names: &[&str],
    access: Access,
) -> Result<(Database, Vec<Arc<Family>>), Error> {
    let options = OpenOptions::default();
    let names = [KEYSPACE].iter().chain(names);
    let families: Vec<_> = names
        .map(|name| FamilyOptions {
            name,
            options: &options,
            ttl: None,
        })
        .collect();
    Database::open(folder, &options, &families, access)
}

fn refused(error: &Error) -> bool {
    status::text(error).starts_with("Not implemented: ")
}

#[test]
fn a_secondary_reads_one_state_after_the_other_and_writes_none() {
    let folder = tempfile::tempdir().unwrap();
    let (primary, own) = open_with(folder.path(), &creating(), &["one"]).unwrap();
    put(&primary, &own[0], "k", "0");
    put(&primary, &own[1], "k", "0");
    let (secondary, families) = read(folder.path(), &["one"], Access::Secondary).unwrap();
    let ids: Vec<_> = families.iter().map(|family| family.id).collect();
    assert_eq!(ids, [0, 1]);
    let before = ReadOptions {
        snapshot: Some(secondary.snapshot()),
        ..ReadOptions::default()
    };
    for round in 1..4 {
        let value = round.to_string();
        let old = (round - 1).to_string();
        let mut batch = WriteBatch::default();
        batch.add(0, Write::Put(b"k", value.as_bytes()));
        batch.add(1, Write::Put(b"k", value.as_bytes()));
        primary.write(&batch, WriteOptions::default()).unwrap();
        for family in &families {
            assert_eq!(get(family, "k"), Some(old.clone()));
        }
        let mut iterator = Database::iterator(&families[1], &ReadOptions::default());
        secondary.catch_up().unwrap();
        for family in &families {
            assert_eq!(get(family, "k"), Some(value.clone()));
        }
        assert_eq!(
            secondary.snapshot().sequence(),
            primary.snapshot().sequence()
        );
        iterator.seek_to_first();
        assert_eq!(at(&mut iterator), format!("k={old}"));
        iterator.refresh().unwrap();
        iterator.seek_to_first();
        assert_eq!(at(&mut iterator), format!("k={value}"));
    }
    // The snapshot is of a state that is gone.
    assert!(Database::get(&families[0], b"k", &before).is_err());

    let write = Write::Put(b"k", b"own");
    let options = WriteOptions::default();
    assert!(refused(
        &secondary
            .write_one(&families[1], write, options)
            .unwrap_err()
    ));
    let mut batch = WriteBatch::default();
    batch.add(DEFAULT_FAMILY, write);
    assert!(refused(&secondary.write(&batch, options).unwrap_err()));
    let new = OpenOptions::default();
    let new = FamilyOptions {
        name: "new",
        options: &new,
        ttl: None,
    };
    assert!(refused(
        &secondary.create_family(&new).map(drop).unwrap_err()
    ));
    assert!(refused(&secondary.drop_family(&families[1]).unwrap_err()));
    assert!(refused(&primary.catch_up().unwrap_err()));
    secondary.close().unwrap();
    assert!(Database::get(&families[0], b"k", &ReadOptions::default()).is_err());
    assert_eq!(get(&own[0], "k").as_deref(), Some("3"));
}

#[test]
fn a_secondary_takes_no_family_for_another_one_of_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let (primary, own) = open_with(folder.path(), &creating(), &["one", "two"]).unwrap();
    put(&primary, &own[1], "k", "old");
    put(&primary, &own[2], "k", "two");
    let (secondary, families) = read(folder.path(), &["one", "two"], Access::Secondary).unwrap();
    primary.drop_family(&own[1]).unwrap();
    let options = creating();
    let again = FamilyOptions {
        name: "one",
        options: &options,
        ttl: None,
    };
    let new = primary.create_family(&again).unwrap();
    put(&primary, &new, "k", "new");
    assert_eq!(get(&families[1], "k").as_deref(), Some("old"));
    secondary.catch_up().unwrap();
    let found = Database::get(&families[1], b"k", &ReadOptions::default());
    assert_eq!(found.map(drop).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(get(&families[2], "k").as_deref(), Some("two"));
    let missing = read(folder.path(), &["three"], Access::Secondary).map(drop);
    let text = status::text(&missing.unwrap_err());
    assert!(text.starts_with("Invalid argument: "), "{text}");
}

#[test]
fn a_read_only_open_and_a_writer_do_not_stop_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, family) = open(folder.path());
    put(&writer, &family, "k", "1");
    let (reader, families) = read(folder.path(), &[], Access::ReadOnly).unwrap();
    put(&writer, &family, "k", "2");
    assert_eq!(get(&families[0], "k").as_deref(), Some("1"));
    assert!(refused(&reader.catch_up().unwrap_err()));
    assert_eq!(
        Database::family_names(folder.path(), &OpenOptions::default()).unwrap(),
        [KEYSPACE]
    );
    writer.close().unwrap();
    let (writer, family) = open(folder.path());
    put(&writer, &family, "k", "3");
    assert_eq!(get(&families[0], "k").as_deref(), Some("1"));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test changes the folder")]
fn a_folder_without_place_for_readers_is_read_under_its_lock() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, family) = open(folder.path());
    put(&writer, &family, "k", "1");
    writer.close().unwrap();
    let readers = folder.path().join("readers");
    drop(std::fs::remove_dir_all(&readers));
    std::fs::write(&readers, "").unwrap();
    let (reader, families) = read(folder.path(), &[], Access::ReadOnly).unwrap();
    assert_eq!(get(&families[0], "k").as_deref(), Some("1"));
    let error = open_with(folder.path(), &creating(), &[]).map(drop);
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Locked);
    drop(reader);
}

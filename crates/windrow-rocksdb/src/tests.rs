//! What the C programs under `bindings/c/rocksdb` cannot see, or see only by chance.

mod batches;
mod filters;
mod secondaries;
mod statistics;
mod transactions;
mod updates;

use std::path::Path;
use std::sync::Arc;

use windrow::{Durability, Error, ErrorKind};
use windrow_ffi::iterator::Entries;
use windrow_ffi::key_order::KeyOrder;
use windrow_ffi::leveldb::KEYSPACE;

use crate::batch::{DEFAULT_FAMILY, Write, WriteBatch};
use crate::database::{Access, Database};
use crate::families::Family;
use crate::iterator::EntryIterator;
use crate::options::{FamilyOptions, OpenOptions, ReadOptions, WriteOptions};
use crate::prefix::Prefix;
use crate::transaction::{Control, Transaction};
use crate::{dynamic_options, log, status};

fn creating() -> OpenOptions {
    let mut options = OpenOptions {
        create_missing_families: true,
        ..OpenOptions::default()
    };
    options.common.create_if_missing = true;
    options
}

/// Opens `default` and the named families.
fn open_with(
    folder: &Path,
    options: &OpenOptions,
    names: &[&str],
) -> Result<(Database, Vec<Arc<Family>>), Error> {
    let names = [KEYSPACE].iter().chain(names);
    let families: Vec<_> = names
        .map(|name| FamilyOptions {
            name,
            options,
            ttl: None,
        })
        .collect();
    Database::open(folder, options, &families, Access::ReadWrite)
}

fn open(folder: &Path) -> (Database, Arc<Family>) {
    let (database, families) = open_with(folder, &creating(), &[]).unwrap();
    (database, Arc::clone(&families[0]))
}

fn put(database: &Database, family: &Family, key: &str, value: &str) {
    let write = Write::Put(key.as_bytes(), value.as_bytes());
    database
        .write_one(family, write, WriteOptions::default())
        .unwrap();
}

fn get(family: &Family, key: &str) -> Option<String> {
    let found = Database::get(family, key.as_bytes(), &ReadOptions::default()).unwrap();
    found.map(|value| String::from_utf8(value.to_vec()).unwrap())
}

/// The entry of an iterator as `key=value`, or `-`.
fn at(iterator: &mut EntryIterator) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let key = iterator.key().map(text);
    match (key, iterator.value()) {
        (Some(key), Some(value)) => format!("{key}={}", text(value)),
        _ => "-".to_owned(),
    }
}

#[test]
fn families_keep_their_ids_and_no_id_is_used_twice() {
    let folder = tempfile::tempdir().unwrap();
    let (database, families) = open_with(folder.path(), &creating(), &["one", "two"]).unwrap();
    let ids: Vec<_> = families.iter().map(|family| family.id).collect();
    assert_eq!(ids, [0, 1, 2]);
    put(&database, &families[2], "k", "two");
    database.drop_family(&families[1]).unwrap();
    let error = database.drop_family(&families[1]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(database.drop_family(&families[0]).is_err());
    let options = creating();
    let again = FamilyOptions {
        name: "one",
        options: &options,
        ttl: None,
    };
    let one = database.create_family(&again).unwrap();
    assert_eq!(one.id, 3);
    assert!(database.create_family(&again).is_err());
    assert_eq!(get(&one, "k"), None);
    // A batch for the family that was dropped.
    let mut batch = WriteBatch::default();
    batch.add(1, Write::Put(b"k", b"v"));
    assert!(database.write(&batch, WriteOptions::default()).is_err());
    let lenient = WriteOptions {
        ignores_missing_families: true,
        ..WriteOptions::default()
    };
    database.write(&batch, lenient).unwrap();
    drop((one, families));
    database.close().unwrap();

    assert_eq!(
        Database::family_names(folder.path(), &creating()).unwrap(),
        ["default", "one", "two"]
    );
    let error = open_with(folder.path(), &creating(), &["one"])
        .map(drop)
        .unwrap_err();
    assert!(
        status::text(&error).starts_with("Invalid argument: "),
        "{error}"
    );
    assert!(error.to_string().contains("[\"two\"]"), "{error}");
    let (_database, families) = open_with(folder.path(), &creating(), &["two", "one"]).unwrap();
    let ids: Vec<_> = families.iter().map(|family| family.id).collect();
    assert_eq!(ids, [0, 2, 3]);
    assert_eq!(get(&families[1], "k").as_deref(), Some("two"));
}

#[test]
fn an_iterator_ends_with_its_prefix() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = creating();
    options.prefix = Some(Arc::new(Prefix::Fixed(2)));
    let (database, families) = open_with(folder.path(), &options, &[]).unwrap();
    let family = &families[0];
    for key in ["a", "aa1", "aa2", "ab1", "b"] {
        put(&database, family, key, "");
    }
    let mut read = ReadOptions {
        prefix_same_as_start: true,
        ..ReadOptions::default()
    };
    let mut iterator = Database::iterator(family, &read);
    iterator.seek(b"aa");
    let mut seen = vec![at(&mut iterator)];
    for _ in 0..2 {
        iterator.next();
        seen.push(at(&mut iterator));
    }
    iterator.seek(b"aa3");
    seen.push(at(&mut iterator));
    iterator.seek_for_prev(b"ab9");
    seen.push(at(&mut iterator));
    iterator.prev();
    seen.push(at(&mut iterator));
    assert_eq!(seen, ["aa1=", "aa2=", "-", "-", "ab1=", "-"]);
    read.total_order_seek = true;
    let mut iterator = Database::iterator(family, &read);
    iterator.seek(b"aa3");
    assert_eq!(at(&mut iterator), "ab1=");
}

#[test]
fn a_tailing_iterator_sees_later_writes_and_a_refreshed_one_too() {
    let folder = tempfile::tempdir().unwrap();
    let (database, family) = open(folder.path());
    put(&database, &family, "a", "1");
    let tailing = ReadOptions {
        is_tailing: true,
        ..ReadOptions::default()
    };
    let mut iterator = Database::iterator(&family, &tailing);
    iterator.seek_to_first();
    let snapshot = ReadOptions {
        snapshot: Some(database.snapshot()),
        ..ReadOptions::default()
    };
    let mut old = Database::iterator(&family, &snapshot);
    put(&database, &family, "b", "2");
    iterator.next();
    assert_eq!(at(&mut iterator), "b=2");
    iterator.prev();
    assert_eq!(at(&mut iterator), "-");
    assert!(iterator.error().unwrap().starts_with("Not implemented: "));
    old.seek_to_last();
    assert_eq!(at(&mut old), "a=1");
    old.refresh().unwrap();
    assert_eq!(at(&mut old), "-");
    old.seek_to_last();
    assert_eq!(at(&mut old), "b=2");
}

#[test]
fn a_comparator_in_another_order_is_an_error_at_the_second_key() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = creating();
    let reversed = KeyOrder::new(Box::new(|first, second| second.cmp(first)));
    options.order = Some(Arc::new(reversed));
    let (database, families) = open_with(folder.path(), &options, &[]).unwrap();
    let family = &families[0];
    put(&database, family, "b", "1");
    let read = ReadOptions::default();
    let error = Database::get(family, b"a", &read).map(drop).unwrap_err();
    assert!(
        status::text(&error).starts_with("Not implemented: "),
        "{error}"
    );
    let mut iterator = Database::iterator(family, &read);
    iterator.seek(b"a");
    assert_eq!(at(&mut iterator), "-");
    assert!(iterator.error().is_some());
}

#[test]
fn the_empty_key_is_never_there_and_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let (database, family) = open(folder.path());
    assert_eq!(get(&family, ""), None);
    let write = |write| database.write_one(&family, write, WriteOptions::default());
    assert_eq!(
        write(Write::Put(b"", b"v")).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    write(Write::Delete(b"")).unwrap();
    put(&database, &family, "a", "1");
    write(Write::DeleteRange(b"", b"b")).unwrap();
    assert_eq!(get(&family, "a"), None);
    assert!(write(Write::DeleteRange(b"b", b"a")).is_err());
    let options = WriteOptions::default();
    let mut transaction = Transaction::begin(&database, Control::Optimistic, options, false);
    assert!(transaction.write(&family, Write::Put(b"", b"v")).is_err());
    transaction.write(&family, Write::Delete(b"")).unwrap();
    let read = ReadOptions::default();
    assert_eq!(transaction.get(&family, b"", &read).unwrap(), None);
    transaction.commit().unwrap();
}

#[test]
fn options_change_while_a_database_is_open() {
    let folder = tempfile::tempdir().unwrap();
    let (database, family) = open(folder.path());
    let set = |pairs: &[(&str, &str)]| dynamic_options::set(&database.shared.db(), &family, pairs);
    set(&[
        ("write_buffer_size", "8M"),
        ("disable_auto_compactions", "true"),
    ])
    .unwrap();
    assert_eq!(family.keyspace().unwrap().options().memtable_bytes, 8 << 20);
    for pairs in [
        &[][..],
        &[("write_buffer_size", "9M"), ("no_such_option", "1")],
        &[("write_buffer_size", "many")],
        &[("disable_auto_compactions", "perhaps")],
    ] {
        let error = set(pairs).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
    assert_eq!(family.keyspace().unwrap().options().memtable_bytes, 8 << 20);
}

/// All sizes, however odd, become valid options.
#[test]
fn any_options_are_valid_after_the_conversion() {
    let sizes = [0, 1, 10_000, 64 << 20, 3 << 30, usize::MAX];
    for write_buffer_bytes in sizes {
        for file_bytes in sizes {
            for rest in sizes {
                let mut options = creating();
                options.common.write_buffer_bytes = write_buffer_bytes;
                options.common.file_bytes = file_bytes;
                options.common.cache_bytes = rest;
                options.common.block_bytes = rest;
                options.base_bytes = Some(rest as u64);
                options.level0_runs = Some(rest);
                options.background_threads = Some(rest);
                options.wal_bytes = rest as u64;
                options.size_ratio = Some(rest as f64);
                options.bits_per_key = Some(rest as f64);
                options.has_blobs = true;
                options.blob_bytes = rest as u64;
                let family = FamilyOptions {
                    name: KEYSPACE,
                    options: &options,
                    ttl: None,
                };
                options.to_windrow(&[family]).validate().unwrap();
                options.keyspace(None).validate().unwrap();
            }
        }
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test reads a log")]
fn the_log_names_the_options_without_an_effect() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = creating();
    options.ignored.insert("rocksdb_options_set_use_fsync");
    let (database, _) = open_with(folder.path(), &options, &[]).unwrap();
    database.close().unwrap();
    let text = std::fs::read_to_string(folder.path().join(log::FILE)).unwrap();
    assert!(text.ends_with("\nignored: options_use_fsync\n"), "{text}");
    let (database, _) = open_with(folder.path(), &creating(), &[]).unwrap();
    let text = std::fs::read_to_string(folder.path().join(log::FILE)).unwrap();
    assert!(!text.contains("ignored"), "{text}");
    let names = database.shared.db().keyspace_names();
    assert_eq!(names, [KEYSPACE]);
    drop(database);
    // The log is no obstacle for a removal and another database.
    windrow_ffi::leveldb::destroy_with(folder.path(), &[log::FILE]).unwrap();
    assert!(!folder.path().exists());
}

#[test]
fn what_cannot_be_done_is_an_error_of_the_open() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = creating();
    options.unsupported = Some("compaction filters");
    let error = open_with(folder.path(), &options, &[])
        .map(drop)
        .unwrap_err();
    assert_eq!(status::text(&error), "Not implemented: compaction filters");
    let (database, _) = open(folder.path());
    let error = open_with(folder.path(), &creating(), &[])
        .map(drop)
        .unwrap_err();
    let text = status::text(&error);
    assert!(
        text.starts_with("IO error: ") && text.contains("/LOCK:"),
        "{text}"
    );
    let mut batch = WriteBatch::default();
    batch.add(DEFAULT_FAMILY, Write::Put(b"k", b"v"));
    let synced = WriteOptions {
        durability: Durability::Sync,
        ..WriteOptions::default()
    };
    database.write(&batch, synced).unwrap();
    let other = folder.path().with_extension("copy");
    Database::checkpoint(&database.shared.db(), &other, 0).unwrap();
    let error = Database::checkpoint(&database.shared.db(), &other, 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let (copy, family) = open(&other);
    assert_eq!(get(&family, "k").as_deref(), Some("v"));
    drop(copy);
    drop(family);
    windrow_ffi::leveldb::destroy_with(&other, &[log::FILE]).unwrap();
}

//! What the C programs under `bindings/c/leveldb` cannot see: the empty key beside
//! snapshots and batches, comparators of every kind, errors of iterators.

use std::cmp::Ordering;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windrow::{Durability, ErrorKind, Options};
use windrow_ffi::iterator::Entries;
use windrow_ffi::key_order::KeyOrder;
use windrow_ffi::leveldb;

use crate::batch::{Write, WriteBatch};
use crate::database::Database;
use crate::iterator::EntryIterator;
use crate::options::OpenOptions;
use crate::{properties, status};

const BUFFERED: Durability = Durability::Buffered;

fn creating() -> OpenOptions {
    let mut options = OpenOptions::default();
    options.common.create_if_missing = true;
    options
}

fn with_order(compare: fn(&[u8], &[u8]) -> Ordering) -> OpenOptions {
    OpenOptions {
        order: Some(Arc::new(KeyOrder::new(Box::new(compare)))),
        ..creating()
    }
}

fn get(database: &Database, key: &str) -> Option<String> {
    let value = database.get(key.as_bytes(), None).unwrap();
    value.map(|value| String::from_utf8(value.to_vec()).unwrap())
}

fn put(database: &Database, key: &str, value: &str) {
    database
        .put(key.as_bytes(), value.as_bytes(), BUFFERED)
        .unwrap();
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
fn the_empty_key_is_the_first_of_all() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::open(folder.path(), &creating()).unwrap();
    assert_eq!(get(&database, ""), None);
    database.delete(b"", BUFFERED).unwrap();
    put(&database, "a", "1");
    let before = database.snapshot();
    let mut batch = WriteBatch::default();
    batch.add(Write::Put(b"", b"0"));
    batch.add(Write::Put(b"b", b"2"));
    batch.add(Write::Delete(b"a"));
    database.write(&batch, BUFFERED).unwrap();
    assert_eq!(get(&database, "").as_deref(), Some("0"));
    assert!(database.get(b"", Some(&before)).unwrap().is_none());

    let mut iterator = database.iterator(None);
    assert_eq!(at(&mut iterator), "-");
    iterator.seek_to_first();
    let mut seen = vec![at(&mut iterator)];
    iterator.next();
    seen.push(at(&mut iterator));
    iterator.prev();
    seen.push(at(&mut iterator));
    iterator.prev();
    seen.push(at(&mut iterator));
    iterator.next();
    seen.push(at(&mut iterator));
    iterator.seek(b"");
    seen.push(at(&mut iterator));
    iterator.seek(b"\0");
    seen.push(at(&mut iterator));
    iterator.next();
    seen.push(at(&mut iterator));
    iterator.seek_to_last();
    seen.push(at(&mut iterator));
    assert_eq!(seen, ["=0", "b=2", "=0", "-", "-", "=0", "b=2", "-", "b=2"]);

    let mut iterator = database.iterator(Some(&before));
    iterator.seek_to_last();
    assert_eq!(at(&mut iterator), "a=1");
    iterator.prev();
    assert_eq!(at(&mut iterator), "-");
    drop(iterator);

    // It is there after a reopen, alone and without other keys.
    drop(before);
    database.close().unwrap();
    let database = Database::open(folder.path(), &creating()).unwrap();
    database.delete(b"b", BUFFERED).unwrap();
    let mut iterator = database.iterator(None);
    iterator.seek_to_last();
    assert_eq!(at(&mut iterator), "=0");
    iterator.next();
    assert_eq!(at(&mut iterator), "-");
    database.delete(b"", BUFFERED).unwrap();
    assert_eq!(get(&database, ""), None);
}

#[test]
fn a_comparator_in_the_order_of_bytes_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::open(folder.path(), &with_order(<[u8]>::cmp)).unwrap();
    for key in ["b", "a", "", "ab", "a"] {
        put(&database, key, key);
        assert_eq!(get(&database, key).as_deref(), Some(key));
    }
    let mut iterator = database.iterator(None);
    iterator.seek(b"aa");
    assert_eq!(at(&mut iterator), "ab=ab");
    iterator.prev();
    iterator.prev();
    assert_eq!(at(&mut iterator), "=");
    assert_eq!(iterator.error(), None);
}

#[test]
fn a_comparator_in_another_order_is_an_error_at_the_second_key() {
    let reverse: fn(&[u8], &[u8]) -> Ordering = |first, second| second.cmp(first);
    let no_case: fn(&[u8], &[u8]) -> Ordering =
        |first, second| first.to_ascii_lowercase().cmp(&second.to_ascii_lowercase());
    for (compare, first, second) in [
        (reverse, "a", "b"),
        (no_case, "A", "a"),
        (no_case, "b", "C"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(folder.path(), &with_order(compare)).unwrap();
        let key = second.as_bytes();
        put(&database, first, "1");
        let outcomes = [
            database.get(key, None).map(drop),
            database.get(first.as_bytes(), None).map(drop),
            database.put(key, b"2", BUFFERED),
        ];
        for outcome in outcomes {
            let error = outcome.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            let text = status::text(&error);
            assert!(
                text.starts_with("Not implemented: the comparator does not order the keys"),
                "{text}"
            );
        }
        let mut batch = WriteBatch::default();
        batch.add(Write::Delete(first.as_bytes()));
        assert!(database.write(&batch, BUFFERED).is_err());
        assert_eq!(get(&database, first).as_deref(), Some("1"));
    }
}

/// The database was filled without the comparator.
#[test]
fn an_iterator_stops_where_the_comparator_expects_another_order() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::open(folder.path(), &creating()).unwrap();
    for key in ["a", "b", "c"] {
        put(&database, key, "1");
    }
    database.close().unwrap();
    let options = with_order(|first, second| second.cmp(first));
    let database = Database::open(folder.path(), &options).unwrap();
    let movements: [fn(&mut EntryIterator); 3] = [
        |iterator| {
            iterator.seek_to_first();
            assert_eq!(at(iterator), "a=1");
            iterator.next();
        },
        |iterator| {
            iterator.seek_to_last();
            assert_eq!(at(iterator), "c=1");
            iterator.prev();
        },
        |iterator| iterator.seek(b"aa"),
    ];
    for movement in movements {
        let mut iterator = database.iterator(None);
        movement(&mut iterator);
        assert_eq!(at(&mut iterator), "-");
        let error = iterator.error().unwrap().to_owned();
        assert!(error.contains("the comparator does not order"), "{error}");
        // It stays at no entry.
        iterator.seek_to_first();
        assert_eq!(at(&mut iterator), "-");
        assert_eq!(iterator.error(), Some(&*error));
    }
}

#[test]
fn a_batch_returns_its_writes_in_order() {
    let mut batch = WriteBatch::default();
    batch.add(Write::Put(b"a", b"1"));
    batch.add(Write::Delete(b""));
    batch.add(Write::Put(b"", b""));
    let mut other = WriteBatch::default();
    other.add(Write::Put(b"bb", b"22"));
    batch.append(&other);
    batch.append_itself();
    let once = [
        Write::Put(b"a", b"1"),
        Write::Delete(b""),
        Write::Put(b"", b""),
        Write::Put(b"bb", b"22"),
    ];
    let writes: Vec<_> = batch.writes().collect();
    assert_eq!(writes, [once, once].concat());

    let folder = tempfile::tempdir().unwrap();
    let database = Database::open(folder.path(), &creating()).unwrap();
    let mut faulty = WriteBatch::default();
    faulty.add(Write::Put(b"c", b"3"));
    faulty.add_fault(|| "first".to_owned());
    faulty.add_fault(|| "second".to_owned());
    batch.append(&faulty);
    let error = database.write(&batch, BUFFERED).unwrap_err();
    assert_eq!(status::text(&error), "Invalid argument: first");
    assert_eq!(get(&database, "bb"), None);
    batch.clear();
    assert_eq!(batch.writes().count(), 0);
    database.write(&batch, BUFFERED).unwrap();
}

#[test]
fn handles_that_outlive_the_database_return_errors() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::open(folder.path(), &creating()).unwrap();
    put(&database, "a", "1");
    let mut iterator = database.iterator(None);
    let snapshot = database.snapshot();
    let other = Database::open(folder.path(), &creating());
    let error = other.map(drop).unwrap_err();
    assert!(status::text(&error).starts_with("IO error: "), "{error}");
    database.close().unwrap();
    iterator.seek_to_first();
    let other = Database::open(folder.path(), &creating()).unwrap();
    let error = other.get(b"a", Some(&snapshot)).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let iterator = other.iterator(Some(&snapshot));
    assert!(iterator.key().is_none());
    assert!(iterator.error().unwrap().contains("another database"));
}

#[test]
fn properties_are_those_of_leveldb() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::open(folder.path(), &creating()).unwrap();
    put(&database, "a", "1");
    database.compact_range(None, None).unwrap();
    let value = |name: &str| properties::value(&database, name);
    let files = (0..=15).map(|level| value(&format!("leveldb.num-files-at-level{level}")).unwrap());
    let files: u32 = files.map(|count| count.parse::<u32>().unwrap()).sum();
    assert_eq!(files, 1);
    let memory = value("leveldb.approximate-memory-usage").unwrap();
    assert!(memory.parse::<u64>().unwrap() > 0);
    let stats = value("leveldb.stats").unwrap();
    let files = stats
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1));
    assert_eq!(files.filter(|files| *files == "1").count(), 1, "{stats}");
    for unknown in [
        "",
        "stats",
        "leveldb.",
        "leveldb.nosuchprop",
        "leveldb.num-files-at-level",
        "leveldb.num-files-at-level16",
        "leveldb.num-files-at-level+1",
        "leveldb.num-files-at-level99999999999999999999",
    ] {
        assert_eq!(value(unknown), None, "{unknown}");
    }
}

#[test]
fn a_damaged_database_is_not_repaired_in_silence() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::open(folder.path(), &creating()).unwrap();
    for number in 0..1000 {
        put(&database, &format!("{number:04}"), "value");
    }
    database.compact_range(None, None).unwrap();
    database.close().unwrap();
    leveldb::repair(folder.path(), creating().common.to_windrow()).unwrap();
    damage_a_table(folder.path());
    let error = leveldb::repair(folder.path(), creating().common.to_windrow()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    let missing = folder.path().join("missing");
    assert!(leveldb::repair(&missing, creating().common.to_windrow()).is_err());
    assert!(!missing.exists());
    leveldb::destroy(folder.path()).unwrap();
    let options = OpenOptions::default();
    let error = Database::open(folder.path(), &options)
        .map(drop)
        .unwrap_err();
    assert!(
        status::text(&error).starts_with("Invalid argument: "),
        "{error}"
    );
    assert!(windrow::Db::open_read_only(folder.path(), Options::default()).is_err());
}

#[expect(
    clippy::disallowed_methods,
    reason = "the test damages a closed database"
)]
fn damage_a_table(folder: &Path) {
    let mut paths = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let is_table = |path: &PathBuf| path.extension().is_some_and(|end| end == "table");
    let table = paths.find(is_table).unwrap();
    let mut bytes = fs::read(&table).unwrap();
    bytes[100] ^= 1;
    fs::write(&table, bytes).unwrap();
}

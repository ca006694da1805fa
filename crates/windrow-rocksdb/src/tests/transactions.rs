//! Transactions: iterators over their writes, conflicts, locks, names, preparations.

use std::collections::BTreeMap;

use windrow::ErrorKind;

use super::{at, get, open, put};
use crate::batch::{DEFAULT_FAMILY, Write, WriteBatch};
use crate::database::Database;
use crate::options::{LockTimeouts, ReadOptions, WriteOptions, timeout};
use crate::status;
use crate::transaction::{Control, Transaction};

/// All moves of an iterator over a transaction's writes, compared with a map.
#[test]
fn the_iterator_of_a_transaction_is_that_of_the_merged_map() {
    let folder = tempfile::tempdir().unwrap();
    let (database, family) = open(folder.path());
    let mut model = BTreeMap::new();
    for key in ["b", "d", "f", "h"] {
        put(&database, &family, key, "old");
        model.insert(key.to_owned(), "old".to_owned());
    }
    let options = WriteOptions::default();
    let mut transaction = Transaction::begin(&database, Control::Optimistic, options, false);
    for (key, value) in [("a", "new"), ("d", "new"), ("e", "new"), ("i", "new")] {
        let write = Write::Put(key.as_bytes(), value.as_bytes());
        transaction.write(&family, write).unwrap();
        model.insert(key.to_owned(), value.to_owned());
    }
    for key in ["b", "c", "h"] {
        transaction
            .write(&family, Write::Delete(key.as_bytes()))
            .unwrap();
        model.remove(key);
    }
    let keys: Vec<_> = ('a'..='k').map(String::from).collect();
    let all = ReadOptions::default();
    let bounded = ReadOptions {
        lower: Some(b"b".to_vec()),
        upper: Some(b"f".to_vec()),
        ..ReadOptions::default()
    };
    for (read, lower, upper) in [(all, "", "~"), (bounded, "b", "f")] {
        let mut iterator = transaction.iterator(&family, &read);
        let model: BTreeMap<_, _> = model.range(lower.to_owned()..upper.to_owned()).collect();
        let show = |entry: Option<(&&String, &&String)>| {
            entry.map_or("-".to_owned(), |(key, value)| format!("{key}={value}"))
        };
        for start in &keys {
            for steps in 0..200_u32 {
                let forward = model.range::<&String, _>(start..).next();
                let backward = model.range::<&String, _>(..=start).next_back();
                let mut expected = if steps.is_multiple_of(2) {
                    iterator.seek(start.as_bytes());
                    forward
                } else {
                    iterator.seek_for_prev(start.as_bytes());
                    backward
                };
                assert_eq!(at(&mut iterator), show(expected), "{start} {steps}");
                for step in 0..4 {
                    let Some((key, _)) = expected else { break };
                    expected = if (steps >> step) & 2 == 0 {
                        iterator.next();
                        model.range::<&String, _>(*key..).nth(1)
                    } else {
                        iterator.prev();
                        model.range::<&String, _>(..*key).next_back()
                    };
                    assert_eq!(at(&mut iterator), show(expected), "{start} {steps} {step}");
                }
            }
        }
        iterator.seek_to_first();
        assert_eq!(at(&mut iterator), show(model.first_key_value()));
        iterator.seek_to_last();
        assert_eq!(at(&mut iterator), show(model.last_key_value()));
        assert!(iterator.refresh().is_err());
    }
}

#[test]
fn an_optimistic_transaction_conflicts_with_what_came_after_its_first_write() {
    let folder = tempfile::tempdir().unwrap();
    let (database, family) = open(folder.path());
    let begin = || {
        Transaction::begin(
            &database,
            Control::Optimistic,
            WriteOptions::default(),
            false,
        )
    };
    let mut early = begin();
    put(&database, &family, "k", "1");
    // It has not touched the key, and reads the newest state.
    let read = ReadOptions::default();
    assert_eq!(early.get(&family, b"k", &read).unwrap().unwrap(), b"1");
    early.write(&family, Write::Put(b"k", b"2")).unwrap();
    early.commit().unwrap();
    assert_eq!(get(&family, "k").as_deref(), Some("2"));

    let mut late = begin();
    late.write(&family, Write::Put(b"k", b"3")).unwrap();
    put(&database, &family, "k", "4");
    for _ in 0..2 {
        // A second commit does not succeed with nothing.
        let error = late.commit().unwrap_err();
        assert!(
            status::text(&error).starts_with("Resource busy: "),
            "{error}"
        );
    }
    assert!(late.write(&family, Write::Delete(b"k")).is_err());
    late.roll_back().unwrap();
    late.commit().unwrap();
    assert_eq!(get(&family, "k").as_deref(), Some("4"));

    // One that only reads for update.
    let mut reader = begin();
    reader.get_for_update(&family, b"k", &read, true).unwrap();
    put(&database, &family, "k", "5");
    assert_eq!(reader.commit().unwrap_err().kind(), ErrorKind::Conflict);
}

#[test]
fn a_locking_transaction_keeps_its_keys_from_all_writes() {
    let folder = tempfile::tempdir().unwrap();
    let (mut database, family) = open(folder.path());
    let short = timeout(20);
    database.locks = Some(LockTimeouts {
        transaction: short,
        write: short,
    });
    put(&database, &family, "k", "1");
    let begin = |takes_snapshot| {
        let options = WriteOptions::default();
        Transaction::begin(&database, Control::Locking(short), options, takes_snapshot)
    };
    let mut first = begin(false);
    first.write(&family, Write::Put(b"k", b"2")).unwrap();
    first.set_save_point();
    first.write(&family, Write::Put(b"l", b"2")).unwrap();
    let write = |key: &[u8]| {
        let write = Write::Put(key, b"3");
        database.write_one(&family, write, WriteOptions::default())
    };
    for key in [b"k", b"l"] {
        let error = write(key).unwrap_err();
        assert!(
            status::text(&error).starts_with("Operation timed out: "),
            "{error}"
        );
    }
    let mut batch = WriteBatch::default();
    batch.add(DEFAULT_FAMILY, Write::Put(b"a", b"3"));
    batch.add(DEFAULT_FAMILY, Write::Delete(b"k"));
    assert!(database.write(&batch, WriteOptions::default()).is_err());
    assert_eq!(get(&family, "a"), None);
    first.roll_back_to_save_point().unwrap();
    assert!(first.roll_back_to_save_point().is_err());
    write(b"l").unwrap();
    first.commit().unwrap();
    assert_eq!(get(&family, "k").as_deref(), Some("2"));

    // One with a snapshot refuses keys that have changed since.
    let mut second = begin(true);
    put(&database, &family, "k", "4");
    let write = Write::Put(b"k", b"5");
    let error = second.write(&family, write).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    second.write(&family, Write::Put(b"m", b"5")).unwrap();
    second.commit().unwrap();
    assert_eq!(get(&family, "m").as_deref(), Some("5"));
}

#[test]
fn names_of_transactions_are_unique_and_prepared_ones_survive() {
    let folder = tempfile::tempdir().unwrap();
    let (database, family) = open(folder.path());
    let begin = || {
        let control = Control::Locking(timeout(20));
        Transaction::begin(&database, control, WriteOptions::default(), false)
    };
    let mut first = begin();
    first.write(&family, Write::Put(b"k", b"1")).unwrap();
    assert!(first.prepare().is_err());
    first.set_name(b"one").unwrap();
    assert!(first.set_name(b"other").is_err());
    let mut second = begin();
    assert!(second.set_name(b"one").is_err());
    assert!(second.set_name(b"").is_err());
    assert!(second.set_name(b"\xff").is_err());
    first.prepare().unwrap();
    drop(first);
    // The prepared one still has its name.
    assert!(second.set_name(b"one").is_err());
    drop(second);
    drop(family);
    database.close().unwrap();

    let (database, family) = open(folder.path());
    let mut prepared = Transaction::prepared(&database);
    assert_eq!(prepared.len(), 1);
    assert_eq!(prepared[0].name(), Some("one"));
    assert_eq!(get(&family, "k"), None);
    prepared[0].commit().unwrap();
    assert!(prepared[0].commit().is_err());
    assert_eq!(get(&family, "k").as_deref(), Some("1"));
}

#[test]
fn a_refused_transaction_never_writes() {
    let folder = tempfile::tempdir().unwrap();
    let (database, family) = open(folder.path());
    put(&database, &family, "k", "old");
    let options = WriteOptions::default();
    let control = Control::Locking(std::time::Duration::ZERO);
    let mut transaction = Transaction::begin(&database, control, options, false);
    transaction.set_name(b"t").unwrap();
    transaction.refuse("what it cannot do");
    for _ in 0..2 {
        let write = transaction.write(&family, Write::Put(b"k", b"new"));
        let locked = transaction.get_for_update(&family, b"k", &ReadOptions::default(), true);
        let prepared = transaction.prepare();
        let committed = transaction.commit();
        for outcome in [write, locked.map(drop), prepared, committed] {
            let error = outcome.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.to_string().contains("what it cannot do"), "{error}");
        }
        let read = transaction.get(&family, b"k", &ReadOptions::default());
        assert_eq!(read.unwrap().as_deref(), Some(&b"old"[..]));
        transaction.roll_back().unwrap();
    }
    assert_eq!(get(&family, "k").as_deref(), Some("old"));
}

#[test]
fn reads_of_several_keys_are_of_one_state() {
    let folder = tempfile::tempdir().unwrap();
    let (database, family) = open(folder.path());
    put(&database, &family, "k", "old");
    let read = |options: &ReadOptions| {
        let found = Database::get(&family, b"k", options).unwrap();
        found.map(|value| value.to_vec())
    };
    let first = database.at_one_state(&ReadOptions::default(), |options| {
        put(&database, &family, "k", "new");
        read(options)
    });
    assert_eq!(first.as_deref(), Some(&b"old"[..]));
    let own = ReadOptions {
        snapshot: Some(database.snapshot()),
        ..ReadOptions::default()
    };
    put(&database, &family, "k", "newest");
    let second = database.at_one_state(&own, read);
    assert_eq!(second.as_deref(), Some(&b"new"[..]));
}

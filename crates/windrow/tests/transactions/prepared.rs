//! Two-phase commit: what a prepared transaction survives, what it holds, and how it ends. The simulation has its crashes.

use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use windrow::operators::Append;
use windrow::{Batch, Db, ErrorKind, Isolation, Keyspace, Options, Result, Transaction};

use super::{Store, is_conflict, text};

/// A transaction of each kind.
const KINDS: [fn(&Db) -> Transaction; 3] = [
    |db| db.transaction(),
    |db| db.transaction_with(Isolation::Snapshot),
    |db| db.locking_transaction_with(Duration::ZERO),
];

fn kind_of<T: std::fmt::Debug>(outcome: Result<T>) -> ErrorKind {
    outcome.unwrap_err().kind()
}

/// Whether a locking transaction is refused the lock of `key` alone.
fn is_locked(db: &Db, keyspace: &Keyspace, key: &str) -> bool {
    let probe = db.locking_transaction_with(Duration::ZERO);
    match probe.get_for_update(keyspace, key) {
        Ok(_) => false,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
            true
        }
    }
}

/// Checks that no writer of any kind can change `key`.
fn assert_held(db: &Db, keyspace: &Keyspace, key: &str) {
    let before = keyspace.get(key).unwrap();
    assert!(is_conflict(keyspace.insert(key, "x")), "{key}");
    assert!(is_conflict(keyspace.remove(key)), "{key}");
    let mut batch = Batch::new();
    batch.insert(keyspace, "free", "x").unwrap();
    batch.insert(keyspace, key, "x").unwrap();
    assert!(is_conflict(db.write(&batch)), "{key}");
    assert_eq!(keyspace.get("free").unwrap(), None, "no half of a batch");
    for kind in &KINDS[..2] {
        let transaction = kind(db);
        transaction.insert(keyspace, key, "x").unwrap();
        assert!(is_conflict(transaction.commit()), "{key}");
    }
    assert_eq!(keyspace.get(key).unwrap(), before);
}

fn assert_free(db: &Db, keyspace: &Keyspace, key: &str) {
    let before = keyspace.get(key).unwrap();
    assert!(!is_locked(db, keyspace, key), "{key}");
    keyspace.insert(key, "x").unwrap();
    match before {
        Some(value) => keyspace.insert(key, value).unwrap(),
        None => keyspace.remove(key).unwrap(),
    }
}

#[test]
fn a_prepared_transaction_commits_or_rolls_back() {
    for kind in KINDS {
        for commits in [true, false] {
            let store = Store::with(&[("a", "1"), ("b", "1")]);
            let transaction = kind(&store.db);
            transaction.insert(&store.keyspace, "a", "2").unwrap();
            transaction.remove(&store.keyspace, "b").unwrap();
            let prepared = transaction.prepare("order").unwrap();
            assert_eq!(prepared.name(), "order");
            assert_eq!(store.db.prepared_transactions(), ["order"]);
            assert_eq!([store.text("a"), store.text("b")], ["1", "1"]);
            if commits {
                prepared.commit().unwrap();
                assert_eq!([store.text("a"), store.text("b")], ["2", ""]);
            } else {
                prepared.roll_back().unwrap();
                assert_eq!([store.text("a"), store.text("b")], ["1", "1"]);
            }
            assert!(store.db.prepared_transactions().is_empty());
            for key in ["a", "b"] {
                assert_free(&store.db, &store.keyspace, key);
            }
            assert_eq!(store.db.memory().transactions, 0);
        }
    }
}

/// Prepares a transaction that reads `read` and the range of `p`, and writes `own`.
fn prepare(db: &Db, keyspace: &Keyspace, kind: fn(&Db) -> Transaction) -> Result<()> {
    let transaction = kind(db);
    transaction.get_for_share(keyspace, "read")?;
    assert_eq!(transaction.prefix(keyspace, "p")?.count(), 1);
    transaction.insert(keyspace, "own", "new")?;
    transaction.prepare("order").map(drop)
}

#[test]
fn what_is_held_stays_held_over_an_open_and_a_flush() {
    for (position, kind) in KINDS.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Db::open(folder.path(), Options::default()).unwrap();
        let mut db = open();
        let mut keyspace = db.keyspace("data").unwrap();
        for key in ["own", "read", "p1", "q"] {
            keyspace.insert(key, "old").unwrap();
        }
        prepare(&db, &keyspace, kind).unwrap();
        for step in 0..4 {
            assert_eq!(db.prepared_transactions(), ["order"]);
            assert_held(&db, &keyspace, "own");
            assert_held(&db, &keyspace, "read");
            assert!(is_locked(&db, &keyspace, "own") && is_locked(&db, &keyspace, "read"));
            let sharer = db.locking_transaction_with(Duration::ZERO);
            assert!(
                sharer.get_for_share(&keyspace, "read").is_ok(),
                "it was only read"
            );
            assert!(sharer.get_for_share(&keyspace, "own").is_err());
            // Only serializable transactions hold ranges.
            if position != 1 {
                assert_held(&db, &keyspace, "p1");
                assert_held(&db, &keyspace, "p2");
            }
            assert_free(&db, &keyspace, "q");
            drop(sharer);
            match step {
                0 => db.flush().unwrap(),
                1 => {
                    drop(keyspace);
                    db.close().unwrap();
                    let reader = Db::open_read_only(folder.path(), Options::default()).unwrap();
                    assert_eq!(reader.prepared_transactions(), ["order"]);
                    let prepared = reader.prepared_transaction("order").unwrap();
                    assert_eq!(kind_of(prepared.commit()), ErrorKind::ReadOnly);
                    drop(reader);
                    db = open();
                    keyspace = db.keyspace("data").unwrap();
                }
                2 => keyspace.compact_range::<&[u8]>(..).unwrap(),
                _ => {}
            }
        }
        let prepared = db.prepared_transaction("order").unwrap();
        prepared.commit().unwrap();
        assert_eq!(text(keyspace.get("own").unwrap()), "new");
        for key in ["own", "read", "p1", "p2"] {
            assert_free(&db, &keyspace, key);
        }
        drop(keyspace);
        db.close().unwrap();
        assert!(open().prepared_transactions().is_empty());
    }
}

#[test]
fn a_preparation_fails_as_a_commit_would() {
    for kind in KINDS {
        let store = Store::with(&[("a", "1")]);
        let transaction = kind(&store.db);
        let found = transaction.get_for_update(&store.keyspace, "a").unwrap();
        assert_eq!(text(found), "1");
        transaction.insert(&store.keyspace, "a", "2").unwrap();
        transaction.insert(&store.keyspace, "b", "2").unwrap();
        store.keyspace.insert("a", "3").unwrap();
        assert!(is_conflict(transaction.prepare("order").map(drop)));
        assert!(store.db.prepared_transactions().is_empty());
        for key in ["a", "b"] {
            assert_free(&store.db, &store.keyspace, key);
        }
        assert_eq!(store.db.memory().transactions, 0);
    }
}

#[test]
fn written_keys_are_checked_under_snapshot_isolation() {
    let store = Store::new();
    let transaction = store.db.transaction_with(Isolation::Snapshot);
    transaction.insert(&store.keyspace, "a", "1").unwrap();
    store.keyspace.insert("a", "2").unwrap();
    assert!(is_conflict(transaction.prepare("order").map(drop)));
}

#[test]
fn an_optimistic_preparation_waits_for_locks() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.lock_timeout = Duration::from_millis(20);
    let db = Db::open(folder.path(), options).unwrap();
    let keyspace = db.keyspace("data").unwrap();
    let transaction = db.transaction();
    transaction.insert(&keyspace, "b", "1").unwrap();
    let prepared = transaction.prepare("other").unwrap();
    // A change of one key tries again for a while.
    let changed = keyspace.insert_if_absent("b", "2");
    assert!(is_conflict(changed.map(drop)));
    prepared.roll_back().unwrap();
    let holder = db.locking_transaction();
    holder.get_for_update(&keyspace, "a").unwrap();
    let prepare = || {
        let transaction = db.transaction();
        transaction.insert(&keyspace, "a", "1").unwrap();
        transaction.prepare("order")
    };
    assert_eq!(kind_of(prepare()), ErrorKind::TimedOut);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::park_timeout(Duration::from_millis(5));
            holder.commit().unwrap();
        });
        let prepared = loop {
            if let Ok(prepared) = prepare() {
                break prepared;
            }
        };
        prepared.commit().unwrap();
    });
    assert_eq!(text(keyspace.get("a").unwrap()), "1");
}

#[test]
fn names_are_unique_and_bounded() {
    let store = Store::new();
    let prepare = |key: &str, name: &str| {
        let transaction = store.db.transaction();
        transaction.insert(&store.keyspace, key, "1").unwrap();
        transaction.prepare(name)
    };
    for name in [String::new(), "n".repeat(256)] {
        assert_eq!(kind_of(prepare("a", &name)), ErrorKind::InvalidArgument);
    }
    let longest = "n".repeat(255);
    let first = prepare("a", &longest).unwrap();
    assert_eq!(kind_of(prepare("b", &longest)), ErrorKind::AlreadyExists);
    assert_free(&store.db, &store.keyspace, "b");
    let again = store.db.prepared_transaction(&longest).unwrap();
    first.commit().unwrap();
    assert_eq!(kind_of(again.commit()), ErrorKind::NotFound);
    assert!(store.db.prepared_transaction(&longest).is_none());
    prepare("b", &longest).unwrap().roll_back().unwrap();
}

// Both hold the same key, so the second one would wait for the first.
#[test]
fn a_name_in_use_is_refused_before_any_lock() {
    for kind in KINDS {
        let store = Store::new();
        let prepare = || {
            let transaction = kind(&store.db);
            transaction.insert(&store.keyspace, "a", "1").unwrap();
            transaction.prepare("order").map(drop)
        };
        let optimistic = || {
            let transaction = store.db.transaction();
            transaction.insert(&store.keyspace, "a", "1").unwrap();
            transaction.prepare("order").map(drop)
        };
        prepare().unwrap();
        // The lock time-out of the store is ten minutes.
        assert_eq!(kind_of(optimistic()), ErrorKind::AlreadyExists);
        let prepared = store.db.prepared_transaction("order").unwrap();
        prepared.roll_back().unwrap();
        prepare().unwrap();
    }
}

#[test]
fn more_written_keys_than_can_be_covered_are_refused() {
    let store = Store::new();
    let transaction = store.db.transaction_with(Isolation::Snapshot);
    let mut key = vec![7; 60_000];
    for number in 0..1200_u32 {
        key.splice(..4, number.to_be_bytes());
        transaction.remove(&store.keyspace, &key).unwrap();
    }
    let refused = transaction.prepare("order").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    assert!(
        refused.to_string().contains("written more than 64 MiB"),
        "{refused}"
    );
    assert!(store.db.prepared_transactions().is_empty());
    assert_eq!(store.db.memory().transactions, 0);
    assert_free(&store.db, &store.keyspace, "a");
    let transaction = store.db.transaction();
    transaction.insert(&store.keyspace, "a", "1").unwrap();
    transaction.prepare("order").unwrap().commit().unwrap();
}

#[test]
fn operands_and_deleted_ranges_are_prepared() {
    for kind in KINDS {
        for commits in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let open = || {
                let append = Arc::new(Append::new(*b"|"));
                let options = Options::default().with_merge_operator("data", append);
                Db::open(folder.path(), options).unwrap()
            };
            let db = open();
            let keyspace = db.keyspace("data").unwrap();
            for key in ["count", "p1", "p2"] {
                keyspace.insert(key, "old").unwrap();
            }
            let transaction = kind(&db);
            transaction.merge(&keyspace, "count", "1").unwrap();
            transaction.merge(&keyspace, "p1", "lost").unwrap();
            transaction.delete_range(&keyspace, "p".."q").unwrap();
            transaction.merge(&keyspace, "p2", "1").unwrap();
            transaction.remove(&keyspace, "gone").unwrap();
            transaction.merge(&keyspace, "gone", "back").unwrap();
            transaction.merge(&keyspace, "count", "2").unwrap();
            // Nobody has read the counter.
            keyspace.merge("count", "other").unwrap();
            drop(transaction.prepare("order").unwrap());
            for key in ["count", "p1", "p2", "p3", "gone"] {
                assert_held(&db, &keyspace, key);
            }
            assert!(is_conflict(keyspace.merge("count", "3")));
            drop(keyspace);
            db.close().unwrap();
            let db = open();
            let keyspace = db.keyspace("data").unwrap();
            assert!(is_conflict(keyspace.merge("count", "3")));
            let prepared = db.prepared_transaction("order").unwrap();
            let expected = if commits {
                prepared.commit().unwrap();
                ["old|other|1|2", "", "1", "back"]
            } else {
                prepared.roll_back().unwrap();
                ["old|other", "old", "old", ""]
            };
            let found = ["count", "p1", "p2", "gone"].map(|key| text(keyspace.get(key).unwrap()));
            assert_eq!(found, expected);
            assert_free(&db, &keyspace, "p3");
        }
    }
}

#[test]
fn several_are_prepared_at_once() {
    let store = Store::new();
    for number in 0..20 {
        let transaction = store.db.transaction();
        let key = format!("own{number}");
        transaction.get(&store.keyspace, "shared").unwrap();
        transaction.insert(&store.keyspace, key, "1").unwrap();
        // The handle is dropped; the transaction stays.
        transaction.prepare(&format!("{number:02}")).unwrap();
    }
    assert_eq!(store.db.prepared_transactions().len(), 20);
    assert_held(&store.db, &store.keyspace, "shared");
    for (position, name) in store.db.prepared_transactions().iter().enumerate() {
        let prepared = store.db.prepared_transaction(name).unwrap();
        match position % 2 {
            0 => prepared.commit().unwrap(),
            _ => prepared.roll_back().unwrap(),
        }
    }
    assert_eq!(store.keyspace.iter().unwrap().count(), 10);
    assert_free(&store.db, &store.keyspace, "shared");
}

#[test]
fn a_transaction_that_only_reads_can_be_prepared() {
    let store = Store::with(&[("a", "1")]);
    let transaction = store.db.transaction();
    transaction.get(&store.keyspace, "a").unwrap();
    let prepared = transaction.prepare("reader").unwrap();
    assert_held(&store.db, &store.keyspace, "a");
    prepared.commit().unwrap();
    assert_free(&store.db, &store.keyspace, "a");
}

#[test]
fn a_dropped_keyspace_loses_its_part() {
    let store = Store::new();
    let other = store.db.keyspace("other").unwrap();
    let transaction = store.db.transaction();
    transaction.insert(&store.keyspace, "a", "1").unwrap();
    transaction.insert(&other, "a", "1").unwrap();
    let prepared = transaction.prepare("order").unwrap();
    store.db.drop_keyspace("other").unwrap();
    prepared.commit().unwrap();
    assert_eq!(store.text("a"), "1");
    assert!(store.db.prepared_transactions().is_empty());
}

#[test]
fn large_writes_are_prepared_and_checkpoints_have_them() {
    let store = Store::new();
    let large = vec![7; 3 << 20];
    let transaction = store.db.transaction();
    transaction
        .insert(&store.keyspace, "large", &large)
        .unwrap();
    let prepared = transaction.prepare("order").unwrap();
    let copy = tempfile::tempdir().unwrap();
    let path = copy.path().join("copy");
    store.db.checkpoint(&path).unwrap();
    prepared.roll_back().unwrap();
    assert!(store.db.verify().unwrap().is_sound());
    assert_eq!(store.keyspace.get("large").unwrap(), None);
    let copied = Db::open(&path, Options::default()).unwrap();
    let keyspace = copied.keyspace("data").unwrap();
    assert_held(&copied, &keyspace, "large");
    let prepared = copied.prepared_transaction("order").unwrap();
    prepared.commit().unwrap();
    assert_eq!(keyspace.get("large").unwrap(), Some(large));
    assert!(copied.verify().unwrap().is_sound());
}

#[test]
fn the_keyspace_of_prepared_transactions_is_hidden() {
    const HIDDEN: &str = "windrow.prepared";
    let store = Store::new();
    let transaction = store.db.transaction();
    transaction.insert(&store.keyspace, "a", "1").unwrap();
    transaction.prepare("order").unwrap();
    let db = &store.db;
    assert_eq!(db.keyspace_names(), ["data"]);
    let stats = db.stats().keyspaces;
    let names: Vec<_> = stats.into_iter().map(|it| it.name).collect();
    assert_eq!(names, ["data"]);
    assert_eq!(kind_of(db.keyspace(HIDDEN)), ErrorKind::InvalidArgument);
    let existing = db.existing_keyspace(HIDDEN);
    assert_eq!(kind_of(existing), ErrorKind::InvalidArgument);
    assert_eq!(
        kind_of(db.drop_keyspace(HIDDEN)),
        ErrorKind::InvalidArgument
    );
    let swapped = db.swap_keyspaces("data", HIDDEN);
    assert_eq!(kind_of(swapped), ErrorKind::InvalidArgument);
    let renamed = store.keyspace.rename(HIDDEN);
    assert_eq!(kind_of(renamed), ErrorKind::InvalidArgument);
    assert_eq!(db.prepared_transactions(), ["order"]);
}

// Each would have read what the other one changes by its commit, long after it was checked.
#[test]
fn two_that_are_prepared_do_not_depend_on_each_other() {
    for writer_first in [true, false] {
        let store = Store::with(&[("p1", "1")]);
        let writer = || {
            let transaction = store.db.transaction();
            transaction.insert(&store.keyspace, "p2", "2").unwrap();
            transaction.prepare("writer")
        };
        let reader = || {
            let transaction = store.db.transaction();
            assert_eq!(transaction.prefix(&store.keyspace, "p").unwrap().count(), 1);
            transaction.insert(&store.keyspace, "count", "1").unwrap();
            transaction.prepare("reader")
        };
        let (first, second) = if writer_first {
            let first = writer().unwrap();
            (first, reader().map(drop))
        } else {
            let first = reader().unwrap();
            (first, writer().map(drop))
        };
        assert!(is_conflict(second));
        assert_eq!(store.db.prepared_transactions(), [first.name()]);
        first.roll_back().unwrap();
        assert_eq!(store.db.memory().transactions, 0);
        writer().unwrap().roll_back().unwrap();
        reader().unwrap().roll_back().unwrap();
    }
}

#[test]
fn deleted_ranges_are_prepared_and_held() {
    for kind in KINDS {
        let folder = tempfile::tempdir().unwrap();
        let open = || Db::open(folder.path(), Options::default()).unwrap();
        let mut db = open();
        let mut keyspace = db.keyspace("data").unwrap();
        for key in ["p1", "p2", "q"] {
            keyspace.insert(key, "old").unwrap();
        }
        let transaction = kind(&db);
        transaction.delete_range(&keyspace, "p".."q").unwrap();
        transaction.insert(&keyspace, "p2", "new").unwrap();
        drop(transaction.prepare("order").unwrap());
        for _ in 0..2 {
            assert_held(&db, &keyspace, "p1");
            assert_held(&db, &keyspace, "p5");
            assert!(is_conflict(keyspace.delete_range("p3".."z")));
            assert_free(&db, &keyspace, "q");
            keyspace.delete_range("a".."p").unwrap();
            // A transaction that has read the range cannot be prepared beside it.
            let reader = db.transaction();
            assert_eq!(reader.prefix(&keyspace, "p").unwrap().count(), 2);
            assert!(is_conflict(reader.prepare("reader").map(drop)));
            drop(keyspace);
            db.close().unwrap();
            db = open();
            keyspace = db.keyspace("data").unwrap();
        }
        db.prepared_transaction("order").unwrap().commit().unwrap();
        assert_eq!(text(keyspace.get("p1").unwrap()), "");
        assert_eq!(text(keyspace.get("p2").unwrap()), "new");
        assert_free(&db, &keyspace, "p5");
        keyspace.delete_range("p".."q").unwrap();
    }
}

// What a prepared transaction holds cannot be deleted.
#[test]
fn a_deletion_of_what_is_held_is_refused() {
    let store = Store::with(&[("m", "1")]);
    prepare_reader(&store);
    for (range, fits) in [
        ("a".."m", true),
        ("m".."n", false),
        ("n".."p", true),
        ("x".."z", true),
    ] {
        let deleted = store.keyspace.delete_range(range.clone());
        assert_eq!(!is_conflict(deleted), fits, "{range:?}");
    }
    assert!(is_conflict(store.keyspace.delete_range("o".."pa")));
}

fn prepare_reader(store: &Store) {
    let transaction = store.db.transaction();
    transaction.get(&store.keyspace, "m").unwrap();
    assert_eq!(transaction.prefix(&store.keyspace, "p").unwrap().count(), 0);
    drop(transaction.prepare("reader").unwrap());
}

// Bounds of cursors have no limit. Each end of a range that a cursor reaches is stored.
#[test]
fn ranges_with_bounds_longer_than_keys_are_prepared() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Db::open(folder.path(), Options::default()).unwrap();
    let db = open();
    let keyspace = db.keyspace("data").unwrap();
    let transaction = db.transaction();
    let long = vec![b'x'; 70_000];
    let count = |range: (Bound<&Vec<u8>>, Bound<&Vec<u8>>)| {
        let entries = transaction.range::<&Vec<u8>>(&keyspace, range).unwrap();
        entries.count()
    };
    assert_eq!(count((Bound::Unbounded, Bound::Excluded(&long))), 0);
    assert_eq!(count((Bound::Included(&long), Bound::Unbounded)), 0);
    transaction.insert(&keyspace, "a", "1").unwrap();
    transaction.prepare("order").unwrap();
    drop(keyspace);
    db.close().unwrap();
    let db = open();
    let keyspace = db.keyspace("data").unwrap();
    assert_held(&db, &keyspace, "b");
    db.prepared_transaction("order").unwrap().commit().unwrap();
    assert_eq!(text(keyspace.get("a").unwrap()), "1");
}

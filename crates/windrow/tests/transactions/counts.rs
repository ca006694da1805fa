//! The statistics count how transactions end, and what waits for its end.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use windrow::{Batch, Db, ErrorKind, Isolation, Options, Result};

use super::{Store, is_conflict};

/// What the statistics say of transactions.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Counts {
    committed: u64,
    conflicts: u64,
    deadlocks: u64,
    lock_timeouts: u64,
    prepared: u64,
}

fn counts(db: &Db) -> Counts {
    let stats = db.stats();
    Counts {
        committed: stats.transactions_committed,
        conflicts: stats.conflicts,
        deadlocks: stats.deadlocks,
        lock_timeouts: stats.lock_timeouts,
        prepared: stats.prepared_transactions,
    }
}

#[test]
fn plain_writes_and_roll_backs_count_nowhere() {
    let store = Store::with(&[("a", "1")]);
    let mut batch = Batch::new();
    batch.insert(&store.keyspace, "b", "1").unwrap();
    store.db.write(&batch).unwrap();
    store.keyspace.update("a", |_| Some(b"2".to_vec())).unwrap();
    let dropped = store.db.transaction();
    dropped.insert(&store.keyspace, "a", "3").unwrap();
    drop(dropped);
    store.db.transaction().roll_back();
    assert_eq!(counts(&store.db), Counts::default());
}

#[test]
fn commits_and_conflicts_count() {
    let store = Store::with(&[("a", "1")]);
    let (db, keyspace) = (&store.db, &store.keyspace);
    let mut expected = Counts::default();
    for isolation in [Isolation::Snapshot, Isolation::Serializable] {
        let [winner, loser] = [(); 2].map(|()| db.transaction_with(isolation));
        for transaction in [&winner, &loser] {
            transaction.get_for_update(keyspace, "a").unwrap();
            transaction.insert(keyspace, "a", "2").unwrap();
        }
        winner.commit().unwrap();
        assert!(is_conflict(loser.commit()));
        expected.committed += 1;
        expected.conflicts += 1;
        assert_eq!(counts(db), expected, "{isolation:?}");
    }
    // Without a write.
    let reader = db.transaction();
    reader.get(keyspace, "a").unwrap();
    reader.commit().unwrap();
    expected.committed += 1;
    // A locking transaction that has read under locks is refused, too, and so is its read of a changed key.
    for commits in [true, false] {
        let reader = db.locking_transaction();
        reader.get_for_update(keyspace, "a").unwrap();
        keyspace.insert("a", "changed without a lock").unwrap();
        let refused = if commits {
            reader.commit()
        } else {
            reader.get_for_update(keyspace, "a").map(drop)
        };
        assert!(is_conflict(refused));
        expected.conflicts += 1;
    }
    assert_eq!(counts(db), expected);
    // Each try of a change of one key counts.
    let mut is_first = true;
    keyspace
        .update("a", |_| {
            if std::mem::replace(&mut is_first, false) {
                keyspace.insert("a", "in between").unwrap();
            }
            Some(b"updated".to_vec())
        })
        .unwrap();
    expected.conflicts += 1;
    assert_eq!(counts(db), expected);
}

#[test]
fn prepared_transactions_count_until_their_end() {
    let store = Store::with(&[("a", "1")]);
    let (db, keyspace) = (&store.db, &store.keyspace);
    let prepare = |name: &str, key: &str| -> Result<()> {
        let transaction = db.transaction();
        transaction.insert(keyspace, key, name)?;
        transaction.prepare(name).map(drop)
    };
    prepare("one", "a").unwrap();
    prepare("two", "b").unwrap();
    let mut expected = Counts {
        prepared: 2,
        ..Counts::default()
    };
    assert_eq!(counts(db), expected);
    // A commit that it forbids.
    let other = db.transaction();
    other.insert(keyspace, "a", "2").unwrap();
    assert!(is_conflict(other.commit()));
    expected.conflicts += 1;
    assert_eq!(counts(db), expected);
    // A preparation that another write forbids.
    let refused = db.transaction();
    refused.get(keyspace, "c").unwrap();
    keyspace.insert("c", "2").unwrap();
    refused.insert(keyspace, "d", "2").unwrap();
    let refused = refused.prepare("three").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    expected.conflicts += 1;
    assert_eq!(counts(db), expected);

    db.prepared_transaction("one").unwrap().commit().unwrap();
    expected.committed += 1;
    expected.prepared -= 1;
    assert_eq!(counts(db), expected);
    db.prepared_transaction("two").unwrap().roll_back().unwrap();
    expected.prepared -= 1;
    assert_eq!(counts(db), expected);
}

#[test]
fn refused_locks_count() {
    let store = &Store::new();
    let holder = store.db.locking_transaction();
    holder.insert(&store.keyspace, "0", "held").unwrap();
    let probe = store.db.locking_transaction_with(Duration::ZERO);
    let late = probe.insert(&store.keyspace, "0", "late").unwrap_err();
    assert_eq!(late.kind(), ErrorKind::TimedOut);
    drop((holder, probe));
    let mut expected = Counts {
        lock_timeouts: 1,
        ..Counts::default()
    };
    assert_eq!(counts(&store.db), expected);

    let barrier = &Barrier::new(2);
    thread::scope(|scope| {
        for (own, next) in [("0", "1"), ("1", "0")] {
            scope.spawn(move || {
                let transaction = store.db.locking_transaction();
                transaction.insert(&store.keyspace, own, "own").unwrap();
                barrier.wait();
                let taken = transaction.insert(&store.keyspace, next, "next");
                let _refused = taken.and_then(|()| transaction.commit());
            });
        }
    });
    expected.deadlocks += 1;
    expected.committed += 1;
    assert_eq!(counts(&store.db), expected);
}

#[test]
fn range_deletes_and_operands_count_where_they_are() {
    let store = Store::new();
    let (db, keyspace) = (&store.db, &store.keyspace);
    for number in 0..100 {
        keyspace.insert(format!("{number:03}"), "value").unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    // What lies below keeps the range tombstones and the operands in their tables, as a snapshot does.
    let snapshot = db.snapshot();
    keyspace.delete_range("010".."020").unwrap();
    let mut batch = Batch::new();
    batch.delete_range(keyspace, "030".."040").unwrap();
    batch.merge(keyspace, "000", "operand").unwrap();
    batch.remove(keyspace, "001").unwrap();
    db.write(&batch).unwrap();
    let transaction = db.transaction();
    transaction.delete_range(keyspace, "050".."060").unwrap();
    transaction.merge(keyspace, "002", "operand").unwrap();
    transaction.commit().unwrap();
    let stats = db.stats();
    assert_eq!((stats.range_deletes, stats.operands), (3, 2));
    let in_levels = || {
        let levels = db.stats().keyspaces.swap_remove(0).levels;
        let sum = |of: fn(&windrow::LevelStats) -> u64| levels.iter().map(of).sum::<u64>();
        (
            sum(|level| level.range_tombstones),
            sum(|level| level.tombstones),
            sum(|level| level.operands),
        )
    };
    assert_eq!(in_levels(), (0, 0, 0));
    db.flush().unwrap();
    assert_eq!(in_levels(), (3, 4, 2));
    assert!(db.verify().unwrap().is_sound());
    drop(snapshot);
    keyspace.compact_range::<&[u8]>(..).unwrap();
    assert_eq!(in_levels(), (0, 0, 0));
    assert!(db.verify().unwrap().is_sound());
}

#[test]
fn what_was_counted_survives_a_close() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path(), Options::default()).unwrap();
    let keyspace = db.keyspace("data").unwrap();
    let transaction = db.transaction();
    transaction.insert(&keyspace, "a", "1").unwrap();
    transaction.commit().unwrap();
    keyspace.delete_range("a".."b").unwrap();
    let late = db.transaction();
    late.get(&keyspace, "a").unwrap();
    late.insert(&keyspace, "a", "2").unwrap();
    keyspace.insert("a", "3").unwrap();
    assert!(is_conflict(late.commit()));
    drop(keyspace);
    db.close().unwrap();
    let db = Db::open(folder.path(), Options::default()).unwrap();
    assert_eq!(counts(&db), Counts::default());
    let lifetime = db.stats().lifetime;
    assert_eq!(lifetime.transactions_committed, 1);
    assert_eq!(lifetime.conflicts, 1);
    assert_eq!(lifetime.range_deletes, 1);
}

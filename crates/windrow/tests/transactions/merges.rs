//! Operands in transactions: what they conflict with, what they lock, and what becomes of an operator that fails.

use std::sync::Arc;
use std::time::Duration;

use windrow::operators::AddU64;
use windrow::{Db, ErrorKind, Isolation, MergeError, MergeOperator, Operands, Options};

use super::{Store, is_conflict, text};

const ISOLATIONS: [Isolation; 2] = [Isolation::Snapshot, Isolation::Serializable];

#[test]
fn transactions_that_only_count_do_not_conflict() {
    for isolation in ISOLATIONS {
        for is_flushed in [false, true] {
            let store = Store::with(&[("a", "1")]);
            let one = store.db.transaction_with(isolation);
            let other = store.db.transaction_with(isolation);
            one.merge(&store.keyspace, "a", "one").unwrap();
            one.merge(&store.keyspace, "new", "one").unwrap();
            other.merge(&store.keyspace, "a", "other").unwrap();
            other.merge(&store.keyspace, "new", "other").unwrap();
            store.keyspace.merge("a", "plain").unwrap();
            one.commit().unwrap();
            if is_flushed {
                store.db.flush().unwrap();
            }
            other.commit().unwrap();
            assert_eq!(store.text("a"), "1|plain|one|other");
            assert_eq!(store.text("new"), "one|other");
        }
    }
}

#[test]
fn who_reads_or_replaces_the_key_conflicts() {
    for isolation in ISOLATIONS {
        // What the transaction does before or after its operand, and under which isolation that matters.
        let is_serializable = isolation == Isolation::Serializable;
        for (position, conflicts) in [
            (0, is_serializable),
            (1, true),
            (2, !is_serializable),
            (3, !is_serializable),
            (4, is_serializable),
        ] {
            let store = Store::with(&[("a", "1")]);
            let transaction = store.db.transaction_with(isolation);
            transaction.merge(&store.keyspace, "a", "own").unwrap();
            match position {
                0 => {
                    let read = transaction.get(&store.keyspace, "a").unwrap();
                    assert_eq!(text(read), "1|own");
                }
                1 => {
                    let read = transaction.get_for_update(&store.keyspace, "a");
                    assert_eq!(text(read.unwrap()), "1|own");
                }
                2 => transaction.insert(&store.keyspace, "a", "2").unwrap(),
                3 => transaction.remove(&store.keyspace, "a").unwrap(),
                _ => {
                    let mut cursor = transaction.cursor(&store.keyspace).unwrap();
                    assert!(cursor.seek("a").unwrap());
                    assert_eq!(cursor.value().unwrap(), b"1|own");
                }
            }
            transaction.merge(&store.keyspace, "a", "last").unwrap();
            store.keyspace.merge("a", "plain").unwrap();
            let case = format!("{isolation:?} {position}");
            assert_eq!(is_conflict(transaction.commit()), conflicts, "{case}");
        }
        // And the other way round: an operand is a change of what others have read.
        let store = Store::with(&[("a", "1")]);
        let reader = store.db.transaction_with(isolation);
        reader.get_for_update(&store.keyspace, "a").unwrap();
        reader.insert(&store.keyspace, "b", "1").unwrap();
        let counter = store.db.transaction_with(isolation);
        counter.merge(&store.keyspace, "a", "2").unwrap();
        counter.commit().unwrap();
        assert!(is_conflict(reader.commit()));
    }
}

#[test]
fn a_ticket_needs_a_read_for_update_under_snapshot_isolation() {
    for is_for_update in [false, true] {
        let store = Store::with(&[("n", "1")]);
        let transactions = [(); 2].map(|()| store.db.transaction_with(Isolation::Snapshot));
        for transaction in &transactions {
            if is_for_update {
                transaction.get_for_update(&store.keyspace, "n").unwrap();
            }
            transaction.merge(&store.keyspace, "n", "1").unwrap();
            let ticket = transaction.get(&store.keyspace, "n").unwrap();
            assert_eq!(text(ticket), "1|1");
        }
        let [one, other] = transactions;
        one.commit().unwrap();
        assert_eq!(is_conflict(other.commit()), is_for_update);
    }
}

#[test]
fn a_locking_transaction_locks_what_it_merges_and_covers_it_once_it_is_read() {
    for reads in [false, true] {
        let store = Store::with(&[("a", "1")]);
        let transaction = store.db.locking_transaction();
        transaction.merge(&store.keyspace, "a", "own").unwrap();
        let other = store.db.locking_transaction_with(Duration::ZERO);
        let refused = other.merge(&store.keyspace, "a", "other").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::TimedOut, "{refused}");
        // A write without a lock: the newest value has it.
        store.keyspace.merge("a", "plain").unwrap();
        if reads {
            let read = transaction.get(&store.keyspace, "a").unwrap();
            assert_eq!(text(read), "1|plain|own");
        }
        store.keyspace.merge("a", "later").unwrap();
        assert_eq!(is_conflict(transaction.commit()), reads);
        let expected = if reads {
            "1|plain|later"
        } else {
            "1|plain|later|own"
        };
        assert_eq!(store.text("a"), expected);
    }
}

#[test]
fn a_roll_back_of_a_replacement_leaves_operands_alone_in_the_way_of_nobody() {
    for (reads, removes) in [(false, false), (false, true), (true, false)] {
        let store = Store::with(&[("a", "1")]);
        let transaction = store.db.locking_transaction();
        transaction.merge(&store.keyspace, "a", "own").unwrap();
        let savepoint = transaction.savepoint();
        if removes {
            transaction.remove(&store.keyspace, "a").unwrap();
        } else {
            transaction.insert(&store.keyspace, "a", "2").unwrap();
        }
        transaction.roll_back_to(savepoint).unwrap();
        if reads {
            let read = transaction.get(&store.keyspace, "a").unwrap();
            assert_eq!(text(read), "1|own");
        }
        // The lock stays: it was taken before.
        let other = store.db.locking_transaction_with(Duration::ZERO);
        other.merge(&store.keyspace, "a", "other").unwrap_err();
        store.keyspace.merge("a", "plain").unwrap();
        assert_eq!(is_conflict(transaction.commit()), reads);
    }
    // A replacement that stays is covered, also by one after a savepoint.
    let store = Store::with(&[("a", "1")]);
    let transaction = store.db.locking_transaction();
    transaction.merge(&store.keyspace, "a", "own").unwrap();
    transaction.insert(&store.keyspace, "a", "2").unwrap();
    let savepoint = transaction.savepoint();
    transaction.insert(&store.keyspace, "a", "3").unwrap();
    transaction.roll_back_to(savepoint).unwrap();
    store.keyspace.merge("a", "plain").unwrap();
    assert!(is_conflict(transaction.commit()));
}

/// Fails for one key and panics for another one.
struct Failing;

impl MergeOperator for Failing {
    fn name(&self) -> &'static str {
        "failing"
    }

    fn full_merge(
        &self,
        key: &[u8],
        _: Option<&[u8]>,
        operands: Operands<'_>,
        result: &mut Vec<u8>,
    ) -> Result<(), MergeError> {
        assert_ne!(key, b"panic");
        if key == b"error" {
            return Err(MergeError::new("as planned"));
        }
        result.extend(operands.flatten());
        Ok(())
    }
}

#[test]
fn an_operator_that_fails_holds_up_its_key_alone() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::default().with_merge_operator("data", Arc::new(Failing));
    let db = Db::open(folder.path(), options).unwrap();
    let keyspace = db.keyspace("data").unwrap();
    let transaction = db.transaction();
    for key in ["error", "fine", "panic"] {
        transaction.merge(&keyspace, key, "x").unwrap();
    }
    let mut cursor = transaction.cursor(&keyspace).unwrap();
    let mut is_valid = cursor.seek_to_first().unwrap();
    for key in ["error", "fine", "panic"] {
        assert!(is_valid && cursor.key() == key.as_bytes());
        let fails = key != "fine";
        assert_eq!(cursor.value().is_err(), fails, "{key}");
        assert_eq!(transaction.get(&keyspace, key).is_err(), fails, "{key}");
        is_valid = cursor.next().unwrap();
    }
    assert!(!is_valid);
    drop(cursor);
    transaction.commit().unwrap();
    assert_eq!(keyspace.get("panic").unwrap_err().kind(), ErrorKind::Merge);
    assert_eq!(text(keyspace.get("fine").unwrap()), "x");
}

#[test]
fn an_operand_needs_an_operator() {
    let store = Store::new();
    let other = store.db.keyspace("other").unwrap();
    let transaction = store.db.transaction();
    let refused = transaction.merge(&other, "a", "1").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");
    transaction.merge(&store.keyspace, "a", "1").unwrap();
    transaction.commit().unwrap();
    assert_eq!(store.text("a"), "1");
}

#[test]
fn threads_count_without_a_conflict() {
    const THREADS: u64 = 4;
    const ADDITIONS: u64 = 200;
    let folder = tempfile::tempdir().unwrap();
    let options = Options::default().with_merge_operator("data", Arc::new(AddU64::Wrapping));
    let db = Db::open(folder.path(), options).unwrap();
    let keyspace = db.keyspace("data").unwrap();
    std::thread::scope(|scope| {
        for number in 0..THREADS {
            let (db, keyspace) = (&db, &keyspace);
            scope.spawn(move || {
                for _ in 0..ADDITIONS {
                    let transaction = match number % 2 {
                        0 => db.transaction_with(Isolation::Snapshot),
                        _ => db.transaction(),
                    };
                    let one = 1_u64.to_le_bytes();
                    transaction.merge(keyspace, "count", one).unwrap();
                    transaction.commit().unwrap();
                }
            });
        }
    });
    let count = keyspace.get("count").unwrap().unwrap();
    assert_eq!(count, (THREADS * ADDITIONS).to_le_bytes());
}

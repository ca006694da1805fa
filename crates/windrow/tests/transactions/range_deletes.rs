//! Range deletes in transactions, and those of others that transactions depend on.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;

use windrow::{ErrorKind, Isolation, Transaction, TransactionCursor};

use super::common::Random;
use super::{Store, appended, is_conflict};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(number: u64) -> Vec<u8> {
    format!("{number:03}").into_bytes()
}

/// Keys b, d, f, h.
fn store() -> Store {
    Store::with(&[("b", "1"), ("d", "2"), ("f", "3"), ("h", "4")])
}

/// What happens to a write after it.
fn settlements() -> [fn(&Store); 3] {
    [
        |_| {},
        |store| store.db.flush().unwrap(),
        |store| store.keyspace.compact_range::<&[u8]>(..).unwrap(),
    ]
}

/// A read of a transaction.
type Read = fn(&Store, &Transaction);

#[test]
fn reads_notice_range_deletes_around_them() {
    let reads: [(Read, &str); 4] = [
        (|store, it| drop(it.get(&store.keyspace, "d").unwrap()), "d"),
        // An absent key in the range.
        (|store, it| drop(it.get(&store.keyspace, "e").unwrap()), "e"),
        // The deleted range begins before the range that is read.
        (
            |store, it| assert_eq!(it.range(&store.keyspace, "cc".."e").unwrap().count(), 1),
            "cc",
        ),
        // The deleted range begins in the range that is read.
        (
            |store, it| assert_eq!(it.range(&store.keyspace, "a".."e").unwrap().count(), 2),
            "c",
        ),
    ];
    for (read, at) in reads {
        for settle in settlements() {
            for (range, is_noticed) in [("c".."ee", true), ("i".."z", false)] {
                let store = store();
                let transaction = store.db.transaction_with(Isolation::Serializable);
                read(&store, &transaction);
                transaction.insert(&store.keyspace, "x", "written").unwrap();
                store.keyspace.delete_range(range).unwrap();
                settle(&store);
                let outcome = transaction.commit();
                let key = outcome.as_ref().err().and_then(|it| it.conflict());
                assert_eq!(key, is_noticed.then_some(("data", at.as_bytes())));
                assert_eq!(is_conflict(outcome), is_noticed);
            }
        }
    }
}

#[test]
fn a_range_delete_under_a_snapshot_conflicts_with_writes_in_its_range() {
    let others: [(Read, bool); 5] = [
        (
            |store, _| store.keyspace.insert("d", "other").unwrap(),
            true,
        ),
        (
            |store, _| store.keyspace.insert("e", "other").unwrap(),
            true,
        ),
        (
            |store, _| store.keyspace.insert("g", "other").unwrap(),
            false,
        ),
        (
            |store, _| store.keyspace.delete_range("a".."cc").unwrap(),
            true,
        ),
        (
            |store, _| store.keyspace.delete_range("f"..).unwrap(),
            false,
        ),
    ];
    for (other, is_conflicting) in others {
        for settle in settlements() {
            let store = store();
            let transaction = store.db.transaction_with(Isolation::Snapshot);
            transaction.delete_range(&store.keyspace, "c".."f").unwrap();
            other(&store, &transaction);
            settle(&store);
            assert_eq!(is_conflict(transaction.commit()), is_conflicting);
        }
    }
}

#[test]
fn single_key_changes_notice_range_deletes() {
    let store = store();
    let mut calls = 0;
    let changed = store.keyspace.update("d", |old| {
        calls += 1;
        if calls == 1 {
            store.keyspace.delete_range("c".."e").unwrap();
        }
        Some(old.map_or(b"none".to_vec(), <[u8]>::to_vec))
    });
    assert_eq!(changed.unwrap().as_deref(), Some(&b"none"[..]));
    assert_eq!(calls, 2);
    store.keyspace.delete_range("a".."c").unwrap();
    assert_eq!(store.keyspace.fetch_remove("b").unwrap(), None);
    assert!(store.keyspace.insert_if_absent("b", "new").unwrap());
}

#[test]
fn a_cursor_stays_behind_its_last_entry_if_the_rest_is_deleted() {
    let store = store();
    let transaction = store.db.transaction();
    transaction.delete_range(&store.keyspace, "c"..).unwrap();
    let mut cursor = transaction.cursor(&store.keyspace).unwrap();
    assert!(cursor.seek("b").unwrap());
    for _ in 0..2 {
        assert!(!cursor.next().unwrap());
        assert!(!cursor.is_valid());
    }
    assert!(!cursor.prev().unwrap());
    assert!(cursor.seek_to_last().unwrap());
    assert_eq!(cursor.key(), b"b");
    let mut entries = transaction.iter(&store.keyspace).unwrap();
    let found = [(); 3].map(|()| entries.next().is_some());
    assert_eq!(found, [true, false, false]);
}

fn compare(store: &Store, transaction: &Transaction, model: &Model, random: &mut Random) {
    let entries = || transaction.iter(&store.keyspace).unwrap();
    let found: Vec<_> = entries().map(Result::unwrap).collect();
    let expected: Vec<_> = model.clone().into_iter().collect();
    assert_eq!(found, expected);
    let mut found: Vec<_> = entries().rev().map(Result::unwrap).collect();
    found.reverse();
    assert_eq!(found, expected);
    for _ in 0..10 {
        let key = key(random.below(210));
        let found = transaction.get(&store.keyspace, &key).unwrap();
        assert_eq!(found.as_ref(), model.get(&key));
        let range = (Bound::Included(&key[..]), Bound::Unbounded);
        let mut own = transaction.range::<&[u8]>(&store.keyspace, range).unwrap();
        let first = own.next().map(|entry| entry.unwrap().0);
        assert_eq!(first.as_ref(), model.range(key..).next().map(|it| it.0));
    }
    let mut cursor = transaction.cursor(&store.keyspace).unwrap();
    let mut at: Option<usize> = None;
    for _ in 0..30 {
        let (found, place) = match (random.below(5), at) {
            (0 | 1, Some(at)) => (cursor.next().unwrap(), Some(at + 1)),
            (2 | 3, Some(at)) => (cursor.prev().unwrap(), at.checked_sub(1)),
            _ => {
                let key = key(random.below(210));
                let place = expected.partition_point(|(other, _)| *other < key);
                (cursor.seek(&key).unwrap(), Some(place))
            }
        };
        at = place.filter(|place| *place < expected.len());
        assert_eq!(found, at.is_some());
        if let Some(at) = at {
            let (key, value) = &expected[at];
            assert_eq!(
                (cursor.key(), cursor.value().unwrap()),
                (&key[..], &value[..])
            );
        }
    }
}

/// Moves `cursor` one step from `position`, where it was before a roll-back to `model`.
fn step_from(cursor: &mut TransactionCursor<'_>, position: &[u8], model: &Model, is_forward: bool) {
    let (found, expected) = if is_forward {
        let behind = (Bound::Excluded(position), Bound::Unbounded);
        (cursor.next(), model.range::<[u8], _>(behind).next())
    } else {
        let before = (Bound::Unbounded, Bound::Excluded(position));
        (cursor.prev(), model.range::<[u8], _>(before).next_back())
    };
    assert_eq!(found.unwrap(), expected.is_some());
    if let Some((key, value)) = expected {
        assert_eq!(
            (cursor.key(), cursor.value().unwrap()),
            (&key[..], &value[..])
        );
    }
}

#[test]
fn a_cursor_finds_what_a_roll_back_brings_back() {
    for is_forward in [true, false] {
        let entries = ["a", "b", "c", "d", "e", "x", "z"].map(|key| (key, "1"));
        let store = Store::with(&entries);
        let bytes = |(key, value): (&str, &str)| (key.into(), value.into());
        let model = entries.into_iter().map(bytes).collect();
        let transaction = store.db.transaction();
        let savepoint = transaction.savepoint();
        transaction.delete_range(&store.keyspace, "b".."y").unwrap();
        transaction.insert(&store.keyspace, "c", "own").unwrap();
        let mut cursor = transaction.cursor(&store.keyspace).unwrap();
        if is_forward {
            assert!(cursor.seek("b").unwrap());
        } else {
            assert!(cursor.seek_to_last().unwrap() && cursor.prev().unwrap());
        }
        assert_eq!(cursor.key(), b"c");
        transaction.roll_back_to(savepoint).unwrap();
        step_from(&mut cursor, b"c", &model, is_forward);
        let position = cursor.key().to_vec();
        step_from(&mut cursor, &position, &model, !is_forward);
    }
}

#[test]
fn a_transaction_sees_its_own_range_deletes() {
    for seed in 0..40 {
        let mut random = Random(seed);
        let store = Store::new();
        let mut model = Model::new();
        for number in 0..200 {
            let value = format!("old {number}").into_bytes();
            store.keyspace.insert(key(number), &value).unwrap();
            model.insert(key(number), value);
        }
        let transaction = store.db.transaction();
        let mut savepoints = Vec::new();
        for step in 0..60 {
            let at = random.below(200);
            match random.below(12) {
                0..3 => {
                    let end = at + random.below(40);
                    let is_open = random.below(10) == 0;
                    let upper = if is_open {
                        Bound::Unbounded
                    } else {
                        Bound::Excluded(key(end))
                    };
                    let range = (Bound::Included(key(at)), upper);
                    transaction.delete_range(&store.keyspace, range).unwrap();
                    model.retain(|it, _| *it < key(at) || !is_open && *it >= key(end));
                }
                3 => {
                    transaction.remove(&store.keyspace, key(at)).unwrap();
                    model.remove(&key(at));
                }
                4 => savepoints.push((transaction.savepoint(), model.clone())),
                5 if !savepoints.is_empty() => {
                    let last = random.below(savepoints.len() as u64);
                    savepoints.truncate(usize::try_from(last).unwrap() + 1);
                    let (savepoint, state) = savepoints.last().unwrap();
                    let mut cursor = transaction.cursor(&store.keyspace).unwrap();
                    let is_valid = cursor.seek(key(at)).unwrap();
                    let position = cursor.key().to_vec();
                    transaction.roll_back_to(*savepoint).unwrap();
                    model.clone_from(state);
                    if is_valid {
                        step_from(&mut cursor, &position, &model, random.below(2) == 0);
                    }
                }
                6 => compare(&store, &transaction, &model, &mut random),
                7..9 => {
                    let operand = format!("own {step}");
                    transaction
                        .merge(&store.keyspace, key(at), &operand)
                        .unwrap();
                    model.insert(key(at), appended(model.get(&key(at)), operand.as_bytes()));
                }
                _ => {
                    let value = format!("new {step}").into_bytes();
                    transaction
                        .insert(&store.keyspace, key(at), &value)
                        .unwrap();
                    model.insert(key(at), value);
                }
            }
        }
        compare(&store, &transaction, &model, &mut random);
        transaction.commit().unwrap();
        let found: Vec<_> = store.keyspace.iter().unwrap().map(Result::unwrap).collect();
        assert_eq!(found, model.into_iter().collect::<Vec<_>>());
    }
}

/// A locking transaction that has deleted `range`.
fn delete_under_locks(store: &Store, timeout: Duration) -> windrow::Result<Transaction> {
    let transaction = store.db.locking_transaction_with(timeout);
    transaction.delete_range(&store.keyspace, "c".."g")?;
    Ok(transaction)
}

#[test]
fn a_deletion_waits_for_locks_in_its_range() {
    for is_shared in [false, true] {
        let store = store();
        let owner = store.db.locking_transaction();
        if is_shared {
            owner.get_for_share(&store.keyspace, "f").unwrap();
        } else {
            // The key does not exist yet.
            owner.insert(&store.keyspace, "e", "owner").unwrap();
        }
        let refused = delete_under_locks(&store, Duration::ZERO).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::TimedOut, "{refused}");
        let store = &store;
        std::thread::scope(|scope| {
            let deletion = scope.spawn(|| {
                let patience = Duration::from_secs(600);
                delete_under_locks(store, patience).and_then(Transaction::commit)
            });
            owner.commit().unwrap();
            deletion.join().unwrap().unwrap();
        });
        assert_eq!(store.keyspace.iter().unwrap().count(), 2);
        // Locks outside of the range are in nobody's way.
        let owner = store.db.locking_transaction();
        owner.insert(&store.keyspace, "g", "1").unwrap();
        let deletion = delete_under_locks(store, Duration::ZERO).unwrap();
        deletion.commit().unwrap();
        owner.commit().unwrap();
    }
}

#[test]
fn a_read_for_update_in_an_own_deleted_range_takes_its_lock() {
    for has_operand in [false, true] {
        let store = store();
        let transaction = delete_under_locks(&store, Duration::ZERO).unwrap();
        let savepoint = transaction.savepoint();
        if has_operand {
            transaction.merge(&store.keyspace, "f", "own").unwrap();
        }
        let expected = has_operand.then(|| b"own".to_vec());
        let read = transaction.get_for_update(&store.keyspace, "f").unwrap();
        assert_eq!(read, expected);
        assert_eq!(
            transaction.get_for_share(&store.keyspace, "e").unwrap(),
            None
        );
        // A plain read takes none.
        assert_eq!(transaction.get(&store.keyspace, "d").unwrap(), None);
        let other = store.db.locking_transaction_with(Duration::ZERO);
        for (key, is_free) in [("d", true), ("e", false), ("f", false)] {
            let locked = other.insert(&store.keyspace, key, "other");
            assert_eq!(locked.is_ok(), is_free, "{key}");
        }
        let shared = other.get_for_share(&store.keyspace, "e").unwrap();
        assert_eq!(shared, None);
        drop(other);
        transaction.roll_back_to(savepoint).unwrap();
        let other = store.db.locking_transaction_with(Duration::ZERO);
        other.get_for_update(&store.keyspace, "e").unwrap();
        other.get_for_update(&store.keyspace, "f").unwrap();
        drop(other);
        transaction.commit().unwrap();
        assert_eq!(store.keyspace.iter().unwrap().count(), 2);
    }
}

#[test]
fn a_deletion_under_locks_notices_later_writes_to_its_range() {
    for settle in settlements() {
        for (key, is_noticed) in [("e", true), ("f", true), ("g", false)] {
            let store = store();
            let transaction = store.db.locking_transaction();
            // Before the deletion: it waited for nobody, and deletes this, too.
            store.keyspace.insert("e", "earlier").unwrap();
            let savepoint = transaction.savepoint();
            transaction.delete_range(&store.keyspace, "c".."g").unwrap();
            store.keyspace.insert(key, "later").unwrap();
            settle(&store);
            transaction.insert(&store.keyspace, "x", "1").unwrap();
            assert_eq!(is_conflict(transaction.commit()), is_noticed, "{key}");
            assert_eq!(store.text("e").is_empty(), !is_noticed, "{key}");
            // A roll-back forgets the range.
            let transaction = store.db.locking_transaction();
            let refused = transaction.roll_back_to(savepoint).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");
            let savepoint = transaction.savepoint();
            transaction.delete_range(&store.keyspace, "c".."g").unwrap();
            transaction.roll_back_to(savepoint).unwrap();
            store.keyspace.insert(key, "kept").unwrap();
            transaction.insert(&store.keyspace, "x", "1").unwrap();
            transaction.commit().unwrap();
            assert_eq!(store.text(key), "kept");
        }
    }
}

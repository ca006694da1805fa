//! A keyspace has a merge operator, or entries that expire.

use std::path::Path;
use std::sync::Arc;

use windrow::operators::AddU64;
use windrow::{Db, ErrorKind, Options};

use crate::{TurnedClock, milliseconds, open, tiny};

pub(crate) fn with_operator(clock: &Arc<TurnedClock>) -> Options {
    let options = Options::default().with_runtime(Arc::<TurnedClock>::clone(clock));
    options.with_merge_operator("map", Arc::new(AddU64::Wrapping))
}

/// A database whose keyspace has an operator and the key `key`, which expires at 1010: it was prepared before the operator
/// came.
fn open_with_both(folder: &Path, clock: &Arc<TurnedClock>) -> Db {
    let db = open(folder, clock);
    let map = db.keyspace("map").unwrap();
    let transaction = db.transaction();
    transaction
        .insert_with_ttl(&map, "key", "value", milliseconds(10))
        .unwrap();
    transaction.prepare("both").unwrap();
    drop((map, db));
    let db = Db::open(folder, with_operator(clock)).unwrap();
    db.prepared_transaction("both").unwrap().commit().unwrap();
    db
}

#[test]
fn a_keyspace_with_an_operator_refuses_entries_that_expire() {
    let folder = tempfile::tempdir().unwrap();
    let clock = TurnedClock::at(1000);
    let db = Db::open(folder.path(), with_operator(&clock)).unwrap();
    let map = db.keyspace("map").unwrap();
    map.merge("key", 1_u64.to_le_bytes()).unwrap();
    let refused = map.insert_with_ttl("key", "value", milliseconds(9));
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidArgument);
    let mut batch = windrow::Batch::new();
    let refused = batch.insert_with_ttl(&map, "key", "value", milliseconds(9));
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidArgument);
    let transaction = db.transaction();
    let refused = transaction.insert_with_ttl(&map, "key", "value", milliseconds(9));
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidArgument);
    drop(transaction);
    let mut options = tiny();
    options.default_ttl = Some(milliseconds(9));
    let refused = db.keyspace_with("map", options);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(map.get("key").unwrap().unwrap(), 1_u64.to_le_bytes());
}

#[test]
fn an_open_refuses_an_operator_where_entries_expire() {
    let folder = tempfile::tempdir().unwrap();
    let clock = TurnedClock::at(1000);
    for is_flushed in [false, true] {
        let db = open(folder.path(), &clock);
        let map = db.keyspace("map").unwrap();
        map.insert_with_ttl("key", "value", milliseconds(10))
            .unwrap();
        if is_flushed {
            db.flush().unwrap();
        }
        drop((map, db));
        let refused = Db::open(folder.path(), with_operator(&clock)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
        assert!(refused.to_string().contains("\"map\""), "{refused}");
    }
    // Nothing has changed, and once they are gone it opens.
    let db = open(folder.path(), &clock);
    let map = db.keyspace("map").unwrap();
    assert_eq!(map.get("key").unwrap().unwrap(), b"value");
    clock.turn_to(1010);
    map.compact_range::<&[u8]>(..).unwrap();
    drop((map, db));
    let db = Db::open(folder.path(), with_operator(&clock)).unwrap();
    let map = db.keyspace("map").unwrap();
    assert_eq!(map.get("key").unwrap(), None);
    map.merge("key", 1_u64.to_le_bytes()).unwrap();
}

#[test]
fn a_prepared_transaction_with_entries_that_expire_keeps_no_open_from_succeeding() {
    let folder = tempfile::tempdir().unwrap();
    let clock = TurnedClock::at(1000);
    let db = open_with_both(folder.path(), &clock);
    drop(db);
    let db = Db::open(folder.path(), with_operator(&clock)).unwrap();
    let map = db.keyspace("map").unwrap();
    assert_eq!(map.get("key").unwrap().unwrap(), b"value");
    map.merge("other", 1_u64.to_le_bytes()).unwrap();
    drop((map, db));
    let db = open(folder.path(), &clock);
    let map = db.keyspace("map").unwrap();
    assert_eq!(map.get("key").unwrap().unwrap(), b"value");
    clock.turn_to(1010);
    assert_eq!(map.get("key").unwrap(), None);
}

/// Whichever way it comes, no reader folds an operand with an entry that expires, and none hides it.
#[test]
fn an_operand_over_an_entry_that_expires_is_the_same_for_all_readers() {
    let folder = tempfile::tempdir().unwrap();
    let clock = TurnedClock::at(1000);
    let db = open_with_both(folder.path(), &clock);
    let map = db.keyspace("map").unwrap();
    map.merge("key", 7_u64.to_le_bytes()).unwrap();
    for now in [1000, 1010] {
        clock.turn_to(now);
        let outcomes = [
            map.get("key").map(drop),
            map.iter().unwrap().try_for_each(|entry| entry.map(drop)),
            map.iter()
                .unwrap()
                .rev()
                .try_for_each(|entry| entry.map(drop)),
        ];
        let kinds = outcomes.map(|outcome| outcome.map_err(|error| error.kind()));
        assert_eq!(kinds, [Err(ErrorKind::Merge); 3], "{now}");
    }
    map.compact_range::<&[u8]>(..).unwrap();
    let value = 7_u64.to_le_bytes();
    assert_eq!(map.get("key").unwrap().unwrap(), value);
    for entry in [map.iter().unwrap().next(), map.iter().unwrap().next_back()] {
        assert_eq!(entry.unwrap().unwrap().1, value);
    }
}

#[test]
fn a_new_keyspace_cannot_have_both() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = with_operator(&TurnedClock::at(1000));
    options.keyspace.default_ttl = Some(milliseconds(9));
    let db = Db::open(folder.path(), options).unwrap();
    let refused = db.keyspace("map").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    db.keyspace("other").unwrap();
}

//! Batches, transactions, bulk loads and the default time to live.

use std::time::SystemTime;

use windrow::{Batch, BatchWrite, Db, Expiry};

use crate::{TurnedClock, at, milliseconds, open, tiny};

#[test]
fn a_batch_keeps_its_expiries_in_memory_and_as_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let clock = TurnedClock::at(1000);
    let db = open(folder.path(), &clock);
    let map = db.keyspace("map").unwrap();
    let mut batch = Batch::new();
    batch
        .insert_with_ttl(&map, "a", "1", milliseconds(10))
        .unwrap();
    batch.insert(&map, "b", "2").unwrap();
    batch
        .insert_with_ttl(&map, "c", "3", milliseconds(0))
        .unwrap();
    batch
        .insert_with_ttl(&map, "d", vec![4; 5000], milliseconds(20))
        .unwrap();
    let time = SystemTime::UNIX_EPOCH + milliseconds(1010);
    let writes: Vec<_> = batch.iter().map(|entry| entry.write).collect();
    assert_eq!(writes[0], BatchWrite::InsertUntil(b"1", time));
    assert_eq!(writes[1..3], [BatchWrite::Insert(b"2"), BatchWrite::Remove]);
    let bytes = batch.to_bytes().unwrap();
    clock.turn_to(1005);
    let mut options = tiny();
    options.default_ttl = Some(milliseconds(1));
    db.keyspace_with("map", options).unwrap();
    let read_back = db.batch_from_bytes(&bytes).unwrap();
    assert!(read_back.iter().eq(batch.iter()));
    db.write(&read_back).unwrap();
    assert_eq!(map.expires_at("a").unwrap(), Some(at(1010)));
    assert_eq!(map.expires_at("b").unwrap(), Some(Expiry::Never));
    assert_eq!(map.expires_at("c").unwrap(), None);
    assert_eq!(map.expires_at("d").unwrap(), Some(at(1020)));
    clock.turn_to(1010);
    assert_eq!(map.iter().unwrap().count(), 2);
}

#[test]
fn a_default_time_to_live_is_that_of_every_write_without_one() {
    let folder = tempfile::tempdir().unwrap();
    let clock = TurnedClock::at(1000);
    let expires = |db: &Db, now: u64| {
        let map = db.keyspace("map").unwrap();
        map.insert("insert", "").unwrap();
        map.insert_if_absent("if absent", "").unwrap();
        map.update("update", |_| Some(Vec::new())).unwrap();
        map.bulk_load([("bulk 1", "small".to_owned()), ("bulk 2", "x".repeat(5000))])
            .unwrap();
        let unsorted = [("unsorted 2", ""), ("unsorted 1", "")].map(Ok::<_, windrow::Error>);
        map.try_bulk_load_unsorted(unsorted, 1, |_| ()).unwrap();
        let mut batch = Batch::new();
        batch.insert(&map, "batch", "").unwrap();
        db.write(&batch).unwrap();
        let transaction = db.transaction();
        transaction.insert(&map, "transaction", "").unwrap();
        transaction.commit().unwrap();
        let mut cursor = map.cursor().unwrap();
        let mut count = 0;
        while if count == 0 {
            cursor.seek_to_first()
        } else {
            cursor.next()
        }
        .unwrap()
        {
            assert_eq!(
                cursor.expires_at(),
                at(now + 100),
                "{}",
                cursor.key().escape_ascii()
            );
            count += 1;
        }
        assert_eq!(count, 9);
        map.insert_with_ttl("own", "", milliseconds(5)).unwrap();
        assert_eq!(map.expires_at("own").unwrap(), Some(at(now + 5)));
        assert_eq!(map.get("bulk 2").unwrap().unwrap().len(), 5000);
    };
    let db = open(folder.path(), &clock);
    let mut options = tiny();
    options.default_ttl = Some(milliseconds(100));
    db.keyspace_with("map", options).unwrap();
    expires(&db, 1000);
    drop(db);
    // The manifest has it.
    clock.turn_to(2000);
    let db = open(folder.path(), &clock);
    assert!(db.keyspace("map").unwrap().is_empty().unwrap());
    expires(&db, 2000);
    db.keyspace_with("map", tiny()).unwrap();
    let map = db.keyspace("map").unwrap();
    map.insert("insert", "").unwrap();
    assert_eq!(map.expires_at("insert").unwrap(), Some(Expiry::Never));
    assert!(db.verify().unwrap().is_sound());
}

#[test]
fn a_transaction_reads_at_the_moment_of_its_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let clock = TurnedClock::at(1000);
    let db = open(folder.path(), &clock);
    let map = db.keyspace("map").unwrap();
    map.insert_with_ttl("old", "value", milliseconds(10))
        .unwrap();
    let transaction = db.transaction();
    transaction
        .insert_with_ttl(&map, "own", "value", milliseconds(5))
        .unwrap();
    clock.turn_to(1010);
    let reads = |key| transaction.get(&map, key).unwrap().is_some();
    assert_eq!((reads("old"), reads("own")), (true, true));
    let mut cursor = transaction.cursor(&map).unwrap();
    assert!(cursor.seek("own").unwrap());
    assert_eq!(cursor.expires_at(), at(1005));
    assert!(cursor.prev().unwrap());
    assert_eq!((cursor.key(), cursor.expires_at()), (&b"old"[..], at(1010)));
    drop(cursor);
    // Nothing was written in between: an entry that expires is no conflict.
    transaction.get_for_update(&map, "old").unwrap();
    transaction.commit().unwrap();
    assert!(map.is_empty().unwrap());
    let locking = db.locking_transaction();
    assert_eq!(locking.get_for_update(&map, "old").unwrap(), None);
}

#[test]
fn a_prepared_transaction_keeps_the_expiries_of_its_writes() {
    let folder = tempfile::tempdir().unwrap();
    let clock = TurnedClock::at(1000);
    let db = open(folder.path(), &clock);
    let map = db.keyspace("map").unwrap();
    let transaction = db.transaction();
    transaction
        .insert_with_ttl(&map, "a", "value", milliseconds(10))
        .unwrap();
    transaction
        .insert_with_ttl(&map, "b", "x".repeat(5000), milliseconds(30))
        .unwrap();
    transaction.prepare("name").unwrap();
    drop((map, db));
    clock.turn_to(1020);
    let db = open(folder.path(), &clock);
    db.prepared_transaction("name").unwrap().commit().unwrap();
    let map = db.keyspace("map").unwrap();
    assert_eq!(map.get("a").unwrap(), None);
    assert_eq!(map.expires_at("b").unwrap(), Some(at(1030)));
    assert_eq!(map.get("b").unwrap().unwrap().len(), 5000);
}

#[test]
fn a_large_value_of_a_transaction_goes_to_a_value_log_with_its_expiry() {
    let folder = tempfile::tempdir().unwrap();
    let clock = TurnedClock::at(1000);
    let db = open(folder.path(), &clock);
    let map = db.keyspace("map").unwrap();
    let transaction = db.transaction();
    transaction
        .insert_with_ttl(&map, "large", "x".repeat(5000), milliseconds(10))
        .unwrap();
    transaction.commit().unwrap();
    assert!(db.stats().value_log_bytes >= 5000);
    assert_eq!(map.expires_at("large").unwrap(), Some(at(1010)));
    assert_eq!(map.get("large").unwrap().unwrap().len(), 5000);
    clock.turn_to(1010);
    assert_eq!(map.get("large").unwrap(), None);
}

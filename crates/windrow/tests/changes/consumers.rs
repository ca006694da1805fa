//! Consumers hold what they have not acknowledged, and nothing more.

use std::sync::{Arc, mpsc};

use windrow::{Db, ErrorKind, Event, Options, Retention};

use crate::{batch, open, rest};

/// The logs in the folder. Without a consumer there are at most two: the active one, and the prepared one.
fn logs(db: &Db) -> usize {
    let files = std::fs::read_dir(db.path()).unwrap();
    let names = files.map(|file| file.unwrap().path());
    names
        .filter(|path| path.extension().is_some_and(|it| it == "wal"))
        .count()
}

/// Writes keys in several logs and flushes them. On return the logs that nothing needs any more are gone.
fn write(db: &Db, keys: std::ops::Range<u32>) {
    let keyspace = db.keyspace("k").unwrap();
    for key in keys {
        keyspace.insert(key.to_be_bytes(), [1; 100]).unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
}

#[test]
fn logs_stay_for_a_consumer_over_opens_until_it_acknowledges() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    write(&db, 0..10);
    let consumer = db.consumer("c").unwrap();
    let start = consumer.acknowledged().unwrap();
    write(&db, 10..2000);
    write(&db, 2000..4000);
    drop(consumer);
    db.close().unwrap();
    for _ in 0..2 {
        open(folder.path()).close().unwrap();
    }
    let db = open(folder.path());
    let consumer = db.consumer("c").unwrap();
    assert_eq!(consumer.acknowledged().unwrap(), start);
    let all = rest(&mut consumer.changes().unwrap());
    let keys: Vec<u32> = all
        .iter()
        .flat_map(batch)
        .map(|write| u32::from_be_bytes(write.key.try_into().unwrap()))
        .collect();
    assert_eq!(keys, (10..4000).collect::<Vec<_>>());
    let before = logs(&db);
    assert!(before > 3, "{before} logs");
    // A place in the middle frees what is before it.
    consumer.acknowledge(start + 2000).unwrap();
    let middle = logs(&db);
    assert!(middle < before && middle > 2, "{middle} logs");
    let rest_of_it = rest(&mut consumer.changes().unwrap());
    assert_eq!(rest_of_it, all[2000..]);
    consumer
        .acknowledge(all.last().unwrap().sequence())
        .unwrap();
    assert!(logs(&db) <= 2);
    assert!(rest(&mut consumer.changes().unwrap()).is_empty());
    assert_eq!(db.consumers()[0].held_bytes, 0);
}

#[test]
fn nothing_stays_without_a_consumer() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    db.consumer("c").unwrap();
    write(&db, 0..4000);
    assert!(logs(&db) > 3);
    let (all, held) = (db.stats().disk_bytes, db.consumers()[0].held_bytes);
    db.remove_consumer("c").unwrap();
    // The manifest grows a little.
    assert!(db.stats().disk_bytes + held < all + (4 << 10) && held > 64 << 10);
    assert!(logs(&db) <= 2);
    let error = db.changes(1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::FellBehind);
    assert!(error.to_string().contains("snapshot"), "{error}");
    write(&db, 4000..8000);
    assert!(logs(&db) <= 2);
}

#[test]
fn the_slowest_consumer_decides_what_stays() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    let (slow, fast) = (db.consumer("slow").unwrap(), db.consumer("fast").unwrap());
    write(&db, 0..4000);
    let newest = db.snapshot().sequence();
    let all = logs(&db);
    fast.acknowledge(newest).unwrap();
    assert_eq!(logs(&db), all);
    assert_eq!(
        rest(&mut slow.changes().unwrap()).len(),
        4001,
        "with the new keyspace"
    );
    assert!(rest(&mut fast.changes().unwrap()).is_empty());
    slow.acknowledge(newest).unwrap();
    assert!(logs(&db) <= 2);
    // Its own place still counts.
    write(&db, 4000..8000);
    assert_eq!(rest(&mut fast.changes().unwrap()).len(), 4000);
}

#[test]
fn a_consumer_that_holds_too_much_falls_behind_and_can_begin_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.keyspace.memtable_bytes = 64 << 10;
    options.change_retention = Retention {
        bytes: 300 << 10,
        ..Retention::default()
    };
    let (sender, behind) = mpsc::channel();
    let listener = move |event: &Event| {
        if let Event::ConsumerFellBehind { consumer, .. } = event {
            sender.send(consumer.clone()).unwrap();
        }
    };
    let db = Db::open(folder.path(), options.with_listener(Arc::new(listener))).unwrap();
    write(&db, 0..10);
    let slow = db.consumer("slow").unwrap();
    let fast = db.consumer("fast").unwrap();
    let mut rounds = 0;
    while !db.consumers().iter().any(|it| it.is_behind) {
        write(&db, rounds * 500..(rounds + 1) * 500);
        rounds += 1;
        fast.acknowledge(db.snapshot().sequence()).unwrap();
        assert!(db.consumers()[1].held_bytes <= 300 << 10);
    }
    assert!(rounds > 3, "{rounds}");
    // Comes after the logs are gone.
    assert_eq!(behind.recv().unwrap(), "slow");
    assert!(behind.try_recv().is_err());
    assert!(logs(&db) <= 2);
    for error in [
        slow.changes().unwrap_err(),
        slow.acknowledge(u64::from(rounds)).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::FellBehind);
        assert!(error.to_string().contains("snapshot"), "{error}");
    }
    assert!(rest(&mut fast.changes().unwrap()).is_empty());
    db.remove_consumer("slow").unwrap();
    let slow = db.consumer("slow").unwrap();
    assert_eq!(slow.acknowledged().unwrap(), db.snapshot().sequence());
    write(&db, 0..10);
    assert_eq!(rest(&mut slow.changes().unwrap()).len(), 10);
}

#[test]
fn wrong_places_and_names_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    write(&db, 0..10);
    let consumer = db.consumer("c").unwrap();
    let newest = db.snapshot().sequence();
    consumer.acknowledge(newest).unwrap();
    let error = consumer.acknowledge(newest + 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    // A thread that comes late takes nothing back.
    for known in [newest - 1, newest, 0] {
        consumer.acknowledge(known).unwrap();
        assert_eq!(consumer.acknowledged().unwrap(), newest);
    }
    for name in [String::new(), "n".repeat(256)] {
        assert_eq!(
            db.consumer(&name).unwrap_err().kind(),
            ErrorKind::InvalidArgument
        );
    }
    assert_eq!(
        db.remove_consumer("d").unwrap_err().kind(),
        ErrorKind::NotFound
    );
    db.remove_consumer("c").unwrap();
    for error in [
        consumer.acknowledge(newest).unwrap_err(),
        consumer.changes().unwrap_err(),
        consumer.acknowledged().unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
}

#[test]
fn a_reader_sees_the_changes_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    db.consumer("c").unwrap();
    write(&db, 0..2000);
    db.keyspace("k").unwrap().insert("last", "one").unwrap();
    db.close().unwrap();
    let reader = Db::open_read_only(folder.path(), Options::default()).unwrap();
    assert_eq!(
        rest(&mut reader.consumer("c").unwrap().changes().unwrap()).len(),
        2002
    );
    assert_eq!(rest(&mut reader.changes(1000).unwrap()).len(), 1003);
    assert_eq!(
        reader.consumer("d").unwrap_err().kind(),
        ErrorKind::ReadOnly
    );
    let error = reader.consumer("c").unwrap().acknowledge(1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ReadOnly);
    assert_eq!(
        reader.remove_consumer("c").unwrap_err().kind(),
        ErrorKind::ReadOnly
    );
}

#[test]
fn a_checkpoint_has_no_consumers_and_holds_nothing_for_them() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder.path().join("db"));
    db.consumer("c").unwrap();
    let keyspace = db.keyspace("k").unwrap();
    for round in 0..4_u8 {
        for key in 0..50_u8 {
            keyspace.insert([key], vec![round; 2000]).unwrap();
        }
        db.flush().unwrap();
        keyspace.compact_range::<&[u8]>(..).unwrap();
    }
    let copy = folder.path().join("copy");
    db.checkpoint(&copy).unwrap();
    let names = |path: &std::path::Path| std::fs::read_dir(path).unwrap().count();
    assert!(names(&copy) + 3 < names(db.path()));
    let copy = open(&copy);
    assert!(copy.consumers().is_empty());
    assert!(copy.verify().unwrap().is_sound());
    assert_eq!(copy.keyspace("k").unwrap().iter().unwrap().count(), 50);
}

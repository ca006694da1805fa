//! What consumers hold is bounded: silence, too much of it, and a full disk.

use std::path::Path;
use std::time::Duration;

use windrow::{Db, ErrorKind, Retention};
use windrow_sim::{SimDisk, SteppedRuntime};

use super::{held, options, rest};
use crate::common::{FOLDER, check_sound, kind, on, small};

#[test]
fn a_silent_consumer_falls_behind_once_it_holds_logs() {
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let mut options = on(small(), &disk, &runtime);
    options.change_retention = Retention {
        idle: Duration::from_secs(100),
        ..Retention::default()
    };
    let day = 24 * 3600;
    runtime.set_unix_time(Duration::from_secs(day));
    let db = Db::open(FOLDER, options.clone()).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    let (silent, busy) = (db.consumer("silent").unwrap(), db.consumer("busy").unwrap());
    let write = |byte: u8| {
        for key in 0..50_u8 {
            keyspace.insert([key], [byte; 200]).unwrap();
        }
        db.flush().unwrap();
    };
    let behind = || {
        db.consumers()
            .iter()
            .map(|it| it.is_behind)
            .collect::<Vec<_>>()
    };
    // Silence while there is nothing to acknowledge is nothing.
    runtime.set_unix_time(Duration::from_secs(day + 1000));
    write(1);
    assert_eq!(behind(), [false, false]);
    busy.acknowledge(db.snapshot().sequence()).unwrap();
    runtime.set_unix_time(Duration::from_secs(day + 1100));
    write(2);
    assert_eq!(behind(), [false, false]);
    runtime.set_unix_time(Duration::from_secs(day + 1101));
    write(3);
    assert_eq!(behind(), [false, true]);
    assert_eq!(kind(silent.changes()), ErrorKind::FellBehind);
    assert!(!rest(&mut busy.changes().unwrap()).is_empty());
    drop((silent, busy, keyspace));
    db.close().unwrap();
    let db = Db::open(FOLDER, options).unwrap();
    assert_eq!(
        kind(db.consumer("silent").unwrap().changes()),
        ErrorKind::FellBehind
    );
}

#[test]
fn a_feed_ends_when_its_consumer_no_longer_holds_what_comes_next() {
    let disk = SimDisk::new();
    let mut options = options(&disk);
    options.change_retention.bytes = 1;
    let db = Db::open(FOLDER, options).unwrap();
    let (a, b) = (db.keyspace("a").unwrap(), db.keyspace("b").unwrap());
    let consumer = db.consumer("c").unwrap();
    let mut changes = consumer.changes().unwrap();
    for key in 0..60_u8 {
        a.insert([key], [key; 200]).unwrap();
        assert_eq!(rest(&mut changes).len(), 1);
    }
    db.flush().unwrap();
    assert!(db.consumers()[0].is_behind);
    // The feed has read everything, but the new name has no place in the order.
    a.rename("other").unwrap();
    b.insert("2", "2").unwrap();
    for _ in 0..2 {
        assert_eq!(kind(changes.next(Duration::ZERO)), ErrorKind::FellBehind);
    }
    db.remove_consumer("c").unwrap();
    assert_eq!(kind(changes.next(Duration::ZERO)), ErrorKind::NotFound);
    // A place beyond what the feed has given out.
    let consumer = db.consumer("c").unwrap();
    let mut changes = consumer.changes().unwrap();
    b.insert("3", "3").unwrap();
    consumer.acknowledge(db.snapshot().sequence()).unwrap();
    b.insert("4", "4").unwrap();
    assert_eq!(kind(changes.next(Duration::ZERO)), ErrorKind::FellBehind);
    assert_eq!(rest(&mut consumer.changes().unwrap()).len(), 1);
}

#[test]
fn a_feed_that_falls_behind_between_two_changes_says_so() {
    let disk = SimDisk::new();
    let mut options = options(&disk);
    options.change_retention.bytes = 30 << 10;
    let db = Db::open(FOLDER, options).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    let consumer = db.consumer("c").unwrap();
    let write = |byte: u8| {
        for key in 0..6_u8 {
            keyspace.insert([key], vec![byte; 2000]).unwrap();
        }
    };
    write(0);
    let mut changes = consumer.changes().unwrap();
    // What the feed knows is that all of these are held.
    assert!(changes.next(Duration::ZERO).unwrap().is_some());
    while !db.consumers()[0].is_behind {
        for byte in 1..4_u8 {
            write(byte);
            db.flush().unwrap();
            keyspace.compact_range::<&[u8]>(..).unwrap();
        }
    }
    db.wait_idle().unwrap();
    for _ in 0..2 {
        assert_eq!(kind(changes.next(Duration::ZERO)), ErrorKind::FellBehind);
    }
}

#[test]
fn a_full_disk_refuses_no_acknowledgement_and_no_removal() {
    let disk = SimDisk::new();
    let (db, consumer, all) = held(&disk);
    let has_reserve = || disk.image().read(Path::new("/data/db/RESERVE")).is_ok();
    assert!(has_reserve());
    disk.set_quota(Some(disk.used_bytes()));
    let mut acknowledged = 0;
    while has_reserve() {
        let place = all[acknowledged.min(20)].sequence();
        consumer.acknowledge(place).unwrap();
        acknowledged += 1;
        assert!(acknowledged < 100_000);
    }
    assert!(db.stats().is_disk_full);
    let before = disk.image().files_with("wal").len();
    db.remove_consumer("c").unwrap();
    assert!(disk.image().files_with("wal").len() < before);
    check_sound(&db);
}

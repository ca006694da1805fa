//! What a clean close leaves in the log for the next open.

use std::sync::Arc;
use std::sync::mpsc::channel;

use windrow::{Db, Options};
use windrow_sim::disk::{Effect, Fault, OperationKind};
use windrow_sim::{CrashPolicy, SimDisk, SteppedRuntime};

use crate::common::{FOLDER, count, log_bytes};

/// A close keeps a log of a quarter of this.
const MEMTABLE_BYTES: usize = 256 << 10;

/// Entries of 1 KiB that make a log too long to keep.
const MANY: usize = 100;

fn options(disk: &SimDisk) -> Options {
    let mut options = windrow_sim::unobserved(Options::default());
    options.reserve_bytes = 0;
    options.keyspace.memtable_bytes = MEMTABLE_BYTES;
    options
        .with_vfs(Arc::new(disk.clone()))
        .with_runtime(Arc::new(SteppedRuntime::new(1)))
}

fn open(disk: &SimDisk) -> Db {
    Db::open(FOLDER, options(disk)).unwrap()
}

/// Writes `count` entries to two keyspaces in turn.
fn fill(db: &Db, count: usize) {
    let keyspaces = [db.keyspace("even").unwrap(), db.keyspace("odd").unwrap()];
    for number in 0..count {
        let value = vec![u8::try_from(number % 251).unwrap(); 1000];
        keyspaces[number % 2].insert(key(number), value).unwrap();
    }
}

fn key(number: usize) -> String {
    format!("{number:06}")
}

/// How many entries the database holds; they are the first ones that were written.
fn entries(db: &Db) -> usize {
    let counts = ["even", "odd"].map(|name| db.keyspace(name).unwrap().iter().unwrap().count());
    let count: usize = counts.iter().sum();
    for number in 0..count {
        let keyspace = db.keyspace(["even", "odd"][number % 2]).unwrap();
        assert!(keyspace.contains_key(key(number)).unwrap(), "{number}");
    }
    count
}

#[test]
fn a_long_log_is_flushed_at_a_close() {
    for drops in [false, true] {
        let disk = SimDisk::new();
        let db = open(&disk);
        fill(&db, MANY);
        assert!(log_bytes(&disk) > MANY as u64 * 1000);
        if drops {
            drop(db);
        } else {
            db.close().unwrap();
        }
        assert_eq!(count(&disk, "wal"), 1);
        assert!(log_bytes(&disk) < 1000);
        let db = open(&disk);
        assert_eq!(entries(&db), MANY);
        let stats = db.stats();
        assert!(stats.keyspaces.iter().all(|it| it.levels[0].entries > 0));
        assert!(db.verify().unwrap().is_sound());
    }
}

#[test]
fn the_log_of_an_earlier_process_is_flushed_at_a_close() {
    let disk = SimDisk::new();
    fill(&open(&disk), MANY);
    let disk = disk.end_process();
    open(&disk).close().unwrap();
    assert!(log_bytes(&disk) < 1000);
    assert_eq!(entries(&open(&disk)), MANY);
}

#[test]
fn a_long_log_without_entries_that_count_is_dropped_at_a_close() {
    let disk = SimDisk::new();
    let db = open(&disk);
    fill(&db, MANY);
    db.flush().unwrap();
    assert!(log_bytes(&disk) > MANY as u64 * 1000);
    let tables = count(&disk, "table");
    db.close().unwrap();
    assert!(log_bytes(&disk) < 1000);
    assert_eq!(count(&disk, "table"), tables);
    assert_eq!(entries(&open(&disk)), MANY);
}

#[test]
fn small_writes_between_closes_make_few_tables() {
    let disk = SimDisk::new();
    let rounds = 64;
    for round in 0..rounds {
        let db = open(&disk);
        let keyspace = db.keyspace("k").unwrap();
        keyspace.insert(key(round), [7; 100]).unwrap();
        drop(keyspace);
        db.close().unwrap();
    }
    assert!(count(&disk, "table") <= rounds / 16);
    let db = open(&disk);
    assert_eq!(db.keyspace("k").unwrap().iter().unwrap().count(), rounds);
}

#[test]
fn many_keyspaces_with_little_data_are_not_flushed_at_a_close() {
    let disk = SimDisk::new();
    let db = open(&disk);
    for number in 0..MANY {
        let keyspace = db.keyspace(&key(number)).unwrap();
        keyspace.insert("k", [7; 1000]).unwrap();
    }
    db.close().unwrap();
    assert!(count(&disk, "table") == 0);
}

#[test]
fn a_crash_during_a_close_loses_nothing_durable() {
    let disk = SimDisk::new();
    let db = open(&disk);
    fill(&db, MANY);
    db.persist().unwrap();
    let (sender, points) = channel();
    disk.on_change(move |event, image| sender.send((event.clone(), image.clone())).unwrap());
    db.close().unwrap();
    disk.stop_observing();
    let mut created_tables = 0;
    for (event, image) in points {
        let is_table = event.path.extension().is_some_and(|own| own == "table");
        created_tables += usize::from(is_table && event.kind == OperationKind::Create);
        let random = (0..4).map(CrashPolicy::Random);
        let all = [CrashPolicy::DropUnsynced, CrashPolicy::KeepAll];
        for policy in all.into_iter().chain(random) {
            let db = open(&SimDisk::from_image(image.crash(policy)));
            assert_eq!(entries(&db), MANY, "{policy:?} after {event:?}");
            assert!(db.verify().unwrap().is_sound());
        }
    }
    assert_eq!(created_tables, 2);
}

#[test]
fn a_flush_that_fails_at_a_close_keeps_the_log() {
    for effect in [Effect::Io, Effect::NoSpace] {
        // The new log, and each of the two tables.
        for at in 0..3 {
            let disk = SimDisk::new();
            let db = open(&disk);
            fill(&db, MANY);
            disk.set_faults(vec![Fault {
                effect,
                ..Fault::io(OperationKind::Create, at)
            }]);
            db.close().unwrap();
            assert_eq!(disk.fault_log().len(), 1);
            disk.set_faults(Vec::new());
            assert!(log_bytes(&disk) > MANY as u64 * 1000);
            let db = open(&disk);
            assert_eq!(entries(&db), MANY, "{effect:?} at {at}");
            assert!(db.verify().unwrap().is_sound());
        }
    }
}

#[test]
fn a_write_that_fails_at_a_close_leaves_every_entry_durable() {
    // Of the manifest, the header of the new log, the tables.
    for at in 0.. {
        let disk = SimDisk::new();
        let db = open(&disk);
        fill(&db, MANY);
        disk.set_faults(vec![Fault::io(OperationKind::Write, at)]);
        // The outcome depends on which write it is.
        drop(db.close());
        if disk.fault_log().is_empty() {
            assert!(at > 4, "{at}");
            break;
        }
        let crashed = disk.image().crash(CrashPolicy::DropUnsynced);
        let db = open(&SimDisk::from_image(crashed));
        assert_eq!(entries(&db), MANY, "after the failure of write {at}");
        assert!(db.verify().unwrap().is_sound());
    }
}

#[test]
fn a_poisoned_database_closes_without_a_flush() {
    let disk = SimDisk::new();
    let db = open(&disk);
    fill(&db, MANY);
    db.persist().unwrap();
    disk.set_faults(vec![Fault::io(OperationKind::Sync, 0)]);
    db.keyspace("even").unwrap().insert("x", "y").unwrap();
    assert!(db.persist().is_err());
    let before = disk.operations(OperationKind::Create);
    assert!(db.close().is_err());
    assert_eq!(disk.operations(OperationKind::Create), before);
    assert!(count(&disk, "table") == 0);
}

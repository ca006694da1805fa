//! The open: which files it leaves, and what it makes durable.

use std::path::Path;

use windrow::{Db, Durability, ErrorKind, Options};
use windrow_sim::disk::{AfterFailedSync, Effect, Event, Fault, OperationKind};
use windrow_sim::{CrashPolicy, SimDisk, SteppedRuntime};

use crate::common::{FOLDER, check_sound, count, kind, observe, on};

/// The most logs that an open may leave.
const LOGS_MAX: usize = 16;

fn options(disk: &SimDisk) -> Options {
    let mut options = Options::default();
    // Long values are in the log as well.
    options.keyspace.medium_from = u64::MAX;
    options.keyspace.large_from = u64::MAX;
    on(options, disk, &SteppedRuntime::new(1))
}

fn open(disk: &SimDisk) -> Db {
    Db::open(FOLDER, options(disk)).unwrap()
}

/// The value of `key`, if it exists.
fn get(db: &Db, key: &str) -> Option<String> {
    let value = db.keyspace("main").unwrap().get(key).unwrap();
    value.map(|value| String::from_utf8(value).unwrap())
}

#[test]
fn opens_leave_few_logs() {
    for (puts, kills) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut disk = SimDisk::new();
        let first = open(&disk);
        first.keyspace("main").unwrap();
        first.keyspace("other").unwrap().insert("a", "0").unwrap();
        first.close().unwrap();
        let mut syncs = Vec::new();
        for round in 0..100 {
            disk = disk.end_process();
            disk.set_faults([]);
            let db = open(&disk);
            syncs.push(disk.operations(OperationKind::Sync));
            let logs = count(&disk, "wal");
            assert!(logs <= LOGS_MAX, "{logs} logs at open {round}");
            if puts {
                let keyspace = db.keyspace("main").unwrap();
                keyspace.insert(format!("{round:03}"), "x").unwrap();
            }
            if kills {
                disk = disk.end_process();
            } else {
                db.close().unwrap();
            }
        }
        let most = syncs.iter().max().unwrap();
        assert!(*most <= 30, "an open syncs {most} times");
        assert!(count(&disk, "manifest") == 1);
        let db = open(&disk);
        assert_eq!(
            db.keyspace("main").unwrap().iter().unwrap().count(),
            if puts { 100 } else { 0 }
        );
        assert_eq!(db.keyspace("other").unwrap().iter().unwrap().count(), 1);
        check_sound(&db);
    }
}

#[test]
fn the_next_open_removes_logs_without_live_entries() {
    let disk = SimDisk::new();
    let db = open(&disk);
    let keyspace = db.keyspace("main").unwrap();
    for round in 0..5 {
        keyspace.insert("a", format!("{round}")).unwrap();
        db.flush().unwrap();
    }
    drop(keyspace);
    db.close().unwrap();
    for _ in 0..3 {
        let db = open(&disk);
        assert_eq!(count(&disk, "wal"), 1);
        assert_eq!(get(&db, "a").as_deref(), Some("4"));
        db.close().unwrap();
    }
    // Later entries have higher sequence numbers than those in tables.
    let db = open(&disk);
    db.keyspace("main").unwrap().insert("a", "5").unwrap();
    db.close().unwrap();
    assert_eq!(get(&open(&disk), "a").as_deref(), Some("5"));
}

/// A disk on which the sync of "b" has failed, seen by the next process.
fn after_failed_sync(after: AfterFailedSync, value: &str) -> SimDisk {
    let disk = SimDisk::new();
    let db = open(&disk);
    let keyspace = db.keyspace("main").unwrap();
    keyspace.insert_with("a", "1", Durability::Sync).unwrap();
    disk.set_faults([Fault::io(OperationKind::Sync, 0).then(after)]);
    let failed = keyspace.insert_with("b", value, Durability::Sync);
    assert_eq!(kind(failed), ErrorKind::Io);
    let disk = disk.end_process();
    disk.set_faults([]);
    disk
}

#[test]
fn everything_that_an_open_finds_after_a_failed_sync_is_durable() {
    for after in [
        AfterFailedSync::LostAtCrash,
        AfterFailedSync::Reverted,
        AfterFailedSync::Durable,
    ] {
        let disk = after_failed_sync(after, "2");
        let db = open(&disk);
        let found = get(&db, "b");
        assert_eq!(found.is_some(), after != AfterFailedSync::Reverted);
        let keyspace = db.keyspace("main").unwrap();
        keyspace.insert_with("c", "3", Durability::Sync).unwrap();
        let disk = disk.crash(CrashPolicy::DropUnsynced);
        let db = open(&disk);
        assert_eq!(get(&db, "a").as_deref(), Some("1"), "{after:?}");
        assert_eq!(get(&db, "b"), found, "{after:?}");
        assert_eq!(get(&db, "c").as_deref(), Some("3"), "{after:?}");
    }
}

#[test]
fn an_open_whose_sync_fails_proves_nothing() {
    let mut disk = after_failed_sync(AfterFailedSync::LostAtCrash, "2");
    for _ in 0..3 {
        disk.set_faults([Fault::io(OperationKind::Sync, 0)]);
        assert_eq!(kind(Db::open(FOLDER, options(&disk))), ErrorKind::Io);
        disk = disk.end_process();
        disk.set_faults([]);
    }
    assert_eq!(get(&open(&disk.crash(CrashPolicy::KeepAll)), "b"), None);
    let db = open(&disk);
    assert_eq!(get(&db, "b").as_deref(), Some("2"));
    let disk = disk.crash(CrashPolicy::DropUnsynced);
    assert_eq!(get(&open(&disk), "b").as_deref(), Some("2"));
}

/// Opens the database and lets the power fail after each I/O of the open, with many policies. `check` gets each
/// recovered database, and whether a sync came before.
fn crash_open(disk: &SimDisk, check: impl Fn(&Db, bool)) -> Vec<Event> {
    let points = observe(disk, |event, image| (event.clone(), image.clone()));
    drop(open(disk));
    disk.stop_observing();
    let mut is_synced = false;
    let mut events = Vec::new();
    for (event, image) in points {
        is_synced |= event.kind == OperationKind::Sync;
        events.push(event);
        let random = (0..20).map(CrashPolicy::Random);
        let all = [CrashPolicy::DropUnsynced, CrashPolicy::KeepAll];
        for policy in all.into_iter().chain(random) {
            let db = open(&SimDisk::from_image(image.crash(policy)));
            check(&db, is_synced);
        }
    }
    events
}

#[test]
fn a_crash_during_the_rewrite_of_a_log_loses_nothing_durable() {
    // Long enough for several writes, so that crashes tear it.
    let value = "long ".repeat(200_000);
    let disk = after_failed_sync(AfterFailedSync::LostAtCrash, &value);
    let events = crash_open(&disk, |db, is_synced| {
        assert_eq!(get(db, "a").as_deref(), Some("1"));
        let found = get(db, "b");
        assert!(found.as_ref() == Some(&value) || found.is_none() && !is_synced);
    });
    let is_write = |event: &&Event| event.is(OperationKind::Write, "wal");
    assert!(events.iter().filter(is_write).count() >= 2);
}

/// A disk on which each of `count` opens has left a log with one entry.
fn with_logs(count: usize) -> SimDisk {
    let mut disk = SimDisk::new();
    for round in 0..count {
        let db = open(&disk);
        let keyspace = db.keyspace("main").unwrap();
        keyspace.insert(format!("{round:03}"), "x").unwrap();
        db.close().unwrap();
        disk = disk.end_process();
    }
    disk
}

#[test]
fn a_crash_during_the_flush_of_many_logs_changes_nothing() {
    let disk = with_logs(LOGS_MAX);
    let events = crash_open(&disk, |db, _| {
        let keyspace = db.keyspace("main").unwrap();
        assert_eq!(keyspace.iter().unwrap().count(), LOGS_MAX);
    });
    let is_flush = |event: &Event| event.is(OperationKind::Create, "table");
    assert!(events.iter().any(is_flush));
    assert_eq!(count(&disk, "wal"), 1);
}

#[test]
fn many_logs_can_be_read_on_a_full_disk() {
    let mut disk = with_logs(LOGS_MAX);
    for round in 0..LOGS_MAX {
        // The manifest, CURRENT.new and the log come first. A table gets no space.
        disk.set_faults([Fault::io(OperationKind::Create, 3)
            .with(Effect::NoSpace)
            .from_then_on()]);
        let db = open(&disk);
        disk.set_faults([]);
        let keyspace = db.keyspace("main").unwrap();
        keyspace.insert(format!("more {round}"), "y").unwrap();
        db.close().unwrap();
        disk = disk.end_process();
    }
    assert_eq!(count(&disk, "wal"), 2 * LOGS_MAX);
    let db = open(&disk);
    assert_eq!(count(&disk, "wal"), 1);
    let keyspace = db.keyspace("main").unwrap();
    assert_eq!(keyspace.iter().unwrap().count(), 2 * LOGS_MAX);
}

#[test]
fn a_folder_that_cannot_be_listed_is_not_reported_missing() {
    let disk = SimDisk::new();
    open(&disk).close().unwrap();
    for create in [false, true] {
        let mut options = options(&disk);
        options.create_if_missing = create;
        disk.set_faults([Fault::io(OperationKind::List, 0)]);
        let error = Db::open(Path::new(FOLDER), options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    }
}

/// The cost of an open of a database with at least `tables` tables: opened files, reads, and bytes of the
/// manifest.
fn cost_of_open(tables: usize) -> (u64, u64, u64) {
    let disk = SimDisk::new();
    let small = || {
        let mut options = options(&disk);
        options.keyspace.file_bytes = 1 << 10;
        options.keyspace.base_bytes = 4 << 20;
        options.keyspace.block_bytes = 256;
        options
    };
    let db = Db::open(FOLDER, small()).unwrap();
    let keyspace = db.keyspace("main").unwrap();
    for round in 0.. {
        if count(&disk, "table") >= tables {
            break;
        }
        for number in 0..500 {
            keyspace
                .insert(format!("{round:04}-{number:03}"), [7; 100])
                .unwrap();
        }
        keyspace.compact_range::<&[u8]>(..).unwrap();
    }
    // An open must not wait for this work.
    for _ in 0..8 {
        keyspace.insert("0000-000", "new").unwrap();
        db.flush().unwrap();
    }
    drop(keyspace);
    db.close().unwrap();
    let manifest = disk.image().files_with("manifest").pop();
    let manifest_bytes = disk.image().read(&manifest.unwrap()).unwrap().len() as u64;
    let disk = disk.end_process();
    disk.set_faults([]);
    let db = Db::open(FOLDER, on(small(), &disk, &SteppedRuntime::new(1))).unwrap();
    let cost = |kind| disk.operations(kind);
    assert_eq!(cost(OperationKind::Map), 0);
    let opened = cost(OperationKind::Open);
    let read = cost(OperationKind::Read);
    // The first read opens a table.
    assert_eq!(get(&db, "0000-000").as_deref(), Some("new"));
    assert!(cost(OperationKind::Map) > 0);
    let stats = db.stats();
    assert_eq!(
        (stats.flushes, stats.compactions, stats.trivial_moves),
        (0, 0, 0)
    );
    (opened, read, manifest_bytes)
}

#[test]
fn an_open_opens_no_table() {
    let (few_opened, few_read, few_bytes) = cost_of_open(10);
    let (many_opened, many_read, many_bytes) = cost_of_open(1000);
    assert_eq!(few_opened, many_opened);
    // The open reads the manifest once, in pieces.
    let more = (many_bytes - few_bytes).div_ceil(8 << 10);
    assert!(
        many_read <= few_read + more,
        "{few_read} reads of {few_bytes} bytes, {many_read} of {many_bytes}"
    );
}

#[test]
fn a_crash_during_a_removal_leaves_the_whole_database_or_none_that_opens() {
    let disk = SimDisk::new();
    let db = open(&disk);
    let keyspace = db.keyspace("main").unwrap();
    keyspace.insert("a", "1").unwrap();
    db.flush().unwrap();
    keyspace.insert("b", "2").unwrap();
    drop(keyspace);
    db.close().unwrap();
    let points = observe(&disk, |event, image| (event.clone(), image.clone()));
    Db::destroy(FOLDER, &options(&disk)).unwrap();
    disk.stop_observing();
    // It is durable.
    let left = disk.crash(CrashPolicy::DropUnsynced).image().files();
    assert_eq!(left, [Path::new(FOLDER).join("LOCK")]);
    let (mut whole, mut refused, mut missing) = (0, 0, 0);
    for (event, image) in points.try_iter() {
        let policies = [CrashPolicy::DropUnsynced, CrashPolicy::KeepAll];
        let random = (0..8).map(|seed| CrashPolicy::Random(event.index * 8 + seed));
        for policy in policies.into_iter().chain(random) {
            let disk = SimDisk::from_image(image.crash(policy));
            let mut existing = options(&disk);
            existing.create_if_missing = false;
            match Db::open(FOLDER, existing) {
                Ok(db) => {
                    whole += 1;
                    let values = (get(&db, "a"), get(&db, "b"));
                    let expected = (Some("1".to_owned()), Some("2".to_owned()));
                    assert_eq!(values, expected, "after {event:?}");
                    check_sound(&db);
                    db.close().unwrap();
                }
                Err(error) if error.kind() == ErrorKind::NotFound => missing += 1,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
                    refused += 1;
                }
            }
            Db::destroy(FOLDER, &options(&disk)).unwrap();
            assert_eq!(get(&open(&disk), "a"), None, "after {event:?}");
        }
    }
    assert!(
        whole > 1 && refused > 5 && missing > 1,
        "{whole}, {refused}, {missing}"
    );
}

#[test]
fn a_failed_removal_leaves_the_whole_database_or_none_that_opens() {
    for kind in OperationKind::ALL {
        for at in 0..20 {
            let disk = SimDisk::new();
            let db = open(&disk);
            db.keyspace("main").unwrap().insert("a", "1").unwrap();
            db.close().unwrap();
            disk.set_faults([Fault::io(kind, at)]);
            let removed = Db::destroy(FOLDER, &options(&disk));
            let failed = disk.fault_log().len() == 1;
            disk.set_faults([]);
            assert_eq!(removed.is_err(), failed);
            if !failed {
                break;
            }
            let mut existing = options(&disk);
            existing.create_if_missing = false;
            if let Ok(db) = Db::open(FOLDER, existing) {
                assert_eq!(get(&db, "a").as_deref(), Some("1"));
                db.close().unwrap();
            }
            Db::destroy(FOLDER, &options(&disk)).unwrap();
            assert_eq!(get(&open(&disk), "a"), None);
        }
    }
}

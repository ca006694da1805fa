//! No space: which work goes on without space, and what listeners receive.

use std::time::Duration;

use windrow::{Db, ErrorKind, Event, Keyspace, Options, PausedFile};
use windrow_sim::disk::{Effect, Fault, OperationKind};
use windrow_sim::{SimDisk, SteppedRuntime};

use crate::common::{check_sound, count, entries, kind, listen, on, open, small};

fn options(disk: &SimDisk) -> Options {
    on(small(), disk, &SteppedRuntime::new(1))
}

/// The events about space.
fn of_space(event: &Event) -> Option<Event> {
    matches!(event, Event::NoSpace | Event::SpaceResumed).then(|| event.clone())
}

#[test]
fn no_space_for_the_next_log_fails_no_call() {
    let disk = SimDisk::new();
    let (db, keyspace) = open(options(&disk));
    for key in 0..30 {
        keyspace.insert(format!("key{key}"), [7; 60]).unwrap();
    }
    // The flush creates the first file, the next log is the second.
    disk.set_faults([Fault::io(OperationKind::Create, 1).with(Effect::NoSpace)]);
    db.flush().unwrap();
    db.wait_idle().unwrap();
    let faults = disk.fault_log();
    assert!(faults[0].contains(".wal"), "{faults:?}");
}

#[test]
fn tables_that_a_full_manifest_cannot_name_are_removed() {
    let disk = SimDisk::new();
    let (db, keyspace) = open(options(&disk));
    let tables = || count(&disk, "table");
    for round in 0..3 {
        keyspace.insert("key", [round; 100]).unwrap();
        db.flush().unwrap();
    }
    keyspace.insert("key", [3; 100]).unwrap();
    let spare = |number: usize| format!("spare {number}");
    for number in 0..64 {
        db.keyspace(&spare(number)).unwrap();
    }
    // These use up the preallocated space of the manifest.
    let reserve = Fault::io(OperationKind::Reserve, 0);
    disk.set_faults([reserve.with(Effect::NoSpace).from_then_on()]);
    let full = (0..1 << 14)
        .map(|number| db.keyspace(&format!("{number:0255}")))
        .find_map(Result::err);
    assert_eq!(full.unwrap().kind(), ErrorKind::NoSpace);
    // Shorter edits use up the last bytes.
    let full = (0..64)
        .map(|number| db.drop_keyspace(&spare(number)))
        .find_map(Result::err);
    assert_eq!(full.unwrap().kind(), ErrorKind::NoSpace);
    let before = tables();
    for _ in 0..3 {
        assert_eq!(kind(db.flush()), ErrorKind::NoSpace);
        assert_eq!(tables(), before);
    }
    disk.set_faults([]);
    keyspace.compact_range::<&[u8]>(..).unwrap();
    db.wait_idle().unwrap();
    assert_eq!(tables(), 1);
    assert_eq!(keyspace.get("key").unwrap().unwrap(), [3; 100]);
}

#[test]
fn listeners_receive_one_event_when_the_disk_is_full_and_one_when_it_is_not() {
    let disk = SimDisk::new();
    let (options, events) = listen(options(&disk), of_space);
    let take = || -> Vec<Event> { events.try_iter().collect() };
    let (db, keyspace) = open(options);
    for round in 0..3_u8 {
        keyspace.insert("key", [round; 100]).unwrap();
        assert_eq!(take(), []);
        disk.set_quota(Some(disk.used_bytes()));
        let mut fill = (0..100).map(|_| keyspace.insert("key", vec![round; 100_000]));
        let error = fill.find_map(Result::err).unwrap();
        assert_eq!(error.kind(), ErrorKind::NoSpace);
        keyspace.insert("key", vec![round; 1_000_000]).unwrap_err();
        assert_eq!(take(), [Event::NoSpace]);
        // A removal makes no space for additions.
        keyspace.remove("other").unwrap();
        assert!(db.stats().is_disk_full);
        assert_eq!(take(), []);
        disk.set_quota(None);
        keyspace.insert("key", vec![round; 100_000]).unwrap();
        db.flush().unwrap();
        assert_eq!(take(), [Event::SpaceResumed]);
    }
}

#[test]
fn listeners_receive_the_event_of_free_space_without_a_write() {
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let (options, events) = listen(on(small(), &disk, &runtime), of_space);
    let (_db, keyspace) = open(options);
    disk.set_quota(Some(disk.used_bytes()));
    keyspace.insert("key", vec![1; 16_000_000]).unwrap_err();
    runtime.advance(Duration::from_secs(2));
    runtime.run_until_idle(1000);
    assert_eq!(events.try_iter().collect::<Vec<_>>(), [Event::NoSpace]);
    // A caller may wait for this event before it writes again.
    disk.set_quota(None);
    runtime.advance(Duration::from_secs(2));
    runtime.run_until_idle(1000);
    assert_eq!(events.try_iter().collect::<Vec<_>>(), [Event::SpaceResumed]);
    keyspace.insert("key", vec![1; 16_000_000]).unwrap();
    assert_eq!(events.try_iter().count(), 0);
}

/// Four runs of level 0 that overlap, of 600 kB each, and no compaction of them yet.
fn with_overlapping_runs(
    disk: &SimDisk,
    runtime: &SteppedRuntime,
    reserve_bytes: u64,
) -> (Db, Keyspace) {
    let mut options = Options::default();
    options.reserve_bytes = reserve_bytes;
    options.keyspace.memtable_bytes = 4 << 20;
    options.keyspace.level0_runs = 4;
    let (db, keyspace) = open(on(options, disk, runtime));
    for run in 0..4_u8 {
        for number in 0..6000_u32 {
            let key = (number.wrapping_mul(0x9e37_79b9) ^ u32::from(run)).to_be_bytes();
            keyspace.insert(key, [run; 90]).unwrap();
        }
        db.flush().unwrap();
    }
    (db, keyspace)
}

#[test]
fn a_compaction_that_needs_more_than_the_free_space_fails_alone() {
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let (db, keyspace) = with_overlapping_runs(&disk, &runtime, 4 << 20);
    let before = entries(&keyspace);
    let free: u64 = 1200 << 10;
    disk.set_quota(Some(disk.used_bytes() + free));
    let paused = || -> Vec<PausedFile> { db.stats().keyspaces[0].paused_tables.clone() };

    runtime.run_until_idle(1000);
    let files = paused();
    assert!(!files.is_empty());
    for file in &files {
        assert_eq!(file.failures, 1);
        assert!(file.pause_micros > 1_000_000, "{file:?}");
        assert!(file.error.contains("leaves"), "{file:?}");
    }
    // It stopped before writers had met the full disk, and removed its output.
    assert!(disk.fault_log().is_empty(), "{:?}", disk.fault_log());
    assert!(!db.stats().is_disk_full && count(&disk, "table") == 4);
    keyspace.insert("small", "value").unwrap();
    db.flush().unwrap();

    // It is tried again after ever longer pauses.
    for _ in 0..60 {
        runtime.advance(Duration::from_secs(1));
        runtime.run_until_idle(1000);
    }
    let failures = paused().iter().map(|file| file.failures).max();
    assert!(matches!(failures, Some(4..=6)), "{failures:?}");

    disk.set_quota(None);
    runtime.advance(Duration::from_secs(120));
    runtime.run_until_idle(1000);
    assert_eq!(paused(), []);
    assert!(db.stats().compactions > 0);
    keyspace.remove("small").unwrap();
    assert!(entries(&keyspace) == before);
    check_sound(&db);
}

#[test]
fn without_a_reserve_a_compaction_may_use_all_space() {
    for reserve_bytes in [0, 4 << 20] {
        let disk = SimDisk::new();
        let runtime = SteppedRuntime::new(1);
        let (db, _) = with_overlapping_runs(&disk, &runtime, reserve_bytes);
        // Enough for the output, but not for that and what a compaction leaves to writers.
        let runs = db.stats().keyspaces[0].levels[0].bytes;
        disk.set_quota(Some(disk.used_bytes() + runs + (100 << 10)));
        runtime.run_until_idle(1000);
        let has_compacted = db.stats().compactions > 0;
        assert_eq!(has_compacted, reserve_bytes == 0);
        check_sound(&db);
    }
}

//! Failures at chosen moments, and what the open database may still acknowledge after them.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use windrow::{
    Batch, Db, Durability, ErrorKind, Keyspace, MediumInPlace, Options, Result, SegmentLimit,
    StallCause,
};
use windrow_sim::disk::{Effect, Fault, OperationKind, Repeat};
use windrow_sim::{CrashPolicy, SimDisk, SteppedRuntime};

const FOLDER: &str = "/data/db";

/// Options under which a few entries make several files. Jobs run only where callers run them.
fn options(disk: &SimDisk) -> Options {
    let mut options = Options::default();
    options.keyspace.memtable_bytes = 4 << 10;
    options.keyspace.file_bytes = 2 << 10;
    options.keyspace.base_bytes = 4 << 10;
    options.keyspace.level0_runs = 2;
    options.keyspace.block_bytes = 256;
    options
        .with_vfs(Arc::new(disk.clone()))
        .with_runtime(Arc::new(SteppedRuntime::new(1)))
}

fn open(disk: &SimDisk) -> (Db, Keyspace) {
    let db = Db::open(FOLDER, options(disk)).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    (db, keyspace)
}

/// Makes the next `kind` of I/O on a file whose name ends in `end` panic when it is done.
fn panic_at(disk: &SimDisk, kind: OperationKind, end: &'static str) {
    let mut is_armed = true;
    disk.on_change(move |event, _| {
        let is_meant = event.kind == kind && event.path.extension().is_some_and(|own| own == end);
        let is_due = is_meant && std::mem::take(&mut is_armed);
        assert!(!is_due, "planted");
    });
}

/// Writes, and work that writes wait for, are refused as after a panic; reads go on.
fn check_poisoned(db: &Db, keyspace: &Keyspace) {
    let errors = [
        keyspace.insert("late", "1").unwrap_err(),
        db.flush().unwrap_err(),
        db.wait_idle().unwrap_err(),
        keyspace.compact_range::<&[u8]>(..).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}");
    }
    assert_eq!(keyspace.get("late").unwrap(), None);
}

#[test]
fn a_job_that_panics_poisons_whoever_runs_it() {
    for by_hand in [false, true] {
        let disk = SimDisk::new();
        let (db, keyspace) = open(&disk);
        for round in ["1", "2", "3"] {
            keyspace.insert("key", round).unwrap();
            db.flush().unwrap();
        }
        panic_at(&disk, OperationKind::Create, "table");
        let outcome = if by_hand {
            keyspace.compact_range::<&[u8]>(..)
        } else {
            db.wait_idle()
        };
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Poisoned);
        check_poisoned(&db, &keyspace);
        assert_eq!(keyspace.get("key").unwrap().unwrap(), b"3");
        assert_eq!(db.close().unwrap_err().kind(), ErrorKind::Poisoned);
        let (db, keyspace) = open(&disk);
        assert_eq!(keyspace.get("key").unwrap().unwrap(), b"3");
        assert!(db.verify().unwrap().is_sound());
    }
}

#[test]
fn a_commit_that_panics_behind_its_record_poisons() {
    let disk = SimDisk::new();
    let (db, keyspace) = open(&disk);
    keyspace.insert("early", "1").unwrap();
    let mut batch = Batch::new();
    batch.insert(&keyspace, "left", "1").unwrap();
    batch.insert(&keyspace, "right", "1").unwrap();
    panic_at(&disk, OperationKind::Sync, "wal");
    let outcome = catch_unwind(AssertUnwindSafe(|| db.write_with(&batch, Durability::Sync)));
    assert!(outcome.is_err(), "the panic reaches the caller");
    check_poisoned(&db, &keyspace);
    assert_eq!(keyspace.iter().unwrap().count(), 1);
    drop((db, keyspace));
    let (_db, keyspace) = open(&disk);
    let halves = ["left", "right"].map(|key| keyspace.contains_key(key).unwrap());
    assert_eq!(halves[0], halves[1]);
    assert!(keyspace.contains_key("early").unwrap());
}

/// After a folder sync that failed for one file, a later one for another file may succeed although
/// it makes nothing durable.
#[test]
fn a_failed_sync_of_the_folder_poisons_whatever_it_was_for() {
    type Work = fn(&Db, &Keyspace) -> Result<()>;
    let works: [(&str, Work); 2] = [
        ("a new log", |_, keyspace| {
            (0..20).try_for_each(|key| keyspace.insert(format!("key{key}"), [7; 600]))
        }),
        ("a table", |db, _| db.flush()),
    ];
    for (what, work) in works {
        for effect in [Effect::Io, Effect::NoSpace] {
            let disk = SimDisk::new();
            let (db, keyspace) = open(&disk);
            keyspace.insert("early", "1").unwrap();
            db.persist().unwrap();
            disk.set_faults(vec![Fault {
                effect,
                ..Fault::io(OperationKind::SyncDir, 0)
            }]);
            let error = work(&db, &keyspace).unwrap_err();
            assert_ne!(error.kind(), ErrorKind::NoSpace, "{what}: {error}");
            check_poisoned(&db, &keyspace);
            let (_db, keyspace) = open(&disk.crash(CrashPolicy::DropUnsynced));
            assert!(keyspace.contains_key("early").unwrap());
        }
    }
}

/// A manifest is rolled over when it is long; that the old one is good still does not make the
/// names of other files good.
#[test]
fn a_rollover_that_cannot_sync_the_folder_poisons() {
    let run = |fault: Option<Fault>| {
        let disk = SimDisk::new();
        let (db, keyspace) = open(&disk);
        disk.set_faults(fault.into_iter().collect());
        let (syncs, at) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let rollover = Arc::clone(&at);
        disk.on_change(move |event, _| {
            let is_manifest = event.path.extension().is_some_and(|end| end == "manifest");
            match event.kind {
                OperationKind::SyncDir => _ = syncs.fetch_add(1, Ordering::Relaxed),
                OperationKind::Create if is_manifest => {
                    rollover.store(syncs.load(Ordering::Relaxed), Ordering::Relaxed);
                }
                _ => {}
            }
        });
        // The manifest holds the first and the last key of each table.
        let key = vec![7; 60 << 10];
        let work = || keyspace.insert(&key, "1").and_then(|()| db.flush());
        let outcome = (0..50).try_for_each(|_| work());
        (db, keyspace, outcome, at.load(Ordering::Relaxed))
    };
    let (.., outcome, rollover) = run(None);
    outcome.unwrap();
    assert!(rollover > 0, "there was a rollover");
    let (db, keyspace, outcome, _) = run(Some(Fault::io(OperationKind::SyncDir, rollover)));
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Poisoned);
    check_poisoned(&db, &keyspace);
}

/// What an edit names may count, and stays, even if nobody hears of it.
#[test]
fn an_edit_that_panics_keeps_its_tables() {
    for by_hand in [false, true] {
        let disk = SimDisk::new();
        let (db, keyspace) = open(&disk);
        for round in ["1", "2", "3"] {
            keyspace.insert("key", round).unwrap();
            db.flush().unwrap();
        }
        keyspace.insert("key", "4").unwrap();
        if by_hand {
            db.flush().unwrap();
        }
        // The edit is durable when this happens.
        panic_at(&disk, OperationKind::Sync, "manifest");
        let outcome = if by_hand {
            keyspace.compact_range::<&[u8]>(..)
        } else {
            db.flush()
        };
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Poisoned);
        check_poisoned(&db, &keyspace);
        drop((db, keyspace));
        let (db, keyspace) = open(&disk);
        assert_eq!(keyspace.get("key").unwrap().unwrap(), b"4");
        assert!(db.verify().unwrap().is_sound());
    }
}

#[test]
fn no_room_to_work_ahead_on_the_log_is_nobodys_failure() {
    let disk = SimDisk::new();
    let (db, keyspace) = open(&disk);
    for key in 0..30 {
        keyspace.insert(format!("key{key}"), [7; 60]).unwrap();
    }
    // The first job is the flush, then the next log is due.
    disk.set_faults(vec![Fault {
        effect: Effect::NoSpace,
        ..Fault::io(OperationKind::Create, 1)
    }]);
    db.flush().unwrap();
    db.wait_idle().unwrap();
    let faults = disk.fault_log();
    assert!(faults[0].contains(".wal"), "{faults:?}");
}

#[test]
fn closing_twice_reports_the_failure_twice() {
    let disk = SimDisk::new();
    let (db, keyspace) = open(&disk);
    keyspace.insert("key", "1").unwrap();
    disk.set_faults(vec![Fault::io(OperationKind::Sync, 0)]);
    assert_eq!(db.clone().close().unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(db.close().unwrap_err().kind(), ErrorKind::Io);
}

#[test]
fn what_needs_a_file_that_the_next_owner_has_removed_says_closed() {
    let disk = SimDisk::new();
    let (db, keyspace) = open(&disk);
    for round in ["1", "2", "3"] {
        keyspace.insert("key", round).unwrap();
        db.flush().unwrap();
    }
    db.close().unwrap();
    let (db, keyspace) = open(&disk);
    let mut cursor = keyspace.cursor().unwrap();
    db.close().unwrap();
    let (db, keyspace) = open(&disk);
    keyspace.compact_range::<&[u8]>(..).unwrap();
    db.wait_idle().unwrap();
    let error = cursor.seek_to_first().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
}

#[test]
fn tables_that_no_edit_has_room_to_name_are_removed() {
    let disk = SimDisk::new();
    let (db, keyspace) = open(&disk);
    let tables = || {
        let image = disk.image();
        let is_table = |path: &&PathBuf| path.extension().is_some_and(|end| end == "table");
        image.files().iter().filter(is_table).count()
    };
    for round in 0..3 {
        keyspace.insert("key", [round; 100]).unwrap();
        db.flush().unwrap();
    }
    keyspace.insert("key", [3; 100]).unwrap();
    let spare = |number: usize| format!("spare {number}");
    for number in 0..64 {
        db.keyspace(&spare(number)).unwrap();
    }
    // Uses up what is reserved for the manifest.
    let no_space_left = Fault {
        effect: Effect::NoSpace,
        repeat: Repeat::FromThenOn,
        ..Fault::io(OperationKind::Reserve, 0)
    };
    disk.set_faults(vec![no_space_left]);
    let full = (0..1 << 14)
        .map(|number| db.keyspace(&format!("{number:0255}")))
        .find_map(Result::err);
    assert_eq!(full.unwrap().kind(), ErrorKind::NoSpace);
    // And then the last bytes, by shorter edits.
    let full = (0..64)
        .map(|number| db.drop_keyspace(&spare(number)))
        .find_map(Result::err);
    assert_eq!(full.unwrap().kind(), ErrorKind::NoSpace);
    let before = tables();
    for _ in 0..3 {
        assert_eq!(db.flush().unwrap_err().kind(), ErrorKind::NoSpace);
        assert_eq!(tables(), before);
    }
    disk.set_faults(Vec::new());
    keyspace.compact_range::<&[u8]>(..).unwrap();
    db.wait_idle().unwrap();
    assert_eq!(tables(), 1);
    assert_eq!(keyspace.get("key").unwrap().unwrap(), [3; 100]);
}

#[test]
fn a_keyspace_with_its_own_options_is_stopped_by_those_alone() {
    let disk = SimDisk::new();
    let mut own = options(&disk).keyspace;
    own.level0_runs = 64;
    own.base_bytes = 1 << 30;
    let db = Db::open(FOLDER, options(&disk)).unwrap();
    let keyspace = db.keyspace_with("k", own.clone()).unwrap();
    for round in 0..30 {
        keyspace.insert("key", [round; 100]).unwrap();
        db.flush().unwrap();
    }
    db.wait_idle().unwrap();
    db.close().unwrap();
    // As many runs would stop a writer under the database's options.
    let db = Db::open(FOLDER, options(&disk)).unwrap();
    let keyspace = db.keyspace_with("k", own).unwrap();
    db.wait_idle().unwrap();
    keyspace.insert("key", "new").unwrap();
    assert_eq!(db.stats().stall_count(), 0);
}

#[test]
fn a_listener_hears_of_a_full_disk_once_and_when_there_is_room() {
    use std::sync::mpsc::channel;
    use windrow::Event;

    let disk = SimDisk::new();
    let (sender, heard) = channel();
    let listener = move |event: &Event| {
        if matches!(event, Event::NoSpace | Event::SpaceResumed) {
            sender.send(event.clone()).unwrap();
        }
    };
    let take = || -> Vec<Event> { heard.try_iter().collect() };
    let options = options(&disk).with_listener(Arc::new(listener));
    let db = Db::open(FOLDER, options).unwrap();
    let keyspace = db.keyspace("main").unwrap();
    for round in 0..3_u8 {
        keyspace.insert("key", [round; 100]).unwrap();
        assert_eq!(take(), []);
        disk.set_quota(Some(disk.used_bytes()));
        let mut fill = (0..100).map(|_| keyspace.insert("key", vec![round; 100_000]));
        let error = fill.find_map(Result::err).unwrap();
        assert_eq!(error.kind(), ErrorKind::NoSpace);
        keyspace.insert("key", vec![round; 1_000_000]).unwrap_err();
        assert_eq!(take(), [Event::NoSpace]);
        // What can be removed does not make room for what is added.
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
fn a_listener_hears_of_room_although_nobody_writes() {
    use windrow::Event;

    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let (sender, heard) = std::sync::mpsc::channel();
    let listener = move |event: &Event| {
        if matches!(event, Event::NoSpace | Event::SpaceResumed) {
            sender.send(event.clone()).unwrap();
        }
    };
    let options = options(&disk)
        .with_runtime(Arc::new(runtime.clone()))
        .with_listener(Arc::new(listener));
    let db = Db::open(FOLDER, options).unwrap();
    let keyspace = db.keyspace("main").unwrap();
    disk.set_quota(Some(disk.used_bytes()));
    keyspace.insert("key", vec![1; 16_000_000]).unwrap_err();
    runtime.advance(Duration::from_secs(2));
    runtime.run_until_idle(1000);
    assert_eq!(heard.try_iter().collect::<Vec<_>>(), [Event::NoSpace]);
    // Whoever waits for room before it writes again hears of it.
    disk.set_quota(None);
    runtime.advance(Duration::from_secs(2));
    runtime.run_until_idle(1000);
    assert_eq!(heard.try_iter().collect::<Vec<_>>(), [Event::SpaceResumed]);
    keyspace.insert("key", vec![1; 16_000_000]).unwrap();
    assert_eq!(heard.try_iter().count(), 0);
}

#[test]
fn a_merge_that_cannot_be_done_keeps_no_flush_from_being_done() {
    let disk = SimDisk::new();
    let mut patient = options(&disk);
    patient.keyspace.level0_runs = 64;
    let db = Db::open(FOLDER, patient).unwrap();
    let damaged = db.keyspace("damaged").unwrap();
    for round in 0..4_u8 {
        damaged.insert("key", [round; 1000]).unwrap();
        db.flush().unwrap();
    }
    drop(damaged);
    db.close().unwrap();
    disk.edit(|image| {
        let tables = image.files().into_iter();
        for path in tables.filter(|path| path.extension().is_some_and(|end| end == "table")) {
            let mut bytes = image.read(&path).unwrap();
            bytes[100] ^= 1;
            image.write(&path, &bytes).unwrap();
        }
    });
    let runtime = SteppedRuntime::new(1);
    let opened = options(&disk).with_runtime(Arc::new(runtime.clone()));
    let eager = opened.keyspace.clone();
    let db = Db::open(FOLDER, opened).unwrap();
    let damaged = db.keyspace_with("damaged", eager).unwrap();
    let sound = db.keyspace("sound").unwrap();
    for number in 0..2000_u32 {
        let key = number.wrapping_mul(0x9E37_79B9).to_be_bytes();
        sound.insert(key, [7; 100]).unwrap();
        // Whoever has time looks for what is due.
        runtime.step();
    }
    db.flush().unwrap();
    assert_eq!(db.stats().stall_count(), 0);
    let error = db.wait_idle().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    // Nor another keyspace's merges.
    assert!(db.stats().compactions > 0);
    damaged.insert("key", "new").unwrap();
    db.flush().unwrap();
}

/// Options under which a few large values make several value logs, and half of them dead is too much.
fn with_logs(disk: &SimDisk, runtime: &SteppedRuntime) -> Options {
    let mut options = options(disk).with_runtime(Arc::new(runtime.clone()));
    options.keyspace.memtable_bytes = 256 << 10;
    options.keyspace.large_from = 200;
    options.keyspace.medium_from = 200;
    options.keyspace.max_space_amp = 1.06;
    options.reserve_bytes = 0;
    options
}

/// Writes each of `keys` `times` times, one after the other, and flushes: so of each log, but for the
/// last one, all but each so manieth value is dead.
fn write_logs(db: &Db, keyspace: &Keyspace, keys: std::ops::Range<u32>, times: u32) {
    for key in keys {
        for time in 0..times {
            let value = [key.to_be_bytes(), time.to_be_bytes()].concat().repeat(25);
            keyspace.insert(key.to_be_bytes(), value).unwrap();
        }
    }
    db.flush().unwrap();
}

fn garbage_bytes(db: &Db, name: &str) -> u64 {
    let keyspaces = db.stats().keyspaces;
    let keyspace = keyspaces.iter().find(|it| it.name == name).unwrap();
    keyspace.value_logs.garbage_bytes
}

/// Runs what is due in each of `seconds`.
fn let_pass(runtime: &SteppedRuntime, seconds: u64) {
    for _ in 0..seconds {
        runtime.run_until_idle(1000);
        runtime.advance(Duration::from_secs(1));
    }
}

/// Flips a bit in the second record of the oldest value log, which is live; returns its path.
fn damage_oldest_log(disk: &SimDisk) -> PathBuf {
    disk.edit(|image| {
        let files = image.files().into_iter();
        let logs = files.filter(|path| path.extension().is_some_and(|end| end == "values"));
        let path = logs.min().unwrap();
        let mut bytes = image.read(&path).unwrap();
        bytes[350] ^= 1;
        image.write(&path, &bytes).unwrap();
        path
    })
}

/// As where no descriptor is left. The write is refused; the next one finds a log, and nothing else is lost.
#[test]
fn a_value_log_that_cannot_be_created_refuses_the_write_alone() {
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let db = Db::open(FOLDER, with_logs(&disk, &runtime)).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    keyspace.insert("small", "1").unwrap();
    disk.set_faults(vec![Fault::io(OperationKind::Create, 0)]);
    let mut batch = Batch::new();
    batch.insert(&keyspace, "beside", "1").unwrap();
    batch.insert(&keyspace, "large", [7; 600]).unwrap();
    assert_eq!(db.write(&batch).unwrap_err().kind(), ErrorKind::Io);
    for key in ["beside", "large"] {
        assert_eq!(keyspace.get(key).unwrap(), None);
    }
    keyspace.insert("large", [8; 600]).unwrap();
    db.persist().unwrap();
    let crashed = disk.crash(CrashPolicy::DropUnsynced);
    let db = Db::open(FOLDER, with_logs(&crashed, &runtime)).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    assert_eq!(keyspace.get("small").unwrap().unwrap(), b"1");
    assert_eq!(keyspace.get("large").unwrap().unwrap(), [8; 600]);
    assert_eq!(keyspace.get("beside").unwrap(), None);
    assert!(db.verify().unwrap().is_sound());
}

/// Merges that would copy it leave it where it is, so that level 0 does not fill up over it.
#[test]
fn a_damaged_value_of_a_run_holds_up_no_merge() {
    let disk = SimDisk::new();
    let reopened = || {
        let mut options = options(&disk);
        options.keyspace.medium_from = 64;
        options.keyspace.large_from = 1 << 20;
        options.keyspace.medium_in_place = MediumInPlace::Never;
        options.keyspace.segment_limit = SegmentLimit::Fixed(1);
        Db::open(FOLDER, options).unwrap()
    };
    let fill = |keyspace: &Keyspace, but: Option<u8>| {
        let keys = (0..100).filter(|key| Some(*key) != but);
        keys.for_each(|key: u8| keyspace.insert([key], [key; 100]).unwrap());
    };
    let db = reopened();
    fill(&db.keyspace("k").unwrap(), None);
    db.wait_idle().unwrap();
    db.close().unwrap();
    damage_oldest_log(&disk);

    let db = reopened();
    let keyspace = db.keyspace("k").unwrap();
    let read = |key: u8| keyspace.get([key]);
    let damaged = (0..100).find(|&key| read(key).is_err()).unwrap();
    // Of its transient log file hardly anything else is left, so that merges move on what is.
    for _ in 0..8 {
        fill(&keyspace, Some(damaged));
        db.flush().unwrap();
        db.wait_idle().unwrap();
    }
    for key in (0..100).filter(|key| *key != damaged) {
        assert_eq!(read(key).unwrap().unwrap(), [key; 100]);
    }
    assert_eq!(read(damaged).unwrap_err().kind(), ErrorKind::Corruption);
    let levels = &db.stats().keyspaces[0].levels;
    assert!(levels[0].files <= 2, "{levels:?}");
}

/// It stays behind alone, and nobody waits for it.
#[test]
fn a_damaged_value_log_holds_up_no_other_collection() {
    const LOG_BYTES: u64 = 8 << 10;
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let db = Db::open(FOLDER, with_logs(&disk, &runtime)).unwrap();
    let damaged = db.keyspace("damaged").unwrap();
    write_logs(&db, &damaged, 0..100, 2);
    drop(damaged);
    db.close().unwrap();
    let path = damage_oldest_log(&disk);

    let db = Db::open(FOLDER, with_logs(&disk, &runtime)).unwrap();
    let damaged = db.keyspace("damaged").unwrap();
    let sound = db.keyspace("sound").unwrap();
    write_logs(&db, &sound, 0..100, 2);
    assert!(garbage_bytes(&db, "damaged") > 2 * LOG_BYTES);
    let_pass(&runtime, 30);
    assert!(garbage_bytes(&db, "sound") < LOG_BYTES / 2);
    let left = LOG_BYTES * 2 / 5..LOG_BYTES * 3 / 5;
    let garbage = garbage_bytes(&db, "damaged");
    assert!(left.contains(&garbage), "{garbage}");
    let error = db.wait_idle().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");

    // What comes to be dead later is collected, too, however often somebody flushes.
    for round in 0..4 {
        write_logs(&db, &damaged, 100 + round * 40..140 + round * 40, 2);
        let_pass(&runtime, 3);
    }
    let garbage = garbage_bytes(&db, "damaged");
    assert!(garbage < 2 * LOG_BYTES, "{garbage}");
    let stalls = db.stats().stalls;
    let waited = stalls
        .iter()
        .find(|it| it.cause == StallCause::ValueGarbage);
    assert_eq!(waited.unwrap().delays, 0);
    drop((damaged, sound));
    drop(db);

    // After an opening all are tried again, and when it can be collected it is.
    let db = Db::open(FOLDER, with_logs(&disk, &runtime)).unwrap();
    let_pass(&runtime, 30);
    assert!(garbage_bytes(&db, "damaged") < 2 * LOG_BYTES);
    assert_eq!(damage_oldest_log(&disk), path);
    let_pass(&runtime, 20 * 60);
    db.wait_idle().unwrap();
    assert!(!disk.image().files().contains(&path));
    assert!(db.verify().unwrap().is_sound());
}

/// Where there is no room for all of them, there may be for some: half as many go next, not each by itself
/// as after other failures.
#[test]
fn a_collection_without_room_takes_fewer_logs_next_time() {
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let (sender, heard) = std::sync::mpsc::channel();
    let listener = move |event: &windrow::Event| {
        if let windrow::Event::GarbageCollectionEnded { files, .. } = event {
            sender.send(*files).unwrap();
        }
    };
    let options = with_logs(&disk, &runtime).with_listener(Arc::new(listener));
    let db = Db::open(FOLDER, options).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    // Four logs of 2 KiB of live values each, which would go together.
    write_logs(&db, &keyspace, 0..40, 4);
    let garbage = garbage_bytes(&db, "k");
    disk.set_quota(Some(disk.used_bytes() + 5000));
    let_pass(&runtime, 10);
    let together: Vec<usize> = heard.try_iter().collect();
    // There is no room for three; each that has gone makes some.
    assert_eq!(together, [1, 2, 1, 1]);
    assert!(garbage_bytes(&db, "k") < garbage / 4);
    db.wait_idle().unwrap();
    assert!(db.verify().unwrap().is_sound());
}

/// Where nothing is left to be flushed, the value log that it has begun goes all the same.
#[test]
fn the_room_that_a_refused_write_took_is_given_back() {
    const VALUE_BYTES: usize = 2 << 20;
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let db = Db::open(FOLDER, with_logs(&disk, &runtime)).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    let mut batch = Batch::new();
    batch
        .insert(&keyspace, "first", vec![1; VALUE_BYTES])
        .unwrap();
    batch
        .insert(&keyspace, "second", vec![2; VALUE_BYTES])
        .unwrap();
    let before = disk.used_bytes();
    disk.set_quota(Some(before + VALUE_BYTES as u64 * 3 / 2));
    let error = db.write(&batch).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    assert!(disk.used_bytes() >= before + VALUE_BYTES as u64);
    let_pass(&runtime, 3);
    assert!(disk.used_bytes() < before + VALUE_BYTES as u64);
    assert_eq!(db.stats().keyspaces[0].value_logs.files, 0);
    disk.set_quota(None);
    db.write(&batch).unwrap();
    assert!(db.verify().unwrap().is_sound());
}

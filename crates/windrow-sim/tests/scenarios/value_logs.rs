//! Value logs: failures of their creation, and garbage collection with damage or without space.

use std::time::Duration;

use windrow::{Batch, Db, ErrorKind, Event, Keyspace, Options, StallCause};
use windrow_sim::disk::{Fault, OperationKind};
use windrow_sim::{CrashPolicy, SimDisk, SteppedRuntime};

use crate::common::{FOLDER, check_sound, count, kind, listen, on, open, small};
use crate::damaged_files::damage_oldest_values;

/// Options under which a few large values make several value logs. Half of a log may not be garbage.
fn with_logs(disk: &SimDisk, runtime: &SteppedRuntime) -> Options {
    let mut options = on(small(), disk, runtime);
    options.keyspace.memtable_bytes = 256 << 10;
    options.keyspace.large_from = 200;
    options.keyspace.medium_from = 200;
    options.keyspace.max_space_amp = 1.06;
    options.reserve_bytes = 0;
    options
}

/// Writes each of `keys` `times` times and flushes. So one value in `times` of each log stays live, except in the last
/// log.
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

/// Runs the due jobs once for each of `seconds`.
fn let_pass(runtime: &SteppedRuntime, seconds: u64) {
    for _ in 0..seconds {
        runtime.run_until_idle(1000);
        runtime.advance(Duration::from_secs(1));
    }
}

/// What the engine counts is what is on the disk: logs that are being written, discard lists and GC outputs included.
#[test]
fn the_bytes_of_all_files_are_counted() {
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let options = with_logs(&disk, &runtime);
    let (mut db, mut keyspace) = open(options.clone());
    let check = |db: &Db, when: &str| {
        let image = disk.image();
        let kinds = ["wal", "manifest", "table", "values", "dead"];
        let files = kinds.iter().flat_map(|it| image.files_with(it));
        let bytes: usize = files.map(|path| image.read(&path).unwrap().len()).sum();
        assert_eq!(db.stats().disk_bytes, bytes as u64, "{when}");
    };
    let mut lists = 0;
    for round in 0..4 {
        write_logs(&db, &keyspace, 0..60, 2);
        lists = lists.max(count(&disk, "dead"));
        check(&db, "after a flush");
        keyspace.insert("unflushed", [7; 1000]).unwrap();
        check(&db, "after a write to a log");
        let_pass(&runtime, 30);
        check(&db, "after garbage collections");
        if round == 1 {
            drop(keyspace);
            db.close().unwrap();
            (db, keyspace) = open(options.clone());
            check(&db, "after an open");
        }
    }
    assert!(lists > 0 && db.stats().garbage_collections > 0);
}

/// The cause may be a lack of descriptors. The write is refused, the next write gets a log, and nothing else is lost.
#[test]
fn a_failed_creation_of_a_value_log_refuses_only_the_write() {
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let (db, keyspace) = open(with_logs(&disk, &runtime));
    keyspace.insert("small", "1").unwrap();
    disk.set_faults([Fault::io(OperationKind::Create, 0)]);
    let mut batch = Batch::new();
    batch.insert(&keyspace, "beside", "1").unwrap();
    batch.insert(&keyspace, "large", [7; 600]).unwrap();
    assert_eq!(kind(db.write(&batch)), ErrorKind::Io);
    for key in ["beside", "large"] {
        assert_eq!(keyspace.get(key).unwrap(), None);
    }
    keyspace.insert("large", [8; 600]).unwrap();
    db.persist().unwrap();
    let crashed = disk.crash(CrashPolicy::DropUnsynced);
    let (db, keyspace) = open(with_logs(&crashed, &runtime));
    assert_eq!(keyspace.get("small").unwrap().unwrap(), b"1");
    assert_eq!(keyspace.get("large").unwrap().unwrap(), [8; 600]);
    assert_eq!(keyspace.get("beside").unwrap(), None);
    check_sound(&db);
}

/// The damaged log alone stays, and no writer stalls for it.
#[test]
fn a_damaged_value_log_blocks_no_other_garbage_collection() {
    const LOG_BYTES: u64 = 8 << 10;
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let db = Db::open(FOLDER, with_logs(&disk, &runtime)).unwrap();
    let damaged = db.keyspace("damaged").unwrap();
    write_logs(&db, &damaged, 0..100, 2);
    drop(damaged);
    db.close().unwrap();
    let path = damage_oldest_values(&disk);

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

    // Later garbage is collected too, in spite of many flushes.
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

    // After an open, garbage collection tries all logs again. It collects the log once it is undamaged.
    let db = Db::open(FOLDER, with_logs(&disk, &runtime)).unwrap();
    let_pass(&runtime, 30);
    assert!(garbage_bytes(&db, "damaged") < 2 * LOG_BYTES);
    assert_eq!(damage_oldest_values(&disk), path);
    let_pass(&runtime, 20 * 60);
    db.wait_idle().unwrap();
    assert!(!disk.image().files().contains(&path));
    check_sound(&db);
}

/// The space may suffice for fewer logs: the next garbage collection takes half of them. After other failures it
/// takes each alone.
#[test]
fn garbage_collection_without_space_takes_fewer_logs_next_time() {
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let (options, ended) = listen(with_logs(&disk, &runtime), |event| match event {
        Event::GarbageCollectionEnded { files, .. } => Some(*files),
        _ => None,
    });
    let (db, keyspace) = open(options);
    // Four logs with 2 KiB of live values each, which one garbage collection would take.
    write_logs(&db, &keyspace, 0..40, 4);
    let garbage = garbage_bytes(&db, "k");
    disk.set_quota(Some(disk.used_bytes() + 5000));
    let_pass(&runtime, 10);
    let together: Vec<usize> = ended.try_iter().collect();
    // There is no space for three. Each removed log frees some.
    assert_eq!(together, [1, 2, 1, 1]);
    assert!(garbage_bytes(&db, "k") < garbage / 4);
    db.wait_idle().unwrap();
    check_sound(&db);
}

/// The value log of the refused write is removed although nothing needs a flush.
#[test]
fn a_refused_write_returns_its_space() {
    const VALUE_BYTES: usize = 2 << 20;
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let (db, keyspace) = open(with_logs(&disk, &runtime));
    let mut batch = Batch::new();
    batch
        .insert(&keyspace, "first", vec![1; VALUE_BYTES])
        .unwrap();
    batch
        .insert(&keyspace, "second", vec![2; VALUE_BYTES])
        .unwrap();
    let before = disk.used_bytes();
    disk.set_quota(Some(before + VALUE_BYTES as u64 * 3 / 2));
    assert_eq!(kind(db.write(&batch)), ErrorKind::NoSpace);
    assert!(disk.used_bytes() >= before + VALUE_BYTES as u64);
    let_pass(&runtime, 3);
    assert!(disk.used_bytes() < before + VALUE_BYTES as u64);
    assert_eq!(db.stats().keyspaces[0].value_logs.files, 0);
    disk.set_quota(None);
    db.write(&batch).unwrap();
    check_sound(&db);
}

//! Why writers wait, that each wait has a job that ends it, and that budgets hold meanwhile.
//!
//! Jobs run only in place of a stopped writer, so a stop that no due job ends panics.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]
#![expect(
    clippy::disallowed_types,
    reason = "the listeners are the tests' own and need no model"
)]

use std::sync::{Arc, Mutex};

use windrow::runtime::Runtime;
use windrow::{Db, ErrorKind, Event, Keyspace, Options, StallCause, StallStats};
use windrow_sim::{SimDisk, SteppedRuntime};

const FOLDER: &str = "/data/db";

/// Options under which only what a test asks for stops writers.
fn options(disk: &SimDisk) -> Options {
    let mut options = Options::default();
    options.keyspace.memtable_bytes = 16 << 10;
    options.keyspace.file_bytes = 8 << 10;
    options.keyspace.base_bytes = 64 << 20;
    options.keyspace.level0_runs = 64;
    options.keyspace.block_bytes = 256;
    options.max_wal_bytes = 16 << 20;
    // Values fill memtables and tables.
    options.keyspace.medium_from = u64::MAX;
    options.keyspace.large_from = u64::MAX;
    options
        .with_vfs(Arc::new(disk.clone()))
        .with_runtime(Arc::new(SteppedRuntime::new(1)))
}

fn stalls(db: &Db, cause: StallCause) -> StallStats {
    let stats = db.stats();
    let mut stalls = stats.stalls.iter().filter(|stall| stall.cause == cause);
    *stalls.next().unwrap()
}

/// Writes keys of `round` in no order, `bytes` in all.
fn write(keyspace: &Keyspace, round: usize, bytes: usize) {
    for number in 0..bytes / 116 {
        let key = ((round * 1000 + number) as u64)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .to_be_bytes();
        keyspace.insert(key, [7; 108]).unwrap();
    }
}

/// Writes until writers were stopped for `cause`, and checks what is told of it.
fn check_stops(cause: StallCause, change: impl FnOnce(&mut Options), keyspaces: usize) {
    let disk = SimDisk::new();
    let mut options = options(&disk);
    change(&mut options);
    let db = Db::open(FOLDER, options).unwrap();
    let keyspaces: Vec<_> = (0..keyspaces)
        .map(|number| db.keyspace(&format!("k{number}")).unwrap())
        .collect();
    for round in 0..100 {
        for keyspace in &keyspaces {
            write(keyspace, round, 40 << 10);
        }
        if stalls(&db, cause).stops >= 3 {
            break;
        }
        assert!(round < 99, "never stopped: {:?}", db.stats().stalls);
    }
    let stall = stalls(&db, cause);
    // What data has to pass before it can be too much for what follows.
    let before = match cause {
        StallCause::PendingBytes => &[StallCause::Memtables, StallCause::Level0Runs][..],
        _ => &[StallCause::Memtables][..],
    };
    assert!(stall.micros >= stall.longest_micros, "{stall:?}");
    assert_eq!(
        db.stats().stall_count(),
        db.stats()
            .stalls
            .iter()
            .map(|stall| stall.delays + stall.stops)
            .sum::<u64>()
    );
    for other in db.stats().stalls {
        let may_stop = other.cause == cause || before.contains(&other.cause);
        assert!(may_stop || other.stops == 0, "{other:?}");
    }
    db.wait_idle().unwrap();
    assert!(db.verify().unwrap().is_sound());
}

#[test]
fn memtables_that_wait_stop_writers_until_one_is_flushed() {
    check_stops(StallCause::Memtables, |_| {}, 1);
}

#[test]
fn runs_of_level_0_stop_writers_until_they_are_merged() {
    let few = |options: &mut Options| options.keyspace.level0_runs = 1;
    check_stops(StallCause::Level0Runs, few, 1);
}

#[test]
fn levels_over_capacity_stop_writers_until_they_are_merged() {
    let small = |options: &mut Options| {
        options.keyspace.base_bytes = 4 << 10;
        options.keyspace.file_bytes = 4 << 10;
        options.keyspace.level0_runs = 8;
    };
    check_stops(StallCause::PendingBytes, small, 1);
}

#[test]
fn memtables_of_many_keyspaces_stop_writers_until_the_largest_is_flushed() {
    let tight = |options: &mut Options| {
        options.memory_budget = 8 << 20;
        options.keyspace.memtable_bytes = 1 << 20;
    };
    check_stops(StallCause::Memory, tight, 30);
}

#[test]
fn long_logs_stop_writers_until_the_oldest_is_gone() {
    let short = |options: &mut Options| options.max_wal_bytes = 32 << 10;
    check_stops(StallCause::LogBytes, short, 1);
}

#[test]
fn writers_are_slowed_before_they_are_stopped() {
    let disk = SimDisk::new();
    let db = Db::open(FOLDER, options(&disk)).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    let mut delays = 0;
    while stalls(&db, StallCause::Memtables).stops == 0 {
        write(&keyspace, 0, 116);
        delays = stalls(&db, StallCause::Memtables).delays;
    }
    assert!(delays >= 5, "{delays}");
    // No delay is longer than a second, and the stop took a step.
    assert!(db.stats().longest_stall_micros() < 1_000_000);
}

/// Bytes of all logs.
fn log_bytes(disk: &SimDisk) -> u64 {
    let image = disk.image();
    let files = image.files();
    let logs = files
        .iter()
        .filter(|path| path.extension().is_some_and(|own| own == "wal"));
    logs.map(|path| image.read(path).unwrap().len() as u64)
        .sum()
}

#[test]
fn logs_stay_short_while_a_keyspace_idles() {
    for threads in [1, 2] {
        for max_in_logs in [1, 2, 4, 8] {
            let disk = SimDisk::new();
            let mut options = options(&disk);
            options.background_threads = threads;
            let log = options.keyspace.memtable_bytes as u64;
            options.max_wal_bytes = max_in_logs * log;
            let db = Db::open(FOLDER, options).unwrap();
            let busy = db.keyspace("busy").unwrap();
            let idle = db.keyspace("idle").unwrap();
            for round in 0..400 {
                if round % 100 == 0 {
                    idle.insert("once", format!("{round}")).unwrap();
                }
                write(&busy, round, 4 << 10);
                let bytes = log_bytes(&disk);
                // The log that is written may be one record too long.
                assert!(
                    bytes <= (max_in_logs + 1) * log + 300,
                    "{bytes} bytes of logs with a cap of {max_in_logs} x {log}"
                );
            }
            assert_eq!(idle.get("once").unwrap().unwrap(), b"300");
        }
    }
}

#[test]
fn logs_go_although_no_keyspace_needs_a_flush() {
    let disk = SimDisk::new();
    let mut options = options(&disk);
    options.max_wal_bytes = options.keyspace.memtable_bytes as u64;
    let db = Db::open(FOLDER, options).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    for round in 0..50 {
        // Each flush leaves nothing that keeps a log but the one that is written.
        write(&keyspace, round, 12 << 10);
        db.flush().unwrap();
    }
    assert!(log_bytes(&disk) <= 33 << 10, "{}", log_bytes(&disk));
}

#[test]
fn a_keyspace_whose_memtable_is_longer_than_the_logs_may_be_is_refused() {
    let disk = SimDisk::new();
    let mut options = options(&disk);
    options.max_wal_bytes = 64 << 10;
    let mut own = options.keyspace.clone();
    let db = Db::open(FOLDER, options).unwrap();
    own.memtable_bytes = 65 << 10;
    let error = db.keyspace_with("k", own.clone()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("max_wal_bytes"), "{error}");
    own.memtable_bytes = 64 << 10;
    db.keyspace_with("k", own).unwrap();

    // Recorded once, they hold where less fits into the logs, which then lead to earlier flushes.
    db.close().unwrap();
    let mut options = self::options(&disk);
    options.max_wal_bytes = 16 << 10;
    let db = Db::open(FOLDER, options).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    assert_eq!(keyspace.options().memtable_bytes, 64 << 10);
    for round in 0..20 {
        write(&keyspace, round, 8 << 10);
        assert!(log_bytes(&disk) <= 33 << 10, "{}", log_bytes(&disk));
    }
}

#[test]
fn a_dropped_keyspace_presses_on_nobody() {
    let disk = SimDisk::new();
    let mut options = options(&disk);
    options.memory_budget = 8 << 20;
    options.keyspace.memtable_bytes = 1 << 20;
    let db = Db::open(FOLDER, options).unwrap();
    let other = db.keyspace("other").unwrap();
    let names = ["a", "b", "c", "d"];
    let held: Vec<_> = names.map(|name| db.keyspace(name).unwrap()).into();
    while db.memory().memtables < 3600 << 10 {
        for keyspace in &held {
            keyspace.insert("key", vec![7; 32 << 10]).unwrap();
        }
    }
    // The pressure is worked out for what is there.
    for _ in 0..3 {
        other.insert("key", "").unwrap();
    }
    assert!(stalls(&db, StallCause::Memory).delays > 0);
    for name in names {
        db.drop_keyspace(name).unwrap();
    }
    let delays = stalls(&db, StallCause::Memory).delays;
    other.insert("key", vec![7; 64 << 10]).unwrap();
    assert_eq!(stalls(&db, StallCause::Memory).delays, delays);
    // They still hold what they had.
    assert!(db.memory().memtables > 2 << 20);
    drop(held);
    db.wait_idle().unwrap();
}

/// The keyspaces "first" and "second" in a database that merges late, each with so many runs in
/// level 0 that the merges of one take a while; and the keyspaces of merges, as they end.
fn two_in_debt(disk: &SimDisk) -> (Db, [Keyspace; 2], Arc<Mutex<Vec<String>>>) {
    let merges = Arc::new(Mutex::new(Vec::new()));
    let ended = Arc::clone(&merges);
    let mut options = options(disk).with_listener(Arc::new(move |event: &Event| {
        if let Event::CompactionEnded { keyspace, .. } = event {
            ended.lock().unwrap().push(keyspace.clone());
        }
    }));
    options.keyspace.file_bytes = 4 << 10;
    options.keyspace.base_bytes = 8 << 10;
    options.keyspace.size_ratio = 2.0;
    options.keyspace.scaling = 1.0;
    options.keyspace.level0_runs = 2;
    let db = Db::open(FOLDER, options).unwrap();
    let keyspaces = ["first", "second"].map(|name| db.keyspace(name).unwrap());
    for round in 0..45 {
        for keyspace in &keyspaces {
            write(keyspace, round, 8 << 10);
        }
        db.flush().unwrap();
        // The last fifteen are left.
        if round < 30 && round % 15 == 14 {
            db.wait_idle().unwrap();
        }
    }
    (db, keyspaces, merges)
}

#[test]
fn keyspaces_are_merged_in_turn() {
    let disk = SimDisk::new();
    let (db, _keyspaces, merges) = two_in_debt(&disk);
    merges.lock().unwrap().clear();
    db.wait_idle().unwrap();
    let merges = merges.lock().unwrap();
    assert!(merges.len() >= 8, "{merges:?}");
    assert!(
        merges[..8].windows(2).all(|two| two[0] != two[1]),
        "{merges:?}"
    );
}

#[test]
fn a_stop_is_not_prolonged_by_the_merges_of_another_keyspace() {
    let disk = SimDisk::new();
    let (db, [_, second], merges) = two_in_debt(&disk);
    write(&second, 45, 8 << 10);
    db.flush().unwrap();
    merges.lock().unwrap().clear();
    second.insert("stopped", "").unwrap();
    assert_eq!(stalls(&db, StallCause::Level0Runs).stops, 1);
    assert_eq!(*merges.lock().unwrap(), ["second"]);
}

/// Whoever asks for a flush waits for what was there then, not for writers to pause.
#[test]
fn a_flush_ends_although_writers_go_on() {
    let disk = SimDisk::new();
    let flushes = Arc::new(Mutex::new(0));
    let writer = Arc::new(Mutex::new(None::<Keyspace>));
    let (count, writes) = (Arc::clone(&flushes), Arc::clone(&writer));
    let options = options(&disk).with_listener(Arc::new(move |event: &Event| {
        if let Event::FlushEnded { .. } = event {
            let mut count = count.lock().unwrap();
            *count += 1;
            // Enough for the next memtable to wait when this one is done.
            if let Some(keyspace) = writes.lock().unwrap().as_ref().filter(|_| *count < 20) {
                write(keyspace, *count, 12 << 10);
            }
        }
    }));
    let db = Db::open(FOLDER, options).unwrap();
    let keyspace = db.keyspace("busy").unwrap();
    write(&keyspace, 0, 8 << 10);
    *writer.lock().unwrap() = Some(keyspace.clone());
    db.flush().unwrap();
    assert_eq!(*flushes.lock().unwrap(), 1);
    *writer.lock().unwrap() = None;
}

/// Also where each merge writes less than jobs are paced by.
#[test]
fn small_merges_keep_to_the_bytes_per_second() {
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let mut options = options(&disk).with_runtime(Arc::new(runtime.clone()));
    options.compaction_bytes_per_second = 64 << 10;
    options.keyspace.level0_runs = 2;
    let db = Db::open(FOLDER, options).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    let start = runtime.now();
    for round in 0..40 {
        write(&keyspace, round, 8 << 10);
        db.flush().unwrap();
        db.wait_idle().unwrap();
    }
    let took = runtime.now().saturating_sub(start).as_secs_f64();
    let stats = db.stats();
    let written = stats.compaction_bytes_written + stats.append_bytes_written;
    assert!(written / stats.compactions < 256 << 10);
    // What is owed freely takes a second, what has come together a quarter of one.
    let due = written as f64 / f64::from(64 << 10);
    assert!(due > 10.0, "{due}");
    assert!(took > 0.8 * due - 1.5, "{took} s, {due} s");
}

#[test]
fn memtables_that_cursors_keep_are_counted_and_hold_up_nobody() {
    let disk = SimDisk::new();
    let mut options = options(&disk);
    options.memory_budget = 8 << 20;
    options.keyspace.memtable_bytes = 1 << 20;
    let db = Db::open(FOLDER, options).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    let mut cursors = Vec::new();
    for round in 0..24 {
        keyspace.insert("round", format!("{round}")).unwrap();
        cursors.push(keyspace.cursor().unwrap());
        write(&keyspace, round, 512 << 10);
    }
    // Twice what memtables may hold.
    assert!(db.memory().memtables > 8 << 20, "{:?}", db.memory());
    assert_eq!(db.memory().total, db.stats().memory.total);
    for (round, cursor) in cursors.iter_mut().enumerate() {
        assert!(cursor.seek("round").unwrap());
        assert_eq!(cursor.value().unwrap(), format!("{round}").as_bytes());
    }
    drop(cursors);
    db.flush().unwrap();
    assert!(db.memory().memtables < 1 << 20, "{:?}", db.memory());
}

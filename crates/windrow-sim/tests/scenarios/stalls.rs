//! Write throttling: why writers stall, which job ends each stall, and which bounds hold during it.
//!
//! A stopped writer runs the jobs itself. So a stop that no due job ends panics.

use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};

use windrow::runtime::Runtime;
use windrow::{Db, ErrorKind, Event, Keyspace, Options, StallCause, StallStats};
use windrow_sim::{SimDisk, SteppedRuntime};

use crate::common::{FOLDER, check_sound, listen, log_bytes, on, open, small};

/// Options under which writers stop only for what a test adds.
fn options(disk: &SimDisk) -> Options {
    let mut options = small();
    options.keyspace.memtable_bytes = 16 << 10;
    options.keyspace.file_bytes = 8 << 10;
    options.keyspace.base_bytes = 64 << 20;
    options.keyspace.level0_runs = 64;
    options.max_wal_bytes = 16 << 20;
    // Values fill memtables and tables.
    options.keyspace.medium_from = u64::MAX;
    options.keyspace.large_from = u64::MAX;
    on(options, disk, &SteppedRuntime::new(1))
}

fn stalls(db: &Db, cause: StallCause) -> StallStats {
    let stats = db.stats();
    let mut stalls = stats.stalls.iter().filter(|stall| stall.cause == cause);
    *stalls.next().unwrap()
}

/// Writes `bytes` of entries with the keys of `round`, in no order.
fn write(keyspace: &Keyspace, round: usize, bytes: usize) {
    for number in 0..bytes / 116 {
        let key = ((round * 1000 + number) as u64)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .to_be_bytes();
        keyspace.insert(key, [7; 108]).unwrap();
    }
}

/// Writes until writers have stopped for `cause`, and checks the statistics.
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
    // Data passes these before it can reach the cause.
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
    check_sound(&db);
}

#[test]
fn frozen_memtables_stop_writers_until_a_flush() {
    check_stops(StallCause::Memtables, |_| {}, 1);
}

#[test]
fn runs_of_level_0_stop_writers_until_a_compaction() {
    let few = |options: &mut Options| options.keyspace.level0_runs = 1;
    check_stops(StallCause::Level0Runs, few, 1);
}

#[test]
fn levels_over_capacity_stop_writers_until_a_compaction() {
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
fn long_logs_stop_writers_until_the_oldest_is_removed() {
    let short = |options: &mut Options| options.max_wal_bytes = 32 << 10;
    check_stops(StallCause::LogBytes, short, 1);
}

#[test]
fn delays_come_before_stops() {
    let disk = SimDisk::new();
    let (db, keyspace) = open(options(&disk));
    let mut delays = 0;
    while stalls(&db, StallCause::Memtables).stops == 0 {
        write(&keyspace, 0, 116);
        delays = stalls(&db, StallCause::Memtables).delays;
    }
    assert!(delays >= 5, "{delays}");
    // No delay takes longer than a second, and the stop took one step.
    assert!(db.stats().longest_stall_micros() < 1_000_000);
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
                // The current log may be one record too long.
                assert!(
                    bytes <= (max_in_logs + 1) * log + 300,
                    "{bytes} bytes of logs and a bound of {max_in_logs} x {log}"
                );
            }
            assert_eq!(idle.get("once").unwrap().unwrap(), b"300");
        }
    }
}

#[test]
fn logs_are_removed_although_no_keyspace_needs_a_flush() {
    let disk = SimDisk::new();
    let mut options = options(&disk);
    options.max_wal_bytes = options.keyspace.memtable_bytes as u64;
    let (db, keyspace) = open(options);
    for round in 0..50 {
        // After each flush nothing needs a log except the current one.
        write(&keyspace, round, 12 << 10);
        db.flush().unwrap();
    }
    assert!(log_bytes(&disk) <= 33 << 10, "{}", log_bytes(&disk));
}

#[test]
fn a_memtable_size_above_the_bound_of_the_logs_is_refused() {
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

    // Recorded options hold under a smaller bound of the logs. Flushes then come earlier.
    db.close().unwrap();
    let mut options = self::options(&disk);
    options.max_wal_bytes = 16 << 10;
    let (_db, keyspace) = open(options);
    assert_eq!(keyspace.options().memtable_bytes, 64 << 10);
    for round in 0..20 {
        write(&keyspace, round, 8 << 10);
        assert!(log_bytes(&disk) <= 33 << 10, "{}", log_bytes(&disk));
    }
}

#[test]
fn a_dropped_keyspace_throttles_no_writer() {
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
    // The throttle counts existing keyspaces.
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
    // The dropped keyspaces still hold their memtables.
    assert!(db.memory().memtables > 2 << 20);
    drop(held);
    db.wait_idle().unwrap();
}

/// The keyspaces "first" and "second" in a database with late compactions. Each has enough runs in level 0
/// that its compactions take a while. Also returns the keyspace of each compaction that ends.
fn two_in_debt(disk: &SimDisk) -> (Db, [Keyspace; 2], Receiver<String>) {
    let (mut options, ended) = listen(options(disk), |event| match event {
        Event::CompactionEnded { keyspace, .. } => Some(keyspace.clone()),
        _ => None,
    });
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
    ended.try_iter().for_each(drop);
    (db, keyspaces, ended)
}

#[test]
fn keyspaces_are_compacted_in_turn() {
    let disk = SimDisk::new();
    let (db, _keyspaces, ended) = two_in_debt(&disk);
    db.wait_idle().unwrap();
    let ended: Vec<_> = ended.try_iter().collect();
    assert!(ended.len() >= 8, "{ended:?}");
    assert!(
        ended[..8].windows(2).all(|two| two[0] != two[1]),
        "{ended:?}"
    );
}

#[test]
fn compactions_of_another_keyspace_do_not_prolong_a_stop() {
    let disk = SimDisk::new();
    let (db, [_, second], ended) = two_in_debt(&disk);
    write(&second, 45, 8 << 10);
    db.flush().unwrap();
    ended.try_iter().for_each(drop);
    second.insert("stopped", "").unwrap();
    assert_eq!(stalls(&db, StallCause::Level0Runs).stops, 1);
    assert_eq!(ended.try_iter().collect::<Vec<_>>(), ["second"]);
}

/// A flush covers the entries at its call. It does not wait for writers to pause.
#[test]
fn a_flush_ends_although_writers_continue() {
    let disk = SimDisk::new();
    let writer = Arc::new(Mutex::new(None::<Keyspace>));
    let (writes, count) = (Arc::clone(&writer), Mutex::new(0));
    let (options, flushes) = listen(options(&disk), move |event| {
        let Event::FlushEnded { .. } = event else {
            return None;
        };
        let mut count = count.lock().unwrap();
        *count += 1;
        // Enough to freeze the next memtable by the end of this flush.
        if let Some(keyspace) = writes.lock().unwrap().as_ref().filter(|_| *count < 20) {
            write(keyspace, *count, 12 << 10);
        }
        Some(())
    });
    let (db, keyspace) = open(options);
    write(&keyspace, 0, 8 << 10);
    *writer.lock().unwrap() = Some(keyspace.clone());
    db.flush().unwrap();
    assert_eq!(flushes.try_iter().count(), 1);
    *writer.lock().unwrap() = None;
}

/// Each compaction writes less than the rate limiter's unit.
#[test]
fn small_compactions_keep_to_the_rate() {
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let mut options = options(&disk).with_runtime(Arc::new(runtime.clone()));
    options.compaction_bytes_per_second = 64 << 10;
    options.keyspace.level0_runs = 2;
    let (db, keyspace) = open(options);
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
    // The free burst lasts a second, the collected debt a quarter of a second.
    let due = written as f64 / f64::from(64 << 10);
    assert!(due > 10.0, "{due}");
    assert!(took > due - 1.5, "{took} s, {due} s");
}

#[test]
fn memtables_kept_by_cursors_are_counted_and_throttle_no_writer() {
    let disk = SimDisk::new();
    let mut options = options(&disk);
    options.memory_budget = 8 << 20;
    options.keyspace.memtable_bytes = 1 << 20;
    let (db, keyspace) = open(options);
    let mut cursors = Vec::new();
    for round in 0..24 {
        keyspace.insert("round", format!("{round}")).unwrap();
        cursors.push(keyspace.cursor().unwrap());
        write(&keyspace, round, 512 << 10);
    }
    // Twice the bound of memtables.
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

#[test]
fn own_options_of_a_keyspace_replace_those_of_the_database() {
    let disk = SimDisk::new();
    let eager = || on(small(), &disk, &SteppedRuntime::new(1));
    let mut own = eager().keyspace;
    own.level0_runs = 64;
    own.base_bytes = 1 << 30;
    let db = Db::open(FOLDER, eager()).unwrap();
    let keyspace = db.keyspace_with("k", own.clone()).unwrap();
    for round in 0..30 {
        keyspace.insert("key", [round; 100]).unwrap();
        db.flush().unwrap();
    }
    db.wait_idle().unwrap();
    db.close().unwrap();
    // The database's options would stop a writer at this many runs.
    let db = Db::open(FOLDER, eager()).unwrap();
    let keyspace = db.keyspace_with("k", own).unwrap();
    db.wait_idle().unwrap();
    keyspace.insert("key", "new").unwrap();
    assert_eq!(db.stats().stall_count(), 0);
}

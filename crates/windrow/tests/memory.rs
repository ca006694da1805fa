//! The memory budget holds, by the engine's own memory accounting and by that of the system. The test has its own
//! process, since the system counts by process.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]
#![expect(
    clippy::disallowed_methods,
    reason = "the test asks the system, and watches from a thread"
)]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use windrow::{BlockSource, Compression, Db, Keyspace, Options};

const BUDGET: u64 = 32 << 20;

/// The memory of the allocator itself, the buffers of the log, and stacks.
const SLACK: u64 = 16 << 20;

const KEYSPACES: u64 = 4;
const ROUNDS: u64 = 30;
const KEYS_PER_ROUND: u64 = 6_000;

/// Resident bytes of the process that are not mapped from files.
fn anonymous_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon"));
    let kilobytes = line.unwrap().split_whitespace().nth(1).unwrap();
    kilobytes.parse::<u64>().unwrap() << 10
}

fn key(number: u64) -> [u8; 16] {
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (u128::from(mixed) << 64 | u128::from(number)).to_be_bytes()
}

/// Loads and reads four keyspaces at once, 40 MB in all, in rounds.
fn load(keyspaces: &[Keyspace]) {
    let mut value = Vec::new();
    for round in 0..ROUNDS {
        for keyspace in keyspaces {
            for number in 0..KEYS_PER_ROUND / KEYSPACES {
                let number = round * KEYS_PER_ROUND + number;
                keyspace.insert(key(number), [7; 200]).unwrap();
                let other = number.wrapping_mul(31) % (number + 1);
                keyspace.get_into(key(other), &mut value).unwrap();
            }
        }
        let cursors: Vec<_> = keyspaces
            .iter()
            .map(|keyspace| {
                let mut cursor = keyspace.cursor().unwrap();
                cursor.seek(key(round)).unwrap();
                cursor
            })
            .collect();
        for mut cursor in cursors {
            for _ in 0..100 {
                cursor.next().unwrap();
            }
        }
    }
}

#[test]
fn loads_and_reads_stay_within_the_budget() {
    for (source, compression) in [
        (BlockSource::Mapped, Compression::None),
        (BlockSource::Buffered, Compression::Lz4),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut options = Options::default();
        options.memory_budget = BUDGET;
        options.block_source = source;
        options.keyspace.compression = compression;
        options.keyspace.base_bytes = 8 << 20;
        options.keyspace.file_bytes = 512 << 10;
        let before = anonymous_bytes();
        let db = Db::open(folder.path(), options.clone()).unwrap();
        let names = (0..KEYSPACES).map(|number| format!("k{number}"));
        let keyspaces: Vec<_> = names.map(|name| db.keyspace(&name).unwrap()).collect();
        let (anonymous_max, counted_max) = (AtomicU64::new(0), AtomicU64::new(0));
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    anonymous_max.fetch_max(anonymous_bytes(), Ordering::Relaxed);
                    counted_max.fetch_max(db.memory().total, Ordering::Relaxed);
                    thread::sleep(Duration::from_millis(2));
                }
            });
            load(&keyspaces);
            db.wait_idle().unwrap();
            is_over.store(true, Ordering::Relaxed);
        });
        let counted = counted_max.into_inner();
        let grown = anonymous_max.into_inner().saturating_sub(before);
        assert!(counted <= BUDGET, "{counted} bytes by memory accounting");
        assert!(grown <= BUDGET + SLACK, "{grown} bytes by the system");
        let memory = db.memory();
        assert_eq!(memory, db.stats().memory);
        let parts = [
            memory.memtables,
            memory.block_cache,
            memory.tables,
            memory.cursors,
            memory.jobs,
        ];
        assert_eq!(memory.total, parts.iter().sum::<u64>());
        // Memtables, at most an eighth of the budget each, were full many times.
        assert!(db.stats().flushes > 5, "{} flushes", db.stats().flushes);
        // Counted memory is returned.
        assert_eq!((memory.cursors, memory.jobs), (0, 0));
        assert!(memory.memtables > 0 && memory.tables > 0);
        let cursor = keyspaces[0].cursor().unwrap();
        drop(keyspaces);
        drop(cursor);
        db.close().unwrap();

        // An open holds unflushed entries, and no more.
        let before = anonymous_bytes();
        let db = Db::open(folder.path(), options).unwrap();
        assert!(db.memory().total <= BUDGET);
        assert!(anonymous_bytes().saturating_sub(before) <= BUDGET + SLACK);
    }
}

#[test]
fn a_budget_too_small_for_the_buffers_of_jobs_is_refused() {
    let mut options = Options::default();
    options.background_threads = 3;
    options.memory_budget = (12 << 20) - 1;
    let error = options.validate().unwrap_err().to_string();
    assert!(
        error.contains("memory_budget") && error.contains("12582912"),
        "{error}"
    );
    options.memory_budget = 12 << 20;
    options.validate().unwrap();
    options.memory_budget = 0;
    options.validate().unwrap();
}

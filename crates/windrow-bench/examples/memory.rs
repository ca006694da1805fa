//! Loads much more data than the memory budget, reads it, and reports the memory use.
//!
//! ```text
//! cargo build --release -p windrow-bench --example memory
//! prlimit --data=268435456 target/release/examples/memory DIR 4096 128 [VALUE_BYTES]
//! ```
//!
//! writes 4096 MiB to a new database in DIR, in random order under a budget of 128 MiB, gets keys for a minute,
//! scans for a few seconds, and prints the peaks of the engine's memory tracker and of the anonymous memory of the
//! process. The limit kills a process that takes more.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "prints its report"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "measures the process, and watches from a thread"
)]

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use windrow::{Db, Error, Keyspace, Options, Result};

const DEFAULT_VALUE_BYTES: u64 = 100;

/// The time of the reads.
const READ_FOR: Duration = Duration::from_secs(60);

/// Anonymous memory of the process in bytes; 0 if the system does not report it.
fn anonymous_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("RssAnon"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kilobytes.unwrap_or_default() << 10
}

/// The peaks.
#[derive(Debug, Default)]
struct Peaks {
    anonymous: AtomicU64,
    counted: AtomicU64,
}

impl Peaks {
    fn look(&self, db: &Db) {
        self.anonymous
            .fetch_max(anonymous_bytes(), Ordering::Relaxed);
        self.counted.fetch_max(db.memory().total, Ordering::Relaxed);
    }

    fn report(&self, what: &str, count: u64, start: Instant, db: &Db) {
        let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{what:<6} {count:>10} in {seconds:>6.1} s ({:>8.0}/s)  highest: {:>6.1} MiB anonymous, \
             {:>6.1} MiB counted  longest stall {:.1} ms",
            count as f64 / seconds,
            mebibytes(self.anonymous.swap(0, Ordering::Relaxed)),
            mebibytes(self.counted.swap(0, Ordering::Relaxed)),
            db.stats().longest_stall_micros() as f64 / 1e3,
        );
    }
}

fn key(number: u64) -> [u8; 16] {
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (u128::from(mixed) << 64 | u128::from(number)).to_be_bytes()
}

/// The value compresses to half of its size.
fn fill_value(number: u64, value: &mut [u8]) {
    let half = value.len() / 2;
    for (position, piece) in value[..half].chunks_mut(16).enumerate() {
        let position = position as u64;
        piece.copy_from_slice(&key(number ^ position << 48)[..piece.len()]);
    }
}

fn load(db: &Db, keyspace: &Keyspace, entries: u64, value_bytes: usize) -> Result<()> {
    let mut value = vec![0; value_bytes];
    for number in 0..entries {
        fill_value(number, &mut value);
        keyspace.insert(key(number), &value)?;
    }
    db.wait_idle()
}

fn read(keyspace: &Keyspace, entries: u64) -> Result<u64> {
    let start = Instant::now();
    let mut value = Vec::new();
    let mut count = 0;
    while start.elapsed() < READ_FOR {
        for _ in 0..100 {
            count += 1;
            let number = key(count)[0..8]
                .iter()
                .fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
            if !keyspace.get_into(key(number % entries), &mut value)? {
                return Err(Error::invalid_argument("an entry is missing"));
            }
        }
    }
    Ok(count)
}

fn scan(keyspace: &Keyspace) -> Result<u64> {
    let start = Instant::now();
    let mut cursor = keyspace.cursor()?;
    let mut count = 0;
    let mut valid = cursor.seek_to_first()?;
    while valid && (count % 1000 != 0 || start.elapsed() < READ_FOR / 4) {
        count += 1;
        valid = cursor.next()?;
    }
    Ok(count)
}

fn run(folder: &Path, mebibytes: u64, budget_mebibytes: u64, value_bytes: u64) -> Result<()> {
    let entries = (mebibytes << 20) / (16 + value_bytes);
    let mut options = Options::default();
    options.error_if_exists = true;
    options.memory_budget = budget_mebibytes << 20;
    let db = Db::open(folder, options)?;
    let keyspace = db.keyspace("memory")?;
    let peaks = Peaks::default();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                peaks.look(&db);
                thread::sleep(Duration::from_millis(5));
            }
        });
        let work = || {
            let start = Instant::now();
            load(
                &db,
                &keyspace,
                entries,
                usize::try_from(value_bytes).unwrap_or(0),
            )?;
            peaks.report("load", entries, start, &db);
            let start = Instant::now();
            peaks.report("get", read(&keyspace, entries)?, start, &db);
            let start = Instant::now();
            peaks.report("scan", scan(&keyspace)?, start, &db);
            Ok(())
        };
        let outcome: Result<()> = work();
        is_over.store(true, Ordering::Relaxed);
        outcome
    })?;
    println!("now {:?}", db.memory());
    drop(keyspace);
    db.close()
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |position: usize| arguments.get(position)?.parse::<u64>().ok();
    let (Some(folder), Some(mebibytes), Some(budget)) = (arguments.first(), number(1), number(2))
    else {
        eprintln!("usage: memory DIR MEBIBYTES BUDGET_MEBIBYTES [VALUE_BYTES]");
        std::process::exit(2);
    };
    let value_bytes = number(3).unwrap_or(DEFAULT_VALUE_BYTES);
    if let Err(error) = run(Path::new(folder), mebibytes, budget, value_bytes) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

//! Samples the disk space under uniform overwrites of a fixed set of keys: once per second, the bytes of all files
//! over the live bytes. Prints the longest stall and the I/O by purpose.
//!
//!     cargo run --release -p windrow-bench --example space [keys] [updates per key] [value bytes]
//!         [max_space_amp] [large_from]

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a measurement runs on the real file system, in real time, and prints"
)]

use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use windrow::{Db, Options, Stats};

/// The allowance beyond `max_space_amp`: logs, the data of memtables, and files that compactions and garbage
/// collection have not replaced yet.
const SLACK_BYTES: u64 = 512 << 20;

const MIB: f64 = (1 << 20) as f64;

/// The key of a number; keys are in another order than numbers.
fn key(number: u64) -> [u8; 16] {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    u128::from(mixed ^ (mixed >> 32)).to_be_bytes()
}

/// A reproducible random sequence (`SplitMix64`).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(mixed ^ (mixed >> 31)) * u128::from(end)) >> 64) as u64
    }
}

/// The bytes of all files in `folder`; a file that disappears counts as 0.
fn bytes_of(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let lengths = entries.filter_map(|entry| entry.metadata().ok());
    lengths.map(|file| file.len()).sum()
}

struct Samples {
    worst: u64,
    /// The most seconds in a row without a write.
    hole: f64,
}

fn sample(folder: &Path, live: u64, written: &AtomicU64, done: &AtomicBool) -> Samples {
    let mut samples = Samples {
        worst: 0,
        hole: 0.0,
    };
    let (mut last, mut since) = (0, Instant::now());
    for tick in 1_u64.. {
        std::thread::sleep(Duration::from_millis(50));
        if done.load(Ordering::Relaxed) {
            break;
        }
        let now = written.load(Ordering::Relaxed);
        if now != last {
            (last, since) = (now, Instant::now());
        }
        samples.hole = samples.hole.max(since.elapsed().as_secs_f64());
        if tick.is_multiple_of(20) {
            let bytes = bytes_of(folder);
            samples.worst = samples.worst.max(bytes);
            let ratio = bytes as f64 / live as f64;
            println!("{ratio:8.3} of the live bytes on disk, {now} updates");
        }
    }
    samples
}

fn print_io(before: &Stats, after: &Stats) {
    let part = |name: &str, of: fn(&Stats) -> u64| {
        println!(
            "{name:>16} {:10.0} MiB",
            (of(after) - of(before)) as f64 / MIB
        );
    };
    part("user bytes", |stats| stats.user_bytes);
    part("write-ahead log", |stats| stats.wal_bytes);
    part("value logs", |stats| stats.value_log_bytes);
    part("flushes", |stats| {
        stats.flush_bytes + stats.transient_log_bytes_written
    });
    part("compactions", |stats| stats.compaction_bytes_written);
    part("garbage collection", |stats| stats.gc_bytes_written);
    part("  read by it", |stats| stats.gc_bytes_read);
    let written = after.written_bytes() - before.written_bytes();
    let given = after.user_bytes - before.user_bytes;
    println!(
        "written per user byte: {:.2}",
        written as f64 / given as f64
    );
    println!(
        "garbage collections: {}",
        after.garbage_collections - before.garbage_collections
    );
    for stall in after.stalls.iter().filter(|stall| stall.micros > 0) {
        println!(
            "stalls by {}: {} times, {} ms, at most {} ms",
            stall.cause.name(),
            stall.delays + stall.stops,
            stall.micros / 1000,
            stall.longest_micros / 1000
        );
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut options = Options::default();
    let mut number = |default: u64| arguments.next().map_or(Ok(default), |text| text.parse());
    let (keys, updates, value_bytes) = (number(5_000_000)?, number(6)?, number(100)?);
    if let Some(text) = arguments.next() {
        options.keyspace.max_space_amp = text.parse()?;
    }
    if let Some(text) = arguments.next() {
        options.keyspace.large_from = text.parse()?;
    }
    let amplification = options.keyspace.max_space_amp;
    let folder = tempfile::tempdir()?;
    let db = Db::open(folder.path(), options)?;
    let keyspace = db.keyspace("space")?;
    let mut value = vec![0; usize::try_from(value_bytes)?];
    let mut random = Random(1);
    let mut fresh = |value: &mut Vec<u8>| {
        for word in value.chunks_mut(8) {
            let bytes = random.below(u64::MAX).to_le_bytes();
            word.copy_from_slice(&bytes[..word.len()]);
        }
    };
    for number in 0..keys {
        fresh(&mut value);
        keyspace.insert(key(number), &value)?;
    }
    db.wait_idle()?;
    let live = keys * (16 + value_bytes);
    let allowed = amplification * live as f64 + SLACK_BYTES as f64;
    let (written, done) = (AtomicU64::new(0), AtomicBool::new(false));
    let (before, start) = (db.stats(), Instant::now());
    let mut chosen = Random(2);
    let samples = std::thread::scope(|scope| -> Result<Samples, Box<dyn Error>> {
        let sampler = scope.spawn(|| sample(folder.path(), live, &written, &done));
        let outcome = (0..updates * keys).try_for_each(|_| {
            fresh(&mut value);
            written.fetch_add(1, Ordering::Relaxed);
            keyspace.insert(key(chosen.below(keys)), &value)
        });
        done.store(true, Ordering::Relaxed);
        let samples = sampler.join().map_err(|_| "the sampler panicked")?;
        outcome?;
        Ok(samples)
    })?;
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "most: {:.3} of the live bytes; {:.0} MiB of {:.0} MiB allowed",
        samples.worst as f64 / live as f64,
        samples.worst as f64 / MIB,
        allowed / MIB,
    );
    println!(
        "{:.0} updates per second; longest without one: {:.2} s",
        (updates * keys) as f64 / seconds,
        samples.hole
    );
    print_io(&before, &db.stats());
    if samples.worst as f64 > allowed {
        return Err("more than allowed was on disk".into());
    }
    Ok(())
}

//! Times gets of a hot set, alone and beside a compaction of everything, mostly cold.
//!
//!     cargo build --release -p windrow-bench --example beside_compaction
//!     target/release/examples/beside_compaction DIR
//!
//! The first run loads a database into DIR. Each run overwrites a few entries all over the keys, drops the files from
//! the page cache, gets the hot keys a few times, and then gets random ones while another thread compacts all keys. The
//! hot keys are one range, or `--scattered`. For data beyond memory, run it in a memory cgroup that holds the hot set
//! and not the data; with `--all-hot` everything is read before, which is for data that fit.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a measurement runs on the real file system, in real time, and prints"
)]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use windrow::vfs::{Advice, OpenMode, OsVfs, Vfs};
use windrow::{Db, Keyspace, Options};

/// Times gets beside a compaction.
#[derive(Debug, Parser)]
struct Args {
    /// The folder of the database.
    folder: PathBuf,
    /// Entries in it.
    #[arg(long, default_value_t = 10_000_000)]
    records: u64,
    /// Bytes of a value; keys have 12.
    #[arg(long, default_value_t = 200)]
    value_bytes: usize,
    /// Hot keys.
    #[arg(long, default_value_t = 500_000)]
    hot: u64,
    /// The hot keys lie all over the keys, not in one range.
    #[arg(long)]
    scattered: bool,
    /// Reads everything before.
    #[arg(long)]
    all_hot: bool,
}

/// How long gets are timed without a compaction.
const ALONE: Duration = Duration::from_secs(3);

/// One in this many entries is overwritten before a compaction.
const ENTRIES_PER_CHANGE: usize = 500;

fn key(number: u64) -> [u8; 12] {
    let mut key = *b"key:00000000";
    key[4..].copy_from_slice(&number.to_be_bytes());
    key
}

fn mixed(number: u64) -> u64 {
    let mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ (mixed >> 29)
}

/// Fills `value` with incompressible bytes that follow from `number`.
fn fill(value: &mut [u8], number: u64) {
    for (word, place) in value.chunks_mut(8).zip(number.wrapping_mul(1 << 20)..) {
        word.copy_from_slice(&mixed(place).to_le_bytes()[..word.len()]);
    }
}

/// Writes the entries of `numbers`.
fn write(db: &Db, args: &Args, numbers: impl Iterator<Item = u64>) -> windrow::Result<()> {
    let keyspace = db.keyspace("map")?;
    let mut value = vec![0; args.value_bytes];
    for number in numbers {
        fill(&mut value, number);
        keyspace.insert(key(number), &value)?;
    }
    db.flush()?;
    db.wait_idle()
}

/// Drops all files of `folder` from the page cache. No process may map them.
fn forget(folder: &Path) -> Result<(), Box<dyn Error>> {
    for name in OsVfs.list(folder)? {
        let file = OsVfs.open(&folder.join(name), OpenMode::Read)?;
        file.sync_data()?;
        file.advise(0..file.length()?, Advice::DontNeed);
    }
    Ok(())
}

/// The key of the hot number `number`.
fn hot_key(args: &Args, number: u64) -> [u8; 12] {
    let hot = number % args.hot;
    key(if args.scattered {
        mixed(hot) % args.records
    } else {
        args.records / 2 + hot
    })
}

/// Gets random hot keys until `is_over`. Prints the rate.
fn gets(
    name: &str,
    args: &Args,
    keyspace: &Keyspace,
    is_over: impl Fn(Duration) -> bool,
) -> windrow::Result<()> {
    let start = Instant::now();
    let mut count = 0_u64;
    let mut slowest = Duration::ZERO;
    while count & 63 != 0 || !is_over(start.elapsed()) {
        let before = Instant::now();
        let value = keyspace.get(hot_key(args, mixed(count)))?;
        assert!(value.is_some(), "a hot key is absent");
        slowest = slowest.max(before.elapsed());
        count += 1;
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{name:<8} {:>10.0} gets/s over {seconds:.1} s, the slowest {:.1} ms",
        count as f64 / seconds,
        slowest.as_secs_f64() * 1e3
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let mut options = Options::default();
    options.background_threads = 1;
    options.keyspace.medium_from = u64::MAX;
    options.keyspace.large_from = u64::MAX;
    if !args.folder.join("CURRENT").exists() {
        let db = Db::open(&args.folder, options.clone())?;
        write(&db, &args, 0..args.records)?;
        db.keyspace("map")?.compact_range::<&[u8]>(..)?;
        db.close()?;
    }
    let db = Db::open(&args.folder, options.clone())?;
    write(&db, &args, (0..args.records).step_by(ENTRIES_PER_CHANGE))?;
    db.close()?;
    forget(&args.folder)?;

    let db = Db::open(&args.folder, options)?;
    let keyspace = db.keyspace("map")?;
    if args.all_hot {
        let mut cursor = keyspace.cursor()?;
        let mut is_valid = cursor.seek_to_first()?;
        while is_valid {
            cursor.value()?;
            is_valid = cursor.next()?;
        }
    }
    for number in (0..args.hot).chain(0..args.hot) {
        keyspace.get(hot_key(&args, number))?;
    }
    gets("alone", &args, &keyspace, |elapsed| elapsed >= ALONE)?;
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let compaction = scope.spawn(|| {
            let start = Instant::now();
            let outcome = keyspace.compact_range::<&[u8]>(..);
            is_done.store(true, Ordering::Relaxed);
            println!("compaction of {:.1} s", start.elapsed().as_secs_f64());
            outcome
        });
        gets("beside", &args, &keyspace, |_| {
            is_done.load(Ordering::Relaxed)
        })?;
        compaction
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    gets("after", &args, &keyspace, |elapsed| elapsed >= ALONE)?;
    db.close()?;
    Ok(())
}

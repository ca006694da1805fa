//! Times scans over separated values: forward from random keys, with values, once with a cold page cache and once
//! with a warm one.
//!
//!     cargo run --release -p windrow-bench --example scans -- DIR --records 2000000 --value-bytes 1004
//!
//! The example loads a database into DIR in random order of keys, unless DIR holds one. A second run, with
//! `--buffered` or another build, reads the same database. Each cold scan first drops its files from the page
//! cache. Under callgrind, `--hot-only` counts instructions:
//!
//!     valgrind --tool=callgrind --toggle-collect='*scan_once*' target/release/examples/scans DIR --hot-only

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a measurement runs on the real file system, in real time, and prints"
)]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Parser;
use windrow::vfs::{Advice, OpenMode, OsVfs, Vfs};
use windrow::{BlockSource, Db, Keyspace, MediumInPlace, Options};

/// Times scans over separated values.
#[derive(Debug, Parser)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "flags of a command line that mean nothing together"
)]
struct Args {
    /// The folder of the database.
    folder: PathBuf,
    /// Entries in it.
    #[arg(long, default_value_t = 2_000_000)]
    records: u64,
    /// Bytes of a value; keys have 24.
    #[arg(long, default_value_t = 1004)]
    value_bytes: usize,
    /// Never puts medium values in place when loading.
    #[arg(long)]
    mediums_apart: bool,
    /// Puts all values in place when loading.
    #[arg(long, conflicts_with = "mediums_apart")]
    all_in_place: bool,
    /// Reads by `pread` instead of mappings.
    #[arg(long)]
    buffered: bool,
    /// Entries in a scan.
    #[arg(long, default_value_t = 100)]
    entries: u64,
    /// Scans of each kind.
    #[arg(long, default_value_t = 200)]
    scans: u64,
    /// Leaves out the cold scans, and times the hot ones once.
    #[arg(long)]
    hot_only: bool,
}

/// The key of a number; keys are in another order than numbers.
fn key(number: u64) -> [u8; 24] {
    let mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut key = [b'k'; 24];
    key[..8].copy_from_slice(&(mixed ^ (mixed >> 32)).to_be_bytes());
    key
}

/// Fills `value` with incompressible bytes that follow from `number`.
fn fill(value: &mut [u8], number: u64) {
    let mut state = number;
    for word in value.chunks_mut(8) {
        state = state
            .wrapping_add(0x9e37_79b9_7f4a_7c15)
            .wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let bytes = (state ^ (state >> 29)).to_le_bytes();
        word.copy_from_slice(&bytes[..word.len()]);
    }
}

fn load(args: &Args, options: &Options) -> Result<(), Box<dyn Error>> {
    let db = Db::open(&args.folder, options.clone())?;
    let keyspace = db.keyspace("scans")?;
    let mut value = vec![0; args.value_bytes];
    let start = Instant::now();
    for number in 0..args.records {
        fill(&mut value, number);
        keyspace.insert(key(number), &value)?;
    }
    db.flush()?;
    db.wait_idle()?;
    println!("loaded in {:.0} s", start.elapsed().as_secs_f64());
    db.close()?;
    Ok(())
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

/// Reads `entries` entries from `from`. Returns the bytes of their values.
#[inline(never)]
fn scan_once(keyspace: &Keyspace, from: &[u8], entries: u64) -> windrow::Result<u64> {
    let mut cursor = keyspace.cursor()?;
    let mut bytes = 0;
    let mut is_valid = cursor.seek(from)?;
    for _ in 0..entries {
        if !is_valid {
            break;
        }
        bytes += cursor.value()?.len() as u64;
        is_valid = cursor.next()?;
    }
    Ok(bytes)
}

/// Scans from one random key after another, each with a keyspace of `keyspace`. Prints the times.
fn scans(
    name: &str,
    args: &Args,
    mut keyspace: impl FnMut() -> Result<(Option<Db>, Keyspace), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let mut times = Vec::new();
    let mut bytes = 0;
    for scan in 0..args.scans {
        let (_db, keyspace) = keyspace()?;
        let from = key(scan.wrapping_mul(0x2545_f491_4f6c_dd1d) % args.records);
        let start = Instant::now();
        bytes += scan_once(&keyspace, &from, args.entries)?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    let total: Duration = times.iter().sum();
    let at = |quantile: usize| times[times.len() * quantile / 100].as_secs_f64() * 1e6;
    let entries = args.scans * args.entries;
    println!(
        "{name}: {:.0} ns per entry; a scan {:.0} us on average, median {:.0}, p95 {:.0}; {} bytes of values",
        total.as_nanos() as f64 / entries as f64,
        total.as_secs_f64() * 1e6 / args.scans as f64,
        at(50),
        at(95),
        bytes
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let mut options = Options::default();
    if args.mediums_apart {
        options.keyspace.medium_in_place = MediumInPlace::Never;
    }
    if args.all_in_place {
        options.keyspace.medium_from = u64::MAX;
        options.keyspace.large_from = u64::MAX;
    }
    if args.buffered {
        options.block_source = BlockSource::Buffered;
    }
    if !args.folder.join("CURRENT").exists() {
        load(&args, &options)?;
    }
    options.background_threads = 1;
    let open = || -> Result<(Db, Keyspace), Box<dyn Error>> {
        let db = Db::open_read_only(&args.folder, options.clone())?;
        let keyspace = db.keyspace("scans")?;
        Ok((db, keyspace))
    };
    if !args.hot_only {
        scans("cold", &args, || {
            forget(&args.folder)?;
            // The time does not include the reads of the open and of the upper index.
            let (db, keyspace) = open()?;
            keyspace.get(b"k")?;
            Ok((Some(db), keyspace))
        })?;
    }
    let (_db, keyspace) = open()?;
    let hot = |name| scans(name, &args, || Ok((None, keyspace.clone())));
    hot("first")?;
    if !args.hot_only {
        for _ in 0..5 {
            hot("hot")?;
        }
    }
    Ok(())
}

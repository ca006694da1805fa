//! Counts what a get reads in a tree of many tables, under a small memory budget and without a limit.
//!
//!     cargo run --release -p windrow-bench --example many_tables -- DIR
//!
//! The example loads a database into DIR in random order of keys, unless DIR holds one. Its tables are small, but each
//! has several pieces of filters and partitions of its index, as large tables have. Filters and indexes of all tables
//! together are much larger than the budget.
//!
//! A *cold* get finds no page in memory: the file system of the example reports that none is, so each block is a
//! request. A *warm* get finds all tables in the page cache; a mapping serves it then, so only other reads are requests.
//! Both follow gets that are not counted, so that tables are open. The first gets after an open have a row of their own.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a measurement runs on the real file system, in real time, and prints"
)]

use std::error::Error;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use clap::Parser;
use windrow::vfs::{Advice, File, LockGuard, OpenMode, OsVfs, Region, RegionBytes, Vfs};
use windrow::{Db, Keyspace, Options};

/// Counts what a get reads in a tree of many tables.
#[derive(Debug, Clone, Parser)]
struct Args {
    /// The folder of the database.
    folder: PathBuf,
    /// Entries in it.
    #[arg(long, default_value_t = 28_000_000)]
    records: u64,
    /// The small memory budget, in MiB.
    #[arg(long, default_value_t = 102)]
    budget: u64,
    /// Gets of each kind that are counted.
    #[arg(long, default_value_t = 20_000)]
    gets: u64,
    /// Gets before the first that is counted.
    #[arg(long, default_value_t = 150_000)]
    gets_before: u64,
}

/// What the engine asked of the files of tables.
#[derive(Debug, Default)]
struct Requests {
    /// Whether no page of a table is in memory.
    is_cold: AtomicBool,
    opens: AtomicU64,
    reads: AtomicU64,
    bytes: AtomicU64,
}

impl Requests {
    /// The opens, reads and bytes until now.
    fn count(&self) -> [u64; 3] {
        [&self.opens, &self.reads, &self.bytes].map(|count| count.load(Ordering::Relaxed))
    }
}

/// The real file system, which counts requests to tables.
#[derive(Debug, Clone, Default)]
struct CountingVfs(Arc<Requests>);

impl Vfs for CountingVfs {
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        OsVfs.create_dir_all(path)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        OsVfs.create(path)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let file = OsVfs.open(path, mode)?;
        if path
            .extension()
            .is_none_or(|extension| extension != "table")
        {
            return Ok(file);
        }
        self.0.opens.fetch_add(1, Ordering::Relaxed);
        let requests = Arc::clone(&self.0);
        Ok(Arc::new(CountingFile { file, requests }))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        OsVfs.list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        OsVfs.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        OsVfs.remove(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        OsVfs.sync_dir(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn LockGuard>> {
        OsVfs.lock(path)
    }

    fn lock_shared(&self, path: &Path) -> io::Result<Box<dyn LockGuard>> {
        OsVfs.lock_shared(path)
    }
}

#[derive(Debug)]
struct CountingFile {
    file: Arc<dyn File>,
    requests: Arc<Requests>,
}

impl File for CountingFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self.file.read_at(buffer, offset)?;
        self.requests.reads.fetch_add(1, Ordering::Relaxed);
        let bytes = u64::try_from(read).unwrap_or(0);
        self.requests.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(read)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(buffer, offset)
    }

    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn reserve(&self, offset: u64, length: u64) -> io::Result<()> {
        self.file.reserve(offset, length)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn advise(&self, range: Range<u64>, advice: Advice) {
        self.file.advise(range, advice);
    }

    fn is_resident(&self, offset: u64) -> bool {
        !self.requests.is_cold.load(Ordering::Relaxed) && self.file.is_resident(offset)
    }

    fn map(&self, length: u64) -> io::Result<Arc<Region>> {
        let region = CountingRegion {
            region: self.file.map(length)?,
            requests: Arc::clone(&self.requests),
        };
        Ok(Arc::new(Region::new(region)))
    }
}

#[derive(Debug)]
struct CountingRegion {
    region: Arc<Region>,
    requests: Arc<Requests>,
}

impl RegionBytes for CountingRegion {
    fn bytes(&self) -> &[u8] {
        self.region.bytes()
    }

    fn is_resident(&self, range: Range<usize>) -> bool {
        !self.requests.is_cold.load(Ordering::Relaxed) && self.region.is_resident(range)
    }
}

/// Options of a tree whose tables are 128 times smaller than by default, with blocks 32 times smaller.
fn options() -> Options {
    let mut options = Options::default();
    options.keyspace.file_bytes = 128 << 10;
    options.keyspace.base_bytes = 2 << 20;
    options.keyspace.memtable_bytes = 1 << 20;
    options.keyspace.block_bytes = 128;
    options.keyspace.bits_per_key = 64.0;
    options
}

/// The key of a number; keys are in another order than numbers.
fn key(number: u64) -> [u8; 16] {
    let mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut key = [b'k'; 16];
    key[..8].copy_from_slice(&(mixed ^ (mixed >> 32)).to_be_bytes());
    key
}

fn load(args: &Args) -> Result<(), Box<dyn Error>> {
    let db = Db::open(&args.folder, options())?;
    let keyspace = db.keyspace("tables")?;
    let start = Instant::now();
    for number in 0..args.records {
        keyspace.insert(key(number), [b'v'; 40])?;
    }
    db.flush()?;
    db.wait_idle()?;
    println!("loaded in {:.0} s", start.elapsed().as_secs_f64());
    db.close()?;
    Ok(())
}

/// Reads all files of the database into the page cache.
fn warm(folder: &Path) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 20];
    for name in OsVfs.list(folder)? {
        let file = OsVfs.open(&folder.join(name), OpenMode::Read)?;
        let mut offset = 0;
        loop {
            match file.read_at(&mut buffer, offset)? {
                0 => break,
                read => offset += u64::try_from(read).unwrap_or(0),
            }
        }
    }
    Ok(())
}

/// The open descriptors of this process.
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

/// One tree with its gets.
struct Gets<'a> {
    args: &'a Args,
    db: &'a Db,
    keyspace: &'a Keyspace,
    requests: &'a Requests,
    /// The number of gets until now, which decides the next key.
    next: u64,
    descriptors_max: usize,
}

impl Gets<'_> {
    /// Gets `count` random keys that exist, or else are absent.
    fn run(&mut self, count: u64, exist: bool) -> Result<(), Box<dyn Error>> {
        let mut value = Vec::new();
        for _ in 0..count {
            self.next += 1;
            let number = self.next.wrapping_mul(0x2545_f491_4f6c_dd1d) % self.args.records;
            let mut key = key(number);
            if !exist {
                key[15] = b'a';
            }
            if self.keyspace.get_into(key, &mut value)? != exist {
                return Err("a get has a wrong answer".into());
            }
            if self.next.is_multiple_of(1024) {
                self.descriptors_max = self.descriptors_max.max(descriptors());
            }
        }
        Ok(())
    }

    /// Counts the requests of gets, and prints a row.
    fn measure(&mut self, name: &str, exist: bool) -> Result<(), Box<dyn Error>> {
        let (before, stats) = (self.requests.count(), self.db.stats());
        let start = Instant::now();
        self.run(self.args.gets, exist)?;
        let micros = start.elapsed().as_secs_f64() * 1e6;
        let after = self.requests.count();
        let pieces = self.db.stats().filter_piece_loads - stats.filter_piece_loads;
        let gets = self.args.gets as f64;
        let [opens, reads, bytes] =
            std::array::from_fn(|kind| (after[kind] - before[kind]) as f64 / gets);
        println!(
            "| {name}, {} | {reads:.2} | {:.1} KiB | {:.2} | {opens:.2} | {:.1} us |",
            if exist { "found" } else { "absent" },
            bytes / 1024.0,
            pieces as f64 / gets,
            micros / gets,
        );
        Ok(())
    }
}

fn measure(args: &Args, budget: u64) -> Result<(), Box<dyn Error>> {
    let requests = Arc::new(Requests::default());
    let mut options = options().with_vfs(Arc::new(CountingVfs(Arc::clone(&requests))));
    options.memory_budget = budget;
    let db = Db::open_read_only(&args.folder, options)?;
    let keyspace = db.keyspace("tables")?;
    println!("\n{} MiB (0: no limit)\n", budget >> 20);
    println!("| gets | requests | bytes | pieces of filters | opens of files | time |");
    println!("|---|---|---|---|---|---|");
    let mut gets = Gets {
        args,
        db: &db,
        keyspace: &keyspace,
        requests: &requests,
        next: 0,
        descriptors_max: 0,
    };
    requests.is_cold.store(true, Ordering::Relaxed);
    gets.measure("first", true)?;
    gets.run(args.gets_before, true)?;
    gets.measure("cold", true)?;
    gets.measure("cold", false)?;
    requests.is_cold.store(false, Ordering::Relaxed);
    warm(&args.folder)?;
    gets.run(args.gets_before, true)?;
    gets.measure("warm", true)?;
    gets.measure("warm", false)?;
    let memory = db.memory();
    println!(
        "\n{} MiB of tables in memory, {} of all; at most {} descriptors",
        memory.tables >> 20,
        memory.total >> 20,
        gets.descriptors_max
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    if !args.folder.join("CURRENT").exists() {
        load(&args)?;
    }
    let db = Db::open_read_only(&args.folder, options())?;
    for level in db
        .stats()
        .keyspaces
        .iter()
        .flat_map(|keyspace| &keyspace.levels)
    {
        println!(
            "level {}: {} tables with {} segments, {} MB",
            level.level,
            level.files,
            level.segments,
            level.bytes / 1_000_000
        );
    }
    drop(db);
    measure(&args, 0)?;
    measure(&args, args.budget << 20)
}

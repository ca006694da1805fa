//! Instructions per operation, counted exactly by valgrind's callgrind.
//!
//! `cargo run --release -p windrow-bench --example cost` prepares a database of one run, or of `--runs`, and prints a table; it
//! needs `valgrind`. Names of operations pick some of them. The example counts each operation twice, with and
//! without the operation itself, and divides the difference. The result therefore does not include the open of the
//! database, the first verification of its blocks, and the making of keys. It includes the background work of an
//! operation. Lookups in new blocks are counted alone, without background work.
//!
//! `--source-files` also prints the source files in which the instructions are. It needs `llvm-addr2line` or `addr2line`.
//!
//! `--check` compares with a recorded budget, and fails if an operation takes more. Counts of the profile of tests, in which the
//! assertions count as well, have a budget of their own: so tests can check it without a build for release.

#![expect(clippy::print_stdout, reason = "prints its table")]

mod source_files;

use std::error::Error;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::{Parser, ValueEnum};
use source_files::Counted;
use windrow::{Db, Keyspace, KeyspaceOptions, Options};
use windrow_bench::{DataSet, ValueSizes};

/// 16-byte keys and 100-byte values.
const KEY_BYTES: usize = 16;
const VALUE_BYTES: usize = 100;

/// The folder of the database for reads.
const PREPARED: &str = "prepared";

/// Counts the instructions of single operations.
#[derive(Debug, Parser)]
struct Args {
    /// The operations to count; all by default.
    operations: Vec<Operation>,
    /// Entries in the database.
    #[arg(long, default_value_t = 1_000_000)]
    entries: u64,
    /// The number of repetitions.
    #[arg(long, default_value_t = 100_000)]
    repeat: u64,
    /// Sorted runs in the database for reads: beside the one with all entries, each updates a hundredth of them.
    #[arg(long, default_value_t = 1)]
    runs: u16,
    /// Times one operation of this number; 0 times none.
    #[arg(long, default_value_t = Options::default().latency_interval)]
    latency_interval: u32,
    /// Runs the one operation in this folder; this is the process under callgrind.
    #[arg(long, hide = true)]
    folder: Option<PathBuf>,
    /// Leaves the operation itself out.
    #[arg(long, hide = true)]
    idle: bool,
    /// Keeps callgrind's output in this file, for the instructions of each function.
    #[arg(long)]
    keep: Option<PathBuf>,
    /// Prints the source files of the engine, and what else has the instructions.
    #[arg(long, conflicts_with_all = ["keep", "check"])]
    source_files: bool,
    /// Counts few operations, and fails if one takes more instructions than its recorded budget.
    #[arg(long, conflicts_with_all = ["entries", "repeat"])]
    check: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Operation {
    /// Insertion of random keys, flushes included.
    Put,
    /// A lookup of an existing key.
    Get,
    /// A lookup of an absent key.
    GetAbsent,
    /// A lookup of a key in a full memtable.
    GetMemtable,
    /// A seek to a random key.
    Seek,
    /// A step forward.
    Next,
    /// A step forward, with reads of key and value.
    NextValue,
    /// A step backward.
    Prev,
    /// The first lookup in a block that this process has written.
    FirstGet,
    /// The second lookup in such a block, of another key.
    SecondGet,
}

/// The number of entries and of repetitions under `--check`.
const CHECKED: u64 = 20_000;

/// The most instructions of an operation under `--check`, in the profile of tests and for release: what was counted when it was
/// recorded, and a fifth and a tenth for what compilers inline.
const BUDGET: [(Operation, [u64; 2]); 7] = [
    (Operation::Put, [7430, 4400]),
    (Operation::Get, [20200, 2010]),
    (Operation::GetAbsent, [7050, 810]),
    (Operation::Seek, [3100, 1890]),
    (Operation::Next, [1040, 142]),
    (Operation::NextValue, [1620, 210]),
    (Operation::Prev, [360, 175]),
];

/// Smaller parts of an operation are shown together.
const FILE_PART_MIN: f64 = 0.01;

/// A further run updates one entry of so many.
const UPDATED: u64 = 100;

/// A block has fewer entries of these sizes.
const ENTRIES_PER_BLOCK: usize = 40;

impl Operation {
    /// Runs the operation `repeat` times, or with `is_idle` everything except for the operation.
    fn run(
        self,
        folder: &Path,
        options: Options,
        data: &DataSet,
        repeat: u64,
        is_idle: bool,
    ) -> Result<(), Box<dyn Error>> {
        if self.is_in_new_blocks() {
            return self.get_in_new_blocks(folder, options, data);
        }
        // Operations that write have their own database.
        let scratch = tempfile::tempdir_in(folder)?;
        let prepared = folder.join(PREPARED);
        let folder = match self {
            Self::Put | Self::GetMemtable => scratch.path(),
            _ => &prepared,
        };
        let db = Db::open(folder, options)?;
        let keyspace = db.keyspace("cost")?;
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let mut cursor = keyspace.cursor()?;
        if self == Self::GetMemtable {
            // Most of a memtable's 64 MiB.
            for step in 0..400_000 {
                data.key(data.random_index(0, step), &mut key);
                data.value(&key, 0, &mut value);
                keyspace.insert(&key, &value)?;
            }
        } else {
            // The setup verifies every block before the count.
            let mut is_valid = cursor.seek_to_first()?;
            while is_valid {
                is_valid = cursor.next()?;
            }
            if self == Self::Prev {
                cursor.seek_to_last()?;
            } else {
                cursor.seek_to_first()?;
            }
        }
        let mut found = false;
        for step in 0..repeat {
            let index = data.random_index(0, step);
            match self {
                Self::GetAbsent => data.missing_key(index, &mut key),
                Self::Next | Self::NextValue | Self::Prev | Self::FirstGet | Self::SecondGet => {}
                _ => data.key(index, &mut key),
            }
            if self == Self::Put {
                data.value(&key, 0, &mut value);
            }
            if is_idle {
                black_box((&key, &value));
                continue;
            }
            match self {
                Self::Put => keyspace.insert(&key, &value)?,
                Self::Get | Self::GetMemtable | Self::GetAbsent => {
                    found ^= keyspace.get_into(&key, &mut value)?;
                }
                Self::Seek => found ^= cursor.seek(&key)?,
                Self::Next => found ^= cursor.next()?,
                Self::Prev => found ^= cursor.prev()?,
                Self::NextValue => {
                    found ^= cursor.next()?;
                    black_box((cursor.key(), cursor.value()?));
                }
                Self::FirstGet | Self::SecondGet => {}
            }
        }
        black_box(found);
        drop(cursor);
        db.close()?;
        Ok(())
    }

    fn is_in_new_blocks(self) -> bool {
        matches!(self, Self::FirstGet | Self::SecondGet)
    }

    /// Looks up a key in each block of a new database.
    fn get_in_new_blocks(
        self,
        folder: &Path,
        options: Options,
        data: &DataSet,
    ) -> Result<(), Box<dyn Error>> {
        let scratch = tempfile::tempdir_in(folder)?;
        let db = Db::open(scratch.path(), options)?;
        let keyspace = db.keyspace("cost")?;
        let mut keys = fill(&keyspace, data)?;
        keys.sort();
        let mut value = Vec::new();
        if self == Self::SecondGet {
            for key in keys.iter().step_by(ENTRIES_PER_BLOCK) {
                black_box(keyspace.get_into(key, &mut value)?);
            }
        }
        let first = usize::from(self == Self::SecondGet);
        counted(&keyspace, keys.iter().skip(first), &mut value)?;
        drop(keyspace);
        db.close()?;
        Ok(())
    }
}

/// What callgrind counts of the lookups in new blocks: the fill before them varies by more than they cost.
#[inline(never)]
fn counted<'a>(
    keyspace: &Keyspace,
    keys: impl Iterator<Item = &'a Vec<u8>>,
    value: &mut Vec<u8>,
) -> windrow::Result<()> {
    for key in keys.step_by(ENTRIES_PER_BLOCK) {
        black_box(keyspace.get_into(key, value)?);
    }
    Ok(())
}

/// Adds sorted runs until there are `runs`.
fn add_runs(db: &Db, keyspace: &Keyspace, data: &DataSet, runs: u16) -> windrow::Result<()> {
    let (mut key, mut value) = (Vec::new(), Vec::new());
    for run in 1..runs {
        for step in 0..data.num().div_ceil(UPDATED) {
            data.key(data.random_index(run.into(), step), &mut key);
            data.value(&key, run, &mut value);
            keyspace.insert(&key, &value)?;
        }
        db.flush()?;
    }
    Ok(())
}

/// Writes all entries into one sorted run. Returns their keys.
fn fill(keyspace: &Keyspace, data: &DataSet) -> windrow::Result<Vec<Vec<u8>>> {
    let (mut keys, mut value) = (Vec::new(), Vec::new());
    for index in 0..data.num() {
        let mut key = Vec::new();
        data.key(index, &mut key);
        data.value(&key, 0, &mut value);
        keyspace.insert(&key, &value)?;
        keys.push(key);
    }
    keyspace.compact_range::<&[u8]>(..)?;
    Ok(keys)
}

/// What callgrind counts of `repeat` operations.
fn count(
    args: &Args,
    folder: &Path,
    operation: Operation,
    repeat: u64,
    is_idle: bool,
) -> Result<Counted, Box<dyn Error>> {
    let name = operation
        .to_possible_value()
        .ok_or("an operation without a name")?;
    let output = match &args.keep {
        Some(kept) => kept.clone(),
        None => folder.join(if is_idle { "without.out" } else { "with.out" }),
    };
    let done = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg(format!("--callgrind-out-file={}", output.display()))
        .args(source_files::FORM.iter().filter(|_| args.source_files))
        .args(
            operation
                .is_in_new_blocks()
                .then_some("--toggle-collect=*cost::counted*"),
        )
        .arg(std::env::current_exe()?)
        .arg(name.get_name())
        .arg(format!("--entries={}", args.entries))
        .arg(format!("--repeat={repeat}"))
        .arg(format!("--latency-interval={}", args.latency_interval))
        .arg("--folder")
        .arg(folder)
        .args(is_idle.then_some("--idle"))
        .output()
        .map_err(|error| format!("valgrind cannot be started: {error}"))?;
    let text = String::from_utf8_lossy(&done.stderr).into_owned();
    if !done.status.success() {
        return Err(format!("the operation failed:\n{text}").into());
    }
    let total = text
        .lines()
        .find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
    let total = total.ok_or_else(|| format!("valgrind reports no total:\n{text}"))?;
    Ok(Counted { total, output })
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = Args::parse();
    if args.check {
        (args.entries, args.repeat) = (CHECKED, CHECKED);
    }
    let data = DataSet::new(args.entries, KEY_BYTES, ValueSizes::same(VALUE_BYTES), 1)?;
    if let (Some(folder), [operation]) = (&args.folder, &args.operations[..]) {
        let mut options = Options::default();
        options.latency_interval = args.latency_interval;
        operation.run(folder, options, &data, args.repeat, args.idle)?;
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let db = Db::open(folder.path().join(PREPARED), Options::default())?;
    let mut options = KeyspaceOptions::default();
    // Nothing merges the runs that updates add.
    options.level0_runs = 64;
    let keyspace = db.keyspace_with("cost", options)?;
    fill(&keyspace, &data)?;
    add_runs(&db, &keyspace, &data, args.runs)?;
    db.close()?;
    // The first open replays the remaining logs, so no counted open does.
    Db::open(folder.path().join(PREPARED), Options::default())?.close()?;
    println!("{:<14} {:>12}", "operation", "instructions");
    let budgeted = BUDGET.map(|(operation, _)| operation);
    let chosen = match &args.operations[..] {
        [] if args.check => &budgeted,
        [] => Operation::value_variants(),
        chosen => chosen,
    };
    let mut is_within = true;
    for &operation in chosen {
        let repeat = match operation {
            Operation::Put => args.entries,
            Operation::FirstGet | Operation::SecondGet => {
                args.entries.div_ceil(ENTRIES_PER_BLOCK as u64)
            }
            _ => args.repeat,
        };
        let count = |is_idle| count(&args, folder.path(), operation, repeat, is_idle);
        let without = (!operation.is_in_new_blocks()).then(|| count(true));
        let without = without.transpose()?;
        let with = count(false)?;
        let others = without.as_ref().map_or(0, |without| without.total);
        let each = with.total.saturating_sub(others) / repeat;
        print!("{:<14} {each:>12}", format!("{operation:?}"));
        if let (true, Some(most)) = (args.check, budget(operation)) {
            print!(" of at most {most}");
            is_within &= each <= most;
        }
        println!();
        if args.source_files {
            let files = source_files::instructions(&with, without.as_ref(), repeat, folder.path())?;
            print_files(&files, each as f64 * FILE_PART_MIN);
        }
    }
    if is_within {
        Ok(())
    } else {
        Err("an operation takes more instructions than its budget".into())
    }
}

/// Prints the files with so many instructions, and the sum of the others.
fn print_files(files: &[(String, f64)], least: f64) {
    let (shown, others) = files.split_at(files.partition_point(|(_, count)| *count >= least));
    for (name, count) in shown {
        println!("    {name:<36} {count:>8.1}");
    }
    let others: f64 = others.iter().map(|(_, count)| count).sum();
    println!("    {:<36} {others:>8.1}", "others");
}

/// The most instructions that `operation` may take in this build.
fn budget(operation: Operation) -> Option<u64> {
    let (_, budgets) = BUDGET.iter().find(|(it, _)| *it == operation)?;
    Some(budgets[usize::from(!cfg!(debug_assertions))])
}

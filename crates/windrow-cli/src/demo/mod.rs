//! `demo`: the whole store at work on real files, every answer checked.
//!
//! The demo loads files (path to content), overwrites a part with changed content, deletes a part, and reads
//! everything back through gets and scans. It kills its second process in the middle of a second load, reopens the
//! database, and checks that it has all acknowledged batches and no part of any other.

mod check;
mod crash;
mod input;
mod report;
mod temporary;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use windrow::{Batch, Db, Keyspace, Options, Result, limits};

use self::check::{Checks, Expected, Print};
use self::input::Input;
use self::report::Report;
use self::temporary::Temporary;
use crate::files;
use crate::outcome::Outcome;
use crate::output::Output;
use crate::picture;
use crate::progress;
use crate::text::{human_bytes, human_count};

pub(crate) use self::crash::{WriterArgs, write_until_killed};
pub(crate) use self::temporary::{CleanerArgs, remove_at_end};

/// The keyspace of the first load.
const KEYSPACE: &str = "files";

/// Every fourth of the loaded files is overwritten, and every seventh deleted.
const OVERWRITE_EVERY: usize = 4;
const DELETE_EVERY: usize = 7;

const BATCH_BYTES: usize = 1 << 20;
const BATCH_FILES: usize = 64;

/// Arguments of `demo`.
#[derive(Debug, Args)]
#[command(after_help = "\
Without --input, the demo loads the sources that cargo has unpacked on this machine, up to 256 MiB, or \
those of the current project if there are none. Files above 16 MiB are left out.

Examples:
  windrow demo
  windrow demo --input ~/src --db /tmp/demo.db
  windrow demo --json | tail -1")]
pub(crate) struct DemoArgs {
    /// Folder whose files are loaded
    #[arg(long, value_name = "DIR")]
    input: Option<PathBuf>,

    /// New folder for the database, kept after the demo [default: a temporary one, removed]
    #[arg(long, value_name = "DIR")]
    db: Option<PathBuf>,
}

/// Options for a database of about `input_bytes`: small enough that a tree of several levels
/// grows even from little data.
fn options(input_bytes: u64) -> Options {
    let memtable_bytes = (input_bytes / 32).clamp(64 << 10, 8 << 20);
    let mut options = Options::default();
    options.keyspace.memtable_bytes = usize::try_from(memtable_bytes).unwrap_or(8 << 20);
    options.keyspace.base_bytes = 4 * memtable_bytes;
    options.keyspace.file_bytes = memtable_bytes / 2;
    options
}

pub(crate) fn run(args: &DemoArgs, output: &mut Output) -> Result<Outcome> {
    let start = Instant::now();
    let input = Input::find(args.input.as_deref())?;
    let temporary = match &args.db {
        Some(_) => None,
        None => Some(Temporary::new()?),
    };
    let folder = match (&args.db, &temporary) {
        (Some(folder), _) => folder.as_path(),
        (None, Some(folder)) => folder.path(),
        (None, None) => Path::new("."),
    };
    output.line_now(format_args!(
        "input      {} files, {} below {}{}",
        human_count(input.files.len() as u64),
        human_bytes(input.bytes),
        input.root.display(),
        match input.skipped_large {
            0 => String::new(),
            skipped => format!(" ({skipped} above 16 MiB left out)"),
        },
    ))?;
    output.line_now(format_args!("database   {}", folder.display()))?;

    let mut report = Report::new(&input);
    let mut checks = Checks::default();
    let mut create = options(input.bytes);
    create.error_if_exists = true;
    let db = Db::open(folder, create)?;
    let mut demo = Demo {
        input: &input,
        keyspace: db.keyspace(KEYSPACE)?,
        db,
        expected: BTreeMap::new(),
        output,
    };
    demo.load(&mut report)?;
    demo.overwrite(&mut report)?;
    demo.delete(&mut report)?;
    demo.read_back(&mut report, &mut checks)?;
    demo.measure(&mut report)?;
    let Demo {
        db,
        keyspace,
        expected,
        output,
        ..
    } = demo;
    drop(keyspace);
    db.close()?;

    let db = crash::survive(folder, &input, &mut report, &mut checks, output)?;
    let mut demo = Demo {
        input: &input,
        keyspace: db.keyspace(KEYSPACE)?,
        db,
        expected,
        output,
    };
    demo.check_again(&mut checks)?;
    drop(demo.keyspace);
    demo.db.close()?;

    report.seconds = start.elapsed().as_secs_f64();
    report.close(&checks);
    for problem in &checks.problems {
        output.line(problem)?;
    }
    output.line(report.summary())?;
    output.object(&report)?;
    Ok(if checks.mismatches == 0 {
        Outcome::Done
    } else {
        Outcome::Damaged
    })
}

/// The first database of the demo and what it must hold.
struct Demo<'a> {
    input: &'a Input,
    db: Db,
    keyspace: Keyspace,
    expected: Expected,
    output: &'a mut Output,
}

impl Demo<'_> {
    fn load(&mut self, report: &mut Report) -> Result<()> {
        let bar = progress::bytes(Some(self.input.bytes), "loading");
        let start = Instant::now();
        let mut writer = Writer::new(&self.db);
        for file in &self.input.files {
            let content = files::read(&file.path)?;
            bar.inc(content.len() as u64);
            report.entries += 1;
            report.bytes += (file.key.len() + content.len()) as u64;
            self.expected
                .insert(file.key.clone(), Some(Print::of(&content)));
            writer.insert(&self.keyspace, &file.key, &content)?;
        }
        writer.write()?;
        bar.finish_and_clear();
        let seconds = start.elapsed().as_secs_f64();
        report.load_bytes_per_second = report.bytes as f64 / seconds.max(1e-9);
        self.output.line_now(format_args!(
            "load       {} entries, {} in {seconds:.2} s",
            human_count(report.entries),
            human_bytes(report.bytes),
        ))
    }

    fn overwrite(&mut self, report: &mut Report) -> Result<()> {
        let start = Instant::now();
        let mut writer = Writer::new(&self.db);
        for file in self.input.files.iter().step_by(OVERWRITE_EVERY) {
            let content = changed(files::read(&file.path)?);
            report.overwritten += 1;
            self.expected
                .insert(file.key.clone(), Some(Print::of(&content)));
            writer.insert(&self.keyspace, &file.key, &content)?;
        }
        writer.write()?;
        self.output.line_now(format_args!(
            "overwrite  {} entries with changed content in {:.2} s",
            human_count(report.overwritten),
            start.elapsed().as_secs_f64(),
        ))
    }

    fn delete(&mut self, report: &mut Report) -> Result<()> {
        let start = Instant::now();
        let mut writer = Writer::new(&self.db);
        for file in self.input.files.iter().step_by(DELETE_EVERY) {
            report.deleted += 1;
            self.expected.insert(file.key.clone(), None);
            writer.remove(&self.keyspace, &file.key)?;
        }
        writer.write()?;
        self.output.line_now(format_args!(
            "delete     {} entries in {:.2} s",
            human_count(report.deleted),
            start.elapsed().as_secs_f64(),
        ))
    }

    fn read_back(&mut self, report: &mut Report, checks: &mut Checks) -> Result<()> {
        let before = self.db.stats();
        let start = Instant::now();
        let gets = check::gets(&self.keyspace, &self.expected, checks)?;
        let seconds = start.elapsed().as_secs_f64().max(1e-9);
        let block_reads = self.db.stats().block_reads - before.block_reads;
        report.gets_per_second = gets as f64 / seconds;
        report.read_amplification = block_reads as f64 / gets.max(1) as f64;
        self.output.line_now(format_args!(
            "get        {} keys, deleted and absent ones too, in {seconds:.2} s",
            human_count(gets),
        ))?;
        let start = Instant::now();
        let entries = check::scans(&self.keyspace, &self.expected, checks)?;
        let seconds = start.elapsed().as_secs_f64().max(1e-9);
        report.scanned_entries_per_second = entries as f64 / seconds;
        self.output.line_now(format_args!(
            "scan       {} entries forward, backward and by prefix in {seconds:.2} s",
            human_count(entries),
        ))
    }

    /// Amplifications and the tree, when background work is done.
    fn measure(&mut self, report: &mut Report) -> Result<()> {
        let spinner = progress::spinner("settling");
        let settled = self.db.flush().and_then(|()| self.db.wait_idle());
        spinner.finish_and_clear();
        settled?;
        let live_bytes = self.expected.iter().filter_map(|(key, print)| {
            let print = print.as_ref()?;
            Some(key.len() as u64 + print.bytes)
        });
        let stats = self.db.stats();
        report.measure(&stats, live_bytes.sum());
        for keyspace in &stats.keyspaces {
            self.output.line(picture::tree(keyspace))?;
        }
        self.output.flush()
    }

    /// After the crash of the second load, the first one must be as it was.
    fn check_again(&mut self, checks: &mut Checks) -> Result<()> {
        let start = Instant::now();
        let gets = check::gets(&self.keyspace, &self.expected, checks)?;
        let scanned = check::scans(&self.keyspace, &self.expected, checks)?;
        let verified = self.db.verify()?;
        for damage in &verified.damage {
            checks.mismatch(|| damage.to_string());
        }
        checks.checked += 1;
        self.output.line_now(format_args!(
            "again      {} gets, {} entries scanned, {} blocks verified in {:.2} s",
            human_count(gets),
            human_count(scanned),
            human_count(verified.blocks),
            start.elapsed().as_secs_f64(),
        ))
    }
}

/// Content that differs from what the file holds.
fn changed(mut content: Vec<u8>) -> Vec<u8> {
    content.reverse();
    if content.len() < limits::VALUE_BYTES_MAX {
        content.push(b'\n');
    } else {
        content.pop();
    }
    content
}

/// Collects writes in batches.
struct Writer<'a> {
    db: &'a Db,
    batch: Batch,
    batch_bytes: usize,
}

impl<'a> Writer<'a> {
    fn new(db: &'a Db) -> Self {
        Self {
            db,
            batch: Batch::new(),
            batch_bytes: 0,
        }
    }

    fn insert(&mut self, keyspace: &Keyspace, key: &[u8], value: &[u8]) -> Result<()> {
        self.batch.insert(keyspace, key, value)?;
        self.batch_bytes += value.len();
        self.write_if_full()
    }

    fn remove(&mut self, keyspace: &Keyspace, key: &[u8]) -> Result<()> {
        self.batch.remove(keyspace, key)?;
        self.write_if_full()
    }

    fn write_if_full(&mut self) -> Result<()> {
        if self.batch.len() >= BATCH_FILES || self.batch_bytes >= BATCH_BYTES {
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        self.db.write(&self.batch)?;
        self.batch.clear();
        self.batch_bytes = 0;
        Ok(())
    }
}

//! `load`: many entries at once.

mod columns;
mod entry;
mod interrupt;
mod source;

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use serde_json::json;
use windrow::{Batch, Db, ErrorKind, Keyspace, Result};

use self::columns::ColumnArgs;
use self::entry::{Entry, Format};
use self::interrupt::Stored;
use self::source::{Skipped, Source};
use crate::outcome::Outcome;
use crate::output::Output;
use crate::progress;
use crate::store::StoreArgs;
use crate::tables::plural;
use crate::text::human_bytes;

/// A batch is written when it holds this many entries or bytes.
const BATCH_ENTRIES: usize = 1000;
const BATCH_BYTES: usize = 1 << 20;

/// The default memory of the sort of a bulk load.
const SORT_BYTES: &str = "256M";

/// Arguments of `load`.
#[derive(Debug, Args)]
#[command(after_help = "\
Formats:
  lines   the key is the number of the line (16 digits, from 1); the value is
          the line
  tsv     key, tab, value; no quotes or escapes; empty lines are skipped
  csv     key, comma, value; values may stand in quotes; with more than two
          columns, --key-column and --value-column choose
  jsonl   an object per line: {\"key\": \"..\", \"value\": \"..\"}, or key_hex and
          value_hex; a value that is not a string is kept as its JSON text;
          expires_at_ms says when the entry expires, in milliseconds since the
          start of 1970, and null that it never does; blank lines are skipped
  folder  the key is the path below the folder; the value is the file

A line ends with a line feed, or with a carriage return and a line feed: in lines and tsv, a value loses \
one carriage return at the end of its line. In a folder, links, special files, databases and files \
larger than a value may be are skipped and counted.

Entries are written in batches of up to 1000. A fault in the source or Ctrl-C ends the command; the \
message says how many entries are stored, and with --json the field entries. These are the first ones \
of the source. A fault before the first of them leaves no new keyspace behind. After Ctrl-C the exit \
code is 130.

With --bulk, the source is sorted on disk, in the folder of the database, and becomes one commit: nothing \
is visible before the end, and after a fault or Ctrl-C nothing is stored. Entries go straight to tables, \
so this is several times faster. It needs free space of twice the source.

Examples:
  windrow load shop.db users.tsv
  windrow load shop.db users.csv --header --key-column id --value-column name
  windrow load shop.db users.txt --format csv --delimiter ';'
  windrow load code.db ~/src/project
  windrow load events.db events.tsv --bulk --sort-memory 1G
  windrow scan shop.db --json | windrow load copy.db --format jsonl")]
pub(crate) struct LoadArgs {
    #[command(flatten)]
    store: StoreArgs,

    /// File or folder to load [default: standard input]
    #[arg(value_name = "SOURCE")]
    source: Option<PathBuf>,

    /// Form of the source [default: by its name: a folder, .tsv, .csv, .jsonl or .ndjson, else lines]
    #[arg(long, value_enum)]
    format: Option<Format>,

    #[command(flatten)]
    columns: ColumnArgs,

    /// Sync the log after each batch
    #[arg(long, conflicts_with = "bulk")]
    sync: bool,

    /// Load everything in one step, after a sort on disk; of equal keys the last one counts
    #[arg(long)]
    bulk: bool,

    /// Memory of the sort
    #[arg(long, value_name = "BYTES", default_value = SORT_BYTES, requires = "bulk",
          value_parser = windrow_bench::parse_bytes)]
    sort_memory: u64,
}

/// What was loaded.
#[derive(Debug, Clone, Copy, Default)]
struct Loaded {
    entries: u64,
    bytes: u64,
}

pub(crate) fn run(args: &LoadArgs, output: &mut Output) -> Result<Outcome> {
    output.set_error_field("entries", 0);
    let mut source = Source::open(args.source.as_deref(), args.format, &args.columns)?;
    let db = args.store.open_or_create_db(args.sync)?;
    let start = Instant::now();
    let loaded = if args.bulk {
        load_in_bulk(args, &db, &mut source, output)
    } else {
        load_in_batches(args, &db, &mut source, output)
    };
    let Loaded { entries, bytes } = loaded?;
    db.close()?;
    let seconds = start.elapsed().as_secs_f64();
    let skipped = source.skipped();
    output.object(&json!({
        "entries": entries, "bytes": bytes, "skipped": skipped, "seconds": seconds,
    }))?;
    output.line(format_args!(
        "{}, {} in {seconds:.2} s",
        plural(entries, "entry"),
        human_bytes(bytes)
    ))?;
    if skipped != Skipped::default() {
        output.line(format_args!("skipped: {skipped}"))?;
    }
    Ok(Outcome::Done)
}

fn load_in_batches(
    args: &LoadArgs,
    db: &Db,
    source: &mut Source,
    output: &mut Output,
) -> Result<Loaded> {
    let bar = progress::bytes(source.total_bytes(), "loading");
    let stored = Stored::default();
    interrupt::catch(&stored, &bar, output.is_json())?;
    let mut loader = Loader::new(db, &args.store.keyspace, &stored);
    let loaded = loop {
        match source.next_entry() {
            Ok(Some(entry)) => {
                if let Err(error) = loader.add(&entry) {
                    break Err(error.context(source.place()));
                }
                bar.set_position(source.position());
            }
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    // The entries before a fault are stored, and the message says how many they are. The message is that
    // of the first fault, even if this write fails as a consequence of it.
    let written = loader.write();
    bar.finish_and_clear();
    let bytes = loader.bytes;
    let entries = stored.entries();
    if entries == 0 {
        loader.drop_new_keyspace();
    }
    output.set_error_field("entries", entries);
    loaded.and(written).map_err(|error| {
        let stored = plural(entries, "entry");
        error.context(format_args!("stopped; {stored} stored"))
    })?;
    Ok(Loaded { entries, bytes })
}

/// Loads everything as one commit.
fn load_in_bulk(args: &LoadArgs, db: &Db, source: &mut Source, output: &Output) -> Result<Loaded> {
    let bar = progress::bytes(source.total_bytes(), "sorting");
    interrupt::catch_whole(&bar, output.is_json())?;
    let name = &args.store.keyspace;
    let is_new = !db.keyspace_names().iter().any(|own| own == name);
    let (mut bytes, mut has_failed) = (0, false);
    // Both are used by the load: it takes entries, and may refuse one.
    let source = RefCell::new(source);
    let mut next = || {
        let entry = source.borrow_mut().next_entry().transpose()?;
        bar.set_position(source.borrow().position());
        match &entry {
            Ok(entry) => bytes += (entry.key.len() + entry.value.len()) as u64,
            Err(_) => has_failed = true,
        }
        Some(entry)
    };
    let Some(first) = next() else {
        bar.finish_and_clear();
        return Ok(Loaded::default());
    };
    let mut merging = None;
    let memory_bytes = usize::try_from(args.sort_memory).unwrap_or(usize::MAX);
    let loaded = db.keyspace(name).and_then(|keyspace| {
        let entries = std::iter::once(first).chain(std::iter::from_fn(&mut next));
        keyspace.try_bulk_load_unsorted(entries, memory_bytes, |count| {
            let merging = merging.get_or_insert_with(|| {
                bar.finish_and_clear();
                progress::counter("merging")
            });
            merging.set_position(count);
        })
    });
    bar.finish_and_clear();
    if let Some(merging) = merging {
        merging.finish_and_clear();
    }
    let entries = loaded.map_err(|error| {
        if is_new {
            // A failure is that of the load, too, which is reported.
            drop(db.drop_keyspace(name));
        }
        // Of an entry that the store refuses.
        let is_refused = !has_failed && error.kind() == ErrorKind::InvalidArgument;
        let error = if is_refused {
            error.context(source.borrow().place())
        } else {
            error
        };
        error.context("stopped; nothing stored")
    })?;
    Ok(Loaded { entries, bytes })
}

/// Collects entries into batches.
struct Loader<'a> {
    db: &'a Db,
    name: &'a str,
    /// Opened for the first entry, so that a source without entries creates none.
    keyspace: Option<Keyspace>,
    /// Whether the keyspace did not exist before.
    is_new: bool,
    batch: Batch,
    batch_bytes: usize,
    stored: &'a Stored,
    /// Bytes that have been written.
    bytes: u64,
}

impl<'a> Loader<'a> {
    fn new(db: &'a Db, name: &'a str, stored: &'a Stored) -> Self {
        Self {
            db,
            name,
            keyspace: None,
            is_new: !db.keyspace_names().iter().any(|own| own == name),
            batch: Batch::new(),
            batch_bytes: 0,
            stored,
            bytes: 0,
        }
    }

    fn add(&mut self, entry: &Entry) -> Result<()> {
        let keyspace = match &self.keyspace {
            Some(keyspace) => keyspace,
            None => self.keyspace.insert(self.db.keyspace(self.name)?),
        };
        match entry.expiry {
            Some(expiry) => {
                let expiring = keyspace.with_expiry(expiry);
                self.batch.insert(&expiring, &entry.key, &entry.value)?;
            }
            None => self.batch.insert(keyspace, &entry.key, &entry.value)?,
        }
        self.batch_bytes += entry.key.len() + entry.value.len();
        if self.batch.len() >= BATCH_ENTRIES || self.batch_bytes >= BATCH_BYTES {
            self.write()?;
        }
        Ok(())
    }

    /// Drops a keyspace that was created for nothing. A failure is that of the load, too, which is reported.
    fn drop_new_keyspace(&self) {
        if self.is_new && self.keyspace.is_some() {
            drop(self.db.drop_keyspace(self.name));
        }
    }

    fn write(&mut self) -> Result<()> {
        let entries = self.batch.len() as u64;
        self.stored.add(entries, || self.db.write(&self.batch))?;
        self.bytes += self.batch_bytes as u64;
        self.batch.clear();
        self.batch_bytes = 0;
        Ok(())
    }
}

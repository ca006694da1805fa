//! `load`: many entries at once.

mod columns;
mod entry;
mod interrupt;
mod source;

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use serde_json::json;
use windrow::{Batch, Db, Keyspace, Result};

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
          blank lines are skipped
  folder  the key is the path below the folder; the value is the file

A line ends with a line feed, or with a carriage return and a line feed: in lines and tsv, a value loses \
one carriage return at the end of its line. In a folder, links, special files, databases and files \
larger than a value may be are skipped and counted.

Entries are written in batches of up to 1000. A fault in the source or Ctrl-C ends the command; the \
message says how many entries are stored, and with --json the field entries. These are the first ones \
of the source. A fault before the first of them leaves no new keyspace behind. After Ctrl-C the exit \
code is 130.

Examples:
  windrow load shop.db users.tsv
  windrow load shop.db users.csv --header --key-column id --value-column name
  windrow load shop.db users.txt --format csv --delimiter ';'
  windrow load code.db ~/src/project
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
    #[arg(long)]
    sync: bool,
}

pub(crate) fn run(args: &LoadArgs, output: &mut Output) -> Result<Outcome> {
    output.set_error_field("entries", 0);
    let mut source = Source::open(args.source.as_deref(), args.format, &args.columns)?;
    let db = args.store.open_or_create_db(args.sync)?;
    let bar = progress::bytes(source.total_bytes(), "loading");
    let stored = Stored::default();
    interrupt::catch(&stored, &bar, output.is_json())?;
    let start = Instant::now();
    let mut loader = Loader::new(&db, &args.store.keyspace, &stored);
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
        self.batch.insert(keyspace, &entry.key, &entry.value)?;
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

//! `load`: many entries at once.

mod source;

use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, ValueEnum};
use serde_json::json;
use windrow::{Batch, Db, Keyspace, Result};

use self::source::{Entry, Source};
use crate::outcome::Outcome;
use crate::output::Output;
use crate::progress;
use crate::store::StoreArgs;
use crate::text::{human_bytes, human_count};

/// A batch is written when it holds this many entries or bytes.
const BATCH_ENTRIES: usize = 1000;
const BATCH_BYTES: usize = 1 << 20;

/// Arguments of `load`.
#[derive(Debug, Args)]
#[command(after_help = "\
Formats:
  lines   the key is the number of the line (16 digits, from 1), the value is the line
  tsv     key, tab, value; no escapes; empty lines are passed over
  jsonl   an object per line: {\"key\": \"..\", \"value\": \"..\"}, or key_hex and value_hex; a value
          that is not a string is kept as its JSON text; blank lines are passed over
  folder  the key is the path below the folder, the value is the file
A line ends with a line feed, or with a carriage return and a line feed: in lines and tsv, a value
loses one carriage return at the end of its line.

Examples:
  windrow load shop.db users.tsv
  windrow load code.db ~/src/project
  windrow scan shop.db --json | windrow load copy.db --format jsonl")]
pub(crate) struct LoadArgs {
    #[command(flatten)]
    store: StoreArgs,

    /// File or folder to load [default: standard input]
    #[arg(value_name = "SOURCE")]
    source: Option<PathBuf>,

    /// Form of the source [default: by its name: a folder, .tsv, .jsonl or .ndjson, else lines]
    #[arg(long, value_enum)]
    format: Option<Format>,

    /// Sync the log after each batch
    #[arg(long)]
    sync: bool,
}

/// Forms of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Lines,
    Tsv,
    Jsonl,
    Folder,
}

pub(crate) fn run(args: &LoadArgs, output: &mut Output) -> Result<Outcome> {
    let mut source = Source::open(args.source.as_deref(), args.format)?;
    let (db, keyspace) = args.store.open_or_create(args.sync)?;
    let bar = progress::bytes(source.total_bytes(), "loading");
    let start = Instant::now();
    let mut loader = Loader::new(&db, &keyspace);
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
    // What came before a fault is kept, and the message says how much that is. The first fault is
    // the one to tell, though what follows from it may stop this write, too.
    let written = loader.write();
    bar.finish_and_clear();
    let (entries, bytes) = (loader.entries, loader.bytes);
    loaded.and(written).map_err(|error| {
        error.context(format_args!(
            "stopped after {} entries, which are stored",
            human_count(entries)
        ))
    })?;
    db.close()?;
    let seconds = start.elapsed().as_secs_f64();
    let skipped = source.skipped();
    output.object(&json!({
        "entries": entries, "bytes": bytes, "skipped": skipped, "seconds": seconds,
    }))?;
    output.line(format_args!(
        "{} entries, {} in {seconds:.2} s",
        human_count(entries),
        human_bytes(bytes)
    ))?;
    if skipped > 0 {
        output.line(format_args!(
            "{skipped} files skipped: larger than a value may be"
        ))?;
    }
    Ok(Outcome::Done)
}

/// Gathers entries into batches.
struct Loader<'a> {
    db: &'a Db,
    keyspace: &'a Keyspace,
    batch: Batch,
    batch_bytes: usize,
    /// What has been written.
    entries: u64,
    bytes: u64,
}

impl<'a> Loader<'a> {
    fn new(db: &'a Db, keyspace: &'a Keyspace) -> Self {
        Self {
            db,
            keyspace,
            batch: Batch::new(),
            batch_bytes: 0,
            entries: 0,
            bytes: 0,
        }
    }

    fn add(&mut self, entry: &Entry) -> Result<()> {
        self.batch.insert(self.keyspace, &entry.key, &entry.value)?;
        self.batch_bytes += entry.key.len() + entry.value.len();
        if self.batch.len() >= BATCH_ENTRIES || self.batch_bytes >= BATCH_BYTES {
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        self.db.write(&self.batch)?;
        self.entries += self.batch.len() as u64;
        self.bytes += self.batch_bytes as u64;
        self.batch.clear();
        self.batch_bytes = 0;
        Ok(())
    }
}

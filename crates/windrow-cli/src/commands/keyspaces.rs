//! `keyspaces` and `drop-keyspace`.

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use comfy_table::Cell;
use serde_json::json;
use windrow::{Error, KeyspaceStats, Result};

use crate::outcome::Outcome;
use crate::output::Output;
use crate::store::{self, DbArgs};
use crate::tables::{plain_table, plural, right};
use crate::text::{human_bytes, human_count};

/// Arguments of `keyspaces`.
#[derive(Debug, Args)]
#[command(after_help = "\
Entries are those of tables and memtables, tombstones and older versions of keys included. The command \
count counts what a scan returns. The log holds the unflushed entries. With --json, each keyspace is an \
object.

Examples:
  windrow keyspaces shop.db
  windrow keyspaces shop.db --json")]
pub(crate) struct KeyspacesArgs {
    #[command(flatten)]
    of: DbArgs,
}

/// Arguments of `drop-keyspace`.
#[derive(Debug, Args)]
#[command(after_help = "\
This cannot be undone. Other keyspaces stay as they are. On a terminal, the command asks first; a \
script gives --yes.

Examples:
  windrow drop-keyspace shop.db log
  windrow drop-keyspace shop.db log --yes --json")]
pub(crate) struct DropKeyspaceArgs {
    /// Folder of the database
    #[arg(value_name = "DB")]
    db: PathBuf,

    /// The keyspace
    #[arg(value_name = "NAME")]
    name: String,

    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

/// What a keyspace holds.
struct Held {
    entries: u64,
    unflushed_entries: u64,
    table_bytes: u64,
    value_file_bytes: u64,
    memtable_bytes: u64,
}

impl Held {
    fn new(keyspace: &KeyspaceStats) -> Self {
        let levels = || keyspace.levels.iter();
        Self {
            entries: keyspace.memtable_entries + levels().map(|level| level.entries).sum::<u64>(),
            unflushed_entries: keyspace.memtable_entries,
            table_bytes: levels().map(|level| level.bytes).sum(),
            value_file_bytes: keyspace.transient_logs.bytes + keyspace.value_logs.bytes,
            memtable_bytes: keyspace.memtable_bytes,
        }
    }
}

pub(crate) fn list(args: &KeyspacesArgs, output: &mut Output) -> Result<Outcome> {
    let db = store::open_to_read(&args.of.db)?;
    let keyspaces = db.stats().keyspaces;
    db.close()?;
    let mut table = plain_table();
    table.set_header([
        Cell::new("keyspace"),
        right(&"entries"),
        right(&"unflushed"),
        right(&"tables"),
        right(&"value files"),
        right(&"memtables"),
    ]);
    for keyspace in &keyspaces {
        let held = Held::new(keyspace);
        output.object(&json!({
            "name": keyspace.name,
            "entries": held.entries,
            "unflushed_entries": held.unflushed_entries,
            "table_bytes": held.table_bytes,
            "value_file_bytes": held.value_file_bytes,
            "memtable_bytes": held.memtable_bytes,
        }))?;
        table.add_row([
            Cell::new(&keyspace.name),
            right(&human_count(held.entries)),
            right(&human_count(held.unflushed_entries)),
            right(&human_bytes(held.table_bytes)),
            right(&human_bytes(held.value_file_bytes)),
            right(&human_bytes(held.memtable_bytes)),
        ]);
    }
    if keyspaces.is_empty() {
        output.line("no keyspaces yet")?;
    } else {
        output.line(table)?;
    }
    Ok(Outcome::Done)
}

pub(crate) fn drop_keyspace(args: &DropKeyspaceArgs, output: &mut Output) -> Result<Outcome> {
    let db = store::open(&args.db)?;
    store::check_keyspace(&db, &args.name)?;
    let stats = db.stats();
    if !args.yes {
        let keyspace = stats.keyspaces.iter().find(|it| it.name == args.name);
        let held = keyspace.map(Held::new);
        if !is_confirmed(&args.name, held.as_ref(), output)? {
            db.close()?;
            output.line("nothing was dropped")?;
            return Ok(Outcome::Refused);
        }
    }
    db.drop_keyspace(&args.name)?;
    let (before, after) = (stats.disk_bytes, db.stats().disk_bytes);
    db.close()?;
    output.disk_change(before, after)?;
    Ok(Outcome::Done)
}

/// Asks whether the keyspace is to be dropped.
///
/// # Errors
/// `InvalidArgument` if no person can answer.
fn is_confirmed(name: &str, held: Option<&Held>, output: &Output) -> Result<bool> {
    if output.is_json() || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(Error::invalid_argument(
            "drop-keyspace asks only on a terminal: give --yes",
        ));
    }
    let content = held.map_or_else(String::new, |held| {
        format!(
            " with {}, {} on disk and {} in memtables",
            plural(held.entries, "entry"),
            human_bytes(held.table_bytes + held.value_file_bytes),
            human_bytes(held.memtable_bytes)
        )
    });
    let failed = |error| Error::io("ask on", Path::new("the terminal"), error);
    let mut stderr = io::stderr();
    write!(stderr, "drop keyspace \"{name}\"{content}? [y/N] ")
        .and_then(|()| stderr.flush())
        .map_err(failed)?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(failed)?;
    let answer = answer.trim();
    Ok(["y", "yes"]
        .iter()
        .any(|yes| answer.eq_ignore_ascii_case(yes)))
}

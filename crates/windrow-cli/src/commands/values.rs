//! `values`: the value files of a database, one by one.

use std::cmp::Reverse;

use clap::Args;
use comfy_table::{Cell, Table};
use serde::Serialize;
use windrow::{FileNumber, Result, ValueFileReport, ValueFileUse};

use crate::outcome::Outcome;
use crate::output::Output;
use crate::store::{self, DbArgs};
use crate::tables::{plain_table, plural, right};
use crate::text::{human_bytes, human_count};

/// Arguments of `values`.
#[derive(Debug, Args)]
#[command(after_help = "\
Lists the value files of each keyspace, those with most garbage first, and a sum for each kind. A \
transient log holds medium values until compactions put them in place. A value log holds large values \
as they were committed. A GC output holds the live values of collected value logs. A file is deleted \
when no table refers to it. The last column names the collected value logs whose pointers lead to the \
file.

Examples:
  windrow values shop.db --limit 20
  windrow values shop.db --json")]
pub(crate) struct ValuesArgs {
    #[command(flatten)]
    of: DbArgs,

    /// List no more than this many files of each keyspace
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

/// The value files of a keyspace.
#[derive(Debug, Serialize)]
struct Listing {
    name: String,
    kinds: Vec<Total>,
    /// Bytes of transient logs, which are deleted when their values are in place.
    transient_log_bytes: u64,
    /// The files that are listed.
    files: Vec<ValueFileReport>,
}

/// The files of one kind together.
#[derive(Debug, Serialize)]
struct Total {
    kind: ValueFileUse,
    files: u64,
    bytes: u64,
    live_values: u64,
    live_bytes: u64,
    garbage_values: u64,
    garbage_bytes: u64,
    /// Bytes of values that only memtables refer to.
    unflushed_bytes: u64,
}

pub(crate) fn run(args: &ValuesArgs, output: &mut Output) -> Result<Outcome> {
    let db = store::open_to_read(&args.of.db)?;
    let limit = args.limit.unwrap_or(usize::MAX);
    let mut listings = Vec::new();
    for name in db.keyspace_names() {
        let files = db.keyspace(&name)?.value_files()?;
        listings.push(Listing::new(name, files, limit));
    }
    output.object(&serde_json::json!({ "keyspaces": listings }))?;
    for (position, listing) in listings.iter().enumerate() {
        if position > 0 {
            output.line("")?;
        }
        listing.show(output)?;
    }
    if listings.is_empty() {
        output.line("no keyspaces yet")?;
    }
    db.close()?;
    Ok(Outcome::Done)
}

impl Listing {
    fn new(name: String, mut files: Vec<ValueFileReport>, limit: usize) -> Self {
        let uses = [
            ValueFileUse::TransientLog,
            ValueFileUse::Log,
            ValueFileUse::GcOutput,
        ];
        let kinds: Vec<Total> = uses.map(|kind| Total::of(kind, &files)).into();
        files.sort_by_key(|file| Reverse(file.garbage_bytes));
        files.truncate(limit);
        Self {
            name,
            transient_log_bytes: kinds[0].bytes,
            kinds,
            files,
        }
    }

    fn show(&self, output: &mut Output) -> Result<()> {
        let all: u64 = self.kinds.iter().map(|kind| kind.files).sum();
        if all == 0 {
            return output.line(format_args!("{}: no value files", self.name));
        }
        output.line(format_args!(
            "{}: {}, {} of them listed; {} in transient logs",
            self.name,
            plural(all, "value file"),
            human_count(self.files.len() as u64),
            human_bytes(self.transient_log_bytes)
        ))?;
        if !self.files.is_empty() {
            output.line(files_table(&self.files))?;
        }
        output.line(kinds_table(&self.kinds))
    }
}

impl Total {
    fn of(kind: ValueFileUse, files: &[ValueFileReport]) -> Self {
        let mut sum = Self {
            kind,
            files: 0,
            bytes: 0,
            live_values: 0,
            live_bytes: 0,
            garbage_values: 0,
            garbage_bytes: 0,
            unflushed_bytes: 0,
        };
        for file in files.iter().filter(|file| file.kind == kind) {
            sum.files += 1;
            sum.bytes += file.bytes;
            sum.live_values += file.live_values;
            sum.live_bytes += file.live_bytes;
            sum.garbage_values += file.garbage_values;
            sum.garbage_bytes += file.garbage_bytes;
            sum.unflushed_bytes += file.unflushed_bytes;
        }
        sum
    }
}

fn files_table(files: &[ValueFileReport]) -> Table {
    let mut table = plain_table();
    let mut header = vec![Cell::new("file"), Cell::new("kind")];
    header.extend(AMOUNTS.map(|name| right(&name)));
    header.extend([Cell::new("referred to by"), Cell::new("relocations from")]);
    table.set_header(header);
    for file in files {
        let mut row = vec![Cell::new(FileNumber(file.number)), Cell::new(kind_of(file))];
        row.extend(amounts(&Total::of(file.kind, std::slice::from_ref(file))));
        row.extend([Cell::new(references(file)), Cell::new(relocations(file))]);
        table.add_row(row);
    }
    table
}

fn kinds_table(kinds: &[Total]) -> Table {
    let mut table = plain_table();
    let mut header = vec![Cell::new("kind"), right(&"files")];
    header.extend(AMOUNTS.map(|name| right(&name)));
    table.set_header(header);
    for kind in kinds.iter().filter(|kind| kind.files > 0) {
        let mut row = vec![
            Cell::new(name_of(kind.kind)),
            right(&human_count(kind.files)),
        ];
        row.extend(amounts(kind));
        table.add_row(row);
    }
    table
}

/// The columns of [`amounts`].
const AMOUNTS: [&str; 7] = [
    "bytes",
    "live",
    "unflushed",
    "garbage",
    "of all",
    "live values",
    "garbage values",
];

fn amounts(total: &Total) -> [Cell; AMOUNTS.len()] {
    [
        right(&human_bytes(total.bytes)),
        right(&human_bytes(total.live_bytes)),
        right(&human_bytes(total.unflushed_bytes)),
        right(&human_bytes(total.garbage_bytes)),
        right(&fraction(total.garbage_bytes, total.bytes)),
        right(&human_count(total.live_values)),
        right(&human_count(total.garbage_values)),
    ]
}

fn name_of(kind: ValueFileUse) -> &'static str {
    match kind {
        ValueFileUse::TransientLog => "transient_log",
        ValueFileUse::Log => "value_log",
        ValueFileUse::GcOutput => "gc_output",
        _ => "other",
    }
}

fn kind_of(file: &ValueFileReport) -> String {
    let name = name_of(file.kind);
    if file.is_open {
        format!("{name}, open")
    } else {
        name.to_owned()
    }
}

/// `part` of `whole` in percent.
fn fraction(part: u64, whole: u64) -> String {
    format!("{:.0} %", part as f64 * 100.0 / whole.max(1) as f64)
}

/// The levels whose tables refer to `file`, each with its number of tables.
fn references(file: &ValueFileReport) -> String {
    let levels = file.references.iter().map(|it| {
        let tables = plural(it.tables as u64, "table");
        format!("level {}: {tables}", it.level)
    });
    levels.collect::<Vec<_>>().join(", ")
}

/// The collected value logs whose values are found in `file`, each with their number.
fn relocations(file: &ValueFileReport) -> String {
    let origins = file.relocations.iter().map(|it| {
        let values = plural(it.live_values, "value");
        format!("{}: {values}", FileNumber(it.origin))
    });
    origins.collect::<Vec<_>>().join(", ")
}

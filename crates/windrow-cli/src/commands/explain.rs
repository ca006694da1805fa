//! `explain`: how a get or a seek comes to its answer.

use clap::Args;
use comfy_table::Cell;
use windrow::{ExplainedAnswer, ExplainedSource, ExplainedStep, Explanation, Result};

use crate::outcome::Outcome;
use crate::output::Output;
use crate::store::StoreArgs;
use crate::tables::{plain_table, plural, right};
use crate::text::{Notation, escape, human_bytes, human_count};

/// Arguments of `explain`.
#[derive(Debug, Args)]
#[command(after_help = "\
Shows each source that the read asks, in its order: what it answers, filters that it probed, how many of them \
excluded the key, blocks that were searched, those of them that were loaded first, and the time. The database was \
just opened, so the first steps also open the tables. The last line has the time of the same read when all of that is in \
memory.

With --seek, each source says where it stands; the first of these keys is the answer, unless it is deleted. If a \
get or a seek finds nothing, the exit code is 1.

Examples:
  windrow explain shop.db user:1
  windrow explain shop.db user: --seek --json")]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    store: StoreArgs,

    /// The key: text, or hexadecimal after 0x
    #[arg(value_name = "KEY")]
    key: String,

    /// Explain a seek to the first key from this one on, instead of a get
    #[arg(long)]
    seek: bool,

    #[command(flatten)]
    notation: Notation,
}

pub(crate) fn run(args: &ExplainArgs, output: &mut Output) -> Result<Outcome> {
    let key = args.notation.parse(&args.key)?;
    let (db, keyspace) = args.store.open_to_read()?;
    let how = if args.seek {
        keyspace.explain_seek(&key)?
    } else {
        keyspace.explain_get(&key)?
    };
    drop(keyspace);
    db.close()?;
    output.object(&how)?;
    let mut table = plain_table();
    table.set_header([
        Cell::new("source"),
        Cell::new("answer"),
        right(&"filters"),
        right(&"excluded"),
        right(&"blocks"),
        right(&"loaded"),
        right(&"time"),
    ]);
    for step in &how.steps {
        table.add_row([
            Cell::new(source(&step.source)),
            Cell::new(answer(&step.answer)),
            right(&count(step.filter_probes)),
            right(&count(step.filter_rejects)),
            right(&count(step.block_reads)),
            right(&loaded(step)),
            right(&time(step)),
        ]);
    }
    output.line(table)?;
    output.line(conclusion(&how, args.seek))?;
    Ok(Outcome::found(how.is_found))
}

fn source(source: &ExplainedSource) -> String {
    match source {
        ExplainedSource::Memtable {
            is_frozen, entries, ..
        } => {
            let kind = if *is_frozen { "frozen" } else { "active" };
            format!("{kind} memtable, {}", plural(*entries, "entry"))
        }
        ExplainedSource::Table {
            level,
            file,
            segments,
            ..
        } => format!(
            "level {level}: table {file}, {}",
            plural(*segments as u64, "segment")
        ),
        ExplainedSource::Excluded { level, files, .. } => format!(
            "level {level}: {} without the key in its range",
            plural(*files as u64, "table")
        ),
        other => format!("{other:?}"),
    }
}

fn answer(answer: &ExplainedAnswer) -> String {
    match answer {
        ExplainedAnswer::Nothing => "-".to_owned(),
        ExplainedAnswer::Value(bytes) => format!("a value of {}", human_bytes(*bytes)),
        ExplainedAnswer::Tombstone => "deleted".to_owned(),
        ExplainedAnswer::Expired => "expired".to_owned(),
        ExplainedAnswer::Pointer(file) => format!("a pointer to values {file}"),
        ExplainedAnswer::Operand => "an operand".to_owned(),
        ExplainedAnswer::Key(key) => escape(key),
        other => format!("{other:?}"),
    }
}

/// A count; nothing for 0.
fn count(count: u64) -> String {
    match count {
        0 => String::new(),
        count => human_count(count),
    }
}

fn loaded(step: &ExplainedStep) -> String {
    match step.block_loads {
        0 => String::new(),
        loads => format!("{loads} ({})", human_bytes(step.block_load_bytes)),
    }
}

fn time(step: &ExplainedStep) -> String {
    match &step.source {
        ExplainedSource::Excluded { .. } => String::new(),
        _ => human_nanos(step.nanos),
    }
}

/// A short time with three digits or so.
fn human_nanos(nanos: u64) -> String {
    match nanos {
        0..1_000 => format!("{nanos} ns"),
        1_000..1_000_000 => format!("{:.1} \u{b5}s", nanos as f64 / 1e3),
        _ => format!("{:.1} ms", nanos as f64 / 1e6),
    }
}

fn conclusion(how: &Explanation, is_seek: bool) -> String {
    let found = match (how.is_found, is_seek) {
        (false, _) => "nothing found".to_owned(),
        (true, false) => format!("found a value of {}", human_bytes(how.value_bytes)),
        (true, true) => format!("found {}", escape(&how.key)),
    };
    let again = human_nanos(how.again_nanos);
    format!("{found}; the same read again takes {again}")
}

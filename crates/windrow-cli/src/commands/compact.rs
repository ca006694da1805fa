//! `compact` and `flush`: jobs that the engine also runs on its own.

use clap::Args;
use serde_json::json;
use windrow::Result;

use crate::outcome::Outcome;
use crate::output::Output;
use crate::progress;
use crate::range::RangeArgs;
use crate::store::{self, DbArgs, StoreArgs};
use crate::text::human_bytes;

/// Arguments of `compact`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  windrow compact shop.db
  windrow compact shop.db --from user: --to user;
  windrow compact shop.db --prefix user: --json")]
pub(crate) struct CompactArgs {
    #[command(flatten)]
    store: StoreArgs,

    #[command(flatten)]
    range: RangeArgs,
}

/// Arguments of `flush`.
#[derive(Debug, Args)]
#[command(after_help = "\
Writes the memtables of all keyspaces to tables of level 0. Afterwards, the next open has no log to \
replay.

Examples:
  windrow flush shop.db
  windrow flush shop.db --json")]
pub(crate) struct FlushArgs {
    #[command(flatten)]
    of: DbArgs,
}

pub(crate) fn compact(args: &CompactArgs, output: &mut Output) -> Result<Outcome> {
    let bounds = args.range.bounds()?;
    let (db, keyspace) = args.store.open()?;
    let before = db.stats().disk_bytes;
    if let Some(bounds) = bounds {
        let spinner = progress::spinner("compacting");
        let compacted = keyspace.compact_range(bounds).and_then(|()| db.wait_idle());
        spinner.finish_and_clear();
        compacted?;
    }
    let after = db.stats().disk_bytes;
    db.close()?;
    output.disk_change(before, after)?;
    Ok(Outcome::Done)
}

pub(crate) fn flush(args: &FlushArgs, output: &mut Output) -> Result<Outcome> {
    let db = store::open(&args.of.db)?;
    let spinner = progress::spinner("flushing");
    let flushed = db.flush();
    spinner.finish_and_clear();
    flushed?;
    let stats = db.stats();
    db.close()?;
    let value_bytes = stats.transient_log_bytes_written;
    output.object(&json!({
        "flushes": stats.flushes,
        "table_bytes": stats.flush_bytes,
        "transient_log_bytes": value_bytes,
    }))?;
    output.line(format_args!(
        "{} written to tables, {} to transient logs",
        human_bytes(stats.flush_bytes),
        human_bytes(value_bytes)
    ))?;
    Ok(Outcome::Done)
}

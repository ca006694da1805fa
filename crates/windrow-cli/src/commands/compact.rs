//! `compact`: merges a range of keys down to the last level.

use clap::Args;
use serde_json::json;
use windrow::Result;

use crate::arguments::RangeArgs;
use crate::commands::scan::bounds;
use crate::outcome::Outcome;
use crate::output::Output;
use crate::progress;
use crate::store::StoreArgs;
use crate::text::{Notation, human_bytes};

/// Arguments of `compact`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  windrow compact shop.db
  windrow compact shop.db --from user: --to user;")]
pub(crate) struct CompactArgs {
    #[command(flatten)]
    store: StoreArgs,

    #[command(flatten)]
    range: RangeArgs,

    #[command(flatten)]
    notation: Notation,
}

pub(crate) fn run(args: &CompactArgs, output: &mut Output) -> Result<Outcome> {
    let bounds = bounds(&args.range, args.notation)?;
    let (db, keyspace) = args.store.open()?;
    let before = db.stats().disk_bytes;
    let spinner = progress::spinner("compacting");
    let compacted = keyspace.compact_range(bounds).and_then(|()| db.wait_idle());
    spinner.finish_and_clear();
    compacted?;
    let after = db.stats().disk_bytes;
    output.object(&json!({ "disk_bytes_before": before, "disk_bytes_after": after }))?;
    output.line(format_args!(
        "{} on disk before, {} after",
        human_bytes(before),
        human_bytes(after)
    ))?;
    db.close()?;
    Ok(Outcome::Done)
}

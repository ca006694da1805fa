//! `drop-keyspace`: removes a keyspace with everything in it.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use windrow::Result;

use crate::outcome::Outcome;
use crate::output::Output;
use crate::store;
use crate::text::human_bytes;

/// Arguments of `drop-keyspace`.
#[derive(Debug, Args)]
#[command(after_help = "\
There is no way back. Other keyspaces stay as they are.

Example:
  windrow drop-keyspace shop.db log")]
pub(crate) struct DropKeyspaceArgs {
    /// Folder of the database
    #[arg(value_name = "DB")]
    db: PathBuf,

    /// The keyspace
    #[arg(value_name = "NAME")]
    name: String,
}

pub(crate) fn run(args: &DropKeyspaceArgs, output: &mut Output) -> Result<Outcome> {
    let db = store::open(&args.db)?;
    let before = db.stats().disk_bytes;
    db.drop_keyspace(&args.name)?;
    let after = db.stats().disk_bytes;
    db.close()?;
    output.object(&json!({ "disk_bytes_before": before, "disk_bytes_after": after }))?;
    output.line(format_args!(
        "{} on disk before, {} after",
        human_bytes(before),
        human_bytes(after)
    ))?;
    Ok(Outcome::Done)
}

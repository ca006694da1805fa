//! `checkpoint`: a copy of a database in another folder.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use windrow::{Db, Result};

use crate::outcome::Outcome;
use crate::output::Output;
use crate::progress;
use crate::store;
use crate::text::human_bytes;

/// Arguments of `checkpoint`.
#[derive(Debug, Args)]
#[command(after_help = "\
On one file system, tables and value files of the copy are hard links to those of the database and \
take no further space. Otherwise, and for the logs, the command copies bytes. The copy is a database \
like any other. Neither changes what the other holds.

Example:
  windrow checkpoint shop.db backup/shop.db")]
pub(crate) struct CheckpointArgs {
    /// Folder of the database
    #[arg(value_name = "DB")]
    db: PathBuf,

    /// Folder of the copy, empty or missing
    #[arg(value_name = "TARGET")]
    target: PathBuf,
}

pub(crate) fn run(args: &CheckpointArgs, output: &mut Output) -> Result<Outcome> {
    let db = store::open_to_read(&args.db)?;
    let spinner = progress::spinner("copying");
    let made = db.checkpoint(&args.target);
    spinner.finish_and_clear();
    made?;
    db.close()?;
    let copy = Db::open_read_only(&args.target, store::options(&args.target)?)?;
    let stats = copy.stats();
    copy.close()?;
    output.object(&json!({ "sequence": stats.sequence, "disk_bytes": stats.disk_bytes }))?;
    output.line(format_args!(
        "{}: {} up to sequence number {}",
        args.target.display(),
        human_bytes(stats.disk_bytes),
        stats.sequence
    ))?;
    Ok(Outcome::Done)
}

//! `archive`: the changes between backups.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use windrow::Result;

use super::RateArgs;
use super::progress::{Bars, with_bars};
use crate::outcome::Outcome;
use crate::output::Output;
use crate::store;
use crate::tables::plural;
use crate::text::human_bytes;

/// Arguments of `archive`.
#[derive(Debug, Args)]
#[command(after_help = "\
Writes the changes since the last call to the folder of the backups. With them, `windrow restore` goes to each \
state between two backups. The first call makes a backup, and so does one that finds a bulk load, whose \
entries are in no log. Between two calls the database keeps its logs for the archive, as for a consumer of \
changes: `windrow consumers` shows it. If it has to keep too much, or for more than a day, it gives that up, \
and the next call begins again with a backup.

The command opens the database for writing, so no other process may have it open. A program archives its own \
database by Db::archive while it writes, for example each minute.

Examples:
  windrow archive shop.db /mnt/backups/shop
  windrow archive shop.db /mnt/backups/shop --rate 50M --json
  windrow backups /mnt/backups/shop                 the states that can be restored
  windrow consumers shop.db --remove 'archive 5f..' end the archive")]
pub(crate) struct ArchiveArgs {
    /// Folder of the database
    #[arg(value_name = "DB")]
    db: PathBuf,

    /// Folder of the backups, which is created if it is missing
    #[arg(value_name = "BACKUPS")]
    backups: PathBuf,

    #[command(flatten)]
    rate: RateArgs,
}

pub(crate) fn archive(args: &ArchiveArgs, output: &mut Output) -> Result<Outcome> {
    let db = store::open(&args.db)?;
    let bars = Bars::default();
    let backups = with_bars(store::backups(&args.backups)?, &bars).with_rate(args.rate.rate);
    let archived = db.archive(&backups);
    bars.finish();
    let archived = archived?;
    db.close()?;
    let backup = archived.backup.as_ref().map(|backup| backup.number);
    output.object(&json!({
        "sequence": archived.sequence,
        "stretches": archived.stretches,
        "copied_bytes": archived.copied_bytes,
        "backup": backup,
    }))?;
    if let Some(number) = backup {
        output.line(format_args!("backup {number} was made"))?;
    }
    output.line(format_args!(
        "archived up to sequence number {}: {}, {}",
        archived.sequence,
        plural(archived.stretches, "stretch"),
        human_bytes(archived.copied_bytes),
    ))?;
    Ok(Outcome::Done)
}

//! `dump`: the content of one file of a database or of a folder of backups, for people who want to see what the bytes mean.

use std::fs;
use std::io;
use std::path::PathBuf;

use clap::Args;
use windrow::{Result, inspect};

use crate::files;
use crate::outcome::Outcome;
use crate::output::Output;
use crate::store;

/// Arguments of `dump`.
#[derive(Debug, Args)]
#[command(after_help = "\
The command only reads, so the database may be open elsewhere. With --json, each batch, edit, block, \
entry or value is an object: its kind under \"record\", then its fields. Values of a transient log are \
shown as not verified: their checksums need the keys, which the tables hold.

Examples:
  windrow dump shop.db/CURRENT
  windrow dump shop.db/000004.table --json
  windrow dump /mnt/backups/shop/000003.backup")]
pub(crate) struct DumpArgs {
    /// A table, a value file, a log, a manifest, CURRENT, or the manifest of a backup
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(crate) fn run(args: &DumpArgs, output: &mut Output) -> Result<Outcome> {
    let file = fs::metadata(&args.file);
    file.map_err(|error| files::failed("read", &args.file, error))?;
    inspect::visit(&*store::files(&args.file)?, &args.file, &mut |record| {
        let shown = output.line(record).and_then(|()| output.object(record));
        shown.map_err(io::Error::other)
    })?;
    Ok(Outcome::Done)
}

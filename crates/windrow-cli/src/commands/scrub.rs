//! `scrub`: compares the checksums of all files, at a rate, and names backups of what is damaged.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use windrow::{Result, Scrub, ScrubDamage, ScrubProgress};
use windrow_bench::parse_bytes;

use crate::outcome::Outcome;
use crate::output::Output;
use crate::progress;
use crate::store::{self, DbArgs};
use crate::tables::plural;
use crate::text::human_bytes;

/// Arguments of `scrub`.
#[derive(Debug, Args)]
#[command(after_help = "\
Opens the database for reading only, beside a writer if there is one, reads its tables, value files and \
closed logs once, and compares their checksums. Damaged files are listed, each with the first damage in \
it and what to do next. With --backups, that names the newest backup which has the whole file. The exit \
code is 3 if there is any damage, and 2 if a file could not be checked.

It notes nothing: one that was interrupted begins anew. Without a writer beside it, the database cannot be \
opened for writing until it ends.

The page cache stays as it is, and files in it are not read from the device. To compare also counts and \
references, use verify.

Examples:
  windrow scrub shop.db --rate 50M
  windrow scrub shop.db --backups /mnt/backups/shop --json")]
pub(crate) struct ScrubArgs {
    #[command(flatten)]
    of: DbArgs,

    /// Read at most this many bytes per second, for example 50M
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, default_value = "0", hide_default_value = true)]
    rate: u64,

    /// Look for whole copies of damaged files in this folder of backups
    #[arg(long, value_name = "BACKUPS")]
    backups: Option<PathBuf>,
}

pub(crate) fn run(args: &ScrubArgs, output: &mut Output) -> Result<Outcome> {
    let backups = args
        .backups
        .as_ref()
        .map(|path| store::backups_to_read(path));
    let backups = backups.transpose()?;
    let db = store::open_to_read(&args.of.db)?;
    let bar = progress::bytes(Some(0), "scrubbing");
    let show = |at: ScrubProgress| {
        bar.set_length(at.total);
        bar.set_position(at.done);
    };
    let mut scrub = Scrub::default().with_rate(args.rate).with_progress(&show);
    if let Some(backups) = &backups {
        scrub = scrub.with_backups(backups);
    }
    let report = db.scrub(&scrub);
    bar.finish_and_clear();
    let report = report?;
    db.close()?;
    let damage = |it: &ScrubDamage| {
        json!({
            "file": it.file,
            "offset": it.error.offset(),
            "damage": it.error.message(),
            "backup": it.backup,
            "next_step": it.next_step(),
        })
    };
    output.object(&json!({
        "sound": report.is_sound(),
        "files": report.files,
        "bytes": report.bytes,
        "left_out": report.left_out.iter().map(windrow::Error::message).collect::<Vec<_>>(),
        "damage": report.damage.iter().map(damage).collect::<Vec<_>>(),
    }))?;
    for damage in &report.damage {
        output.line(damage)?;
    }
    for error in &report.left_out {
        output.line(error)?;
    }
    let (word, outcome) = match (report.is_sound(), report.damage.is_empty()) {
        (true, _) => ("sound", Outcome::Done),
        (false, true) => ("NOT CHECKED AS A WHOLE", Outcome::Failed),
        (false, false) => ("DAMAGED", Outcome::Damaged),
    };
    output.line(format_args!(
        "{word}: {} in {}",
        human_bytes(report.bytes),
        plural(report.files, "file"),
    ))?;
    Ok(outcome)
}

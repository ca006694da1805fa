//! `verify`: checks everything that a database holds.

use clap::Args;
use serde_json::json;
use windrow::Result;

use crate::outcome::Outcome;
use crate::output::Output;
use crate::progress;
use crate::store::{self, DbArgs};
use crate::tables::plural;
use crate::text::{human_bytes, human_count};

/// Arguments of `verify`.
#[derive(Debug, Args)]
#[command(after_help = "\
Opens the database for reading only. The open checks the manifest and every record of the \
write-ahead logs as it replays them, and ends at the first damage there. Then the command reads every \
block of every table, checks checksums, order, filters and counts, and checks every value in a value \
file that a table refers to. It lists all damage that it finds, with file and offset. The exit code \
is 3 if there is any damage.

Examples:
  windrow verify shop.db
  windrow verify shop.db --json")]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    of: DbArgs,
}

pub(crate) fn run(args: &VerifyArgs, output: &mut Output) -> Result<Outcome> {
    let db = store::open_to_read(&args.of.db)?;
    let spinner = progress::spinner("verifying");
    let report = db.verify();
    spinner.finish_and_clear();
    let report = report?;
    let damage: Vec<&str> = report.damage.iter().map(windrow::Error::message).collect();
    output.object(&json!({
        "sound": report.is_sound(),
        "files": report.files,
        "segments": report.segments,
        "blocks": report.blocks,
        "entries": report.entries,
        "unflushed_entries": report.unflushed_entries,
        "bytes": report.bytes,
        "values": report.values,
        "damage": damage,
    }))?;
    for sentence in &damage {
        output.line(sentence)?;
    }
    let in_log = match report.unflushed_entries {
        0 => String::new(),
        entries => format!(" ({} in the log)", human_count(entries)),
    };
    output.line(format_args!(
        "{}: {}{in_log}; {} in {}, {}; {} in value files",
        if report.is_sound() {
            "sound"
        } else {
            "DAMAGED"
        },
        plural(report.entries + report.unflushed_entries, "entry"),
        plural(report.blocks, "block"),
        plural(report.files, "table"),
        human_bytes(report.bytes),
        plural(report.values, "value"),
    ))?;
    db.close()?;
    Ok(if report.is_sound() {
        Outcome::Done
    } else {
        Outcome::Damaged
    })
}

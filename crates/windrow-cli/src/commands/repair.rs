//! `repair`: a new database with what is sound of a damaged one.

use std::path::PathBuf;

use clap::Args;
use comfy_table::Cell;
use serde_json::{Map, Value, json};
use windrow::{Db, Loss, ManifestUse, RepairReport, Result};

use crate::outcome::Outcome;
use crate::output::Output;
use crate::progress;
use crate::store;
use crate::tables::{plain_table, plural, right};
use crate::text::put_field;

/// Arguments of `repair`.
#[derive(Debug, Args)]
#[command(after_help = "\
Reads the damaged database and changes nothing in it. All entries that are provably sound go to the new \
database, whatever else is damaged or missing, CURRENT and the manifest too. The command lists what is \
lost: files, keys, sequence numbers. Between lost keys an older version may be there again. The exit \
code is 3 if anything is lost. A repair that is interrupted leaves a folder that does not open: remove \
it and repair again.

Examples:
  windrow repair shop.db --to repaired.db
  windrow repair shop.db --to repaired.db --json")]
pub(crate) struct RepairArgs {
    /// Folder of the damaged database
    #[arg(value_name = "DIR")]
    damaged: PathBuf,

    /// Folder of the new database, empty or missing
    #[arg(long, value_name = "NEW")]
    to: PathBuf,
}

pub(crate) fn run(args: &RepairArgs, output: &mut Output) -> Result<Outcome> {
    let options = store::options(&args.damaged)?;
    let spinner = progress::spinner("repairing");
    let repaired = Db::repair(&args.damaged, &args.to, &options);
    spinner.finish_and_clear();
    let report = repaired?;
    output.object(&object(&report))?;
    show(&report, output)?;
    Ok(if report.is_whole() {
        Outcome::Done
    } else {
        Outcome::Damaged
    })
}

fn object(report: &RepairReport) -> Value {
    let keyspaces = report.keyspaces.iter();
    let keyspaces: Vec<Value> = keyspaces
        .map(|keyspace| json!({ "name": keyspace.name, "entries": keyspace.entries }))
        .collect();
    json!({
        "whole": report.is_whole(),
        "manifest": report.manifest.name(),
        "tables": report.tables,
        "logs": report.logs,
        "keyspaces": keyspaces,
        "losses": report.losses.iter().map(loss_object).collect::<Vec<_>>(),
        "losses_left_off": report.losses_left_off,
    })
}

fn loss_object(loss: &Loss) -> Value {
    let mut object = Map::new();
    object.insert("what".to_owned(), json!(loss.what));
    object.insert("file".to_owned(), json!(loss.file));
    object.insert("offset".to_owned(), json!(loss.offset));
    object.insert("keyspace".to_owned(), json!(loss.keyspace));
    for (name, key) in [("from", &loss.from), ("to", &loss.to)] {
        if let Some(key) = key {
            put_field(&mut object, name, key);
        }
    }
    if let Some((first, last)) = loss.sequences {
        object.insert("first_sequence".to_owned(), json!(first));
        object.insert("last_sequence".to_owned(), json!(last));
    }
    Value::Object(object)
}

fn show(report: &RepairReport, output: &mut Output) -> Result<()> {
    if !report.keyspaces.is_empty() {
        let mut table = plain_table();
        table.set_header(["keyspace", "entries"]);
        for keyspace in &report.keyspaces {
            table.add_row([Cell::new(&keyspace.name), right(&keyspace.entries)]);
        }
        output.line(table)?;
    }
    let manifest = match report.manifest {
        ManifestUse::Whole => "the manifest is sound",
        ManifestUse::Part => "the manifest has lost its last edits",
        _ => "no manifest is sound: keyspaces are named by number",
    };
    output.line(format_args!(
        "read {} and {}; {manifest}",
        plural(report.tables, "table"),
        plural(report.logs, "log"),
    ))?;
    for loss in &report.losses {
        output.line(format_args!("lost: {loss}"))?;
    }
    if report.losses_left_off > 0 {
        output.line(format_args!("and {} more", report.losses_left_off))?;
    }
    if report.is_whole() {
        output.line("nothing is lost")?;
    }
    Ok(())
}

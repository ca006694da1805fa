//! `backup`, `archive`, `backups`, `restore` and `purge`: backups in a folder, and the archive between them.

mod archive;
mod progress;

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use clap::Args;
use comfy_table::Cell;
use serde_json::{Value, json};
use windrow::backup::{
    BackupCheck, BackupInfo, Backups, ListedBackup, Purge, ReachableStates, RestoreTo,
};
use windrow::{Db, Error, ErrorKind, Result};
use windrow_bench::parse_bytes;

pub(crate) use self::archive::{ArchiveArgs, archive};
use self::progress::{Bars, with_bars};
use crate::outcome::{Outcome, of_error};
use crate::output::Output;
use crate::store;
use crate::tables::{plain_table, plural, right};
use crate::text::{human_bytes, human_count, human_time};

/// A folder of backups, and how fast it is read.
#[derive(Debug, Clone, Args)]
pub(crate) struct RateArgs {
    /// Read at most this many bytes per second, for example 50M
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, default_value = "0", hide_default_value = true)]
    rate: u64,
}

/// Arguments of `backup`.
#[derive(Debug, Args)]
#[command(after_help = "\
The first backup copies all files. Each later one copies what no backup in the folder has yet. If the \
command is interrupted, there is no backup, and the next one continues with the files that are copied. Each \
database has a folder of backups of its own. Another process may write to the database meanwhile; a program \
makes backups of its own database by Db::backup.

Examples:
  windrow backup shop.db /mnt/backups/shop
  windrow backup shop.db /mnt/backups/shop --rate 50M --json")]
pub(crate) struct BackupArgs {
    /// Folder of the database
    #[arg(value_name = "DB")]
    db: PathBuf,

    /// Folder of the backups, which is created if it is missing
    #[arg(value_name = "BACKUPS")]
    backups: PathBuf,

    #[command(flatten)]
    rate: RateArgs,
}

/// Arguments of `backups`.
#[derive(Debug, Args)]
#[command(after_help = "\
Own bytes are those that no other backup needs: a purge of the backup frees them. The list checks the \
manifest of each backup, and that all its pieces are there. With --verify, the command reads all bytes and \
compares their checksums. The exit code is 3 if any backup or a part of the archive cannot be used. With \
--json, each backup is an object.

Of an archived database it also lists which states can be restored from each backup, by their sequence \
numbers, and when the last of them was archived.

To replace a damaged piece, remove its file and make a backup: if the database still has these bytes, the \
new backup copies them for the old ones, too.

Examples:
  windrow backups /mnt/backups/shop
  windrow backups /mnt/backups/shop --verify --rate 100M
  windrow backups /mnt/backups/shop --verify --backup 3 --json")]
pub(crate) struct BackupsArgs {
    /// Folder of the backups
    #[arg(value_name = "BACKUPS")]
    backups: PathBuf,

    /// Read everything and compare the checksums
    #[arg(long)]
    verify: bool,

    /// Verify only the backup of this number
    #[arg(long, value_name = "NUMBER", requires = "verify")]
    backup: Option<u64>,

    #[command(flatten)]
    rate: RateArgs,
}

/// Arguments of `restore`.
#[derive(Debug, Args)]
#[command(after_help = "\
The folder must be empty or missing: a restore never changes a database. All bytes are checked on the way. \
If a part of the backup is damaged or missing, the message names it, the exit code is 3, and the folder \
holds no database.

With --to-sequence and --to-time the database gets a state between two backups, if it was archived: the newest \
backup at or before that state, and the changes behind it. `windrow changes --json` shows the sequence \
numbers of changes, and `windrow backups` those that can be restored. A time goes to the newest state that \
was archived by then, so it is as exact as the archive is often written: nothing is there that was written \
later. With --backup it begins with that backup; that is needed if databases that were restored from these \
backups are archived here, too.

Examples:
  windrow restore /mnt/backups/shop shop.db
  windrow restore /mnt/backups/shop yesterday.db --backup 3
  windrow restore /mnt/backups/shop before.db --to-sequence 81204
  windrow restore /mnt/backups/shop noon.db --to-time '2026-11-28 12:00:00'")]
pub(crate) struct RestoreArgs {
    /// Folder of the backups
    #[arg(value_name = "BACKUPS")]
    backups: PathBuf,

    /// Folder of the new database, empty or missing
    #[arg(value_name = "TARGET")]
    target: PathBuf,

    /// The number of the backup; without it, the newest
    #[arg(long, value_name = "NUMBER")]
    backup: Option<u64>,

    /// The state after the change with this sequence number
    #[arg(long, value_name = "NUMBER")]
    to_sequence: Option<u64>,

    /// The newest state that was archived at this time (UTC), for example 2026-11-28T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_rfc3339_weak, conflicts_with = "to_sequence")]
    to_time: Option<SystemTime>,

    #[command(flatten)]
    rate: RateArgs,
}

impl RestoreArgs {
    /// A state that the archive leads to.
    fn to(&self) -> Option<RestoreTo> {
        let sequence = self.to_sequence.map(RestoreTo::Sequence);
        sequence.or_else(|| self.to_time.map(RestoreTo::Time))
    }
}

/// Arguments of `purge`.
#[derive(Debug, Args)]
#[command(
    override_usage = "windrow purge [OPTIONS] <BACKUPS> <--keep N|--older-than AGE|--backup N>"
)]
#[command(after_help = "\
Removes backups, and what no other backup needs: pieces, also those that interrupted backups have left, and \
the archived changes in front of the oldest backup of their database. With --older-than, the newest backup stays. If the command is interrupted, the next purge does the \
rest. While the folder has a backup that cannot be read, --keep and --older-than remove nothing: remove \
that backup first, by its number. As long as there is one, no piece is removed.

Examples:
  windrow purge /mnt/backups/shop --keep 24
  windrow purge /mnt/backups/shop --older-than 30d --json
  windrow purge /mnt/backups/shop --backup 3")]
pub(crate) struct PurgeArgs {
    /// Folder of the backups
    #[arg(value_name = "BACKUPS")]
    backups: PathBuf,

    #[command(flatten)]
    choice: Choice,
}

/// Which backups go.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Choice {
    /// Keep this many of the newest backups
    #[arg(long, value_name = "COUNT")]
    keep: Option<usize>,

    /// Remove the backups that are older, for example 36h or 30d
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    older_than: Option<Duration>,

    /// Remove the backup of this number
    #[arg(long, value_name = "NUMBER")]
    backup: Option<u64>,
}

impl Choice {
    fn purge(&self) -> Purge {
        match (self.keep, self.older_than, self.backup) {
            (Some(count), _, _) => Purge::KeepNewest(count),
            (_, Some(age), _) => Purge::OlderThan(age),
            (_, _, number) => Purge::Backup(number.unwrap_or_default()),
        }
    }
}

pub(crate) fn backup(args: &BackupArgs, output: &mut Output) -> Result<Outcome> {
    let db = store::open_to_read(&args.db)?;
    let bars = Bars::default();
    let backups = with_bars(store::backups(&args.backups)?, &bars).with_rate(args.rate.rate);
    let made = db.backup(&backups);
    bars.finish();
    let made = made?;
    db.close()?;
    output.object(&json!({
        "backup": made.number,
        "sequence": made.sequence,
        "files": made.files,
        "bytes": made.bytes,
        "copied_bytes": made.copied_bytes,
    }))?;
    output.line(format_args!(
        "backup {}: {} in {} up to sequence number {}, of which {} copied",
        made.number,
        human_bytes(made.bytes),
        plural(made.files, "file"),
        made.sequence,
        human_bytes(made.copied_bytes),
    ))?;
    Ok(Outcome::Done)
}

pub(crate) fn list(args: &BackupsArgs, output: &mut Output) -> Result<Outcome> {
    let backups = store::backups_to_read(&args.backups)?;
    if args.verify {
        return verify(args, backups, output);
    }
    let listed = backups.list()?;
    let mut table = plain_table();
    table.set_header(["backup", "made", "sequence", "files", "bytes", "own bytes"]);
    for listed in &listed {
        output.object(&object(listed))?;
        if let Ok(info) = &listed.backup {
            table.add_row(row(listed.number, info));
        }
    }
    if table.row_count() > 0 {
        output.line(table)?;
    }
    let mut errors: Vec<Error> = listed
        .into_iter()
        .filter_map(|it| it.backup.err())
        .collect();
    for error in &errors {
        output.line(error)?;
    }
    errors.extend(list_reachable(&backups, output)?);
    Ok(outcome_of(&errors))
}

/// Damage says more than what could not be read.
fn outcome_of(errors: &[Error]) -> Outcome {
    let mut outcomes = errors.iter().map(of_error);
    if errors.is_empty() {
        Outcome::Done
    } else if outcomes.any(|it| it == Outcome::Damaged) {
        Outcome::Damaged
    } else {
        Outcome::Failed
    }
}

fn object(listed: &ListedBackup) -> Value {
    match &listed.backup {
        Ok(info) => json!({
            "backup": listed.number,
            "created": human_time(info.created),
            "sequence": info.sequence,
            "files": info.files,
            "bytes": info.bytes,
            "own_bytes": info.own_bytes,
        }),
        Err(error) => json!({ "backup": listed.number, "damage": error.to_string() }),
    }
}

/// Prints which states each backup reaches, and what of the archive cannot be used. Returns that. Backups that cannot be used are in
/// the list of backups.
fn list_reachable(backups: &Backups, output: &mut Output) -> Result<Vec<Error>> {
    let reachable = backups.reachable()?;
    let mut table = plain_table();
    table.set_header(["backup", "sequence numbers", "archived until"]);
    for states in &reachable.states {
        let ranges = states.sequences.iter();
        let ranges: Vec<[u64; 2]> = ranges.map(|it| [*it.start(), *it.end()]).collect();
        output.object(&json!({
            "reachable_from": states.backup,
            "sequences": ranges,
            "until": human_time(states.until),
        }))?;
        table.add_row(reachable_row(states));
    }
    if table.row_count() > 0 {
        output.line(table)?;
    }
    for error in &reachable.damage {
        output.object(&json!({ "archive_damage": error.to_string() }))?;
        output.line(error)?;
    }
    Ok(reachable.damage)
}

fn reachable_row(states: &ReachableStates) -> [Cell; 3] {
    let ranges = states.sequences.iter();
    let ranges: Vec<String> = ranges
        .map(|it| format!("{}-{}", it.start(), it.end()))
        .collect();
    [
        right(&states.backup),
        Cell::new(ranges.join(", ")),
        Cell::new(human_time(states.until)),
    ]
}

fn row(number: u64, info: &BackupInfo) -> [Cell; 6] {
    [
        right(&number),
        Cell::new(human_time(info.created)),
        right(&info.sequence),
        right(&human_count(info.files)),
        right(&human_bytes(info.bytes)),
        right(&human_bytes(info.own_bytes)),
    ]
}

fn verify(args: &BackupsArgs, backups: Backups, output: &mut Output) -> Result<Outcome> {
    let bars = Bars::default();
    let backups = with_bars(backups, &bars).with_rate(args.rate.rate);
    let check = backups.verify(args.backup);
    bars.finish();
    let check = check?;
    let damage = |it: &windrow::backup::BackupDamage| json!({ "backups": it.backups, "damage": it.error.to_string() });
    output.object(&json!({
        "sound": check.is_sound(),
        "backups": check.backups,
        "stretches": check.stretches,
        "pieces": check.pieces,
        "bytes": check.bytes,
        "damage": check.damage.iter().map(damage).collect::<Vec<_>>(),
    }))?;
    for damage in &check.damage {
        if damage.backups.is_empty() {
            output.line(&damage.error)?;
            continue;
        }
        let numbers = numbers(&damage.backups);
        output.line(format_args!("{} (backups {numbers})", damage.error))?;
    }
    output.line(summary(&check))?;
    Ok(if check.is_sound() {
        Outcome::Done
    } else {
        Outcome::Damaged
    })
}

fn numbers(numbers: &[u64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    numbers.join(", ")
}

fn summary(check: &BackupCheck) -> String {
    format!(
        "{}: {}; {} in {}",
        if check.is_sound() { "sound" } else { "DAMAGED" },
        plural(check.backups.len() as u64, "backup"),
        human_bytes(check.bytes),
        plural(check.pieces, "piece"),
    )
}

pub(crate) fn restore(args: &RestoreArgs, output: &mut Output) -> Result<Outcome> {
    let bars = Bars::default();
    let backups = store::backups_to_read(&args.backups)?;
    let backups = with_bars(backups, &bars).with_rate(args.rate.rate);
    let restored = match args.to() {
        Some(to) => {
            let restored = backups.restore_to(to, args.backup, &args.target);
            restored.map(|restored| restored.backup)
        }
        None => args
            .backup
            .map_or_else(|| newest(&backups, args), Ok)
            .and_then(|number| backups.restore(number, &args.target).map(|()| number)),
    };
    bars.finish();
    let number = restored?;
    let db = Db::open_read_only(&args.target, store::options(&args.target)?)?;
    let stats = db.stats();
    db.close()?;
    output.object(&json!({
        "backup": number,
        "sequence": stats.sequence,
        "disk_bytes": stats.disk_bytes,
    }))?;
    output.line(format_args!(
        "{}: {} of backup {number} up to sequence number {}",
        args.target.display(),
        human_bytes(stats.disk_bytes),
        stats.sequence
    ))?;
    Ok(Outcome::Done)
}

/// The number of the newest backup, whatever its state: an older one is restored only by its number.
fn newest(backups: &Backups, args: &RestoreArgs) -> Result<u64> {
    backups.newest()?.ok_or_else(|| {
        let message = format!("there are no backups in {}", args.backups.display());
        Error::new(ErrorKind::NotFound, message)
    })
}

pub(crate) fn purge(args: &PurgeArgs, output: &mut Output) -> Result<Outcome> {
    // A purge creates no folder.
    drop(store::backups_to_read(&args.backups)?);
    let report = store::backups(&args.backups)?.purge(args.choice.purge())?;
    output.object(&json!({
        "backups": report.backups,
        "stretches": report.stretches,
        "pieces": report.pieces,
        "bytes": report.bytes,
        "unreadable": report.unreadable,
        "unreadable_stretches": report.unreadable_stretches,
    }))?;
    output.line(format_args!(
        "{} and {} removed, {}",
        plural(report.backups.len() as u64, "backup"),
        plural(report.pieces, "piece"),
        human_bytes(report.bytes),
    ))?;
    if !report.unreadable.is_empty() {
        output.line(format_args!(
            "no piece was removed, because these cannot be read: backups {}",
            numbers(&report.unreadable)
        ))?;
    }
    for stretch in &report.unreadable_stretches {
        output.line(format_args!(
            "no piece was removed, because {stretch} cannot be read"
        ))?;
    }
    Ok(Outcome::Done)
}

//! `stats` and `levels`: what a database has done, and what it looks like.

use clap::Args;
use comfy_table::{Cell, Table};
use serde_json::json;
use windrow::{LevelIoStats, MemoryUse, Result, Stats};

use crate::outcome::Outcome;
use crate::output::Output;
use crate::picture;
use crate::prometheus;
use crate::store::{self, DbArgs};
use crate::tables::{pairs, plain_table, right};
use crate::text::{human_bytes, human_count};

/// Arguments of `stats`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  windrow stats shop.db
  windrow stats shop.db --json
  windrow stats shop.db --prometheus")]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    of: DbArgs,

    /// Print the text format of Prometheus
    #[arg(long, conflicts_with = "json")]
    prometheus: bool,
}

/// Arguments of `levels`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  windrow levels shop.db
  windrow levels shop.db --json")]
pub(crate) struct LevelsArgs {
    #[command(flatten)]
    of: DbArgs,
}

pub(crate) fn stats(args: &StatsArgs, output: &mut Output) -> Result<Outcome> {
    let db = store::open_to_read(&args.of.db)?;
    let stats = db.stats();
    if args.prometheus {
        output.bytes(prometheus::text(&stats).as_bytes())?;
        db.close()?;
        return Ok(Outcome::Done);
    }
    output.object(&stats)?;
    output.line(totals(&stats))?;
    output.line("")?;
    output.line(levels_table(&stats))?;
    if let Some(io_stats) = io_stats_table(&stats) {
        output.line("")?;
        output.line(io_stats)?;
    }
    output.line("")?;
    output.line(memory_table(&stats.memory))?;
    if let Some(stalls) = stalls_table(&stats) {
        output.line("")?;
        output.line(stalls)?;
    }
    for keyspace in &stats.keyspaces {
        output.line("")?;
        let options = picture::options(&keyspace.options);
        output.line(format_args!("options of {}: {options}", keyspace.name))?;
    }
    db.close()?;
    Ok(Outcome::Done)
}

pub(crate) fn levels(args: &LevelsArgs, output: &mut Output) -> Result<Outcome> {
    let db = store::open_to_read(&args.of.db)?;
    let stats = db.stats();
    output.object(&json!({ "keyspaces": stats.keyspaces }))?;
    for keyspace in &stats.keyspaces {
        output.line(picture::tree(keyspace))?;
    }
    if stats.keyspaces.is_empty() {
        output.line("no keyspaces yet")?;
    }
    db.close()?;
    Ok(Outcome::Done)
}

/// What the database has done; only what is not zero.
fn totals(stats: &Stats) -> Table {
    let of_bytes = [
        ("given by writers", stats.user_bytes),
        ("written to the log", stats.wal_bytes),
        ("written to value logs", stats.value_log_bytes),
        ("written to tables by flushes", stats.flush_bytes),
        (
            "written to transient logs by flushes",
            stats.transient_log_bytes_written,
        ),
        ("written by compactions", stats.compaction_bytes_written),
        ("appended by compactions", stats.append_bytes_written),
        (
            "read from tables by compactions",
            stats.compaction_bytes_read,
        ),
        (
            "read from transient logs by compactions",
            stats.transient_log_bytes_read,
        ),
        (
            "written by consolidations",
            stats.consolidation_bytes_written,
        ),
        ("read by consolidations", stats.consolidation_bytes_read),
        ("written by garbage collections", stats.gc_bytes_written),
        ("read by garbage collections", stats.gc_bytes_read),
        ("written to manifests", stats.manifest_bytes),
    ];
    let of_counts = [
        ("flushes", stats.flushes),
        ("compactions", stats.compactions),
        ("segments appended", stats.appends),
        ("trivial moves", stats.trivial_moves),
        ("garbage collections", stats.garbage_collections),
        ("garbage values collected", stats.gc_values_dropped),
        ("writes delayed or stopped", stats.stall_count()),
    ];
    let state = [
        ("last sequence number", human_count(stats.sequence)),
        ("on disk", human_bytes(stats.disk_bytes)),
    ];
    let of_bytes = of_bytes.into_iter().filter(|(_, bytes)| *bytes > 0);
    let of_counts = of_counts.into_iter().filter(|(_, count)| *count > 0);
    pairs(
        state
            .into_iter()
            .chain(of_bytes.map(|(name, bytes)| (name, human_bytes(bytes))))
            .chain(of_counts.map(|(name, count)| (name, human_count(count)))),
    )
}

/// What jobs have moved; `None` if they have moved nothing.
fn io_stats_table(stats: &Stats) -> Option<Table> {
    let mut table = plain_table();
    table.set_header([
        Cell::new("keyspace"),
        right(&"into level"),
        right(&"flushed"),
        right(&"appended"),
        right(&"rewritten"),
        right(&"consolidated"),
        right(&"pointers rewritten"),
        right(&"moved"),
        right(&"transient logs"),
        right(&"read"),
    ]);
    let mut is_empty = true;
    for keyspace in &stats.keyspaces {
        for level in &keyspace.levels {
            let io_stats = level.io_stats;
            if io_stats == LevelIoStats::default() {
                continue;
            }
            is_empty = false;
            table.add_row([
                Cell::new(&keyspace.name),
                right(&level.level),
                right(&human_bytes(io_stats.flushed)),
                right(&human_bytes(io_stats.appended)),
                right(&human_bytes(io_stats.rewritten)),
                right(&human_bytes(io_stats.consolidated)),
                right(&human_bytes(io_stats.pointers_rewritten)),
                right(&human_bytes(io_stats.moved)),
                right(&human_bytes(io_stats.transient_logs)),
                right(&human_bytes(io_stats.all_read())),
            ]);
        }
    }
    (!is_empty).then_some(table)
}

fn memory_table(memory: &MemoryUse) -> Table {
    let budget = match memory.budget {
        0 => "none".to_owned(),
        budget => human_bytes(budget),
    };
    let parts = [
        ("memory: memtables", memory.memtables),
        ("block cache", memory.block_cache),
        ("tables: indexes, filters", memory.tables),
        ("cursors", memory.cursors),
        ("flushes and compactions", memory.jobs),
        ("total", memory.total),
    ];
    let parts = parts.map(|(name, bytes)| (name, human_bytes(bytes)));
    pairs(parts.into_iter().chain([("budget", budget)]))
}

/// The causes of stalls; `None` if no write was stalled.
fn stalls_table(stats: &Stats) -> Option<Table> {
    let mut table = plain_table();
    table.set_header([
        Cell::new("stalls by cause"),
        right(&"delays"),
        right(&"stops"),
        right(&"seconds"),
        right(&"longest"),
    ]);
    let mut stalled = stats
        .stalls
        .iter()
        .filter(|stall| stall.delays + stall.stops > 0)
        .peekable();
    stalled.peek()?;
    for stall in stalled {
        table.add_row([
            Cell::new(stall.cause.name()),
            right(&human_count(stall.delays)),
            right(&human_count(stall.stops)),
            right(&format!("{:.3}", stall.micros as f64 / 1e6)),
            right(&format!("{:.1} ms", stall.longest_micros as f64 / 1e3)),
        ]);
    }
    Some(table)
}

fn levels_table(stats: &Stats) -> Table {
    let mut table = plain_table();
    table.set_header([
        Cell::new("keyspace"),
        right(&"level"),
        right(&"files"),
        right(&"segments"),
        right(&"bytes"),
        right(&"capacity"),
        right(&"entries"),
        right(&"tombstones"),
    ]);
    for keyspace in &stats.keyspaces {
        table.add_row([
            Cell::new(&keyspace.name),
            right(&"memory"),
            right(&keyspace.memtables),
            right(&""),
            right(&human_bytes(keyspace.memtable_bytes)),
            right(&""),
            right(&human_count(keyspace.memtable_entries)),
            right(&human_count(keyspace.memtable_tombstones)),
        ]);
        for level in &keyspace.levels {
            table.add_row([
                Cell::new(&keyspace.name),
                right(&level.level),
                right(&level.files),
                right(&level.segments),
                right(&human_bytes(level.bytes)),
                right(&human_bytes(level.capacity)),
                right(&human_count(level.entries)),
                right(&human_count(level.tombstones)),
            ]);
        }
        let (transient_logs, logs) = (keyspace.transient_logs, keyspace.value_logs);
        for (name, files, bytes) in [
            ("transient logs", transient_logs.files, transient_logs.bytes),
            ("value logs", logs.files, logs.bytes),
            (
                "discard lists",
                keyspace.discard_lists,
                keyspace.discard_list_bytes,
            ),
        ] {
            if files == 0 {
                continue;
            }
            table.add_row([
                Cell::new(&keyspace.name),
                right(&name),
                right(&files),
                right(&""),
                right(&human_bytes(bytes)),
            ]);
        }
    }
    table
}

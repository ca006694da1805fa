//! `stats` and `levels`.

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

fn totals(stats: &Stats) -> Table {
    let bytes = |count| human_bytes(count);
    let rows = [
        ("last sequence number", human_count(stats.sequence)),
        ("bytes on disk", bytes(stats.disk_bytes)),
        ("since open: given by writers", bytes(stats.user_bytes)),
        ("  written to the log", bytes(stats.wal_bytes)),
        ("  written to value logs", bytes(stats.value_log_bytes)),
        ("  written by flushes: tables", bytes(stats.flush_bytes)),
        (
            "  written by flushes: runs",
            bytes(stats.transient_log_bytes_written),
        ),
        ("  written by merges", bytes(stats.compaction_bytes_written)),
        ("  appended by merges", bytes(stats.append_bytes_written)),
        (
            "  read by merges: tables",
            bytes(stats.compaction_bytes_read),
        ),
        (
            "  read by merges: runs",
            bytes(stats.transient_log_bytes_read),
        ),
        (
            "  written by consolidations",
            bytes(stats.consolidation_bytes_written),
        ),
        (
            "  read by consolidations",
            bytes(stats.consolidation_bytes_read),
        ),
        ("  written by collections", bytes(stats.gc_bytes_written)),
        ("  read by collections", bytes(stats.gc_bytes_read)),
        ("  written to manifests", bytes(stats.manifest_bytes)),
        ("  flushes", human_count(stats.flushes)),
        ("  merges", human_count(stats.compactions)),
        ("  segments appended", human_count(stats.appends)),
        ("  moves", human_count(stats.trivial_moves)),
        ("  collections", human_count(stats.garbage_collections)),
        (
            "  garbage values collected",
            human_count(stats.gc_values_dropped),
        ),
        (
            "  writes that had to wait",
            human_count(stats.stall_count()),
        ),
    ];
    let mut table = plain_table();
    for (name, amount) in rows {
        table.add_row([Cell::new(name), right(&amount)]);
    }
    table
}

/// What jobs have moved since the database was opened; `None` where they have moved nothing.
fn io_stats_table(stats: &Stats) -> Option<Table> {
    let mut table = plain_table();
    table.set_header([
        Cell::new("keyspace"),
        right(&"into level"),
        right(&"flushed"),
        right(&"appended"),
        right(&"rewritten"),
        right(&"consolidated"),
        right(&"redirected"),
        right(&"moved"),
        right(&"runs"),
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
    let mut table = plain_table();
    table.set_header([Cell::new("memory"), right(&"bytes")]);
    for (name, amount) in [
        ("memtables", memory.memtables),
        ("block cache", memory.block_cache),
        ("tables: indexes, filters", memory.tables),
        ("cursors", memory.cursors),
        ("flushes and merges", memory.jobs),
        ("total", memory.total),
    ] {
        table.add_row([Cell::new(name), right(&human_bytes(amount))]);
    }
    let budget = match memory.budget {
        0 => "none".to_owned(),
        budget => human_bytes(budget),
    };
    table.add_row([Cell::new("budget"), right(&budget)]);
    table
}

/// The causes that made writes wait; `None` where none did.
fn stalls_table(stats: &Stats) -> Option<Table> {
    let mut table = plain_table();
    table.set_header([
        Cell::new("writes waited for"),
        right(&"delays"),
        right(&"stops"),
        right(&"seconds"),
        right(&"longest"),
    ]);
    let mut waited = stats
        .stalls
        .iter()
        .filter(|stall| stall.delays + stall.stops > 0)
        .peekable();
    waited.peek()?;
    for stall in waited {
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
            ("runs", transient_logs.files, transient_logs.bytes),
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

//! `stats` and `levels`: what a database has done, and what it looks like.

use clap::Args;
use comfy_table::{Cell, Table};
use serde_json::json;
use windrow::{LevelIoStats, MemoryUse, Result, Stats};

use crate::outcome::Outcome;
use crate::output::Output;
use crate::picture;
use crate::store::{self, DbArgs};
use crate::tables::{pairs, plain_table, right};
use crate::text::{human_bytes, human_count};

/// Arguments of `stats`.
#[derive(Debug, Args)]
#[command(after_help = "\
Counters are those since the database was created; counters that are zero are left out. Counters of \
reads and of stalls exist only while a program has the database open: the program shows them itself.

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
        output.bytes(stats.to_prometheus_stored().as_bytes())?;
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

/// The state of the database, and what it has done since it was created, without zeros.
fn totals(stats: &Stats) -> Table {
    let done = &stats.lifetime;
    let of_bytes = [
        ("since creation: given by writers", done.user_bytes),
        ("written to the log", done.wal_bytes),
        ("written to value logs", done.value_log_bytes),
        ("written to tables by flushes", done.flush_bytes),
        ("written to tables by bulk loads", done.bulk_load_bytes),
        (
            "written to transient logs by flushes",
            done.transient_log_bytes_written,
        ),
        ("written by compactions", done.compaction_bytes_written),
        ("appended by compactions", done.append_bytes_written),
        (
            "read from tables by compactions",
            done.compaction_bytes_read,
        ),
        (
            "read from transient logs by compactions",
            done.transient_log_bytes_read,
        ),
        (
            "written by consolidations",
            done.consolidation_bytes_written,
        ),
        ("read by consolidations", done.consolidation_bytes_read),
        ("written by garbage collections", done.gc_bytes_written),
        ("read by garbage collections", done.gc_bytes_read),
        ("written to manifests", done.manifest_bytes),
    ];
    let of_counts = [
        ("flushes", done.flushes),
        ("bulk loads", done.bulk_loads),
        ("ingestions", done.ingestions),
        ("compactions", done.compactions),
        ("segments appended", done.appends),
        ("trivial moves", done.trivial_moves),
        ("range deletes written", done.range_deletes),
        ("transactions committed", done.transactions_committed),
        ("conflicts", done.conflicts),
        ("deadlocks", done.deadlocks),
        ("lock timeouts", done.lock_timeouts),
        ("operands written", done.operands),
        ("entries folded", done.entries_folded),
        ("folds failed", done.folds_failed),
        ("entries expired", done.entries_expired),
        ("entries judged by filters", done.entries_judged),
        ("entries removed by filters", done.judged_removed),
        ("values replaced by filters", done.judged_replaced),
        ("changes of filters dropped", done.judged_dropped),
        ("calls of filters failed", done.judged_failed),
        ("folds of gets kept", done.folds_kept),
        ("folds of gets dropped", done.folds_dropped),
        ("garbage collections", done.garbage_collections),
        ("garbage values collected", done.gc_values_dropped),
    ];
    let state = [
        ("last sequence number", human_count(stats.sequence)),
        (
            "on disk, the reserve included",
            human_bytes(stats.disk_bytes),
        ),
    ];
    let prepared = stats.prepared_transactions;
    let prepared = (prepared > 0).then(|| ("prepared transactions", human_count(prepared)));
    let held = stats.files_held_by_readers;
    let held = (held > 0).then(|| ("files that stay for readers", human_count(held)));
    let of_bytes = of_bytes.into_iter().filter(|(_, bytes)| *bytes > 0);
    let of_counts = of_counts.into_iter().filter(|(_, count)| *count > 0);
    pairs(
        state
            .into_iter()
            .chain(prepared)
            .chain(held)
            .chain(of_bytes.map(|(name, bytes)| (name, human_bytes(bytes))))
            .chain(of_counts.map(|(name, count)| (name, human_count(count)))),
    )
}

/// The I/O of jobs since the keyspaces were created; `None` if there was none.
fn io_stats_table(stats: &Stats) -> Option<Table> {
    let mut table = plain_table();
    table.set_header([
        Cell::new("keyspace"),
        right(&"into level"),
        right(&"flushed"),
        right(&"bulk-loaded"),
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
            let io_stats = level.lifetime_io_stats;
            if io_stats == LevelIoStats::default() {
                continue;
            }
            is_empty = false;
            table.add_row([
                Cell::new(&keyspace.name),
                right(&level.level),
                right(&human_bytes(io_stats.flushed)),
                right(&human_bytes(io_stats.bulk_loaded)),
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
        ("transactions", memory.transactions),
        ("total", memory.total),
    ];
    let parts = parts.map(|(name, bytes)| (name, human_bytes(bytes)));
    pairs(parts.into_iter().chain([("budget", budget)]))
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
        right(&"of ranges"),
        right(&"operands"),
        right(&"expiring"),
        right(&"expiring bytes"),
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
                right(&human_count(level.range_tombstones)),
                right(&human_count(level.operands)),
                right(&human_count(level.expiring_entries)),
                right(&human_bytes(level.expiring_bytes)),
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

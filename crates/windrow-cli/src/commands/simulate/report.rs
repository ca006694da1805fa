//! The report of `simulate`, for programs and for people.
//!
//! Concurrency: none; no state.

use std::fmt;

use comfy_table::{Cell, Table};
use serde::Serialize;
use windrow::simulation::{
    Estimate, IoStats, LevelIoStats, LevelShape, Load, Sample, ValueSize, ValueSpace,
};
use windrow::{Error, KeyspaceOptions, Result};

use super::reads::Reads;
use crate::picture;
use crate::tables::{plain_table, right};
use crate::text::{human_bytes, human_count};

/// The most rows of the table of samples.
const SAMPLES_SHOWN: usize = 12;

/// The costs of a load.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// Bytes of keys and values that were written.
    user_bytes: u64,
    key_bytes: u64,
    values: Vec<ValueSize>,
    keys: u64,
    writes: u64,
    /// The fractions of the writes of drawn keys that are deletes and merges, and bytes of an operand.
    deletes: f64,
    merges: f64,
    operand_bytes: u64,
    /// Range deletes for each write, and the fraction of the keys that each covers.
    range_deletes_per_write: f64,
    range_delete_part: f64,
    /// The fraction of the values that expire, and after how many writes.
    expiring: f64,
    time_to_live: u64,
    /// The nominal number of levels below level 0.
    levels: usize,
    /// Bytes written for each byte given, over the whole load.
    write_amplification: f64,
    /// Bytes written and read for each byte given.
    io_amplification: f64,
    /// Bytes of tables and value files over those that the live entries take alone, at the end and at most.
    space_amplification: f64,
    space_amplification_max: f64,
    /// Runs that a seek visits, on average over keys and over the whole load, and at the end.
    runs_per_seek: f64,
    runs_per_seek_at_end: f64,
    /// Blocks that a get of an absent key reads on average.
    false_positive_reads_per_absent_key: f64,
    /// Memory of all filters.
    filter_bytes: u64,
    space: Space,
    /// Bytes moved, by cause.
    io_stats: IoStats,
    /// Each level at the end, level 0 first.
    tree: Vec<Level>,
    /// The tree while the load is written.
    pub(super) samples: Vec<Point>,
    /// How many levels below level 0 were simulated separately from the others; 0 for one piece.
    separate_levels: usize,
    pub(super) options: KeyspaceOptions,
    /// What reads ask of the device, if memory is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    reads: Option<Reads>,
}

/// Bytes on disk at the end, by kind.
#[derive(Debug, Serialize)]
struct Space {
    /// Keys and values that a reader can see.
    live_bytes: u64,
    table_bytes: u64,
    #[serde(flatten)]
    values: ValueSpace,
}

/// A level.
#[derive(Debug, Serialize)]
struct Level {
    #[serde(rename = "level")]
    number: usize,
    #[serde(flatten)]
    shape: LevelShape,
    /// Runs that a seek visits here, on average over the load.
    runs_per_seek: f64,
    io_stats: LevelIoStats,
}

/// The tree after some of the writes.
#[derive(Debug, Serialize)]
pub(super) struct Point {
    pub(super) writes: u64,
    pub(super) user_bytes: u64,
    pub(super) levels: usize,
    pub(super) write_amplification: f64,
    pub(super) space_amplification: f64,
    pub(super) runs_per_seek: f64,
    pub(super) live_bytes: u64,
}

impl Report {
    pub(super) fn new(load: &Load, estimate: &Estimate, reads: Option<Reads>) -> Result<Self> {
        let Some(last) = estimate.samples.last() else {
            return Err(Error::invalid_argument("nothing was written"));
        };
        let interval = &estimate.interval;
        let io_stats = last.io_stats.clone();
        let read: u64 = io_stats.levels.iter().map(LevelIoStats::all_read).sum();
        let moved = io_stats.written() + io_stats.gc_read + read;
        let level = |(level, shape): (usize, &LevelShape)| Level {
            number: level,
            shape: *shape,
            runs_per_seek: interval.runs.get(level).copied().unwrap_or(0.0),
            io_stats: io_stats.levels.get(level).copied().unwrap_or_default(),
        };
        Ok(Self {
            user_bytes: io_stats.user,
            key_bytes: load.key_bytes,
            values: load.values.clone(),
            keys: load.keys,
            writes: load.writes(),
            deletes: load.deletes,
            merges: load.merges,
            operand_bytes: load.operand_bytes,
            range_deletes_per_write: load.range_deletes_per_write,
            range_delete_part: load.range_delete_part,
            expiring: load.expiring,
            time_to_live: load.time_to_live,
            levels: last.level_count,
            write_amplification: interval.write_amplification,
            io_amplification: moved as f64 / io_stats.user.max(1) as f64,
            space_amplification: last.space_amplification,
            space_amplification_max: interval.space_amplification_max,
            runs_per_seek: interval.runs_per_seek(),
            runs_per_seek_at_end: last.runs_per_seek,
            false_positive_reads_per_absent_key: if load.filters {
                last.false_positive_reads
            } else {
                last.runs_per_seek
            },
            filter_bytes: last.filter_bytes,
            space: Space {
                live_bytes: last.live_bytes,
                table_bytes: last.levels.iter().map(|level| level.bytes).sum(),
                values: last.values,
            },
            tree: last.levels.iter().enumerate().map(level).collect(),
            samples: estimate.samples.iter().map(Point::of).collect(),
            separate_levels: estimate.separate_levels,
            options: load.options.clone(),
            reads,
            io_stats,
        })
    }

    fn totals(&self) -> Table {
        let mut rows = vec![
            ("keys", human_count(self.keys)),
            ("writes", human_count(self.writes)),
            ("bytes given", human_bytes(self.user_bytes)),
            ("levels", self.levels.to_string()),
            (
                "written for each byte given",
                format!("{:.2}", self.write_amplification),
            ),
            ("  and read, too", format!("{:.2}", self.io_amplification)),
            (
                "disk / live entries alone",
                format!("{:.2}", self.space_amplification),
            ),
            ("  at most", format!("{:.2}", self.space_amplification_max)),
            (
                "runs that a seek visits",
                format!("{:.2}", self.runs_per_seek),
            ),
            ("  at the end", format!("{:.2}", self.runs_per_seek_at_end)),
            (
                "blocks read for an absent key",
                format!("{:.4}", self.false_positive_reads_per_absent_key),
            ),
            ("memory of filters", human_bytes(self.filter_bytes)),
            ("on disk: live entries", human_bytes(self.space.live_bytes)),
            ("  tables", human_bytes(self.space.table_bytes)),
        ];
        let sum = |of: fn(&LevelShape) -> u64| -> u64 {
            let shapes = self.tree.iter().map(|level| &level.shape);
            shapes.map(of).sum()
        };
        if self.merges > 0.0 {
            let operands = human_count(sum(|shape| shape.operands));
            rows.push(("    operands in them", operands));
        }
        if self.range_deletes_per_write > 0.0 {
            let ranges = human_count(sum(|shape| shape.range_tombstones));
            rows.push(("    range tombstones in them", ranges));
        }
        if self.expiring > 0.0 {
            let expired = human_bytes(sum(|shape| shape.expired_bytes));
            rows.push(("    expired in them and in value files", expired));
        }
        let values = self.space.values;
        if values.transient_log_bytes > 0 {
            rows.push(("  transient logs", human_bytes(values.transient_log_bytes)));
            rows.push((
                "    garbage in them",
                human_bytes(values.transient_log_garbage_bytes),
            ));
        }
        if values.log_bytes > 0 {
            rows.push(("  value logs", human_bytes(values.log_bytes)));
            rows.push((
                "    garbage in them",
                human_bytes(values.value_log_garbage_bytes),
            ));
        }
        rows.push(("written to the log", human_bytes(self.io_stats.wal)));
        if values.log_bytes > 0 {
            let collected = human_bytes(self.io_stats.gc_written);
            rows.push(("  to value logs", human_bytes(self.io_stats.value_logs)));
            rows.push(("  by garbage collections", collected));
            let read = human_bytes(self.io_stats.gc_read);
            rows.push(("  read by garbage collections", read));
        }
        if let Some(reads) = &self.reads {
            rows.extend(reads.rows());
        }
        let mut table = plain_table();
        for (name, amount) in rows {
            table.add_row([Cell::new(name), right(&amount)]);
        }
        table
    }

    fn tree(&self) -> Table {
        let mut table = plain_table();
        let columns = [
            "level",
            "files",
            "segments",
            "bytes",
            "capacity",
            "runs",
            "flushed",
            "appended",
            "rewritten",
            "consolidated",
            "to transient logs",
            "read",
            "of transient logs",
        ];
        table.set_header(columns.map(|name| right(&name)));
        for level in &self.tree {
            let (shape, io_stats) = (level.shape, level.io_stats);
            table.add_row([
                right(&level.number),
                right(&human_count(shape.files as u64)),
                right(&human_count(shape.segments as u64)),
                right(&human_bytes(shape.bytes)),
                right(&human_bytes(shape.capacity)),
                right(&format!("{:.2}", level.runs_per_seek)),
                right(&human_bytes(io_stats.flushed)),
                right(&human_bytes(io_stats.appended)),
                right(&human_bytes(
                    io_stats.rewritten + io_stats.pointers_rewritten,
                )),
                right(&human_bytes(io_stats.consolidated)),
                right(&human_bytes(io_stats.transient_logs)),
                right(&human_bytes(
                    io_stats.all_read() - io_stats.transient_logs_read,
                )),
                right(&human_bytes(io_stats.transient_logs_read)),
            ]);
        }
        table
    }

    /// The tree while the load is written, in a few rows.
    fn course(&self) -> Table {
        let mut table = plain_table();
        let columns = ["bytes given", "live", "levels", "written", "space", "runs"];
        table.set_header(columns.map(|name| right(&name)));
        let step = self.samples.len().div_ceil(SAMPLES_SHOWN).max(1);
        // The last sample has a row.
        let first = (self.samples.len() - 1) % step;
        for point in self.samples.iter().skip(first).step_by(step) {
            table.add_row([
                right(&human_bytes(point.user_bytes)),
                right(&human_bytes(point.live_bytes)),
                right(&point.levels),
                right(&format!("{:.2}", point.write_amplification)),
                right(&format!("{:.2}", point.space_amplification)),
                right(&format!("{:.2}", point.runs_per_seek)),
            ]);
        }
        table
    }
}

impl Point {
    fn of(sample: &Sample) -> Self {
        Self {
            writes: sample.writes,
            user_bytes: sample.io_stats.user,
            levels: sample.level_count,
            write_amplification: sample.io_stats.write_amplification(),
            space_amplification: sample.space_amplification,
            runs_per_seek: sample.runs_per_seek,
            live_bytes: sample.live_bytes,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (totals, tree, course) = (self.totals(), self.tree(), self.course());
        writeln!(formatter, "{totals}\n\n{tree}\n\n{course}\n")?;
        if self.separate_levels > 0 {
            let separate = self.separate_levels;
            writeln!(
                formatter,
                "simulated in parts: the upper {separate} levels separately\n"
            )?;
        }
        write!(formatter, "options: {}", picture::options(&self.options))
    }
}

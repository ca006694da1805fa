//! What a simulation says of a tree, as far as costs depend on it.
//!
//! Concurrency: none; no state.

use windrow::KeyspaceOptions;
use windrow::simulation::{Estimate, IoStats, Sample, ValueClass};

use super::cpu;
use crate::amounts::whole;
use crate::commands::cost::Demand;

/// A level of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Level {
    pub(crate) entries: f64,
    pub(crate) bytes: f64,
    /// Runs that a seek visits.
    pub(crate) runs: f64,
}

/// Values that are separated from their keys.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Separated {
    /// Their fraction of all values.
    pub(crate) fraction: f64,
    /// Bytes of all of them.
    pub(crate) bytes: f64,
    /// Bytes of one.
    pub(crate) value_bytes: f64,
}

/// A tree, as a simulation predicts it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Shape {
    /// Level 0 first; the last one holds data.
    pub(crate) levels: Vec<Level>,
    pub(crate) value_logs: Separated,
    pub(crate) transient_logs: Separated,
    /// Operands that are not folded with the value of their key, for each key.
    pub(crate) operands_per_key: f64,
    /// The I/O of one write, on average.
    pub(crate) moved: Moved,
    pub(crate) write_amplification: f64,
    pub(crate) space_amplification: f64,
    pub(crate) space_amplification_max: f64,
}

impl Shape {
    /// The tree of `estimate`, with `options` and under `demand`: on average while the writes that count are made.
    pub(crate) fn new(estimate: &Estimate, demand: &Demand, options: &KeyspaceOptions) -> Self {
        let (draws, counted) = demand.writes();
        let from = (demand.keys + draws).saturating_sub(counted);
        let late = estimate.samples.iter().rev().enumerate();
        let late = late.take_while(|(place, sample)| *place == 0 || sample.writes > from);
        let counting: Vec<&Sample> = late.map(|(_, sample)| sample).collect();
        let interval = &estimate.interval;
        let is_read_only = demand.fractions.writes() == 0.0;
        let runs = |last: &Sample, level: usize| {
            let at_end = last.runs.get(level).copied().unwrap_or(0.0);
            if !is_read_only {
                interval.runs.get(level).copied().unwrap_or(0.0)
            } else if demand.fractions.scans > 0.0 {
                // Nothing is written, and scans trigger consolidations.
                at_end.min(1.0)
            } else {
                at_end
            }
        };
        // The writes that count begin with a sample, not exactly at `from`.
        let samples = estimate.samples.iter().rev();
        let before = samples
            .map(|sample| sample.writes)
            .find(|writes| *writes <= from);
        Self::of(
            estimate,
            &counting,
            before.unwrap_or(0),
            runs,
            demand,
            options,
        )
    }

    /// The tree at the end of `estimate`.
    pub(crate) fn at_end(estimate: &Estimate, demand: &Demand, options: &KeyspaceOptions) -> Self {
        let last: Vec<&Sample> = estimate.samples.last().into_iter().collect();
        let runs = |last: &Sample, level: usize| last.runs.get(level).copied().unwrap_or(0.0);
        Self::of(estimate, &last, 0, runs, demand, options)
    }

    /// The mean of the samples that are `counting`, the last one first, with the `runs` of a level that the last one
    /// says. The I/O of `estimate` began after `before` writes.
    fn of(
        estimate: &Estimate,
        counting: &[&Sample],
        before: u64,
        runs: impl Fn(&Sample, usize) -> f64,
        demand: &Demand,
        options: &KeyspaceOptions,
    ) -> Self {
        let Some(last) = counting.first() else {
            return Self::default();
        };
        let interval = &estimate.interval;
        let mean = |of: &dyn Fn(&Sample) -> u64| {
            counting.iter().map(|sample| of(sample) as f64).sum::<f64>() / counting.len() as f64
        };
        let level = |level: usize| {
            let of = |sample: &Sample| sample.levels.get(level).copied().unwrap_or_default();
            Level {
                entries: mean(&|sample| of(sample).entries),
                bytes: mean(&|sample| of(sample).bytes),
                runs: runs(last, level),
            }
        };
        let depth = last.levels.len().max(interval.runs.len());
        let mut levels: Vec<Level> = (0..depth).map(level).collect();
        while levels.last().is_some_and(|level| level.entries < 0.5) {
            levels.pop();
        }
        let operands = mean(&|sample| sample.levels.iter().map(|level| level.operands).sum());
        let writes = (last.writes - before).max(1) as f64;
        let moved = Moved::new(&interval.io_stats, &levels, writes);
        let (value_logs, transient_logs) = separated(demand, options, last);
        Self {
            levels,
            value_logs,
            transient_logs,
            operands_per_key: operands / demand.keys as f64,
            moved,
            write_amplification: interval.write_amplification,
            space_amplification: mean(&|sample| whole_millionths(sample.space_amplification)) / 1e6,
            space_amplification_max: interval.space_amplification_max,
        }
    }

    /// The same tree with `times` as many entries.
    pub(crate) fn times(mut self, times: f64) -> Self {
        for level in &mut self.levels {
            level.entries *= times;
            level.bytes *= times;
        }
        self.value_logs.bytes *= times;
        self.transient_logs.bytes *= times;
        self
    }

    /// Entries of all levels.
    pub(super) fn entries(&self) -> f64 {
        self.levels.iter().map(|level| level.entries).sum()
    }

    /// Bytes of all tables.
    pub(super) fn table_bytes(&self) -> f64 {
        self.levels.iter().map(|level| level.bytes).sum()
    }

    pub(super) fn runs_per_seek(&self) -> f64 {
        self.levels.iter().map(|level| level.runs).sum()
    }
}

/// Bytes and entries that jobs move for one write.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Moved {
    pub(crate) log: f64,
    pub(crate) value_logs: f64,
    /// Entries that flushes and compactions write to tables.
    pub(crate) entries: f64,
    pub(crate) tables_written: f64,
    pub(crate) tables_read: f64,
    pub(crate) transient_logs_written: f64,
    pub(crate) transient_logs_read: f64,
    pub(crate) gc_written: f64,
    pub(crate) gc_read: f64,
}

impl Moved {
    /// `io_stats` divided by `writes`.
    fn new(io_stats: &IoStats, levels: &[Level], writes: f64) -> Self {
        let bytes: f64 = levels.iter().map(|level| level.bytes).sum();
        let entries: f64 = levels.iter().map(|level| level.entries).sum();
        let each = |bytes: u64| bytes as f64 / writes;
        let mut moved = Self {
            log: each(io_stats.wal),
            value_logs: each(io_stats.value_logs),
            gc_written: each(io_stats.gc_written),
            gc_read: each(io_stats.gc_read),
            ..Self::default()
        };
        for (level, into) in io_stats.levels.iter().enumerate() {
            let own = levels.get(level).filter(|level| level.entries >= 1.0);
            let entry = own.map_or(bytes / entries.max(1.0), |own| own.bytes / own.entries);
            let written = each(into.written() - into.transient_logs);
            moved.entries += written / entry.max(1.0);
            moved.tables_written += written;
            moved.tables_read += each(into.all_read() - into.transient_logs_read);
            moved.transient_logs_written += each(into.transient_logs);
            moved.transient_logs_read += each(into.transient_logs_read);
        }
        moved
    }

    /// What the processor takes for it, in microseconds.
    pub(super) fn cpu(&self, bits_per_key: f64) -> f64 {
        self.log * cpu::BYTE_LOGGED
            + self.value_logs * cpu::BYTE_TO_VALUE_LOG
            + self.entries * (cpu::ENTRY_MOVED + bits_per_key * cpu::FILTER_BIT)
            + (self.tables_written + self.tables_read) * cpu::BYTE_COMPACTED
            + self.transient_logs_written * cpu::BYTE_TO_TRANSIENT_LOG
            + self.transient_logs_read * cpu::BYTE_OF_TRANSIENT_LOG
            + self.gc_written * cpu::BYTE_TO_GC_OUTPUT
            + self.gc_read * cpu::BYTE_OF_GC
    }

    pub(super) fn written(&self) -> f64 {
        let tables = self.tables_written + self.transient_logs_written;
        self.log + self.value_logs + tables + self.gc_written
    }

    pub(super) fn read(&self) -> f64 {
        self.tables_read + self.transient_logs_read + self.gc_read
    }
}

/// The values in value logs, and those in transient logs.
fn separated(
    demand: &Demand,
    options: &KeyspaceOptions,
    sample: &Sample,
) -> (Separated, Separated) {
    let all: f64 = demand.values.iter().map(|size| size.fraction).sum();
    let of = |class: ValueClass| {
        let sizes = demand.values.iter();
        let sizes = sizes.filter(|size| demand.class(size.bytes, options) == class);
        sizes.fold((0.0, 0.0), |(fraction, bytes), size| {
            let part = size.fraction / all;
            (fraction + part, bytes + part * size.bytes as f64)
        })
    };
    let space = sample.values;
    let (fraction, bytes) = of(ValueClass::Large);
    let value_logs = Separated {
        fraction,
        bytes: space.log_bytes as f64,
        value_bytes: if fraction > 0.0 {
            bytes / fraction
        } else {
            0.0
        },
    };
    let (fraction, bytes) = of(ValueClass::Medium);
    // The others are in place already.
    let live = space
        .transient_log_bytes
        .saturating_sub(space.transient_log_garbage_bytes) as f64;
    let in_transient_logs = if fraction > 0.0 {
        (live / (bytes * demand.keys as f64)).min(1.0)
    } else {
        0.0
    };
    let transient_logs = Separated {
        fraction: fraction * in_transient_logs,
        bytes: space.transient_log_bytes as f64,
        value_bytes: if fraction > 0.0 {
            bytes / fraction
        } else {
            0.0
        },
    };
    (value_logs, transient_logs)
}

fn whole_millionths(number: f64) -> u64 {
    whole(number * 1e6)
}

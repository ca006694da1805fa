//! What operations cost under given options, in microseconds: of the processor, background work included, and
//! of the device.
//!
//! A [`Shape`] is what a simulation says of a tree. From it and a [`Demand`] follow the [`Costs`]; filter bits
//! are no part of the shape, since merges do not depend on them.
//!
//! - A *write* costs a constant, something for each byte that is given, and for each entry and each byte that
//!   flushes, merges and collections move on its behalf.
//! - A *get* costs a constant, each filter that is asked, each block that is read, and the value where that
//!   stands apart. Filters share their bits out as the engine does, after Monkey.
//! - A *scan* costs a constant, each run that is opened, each entry, and each value that stands apart.
//! - *Memory* that memtables, filters and indexes leave holds what is read most often for its size. What is not
//!   there is read from the device.
//!
//! I1. More runs, more bytes moved and less memory never make anything cheaper.

use serde::Serialize;
use windrow::simulation::{Estimate, IoStats, KeyDistribution, Sample, ValueClass};
use windrow::{FilterAllocation, KeyspaceOptions};

use super::demand::Demand;
use crate::amounts::whole;

/// Microseconds of one processor. Fitted to the processor time of `windrow bench` under settings that differ in
/// segments, filter bits, sizes and placement; docs/advise.md has the commands. Another machine is faster
/// or slower in all of them, which changes no choice.
mod cpu {
    /// A write: log, memtable, system call.
    pub(super) const WRITE: f64 = 2.3;
    /// Each byte that is written to the log.
    pub(super) const BYTE_LOGGED: f64 = 0.0035;
    /// Each byte that is written to a value log.
    pub(super) const BYTE_TO_VALUE_LOG: f64 = 0.0018;
    /// Each entry that a flush or a merge writes to a table.
    pub(super) const ENTRY_MOVED: f64 = 0.05;
    /// Beside that, where its value is in a log; found later, by the large load of docs/advise.md.
    pub(super) const POINTER_MOVED: f64 = 0.1;
    /// Each filter bit of such an entry.
    pub(super) const FILTER_BIT: f64 = 0.001;
    /// Each byte of tables that flushes and merges write or read.
    pub(super) const BYTE_MERGED: f64 = 0.000_65;
    /// Each byte that is written to runs.
    pub(super) const BYTE_TO_TRANSIENT_LOG: f64 = 0.000_9;
    /// Each byte that merges read of runs and of relocation tables: less at a time than of tables.
    pub(super) const BYTE_OF_TRANSIENT_LOG: f64 = 0.003;
    /// Each byte that collections write, and that they read.
    pub(super) const BYTE_TO_GC_OUTPUT: f64 = 0.002;
    pub(super) const BYTE_OF_GC: f64 = 0.000_6;
    /// A get, without what follows.
    pub(super) const GET: f64 = 0.15;
    /// Each run that it asks, the filter included.
    pub(super) const RUN_ASKED: f64 = 0.07;
    /// Each block that is searched.
    pub(super) const BLOCK_SEARCHED: f64 = 0.85;
    /// What it finds.
    pub(super) const FOUND: f64 = 0.6;
    /// Each byte of it.
    pub(super) const BYTE_RETURNED: f64 = 0.000_3;
    /// A scan.
    pub(super) const SCAN: f64 = 0.6;
    /// Each run that it opens.
    pub(super) const RUN_OPENED: f64 = 1.1;
    /// Each entry of a scan.
    pub(super) const STEP: f64 = 0.04;
    /// The same for each run beyond the first.
    pub(super) const STEP_PER_RUN: f64 = 0.035;
    /// Each byte of tables that a scan passes.
    pub(super) const BYTE_PASSED: f64 = 0.000_13;
    /// A value in a log, and one in a run, where many are neighbours.
    pub(super) const LOG_FOLLOWED: f64 = 0.45;
    pub(super) const RUN_FOLLOWED: f64 = 0.25;
}

/// What an entry of the index takes for a block, and the part of a key beside it.
const INDEX_BYTES: f64 = 24.0;

/// Bytes that the device reads for one value or one block at least.
const PAGE_BYTES: f64 = 4096.0;

/// A level of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Level {
    pub(super) entries: f64,
    pub(super) bytes: f64,
    /// Runs that a seek visits.
    pub(super) runs: f64,
}

/// What values stand apart from their keys.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Apart {
    /// Their part of all values.
    pub(super) fraction: f64,
    /// Bytes of all of them.
    pub(super) bytes: f64,
    /// Bytes of one.
    pub(super) value_bytes: f64,
}

/// What a simulation says of a tree.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Shape {
    /// Level 0 first; without levels that hold nothing below the last that does.
    pub(super) levels: Vec<Level>,
    /// Values in logs, and in runs.
    pub(super) logs: Apart,
    pub(super) runs: Apart,
    /// What one write moves, on average.
    pub(super) moved: Moved,
    pub(super) write_amplification: f64,
    pub(super) space_amplification: f64,
    pub(super) space_amplification_most: f64,
}

/// What operations cost, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Costs {
    /// Of the average write, get and scan.
    pub(super) write: f64,
    pub(super) get: f64,
    pub(super) missing: f64,
    pub(super) scan: f64,
    /// Of the average operation that reads.
    pub(super) reads: f64,
    /// Of the average operation of all.
    pub(super) operation: f64,
    /// Blocks that a get of an absent key reads in vain.
    pub(super) false_positive_reads: f64,
    pub(super) runs_per_seek: f64,
    pub(super) filter_bytes: f64,
    /// What memtables, filters and indexes take.
    pub(super) memory_bytes: f64,
    /// The part of the reads of blocks and values that memory answers.
    pub(super) hit_fraction: f64,
}

impl Shape {
    /// What `estimate` says of a tree with `options` under `demand`.
    pub(super) fn new(estimate: &Estimate, demand: &Demand, options: &KeyspaceOptions) -> Self {
        let (draws, counted) = demand.writes();
        let from = (demand.keys + draws).saturating_sub(counted);
        let counting: Vec<&Sample> = estimate
            .samples
            .iter()
            .rev()
            .enumerate()
            .take_while(|(place, sample)| *place == 0 || sample.writes > from)
            .map(|(_, sample)| sample)
            .collect();
        let Some(last) = counting.first() else {
            return Self::default();
        };
        let interval = &estimate.interval;
        let mean = |of: &dyn Fn(&Sample) -> u64| {
            counting.iter().map(|sample| of(sample) as f64).sum::<f64>() / counting.len() as f64
        };
        let is_read_only = demand.fractions.writes() == 0.0;
        let depth = last.levels.len().max(interval.runs.len());
        let level = |level: usize| {
            let of = |sample: &Sample| sample.levels.get(level).copied().unwrap_or_default();
            let at_end = last.runs.get(level).copied().unwrap_or(0.0);
            let runs = if !is_read_only {
                interval.runs.get(level).copied().unwrap_or(0.0)
            } else if demand.fractions.scans > 0.0 {
                // Nothing is written, and scans consolidate what they meet.
                at_end.min(1.0)
            } else {
                at_end
            };
            Level {
                entries: mean(&|sample| of(sample).entries),
                bytes: mean(&|sample| of(sample).bytes),
                runs,
            }
        };
        let mut levels: Vec<Level> = (0..depth).map(level).collect();
        while levels.last().is_some_and(|level| level.entries < 0.5) {
            levels.pop();
        }
        let io_stats = &interval.io_stats;
        // The stretch that counts begins with a sample, not just where it was asked for.
        let before = estimate
            .samples
            .iter()
            .rev()
            .find(|sample| sample.writes <= from);
        let writes = last.writes - before.map_or(0, |sample| sample.writes);
        let writes = writes.max(1) as f64;
        let moved = Moved::new(io_stats, &levels, writes);
        let (logs, runs) = apart(demand, options, last);
        Self {
            levels,
            logs,
            runs,
            moved,
            write_amplification: interval.write_amplification,
            space_amplification: mean(&|sample| whole_millionths(sample.space_amplification)) / 1e6,
            space_amplification_most: interval.space_amplification_max,
        }
    }

    /// The same tree with so many times the entries.
    pub(super) fn times(mut self, times: f64) -> Self {
        for level in &mut self.levels {
            level.entries *= times;
            level.bytes *= times;
        }
        self.logs.bytes *= times;
        self.runs.bytes *= times;
        self
    }

    /// Entries of all levels.
    fn entries(&self) -> f64 {
        self.levels.iter().map(|level| level.entries).sum()
    }

    /// Bytes of all tables.
    fn table_bytes(&self) -> f64 {
        self.levels.iter().map(|level| level.bytes).sum()
    }

    pub(super) fn runs_per_seek(&self) -> f64 {
        self.levels.iter().map(|level| level.runs).sum()
    }
}

/// Bytes, and entries, that are moved for one write.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Moved {
    pub(super) log: f64,
    pub(super) value_logs: f64,
    /// Entries that flushes and merges write to tables.
    pub(super) entries: f64,
    pub(super) tables_written: f64,
    pub(super) tables_read: f64,
    pub(super) transient_logs_written: f64,
    pub(super) transient_logs_read: f64,
    pub(super) gc_written: f64,
    pub(super) gc_read: f64,
}

impl Moved {
    /// What `traffic` comes to for each of so many writes.
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

    /// What the processor takes for it.
    fn cpu(&self, bits_per_key: f64) -> f64 {
        self.log * cpu::BYTE_LOGGED
            + self.value_logs * cpu::BYTE_TO_VALUE_LOG
            + self.entries * (cpu::ENTRY_MOVED + bits_per_key * cpu::FILTER_BIT)
            + (self.tables_written + self.tables_read) * cpu::BYTE_MERGED
            + self.transient_logs_written * cpu::BYTE_TO_TRANSIENT_LOG
            + self.transient_logs_read * cpu::BYTE_OF_TRANSIENT_LOG
            + self.gc_written * cpu::BYTE_TO_GC_OUTPUT
            + self.gc_read * cpu::BYTE_OF_GC
    }

    fn written(&self) -> f64 {
        let tables = self.tables_written + self.transient_logs_written;
        self.log + self.value_logs + tables + self.gc_written
    }

    fn read(&self) -> f64 {
        self.tables_read + self.transient_logs_read + self.gc_read
    }
}

/// The values in logs, and those in runs.
fn apart(demand: &Demand, options: &KeyspaceOptions, sample: &Sample) -> (Apart, Apart) {
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
    let logs = Apart {
        fraction,
        bytes: space.log_bytes as f64,
        value_bytes: if fraction > 0.0 {
            bytes / fraction
        } else {
            0.0
        },
    };
    let (fraction, bytes) = of(ValueClass::Medium);
    // The others are in place by now.
    let live = space
        .transient_log_bytes
        .saturating_sub(space.transient_log_garbage_bytes) as f64;
    let in_transient_logs = if fraction > 0.0 {
        (live / (bytes * demand.keys as f64)).min(1.0)
    } else {
        0.0
    };
    let runs = Apart {
        fraction: fraction * in_transient_logs,
        bytes: space.transient_log_bytes as f64,
        value_bytes: if fraction > 0.0 {
            bytes / fraction
        } else {
            0.0
        },
    };
    (logs, runs)
}

/// Where reads go: bytes, and how often an average operation reads a block there.
#[derive(Debug, Clone, Copy)]
struct Place {
    bytes: f64,
    reads: f64,
}

impl Costs {
    /// What `demand` costs in a tree of this `shape` under `options`.
    pub(super) fn new(shape: &Shape, demand: &Demand, options: &KeyspaceOptions) -> Self {
        let filters = Filters::new(shape, options);
        let useless = filters.useless();
        let filter_bytes = shape.entries() * options.bits_per_key / 8.0;
        let blocks = shape.table_bytes() / options.block_bytes as f64;
        let memtables = 2.0 * options.memtable_bytes as f64;
        let memory_bytes = memtables + filter_bytes + blocks * INDEX_BYTES;
        let misses = Misses::new(shape, demand, &filters, memory_bytes);
        let device = demand.device.cost();
        let passed = shape.table_bytes() / shape.entries().max(1.0);
        let block = passed.max(options.block_bytes as f64);
        let wait = |blocks: f64| blocks * (device.random_read + block * device.byte_read);
        let wait_for_values =
            misses.values * device.random_read + misses.value_bytes * device.byte_read;

        let write = cpu::WRITE
            + shape.moved.cpu(options.bits_per_key)
            + shape.moved.entries * shape.logs.fraction * cpu::POINTER_MOVED
            + shape.moved.written() * device.byte_written
            + shape.moved.read() * misses.tables * device.byte_read;

        let (logs, in_transient_logs) = (shape.logs, shape.runs);
        let follow =
            logs.fraction * cpu::LOG_FOLLOWED + in_transient_logs.fraction * cpu::RUN_FOLLOWED;
        let get = cpu::GET
            + cpu::FOUND
            + filters.asked_if_found * cpu::RUN_ASKED
            + (1.0 + useless.found) * cpu::BLOCK_SEARCHED
            + follow
            + demand.value_bytes() * cpu::BYTE_RETURNED
            + wait(misses.found)
            + wait_for_values;
        let runs = shape.runs_per_seek();
        let missing = cpu::GET
            + runs * cpu::RUN_ASKED
            + useless.missing * cpu::BLOCK_SEARCHED
            + wait(misses.useless);

        let returned = logs.fraction * logs.value_bytes
            + in_transient_logs.fraction * in_transient_logs.value_bytes;
        let step = cpu::STEP
            + (runs - 1.0).max(0.0) * cpu::STEP_PER_RUN
            + passed * cpu::BYTE_PASSED
            + follow
            + returned * cpu::BYTE_RETURNED
            + passed * misses.tables * device.byte_read
            + wait_for_values;
        let scan =
            cpu::SCAN + runs * cpu::RUN_OPENED + demand.scan_length * step + wait(misses.opened);

        let fractions = demand.fractions;
        let reading = fractions.gets * get + fractions.missing * missing + fractions.scans * scan;
        let reads = match fractions.reads() {
            0.0 => 0.0,
            all => reading / all,
        };
        Self {
            write,
            get,
            missing,
            scan,
            reads,
            operation: fractions.writes() * write + reading,
            false_positive_reads: useless.missing,
            runs_per_seek: runs,
            filter_bytes,
            memory_bytes,
            hit_fraction: misses.hit_fraction,
        }
    }
}

/// What filters let pass, on average over keys.
#[derive(Debug, Clone)]
struct Filters {
    /// Of each level of the shape, what is read there in vain.
    levels: Vec<Useless>,
    /// Runs that a get asks which finds its key, its own included.
    asked_if_found: f64,
}

/// Blocks that gets read in vain.
#[derive(Debug, Clone, Copy, Default)]
struct Useless {
    /// Of an absent key.
    missing: f64,
    /// Of one that is found, elsewhere.
    found: f64,
}

impl Filters {
    fn new(shape: &Shape, options: &KeyspaceOptions) -> Self {
        let entries = shape.entries().max(1.0);
        let fraction = |level: &Level| {
            if level.runs > 0.0 {
                level.entries / entries
            } else {
                0.0
            }
        };
        let mut filters = Self {
            levels: Vec::new(),
            asked_if_found: 0.0,
        };
        let mut below: f64 = shape.levels.iter().map(fraction).sum();
        let mut asked_above = 0.0;
        for level in &shape.levels {
            if level.runs <= 0.0 {
                filters.levels.push(Useless::default());
                continue;
            }
            let own = fraction(level);
            below -= own;
            // Half of the other runs of its own level come before it.
            let before = (level.runs - 1.0).max(0.0) / 2.0;
            let missing = level.runs * Self::rate(shape, options, own / level.runs);
            filters.levels.push(Useless {
                missing,
                found: missing * (below.max(0.0) + own * before / level.runs),
            });
            filters.asked_if_found += own * (asked_above + before + 1.0);
            asked_above += level.runs;
        }
        filters
    }

    /// Of all levels.
    fn useless(&self) -> Useless {
        let levels = self.levels.iter();
        levels.fold(Useless::default(), |all, level| Useless {
            missing: all.missing + level.missing,
            found: all.found + level.found,
        })
    }

    /// How often a filter passes an absent key, in a run with this part of the entries.
    ///
    /// Rates in proportion to these parts s make the most of b bits for each entry, and all bits are spent where
    /// the sum of all rates is exp(H - b ln^2 2), with H = -sum s ln s over all runs (AU-M4).
    fn rate(shape: &Shape, options: &KeyspaceOptions, fraction: f64) -> f64 {
        let ln_2 = std::f64::consts::LN_2;
        let bits = options.bits_per_key * ln_2 * ln_2;
        if options.bits_per_key == 0.0 {
            return 1.0;
        }
        if options.filter_allocation == FilterAllocation::Uniform {
            return (-bits).exp();
        }
        let entries = shape.entries().max(1.0);
        let levels = shape.levels.iter();
        let present = levels.filter(|level| level.runs > 0.0 && level.entries > 0.0);
        let entropy: f64 = present
            .map(|level| {
                let part = level.entries / entries;
                -part * (part / level.runs).ln()
            })
            .sum();
        (fraction * (entropy - bits).exp()).min(1.0)
    }
}

/// Reads that memory does not answer, of one operation of each kind.
#[derive(Debug, Clone, Copy)]
struct Misses {
    /// Blocks of a get that finds its key.
    found: f64,
    /// Blocks that are read in vain for an absent key.
    useless: f64,
    /// Blocks with which a scan begins.
    opened: f64,
    /// Values apart, of one entry, and their bytes.
    values: f64,
    value_bytes: f64,
    /// The part of the tables that is not in memory.
    tables: f64,
    hit_fraction: f64,
}

impl Misses {
    fn new(shape: &Shape, demand: &Demand, filters: &Filters, taken: f64) -> Self {
        let entries = shape.entries().max(1.0);
        let fractions = demand.fractions;
        // The average of a store that is not read is over merges, which read all alike.
        let reads = fractions.reads().max(1e-9);
        let of_level = |(level, useless): (&Level, &Useless)| {
            let part = level.entries / entries;
            let gets =
                fractions.gets * (part + useless.found) + fractions.missing * useless.missing;
            let passed = demand.scan_length / entries_per_page(shape);
            Place {
                bytes: level.bytes,
                reads: (gets + fractions.scans * (level.runs + passed * part)) / reads,
            }
        };
        let returned = (fractions.gets + fractions.scans * demand.scan_length) / reads;
        let of_values = |apart: &Apart| Place {
            bytes: apart.bytes,
            reads: returned * apart.fraction,
        };
        let levels = shape.levels.iter().zip(&filters.levels);
        let mut places: Vec<Place> = levels.map(of_level).collect();
        let levels = places.len();
        places.extend([of_values(&shape.logs), of_values(&shape.runs)]);
        let cache = demand.memory.map(|memory| (memory as f64 - taken).max(0.0));
        let hits = hits(&places, cache, demand);
        let miss = |place: usize| 1.0 - hits[place];
        let over_levels = |of: &dyn Fn(&Level, &Useless) -> f64| -> f64 {
            let levels = shape.levels.iter().zip(&filters.levels).enumerate();
            levels
                .map(|(place, (level, useless))| of(level, useless) * miss(place))
                .sum()
        };
        let bytes = shape.table_bytes().max(1.0);
        let in_logs = shape.logs.fraction * miss(levels);
        let in_transient_logs = shape.runs.fraction * miss(levels + 1);
        let all: f64 = places.iter().map(|place| place.reads).sum();
        let answered: f64 = places
            .iter()
            .zip(&hits)
            .map(|(it, hit)| it.reads * hit)
            .sum();
        Self {
            found: over_levels(&|level, useless| level.entries / entries + useless.found),
            useless: over_levels(&|_, useless| useless.missing),
            opened: over_levels(&|level, _| level.runs),
            values: in_logs + in_transient_logs,
            value_bytes: in_logs * shape.logs.value_bytes
                + in_transient_logs * shape.runs.value_bytes,
            tables: over_levels(&|level, _| level.bytes / bytes),
            hit_fraction: if all > 0.0 { answered / all } else { 1.0 },
        }
    }
}

fn entries_per_page(shape: &Shape) -> f64 {
    let entry = shape.table_bytes() / shape.entries().max(1.0);
    (PAGE_BYTES / entry.max(1.0)).max(1.0)
}

/// The part of the reads of each place that a cache of so many bytes answers, which holds first what is read
/// most often for its size; all of them where it has no bound.
fn hits(places: &[Place], cache: Option<f64>, demand: &Demand) -> Vec<f64> {
    let Some(mut left) = cache else {
        return vec![1.0; places.len()];
    };
    let density = |place: &Place| place.reads / place.bytes.max(1.0);
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by(|&one, &other| density(&places[other]).total_cmp(&density(&places[one])));
    let mut hits = vec![1.0; places.len()];
    for place in order {
        let bytes = places[place].bytes;
        if bytes > 0.0 {
            let held = (left / bytes).min(1.0);
            left = (left - bytes).max(0.0);
            hits[place] = answered(held, bytes, demand);
        }
    }
    hits
}

/// How many of the reads a cache answers that holds the hottest part of some bytes: hot keys are strewn, so
/// each of them takes a page, and what is beside it comes for nothing.
fn answered(held: f64, bytes: f64, demand: &Demand) -> f64 {
    let KeyDistribution::Zipfian { exponent } = demand.distribution else {
        return held;
    };
    let keys = demand.keys as f64;
    let pages = held * bytes / PAGE_BYTES.max(demand.entry_bytes());
    let hot = pages.min(keys);
    let mass = ranks(hot, exponent) / ranks(keys, exponent).max(1e-9);
    (mass + (1.0 - mass) * held).min(1.0)
}

/// The sum of rank to the power of minus `exponent` over so many ranks, about.
fn ranks(count: f64, exponent: f64) -> f64 {
    if count < 1.0 {
        return count;
    }
    let power = 1.0 - exponent;
    if power.abs() < 1e-6 {
        return 1.0 + count.ln();
    }
    1.0 + (count.powf(power) - 1.0) / power
}

fn whole_millionths(number: f64) -> u64 {
    whole(number * 1e6)
}

#[cfg(test)]
mod tests;

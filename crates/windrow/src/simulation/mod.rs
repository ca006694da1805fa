//! Layer 4: the policy carried out on sizes, so that what a load costs is known before there is a disk for it.
//!
//! The very code that decides for a database decides here, on expectations in place of entries: a memtable
//! is full, it is flushed, and jobs run until none is due ([`simulate`]). What would take too many flushes
//! is simulated in parts ([`simulate_large`]); a petabyte takes half a minute under the default options.
//!
//! Owns what a [`Load`] is and what an [`Outcome`] tells. No I/O, no randomness: a load has one outcome.
//!
//! I1. The tree is one that the invariants of the policy hold for.
//! I2. Of inserts nothing is lost: what merges write is what they read.

mod contents;
mod formula;
mod large;
mod load;
mod merge;
mod outcome;
mod tree;
mod values;

use std::collections::VecDeque;

use contents::Span;
pub use formula::write_amplification_bound;
pub use large::{Estimate, level_count, simulate_large};
pub use load::{KeyDistribution, Load, ValueSize};
use outcome::Spread;
pub use outcome::{Course, IoStats, LevelShape, Outcome, Sample};
use tree::Tree;
pub use values::ValueSpace;

pub use crate::base::LevelIoStats;
pub use crate::policy::{Class as ValueClass, class as value_class};
use crate::policy::{bounded_capacities, segment_limits, values_behind_max, whole};

/// What a write takes of a memtable beside key and value.
const MEMTABLE_ENTRY_BYTES: f64 = 40.0;

/// What it takes of the log beside key and value.
const WAL_ENTRY_BYTES: u64 = 12;

/// Carries `load` out.
///
/// # Errors
/// `InvalidArgument` where the [load](Load::validate) or its options are not valid.
pub fn simulate(load: &Load) -> crate::Result<Outcome> {
    load.validate()?;
    Ok(carry_out(load))
}

/// The same of what is valid, or part of it, whose ratios may be larger than those of any tree.
fn carry_out(load: &Load) -> Outcome {
    let mut run = Run::new(load);
    while run.written < load.inserts {
        run.insert(run.per_flush().min(load.inserts - run.written));
    }
    if load.inserts > 0 {
        run.sample();
    }
    while run.written < load.writes() {
        run.draw(run.per_flush().min(load.writes() - run.written));
    }
    if load.draws > 0 {
        run.sample();
    }
    Outcome {
        options: load.options.clone(),
        samples: run.samples,
    }
}

/// Filters are looked at again when a 128th more was written, and the last sixteen looks count.
const LOOKS_KEPT: usize = 16;
const LOOKS_APART: u64 = 128;

/// What was seen while the last eighth was written: level 0 has now more runs and now fewer, so that one moment
/// says little.
#[derive(Debug, Default)]
struct Looks(VecDeque<Look>);

/// The tree at one moment.
#[derive(Debug)]
struct Look {
    false_positive_reads: f64,
    spreads: Vec<Spread>,
}

impl Looks {
    fn note(&mut self, look: Look) {
        if self.0.len() == LOOKS_KEPT {
            self.0.pop_front();
        }
        self.0.push_back(look);
    }

    fn false_positive_reads(&self) -> f64 {
        let sum: f64 = self.0.iter().map(|look| look.false_positive_reads).sum();
        sum / self.0.len().max(1) as f64
    }

    fn spreads(&self) -> Vec<Spread> {
        let depth = self.0.iter().map(|look| look.spreads.len()).max();
        let mean = |level: usize| {
            let spreads = self.0.iter().filter_map(|look| look.spreads.get(level));
            Spread::sum(spreads).times(1.0 / self.0.len() as f64)
        };
        (0..depth.unwrap_or(0)).map(mean).collect()
    }
}

/// A load under way.
struct Run<'a> {
    load: &'a Load,
    tree: Tree<'a>,
    written: u64,
    flushes: u64,
    /// Keys of each class that a reader can see.
    live: Vec<f64>,
    next_sample: u64,
    next_look: u64,
    looks: Looks,
    runs_sums: Vec<f64>,
    space_most: f64,
    runs_most: Vec<usize>,
    samples: Vec<Sample>,
}

impl<'a> Run<'a> {
    fn new(load: &'a Load) -> Self {
        Self {
            load,
            tree: Tree::new(load),
            written: 0,
            flushes: 0,
            live: Vec::new(),
            next_sample: whole(load.options.memtable_bytes as f64 / load.entry_bytes()),
            next_look: 0,
            looks: Looks::default(),
            runs_sums: Vec::new(),
            space_most: 0.0,
            runs_most: Vec::new(),
            samples: Vec::new(),
        }
    }

    /// How many writes fill a memtable.
    fn per_flush(&self) -> u64 {
        let tree = &self.tree;
        let memtable = tree.options.memtable_bytes as f64;
        if self.load.part.above > 0 {
            return whole(memtable / tree.placing.in_table()).max(1);
        }
        let writes = memtable / (tree.placing.in_table() + MEMTABLE_ENTRY_BYTES);
        let behind = tree.placing.in_logs();
        if behind == 0.0 {
            return whole(writes).max(1);
        }
        let behind_max = values_behind_max(&tree.summary, &tree.options) as f64;
        whole(writes.min(behind_max / behind)).max(1)
    }

    fn insert(&mut self, writes: u64) {
        let span = match self.load.distribution {
            KeyDistribution::Sequential => {
                let at = |key: u64| key as f64 / self.load.keys as f64 * 2.0_f64.powi(64);
                Span {
                    smallest: whole(at(self.written)),
                    largest: whole(at(self.written + writes)).saturating_sub(1),
                }
            }
            KeyDistribution::Uniform | KeyDistribution::Zipfian { .. } => Span::ALL,
        };
        self.live = self.tree.live_after(&self.live, writes as f64, 0.0, 0.0);
        self.flush(span, writes, true);
    }

    fn draw(&mut self, writes: u64) {
        let deletes = self.load.deletes;
        self.live = self
            .tree
            .live_after(&self.live, 0.0, writes as f64, deletes);
        self.flush(Span::ALL, writes, false);
    }

    fn flush(&mut self, span: Span, writes: u64, is_insert: bool) {
        let load = self.load;
        let (inserts, draws) = if is_insert {
            (writes as f64, 0.0)
        } else {
            (0.0, writes as f64)
        };
        let values = inserts + draws * (1.0 - load.deletes);
        let keys = load.key_bytes * writes;
        let in_log = self.tree.placing.in_table() - load.key_bytes as f64;
        self.tree.io_stats.user += keys + whole(load.value_bytes() * values);
        self.tree.io_stats.wal += keys + whole(in_log * values) + WAL_ENTRY_BYTES * writes;
        self.tree.flush(span, inserts, draws, load.deletes);
        if load.seeks_per_write > 0.0 {
            self.tree.seek(load.seeks_per_write * writes as f64);
        }
        self.tree.settle();
        self.written += writes;
        self.flushes += 1;
        let runs = self.tree.runs();
        self.runs_sums.resize(runs.len(), 0.0);
        for (sum, runs) in self.runs_sums.iter_mut().zip(runs) {
            *sum += runs;
        }
        let most = std::mem::take(&mut self.runs_most);
        self.runs_most = outcome::larger(most, &self.tree.runs_most());
        self.space_most = self.space_most.max(self.space_amplification());
        if self.written >= self.next_look {
            self.look();
            self.next_look = self.written + self.written / LOOKS_APART;
        }
        if self.written >= self.next_sample {
            self.sample();
            self.next_sample = self.written + (self.written / 8).max(1);
        }
    }

    fn look(&mut self) {
        let (_, false_positive_reads) = self.tree.filters();
        self.looks.note(Look {
            false_positive_reads,
            spreads: self.tree.spreads(),
        });
    }

    fn space_amplification(&self) -> f64 {
        self.tree.bytes() as f64 / self.tree.value_bytes(self.live()).max(1.0)
    }

    /// All keys that a reader can see.
    fn live(&self) -> f64 {
        self.live.iter().sum()
    }

    fn sample(&mut self) {
        if self.looks.0.is_empty() {
            self.look();
        }
        let tree = &self.tree;
        let summary = &tree.summary;
        let capacities = bounded_capacities(summary, &tree.options);
        let limits = segment_limits(summary, &tree.options);
        let depth = summary.levels.iter().rposition(|files| !files.is_empty());
        let depth = depth.unwrap_or(0).max(summary.level_count);
        let shape = |level: usize| {
            let files = summary.level(level);
            LevelShape {
                files: files.len(),
                segments: files.iter().map(|file| file.segments.len()).sum(),
                bytes: files.iter().map(|file| file.bytes).sum(),
                entries: files.iter().map(|file| file.entries).sum(),
                tombstones: files.iter().map(|file| file.tombstones).sum(),
                capacity: capacities.get(level).copied().unwrap_or(0),
                segment_limit: limits.get(level).copied().unwrap_or(1),
            }
        };
        let (filter_bytes, _) = tree.filters();
        let runs = tree.runs();
        let sample = Sample {
            writes: self.written,
            flushes: self.flushes,
            jobs: tree.jobs,
            garbage_collections: tree.garbage_collections,
            level_count: summary.level_count,
            levels: (0..=depth).map(shape).collect(),
            io_stats: tree.io_stats.clone(),
            live_bytes: whole(self.live() * self.load.entry_bytes()),
            values: tree.values.space(),
            space_amplification: self.space_amplification(),
            runs_per_seek: runs.iter().sum(),
            runs,
            runs_sums: self.runs_sums.clone(),
            filter_bytes,
            false_positive_reads: self.looks.false_positive_reads(),
            spreads: self.looks.spreads(),
            space_amplification_most: self.space_most,
            runs_most: std::mem::take(&mut self.runs_most),
        };
        self.samples.push(sample);
        self.space_most = 0.0;
    }
}

#[cfg(test)]
mod tests;

//! A load flush by flush.

use std::collections::VecDeque;

use super::key_space::Span;
use super::live::LiveKeys;
use super::load::{KeyDistribution, Load};
use super::mass::Written;
use super::outcome::{LevelShape, Outcome, Sample, Spread, at, max_of_each};
use super::tree::Tree;
use crate::policy::{Tree as _, bounded_capacities, segment_limits, values_behind_max, whole};

/// Bytes of a write in a memtable besides key and value, if keys come in random order, and if they ascend: then its leaves
/// are full.
const MEMTABLE_ENTRY_BYTES: f64 = 48.0;
const MEMTABLE_ENTRY_BYTES_IN_ORDER: f64 = 40.0;

/// Bytes of a write in the write-ahead log besides key and value.
const WAL_ENTRY_BYTES: u64 = 12;

/// Simulates `load`.
///
/// # Errors
/// `InvalidArgument` if the [load](Load::validate) or its options are not valid.
pub fn simulate(load: &Load) -> crate::Result<Outcome> {
    load.validate()?;
    Ok(run(load))
}

/// Simulates a valid load, or a part of one, whose size ratios may be larger than those of any tree.
pub(super) fn run(load: &Load) -> Outcome {
    finished(load).outcome()
}

/// The same with the tree at the end.
pub(super) fn finished(load: &Load) -> Run<'_> {
    let mut run = Run::new(load);
    while run.written < load.inserts {
        run.insert(run.per_flush(true).min(load.inserts - run.written));
    }
    if load.inserts > 0 {
        run.sample();
    }
    while run.written < load.writes() {
        run.draw(run.per_flush(false).min(load.writes() - run.written));
    }
    if load.draws > 0 {
        run.sample();
    }
    run
}

/// The tree is observed again when a 128th more was written, and the last sixteen observations count.
const OBSERVATIONS_KEPT: usize = 16;
const OBSERVATIONS_APART: u64 = 128;

/// The observations while the last eighth was written. The runs of level 0 come and go, so a single observation says
/// little.
#[derive(Debug, Default)]
struct Observations(VecDeque<Observation>);

/// The tree after one flush.
#[derive(Debug)]
struct Observation {
    false_positive_reads: f64,
    spreads: Vec<Spread>,
}

impl Observations {
    fn note(&mut self, observation: Observation) {
        if self.0.len() == OBSERVATIONS_KEPT {
            self.0.pop_front();
        }
        self.0.push_back(observation);
    }

    fn false_positive_reads(&self) -> f64 {
        let sum: f64 = self.0.iter().map(|it| it.false_positive_reads).sum();
        sum / self.0.len().max(1) as f64
    }

    fn spreads(&self) -> Vec<Spread> {
        let depth = self.0.iter().map(|it| it.spreads.len()).max();
        let mean = |level: usize| {
            let spreads = self.0.iter().filter_map(|it| it.spreads.get(level));
            Spread::sum(spreads).times(1.0 / self.0.len() as f64)
        };
        (0..depth.unwrap_or(0)).map(mean).collect()
    }
}

/// A running load.
pub(super) struct Run<'a> {
    load: &'a Load,
    pub(super) tree: Tree<'a>,
    pub(super) written: u64,
    flushes: u64,
    /// The live keys of each class.
    live: Vec<LiveKeys>,
    next_sample: u64,
    next_observation: u64,
    observations: Observations,
    runs_sums: Vec<f64>,
    space_max: f64,
    runs_max: Vec<usize>,
    samples: Vec<Sample>,
}

impl<'a> Run<'a> {
    pub(super) fn new(load: &'a Load) -> Self {
        let tree = Tree::new(load);
        Self {
            load,
            live: vec![LiveKeys::new(); tree.key_space.classes.len()],
            tree,
            written: 0,
            flushes: 0,
            next_sample: whole(load.options.memtable_bytes as f64 / load.entry_bytes()),
            next_observation: 0,
            observations: Observations::default(),
            runs_sums: Vec::new(),
            space_max: 0.0,
            runs_max: Vec::new(),
            samples: Vec::new(),
        }
    }

    pub(super) fn outcome(self) -> Outcome {
        Outcome {
            options: self.load.options.clone(),
            samples: self.samples,
        }
    }

    /// The next `writes` inserts or draws, with the range deletes that are due among them.
    fn next(&self, writes: u64, is_insert: bool) -> Written {
        let load = self.load;
        let (inserts, draws) = if is_insert {
            (writes as f64, 0.0)
        } else {
            (0.0, writes as f64)
        };
        let due = |written: u64| (written as f64 * load.range_deletes_per_write).floor();
        let expiry = |written: u64| written.saturating_add(load.time_to_live) as f64;
        let until = self.written + writes;
        Written {
            inserts,
            draws,
            deletes: load.deletes,
            merges: load.merges,
            range_deletes: due(until) - due(self.written),
            range_part: load.range_delete_part,
            expiring: load.expiring,
            expiry: (expiry(self.written), expiry(until)),
        }
    }

    /// How many inserts or draws fill a memtable.
    pub(super) fn per_flush(&self, is_insert: bool) -> u64 {
        let tree = &self.tree;
        let memtable = tree.options.memtable_bytes as f64;
        let one = self.next(1, is_insert);
        let range_deletes = self.load.range_deletes_per_write * tree.classes.range_delete();
        let in_table = tree.classes.in_tables(&one) + range_deletes;
        if self.load.part.levels_above > 0 {
            return whole(memtable / in_table).max(1);
        }
        let overhead = match self.load.distribution {
            KeyDistribution::Sequential if is_insert => MEMTABLE_ENTRY_BYTES_IN_ORDER,
            _ => MEMTABLE_ENTRY_BYTES,
        };
        let count = 1.0 + self.load.range_deletes_per_write;
        let writes = memtable / (in_table + overhead * count);
        let behind = tree.classes.in_value_logs() * one.values();
        if behind == 0.0 {
            return whole(writes).max(1);
        }
        let behind_max = values_behind_max(&tree.summary, &tree.options) as f64;
        whole(writes.min(behind_max / behind)).max(1)
    }

    pub(super) fn insert(&mut self, writes: u64) {
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
        self.flush(span, writes, true);
    }

    fn draw(&mut self, writes: u64) {
        self.flush(Span::ALL, writes, false);
    }

    fn flush(&mut self, span: Span, writes: u64, is_insert: bool) {
        let load = self.load;
        let written = self.next(writes, is_insert);
        let now = (self.written + writes) as f64;
        self.tree.set_time(now);
        self.note_live(&written, now);
        let classes = &self.tree.classes;
        let ranges = written.range_deletes * classes.range_delete();
        let separated = load.entry_bytes() - classes.in_table();
        let in_log = whole(classes.in_tables(&written) + ranges);
        let entries = writes + whole(written.range_deletes);
        self.tree.io_stats.user += whole(in_log as f64 + separated * written.values());
        self.tree.io_stats.wal += in_log + WAL_ENTRY_BYTES * entries;
        self.tree.flush(span, &written);
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
        let runs_max = std::mem::take(&mut self.runs_max);
        self.runs_max = max_of_each(runs_max, &self.tree.runs_max());
        self.space_max = self.space_max.max(self.space_amplification());
        if self.written >= self.next_observation {
            self.observe();
            self.next_observation = self.written + self.written / OBSERVATIONS_APART;
        }
        if self.written >= self.next_sample {
            self.sample();
            self.next_sample = self.written + (self.written / 8).max(1);
        }
    }

    /// Puts these writes over the live keys, at the time `now`.
    fn note_live(&mut self, written: &Written, now: f64) {
        let key_space = &self.tree.key_space;
        let covered = key_space.covered(written.range_deletes);
        let newest = key_space.written(Span::ALL, written);
        let classes = key_space.classes.iter().zip(newest.masses);
        for (live, (class, mass)) in self.live.iter_mut().zip(classes) {
            live.put(mass, class.keys, covered, now);
        }
    }

    fn observe(&mut self) {
        let (_, false_positive_reads) = self.tree.filters();
        self.observations.note(Observation {
            false_positive_reads,
            spreads: self.tree.spreads(),
        });
    }

    fn space_amplification(&self) -> f64 {
        self.tree.bytes() as f64 / self.tree.value_bytes(self.live()).max(1.0)
    }

    /// All live keys.
    fn live(&self) -> f64 {
        self.live.iter().map(|live| live.keys).sum()
    }

    fn sample(&mut self) {
        if self.observations.0.is_empty() {
            self.observe();
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
                operands: whole(tree.sum(level, |it| it.count.operands).round()),
                range_tombstones: files.iter().map(|file| file.range_tombstones).sum(),
                expired_bytes: files.iter().map(|file| file.expired_bytes).sum(),
                capacity: at(&capacities, level),
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
            effective_last: summary.effective_last_level(tree.options.size_ratio),
            levels: (0..=depth).map(shape).collect(),
            io_stats: tree.io_stats.clone(),
            live_bytes: whole((self.live() * self.load.entry_bytes()).round()),
            values: tree.values.space(),
            space_amplification: self.space_amplification(),
            runs_per_seek: runs.iter().sum(),
            runs,
            runs_sums: self.runs_sums.clone(),
            filter_bytes,
            false_positive_reads: self.observations.false_positive_reads(),
            spreads: self.observations.spreads(),
            space_amplification_max: self.space_max,
            runs_max: std::mem::take(&mut self.runs_max),
        };
        self.samples.push(sample);
        self.space_max = 0.0;
    }
}

//! Loads too large to simulate flush by flush: the tree in parts.
//!
//! The ratio of a level to the one above it depends only on its distance from the bottom. So the lower levels of a
//! Garnering tree form a Garnering tree. What would come from the last level above comes as flushes,
//! `level0_runs` of which have that level's size. The upper levels form one, too, with a larger T at the
//! bottom. A level of a part is as it is in the whole tree, except the first one if flushes feed it, and
//! the last one if there should be more below.
//!
//! Medium values come down in the transient logs that the levels above leave: short ones of many flushes, or those that
//! compactions made of them. What these levels keep of transient logs counts in the debt of each part, and a section
//! puts values in place only where the whole tree would.
//!
//! The lowest part lives through the whole load. Each *section* above it has three levels. The middle
//! one counts (the first, too, at the top), and the section runs until that was filled a few times. The results are
//! weighed by how long the tree has had how many levels.

use std::collections::{BTreeMap, BTreeSet};

use super::entry_sizes::ValueClasses;
use super::load::Load;
use super::outcome::{Interval, LevelShape, Outcome, Sample, Spread, at};
use super::part::TreePart;
use super::run::{finished, run};
use super::transient_logs::TransientLogs;
use crate::base::LevelIoStats;
use crate::options::{FilterAllocation, KeyspaceOptions, MediumInPlace};
use crate::policy::{Placement, capacities, whole};

/// The upper `kept` levels of a tree of `level_count`, as a tree.
fn upper(options: &KeyspaceOptions, level_count: usize, kept: usize) -> KeyspaceOptions {
    let below = i32::try_from(level_count - kept).unwrap_or(0);
    KeyspaceOptions {
        size_ratio: options.size_ratio / options.scaling.powi(below),
        base_bytes: whole(options.base_bytes as f64 / options.scaling.powi(below)),
        max_space_amp: f64::INFINITY,
        ..options.clone()
    }
}

/// A section fills the level that counts this many times. Only the second half is counted. By then the
/// level below holds enough data, so that this one is no longer the last. Its files, which all began with
/// one segment, have been rewritten at different times.
const FILLINGS: f64 = 6.0;

/// At most this many flushes fill the first level of a section, which does not count: a ratio of 16 to the
/// level above. Larger ratios would need millions of flushes.
const FEEDS_MAX: u64 = 64;

/// The estimated cost of a load.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Estimate {
    /// What happened in the measured part of the load.
    pub interval: Interval,
    /// The tree in the course of the load; see [`Outcome::samples`](super::Outcome::samples).
    pub samples: Vec<Sample>,
    /// How many levels below level 0 were simulated separately; 0 if the load was simulated in one piece.
    pub separate_levels: usize,
}

/// Simulates `load`, in parts if it is large, and measures its last `measured` writes.
///
/// # Errors
/// `InvalidArgument` if the [load](Load::validate) or its options are not valid.
pub fn simulate_large(load: &Load, measured: u64) -> crate::Result<Estimate> {
    load.validate()?;
    let measured = measured.clamp(1, load.writes());
    let before = load.writes() - measured;
    let above = separate_levels(load);
    let fed_logs = fed_logs(load, above);
    let outcome = run(&Load {
        part: TreePart {
            levels_above: above,
            feeds_max: u64::MAX,
            fed_logs: fed_logs.last().cloned().unwrap_or_default(),
        },
        ..load.clone()
    });
    let samples = if above == 0 {
        outcome.samples
    } else {
        let samples = completed(load, &fed_logs, &outcome.samples);
        with_beginning(load, samples)
    };
    let outcome = Outcome { samples, ..outcome };
    Ok(Estimate {
        interval: outcome.since(before),
        samples: outcome.samples,
        separate_levels: above,
    })
}

/// `samples` with a beginning that is simulated in one piece, up to the largest number of flushes. A young
/// tree does not yet have the shape that parts assume.
fn with_beginning(load: &Load, samples: Vec<Sample>) -> Vec<Sample> {
    let per_flush = load.options.memtable_bytes as f64 / logical_bytes(load);
    let writes_max = whole(per_flush * load.flushes_max as f64);
    let is_early = |sample: &Sample| (1..=writes_max).contains(&sample.writes);
    let Some(end) = samples.iter().rposition(is_early) else {
        return samples;
    };
    let then = samples[end].clone();
    let inserts = load.inserts.min(then.writes);
    let beginning = run(&Load {
        inserts,
        draws: then.writes - inserts,
        ..load.clone()
    });
    let mut joined = beginning.samples;
    let Some(last) = joined.last().cloned() else {
        return samples;
    };
    for mut sample in samples.into_iter().skip(end + 1) {
        sample.io_stats = last.io_stats.and(&sample.io_stats.since(&then.io_stats));
        sample.jobs = last.jobs + (sample.jobs - then.jobs);
        sample.garbage_collections =
            last.garbage_collections + (sample.garbage_collections - then.garbage_collections);
        // Runs are summed up flush by flush, and the flushes of a part are longer.
        let writes = (sample.writes - then.writes) as f64;
        let flushes = writes / (last.writes as f64 / last.flushes.max(1) as f64);
        let times = flushes / (sample.flushes - then.flushes).max(1) as f64;
        let levels = sample.runs_sums.len().max(last.runs_sums.len());
        let of = |sample: &Sample, level| at(&sample.runs_sums, level);
        let sum = |level| of(&last, level) + (of(&sample, level) - of(&then, level)) * times;
        sample.runs_sums = (0..levels).map(sum).collect();
        sample.flushes = last.flushes + whole(flushes.round());
        joined.push(sample);
    }
    joined
}

/// The transient logs that come down from each level, those of flushes first, to the first level of the lowest part
/// with `above` levels above it. The tree is that of the end, which the load has for most of its writes.
fn fed_logs(load: &Load, above: usize) -> Vec<Vec<TransientLogs>> {
    let mut fed_logs = vec![Vec::new()];
    if !has_mediums(load) {
        fed_logs.resize(above + 1, Vec::new());
        return fed_logs;
    }
    let bytes = whole(load.keys as f64 * logical_bytes(load));
    let phase = Phase {
        level_count: level_count(&load.options, bytes),
        in_place: None,
        capacity_part: 1.0,
        from: 0,
        to: u64::MAX,
    };
    // The section at the top says it of its first two levels, each other one of its second level.
    while fed_logs.len() <= above {
        let first = fed_logs.len().saturating_sub(2);
        let logs = section(load, &phase, first, &fed_logs[first]).logs;
        fed_logs.extend(logs.into_iter().skip(fed_logs.len() - first));
    }
    fed_logs.truncate(above + 1);
    fed_logs
}

fn has_mediums(load: &Load) -> bool {
    ValueClasses::of(load).medium.fraction > 0.0
}

/// The samples of the lowest part, with the levels above it, from which `fed_logs` come.
fn completed(load: &Load, fed_logs: &[Vec<TransientLogs>], samples: &[Sample]) -> Vec<Sample> {
    let above = fed_logs.len() - 1;
    let has_mediums = has_mediums(load);
    let form = |sample: &Sample| {
        let placement = Placement::new(above + sample.effective_last, &load.options);
        let in_place = (1..=above + 2).find(|level| placement.is_in_place(*level));
        (sample.level_count, in_place.filter(|_| has_mediums))
    };
    let forms: BTreeSet<(usize, Option<usize>)> = samples.iter().map(form).collect();
    let mut upper_levels = BTreeMap::new();
    for (count, in_place) in forms {
        let is_in = |sample: &&Sample| form(sample) == (count, in_place);
        let first = samples
            .iter()
            .position(|sample| is_in(&sample))
            .unwrap_or(0);
        let writes = |sample: Option<&Sample>| sample.map_or(0, |sample| sample.writes);
        let phase = Phase {
            level_count: above + count,
            in_place,
            capacity_part: capacity_part(load, above, samples.iter().filter(is_in)),
            from: writes(first.checked_sub(1).and_then(|before| samples.get(before))),
            to: writes(samples.iter().rfind(is_in)),
        };
        upper_levels.insert((count, in_place), UpperLevels::new(load, &phase, fed_logs));
    }
    let mut completed: Vec<Sample> = Vec::new();
    let none = Sample::default();
    for (position, sample) in samples.iter().enumerate() {
        let before = position
            .checked_sub(1)
            .map_or(&none, |before| &samples[before]);
        let done = completed.last().unwrap_or(&none);
        let next = upper_levels[&form(sample)].complete(sample, before, done);
        completed.push(next);
    }
    completed
}

/// The time in which a tree has this many levels and puts values in place from the same level on.
#[derive(Debug, Clone, Copy)]
struct Phase {
    level_count: usize,
    /// The first level in which medium values are in place, if a section has it.
    in_place: Option<usize>,
    /// The part of their nominal capacities that upper levels may hold.
    capacity_part: f64,
    /// The writes until it began, and until it ended.
    from: u64,
    to: u64,
}

/// The part of its nominal capacity that the first level of the lowest part could hold on average, because of the bound
/// on space. It is the same in all levels above.
fn capacity_part<'s>(load: &Load, above: usize, samples: impl Iterator<Item = &'s Sample>) -> f64 {
    let part = |sample: &Sample| {
        let nominal = capacities(&load.options, above + sample.level_count)[above + 1];
        let bounded = sample.levels.get(1).map_or(nominal, |level| level.capacity);
        bounded as f64 / nominal as f64
    };
    let (mut sum, mut count) = (0.0, 0.0);
    for sample in samples {
        sum += part(sample);
        count += 1.0;
    }
    sum / f64::max(count, 1.0)
}

/// How many levels of the tree of `load` are simulated separately.
fn separate_levels(load: &Load) -> usize {
    let bytes = whole(load.writes() as f64 * logical_bytes(load));
    let tree = whole(load.keys as f64 * logical_bytes(load));
    let last = level_count(&load.options, tree);
    let capacities = capacities(&load.options, last);
    let has_few_flushes = |above: &usize| {
        let flush_bytes = match above {
            0 => load.options.memtable_bytes as u64,
            _ => capacities[*above] / load.options.level0_runs as u64,
        };
        bytes / flush_bytes.max(1) <= load.flushes_max
    };
    (0..last).find(has_few_flushes).unwrap_or(last - 1)
}

/// Bytes of an entry as capacities count them.
fn logical_bytes(load: &Load) -> f64 {
    ValueClasses::of(load).in_table()
}

/// The number of levels of a tree of `bytes`, by the capacities alone; at most the largest number of levels.
pub fn level_count(options: &KeyspaceOptions, bytes: u64) -> usize {
    let holds = |count: &usize| capacities(options, *count)[*count] >= bytes;
    let levels = 1..crate::base::limits::LEVELS_MAX;
    levels.clone().find(holds).unwrap_or(levels.end)
}

/// A level that was simulated separately.
#[derive(Debug, Clone, Default)]
struct UpperLevel {
    /// The bytes that it moved while the user gave `user` bytes.
    io_stats: LevelIoStats,
    user: u64,
    runs: f64,
    runs_max: usize,
    shape: LevelShape,
    /// On average.
    spread: Spread,
}

/// The levels that are simulated separately while the lowest part has `level_count` levels.
#[derive(Debug, Clone)]
struct UpperLevels {
    level_count: usize,
    /// Whether every run has the same bits per key.
    has_uniform_filters: bool,
    /// Level 0 first.
    levels: Vec<UpperLevel>,
}

impl UpperLevels {
    fn new(load: &Load, phase: &Phase, fed_logs: &[Vec<TransientLogs>]) -> Self {
        let above = fed_logs.len() - 1;
        let mut levels = vec![UpperLevel::default(); above + 2];
        for first in 0..above {
            let section = section(load, phase, first, &fed_logs[first]);
            let interval = &section.interval;
            let counts = if first == 0 { 0..=2 } else { 2..=2 };
            for own in counts {
                // A load of few different keys brings nothing there.
                levels[first + own] = UpperLevel {
                    io_stats: at(&interval.io_stats.levels, own),
                    user: interval.io_stats.user,
                    runs: at(&interval.runs, own),
                    runs_max: at(&interval.runs_max, own),
                    shape: at(&section.shapes, own),
                    spread: at(&section.spreads, own),
                };
            }
        }
        Self {
            level_count: phase.level_count - above,
            has_uniform_filters: load.options.filter_allocation == FilterAllocation::Uniform,
            levels,
        }
    }

    /// `sample` with these levels instead of its first two. `before` is the sample before it, and `done` that one
    /// completed. If the second level is the last of the sample, it stays as it is. What the sample says about the
    /// whole tree stays, too, because all data is in the lowest part.
    fn complete(&self, sample: &Sample, before: &Sample, done: &Sample) -> Sample {
        let user = (sample.io_stats.user - before.io_stats.user) as f64;
        let flushes = (sample.flushes - before.flushes) as f64;
        let mut all = sample.clone();
        let above = self.levels.len() - 2;
        // The bound on space may leave the levels above less now than on average, as it does their last one.
        let fed = at(&sample.spreads, 1);
        let filled = fed.entries_over(self.levels[above + 1].spread);
        all.spreads.clear();
        (all.levels, all.runs, all.runs_sums, all.runs_max) = Default::default();
        all.io_stats.levels.clear();
        for level in 0..self.levels.len() + sample.levels.len() {
            let own = level.saturating_sub(above);
            let is_own = own > 1 || (own == 1 && self.level_count == 1);
            if is_own && own >= sample.levels.len() {
                break;
            }
            let moved = if is_own {
                let of = |sample: &Sample| at(&sample.io_stats.levels, own);
                all.runs_sums.push(
                    at(&done.runs_sums, level) + at(&sample.runs_sums, own)
                        - at(&before.runs_sums, own),
                );
                all.runs.push(at(&sample.runs, own));
                all.runs_max.push(at(&sample.runs_max, own));
                all.spreads.push(at(&sample.spreads, own));
                of(sample).combined(of(before), |now, before| now - before)
            } else {
                let upper = &self.levels[level];
                let filled = if level == 0 { 1.0 } else { filled };
                all.runs_sums
                    .push(at(&done.runs_sums, level) + upper.runs * flushes);
                all.runs.push(upper.runs);
                all.runs_max.push(upper.runs_max);
                all.spreads.push(upper.spread.filled(filled));
                let part = |bytes: u64| whole(bytes as f64 * user / upper.user.max(1) as f64);
                upper
                    .io_stats
                    .combined(upper.io_stats, |bytes, _| part(bytes))
            };
            let io_stats =
                at(&done.io_stats.levels, level).combined(moved, |sum, bytes| sum + bytes);
            all.io_stats.levels.push(io_stats);
            all.levels.push(match own {
                0 => self.levels[level].shape,
                _ => at(&sample.levels, own),
            });
        }
        all.runs_per_seek = all.runs.iter().sum();
        // If bits are allocated as in Monkey, all runs together let exp(H - b ln^2 2) reads through, with H the
        // entropy of their parts of the entries. Otherwise each run lets the same number through.
        let own = Spread::sum(&sample.spreads).entropy();
        if self.has_uniform_filters {
            let runs = |now: &Sample, then: &Sample| {
                now.runs_sums.iter().sum::<f64>() - then.runs_sums.iter().sum::<f64>()
            };
            all.false_positive_reads *= runs(&all, done) / runs(sample, before).max(1.0);
        } else {
            all.false_positive_reads *= (Spread::sum(&all.spreads).entropy() - own).exp();
        }
        all.level_count = self.level_count + above;
        all
    }
}

/// Three levels while the middle one is filled.
#[derive(Debug)]
struct Section {
    interval: Interval,
    /// Of each level, on average over the second half.
    spreads: Vec<Spread>,
    /// On average over the second half.
    shapes: Vec<LevelShape>,
    /// The transient logs that its first two levels refer to at the end, level 0 first.
    logs: Vec<Vec<TransientLogs>>,
}

/// Simulates the three levels after `first` of a tree while the middle one is filled. If the third is the
/// last of the tree and young, compactions into the middle one write less, and the section runs only while that
/// is so.
fn section(load: &Load, phase: &Phase, first: usize, fed_logs: &[TransientLogs]) -> Section {
    let level_count = phase.level_count;
    let kept = (first + 3).min(level_count);
    let mut options = upper(&load.options, level_count, kept);
    let bounded = whole(options.base_bytes as f64 * phase.capacity_part);
    options.base_bytes = bounded.max(options.file_bytes);
    options.medium_in_place = match phase.in_place {
        Some(first) if first < kept => MediumInPlace::LevelBeforeLast,
        Some(first) if first == kept => MediumInPlace::LastLevel,
        Some(_) | None => MediumInPlace::Never,
    };
    let counts = capacities(&options, kept)[(first + 2).min(kept)];
    let steady = whole(counts as f64 * FILLINGS / logical_bytes(load)).max(1);
    let (from, writes) = if kept == level_count && phase.to < steady {
        (phase.from, phase.to.max(1))
    } else {
        (steady / 2, steady)
    };
    let (inserts, draws) = if load.draws > 0 {
        (0, writes)
    } else {
        (writes, 0)
    };
    // The section may have the same part of the files of the whole tree as of its bytes.
    let part = capacities(&options, kept)[kept] as f64
        / capacities(&load.options, level_count)[level_count] as f64;
    let load = Load {
        files_max: whole(load.files_max as f64 * part).max(1),
        keys: load.keys.max(inserts),
        inserts,
        draws,
        options,
        part: TreePart {
            levels_above: first,
            feeds_max: FEEDS_MAX,
            fed_logs: fed_logs.to_vec(),
        },
        filters: false,
        ..load.clone()
    };
    let run = finished(&load);
    let logs = (0..=2)
        .map(|level| run.tree.transient_logs(level))
        .collect();
    let outcome = run.outcome();
    let samples = outcome.samples.iter();
    let late: Vec<&Sample> = samples.filter(|it| it.writes > from).collect();
    let shape = |level: usize| {
        let of = |value: fn(&LevelShape) -> u64| {
            let values = late.iter().filter_map(|sample| sample.levels.get(level));
            values.map(value).sum::<u64>() / (late.len() as u64).max(1)
        };
        let count = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        let last = late.last().and_then(|last| last.levels.get(level));
        LevelShape {
            files: count(of(|level| level.files as u64)),
            segments: count(of(|level| level.segments as u64)),
            bytes: of(|level| level.bytes),
            entries: of(|level| level.entries),
            tombstones: of(|level| level.tombstones),
            operands: of(|level| level.operands),
            range_tombstones: of(|level| level.range_tombstones),
            expired_bytes: of(|level| level.expired_bytes),
            ..last.copied().unwrap_or_default()
        }
    };
    let spread = |level: usize| {
        let spreads = late.iter().filter_map(|sample| sample.spreads.get(level));
        Spread::sum(spreads).times(1.0 / (late.len() as f64).max(1.0))
    };
    Section {
        interval: outcome.since(from),
        logs,
        spreads: (0..=3).map(spread).collect(),
        shapes: (0..=3).map(shape).collect(),
    }
}

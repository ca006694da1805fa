//! Loads too large to simulate flush by flush: the tree in parts.
//!
//! The ratio of a level to the one above it depends only on how far from the bottom it is. So the lower
//! levels of a Garnering tree are one themselves, to which what would come from the last level above comes as
//! flushes of a quarter of its size; and so are the upper levels, with a larger T at the bottom. A level of a
//! part is as it is in the whole tree, but for the first one where it is fed by flushes, and the last one
//! where there should be more below.
//!
//! The lowest part lives through the whole load. Each *window* above it has three levels, of which the middle
//! one counts (the first, too, at the top), and runs until that was filled a few times. What is counted is
//! weighed by how long the tree has had how many levels.

use std::collections::BTreeMap;

use super::carry_out;
use super::load::Load;
use super::outcome::{Course, LevelShape, Outcome, Sample, Spread};
use super::values::Placing;
use crate::base::LevelIoStats;
use crate::options::{FilterAllocation, KeyspaceOptions};
use crate::policy::{capacities, whole};

/// Which levels of a tree are simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub(super) struct Part {
    /// How many levels from level 1 on are left out above.
    pub(super) above: usize,
    /// So many flushes fill the first level at most, where levels are left out above.
    pub(super) feeds_most: u64,
}

impl Part {
    /// The options for the part while it has so many levels.
    pub(super) fn options(self, options: &KeyspaceOptions, level_count: usize) -> KeyspaceOptions {
        if self.above == 0 {
            return options.clone();
        }
        let capacities = capacities(options, self.above + level_count);
        let below = i32::try_from(level_count - 1).unwrap_or(i32::MAX);
        let feed = capacities[self.above] / options.level0_runs as u64;
        let feed = feed.max(capacities[self.above + 1] / self.feeds_most.max(1));
        KeyspaceOptions {
            base_bytes: whole(capacities[self.above + 1] as f64 * options.scaling.powi(below)),
            memtable_bytes: usize::try_from(feed).unwrap_or(usize::MAX),
            ..options.clone()
        }
    }
}

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

/// So many times the level that counts is filled in a window; what comes in the second half is counted. By
/// then the level below holds enough that this one is no longer the last with data, and its files, which
/// all began with one segment, have been written anew at different times.
const FILLINGS: f64 = 6.0;

/// So many flushes fill the first level of a window at most, which does not count: a ratio of 16 to the level
/// above. Under larger ones flushes of a quarter of that would be millions.
const FEEDS_MOST: u64 = 64;

/// What a load comes to.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Estimate {
    /// What happened in the part of the load that counts.
    pub course: Course,
    /// The tree on the way; see [`Outcome::samples`](super::Outcome::samples).
    pub samples: Vec<Sample>,
    /// How many levels below level 0 were simulated apart; 0 where the load was simulated in one piece.
    pub levels_apart: usize,
}

/// Carries `load` out, in parts where it is large; what `measured` writes at the end cost counts.
///
/// # Errors
/// `InvalidArgument` where the [load](Load::validate) or its options are not valid.
pub fn simulate_large(load: &Load, measured: u64) -> crate::Result<Estimate> {
    load.validate()?;
    let measured = measured.clamp(1, load.writes());
    let before = load.writes() - measured;
    let above = levels_apart(load);
    let outcome = carry_out(&Load {
        part: Part {
            above,
            feeds_most: u64::MAX,
        },
        ..load.clone()
    });
    let samples = if above == 0 {
        outcome.samples
    } else {
        let samples = completed(load, above, &outcome.samples);
        with_beginning(load, samples)
    };
    let outcome = Outcome { samples, ..outcome };
    Ok(Estimate {
        course: outcome.course_from(before),
        samples: outcome.samples,
        levels_apart: above,
    })
}

/// The same `samples`, in which what comes first, as far as there are not too many flushes, is simulated in one
/// piece: while the tree is young, it is not yet what parts take it for.
fn with_beginning(load: &Load, samples: Vec<Sample>) -> Vec<Sample> {
    let per_flush = load.options.memtable_bytes as f64 / logical_bytes(load);
    let most = whole(per_flush * load.flushes_max as f64);
    let is_early = |sample: &Sample| (1..=most).contains(&sample.writes);
    let Some(end) = samples.iter().rposition(is_early) else {
        return samples;
    };
    let then = samples[end].clone();
    let inserts = load.inserts.min(then.writes);
    let beginning = carry_out(&Load {
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
        // Runs are summed up flush by flush, and those of a part are longer.
        let writes = (sample.writes - then.writes) as f64;
        let flushes = writes / (last.writes as f64 / last.flushes.max(1) as f64);
        let times = flushes / (sample.flushes - then.flushes).max(1) as f64;
        let levels = sample.runs_sums.len().max(last.runs_sums.len());
        let of = |sample: &Sample, level| sample.runs_sums.get(level).copied().unwrap_or(0.0);
        let sum = |level| of(&last, level) + (of(&sample, level) - of(&then, level)) * times;
        sample.runs_sums = (0..levels).map(sum).collect();
        sample.flushes = last.flushes + whole(flushes.round());
        joined.push(sample);
    }
    joined
}

/// The samples of the lowest part, with the levels above it.
fn completed(load: &Load, above: usize, samples: &[Sample]) -> Vec<Sample> {
    let mut counts: Vec<usize> = samples.iter().map(|sample| sample.level_count).collect();
    counts.sort_unstable();
    counts.dedup();
    let mut uppers = BTreeMap::new();
    for count in counts {
        let is_in = |sample: &&Sample| sample.level_count == count;
        let first = samples
            .iter()
            .position(|sample| is_in(&sample))
            .unwrap_or(0);
        let writes = |sample: Option<&Sample>| sample.map_or(0, |sample| sample.writes);
        let phase = Phase {
            level_count: above + count,
            capacity_part: capacity_part(load, above, samples.iter().filter(is_in)),
            from: writes(first.checked_sub(1).and_then(|before| samples.get(before))),
            to: writes(samples.iter().rfind(is_in)),
        };
        uppers.insert(count, Uppers::new(load, &phase, above));
    }
    let mut completed: Vec<Sample> = Vec::new();
    let none = Sample::default();
    for (position, sample) in samples.iter().enumerate() {
        let before = position
            .checked_sub(1)
            .map_or(&none, |before| &samples[before]);
        let done = completed.last().unwrap_or(&none);
        let next = uppers[&sample.level_count].complete(sample, before, done);
        completed.push(next);
    }
    completed
}

/// The time for which a tree has so many levels.
#[derive(Debug, Clone, Copy)]
struct Phase {
    level_count: usize,
    /// The part of their capacities that upper levels hold.
    capacity_part: f64,
    /// The writes until it began, and until it ended.
    from: u64,
    to: u64,
}

/// Which part of its capacity the first level of the lowest part had on average: that for which there was
/// room, as in all levels above.
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

/// How many levels of the tree of `load` are simulated apart.
fn levels_apart(load: &Load) -> usize {
    let bytes = whole(load.writes() as f64 * logical_bytes(load));
    let tree = whole(load.keys as f64 * logical_bytes(load));
    let last = level_count(&load.options, tree);
    let capacities = capacities(&load.options, last);
    let is_fine = |above: &usize| match above {
        0 => bytes / (load.options.memtable_bytes as u64).max(1) <= load.flushes_max,
        _ => {
            bytes / (capacities[*above] / load.options.level0_runs as u64).max(1)
                <= load.flushes_max
        }
    };
    (0..last).find(is_fine).unwrap_or(last - 1)
}

/// Bytes of an entry as capacities count them.
fn logical_bytes(load: &Load) -> f64 {
    Placing::of(load).in_table()
}

/// How many levels a tree of `bytes` has, by the capacities alone; at most as many as there can be.
pub fn level_count(options: &KeyspaceOptions, bytes: u64) -> usize {
    let holds = |count: &usize| capacities(options, *count)[*count] >= bytes;
    let levels = 1..crate::base::limits::LEVELS_MAX;
    levels.clone().find(holds).unwrap_or(levels.end)
}

/// A level that was simulated apart.
#[derive(Debug, Clone, Default)]
struct Upper {
    /// What it moved while so many bytes were given.
    io_stats: LevelIoStats,
    user: u64,
    runs: f64,
    runs_most: usize,
    shape: LevelShape,
    /// On average.
    spread: Spread,
}

/// The levels that are simulated apart while the lowest part has so many levels.
#[derive(Debug, Clone)]
struct Uppers {
    level_count: usize,
    /// Whether every run has filters alike.
    has_uniform_filters: bool,
    /// Level 0 first.
    levels: Vec<Upper>,
}

impl Uppers {
    fn new(load: &Load, phase: &Phase, above: usize) -> Self {
        let mut levels = vec![Upper::default(); above + 2];
        for first in 0..above {
            let read_buffer = read_buffer(load, phase, first);
            let course = &read_buffer.course;
            let counts = if first == 0 { 0..=2 } else { 2..=2 };
            for own in counts {
                // Where little is different, nothing comes there.
                let io_stats = course.io_stats.levels.get(own).copied();
                levels[first + own] = Upper {
                    io_stats: io_stats.unwrap_or_default(),
                    user: course.io_stats.user,
                    runs: course.runs.get(own).copied().unwrap_or(0.0),
                    runs_most: course.runs_most.get(own).copied().unwrap_or(0),
                    shape: read_buffer.shapes.get(own).copied().unwrap_or_default(),
                    spread: read_buffer.spreads.get(own).copied().unwrap_or_default(),
                };
            }
        }
        Self {
            level_count: phase.level_count - above,
            has_uniform_filters: load.options.filter_allocation == FilterAllocation::Uniform,
            levels,
        }
    }

    /// `sample` with these levels in place of its first two, which stand for them; `before` is the one before
    /// it, and `done` that with its levels. While the second is the last there is, it is as it would be. All
    /// that is told of the whole tree stays as it is, since all data is in the lowest part.
    fn complete(&self, sample: &Sample, before: &Sample, done: &Sample) -> Sample {
        let user = (sample.io_stats.user - before.io_stats.user) as f64;
        let flushes = (sample.flushes - before.flushes) as f64;
        let mut all = sample.clone();
        let above = self.levels.len() - 2;
        // The bound on room may leave the levels above less now than on average, as it does their last one.
        let fed = sample.spreads.get(1).copied().unwrap_or_default();
        let filled = fed.entries_over(self.levels[above + 1].spread);
        all.spreads.clear();
        (all.levels, all.runs, all.runs_sums, all.runs_most) = Default::default();
        all.io_stats.levels.clear();
        for level in 0..self.levels.len() + sample.levels.len() {
            let own = level.saturating_sub(above);
            let is_own = own > 1 || (own == 1 && self.level_count == 1);
            if is_own && own >= sample.levels.len() {
                break;
            }
            let io_stats_done = done.io_stats.levels.get(level).copied().unwrap_or_default();
            let runs_done = done.runs_sums.get(level).copied().unwrap_or(0.0);
            if is_own {
                let of = |sample: &Sample| sample.io_stats.levels.get(own).copied();
                let (now, then) = (
                    of(sample).unwrap_or_default(),
                    of(before).unwrap_or_default(),
                );
                let moved = now.combined(then, |now, then| now - then);
                all.io_stats
                    .levels
                    .push(io_stats_done.combined(moved, |sum, bytes| sum + bytes));
                let of = |sample: &Sample| sample.runs_sums.get(own).copied().unwrap_or(0.0);
                all.runs_sums.push(runs_done + of(sample) - of(before));
                all.runs.push(sample.runs.get(own).copied().unwrap_or(0.0));
                all.runs_most
                    .push(sample.runs_most.get(own).copied().unwrap_or(0));
                let spread = sample.spreads.get(own);
                all.spreads.push(spread.copied().unwrap_or_default());
            } else {
                let upper = &self.levels[level];
                let io_stats = io_stats_done.combined(upper.io_stats, |sum, bytes| {
                    sum + whole(bytes as f64 * user / upper.user.max(1) as f64)
                });
                all.io_stats.levels.push(io_stats);
                all.runs_sums.push(runs_done + upper.runs * flushes);
                all.runs.push(upper.runs);
                all.runs_most.push(upper.runs_most);
                let filled = if level == 0 { 1.0 } else { filled };
                all.spreads.push(upper.spread.filled(filled));
            }
            let shape = match own {
                0 => self.levels[level].shape,
                _ => sample.levels.get(own).copied().unwrap_or_default(),
            };
            all.levels.push(shape);
        }
        all.runs_per_seek = all.runs.iter().sum();
        // Where bits are shared out after Monkey, all runs together let exp(H - b ln^2 2) reads through, with H the
        // entropy of their parts of the entries; where they are not, each run as many as any other.
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
struct ReadBuffer {
    course: Course,
    /// Of each level, on average over the second half.
    spreads: Vec<Spread>,
    /// On average over the second half.
    shapes: Vec<LevelShape>,
}

/// The levels behind `first` of a tree, three of them, while the middle one is filled. Where the third is the
/// last of the tree and has not been there for long, what is merged into the middle one is less, and counts as
/// long as it was so.
fn read_buffer(load: &Load, phase: &Phase, first: usize) -> ReadBuffer {
    let level_count = phase.level_count;
    let kept = (first + 3).min(level_count);
    let mut options = upper(&load.options, level_count, kept);
    let bounded = whole(options.base_bytes as f64 * phase.capacity_part);
    options.base_bytes = bounded.max(options.file_bytes);
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
    // Of the files that the whole tree may have, as many as the window has of its bytes.
    let part = capacities(&options, kept)[kept] as f64
        / capacities(&load.options, level_count)[level_count] as f64;
    let load = Load {
        files_max: whole(load.files_max as f64 * part).max(1),
        keys: load.keys.max(inserts),
        inserts,
        draws,
        options,
        part: Part {
            above: first,
            feeds_most: FEEDS_MOST,
        },
        filters: false,
        ..load.clone()
    };
    let outcome = carry_out(&load);
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
            ..last.copied().unwrap_or_default()
        }
    };
    let spread = |level: usize| {
        let spreads = late.iter().filter_map(|sample| sample.spreads.get(level));
        Spread::sum(spreads).times(1.0 / (late.len() as f64).max(1.0))
    };
    ReadBuffer {
        course: outcome.course_from(from),
        spreads: (0..=3).map(spread).collect(),
        shapes: (0..=3).map(shape).collect(),
    }
}

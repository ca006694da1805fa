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

use super::load::Load;
use super::outcome::Course;
use super::simulate;
use crate::base::LevelTraffic;
use crate::options::KeyspaceOptions;
use crate::policy::{capacities, whole};

/// Which levels of a tree are simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub(super) struct Part {
    /// How many levels from level 1 on are left out above.
    pub(super) above: usize,
}

impl Part {
    /// The options for the part while it has so many levels.
    pub(super) fn options(self, options: &KeyspaceOptions, level_count: usize) -> KeyspaceOptions {
        if self.above == 0 {
            return options.clone();
        }
        let capacities = capacities(options, self.above + level_count);
        let below = i32::try_from(level_count - 1).unwrap_or(i32::MAX);
        let feeds = capacities[self.above] / options.level0_runs as u64;
        KeyspaceOptions {
            base_bytes: whole(capacities[self.above + 1] as f64 * options.scaling.powi(below)),
            memtable_bytes: usize::try_from(feeds).unwrap_or(usize::MAX),
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

/// A number of levels that the tree has for less than this part of the load is passed over.
const SHARE_MIN: f64 = 0.1;

/// Carries `load` out in parts, where it is large; what `measured` writes at the end cost counts.
///
/// # Errors
/// `InvalidArgument` where the [load](Load::validate) or its options are not valid.
pub fn simulate_large(load: &Load, measured: u64) -> crate::Result<Course> {
    load.validate()?;
    let measured = measured.clamp(1, load.writes());
    let bytes = load.writes() * load.entry_bytes();
    let last = level_count(&load.options, load.keys.saturating_mul(load.entry_bytes()));
    let capacities = capacities(&load.options, last);
    let is_fine = |above: &usize| match above {
        0 => bytes / (load.options.memtable_bytes as u64).max(1) <= load.flushes_max,
        _ => {
            bytes / (capacities[*above] / load.options.level0_runs as u64).max(1)
                <= load.flushes_max
        }
    };
    let above = (0..last).find(is_fine).unwrap_or(last - 1);
    let outcome = simulate(&Load {
        part: Part { above },
        ..load.clone()
    })?;
    let mut course = outcome.course_from(load.writes() - measured);
    if above == 0 {
        return Ok(course);
    }
    let lower = std::mem::take(&mut course.traffic.levels);
    let user = course.traffic.user;
    let scaled = |bytes: u64, from: u64| whole(bytes as f64 * (user as f64 / from.max(1) as f64));
    course.traffic.levels = vec![LevelTraffic::default(); above + 2];
    course.traffic.levels.extend(lower.iter().skip(2));
    let (runs, most) = (course.runs.split_off(2), course.runs_most.split_off(2));
    course.runs = vec![0.0; above + 2];
    course.runs.extend(runs);
    course.runs_most = vec![0; above + 2];
    course.runs_most.extend(most);
    let shares = outcome.level_counts(load.writes() - measured);
    let kept = shares.iter().filter(|(_, share)| *share >= SHARE_MIN);
    let all: f64 = kept.clone().map(|(_, share)| share).sum();
    for (level_count, share) in kept {
        for first in 0..above {
            let window = window(load, above + level_count, first)?;
            let part = share / all;
            let counts = if first == 0 { 0..=2 } else { 2..=2 };
            for own in counts {
                let level = first + own;
                // Where little is different, nothing comes there.
                let from = window.traffic.levels.get(own).copied().unwrap_or_default();
                let sum = &mut course.traffic.levels[level];
                *sum = sum.combined(from, |sum, bytes| {
                    sum + whole(scaled(bytes, window.traffic.user) as f64 * part)
                });
                course.runs[level] += window.runs.get(own).copied().unwrap_or(0.0) * part;
                let most = &mut course.runs_most[level];
                *most = (*most).max(window.runs_most.get(own).copied().unwrap_or(0));
            }
        }
    }
    course.write_amplification = course.traffic.write_amplification();
    Ok(course)
}

/// How many levels a tree of `bytes` has, by the capacities alone; at most as many as there can be.
pub fn level_count(options: &KeyspaceOptions, bytes: u64) -> usize {
    let holds = |count: &usize| capacities(options, *count)[*count] >= bytes;
    let levels = 1..crate::base::limits::LEVELS_MAX;
    levels.clone().find(holds).unwrap_or(levels.end)
}

/// The levels behind `first` of a tree of `level_count`, three of them, while the middle one is filled.
fn window(load: &Load, level_count: usize, first: usize) -> crate::Result<Course> {
    let kept = (first + 3).min(level_count);
    let options = upper(&load.options, level_count, kept);
    let counts = capacities(&options, kept)[(first + 2).min(kept)];
    let writes = (whole(counts as f64 * FILLINGS) / load.entry_bytes()).max(1);
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
        part: Part { above: first },
        ..load.clone()
    };
    Ok(simulate(&load)?.course_from(writes / 2))
}

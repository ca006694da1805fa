//! What to do next.
//!
//! In this order, the first that is possible:
//!
//! 1. *Grow*: the last level is over its capacity, so L grows by one and nothing moves (AU-M3).
//!    *Shrink*: the last level is empty and the others fit in half of the smaller capacities that
//!    they would have; half, so that a tree at the border does not go back and forth (facts D4).
//! 2. *Move*: a run of level 0, or a file of a level that is due, overlaps nothing in the level
//!    below and goes down without being rewritten. Moves cost nothing and come first because they
//!    also take away what a merge from above would have to rewrite.
//! 3. *Merge*, from the level with the highest score. Level 0 gives whole heaps, oldest first. A
//!    deeper level gives the file with the least overlap below per byte of its own, the first one
//!    behind the cursor among equals. Either way every neighbour joins whose own overlap is inside
//!    what is taken already: it comes down at no further cost.
//!
//! 4. *Shed*: a file of which half are tombstones goes down although its level is not due, so that
//!    they meet what they hide, and scans need not step over them for long. Where they lie scattered
//!    over much more than they can hide, they wait: scans hardly meet them, and few of them would
//!    have all that rewritten, again and again.
//!
//! A level 0 that is due but blocked by running jobs keeps level 1 quiet: jobs of lower score do
//! not take files from level 1, or level 0 would never find all it overlaps free at one time.

use std::ops::Range;

use super::capacities::capacities;
use super::level_zero::{Heap, heaps};
use super::scores::scores;
use super::summary::{Claim, FileSummary, TreeSummary, bytes, entries, overlapping};
use crate::base::FileNumber;
use crate::base::limits::LEVELS_MAX;
use crate::options::KeyspaceOptions;

/// The next job for one tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Plan<K> {
    /// Nothing is due, or what is due waits for running jobs.
    Idle,
    /// Record that there are `level_count` levels, one more or one less; no file moves.
    Resize { level_count: usize },
    /// Put the file `upper` of `level` into `claim.level` as it is.
    Move {
        level: usize,
        upper: FileNumber,
        claim: Claim<K>,
    },
    /// Merge the `upper` files of `level` with the `lower` files of `claim.level` into
    /// `claim.level`. Both are in the order of their level: level 0 newest first, others by key.
    Merge {
        level: usize,
        upper: Vec<FileNumber>,
        lower: Vec<FileNumber>,
        claim: Claim<K>,
    },
}

/// The next job for `tree`.
///
/// `cursors` holds, for each level, the largest key that the last job from it claimed; absent ends
/// count as none. Until the job is done its inputs are busy in every summary, and its claim is
/// among the claims.
pub(crate) fn plan<K: Ord + Clone>(
    tree: &TreeSummary<K>,
    options: &KeyspaceOptions,
    cursors: &[Option<K>],
) -> Plan<K> {
    if let Some(level_count) = resized(tree, options) {
        return Plan::Resize { level_count };
    }
    let heaps = heaps(tree);
    let due = due_levels(&scores(tree, options));
    let cursor = |level: usize| cursors.get(level).and_then(Option::as_ref);

    let run = heaps.iter().find_map(|heap| move_run(tree, heap));
    let file = || {
        let mut deeper = due.iter().filter(|&&level| level > 0);
        deeper.find_map(|&level| move_file(tree, level, cursor(level)))
    };
    if let Some(plan) = run.or_else(file) {
        return plan;
    }
    let mut level_one_rests = false;
    for level in due {
        let merge = match level {
            0 => heaps.iter().find_map(|heap| merge_heap(tree, heap, &heaps)),
            1 if level_one_rests => None,
            _ => merge_cheapest(tree, level, cursor(level)),
        };
        if let Some(plan) = merge {
            return plan;
        }
        level_one_rests |= level == 0;
    }
    let first = if level_one_rests { 2 } else { 1 };
    shed(tree, first).unwrap_or(Plan::Idle)
}

/// For one tombstone so many entries of the level below may be rewritten, about as many as for any
/// other entry.
const SHED_ENTRIES_MAX: u64 = 8;

/// Takes a file that is mostly tombstones from level `first` or deeper towards what they hide.
fn shed<K: Ord + Clone>(tree: &TreeSummary<K>, first: usize) -> Option<Plan<K>> {
    (first..tree.deepest_level()).find_map(|level| {
        let files = tree.level(level);
        let pays = |file: &FileSummary<K>| {
            let below = tree.level(level + 1);
            let overlap = &below[overlapping(below, &file.smallest, &file.largest)];
            entries(overlap) <= file.tombstones.saturating_mul(SHED_ENTRIES_MAX)
        };
        let is_due = |&file: &usize| is_dense(&files[file]) && pays(&files[file]);
        (0..files.len()).filter(is_due).find_map(|file| {
            move_down(tree, level, &files[file]).or_else(|| merge_file(tree, level, file))
        })
    })
}

/// Whether at least half of the entries are tombstones.
fn is_dense<K>(file: &FileSummary<K>) -> bool {
    file.tombstones.saturating_mul(2) >= file.entries
}

/// The number of levels that `tree` should have, if not the present one.
fn resized<K>(tree: &TreeSummary<K>, options: &KeyspaceOptions) -> Option<usize> {
    let last = tree.level_count;
    if tree.logical_bytes(last) > capacities(options, last)[last] {
        return (last < LEVELS_MAX).then_some(last + 1);
    }
    let is_wanted = !tree.level(last).is_empty() || tree.claims.iter().any(|it| it.level == last);
    if last == 1 || is_wanted {
        return None;
    }
    let smaller = capacities(options, last - 1);
    let fits = |level: usize| tree.logical_bytes(level) <= smaller[level] / 2;
    (1..last).all(fits).then_some(last - 1)
}

/// The next job that brings the keys from `smallest` to `largest`, unbounded where absent, down to
/// the deepest level that holds data, shedding on the way what nobody needs.
///
/// What is there already and holds tombstones is rewritten in its place, files with numbers below
/// `before` only, so that each is rewritten once.
///
/// `Idle` when all that is done, or while running jobs are in the way.
pub(crate) fn plan_range<K: Ord + Clone>(
    tree: &TreeSummary<K>,
    smallest: Option<&K>,
    largest: Option<&K>,
    before: FileNumber,
) -> Plan<K> {
    let wanted = |from: &K, to: &K| {
        smallest.is_none_or(|smallest| smallest <= to)
            && largest.is_none_or(|largest| from <= largest)
    };
    let heaps = heaps(tree);
    let heap = heaps
        .iter()
        .filter(|heap| wanted(&heap.smallest, &heap.largest))
        .find_map(|heap| merge_heap(tree, heap, &heaps));
    let file = || {
        (1..tree.deepest_level()).find_map(|level| {
            let files = tree.level(level);
            (0..files.len())
                .filter(|&file| wanted(&files[file].smallest, &files[file].largest))
                .find_map(|file| merge_file(tree, level, file))
        })
    };
    let rewrite = || {
        let level = tree.deepest_level();
        let stale = |file: &&FileSummary<K>| {
            let is_old = file.tombstones > 0 && file.number < before && !file.busy;
            is_old && wanted(&file.smallest, &file.largest)
        };
        tree.level(level)
            .iter()
            .filter(stale)
            .find_map(|file| rewrite_file(tree, level, file))
    };
    heap.or_else(file).or_else(rewrite).unwrap_or(Plan::Idle)
}

/// Rewrites a file of the last level in its place.
fn rewrite_file<K: Ord + Clone>(
    tree: &TreeSummary<K>,
    level: usize,
    file: &FileSummary<K>,
) -> Option<Plan<K>> {
    let is_free = !tree.is_claimed(level, &file.smallest, &file.largest);
    is_free.then(|| Plan::Merge {
        level,
        upper: vec![file.number],
        lower: Vec::new(),
        claim: Claim {
            level,
            smallest: file.smallest.clone(),
            largest: file.largest.clone(),
        },
    })
}

/// The levels that should give something, highest score first, the upper one among equals.
fn due_levels(scores: &[f64]) -> Vec<usize> {
    let is_due = |level: usize| match level {
        0 => scores[0] >= 1.0,
        _ => scores[level] > 1.0,
    };
    let mut due: Vec<usize> = (0..scores.len()).filter(|&level| is_due(level)).collect();
    due.sort_by(|&left, &right| scores[right].total_cmp(&scores[left]));
    due
}

/// Moves a run of level 0 that overlaps no other run and nothing in level 1.
fn move_run<K: Ord + Clone>(tree: &TreeSummary<K>, heap: &Heap<K>) -> Option<Plan<K>> {
    match heap.runs[..] {
        [run] => move_down(tree, 0, &tree.level(0)[run]),
        _ => None,
    }
}

/// Moves a file of `level` that overlaps nothing in the level below, the first behind the cursor.
fn move_file<K: Ord + Clone>(
    tree: &TreeSummary<K>,
    level: usize,
    cursor: Option<&K>,
) -> Option<Plan<K>> {
    let files = tree.level(level);
    behind(files, cursor).find_map(|file| move_down(tree, level, &files[file]))
}

/// Moves `file` of `level` down if it overlaps nothing there and no job is in the way.
///
/// A file that is mostly tombstones with nothing below them is left for a merge: rewriting drops
/// them, while a move would keep them for ever.
fn move_down<K: Ord + Clone>(
    tree: &TreeSummary<K>,
    level: usize,
    file: &FileSummary<K>,
) -> Option<Plan<K>> {
    let inputs = Inputs::over(tree, level + 1, &file.smallest, &file.largest)?;
    let sheds = is_dense(file) && !tree.overlaps_below(level + 1, &file.smallest, &file.largest);
    (!file.busy && !sheds && inputs.lower.is_empty()).then(|| Plan::Move {
        level,
        upper: file.number,
        claim: inputs.claim,
    })
}

/// Merges `heap` down, and with it those of `heaps` that come at no further cost.
fn merge_heap<K: Ord + Clone>(
    tree: &TreeSummary<K>,
    heap: &Heap<K>,
    heaps: &[Heap<K>],
) -> Option<Plan<K>> {
    if heap.busy {
        return None;
    }
    let mut inputs = Inputs::over(tree, 1, &heap.smallest, &heap.largest)?;
    let mut upper = heap.runs.clone();
    for other in heaps.iter().filter(|other| !other.busy) {
        if !upper.contains(&other.oldest()) && inputs.absorb(tree, &other.smallest, &other.largest)
        {
            upper.extend(&other.runs);
        }
    }
    upper.sort_unstable();
    Some(inputs.into_merge(tree, 0, &upper))
}

/// Merges the file of `level` that costs least per byte.
fn merge_cheapest<K: Ord + Clone>(
    tree: &TreeSummary<K>,
    level: usize,
    cursor: Option<&K>,
) -> Option<Plan<K>> {
    let files = tree.level(level);
    let cost = |file: &usize| {
        let file = &files[*file];
        let inputs = Inputs::over(tree, level + 1, &file.smallest, &file.largest)?;
        let overlap = bytes(&tree.level(level + 1)[inputs.lower]);
        (!file.busy).then(|| overlap as f64 / file.bytes.max(1) as f64)
    };
    let (file, _) = behind(files, cursor)
        .filter_map(|file| cost(&file).map(|cost| (file, cost)))
        .min_by(|(_, left), (_, right)| left.total_cmp(right))?;
    merge_file(tree, level, file)
}

/// Merges one file of `level` down, and with it the neighbours that come at no further cost.
fn merge_file<K: Ord + Clone>(
    tree: &TreeSummary<K>,
    level: usize,
    position: usize,
) -> Option<Plan<K>> {
    let files = tree.level(level);
    let file = &files[position];
    if file.busy {
        return None;
    }
    let mut inputs = Inputs::over(tree, level + 1, &file.smallest, &file.largest)?;
    let mut joins = |&neighbour: &usize| {
        let file = &files[neighbour];
        !file.busy && inputs.absorb(tree, &file.smallest, &file.largest)
    };
    let before = (0..position).rev().take_while(&mut joins).count();
    let after = (position + 1..files.len()).take_while(&mut joins).count();
    let upper: Vec<usize> = (position - before..=position + after).collect();
    Some(inputs.into_merge(tree, level, &upper))
}

/// The positions of `files` from the first that begins behind `cursor`, once around.
fn behind<K: Ord>(files: &[FileSummary<K>], cursor: Option<&K>) -> impl Iterator<Item = usize> {
    let first = cursor.map_or(0, |cursor| {
        files.partition_point(|file| file.smallest <= *cursor)
    });
    (first..files.len()).chain(0..first)
}

/// What a job into one level takes from that level, and the keys that it may write there.
struct Inputs<K> {
    lower: Range<usize>,
    claim: Claim<K>,
}

impl<K: Ord + Clone> Inputs<K> {
    /// For uppers over these keys into level `target`; `None` where a running job is in the way.
    fn over(tree: &TreeSummary<K>, target: usize, smallest: &K, largest: &K) -> Option<Self> {
        let files = tree.level(target);
        let lower = overlapping(files, smallest, largest);
        let overlap = &files[lower.clone()];
        let smallest = overlap
            .first()
            .map_or(smallest, |file| smallest.min(&file.smallest));
        let largest = overlap
            .last()
            .map_or(largest, |file| largest.max(&file.largest));
        let is_free =
            !overlap.iter().any(|file| file.busy) && !tree.is_claimed(target, smallest, largest);
        is_free.then(|| Self {
            lower,
            claim: Claim {
                level: target,
                smallest: smallest.clone(),
                largest: largest.clone(),
            },
        })
    }

    /// Widens the claim by an upper over these keys if its overlap is inside `lower` already.
    fn absorb(&mut self, tree: &TreeSummary<K>, smallest: &K, largest: &K) -> bool {
        let overlap = overlapping(tree.level(self.claim.level), smallest, largest);
        let comes_free = !overlap.is_empty()
            && self.lower.start <= overlap.start
            && overlap.end <= self.lower.end
            && !tree.is_claimed(self.claim.level, smallest, largest);
        if comes_free {
            self.claim.smallest = self.claim.smallest.clone().min(smallest.clone());
            self.claim.largest = self.claim.largest.clone().max(largest.clone());
        }
        comes_free
    }

    /// The plan that merges the files at `upper` of `level` with what this takes.
    fn into_merge(self, tree: &TreeSummary<K>, level: usize, upper: &[usize]) -> Plan<K> {
        let lower = &tree.level(self.claim.level)[self.lower];
        Plan::Merge {
            level,
            upper: upper
                .iter()
                .map(|&file| tree.level(level)[file].number)
                .collect(),
            lower: lower.iter().map(|file| file.number).collect(),
            claim: self.claim,
        }
    }
}

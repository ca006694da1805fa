//! Tombstone-density compactions: what is mostly tombstones goes down, although its level is not due.
//!
//! There its tombstones meet the entries that they hide, so that cursors need not pass them for long, and the space of
//! both is free. If the tombstones are scattered over many more entries than they can hide, they stay: cursors hardly meet
//! them, and a few tombstones would have all these entries rewritten again and again.
//!
//! A range tombstone counts for the entries below that it hides: their space is free when it meets them, and whole files
//! that it covers go without being read. While there are writes it waits for others, as a plain tombstone does, unless it
//! hides a large part of the tree. A snapshot that still sees those entries makes it wait, too.
//!
//! A file with nothing below it is rewritten where it is, which drops its tombstones. If a snapshot still needs some of
//! them, it waits until that snapshot is gone: no file is rewritten for tombstones that stay. So each compaction takes
//! tombstones one level down or drops them, and they end.
//!
//! Nothing is appended, because appended tombstones would meet nothing.

use super::compaction::{compact_group, move_or_compact};
use super::groups::RunGroup;
use super::plan::{Plan, Purpose};
use super::rewrite::rewrite_file;
use super::rules::Rules;
use crate::options::KeyspaceOptions;
use crate::policy::summary::FileSummary;
use crate::policy::tree::{Sum, Tree};

/// One tombstone may rewrite this many entries of the level below. Any other entry rewrites about the same
/// number.
const ENTRIES_PER_TOMBSTONE_MAX: u64 = 8;

/// One part of the tree of so many does not stay hidden for long, even while there are writes.
const HIDDEN_PARTS: u64 = 8;

/// The part of tombstones from which a file goes down.
const DENSE_PART_MIN: f64 = 0.5;

/// The part of tombstones from which a file with nothing below it is rewritten.
const SPENT_PART_MIN: f64 = 0.25;

/// Takes what is mostly tombstones down: runs of level 0 if `first` is 1, or a file of level `first` or deeper; or
/// rewrites a file with nothing below it.
pub(super) fn compact<K: Ord + Clone>(
    tree: &dyn Tree<K>,
    rules: Rules<'_>,
    options: &KeyspaceOptions,
    groups: &[RunGroup<K>],
    first: usize,
) -> Option<Plan<K>> {
    let rules = rules.appending_above(0);
    let groups_below = if first == 1 { groups } else { &[] };
    compact_runs(tree, rules, options, groups_below)
        .or_else(|| compact_files(tree, rules, first))
        .or_else(|| rewrite_last(tree, rules, first))
}

/// Takes down a group of runs of level 0 that are mostly tombstones. While there are writes, other runs will share the
/// rewrite of level 1 if it waits, so it may rewrite as many times less.
fn compact_runs<K: Ord + Clone>(
    tree: &dyn Tree<K>,
    rules: Rules<'_>,
    options: &KeyspaceOptions,
    groups: &[RunGroup<K>],
) -> Option<Plan<K>> {
    let is_due = |group: &&RunGroup<K>| {
        let sum = |of: &dyn Fn(&FileSummary<K>) -> u64| {
            let runs = group.runs.iter().map(|&run| of(&tree.file(0, run)));
            runs.fold(0, u64::saturating_add)
        };
        let (entries, tombstones) = (sum(&|run| run.entries), sum(&|run| weight(tree, run)));
        let lower = tree.overlapping(1, &group.smallest, &group.largest);
        let rewritten = tree.sum_within(1, lower, Sum::Entries);
        let sharing = if tree.is_idle() {
            1
        } else {
            options.level0_runs
        };
        tombstones.saturating_mul(2) >= entries
            && rewritten.saturating_mul(sharing as u64)
                <= tombstones.saturating_mul(ENTRIES_PER_TOMBSTONE_MAX)
    };
    let mut due = groups.iter().filter(is_due);
    // Other groups wait: they were not counted.
    due.find_map(|group| compact_group(tree, rules, group, &[]))
}

/// Takes down a file of level `first` or deeper that is mostly tombstones.
fn compact_files<K: Ord + Clone>(
    tree: &dyn Tree<K>,
    rules: Rules<'_>,
    first: usize,
) -> Option<Plan<K>> {
    (first..tree.deepest_level()).find_map(|level| {
        let pays = |file: &FileSummary<K>| {
            let overlap = tree.overlapping(level + 1, &file.smallest, &file.largest);
            let entries = tree.sum_within(level + 1, overlap, Sum::Entries);
            let tombstones = weight(tree, file);
            tombstones.saturating_mul(2) >= file.entries
                && entries <= tombstones.saturating_mul(ENTRIES_PER_TOMBSTONE_MAX)
        };
        files_with(tree, level, DENSE_PART_MIN)
            .filter(|&file| pays(&tree.file(level, file)))
            .find_map(|file| move_or_compact(tree, rules, level, file))
    })
}

/// For how many tombstones those of `file` count.
fn weight<K: Ord + Clone>(tree: &dyn Tree<K>, file: &FileSummary<K>) -> u64 {
    let hidden = file.hidden_below;
    let is_due = tree.is_idle() || hidden.saturating_mul(HIDDEN_PARTS) >= tree.total(Sum::Entries);
    if is_due && file.sequence_max <= tree.oldest_reader() {
        file.tombstones.saturating_add(hidden)
    } else {
        file.tombstones
    }
}

/// Rewrites a file of level `first` or deeper with many tombstones that has nothing below it, if the rewrite drops all of
/// them. What they hide is in the file too, and goes with them.
fn rewrite_last<K: Ord + Clone>(
    tree: &dyn Tree<K>,
    rules: Rules<'_>,
    first: usize,
) -> Option<Plan<K>> {
    let is_due = |level: usize, file: &FileSummary<K>| {
        file.tombstones as f64 >= file.entries as f64 * SPENT_PART_MIN
            && file.sequence_max <= tree.oldest_reader()
            && !tree.overlaps_below(level, &file.smallest, &file.largest)
    };
    (first..tree.depth()).find_map(|level| {
        files_with(tree, level, SPENT_PART_MIN)
            .filter(|&file| is_due(level, &tree.file(level, file)))
            .find_map(|file| rewrite_file(tree, rules, (level, file), Purpose::Tree))
    })
}

/// The files of those chunks of `level` in which tombstones may take at least this part of a file.
fn files_with<K: Ord + Clone>(
    tree: &dyn Tree<K>,
    level: usize,
    part: f64,
) -> impl Iterator<Item = usize> {
    (0..tree.chunks(level))
        .filter(move |&chunk| tree.bounds(level, chunk).tombstone_part_max >= part)
        .flat_map(move |chunk| tree.chunk(level, chunk))
}

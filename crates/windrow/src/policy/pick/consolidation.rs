//! Consolidations and read-triggered compactions: fewer runs for range reads.
//!
//! A visit of a range read to one more run reads a block. Once the visits have read as many bytes as the
//! compaction would move, the compaction pays. So for any reads, the bytes that these visits read and the
//! compaction moves are at most twice the least possible.

use super::compaction::compact_group;
use super::groups::RunGroup;
use super::plan::{Plan, Purpose};
use super::rewrite::{best_first, rewrite_file};
use super::rules::Rules;
use crate::policy::append::UpperBytes;
use crate::policy::summary::{FileSummary, TreeSummary, overlapping};

/// Consolidates the segments of a file of level `first` or deeper into one, if the file has more segments
/// than it may, as after a trivial move, or if range reads have paid for it: the file with the highest gain,
/// of bytes that reads save and bytes that are freed.
///
/// Space alone is no reason while there is enough: only a file with too many segments is consolidated for it.
pub(super) fn consolidate<K: Ord + Clone>(
    tree: &TreeSummary<K>,
    rules: Rules<'_>,
    first: usize,
) -> Option<Plan<K>> {
    let gain = |level: usize, file: &FileSummary<K>| {
        let is_over = file.segments.len() > rules.appends.limit(level);
        let visited = rules.visited_bytes(file.visits);
        let is_due = file.segments.len() > 1 && (is_over || visited >= file.bytes);
        is_due.then(|| visited as f64 / file.bytes.max(1) as f64 + file.superseded_part())
    };
    best_first(tree, first, gain)
        .find_map(|place| rewrite_file(tree, rules, place, Purpose::Consolidation))
}

/// Compacts runs of level 0 that range reads have paid for, although level 0 is not due.
pub(super) fn compact_read_runs<K: Ord + Clone>(
    tree: &TreeSummary<K>,
    rules: Rules<'_>,
    groups: &[RunGroup<K>],
) -> Option<Plan<K>> {
    let pays = |group: &&RunGroup<K>| {
        let runs = || group.runs.iter().map(|&run| &tree.level(0)[run]);
        let upper = UpperBytes::of(runs(), rules.placement.is_in_place(1));
        let visits = runs().fold(0, |all: u64, run| all.saturating_add(run.visits));
        let below = tree.level(1);
        let lower = &below[overlapping(below, &group.smallest, &group.largest)];
        let rewritten = rules.appends.rewritten_bytes(tree, 1, lower, upper);
        visits > 0 && rules.visited_bytes(visits) >= upper.bytes.saturating_add(rewritten)
    };
    let mut paid = groups.iter().filter(pays);
    paid.find_map(|group| compact_group(tree, rules, group, groups))
}

//! Consolidations and read-triggered compactions: fewer runs for range reads.
//!
//! A visit of a range read to one more run reads a block. Once the visits have read as many bytes as the
//! compaction would move, the compaction pays. So for any reads, the bytes that these visits read and the
//! compaction moves are at most twice the least possible.

use super::compaction::compact_group;
use super::groups::RunGroup;
use super::plan::{Plan, Purpose};
use super::rewrite::{best, rewrite_file};
use super::rules::Rules;
use crate::policy::append::UpperBytes;
use crate::policy::summary::FileSummary;
use crate::policy::tree::{Bounds, Tree};

/// Consolidates the segments of a file of level `first` or deeper into one, if the file has more segments
/// than it may, as after a trivial move, or if range reads have paid for it: the file with the highest gain,
/// of bytes that reads save and bytes that are freed.
///
/// Space alone is no reason while there is enough: only a file with too many segments is consolidated for it.
pub(super) fn consolidate<K: Ord + Clone>(
    tree: &dyn Tree<K>,
    rules: Rules<'_>,
    first: usize,
) -> Option<Plan<K>> {
    let gain = |level: usize, file: &FileSummary<K>| {
        let is_over = file.segments.len() > rules.appends.limit(level);
        let visited = rules.visited_bytes(file.visits);
        let is_due = file.segments.len() > 1 && (is_over || visited >= file.bytes);
        is_due.then(|| visited as f64 / file.bytes.max(1) as f64 + file.superseded_part())
    };
    // The most that a file of a chunk can gain.
    let most = |level: usize, chunk: &Bounds| {
        let is_over = chunk.segments_max > rules.appends.limit(level);
        let (visited, bytes) = (
            rules.visited_bytes(chunk.visits_max),
            chunk.segmented_bytes_min,
        );
        let may_be_due = chunk.segments_max > 1 && (is_over || visited >= bytes);
        may_be_due.then(|| visited as f64 / bytes.max(1) as f64 + chunk.superseded_part_max)
    };
    let levels = (first..tree.depth()).filter(|&level| tree.is_segmented(level));
    best(tree, levels, most, gain, |place| {
        rewrite_file(tree, rules, place, Purpose::Consolidation)
    })
}

/// Compacts runs of level 0 that range reads have paid for, although level 0 is not due.
pub(super) fn compact_read_runs<K: Ord + Clone>(
    tree: &dyn Tree<K>,
    rules: Rules<'_>,
    groups: &[RunGroup<K>],
) -> Option<Plan<K>> {
    let pays = |group: &&RunGroup<K>| {
        let runs = || group.runs.iter().map(|&run| tree.file(0, run));
        let upper = UpperBytes::of(runs(), rules.placement.is_in_place(1));
        let visits = runs().fold(0, |all: u64, run| all.saturating_add(run.visits));
        if visits == 0 {
            return false;
        }
        let lower = tree.overlapping(1, &group.smallest, &group.largest);
        let lower = tree.files(1, lower);
        let rewritten = rules.appends.rewritten_bytes(tree, 1, &lower, upper);
        rules.visited_bytes(visits) >= upper.bytes.saturating_add(rewritten)
    };
    let mut paid = groups.iter().filter(pays);
    paid.find_map(|group| compact_group(tree, rules, group, groups))
}

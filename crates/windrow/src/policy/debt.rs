//! Which files give up what they have in transient runs, though no level is due.
//!
//! Merges by capacity alone would leave stragglers in runs for ever (facts D6). Debt is what the
//! files of levels from 1 on have in runs. Level 0 does not count: how many runs it holds is bounded,
//! and it goes down whole; counted, the first flushes into a small tree would each be merged alone.
//!
//! I1. What is in runs in a level that merges fill in place is owed at once.
//! I2. All debt is owed while it exceeds [`share`] of the tree's logical bytes.
//! I3. Where merges never write in place, nothing is owed.

use super::placement::Placement;
use super::summary::{FileSummary, TreeSummary, bytes, logical_bytes, overlapping};
use crate::options::KeyspaceOptions;

/// The part of a tree's logical bytes that may be in transient runs: 1/T, what the levels above the
/// last hold of a full tree.
fn share(options: &KeyspaceOptions) -> f64 {
    1.0 / options.size_ratio
}

/// The files that owe their transient bytes, as level and position: deepest level first, since
/// there the debt is paid with fewest merges, and in a level the cheapest first. By the share of their
/// bytes alone, in place of the cost, debt would be paid with four times the rewriting.
///
/// Files that a job already works on are neither counted nor named.
pub(super) fn debtors<K: Ord>(
    tree: &TreeSummary<K>,
    placement: Placement,
    options: &KeyspaceOptions,
) -> Vec<(usize, usize)> {
    let deepest = tree.deepest_level();
    if !placement.merges_in_place(deepest) {
        return Vec::new();
    }
    let is_excessive = is_excessive(tree, options);
    let owed = |level: &usize| is_excessive || placement.merges_in_place(*level);
    let levels = (1..=deepest).rev().filter(owed);
    levels
        .flat_map(|level| by_cost(tree, placement, level))
        .collect()
}

/// Whether more is in runs than may be.
fn is_excessive<K>(tree: &TreeSummary<K>, options: &KeyspaceOptions) -> bool {
    let files = tree.levels.iter().skip(1).flatten();
    let idle = files.filter(|file| !file.busy);
    let debt: u64 = idle.map(|file| file.transient_bytes).sum();
    let total: u64 = tree.levels.iter().map(|files| logical_bytes(files)).sum();
    debt as f64 > share(options) * total as f64
}

/// The idle files of `level` that refer to runs, the cheapest to bring in place first: by the bytes
/// that are rewritten, their own and of the files below that they overlap, per transient byte.
fn by_cost<K: Ord>(
    tree: &TreeSummary<K>,
    placement: Placement,
    level: usize,
) -> impl Iterator<Item = (usize, usize)> {
    let files = tree.level(level);
    let below = if placement.merges_in_place(level) {
        &[]
    } else {
        tree.level(level + 1)
    };
    let cost = |file: &FileSummary<K>| {
        let overlap = bytes(&below[overlapping(below, &file.smallest, &file.largest)]);
        (overlap + file.bytes) as f64 / file.transient_bytes as f64
    };
    let mut owing: Vec<(f64, usize)> = (0..files.len())
        .filter(|&position| !files[position].busy && files[position].transient_bytes > 0)
        .map(|position| (cost(&files[position]), position))
        .collect();
    owing.sort_by(|left, right| left.0.total_cmp(&right.0));
    owing
        .into_iter()
        .map(move |(_, position)| (level, position))
}

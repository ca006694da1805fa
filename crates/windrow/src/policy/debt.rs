//! Which files give up what they have in transient logs, though no level is due.
//!
//! Merges by capacity alone would leave stragglers in runs for ever (D6). Debt is what the
//! files of levels from 1 on keep of runs: of each transient log file the part that they have of all references
//! to it, so that its garbage values are owed, too, by the stragglers that keep them. Level 0 does not
//! count: how many runs it holds is bounded, and it goes down whole; counted, the first flushes into
//! a small tree would each be merged alone.
//!
//! I1. What is in runs in a level that merges fill in place is owed at once.
//! I2. All debt is owed while it exceeds [`share`] of the tree's logical bytes. So at rest the files of
//!     runs take no more than that, and what level 0 has in them.
//! I3. So it is while there are more than [`TRANSIENT_FILES_MAX`] such files, however short. Each job that repays
//!     brings values one level nearer to their place, so this ends, at the latest with all of them in place.
//! I4. Where merges never write in place, nothing is owed.

use super::placement::Placement;
use super::summary::{FileSummary, TreeSummary, bytes, logical_bytes, overlapping};
use crate::base::limits::TRANSIENT_FILES_MAX;
use crate::options::KeyspaceOptions;

/// The part of a tree's logical bytes that transient log files may take: 1/T, what the levels above the last
/// hold of a full tree.
fn fraction(options: &KeyspaceOptions) -> f64 {
    1.0 / options.size_ratio
}

/// A file that owes what it has in runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Debtor {
    pub(super) level: usize,
    /// In its level.
    pub(super) position: usize,
    /// Bytes to be written for each one that is freed.
    cost: f64,
}

/// The files that owe what they have in runs, the cheapest first. By the share of their bytes alone,
/// in place of the cost, debt would be paid with four times the rewriting; deepest level first, the
/// level before the last would be emptied for what the levels above keep.
///
/// Files that a job already works on are neither counted nor named.
pub(super) fn debtors<K: Ord>(
    tree: &TreeSummary<K>,
    placement: Placement,
    options: &KeyspaceOptions,
) -> Vec<Debtor> {
    let deepest = tree.deepest_level();
    if !placement.merges_in_place(deepest) {
        return Vec::new();
    }
    let is_excessive = is_excessive(tree, options);
    let owed = |level: &usize| is_excessive || placement.merges_in_place(*level);
    let levels = (1..=deepest).rev().filter(owed);
    let debtors = levels.flat_map(|level| debtors_of(tree, placement, level));
    let mut debtors: Vec<Debtor> = debtors.collect();
    debtors.sort_by(|left, right| left.cost.total_cmp(&right.cost));
    debtors
}

/// Whether transient log files take more than they may, or are too many.
fn is_excessive<K>(tree: &TreeSummary<K>, options: &KeyspaceOptions) -> bool {
    let files = tree.levels.iter().skip(1).flatten();
    let idle = files.filter(|file| !file.busy);
    let debt: u64 = idle.map(|file| file.pinned_bytes).sum();
    let total: u64 = tree.levels.iter().map(|files| logical_bytes(files)).sum();
    debt as f64 > fraction(options) * total as f64 || transient_files(tree) > TRANSIENT_FILES_MAX
}

/// How many files of runs there are that levels from 1 on refer to. A table of level 0 refers to the run
/// of its flush, and nothing else does.
fn transient_files<K>(tree: &TreeSummary<K>) -> u64 {
    let flushed = tree
        .level(0)
        .iter()
        .map(|file| u64::from(file.transient_files));
    tree.transient_files.saturating_sub(flushed.sum())
}

/// The idle files of `level` that refer to runs.
///
/// A merge writes their own bytes, those of the files below that they overlap, and the values. Where
/// it puts these in place all that they keep is freed; else at most what is dead beside them, where
/// sparse files are written anew. What moves on for thin slices alone frees nothing, and is left out.
fn debtors_of<K: Ord>(
    tree: &TreeSummary<K>,
    placement: Placement,
    level: usize,
) -> impl Iterator<Item = Debtor> {
    let files = tree.level(level);
    let below = if placement.merges_in_place(level) {
        &[]
    } else {
        tree.level(level + 1)
    };
    let is_freed = placement.merges_in_place(level + 1);
    let cost = move |file: &FileSummary<K>| {
        let overlap = bytes(&below[overlapping(below, &file.smallest, &file.largest)]);
        let left = if is_freed { 0 } else { file.transient_bytes };
        let freed = file.pinned_bytes.saturating_sub(left);
        (overlap + file.bytes + file.transient_bytes) as f64 / freed as f64
    };
    let owing = |(_, file): &(usize, &FileSummary<K>)| !file.busy && file.pinned_bytes > 0;
    let owing = files.iter().enumerate().filter(owing);
    owing.map(move |(position, file)| Debtor {
        level,
        position,
        cost: cost(file),
    })
}

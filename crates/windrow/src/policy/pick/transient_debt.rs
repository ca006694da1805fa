//! Transient-debt compactions: files that refer to transient logs go down, although no level is due.
//!
//! Compactions by capacity alone would leave some values in transient logs for ever (D6). The *debt* is what the files
//! of levels from 1 on keep of transient logs. Each file keeps of a transient log file the part that it has of all
//! references to it. So the debt includes garbage values that the last few references keep. Level 0 does not count:
//! the number of its runs is bounded, and it goes down whole. If it counted, the first flushes into a small tree would
//! each be compacted alone.
//!
//! I1. A level that has values in place is due at once if it still refers to transient logs.
//! I2. All debt is due while it exceeds the [fraction] of the tree's logical bytes. So at rest the files of
//!     transient logs take no more than that, and what level 0 has in them.
//! I3. All debt is due, too, while there are more than [`TRANSIENT_FILES_MAX`] such files, however short. Each job
//!     brings values one level nearer to their place, so this ends, at the latest with all of them in place.
//! I4. If compactions never put values in place, no debt is due.

use super::compaction::move_or_compact;
use super::plan::{Plan, Purpose};
use super::rewrite::rewrite_file;
use super::rules::Rules;
use crate::base::limits::TRANSIENT_FILES_MAX;
use crate::options::KeyspaceOptions;
use crate::policy::placement::Placement;
use crate::policy::summary::FileSummary;
use crate::policy::tree::{Sum, Tree};

/// Takes a file that is due from level `first` or deeper towards the level that has values in place, or rewrites
/// it if its own level must have them in place.
pub(super) fn compact<K: Ord + Clone>(
    tree: &dyn Tree<K>,
    rules: Rules<'_>,
    options: &KeyspaceOptions,
    first: usize,
) -> Option<Plan<K>> {
    let due = due_files(tree, rules.placement, options).into_iter();
    let mut due = due.filter(|file| file.level >= first);
    due.find_map(|file| {
        let (level, position) = (file.level, file.position);
        if rules.placement.is_in_place(level) {
            rewrite_file(tree, rules, (level, position), Purpose::Tree)
        } else {
            move_or_compact(tree, rules, level, position)
        }
    })
}

/// The part of a tree's logical bytes that transient log files may take: 1/T, about the part of a full tree
/// that is above the last level.
fn fraction(options: &KeyspaceOptions) -> f64 {
    1.0 / options.size_ratio
}

/// A file whose debt is due.
#[derive(Debug, Clone, Copy)]
struct DueFile {
    level: usize,
    /// In its level.
    position: usize,
    /// Bytes to be written for each byte that is freed.
    cost: f64,
}

/// The idle files whose debt is due, the cheapest first.
///
/// The order by debt per byte alone would rewrite four times as much. The order by depth would empty the level
/// before the last for what the levels above keep. Files with a running job do not count.
fn due_files<K: Ord + Clone>(
    tree: &dyn Tree<K>,
    placement: Placement,
    options: &KeyspaceOptions,
) -> Vec<DueFile> {
    let deepest = tree.deepest_level();
    if !placement.is_in_place(deepest) {
        return Vec::new();
    }
    let is_excessive = is_excessive(tree, options);
    let is_due = |level: &usize| {
        let has_debt = tree.sum(*level, Sum::PinnedBytes) > 0;
        has_debt && (is_excessive || placement.is_in_place(*level))
    };
    let levels = (1..=deepest).rev().filter(is_due);
    let files = levels.flat_map(|level| files_with_debt(tree, placement, level));
    let mut files: Vec<DueFile> = files.collect();
    files.sort_by(|left, right| left.cost.total_cmp(&right.cost));
    files
}

/// Whether transient log files take more bytes than they may, or are too many.
fn is_excessive<K: Clone>(tree: &dyn Tree<K>, options: &KeyspaceOptions) -> bool {
    let debts = (1..tree.depth()).map(|level| tree.idle_sum(level, Sum::PinnedBytes));
    let debt = debts.fold(tree.pinned_above(), u64::saturating_add);
    let total = tree.total(Sum::LogicalBytes);
    debt as f64 > fraction(options) * total as f64 || transient_files(tree) > TRANSIENT_FILES_MAX
}

/// The number of transient log files that levels from 1 on refer to. Only the table of the same flush refers to the
/// transient log of a table in level 0.
fn transient_files<K: Clone>(tree: &dyn Tree<K>) -> u64 {
    let flushed = (0..tree.len(0)).map(|run| u64::from(tree.file(0, run).transient_files));
    let flushed = flushed.fold(0, u64::saturating_add);
    tree.transient_files().saturating_sub(flushed)
}

/// The idle files of `level` that refer to transient logs.
///
/// A compaction writes their own bytes, those of the files below that they overlap, and the values. If it puts
/// these in place, it frees all that they keep. Otherwise it frees at most the garbage beside the values, by
/// rewriting sparse transient log files. It frees nothing by rewriting thin slices, so these do not count.
fn files_with_debt<K: Ord + Clone>(
    tree: &dyn Tree<K>,
    placement: Placement,
    level: usize,
) -> impl Iterator<Item = DueFile> {
    let is_freed = placement.is_in_place(level + 1);
    let cost = move |file: &FileSummary<K>| {
        let overlap = if placement.is_in_place(level) {
            0
        } else {
            let overlap = tree.overlapping(level + 1, &file.smallest, &file.largest);
            tree.sum_within(level + 1, overlap, Sum::Bytes)
        };
        let left = if is_freed { 0 } else { file.transient_bytes };
        let freed = file.pinned_bytes.saturating_sub(left);
        let written = overlap.saturating_add(file.bytes);
        written.saturating_add(file.transient_bytes) as f64 / freed as f64
    };
    let chunks =
        (0..tree.chunks(level)).filter(move |&chunk| tree.bounds(level, chunk).may_have_transient);
    let positions = chunks.flat_map(move |chunk| tree.chunk(level, chunk));
    positions.filter_map(move |position| {
        let file = tree.file(level, position);
        let has_debt = !file.busy && file.pinned_bytes > 0;
        has_debt.then(|| DueFile {
            level,
            position,
            cost: cost(&file),
        })
    })
}

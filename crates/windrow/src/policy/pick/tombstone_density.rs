//! Tombstone-density compactions: a file that is mostly tombstones goes down, although its level is not due.
//!
//! There its tombstones meet the entries that they hide, so that scans need not pass them for long. If the
//! tombstones are scattered over many more entries than they can hide, the file stays: scans hardly meet them, and
//! a few tombstones would have all these entries rewritten again and again.
//!
//! Nothing is appended, because appended tombstones would meet nothing.

use super::compaction::move_or_compact;
use super::plan::Plan;
use super::rules::Rules;
use crate::policy::summary::FileSummary;
use crate::policy::tree::{Sum, Tree};

/// One tombstone may rewrite this many entries of the level below. Any other entry rewrites about the same
/// number.
const ENTRIES_PER_TOMBSTONE_MAX: u64 = 8;

/// Takes a file that is mostly tombstones down from level `first` or deeper.
pub(super) fn compact<K: Ord + Clone>(
    tree: &dyn Tree<K>,
    rules: Rules<'_>,
    first: usize,
) -> Option<Plan<K>> {
    let rules = rules.appending_above(0);
    (first..tree.deepest_level()).find_map(|level| {
        let pays = |file: &FileSummary<K>| {
            let overlap = tree.overlapping(level + 1, &file.smallest, &file.largest);
            let entries = tree.sum_within(level + 1, overlap, Sum::Entries);
            entries <= file.tombstones.saturating_mul(ENTRIES_PER_TOMBSTONE_MAX)
        };
        let is_due = |&file: &usize| {
            let file = tree.file(level, file);
            file.is_mostly_tombstones() && pays(&file)
        };
        (0..tree.chunks(level))
            .filter(|&chunk| tree.bounds(level, chunk).tombstone_part_max >= 0.5)
            .flat_map(|chunk| tree.chunk(level, chunk))
            .filter(is_due)
            .find_map(|file| move_or_compact(tree, rules, level, file))
    })
}

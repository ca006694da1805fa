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
use crate::policy::summary::{FileSummary, TreeSummary, entries, overlapping};

/// One tombstone may rewrite this many entries of the level below. Any other entry rewrites about the same
/// number.
const ENTRIES_PER_TOMBSTONE_MAX: u64 = 8;

/// Takes a file that is mostly tombstones down from level `first` or deeper.
pub(super) fn compact<K: Ord + Clone>(
    tree: &TreeSummary<K>,
    rules: Rules<'_>,
    first: usize,
) -> Option<Plan<K>> {
    let rules = rules.appending_above(0);
    (first..tree.deepest_level()).find_map(|level| {
        let files = tree.level(level);
        let pays = |file: &FileSummary<K>| {
            let below = tree.level(level + 1);
            let overlap = &below[overlapping(below, &file.smallest, &file.largest)];
            entries(overlap) <= file.tombstones.saturating_mul(ENTRIES_PER_TOMBSTONE_MAX)
        };
        let is_due = |&file: &usize| files[file].is_mostly_tombstones() && pays(&files[file]);
        (0..files.len())
            .filter(is_due)
            .find_map(|file| move_or_compact(tree, rules, level, file))
    })
}

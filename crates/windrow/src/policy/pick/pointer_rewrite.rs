//! Pointer rewrites: a compaction replaces pointers to value logs that garbage collection has replaced.
//!
//! Until then a read finds such a value through a relocation table.

use super::plan::{Plan, Purpose};
use super::rewrite::{best_first, rewrite_file};
use super::rules::Rules;
use crate::policy::summary::{FileSummary, TreeSummary};

/// The part of the live values in value logs that reads may find only through relocation tables.
const MOVED_PART_MAX: f64 = 0.25;

/// Rewrites a file of level `first` or deeper if too many values are found through relocation tables: the file
/// with the most such values for its bytes.
pub(super) fn rewrite<K: Ord + Clone>(
    tree: &TreeSummary<K>,
    rules: Rules<'_>,
    first: usize,
) -> Option<Plan<K>> {
    let idle = |file: &&FileSummary<K>| !file.busy;
    let files = || tree.levels.iter().skip(1).flatten().filter(idle);
    let moved: u64 = files().map(|file| file.moved_bytes).sum();
    let live: u64 = tree.logs.iter().map(|log| log.live_bytes).sum();
    if moved as f64 <= MOVED_PART_MAX * live as f64 {
        return None;
    }
    let moved_part = |_, file: &FileSummary<K>| {
        (file.moved_bytes > 0).then(|| file.moved_bytes as f64 / file.bytes as f64)
    };
    best_first(tree, first, moved_part)
        .find_map(|place| rewrite_file(tree, rules, place, Purpose::PointerRewrite))
}

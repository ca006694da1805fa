//! Pointer rewrites: a compaction replaces pointers to value logs that garbage collection has replaced.
//!
//! Until then a read finds such a value through a relocation table.

use super::plan::{Plan, Purpose};
use super::rewrite::{best, rewrite_file};
use super::rules::Rules;
use crate::policy::summary::FileSummary;
use crate::policy::tree::{Bounds, Tree};

/// The part of the live values in value logs that reads may find only through relocation tables.
const MOVED_PART_MAX: f64 = 0.25;

/// Rewrites a file of level `first` or deeper if too many values are found through relocation tables: the file
/// with the most such values for its bytes.
pub(super) fn rewrite<K: Ord + Clone>(
    tree: &dyn Tree<K>,
    rules: Rules<'_>,
    first: usize,
) -> Option<Plan<K>> {
    let live = tree.logs().iter().map(|log| log.live_bytes);
    let live = live.fold(0, u64::saturating_add);
    if tree.moved_bytes() as f64 <= MOVED_PART_MAX * live as f64 {
        return None;
    }
    let moved_part = |_, file: &FileSummary<K>| {
        (file.moved_bytes > 0).then(|| file.moved_bytes as f64 / file.bytes as f64)
    };
    let most = |_, chunk: &Bounds| chunk.may_have_logs.then_some(f64::INFINITY);
    best(tree, first..tree.depth(), most, moved_part, |place| {
        rewrite_file(tree, rules, place, Purpose::PointerRewrite)
    })
}

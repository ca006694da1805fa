//! Pointer rewrites: a compaction replaces pointers to value logs that garbage collection has replaced.
//!
//! Until then a read finds such a value through a relocation table. How many values that are is known exactly; which
//! file refers to them is [estimated](MovedValues).
//!
//! I1. After a garbage collection each file is rewritten at most once: a file that was rewritten has an estimate of
//!     zero until the next one.
//! I2. Rewrites go on while too many values are found through relocation tables and a file below level 0 refers to one.

use super::plan::{Plan, Purpose};
use super::rewrite::{best, rewrite_file};
use super::rules::Rules;
use crate::policy::moved_values::MovedValues;
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
    let live = tree.log_sums().live_bytes;
    let is_too_much = |moved: u64| moved as f64 > MOVED_PART_MAX * live as f64;
    // What running jobs replace counts as replaced, and level 0 goes down soon. Both need a look at files.
    if !is_too_much(tree.moved_bytes()) || !is_too_much(idle_moved_bytes(tree)) {
        return None;
    }
    let moved = tree.moved_values();
    let moved_part = |_, file: &FileSummary<K>| {
        let moved_bytes = moved_bytes(moved, file);
        (moved_bytes > 0).then(|| moved_bytes as f64 / file.bytes as f64)
    };
    let most = |_, chunk: &Bounds| chunk.may_have_logs.then_some(f64::INFINITY);
    best(tree, first..tree.depth(), most, moved_part, |place| {
        rewrite_file(tree, rules, place, Purpose::PointerRewrite)
    })
}

/// About how many bytes `file` refers to through relocation tables.
pub(crate) fn moved_bytes<K>(moved: &MovedValues, file: &FileSummary<K>) -> u64 {
    let logs = file.segments.iter().filter_map(|it| it.logs.as_ref());
    logs.map(|logs| moved.of(logs)).fold(0, u64::saturating_add)
}

/// About how many bytes idle files below level 0 refer to through relocation tables.
fn idle_moved_bytes<K: Clone>(tree: &dyn Tree<K>) -> u64 {
    let moved = tree.moved_values();
    let runs = (0..tree.len(0)).map(|run| (0, run));
    let busy = (1..tree.depth()).flat_map(|level| {
        let busy = tree.busy(level).into_iter();
        busy.map(move |position| (level, position))
    });
    let others = runs
        .chain(busy)
        .map(|(level, position)| tree.file(level, position));
    others
        .map(|file| moved_bytes(moved, &file))
        .fold(tree.moved_bytes(), u64::saturating_sub)
}

//! Trivial moves: a file that overlaps nothing in the level below goes down by an edit alone.

use super::groups::RunGroup;
use super::inputs::Inputs;
use super::plan::Plan;
use super::rules::Rules;
use crate::policy::summary::{FileSummary, TreeSummary};

/// Moves a run of level 0 that overlaps no other run and nothing in level 1.
pub(super) fn move_run<K: Ord + Clone>(
    tree: &TreeSummary<K>,
    rules: Rules<'_>,
    group: &RunGroup<K>,
) -> Option<Plan<K>> {
    match group.runs[..] {
        [run] => move_down(tree, rules, 0, &tree.level(0)[run]),
        _ => None,
    }
}

/// Moves a file of `level` that overlaps nothing in the level below: the first one after the cursor.
pub(super) fn move_file<K: Ord + Clone>(
    tree: &TreeSummary<K>,
    rules: Rules<'_>,
    level: usize,
    cursor: Option<&K>,
) -> Option<Plan<K>> {
    let files = tree.level(level);
    round_robin(files, cursor).find_map(|file| move_down(tree, rules, level, &files[file]))
}

/// Moves `file` of `level` down if it overlaps nothing there and no job blocks it. The file keeps its
/// segments.
///
/// A file that is mostly tombstones, with nothing below it, does not move: a compaction drops its tombstones,
/// and a move would keep them for ever. A file whose values must be in place there does not move either (D8).
pub(super) fn move_down<K: Ord + Clone>(
    tree: &TreeSummary<K>,
    rules: Rules<'_>,
    level: usize,
    file: &FileSummary<K>,
) -> Option<Plan<K>> {
    let inputs = Inputs::over(tree, level + 1, &file.smallest, &file.largest)?;
    let drops_tombstones = file.is_mostly_tombstones()
        && !tree.overlaps_below(level + 1, &file.smallest, &file.largest);
    let is_rewritten = drops_tombstones || rules.puts_in_place(level + 1, file);
    (!file.busy && !is_rewritten && inputs.lower.is_empty()).then(|| Plan::TrivialMove {
        level,
        upper: file.number,
        claim: inputs.claim,
    })
}

/// The positions of `files` from the first that begins after `cursor`, once around.
pub(super) fn round_robin<K: Ord>(
    files: &[FileSummary<K>],
    cursor: Option<&K>,
) -> impl Iterator<Item = usize> {
    let first = cursor.map_or(0, |cursor| {
        files.partition_point(|file| file.smallest <= *cursor)
    });
    (first..files.len()).chain(0..first)
}

//! Trivial moves: a file that overlaps nothing in the level below goes down by an edit alone.

use std::ops::Range;

use super::groups::RunGroup;
use super::inputs::Inputs;
use super::plan::Plan;
use super::rules::Rules;
use crate::policy::summary::FileSummary;
use crate::policy::tree::Tree;

/// Moves a run of level 0 that overlaps no other run and nothing in level 1.
pub(super) fn move_run<K: Ord + Clone>(
    tree: &dyn Tree<K>,
    rules: Rules<'_>,
    group: &RunGroup<K>,
) -> Option<Plan<K>> {
    match group.runs[..] {
        [run] => move_down(tree, rules, 0, &tree.file(0, run)),
        _ => None,
    }
}

/// Moves a file of `level` that overlaps nothing in the level below: the first one after the cursor.
pub(super) fn move_file<K: Ord + Clone>(
    tree: &dyn Tree<K>,
    rules: Rules<'_>,
    level: usize,
    cursor: Option<&K>,
) -> Option<Plan<K>> {
    // A file that overlaps nothing costs nothing.
    round_robin(tree, level, cursor)
        .filter(|(chunk, _)| tree.least_cost(level, *chunk) == 0.0)
        .flat_map(|(_, positions)| positions)
        .filter(|&position| tree.cost(level, position) == 0.0)
        .find_map(|position| move_down(tree, rules, level, &tree.file(level, position)))
}

/// Moves `file` of `level` down if it overlaps nothing there and no job blocks it. The file keeps its
/// segments.
///
/// A file that is mostly tombstones, with nothing below it, does not move: a compaction drops its tombstones,
/// and a move would keep them for ever. A file whose values must be in place there does not move either (D8).
pub(super) fn move_down<K: Ord + Clone>(
    tree: &dyn Tree<K>,
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

/// The files of `level` from the first that begins after `cursor`, once around: the chunks, with the positions in each.
pub(super) fn round_robin<K: Ord + Clone>(
    tree: &dyn Tree<K>,
    level: usize,
    cursor: Option<&K>,
) -> impl Iterator<Item = (usize, Range<usize>)> {
    let first = cursor.map_or(0, |cursor| tree.overlapping(level, cursor, cursor).end);
    let begun = if first < tree.len(level) {
        tree.chunk_of(level, first)
    } else {
        tree.chunks(level)
    };
    let after = (begun..tree.chunks(level)).map(move |chunk| {
        let positions = tree.chunk(level, chunk);
        (chunk, positions.start.max(first)..positions.end)
    });
    let until = (begun + 1).min(tree.chunks(level));
    let before = (0..until).map(move |chunk| {
        let positions = tree.chunk(level, chunk);
        (chunk, positions.start..positions.end.min(first))
    });
    after.chain(before)
}

//! Compactions of a level into the next one.
//!
//! Level 0 gives whole groups of runs, oldest first. A deeper level gives the file with the smallest ratio of
//! overlapping bytes below to its own bytes, the first one after the cursor among equals. That holds whether it is
//! rewritten or appended to: a later rewrite includes what was appended. A level that keeps more bytes in
//! value files than in tables gives just the first file after the cursor.
//!
//! In both cases a neighbour joins if its own overlap is among the lower files already: it goes down at no
//! further cost.

use super::groups::RunGroup;
use super::inputs::Inputs;
use super::plan::Plan;
use super::rules::Rules;
use super::trivial_move::{move_down, round_robin};
use super::widen::{add_free_neighbours, widen};
use crate::policy::summary::FileSummary;
use crate::policy::tree::{Sum, Tree};

/// Moves the file at `position` of `level` down, or compacts it.
pub(super) fn move_or_compact<K: Ord + Clone>(
    tree: &dyn Tree<K>,
    rules: Rules<'_>,
    level: usize,
    position: usize,
) -> Option<Plan<K>> {
    move_down(tree, rules, level, &tree.file(level, position))
        .or_else(|| compact_file(tree, rules, (level, position), |_| false))
}

/// Compacts `group` into level 1, and with it those of `groups` that add no lower file.
///
/// That is wide enough for values in place: each run refers to the transient log of its flush only.
pub(super) fn compact_group<K: Ord + Clone>(
    tree: &dyn Tree<K>,
    rules: Rules<'_>,
    group: &RunGroup<K>,
    groups: &[RunGroup<K>],
) -> Option<Plan<K>> {
    if group.busy {
        return None;
    }
    let mut inputs = Inputs::over(tree, 1, &group.smallest, &group.largest)?;
    let mut upper = group.runs.clone();
    for other in groups.iter().filter(|other| !other.busy) {
        let is_taken = upper.contains(&other.oldest());
        if !is_taken && inputs.add_if_free(tree, &other.smallest, &other.largest) {
            upper.extend(&other.runs);
        }
    }
    upper.sort_unstable();
    Some(inputs.into_compaction(tree, rules, 0, &upper))
}

/// Compacts the file of `level` that costs least per byte.
///
/// A level that keeps more bytes in value files than in tables gives the next file in key order instead.
/// Then all tables that refer to one file of a transient log go down together, and none stays that would
/// keep the rest of it.
pub(super) fn compact_cheapest<K: Ord + Clone>(
    tree: &dyn Tree<K>,
    rules: Rules<'_>,
    level: usize,
    cursor: Option<&K>,
) -> Option<Plan<K>> {
    let bytes = tree.sum(level, Sum::Bytes);
    let is_in_transient_logs = tree.sum(level, Sum::KeptBytes) > bytes.saturating_mul(2);
    let is_free = |position: usize| {
        let file = tree.file(level, position);
        !file.busy && Inputs::over(tree, level + 1, &file.smallest, &file.largest).is_some()
    };
    let mut best: Option<(f64, usize)> = None;
    for (chunk, positions) in round_robin(tree, level, cursor) {
        let is_cheaper = |cost: f64| best.is_none_or(|(least, _)| cost < least);
        if !is_cheaper(tree.least_cost(level, chunk)) {
            continue;
        }
        for position in positions {
            let cost = tree.cost(level, position);
            let is_cheaper = best.is_none_or(|(least, _)| cost < least);
            if is_cheaper && is_free(position) {
                best = Some((cost, position));
                if is_in_transient_logs {
                    break;
                }
            }
        }
        if is_in_transient_logs && best.is_some() {
            break;
        }
    }
    let (_, file) = best?;
    compact_file(tree, rules, (level, file), |_| false)
}

/// Compacts the file at `position` of `level` into the next level, with the neighbours that add no lower file, and
/// with [more](widen) if that level has values in place. The plan takes the files that are `selected` in any case.
pub(super) fn compact_file<K: Ord + Clone>(
    tree: &dyn Tree<K>,
    rules: Rules<'_>,
    (level, position): (usize, usize),
    selected: impl Fn(&FileSummary<K>) -> bool,
) -> Option<Plan<K>> {
    let file = tree.file(level, position);
    if file.busy {
        return None;
    }
    let mut inputs = Inputs::over(tree, level + 1, &file.smallest, &file.largest)?;
    let mut taken = add_free_neighbours(tree, level, &mut inputs, position..position + 1);
    if rules.placement.is_in_place(level + 1) {
        (inputs, taken) = widen(tree, level, (inputs, taken), selected);
    }
    let upper: Vec<usize> = taken.collect();
    Some(inputs.into_compaction(tree, rules, level, &upper))
}

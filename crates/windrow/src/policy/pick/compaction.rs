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
use crate::policy::summary::{FileSummary, TreeSummary, bytes, kept_bytes};

/// Moves the file at `position` of `level` down, or compacts it.
pub(super) fn move_or_compact<K: Ord + Clone>(
    tree: &TreeSummary<K>,
    rules: Rules<'_>,
    level: usize,
    position: usize,
) -> Option<Plan<K>> {
    move_down(tree, rules, level, &tree.level(level)[position])
        .or_else(|| compact_file(tree, rules, (level, position), |_| false))
}

/// Compacts `group` into level 1, and with it those of `groups` that add no lower file.
///
/// That is wide enough for values in place: each run refers to the transient log of its flush only.
pub(super) fn compact_group<K: Ord + Clone>(
    tree: &TreeSummary<K>,
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
    tree: &TreeSummary<K>,
    rules: Rules<'_>,
    level: usize,
    cursor: Option<&K>,
) -> Option<Plan<K>> {
    let files = tree.level(level);
    let is_in_transient_logs = kept_bytes(files) > 2 * bytes(files);
    let cost_per_byte = |position: usize| {
        let file = &files[position];
        let inputs = Inputs::over(tree, level + 1, &file.smallest, &file.largest)?;
        let lower = &tree.level(level + 1)[inputs.lower];
        (!file.busy).then(|| bytes(lower) as f64 / file.bytes.max(1) as f64)
    };
    let mut costs =
        round_robin(files, cursor).filter_map(|file| cost_per_byte(file).map(|cost| (file, cost)));
    let (file, _) = if is_in_transient_logs {
        costs.next()?
    } else {
        costs.min_by(|(_, left), (_, right)| left.total_cmp(right))?
    };
    compact_file(tree, rules, (level, file), |_| false)
}

/// Compacts the file at `position` of `level` into the next level, with the neighbours that add no lower file, and
/// with [more](widen) if that level has values in place. The plan takes the files that are `selected` in any case.
pub(super) fn compact_file<K: Ord + Clone>(
    tree: &TreeSummary<K>,
    rules: Rules<'_>,
    (level, position): (usize, usize),
    selected: impl Fn(&FileSummary<K>) -> bool,
) -> Option<Plan<K>> {
    let file = &tree.level(level)[position];
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

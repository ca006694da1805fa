//! The compaction picker: the next job for a tree.
//!
//! [`plan`] takes the first of these that is possible:
//!
//! 1. A [resize](resize): one level more or less. No file moves.
//! 2. A drop of files whose entries have all [expired]. It costs nothing.
//! 3. A [trivial move](trivial_move) of a run of level 0, or of a file of a level that is due. Trivial moves cost
//!    nothing, and they take away data that a compaction from above would have to rewrite.
//! 4. A [compaction] out of the level with the highest score.
//! 5. A [tombstone-density compaction](tombstone_density).
//! 6. A rewrite of a file with many [expired] entries.
//! 7. A [transient-debt compaction](transient_debt).
//! 8. A [pointer rewrite](pointer_rewrite).
//! 9. A [consolidation] of a file's segments, a consolidation of [small files](small_files), then a read-triggered compaction of level 0.
//!
//! [`plan_range`] plans a manual compaction.
//!
//! A compaction [appends](super::append) to those of its lower files that have space for one more segment.
//!
//! A level 0 that is due but blocked by running jobs reserves level 1: no job of lower score takes files from
//! level 1. Otherwise level 0 might never find all the files that it overlaps free at one time.

mod compaction;
mod consolidation;
mod expired;
mod groups;
mod inputs;
mod plan;
mod pointer_rewrite;
mod range;
mod resize;
mod rewrite;
mod rules;
mod small_files;
mod tombstone_density;
mod transient_debt;
mod trivial_move;
mod widen;

use groups::groups;
pub(crate) use plan::{Compaction, Plan, Purpose};
pub(crate) use range::{ManualCompaction, plan_range};
use rules::Rules;

use super::append::segment_limits;
use super::scores::scores;
use super::tree::Tree;
use crate::options::KeyspaceOptions;

/// The next job for `tree`.
///
/// `cursors` holds, for each level, the largest key that the last job from it claimed; absent ends
/// count as none. Until the job is done its inputs are busy in every summary, and its claim is
/// among the claims.
pub(crate) fn plan<K: Ord + Clone>(
    tree: &dyn Tree<K>,
    options: &KeyspaceOptions,
    cursors: &[Option<K>],
) -> Plan<K> {
    if let Some(level_count) = resize::resized(tree, options) {
        return Plan::Resize { level_count };
    }
    if let Some(plan) = expired::drop_files(tree) {
        return plan;
    }
    let limits = segment_limits(tree, options);
    let rules = Rules::of(tree, options, &limits);
    let groups = groups(tree);
    let due = due_levels(&scores(tree, options));
    let cursor = |level: usize| cursors.get(level).and_then(Option::as_ref);

    let run = groups
        .iter()
        .find_map(|group| trivial_move::move_run(tree, rules, group));
    let file = || {
        let mut deeper = due.iter().filter(|&&level| level > 0);
        deeper.find_map(|&level| trivial_move::move_file(tree, rules, level, cursor(level)))
    };
    if let Some(plan) = run.or_else(file) {
        return plan;
    }
    let mut is_level_one_reserved = false;
    for level in due {
        let compaction = match level {
            0 => groups
                .iter()
                .find_map(|group| compaction::compact_group(tree, rules, group, &groups)),
            1 if is_level_one_reserved => None,
            _ => compaction::compact_cheapest(tree, rules, level, cursor(level)),
        };
        if let Some(plan) = compaction {
            return plan;
        }
        is_level_one_reserved |= level == 0;
    }
    let first = if is_level_one_reserved { 2 } else { 1 };
    tombstone_density::compact(tree, rules, options, &groups, first)
        .or_else(|| expired::rewrite(tree, rules, options, &groups, first))
        .or_else(|| transient_debt::compact(tree, rules, options, first))
        .or_else(|| pointer_rewrite::rewrite(tree, rules, first))
        .or_else(|| consolidation::consolidate(tree, rules, first))
        .or_else(|| small_files::consolidate(tree, rules, options, first))
        .or_else(|| consolidation::compact_read_runs(tree, rules, &groups))
        .unwrap_or(Plan::Idle)
}

/// The levels that are due, highest score first, the upper one among equals.
fn due_levels(scores: &[f64]) -> Vec<usize> {
    let is_due = |level: usize| match level {
        0 => scores[0] >= 1.0,
        _ => scores[level] > 1.0,
    };
    let mut due: Vec<usize> = (0..scores.len()).filter(|&level| is_due(level)).collect();
    due.sort_by(|&left, &right| scores[right].total_cmp(&scores[left]));
    due
}

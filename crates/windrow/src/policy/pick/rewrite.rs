//! Compactions inside one level: they rewrite files where they are.

use std::ops::Range;

use super::plan::{Compaction, Plan, Purpose};
use super::rules::Rules;
use super::widen::{has_wide_slices, neighbours};
use crate::policy::summary::{Claim, FileSummary, TreeSummary};

/// Rewrites the file at `position` of `level`. Neighbours that refer to transient logs, too, join until the slices
/// are [wide](has_wide_slices).
pub(super) fn rewrite_file<K: Ord + Clone>(
    tree: &TreeSummary<K>,
    rules: Rules<'_>,
    (level, position): (usize, usize),
    purpose: Purpose,
) -> Option<Plan<K>> {
    let files = tree.level(level);
    let claim_of = |taken: &Range<usize>| {
        let (first, last) = (&files[taken.start], &files[taken.end - 1]);
        let is_free = !files[taken.clone()].iter().any(|file| file.busy)
            && !tree.is_claimed(level, &first.smallest, &last.largest);
        is_free.then(|| Claim {
            level,
            smallest: first.smallest.clone(),
            largest: last.largest.clone(),
        })
    };
    let mut taken = position..position + 1;
    let mut claim = claim_of(&taken)?;
    while !has_wide_slices(&files[taken.clone()]) {
        let wider = neighbours(files, &taken).find_map(|(neighbour, wider)| {
            let is_converted = rules.puts_in_place(level, &files[neighbour]);
            let claim = if is_converted { claim_of(&wider) } else { None };
            claim.map(|claim| (claim, wider))
        });
        let Some(wider) = wider else { break };
        (claim, taken) = wider;
    }
    Some(Plan::Compact(Compaction {
        level,
        upper: files[taken].iter().map(|file| file.number).collect(),
        lower: Vec::new(),
        targets: Vec::new(),
        claim,
        purpose,
    }))
}

/// The level and position of each idle file of level `first` or deeper that has a score: the highest score first.
pub(super) fn best_first<K>(
    tree: &TreeSummary<K>,
    first: usize,
    score: impl Fn(usize, &FileSummary<K>) -> Option<f64>,
) -> impl Iterator<Item = (usize, usize)> {
    let mut scored: Vec<(f64, (usize, usize))> = Vec::new();
    for level in first..tree.levels.len() {
        let files = tree.level(level).iter().enumerate();
        let idle = files.filter(|(_, file)| !file.busy);
        scored.extend(idle.filter_map(|(position, file)| {
            score(level, file).map(|score| (score, (level, position)))
        }));
    }
    scored.sort_by(|left, right| right.0.total_cmp(&left.0));
    scored.into_iter().map(|(_, place)| place)
}

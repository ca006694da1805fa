//! Compactions inside one level: they rewrite files where they are.

use std::ops::Range;

use super::plan::{Compaction, Plan, Purpose};
use super::rules::Rules;
use super::widen::{has_wide_slices, neighbours};
use crate::policy::summary::{Claim, FileSummary};
use crate::policy::tree::{Bounds, Tree};

/// Rewrites the file at `position` of `level`. Neighbours that refer to transient logs, too, join until the slices
/// are [wide](has_wide_slices).
pub(super) fn rewrite_file<K: Ord + Clone>(
    tree: &dyn Tree<K>,
    rules: Rules<'_>,
    (level, position): (usize, usize),
    purpose: Purpose,
) -> Option<Plan<K>> {
    let mut taken = position..position + 1;
    let mut claim = claim_of(tree, level, &taken)?;
    while !has_wide_slices(tree, level, &taken) {
        let wider = neighbours(tree.len(level), &taken).find_map(|(neighbour, wider)| {
            let is_converted = rules.puts_in_place(level, &tree.file(level, neighbour));
            let claim = if is_converted {
                claim_of(tree, level, &wider)
            } else {
                None
            };
            claim.map(|claim| (claim, wider))
        });
        let Some(wider) = wider else { break };
        (claim, taken) = wider;
    }
    Some(rewrite_claimed(tree, taken, claim, purpose))
}

/// Rewrites the files at `taken` of `level`, if no running job blocks it.
pub(super) fn rewrite_files<K: Ord + Clone>(
    tree: &dyn Tree<K>,
    level: usize,
    taken: Range<usize>,
    purpose: Purpose,
) -> Option<Plan<K>> {
    let claim = claim_of(tree, level, &taken)?;
    Some(rewrite_claimed(tree, taken, claim, purpose))
}

fn rewrite_claimed<K: Ord + Clone>(
    tree: &dyn Tree<K>,
    taken: Range<usize>,
    claim: Claim<K>,
    purpose: Purpose,
) -> Plan<K> {
    let files = tree.files(claim.level, taken);
    Plan::Compact(Compaction {
        level: claim.level,
        upper: files.iter().map(|file| file.number).collect(),
        lower: Vec::new(),
        targets: Vec::new(),
        claim,
        purpose,
    })
}

/// The claim of the files at `taken` of `level`; `None` if a running job blocks them.
fn claim_of<K: Ord + Clone>(
    tree: &dyn Tree<K>,
    level: usize,
    taken: &Range<usize>,
) -> Option<Claim<K>> {
    let files = tree.files(level, taken.clone());
    let (first, last) = (files.first()?, files.last()?);
    let is_free = !files.iter().any(|file| file.busy)
        && !tree.is_claimed(level, &first.smallest, &last.largest);
    is_free.then(|| Claim {
        level,
        smallest: first.smallest.clone(),
        largest: last.largest.clone(),
    })
}

/// The plan for the idle file of these levels with the highest score, of those that have a score and a plan; the first
/// one among equals. No file of a chunk has a higher score than `most` gives, and none has one without that.
pub(super) fn best<K: Clone, P>(
    tree: &dyn Tree<K>,
    levels: impl Iterator<Item = usize>,
    most: impl Fn(usize, &Bounds) -> Option<f64>,
    score: impl Fn(usize, &FileSummary<K>) -> Option<f64>,
    plan: impl Fn((usize, usize)) -> Option<P>,
) -> Option<P> {
    let mut best: Option<(f64, P)> = None;
    for level in levels {
        for chunk in 0..tree.chunks(level) {
            let is_better =
                |score: f64, best: &Option<(f64, P)>| best.as_ref().is_none_or(|it| it.0 < score);
            let most = most(level, &tree.bounds(level, chunk));
            if !most.is_some_and(|most| is_better(most, &best)) {
                continue;
            }
            for position in tree.chunk(level, chunk) {
                let file = tree.file(level, position);
                let score = (!file.busy).then(|| score(level, &file)).flatten();
                if let Some(score) = score.filter(|score| is_better(*score, &best))
                    && let Some(plan) = plan((level, position))
                {
                    best = Some((score, plan));
                }
            }
        }
    }
    best.map(|(_, plan)| plan)
}

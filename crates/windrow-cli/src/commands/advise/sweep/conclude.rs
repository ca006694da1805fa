//! The conclusion: the finalists, simulated with all entries.
//!
//! I1. The default and the best choice of the search are finalists.
//! I2. No request is refused because of a tree with a part of the entries: a small tree takes more disk and memory
//!     for its size.
//!
//! Concurrency: that of [`Trees`].

use windrow::Result;

use super::candidate::{Candidate, frontier};
use super::ladders::{Choice, Ladders, NAMES, with, without_bits};
use super::trees::Trees;
use super::{Advice, Request};

/// A smaller saving is no reason to leave the default.
pub(in crate::commands::advise) const WORTHWHILE: f64 = 0.05;

/// An option keeps its default if that costs no more than this.
const NEGLIGIBLE: f64 = 0.01;

/// How many trees are simulated with all entries, the default included. Trees that are `LARGE_TIMES` larger than those
/// of the search take long, so they are fewer.
pub(super) const FINALISTS: usize = 10;
const FINALISTS_OF_LARGE: usize = 3;
const LARGE_TIMES: u64 = 30;

/// If all finalists break the bounds, this many further groups of trees are simulated.
const ROUNDS_MAX: usize = 3;

/// What the conclusion follows from.
pub(super) struct Conclusion<'a> {
    pub(super) request: &'a Request<'a>,
    pub(super) ladders: &'a Ladders,
    pub(super) tick: &'a (dyn Fn() + Sync),
}

impl<'a> Conclusion<'a> {
    /// The advice, from the trees of the search.
    pub(super) fn advice(&self, searched: Trees<'a>) -> Result<Advice> {
        let (bounds, start) = (self.request.bounds, self.ladders.start());
        let found = searched.candidates();
        let fitting = bounds.allowed(&found, searched.candidate(&start).as_ref());
        let mut whole = self.whole(searched, &found, &fitting)?;
        let all = whole.candidates();
        let default = whole.candidate(&start);
        let allowed = bounds.allowed(&all, default.as_ref());
        let (Some(default), Some(best)) = (default, allowed.first()) else {
            return Err(bounds.refused(&all));
        };
        // If no tree of the search keeps the bounds, the trees with all entries are those compared.
        let (compared, left_out) = if fitting.is_empty() {
            (all.len(), all.len() - allowed.len())
        } else {
            (found.len(), found.len() - fitting.len())
        };
        let simplest = self.simplified(best, &allowed);
        let default_is_allowed = bounds.limits(None).are_kept_by(&default);
        let saving = |it: &Candidate| 1.0 - it.costs.operation / default.costs.operation;
        let keep_default = default_is_allowed && saving(best) < WORTHWHILE;
        let saving = saving(if keep_default { best } else { &simplest });
        let recommended = if keep_default {
            default.clone()
        } else {
            simplest
        };
        let now = match self.request.now {
            Some(options) => whole.single(options)?,
            None => None,
        };
        let mut frontier = frontier(&allowed);
        // The recommendation replaces candidates that equal it in everything.
        if !keep_default && !frontier.iter().any(|it| it.choice == recommended.choice) {
            frontier.retain(|it| !it.is_same(&recommended));
            frontier.push(recommended.clone());
        }
        frontier.sort_by(|one, other| one.costs.write.total_cmp(&other.costs.write));
        let neighbours = if self.request.wants_neighbours {
            self.neighbours(&recommended, &mut whole)?
        } else {
            Vec::new()
        };
        Ok(Advice {
            keep_default,
            saving,
            recommended,
            default,
            now,
            default_is_allowed,
            frontier,
            compared,
            left_out,
            neighbours,
        })
    }

    /// The finalists with all entries. They are the trees of the search if these have all entries.
    ///
    /// If none of them keeps the bounds, further trees are simulated before the request is refused. I2
    fn whole(
        &self,
        searched: Trees<'a>,
        found: &[Candidate],
        fitting: &[Candidate],
    ) -> Result<Trees<'a>> {
        let demand = self.request.demand;
        if searched.are_whole() {
            return Ok(searched);
        }
        let bounds = self.request.bounds;
        let mut whole = Trees::new(demand, demand.keys, self.ladders, self.tick);
        let is_large = demand.keys / searched.keys() >= LARGE_TIMES;
        let most = if is_large {
            FINALISTS_OF_LARGE
        } else {
            FINALISTS
        };
        whole.simulate(&self.finalists(fitting, most))?;
        let safest = bounds.safest(found);
        for _ in 0..ROUNDS_MAX {
            let default = whole.candidate(&self.ladders.start());
            if !bounds
                .allowed(&whole.candidates(), default.as_ref())
                .is_empty()
            {
                break;
            }
            let more = further(&whole, fitting, &safest, most);
            whole.simulate(&more)?;
        }
        Ok(whole)
    }

    /// The finalists: the default, the best trees, and some of the frontier.
    fn finalists(&self, allowed: &[Candidate], most: usize) -> Vec<Choice> {
        let mut trees = vec![without_bits(&self.ladders.start())];
        let mut take = |candidate: &Candidate, most: usize| {
            let tree = without_bits(&candidate.choice);
            if trees.len() < most && !trees.contains(&tree) {
                trees.push(tree);
            }
        };
        if let Some(best) = allowed.first() {
            take(&self.simplified(best, allowed), most);
        }
        for candidate in allowed {
            take(candidate, most.div_ceil(2) + 1);
        }
        let frontier = frontier(allowed);
        let step = frontier.len().div_ceil(most / 2).max(1);
        for candidate in frontier.iter().step_by(step) {
            take(candidate, most);
        }
        trees
    }

    /// A candidate that costs about the same as `best`, with as many options as possible at their default.
    fn simplified(&self, best: &Candidate, allowed: &[Candidate]) -> Candidate {
        let start = self.ladders.start();
        let most = best.costs.operation * (1.0 + NEGLIGIBLE);
        let differing = |it: &Candidate| {
            let places = it.choice.iter().zip(&start);
            places.filter(|(own, default)| own != default).count()
        };
        let near = allowed.iter().filter(|it| it.costs.operation <= most);
        let unbeaten = near.filter(|it| !allowed.iter().any(|other| it.is_beaten_by(other)));
        unbeaten
            .min_by_key(|it| differing(it))
            .unwrap_or(best)
            .clone()
    }

    /// One step up and one down on each ladder, simulated with as many entries as the recommendation.
    fn neighbours(
        &self,
        of: &Candidate,
        trees: &mut Trees<'a>,
    ) -> Result<Vec<(&'static str, Candidate)>> {
        let mut steps = Vec::new();
        for (ladder, name) in NAMES.iter().enumerate() {
            let place = of.choice[ladder];
            let below = place.checked_sub(1);
            let above = Some(place + 1).filter(|&above| above < self.ladders.length(ladder));
            for step in [below, above].into_iter().flatten() {
                steps.push((*name, with(of.choice, ladder, step)));
            }
        }
        let choices: Vec<Choice> = steps.iter().map(|(_, choice)| *choice).collect();
        trees.simulate(&choices)?;
        let steps = steps.into_iter();
        Ok(steps
            .filter_map(|(name, choice)| Some((name, trees.candidate(&choice)?)))
            .collect())
    }
}

/// Trees that are not simulated with all entries yet: the cheapest, and those that stay farthest below the bounds.
fn further(
    whole: &Trees<'_>,
    fitting: &[Candidate],
    safest: &[Candidate],
    most: usize,
) -> Vec<Choice> {
    let mut trees = Vec::new();
    for (candidates, most) in [(safest, most.div_ceil(2)), (fitting, most), (safest, most)] {
        for candidate in candidates {
            let tree = without_bits(&candidate.choice);
            if trees.len() < most && !whole.have(&tree) && !trees.contains(&tree) {
                trees.push(tree);
            }
        }
    }
    trees
}

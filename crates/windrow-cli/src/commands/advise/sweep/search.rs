//! The search: it tries one ladder after the other.
//!
//! I1. A step leads only to a choice that costs less, or that exceeds the limits by less.
//!
//! Concurrency: that of [`Trees`].

use windrow::Result;

use super::candidate::Limits;
use super::ladders::{Choice, LADDERS, Ladders, with};
use super::trees::Trees;

/// The search passes over all ladders at most this often.
const PASSES_MAX: usize = 4;

/// A search under way.
pub(super) struct Search<'a, 'b> {
    pub(super) ladders: &'a Ladders,
    pub(super) trees: &'b mut Trees<'a>,
    pub(super) limits: Limits,
}

impl Search<'_, '_> {
    /// Descends from the default, and from the best of all beginnings.
    pub(super) fn descend(&mut self) -> Result<()> {
        let beginnings = self.ladders.beginnings();
        self.trees.simulate(&beginnings)?;
        let starts = [Some(self.ladders.start()), self.cheapest(&beginnings)];
        for start in starts.into_iter().flatten() {
            let mut best = start;
            for _ in 0..PASSES_MAX {
                let before = best;
                for ladder in 0..LADDERS {
                    best = self.step(best, ladder)?;
                }
                if best == before {
                    break;
                }
            }
        }
        Ok(())
    }

    /// The best place on a ladder; `from` unless another costs less.
    fn step(&mut self, from: Choice, ladder: usize) -> Result<Choice> {
        let places = 0..self.ladders.length(ladder);
        let choices: Vec<Choice> = places.map(|place| with(from, ladder, place)).collect();
        self.trees.simulate(&choices)?;
        let cheapest = self.cheapest(&choices).unwrap_or(from);
        // I1
        Ok(if self.cost(&cheapest) < self.cost(&from) {
            cheapest
        } else {
            from
        })
    }

    /// By how much a choice exceeds the limits, which counts first, and what it costs.
    fn cost(&self, choice: &Choice) -> (f64, f64) {
        let candidate = self.trees.candidate(choice);
        candidate.map_or((f64::INFINITY, f64::INFINITY), |candidate| {
            let passed = self.limits.excess_of(&candidate);
            (passed, candidate.costs.operation)
        })
    }

    /// The cheapest of `choices`; the first of equal ones.
    fn cheapest(&self, choices: &[Choice]) -> Option<Choice> {
        let cost = |choice: &&Choice| self.cost(choice);
        let order = |one: &(f64, f64), other: &(f64, f64)| {
            let passed = one.0.total_cmp(&other.0);
            passed.then(one.1.total_cmp(&other.1))
        };
        choices
            .iter()
            .min_by(|one, other| order(&cost(one), &cost(other)))
            .copied()
    }
}

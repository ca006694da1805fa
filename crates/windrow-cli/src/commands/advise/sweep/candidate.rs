//! Options with what they cost, which of them nothing beats, and what must hold for them.
//!
//! I1. On a frontier nothing is beaten, and no two cost the same in everything.
//!
//! Concurrency: none.

use serde::Serialize;
use windrow::{Error, KeyspaceOptions};

use super::ladders::Choice;
use crate::commands::advise::cost::{Costs, Shape};
use crate::commands::advise::demand::{Demand, whole};

/// Something is beaten by what is no worse in all, and better in something by more than this: a simulation
/// knows no more.
const TOLERANCE: f64 = 0.03;

/// What takes more disk than the options aim at is left out, but for what is above it for a moment.
pub(super) const MOMENT: f64 = 1.05;

/// Options, and what they cost.
#[derive(Debug, Clone, Serialize)]
pub(in crate::commands::advise) struct Candidate {
    pub(in crate::commands::advise) costs: Costs,
    pub(in crate::commands::advise) write_amplification: f64,
    pub(in crate::commands::advise) space_amplification: f64,
    pub(in crate::commands::advise) space_amplification_most: f64,
    /// Levels with data, level 0 included.
    pub(in crate::commands::advise) levels: usize,
    pub(in crate::commands::advise) options: KeyspaceOptions,
    #[serde(skip)]
    pub(super) choice: Choice,
    /// What is better the smaller it is: the cost of writes and of reads, where there are any, and space.
    #[serde(skip)]
    objectives: [f64; 3],
}

impl Candidate {
    pub(super) fn new(
        shape: &Shape,
        demand: &Demand,
        options: KeyspaceOptions,
        choice: Choice,
    ) -> Self {
        let costs = Costs::new(shape, demand, &options);
        let write = if demand.shares.writes() > 0.0 {
            costs.write
        } else {
            0.0
        };
        Self {
            costs,
            objectives: [write, costs.reads, shape.space_amplification],
            write_amplification: shape.write_amplification,
            space_amplification: shape.space_amplification,
            space_amplification_most: shape.space_amplification_most,
            levels: shape.levels.len(),
            options,
            choice,
        }
    }

    /// Whether both cost the same in everything, as far as a simulation knows.
    pub(in crate::commands::advise) fn is_same(&self, other: &Self) -> bool {
        let mut pairs = self.objectives.iter().zip(&other.objectives);
        pairs.all(|(own, other)| (own - other).abs() <= own * TOLERANCE)
    }

    /// Whether `other` is as good in everything and better in something.
    pub(in crate::commands::advise) fn is_beaten_by(&self, other: &Self) -> bool {
        let (own, others) = (self.objectives, other.objectives);
        let pairs = || own.iter().zip(&others);
        pairs().all(|(own, other)| other <= own)
            && pairs().any(|(own, other)| *other < own * (1.0 - TOLERANCE))
    }
}

/// What must hold for a candidate.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::commands::advise) struct Bounds {
    /// Bytes on disk over live ones, at most.
    pub(in crate::commands::advise) space_amplification: Option<f64>,
    /// What memtables, filters and indexes may take.
    pub(in crate::commands::advise) memory: Option<u64>,
}

impl Bounds {
    /// The same; where nobody has set a bound to disk, no more is taken than the options aim at, or this `default`
    /// takes.
    pub(super) fn beside(mut self, default: Option<&Candidate>) -> Self {
        let own = |it: &Candidate| {
            it.options
                .max_space_amp
                .max(it.space_amplification_most / MOMENT)
        };
        self.space_amplification = self.space_amplification.or(default.map(own));
        self
    }

    pub(super) fn is_kept_by(&self, candidate: &Candidate) -> bool {
        let fits = |bound: Option<f64>, own: f64| bound.is_none_or(|bound| own <= bound);
        fits(
            self.space_amplification.map(|bound| bound * MOMENT),
            candidate.space_amplification_most,
        ) && fits(
            self.memory.map(|bytes| bytes as f64),
            candidate.costs.memory_bytes,
        )
    }

    /// Why nothing is left.
    pub(super) fn refused(&self, all: &[Candidate]) -> Error {
        let least = |of: fn(&Candidate) -> f64| all.iter().map(of).fold(f64::INFINITY, f64::min);
        let space = least(|it| it.space_amplification_most);
        let memory = least(|it| it.costs.memory_bytes);
        let mut wanted = Vec::new();
        if let Some(bound) = self.space_amplification {
            wanted.push(format!(
                "disk for each live byte of at most {bound:.2} (the least is {space:.2})"
            ));
        }
        if let Some(bytes) = self.memory {
            wanted.push(format!(
                "memory of {} (memtables, filters and indexes take {} at least)",
                crate::text::human_bytes(bytes),
                crate::text::human_bytes(whole(memory)),
            ));
        }
        let wanted = wanted.join(", and ");
        Error::invalid_argument(format!("none of {} settings keeps to {wanted}", all.len()))
    }
}

/// Those that no other beats.
pub(super) fn frontier(all: &[Candidate]) -> Vec<Candidate> {
    let is_unbeaten = |it: &&Candidate| !all.iter().any(|other| it.is_beaten_by(other));
    let mut frontier: Vec<Candidate> = Vec::new();
    for candidate in all.iter().filter(is_unbeaten) {
        // Of those that are the same in everything one is enough.
        if !frontier.iter().any(|it| it.is_same(candidate)) {
            frontier.push(candidate.clone());
        }
    }
    frontier
}

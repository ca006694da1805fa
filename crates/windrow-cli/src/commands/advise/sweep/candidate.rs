//! Options with their costs, the frontier among them, and their bounds.
//!
//! I1. No candidate of a frontier is beaten, and no two cost the same in everything.
//!
//! Concurrency: none.

use serde::Serialize;
use windrow::{Error, KeyspaceOptions};

use super::ladders::Choice;
use crate::amounts::whole;
use crate::commands::cost::Demand;
use crate::commands::cost::{Costs, Shape};

/// A candidate beats another if it is worse in nothing, and better in something by more than this: simulations are
/// no more exact.
const TOLERANCE: f64 = 0.03;

/// The peak of disk may exceed the bound by this factor.
pub(super) const PEAK: f64 = 1.05;

/// Options and their costs.
#[derive(Debug, Clone, Serialize)]
pub(in crate::commands::advise) struct Candidate {
    pub(in crate::commands::advise) costs: Costs,
    pub(in crate::commands::advise) write_amplification: f64,
    pub(in crate::commands::advise) space_amplification: f64,
    pub(in crate::commands::advise) space_amplification_max: f64,
    /// Levels with data, level 0 included.
    pub(in crate::commands::advise) levels: usize,
    pub(in crate::commands::advise) options: KeyspaceOptions,
    #[serde(skip)]
    pub(super) choice: Choice,
    /// Smaller is better: the cost of writes and of reads, if there are any, and space.
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
        let write = if demand.fractions.writes() > 0.0 {
            costs.write
        } else {
            0.0
        };
        Self {
            costs,
            objectives: [write, costs.reads, shape.space_amplification],
            write_amplification: shape.write_amplification,
            space_amplification: shape.space_amplification,
            space_amplification_max: shape.space_amplification_max,
            levels: shape.levels.len(),
            options,
            choice,
        }
    }

    /// Whether both cost the same in everything, within the tolerance.
    pub(in crate::commands::advise) fn is_same(&self, other: &Self) -> bool {
        let mut pairs = self.objectives.iter().zip(&other.objectives);
        pairs.all(|(own, other)| (own - other).abs() <= own * TOLERANCE)
    }

    /// Whether `other` is worse in nothing and better in something.
    pub(in crate::commands::advise) fn is_beaten_by(&self, other: &Self) -> bool {
        let (own, others) = (self.objectives, other.objectives);
        let pairs = || own.iter().zip(&others);
        pairs().all(|(own, other)| other <= own)
            && pairs().any(|(own, other)| *other < own * (1.0 - TOLERANCE))
    }
}

/// The bounds that the user set.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::commands::advise) struct Bounds {
    /// Bytes on disk over live ones, at most.
    pub(in crate::commands::advise) space_amplification: Option<f64>,
    /// Bytes for memtables, filters and indexes, at most.
    pub(in crate::commands::advise) memory: Option<u64>,
}

impl Bounds {
    /// The limits of candidates that are simulated with as many entries as this default; without a default, the
    /// bounds alone.
    ///
    /// If no bound of disk is set, a candidate may take what its options aim at, or what the default takes.
    pub(super) fn limits(&self, default: Option<&Candidate>) -> Limits {
        let own = |it: &Candidate| {
            let aim = it.options.max_space_amp * PEAK;
            aim.max(it.space_amplification_max)
        };
        let asked = self.space_amplification.map(|bound| bound * PEAK);
        Limits {
            space_amplification: asked.or(default.map(own)).unwrap_or(f64::INFINITY),
            memory: self.memory.map_or(f64::INFINITY, |bytes| bytes as f64),
        }
    }

    /// The candidates that keep the bounds, the cheapest first. It is empty only if none keeps the bounds that the
    /// user set.
    pub(super) fn allowed(&self, all: &[Candidate], default: Option<&Candidate>) -> Vec<Candidate> {
        let kept = |limits: Limits| -> Vec<Candidate> {
            let kept = all.iter().filter(|it| limits.are_kept_by(it));
            kept.cloned().collect()
        };
        let mut allowed = kept(self.limits(default));
        if allowed.is_empty() {
            allowed = kept(self.limits(None));
        }
        allowed.sort_by(|one, other| one.costs.operation.total_cmp(&other.costs.operation));
        allowed
    }

    /// All candidates, those first that stay farthest below the bounds.
    pub(super) fn safest(&self, all: &[Candidate]) -> Vec<Candidate> {
        let limits = self.limits(None);
        let mut safest = all.to_vec();
        safest.sort_by(|one, other| limits.taken_by(one).total_cmp(&limits.taken_by(other)));
        safest
    }

    /// The error for bounds that no candidate keeps.
    pub(super) fn refused(&self, all: &[Candidate]) -> Error {
        let least = |of: fn(&Candidate) -> f64| all.iter().map(of).fold(f64::INFINITY, f64::min);
        let space = least(|it| it.space_amplification_max);
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

/// What a candidate may use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Limits {
    /// Bytes on disk over live ones, at worst.
    space_amplification: f64,
    memory: f64,
}

impl Limits {
    /// The fraction of its disk or of its memory that a candidate uses, whichever is larger.
    fn taken_by(&self, candidate: &Candidate) -> f64 {
        let space = candidate.space_amplification_max / self.space_amplification;
        space.max(candidate.costs.memory_bytes / self.memory.max(1.0))
    }

    /// By how much a candidate exceeds the limits; 0 if it keeps them.
    pub(super) fn excess_of(&self, candidate: &Candidate) -> f64 {
        if self.are_kept_by(candidate) {
            return 0.0;
        }
        self.taken_by(candidate)
    }

    pub(super) fn are_kept_by(&self, candidate: &Candidate) -> bool {
        candidate.space_amplification_max <= self.space_amplification
            && candidate.costs.memory_bytes <= self.memory
    }
}

/// The candidates that no other beats.
pub(super) fn frontier(all: &[Candidate]) -> Vec<Candidate> {
    let is_unbeaten = |it: &&Candidate| !all.iter().any(|other| it.is_beaten_by(other));
    let mut frontier: Vec<Candidate> = Vec::new();
    for candidate in all.iter().filter(is_unbeaten) {
        // One of several equal candidates is enough.
        if !frontier.iter().any(|it| it.is_same(candidate)) {
            frontier.push(candidate.clone());
        }
    }
    frontier
}

//! Hostile files, from a seed: each target of [`crate::hostile`], case by case.

use super::{Replay, Seeds};
use crate::combine;
use crate::hostile::{Seen, TARGETS, Target, random_choices};
use clap::Args;
use std::collections::BTreeMap;
use std::fmt;

/// The most bytes that choose a case.
const CHOICE_BYTES_MAX: u64 = 160;

/// What is done.
#[derive(Debug, Clone, Args)]
pub struct Plan {
    /// The seeds. Each makes one case for each target.
    #[command(flatten)]
    pub seeds: Seeds,
    /// Run this target alone.
    #[arg(long, value_parser = TARGETS.map(|target| target.name))]
    pub target: Option<String>,
}

/// What was done.
#[derive(Debug, Default)]
pub struct Tally {
    /// By target: cases, and how many of them were accepted.
    pub targets: BTreeMap<&'static str, [u64; 2]>,
}

impl super::Tally for Tally {
    fn add(&mut self, other: Self) {
        for (name, [cases, accepted]) in other.targets {
            let sums = self.targets.entry(name).or_default();
            sums[0] += cases;
            sums[1] += accepted;
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<12} {:>10} {:>10}", "target", "cases", "accepted")?;
        for (name, [cases, accepted]) in &self.targets {
            writeln!(f, "{name:<12} {cases:>10} {accepted:>10}")?;
        }
        Ok(())
    }
}

/// Runs the stress test.
pub fn run(plan: &Plan) -> Tally {
    plan.seeds.sum(|seed| {
        let mut tally = Tally::default();
        let is_wanted =
            |target: &&Target| plan.target.as_ref().is_none_or(|name| target.name == name);
        for target in TARGETS.iter().filter(is_wanted) {
            let seen = run_case(target, seed);
            let counts = tally.targets.entry(target.name).or_default();
            counts[0] += 1;
            counts[1] += u64::from(seen.is_accepted);
        }
        tally
    })
}

/// Runs the case of `target` that `seed` fixes.
pub fn run_case(target: &Target, seed: u64) -> Seen {
    let mut replay = Replay::new("hostile", seed, &format!("--target {}", target.name));
    replay.at(format!("target {}", target.name));
    let length = combine(seed, 1) % CHOICE_BYTES_MAX;
    let bytes = random_choices(combine(seed, 2), usize::try_from(length).unwrap_or(0));
    (target.run)(&bytes)
}

//! Simulated trees, each simulated once.
//!
//! I1. Choices that differ only in filter bits share a simulated tree.
//! I2. The result depends neither on the order in which threads finish nor on their number.
//!
//! Concurrency: two threads simulate trees, and share only the list of trees to simulate.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use windrow::simulation::simulate_large;
use windrow::{KeyspaceOptions, Result};

use super::candidate::Candidate;
use super::ladders::{Choice, Ladders, without_bits};
use crate::commands::cost::Demand;
use crate::commands::cost::Shape;

const THREADS: usize = 2;

/// How finely a tree is simulated: see [`windrow::simulation::Load`].
const FLUSHES_MAX: u64 = 400;
const FILES_MAX: u64 = 384;

/// Trees of one demand by their choice.
pub(super) struct Trees<'a> {
    demand: &'a Demand,
    /// How many of its keys are simulated.
    keys: u64,
    ladders: &'a Ladders,
    /// Keyed by the choice with the first filter bits.
    shapes: BTreeMap<Choice, Shape>,
    tick: &'a (dyn Fn() + Sync),
}

impl<'a> Trees<'a> {
    /// No trees yet. `tick` is called after each simulated tree.
    pub(super) fn new(
        demand: &'a Demand,
        keys: u64,
        ladders: &'a Ladders,
        tick: &'a (dyn Fn() + Sync),
    ) -> Self {
        Self {
            demand,
            keys,
            ladders,
            shapes: BTreeMap::new(),
            tick,
        }
    }

    /// How many keys are simulated.
    pub(super) fn keys(&self) -> u64 {
        self.keys
    }

    /// Whether all keys are simulated.
    pub(super) fn are_whole(&self) -> bool {
        self.keys == self.demand.keys
    }

    /// Whether the tree of this choice was simulated.
    pub(super) fn have(&self, choice: &Choice) -> bool {
        self.shapes.contains_key(&without_bits(choice))
    }

    /// Simulates the trees of `choices` that are not known yet.
    pub(super) fn simulate(&mut self, choices: &[Choice]) -> Result<()> {
        let mut missing: Vec<Choice> = choices.iter().map(without_bits).collect();
        missing.sort_unstable();
        missing.dedup();
        missing.retain(|choice| !self.shapes.contains_key(choice));
        let shapes = self.shapes_of(&self.ladders.trees(&missing))?;
        self.shapes.extend(missing.into_iter().zip(shapes));
        Ok(())
    }

    /// The simulated candidate of this choice.
    pub(super) fn candidate(&self, choice: &Choice) -> Option<Candidate> {
        let shape = self.shapes.get(&without_bits(choice))?;
        let options = self.ladders.options(choice);
        Some(Candidate::new(shape, self.demand, options, *choice))
    }

    /// All simulated candidates, with all filter bits.
    pub(super) fn candidates(&self) -> Vec<Candidate> {
        let trees = self.shapes.keys();
        let choices = trees.flat_map(|tree| self.ladders.with_all_bits(*tree));
        choices
            .filter_map(|choice| self.candidate(&choice))
            .collect()
    }

    /// A candidate that is on no ladder.
    pub(super) fn single(&self, options: &KeyspaceOptions) -> Result<Option<Candidate>> {
        let shapes = self.shapes_of(std::slice::from_ref(options))?;
        let choice = self.ladders.nearest(options);
        Ok(shapes
            .first()
            .map(|shape| Candidate::new(shape, self.demand, options.clone(), choice)))
    }

    /// The trees under each of `options`, in their order, with as many entries as the demand has.
    fn shapes_of(&self, options: &[KeyspaceOptions]) -> Result<Vec<Shape>> {
        let part = Demand {
            keys: self.keys,
            ..self.demand.clone()
        };
        let times = self.demand.keys as f64 / self.keys as f64;
        let shapes = shapes(&part, options, self.tick)?.into_iter();
        Ok(shapes.map(|shape| shape.times(times)).collect())
    }
}

/// The trees of `demand` under each of `options`, in their order.
fn shapes(
    demand: &Demand,
    options: &[KeyspaceOptions],
    tick: &(dyn Fn() + Sync),
) -> Result<Vec<Shape>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(options) = options.get(place) else {
                return done;
            };
            done.push((place, shape(demand, options)));
            tick();
        }
    };
    let mut done = thread::scope(|scope| {
        let others: Vec<_> = (1..THREADS.min(options.len()))
            .map(|_| scope.spawn(work))
            .collect();
        let mut done = work();
        for other in others {
            match other.join() {
                Ok(part) => done.extend(part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, shape)| shape).collect()
}

fn shape(demand: &Demand, options: &KeyspaceOptions) -> Result<Shape> {
    let mut load = demand.load(options);
    load.flushes_max = FLUSHES_MAX;
    load.files_max = FILES_MAX;
    let (_, counted) = demand.writes();
    let estimate = simulate_large(&load, counted)?;
    Ok(Shape::new(&estimate, demand, options))
}

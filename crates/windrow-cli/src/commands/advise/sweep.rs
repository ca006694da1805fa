//! Which options are tried, which of them nothing beats, and which is recommended.
//!
//! A choice is a place on each of five ladders: T, c, segment limit, placement of values, filter bits. The search
//! begins with the default and with a few trees of other kinds, and goes down the ladders one after the other,
//! to the choice whose average operation costs least, until none of them helps any more. Filter bits take no
//! simulation. A large store is searched for with a part of its entries; then the default, the best, and the
//! frontier are simulated with all of them, and decide.
//!
//! I1. The search is the same each time: neither clocks nor threads have a part in what is chosen.
//! I2. What is recommended is the default, or on the frontier.
//!
//! Concurrency: trees are simulated by two threads, which share nothing but the list of what is to be done.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde::Serialize;
use windrow::simulation::{ValueClass, simulate_large};
use windrow::{Error, KeyspaceOptions, MediumInPlace, Result, SegmentLimit};

use super::cost::{Costs, Shape};
use super::demand::Demand;

const SIZE_RATIOS: [f64; 7] = [3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0];
const SCALINGS: [f64; 5] = [0.4, 0.5, 0.6, 0.8, 1.0];
const SEGMENT_LIMITS: [SegmentLimit; 5] = [
    SegmentLimit::Fixed(1),
    SegmentLimit::Fixed(2),
    SegmentLimit::Fixed(4),
    SegmentLimit::Scaled,
    SegmentLimit::Fixed(12),
];
const BITS: [f64; 6] = [0.0, 4.0, 7.0, 10.0, 13.0, 16.0];

/// Trees that the search begins with, beside the default: T, c, segment limit.
const BEGINNINGS: [(f64, f64, SegmentLimit); 4] = [
    (10.0, 1.0, SegmentLimit::Fixed(1)),
    (4.0, 1.0, SegmentLimit::Scaled),
    (8.0, 0.8, SegmentLimit::Fixed(1)),
    (5.0, 0.8, SegmentLimit::Fixed(12)),
];

/// What is saved below this is no reason to leave the default.
pub(super) const WORTHWHILE: f64 = 0.05;

/// One option goes back to its default where that costs no more than this.
const NEGLIGIBLE: f64 = 0.01;

/// Something is beaten by what is no worse in all, and better in something by more than this: a simulation
/// knows no more.
const TOLERANCE: f64 = 0.03;

/// Goes of the search over all ladders, at most.
const GOES_MAX: usize = 4;

/// How many sizes of values are told apart in the choice of thresholds.
const SIZES_MAX: usize = 4;

const THREADS: usize = 2;

/// A tree of more bytes than this many memtables is searched for with so many, and only those that come into
/// question are then simulated with all.
const SEARCHED_MEMTABLES: f64 = 200.0;

/// How many are simulated with all bytes, the default included; and of trees that are so many times larger than
/// the part, which take long.
const FINALISTS: usize = 10;
const FINALISTS_OF_LARGE: usize = 3;
const LARGE_TIMES: u64 = 30;

/// How finely that is done: see [`windrow::simulation::Load`].
const FLUSHES_MAX: u64 = 400;
const FILES_MAX: u64 = 384;

/// What takes more disk than the options aim at is left out, but for what is above it for a moment.
const MOMENT: f64 = 1.05;

/// Where values go.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Placement {
    medium_from: u64,
    large_from: u64,
    in_place: MediumInPlace,
}

impl Placement {
    fn of(options: &KeyspaceOptions) -> Self {
        Self {
            medium_from: options.medium_from,
            large_from: options.large_from,
            in_place: options.medium_in_place,
        }
    }

    fn apply(self, options: &mut KeyspaceOptions) {
        options.medium_from = self.medium_from;
        options.large_from = self.large_from;
        options.medium_in_place = self.in_place;
    }
}

/// The options that nobody has chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own on the command line"
)]
pub(super) struct Free {
    pub(super) size_ratio: bool,
    pub(super) scaling: bool,
    pub(super) segment_limit: bool,
    pub(super) placement: bool,
    pub(super) bits_per_key: bool,
}

impl Free {
    #[cfg(test)]
    pub(super) const ALL: Self = Self {
        size_ratio: true,
        scaling: true,
        segment_limit: true,
        placement: true,
        bits_per_key: true,
    };
}

/// Ladders, in the order in which they are gone down.
const LADDERS: usize = 5;
const NAMES: [&str; LADDERS] = [
    "segment_limit",
    "size_ratio",
    "placement",
    "scaling",
    "bits_per_key",
];
const BITS_LADDER: usize = 4;

/// A place on each ladder.
type Choice = [usize; LADDERS];

/// What can be chosen.
#[derive(Debug)]
struct Ladders {
    base: KeyspaceOptions,
    segment_limits: Vec<SegmentLimit>,
    size_ratios: Vec<f64>,
    placements: Vec<Placement>,
    scalings: Vec<f64>,
    bits: Vec<f64>,
}

impl Ladders {
    fn new(demand: &Demand, base: &KeyspaceOptions, free: Free) -> Self {
        let number = |all: &[f64], own: f64, is_free: bool| {
            let mut all = if is_free { all.to_vec() } else { Vec::new() };
            if !all.iter().any(|other| (other - own).abs() < 1e-9) {
                all.push(own);
            }
            all.sort_by(f64::total_cmp);
            all
        };
        let mut segment_limits = if free.segment_limit {
            SEGMENT_LIMITS.to_vec()
        } else {
            Vec::new()
        };
        if !segment_limits.contains(&base.segment_limit) {
            segment_limits.push(base.segment_limit);
        }
        let placements = if free.placement {
            placements(demand, base)
        } else {
            vec![Placement::of(base)]
        };
        Self {
            base: base.clone(),
            segment_limits,
            size_ratios: number(&SIZE_RATIOS, base.size_ratio, free.size_ratio),
            placements,
            scalings: number(&SCALINGS, base.scaling, free.scaling),
            bits: number(&BITS, base.bits_per_key, free.bits_per_key),
        }
    }

    fn length(&self, ladder: usize) -> usize {
        match ladder {
            0 => self.segment_limits.len(),
            1 => self.size_ratios.len(),
            2 => self.placements.len(),
            3 => self.scalings.len(),
            _ => self.bits.len(),
        }
    }

    /// The place of the default.
    fn start(&self) -> Choice {
        self.nearest(&self.base)
    }

    /// The place of `options`, or the next to it on ladders that do not have it.
    fn nearest(&self, options: &KeyspaceOptions) -> Choice {
        let near = |all: &[f64], own: f64| {
            let far = |it: &f64| (it.ln_1p() - own.ln_1p()).abs();
            let best = all.iter().enumerate();
            best.min_by(|one, other| far(one.1).total_cmp(&far(other.1)))
                .map_or(0, |(place, _)| place)
        };
        let own = Placement::of(options);
        let exact = |place: Option<usize>| place.unwrap_or(0);
        [
            exact(
                self.segment_limits
                    .iter()
                    .position(|it| *it == options.segment_limit),
            ),
            near(&self.size_ratios, options.size_ratio),
            exact(self.placements.iter().position(|it| *it == own)),
            near(&self.scalings, options.scaling),
            near(&self.bits, options.bits_per_key),
        ]
    }

    fn options(&self, choice: &Choice) -> KeyspaceOptions {
        let mut options = self.base.clone();
        options.segment_limit = self.segment_limits[choice[0]];
        options.size_ratio = self.size_ratios[choice[1]];
        self.placements[choice[2]].apply(&mut options);
        options.scaling = self.scalings[choice[3]];
        options.bits_per_key = self.bits[choice[4]];
        options
    }

    /// Where the search begins.
    fn beginnings(&self) -> Vec<Choice> {
        let start = self.start();
        let mut choices = vec![start];
        for (size_ratio, scaling, segment_limit) in BEGINNINGS {
            let mut options = self.base.clone();
            options.size_ratio = size_ratio;
            options.scaling = scaling;
            options.segment_limit = segment_limit;
            let mut choice = self.nearest(&options);
            for placement in [0, start[2], self.placements.len() - 1] {
                choice[2] = placement;
                if !choices.contains(&choice) {
                    choices.push(choice);
                }
            }
        }
        choices
    }
}

/// The placements that differ for these sizes of values, those with fewer bytes in place behind. Thresholds are
/// those of `base` wherever these do the same.
fn placements(demand: &Demand, base: &KeyspaceOptions) -> Vec<Placement> {
    let mut sizes: Vec<u64> = demand
        .values
        .iter()
        .map(|size| demand.key_bytes + size.bytes)
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    // Of many sizes, a few over their whole range.
    let step = sizes.len().div_ceil(SIZES_MAX).max(1);
    let mut thresholds: Vec<u64> = sizes.iter().copied().step_by(step).collect();
    thresholds.extend([u64::MAX, base.medium_from, base.large_from]);
    thresholds.sort_unstable();
    thresholds.dedup();
    let own = Placement::of(base);
    let mut found = vec![own];
    for &large_from in &thresholds {
        for &medium_from in thresholds.iter().filter(|&&from| from <= large_from) {
            for in_place in [MediumInPlace::LastLevel, MediumInPlace::LevelBeforeLast] {
                found.push(Placement {
                    medium_from,
                    large_from,
                    in_place,
                });
            }
        }
    }
    let classes = |placement: &Placement| {
        let mut options = base.clone();
        placement.apply(&mut options);
        let sizes = demand.values.iter();
        let classes: Vec<ValueClass> = sizes
            .map(|size| demand.class(size.bytes, &options))
            .collect();
        // Where nothing is medium it does not matter where mediums come back.
        let level = classes
            .contains(&ValueClass::Medium)
            .then_some(placement.in_place);
        (classes, level)
    };
    let mut seen = Vec::new();
    found.retain(|placement| {
        let what = classes(placement);
        let is_new = !seen.contains(&what);
        if is_new {
            seen.push(what);
        }
        is_new
    });
    let apart = |placement: &Placement| {
        let (classes, level) = classes(placement);
        let bytes = classes.iter().zip(&demand.values).map(|(class, size)| {
            let bytes = size.share * size.bytes as f64;
            match (class, level) {
                (ValueClass::Small, _) => 0.0,
                (ValueClass::Medium, Some(MediumInPlace::LevelBeforeLast)) => bytes,
                (ValueClass::Medium, _) => bytes * 1.5,
                (ValueClass::Large, _) => bytes * 2.0,
            }
        });
        bytes.sum::<f64>()
    };
    found.sort_by(|one, other| apart(one).total_cmp(&apart(other)));
    found
}

/// Options, and what they cost.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Candidate {
    pub(super) costs: Costs,
    pub(super) write_amplification: f64,
    pub(super) space_amplification: f64,
    pub(super) space_amplification_most: f64,
    /// Levels with data, level 0 included.
    pub(super) levels: usize,
    pub(super) options: KeyspaceOptions,
    #[serde(skip)]
    choice: Choice,
    /// What is better the smaller it is: the cost of writes and of reads, where there are any, and space.
    #[serde(skip)]
    objectives: [f64; 3],
}

impl Candidate {
    fn new(shape: &Shape, demand: &Demand, options: KeyspaceOptions, choice: Choice) -> Self {
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
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let mut pairs = self.objectives.iter().zip(&other.objectives);
        pairs.all(|(own, other)| (own - other).abs() <= own * TOLERANCE)
    }

    /// Whether `other` is as good in everything and better in something.
    pub(super) fn is_beaten_by(&self, other: &Self) -> bool {
        let (own, others) = (self.objectives, other.objectives);
        let pairs = || own.iter().zip(&others);
        pairs().all(|(own, other)| other <= own)
            && pairs().any(|(own, other)| *other < own * (1.0 - TOLERANCE))
    }
}

/// What must hold for a candidate.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bounds {
    /// Bytes on disk over live ones, at most.
    pub(super) space_amplification: Option<f64>,
    /// What memtables, filters and indexes may take.
    pub(super) memory: Option<u64>,
}

impl Bounds {
    fn is_kept_by(&self, candidate: &Candidate) -> bool {
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
    fn refused(&self, all: &[Candidate]) -> Error {
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
                crate::text::human_bytes(super::demand::whole(memory)),
            ));
        }
        let wanted = wanted.join(", and ");
        Error::invalid_argument(format!("none of {} settings keeps to {wanted}", all.len()))
    }
}

/// What comes out.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Advice {
    /// Whether the default is to be kept.
    pub(super) keep_default: bool,
    /// The part of the default's cost that the best of all saves.
    pub(super) saving: f64,
    pub(super) recommended: Candidate,
    pub(super) default: Candidate,
    /// What the store has now, where it tells.
    pub(super) now: Option<Candidate>,
    /// Whether the default keeps to the bounds.
    pub(super) default_is_allowed: bool,
    /// What nothing beats in writes, reads and space, the cheapest writes first.
    pub(super) frontier: Vec<Candidate>,
    /// Settings that were compared, and how many of them broke a bound.
    pub(super) compared: usize,
    pub(super) left_out: usize,
    /// One step away from what is recommended: the option, and its candidate.
    #[serde(skip)]
    pub(super) neighbours: Vec<(&'static str, Candidate)>,
}

/// A search under way.
struct Search<'a> {
    demand: &'a Demand,
    /// The same with fewer entries.
    part: Demand,
    bounds: Bounds,
    ladders: Ladders,
    /// Trees by their choice, with the first filter bits in place of others.
    shapes: BTreeMap<Choice, Shape>,
    tick: &'a (dyn Fn() + Sync),
}

/// Searches what is best for `demand`, beginning with `base`; `tick` is called for each tree that was simulated.
///
/// # Errors
/// `InvalidArgument` where nothing keeps to the bounds.
pub(super) fn advise(
    demand: &Demand,
    base: &KeyspaceOptions,
    now: Option<&KeyspaceOptions>,
    free: Free,
    bounds: Bounds,
    tick: &(dyn Fn() + Sync),
) -> Result<Advice> {
    let mut part = demand.clone();
    let searched = SEARCHED_MEMTABLES * base.memtable_bytes as f64 / demand.entry_bytes();
    part.keys = demand.keys.min(super::demand::whole(searched).max(2));
    let mut search = Search {
        demand,
        part,
        bounds,
        ladders: Ladders::new(demand, base, free),
        shapes: BTreeMap::new(),
        tick,
    };
    search.bound()?;
    search.descend()?;
    search.conclude(now)
}

impl Search<'_> {
    /// Where nobody has set a bound to disk, no more is taken than the options aim at, or the default takes.
    fn bound(&mut self) -> Result<()> {
        let start = self.ladders.start();
        self.simulate(&[start])?;
        if self.bounds.space_amplification.is_none() {
            let own = self.candidate(&start).map(|it| it.space_amplification_most);
            let aim = self.ladders.base.max_space_amp;
            self.bounds.space_amplification = own.map(|own| aim.max(own / MOMENT));
        }
        Ok(())
    }

    /// Simulates what of `choices` is not yet known, with a part of the entries.
    fn simulate(&mut self, choices: &[Choice]) -> Result<()> {
        let mut missing: Vec<Choice> = choices.iter().map(without_bits).collect();
        missing.sort_unstable();
        missing.dedup();
        missing.retain(|choice| !self.shapes.contains_key(choice));
        let options: Vec<KeyspaceOptions> = missing
            .iter()
            .map(|choice| {
                let mut options = self.ladders.options(choice);
                options.bits_per_key = self.ladders.base.bits_per_key;
                options
            })
            .collect();
        let shapes = shapes(&self.part, &options, self.tick)?;
        let times = self.demand.keys as f64 / self.part.keys as f64;
        let shapes = shapes.into_iter().map(|shape| shape.times(times));
        self.shapes.extend(missing.into_iter().zip(shapes));
        Ok(())
    }

    /// What was simulated under this choice.
    fn candidate(&self, choice: &Choice) -> Option<Candidate> {
        let shape = self.shapes.get(&without_bits(choice))?;
        let options = self.ladders.options(choice);
        Some(Candidate::new(shape, self.demand, options, *choice))
    }

    /// What a choice costs; more than anything where it breaks a bound.
    fn cost(&self, choice: &Choice) -> (bool, f64) {
        let candidate = self.candidate(choice);
        candidate.map_or((true, f64::INFINITY), |candidate| {
            let is_out = !self.bounds.is_kept_by(&candidate);
            (is_out, candidate.costs.operation)
        })
    }

    /// The cheapest of `choices`, the first of those that cost the same.
    fn cheapest(&self, choices: &[Choice]) -> Option<Choice> {
        let cost = |choice: &&Choice| self.cost(choice);
        let order = |one: &(bool, f64), other: &(bool, f64)| {
            one.0.cmp(&other.0).then(one.1.total_cmp(&other.1))
        };
        choices
            .iter()
            .min_by(|one, other| order(&cost(one), &cost(other)))
            .copied()
    }

    fn descend(&mut self) -> Result<()> {
        let beginnings = self.ladders.beginnings();
        self.simulate(&beginnings)?;
        // From the default, and from the best of all beginnings.
        let starts = [Some(self.ladders.start()), self.cheapest(&beginnings)];
        for start in starts.into_iter().flatten() {
            let mut best = start;
            for _ in 0..GOES_MAX {
                let before = best;
                for ladder in 0..LADDERS {
                    let choices: Vec<Choice> = (0..self.ladders.length(ladder))
                        .map(|place| with(best, ladder, place))
                        .collect();
                    self.simulate(&choices)?;
                    // A step is made only for something.
                    let cheapest = self.cheapest(&choices).unwrap_or(best);
                    if self.cost(&cheapest) < self.cost(&best) {
                        best = cheapest;
                    }
                }
                if best == before {
                    break;
                }
            }
        }
        Ok(())
    }

    fn conclude(mut self, now: Option<&KeyspaceOptions>) -> Result<Advice> {
        let mut all = Vec::new();
        for choice in self.shapes.keys() {
            for bits in 0..self.ladders.length(BITS_LADDER) {
                all.extend(self.candidate(&with(*choice, BITS_LADDER, bits)));
            }
        }
        let compared = all.len();
        let searched = self.allowed(&all)?;
        let left_out = compared - searched.len();
        let is_whole = self.part.keys == self.demand.keys;
        let (all, allowed) = if is_whole {
            (all, searched)
        } else {
            let finalists = self.finalists(&searched);
            let all = self.wholly(&finalists)?;
            let allowed = self.allowed(&all)?;
            (all, allowed)
        };
        let start = self.ladders.start();
        let default = all.iter().find(|it| it.choice == start).cloned();
        let (Some(default), Some(best)) = (default, allowed.first()) else {
            return Err(self.bounds.refused(&all));
        };
        let simplest = self.simplified(best, &allowed);
        let default_is_allowed = self.bounds.is_kept_by(&default);
        let saving = 1.0 - best.costs.operation / default.costs.operation;
        let keep_default = default_is_allowed && saving < WORTHWHILE;
        let recommended = if keep_default {
            default.clone()
        } else {
            simplest
        };
        let now = match now {
            Some(options) => self.single(options)?,
            None => None,
        };
        let neighbours = self.neighbours(&recommended)?;
        let mut frontier = frontier(&allowed);
        // I2: of those that are the same in everything, the one that is recommended stands there.
        if !keep_default && !frontier.iter().any(|it| it.choice == recommended.choice) {
            frontier.retain(|it| !it.is_same(&recommended));
            frontier.push(recommended.clone());
        }
        frontier.sort_by(|one, other| one.costs.write.total_cmp(&other.costs.write));
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

    /// Those of `all` that keep to the bounds, the cheapest first.
    fn allowed(&self, all: &[Candidate]) -> Result<Vec<Candidate>> {
        let kept = all.iter().filter(|it| self.bounds.is_kept_by(it));
        let mut allowed: Vec<Candidate> = kept.cloned().collect();
        allowed.sort_by(|one, other| one.costs.operation.total_cmp(&other.costs.operation));
        if allowed.is_empty() {
            return Err(self.bounds.refused(all));
        }
        Ok(allowed)
    }

    /// What comes into question: the default, the best trees, and some of the frontier.
    fn finalists(&self, searched: &[Candidate]) -> Vec<Choice> {
        let is_large = self.demand.keys / self.part.keys >= LARGE_TIMES;
        let most = if is_large {
            FINALISTS_OF_LARGE
        } else {
            FINALISTS
        };
        let mut trees = vec![without_bits(&self.ladders.start())];
        let mut take = |candidate: &Candidate, most: usize| {
            let tree = without_bits(&candidate.choice);
            if trees.len() < most && !trees.contains(&tree) {
                trees.push(tree);
            }
        };
        if let Some(best) = searched.first() {
            take(&self.simplified(best, searched), most);
        }
        for candidate in searched {
            take(candidate, most.div_ceil(2) + 1);
        }
        let frontier = frontier(searched);
        let step = frontier.len().div_ceil(most / 2).max(1);
        for candidate in frontier.iter().step_by(step) {
            take(candidate, most);
        }
        trees
    }

    /// The candidates of these trees with all filter bits, simulated with all entries.
    fn wholly(&self, trees: &[Choice]) -> Result<Vec<Candidate>> {
        let options: Vec<KeyspaceOptions> = trees
            .iter()
            .map(|choice| {
                let mut options = self.ladders.options(choice);
                options.bits_per_key = self.ladders.base.bits_per_key;
                options
            })
            .collect();
        let shapes = shapes(self.demand, &options, self.tick)?;
        let mut all = Vec::new();
        for (tree, shape) in trees.iter().zip(&shapes) {
            for bits in 0..self.ladders.length(BITS_LADDER) {
                let choice = with(*tree, BITS_LADDER, bits);
                let options = self.ladders.options(&choice);
                all.push(Candidate::new(shape, self.demand, options, choice));
            }
        }
        Ok(all)
    }

    /// The same as `best`, with as many options as the default has wherever that makes no difference.
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

    /// A candidate that is on no ladder.
    fn single(&self, options: &KeyspaceOptions) -> Result<Option<Candidate>> {
        let own = [options.clone()];
        let shapes = shapes(self.demand, &own, self.tick)?;
        let choice = self.ladders.nearest(options);
        Ok(shapes
            .first()
            .map(|shape| Candidate::new(shape, self.demand, options.clone(), choice)))
    }

    /// One step up and one down on each ladder.
    fn neighbours(&mut self, of: &Candidate) -> Result<Vec<(&'static str, Candidate)>> {
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
        self.simulate(&choices)?;
        Ok(steps
            .into_iter()
            .filter_map(|(name, choice)| Some((name, self.candidate(&choice)?)))
            .collect())
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

fn without_bits(choice: &Choice) -> Choice {
    with(*choice, BITS_LADDER, 0)
}

fn with(mut choice: Choice, ladder: usize, place: usize) -> Choice {
    choice[ladder] = place;
    choice
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

#[cfg(test)]
mod tests;

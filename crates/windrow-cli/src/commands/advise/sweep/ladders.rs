//! The choices: a place on each of five ladders.
//!
//! Owns which settings are on each ladder, where a search begins, and the options that a choice stands for.
//!
//! I1. The ladder of an option that the user set has that setting alone.
//! I2. The default is a choice: each ladder has its setting.
//! I3. The steps of a ladder are in order: neighbours differ by a little.
//!
//! Concurrency: none; ladders do not change.

use windrow::simulation::ValueClass;
use windrow::{KeyspaceOptions, MediumInPlace, SegmentLimit};

use crate::commands::cost::Demand;

const SIZE_RATIOS: [f64; 7] = [3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0];
pub(super) const SCALINGS: [f64; 5] = [0.4, 0.5, 0.6, 0.8, 1.0];
const SEGMENT_LIMITS: [SegmentLimit; 5] = [
    SegmentLimit::Fixed(1),
    SegmentLimit::Fixed(2),
    SegmentLimit::Fixed(4),
    SegmentLimit::Scaled,
    SegmentLimit::Fixed(12),
];
pub(super) const BITS: [f64; 6] = [0.0, 4.0, 7.0, 10.0, 13.0, 16.0];

/// Trees that the search begins with, beside the default: T, c, segment limit.
const BEGINNINGS: [(f64, f64, SegmentLimit); 4] = [
    (10.0, 1.0, SegmentLimit::Fixed(1)),
    (4.0, 1.0, SegmentLimit::Scaled),
    (8.0, 0.8, SegmentLimit::Fixed(1)),
    (5.0, 0.8, SegmentLimit::Fixed(12)),
];

/// How many sizes of values the choice of thresholds distinguishes.
const SIZES_MAX: usize = 4;

/// The placement of values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Placement {
    medium_from: u64,
    large_from: u64,
    in_place: MediumInPlace,
}

impl Placement {
    pub(super) fn of(options: &KeyspaceOptions) -> Self {
        Self {
            medium_from: options.medium_from,
            large_from: options.large_from,
            in_place: options.medium_in_place,
        }
    }

    pub(super) fn apply(self, options: &mut KeyspaceOptions) {
        options.medium_from = self.medium_from;
        options.large_from = self.large_from;
        options.medium_in_place = self.in_place;
    }
}

/// The options that the user did not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own on the command line"
)]
pub(in crate::commands::advise) struct Free {
    pub(in crate::commands::advise) size_ratio: bool,
    pub(in crate::commands::advise) scaling: bool,
    pub(in crate::commands::advise) segment_limit: bool,
    pub(in crate::commands::advise) placement: bool,
    pub(in crate::commands::advise) bits_per_key: bool,
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

/// How many ladders there are.
pub(super) const LADDERS: usize = 5;
/// Their options, in the order of the search.
pub(super) const NAMES: [&str; LADDERS] = [
    "segment_limit",
    "size_ratio",
    "placement",
    "scaling",
    "bits_per_key",
];
pub(super) const BITS_LADDER: usize = 4;

/// A place on each ladder.
pub(super) type Choice = [usize; LADDERS];

/// The choices.
#[derive(Debug)]
pub(super) struct Ladders {
    pub(super) base: KeyspaceOptions,
    segment_limits: Vec<SegmentLimit>,
    size_ratios: Vec<f64>,
    placements: Vec<Placement>,
    scalings: Vec<f64>,
    bits: Vec<f64>,
}

impl Ladders {
    pub(super) fn new(demand: &Demand, base: &KeyspaceOptions, free: Free) -> Self {
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
        let own = base.segment_limit;
        if !segment_limits.contains(&own) {
            let is_above = |limit: &SegmentLimit| match (*limit, own) {
                (SegmentLimit::Fixed(limit), SegmentLimit::Fixed(own)) => limit > own,
                _ => false,
            };
            let place = segment_limits.iter().position(is_above);
            segment_limits.insert(place.unwrap_or(segment_limits.len()), own);
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

    pub(super) fn length(&self, ladder: usize) -> usize {
        match ladder {
            0 => self.segment_limits.len(),
            1 => self.size_ratios.len(),
            2 => self.placements.len(),
            3 => self.scalings.len(),
            _ => self.bits.len(),
        }
    }

    /// The place of the default.
    pub(super) fn start(&self) -> Choice {
        self.nearest(&self.base)
    }

    /// The place of `options`, or the nearest one on ladders that do not have it.
    pub(super) fn nearest(&self, options: &KeyspaceOptions) -> Choice {
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

    pub(super) fn options(&self, choice: &Choice) -> KeyspaceOptions {
        let mut options = self.base.clone();
        options.segment_limit = self.segment_limits[choice[0]];
        options.size_ratio = self.size_ratios[choice[1]];
        self.placements[choice[2]].apply(&mut options);
        options.scaling = self.scalings[choice[3]];
        options.bits_per_key = self.bits[choice[4]];
        options
    }

    /// The options of the trees of `choices`. Filter bits are those of the base: trees do not depend on them.
    pub(super) fn trees(&self, choices: &[Choice]) -> Vec<KeyspaceOptions> {
        let tree = |choice| {
            let mut options = self.options(choice);
            options.bits_per_key = self.base.bits_per_key;
            options
        };
        choices.iter().map(tree).collect()
    }

    /// `choice` with each of the filter bits there are.
    pub(super) fn with_all_bits(&self, choice: Choice) -> impl Iterator<Item = Choice> {
        (0..self.length(BITS_LADDER)).map(move |bits| with(choice, BITS_LADDER, bits))
    }

    /// Where the search begins.
    pub(super) fn beginnings(&self) -> Vec<Choice> {
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

/// The placements that differ for these sizes of values, those with fewer bytes in place last. A placement keeps the
/// thresholds of `base` if these do the same. Other thresholds are the least sizes of values, so that no value of a
/// size lies on the other side.
pub(super) fn placements(demand: &Demand, base: &KeyspaceOptions) -> Vec<Placement> {
    let mut sizes: Vec<u64> = demand
        .values_from
        .iter()
        .map(|from| demand.key_bytes + from)
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
        // Without medium values, their way back into tables does not matter.
        let level = classes
            .contains(&ValueClass::Medium)
            .then_some(placement.in_place);
        (classes, level)
    };
    // Merges are simulated for values in place alone.
    let is_known = |classes: &[ValueClass]| {
        demand.fractions.merges == 0.0 || classes.iter().all(|it| *it == ValueClass::Small)
    };
    let mut seen = Vec::new();
    found.retain(|placement| {
        let what = classes(placement);
        let is_new = !seen.contains(&what) && (*placement == own || is_known(&what.0));
        if is_new {
            seen.push(what);
        }
        is_new
    });
    let separated = |placement: &Placement| {
        let (classes, level) = classes(placement);
        let bytes = classes.iter().zip(&demand.values).map(|(class, size)| {
            let bytes = size.fraction * size.bytes as f64;
            match (class, level) {
                (ValueClass::Small, _) => 0.0,
                (ValueClass::Medium, Some(MediumInPlace::LevelBeforeLast)) => bytes,
                (ValueClass::Medium, _) => bytes * 1.5,
                (ValueClass::Large, _) => bytes * 2.0,
            }
        });
        bytes.sum::<f64>()
    };
    found.sort_by(|one, other| separated(one).total_cmp(&separated(other)));
    found
}

pub(super) fn without_bits(choice: &Choice) -> Choice {
    with(*choice, BITS_LADDER, 0)
}

pub(super) fn with(mut choice: Choice, ladder: usize, place: usize) -> Choice {
    choice[ladder] = place;
    choice
}

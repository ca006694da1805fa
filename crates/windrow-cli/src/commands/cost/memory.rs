//! Which reads the page cache answers: those of what it holds once it is full, and while it fills those of pages that
//! were read before.
//!
//! Concurrency: none; no state.

use windrow::simulation::KeyDistribution;

use super::filters::{FalsePositives, Filters};
use super::shape::{Level, Separated, Shape};
use crate::commands::cost::Demand;

/// Bytes that the device reads for one value or one block at least.
pub(super) const PAGE_BYTES: f64 = 4096.0;

/// A place that is read: its bytes, and how often an average operation reads a block there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) bytes: f64,
    pub(super) reads: f64,
}

/// Reads that go to the device, for one operation of each kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Misses {
    /// Blocks of a get that finds its key.
    pub(super) found: f64,
    /// Blocks that false positives read for an absent key.
    pub(super) false_positives: f64,
    /// Blocks with which a scan begins.
    pub(super) opened: f64,
    /// Separated values of one entry, and their bytes.
    pub(super) values: f64,
    pub(super) value_bytes: f64,
    /// The fraction of the tables that is not in memory.
    pub(super) tables: f64,
    pub(super) hit_fraction: f64,
}

impl Misses {
    pub(super) fn new(shape: &Shape, demand: &Demand, filters: &Filters, taken: f64) -> Self {
        let entries = shape.entries().max(1.0);
        let fractions = demand.fractions;
        // If nothing reads the store, only compactions do, and they read all places alike.
        let reads = fractions.reads().max(1e-9);
        let of_level = |(level, false_positives): (&Level, &FalsePositives)| {
            let part = level.entries / entries;
            let gets = fractions.gets * (part + false_positives.found)
                + fractions.missing * false_positives.missing;
            let passed = demand.scan_length / entries_per_page(shape);
            Place {
                bytes: level.bytes,
                reads: (gets + fractions.scans * (level.runs + passed * part)) / reads,
            }
        };
        let returned = (fractions.gets + fractions.scans * demand.scan_length) / reads;
        let of_values = |values: &Separated| Place {
            bytes: values.bytes,
            reads: returned * values.fraction,
        };
        let levels = shape.levels.iter().zip(&filters.levels);
        let mut places: Vec<Place> = levels.map(of_level).collect();
        let levels = places.len();
        places.extend([
            of_values(&shape.value_logs),
            of_values(&shape.transient_logs),
        ]);
        let cache = demand.memory.map(|memory| (memory as f64 - taken).max(0.0));
        let hits = hits(&places, cache, demand);
        let miss = |place: usize| 1.0 - hits[place];
        let over_levels = |of: &dyn Fn(&Level, &FalsePositives) -> f64| -> f64 {
            let levels = shape.levels.iter().zip(&filters.levels).enumerate();
            levels
                .map(|(place, (level, false_positives))| of(level, false_positives) * miss(place))
                .sum()
        };
        let bytes = shape.table_bytes().max(1.0);
        let in_logs = shape.value_logs.fraction * miss(levels);
        let in_transient_logs = shape.transient_logs.fraction * miss(levels + 1);
        let all: f64 = places.iter().map(|place| place.reads).sum();
        let answered: f64 = places
            .iter()
            .zip(&hits)
            .map(|(it, hit)| it.reads * hit)
            .sum();
        Self {
            found: over_levels(&|level, false_positives| {
                level.entries / entries + false_positives.found
            }),
            false_positives: over_levels(&|_, false_positives| false_positives.missing),
            opened: over_levels(&|level, _| level.runs),
            values: in_logs + in_transient_logs,
            value_bytes: in_logs * shape.value_logs.value_bytes
                + in_transient_logs * shape.transient_logs.value_bytes,
            tables: over_levels(&|level, _| level.bytes / bytes),
            hit_fraction: if all > 0.0 { answered / all } else { 1.0 },
        }
    }
}

fn entries_per_page(shape: &Shape) -> f64 {
    let entry = shape.table_bytes() / shape.entries().max(1.0);
    (PAGE_BYTES / entry.max(1.0)).max(1.0)
}

/// The fraction of the reads of each place that a cache of so many bytes answers. The cache holds first what is
/// read most often for its size. A cache without a bound answers all reads.
pub(super) fn hits(places: &[Place], cache: Option<f64>, demand: &Demand) -> Vec<f64> {
    let Some(mut left) = cache else {
        return vec![1.0; places.len()];
    };
    let density = |place: &Place| place.reads / place.bytes.max(1.0);
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by(|&one, &other| density(&places[other]).total_cmp(&density(&places[one])));
    let mut hits = vec![1.0; places.len()];
    for place in order {
        let bytes = places[place].bytes;
        if bytes > 0.0 {
            let held = (left / bytes).min(1.0);
            left = (left - bytes).max(0.0);
            hits[place] = answered(held, bytes, demand);
        }
    }
    if let Some(reads) = demand.reads_counted {
        for (hit, place) in hits.iter_mut().zip(places) {
            *hit = hit.min(answered_from_empty(place, reads as f64, demand));
        }
    }
    hits
}

/// The fraction of `reads` operations' reads of `place` that find their page in a cache that was empty before them and
/// holds all that was read.
///
/// A page is read in proportion to how often its key is, and its other keys on average.
pub(super) fn answered_from_empty(place: &Place, reads: f64, demand: &Demand) -> f64 {
    let reads = reads * place.reads;
    let pages = place.bytes / PAGE_BYTES.max(demand.entry_bytes());
    let entries = place.bytes / demand.entry_bytes();
    let missed = |(mass, part): (f64, f64)| {
        let rate = mass / part / entries + (1.0 / pages - 1.0 / entries).max(0.0);
        let expected = reads * rate;
        if expected > 0.0 {
            mass * -(-expected).exp_m1() / expected
        } else {
            mass
        }
    };
    let all: f64 = classes(demand).into_iter().map(missed).sum();
    (1.0 - all).clamp(0.0, 1.0)
}

/// Classes of about equally popular keys: their part of the reads, and of the keys.
fn classes(demand: &Demand) -> Vec<(f64, f64)> {
    let KeyDistribution::Zipfian { exponent } = demand.distribution else {
        return vec![(1.0, 1.0)];
    };
    let keys = demand.keys as f64;
    let all = ranks(keys, exponent);
    let mut classes = Vec::new();
    let mut first = 0.0;
    while first < keys {
        let end = (first * 2.0).clamp(1.0, keys);
        let mass = (ranks(end, exponent) - ranks(first, exponent)) / all;
        classes.push((mass, (end - first) / keys));
        first = end;
    }
    classes
}

/// The fraction of the reads that a cache answers if it holds the fraction `held` of the bytes, the hottest
/// first. Hot keys lie far from each other, so each takes a page; its neighbours are cached with it.
pub(super) fn answered(held: f64, bytes: f64, demand: &Demand) -> f64 {
    let KeyDistribution::Zipfian { exponent } = demand.distribution else {
        return held;
    };
    let keys = demand.keys as f64;
    let pages = held * bytes / PAGE_BYTES.max(demand.entry_bytes());
    let hot = pages.min(keys);
    let mass = ranks(hot, exponent) / ranks(keys, exponent).max(1e-9);
    (mass + (1.0 - mass) * held).min(1.0)
}

/// The sum of rank to the power of minus `exponent` over so many ranks, about.
fn ranks(count: f64, exponent: f64) -> f64 {
    if count < 1.0 {
        return count;
    }
    let power = 1.0 - exponent;
    if power.abs() < 1e-6 {
        return 1.0 + count.ln();
    }
    1.0 + (count.powf(power) - 1.0) / power
}

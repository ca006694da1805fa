//! How many filter bits each segment of a file gets. In this text, a file is a segment.
//!
//! A bit is worth the false-positive reads that it saves. A file that holds the fraction s of
//! the entries in its key range is asked for s of the keys that exist there, and for all that do not.
//! So a given rate of false positives costs most, and a bit saves most, if s is small. Setting
//! the worth of the last bit of every file equal, to a *price*, gives
//!
//! ```text
//! rate of a file = price * s / ln^2 2        bits per key = -ln(rate) / ln^2 2
//! ```
//!
//! which is Monkey's "rate proportional to the entries of the run" (AU-M4, D2), applied to
//! ranges. It needs no notion of a last level: a file that overlaps nothing is filtered like a file of the last
//! level, in whatever level it is. The price makes all files together use the
//! budget, `bits_per_key` for each entry. Actual entries count, never nominal capacities.
//!
//! A filter is written in independent units, and readers load as many units as the file has *allocated*. The
//! allocation follows the tree, whatever the file was worth when it was new. So a file is
//! written with the unit that it would have if its range were its own, the unit that takes it to
//! its present worth, and a reserve unit for a higher worth, as when a level grows below it.

mod fractions;

use std::collections::BTreeSet;
use std::f64::consts::LN_2;
use std::ops::Range;

use self::fractions::fractions;
use super::capacities::whole;
use super::pick::Compaction;
use super::summary::{Claim, FileSummary};
use super::tree::{Sum, Tree};
use super::tree_summary::TreeSummary;
use crate::base::FileNumber;
use crate::filter::{FILTER_UNITS_MAX, LoadedUnits};
use crate::options::{FilterAllocation, KeyspaceOptions};

/// No file gets more bits per key.
const BITS_MAX: f64 = 24.0;

/// The bits per key of a reserve unit: a seventh of the rate.
const RESERVE_BITS: f64 = 4.0;

/// Fewer bits per key are not worth a unit or a probe: they pass more than 0.62 of all absent keys.
/// A limit at a rate of 0.5 would leave the last level without a filter at 2 bits per key, which costs 1.1
/// reads per absent key instead of 0.7.
const UNIT_BITS_MIN: f64 = 1.0;

/// The part of the budget that new files are written for, since lines and blocks round up.
const BUDGET_USED: f64 = 0.98;

/// Bits by which a filter is larger on average because it is rounded up to whole lines.
const ROUNDED_BITS: u64 = 256;

/// Trees of fewer files have their filter bits allocated anew after each job.
const FILES_FEW: usize = 256;

/// Larger trees have them allocated anew once this part of their entries has changed.
const CHANGED_PARTS: u64 = 64;

/// How many of their units the segments of each file may have in memory, and what a bit costs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AllocatedFilters {
    /// The worth of the last bit of each file.
    pub(crate) price: f64,
    /// In the order of the tree's levels and files.
    pub(crate) units: Vec<(FileNumber, LoadedUnits)>,
}

/// Whether the bits of a tree with this many files and entries are to be allocated anew, `changed` entries
/// after the last time. In a large tree one job changes little.
pub(crate) fn is_allocation_due(changed: u64, files: usize, entries: u64) -> bool {
    files <= FILES_FEW || changed >= entries / CHANGED_PARTS
}

/// Allocates the budget of `tree`.
///
/// It takes units in the order of what they save for each bit, until the budget is used up.
pub(crate) fn allocate_filters<K: Ord>(
    tree: &TreeSummary<K>,
    options: &KeyspaceOptions,
) -> AllocatedFilters {
    let files = || tree.levels.iter().flatten();
    let numbers = files().map(|file| file.number);
    if options.filter_allocation == FilterAllocation::Uniform {
        return AllocatedFilters {
            price: price_alone(options),
            units: numbers.map(|number| (number, LoadedUnits::ALL)).collect(),
        };
    }
    let fractions = fractions(tree);
    let mut units: Vec<(FileNumber, LoadedUnits)> =
        numbers.map(|number| (number, LoadedUnits::NONE)).collect();
    let mut candidates = Vec::new();
    let mut counted = Vec::new();
    for (position, (file, &fraction)) in files().zip(&fractions).enumerate() {
        for (number, segment) in file.segments.iter().enumerate() {
            let entries = segment.entries as f64;
            // All segments of a file are asked for the keys of its range.
            let fraction = fraction * entries / file.entries.max(1) as f64;
            counted.push((entries, fraction));
            let mut rate = 1.0;
            let mut worth = f64::INFINITY;
            for &bytes in segment.filter_units.iter().take_while(|bytes| **bytes > 0) {
                let bits = bytes.saturating_mul(8);
                let per_key = bits as f64 / entries.max(1.0);
                let saved = rate * (1.0 - rate_of(per_key));
                rate -= saved;
                // A unit needs those before it.
                worth = worth.min(saved / (per_key * fraction));
                candidates.push((worth, (position, number), bits));
            }
        }
    }
    candidates.sort_by(|left, right| right.0.total_cmp(&left.0).then(left.1.cmp(&right.1)));
    let entries = files().fold(0, |sum: u64, file| sum.saturating_add(file.entries));
    let slack = ROUNDED_BITS * counted.len() as u64;
    let mut budget = whole(options.bits_per_key * entries as f64).saturating_add(slack);
    let mut is_over = BTreeSet::new();
    for (_, place, bits) in candidates {
        if bits > budget {
            is_over.insert(place);
        } else if !is_over.contains(&place) {
            budget -= bits;
            units[place.0].1.add(place.1);
        }
    }
    AllocatedFilters {
        price: price(&counted, options),
        units,
    }
}

/// The bits per key of the units of a new file that will hold `fraction` of the entries in its range; 0 for an absent
/// unit.
pub(crate) fn filter_units(
    fraction: f64,
    price: f64,
    options: &KeyspaceOptions,
) -> [f64; FILTER_UNITS_MAX] {
    let mut units = [0.0; FILTER_UNITS_MAX];
    if options.bits_per_key <= 0.0 {
        return units;
    }
    if options.filter_allocation == FilterAllocation::Uniform {
        units[0] = options.bits_per_key;
        return units;
    }
    let alone = worthwhile_bits(1.0, price);
    let now = worthwhile_bits(fraction, price).max(alone);
    let wanted = [alone, now - alone, RESERVE_BITS];
    let written = wanted.into_iter().filter(|bits| *bits >= UNIT_BITS_MIN);
    for (unit, bits) in units.iter_mut().zip(written) {
        *unit = bits;
    }
    units
}

/// The price if everything is in one file.
pub(crate) fn price_alone(options: &KeyspaceOptions) -> f64 {
    rate_of(options.bits_per_key * BUDGET_USED) * LN_2 * LN_2
}

/// The fractions that the output of a compaction will hold of the entries in its range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct OutputFractions {
    /// Of new files.
    pub(super) written_anew: f64,
    /// Of appended segments.
    pub(super) appended: f64,
}

/// The fractions of the output of `compaction`, whose upper files count as lying evenly over their destinations.
pub(super) fn output_fractions<K: Ord + Clone>(
    tree: &dyn Tree<K>,
    compaction: &Compaction<K>,
) -> OutputFractions {
    let claim = &compaction.claim;
    let inputs: BTreeSet<FileNumber> = compaction.inputs().collect();
    let targets: BTreeSet<FileNumber> = compaction.targets.iter().copied().collect();
    let sum = |numbers: &BTreeSet<FileNumber>, level: usize| -> (f64, f64) {
        // A claim includes all inputs.
        let files = tree.files(level, between(tree, level, claim));
        let chosen = files.iter().filter(|file| numbers.contains(&file.number));
        chosen.fold((0.0, 0.0), |(count, entries), file| {
            (count + 1.0, entries + file.entries as f64)
        })
    };
    let upper = if compaction.level == claim.level {
        0.0
    } else {
        sum(&inputs, compaction.level).1
    };
    let (rewritten_files, rewritten) = sum(&inputs, claim.level);
    let (target_files, target_entries) = sum(&targets, claim.level);
    let lower_files = target_files + rewritten_files;
    // If all lower files are appended to, new files between them are as dense as the upper files.
    let anew = if rewritten_files > 0.0 {
        rewritten_files / lower_files
    } else {
        1.0
    };
    let part = target_files / lower_files.max(1.0);
    let taken = inputs.union(&targets).copied().collect();
    let others = other_entries(tree, claim, &taken);
    let fraction = |own: f64, others: f64| own / (own + others).max(1.0);
    OutputFractions {
        written_anew: fraction(upper * anew + rewritten, others * anew),
        appended: fraction(upper * part, others * part + target_entries),
    }
}

/// The fraction that the output of a flush into level 0, of `entries` entries, will hold of all entries between the
/// ends of `claim`.
pub(crate) fn flush_fraction<K: Ord + Clone>(
    tree: &dyn Tree<K>,
    claim: &Claim<K>,
    entries: u64,
) -> f64 {
    let own = entries as f64;
    own / (own + other_entries(tree, claim, &BTreeSet::new())).max(1.0)
}

/// The entries between the ends of `claim` in files that are not `taken`. Files that reach beyond them count by
/// half.
fn other_entries<K: Ord + Clone>(
    tree: &dyn Tree<K>,
    claim: &Claim<K>,
    taken: &BTreeSet<FileNumber>,
) -> f64 {
    let (smallest, largest) = (&claim.smallest, &claim.largest);
    let mut others = 0.0;
    for level in 0..tree.depth() {
        let positions = between(tree, level, claim);
        if taken.is_empty() && level > 0 && positions.len() > 2 {
            // Only the files at both ends can reach beyond them.
            let inner = positions.start + 1..positions.end - 1;
            others += tree.sum_within(level, inner, Sum::Entries) as f64;
            let ends = [positions.start, positions.end - 1];
            others += ends
                .iter()
                .map(|&end| inside(&tree.file(level, end), claim))
                .sum::<f64>();
            continue;
        }
        for position in positions {
            let file = tree.file(level, position);
            let is_apart = file.largest < *smallest || *largest < file.smallest;
            if !is_apart && !taken.contains(&file.number) {
                others += inside(&file, claim);
            }
        }
    }
    others
}

/// The entries of `file`, or half of them if it reaches beyond the ends of `claim`.
fn inside<K: Ord>(file: &FileSummary<K>, claim: &Claim<K>) -> f64 {
    let is_inside = claim.smallest <= file.smallest && file.largest <= claim.largest;
    file.entries as f64 * if is_inside { 1.0 } else { 0.5 }
}

/// The files of `level` that may have keys between the ends of `claim`: all those of level 0.
fn between<K: Clone>(tree: &dyn Tree<K>, level: usize, claim: &Claim<K>) -> Range<usize> {
    match level {
        0 => 0..tree.len(0),
        _ => tree.overlapping(level, &claim.smallest, &claim.largest),
    }
}

/// The price at which files of these entries and fractions use the budget.
fn price(files: &[(f64, f64)], options: &KeyspaceOptions) -> f64 {
    let entries: f64 = files.iter().map(|(entries, _)| entries).sum();
    let budget = options.bits_per_key * BUDGET_USED * entries;
    if budget <= 0.0 {
        return price_alone(options);
    }
    let used = |price: f64| {
        let bits = |&(entries, fraction): &(f64, f64)| entries * worthwhile_bits(fraction, price);
        files.iter().map(bits).sum::<f64>()
    };
    // Bisects the logarithm, from a price that buys BITS_MAX bits for a whole tree to one at
    // which no file is worth a bit.
    let (mut low, mut high) = (-BITS_MAX * LN_2 * LN_2 - 2.0, 20.0);
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        if used(middle.exp()) > budget {
            low = middle;
        } else {
            high = middle;
        }
    }
    high.exp()
}

/// The bits per key that a file with this fraction is worth.
fn worthwhile_bits(fraction: f64, price: f64) -> f64 {
    let rate = price * fraction / (LN_2 * LN_2);
    let bits = (-rate.ln() / (LN_2 * LN_2)).min(BITS_MAX);
    if bits < UNIT_BITS_MIN { 0.0 } else { bits }
}

/// The rate of false positives of the best filter of this many bits per key.
fn rate_of(bits_per_key: f64) -> f64 {
    (-bits_per_key * LN_2 * LN_2).exp()
}

#[cfg(test)]
mod tests;

//! How a compaction writes its output: the same plan for the engine and the simulation.
//!
//! An [`OutputPlan`] follows from the compaction, the tree that it was picked for, and the options. It says where the
//! output is [cut](cut) into files and which [files](zones) are appended to, what becomes of values in
//! transient logs, which filters are written, into which [subcompactions] a large compaction is divided, and
//! which keys [deeper levels](deeper) may hold. [`keep`] decides about each entry.
//!
//! Pure, without state. Keys may be of any ordered type.

mod cut;
mod deeper;
mod retention;
mod subcompactions;
mod zones;

use std::borrow::Cow;
use std::collections::BTreeSet;

pub(crate) use cut::OutputCutter;
pub(crate) use deeper::DeeperLevels;
pub(crate) use retention::{Met, ReadPoints, Verdict, hides_all, is_offered, keep, keep_range};
pub(super) use zones::Zones;

use super::capacities::target_file_bytes;
use super::filters::{filter_units, output_fractions};
use super::pick::Compaction;
use super::placement::{InputTransientLog, Placement, transient_file_bytes};
use super::summary::FileSummary;
use super::tree::Tree;
use crate::base::FileNumber;
use crate::filter::FILTER_UNITS_MAX;
use crate::options::KeyspaceOptions;

/// The plan of a compaction's output.
#[derive(Debug)]
pub(crate) struct OutputPlan<'p, K: Clone> {
    tree: &'p dyn Tree<K>,
    compaction: &'p Compaction<K>,
    options: &'p KeyspaceOptions,
    upper: Vec<Cow<'p, FileSummary<K>>>,
    lower: Vec<Cow<'p, FileSummary<K>>>,
    file_bytes: u64,
    is_in_place: bool,
}

/// What a compaction does with the values that it meets in a file of a transient log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransientLogFate {
    /// They stay where they are.
    Stay,
    /// They go beside their keys.
    InPlace,
    /// They go to a new transient log.
    Rewrite,
}

/// The bits per key of the filter units of a compaction's output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutputUnits {
    /// Of new files.
    pub(crate) written_anew: [f64; FILTER_UNITS_MAX],
    /// Of appended segments.
    pub(crate) appended: [f64; FILTER_UNITS_MAX],
}

impl<'p, K: Ord + Clone> OutputPlan<'p, K> {
    /// For `compaction`, which was picked for `tree`.
    pub(crate) fn new(
        tree: &'p dyn Tree<K>,
        compaction: &'p Compaction<K>,
        options: &'p KeyspaceOptions,
    ) -> Self {
        let target = compaction.claim.level;
        let claim = &compaction.claim;
        let files = |level: usize, numbers: BTreeSet<&FileNumber>| {
            // A claim includes all inputs.
            let positions = match level {
                0 => 0..tree.len(0),
                _ => tree.overlapping(level, &claim.smallest, &claim.largest),
            };
            let files = tree.files(level, positions).into_iter();
            files
                .filter(|file| numbers.contains(&file.number))
                .collect()
        };
        let lower = compaction.lower.iter().chain(&compaction.targets);
        Self {
            tree,
            compaction,
            options,
            upper: files(compaction.level, compaction.upper.iter().collect()),
            lower: files(target, lower.collect()),
            file_bytes: target_file_bytes(tree, options, target),
            is_in_place: Placement::of(tree, options).is_in_place(target),
        }
    }

    /// Its upper files, in the order of their level.
    pub(crate) fn upper(&self) -> impl Iterator<Item = &FileSummary<K>> {
        self.upper.iter().map(|file| &**file)
    }

    /// The files of the target level that it rewrites or appends to, in the order of their keys.
    pub(crate) fn lower(&self) -> impl Iterator<Item = &FileSummary<K>> {
        self.lower.iter().map(|file| &**file)
    }

    /// Whether it puts values that are in transient logs in place.
    pub(crate) fn is_in_place(&self) -> bool {
        self.is_in_place
    }

    /// Whether it reads values in other files for the compaction filter: only in the last level, so that a value is not read
    /// once for each level.
    pub(crate) fn reads_values_apart(&self) -> bool {
        let last = self.tree.effective_last_level(self.options.size_ratio);
        self.compaction.claim.level >= last
    }

    /// Where the output is cut. `upper_bytes` estimates how many of the
    /// [cut bytes](FileSummary::merged_cut_bytes) of the upper files lie between two keys, or from an end on.
    pub(crate) fn cutter(
        &self,
        upper_bytes: impl Fn(Option<&K>, Option<&K>) -> u64,
    ) -> OutputCutter<K> {
        let into = (self.file_bytes, self.is_in_place);
        let lower: Vec<&FileSummary<K>> = self.lower().collect();
        let zones = Zones::new(&lower, &self.compaction.targets, into, upper_bytes);
        OutputCutter::new(self.tree, &self.compaction.claim, zones)
    }

    /// Which keys deeper levels, and the files that it appends to, may hold.
    pub(crate) fn deeper_levels(&self) -> DeeperLevels<K> {
        DeeperLevels::new(self.tree, &self.compaction.claim, &self.compaction.targets)
    }

    /// The filter units of the output while a bit costs `price`.
    pub(crate) fn filter_units(&self, price: f64) -> OutputUnits {
        let fractions = output_fractions(self.tree, self.compaction);
        let units = |fraction| filter_units(fraction, price, self.options);
        OutputUnits {
            written_anew: units(fractions.written_anew),
            appended: units(fractions.appended),
        }
    }

    /// Where its subcompactions end, except the last: the keys with which the next ones begin, ascending. There are at
    /// most `count_max` subcompactions, and no end if it is better done in one piece.
    pub(crate) fn subcompaction_ends(&self, count_max: usize) -> Vec<K> {
        let into = (self.file_bytes, self.is_in_place);
        let (above, deepest) = match (&self.upper[..], &self.lower[..]) {
            // Runs of level 0 overlap.
            (_, []) if self.compaction.level == 0 => return Vec::new(),
            (upper, []) => (&[][..], upper),
            both => both,
        };
        subcompactions::ends(above, deepest, &self.compaction.targets, into, count_max)
    }

    /// What it does with the values that it meets in a file of a transient log.
    pub(crate) fn transient_log_fate(&self, input: InputTransientLog) -> TransientLogFate {
        if self.is_in_place {
            TransientLogFate::InPlace
        } else if input.is_rewritten(self.options.medium_order, self.file_bytes) {
            TransientLogFate::Rewrite
        } else {
            TransientLogFate::Stay
        }
    }

    /// The length of a file of a new transient log.
    pub(crate) fn transient_file_bytes(&self) -> u64 {
        transient_file_bytes(self.file_bytes)
    }
}

//! What a job takes from the level that it writes into.
//!
//! I1. Every file there that overlaps an upper file of the job is among its inputs, and lies in its claim.
//! I2. Inputs are idle, and the claim overlaps no other claim of its level.

use std::ops::Range;

use super::plan::{Compaction, Plan, Purpose};
use super::rules::Rules;
use crate::policy::append::UpperBytes;
use crate::policy::summary::Claim;
use crate::policy::tree::Tree;

/// What a job into one level takes from that level, and the keys that it may write there.
pub(super) struct Inputs<K> {
    /// Positions in the level that the job writes into.
    pub(super) lower: Range<usize>,
    pub(super) claim: Claim<K>,
}

impl<K: Ord + Clone> Inputs<K> {
    /// For upper files over these keys into level `target`; `None` if a running job blocks them.
    pub(super) fn over(
        tree: &dyn Tree<K>,
        target: usize,
        smallest: &K,
        largest: &K,
    ) -> Option<Self> {
        let lower = tree.overlapping(target, smallest, largest);
        let overlap = tree.files(target, lower.clone());
        let smallest = overlap
            .first()
            .map_or(smallest, |file| smallest.min(&file.smallest));
        let largest = overlap
            .last()
            .map_or(largest, |file| largest.max(&file.largest));
        let is_free =
            !overlap.iter().any(|file| file.busy) && !tree.is_claimed(target, smallest, largest);
        is_free.then(|| Self {
            lower,
            claim: Claim {
                level: target,
                smallest: smallest.clone(),
                largest: largest.clone(),
            },
        })
    }

    /// Widens the claim by an upper file over these keys if all that it overlaps is in `lower` already.
    pub(super) fn add_if_free(&mut self, tree: &dyn Tree<K>, smallest: &K, largest: &K) -> bool {
        let overlap = tree.overlapping(self.claim.level, smallest, largest);
        let is_free = !overlap.is_empty()
            && self.lower.start <= overlap.start
            && overlap.end <= self.lower.end
            && !tree.is_claimed(self.claim.level, smallest, largest);
        if is_free {
            self.claim.smallest = self.claim.smallest.clone().min(smallest.clone());
            self.claim.largest = self.claim.largest.clone().max(largest.clone());
        }
        is_free
    }

    /// The compaction of the files at `upper` of `level` with these lower files. It rewrites each of them
    /// or appends to it.
    pub(super) fn into_compaction(
        self,
        tree: &dyn Tree<K>,
        rules: Rules<'_>,
        level: usize,
        upper: &[usize],
    ) -> Plan<K> {
        let files = upper.iter().map(|&file| tree.file(level, file));
        let lower = tree.files(self.claim.level, self.lower);
        let is_in_place = rules.placement.is_in_place(self.claim.level);
        let upper = UpperBytes::of(files.clone(), is_in_place);
        let appended = rules.appends.to(tree, self.claim.level, &lower, upper);
        let chosen = |appends: bool| {
            let chosen = lower.iter().zip(&appended);
            let chosen = chosen.filter(|(_, appended)| **appended == appends);
            chosen.map(|(file, _)| file.number).collect()
        };
        Plan::Compact(Compaction {
            level,
            upper: files.map(|file| file.number).collect(),
            lower: chosen(false),
            targets: chosen(true),
            claim: self.claim,
            purpose: Purpose::Tree,
        })
    }
}

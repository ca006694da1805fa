//! Where a merge closes one output file and begins the next.
//!
//! What is [appended](super::append) to one file ends where the next one's part begins. A new file ends when
//! it is full. It also ends early, once it is half full, where a file of the
//! level below its target ends: aligned files overlap fewer files when they are merged down
//! themselves, and every byte of overlap is a byte rewritten.

use std::borrow::Borrow;

use super::append::Zones;
use super::summary::{Claim, TreeSummary, overlapping};
use crate::base::FileNumber;

/// Decides, key by key, where the output of one merge is cut.
#[derive(Debug)]
pub(crate) struct OutputCutter<K> {
    zones: Zones<K>,
    /// The largest keys of the files below the target level, ascending.
    ends: Vec<K>,
    /// How many of `ends` lie before the last key asked.
    passed: usize,
}

impl<K: Ord + Clone> OutputCutter<K> {
    /// For the merge that claims `claim` in `tree` and has these zones.
    pub(crate) fn new(tree: &TreeSummary<K>, claim: &Claim<K>, zones: Zones<K>) -> Self {
        let below = tree.level(claim.level + 1);
        let below = &below[overlapping(below, &claim.smallest, &claim.largest)];
        Self {
            zones,
            ends: below.iter().map(|file| file.largest.clone()).collect(),
            passed: 0,
        }
    }

    /// The largest keys of the files below, ascending.
    pub(crate) fn ends(&self) -> &[K] {
        &self.ends
    }

    /// How long a new file becomes, in [cut bytes](super::cut_bytes), where the last key asked is.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.zones.file_bytes()
    }

    /// Where `key` goes, before which the output holds `bytes` of one file, as [`cut_bytes`](super::cut_bytes) counts them.
    ///
    /// To be asked once for every user key, in ascending order and before its first version is
    /// added, so that one user key never spans two files.
    pub(crate) fn place<Q: Ord + ?Sized>(&mut self, key: &Q, bytes: u64) -> Place
    where
        K: Borrow<Q>,
    {
        let is_elsewhere = self.zones.go_to(key);
        let crossed = self.ends[self.passed..]
            .iter()
            .take_while(|end| (*end).borrow() < key)
            .count();
        self.passed += crossed;
        let target = self.zones.target();
        let target_bytes = self.zones.file_bytes();
        let is_full = bytes >= target_bytes || crossed > 0 && bytes >= target_bytes / 2;
        Place {
            target,
            begins: is_elsewhere || target.is_none() && is_full,
        }
    }
}

/// Where a key of the output goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The file that it is appended to; a new file where there is none.
    pub(crate) target: Option<FileNumber>,
    /// Whether what came before goes to another file.
    pub(crate) begins: bool,
}

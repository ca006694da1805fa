//! Where a compaction closes one output file and begins the next.
//!
//! What is appended to one file ends where the [zone](super::zones) of the next one begins. A new file ends when it is
//! full. Once it is half full, it also ends where a file of the level below its target ends. Aligned files overlap
//! fewer files when they are compacted themselves, and every byte of overlap is a byte rewritten.

use std::borrow::Borrow;

use super::zones::Zones;
use crate::base::FileNumber;
use crate::policy::summary::Claim;
use crate::policy::tree::Tree;

/// Decides, key by key, where the output of one compaction is cut.
#[derive(Debug)]
pub(crate) struct OutputCutter<K> {
    zones: Zones<K>,
    /// The largest keys of the files below the target level, ascending.
    ends: Vec<K>,
    /// How many of `ends` lie before the last key asked.
    passed: usize,
}

impl<K: Ord + Clone> OutputCutter<K> {
    /// For the compaction that claims `claim` in `tree` and has these zones.
    pub(in crate::policy) fn new(tree: &dyn Tree<K>, claim: &Claim<K>, zones: Zones<K>) -> Self {
        let below = tree.overlapping(claim.level + 1, &claim.smallest, &claim.largest);
        let below = tree.files(claim.level + 1, below);
        Self {
            zones,
            ends: below.iter().map(|file| file.largest.clone()).collect(),
            passed: 0,
        }
    }

    /// For a bulk load: new files of `file_bytes`.
    pub(crate) fn of_bulk_load(file_bytes: u64) -> Self {
        Self {
            zones: Zones::one(file_bytes),
            ends: Vec::new(),
            passed: 0,
        }
    }

    /// The largest keys of the files below, ascending.
    pub(crate) fn ends(&self) -> &[K] {
        &self.ends
    }

    /// The length of a new file, in [cut bytes](crate::policy::cut_bytes), at the last key asked.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.zones.file_bytes()
    }

    /// Where `key` goes. The output holds `bytes` of the present file before it, as
    /// [`cut_bytes`](crate::policy::cut_bytes) counts them.
    ///
    /// The caller asks once for every user key, in ascending order and before it adds the key's first version, so that
    /// one user key never spans two files.
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
    /// The file that it is appended to; a new file if there is none.
    pub(crate) target: Option<FileNumber>,
    /// Whether the previous key goes to another file.
    pub(crate) begins: bool,
}

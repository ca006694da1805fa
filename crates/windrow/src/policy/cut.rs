//! Where a merge closes one output file and begins the next.
//!
//! A file ends when it is full. It also ends early, once it is half full, where a file of the
//! level below its target ends: aligned files overlap fewer files when they are merged down
//! themselves, and every byte of overlap is a byte rewritten.

use std::borrow::Borrow;

use super::summary::{Claim, TreeSummary, overlapping};

/// Decides, key by key, where the output of one merge is cut.
#[derive(Debug)]
pub(crate) struct OutputCutter<K> {
    target_bytes: u64,
    /// The largest keys of the files below the target level, ascending.
    ends: Vec<K>,
    /// How many of `ends` lie before the last key asked.
    passed: usize,
}

impl<K: Ord + Clone> OutputCutter<K> {
    /// Cuts files of about `target_bytes` for the merge that claims `claim` in `tree`.
    pub(crate) fn new(tree: &TreeSummary<K>, claim: &Claim<K>, target_bytes: u64) -> Self {
        let below = tree.level(claim.level + 1);
        let below = &below[overlapping(below, &claim.smallest, &claim.largest)];
        Self {
            target_bytes,
            ends: below.iter().map(|file| file.largest.clone()).collect(),
            passed: 0,
        }
    }

    /// Whether the file that holds `bytes` so far ends before `key`.
    ///
    /// To be asked once for every user key, in ascending order and before its first version is
    /// added, so that one user key never spans two files.
    pub(crate) fn ends_before<Q: Ord + ?Sized>(&mut self, key: &Q, bytes: u64) -> bool
    where
        K: Borrow<Q>,
    {
        let crossed = self.ends[self.passed..]
            .iter()
            .take_while(|end| (*end).borrow() < key)
            .count();
        self.passed += crossed;
        bytes >= self.target_bytes || crossed > 0 && bytes >= self.target_bytes / 2
    }
}

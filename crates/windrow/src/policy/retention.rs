//! Which entries a merge keeps.
//!
//! A merge meets the versions of a key newest first. A version is *superseded* when nobody can
//! read it: no reader stands between it and the next newer version. A tombstone is *spent* when
//! every reader sees it or something newer, and no deeper level can hold a version that it hides.
//!
//! The next newer version counts whether or not it was kept itself: behind a spent tombstone every
//! older version is superseded, because no reader stands below the tombstone.
//!
//! A flush goes by the same rule and says that deeper levels may hold every key.

use std::borrow::Borrow;

use super::summary::{Claim, FileSummary, TreeSummary, overlapping};
use crate::base::{FileNumber, SequenceNumber, Trailer};

/// Where readers stand, now and from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReadPoints {
    /// The sequence numbers of live snapshots, ascending. Reads under way are not among them: they
    /// hold the state that they began with, and its files.
    snapshots: Box<[SequenceNumber]>,
    /// The newest visible sequence number: later readers stand here or higher.
    visible: SequenceNumber,
}

/// What happens to an entry, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It stays.
    Keep,
    /// Nobody can read it: a newer version hides it from every reader.
    Superseded,
    /// A tombstone with nothing left to hide.
    Spent,
}

impl ReadPoints {
    /// Readers at `snapshots`, in any order, and at `visible` or later.
    ///
    /// `visible` must be taken before `snapshots` is collected; a snapshot registered later then
    /// stands at `visible` or higher.
    pub(crate) fn new(mut snapshots: Vec<SequenceNumber>, visible: SequenceNumber) -> Self {
        snapshots.sort_unstable();
        snapshots.dedup();
        Self {
            snapshots: snapshots.into(),
            visible,
        }
    }

    /// Whether a reader stands, or may come to stand, from `sequence` to before `newer`.
    fn sees(&self, sequence: SequenceNumber, newer: SequenceNumber) -> bool {
        if newer > self.visible {
            return true;
        }
        let position = self.snapshots.partition_point(|&point| point < sequence);
        self.snapshots
            .get(position)
            .is_some_and(|&point| point < newer)
    }

    /// The lowest place where a reader stands or may come to stand.
    fn oldest(&self) -> SequenceNumber {
        let oldest = self.snapshots.first().copied().unwrap_or(self.visible);
        oldest.min(self.visible)
    }
}

/// Decides about one entry of a merge.
///
/// `newer` is the sequence number of the next newer version of the same key that this merge met,
/// kept or not. `deeper` tells whether a level below the merge's target may hold the key; it is
/// asked only for a tombstone that every reader sees.
pub(crate) fn keep(
    entry: Trailer,
    newer: Option<SequenceNumber>,
    readers: &ReadPoints,
    deeper: impl FnOnce() -> bool,
) -> Verdict {
    let sequence = entry.sequence();
    if newer.is_some_and(|newer| !readers.sees(sequence, newer)) {
        Verdict::Superseded
    } else if entry.is_tombstone() && sequence <= readers.oldest() && !deeper() {
        Verdict::Spent
    } else {
        Verdict::Keep
    }
}

/// Answers whether a level below a merge's target may hold a key, or a file that the merge appends to, for
/// keys that ascend.
///
/// Each level keeps a position that only moves forward, so a whole merge costs one walk.
#[derive(Debug)]
pub(crate) struct DeeperLevels<K> {
    levels: Vec<Level<K>>,
}

#[derive(Debug)]
struct Level<K> {
    ranges: Vec<(K, K)>,
    position: usize,
}

impl<K: Ord + Clone> DeeperLevels<K> {
    /// For the merge that claims `claim` in `tree`, the tree that it started from, and appends to `targets`.
    ///
    /// It stays right while the merge runs: what other jobs move deeper meanwhile comes from files
    /// that do not overlap this merge's inputs.
    pub(crate) fn new(tree: &TreeSummary<K>, claim: &Claim<K>, targets: &[FileNumber]) -> Self {
        let levels = tree.levels.iter().enumerate().skip(claim.level);
        let levels = levels.map(|(level, files)| {
            let within = &files[overlapping(files, &claim.smallest, &claim.largest)];
            let counts =
                |file: &&FileSummary<K>| level > claim.level || targets.contains(&file.number);
            let ranges = within.iter().filter(counts);
            Level {
                ranges: ranges
                    .map(|file| (file.smallest.clone(), file.largest.clone()))
                    .collect(),
                position: 0,
            }
        });
        Self {
            levels: levels.collect(),
        }
    }

    /// Whether a file may hold `key`, which is not less than any key asked before.
    pub(crate) fn may_hold<Q: Ord + ?Sized>(&mut self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.levels.iter_mut().any(|level| {
            let rest = &level.ranges[level.position..];
            level.position += rest
                .iter()
                .take_while(|(_, largest)| largest.borrow() < key)
                .count();
            level
                .ranges
                .get(level.position)
                .is_some_and(|(smallest, _)| smallest.borrow() <= key)
        })
    }
}

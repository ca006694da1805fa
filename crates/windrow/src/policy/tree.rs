//! The tree of one keyspace as the policy sees it.
//!
//! A list of all files would make each plan as expensive as the tree is large. So the policy asks for sums over levels,
//! for the files that overlap some keys, and for bounds of neighbouring files: a *chunk*. It looks at the files of a
//! chunk only if the bounds do not exclude all of them.
//!
//! The engine answers from sums that its versions keep for each level and chunk. Tests and the simulation use a list of
//! files, the [`TreeSummary`](super::TreeSummary). It answers with one chunk for each level and for all logs, without bounds. The plans
//! are the same, except in trees with values in transient logs: there the engine estimates what a level pins, and
//! compares the cost of a neighbour with the mean of its chunk, not of its level.

use std::borrow::Cow;
use std::fmt::Debug;
use std::ops::Range;

use crate::base::SequenceNumber;

use super::moved_values::MovedValues;
use super::summary::{Claim, FileSummary};
use crate::value::{LogSummary, SummedLogs};

/// The tree of one keyspace, as numbers and boundaries. Positions of files count from 0 in each level.
pub(crate) trait Tree<K: Clone>: Debug {
    /// The nominal number of levels below level 0, at least 1: the L of the capacities.
    fn level_count(&self) -> usize;

    /// The keys that running jobs may write.
    fn claims(&self) -> &[Claim<K>];

    /// What a level may hold beyond its capacity until it has to shrink, indexed by level;
    /// nothing past the end. See [`next_allowed`](super::next_allowed).
    fn allowed(&self) -> &[u64];

    /// How many table files there may be; in fact up to twice as many.
    fn files_max(&self) -> u64;

    /// How many files of transient logs there are.
    fn transient_files(&self) -> u64;

    /// No reader reads at a lower sequence number, now or later.
    fn oldest_reader(&self) -> SequenceNumber;

    /// Whether nothing is written to the keyspace now.
    fn is_idle(&self) -> bool;

    /// Bytes that levels above the tree keep of transient logs; 0 unless it is the lower part of a simulated one.
    fn pinned_above(&self) -> u64 {
        0
    }

    /// Sums over the value logs, and the GC outputs that replace some of them.
    fn log_sums(&self) -> SummedLogs;

    /// Those of them whose garbage collection has failed.
    fn failed_logs(&self) -> Cow<'_, [LogSummary]>;

    /// The number of chunks of neighbouring logs.
    fn log_chunks(&self) -> usize;

    /// Sums over the logs of a chunk. Failures do not count.
    fn log_chunk_sums(&self, chunk: usize) -> SummedLogs;

    /// The logs of a chunk, by number.
    fn logs(&self, chunk: usize) -> Cow<'_, [LogSummary]>;

    /// The bytes that all files refer to through relocation tables.
    fn moved_bytes(&self) -> u64;

    /// What all files refer to in each value log, to estimate what one file refers to through relocation tables.
    fn moved_values(&self) -> &MovedValues;

    /// The positions of the busy files of `level`, which is not 0.
    fn busy(&self, level: usize) -> Vec<usize>;

    /// The number of levels, level 0 included. Deeper levels are empty.
    fn depth(&self) -> usize;

    /// The number of files of `level`.
    fn len(&self, level: usize) -> usize;

    /// A file: level 0 by age, newest first; deeper levels by key.
    fn file(&self, level: usize, position: usize) -> Cow<'_, FileSummary<K>>;

    /// The positions of the files of `level`, which is not 0, that overlap these keys.
    fn overlapping(&self, level: usize, smallest: &K, largest: &K) -> Range<usize>;

    /// A sum over all files of `level`.
    fn sum(&self, level: usize, of: Sum) -> u64;

    /// The same without busy files.
    fn idle_sum(&self, level: usize, of: Sum) -> u64;

    /// A sum over these files of `level`.
    fn sum_within(&self, level: usize, files: Range<usize>, of: Sum) -> u64;

    /// About how many of the bytes that idle files hold belong to entries that have expired by now. Readers of earlier
    /// moments may see some of them.
    fn expired_bytes(&self) -> u64;

    /// Whether a reader reads at an earlier moment than now.
    fn has_earlier_readers(&self) -> bool {
        false
    }

    /// What the files of `level` hold, less what their newer segments supersede.
    fn held_once(&self, level: usize) -> f64;

    /// The [cost](crate::table::cost_per_byte) of a compaction of one file into the next level.
    fn cost(&self, level: usize, position: usize) -> f64;

    /// The number of chunks of `level`.
    fn chunks(&self, level: usize) -> usize;

    /// The files of a chunk of `level`.
    fn chunk(&self, level: usize, chunk: usize) -> Range<usize>;

    /// The chunk of `level` with the file at `position`.
    fn chunk_of(&self, level: usize, position: usize) -> usize;

    /// Bounds of the files of a chunk.
    fn bounds(&self, level: usize, chunk: usize) -> Bounds;

    /// At most the least [cost](Self::cost) in a chunk.
    fn least_cost(&self, level: usize, chunk: usize) -> f64;

    /// Whether some file of `level` may have several segments.
    fn is_segmented(&self, level: usize) -> bool;

    /// These files of `level`.
    fn files(&self, level: usize, positions: Range<usize>) -> Vec<Cow<'_, FileSummary<K>>> {
        let file = |position| self.file(level, position);
        positions.map(file).collect()
    }

    /// A sum over all files.
    fn total(&self, of: Sum) -> u64 {
        let levels = (0..self.depth()).map(|level| self.sum(level, of));
        levels.fold(0, u64::saturating_add)
    }

    /// The logical bytes of `level`, busy files included.
    fn logical_bytes(&self, level: usize) -> u64 {
        self.sum(level, Sum::LogicalBytes)
    }

    /// The deepest level that holds anything, at least 1.
    fn deepest_level(&self) -> usize {
        let deepest = (0..self.depth()).rev().find(|&level| self.len(level) > 0);
        deepest.unwrap_or(0).max(1)
    }

    /// The *effective* last level: the deepest that holds at least
    /// `1 / 2T` of all bytes. The nominal last level may be empty or hold a few files (D3).
    fn effective_last_level(&self, size_ratio: f64) -> usize {
        let total = self.total(Sum::HeldBytes);
        let counts = |level: &usize| {
            let bytes = self.sum(*level, Sum::HeldBytes);
            bytes > 0 && bytes as f64 * 2.0 * size_ratio >= total as f64
        };
        let last = (1..self.depth()).rev().find(counts);
        last.unwrap_or_else(|| self.deepest_level())
    }
}

/// A sum over files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sum {
    /// The bytes on disk of tables.
    Bytes,
    /// The bytes on disk that they hold: tables, and referenced values in value files.
    HeldBytes,
    /// The bytes on disk that they keep: also the garbage of transient logs.
    KeptBytes,
    /// Of transient logs alone, what they keep.
    PinnedBytes,
    /// Referenced bytes in value logs.
    LogBytes,
    LogicalBytes,
    /// See [`cut_bytes`](super::cut_bytes).
    CutBytes,
    Entries,
    Tombstones,
}

impl Sum {
    /// Each of them, in the order of their numbers.
    pub(crate) const ALL: [Self; 9] = [
        Self::Bytes,
        Self::HeldBytes,
        Self::KeptBytes,
        Self::PinnedBytes,
        Self::LogBytes,
        Self::LogicalBytes,
        Self::CutBytes,
        Self::Entries,
        Self::Tombstones,
    ];
}

/// Bounds of the files of a chunk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// At least the largest part of tombstones, and of what its range tombstones hide, over the entries of a file.
    pub(crate) tombstone_part_max: f64,
    /// At least the most segments of a file.
    pub(crate) segments_max: usize,
    /// At least the most visits of a file.
    pub(crate) visits_max: u64,
    /// At most the fewest bytes of a table.
    pub(crate) bytes_min: u64,
    /// Of files with several segments: at most the fewest bytes, and at least the largest superseded part.
    pub(crate) segmented_bytes_min: u64,
    pub(crate) superseded_part_max: f64,
    /// Whether a file may refer to transient logs, or to value logs.
    pub(crate) may_have_transient: bool,
    pub(crate) may_have_logs: bool,
    /// At least the largest part of expired entries of a file.
    pub(crate) expired_part_max: f64,
    /// Whether nobody may need an entry of a file.
    pub(crate) may_be_expired: bool,
}

impl Bounds {
    /// These exclude nothing.
    pub(super) const NONE: Self = Self {
        tombstone_part_max: 1.0,
        segments_max: usize::MAX,
        visits_max: u64::MAX,
        bytes_min: 0,
        segmented_bytes_min: 0,
        superseded_part_max: 1.0,
        may_have_transient: true,
        may_have_logs: true,
        expired_part_max: 1.0,
        may_be_expired: true,
    };
}

impl<K: Ord + Clone> dyn Tree<K> + '_ {
    /// Whether a running job may write into `level` between these keys.
    pub(crate) fn is_claimed(&self, level: usize, smallest: &K, largest: &K) -> bool {
        self.claims().iter().any(|claim| {
            claim.level == level && claim.smallest <= *largest && *smallest <= claim.largest
        })
    }

    /// Whether a level below `level` holds a file that overlaps these keys.
    pub(crate) fn overlaps_below(&self, level: usize, smallest: &K, largest: &K) -> bool {
        let mut below = level + 1..self.depth();
        below.any(|level| !self.overlapping(level, smallest, largest).is_empty())
    }
}

impl<K: Clone> FileSummary<K> {
    /// The bytes on disk that it holds.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.add_up(Sum::HeldBytes)
    }

    pub(super) fn add_up(&self, of: Sum) -> u64 {
        let with_logs = |bytes: u64| {
            self.bytes
                .saturating_add(bytes)
                .saturating_add(self.log_bytes)
        };
        match of {
            Sum::Bytes => self.bytes,
            Sum::HeldBytes => with_logs(self.transient_bytes),
            Sum::KeptBytes => with_logs(self.pinned_bytes),
            Sum::PinnedBytes => self.pinned_bytes,
            Sum::LogBytes => self.log_bytes,
            Sum::LogicalBytes => self.logical_bytes,
            Sum::CutBytes => self.cut_bytes(),
            Sum::Entries => self.entries,
            Sum::Tombstones => self.tombstones,
        }
    }
}

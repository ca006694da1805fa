//! The outcome of a simulation.

use crate::base::{Cause, LevelIoStats};
use crate::options::KeyspaceOptions;

/// Bytes moved since the beginning.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct IoStats {
    /// Keys and values that the user gave.
    pub user: u64,
    /// Written to the write-ahead log.
    pub wal: u64,
    /// Large values written to value logs.
    pub value_logs: u64,
    /// Read by garbage collection.
    pub gc_read: u64,
    /// Written by it.
    pub gc_written: u64,
    /// Into each level, level 0 first.
    pub levels: Vec<LevelIoStats>,
}

impl IoStats {
    pub(super) fn add(&mut self, level: usize, cause: Cause, bytes: u64) {
        if self.levels.len() <= level {
            self.levels.resize_with(level + 1, LevelIoStats::default);
        }
        self.levels[level].add(cause, bytes);
    }

    /// All bytes written.
    pub fn written(&self) -> u64 {
        let levels = self.levels.iter().map(LevelIoStats::written);
        self.wal + self.value_logs + self.gc_written + levels.sum::<u64>()
    }

    /// Bytes written for each byte given; 0 where none was.
    pub fn write_amplification(&self) -> f64 {
        if self.user == 0 {
            return 0.0;
        }
        self.written() as f64 / self.user as f64
    }
}

/// The shape of a level.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct LevelShape {
    /// Table files.
    pub files: usize,
    /// Segments in them.
    pub segments: usize,
    /// Bytes in them.
    pub bytes: u64,
    /// Entries, tombstones and operands included.
    pub entries: u64,
    /// Tombstones, those of ranges included.
    pub tombstones: u64,
    /// Operands of a merge operator.
    pub operands: u64,
    /// Those of the tombstones that delete a range.
    pub range_tombstones: u64,
    /// Bytes of entries that have expired, with those in value files.
    pub expired_bytes: u64,
    /// The capacity; for level 0 the memory of the memtables that its runs come from.
    pub capacity: u64,
    /// How many segments a file may have.
    pub segment_limit: usize,
}

/// The space of value files.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ValueSpace {
    /// Transient log files.
    pub transient_files: u64,
    /// Bytes in them.
    pub transient_log_bytes: u64,
    /// Those that no entry refers to.
    pub transient_log_garbage_bytes: u64,
    /// Value logs and GC outputs.
    pub log_files: u64,
    /// Bytes in them, relocation tables included.
    pub log_bytes: u64,
    /// Those of values that no entry refers to.
    pub value_log_garbage_bytes: u64,
}

/// How the entries of a level are spread over runs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub(super) struct Spread {
    entries: f64,
    /// The sum over segments of their entries times a logarithm: of the entries that there would be if the segment
    /// covered all of the key space.
    logarithms: f64,
}

impl Spread {
    /// A segment of this many entries in that part of the key space.
    pub(super) fn segment(entries: f64, width: f64) -> Self {
        let logarithms = if entries > 0.0 && width > 0.0 {
            entries * (entries / width).ln()
        } else {
            0.0
        };
        Self {
            entries,
            logarithms,
        }
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self {
            entries: self.entries + other.entries,
            logarithms: self.logarithms + other.logarithms,
        }
    }

    pub(super) fn times(self, times: f64) -> Self {
        Self {
            entries: self.entries * times,
            logarithms: self.logarithms * times,
        }
    }

    /// The same runs with this many times the entries.
    pub(super) fn filled(self, times: f64) -> Self {
        if times <= 0.0 {
            return Self::default();
        }
        Self {
            entries: self.entries * times,
            logarithms: (self.logarithms + self.entries * times.ln()) * times,
        }
    }

    /// How many times the entries of `other` these are; 1 where one of both has none.
    pub(super) fn entries_over(self, other: Self) -> f64 {
        if self.entries > 0.0 && other.entries > 0.0 {
            self.entries / other.entries
        } else {
            1.0
        }
    }

    pub(super) fn sum<'s>(spreads: impl IntoIterator<Item = &'s Self>) -> Self {
        let spreads = spreads.into_iter();
        spreads.fold(Self::default(), |sum, own| sum.and(*own))
    }

    /// The entropy of the parts that runs have of all entries that a key could be among, averaged over keys.
    pub(super) fn entropy(self) -> f64 {
        if self.entries > 0.0 {
            self.entries.ln() - self.logarithms / self.entries
        } else {
            0.0
        }
    }
}

/// The tree after some writes, and what has happened until then.
#[derive(Debug, Clone, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Sample {
    /// Writes until then.
    pub writes: u64,
    /// Flushes until then.
    pub flushes: u64,
    /// Compactions, trivial moves and changes of the number of levels until then.
    pub jobs: u64,
    /// Garbage collections until then.
    pub garbage_collections: u64,
    /// The nominal number of levels.
    pub level_count: usize,
    /// Each level, level 0 first.
    pub levels: Vec<LevelShape>,
    /// Bytes moved until then.
    pub io_stats: IoStats,
    /// Bytes of live keys and values.
    pub live_bytes: u64,
    /// The space of value files.
    pub values: ValueSpace,
    /// Bytes of tables and value files over those that they would have without superseded entries.
    pub space_amplification: f64,
    /// Segments whose range a key is in, averaged over the key space.
    pub runs_per_seek: f64,
    /// The same, level by level.
    pub runs: Vec<f64>,
    /// The sum of that over all flushes.
    pub(super) runs_sums: Vec<f64>,
    /// The effective last level.
    pub(super) effective_last: usize,
    /// Each level, on average while the last eighth was written.
    pub(super) spreads: Vec<Spread>,
    /// Bytes of filters in memory; 0 unless the load asks for them.
    pub filter_bytes: u64,
    /// False-positive reads of a get of an absent key, on average over keys and while the last eighth was
    /// written; 0 unless the load asks for filters.
    pub false_positive_reads: f64,
    /// The largest `space_amplification` since the last sample.
    pub space_amplification_max: f64,
    /// The most runs of level 0, and of each deeper level the most segments of a file, since the last sample.
    pub runs_max: Vec<usize>,
}

/// The outcome of a simulation.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Outcome {
    /// The options.
    pub options: KeyspaceOptions,
    /// One after each further eighth of the writes, one after the inserts, and one at the end.
    pub samples: Vec<Sample>,
}

/// What happened between two samples.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Interval {
    /// Bytes written for each byte given.
    pub write_amplification: f64,
    /// Segments that a seek visits in each level, averaged over keys and time.
    pub runs: Vec<f64>,
    /// The maximum; see [`Sample::runs_max`].
    pub runs_max: Vec<usize>,
    /// The maximum.
    pub space_amplification_max: f64,
    /// Bytes moved.
    pub io_stats: IoStats,
}

impl Outcome {
    /// The whole load.
    pub fn cumulative(&self) -> Interval {
        self.between(None, self.samples.len().saturating_sub(1))
    }

    /// What happened after the last sample with at most this many writes.
    pub fn since(&self, writes: u64) -> Interval {
        let from = self
            .samples
            .iter()
            .rposition(|sample| sample.writes <= writes);
        self.between(from, self.samples.len().saturating_sub(1))
    }

    /// What happened after the sample `from`, or from the beginning, until the sample `to`.
    fn between(&self, from: Option<usize>, to: usize) -> Interval {
        let none = Sample::default();
        let last = self.samples.get(to).unwrap_or(&none);
        let first = from
            .and_then(|from| self.samples.get(from))
            .unwrap_or(&none);
        let between = self
            .samples
            .iter()
            .take(to + 1)
            .skip(from.map_or(0, |it| it + 1));
        let io_stats = last.io_stats.since(&first.io_stats);
        let flushes = (last.flushes - first.flushes).max(1) as f64;
        Interval {
            write_amplification: io_stats.write_amplification(),
            runs: last
                .runs_sums
                .iter()
                .enumerate()
                .map(|(level, sum)| (sum - first.runs_sums.get(level).unwrap_or(&0.0)) / flushes)
                .collect(),
            runs_max: between
                .clone()
                .fold(Vec::new(), |max, sample| max_of_each(max, &sample.runs_max)),
            space_amplification_max: between
                .map(|sample| sample.space_amplification_max)
                .fold(0.0, f64::max),
            io_stats,
        }
    }
}

impl Interval {
    /// Segments that a seek visits, averaged over keys and time.
    pub fn runs_per_seek(&self) -> f64 {
        self.runs.iter().sum()
    }

    /// The maximum of each level, added up.
    pub fn runs_per_seek_max(&self) -> usize {
        self.runs_max.iter().sum()
    }
}

/// The item of `level`; the default past the end.
pub(super) fn at<T: Copy + Default>(items: &[T], level: usize) -> T {
    items.get(level).copied().unwrap_or_default()
}

/// The larger of each two.
pub(super) fn max_of_each(mut max: Vec<usize>, other: &[usize]) -> Vec<usize> {
    max.resize(max.len().max(other.len()), 0);
    for (max, other) in max.iter_mut().zip(other) {
        *max = (*max).max(*other);
    }
    max
}

impl IoStats {
    /// The bytes moved after `earlier`.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        self.combined(earlier, |now, before| now - before)
    }

    /// The sum of both.
    pub(super) fn and(&self, other: &Self) -> Self {
        self.combined(other, |one, other| one + other)
    }

    fn combined(&self, other: &Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        let levels = self.levels.len().max(other.levels.len());
        let level = |level| at(&self.levels, level).combined(at(&other.levels, level), &combine);
        Self {
            user: combine(self.user, other.user),
            wal: combine(self.wal, other.wal),
            value_logs: combine(self.value_logs, other.value_logs),
            gc_read: combine(self.gc_read, other.gc_read),
            gc_written: combine(self.gc_written, other.gc_written),
            levels: (0..levels).map(level).collect(),
        }
    }
}

//! Layer 2: how long operations take.
//!
//! Short operations are too many to time all: two looks at the clock would cost a get a tenth. So the engine times one of [`Options::latency_interval`](crate::Options::latency_interval) of them, and fewer moves of cursors. Long ones are all timed.
//! The counts of a histogram are atomic and shared: so few operations reach it that threads do not contend. Known crates
//! for histograms take a lock or a queue for that.
//!
//! A histogram has four buckets for each power of two nanoseconds. So a quantile is at most a quarter too large.
//!
//! Concurrency: relaxed atomics; a snapshot may lack a few operations.

use std::array;
use std::sync::Arc;
use std::time::Duration;

use crate::base::Striped;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::runtime::Runtime;

/// An operation whose latency is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Operation {
    /// A get of one key, one of several in a `multi_get` included.
    Get,
    /// A write or a commit, with its stalls and the sync that it asks for.
    Commit,
    /// A move of a cursor to a key or to an end.
    Seek,
    /// A step of a cursor to the next entry.
    Next,
    /// A sync of the write-ahead log.
    Sync,
    /// A flush.
    Flush,
    /// A compaction.
    Compaction,
    /// A garbage collection.
    GarbageCollection,
    /// One wait of a writer.
    Stall,
}

impl Operation {
    /// All operations.
    pub const ALL: [Self; 9] = [
        Self::Get,
        Self::Commit,
        Self::Seek,
        Self::Next,
        Self::Sync,
        Self::Flush,
        Self::Compaction,
        Self::GarbageCollection,
        Self::Stall,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Commit => "commit",
            Self::Seek => "seek",
            Self::Next => "next",
            Self::Sync => "sync",
            Self::Flush => "flush",
            Self::Compaction => "compaction",
            Self::GarbageCollection => "garbage_collection",
            Self::Stall => "stall",
        }
    }

    /// Whether only some of them are timed.
    pub fn is_sampled(self) -> bool {
        matches!(self, Self::Get | Self::Commit | Self::Seek | Self::Next)
    }
}

/// How long an operation has taken since the open.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct LatencyStats {
    /// The operation.
    pub operation: Operation,
    /// How many were timed. Of some operations only one of many is ([`Operation::is_sampled`]).
    pub timed: u64,
    /// The sum of their times, in nanoseconds.
    pub nanos: u64,
    /// The longest of them, in nanoseconds.
    pub longest_nanos: u64,
    /// How many took at most so many nanoseconds and longer than the bound before: pairs of a bound and a count, without
    /// counts of 0, ascending.
    pub buckets: Vec<(u64, u64)>,
}

impl LatencyStats {
    /// The bounds of the histogram in [`Stats::to_prometheus`](crate::Stats::to_prometheus), in nanoseconds: powers of 4 from
    /// 256 nanoseconds to 275 seconds. No bucket has times on both sides of one.
    pub const BOUNDS_NANOS: [u64; 16] = {
        let mut bounds = [256; 16];
        let mut index = 1;
        while index < bounds.len() {
            bounds[index] = bounds[index - 1] * 4;
            index += 1;
        }
        bounds
    };

    /// How many of the operations took less than `nanos` nanoseconds, which is one of the
    /// [bounds](Self::BOUNDS_NANOS); for other numbers, those in the buckets that end below it.
    pub fn count_below(&self, nanos: u64) -> u64 {
        let below = self.buckets.iter().take_while(|(bound, _)| *bound < nanos);
        below.map(|(_, count)| count).sum()
    }

    /// The time that a fraction `quantile` of the operations did not exceed, in nanoseconds: 0.99 for the slowest of a
    /// hundred. It is at most a quarter too large. 0 if none was timed.
    pub fn quantile_nanos(&self, quantile: f64) -> u64 {
        let rank = (self.timed as f64 * quantile.clamp(0.0, 1.0)).ceil();
        let mut below = 0;
        for &(bound, count) in &self.buckets {
            below += count;
            if below as f64 >= rank {
                return bound.min(self.longest_nanos);
            }
        }
        self.longest_nanos
    }
}

/// Buckets: each number up to 3, and four for each higher power of two.
const BUCKETS: usize = 252;

/// The bucket of a time.
fn bucket_of(nanos: u64) -> usize {
    match nanos.checked_ilog2() {
        None | Some(0 | 1) => usize::from(nanos.to_le_bytes()[0]),
        Some(power) => {
            let quarter = (nanos >> (power - 2)) & 3;
            4 * (power as usize - 1) + usize::from(quarter.to_le_bytes()[0])
        }
    }
}

/// The longest time in a bucket.
fn bound_of(bucket: usize) -> u64 {
    if bucket < 4 {
        return bucket as u64;
    }
    let (power, quarter) = (bucket / 4 + 1, bucket % 4);
    let next = (5 + quarter as u128) << (power - 2);
    u64::try_from(next - 1).unwrap_or(u64::MAX)
}

/// The times of one operation.
#[derive(Debug)]
struct Histogram {
    nanos: AtomicU64,
    longest_nanos: AtomicU64,
    buckets: [AtomicU64; BUCKETS],
}

impl Histogram {
    fn new() -> Self {
        Self {
            nanos: AtomicU64::new(0),
            longest_nanos: AtomicU64::new(0),
            buckets: array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    fn add(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
        self.longest_nanos.fetch_max(nanos, Ordering::Relaxed);
        self.buckets[bucket_of(nanos)].fetch_add(1, Ordering::Relaxed);
    }

    fn stats(&self, operation: Operation) -> LatencyStats {
        let counts = self.buckets.iter().enumerate();
        let counts =
            counts.map(|(bucket, count)| (bound_of(bucket), count.load(Ordering::Relaxed)));
        let buckets: Vec<_> = counts.filter(|(_, count)| *count > 0).collect();
        LatencyStats {
            operation,
            timed: buckets.iter().map(|(_, count)| count).sum(),
            nanos: self.nanos.load(Ordering::Relaxed),
            longest_nanos: self.longest_nanos.load(Ordering::Relaxed),
            buckets,
        }
    }
}

/// A step of a cursor takes a tenth of a get or less, and to time one takes as much as for a get. So of the moves of cursors
/// only one of this many times as many is timed, unless all are.
const MOVES: u64 = 4;

/// The counters of turns in [`Latencies`].
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sampled {
    Commit,
    /// Of cursors: which of their moves are timed.
    Cursor,
}

/// The times of all operations of an open database, and the turns of those that are timed.
///
/// Each get reads the mask, and each cursor counts a reference. The alignment keeps both on lines of their own.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Latencies {
    runtime: Arc<dyn Runtime>,
    /// One of so many short operations is timed: a power of two; 0 if none is.
    interval: u64,
    /// A number without these bits is that of an operation to time.
    mask: u64,
    /// The same as `interval` for moves of cursors.
    moves_interval: u64,
    turns: Striped<2>,
    histograms: Box<[Histogram]>,
}

impl Latencies {
    /// Times one of `interval` short operations, rounded up to a power of two, and fewer moves of cursors; nothing at all if
    /// it is 0.
    pub(crate) fn new(runtime: &Arc<dyn Runtime>, interval: u32) -> Self {
        let is_on = interval > 0;
        let histograms = Operation::ALL.iter().filter(|_| is_on);
        let histograms = histograms.map(|_| Histogram::new());
        let interval = match interval {
            0 => 0,
            some => u64::from(some.min(1 << 30)).next_power_of_two(),
        };
        Self {
            runtime: Arc::clone(runtime),
            interval,
            mask: interval.wrapping_sub(1),
            moves_interval: match interval {
                0 | 1 => interval,
                some => (some * MOVES).min(1 << 30),
            },
            turns: Striped::new(),
            histograms: histograms.collect(),
        }
    }

    /// Whether anything is timed.
    pub(crate) fn are_on(&self) -> bool {
        self.interval > 0
    }

    /// Takes the next turn, as [`begin_nth`](Self::begin_nth) with its number.
    pub(crate) fn begin(&self, turn: Sampled) -> Option<Duration> {
        if self.interval == 0 {
            return None;
        }
        self.begin_nth(self.turns.next(turn as usize))
    }

    /// Returns the time if the operation of this number is timed: its end is to be given to [`end`](Self::end). The caller
    /// counts its operations anyway, so that the others cost a few instructions.
    #[inline]
    pub(crate) fn begin_nth(&self, number: u64) -> Option<Duration> {
        if number & self.mask != 0 {
            return None;
        }
        self.start()
    }

    #[cold]
    fn start(&self) -> Option<Duration> {
        self.are_on().then(|| self.now())
    }

    /// Takes the next turn of cursors: this cursor times its move of this number first, counted from 1, and then each
    /// after [`moves_interval`](Self::moves_interval) others. 0 for never.
    pub(crate) fn first_timed_move(&self) -> u32 {
        if self.moves_interval == 0 {
            return 0;
        }
        let number = self.turns.next(Sampled::Cursor as usize) & (self.moves_interval - 1);
        u32::try_from(number).map_or(0, |number| number + 1)
    }

    /// One of so many moves of a cursor is timed.
    pub(crate) fn moves_interval(&self) -> u32 {
        u32::try_from(self.moves_interval).unwrap_or(u32::MAX)
    }

    #[cold]
    pub(crate) fn now(&self) -> Duration {
        self.runtime.now()
    }

    /// Notes that `operation` has taken from `start` until now.
    #[cold]
    pub(crate) fn end(&self, operation: Operation, start: Duration) {
        self.note(operation, self.runtime.now().saturating_sub(start));
    }

    /// Notes that `operation` has taken `time`.
    pub(crate) fn note(&self, operation: Operation, time: Duration) {
        if self.interval > 0 {
            self.histograms[operation as usize].add(time);
        }
    }

    /// What was timed so far, without operations of which none was.
    pub(crate) fn stats(&self) -> Vec<LatencyStats> {
        let all = Operation::ALL.iter().zip(&self.histograms);
        let stats = all.map(|(operation, histogram)| histogram.stats(*operation));
        stats.filter(|stats| stats.timed > 0).collect()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{BUCKETS, Histogram, Latencies, Operation, Sampled, bound_of, bucket_of};
    use crate::runtime::{Runtime, Threads};
    use std::sync::Arc;
    use std::time::Duration;

    #[test]
    fn each_time_is_in_the_bucket_of_the_next_bound() {
        let mut bound = 0;
        for bucket in 0..BUCKETS {
            let first = if bucket == 0 { 0 } else { bound + 1 };
            bound = bound_of(bucket);
            assert!(first <= bound);
            assert_eq!((bucket_of(first), bucket_of(bound)), (bucket, bucket));
            assert!(u128::from(bound) * 4 <= u128::from(first) * 5, "{bucket}");
        }
        assert_eq!(bound, u64::MAX);
    }

    #[test]
    fn quantiles_are_at_most_a_quarter_too_large() {
        let histogram = Histogram::new();
        assert_eq!(histogram.stats(Operation::Get).quantile_nanos(0.5), 0);
        for nanos in 1..=1000 {
            histogram.add(Duration::from_nanos(nanos));
        }
        let stats = histogram.stats(Operation::Get);
        assert_eq!((stats.timed, stats.nanos), (1000, 500_500));
        assert_eq!(stats.longest_nanos, 1000);
        for (quantile, exact) in [(0.0, 1), (0.001, 1), (0.5, 500), (0.99, 990), (1.0, 1000)] {
            let shown = stats.quantile_nanos(quantile);
            assert!(
                (exact..=exact + exact / 4).contains(&shown),
                "{quantile}: {shown}"
            );
        }
    }

    #[test]
    fn one_of_each_interval_is_timed() {
        let runtime: Arc<dyn Runtime> = Arc::new(Threads::default());
        let latencies = Latencies::new(&runtime, 5);
        let timed = (0..32).filter(|_| latencies.begin(Sampled::Commit).is_some());
        assert_eq!(timed.count(), 4);
        assert_eq!(latencies.moves_interval(), 32);
        let firsts: Vec<u32> = (0..64).map(|_| latencies.first_timed_move()).collect();
        assert!(firsts.iter().copied().eq((1..=32).chain(1..=32)));
        let all = Latencies::new(&runtime, 1);
        assert_eq!((all.first_timed_move(), all.moves_interval()), (1, 1));
        latencies.note(Operation::Flush, Duration::from_secs(1));
        let stats = latencies.stats();
        assert_eq!(stats.len(), 1);
        assert_eq!((stats[0].operation, stats[0].timed), (Operation::Flush, 1));

        let off = Latencies::new(&runtime, 0);
        assert!(
            (0..8).all(|_| off.begin(Sampled::Commit).is_none() && off.first_timed_move() == 0)
        );
        assert_eq!(off.begin_nth(0), None);
        off.note(Operation::Flush, Duration::from_secs(1));
        assert!(off.stats().is_empty());
    }
}

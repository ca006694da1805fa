//! The times of the compactions of Windrow, from its events.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::CompactionShape;

/// The times of compactions, in nanoseconds.
#[derive(Debug, Default)]
pub(super) struct CompactionTimes {
    count: AtomicU64,
    sum: AtomicU64,
    /// `u64::MAX` minus the shortest time.
    shortest: AtomicU64,
    longest: AtomicU64,
}

impl CompactionTimes {
    pub(super) fn add(&self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.sum.fetch_add(nanos, Ordering::Relaxed);
        self.shortest.fetch_max(u64::MAX - nanos, Ordering::Relaxed);
        self.longest.fetch_max(nanos, Ordering::Relaxed);
        // Last, so `take` finds the times of every compaction that it counts.
        self.count.fetch_add(1, Ordering::Release);
    }

    /// Takes the times and resets them.
    pub(super) fn take(&self) -> CompactionShape {
        let take = |counter: &AtomicU64| counter.swap(0, Ordering::Relaxed);
        let count = self.count.swap(0, Ordering::Acquire);
        let shortest = u64::MAX - take(&self.shortest);
        CompactionShape {
            count,
            seconds: take(&self.sum) as f64 / 1e9,
            shortest_ms: if count == 0 {
                0.0
            } else {
                shortest as f64 / 1e6
            },
            longest_ms: take(&self.longest) as f64 / 1e6,
        }
    }
}

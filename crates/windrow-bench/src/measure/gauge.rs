//! Counters of one thread of a load, which other threads can read while the load runs.
//!
//! Concurrency: one thread writes a gauge, and any thread may read it. Each counter is exact; two counters may
//! differ by one operation.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The number of buckets between two powers of two.
const STEPS: u32 = 16;
/// Enough for an hour in nanoseconds, and more.
pub(crate) const BUCKETS: usize = 39 * 16;

/// Counters of one thread, on their own cache lines.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Gauge {
    ops: AtomicU64,
    /// Operations by latency. The counters may wrap.
    latencies: [AtomicU32; BUCKETS],
}

impl Gauge {
    /// One gauge for each of `threads`.
    pub(crate) fn of(threads: u64) -> Vec<Self> {
        let gauge = |_| Self {
            ops: AtomicU64::new(0),
            latencies: [const { AtomicU32::new(0) }; BUCKETS],
        };
        (0..threads).map(gauge).collect()
    }

    /// Counts `operations` of `nanos` each. Only one thread may call this.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "readers take differences, so a wrap is correct"
    )]
    pub(crate) fn record(&self, nanos: u64, operations: u64) {
        let bucket = &self.latencies[bucket(nanos)];
        let counted = bucket.load(Ordering::Relaxed);
        bucket.store(counted.wrapping_add(operations as u32), Ordering::Relaxed);
        let ops = self.ops.load(Ordering::Relaxed);
        self.ops.store(ops + operations, Ordering::Relaxed);
    }

    /// Operations so far.
    pub(crate) fn ops(&self) -> u64 {
        self.ops.load(Ordering::Relaxed)
    }
}

/// Operations by their latency.
#[derive(Debug, Clone)]
pub(crate) struct Latencies(Box<[u32]>);

impl Default for Latencies {
    fn default() -> Self {
        Self(vec![0; BUCKETS].into_boxed_slice())
    }
}

impl Latencies {
    /// Adds the counts of `gauge` since `before`, and sets `before` to the current counts.
    pub(crate) fn add_since(&mut self, before: &mut Self, gauge: &Gauge) {
        for ((sum, before), now) in self.0.iter_mut().zip(&mut before.0).zip(&gauge.latencies) {
            let now = now.load(Ordering::Relaxed);
            *sum = sum.saturating_add(now.wrapping_sub(*before));
            *before = now;
        }
    }

    /// Adds the counts of `other`.
    pub(crate) fn add(&mut self, other: &Self) {
        for (sum, more) in self.0.iter_mut().zip(&other.0) {
            *sum = sum.saturating_add(*more);
        }
    }

    /// The latency that 99 of 100 operations do not exceed, in microseconds, within 3 %.
    pub(crate) fn p99_us(&self) -> f64 {
        let sum: u64 = self.0.iter().map(|&count| u64::from(count)).sum();
        let mut above = sum / 100;
        for (bucket, &count) in self.0.iter().enumerate().rev() {
            match above.checked_sub(u64::from(count)) {
                Some(left) => above = left,
                None => return middle(bucket) / 1e3,
            }
        }
        0.0
    }
}

/// The bucket of a latency.
#[inline]
fn bucket(nanos: u64) -> usize {
    let above = nanos.max(STEPS.into()).ilog2() - STEPS.ilog2();
    let bucket = u64::from(above * STEPS) + (nanos >> above);
    usize::try_from(bucket).map_or(BUCKETS - 1, |bucket| bucket.min(BUCKETS - 1))
}

/// The middle of a bucket, in nanoseconds.
fn middle(bucket: usize) -> f64 {
    let (bucket, steps) = (bucket as u64, u64::from(STEPS));
    let above = (bucket / steps).saturating_sub(1);
    let first = (bucket - above * steps) << above;
    first as f64 + ((1_u64 << above) - 1) as f64 / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_narrow_and_in_order() {
        let mut last = 0;
        for power in 0..41 {
            for nanos in [
                1 << power,
                (1 << power) + (1 << power) / 3,
                (2 << power) - 1,
            ] {
                let bucket = bucket(nanos);
                assert!(bucket >= last && bucket < BUCKETS);
                last = bucket;
                let error = middle(bucket) / nanos as f64 - 1.0;
                assert!(error.abs() < 0.035, "{nanos}: {error}");
            }
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn differences_are_what_was_counted_between() {
        let gauges = Gauge::of(1);
        let (mut seen, mut sum) = (Latencies::default(), Latencies::default());
        gauges[0].record(1000, u64::from(u32::MAX));
        sum.add_since(&mut seen, &gauges[0]);
        let mut sum = Latencies::default();
        for nanos in 1..=1000 {
            gauges[0].record(nanos * 1000, 1);
        }
        sum.add_since(&mut seen, &gauges[0]);
        assert_eq!(gauges[0].ops(), u64::from(u32::MAX) + 1000);
        assert!(
            (sum.p99_us() / 990.0 - 1.0).abs() < 0.035,
            "{}",
            sum.p99_us()
        );
        let mut twice = sum.clone();
        twice.add(&sum);
        assert!((twice.p99_us() - sum.p99_us()).abs() < 1e-9);
        assert!(Latencies::default().p99_us().abs() < 1e-9);
    }
}

//! The counts of the threads of a load, and the latencies of each kind of operation.
//!
//! A [`Tally`] belongs to one thread. Sums do not depend on the order of the tallies, so a load of several threads
//! has the same checksum each time.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use windrow::{Error, Result};

/// Nanoseconds in an hour; longer latencies count as this long.
const LATENCY_MAX: u64 = 3_600_000_000_000;

/// Defines the kinds of operations, with their names in reports.
macro_rules! operations {
    ($($(#[$help:meta])* $kind:ident = $name:literal,)+) => {
        /// A kind of operation, with its own latencies.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub enum Operation {
            $($(#[$help])* #[serde(rename = $name)] $kind,)+
        }

        impl Operation {
            /// Every kind, in the order of their numbers.
            const ALL: [Self; [$($name),+].len()] = [$(Self::$kind),+];

            /// The name in reports.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)+
                }
            }
        }
    };
}

operations! {
    /// A get.
    Read = "read",
    /// A write of a key that may exist.
    Write = "write",
    /// A delete.
    Delete = "delete",
    /// A seek, with the steps that follow it.
    Seek = "seek",
    /// One step of a walk.
    Step = "step",
    /// A write of an existing record.
    Update = "update",
    /// A write of a new record.
    Insert = "insert",
    /// A scan: open, seek, steps, close.
    Scan = "scan",
    /// A get and a write of the same record.
    ReadModifyWrite = "read-modify-write",
    /// A get of a multi-get, with its part of the latency.
    MultiRead = "multi-read",
    /// A write of a batch, with its part of the latency.
    BatchWrite = "batch-write",
    /// The open and close of a scan.
    Open = "open",
    /// A merge of an operand.
    Merge = "merge",
    /// A transaction.
    Transaction = "transaction",
    /// A load of an entry past the write buffer, with its part of the latency.
    BulkLoad = "bulk-load",
    /// The judgement of an entry by a compaction filter, with its part of the latency of the compaction.
    Filter = "filter",
    /// An estimate of the bytes in a range.
    Size = "approximate-size",
    /// A delete of a key by a range delete, with its part of the latency.
    DeleteRange = "range-delete",
    /// A read of the first entry of a queue, and its delete.
    Pop = "pop",
    /// A full compaction.
    Compact = "compact",
    /// A flush.
    Flush = "flush",
    /// A wait for background work.
    Settle = "settle",
    /// The hash of a block.
    Hash = "hash",
    /// The compression of a block.
    Compress = "compress",
    /// The decompression of a block.
    Decompress = "decompress",
}

/// Latencies in microseconds.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Percentiles {
    /// The median.
    pub p50_us: f64,
    /// The 95th percentile.
    pub p95_us: f64,
    /// The 99th percentile.
    pub p99_us: f64,
    /// The 99.9th percentile.
    pub p999_us: f64,
    /// The maximum.
    pub max_us: f64,
}

/// The operations of the companion thread of a load.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CompanionReport {
    /// The operations and their latencies. The latency of a late operation begins when it was due.
    #[serde(flatten)]
    pub done: OperationReport,
    /// Operations per second of the load.
    pub per_second: f64,
    /// The target rate.
    pub target_per_second: f64,
}

/// One kind of operation in a load.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OperationReport {
    /// The kind.
    pub operation: Operation,
    /// Their number.
    pub ops: u64,
    /// Their latencies.
    #[serde(flatten)]
    pub latency: Percentiles,
    /// The same as a curve, denser towards the slowest.
    #[serde(default)]
    pub latency_curve: Vec<CurvePoint>,
}

/// One point of the distribution of latencies.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// The quantile, from 0 to 1.
    pub quantile: f64,
    /// Its latency in microseconds.
    pub us: f64,
}

/// The counts of a thread.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) ops: u64,
    pub(crate) found: u64,
    /// A wrapping sum, which does not depend on the order of threads.
    pub(crate) checksum: u64,
    /// Bytes of keys and values that the thread wrote.
    pub(crate) user_bytes: u64,
    /// Bytes of keys and values that reads returned.
    pub(crate) returned_bytes: u64,
    /// Bytes of keys and values that became live.
    pub(crate) added_bytes: u64,
    /// Bytes of keys and values that became garbage.
    pub(crate) garbage_bytes: u64,
    /// Nanoseconds by kind.
    latencies: [Option<Histogram<u64>>; Operation::ALL.len()],
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Self) -> Result<()> {
        self.ops += other.ops;
        self.found += other.found;
        self.checksum = self.checksum.wrapping_add(other.checksum);
        self.user_bytes += other.user_bytes;
        self.returned_bytes += other.returned_bytes;
        self.added_bytes += other.added_bytes;
        self.garbage_bytes += other.garbage_bytes;
        for (mine, others) in self.latencies.iter_mut().zip(&other.latencies) {
            match (mine, others) {
                (Some(mine), Some(others)) => mine.add(others).map_err(refused)?,
                (mine @ None, Some(others)) => *mine = Some(others.clone()),
                (_, None) => {}
            }
        }
        Ok(())
    }

    /// Counts an entry that a read returned, with its fingerprint.
    #[inline]
    pub(crate) fn returned(&mut self, key: &[u8], value: &[u8], fingerprint: u64) {
        self.returned_bytes += (key.len() + value.len()) as u64;
        self.checksum = self.checksum.wrapping_add(fingerprint);
    }

    /// Counts `operations` of kind `kind` since `start`, which were `late` at that time, and sets `start` to now.
    /// Returns the latency of each in nanoseconds: its part of the time since `start`, and the whole delay.
    #[inline]
    pub(crate) fn record(
        &mut self,
        kind: Operation,
        start: &mut Instant,
        operations: u64,
        late: Duration,
    ) -> Result<u64> {
        let now = Instant::now();
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let each = (nanos(now - *start) / operations)
            .saturating_add(nanos(late))
            .clamp(1, LATENCY_MAX);
        let latencies = match &mut self.latencies[kind as usize] {
            Some(latencies) => latencies,
            none @ None => none.insert(histogram()?),
        };
        // The value is within the bounds, so the histogram accepts it.
        let recorded = latencies.record_n(each, operations);
        debug_assert!(recorded.is_ok());
        self.ops += operations;
        *start = now;
        Ok(each)
    }

    /// The latencies of all operations and of each kind that occurred, as curves too.
    pub(crate) fn latencies(&self) -> Result<(Percentiles, Vec<CurvePoint>, Vec<OperationReport>)> {
        let mut all = histogram()?;
        let mut reports = Vec::new();
        for (operation, latencies) in Operation::ALL.into_iter().zip(&self.latencies) {
            if let Some(latencies) = latencies {
                all.add(latencies).map_err(refused)?;
                reports.push(OperationReport {
                    operation,
                    ops: latencies.len(),
                    latency: percentiles(latencies),
                    latency_curve: curve(latencies),
                });
            }
        }
        Ok((percentiles(&all), curve(&all), reports))
    }
}

fn percentiles(latencies: &Histogram<u64>) -> Percentiles {
    let micros = |quantile| latencies.value_at_quantile(quantile) as f64 / 1e3;
    Percentiles {
        p50_us: micros(0.5),
        p95_us: micros(0.95),
        p99_us: micros(0.99),
        p999_us: micros(0.999),
        max_us: latencies.max() as f64 / 1e3,
    }
}

/// The curve from the fastest operation to the slowest: ten points for each leading nine of a quantile, while
/// operations exceed it.
fn curve(latencies: &Histogram<u64>) -> Vec<CurvePoint> {
    const POINTS_PER_NINE: i32 = 10;
    const NINES_MAX: i32 = 6;
    if latencies.is_empty() {
        return Vec::new();
    }
    let point = |quantile: f64| CurvePoint {
        quantile,
        us: latencies.value_at_quantile(quantile) as f64 / 1e3,
    };
    let behind = (0..=NINES_MAX * POINTS_PER_NINE)
        .map(|step| 10_f64.powf(f64::from(-step) / f64::from(POINTS_PER_NINE)))
        .take_while(|behind| behind * latencies.len() as f64 >= 1.0);
    let mut points: Vec<CurvePoint> = behind.map(|behind| point(1.0 - behind)).collect();
    points.push(point(1.0));
    points
}

fn histogram() -> Result<Histogram<u64>> {
    Histogram::new_with_bounds(1, LATENCY_MAX, 3).map_err(refused)
}

fn refused(error: impl std::fmt::Display) -> Error {
    Error::invalid_argument(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_rise_from_the_fastest_to_the_slowest() {
        let mut latencies = histogram().unwrap();
        assert!(curve(&latencies).is_empty());
        for micros in 1..=1000 {
            latencies.record(micros * 1000).unwrap();
        }
        let points = curve(&latencies);
        assert!((30..=64).contains(&points.len()));
        assert!(points.is_sorted_by(|a, b| a.quantile < b.quantile && a.us <= b.us));
        let last = points.last().unwrap();
        assert!((last.quantile - 1.0).abs() < 1e-12 && (last.us / 1000.0 - 1.0).abs() < 0.001);
        // The quantile 0.9 is the tenth point.
        assert!((points[10].us / 900.0 - 1.0).abs() < 0.002);
        latencies.record_n(1000, 100_000_000).unwrap();
        assert!(curve(&latencies).len() <= 64);
    }
    #[test]
    fn operations_of_a_batch_share_its_time_and_are_each_as_late_as_all() {
        let mut tally = Tally::default();
        let mut start = Instant::now();
        let late = Duration::from_secs(1000);
        let each = tally.record(Operation::BatchWrite, &mut start, 10, late);
        let each = Duration::from_nanos(each.unwrap());
        assert!(each >= late && each < 2 * late, "{each:?}");
        assert_eq!(tally.ops, 10);
        let (all, _, operations) = tally.latencies().unwrap();
        assert_eq!(operations.len(), 1);
        assert_eq!(operations[0].ops, 10);
        assert!(all.p50_us >= 999e6, "{}", all.p50_us);
    }
}

//! Statistics of the writes of databases whose program has enabled them: bytes, writes of keys, and how long they took.
//! RocksDB counts much more; the rest stays at 0.
//!
//! Concurrency: any thread may count and read.

#![expect(
    clippy::disallowed_types,
    reason = "no model replaces the locks of this crate"
)]

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use hdrhistogram::Histogram;
use windrow::Result;

use crate::batch::WriteBatch;

/// RocksDB's numbers of what is counted.
const KEYS_WRITTEN: u32 = 58;
const BYTES_WRITTEN: u32 = 61;
const WRITE_MICROS: u32 = 1;

/// RocksDB's levels: from the first one above them on there are counts, and times.
const NOTHING: i32 = 0;
const NO_TIMES: i32 = 2;

/// The level of statistics that nobody has set.
const LEVEL: i32 = 3;

/// Significant digits of times.
const DIGITS: u8 = 3;

const NANOS_PER_MICRO: f64 = 1000.0;

/// What was counted.
pub(crate) struct Statistics {
    level: AtomicI32,
    keys_written: AtomicU64,
    bytes_written: AtomicU64,
    writes: Mutex<Times>,
}

/// Times in nanoseconds.
struct Times {
    histogram: Histogram<u64>,
    sum: u64,
}

/// What a histogram says, in microseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Summary {
    pub(crate) count: u64,
    pub(crate) sum: u64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) average: f64,
    pub(crate) deviation: f64,
    pub(crate) median: f64,
    pub(crate) p95: f64,
    pub(crate) p99: f64,
}

impl Statistics {
    /// Nothing is counted yet. None if there is no memory for that.
    pub(crate) fn new() -> Option<Self> {
        let histogram = Histogram::new(DIGITS).ok()?;
        Some(Self {
            level: AtomicI32::new(LEVEL),
            keys_written: AtomicU64::new(0),
            bytes_written: AtomicU64::new(0),
            writes: Mutex::new(Times { histogram, sum: 0 }),
        })
    }

    pub(crate) fn set_level(&self, level: i32) {
        self.level.store(level, Ordering::Relaxed);
    }

    /// Makes the writes of a batch, and counts them if they succeed.
    #[expect(
        clippy::disallowed_methods,
        reason = "no test depends on how long a write takes"
    )]
    pub(crate) fn of_write(
        &self,
        batch: &WriteBatch,
        write: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let level = self.level.load(Ordering::Relaxed);
        if level <= NOTHING {
            return write();
        }
        let begin = (level > NO_TIMES).then(Instant::now);
        write()?;
        let (keys, bytes) = (u64::from(batch.count()), batch.bytes().len() as u64);
        self.keys_written.fetch_add(keys, Ordering::Relaxed);
        self.bytes_written.fetch_add(bytes, Ordering::Relaxed);
        if let Some(begin) = begin {
            let nanos = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
            let mut times = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
            times.histogram.saturating_record(nanos);
            times.sum = times.sum.saturating_add(nanos);
        }
        Ok(())
    }

    /// The count of a ticker of RocksDB, which is 0 if it is none of those here.
    pub(crate) fn ticker(&self, ticker: u32) -> u64 {
        match ticker {
            KEYS_WRITTEN => self.keys_written.load(Ordering::Relaxed),
            BYTES_WRITTEN => self.bytes_written.load(Ordering::Relaxed),
            _ => 0,
        }
    }

    /// A histogram of RocksDB, which is empty if it is none of those here.
    pub(crate) fn histogram(&self, histogram: u32) -> Summary {
        if histogram != WRITE_MICROS {
            return Summary::default();
        }
        let times = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        let found = &times.histogram;
        let micros = |nanos: u64| nanos as f64 / NANOS_PER_MICRO;
        Summary {
            count: found.len(),
            sum: times.sum / 1000,
            min: micros(found.min()),
            max: micros(found.max()),
            average: found.mean() / NANOS_PER_MICRO,
            deviation: found.stdev() / NANOS_PER_MICRO,
            median: micros(found.value_at_quantile(0.5)),
            p95: micros(found.value_at_quantile(0.95)),
            p99: micros(found.value_at_quantile(0.99)),
        }
    }

    /// All of it, in RocksDB's form.
    pub(crate) fn text(&self) -> String {
        let times = self.histogram(WRITE_MICROS);
        format!(
            "rocksdb.number.keys.written COUNT : {}\nrocksdb.bytes.written COUNT : {}\n\
             rocksdb.db.write.micros P50 : {:.6} P95 : {:.6} P99 : {:.6} P100 : {:.6} COUNT : {} SUM : {}\n",
            self.ticker(KEYS_WRITTEN),
            self.ticker(BYTES_WRITTEN),
            times.median,
            times.p95,
            times.p99,
            times.max,
            times.count,
            times.sum
        )
    }
}

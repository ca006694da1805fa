//! The counters of the engine.
//!
//! Concurrency: relaxed atomics. The counters that every read updates are striped by thread.

use std::array;
use std::time::Duration;

use crate::base::Striped;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::engine::admin::stats::{StallStats, Stats};
use crate::policy::StallCause;
use crate::table::ReadCounters;

/// The kind of a stall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waited {
    Delayed,
    Stopped,
}

/// The stalls of one cause.
#[derive(Debug, Default)]
struct StallCounters {
    delays: AtomicU64,
    stops: AtomicU64,
    micros: AtomicU64,
    longest_micros: AtomicU64,
}

impl StallCounters {
    fn sum(&self, cause: StallCause) -> StallStats {
        StallStats {
            cause,
            delays: self.delays.load(Ordering::Relaxed),
            stops: self.stops.load(Ordering::Relaxed),
            micros: self.micros.load(Ordering::Relaxed),
            longest_micros: self.longest_micros.load(Ordering::Relaxed),
        }
    }
}

/// All counters since the open.
#[derive(Debug)]
pub(crate) struct Counters {
    reads: Striped<9>,
    pub(crate) user_bytes: AtomicU64,
    pub(crate) user_writes: AtomicU64,
    pub(crate) wal_bytes: AtomicU64,
    pub(crate) wal_syncs: AtomicU64,
    pub(crate) manifest_bytes: AtomicU64,
    pub(crate) flush_bytes: AtomicU64,
    pub(crate) compaction_bytes_written: AtomicU64,
    pub(crate) compaction_bytes_read: AtomicU64,
    pub(crate) appends: AtomicU64,
    pub(crate) append_bytes_written: AtomicU64,
    pub(crate) consolidation_bytes_written: AtomicU64,
    pub(crate) consolidation_bytes_read: AtomicU64,
    pub(crate) transient_log_bytes_written: AtomicU64,
    pub(crate) value_log_bytes: AtomicU64,
    pub(crate) transient_log_bytes_read: AtomicU64,
    pub(crate) garbage_collections: AtomicU64,
    pub(crate) gc_bytes_read: AtomicU64,
    pub(crate) gc_bytes_written: AtomicU64,
    pub(crate) gc_values_dropped: AtomicU64,
    pub(crate) flushes: AtomicU64,
    pub(crate) compactions: AtomicU64,
    pub(crate) subcompactions: AtomicU64,
    pub(crate) trivial_moves: AtomicU64,
    stalls: [StallCounters; StallCause::ALL.len()],
}

impl Counters {
    pub(crate) fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            reads: Striped::new(),
            user_bytes: zero(),
            user_writes: zero(),
            wal_bytes: zero(),
            wal_syncs: zero(),
            manifest_bytes: zero(),
            flush_bytes: zero(),
            compaction_bytes_written: zero(),
            compaction_bytes_read: zero(),
            appends: zero(),
            append_bytes_written: zero(),
            consolidation_bytes_written: zero(),
            consolidation_bytes_read: zero(),
            transient_log_bytes_written: zero(),
            value_log_bytes: zero(),
            transient_log_bytes_read: zero(),
            garbage_collections: zero(),
            gc_bytes_read: zero(),
            gc_bytes_written: zero(),
            gc_values_dropped: zero(),
            flushes: zero(),
            compactions: zero(),
            subcompactions: zero(),
            trivial_moves: zero(),
            stalls: array::from_fn(|_| StallCounters::default()),
        }
    }

    /// Adds the counts of a read with `gets` point reads.
    #[inline]
    pub(crate) fn add_read(&self, gets: u64, read: &ReadCounters) {
        let counts = [
            gets,
            read.block_reads,
            read.block_loads,
            read.block_load_bytes,
            read.filter_probes,
            read.filter_rejects,
            read.filter_false_positives,
            read.seeks,
            read.runs_visited,
        ];
        self.reads.add_all(counts.into_iter().enumerate());
    }

    /// Copies the counters into `stats`.
    pub(crate) fn fill(&self, stats: &mut Stats) {
        let reads = [
            &mut stats.gets,
            &mut stats.block_reads,
            &mut stats.block_loads,
            &mut stats.block_load_bytes,
            &mut stats.filter_probes,
            &mut stats.filter_rejects,
            &mut stats.filter_false_positives,
            &mut stats.seeks,
            &mut stats.runs_visited,
        ];
        for (index, field) in reads.into_iter().enumerate() {
            *field = self.reads.sum(index);
        }
        for (counter, field) in [
            (&self.user_bytes, &mut stats.user_bytes),
            (&self.user_writes, &mut stats.user_writes),
            (&self.wal_bytes, &mut stats.wal_bytes),
            (&self.wal_syncs, &mut stats.wal_syncs),
            (&self.manifest_bytes, &mut stats.manifest_bytes),
            (&self.flush_bytes, &mut stats.flush_bytes),
            (
                &self.compaction_bytes_written,
                &mut stats.compaction_bytes_written,
            ),
            (
                &self.compaction_bytes_read,
                &mut stats.compaction_bytes_read,
            ),
            (&self.appends, &mut stats.appends),
            (&self.append_bytes_written, &mut stats.append_bytes_written),
            (
                &self.consolidation_bytes_written,
                &mut stats.consolidation_bytes_written,
            ),
            (
                &self.consolidation_bytes_read,
                &mut stats.consolidation_bytes_read,
            ),
            (
                &self.transient_log_bytes_written,
                &mut stats.transient_log_bytes_written,
            ),
            (&self.value_log_bytes, &mut stats.value_log_bytes),
            (
                &self.transient_log_bytes_read,
                &mut stats.transient_log_bytes_read,
            ),
            (&self.garbage_collections, &mut stats.garbage_collections),
            (&self.gc_bytes_read, &mut stats.gc_bytes_read),
            (&self.gc_bytes_written, &mut stats.gc_bytes_written),
            (&self.gc_values_dropped, &mut stats.gc_values_dropped),
            (&self.flushes, &mut stats.flushes),
            (&self.compactions, &mut stats.compactions),
            (&self.subcompactions, &mut stats.subcompactions),
            (&self.trivial_moves, &mut stats.trivial_moves),
        ] {
            *field = counter.load(Ordering::Relaxed);
        }
        stats.stalls = StallCause::ALL
            .iter()
            .zip(&self.stalls)
            .map(|(cause, counters)| counters.sum(*cause))
            .collect();
    }

    /// Counts one stall of a writer.
    pub(super) fn add_stall(&self, cause: StallCause, waited: Waited, time: Duration) {
        let counters = &self.stalls[cause as usize];
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        match waited {
            Waited::Delayed => add(&counters.delays, 1),
            Waited::Stopped => add(&counters.stops, 1),
        }
        add(&counters.micros, micros);
        counters.longest_micros.fetch_max(micros, Ordering::Relaxed);
    }
}

/// Adds `count` to `counter`.
#[inline]
pub(crate) fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

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

/// Declares [`Counters`]: a counter for each field of [`Stats`] with the same name.
macro_rules! counters {
    ($($name:ident,)*) => {
        /// All counters since the open.
        #[derive(Debug)]
        pub(crate) struct Counters {
            reads: Striped<9>,
            $(pub(crate) $name: AtomicU64,)*
            stalls: [StallCounters; StallCause::ALL.len()],
        }

        impl Counters {
            pub(crate) fn new() -> Self {
                Self {
                    reads: Striped::new(),
                    $($name: AtomicU64::new(0),)*
                    stalls: array::from_fn(|_| StallCounters::default()),
                }
            }

            fn fill_counts(&self, stats: &mut Stats) {
                $(stats.$name = self.$name.load(Ordering::Relaxed);)*
            }
        }
    };
}

counters! {
    user_bytes,
    user_writes,
    wal_bytes,
    wal_syncs,
    manifest_bytes,
    flush_bytes,
    compaction_bytes_written,
    compaction_bytes_read,
    appends,
    append_bytes_written,
    consolidation_bytes_written,
    consolidation_bytes_read,
    transient_log_bytes_written,
    value_log_bytes,
    transient_log_bytes_read,
    garbage_collections,
    gc_bytes_read,
    gc_bytes_written,
    gc_values_dropped,
    flushes,
    compactions,
    subcompactions,
    trivial_moves,
}

impl Counters {
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
        self.fill_counts(stats);
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

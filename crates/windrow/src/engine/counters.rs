//! The counters of the engine.
//!
//! Concurrency: relaxed atomics. The counters that every read updates are striped by thread.

use std::array;
use std::ops::Deref;
use std::time::Duration;

use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::base::{Error, ErrorKind, LifetimeCounters, Striped};
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

/// The index of the counter of passed entries, behind those of [`add_read`](Counters::add_read).
const ENTRIES_PASSED: usize = 9;

/// The index of the counter of gets.
const GETS: usize = 0;

/// All counters since the open.
#[derive(Debug)]
pub(crate) struct Counters {
    reads: Striped<10>,
    pub(crate) totals: LifetimeCounters,
    stalls: [StallCounters; StallCause::ALL.len()],
}

/// The counters that the manifest keeps the totals of.
impl Deref for Counters {
    type Target = LifetimeCounters;

    fn deref(&self) -> &LifetimeCounters {
        &self.totals
    }
}

/// `time` in whole microseconds, as statistics have it.
pub(super) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl Counters {
    pub(crate) fn new() -> Self {
        Self {
            reads: Striped::new(),
            totals: LifetimeCounters::default(),
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

    /// The gets of threads that count where this one does.
    #[inline]
    pub(super) fn gets_here(&self) -> u64 {
        self.reads.here(GETS)
    }

    /// Adds `entries` that a cursor has passed.
    pub(crate) fn add_passed(&self, entries: u64) {
        self.reads.add(ENTRIES_PASSED, entries);
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
            &mut stats.entries_passed,
        ];
        for (index, field) in reads.into_iter().enumerate() {
            *field = self.reads.sum(index);
        }
        let totals = self.totals.load();
        stats.opened = totals;
        stats.user_bytes = totals.user_bytes;
        stats.user_writes = totals.user_writes;
        stats.wal_bytes = totals.wal_bytes;
        stats.wal_syncs = totals.wal_syncs;
        stats.manifest_bytes = totals.manifest_bytes;
        stats.flush_bytes = totals.flush_bytes;
        stats.compaction_bytes_written = totals.compaction_bytes_written;
        stats.compaction_bytes_read = totals.compaction_bytes_read;
        stats.appends = totals.appends;
        stats.append_bytes_written = totals.append_bytes_written;
        stats.consolidation_bytes_written = totals.consolidation_bytes_written;
        stats.consolidation_bytes_read = totals.consolidation_bytes_read;
        stats.transient_log_bytes_written = totals.transient_log_bytes_written;
        stats.value_log_bytes = totals.value_log_bytes;
        stats.transient_log_bytes_read = totals.transient_log_bytes_read;
        stats.garbage_collections = totals.garbage_collections;
        stats.gc_bytes_read = totals.gc_bytes_read;
        stats.gc_bytes_written = totals.gc_bytes_written;
        stats.gc_values_dropped = totals.gc_values_dropped;
        stats.flushes = totals.flushes;
        stats.compactions = totals.compactions;
        stats.subcompactions = totals.subcompactions;
        stats.trivial_moves = totals.trivial_moves;
        stats.operands = totals.operands;
        stats.entries_folded = totals.entries_folded;
        stats.folds_failed = totals.folds_failed;
        stats.bulk_loads = totals.bulk_loads;
        stats.bulk_load_bytes = totals.bulk_load_bytes;
        stats.ingestions = totals.ingestions;
        stats.entries_expired = totals.entries_expired;
        stats.entries_judged = totals.entries_judged;
        stats.judged_removed = totals.judged_removed;
        stats.judged_replaced = totals.judged_replaced;
        stats.judged_dropped = totals.judged_dropped;
        stats.judged_failed = totals.judged_failed;
        stats.folds_kept = totals.folds_kept;
        stats.folds_dropped = totals.folds_dropped;
        stats.transactions_committed = totals.transactions_committed;
        stats.conflicts = totals.conflicts;
        stats.deadlocks = totals.deadlocks;
        stats.lock_timeouts = totals.lock_timeouts;
        stats.range_deletes = totals.range_deletes;
        stats.stalls = StallCause::ALL
            .iter()
            .zip(&self.stalls)
            .map(|(cause, counters)| counters.sum(*cause))
            .collect();
    }

    /// Counts `error`, with which a transaction or a change of one key has failed.
    #[cold]
    pub(super) fn add_refusal(&self, error: &Error) {
        match error.kind() {
            ErrorKind::Conflict => add(&self.conflicts, 1),
            ErrorKind::Deadlock => add(&self.deadlocks, 1),
            ErrorKind::TimedOut => add(&self.lock_timeouts, 1),
            _ => {}
        }
    }

    /// Counts one stall of a writer.
    pub(super) fn add_stall(&self, cause: StallCause, waited: Waited, time: Duration) {
        let counters = &self.stalls[cause as usize];
        let micros = micros(time);
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

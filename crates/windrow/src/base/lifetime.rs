//! What a database counts over its whole life: one list of counters for the engine, the statistics and
//! the manifest.
//!
//! The manifest keeps [`Totals`]: sums by the number of their counter. A number is never given to another counter. The
//! numbers are in "Manifest" of `docs/format.md`.
//!
//! Concurrency: counters are relaxed atomics.

use std::collections::BTreeMap;

use super::sync::atomic::{AtomicU64, Ordering};

/// Sums by the number of their counter; a sum of 0 is left out.
pub(crate) type Totals = BTreeMap<u64, u64>;

/// Defines the counters: their statistics, their atomics, and their numbers in the manifest.
macro_rules! counters {
    ($($(#[doc = $text:literal])+ $name:ident = $number:literal;)+) => {
        /// What a database has done since it was created. A clean close records all counts. A crash loses what was
        /// counted since the last edit of the manifest.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize))]
        #[non_exhaustive]
        pub struct LifetimeStats {
            $($(#[doc = $text])+ pub $name: u64,)+
        }

        impl LifetimeStats {
            /// The counters of these numbers; others are not of this version.
            pub(crate) fn from_totals(totals: &Totals) -> Self {
                let total = |number: u64| totals.get(&number).copied().unwrap_or_default();
                Self { $($name: total($number),)+ }
            }
        }

        /// The same while the database is open.
        #[derive(Debug, Default)]
        pub(crate) struct LifetimeCounters {
            $(pub(crate) $name: AtomicU64,)+
        }

        impl LifetimeCounters {
            /// What was counted since the database was opened.
            pub(crate) fn load(&self) -> LifetimeStats {
                LifetimeStats { $($name: self.$name.load(Ordering::Relaxed),)+ }
            }

            /// Adds what was counted to `totals`.
            pub(crate) fn add_to(&self, totals: &mut Totals) {
                $(add(totals, $number, self.$name.load(Ordering::Relaxed));)+
            }
        }
    };
}

/// Adds `count` to a sum.
pub(crate) fn add(totals: &mut Totals, number: u64, count: u64) {
    if count > 0 {
        let total = totals.entry(number).or_default();
        *total = total.saturating_add(count);
    }
}

/// The sum of counters. It saturates: totals come from the manifest and may have any value.
pub(super) fn sum<const N: usize>(counts: [u64; N]) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

counters! {
    /// Bytes of keys and values that callers wrote.
    user_bytes = 1;
    /// Entries that callers wrote.
    user_writes = 2;
    /// Bytes appended to the write-ahead log.
    wal_bytes = 3;
    /// Syncs of the write-ahead log.
    wal_syncs = 4;
    /// Bytes appended to manifests.
    manifest_bytes = 5;
    /// Bytes of tables written by flushes.
    flush_bytes = 6;
    /// Bytes of new tables written by compactions, and of transient logs that they rewrite.
    compaction_bytes_written = 7;
    /// Bytes of tables read by compactions.
    compaction_bytes_read = 8;
    /// Segments that compactions have appended to tables.
    appends = 9;
    /// Bytes of these segments.
    append_bytes_written = 10;
    /// Bytes of tables, and of transient logs, written by consolidations.
    consolidation_bytes_written = 11;
    /// Bytes of tables read by consolidations.
    consolidation_bytes_read = 12;
    /// Bytes of values written to transient logs by flushes.
    transient_log_bytes_written = 13;
    /// Bytes of large values written to value logs.
    value_log_bytes = 14;
    /// Bytes of transient logs, and of relocation tables, read by compactions.
    transient_log_bytes_read = 15;
    /// Garbage collections of value logs.
    garbage_collections = 16;
    /// Bytes read by garbage collections and pointer rewrites.
    gc_bytes_read = 17;
    /// Bytes written by both.
    gc_bytes_written = 18;
    /// Garbage values that garbage collections have dropped.
    gc_values_dropped = 19;
    /// Memtables flushed.
    flushes = 20;
    /// Compactions finished.
    compactions = 21;
    /// Subcompactions of these; a compaction in one piece counts as one.
    subcompactions = 22;
    /// Files moved down a level without rewriting.
    trivial_moves = 23;
    /// Operands that callers wrote.
    operands = 24;
    /// Entries that flushes and compactions have folded into others: operands, and the entries below them.
    entries_folded = 25;
    /// Folds of flushes and compactions that the merge operator has failed, or whose value is damaged. The operands
    /// stay.
    folds_failed = 26;
    /// Bulk loads.
    bulk_loads = 27;
    /// Bytes of tables written by bulk loads.
    bulk_load_bytes = 28;
    /// Ingestions of table files.
    ingestions = 29;
    /// Expired entries that flushes and compactions have dropped or written as tombstones, and those of whole files.
    entries_expired = 30;
    /// Entries about which compactions have asked a compaction filter.
    entries_judged = 31;
    /// Entries that compaction filters have removed.
    judged_removed = 32;
    /// Values that compaction filters have replaced.
    judged_replaced = 33;
    /// Removals and replacements that were dropped: the entry was not the newest of its key any more, or was locked, or
    /// the write would have had to wait.
    judged_dropped = 34;
    /// Calls of compaction filters that have failed, or whose value could not be read. The entries stay.
    judged_failed = 35;
    /// Values that gets have folded, and that a job has written in place of the operands.
    folds_kept = 36;
    /// Those that were not written: the operand was not the newest entry of its key any more, or the key was locked, or
    /// the write would have had to wait, or too many were waiting.
    folds_dropped = 37;
    /// Transactions committed, those included that were prepared first or have written nothing.
    transactions_committed = 38;
    /// Commits, preparations, reads under locks and changes of one key that failed with `Conflict`. Each try counts.
    conflicts = 39;
    /// Requests of locks that failed with `Deadlock`.
    deadlocks = 40;
    /// Requests of locks that failed with `TimedOut`.
    lock_timeouts = 41;
    /// Range deletes that callers wrote.
    range_deletes = 42;
}

impl LifetimeStats {
    /// Bytes written by the engine: logs, manifests, tables and value files.
    pub fn written_bytes(&self) -> u64 {
        sum([
            self.wal_bytes,
            self.manifest_bytes,
            self.flush_bytes,
            self.compaction_bytes_written,
            self.append_bytes_written,
            self.consolidation_bytes_written,
            self.transient_log_bytes_written,
            self.value_log_bytes,
            self.gc_bytes_written,
            self.bulk_load_bytes,
        ])
    }

    /// Bytes that compactions and garbage collections have read.
    pub fn read_bytes(&self) -> u64 {
        sum([
            self.compaction_bytes_read,
            self.consolidation_bytes_read,
            self.transient_log_bytes_read,
            self.gc_bytes_read,
        ])
    }

    /// Bytes written per byte that callers wrote; 0 before the first write.
    pub fn write_amplification(&self) -> f64 {
        if self.user_bytes == 0 {
            return 0.0;
        }
        self.written_bytes() as f64 / self.user_bytes as f64
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{LifetimeCounters, LifetimeStats, Ordering, Totals};

    #[test]
    fn counters_are_added_to_the_totals_of_earlier_opens() {
        let counters = LifetimeCounters::default();
        counters.user_bytes.store(5, Ordering::Relaxed);
        counters.trivial_moves.store(7, Ordering::Relaxed);
        // The last one is of a later version and stays.
        let mut totals = Totals::from([(1, 10), (2, 1), (1000, 3)]);
        counters.add_to(&mut totals);
        assert_eq!(totals, Totals::from([(1, 15), (2, 1), (23, 7), (1000, 3)]));
        let mut expected = LifetimeStats::default();
        (expected.user_bytes, expected.user_writes) = (15, 1);
        expected.trivial_moves = 7;
        assert_eq!(LifetimeStats::from_totals(&totals), expected);
    }

    #[test]
    fn sums_of_totals_saturate() {
        let totals = (0..64).map(|number| (number, u64::MAX)).collect();
        let stats = LifetimeStats::from_totals(&totals);
        assert_eq!(stats.written_bytes(), u64::MAX);
        assert_eq!(stats.read_bytes(), u64::MAX);
    }
}

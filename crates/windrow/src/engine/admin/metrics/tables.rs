//! The metrics, and where their values are.
//!
//! The metrics are in tables, one for each thing that is measured: the life of the database, its present state, the
//! process that has it open, a keyspace, a level. Sizes are in bytes. A counter ends in `_total`. The present state is a gauge.
//!
//! Concurrency: none; constants.

use super::sample::{Metric, MetricKind};
use crate::base::{LevelIoStats, LifetimeStats};
use crate::engine::admin::stats::{JobStats, KeyspaceStats, LevelStats, StallStats, Stats};
use crate::engine::throttling::memory::MemoryUse;
use crate::latency::LatencyStats;

/// A metric that is a number of `T`.
pub(super) struct Row<T: 'static> {
    pub(super) metric: Metric<'static>,
    pub(super) value: fn(&T) -> f64,
}

/// A metric that is several numbers of `T`, distinguished by a label.
pub(super) struct Split<T: 'static> {
    pub(super) metric: Metric<'static>,
    pub(super) label: &'static str,
    pub(super) parts: &'static [Part<T>],
}

/// The value of a label, and its number.
pub(super) type Part<T> = (&'static str, fn(&T) -> f64);

const fn counter(name: &'static str, help: &'static str) -> Metric<'static> {
    let kind = MetricKind::Counter;
    Metric { name, help, kind }
}

const fn gauge(name: &'static str, help: &'static str) -> Metric<'static> {
    let kind = MetricKind::Gauge;
    Metric { name, help, kind }
}

/// A table of metrics. A row is a kind, a name, a field and a help text.
macro_rules! metrics {
    ($table:ident of $of:ty:
     $($kind:ident $name:literal $($field:ident).+, $help:literal;)*) => {
        pub(super) const $table: &[Row<$of>] = &[$(Row {
            metric: $kind($name, $help),
            value: |of: &$of| of.$($field).+ as f64,
        }),*];
    };
}

/// A metric whose parts are fields.
macro_rules! split {
    ($table:ident of $of:ty: $kind:ident $name:literal by $label:literal, $help:literal;
     $($part:literal $field:ident;)*) => {
        pub(super) const $table: Split<$of> = Split {
            metric: $kind($name, $help),
            label: $label,
            parts: &[$(($part, |of: &$of| of.$field as f64)),*],
        };
    };
}

metrics! { LIFETIME of LifetimeStats:
    counter "windrow_user_bytes_total" user_bytes, "Bytes of keys and values that callers wrote.";
    counter "windrow_user_writes_total" user_writes, "Entries that callers wrote.";
    counter "windrow_wal_written_bytes_total" wal_bytes, "Bytes written to the write-ahead log.";
    counter "windrow_wal_syncs_total" wal_syncs, "Syncs of the write-ahead log.";
    counter "windrow_manifest_written_bytes_total" manifest_bytes, "Bytes written to manifests.";
    counter "windrow_flushes_total" flushes, "Memtables flushed.";
    counter "windrow_flush_written_bytes_total" flush_bytes, "Bytes of tables written by flushes.";
    counter "windrow_bulk_loads_total" bulk_loads, "Bulk loads.";
    counter "windrow_bulk_load_written_bytes_total" bulk_load_bytes,
        "Bytes of tables written by bulk loads.";
    counter "windrow_ingestions_total" ingestions, "Ingestions of table files.";
    counter "windrow_compactions_total" compactions, "Compactions finished.";
    counter "windrow_subcompactions_total" subcompactions,
        "Key ranges of compactions, each done by one thread.";
    counter "windrow_compaction_written_bytes_total" compaction_bytes_written,
        "Bytes of new tables written by compactions, and of transient logs that they rewrite.";
    counter "windrow_compaction_read_bytes_total" compaction_bytes_read,
        "Bytes of tables read by compactions.";
    counter "windrow_appends_total" appends, "Segments that compactions appended to tables.";
    counter "windrow_append_written_bytes_total" append_bytes_written,
        "Bytes of appended segments.";
    counter "windrow_consolidation_written_bytes_total" consolidation_bytes_written,
        "Bytes of tables written by consolidations, and of transient logs that they rewrite.";
    counter "windrow_consolidation_read_bytes_total" consolidation_bytes_read,
        "Bytes of tables read by consolidations.";
    counter "windrow_trivial_moves_total" trivial_moves,
        "Files moved down a level by an edit alone.";
    counter "windrow_range_deletes_total" range_deletes, "Range deletes that callers wrote.";
    counter "windrow_transactions_committed_total" transactions_committed,
        "Transactions committed, prepared ones included.";
    counter "windrow_conflicts_total" conflicts,
        "Commits of transactions, and changes of one key, that failed with a conflict.";
    counter "windrow_deadlocks_total" deadlocks, "Requests of locks that failed with a deadlock.";
    counter "windrow_lock_timeouts_total" lock_timeouts,
        "Requests of locks that failed because the lock was not free in time.";
    counter "windrow_operands_total" operands, "Operands of merge operators that callers wrote.";
    counter "windrow_folded_entries_total" entries_folded,
        "Entries that flushes and compactions folded into others.";
    counter "windrow_failed_folds_total" folds_failed,
        "Folds of flushes and compactions that the merge operator failed, or whose value is damaged.";
    counter "windrow_expired_entries_total" entries_expired,
        "Expired entries that flushes, compactions and drops of whole files removed.";
    counter "windrow_judged_entries_total" entries_judged,
        "Entries about which compactions asked a compaction filter.";
    counter "windrow_judged_entries_removed_total" judged_removed,
        "Entries that compaction filters removed.";
    counter "windrow_judged_values_replaced_total" judged_replaced,
        "Values that compaction filters replaced.";
    counter "windrow_judged_changes_dropped_total" judged_dropped,
        "Removals and replacements of compaction filters that were dropped.";
    counter "windrow_judged_entries_failed_total" judged_failed,
        "Calls of compaction filters that failed, or whose value could not be read.";
    counter "windrow_read_folds_kept_total" folds_kept,
        "Values that gets folded and a job wrote in place of the operands.";
    counter "windrow_read_folds_dropped_total" folds_dropped,
        "Values that gets folded and no job wrote.";
    counter "windrow_transient_log_written_bytes_total" transient_log_bytes_written,
        "Bytes of values written to transient logs by flushes.";
    counter "windrow_transient_log_read_bytes_total" transient_log_bytes_read,
        "Bytes of transient logs and of relocation tables read by compactions.";
    counter "windrow_value_log_written_bytes_total" value_log_bytes,
        "Bytes of large values written to value logs.";
    counter "windrow_garbage_collections_total" garbage_collections,
        "Garbage collections of value logs finished.";
    counter "windrow_gc_written_bytes_total" gc_bytes_written,
        "Bytes written by garbage collection and pointer rewrites.";
    counter "windrow_gc_read_bytes_total" gc_bytes_read,
        "Bytes read by garbage collection and pointer rewrites.";
    counter "windrow_gc_dropped_values_total" gc_values_dropped,
        "Garbage values that garbage collection dropped.";
}

metrics! { DATABASE of Stats:
    gauge "windrow_prepared_transactions" prepared_transactions,
        "Transactions that are prepared and wait for their end.";
    gauge "windrow_files_held_by_readers" files_held_by_readers,
        "Files that stay only for readers in other processes.";
    gauge "windrow_sequence_number" sequence, "The newest visible sequence number.";
    gauge "windrow_disk_bytes" disk_bytes,
        "Bytes of all files of the database, with the reserve.";
    gauge "windrow_reserve_bytes" reserve_bytes, "Bytes of disk that the reserve keeps back.";
}

pub(super) const DISK_FULL: Row<Stats> = Row {
    metric: gauge(
        "windrow_disk_full",
        "1 if the disk is full, so that entries can be removed, but not added; else 0.",
    ),
    value: |stats| f64::from(u8::from(stats.is_disk_full)),
};

metrics! { OPENED of Stats:
    counter "windrow_scrubbed_bytes_total" scrubbed_bytes,
        "Bytes whose checksums scrubs compared, since the open.";
    counter "windrow_damaged_files_total" damaged_files,
        "Damaged files that scrubs found, since the open.";
    counter "windrow_gets_total" gets, "Point reads since the open.";
    counter "windrow_seeks_total" seeks, "Moves of cursors to a key or to an end, since the open.";
    counter "windrow_passed_entries_total" entries_passed,
        "Entries that cursors passed without showing them, since the open.";
    counter "windrow_visited_runs_total" runs_visited,
        "Sorted runs of tables that seeks visited, since the open.";
    counter "windrow_block_reads_total" block_reads, "Blocks that reads used, since the open.";
    counter "windrow_block_loads_total" block_loads,
        "Blocks that reads had to load or verify first, since the open.";
    counter "windrow_block_loaded_bytes_total" block_load_bytes, "Bytes of these blocks.";
    counter "windrow_filter_piece_loads_total" filter_piece_loads,
        "Pieces of filters that reads had to load or verify first, since the open.";
    counter "windrow_filter_probes_total" filter_probes, "Filters probed, since the open.";
    counter "windrow_filter_rejects_total" filter_rejects,
        "Filters that excluded the key, since the open.";
    counter "windrow_filter_false_positives_total" filter_false_positives,
        "Filters that passed a key that the run did not hold, since the open.";
    counter "windrow_transient_log_value_reads_total" transient_log_reads,
        "Values that reads took from transient logs, since the open.";
    counter "windrow_value_log_value_reads_total" value_log_reads,
        "Values that reads took from value logs, since the open.";
    counter "windrow_prefetched_values_total" values_prefetched,
        "Values that scans requested from the system in advance, since the open.";
    gauge "windrow_memory_budget_bytes" memory.budget, "The limit of the memory of the database; 0 for none.";
}

split! { MEMORY of MemoryUse: gauge "windrow_memory_bytes" by "purpose",
    "Bytes of memory that the database takes, by purpose.";
    "memtables" memtables;
    "block_cache" block_cache;
    "tables" tables;
    "cursors" cursors;
    "jobs" jobs;
    "transactions" transactions;
}

metrics! { STALLS of StallStats:
    counter "windrow_stall_delays_total" delays,
        "Delays of writers of at least a millisecond, by cause, since the open.";
    counter "windrow_stall_stops_total" stops,
        "Waits of writers for a job, and writes that were refused, by cause, since the open.";
}

metrics! { JOBS of JobStats:
    gauge "windrow_job_bytes" bytes, "Bytes of the files that a job which runs now replaces or appends to.";
}

pub(super) const JOB_SECONDS: Row<JobStats> = Row {
    metric: gauge(
        "windrow_job_running_seconds",
        "How long a job has run that runs now.",
    ),
    value: |job| job.micros as f64 / 1e6,
};

pub(super) const STALL_SECONDS: Row<StallStats> = Row {
    metric: counter(
        "windrow_stall_seconds_total",
        "The time of delays and stops of writers, by cause, since the open.",
    ),
    value: |stall| stall.micros as f64 / 1e6,
};

pub(super) const LONGEST_STALL: Row<StallStats> = Row {
    metric: gauge(
        "windrow_longest_stall_seconds",
        "The longest stall of a writer, by cause, since the open.",
    ),
    value: |stall| stall.longest_micros as f64 / 1e6,
};

metrics! { KEYSPACE_READS of KeyspaceStats:
    counter "windrow_gets_answered_by_memtables_total" gets_answered_by_memtables,
        "Gets that found a value in a memtable, since the open.";
}

metrics! { LEVEL_READS of LevelStats:
    counter "windrow_level_gets_answered_total" gets_answered,
        "Gets that found a value in the level, since the open.";
}

metrics! { KEYSPACES of KeyspaceStats:
    gauge "windrow_memtable_bytes" memtable_bytes, "Bytes in memtables.";
    gauge "windrow_memtables" memtables, "Memtables, the active one included.";
    gauge "windrow_memtable_entries" memtable_entries, "Entries in memtables, tombstones included.";
    gauge "windrow_memtable_tombstones" memtable_tombstones, "Tombstones in memtables.";
    gauge "windrow_transient_log_files" transient_logs.files, "Files of transient logs.";
    gauge "windrow_transient_log_bytes" transient_logs.bytes, "Bytes in transient logs.";
    gauge "windrow_transient_log_live_bytes" transient_logs.live_bytes,
        "Bytes in transient logs that tables refer to.";
    gauge "windrow_transient_log_garbage_bytes" transient_logs.garbage_bytes,
        "Bytes in transient logs that no table refers to.";
    gauge "windrow_value_log_files" value_logs.files, "Value logs.";
    gauge "windrow_value_log_bytes" value_logs.bytes, "Bytes in value logs.";
    gauge "windrow_value_log_live_bytes" value_logs.live_bytes,
        "Bytes in value logs that tables refer to.";
    gauge "windrow_value_log_garbage_bytes" value_logs.garbage_bytes,
        "Bytes in value logs that no table and no memtable refers to.";
    gauge "windrow_value_log_unflushed_bytes" value_logs.unflushed_bytes,
        "Bytes in value logs that only memtables refer to.";
    gauge "windrow_discard_lists" discard_lists, "Lists of garbage values of value logs.";
    gauge "windrow_discard_list_bytes" discard_list_bytes, "Bytes in discard lists.";
}

metrics! { LEVELS of LevelStats:
    gauge "windrow_level_files" files, "Table files.";
    gauge "windrow_level_segments" segments, "Segments in table files.";
    gauge "windrow_level_bytes" bytes, "Bytes in table files.";
    gauge "windrow_level_capacity_bytes" capacity,
        "Bytes above which a level is compacted; 0 for level 0, which counts runs.";
    gauge "windrow_level_entries" entries, "Entries, tombstones included.";
    gauge "windrow_level_tombstones" tombstones, "Tombstones, range tombstones included.";
    gauge "windrow_level_range_tombstones" range_tombstones, "Range tombstones.";
    gauge "windrow_level_operands" operands, "Operands that no compaction has folded yet.";
    gauge "windrow_level_expiring_entries" expiring_entries, "Entries that expire.";
    gauge "windrow_level_expiring_bytes" expiring_bytes,
        "Bytes of keys and values of entries that expire.";
    gauge "windrow_level_filter_bytes" filter_bytes,
        "Bytes of filters in memory while the tables are open.";
    gauge "windrow_level_false_positive_reads" false_positive_reads,
        "Blocks that a get of a key that is not in the level reads on average.";
}

split! { WRITTEN of LevelIoStats: counter "windrow_level_written_bytes_total" by "cause",
    "Bytes that jobs brought into the level, by cause; trivial moves write nothing.";
    "flush" flushed;
    "append" appended;
    "rewrite" rewritten;
    "consolidation" consolidated;
    "pointer_rewrite" pointers_rewritten;
    "trivial_move" moved;
    "transient_log" transient_logs;
    "bulk_load" bulk_loaded;
}

split! { READ of LevelIoStats: counter "windrow_level_read_bytes_total" by "cause",
    "Bytes that jobs read for what they wrote into the level, by cause.";
    "compaction" read;
    "consolidation" consolidation_read;
    "pointer_rewrite" pointer_rewrite_read;
    "transient_log" transient_logs_read;
}

/// The times of operations, each with the label `operation`.
pub(super) const OPERATIONS: Metric<'static> = Metric {
    name: "windrow_operation_seconds",
    help: "How long operations took, since the open; of gets, commits, seeks and steps some were timed.",
    kind: MetricKind::Histogram,
};

pub(super) const LONGEST_OPERATION: Row<LatencyStats> = Row {
    metric: gauge(
        "windrow_longest_operation_seconds",
        "The longest of these operations.",
    ),
    value: |stats| stats.longest_nanos as f64 / 1e9,
};

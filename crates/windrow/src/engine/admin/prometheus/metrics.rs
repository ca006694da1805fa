//! The metrics of the Prometheus text, and where their values are.
//!
//! The metrics are in tables, one for each thing that is measured: the life of the database, its present state, the
//! process that has it open, a keyspace, a level. Sizes are in bytes. A counter ends in `_total`. The present state is a gauge.
//!
//! Concurrency: none; constants.

use crate::base::{LevelIoStats, LifetimeStats};
use crate::engine::admin::stats::{JobStats, KeyspaceStats, LevelStats, StallStats, Stats};
use crate::engine::throttling::memory::MemoryUse;

/// What Prometheus may do with a metric.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// A number of `T`.
pub(super) struct Metric<T: 'static> {
    pub(super) kind: Kind,
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) value: fn(&T) -> f64,
}

/// Numbers of `T` under one name, distinguished by a label.
pub(super) struct Split<T: 'static> {
    pub(super) kind: Kind,
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) label: &'static str,
    pub(super) parts: &'static [Part<T>],
}

/// The value of a label, and its number.
pub(super) type Part<T> = (&'static str, fn(&T) -> f64);

/// A table of metrics. A row is a kind, a name, a field and a help text.
macro_rules! metrics {
    ($table:ident of $of:ty:
     $($kind:ident $name:literal $($field:ident).+, $help:literal;)*) => {
        pub(super) const $table: &[Metric<$of>] = &[$(Metric {
            kind: Kind::$kind,
            name: $name,
            help: $help,
            value: |of: &$of| of.$($field).+ as f64,
        }),*];
    };
}

/// A metric whose parts are fields.
macro_rules! split {
    ($table:ident of $of:ty: $kind:ident $name:literal by $label:literal, $help:literal;
     $($part:literal $field:ident;)*) => {
        pub(super) const $table: Split<$of> = Split {
            kind: Kind::$kind,
            name: $name,
            help: $help,
            label: $label,
            parts: &[$(($part, |of: &$of| of.$field as f64)),*],
        };
    };
}

metrics! { LIFETIME of LifetimeStats:
    Counter "windrow_user_bytes_total" user_bytes, "Bytes of keys and values that callers wrote.";
    Counter "windrow_user_writes_total" user_writes, "Entries that callers wrote.";
    Counter "windrow_wal_written_bytes_total" wal_bytes, "Bytes written to the write-ahead log.";
    Counter "windrow_wal_syncs_total" wal_syncs, "Syncs of the write-ahead log.";
    Counter "windrow_manifest_written_bytes_total" manifest_bytes, "Bytes written to manifests.";
    Counter "windrow_flushes_total" flushes, "Memtables flushed.";
    Counter "windrow_flush_written_bytes_total" flush_bytes, "Bytes of tables written by flushes.";
    Counter "windrow_bulk_loads_total" bulk_loads, "Bulk loads.";
    Counter "windrow_bulk_load_written_bytes_total" bulk_load_bytes,
        "Bytes of tables written by bulk loads.";
    Counter "windrow_ingestions_total" ingestions, "Ingestions of table files.";
    Counter "windrow_compactions_total" compactions, "Compactions finished.";
    Counter "windrow_subcompactions_total" subcompactions,
        "Key ranges of compactions, each done by one thread.";
    Counter "windrow_compaction_written_bytes_total" compaction_bytes_written,
        "Bytes of new tables written by compactions, and of transient logs that they rewrite.";
    Counter "windrow_compaction_read_bytes_total" compaction_bytes_read,
        "Bytes of tables read by compactions.";
    Counter "windrow_appends_total" appends, "Segments that compactions appended to tables.";
    Counter "windrow_append_written_bytes_total" append_bytes_written,
        "Bytes of appended segments.";
    Counter "windrow_consolidation_written_bytes_total" consolidation_bytes_written,
        "Bytes of tables written by consolidations, and of transient logs that they rewrite.";
    Counter "windrow_consolidation_read_bytes_total" consolidation_bytes_read,
        "Bytes of tables read by consolidations.";
    Counter "windrow_trivial_moves_total" trivial_moves,
        "Files moved down a level by an edit alone.";
    Counter "windrow_range_deletes_total" range_deletes, "Range deletes that callers wrote.";
    Counter "windrow_transactions_committed_total" transactions_committed,
        "Transactions committed, prepared ones included.";
    Counter "windrow_conflicts_total" conflicts,
        "Commits of transactions, and changes of one key, that failed with a conflict.";
    Counter "windrow_deadlocks_total" deadlocks, "Requests of locks that failed with a deadlock.";
    Counter "windrow_lock_timeouts_total" lock_timeouts,
        "Requests of locks that failed because the lock was not free in time.";
    Counter "windrow_operands_total" operands, "Operands of merge operators that callers wrote.";
    Counter "windrow_folded_entries_total" entries_folded,
        "Entries that flushes and compactions folded into others.";
    Counter "windrow_failed_folds_total" folds_failed,
        "Folds of flushes and compactions that the merge operator failed, or whose value is damaged.";
    Counter "windrow_expired_entries_total" entries_expired,
        "Expired entries that flushes, compactions and drops of whole files removed.";
    Counter "windrow_judged_entries_total" entries_judged,
        "Entries about which compactions asked a compaction filter.";
    Counter "windrow_judged_entries_removed_total" judged_removed,
        "Entries that compaction filters removed.";
    Counter "windrow_judged_values_replaced_total" judged_replaced,
        "Values that compaction filters replaced.";
    Counter "windrow_judged_changes_dropped_total" judged_dropped,
        "Removals and replacements of compaction filters that were dropped.";
    Counter "windrow_judged_entries_failed_total" judged_failed,
        "Calls of compaction filters that failed, or whose value could not be read.";
    Counter "windrow_read_folds_kept_total" folds_kept,
        "Values that gets folded and a job wrote in place of the operands.";
    Counter "windrow_read_folds_dropped_total" folds_dropped,
        "Values that gets folded and no job wrote.";
    Counter "windrow_transient_log_written_bytes_total" transient_log_bytes_written,
        "Bytes of values written to transient logs by flushes.";
    Counter "windrow_transient_log_read_bytes_total" transient_log_bytes_read,
        "Bytes of transient logs and of relocation tables read by compactions.";
    Counter "windrow_value_log_written_bytes_total" value_log_bytes,
        "Bytes of large values written to value logs.";
    Counter "windrow_garbage_collections_total" garbage_collections,
        "Garbage collections of value logs finished.";
    Counter "windrow_gc_written_bytes_total" gc_bytes_written,
        "Bytes written by garbage collection and pointer rewrites.";
    Counter "windrow_gc_read_bytes_total" gc_bytes_read,
        "Bytes read by garbage collection and pointer rewrites.";
    Counter "windrow_gc_dropped_values_total" gc_values_dropped,
        "Garbage values that garbage collection dropped.";
}

metrics! { DATABASE of Stats:
    Gauge "windrow_prepared_transactions" prepared_transactions,
        "Transactions that are prepared and wait for their end.";
    Gauge "windrow_files_held_by_readers" files_held_by_readers,
        "Files that stay only for readers in other processes.";
    Gauge "windrow_sequence_number" sequence, "The newest visible sequence number.";
    Gauge "windrow_disk_bytes" disk_bytes,
        "Bytes of all files of the database, with the reserve.";
    Gauge "windrow_reserve_bytes" reserve_bytes, "Bytes of disk that the reserve keeps back.";
}

pub(super) const DISK_FULL: Metric<Stats> = Metric {
    kind: Kind::Gauge,
    name: "windrow_disk_full",
    help: "1 if the disk is full, so that entries can be removed, but not added; else 0.",
    value: |stats| f64::from(u8::from(stats.is_disk_full)),
};

metrics! { OPENED of Stats:
    Counter "windrow_scrubbed_bytes_total" scrubbed_bytes,
        "Bytes whose checksums scrubs compared, since the open.";
    Counter "windrow_damaged_files_total" damaged_files,
        "Damaged files that scrubs found, since the open.";
    Counter "windrow_gets_total" gets, "Point reads since the open.";
    Counter "windrow_seeks_total" seeks, "Moves of cursors to a key or to an end, since the open.";
    Counter "windrow_passed_entries_total" entries_passed,
        "Entries that cursors passed without showing them, since the open.";
    Counter "windrow_visited_runs_total" runs_visited,
        "Sorted runs of tables that seeks visited, since the open.";
    Counter "windrow_block_reads_total" block_reads, "Blocks that reads used, since the open.";
    Counter "windrow_block_loads_total" block_loads,
        "Blocks that reads had to load or verify first, since the open.";
    Counter "windrow_block_loaded_bytes_total" block_load_bytes, "Bytes of these blocks.";
    Counter "windrow_filter_piece_loads_total" filter_piece_loads,
        "Pieces of filters that reads had to load or verify first, since the open.";
    Counter "windrow_filter_probes_total" filter_probes, "Filters probed, since the open.";
    Counter "windrow_filter_rejects_total" filter_rejects,
        "Filters that excluded the key, since the open.";
    Counter "windrow_filter_false_positives_total" filter_false_positives,
        "Filters that passed a key that the run did not hold, since the open.";
    Counter "windrow_transient_log_value_reads_total" transient_log_reads,
        "Values that reads took from transient logs, since the open.";
    Counter "windrow_value_log_value_reads_total" value_log_reads,
        "Values that reads took from value logs, since the open.";
    Counter "windrow_prefetched_values_total" values_prefetched,
        "Values that scans requested from the system in advance, since the open.";
    Gauge "windrow_memory_budget_bytes" memory.budget, "The limit of the memory of the database; 0 for none.";
}

split! { MEMORY of MemoryUse: Gauge "windrow_memory_bytes" by "purpose",
    "Bytes of memory that the database takes, by purpose.";
    "memtables" memtables;
    "block_cache" block_cache;
    "tables" tables;
    "cursors" cursors;
    "jobs" jobs;
    "transactions" transactions;
}

metrics! { STALLS of StallStats:
    Counter "windrow_stall_delays_total" delays,
        "Delays of writers of at least a millisecond, by cause, since the open.";
    Counter "windrow_stall_stops_total" stops,
        "Waits of writers for a job, and writes that were refused, by cause, since the open.";
}

metrics! { JOBS of JobStats:
    Gauge "windrow_job_bytes" bytes, "Bytes of the files that a job which runs now replaces or appends to.";
}

pub(super) const JOB_SECONDS: Metric<JobStats> = Metric {
    kind: Kind::Gauge,
    name: "windrow_job_running_seconds",
    help: "How long a job has run that runs now.",
    value: |job| job.micros as f64 / 1e6,
};

pub(super) const STALL_SECONDS: Metric<StallStats> = Metric {
    kind: Kind::Counter,
    name: "windrow_stall_seconds_total",
    help: "The time of delays and stops of writers, by cause, since the open.",
    value: |stall| stall.micros as f64 / 1e6,
};

pub(super) const LONGEST_STALL: Metric<StallStats> = Metric {
    kind: Kind::Gauge,
    name: "windrow_longest_stall_seconds",
    help: "The longest stall of a writer, by cause, since the open.",
    value: |stall| stall.longest_micros as f64 / 1e6,
};

metrics! { KEYSPACE_READS of KeyspaceStats:
    Counter "windrow_gets_answered_by_memtables_total" gets_answered_by_memtables,
        "Gets that found a value in a memtable, since the open.";
}

metrics! { LEVEL_READS of LevelStats:
    Counter "windrow_level_gets_answered_total" gets_answered,
        "Gets that found a value in the level, since the open.";
}

metrics! { KEYSPACES of KeyspaceStats:
    Gauge "windrow_memtable_bytes" memtable_bytes, "Bytes in memtables.";
    Gauge "windrow_memtables" memtables, "Memtables, the active one included.";
    Gauge "windrow_memtable_entries" memtable_entries, "Entries in memtables, tombstones included.";
    Gauge "windrow_memtable_tombstones" memtable_tombstones, "Tombstones in memtables.";
    Gauge "windrow_transient_log_files" transient_logs.files, "Files of transient logs.";
    Gauge "windrow_transient_log_bytes" transient_logs.bytes, "Bytes in transient logs.";
    Gauge "windrow_transient_log_live_bytes" transient_logs.live_bytes,
        "Bytes in transient logs that tables refer to.";
    Gauge "windrow_transient_log_garbage_bytes" transient_logs.garbage_bytes,
        "Bytes in transient logs that no table refers to.";
    Gauge "windrow_value_log_files" value_logs.files, "Value logs.";
    Gauge "windrow_value_log_bytes" value_logs.bytes, "Bytes in value logs.";
    Gauge "windrow_value_log_live_bytes" value_logs.live_bytes,
        "Bytes in value logs that tables refer to.";
    Gauge "windrow_value_log_garbage_bytes" value_logs.garbage_bytes,
        "Bytes in value logs that no table and no memtable refers to.";
    Gauge "windrow_value_log_unflushed_bytes" value_logs.unflushed_bytes,
        "Bytes in value logs that only memtables refer to.";
    Gauge "windrow_discard_lists" discard_lists, "Lists of garbage values of value logs.";
    Gauge "windrow_discard_list_bytes" discard_list_bytes, "Bytes in discard lists.";
}

metrics! { LEVELS of LevelStats:
    Gauge "windrow_level_files" files, "Table files.";
    Gauge "windrow_level_segments" segments, "Segments in table files.";
    Gauge "windrow_level_bytes" bytes, "Bytes in table files.";
    Gauge "windrow_level_capacity_bytes" capacity,
        "Bytes above which a level is compacted; 0 for level 0, which counts runs.";
    Gauge "windrow_level_entries" entries, "Entries, tombstones included.";
    Gauge "windrow_level_tombstones" tombstones, "Tombstones, range tombstones included.";
    Gauge "windrow_level_range_tombstones" range_tombstones, "Range tombstones.";
    Gauge "windrow_level_operands" operands, "Operands that no compaction has folded yet.";
    Gauge "windrow_level_expiring_entries" expiring_entries, "Entries that expire.";
    Gauge "windrow_level_expiring_bytes" expiring_bytes,
        "Bytes of keys and values of entries that expire.";
    Gauge "windrow_level_filter_bytes" filter_bytes,
        "Bytes of filters in memory while the tables are open.";
    Gauge "windrow_level_false_positive_reads" false_positive_reads,
        "Blocks that a get of a key that is not in the level reads on average.";
}

split! { WRITTEN of LevelIoStats: Counter "windrow_level_written_bytes_total" by "cause",
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

split! { READ of LevelIoStats: Counter "windrow_level_read_bytes_total" by "cause",
    "Bytes that jobs read for what they wrote into the level, by cause.";
    "compaction" read;
    "consolidation" consolidation_read;
    "pointer_rewrite" pointer_rewrite_read;
    "transient_log" transient_logs_read;
}

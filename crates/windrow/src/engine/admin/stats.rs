//! The statistics that a caller gets.
//!
//! Concurrency: plain values, collected by [`Engine::stats`](crate::engine::Engine::stats).

use crate::base::{FileNumber, LevelIoStats, LifetimeStats};
use crate::engine::throttling::memory::MemoryUse;
use crate::latency::LatencyStats;
use crate::options::KeyspaceOptions;
use crate::policy::StallCause;

/// The counters of a database since its open, and its current state.
#[derive(Debug, Clone, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Stats {
    /// Bytes of keys and values that callers wrote.
    pub user_bytes: u64,
    /// Entries that callers wrote.
    pub user_writes: u64,
    /// Point reads.
    pub gets: u64,
    /// Bytes appended to the write-ahead log.
    pub wal_bytes: u64,
    /// Syncs of the write-ahead log.
    pub wal_syncs: u64,
    /// Bytes appended to manifests.
    pub manifest_bytes: u64,
    /// Bytes of tables written by flushes.
    pub flush_bytes: u64,
    /// Bytes of new tables written by compactions, and of transient logs that they rewrite.
    pub compaction_bytes_written: u64,
    /// Bytes of tables read by compactions.
    pub compaction_bytes_read: u64,
    /// Segments that compactions have appended to tables.
    pub appends: u64,
    /// Bytes of these segments.
    pub append_bytes_written: u64,
    /// Bytes written by consolidations, which merge the segments of one file so that reads visit fewer:
    /// of tables, and of transient logs that they rewrite.
    pub consolidation_bytes_written: u64,
    /// Bytes of tables read by consolidations.
    pub consolidation_bytes_read: u64,
    /// Bytes of values written to transient logs by flushes.
    pub transient_log_bytes_written: u64,
    /// Bytes of large values written to value logs.
    pub value_log_bytes: u64,
    /// Bytes read by compactions from transient logs, to put values in place or to rewrite them, and of
    /// relocation tables on the way.
    pub transient_log_bytes_read: u64,
    /// Garbage collections of value logs.
    pub garbage_collections: u64,
    /// Bytes read by garbage collections, and bytes of tables read by compactions that only rewrite
    /// pointers.
    pub gc_bytes_read: u64,
    /// Bytes written by both: of values, tables, and transient logs that such compactions rewrite.
    pub gc_bytes_written: u64,
    /// Values that garbage collections have dropped.
    pub gc_values_dropped: u64,
    /// Memtables flushed.
    pub flushes: u64,
    /// Compactions finished.
    pub compactions: u64,
    /// Subcompactions of these.
    pub subcompactions: u64,
    /// Files moved down a level without rewriting.
    pub trivial_moves: u64,
    /// Operands that callers wrote.
    pub operands: u64,
    /// Range deletes that callers wrote.
    pub range_deletes: u64,
    /// Entries that flushes and compactions have folded into others: operands, and the entries below them.
    pub entries_folded: u64,
    /// Folds of flushes and compactions that the merge operator has failed, or whose value is damaged. The operands
    /// stay.
    pub folds_failed: u64,
    /// Bulk loads.
    pub bulk_loads: u64,
    /// Bytes of tables written by bulk loads.
    pub bulk_load_bytes: u64,
    /// Ingestions of table files.
    pub ingestions: u64,
    /// Expired entries that flushes and compactions have dropped or written as tombstones, and those of whole files.
    pub entries_expired: u64,
    /// Entries about which compactions have asked a compaction filter.
    pub entries_judged: u64,
    /// Entries that compaction filters have removed.
    pub judged_removed: u64,
    /// Values that compaction filters have replaced.
    pub judged_replaced: u64,
    /// Removals and replacements that were dropped: the entry was not the newest of its key any more, or was locked, or
    /// the write would have had to wait.
    pub judged_dropped: u64,
    /// Calls of compaction filters that have failed, or whose value could not be read. The entries stay.
    pub judged_failed: u64,
    /// Values that gets have folded, and that a job has written in place of the operands.
    pub folds_kept: u64,
    /// Those that were not written: the operand was not the newest entry of its key any more, or the key was locked, or
    /// the write would have had to wait, or too many were waiting.
    pub folds_dropped: u64,
    /// Transactions committed, those included that were prepared first or have written nothing.
    pub transactions_committed: u64,
    /// Commits, preparations, reads under locks and changes of one key that failed with `Conflict`. Each try counts. Plain
    /// writes to keys that a prepared transaction holds do not.
    pub conflicts: u64,
    /// Requests of locks that failed with `Deadlock`.
    pub deadlocks: u64,
    /// Requests of locks that failed with `TimedOut`.
    pub lock_timeouts: u64,
    /// Transactions that are prepared now.
    pub prepared_transactions: u64,
    /// Files that the database does not need, and that stay for readers in other processes
    /// ([`Secondary`](crate::Secondary)).
    pub files_held_by_readers: u64,
    /// Moves of cursors to a key or to an end.
    pub seeks: u64,
    /// Entries that cursors have passed without showing them: tombstones and what these hide, older versions, and
    /// newer ones than the cursor sees.
    pub entries_passed: u64,
    /// Sorted runs of tables that seeks have visited.
    pub runs_visited: u64,
    /// Blocks that reads used, from any source.
    pub block_reads: u64,
    /// Blocks that reads had to load or verify first.
    pub block_loads: u64,
    /// Bytes of those blocks.
    pub block_load_bytes: u64,
    /// Pieces of filters that are not in memory as a whole, which reads had to load or verify.
    pub filter_piece_loads: u64,
    /// Filters probed.
    pub filter_probes: u64,
    /// Filters that excluded the key.
    pub filter_rejects: u64,
    /// Filters that passed a key that the run did not hold.
    pub filter_false_positives: u64,
    /// Values that gets and scans have read from transient logs.
    pub transient_log_reads: u64,
    /// Values that gets and scans have read from value logs.
    pub value_log_reads: u64,
    /// Values that the prefetchers of scans have requested from the system in advance.
    pub values_prefetched: u64,
    /// Memory in use, by purpose.
    pub memory: MemoryUse,
    /// Stalls of writers; every cause once.
    pub stalls: Vec<StallStats>,
    /// The jobs that run now, the oldest first.
    pub jobs: Vec<JobStats>,
    /// How long operations have taken; those are left out that have not been.
    pub latencies: Vec<LatencyStats>,
    /// The newest visible sequence number.
    pub sequence: u64,
    /// What the database has done since it was created.
    pub lifetime: LifetimeStats,
    /// The same since the open; the fields above have it one by one.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) opened: LifetimeStats,
    /// Bytes of all files of the database, the reserve included. Replaced files that cursors still read do not count,
    /// nor does space that is reserved behind the end of a log.
    pub disk_bytes: u64,
    /// Bytes of these that the reserve keeps back; 0 if the database is open for reading.
    pub reserve_bytes: u64,
    /// Bytes whose checksums scrubs have compared.
    pub scrubbed_bytes: u64,
    /// Damaged files that scrubs have found. A file counts once in each pass.
    pub damaged_files: u64,
    /// Whether the disk is full: removals work, but no write may add data. Always false without a reserve.
    pub is_disk_full: bool,
    /// Each keyspace, without the hidden one of prepared transactions.
    pub keyspaces: Vec<KeyspaceStats>,
}

impl Stats {
    /// Bytes written by the engine: logs, manifest, tables and value files.
    pub fn written_bytes(&self) -> u64 {
        let merges = self.compaction_bytes_written + self.append_bytes_written;
        let flushed = self.flush_bytes + self.bulk_load_bytes;
        let tables = flushed + merges + self.consolidation_bytes_written;
        let values =
            self.transient_log_bytes_written + self.value_log_bytes + self.gc_bytes_written;
        self.wal_bytes + self.manifest_bytes + tables + values
    }

    /// Bytes read from files: by compactions and garbage collections, and blocks that gets and scans had to
    /// load or verify. Separated values that gets and scans read are in `transient_log_reads` and
    /// `value_log_reads` instead.
    pub fn read_bytes(&self) -> u64 {
        let merges = self.compaction_bytes_read
            + self.consolidation_bytes_read
            + self.transient_log_bytes_read;
        self.block_load_bytes + merges + self.gc_bytes_read
    }

    /// The number of stalls.
    pub fn stall_count(&self) -> u64 {
        let count = |stall: &StallStats| stall.delays + stall.stops;
        self.stalls.iter().map(count).sum()
    }

    /// The time of all stalls, in microseconds.
    pub fn stall_micros(&self) -> u64 {
        self.stalls.iter().map(|stall| stall.micros).sum()
    }

    /// The longest stall, in microseconds.
    pub fn longest_stall_micros(&self) -> u64 {
        let longest = self.stalls.iter().map(|stall| stall.longest_micros);
        longest.max().unwrap_or_default()
    }

    /// Bytes written per byte that callers wrote; 0 before the first write.
    pub fn write_amplification(&self) -> f64 {
        if self.user_bytes == 0 {
            return 0.0;
        }
        self.written_bytes() as f64 / self.user_bytes as f64
    }
}

/// The stalls of one cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct StallStats {
    /// The cause.
    pub cause: StallCause,
    /// Delays of at least a millisecond; shorter ones add up to one delay of a later write.
    pub delays: u64,
    /// Waits for the end of a job, and writes that were refused.
    pub stops: u64,
    /// The time of delays and stops, in microseconds.
    pub micros: u64,
    /// The longest single stall, in microseconds.
    pub longest_micros: u64,
}

/// A job that runs now.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct JobStats {
    /// The job: `flush`, `compaction` or `garbage_collection`.
    pub job: &'static str,
    /// The keyspace.
    pub keyspace: String,
    /// The level of the output: 0 for a flush; `None` for a garbage collection.
    pub level: Option<usize>,
    /// The purpose of a compaction, as that of [`Event::CompactionEnded`](crate::Event::CompactionEnded).
    pub purpose: Option<&'static str>,
    /// Files that it replaces or appends to.
    pub files: usize,
    /// Bytes of them.
    pub bytes: u64,
    /// Microseconds since it began.
    pub micros: u64,
}

/// The current state of a keyspace.
#[derive(Debug, Clone, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct KeyspaceStats {
    /// Its name.
    pub name: String,
    /// Its options.
    pub options: KeyspaceOptions,
    /// The name of its merge operator.
    pub merge_operator: Option<String>,
    /// Bytes in its memtables.
    pub memtable_bytes: u64,
    /// Entries in its memtables, tombstones included. The log holds them, and no table does.
    pub memtable_entries: u64,
    /// Tombstones in its memtables.
    pub memtable_tombstones: u64,
    /// The number of its memtables: the active one and the frozen ones.
    pub memtables: usize,
    /// Gets since the open that found a value or its pointer in a memtable.
    pub gets_answered_by_memtables: u64,
    /// Its levels, level 0 first.
    pub levels: Vec<LevelStats>,
    /// Its transient logs.
    pub transient_logs: ValueFileStats,
    /// Its value logs.
    pub value_logs: ValueFileStats,
    /// Discard lists of garbage in value logs that is not collected yet.
    pub discard_lists: usize,
    /// Bytes in them.
    pub discard_list_bytes: u64,
    /// Files whose last compaction has failed, by number. The others go on without them.
    pub paused_tables: Vec<PausedFile>,
    /// Value logs whose last garbage collection has failed, by number.
    pub paused_value_logs: Vec<PausedFile>,
}

/// A file that no background job takes for a while, because the last one that took it has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct PausedFile {
    /// The number of the file. For a compaction it is an upper input; the cause may be another file, which the error
    /// names.
    pub file: FileNumber,
    /// The failed jobs since the last success or the open.
    pub failures: u32,
    /// Microseconds until a job may take it again; 0 if the next one may.
    pub pause_micros: u64,
    /// What the last failed job returned.
    pub error: String,
}

/// The current state of the value files of a keyspace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ValueFileStats {
    /// Value files.
    pub files: usize,
    /// Bytes in them.
    pub bytes: u64,
    /// Bytes of values that tables refer to.
    pub live_bytes: u64,
    /// Bytes of values that no table refers to any more.
    pub garbage_bytes: u64,
    /// Bytes of values that only memtables refer to. Overwritten ones count until their flush.
    pub unflushed_bytes: u64,
}

/// The current state of a level.
#[derive(Debug, Clone, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct LevelStats {
    /// Its number; level 0 holds flushed runs.
    pub level: usize,
    /// Table files.
    pub files: usize,
    /// Segments in them.
    pub segments: usize,
    /// Bytes in them.
    pub bytes: u64,
    /// The bytes of keys and values, wherever the values are, that it may hold before a compaction. 0 for level 0,
    /// which counts runs; `u64::MAX` below the nominal last level. A level above one that must shrink may exceed it
    /// for a while.
    pub capacity: u64,
    /// Entries, tombstones included.
    pub entries: u64,
    /// Tombstones.
    pub tombstones: u64,
    /// Range tombstones among these.
    pub range_tombstones: u64,
    /// Operands that no compaction has folded yet.
    pub operands: u64,
    /// Entries that expire, those included that have expired and that no compaction has met since.
    pub expiring_entries: u64,
    /// Bytes of their keys and values before compression, wherever the values are.
    pub expiring_bytes: u64,
    /// Gets since the open that found a value or its pointer in this level.
    pub gets_answered: u64,
    /// Bytes of filters that its tables keep in memory while they are open. A table that reads its filters by pieces
    /// now counts none.
    pub filter_bytes: u64,
    /// The average number of false-positive reads of a get of an absent key: the sum of the false-positive
    /// rates of the runs of level 0, and the average rate of the files of a deeper level. A key between two
    /// files costs nothing.
    pub false_positive_reads: f64,
    /// Bytes that jobs have moved into it since the open.
    pub io_stats: LevelIoStats,
    /// The same since the keyspace was created.
    pub lifetime_io_stats: LevelIoStats,
}

/// The result of a full check.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Table files checked.
    pub files: u64,
    /// Segments in them.
    pub segments: u64,
    /// Blocks in them.
    pub blocks: u64,
    /// Entries in them.
    pub entries: u64,
    /// Entries in memtables, which the log holds and no table does.
    pub unflushed_entries: u64,
    /// Bytes in the table files.
    pub bytes: u64,
    /// Values read from value files.
    pub values: u64,
    /// Every damage found.
    pub damage: Vec<crate::Error>,
}

impl VerifyReport {
    /// Whether the check found no damage.
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty()
    }
}

//! What the engine counts, and the picture of it that a user gets.
//!
//! Concurrency: counters are relaxed atomics; those that every read touches are striped.

use crate::base::LevelIoStats;
use crate::engine::throttling::memory::MemoryUse;
use crate::options::KeyspaceOptions;
use crate::policy::StallCause;

/// What a database has done since it was opened, and what it looks like now.
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
    /// Bytes of new tables written by merges, and of runs in which they gather values.
    pub compaction_bytes_written: u64,
    /// Bytes of tables read by merges.
    pub compaction_bytes_read: u64,
    /// Segments that merges have appended to tables.
    pub appends: u64,
    /// Bytes of these segments.
    pub append_bytes_written: u64,
    /// Bytes written by consolidations, merges of what is in one file for reads to visit less: of tables, and of
    /// runs in which they gather values.
    pub consolidation_bytes_written: u64,
    /// Bytes of tables read by consolidations.
    pub consolidation_bytes_read: u64,
    /// Bytes of values written to transient logs by flushes.
    pub transient_log_bytes_written: u64,
    /// Bytes of large values written to value logs.
    pub value_log_bytes: u64,
    /// Bytes of transient logs read by merges, to put values in place or to gather them, and of the tables that
    /// led them where collections have moved values.
    pub transient_log_bytes_read: u64,
    /// Collections of value logs.
    pub garbage_collections: u64,
    /// Bytes read by collections, and of tables by merges for no other purpose than to lead pointers where
    /// collections have moved values.
    pub gc_bytes_read: u64,
    /// Bytes written by both: of values, tables, and runs in which such merges gather values.
    pub gc_bytes_written: u64,
    /// Dead values that collections have left behind.
    pub gc_values_dropped: u64,
    /// Memtables flushed.
    pub flushes: u64,
    /// Merges finished.
    pub compactions: u64,
    /// Parts in which they were carried out.
    pub subcompactions: u64,
    /// Files moved down a level without rewriting.
    pub trivial_moves: u64,
    /// Moves of cursors to a key or to an end.
    pub seeks: u64,
    /// Sorted runs of tables that were gone to for them.
    pub runs_visited: u64,
    /// Blocks that reads consulted, wherever they came from.
    pub block_reads: u64,
    /// Blocks that had to be read or verified first.
    pub block_loads: u64,
    /// Bytes of those blocks.
    pub block_load_bytes: u64,
    /// Filters asked.
    pub filter_probes: u64,
    /// Filters that said no.
    pub filter_rejects: u64,
    /// Filters that said yes where the run did not hold the key.
    pub filter_false_positives: u64,
    /// Values that gets and scans have read from transient logs.
    pub transient_log_reads: u64,
    /// Values that gets and scans have read from value logs.
    pub value_log_reads: u64,
    /// Values that scans, which would have had to wait for them, asked the system for before they read
    /// them.
    pub values_prefetched: u64,
    /// What is held in memory, by purpose.
    pub memory: MemoryUse,
    /// Writes that had to wait, by cause; every cause once.
    pub stalls: Vec<StallStats>,
    /// The newest visible sequence number.
    pub sequence: u64,
    /// Bytes of all files of the database, but for the reserve.
    pub disk_bytes: u64,
    /// Bytes of disk that are kept back now; 0 where the database is open for reading only.
    pub reserve_bytes: u64,
    /// Whether the disk is full: entries can be removed, but not added.
    pub is_disk_full: bool,
    /// Each keyspace.
    pub keyspaces: Vec<KeyspaceStats>,
}

impl Stats {
    /// Bytes the engine has written: log, manifest, tables and value files.
    pub fn written_bytes(&self) -> u64 {
        let merges = self.compaction_bytes_written + self.append_bytes_written;
        let tables = self.flush_bytes + merges + self.consolidation_bytes_written;
        let values =
            self.transient_log_bytes_written + self.value_log_bytes + self.gc_bytes_written;
        self.wal_bytes + self.manifest_bytes + tables + values
    }

    /// Bytes the engine has read of files: for merges and collections, and blocks that gets and scans had
    /// to read or to verify. Values apart from their keys that these read are counted in `transient_log_reads` and
    /// `value_log_reads`, not here.
    pub fn read_bytes(&self) -> u64 {
        let merges = self.compaction_bytes_read
            + self.consolidation_bytes_read
            + self.transient_log_bytes_read;
        self.block_load_bytes + merges + self.gc_bytes_read
    }

    /// How many writes had to wait.
    pub fn stall_count(&self) -> u64 {
        let count = |stall: &StallStats| stall.delays + stall.stops;
        self.stalls.iter().map(count).sum()
    }

    /// How long they waited, in microseconds.
    pub fn stall_micros(&self) -> u64 {
        self.stalls.iter().map(|stall| stall.micros).sum()
    }

    /// The longest of these waits, in microseconds.
    pub fn longest_stall_micros(&self) -> u64 {
        let longest = self.stalls.iter().map(|stall| stall.longest_micros);
        longest.max().unwrap_or_default()
    }

    /// Bytes written per byte given; 0 before the first write.
    pub fn write_amplification(&self) -> f64 {
        if self.user_bytes == 0 {
            return 0.0;
        }
        self.written_bytes() as f64 / self.user_bytes as f64
    }
}

/// How writers waited for one cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct StallStats {
    /// What they waited for.
    pub cause: StallCause,
    /// Writes that were slowed down.
    pub delays: u64,
    /// Writes that waited until a job had finished, or were refused.
    pub stops: u64,
    /// Time that both waited, in microseconds.
    pub micros: u64,
    /// The longest single wait, in microseconds.
    pub longest_micros: u64,
}

/// What a keyspace looks like now.
#[derive(Debug, Clone, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct KeyspaceStats {
    /// Its name.
    pub name: String,
    /// Its options.
    pub options: KeyspaceOptions,
    /// Bytes in its memtables.
    pub memtable_bytes: u64,
    /// Its memtables: the active one and those that wait for their flush.
    pub memtables: usize,
    /// Gets that a memtable answered.
    pub gets_answered_by_memtables: u64,
    /// Its levels, level 0 first.
    pub levels: Vec<LevelStats>,
    /// Its transient logs.
    pub transient_logs: ValueFileStats,
    /// Its value logs.
    pub value_logs: ValueFileStats,
    /// Lists of values in logs that are dead and not collected.
    pub discard_lists: usize,
    /// Bytes in them.
    pub discard_list_bytes: u64,
}

/// What the value files of a keyspace look like now.
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
    /// Bytes of values that no table refers to any more. What neither counts has not been flushed, or
    /// leads on pointers into collected logs.
    pub garbage_bytes: u64,
}

/// What a level looks like now.
#[derive(Debug, Clone, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct LevelStats {
    /// Its number; 0 holds flushed runs.
    pub level: usize,
    /// Table files.
    pub files: usize,
    /// Segments in them.
    pub segments: usize,
    /// Bytes in them.
    pub bytes: u64,
    /// The bytes it may hold before it is merged down; 0 for level 0, which counts runs. A level that
    /// waits for a deeper one to shrink holds more for a while.
    pub capacity: u64,
    /// Entries, tombstones included.
    pub entries: u64,
    /// Tombstones.
    pub tombstones: u64,
    /// Gets that this level answered.
    pub gets_answered: u64,
    /// Bytes of filters that its tables have in memory while they are open.
    pub filter_bytes: u64,
    /// Blocks that a get reads here in vain, on average, if the key is not here: the sum over the
    /// runs of level 0, and over deeper files the average, of the rates of false positives; a key
    /// between two files costs nothing.
    pub false_positive_reads: f64,
    /// Bytes that jobs have moved into it since the database was opened.
    pub io_stats: LevelIoStats,
}

/// What a full check found.
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
    /// Bytes in them.
    pub bytes: u64,
    /// Values in value files that were read.
    pub values: u64,
    /// Everything that is wrong.
    pub damage: Vec<crate::Error>,
}

impl VerifyReport {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty()
    }
}

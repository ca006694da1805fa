//! What a load needs of an engine.
//!
//! Loads know an engine by this trait alone, so that they do the same to each. What an engine cannot tell is
//! absent in its [`Counters`], never 0.

pub(crate) mod owned_folder;
pub(crate) mod windrow_engine;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use windrow::{Error, ErrorKind, Result};

use crate::measure::process::ProcessIo;

/// An ordered key-value store under measurement. Every call may come from several threads.
pub trait Engine: Sync + Sized {
    /// Name in reports, and of the folder below the bench's own.
    const NAME: &'static str;

    /// Whether settling ends once the process has [written nothing](crate::wait_until_quiet) for a while. What
    /// is shown is written, too, so nothing is shown meanwhile.
    const SETTLES_BY_QUIET: bool = false;
    /// Whether the adapter has [`compact`](Self::compact).
    const COMPACTS: bool = false;
    /// Bytes of the longest key that it takes.
    const KEY_BYTES_MAX: usize = windrow::limits::KEY_BYTES_MAX;
    /// A file that the folder of each of its stores holds.
    const MARKER: &'static str = "CURRENT";

    /// A position in the key order.
    type Scan<'a>: Scan
    where
        Self: 'a;

    /// Sets `key` to `value`.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()>;
    /// Sets `key` to `value`, which survives a loss of power once this returns.
    ///
    /// # Errors
    /// `Unsupported` where the adapter has no such call.
    fn put_synced(&self, _key: &[u8], _value: &[u8]) -> Result<()> {
        Err(unsupported(Self::NAME, "writes that are synced each"))
    }
    /// Sets the keys of `entries`, at once where the engine has batches.
    fn put_batch(&self, entries: &[Entry]) -> Result<()> {
        entries
            .iter()
            .try_for_each(|entry| self.put(&entry.key, &entry.value))
    }
    /// Removes `key`, whether it exists or not.
    fn delete(&self, key: &[u8]) -> Result<()>;
    /// Copies the value of `key` into `value`; `false` where there is none.
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool>;
    /// Gets all of `keys`, at once where the engine can; `answers` are as many.
    fn multi_get(&self, keys: &[Vec<u8>], answers: &mut [Answer]) -> Result<()> {
        for (key, answer) in keys.iter().zip(answers) {
            answer.is_found = self.get(key, &mut answer.value)?;
        }
        Ok(())
    }
    /// A scan over the store as it is now.
    fn scan(&self) -> Result<Self::Scan<'_>>;
    /// Writes what is in memory to tables and waits until background work has nothing left to do, so
    /// that the next load pays for nothing of this one.
    fn settle(&self) -> Result<()>;
    /// How much of the last settling went by when nothing was left to do: what it took to find that out
    /// where the engine does not tell. It does not count.
    fn idled(&self) -> Duration {
        Duration::ZERO
    }
    /// Writes what is in memory to tables.
    fn flush(&self) -> Result<()> {
        self.settle()
    }
    /// Merges everything down to the last level.
    ///
    /// # Errors
    /// `Unsupported` where the adapter has no such call.
    fn compact(&self) -> Result<()> {
        Err(unsupported(Self::NAME, "compaction of everything"))
    }
    /// Totals since the store was opened.
    fn counters(&self) -> Result<Counters>;
    /// The shape of the tree, shallow levels first; empty where the engine does not tell.
    fn levels(&self) -> Result<Vec<LevelShape>>;
    /// What made writes wait since the store was opened; empty where the engine does not tell.
    fn stalls(&self) -> Vec<StallShape> {
        Vec::new()
    }
    /// The compactions since the last call, if the engine reports them.
    fn compactions(&self) -> Option<CompactionShape> {
        None
    }
    /// What was written and read since the store was opened, by purpose; empty where the engine does
    /// not tell.
    fn io_stats(&self) -> Vec<IoShape> {
        Vec::new()
    }
    /// The settings that the store was opened with, under the engine's names for them; those that it
    /// does not name are the engine's defaults.
    fn settings(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }
    /// Closes the store.
    fn close(self) -> Result<()>;
}

/// A lending scan: `key` and `value` may be called while the last move returned `true`, and live
/// until the next move.
pub trait Scan {
    /// Moves to the first entry whose key is not before `key`.
    fn seek(&mut self, key: &[u8]) -> Result<bool>;
    /// Moves to the next entry.
    fn next(&mut self) -> Result<bool>;
    /// Moves to the entry before.
    ///
    /// # Errors
    /// `Unsupported` where the adapter cannot.
    fn prev(&mut self) -> Result<bool> {
        Err(unsupported("the engine", "scans backwards"))
    }
    /// Moves to the last entry.
    ///
    /// # Errors
    /// `Unsupported` where the adapter cannot.
    fn seek_to_last(&mut self) -> Result<bool> {
        Err(unsupported("the engine", "scans backwards"))
    }
    /// The key of the entry.
    fn key(&self) -> &[u8];
    /// The value of the entry.
    fn value(&self) -> Result<&[u8]>;
}

/// One entry of a batch.
#[derive(Debug, Clone, Default)]
pub struct Entry {
    /// Its key.
    pub key: Vec<u8>,
    /// Its value.
    pub value: Vec<u8>,
}

/// What a get among several found.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// Whether the key has a value.
    pub is_found: bool,
    /// The value, if it has one.
    pub value: Vec<u8>,
}

#[cold]
fn unsupported(engine: &str, what: &str) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        format!("the bench has no {what} for {engine}"),
    )
}

/// Values apart from their keys that gets and scans have read; none where the engine does not tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeparatedReads {
    /// From transient logs.
    pub transient_log_reads: u64,
    /// From value logs.
    pub value_log_reads: u64,
    /// Those that scans asked the system for before they read them.
    pub prefetched: u64,
}

impl SeparatedReads {
    /// What was read since `before`.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            transient_log_reads: self.transient_log_reads - before.transient_log_reads,
            value_log_reads: self.value_log_reads - before.value_log_reads,
            prefetched: self.prefetched - before.prefetched,
        }
    }
}

/// Totals of an engine since it was opened.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counters {
    /// Bytes written to files: log, flushes, merges and metadata together.
    pub written_bytes: u64,
    /// Bytes read from files, for gets and scans and by background work.
    pub read_bytes: u64,
    /// Blocks that gets and scans consulted, where the engine tells.
    pub block_reads: Option<u64>,
    /// Values apart from their keys that gets and scans have read.
    pub separated_reads: SeparatedReads,
    /// Filters that gets asked, where the engine tells.
    pub filter_probes: Option<u64>,
    /// Filters that said yes where the key was absent, where the engine tells.
    pub filter_false_positives: Option<u64>,
    /// Seeks of scans, where the engine tells.
    pub seeks: Option<u64>,
    /// Sorted runs, segments among them, that these visited, where the engine tells.
    pub runs_visited: Option<u64>,
    /// Times that a write was delayed, where the engine tells.
    pub stalls: Option<u64>,
    /// Seconds of these delays.
    pub stall_seconds: f64,
}

impl Counters {
    /// What the system has counted for this process, for engines that do not tell.
    ///
    /// # Errors
    /// `Io` where the system does not tell.
    pub fn of_process() -> Result<Self> {
        let io = ProcessIo::now()?;
        Ok(Self {
            written_bytes: io.written_bytes,
            read_bytes: io.read_bytes,
            ..Self::default()
        })
    }
}

/// Writes that had to wait for one cause.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StallShape {
    /// What they waited for.
    pub cause: String,
    /// Writes that were slowed down.
    pub delays: u64,
    /// Writes that were stopped.
    pub stops: u64,
    /// Seconds of both.
    pub seconds: f64,
    /// The longest single wait since the store was opened, in milliseconds.
    pub longest_ms: f64,
}

/// Compactions, consolidations included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CompactionShape {
    /// How many there were.
    pub count: u64,
    /// The sum of their seconds, also of those in parallel.
    pub seconds: f64,
    /// The shortest, in milliseconds.
    pub shortest_ms: f64,
    /// The longest, in milliseconds.
    pub longest_ms: f64,
}

/// Bytes that moved to and from files for one purpose.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct IoShape {
    /// What they moved for.
    pub purpose: String,
    /// Bytes written.
    pub written_bytes: u64,
    /// Bytes read.
    pub read_bytes: u64,
}

/// One level of the tree.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct LevelShape {
    /// Its number; level 0 holds what was flushed.
    pub level: u64,
    /// Its files.
    pub files: u64,
    /// The segments in these files.
    pub segments: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes at which it is full.
    pub capacity: u64,
    /// Its entries, tombstones included.
    pub entries: u64,
    /// Bytes of tables that flushes have written into it since the store was opened. This and what
    /// follows is 0 where the engine does not tell.
    pub flushed_bytes: u64,
    /// Bytes of segments that merges have appended.
    pub appended_bytes: u64,
    /// Bytes of new tables that merges have written.
    pub rewritten_bytes: u64,
    /// Bytes of tables that consolidations have written.
    pub consolidated_bytes: u64,
    /// Bytes of tables written to lead pointers where collections have moved values.
    pub pointer_rewrite_bytes: u64,
    /// Bytes of values that flushes and merges have written to transient logs.
    pub transient_log_bytes: u64,
    /// Bytes of tables that merges have read.
    pub read_bytes: u64,
    /// Bytes of tables that consolidations have read.
    pub consolidation_read_bytes: u64,
    /// Bytes of tables read to lead pointers.
    pub pointer_rewrite_read_bytes: u64,
    /// Bytes of transient logs that merges have read.
    pub transient_log_read_bytes: u64,
    /// Gets that it has answered, with a value or a tombstone.
    #[serde(default)]
    pub gets_answered: u64,
}

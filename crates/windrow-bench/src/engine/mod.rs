//! The interface between loads and engines.
//!
//! Loads use an engine through this trait only, so they do the same on each. A counter that an engine does not have
//! is `None` in its [`Counters`], never 0.

mod compaction_times;
mod feature;
mod filter;
pub(crate) mod owned_folder;
pub(crate) mod windrow_engine;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use windrow::{Error, ErrorKind, Result};

pub use self::feature::{Feature, MergeOperator, Transactions};
use crate::measure::process::ProcessIo;

/// The time after which values of [`Engine::put_expiring`] expire: longer than any run.
pub const TIME_TO_LIVE: Duration = Duration::from_secs(24 * 3600);

/// An ordered key-value store under measurement. Every call may come from several threads.
pub trait Engine: Sync + Sized {
    /// The name in reports, and of the subfolder of the store.
    const NAME: &'static str;

    /// Whether settling ends when the process has [written nothing](crate::wait_until_quiet) for a while. Progress
    /// is a write, too, so the bench shows none during this wait.
    const SETTLES_BY_QUIET: bool = false;
    /// What it has beyond puts, gets, deletes and scans. No load calls a method of a feature that is not here.
    const FEATURES: &'static [Feature] = &[];
    /// Bytes of the longest key that it accepts.
    const KEY_BYTES_MAX: usize = windrow::limits::KEY_BYTES_MAX;
    /// A file in the folder of every store of this engine.
    const MARKER: &'static str = "CURRENT";

    /// A position in the key order.
    type Scan<'a>: Scan
    where
        Self: 'a;

    /// Sets `key` to `value`.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()>;
    /// Sets `key` to `value`, which survives a power failure after the return.
    ///
    /// # Errors
    /// `Unsupported` if the adapter has no such call.
    fn put_synced(&self, _key: &[u8], _value: &[u8]) -> Result<()> {
        Err(unsupported(Self::NAME, "synced writes"))
    }
    /// Sets the keys of `entries`, in one batch if the engine has batches.
    fn put_batch(&self, entries: &[Entry]) -> Result<()> {
        entries
            .iter()
            .try_for_each(|entry| self.put(&entry.key, &entry.value))
    }
    /// Removes `key`, whether it exists or not.
    fn delete(&self, key: &[u8]) -> Result<()>;
    /// Copies the value of `key` into `value`; `false` if the key does not exist.
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool>;
    /// Gets all of `keys`, at once if the engine can. `keys` and `answers` have the same length.
    fn multi_get(&self, keys: &[Vec<u8>], answers: &mut [Answer]) -> Result<()> {
        for (key, answer) in keys.iter().zip(answers) {
            answer.is_found = self.get(key, &mut answer.value)?;
        }
        Ok(())
    }
    /// A scan over the current state of the store.
    fn scan(&self) -> Result<Self::Scan<'_>>;
    /// Flushes memtables and waits until the background work is done, so the next load pays for none of it.
    fn settle(&self) -> Result<()>;
    /// The idle time at the end of the last settling. An engine that does not report the end of its work needs this
    /// time to detect it. The time does not count.
    fn idled(&self) -> Duration {
        Duration::ZERO
    }
    /// Flushes memtables.
    fn flush(&self) -> Result<()> {
        self.settle()
    }
    /// Compacts everything to the last level.
    ///
    /// # Errors
    /// `Unsupported` without [`Feature::Compaction`].
    fn compact(&self) -> Result<()> {
        Err(missing(Self::NAME, Feature::Compaction))
    }
    /// Runs `work` in a transaction and commits it. After a conflict with another one it begins again, until it succeeds.
    ///
    /// # Errors
    /// That of `work`; `Unsupported` without the feature of `kind`.
    fn transact(
        &self,
        kind: Transactions,
        _work: &mut dyn FnMut(&mut dyn TransactionCalls) -> Result<()>,
    ) -> Result<()> {
        Err(missing(Self::NAME, kind.feature()))
    }
    /// Runs `work` in a locking transaction, makes it durable, and commits it then. After a conflict with another one it
    /// begins again, until it succeeds. Both phases survive a power failure.
    ///
    /// # Errors
    /// That of `work`; `Unsupported` without [`Feature::TwoPhaseCommit`].
    fn transact_in_two_phases(
        &self,
        _work: &mut dyn FnMut(&mut dyn TransactionCalls) -> Result<()>,
    ) -> Result<()> {
        Err(missing(Self::NAME, Feature::TwoPhaseCommit))
    }
    /// Sets `key` to what `change` makes of its value, in one step. `change` gets the old value, empty if there is none,
    /// and replaces it with the new one. It may be called more than once.
    ///
    /// # Errors
    /// `Unsupported` without [`Feature::Updates`].
    fn update(&self, _key: &[u8], _change: &mut dyn FnMut(&mut Vec<u8>)) -> Result<()> {
        Err(missing(Self::NAME, Feature::Updates))
    }
    /// Merges `operand` into the value of `key`, by the operator of [`BenchArgs::merge_operator`].
    ///
    /// [`BenchArgs::merge_operator`]: crate::BenchArgs::merge_operator
    ///
    /// # Errors
    /// `Unsupported` without [`Feature::Merges`].
    fn merge(&self, _key: &[u8], _operand: &[u8]) -> Result<()> {
        Err(missing(Self::NAME, Feature::Merges))
    }
    /// Sets `key` to `value`, which expires after [`TIME_TO_LIVE`].
    ///
    /// # Errors
    /// `Unsupported` without [`Feature::Expiry`].
    fn put_expiring(&self, _key: &[u8], _value: &[u8]) -> Result<()> {
        Err(missing(Self::NAME, Feature::Expiry))
    }
    /// Removes all keys from `from` on that are before `to`.
    ///
    /// # Errors
    /// `Unsupported` without [`Feature::RangeDeletes`].
    fn delete_range(&self, _from: &[u8], _to: &[u8]) -> Result<()> {
        Err(missing(Self::NAME, Feature::RangeDeletes))
    }
    /// Adds `entries`, which are in the order of their keys and behind all keys of the store.
    ///
    /// # Errors
    /// `Unsupported` without [`Feature::BulkLoads`].
    fn bulk_load(&self, _entries: &mut dyn Iterator<Item = Entry>) -> Result<()> {
        Err(missing(Self::NAME, Feature::BulkLoads))
    }
    /// Writes `entries`, which are in the order of their keys and of which the store has none, to files of
    /// `entries_per_file` outside of the store, and adds all files in one step.
    ///
    /// # Errors
    /// `Unsupported` without [`Feature::ExternalFiles`].
    fn ingest(
        &self,
        _entries: &mut dyn Iterator<Item = Entry>,
        _entries_per_file: usize,
    ) -> Result<()> {
        Err(missing(Self::NAME, Feature::ExternalFiles))
    }
    /// Compacts everything with a filter that removes what [`is_filtered`](crate::is_filtered) says, until nothing of that is left. Other
    /// compactions keep everything.
    ///
    /// # Errors
    /// `Unsupported` without [`Feature::CompactionFilters`].
    fn compact_filtered(&self) -> Result<()> {
        Err(missing(Self::NAME, Feature::CompactionFilters))
    }
    /// About how many bytes of files hold the keys from `from` on that are before `to`.
    ///
    /// # Errors
    /// `Unsupported` without [`Feature::ApproximateSizes`].
    fn approximate_size(&self, _from: &[u8], _to: &[u8]) -> Result<u64> {
        Err(missing(Self::NAME, Feature::ApproximateSizes))
    }
    /// Totals since the open.
    fn counters(&self) -> Result<Counters>;
    /// The shape of the tree, shallow levels first; empty if the engine does not report it.
    fn levels(&self) -> Result<Vec<LevelShape>> {
        Ok(Vec::new())
    }
    /// The stalls since the open; empty if the engine does not report them.
    fn stalls(&self) -> Vec<StallShape> {
        Vec::new()
    }
    /// The compactions since the last call, if the engine reports them.
    fn compactions(&self) -> Option<CompactionShape> {
        None
    }
    /// The bytes written and read since the open, by purpose; empty if the engine does not report them.
    fn io_stats(&self) -> Vec<IoShape> {
        Vec::new()
    }
    /// The settings of the store under the engine's names. Settings without a name here are the engine's defaults.
    fn settings(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }
    /// Closes the store.
    fn close(self) -> Result<()>;
}

/// The calls within a transaction.
pub trait TransactionCalls {
    /// Copies the value of `key` into `value`, which the transaction will put; `false` if the key does not exist.
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool>;
    /// Sets `key` to `value`.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;
}

/// A lending scan. `key` and `value` are valid if the last move returned `true`, and live until the next move.
pub trait Scan {
    /// Moves to the first entry whose key is not before `key`.
    fn seek(&mut self, key: &[u8]) -> Result<bool>;
    /// Moves to the next entry. No load calls it after [`prev`](Self::prev) without a seek in between, and some
    /// adapters cannot turn forward.
    fn next(&mut self) -> Result<bool>;
    /// Moves to the previous entry.
    ///
    /// # Errors
    /// `Unsupported` if the adapter cannot.
    fn prev(&mut self) -> Result<bool> {
        Err(unsupported("the engine", "backward scans"))
    }
    /// Moves to the last entry.
    ///
    /// # Errors
    /// `Unsupported` if the adapter cannot.
    fn seek_to_last(&mut self) -> Result<bool> {
        Err(unsupported("the engine", "backward scans"))
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

/// The answer to one key of a multi-get.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// Whether the key has a value.
    pub is_found: bool,
    /// The value, if it has one.
    pub value: Vec<u8>,
}

#[cold]
fn missing(engine: &str, feature: Feature) -> Error {
    unsupported(engine, feature.name())
}

#[cold]
fn unsupported(engine: &str, what: &str) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        format!("the bench does not support {what} on {engine}"),
    )
}

/// Separated values that gets and scans have read; 0 if the engine does not report them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeparatedReads {
    /// From transient logs.
    pub transient_log_reads: u64,
    /// From value logs.
    pub value_log_reads: u64,
    /// Values that scans prefetched.
    pub prefetched: u64,
}

impl SeparatedReads {
    /// The reads since `before`.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            transient_log_reads: self.transient_log_reads - before.transient_log_reads,
            value_log_reads: self.value_log_reads - before.value_log_reads,
            prefetched: self.prefetched - before.prefetched,
        }
    }
}

/// Totals of an engine since its open.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counters {
    /// Bytes written to files: log, flushes, compactions and metadata.
    pub written_bytes: u64,
    /// Bytes read from files by gets, scans and background work.
    pub read_bytes: u64,
    /// Blocks that gets and scans consulted, if the engine reports them.
    pub block_reads: Option<u64>,
    /// Separated values that gets and scans have read.
    pub separated_reads: SeparatedReads,
    /// Filters that gets probed, if the engine reports them.
    pub filter_probes: Option<u64>,
    /// Filters that passed an absent key, if the engine reports them.
    pub filter_false_positives: Option<u64>,
    /// Seeks of scans, if the engine reports them.
    pub seeks: Option<u64>,
    /// Sorted runs, segments included, that these seeks visited, if the engine reports them.
    pub runs_visited: Option<u64>,
    /// Stalls of writes, if the engine reports them.
    pub stalls: Option<u64>,
    /// Seconds of these stalls.
    pub stall_seconds: f64,
}

impl Counters {
    /// The kernel's counters of this process, for engines without their own.
    ///
    /// # Errors
    /// `Io` if the system does not report it.
    pub fn of_process() -> Result<Self> {
        let io = ProcessIo::now()?;
        Ok(Self {
            written_bytes: io.written_bytes,
            read_bytes: io.read_bytes,
            ..Self::default()
        })
    }
}

/// The stalls of one cause.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StallShape {
    /// The cause.
    pub cause: String,
    /// Delayed writes.
    pub delays: u64,
    /// Stopped writes.
    pub stops: u64,
    /// Seconds of delays and stops.
    pub seconds: f64,
    /// The longest stall since the open, in milliseconds.
    pub longest_ms: f64,
}

/// Compactions, consolidations included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CompactionShape {
    /// Their number.
    pub count: u64,
    /// The sum of their seconds, also of those in parallel.
    pub seconds: f64,
    /// The shortest, in milliseconds.
    pub shortest_ms: f64,
    /// The longest, in milliseconds.
    pub longest_ms: f64,
}

/// The I/O of one purpose.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct IoShape {
    /// The purpose.
    pub purpose: String,
    /// Bytes written.
    pub written_bytes: u64,
    /// Bytes read.
    pub read_bytes: u64,
}

/// One level of the tree.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct LevelShape {
    /// Its number; level 0 holds the flushed tables.
    pub level: u64,
    /// Its files.
    pub files: u64,
    /// The segments in these files.
    pub segments: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Its capacity in bytes.
    pub capacity: u64,
    /// Its entries, tombstones included.
    pub entries: u64,
    /// Bytes of tables that flushes have written since the open. This and the following counters are 0 if the
    /// engine does not report them.
    pub flushed_bytes: u64,
    /// Bytes of segments that compactions have appended.
    pub appended_bytes: u64,
    /// Bytes of new tables that compactions have written.
    pub rewritten_bytes: u64,
    /// Bytes of tables that consolidations have written.
    pub consolidated_bytes: u64,
    /// Bytes of tables that pointer rewrites have written.
    pub pointer_rewrite_bytes: u64,
    /// Bytes of values that flushes and compactions have written to transient logs.
    pub transient_log_bytes: u64,
    /// Bytes of tables that compactions have read.
    pub read_bytes: u64,
    /// Bytes of tables that consolidations have read.
    pub consolidation_read_bytes: u64,
    /// Bytes of tables that pointer rewrites have read.
    pub pointer_rewrite_read_bytes: u64,
    /// Bytes of transient logs that compactions have read.
    pub transient_log_read_bytes: u64,
    /// Gets that found their value in the level.
    #[serde(default)]
    pub gets_answered: u64,
}

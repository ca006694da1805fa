//! One keyspace while the database is open.
//!
//! Owns the state that readers take, the options, and the record of the files that jobs use.
//!
//! A drop is one edit. After it every call on the keyspace fails, except reads of snapshots, and its jobs end
//! without an error. Its memtables and files are freed when no handle, view or cursor uses them.
//!
//! Invariants:
//! - I1: The state is replaced as a whole, under `install`: by the leader of the commits when a memtable rotates or a
//!   value log begins, and by jobs when they install a result. Its version changes only under the catalog's lock, too.
//!   Readers never wait for it.
//! - I2: Frozen memtables keep the order of their rotation. They are flushed oldest first, one at a time.
//! - I3: A file is an input of at most one job.
//! - I4: A dropped keyspace takes no more edits, so its version no longer changes.
//!
//! Concurrency: readers load the state without a lock. A thread holds `install` for the exchange only
//! and `work` for decisions only; neither during I/O.

#[cfg(all(test, loom))]
mod models;
mod work;

pub(crate) use work::KeyspaceWork;

use std::sync::Arc;
use std::time::Duration;

use crate::base::limits::LEVELS_MAX;
use crate::base::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::base::sync::{ArcSwap, Guard, Mutex, MutexGuard, Shared};
use crate::base::{
    Cause, Error, IoStatsByLevel, KeyspaceId, Result, SequenceNumber, Striped, Totals, Trailer,
};
use crate::compaction_filter::CompactionFilter;
use crate::engine::commit::value_log::ValueLog;
use crate::engine::errors::failure::Failure;
use crate::engine::jobs::filter_state::FilterState;
use crate::engine::throttling::atomic_throttle::AtomicThrottle;
use crate::engine::throttling::memory::Memory;
use crate::manifest::{KeyspaceState, ManifestState, Obsolete, Record, Version};
use crate::memtable::Memtable;
use crate::merge_operator::KeyspaceOperator;
use crate::options::KeyspaceOptions;
use crate::policy::{self, Throttle, memtable_throttle, memtables_may_slow};
use crate::read::state::{FrozenMemtable, ReadState};
use crate::read::tombstone_spans::TombstoneSpans;
use crate::table::FileMeta;

/// Under new options each level may keep what it holds.
const EVERYTHING_ALLOWED: [u64; LEVELS_MAX + 1] = [u64::MAX; LEVELS_MAX + 1];

/// The index of the counter of gets that memtables answered; the levels come before it.
pub(crate) const ANSWERED_BY_MEMTABLES: usize = LEVELS_MAX + 1;

/// One keyspace.
#[derive(Debug)]
pub(crate) struct KeyspaceCore {
    id: KeyspaceId,
    /// Stored under the lock of all creations, drops and renames.
    name: ArcSwap<String>,
    options: ArcSwap<KeyspaceOptions>,
    /// The size of a full memtable.
    memtable_bytes: AtomicUsize,
    /// The bytes of separated values at which a memtable is full.
    memtable_value_bytes_max: AtomicU64,
    /// The size of a full value log.
    value_log_bytes: AtomicU64,
    /// Whether the options have a default time to live.
    has_default_ttl: AtomicBool,
    /// Set under the catalog's lock after the edit that drops the keyspace is durable. The state stays for
    /// snapshots.
    dropped: AtomicBool,
    state: ArcSwap<ReadState>,
    /// The sequence number of the last ingestion.
    ingested: AtomicU64,
    install: Mutex<()>,
    pub(crate) work: Mutex<KeyspaceWork>,
    pub(crate) filters: FilterState,
    /// Judges the values that compactions rewrite.
    compaction_filter: Option<Arc<dyn CompactionFilter>>,
    /// The ranges of keys that cursors skip.
    pub(crate) tombstones: Arc<TombstoneSpans>,
    /// The throttle for the debt on disk.
    throttle: AtomicThrottle,
    /// The number of frozen memtables if it can delay writers, else 0.
    slowing_memtables: AtomicUsize,
    /// The last failure of its compactions.
    pub(super) failure: Failure,
    /// The last failure of its garbage collections.
    pub(super) gc_failure: Failure,
    memory: Arc<Memory>,
    /// The value logs that take its large values.
    pub(super) value_log: Mutex<ValueLog>,
    pub(crate) answered: Striped<{ LEVELS_MAX + 2 }>,
    /// What jobs have moved since the open. A job counts at its end.
    pub(crate) io_stats: Mutex<IoStatsByLevel>,
    /// What jobs of earlier opens have moved.
    totals_before: Totals,
}

/// The error for a keyspace with a merge operator whose entries would expire.
pub(super) fn merges_and_expires(keyspace: &str, operator: &str) -> Error {
    Error::invalid_argument(format!(
        "keyspace \"{keyspace}\" cannot have both the merge operator \"{operator}\" and entries that expire"
    ))
}

impl KeyspaceCore {
    pub(crate) fn new(
        id: KeyspaceId,
        name: String,
        options: KeyspaceOptions,
        operator: KeyspaceOperator,
        version: Version,
        level_count: usize,
        memory: &Arc<Memory>,
    ) -> Self {
        let state = ReadState {
            active: Arc::new(Memtable::new(&memory.memtables)),
            frozen: Vec::new(),
            version: Shared::new(version),
            in_tables: 0,
            operator: Arc::new(operator),
        };
        Self {
            id,
            name: ArcSwap::from_pointee(name),
            memtable_bytes: AtomicUsize::new(memory.memtable_bytes(options.memtable_bytes)),
            memtable_value_bytes_max: AtomicU64::new(options.memtable_bytes as u64),
            value_log_bytes: AtomicU64::new(policy::value_log_bytes(0, &options)),
            has_default_ttl: AtomicBool::new(options.default_ttl.is_some()),
            dropped: AtomicBool::new(false),
            state: ArcSwap::from_pointee(state),
            ingested: AtomicU64::new(0),
            install: Mutex::new(()),
            work: Mutex::new(KeyspaceWork {
                level_count,
                allowed: EVERYTHING_ALLOWED.to_vec(),
                cursors: vec![None; LEVELS_MAX + 1],
                ..KeyspaceWork::default()
            }),
            filters: FilterState::new(&options),
            compaction_filter: None,
            tombstones: Arc::new(TombstoneSpans::new(&memory.tables.cursors)),
            throttle: AtomicThrottle::default(),
            slowing_memtables: AtomicUsize::new(0),
            failure: Failure::default(),
            gc_failure: Failure::default(),
            memory: Arc::clone(memory),
            value_log: Mutex::default(),
            answered: Striped::new(),
            io_stats: Mutex::new(IoStatsByLevel::default()),
            totals_before: Totals::new(),
            options: ArcSwap::from_pointee(options),
        }
    }

    /// Continues the `totals` that earlier opens have counted.
    pub(crate) fn with_totals(mut self, totals: Totals) -> Self {
        self.totals_before = totals;
        self
    }

    pub(crate) fn with_compaction_filter(
        mut self,
        filter: Option<Arc<dyn CompactionFilter>>,
    ) -> Self {
        self.compaction_filter = filter;
        self
    }

    pub(crate) fn compaction_filter(&self) -> Option<&dyn CompactionFilter> {
        self.compaction_filter.as_deref()
    }

    pub(crate) fn id(&self) -> KeyspaceId {
        self.id
    }

    pub(crate) fn name(&self) -> Shared<String> {
        self.name.load_full()
    }

    /// Applies a name that the manifest has recorded.
    pub(super) fn set_name(&self, name: String) {
        self.name.store(Shared::new(name));
    }

    /// Whether this open has the merge operator.
    pub(crate) fn can_fold(&self) -> bool {
        self.state.load().operator.is_there()
    }

    /// The merge operator, which never changes.
    pub(crate) fn operator(&self) -> Arc<KeyspaceOperator> {
        Arc::clone(&self.state.load().operator)
    }

    pub(crate) fn options(&self) -> Shared<KeyspaceOptions> {
        self.options.load_full()
    }

    /// Applies options that the manifest has recorded.
    pub(crate) fn set_options(&self, options: KeyspaceOptions) {
        self.memtable_bytes.store(
            self.memory.memtable_bytes(options.memtable_bytes),
            Ordering::Relaxed,
        );
        let has_default_ttl = options.default_ttl.is_some();
        // Under the lock of jobs that plan or compute the throttle.
        let mut work = self.work.lock();
        self.options.store(Shared::new(options));
        self.has_default_ttl
            .store(has_default_ttl, Ordering::Release);
        work.allowed = EVERYTHING_ALLOWED.to_vec();
    }

    /// Whether values expire that are written without a time to live of their own.
    #[inline]
    pub(crate) fn has_default_ttl(&self) -> bool {
        self.has_default_ttl.load(Ordering::Acquire)
    }

    /// # Errors
    /// `InvalidArgument` if the keyspace has a merge operator: an operand has no time at which its result would expire.
    pub(crate) fn check_expiring(&self) -> Result<()> {
        match self.state.load().operator.name() {
            Some(operator) => Err(merges_and_expires(&self.name(), operator)),
            None => Ok(()),
        }
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    /// # Errors
    /// `NotFound` once the keyspace is dropped.
    #[inline]
    pub(crate) fn check_exists(&self) -> Result<()> {
        if self.is_dropped() {
            return Err(Error::dropped(&self.name()));
        }
        Ok(())
    }

    /// Notes that the edit that drops the keyspace is durable. Each file is deleted after its last user
    /// has released it.
    pub(crate) fn note_dropped(&self) {
        self.dropped.store(true, Ordering::Release);
        self.state.load().version.mark_obsolete();
    }

    /// Counts the bytes that a job has moved into `level`.
    pub(super) fn count<const N: usize>(&self, level: usize, moved: [(Cause, u64); N]) {
        let mut io_stats = self.io_stats.lock();
        for (cause, bytes) in moved {
            io_stats[level].add(cause, bytes);
        }
    }

    /// What jobs of this open and of all before it have moved.
    pub(crate) fn totals(&self) -> Totals {
        let mut totals = self.totals_before.clone();
        for (level, io_stats) in self.io_stats.lock().iter().enumerate() {
            io_stats.add_to(level, &mut totals);
        }
        totals
    }

    /// The record of the totals, if `manifest` has other ones.
    pub(super) fn totals_record(&self, manifest: &ManifestState) -> Option<Record> {
        let recorded = &manifest.keyspaces.get(&self.id)?.totals;
        let totals = self.totals();
        (totals != *recorded).then_some(Record::KeyspaceTotals {
            keyspace: self.id,
            totals,
        })
    }

    /// Whether the active memtable has reached its size or its limit of value bytes.
    pub(crate) fn is_memtable_full(&self) -> bool {
        self.is_full(&self.state.load().active)
            || self.is_value_limit_reached(self.value_log.lock().memtable_value_bytes())
    }

    /// Whether a memtable with `bytes` of separated values is full.
    pub(super) fn is_value_limit_reached(&self, bytes: u64) -> bool {
        bytes >= self.memtable_value_bytes_max.load(Ordering::Relaxed)
    }

    /// The size of a full value log.
    pub(super) fn value_log_bytes(&self) -> u64 {
        self.value_log_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn set_value_log_bytes(&self, bytes: u64) {
        self.value_log_bytes.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn set_memtable_value_bytes_max(&self, bytes: u64) {
        self.memtable_value_bytes_max
            .store(bytes, Ordering::Relaxed);
    }

    /// Whether the active memtable is to be flushed for its tombstones: if it has not grown for a while at `now`.
    pub(super) fn has_idle_tombstones(&self, now: Duration) -> bool {
        let state = self.state.load();
        let (entries, tombstones) = (state.active.entries(), state.active.tombstones());
        let has_ranges = state.active.has_ranges();
        if !has_ranges && !policy::is_flush_worthwhile(entries, tombstones, 0) {
            return false;
        }
        let mut work = self.work.lock();
        work.note_entries(entries, now);
        if !policy::is_idle(work.idle_time(now)) {
            return false;
        }
        drop(work);
        let hidden = if has_ranges {
            state.version.entries_in(state.active.ranges(), 0)
        } else {
            0
        };
        policy::is_flush_worthwhile(entries, tombstones, hidden)
    }

    #[inline]
    fn is_full(&self, memtable: &Memtable) -> bool {
        memtable.memory_bytes() >= self.memtable_bytes.load(Ordering::Relaxed)
    }

    /// Inserts an entry of a commit into the active memtable. Returns whether that is full now.
    #[inline]
    pub(crate) fn insert(&self, key: &[u8], trailer: Trailer, value: &[u8]) -> bool {
        let state = self.state.load();
        if trailer.is_tombstone() {
            state.active.insert_tombstone(key, trailer, value);
        } else {
            self.tombstones.note_write(key, trailer.sequence());
            state.active.insert(key, trailer, value);
        }
        self.is_full(&state.active)
    }

    /// The current state, borrowed: for reads that end soon.
    #[inline]
    pub(crate) fn state(&self) -> Guard<Shared<ReadState>> {
        self.state.load()
    }

    /// The current state, owned: for cursors and jobs.
    pub(crate) fn state_full(&self) -> Shared<ReadState> {
        self.state.load_full()
    }

    /// Freezes the active memtable and replaces it by an empty one. Only the leader of the commits may call
    /// this, and only while no insertion runs. `through` is the newest sequence number in use.
    pub(crate) fn rotate(&self, through: SequenceNumber) {
        let value_log = self.value_log.lock().note_rotation();
        self.replace(|state| {
            let mut frozen = Vec::with_capacity(state.frozen.len() + 1);
            frozen.push(FrozenMemtable {
                memtable: Arc::clone(&state.active),
                through,
                value_log,
            });
            frozen.extend(state.frozen.iter().cloned());
            ReadState {
                active: Arc::new(Memtable::new(&self.memory.memtables)),
                frozen,
                version: Shared::clone(&state.version),
                in_tables: state.in_tables,
                operator: Arc::clone(&state.operator),
            }
        });
    }

    /// Installs a flush: `version` contains the oldest frozen memtable.
    pub(crate) fn install_flush(&self, version: Version) {
        self.replace(|state| {
            let mut frozen = state.frozen.clone();
            let flushed = frozen.pop().map(|flushed| flushed.through);
            assert!(flushed.is_some(), "only a frozen memtable is flushed");
            ReadState {
                active: Arc::clone(&state.active),
                frozen,
                version: Shared::new(version),
                // An ingestion may have added newer entries.
                in_tables: state.in_tables.max(flushed.unwrap_or_default()),
                operator: Arc::clone(&state.operator),
            }
        });
    }

    /// The lowest sequence number that may be in a memtable and in no table; `None` if the memtables are
    /// empty. `flushed` is the manifest's value for this keyspace.
    pub(crate) fn unflushed(&self, flushed: SequenceNumber) -> Option<SequenceNumber> {
        let state = self.state.load();
        let holds_entries = !state.frozen.is_empty() || !state.active.is_empty();
        holds_entries.then_some(flushed + 1)
    }

    /// Shows `memtable` and `version`, for an engine that only reads.
    pub(super) fn show(&self, memtable: &Arc<Memtable>, version: &Shared<Version>) {
        self.replace(|state| ReadState {
            active: Arc::clone(memtable),
            version: Shared::clone(version),
            ..state.clone()
        });
    }

    /// Takes the value files of `manifest` into the version.
    pub(super) fn set_value_files(&self, manifest: &KeyspaceState, obsolete: &Arc<Obsolete>) {
        self.replace(|state| ReadState {
            version: Shared::new(state.version.with_values(manifest, obsolete)),
            ..state.clone()
        });
    }

    /// Installs `version` beside the same memtables.
    pub(crate) fn install_version(&self, version: Version) {
        self.replace(|state| ReadState {
            version: Shared::new(version),
            ..state.clone()
        });
    }

    /// Installs `version` with the `tables` that an ingestion has added at `sequence`, before that is published. The
    /// memtables hold no key within the ends of a table.
    pub(crate) fn install_ingestion(
        &self,
        version: Version,
        tables: &[FileMeta],
        sequence: SequenceNumber,
    ) {
        for table in tables {
            let (smallest, largest) = table.range();
            self.tombstones.note_writes(smallest, largest, sequence);
        }
        self.replace(|state| ReadState {
            version: Shared::new(version),
            in_tables: state.in_tables.max(sequence),
            ..state.clone()
        });
        self.ingested.store(sequence, Ordering::Release);
    }

    /// Whether a reader with `state` and a later load of the visible sequence number has all ingestions up to that number.
    /// Its memtable may take entries that are newer than an ingestion which it lacks.
    #[inline]
    pub(crate) fn has_ingestions(&self, state: &ReadState) -> bool {
        state.in_tables >= self.ingested.load(Ordering::Acquire)
    }

    fn replace(&self, change: impl FnOnce(&ReadState) -> ReadState) {
        let exchange: MutexGuard<'_, ()> = self.install.lock();
        let changed = change(&self.state.load());
        self.state.store(Shared::new(changed));
        drop(exchange);
    }

    /// The throttle of writers.
    #[inline]
    pub(super) fn throttle(&self) -> Throttle {
        let on_disk = self.throttle.load();
        match self.slowing_memtables.load(Ordering::Relaxed) {
            0 => on_disk,
            frozen => on_disk.max(memtable_throttle(frozen, self.filled())),
        }
    }

    /// The throttle for the debt on disk alone.
    pub(super) fn throttle_by_disk(&self) -> Throttle {
        self.throttle.load()
    }

    /// The fraction of the active memtable that is used.
    fn filled(&self) -> f64 {
        let used = self.state.load().active.memory_bytes();
        used as f64 / self.memtable_bytes.load(Ordering::Relaxed) as f64
    }

    /// Sets the throttle for the debt on disk and for the number of `frozen` memtables.
    pub(super) fn set_throttle(&self, on_disk: Throttle, frozen: usize) {
        let slowing = if memtables_may_slow(frozen) {
            frozen
        } else {
            0
        };
        self.throttle.store(on_disk);
        self.slowing_memtables.store(slowing, Ordering::Relaxed);
    }
}

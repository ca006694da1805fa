//! One keyspace while the database is open.
//!
//! Owns the state that readers take, the options, and which of its files are in use by jobs.
//!
//! Invariants:
//! - I1: The state is replaced as a whole, under `install`, by the leader of the commits when a
//!   memtable rotates and by jobs when they install a result; readers never wait for it.
//! - I2: Memtables wait in the order of their rotation and are flushed oldest first, one at a time.
//! - I3: A file is an input of at most one job.
//! - I4: Once dropped, a keyspace takes no more edits, so its version stays what it was.
//!
//! Concurrency: readers load the state without a lock. `install` is held for the exchange only,
//! `work` for decisions only; neither during I/O.

#[cfg(all(test, loom))]
mod models;
mod work;

pub(crate) use work::KeyspaceWork;

use std::sync::Arc;

use crate::base::limits::LEVELS_MAX;
use crate::base::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::base::sync::{ArcSwap, Guard, Mutex, MutexGuard, Shared};
use crate::base::{
    Cause, Error, IoStatsByLevel, KeyspaceId, Result, SequenceNumber, Striped, Trailer,
};
use crate::engine::commit::value_log::ValueLog;
use crate::engine::errors::failure::Failure;
use crate::engine::jobs::filter_state::FilterState;
use crate::engine::throttling::memory::Memory;
use crate::engine::throttling::stall::AtomicThrottle;
use crate::manifest::{KeyspaceState, Obsolete, Version};
use crate::memtable::Memtable;
use crate::options::KeyspaceOptions;
use crate::policy::{self, Throttle, memtable_throttle, memtables_may_slow};
use crate::read::state::{FrozenMemtable, ReadState};
use crate::read::tombstone_span::TombstoneSpan;

/// Each level may hold what it holds: with what a keyspace goes on under new options.
const EVERYTHING_ALLOWED: [u64; LEVELS_MAX + 1] = [u64::MAX; LEVELS_MAX + 1];

/// Counters of where gets were answered: one per level, and one for memtables.
pub(crate) const ANSWERED_BY_MEMTABLES: usize = LEVELS_MAX + 1;

/// One keyspace.
#[derive(Debug)]
pub(crate) struct KeyspaceCore {
    id: KeyspaceId,
    name: String,
    options: ArcSwap<KeyspaceOptions>,
    /// The size at which a memtable is full, at hand for every write.
    memtable_bytes: AtomicUsize,
    /// How many bytes of values in logs may stand behind a memtable until it is full.
    memtable_value_bytes_max: AtomicU64,
    /// How long a value log is when another is begun.
    value_log_bytes: AtomicU64,
    /// Set under the catalog's lock, when the edit that drops the keyspace is durable. The state
    /// stays for whoever holds the keyspace at a snapshot.
    dropped: AtomicBool,
    state: ArcSwap<ReadState>,
    install: Mutex<()>,
    pub(crate) work: Mutex<KeyspaceWork>,
    pub(crate) filters: FilterState,
    /// Where cursors need not look.
    pub(crate) tombstones: Arc<TombstoneSpan>,
    /// The pressure of the debts on disk.
    throttle: AtomicThrottle,
    /// How many memtables wait, if so many can slow writers; else 0.
    slowing_memtables: AtomicUsize,
    /// That of its merges.
    pub(super) failure: Failure,
    /// That of collections of its value logs.
    pub(super) gc_failure: Failure,
    memory: Arc<Memory>,
    /// Where its large values go.
    pub(super) value_log: Mutex<ValueLog>,
    pub(crate) answered: Striped<{ LEVELS_MAX + 2 }>,
    /// What jobs have moved since the database was opened; each counts when it is done.
    pub(crate) io_stats: Mutex<IoStatsByLevel>,
}

impl KeyspaceCore {
    pub(crate) fn new(
        id: KeyspaceId,
        name: String,
        options: KeyspaceOptions,
        version: Version,
        level_count: usize,
        memory: &Arc<Memory>,
    ) -> Self {
        let state = ReadState {
            active: Arc::new(Memtable::new(&memory.memtables)),
            frozen: Vec::new(),
            version: Shared::new(version),
        };
        Self {
            id,
            name,
            memtable_bytes: AtomicUsize::new(memory.memtable_bytes(options.memtable_bytes)),
            memtable_value_bytes_max: AtomicU64::new(options.memtable_bytes as u64),
            value_log_bytes: AtomicU64::new(policy::value_log_bytes(0, &options)),
            dropped: AtomicBool::new(false),
            state: ArcSwap::from_pointee(state),
            install: Mutex::new(()),
            work: Mutex::new(KeyspaceWork {
                level_count,
                allowed: EVERYTHING_ALLOWED.to_vec(),
                cursors: vec![None; LEVELS_MAX + 1],
                ..KeyspaceWork::default()
            }),
            filters: FilterState::new(&options),
            tombstones: Arc::default(),
            throttle: AtomicThrottle::default(),
            slowing_memtables: AtomicUsize::new(0),
            failure: Failure::default(),
            gc_failure: Failure::default(),
            memory: Arc::clone(memory),
            value_log: Mutex::default(),
            answered: Striped::new(),
            io_stats: Mutex::new(IoStatsByLevel::default()),
            options: ArcSwap::from_pointee(options),
        }
    }

    pub(crate) fn id(&self) -> KeyspaceId {
        self.id
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn options(&self) -> Shared<KeyspaceOptions> {
        self.options.load_full()
    }

    /// Takes options that the manifest has recorded.
    pub(crate) fn set_options(&self, options: KeyspaceOptions) {
        self.memtable_bytes.store(
            self.memory.memtable_bytes(options.memtable_bytes),
            Ordering::Relaxed,
        );
        // At once for whoever plans or works out the pressure, under the same lock.
        let mut work = self.work.lock();
        self.options.store(Shared::new(options));
        work.allowed = EVERYTHING_ALLOWED.to_vec();
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    /// # Errors
    /// `NotFound` once the keyspace is dropped.
    #[inline]
    pub(crate) fn check_exists(&self) -> Result<()> {
        if self.is_dropped() {
            return Err(Error::dropped(&self.name));
        }
        Ok(())
    }

    /// The edit that drops the keyspace is durable: its files go when their last holders go.
    pub(crate) fn note_dropped(&self) {
        self.dropped.store(true, Ordering::Release);
        self.state.load().version.mark_obsolete();
    }

    /// Counts what a job has moved into `level`.
    pub(super) fn count<const N: usize>(&self, level: usize, moved: [(Cause, u64); N]) {
        let mut io_stats = self.io_stats.lock();
        for (cause, bytes) in moved {
            io_stats[level].add(cause, bytes);
        }
    }

    /// Whether the active memtable has reached its size, or as much stands behind it as may.
    pub(crate) fn is_memtable_full(&self) -> bool {
        self.is_full(&self.state.load().active)
            || self.is_value_limit_reached(self.value_log.lock().behind())
    }

    /// Whether no more than these bytes of values may stand behind a memtable.
    pub(super) fn is_value_limit_reached(&self, bytes: u64) -> bool {
        bytes >= self.memtable_value_bytes_max.load(Ordering::Relaxed)
    }

    /// How long a value log is, in bytes, when another is begun.
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

    #[inline]
    fn is_full(&self, memtable: &Memtable) -> bool {
        memtable.memory_bytes() >= self.memtable_bytes.load(Ordering::Relaxed)
    }

    /// Puts an entry of a commit into the active memtable; returns whether that is full now.
    #[inline]
    pub(crate) fn insert(&self, key: &[u8], trailer: Trailer, value: &[u8]) -> bool {
        if !trailer.is_tombstone() {
            self.tombstones.note_write(key, trailer.sequence());
        }
        let state = self.state.load();
        state.active.insert(key, trailer, value);
        self.is_full(&state.active)
    }

    /// The present state, lent: for reads that end soon.
    #[inline]
    pub(crate) fn state(&self) -> Guard<Shared<ReadState>> {
        self.state.load()
    }

    /// The present state, held: for cursors and jobs.
    pub(crate) fn state_full(&self) -> Shared<ReadState> {
        self.state.load_full()
    }

    /// Puts an empty memtable in place of the active one, which waits for its flush from now on.
    /// Only the leader of the commits may call this, while no entry is being inserted; `through` is
    /// the newest sequence number that was given out.
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
            }
        });
    }

    /// Installs a flush: the oldest frozen memtable has become part of `version`.
    pub(crate) fn install_flush(&self, version: Version) {
        self.replace(|state| {
            let mut frozen = state.frozen.clone();
            let flushed = frozen.pop();
            assert!(flushed.is_some(), "only a frozen memtable is flushed");
            ReadState {
                active: Arc::clone(&state.active),
                frozen,
                version: Shared::new(version),
            }
        });
    }

    /// The lowest sequence number that may be in a memtable and in no table; `None` where the
    /// memtables are empty. `flushed` is what the manifest says of this keyspace.
    pub(crate) fn unflushed(&self, flushed: SequenceNumber) -> Option<SequenceNumber> {
        let state = self.state.load();
        let holds_entries = !state.frozen.is_empty() || !state.active.is_empty();
        holds_entries.then_some(flushed + 1)
    }

    /// Takes over the value files that the manifest has.
    pub(super) fn set_value_files(&self, manifest: &KeyspaceState, obsolete: &Arc<Obsolete>) {
        self.replace(|state| ReadState {
            version: Shared::new(state.version.with_values(manifest, obsolete)),
            ..state.clone()
        });
    }

    /// Installs the result of a merge.
    pub(crate) fn install_version(&self, version: Version) {
        self.replace(|state| ReadState {
            version: Shared::new(version),
            ..state.clone()
        });
    }

    fn replace(&self, change: impl FnOnce(&ReadState) -> ReadState) {
        let exchange: MutexGuard<'_, ()> = self.install.lock();
        let changed = change(&self.state.load());
        self.state.store(Shared::new(changed));
        drop(exchange);
    }

    /// The pressure on writers.
    #[inline]
    pub(super) fn throttle(&self) -> Throttle {
        let on_disk = self.throttle.load();
        match self.slowing_memtables.load(Ordering::Relaxed) {
            0 => on_disk,
            frozen => on_disk.max(memtable_throttle(frozen, self.filled())),
        }
    }

    /// The pressure of the debts on disk alone.
    pub(super) fn throttle_by_disk(&self) -> Throttle {
        self.throttle.load()
    }

    /// The part of the active memtable that is used.
    fn filled(&self) -> f64 {
        let used = self.state.load().active.memory_bytes();
        used as f64 / self.memtable_bytes.load(Ordering::Relaxed) as f64
    }

    /// Sets the pressure of the debts on disk and that of `waiting` memtables.
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

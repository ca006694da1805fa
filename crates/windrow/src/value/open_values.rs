//! A bounded number of open value files.
//!
//! Each file has a [`ValueSlot`]. A read takes the open file out of its slot without a lock; only
//! opening and closing take locks. Beyond the bound a clock hand closes files that were not used
//! since it last passed. It passes over those that somebody reads: closing them would free nothing.
//! Tables have the same clock with bytes of memory and filters besides (`table/open_tables.rs`).
//!
//! Invariants:
//! - I1. A slot that holds a file is on the clock exactly once.
//! - I2. A file taken out of a slot stays usable until it is dropped.
//!
//! Concurrency: lock order is a slot's opening lock, then the clock.

use std::collections::VecDeque;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use arc_swap::{ArcSwapOption, Guard};

use crate::base::sync::Mutex;
use crate::base::sync::atomic::{AtomicBool, Ordering};
use crate::base::{Error, ErrorKind, MemoryTracker, Result, Striped};
use crate::options::BlockSource;
use crate::vfs::Vfs;

use super::ValueFileMeta;
use super::file::ValueFile;

/// Holds one value file while it is open.
#[derive(Debug)]
pub(crate) struct ValueSlot {
    pub(super) file: ArcSwapOption<ValueFile>,
    /// Whether a read came by since the clock hand last passed.
    used: AtomicBool,
    /// Held while the file is opened, so that it is opened once.
    opening: Mutex<()>,
}

impl Default for ValueSlot {
    fn default() -> Self {
        Self {
            file: ArcSwapOption::empty(),
            used: AtomicBool::default(),
            opening: Mutex::default(),
        }
    }
}

impl ValueSlot {
    /// Lets go of the file, if it is open.
    pub(crate) fn close(&self) {
        self.file.store(None);
    }
}

/// Opens value files on demand and closes the least used.
#[derive(Debug)]
pub(crate) struct OpenValues {
    vfs: Arc<dyn Vfs>,
    directory: PathBuf,
    source: BlockSource,
    open_max: usize,
    clock: Mutex<VecDeque<Weak<ValueSlot>>>,
    /// Set under the lock of `clock`, after which the files may be another process's.
    is_closed: AtomicBool,
    /// Whether writing or syncing a value log has failed, so that what was written last may be gone.
    is_in_doubt: AtomicBool,
    /// The memory of cursors.
    cursors: Arc<MemoryTracker>,
    counters: Striped<3>,
}

/// What is counted of reading values.
const TRANSIENT_LOG_READS: usize = 0;
const LOG_READS: usize = 1;
const VALUES_AHEAD: usize = 2;

/// What reads have taken from value files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ValueReads {
    /// Reads of transient logs.
    pub(crate) transient_log_reads: u64,
    /// Reads of value logs.
    pub(crate) value_log_reads: u64,
    /// Values that the system was asked for before they were fetched.
    pub(crate) values_prefetched: u64,
}

/// An open value file on loan from its slot.
#[derive(Debug)]
pub(crate) struct OpenValueFile(Guard<Option<Arc<ValueFile>>>);

impl Deref for OpenValueFile {
    type Target = Arc<ValueFile>;

    #[inline]
    fn deref(&self) -> &Arc<ValueFile> {
        match &*self.0 {
            Some(file) => file,
            None => unreachable!("made only around a file"),
        }
    }
}

impl OpenValues {
    /// Value files of `directory`, about `open_max` of them open at a time.
    pub(crate) fn new(
        vfs: Arc<dyn Vfs>,
        directory: PathBuf,
        source: BlockSource,
        open_max: usize,
        cursors: Arc<MemoryTracker>,
    ) -> Self {
        Self {
            vfs,
            directory,
            source,
            open_max,
            clock: Mutex::default(),
            is_closed: AtomicBool::new(false),
            is_in_doubt: AtomicBool::new(false),
            cursors,
            counters: Striped::new(),
        }
    }

    /// The account of what cursors hold.
    pub(crate) fn cursors(&self) -> &Arc<MemoryTracker> {
        &self.cursors
    }

    /// Counts `reads` of values in runs or in value logs.
    #[inline]
    pub(crate) fn count_reads(&self, is_transient: bool, reads: u64) {
        self.counters.add(
            if is_transient {
                TRANSIENT_LOG_READS
            } else {
                LOG_READS
            },
            reads,
        );
    }

    /// Counts values that the system was asked for.
    pub(crate) fn count_ahead(&self, values: u64) {
        self.counters.add(VALUES_AHEAD, values);
    }

    /// What was counted.
    pub(crate) fn reads(&self) -> ValueReads {
        ValueReads {
            transient_log_reads: self.counters.sum(TRANSIENT_LOG_READS),
            value_log_reads: self.counters.sum(LOG_READS),
            values_prefetched: self.counters.sum(VALUES_AHEAD),
        }
    }

    /// Writing or syncing has failed: what a value log that is being written lacks is not damage.
    pub(crate) fn doubt(&self) {
        self.is_in_doubt.store(true, Ordering::Release);
    }

    /// What `error` of reading a value of the file that `meta` describes means.
    #[cold]
    pub(crate) fn judge(&self, meta: &ValueFileMeta, error: Error) -> Error {
        let is_in_doubt = meta.is_growing() && self.is_in_doubt.load(Ordering::Acquire);
        if !is_in_doubt || error.kind() != ErrorKind::Corruption {
            return error;
        }
        let what = "an earlier write or sync failed, and with it this value may be lost";
        error.with_kind(ErrorKind::Poisoned).context(what)
    }

    /// Opens no file from here on and closes those that nobody reads.
    pub(crate) fn close(&self) {
        let mut clock = self.clock.lock();
        self.is_closed.store(true, Ordering::Release);
        let slots = std::mem::take(&mut *clock);
        drop(clock);
        for slot in slots.iter().filter_map(Weak::upgrade) {
            slot.close();
        }
    }

    /// The file in `slot`, opened if need be as `meta` describes it.
    #[inline]
    pub(crate) fn get(&self, slot: &Arc<ValueSlot>, meta: &ValueFileMeta) -> Result<OpenValueFile> {
        let file = slot.file.load();
        if file.is_some() {
            if !slot.used.load(Ordering::Relaxed) {
                slot.used.store(true, Ordering::Relaxed);
            }
            return Ok(OpenValueFile(file));
        }
        drop(file);
        self.open(slot, meta)
    }

    #[cold]
    fn open(&self, slot: &Arc<ValueSlot>, meta: &ValueFileMeta) -> Result<OpenValueFile> {
        let opening = slot.opening.lock();
        if let Some(file) = slot.file.load_full() {
            return Ok(OpenValueFile(Guard::from_inner(Some(file))));
        }
        let opened = ValueFile::open(&*self.vfs, &self.directory, meta, self.source);
        // Asked afterwards, so that a file which went meanwhile is not called missing.
        if self.is_closed.load(Ordering::Acquire) {
            return Err(Error::closed());
        }
        let file = Arc::new(opened?);
        slot.file.store(Some(Arc::clone(&file)));
        slot.used.store(true, Ordering::Relaxed);
        self.admit(slot);
        drop(opening);
        Ok(OpenValueFile(Guard::from_inner(Some(file))))
    }

    /// Puts `slot` on the clock (I1) and closes files beyond the bound.
    fn admit(&self, slot: &Arc<ValueSlot>) {
        let mut clock = self.clock.lock();
        if self.is_closed.load(Ordering::Acquire) {
            drop(clock);
            slot.close();
            return;
        }
        clock.push_back(Arc::downgrade(slot));
        let mut closed = Vec::new();
        // Every file gets at most one more chance, so the hand stops after two rounds.
        let mut steps = 2 * clock.len();
        while clock.len() > self.open_max && steps > 0 {
            steps -= 1;
            let Some(weak) = clock.pop_front() else { break };
            let Some(candidate) = weak.upgrade() else {
                continue;
            };
            let used = candidate.used.swap(false, Ordering::Relaxed);
            let file = candidate.file.load_full();
            // One is the slot's, one is ours.
            let is_read = file
                .as_ref()
                .is_some_and(|file| Arc::strong_count(file) > 2);
            if used || is_read || Arc::ptr_eq(&candidate, slot) {
                clock.push_back(weak);
            } else {
                candidate.close();
                closed.push(file);
            }
        }
        // Files are closed outside the lock.
        drop(clock);
        drop(closed);
    }
}

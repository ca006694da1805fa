//! The bounded set of open value files, and the counts of their reads.
//!
//! Concurrency: that of [`OpenFiles`].

use std::path::PathBuf;
use std::sync::Arc;

use crate::base::running_mean::{KeyspaceMeans, RunningMean};
use crate::base::sync::atomic::{AtomicBool, Ordering};
use crate::base::{Error, ErrorKind, KeyspaceId, MemoryTracker, Result, Striped};
use crate::cache::{CachedFile, FileSlot, OpenFile, OpenFiles};
use crate::vfs::Vfs;

use super::file::{ValueContext, ValueFile};
use super::meta::ValueFileMeta;

/// Holds one value file while it is open.
pub(crate) type ValueSlot = FileSlot<ValueFile>;

/// An open value file, borrowed from its slot.
pub(crate) type OpenValueFile = OpenFile<ValueFile>;

impl CachedFile for ValueFile {
    type State = ();
    type Budget = ();
}

/// Opens value files on demand and closes the least recently used.
#[derive(Debug)]
pub(crate) struct OpenValues {
    vfs: Arc<dyn Vfs>,
    directory: PathBuf,
    context: ValueContext,
    files: OpenFiles<ValueFile>,
    /// Whether writing or syncing a value log has failed, so that its last records may be lost.
    has_failed: AtomicBool,
    counters: Striped<3>,
    /// How many values the scans of a keyspace read that find some on the device.
    scan_lengths: KeyspaceMeans<1>,
}

const TRANSIENT_LOG_READS: usize = 0;
const VALUE_LOG_READS: usize = 1;
const VALUES_PREFETCHED: usize = 2;

/// What reads have taken from value files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ValueReads {
    /// Reads of transient logs.
    pub(crate) transient_log_reads: u64,
    /// Reads of value logs.
    pub(crate) value_log_reads: u64,
    /// Values that a prefetcher asked the system for.
    pub(crate) values_prefetched: u64,
}

impl OpenValues {
    /// Value files of `directory`, about `open_max` of them open at a time.
    pub(crate) fn new(
        vfs: Arc<dyn Vfs>,
        directory: PathBuf,
        context: ValueContext,
        open_max: usize,
    ) -> Self {
        Self {
            vfs,
            directory,
            context,
            files: OpenFiles::new(open_max, ()),
            has_failed: AtomicBool::new(false),
            counters: Striped::new(),
            scan_lengths: KeyspaceMeans::default(),
        }
    }

    /// How many values the scans of a keyspace read that find some on the device.
    pub(crate) fn scan_lengths(&self, keyspace: KeyspaceId) -> &RunningMean {
        self.scan_lengths.of(keyspace, 0)
    }

    /// Counts the memory of cursors.
    pub(crate) fn cursors(&self) -> &Arc<MemoryTracker> {
        &self.context.cursors
    }

    /// Counts `reads` of values in transient logs or in value logs.
    #[inline]
    pub(crate) fn count_reads(&self, is_transient: bool, reads: u64) {
        self.counters.add(
            if is_transient {
                TRANSIENT_LOG_READS
            } else {
                VALUE_LOG_READS
            },
            reads,
        );
    }

    /// Counts values that a prefetcher asked the system for.
    pub(crate) fn count_prefetched(&self, values: u64) {
        self.counters.add(VALUES_PREFETCHED, values);
    }

    /// The counts so far.
    pub(crate) fn reads(&self) -> ValueReads {
        ValueReads {
            transient_log_reads: self.counters.sum(TRANSIENT_LOG_READS),
            value_log_reads: self.counters.sum(VALUE_LOG_READS),
            values_prefetched: self.counters.sum(VALUES_PREFETCHED),
        }
    }

    /// Notes that a write or sync failed: what a growing value log lacks is not damage.
    pub(crate) fn note_failure(&self) {
        self.has_failed.store(true, Ordering::Release);
    }

    /// The error to report for `error`, met in a read of the file that `meta` describes.
    #[cold]
    pub(crate) fn explain(&self, meta: &ValueFileMeta, error: Error) -> Error {
        let has_failed = meta.is_growing() && self.has_failed.load(Ordering::Acquire);
        if !has_failed || error.kind() != ErrorKind::Corruption {
            return error;
        }
        let what = "an earlier write or sync failed, and this value may be lost with it";
        error.with_kind(ErrorKind::Poisoned).context(what)
    }

    /// Opens no more files and closes those that no reader holds.
    pub(crate) fn close(&self) {
        self.files.close();
    }

    /// The file in `slot`, opened as `meta` describes it if need be.
    #[inline]
    pub(crate) fn get(&self, slot: &Arc<ValueSlot>, meta: &ValueFileMeta) -> Result<OpenValueFile> {
        match slot.get() {
            Some(file) => Ok(file),
            None => self.open(slot, meta),
        }
    }

    #[cold]
    fn open(&self, slot: &Arc<ValueSlot>, meta: &ValueFileMeta) -> Result<OpenValueFile> {
        let open = || ValueFile::open(&*self.vfs, &self.directory, meta, &self.context);
        let open = || self.files.unless_closed(open)?.map(Arc::new);
        self.files.open(slot, open)
    }
}

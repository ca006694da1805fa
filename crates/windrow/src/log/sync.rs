//! The sync of a log.
//!
//! Owns the sync state of the file: the written length, the durable length, and whether a write or a sync
//! has failed.
//!
//! I1. `synced <= written`, and both only grow.
//! I2. `synced` grows only after a successful sync that began when `written` was at least that large.
//! I3. After a failed write or sync, nothing is written or synced again: the state of the bytes in the
//!     kernel is unknown, and a second sync could succeed without making them durable.
//! I4. `synced` is above 0 only if the whole previous log is durable. So a chunk with a synced offset
//!     above 0 proves that all previous logs were synced to their ends.
//! I5. The values that records up to `synced` refer to are durable.
//!
//! Concurrency: any thread may call anything. A sync holds the lock, so one sync serves all threads that
//! need the same bytes.

use std::path::PathBuf;
use std::sync::Arc;

use crate::base::sync::Mutex;
use crate::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::base::{Error, ErrorKind, Result};
use crate::vfs::File;

/// The part of a log that its writer and the threads that sync have in common.
#[derive(Debug)]
pub(crate) struct LogSync {
    file: Arc<dyn File>,
    path: PathBuf,
    written: AtomicU64,
    synced: AtomicU64,
    broken: AtomicBool,
    /// Locked during a sync. The previous log, until it is known to be durable.
    before: Mutex<Option<Arc<LogSync>>>,
    /// The value logs that records refer to and that may not be durable.
    values: Mutex<Vec<Arc<LogSync>>>,
}

impl LogSync {
    pub(crate) fn new(file: Arc<dyn File>, path: PathBuf, before: Option<Arc<LogSync>>) -> Self {
        Self {
            file,
            path,
            written: AtomicU64::new(0),
            synced: AtomicU64::new(0),
            broken: AtomicBool::new(false),
            before: Mutex::new(before),
            values: Mutex::default(),
        }
    }

    /// Declares that later records may refer to the present bytes of `values`. A sync of this log syncs
    /// these bytes first.
    pub(crate) fn refer_to(&self, values: &Arc<LogSync>) {
        let mut known = self.values.lock();
        if !known.iter().any(|other| Arc::ptr_eq(other, values)) {
            known.push(Arc::clone(values));
        }
    }

    /// Syncs the values that the records refer to.
    fn sync_values(&self) -> Result<()> {
        let values = self.values.lock().clone();
        for log in &values {
            log.sync_through(log.written())
                .inspect_err(|_| self.mark_broken())?;
        }
        self.values
            .lock()
            .retain(|log| log.synced() < log.written());
        Ok(())
    }

    /// The written length.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// The durable length.
    pub(crate) fn synced(&self) -> u64 {
        self.synced.load(Ordering::Acquire)
    }

    /// Whether a write or a sync has failed (I3).
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    /// Makes the log durable at least up to `offset`, which must be written, and all previous logs to
    /// their ends.
    ///
    /// # Errors
    /// `Io` from the sync that fails; `Poisoned` after that.
    pub(crate) fn sync_through(&self, offset: u64) -> Result<()> {
        if self.synced() >= offset {
            return Ok(());
        }
        let mut before = self.before.lock();
        if self.synced() >= offset {
            return Ok(());
        }
        self.check_sound()?; // I3
        if let Some(log) = &*before {
            log.sync_through(log.written())
                .inspect_err(|_| self.mark_broken())?;
            *before = None; // I4
        }
        let written = self.written();
        assert!(offset <= written, "bytes are synced only once written");
        self.sync_values()?; // I5
        if let Err(error) = self.file.sync_data() {
            self.mark_broken();
            return Err(self.failure("sync", error));
        }
        self.synced.store(written, Ordering::Release); // I2
        drop(before);
        Ok(())
    }

    pub(crate) fn file(&self) -> &dyn File {
        &*self.file
    }

    pub(crate) fn publish_written(&self, end: u64) {
        self.written.store(end, Ordering::Release);
    }

    pub(crate) fn mark_broken(&self) {
        self.broken.store(true, Ordering::Release);
    }

    pub(crate) fn check_sound(&self) -> Result<()> {
        if self.is_broken() {
            Err(Error::new(
                ErrorKind::Poisoned,
                format!(
                    "an earlier write to {} failed: reopen the database to write again",
                    self.path.display()
                ),
            ))
        } else {
            Ok(())
        }
    }

    /// The error of an operation that leaves the durability of its bytes unknown. This includes a full
    /// disk, because `NoSpace` promises that nothing has changed.
    pub(crate) fn failure(&self, operation: &str, error: std::io::Error) -> Error {
        let error = Error::io(operation, &self.path, error);
        match error.kind() {
            ErrorKind::NoSpace => error.with_kind(ErrorKind::Poisoned),
            _ => error,
        }
    }

    /// The error of an operation that has changed nothing.
    pub(crate) fn refusal(&self, operation: &str, error: std::io::Error) -> Error {
        Error::io(operation, &self.path, error)
    }
}

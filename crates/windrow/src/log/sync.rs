//! Making a log's bytes durable.
//!
//! Owns the file's sync state: how far it is written, how far it is durable, and whether either
//! has ever failed.
//!
//! I1. `synced <= written`, and both only grow.
//! I2. `synced` moves only after a successful sync that began when `written` was at least as much.
//! I3. After one failed write or sync, nothing is written or synced again: what the kernel made of
//!     the bytes is unknown, and a second sync would succeed without making them durable.
//! I4. `synced` is above 0 only when the whole log before this one is durable. So a chunk that
//!     speaks of a sync proves that its predecessors were synced to their ends.
//! I5. So are, before it, the values that records up to there refer to.
//!
//! Concurrency: any thread may call anything. The lock is held during the sync, so that threads
//! which wait for the same bytes are served by one sync.

use std::path::PathBuf;
use std::sync::Arc;

use crate::base::sync::Mutex;
use crate::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::base::{Error, ErrorKind, Result};
use crate::vfs::File;

/// The part of a log that is shared between its writer and those who wait for durability.
#[derive(Debug)]
pub(crate) struct LogSync {
    file: Arc<dyn File>,
    path: PathBuf,
    written: AtomicU64,
    synced: AtomicU64,
    broken: AtomicBool,
    /// Held during a sync. The log before this one, until it is known to be durable.
    before: Mutex<Option<Arc<LogSync>>>,
    /// The logs of values that records of this one refer to and that may not be durable.
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

    /// Records that are written from here on may refer to what is written to `values` by now: this log
    /// becomes durable only together with that.
    pub(crate) fn refer_to(&self, values: &Arc<LogSync>) {
        let mut known = self.values.lock();
        if !known.iter().any(|other| Arc::ptr_eq(other, values)) {
            known.push(Arc::clone(values));
        }
    }

    /// Makes durable what records up to now refer to.
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

    /// How far the log is written.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// How far the log is durable.
    pub(crate) fn synced(&self) -> u64 {
        self.synced.load(Ordering::Acquire)
    }

    /// Whether a write or a sync has failed, after which none is tried again.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    /// Makes the log durable at least up to `offset`, which must be written already, and the logs
    /// before it to their ends.
    ///
    /// # Errors
    /// `Io` from the sync that fails; `Poisoned` ever after.
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

    /// The error of an operation that leaves the durability of its bytes unknown. A full disk is no
    /// exception: `NoSpace` would promise that nothing happened.
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

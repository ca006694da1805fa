//! The file of a log, as its writer sees it.
//!
//! Disk space is reserved ahead of the bytes, so a full disk fails a write before anything has changed.
//!
//! I1. `NoSpace` from [`reserve`](LogFile::reserve) means that the file is unchanged. Any other failure
//!     breaks the log for good.
//!
//! Concurrency: one thread at a time; [`LogSync`] is shared with all.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::sync::LogSync;
use crate::base::{Error, Result};
use crate::vfs::{Vfs, write_all_at};

/// The file of a log that is being written.
#[derive(Debug)]
pub(crate) struct LogFile {
    shared: Arc<LogSync>,
    /// Writes below this offset cannot run out of space; `u64::MAX` if the file system cannot
    /// reserve.
    reserved: u64,
    /// How many bytes to reserve ahead next.
    ahead: u64,
    ahead_min: u64,
    ahead_max: u64,
}

impl LogFile {
    /// Creates the log `path`; the caller makes the name durable. It reserves `ahead_min` bytes ahead at
    /// first, then twice as many each time, up to `ahead_max`.
    ///
    /// If the log continues another, `before` is that one, and nothing more is appended to it: this log
    /// becomes durable only together with it.
    pub(crate) fn create(
        vfs: &dyn Vfs,
        path: PathBuf,
        before: Option<Arc<LogSync>>,
        (ahead_min, ahead_max): (u64, u64),
    ) -> Result<Self> {
        let file = vfs.create(&path);
        let file = file.map_err(|error| Error::io("create", &path, error))?;
        Ok(Self {
            shared: Arc::new(LogSync::new(file, path, before)),
            reserved: 0,
            ahead: ahead_min,
            ahead_min,
            ahead_max,
        })
    }

    /// The part that makes the log durable.
    pub(crate) fn shared(&self) -> &Arc<LogSync> {
        &self.shared
    }

    /// Makes sure that `length` bytes can be written at `end` without running out of space.
    ///
    /// # Errors
    /// `NoSpace` if the disk is full (I1); `Poisoned` after an earlier failure.
    #[inline]
    pub(crate) fn reserve(&mut self, end: u64, length: u64) -> Result<()> {
        self.shared.check_sound()?;
        let needed = end + length;
        if needed <= self.reserved {
            return Ok(());
        }
        let generous = needed.saturating_add(self.ahead);
        self.ahead = (2 * self.ahead).min(self.ahead_max);
        let outcome = match self.reserve_range(end, generous) {
            // The remaining space may still be enough. Later reservations are small again: generous
            // ones would take space that others hold in reserve.
            Err(error) if is_full(&error) => {
                self.ahead = self.ahead_min;
                self.reserve_range(end, needed)
            }
            outcome => outcome,
        };
        match outcome {
            Ok(reserved) => self.reserved = reserved,
            Err(error) if error.kind() == io::ErrorKind::Unsupported => self.reserved = u64::MAX,
            Err(error) => {
                if !is_full(&error) {
                    self.shared.mark_broken();
                }
                return Err(self.shared.refusal("reserve space in", error)); // I1
            }
        }
        Ok(())
    }

    fn reserve_range(&self, start: u64, end: u64) -> io::Result<u64> {
        loop {
            match self.shared.file().reserve(start, end - start) {
                Ok(()) => return Ok(end),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes `bytes` at `offset`. An error breaks the log.
    #[inline]
    pub(crate) fn write(&self, bytes: &[u8], offset: u64) -> Result<()> {
        write_all_at(self.shared.file(), bytes, offset).map_err(|error| {
            self.shared.mark_broken();
            self.shared.failure("write to", error)
        })
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

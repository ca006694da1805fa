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
}

impl LogSync {
    pub(super) fn new(file: Arc<dyn File>, path: PathBuf, before: Option<Arc<LogSync>>) -> Self {
        Self {
            file,
            path,
            written: AtomicU64::new(0),
            synced: AtomicU64::new(0),
            broken: AtomicBool::new(false),
            before: Mutex::new(before),
        }
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
        if let Err(error) = self.file.sync_data() {
            self.mark_broken();
            return Err(self.failure("sync", error));
        }
        self.synced.store(written, Ordering::Release); // I2
        drop(before);
        Ok(())
    }

    /// Lets go of the log before this one if that is durable, so that its file can be closed.
    pub(crate) fn release_predecessor(&self) {
        let mut before = self.before.lock();
        if before
            .as_ref()
            .is_some_and(|log| log.synced() == log.written())
        {
            *before = None; // I4
        }
    }

    pub(super) fn file(&self) -> &dyn File {
        &*self.file
    }

    pub(super) fn publish_written(&self, end: u64) {
        self.written.store(end, Ordering::Release);
    }

    pub(super) fn mark_broken(&self) {
        self.broken.store(true, Ordering::Release);
    }

    pub(super) fn check_sound(&self) -> Result<()> {
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
    pub(super) fn failure(&self, operation: &str, error: std::io::Error) -> Error {
        let error = Error::io(operation, &self.path, error);
        match error.kind() {
            ErrorKind::NoSpace => error.with_kind(ErrorKind::Poisoned),
            _ => error,
        }
    }

    /// The error of an operation that has changed nothing.
    pub(super) fn refusal(&self, operation: &str, error: std::io::Error) -> Error {
        Error::io(operation, &self.path, error)
    }
}

#[cfg(all(test, loom))]
mod models {
    //! Every interleaving of a writer and those who wait for durability.

    use std::io;
    use std::ops::Range;

    use super::*;
    use crate::vfs::{Advice, Region};

    /// A file whose bytes are only counted.
    #[derive(Debug, Default)]
    struct CountedFile {
        written: AtomicU64,
        durable: AtomicU64,
        syncs: AtomicU64,
        /// Whether the first sync fails.
        fails: bool,
    }

    impl File for CountedFile {
        fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
            Err(io::ErrorKind::Unsupported.into())
        }

        fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<usize> {
            let end = offset + buffer.len() as u64;
            self.written.store(end, Ordering::SeqCst);
            Ok(buffer.len())
        }

        fn length(&self) -> io::Result<u64> {
            Ok(self.written.load(Ordering::SeqCst))
        }

        fn reserve(&self, _: u64, _: u64) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }

        fn sync_data(&self) -> io::Result<()> {
            let written = self.written.load(Ordering::SeqCst);
            if self.syncs.fetch_add(1, Ordering::SeqCst) == 0 && self.fails {
                return Err(io::ErrorKind::Other.into());
            }
            self.durable.store(written, Ordering::SeqCst);
            Ok(())
        }

        fn advise(&self, _: Range<u64>, _: Advice) {}

        fn map(&self, _: u64) -> io::Result<Arc<dyn Region>> {
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    fn log(fails: bool) -> (Arc<CountedFile>, Arc<LogSync>) {
        let file = Arc::new(CountedFile {
            fails,
            ..CountedFile::default()
        });
        let shared: Arc<dyn File> = file.clone();
        (file, Arc::new(LogSync::new(shared, PathBuf::new(), None)))
    }

    fn write(file: &CountedFile, sync: &LogSync, end: u64) {
        file.write_at(&[0], end - 1).unwrap();
        sync.publish_written(end);
    }

    // I1, I2
    #[test]
    fn what_counts_as_synced_is_durable() {
        loom::model(|| {
            let (file, sync) = log(false);
            write(&file, &sync, 1);
            let threads = [1, 2].map(|_| {
                let (file, sync) = (Arc::clone(&file), Arc::clone(&sync));
                loom::thread::spawn(move || {
                    sync.sync_through(1).unwrap();
                    let synced = sync.synced();
                    assert!(synced >= 1 && synced <= file.durable.load(Ordering::SeqCst));
                })
            });
            write(&file, &sync, 2);
            for thread in threads {
                thread.join().unwrap();
            }
        });
    }

    // I3
    #[test]
    fn a_failed_sync_is_seen_by_all_and_never_repeated() {
        loom::model(|| {
            let (file, sync) = log(true);
            write(&file, &sync, 1);
            let threads = [1, 2].map(|_| {
                let sync = Arc::clone(&sync);
                loom::thread::spawn(move || assert!(sync.sync_through(1).is_err()))
            });
            for thread in threads {
                thread.join().unwrap();
            }
            assert_eq!(file.syncs.load(Ordering::SeqCst), 1);
        });
    }
}

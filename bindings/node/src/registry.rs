//! The databases of this process that several environments share, by their folders.
//!
//! A database that is open is refused a second time, also in another thread. With `multithreading` the opens of a folder
//! share one: the first opens it, with its options, and the last close closes it.
//!
//! Concurrency: one lock, which an open and a close hold to their end. So an open beside the last close waits for it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use windrow::{Error, ErrorKind, Result};
use windrow_ffi::leveldb::Entries;

/// A database that several environments have open, and how many they are.
struct Shared {
    entries: Arc<Entries>,
    opens: usize,
}

static SHARED: Mutex<BTreeMap<PathBuf, Shared>> = Mutex::new(BTreeMap::new());

fn shared() -> MutexGuard<'static, BTreeMap<PathBuf, Shared>> {
    SHARED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One open of a database. Without a close it ends when it is dropped.
pub(crate) struct Opened {
    entries: Arc<Entries>,
    by: By,
    has_ended: bool,
}

/// Who has a database open.
enum By {
    /// Nobody else.
    Owner,
    /// All opens of this key in the registry.
    Sharers(PathBuf),
    /// A secondary, which closes its states.
    Secondary,
}

impl Opened {
    /// A database that nobody else has open.
    pub(crate) fn alone(entries: Entries) -> Self {
        Self {
            entries: Arc::new(entries),
            by: By::Owner,
            has_ended: false,
        }
    }

    /// A state of a secondary.
    pub(crate) fn state(entries: Entries) -> Self {
        Self {
            entries: Arc::new(entries),
            by: By::Secondary,
            has_ended: false,
        }
    }

    /// The database that is shared under `path`, or what `open` opens.
    ///
    /// # Errors
    /// Those of `open`. `AlreadyExists` if it is shared and the caller wants a new one. `Io` if the folder has no path.
    pub(crate) fn shared(
        path: &Path,
        error_if_exists: bool,
        open: impl FnOnce() -> Result<Entries>,
    ) -> Result<Self> {
        let mut all = shared();
        if let Ok(path) = fs::canonicalize(path)
            && let Some(found) = all.get_mut(&path)
        {
            if error_if_exists {
                let message = format!("{} exists", path.display());
                return Err(Error::new(ErrorKind::AlreadyExists, message));
            }
            found.opens += 1;
            return Ok(Self {
                entries: Arc::clone(&found.entries),
                by: By::Sharers(path),
                has_ended: false,
            });
        }
        let entries = Arc::new(open()?);
        let path = fs::canonicalize(path).map_err(|error| Error::io("find", path, error))?;
        let shared = Shared {
            entries: Arc::clone(&entries),
            opens: 1,
        };
        all.insert(path.clone(), shared);
        Ok(Self {
            entries,
            by: By::Sharers(path),
            has_ended: false,
        })
    }

    pub(crate) fn entries(&self) -> &Arc<Entries> {
        &self.entries
    }

    pub(crate) fn close(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        self.has_ended = true;
        let path = match &self.by {
            By::Owner => return self.entries.db().clone().close(),
            By::Secondary => return Ok(()),
            By::Sharers(path) => path,
        };
        let mut all = shared();
        if let Some(found) = all.get_mut(path) {
            found.opens -= 1;
            if found.opens > 0 {
                return Ok(());
            }
            all.remove(path);
        }
        // Under the lock, so that the next open waits for it.
        self.entries.db().clone().close()
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if !self.has_ended {
            // Nobody can receive an error.
            drop(self.end());
        }
    }
}

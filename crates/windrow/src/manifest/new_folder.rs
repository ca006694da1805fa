//! The folder of a new copy of a database: of a checkpoint, or of a restored backup. A folder that is a database before it is
//! whole has a mark, and no open but that of its maker accepts it.
//!
//! I1. A folder that holds anything but a lock gets nothing, not even a lock.
//! I2. What a failed attempt has left is removed, unless it may be complete. What cannot be removed does not open as a
//!     database, because `CURRENT` comes last.
//!
//! Concurrency: the lock keeps other processes out.

use std::io;
use std::path::{Path, PathBuf};

use crate::base::{Error, ErrorKind, Result};
use crate::vfs::{LockGuard, Vfs};

use super::names::FileName;

/// An empty folder, locked.
#[derive(Debug)]
pub(crate) struct NewFolder<'a> {
    vfs: &'a dyn Vfs,
    path: PathBuf,
    _lock: Box<dyn LockGuard>,
}

impl<'a> NewFolder<'a> {
    /// Creates the folder `path`, or takes it if it is empty. `refusal` is what is not done in another one: "no
    /// checkpoint is made in".
    ///
    /// # Errors
    /// `AlreadyExists` if it is not empty; `Io`.
    pub(crate) fn take(vfs: &'a dyn Vfs, path: &Path, refusal: &str) -> Result<Self> {
        let not_empty = || {
            let message = format!("{refusal} {}: it is not empty", path.display());
            Error::new(ErrorKind::AlreadyExists, message)
        };
        let check_empty = || {
            let lock = FileName::Lock.to_string();
            let is_empty = list(vfs, path)?.iter().all(|name| *name == lock);
            is_empty.then_some(()).ok_or_else(not_empty)
        };
        vfs.create_dir_all(path)
            .map_err(|error| Error::io("create", path, error))?;
        check_empty()?;
        let lock_path = path.join(FileName::Lock.to_string());
        let lock = vfs.lock(&lock_path).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => not_empty(),
            _ => Error::io("lock", &lock_path, error),
        })?;
        check_empty()?;
        Ok(Self {
            vfs,
            path: path.to_owned(),
            _lock: lock,
        })
    }

    /// Lets `write` fill the folder, and releases it.
    pub(crate) fn fill(self, write: impl FnOnce() -> Result<()>) -> Result<()> {
        let written = write();
        if written.is_err() {
            self.remove_leftovers();
        }
        written
    }

    /// I2.
    fn remove_leftovers(&self) {
        let Ok(names) = list(self.vfs, &self.path) else {
            return;
        };
        if names.contains(&FileName::Current.to_string()) {
            return;
        }
        let lock = FileName::Lock.to_string();
        for name in names.iter().filter(|name| **name != lock) {
            drop(self.vfs.remove(&self.path.join(name)));
        }
    }
}

/// Marks `folder` as unfinished, durably.
///
/// # Errors
/// `Io`, `NoSpace`.
pub(crate) fn put_mark(vfs: &dyn Vfs, folder: &Path) -> Result<()> {
    let mark = folder.join(FileName::Repairing.to_string());
    let file = vfs
        .create(&mark)
        .map_err(|error| Error::io("create", &mark, error))?;
    file.sync_data()
        .map_err(|error| Error::io("sync", &mark, error))?;
    vfs.sync_dir(folder)
        .map_err(|error| Error::io("sync", folder, error))
}

/// Removes the mark, durably: from here on `folder` is a database.
///
/// # Errors
/// `Io`.
pub(crate) fn remove_mark(vfs: &dyn Vfs, folder: &Path) -> Result<()> {
    let mark = folder.join(FileName::Repairing.to_string());
    vfs.remove(&mark)
        .map_err(|error| Error::io("remove", &mark, error))?;
    vfs.sync_dir(folder)
        .map_err(|error| Error::io("sync", folder, error))
}

fn list(vfs: &dyn Vfs, folder: &Path) -> Result<Vec<String>> {
    vfs.list(folder)
        .map_err(|error| Error::io("list", folder, error))
}

//! The file system of a reader with a lease: a file that is missing because the writer has given the reader up is no damage.
//!
//! Concurrency: everything is shared freely.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::lease::{Lease, lost_message};
use crate::vfs::{File, LockGuard, OpenMode, Vfs};

/// A file system, and the lease that keeps files of it alive.
#[derive(Debug)]
pub(super) struct LeasedVfs {
    pub(super) vfs: Arc<dyn Vfs>,
    pub(super) lease: Arc<Lease>,
}

impl Vfs for LeasedVfs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        self.vfs.open(path, mode).map_err(|error| {
            if error.kind() == io::ErrorKind::NotFound && self.lease.is_gone() {
                io::Error::other(lost_message())
            } else {
                error
            }
        })
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.vfs.create_dir_all(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.vfs.create_dir(path)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.vfs.create(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.vfs.list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.vfs.rename(from, to)
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        self.vfs.resolve(path)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.vfs.link(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.vfs.remove(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.vfs.sync_dir(path)
    }

    fn available_bytes(&self, path: &Path) -> io::Result<u64> {
        self.vfs.available_bytes(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn LockGuard>> {
        self.vfs.lock(path)
    }

    fn lock_shared(&self, path: &Path) -> io::Result<Box<dyn LockGuard>> {
        self.vfs.lock_shared(path)
    }
}

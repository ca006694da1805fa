//! The real file system.

use super::{File, LockGuard, OpenMode, Vfs};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The operating system's file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsVfs;

impl Vfs for OsVfs {
    fn create_dir_all(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn create(&self, _: &Path) -> io::Result<Arc<dyn File>> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn open(&self, _: &Path, _: OpenMode) -> io::Result<Arc<dyn File>> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn list(&self, _: &Path) -> io::Result<Vec<String>> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn remove(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn lock(&self, _: &Path) -> io::Result<Box<dyn LockGuard>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

//! Whole copies of damaged files in backups.
//!
//! A backup of a damaged database has the damage, too, and a number can stand for another file in the backup of another
//! database. So a copy counts if it passes the same check as the file: its checksums have the number of the file as their
//! seed, and a table agrees with what the manifest records of it.
//!
//! Concurrency: none; it belongs to one scrub. The copy is in memory meanwhile.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::files::Way;
use crate::backup::Backups;
use crate::engine::Engine;
use crate::manifest::names::FileName;
use crate::vfs::{Advice, File, LockGuard, OpenMode, Region, Vfs};

impl Engine {
    /// The newest of `backups` that has the file `name` whole, of those that can be read.
    pub(super) fn whole_copy(&self, backups: &Backups, name: FileName) -> Option<u64> {
        let files = self.scrub_files();
        let file = files.iter().find(|file| file.name() == name)?;
        let is_whole = |bytes: Vec<u8>| {
            let copy: Arc<dyn Vfs> = Arc::new(OneFile(Arc::new(Bytes(bytes))));
            let place = self.place_in(&copy, Path::new(""));
            let mut way = Way {
                pass: &mut |_| {
                    self.check_cancelled()?;
                    Ok(true)
                },
                elsewhere: &mut Err,
            };
            self.check_file(file, &place, 0, &mut way).is_ok()
        };
        backups.newest_copy(name, &is_whole).ok().flatten()
    }
}

/// The bytes of a file.
#[derive(Debug)]
struct Bytes(Vec<u8>);

impl File for Bytes {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = self.0.get(start..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        let (read, from) = (buffer.get_mut(..count), rest.get(..count));
        if let (Some(read), Some(from)) = (read, from) {
            read.copy_from_slice(from);
        }
        Ok(count)
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn reserve(&self, _: u64, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync_data(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn advise(&self, _: Range<u64>, _: Advice) {}

    fn map(&self, _: u64) -> io::Result<Arc<Region>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// A file system with one file, whatever its name.
#[derive(Debug)]
struct OneFile(Arc<Bytes>);

impl Vfs for OneFile {
    fn open(&self, _: &Path, _: OpenMode) -> io::Result<Arc<dyn File>> {
        Ok(Arc::<Bytes>::clone(&self.0))
    }

    fn create_dir_all(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn create(&self, _: &Path) -> io::Result<Arc<dyn File>> {
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

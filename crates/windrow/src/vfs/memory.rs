//! A file system in memory for tests of tables and value files.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Advice, File, LockGuard, OpenMode, Region, RegionBytes, Vfs};
use crate::base::sync::Mutex;
use crate::base::sync::atomic::{AtomicUsize, Ordering};

#[derive(Debug, Default)]
pub(crate) struct MemoryVfs {
    files: Mutex<HashMap<PathBuf, Arc<MemoryFile>>>,
    /// Files opened so far.
    pub(crate) opened: AtomicUsize,
}

/// A file; reads and writes are short on purpose.
#[derive(Debug, Default)]
pub(crate) struct MemoryFile {
    pub(crate) bytes: Mutex<Vec<u8>>,
    pub(crate) syncs: AtomicUsize,
    /// Reads fail from this offset on.
    pub(crate) fails_from: Mutex<Option<u64>>,
    pub(crate) reads: AtomicUsize,
    pub(crate) read_bytes: AtomicUsize,
    /// Writes fail beyond this length.
    pub(crate) full_at: Mutex<Option<usize>>,
    pub(crate) page_cache: Arc<PageCache>,
    /// The ranges that [`Advice::WillNeed`] named.
    pub(crate) asked_for: Mutex<Vec<Range<u64>>>,
}

/// What mappings of a file say of their pages.
#[derive(Debug, Default)]
pub(crate) struct PageCache {
    pub(crate) holds: Mutex<Held>,
    /// Calls of [`Region::is_resident`].
    pub(crate) questions: AtomicUsize,
}

/// The pages in memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Held {
    /// Two of three, so that readers also load copies.
    #[default]
    Some,
    All,
    Nothing,
}

/// The bytes as they were when they were mapped.
#[derive(Debug)]
struct MemoryRegion {
    bytes: Vec<u8>,
    page_cache: Arc<PageCache>,
}

impl RegionBytes for MemoryRegion {
    fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn is_resident(&self, range: Range<usize>) -> bool {
        self.page_cache.questions.fetch_add(1, Ordering::Relaxed);
        let mut pages = range.start / PAGE_BYTES..range.end.div_ceil(PAGE_BYTES);
        pages.all(|page| self.page_cache.has(page))
    }
}

impl PageCache {
    fn has(&self, page: usize) -> bool {
        match *self.holds.lock() {
            Held::Some => page % 3 != 2,
            Held::All => true,
            Held::Nothing => false,
        }
    }
}

/// The bytes that are in memory together.
const PAGE_BYTES: usize = 4096;

const SHORT: usize = 100_000;

impl MemoryFile {
    pub(crate) fn holding(bytes: Vec<u8>) -> Arc<Self> {
        let file = Self::default();
        *file.bytes.lock() = bytes;
        Arc::new(file)
    }
}

impl File for MemoryFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        if self.fails_from.lock().is_some_and(|from| offset >= from) {
            return Err(io::Error::other("a planted fault"));
        }
        let bytes = self.bytes.lock();
        let start = usize::try_from(offset).unwrap().min(bytes.len());
        let length = buffer.len().min(bytes.len() - start).min(SHORT);
        self.read_bytes.fetch_add(length, Ordering::Relaxed);
        buffer[..length].copy_from_slice(&bytes[start..start + length]);
        Ok(length)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<usize> {
        let mut bytes = self.bytes.lock();
        let start = usize::try_from(offset).unwrap();
        let length = buffer.len().min(SHORT);
        if self
            .full_at
            .lock()
            .is_some_and(|full| start + length > full)
        {
            return Err(io::ErrorKind::StorageFull.into());
        }
        if bytes.len() < start + length {
            bytes.resize(start + length, 0);
        }
        bytes[start..start + length].copy_from_slice(&buffer[..length]);
        Ok(length)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.bytes.lock().len() as u64)
    }

    fn reserve(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        let length = usize::try_from(length).unwrap();
        self.bytes.lock().truncate(length);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn advise(&self, range: Range<u64>, advice: Advice) {
        if advice == Advice::WillNeed {
            self.asked_for.lock().push(range);
        }
    }

    fn resident_pages(&self, offset: u64) -> u64 {
        let first = usize::try_from(offset).unwrap() / PAGE_BYTES;
        let resident = (0..64).filter(|page| self.page_cache.has(first + page));
        resident.fold(0, |bits, page| bits | 1 << page)
    }

    fn map(&self, length: u64) -> io::Result<Arc<Region>> {
        let length = usize::try_from(length).unwrap();
        let bytes = self.bytes.lock()[..length].to_vec();
        Ok(Arc::new(Region::new(MemoryRegion {
            bytes,
            page_cache: Arc::clone(&self.page_cache),
        })))
    }
}

impl MemoryVfs {
    pub(crate) fn file(&self, path: &Path) -> Arc<MemoryFile> {
        Arc::clone(&self.files.lock()[path])
    }
}

impl Vfs for MemoryVfs {
    fn create_dir_all(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let file = Arc::new(MemoryFile::default());
        let old = self.files.lock().insert(path.to_owned(), Arc::clone(&file));
        match old {
            None => Ok(file),
            Some(_) => Err(io::ErrorKind::AlreadyExists.into()),
        }
    }

    fn open(&self, path: &Path, _: OpenMode) -> io::Result<Arc<dyn File>> {
        self.opened.fetch_add(1, Ordering::Relaxed);
        match self.files.lock().get(path) {
            Some(file) => Ok(Arc::clone(file) as Arc<dyn File>),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn list(&self, _: &Path) -> io::Result<Vec<String>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.files.lock().remove(path);
        Ok(())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self, _: &Path) -> io::Result<Box<dyn LockGuard>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

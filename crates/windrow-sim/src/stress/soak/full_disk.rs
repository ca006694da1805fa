//! The file system of the operating system, whose disk is full now and then.
//!
//! A full disk has a few bytes left for whatever grows. What was reserved before can be written, and what is removed is free
//! again, as on a real one.
//!
//! Concurrency: any thread uses it; the bytes left are one atomic number.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use windrow::vfs::{Advice, File, LockGuard, OpenMode, OsVfs, Region, Vfs, WriteBack};

/// What a new name takes.
const NAME_BYTES: u64 = 512;

/// The bytes that are left; far above any number that counts while the disk is not full.
#[derive(Debug, Clone)]
pub(super) struct Space(Arc<AtomicI64>);

impl Space {
    const PLENTY: i64 = i64::MAX / 2;

    pub(super) fn new() -> Self {
        Self(Arc::new(AtomicI64::new(Self::PLENTY)))
    }

    /// From now on the disk has so many bytes left.
    pub(super) fn set_left(&self, bytes: u32) {
        self.0.store(i64::from(bytes), Ordering::SeqCst);
    }

    /// The disk is not full any more.
    pub(super) fn set_plenty(&self) {
        self.0.store(Self::PLENTY, Ordering::SeqCst);
    }

    /// Whether the disk is not full.
    pub(super) fn is_plenty(&self) -> bool {
        self.left().is_none()
    }

    fn left(&self) -> Option<u64> {
        let left = self.0.load(Ordering::SeqCst);
        (left < Self::PLENTY / 2).then(|| u64::try_from(left).unwrap_or(0))
    }

    fn take(&self, bytes: u64) -> io::Result<()> {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let take = |left: i64| (left >= bytes).then(|| left - bytes);
        match self
            .0
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, take)
        {
            Ok(_) => Ok(()),
            Err(_) => Err(io::ErrorKind::StorageFull.into()),
        }
    }

    fn give(&self, bytes: u64) {
        if self.left().is_some() {
            let bytes = i64::try_from(bytes).unwrap_or(0);
            self.0.fetch_add(bytes, Ordering::SeqCst);
        }
    }
}

/// The file system.
#[derive(Debug, Clone)]
pub(super) struct FullDisk(pub(super) Space);

impl FullDisk {
    fn file(&self, file: Arc<dyn File>) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(BoundedFile {
            taken: AtomicU64::new(file.length()?),
            file,
            space: self.0.clone(),
        }))
    }
}

impl Vfs for FullDisk {
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        OsVfs.create_dir_all(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        OsVfs.create_dir(path)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.0.take(NAME_BYTES)?;
        self.file(OsVfs.create(path)?)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        self.file(OsVfs.open(path, mode)?)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        OsVfs.list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        OsVfs.rename(from, to)
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        OsVfs.resolve(path)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        OsVfs.link(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let length = OsVfs.open(path, OpenMode::Read)?.length()?;
        OsVfs.remove(path)?;
        self.0.give(length + NAME_BYTES);
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        OsVfs.sync_dir(path)
    }

    fn available_bytes(&self, path: &Path) -> io::Result<u64> {
        self.0
            .left()
            .map_or_else(|| OsVfs.available_bytes(path), Ok)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn LockGuard>> {
        OsVfs.lock(path)
    }

    fn lock_shared(&self, path: &Path) -> io::Result<Box<dyn LockGuard>> {
        OsVfs.lock_shared(path)
    }
}

/// A file that takes space as it grows.
#[derive(Debug)]
struct BoundedFile {
    file: Arc<dyn File>,
    space: Space,
    /// Bytes from the beginning that it has taken, written or reserved.
    taken: AtomicU64,
}

impl BoundedFile {
    fn take_to(&self, end: u64) -> io::Result<()> {
        let taken = self.taken.load(Ordering::SeqCst);
        self.space.take(end.saturating_sub(taken))?;
        self.taken.fetch_max(end, Ordering::SeqCst);
        Ok(())
    }
}

impl File for BoundedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<usize> {
        self.take_to(offset + buffer.len() as u64)?;
        self.file.write_at(buffer, offset)
    }

    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn reserve(&self, offset: u64, length: u64) -> io::Result<()> {
        self.take_to(offset + length)?;
        self.file.reserve(offset, length)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.file.truncate(length)?;
        let taken = self.taken.fetch_min(length, Ordering::SeqCst);
        self.space.give(taken.saturating_sub(length));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn write_back(&self, range: Range<u64>, half: WriteBack) -> io::Result<()> {
        self.file.write_back(range, half)
    }

    fn advise(&self, range: Range<u64>, advice: Advice) {
        self.file.advise(range, advice);
    }

    fn is_resident(&self, offset: u64) -> bool {
        self.file.is_resident(offset)
    }

    fn resident_pages(&self, offset: u64) -> u64 {
        self.file.resident_pages(offset)
    }

    fn map(&self, length: u64) -> io::Result<Arc<Region>> {
        self.file.map(length)
    }
}

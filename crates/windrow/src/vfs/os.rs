//! The real file system.
//!
//! Owns the only system calls of the engine: positioned reads and writes, `fdatasync` (on Apple
//! systems the full flush that the standard library makes of it), write back, preallocation, read advice,
//! mappings, and, in [`lock`], the lock. On a target without preallocation or advice, `reserve` returns
//! `Unsupported` and advice does nothing; the traits allow both. Only Linux writes back, and reports of a file what is
//! in the page cache; Linux, Android, Apple systems and FreeBSD report it of a mapping.
//!
//! Invariants:
//! - I1: a [`Mapping`] covers only bytes that the file had when it was mapped.
//!
//! Concurrency: a file is shared by many threads; every call carries its own offset.
//!
//! # Safety argument
//! Unsafe code writes back, makes a mapping, advises the system of it, asks what of it is resident, reads it and removes it, and
//! asks for the size of a page and the user of the process. The mapping is private to its [`Mapping`], which unmaps it
//! once, on drop, so every slice borrowed from it is gone by then. Its bytes are read-only here. The engine never
//! truncates mapped bytes (the contract of [`File::map`]), and appends begin behind every mapped length, and the lock
//! on the database excludes other engines. A process that changes the files from outside while they are in use breaks
//! the contract of the database.

#![cfg_attr(
    unix,
    expect(
        unsafe_code,
        reason = "mapping a file into memory has no safe interface"
    )
)]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this file wraps the operating system for the engine"
)]

mod lock;

use super::{Advice, File, LockGuard, OpenMode, Region, Vfs};
#[cfg(target_os = "linux")]
use super::{PIECE_BYTES, WriteBack};
use lock::OsLock;
#[cfg(unix)]
use std::ffi::c_void;
use std::fs;
use std::io;
use std::ops::Range;
#[cfg(unix)]
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::ptr;
#[cfg(unix)]
use std::slice;
use std::sync::Arc;

/// The operating system's file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsVfs;

impl Vfs for OsVfs {
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        create_levels(
            path,
            Path::is_dir,
            |path| fs::create_dir(path),
            |path| self.sync_dir(path),
        )
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        match fs::create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            outcome => outcome,
        }
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let file = fs::File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)?;
        Ok(Arc::new(OsFile(file)))
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut options = fs::File::options();
        options.read(true);
        let file = match mode {
            OpenMode::Read => options.open(path),
            OpenMode::ReadWrite => open_no_link(options.write(true), path),
        };
        Ok(Arc::new(OsFile(file?)))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        fs::read_dir(path)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    #[cfg(unix)]
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        fs::File::open(path)?.sync_all()
    }

    /// Windows opens no folder for a sync of its names: `docs/platforms.md`.
    #[cfg(not(unix))]
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        fs::metadata(path).map(drop)
    }

    #[cfg(unix)]
    fn available_bytes(&self, path: &Path) -> io::Result<u64> {
        let system = rustix::fs::statvfs(path)?;
        Ok(system.f_bavail.saturating_mul(system.f_frsize))
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        fs::canonicalize(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn LockGuard>> {
        OsLock::take(path).map(|lock| Box::new(lock) as Box<dyn LockGuard>)
    }

    fn lock_shared(&self, path: &Path) -> io::Result<Box<dyn LockGuard>> {
        OsLock::take_shared(path).map(|lock| Box::new(lock) as Box<dyn LockGuard>)
    }
}

/// Opens a file that is written, unless it is a symbolic link: a folder from elsewhere would have the engine change files of
/// somebody else. A file that is read may be a link.
fn open_no_link(options: &mut fs::OpenOptions, path: &Path) -> io::Result<fs::File> {
    #[cfg(unix)]
    options.custom_flags(libc::O_NOFOLLOW);
    options.open(path).map_err(|error| {
        let is_link = fs::symlink_metadata(path).is_ok_and(|it| it.is_symlink());
        if !is_link {
            return error;
        }
        let message =
            format!("it is a symbolic link, and nothing is written through one ({error})");
        io::Error::new(error.kind(), message)
    })
}

/// Reads from `offset`.
fn read_at(file: &fs::File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    #[cfg(unix)]
    return file.read_at(buffer, offset);
    #[cfg(windows)]
    return std::os::windows::fs::FileExt::seek_read(file, buffer, offset);
}

/// Writes at `offset`.
fn write_at(file: &fs::File, buffer: &[u8], offset: u64) -> io::Result<usize> {
    #[cfg(unix)]
    return file.write_at(buffer, offset);
    #[cfg(windows)]
    return std::os::windows::fs::FileExt::seek_write(file, buffer, offset);
}

/// Creates the missing directories of `path` from the top down, each durable before the next. If this is
/// interrupted, only the name of the deepest directory may not be durable; the next call syncs it first.
fn create_levels(
    path: &Path,
    is_directory: impl Fn(&Path) -> bool,
    create: impl Fn(&Path) -> io::Result<()>,
    sync: impl Fn(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let levels = path
        .ancestors()
        .filter(|level| !level.as_os_str().is_empty());
    let mut missing = Vec::new();
    for level in levels {
        if is_directory(level) {
            match sync(parent(level)) {
                // The directory belongs to another user.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                result => result?,
            }
            break;
        }
        missing.push(level);
    }
    for level in missing.into_iter().rev() {
        match create(level) {
            // Another process created it first.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && is_directory(level) => {}
            result => result?,
        }
        sync(parent(level))?;
    }
    Ok(())
}

/// The directory that holds the name of `path`.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => path,
    }
}

/// An open file of the operating system.
#[derive(Debug)]
struct OsFile(fs::File);

impl File for OsFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        read_at(&self.0, buffer, offset)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<usize> {
        write_at(&self.0, buffer, offset)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn reserve(&self, offset: u64, length: u64) -> io::Result<()> {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::{Errno, retry_on_intr};

        if length == 0 {
            return Ok(());
        }
        retry_on_intr(|| fallocate(&self.0, FallocateFlags::KEEP_SIZE, offset, length)).map_err(
            |error| match error {
                Errno::OPNOTSUPP | Errno::NOSYS => io::ErrorKind::Unsupported.into(),
                error => error.into(),
            },
        )
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    fn reserve(&self, _: u64, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        if length < self.length()? {
            self.0.set_len(length)?;
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    #[cfg(target_os = "linux")]
    fn write_back(&self, range: Range<u64>, half: WriteBack) -> io::Result<()> {
        use std::os::fd::AsRawFd;

        if range.is_empty() {
            return Ok(());
        }
        let beyond = |_| io::Error::from(io::ErrorKind::InvalidInput);
        let start = libc::off64_t::try_from(range.start).map_err(beyond)?;
        let length = libc::off64_t::try_from(range.end - range.start).map_err(beyond)?;
        let flags = match half {
            WriteBack::Begin => libc::SYNC_FILE_RANGE_WRITE,
            WriteBack::End => libc::SYNC_FILE_RANGE_WAIT_BEFORE,
        };
        // SAFETY: the descriptor is open, and the call touches no memory of the process.
        let answer = unsafe { libc::sync_file_range(self.0.as_raw_fd(), start, length, flags) };
        if answer == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            // A file system or a container that cannot; a sync will do it all.
            Some(libc::ENOSYS | libc::EPERM | libc::EINVAL | libc::ESPIPE) => Ok(()),
            _ => Err(error),
        }
    }

    #[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
    fn advise(&self, range: Range<u64>, advice: Advice) {
        use std::num::NonZeroU64;

        let advice = match advice {
            Advice::Random => rustix::fs::Advice::Random,
            Advice::Sequential => rustix::fs::Advice::Sequential,
            Advice::WillNeed => rustix::fs::Advice::WillNeed,
            Advice::DontNeed => rustix::fs::Advice::DontNeed,
        };
        // Linux reads no more of one request than one transfer of the device.
        let piece = match advice {
            rustix::fs::Advice::WillNeed => WILL_NEED_BYTES,
            _ => u64::MAX,
        };
        let mut start = range.start;
        while let Some(length) = NonZeroU64::new(range.end.saturating_sub(start).min(piece)) {
            // Advice that the system refuses changes no result, only speed.
            rustix::fs::fadvise(&self.0, start, Some(length), advice).unwrap_or_default();
            start += length.get();
        }
    }

    #[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
    fn advise(&self, _: Range<u64>, _: Advice) {}

    /// Reads a byte from the page cache only. Any outcome except `EAGAIN` counts as resident, also that of a
    /// file system that cannot answer.
    #[cfg(target_os = "linux")]
    fn is_resident(&self, offset: u64) -> bool {
        use rustix::io::{Errno, ReadWriteFlags, preadv2};

        let mut byte = [0];
        let mut buffers = [io::IoSliceMut::new(&mut byte)];
        let read = preadv2(&self.0, &mut buffers, offset, ReadWriteFlags::NOWAIT);
        !matches!(read, Err(Errno::AGAIN))
    }

    #[cfg(target_os = "linux")]
    fn resident_pages(&self, offset: u64) -> u64 {
        match Mapping::of_piece(&self.0, offset) {
            Ok(piece) => piece.resident_pages(),
            Err(_) => u64::MAX,
        }
    }

    #[cfg(not(unix))]
    fn map(&self, _: u64) -> io::Result<Arc<Region>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    #[cfg(unix)]
    fn map(&self, length: u64) -> io::Result<Arc<Region>> {
        if length > self.length()? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let length = usize::try_from(length).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let mapping = Mapping::new(&self.0, length)?;
        Ok(Arc::new(Region(super::Source::Mapping(mapping))))
    }
}

/// Whether the system says of a file with this metadata which pages are in memory. Linux says it to the owner of the
/// file, to a process that may write it, and to root; to others it reports every page.
#[cfg(unix)]
fn is_reported(metadata: &fs::Metadata) -> bool {
    const WRITE_BY_OTHERS: u32 = 0o002;
    // SAFETY: the call has no preconditions.
    let user = unsafe { libc::geteuid() };
    user == 0 || user == metadata.uid() || metadata.mode() & WRITE_BY_OTHERS != 0
}

/// The bytes of one request to read in the background.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
const WILL_NEED_BYTES: u64 = 128 << 10;

/// The bytes of a page of memory. rustix has this number too, but ends the process under valgrind.
#[cfg(unix)]
fn page_bytes() -> usize {
    // SAFETY: the call has no preconditions.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}

/// Maps `length` bytes of `file` from `offset` on, not none, for reading.
#[cfg(unix)]
fn map(file: &fs::File, offset: u64, length: usize) -> io::Result<ptr::NonNull<c_void>> {
    use rustix::mm::{MapFlags, ProtFlags, mmap};

    let flags = (ProtFlags::READ, MapFlags::SHARED);
    // SAFETY: the kernel chooses an address that nothing else uses, and `length` is not zero.
    let start = unsafe { mmap(ptr::null_mut(), length, flags.0, flags.1, file, offset) }?;
    Ok(ptr::NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?)
}

/// The pages of 4 KiB of a piece.
#[cfg(target_os = "linux")]
const PIECE_PAGES: usize = 64;

/// The pages that one call of the system reports on.
#[cfg(unix)]
const PAGES_PER_CALL: usize = 256;

/// A read-only mapping of the first bytes of a file.
#[cfg(unix)]
#[derive(Debug)]
pub(super) struct Mapping {
    /// The start of the mapping; dangling if `length` is zero, for which there is no mapping.
    start: ptr::NonNull<c_void>,
    length: usize,
    /// Whether the system says which pages are in memory.
    is_reported: bool,
}

// SAFETY: a mapping belongs to the process, not to a thread, and is only ever read.
#[cfg(unix)]
unsafe impl Send for Mapping {}
// SAFETY: as above; reading from many threads at once is reading.
#[cfg(unix)]
unsafe impl Sync for Mapping {}

#[cfg(unix)]
impl Mapping {
    fn new(file: &fs::File, length: usize) -> io::Result<Self> {
        if length == 0 {
            return Ok(Self {
                start: ptr::NonNull::dangling(),
                length,
                is_reported: false,
            });
        }
        let mapping = Self {
            start: map(file, 0, length)?,
            length,
            is_reported: is_reported(&file.metadata()?),
        };
        mapping.read_single_pages();
        Ok(mapping)
    }

    /// A mapping of the piece at `offset`, which nobody reads.
    #[cfg(target_os = "linux")]
    fn of_piece(file: &fs::File, offset: u64) -> io::Result<Self> {
        let length = usize::try_from(PIECE_BYTES).map_err(|_| io::ErrorKind::OutOfMemory)?;
        Ok(Self {
            start: map(file, offset, length)?,
            length,
            is_reported: true,
        })
    }

    /// The pages of 4 KiB of the first piece that are in memory; all if the system does not say.
    #[cfg(target_os = "linux")]
    fn resident_pages(&self) -> u64 {
        let mut pages = [0_u8; PIECE_PAGES];
        let start = self.start.as_ptr();
        // SAFETY: the `length` bytes at `start` are mapped, `start` is a multiple of the page size, and the call writes
        // one byte per page of them; pages have at least 4 KiB, so that is at most PIECE_PAGES.
        let answer = unsafe { libc::mincore(start, self.length, pages.as_mut_ptr().cast()) };
        if answer != 0 {
            return u64::MAX;
        }
        let page_of = |small: usize| small * (self.length / PIECE_PAGES) / page_bytes();
        let resident = (0..PIECE_PAGES).filter(|&small| pages[page_of(small)] & 1 != 0);
        resident.map(|small| 1 << small).sum()
    }

    /// Advises the system to read nothing but the page of a fault.
    fn read_single_pages(&self) {
        use rustix::mm::{Advice, madvise};

        // SAFETY: exactly this range is mapped, and the advice changes no byte of it.
        let advised = unsafe { madvise(self.start.as_ptr(), self.length, Advice::Random) };
        // Advice that the system refuses changes no result, only speed.
        advised.unwrap_or_default();
    }

    /// Whether all pages of `range` are in memory; false if the system does not say.
    #[cfg(any(
        target_os = "linux",
        target_os = "android",
        target_vendor = "apple",
        target_os = "freebsd"
    ))]
    pub(super) fn is_resident(&self, range: Range<usize>) -> bool {
        if !self.is_reported {
            return range.is_empty();
        }
        let page = page_bytes();
        let first = range.start - range.start % page;
        let end = range.end.min(self.length);
        let mut pages = [0_u8; PAGES_PER_CALL];
        (first..end).step_by(PAGES_PER_CALL * page).all(|start| {
            let length = (end - start).min(PAGES_PER_CALL * page);
            let at = self.start.as_ptr().wrapping_byte_add(start);
            // SAFETY: the `length` bytes at `at` are within the mapping, `at` is a multiple of the page size, and the
            // call writes one byte per page of them, at most PAGES_PER_CALL.
            let answer = unsafe { libc::mincore(at, length, pages.as_mut_ptr().cast()) };
            let pages = &pages[..length.div_ceil(page)];
            answer != 0 || pages.iter().all(|page| page & 1 != 0)
        })
    }

    #[cfg(not(any(
        target_os = "linux",
        target_os = "android",
        target_vendor = "apple",
        target_os = "freebsd"
    )))]
    pub(super) fn is_resident(&self, _: Range<usize>) -> bool {
        true
    }

    /// The mapped bytes.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: `length` bytes from `start` are mapped for reading until `self` is dropped, or
        // `length` is zero and `start` not null; the argument above says who may write them.
        unsafe { slice::from_raw_parts(self.start.cast().as_ptr(), self.length) }
    }
}

#[cfg(unix)]
impl Drop for Mapping {
    fn drop(&mut self) {
        if self.length == 0 {
            return;
        }
        // SAFETY: exactly this range was mapped by `new`, and every borrow of it has ended.
        let unmapped = unsafe { rustix::mm::munmap(self.start.as_ptr(), self.length) };
        debug_assert!(unmapped.is_ok(), "a whole mapping can be removed");
    }
}

#[cfg(test)]
mod tests;

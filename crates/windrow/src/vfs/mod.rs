//! Layer 1: the file system as the engine sees it.
//!
//! All I/O of the engine goes through [`Vfs`] and [`File`]; [`OsVfs`] is the real one, and the
//! simulated disk of the tests implements the same traits with crashes and faults.
//!
//! What the engine may rely on, and nothing more:
//! - Bytes written, and a length grown, are durable only after [`File::sync_data`] on that file.
//! - A created, linked, renamed or removed name of a file is durable only after [`Vfs::sync_dir`] on its
//!   directory.
//! - Bytes that [`File::truncate`] removes may reappear after a crash, until the file is synced. The
//!   bytes before them are not touched.
//! - Before a sync, any subset of what was written may survive a crash, in any order, torn at
//!   512-byte sectors, or as zeroes up to the new length.
//! - After an error of `sync_data` or of [`File::write_back`], the state of the bytes since the last success of
//!   `sync_data` is unknown. A later success does not make them durable unless they were written again.
//! - Overwriting bytes with equal ones changes nothing, even if a crash leaves it incomplete.
//!
//! Concurrency: both traits are used from many threads at once. Reads may overlap writes of other
//! ranges; the engine never reads a range that is being written.

mod file_writer;
mod footprint;
#[cfg(test)]
pub(crate) mod memory;
mod os;

use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use file_writer::{FileWriter, WRITE_BYTES};
pub(crate) use footprint::{Footprint, PIECE_BYTES, PassBytes, PassedBytes};
pub use os::OsVfs;

/// How an existing file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// Reading only.
    Read,
    /// Reading and writing.
    ReadWrite,
}

/// How a file is about to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// Small reads anywhere: no read-ahead.
    Random,
    /// From front to back: read ahead.
    Sequential,
    /// The bytes of the range will be needed soon: the system reads them in the background.
    WillNeed,
    /// The bytes of the range will not be needed again soon: the system drops them from the page cache.
    DontNeed,
}

/// The two halves of a write back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteBack {
    /// The system begins to write the bytes to the device.
    Begin,
    /// The call waits until the bytes are written whose write back was begun.
    End,
}

/// A file system: the one way from the engine to directories and files.
pub trait Vfs: Send + Sync + Debug {
    /// Creates `path` and its missing parents and makes their names durable; succeeds if it exists
    /// already.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;

    /// Creates the directory `path` in one that exists, if it is missing. Its name need not become durable.
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.create_dir_all(path)
    }

    /// Creates a new, empty file for reading and writing; `AlreadyExists` if the name is taken.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>>;

    /// Opens an existing file. `InvalidData` if it is so damaged that none of its bytes can be read.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>>;

    /// Names (not paths) of everything in the directory `path`, in no particular order.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;

    /// Renames `from` to `to` in one step, replacing `to`; both in the same directory.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// The path of an existing file or directory without links, `.` and `..`; `NotFound` if it does not
    /// exist.
    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_owned())
    }

    /// Links the file `from` under the name `to`, perhaps in another directory. `AlreadyExists` if the name
    /// is taken; `Unsupported`, `CrossesDevices` or `PermissionDenied` if the file system cannot.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let _ = (from, to);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Removes the file `path`; the file stays while it has another name or is open.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in the directory `path` durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;

    /// The bytes that new files in the directory `path` can take. `Unsupported` if that is unknown.
    fn available_bytes(&self, path: &Path) -> io::Result<u64> {
        let _ = path;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Takes the exclusive lock on `path`, creating the file if need be; `WouldBlock` while
    /// another process, or another handle in this one, holds it. Dropping the guard releases it. The
    /// text of the error, if it has one of its own, says who holds the lock: "process 12 (windrow)".
    fn lock(&self, path: &Path) -> io::Result<Box<dyn LockGuard>>;

    /// Takes the shared lock on `path`, which excludes only the exclusive one; `WouldBlock` while that is
    /// held. Writes nothing: `NotFound` if the file does not exist.
    fn lock_shared(&self, path: &Path) -> io::Result<Box<dyn LockGuard>> {
        let _ = path;
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Holds an exclusive or shared lock until dropped.
pub trait LockGuard: Send + Sync + Debug {}

/// An open file. Offsets and lengths are in bytes.
pub trait File: Send + Sync + Debug {
    /// Reads into `buffer` from `offset`; returns how many bytes, which may be fewer than asked.
    /// Zero means the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes from `buffer` at `offset`, growing the file if need be; returns how many bytes,
    /// which may be fewer than given.
    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<usize>;

    /// The file's length.
    fn length(&self) -> io::Result<u64>;

    /// Reserves space for `length` bytes from `offset` without changing the file's length, so that
    /// writes there cannot run out of space. `Unsupported` if the file system cannot.
    fn reserve(&self, offset: u64, length: u64) -> io::Result<()>;

    /// Truncates the file to `length` bytes; does nothing if it is not longer. `Unsupported` if the file
    /// system cannot.
    fn truncate(&self, length: u64) -> io::Result<()> {
        let _ = length;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Makes the bytes written so far, and the length needed to read them, durable.
    fn sync_data(&self) -> io::Result<()>;

    /// Writes the bytes of `range` to the device before a sync has to, so that the sync does not have to write all at
    /// once, and so that the page cache can drop them. Makes nothing durable; does nothing if the system cannot.
    ///
    /// # Errors
    /// As of a sync: the system may report the failure here and nowhere else.
    fn write_back(&self, range: Range<u64>, half: WriteBack) -> io::Result<()> {
        let _ = (range, half);
        Ok(())
    }

    /// Advises the system how `range` will be read; has no effect on any result.
    fn advise(&self, range: Range<u64>, advice: Advice);

    /// Whether the byte at `offset` is in the page cache. True if that is unknown: the engine then does not
    /// prefetch.
    fn is_resident(&self, offset: u64) -> bool {
        let _ = offset;
        true
    }

    /// Which of the 64 pages of 4 KiB from `offset` on are in the page cache, a multiple of 64 pages: bit 0 is the
    /// first page. All if that is unknown: jobs then drop nothing.
    fn resident_pages(&self, offset: u64) -> u64 {
        let _ = offset;
        u64::MAX
    }

    /// Maps the first `length` bytes for reading. The engine does not truncate mapped bytes. A read of a byte that
    /// is not in the page cache should load its page and no others. `Unsupported` if the file cannot be mapped: the
    /// engine then reads it into memory.
    fn map(&self, length: u64) -> io::Result<Arc<Region>>;
}

/// A read-only mapping of a file's first bytes.
///
/// Every step of a cursor reads them, so a mapping of the operating system needs no virtual call.
#[derive(Debug)]
pub struct Region(Source);

#[derive(Debug)]
enum Source {
    #[cfg(unix)]
    Mapping(os::Mapping),
    Other(Box<dyn RegionBytes>),
}

/// The bytes of a [`Region`] that is not a mapping of the operating system.
pub trait RegionBytes: Send + Sync + Debug {
    /// The bytes.
    fn bytes(&self) -> &[u8];

    /// As [`Region::is_resident`].
    fn is_resident(&self, range: Range<usize>) -> bool {
        let _ = range;
        true
    }
}

impl Region {
    /// A region with the bytes of `source`.
    pub fn new(source: impl RegionBytes + 'static) -> Self {
        Self(Source::Other(Box::new(source)))
    }

    /// The mapped bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match &self.0 {
            #[cfg(unix)]
            Source::Mapping(mapping) => mapping.bytes(),
            Source::Other(source) => source.bytes(),
        }
    }

    /// The mapped bytes, if they are those of a mapping of the operating system, and so cost no call.
    #[inline]
    pub(crate) fn mapping(&self) -> Option<&[u8]> {
        match &self.0 {
            #[cfg(unix)]
            Source::Mapping(mapping) => Some(mapping.bytes()),
            Source::Other(_) => None,
        }
    }

    /// Whether all bytes of `range` are in memory now, so that a read of them does not wait for a device. One system
    /// call for each MiB; no byte is read. A system without that call answers true; one that reports nothing to this
    /// process answers false.
    pub fn is_resident(&self, range: Range<usize>) -> bool {
        match &self.0 {
            #[cfg(unix)]
            Source::Mapping(mapping) => mapping.is_resident(range),
            Source::Other(source) => source.is_resident(range),
        }
    }
}

/// Maps the first `length` bytes; `None` if the file cannot be mapped.
pub(crate) fn map_if_possible(file: &dyn File, length: u64) -> io::Result<Option<Arc<Region>>> {
    match file.map(length) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(None),
        region => region.map(Some),
    }
}

/// Fills `buffer` from `offset`, through short reads and interruptions.
///
/// # Errors
/// `UnexpectedEof` if the file ends before the buffer is full, or the error of the read.
pub fn read_exact_at(file: &dyn File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    if read_up_to_end_at(file, buffer, offset)? < buffer.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}

/// Fills `buffer` from `offset` as far as the file reaches, through short reads and interruptions; returns how many bytes.
///
/// # Errors
/// The error of the read.
pub fn read_up_to_end_at(file: &dyn File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Writes all of `buffer` at `offset`, through short writes and interruptions.
///
/// # Errors
/// The error of the write; an unknown part of `buffer` was written before it.
#[inline]
pub fn write_all_at(file: &dyn File, mut buffer: &[u8], mut offset: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        match file.write_at(buffer, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                buffer = &buffer[count..];
                offset += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

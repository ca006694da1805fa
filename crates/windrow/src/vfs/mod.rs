//! Layer 1: the file system as the engine sees it.
//!
//! All I/O of the engine goes through [`Vfs`] and [`File`]; [`OsVfs`] is the real one, and the
//! simulated disk of the tests implements the same traits with crashes and faults.
//!
//! What the engine may rely on, and nothing more:
//! - Bytes written, and a length grown, are durable only after [`File::sync_data`] on that file.
//! - A created, linked, renamed or removed name of a file is durable only after [`Vfs::sync_dir`] on its
//!   directory.
//! - What [`File::truncate`] cuts off may be there again after a crash, until the file is synced; what is
//!   in front of it is not touched.
//! - Before a sync, any subset of what was written may survive a crash, in any order, torn at
//!   512-byte sectors, or as zeroes up to the new length.
//! - After an error of `sync_data`, nothing is known of the bytes since the last success, and a later
//!   success says nothing of them unless they were written again.
//! - Writing bytes over equal ones changes nothing, whatever a crash leaves of it.
//!
//! Concurrency: both traits are used from many threads at once. Reads may overlap writes of other
//! ranges; the engine never reads a range that is being written.

mod file_writer;
#[cfg(test)]
pub(crate) mod memory;
mod os;

use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

pub(crate) use file_writer::{FileWriter, WRITE_BYTES};
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
    /// The bytes of the range will be needed soon: they are read behind the caller's back.
    WillNeed,
    /// The bytes of the range will not be needed again soon.
    DontNeed,
}

/// A file system: the one way from the engine to directories and files.
pub trait Vfs: Send + Sync + Debug {
    /// Creates `path` and its missing parents and makes their names durable; succeeds where it
    /// exists already.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;

    /// Creates a new, empty file for reading and writing; `AlreadyExists` where there is one.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>>;

    /// Opens an existing file.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>>;

    /// Names (not paths) of everything in the directory `path`, in no particular order.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;

    /// Renames `from` to `to` in one step, replacing `to`; both in the same directory.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives the file `from` the further name `to`, perhaps in another directory; `AlreadyExists` where
    /// that is taken, `Unsupported`, `CrossesDevices` or `PermissionDenied` where the file system
    /// cannot.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let _ = (from, to);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Removes the file `path`; the file stays while it has another name or is open.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in the directory `path` durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;

    /// Takes the exclusive lock on `path`, creating the file if need be; `WouldBlock` while
    /// another process, or another handle in this one, holds it. Dropping the guard releases it.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn LockGuard>>;

    /// Takes a share of the lock on `path`: others can have shares too, and nobody the exclusive
    /// lock; `WouldBlock` while somebody has that. Writes nothing: `NotFound` where there is no file.
    fn lock_shared(&self, path: &Path) -> io::Result<Box<dyn LockGuard>> {
        let _ = path;
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Holds a lock, or a share of it, until dropped.
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

    /// Reserves room for `length` bytes from `offset` without changing the file's length, so that
    /// writes there cannot run out of space. `Unsupported` where the file system cannot.
    fn reserve(&self, offset: u64, length: u64) -> io::Result<()>;

    /// Cuts off what is behind the first `length` bytes; does nothing where nothing is. `Unsupported` where
    /// the file system cannot.
    fn truncate(&self, length: u64) -> io::Result<()> {
        let _ = length;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Makes the bytes written so far, and the length needed to read them, durable.
    fn sync_data(&self) -> io::Result<()>;

    /// Tells how `range` will be read; has no effect on any result.
    fn advise(&self, range: Range<u64>, advice: Advice);

    /// Whether the byte at `offset` can be read without waiting for a device. Who does not know says
    /// yes, and nobody reads ahead then.
    fn is_at_hand(&self, offset: u64) -> bool {
        let _ = offset;
        true
    }

    /// Maps the first `length` bytes for reading. While they are mapped, none of them is cut off.
    fn map(&self, length: u64) -> io::Result<Arc<Region>>;
}

/// A read-only mapping of a file's first bytes.
///
/// Every step of a cursor asks for them, so what the operating system maps is told apart without a
/// virtual call.
#[derive(Debug)]
pub struct Region(Shown);

#[derive(Debug)]
enum Shown {
    Mapping(os::Mapping),
    Other(Box<dyn ShowBytes>),
}

/// Shows the bytes of a [`Region`] that is no mapping of the operating system.
pub trait ShowBytes: Send + Sync + Debug {
    /// The bytes.
    fn bytes(&self) -> &[u8];
}

impl Region {
    /// A region whose bytes `source` shows.
    pub fn new(source: impl ShowBytes + 'static) -> Self {
        Self(Shown::Other(Box::new(source)))
    }

    /// The mapped bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match &self.0 {
            Shown::Mapping(mapping) => mapping.bytes(),
            Shown::Other(source) => source.bytes(),
        }
    }
}

/// Fills `buffer` from `offset`, through short reads and interruptions.
///
/// # Errors
/// `UnexpectedEof` where the file ends before the buffer is full, or the error of the read.
pub fn read_exact_at(file: &dyn File, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        match file.read_at(buffer, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                buffer = &mut buffer[count..];
                offset += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes all of `buffer` at `offset`, through short writes and interruptions.
///
/// # Errors
/// The error of the write; what was written of `buffer` before it is unknown.
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

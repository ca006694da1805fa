//! The lock file of a database: the operating system's lock on it, and the name of the process that holds
//! it.
//!
//! The process with the exclusive lock writes its process id and the name of its program to the file, and
//! empties it at the end. Refused processes report this text. The text is for people only: it may be
//! missing or be that of an earlier process. Readers share the lock and write nothing.
//!
//! I1. One lock file has at most one exclusive [`OsLock`], or any number of shared ones, in this process
//!     and, through the operating system's lock, on this machine.
//!
//! Concurrency: one lock over all lock files of the process.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this file is part of what stands between the engine and the operating system"
)]

use crate::vfs::LockGuard;
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process;
use std::sync::{Mutex, PoisonError};

/// The text in a lock file is never longer.
const HOLDER_BYTES_MAX: usize = 256;

/// The lock files held in this process, by device and inode. On some network file systems the
/// operating system's lock belongs to the process and would let a second handle in.
static HELD: Mutex<BTreeMap<Identity, Held>> = Mutex::new(BTreeMap::new());

/// Device and inode.
type Identity = (u64, u64);

/// How this process holds a lock file. Closing the file releases the operating system's lock, so
/// all readers have one handle.
#[derive(Debug)]
struct Held {
    file: fs::File,
    /// How many read; `None` for the exclusive lock.
    readers: Option<usize>,
}

impl Held {
    fn refusal(&self) -> io::Error {
        match self.readers {
            None => refused("this process"),
            Some(_) => refused("this process, for reading only"),
        }
    }
}

/// The lock on a file, exclusive or shared, held until dropped.
#[derive(Debug)]
pub(super) struct OsLock(Identity);

impl OsLock {
    /// Takes the exclusive lock.
    pub(super) fn take(path: &Path) -> io::Result<Self> {
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        // Ask before opening: where the lock belongs to the process, closing any handle of the
        // file would release it.
        match identity(fs::metadata(path)) {
            Ok(identity) => {
                if let Some(own) = held.get(&identity) {
                    return Err(own.refusal());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let file = fs::File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                // A shared lock succeeds only while all holders of the lock are readers.
                if file.try_lock_shared().is_ok() {
                    return Err(refused("another process, for reading only"));
                }
                return Err(refused(&holder(&file)));
            }
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
        // The lock holds without its text too, for instance on a full disk.
        drop(write_holder(&file));
        Self::hold(&mut held, file, None)
    }

    /// Takes the shared lock.
    pub(super) fn take_shared(path: &Path) -> io::Result<Self> {
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        let own = identity(fs::metadata(path))?;
        match held.get_mut(&own) {
            None => {}
            Some(Held {
                readers: Some(readers),
                ..
            }) => {
                *readers += 1;
                return Ok(Self(own));
            }
            Some(exclusive) => return Err(exclusive.refusal()),
        }
        let file = fs::File::open(path)?;
        match file.try_lock_shared() {
            Ok(()) => Self::hold(&mut held, file, Some(1)),
            Err(fs::TryLockError::WouldBlock) => Err(refused(&holder(&file))),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }

    fn hold(
        held: &mut BTreeMap<Identity, Held>,
        file: fs::File,
        readers: Option<usize>,
    ) -> io::Result<Self> {
        let identity = identity(file.metadata())?;
        let former = held.insert(identity, Held { file, readers });
        assert!(former.is_none(), "a lock file is held once");
        Ok(Self(identity))
    }
}

fn identity(metadata: io::Result<fs::Metadata>) -> io::Result<Identity> {
    metadata.map(|metadata| (metadata.dev(), metadata.ino()))
}

/// The error of a lock that `holder` has.
fn refused(holder: &str) -> io::Error {
    io::Error::new(io::ErrorKind::WouldBlock, holder)
}

/// Says in the lock file that this process holds it.
fn write_holder(file: &fs::File) -> io::Result<()> {
    let program = env::current_exe().unwrap_or_default();
    let program = program.file_name().unwrap_or_default().to_string_lossy();
    let mut text = format!("{} {program}", process::id()).into_bytes();
    text.truncate(HOLDER_BYTES_MAX - 1);
    text.push(b'\n');
    file.set_len(0)?;
    file.write_all_at(&text, 0)
}

/// Who holds the lock, by the text in the file.
fn holder(file: &fs::File) -> String {
    let mut text = [0; HOLDER_BYTES_MAX];
    let length = file.read_at(&mut text, 0).unwrap_or_default();
    parse_holder(&text[..length]).unwrap_or_else(|| "another process".to_owned())
}

/// Only a text as [`write_holder`] writes it is shown.
fn parse_holder(text: &[u8]) -> Option<String> {
    let line = std::str::from_utf8(text).ok()?.strip_suffix('\n')?;
    let (process, program) = line.split_once(' ')?;
    let process: u32 = process.parse().ok()?;
    let is_shown = !program.is_empty() && !program.contains(|it: char| it.is_control());
    is_shown.then(|| format!("process {process} ({program})"))
}

impl LockGuard for OsLock {}

impl Drop for OsLock {
    fn drop(&mut self) {
        // The entry and the file go under one lock. In between, another thread would fail to take the lock
        // or, by closing its own handle, release it.
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        let is_last = match held.get_mut(&self.0) {
            Some(Held {
                readers: Some(readers),
                ..
            }) => {
                *readers -= 1;
                *readers == 0
            }
            Some(exclusive) => {
                drop(exclusive.file.set_len(0));
                true
            }
            None => true,
        };
        if is_last {
            held.remove(&self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::parse_holder;

    #[test]
    fn only_a_whole_text_names_the_holder() {
        let named = parse_holder(b"1234 windrow\n");
        assert_eq!(named.as_deref(), Some("process 1234 (windrow)"));
        let named = parse_holder(b"1 a b\n");
        assert_eq!(named.as_deref(), Some("process 1 (a b)"));
        for text in [
            &b""[..],
            b"1234 windrow",
            b"1234\n",
            b"1234 \n",
            b"x windrow\n",
            b"1234 wind\x1brow\n",
            b"1234 \xff\n",
        ] {
            assert_eq!(parse_holder(text), None, "{text:?}");
        }
    }
}

//! The lock file of a database: the operating system's lock on it, and the name of the process that holds
//! it.
//!
//! The process with the exclusive lock writes its process id and the name of its program to the file, and
//! empties it at the end. Readers share the lock and write nothing. Refused processes report this text, or readers
//! if there is none. The text is for people only: it may be missing or be that of an earlier process.
//!
//! I1. One lock file has at most one exclusive [`OsLock`], or any number of shared ones, in this process
//!     and, through the operating system's lock, on this machine.
//! I2. The system's lock ends with the last [`OsLock`], also while a process that another thread is starting has
//!     inherited the open file for a moment: it is unlocked, not only closed.
//! I3. A refused lock never holds the system's lock, not for a moment: another process would be refused.
//!
//! Concurrency: one lock over all lock files of the process.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this file is part of what stands between the engine and the operating system"
)]

use super::{open_no_link, read_at, write_at};
use crate::vfs::LockGuard;
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io;
#[cfg(unix)]
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process;
use std::sync::{Mutex, PoisonError};

/// The text in a lock file is never longer.
const HOLDER_BYTES_MAX: usize = 256;

/// The lock files held in this process. On some network file systems the
/// operating system's lock belongs to the process and would let a second handle in.
static HELD: Mutex<BTreeMap<Identity, Held>> = Mutex::new(BTreeMap::new());

/// Device and inode.
#[cfg(unix)]
type Identity = (u64, u64);

/// The path without links, `.` and `..`.
#[cfg(not(unix))]
type Identity = std::path::PathBuf;

/// How this process holds a lock file. Dropping it releases the operating system's lock, so all readers
/// have one handle.
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

impl Drop for Held {
    fn drop(&mut self) {
        if self.readers.is_none() {
            drop(self.file.set_len(0));
        }
        // I2. If this fails, the close of the file unlocks it.
        drop(self.file.unlock());
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
        match identity(path) {
            Ok(identity) => {
                if let Some(own) = held.get(&identity) {
                    return Err(own.refusal());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let mut options = fs::File::options();
        options.read(true).write(true).create(true).truncate(false);
        let file = open_no_link(&mut options, path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                // I3. Only an exclusive holder writes its name.
                return Err(match file.metadata() {
                    Ok(metadata) if metadata.len() == 0 => {
                        refused("another process, for reading only")
                    }
                    _ => refused(&holder(&file)),
                });
            }
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
        check_name(path, &file)?;
        // The lock holds without its text too, for instance on a full disk.
        drop(write_holder(&file));
        let readers = None;
        Self::hold(&mut held, path, Held { file, readers })
    }

    /// Takes the shared lock.
    pub(super) fn take_shared(path: &Path) -> io::Result<Self> {
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        let own = identity(path)?;
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
            Ok(()) => {
                check_name(path, &file)?;
                let readers = Some(1);
                Self::hold(&mut held, path, Held { file, readers })
            }
            Err(fs::TryLockError::WouldBlock) => Err(refused(&holder(&file))),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }

    fn hold(held: &mut BTreeMap<Identity, Held>, path: &Path, own: Held) -> io::Result<Self> {
        let identity = own_identity(path, &own.file)?;
        let former = held.insert(Identity::clone(&identity), own);
        assert!(former.is_none(), "a lock file is held once");
        Ok(Self(identity))
    }
}

/// The identity of the file at `path`.
#[cfg(unix)]
fn identity(path: &Path) -> io::Result<Identity> {
    fs::metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(path: &Path) -> io::Result<Identity> {
    fs::canonicalize(path)
}

/// The identity of `file`, which was opened as `path`.
#[cfg(unix)]
fn own_identity(_: &Path, file: &fs::File) -> io::Result<Identity> {
    file.metadata()
        .map(|metadata| (metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn own_identity(path: &Path, _: &fs::File) -> io::Result<Identity> {
    identity(path)
}

/// Checks that a file that was just locked is still the one at `path`: the holder before may have removed it between its
/// open here and its lock.
#[cfg(unix)]
fn check_name(path: &Path, file: &fs::File) -> io::Result<()> {
    let own = own_identity(path, file)?;
    if identity(path).is_ok_and(|named| named == own) {
        return Ok(());
    }
    Err(refused("another process, which removes it"))
}

/// Windows removes the name of no file that is open here.
#[cfg(not(unix))]
fn check_name(path: &Path, _: &fs::File) -> io::Result<()> {
    fs::metadata(path).map(drop)
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
    write_at(file, &text, 0).map(drop)
}

/// Who holds the lock, by the text in the file.
fn holder(file: &fs::File) -> String {
    let mut text = [0; HOLDER_BYTES_MAX];
    let length = read_at(file, &mut text, 0).unwrap_or_default();
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
            _ => true,
        };
        if is_last {
            held.remove(&self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_removed_before_its_lock_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("LOCK");
        let opened = fs::File::create(&path).unwrap();
        check_name(&path, &opened).unwrap();
        fs::remove_file(&path).unwrap();
        let error = check_name(&path, &opened).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        let next = OsLock::take(&path).unwrap();
        assert!(check_name(&path, &opened).is_err());
        drop(next);
    }

    /// A process that another thread starts inherits every open file, until it runs its own program.
    // I2
    #[test]
    fn a_copy_of_the_open_file_does_not_keep_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("LOCK");
        let copy = |lock: &OsLock| HELD.lock().unwrap()[&lock.0].file.try_clone().unwrap();
        let lock = OsLock::take(&path).unwrap();
        let of_writer = copy(&lock);
        drop(lock);
        let first = OsLock::take_shared(&path).unwrap();
        let second = OsLock::take_shared(&path).unwrap();
        let of_readers = copy(&first);
        drop(first);
        let error = OsLock::take(&path).unwrap_err();
        assert_eq!(error.to_string(), "this process, for reading only");
        drop(second);
        drop(OsLock::take(&path).unwrap());
        drop((of_writer, of_readers));
    }

    // I3
    #[test]
    fn the_text_in_the_file_decides_what_a_refusal_reports() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("LOCK");
        let reader = fs::File::create(&path).unwrap();
        reader.lock_shared().unwrap();
        let refusal = || OsLock::take(&path).unwrap_err().to_string();
        assert_eq!(refusal(), "another process, for reading only");
        fs::write(&path, "1234 windrow\n").unwrap();
        assert_eq!(refusal(), "process 1234 (windrow)");
        fs::write(&path, "something else").unwrap();
        assert_eq!(refusal(), "another process");
    }

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

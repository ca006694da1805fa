//! The removal of a whole database.
//!
//! 1. Take the lock.
//! 2. Remove `CURRENT`, and make that durable. From here on the folder does not open with the old data.
//! 3. Remove all other files of the engine but the lock, and make that durable. Then remove the leases of readers.
//!
//! A crash before the end of step 2 leaves the whole database, or one without `CURRENT`, which an open reports as
//! damage. A crash after it leaves some files without `CURRENT`. So no open finds a part of the data. Another removal
//! does the rest.
//!
//! The lock file stays: a process that has opened it before its removal could lock it, while the next one makes another.
//!
//! Concurrency: one thread, under the exclusive lock.

use std::io;
use std::path::Path;

use super::folder::{LOCK, is_missing_folder, list, lock_failure};
use crate::base::{Error, Result};
use crate::engine::secondary::lease::{LOCK_SUFFIX, PLACE_SUFFIX, READERS};
use crate::manifest::names::FileName;
use crate::vfs::Vfs;

/// Removes the database in `directory`, if there is one.
pub(crate) fn destroy(vfs: &dyn Vfs, directory: &Path) -> Result<()> {
    match vfs.list(directory) {
        Ok(names) if names.iter().any(|name| is_of_database(name)) => {}
        Ok(_) => return Ok(()),
        Err(error) if is_missing_folder(&error) => return Ok(()),
        Err(error) => return Err(Error::io("list", directory, error)),
    }
    let _lock = vfs
        .lock(&directory.join(LOCK))
        .map_err(|error| lock_failure(directory, error))?;
    let files = list(vfs, directory)?;
    let (current, others): (Vec<_>, Vec<_>) = files
        .into_iter()
        .filter(|file| *file != FileName::Lock)
        .partition(|file| *file == FileName::Current);
    for files in [current, others] {
        for file in files {
            let path = directory.join(file.to_string());
            match vfs.remove(&path) {
                // Whatever others have put there in its place is theirs.
                Err(_) if file.is_for_people() => {}
                outcome => outcome.map_err(|error| Error::io("remove", &path, error))?,
            }
        }
        vfs.sync_dir(directory)
            .map_err(|error| Error::io("sync", directory, error))?;
    }
    remove_leases(vfs, directory)
}

/// Whether a file of this name shows that there is or was a database.
fn is_of_database(name: &str) -> bool {
    FileName::parse(name).is_some_and(|file| !file.is_for_people())
}

/// Removes the leases of readers, which then begin anew: the numbers of files begin again.
fn remove_leases(vfs: &dyn Vfs, directory: &Path) -> Result<()> {
    let readers = directory.join(READERS);
    let names = match vfs.list(&readers) {
        Err(error) if is_missing_folder(&error) => return Ok(()),
        outcome => outcome.map_err(|error| Error::io("list", &readers, error))?,
    };
    // The places first: without it a reader notices.
    for suffix in [PLACE_SUFFIX, LOCK_SUFFIX] {
        for name in names.iter().filter(|name| name.ends_with(suffix)) {
            let path = readers.join(name);
            match vfs.remove(&path) {
                // Its reader has ended.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                outcome => outcome.map_err(|error| Error::io("remove", &path, error))?,
            }
        }
    }
    Ok(())
}

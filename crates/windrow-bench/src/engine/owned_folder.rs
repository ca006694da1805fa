//! Folders of runs that go with their program: at its end, or, where that was killed, when the next one makes
//! a folder in the same place.
//!
//! A file in each folder is locked as long as its program lives, and no longer.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use tempfile::TempDir;
use windrow::{Error, Result};

/// The file in each that its program has locked.
const OWNER: &str = "owner";

/// A folder that is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct OwnedFolder {
    folder: TempDir,
    /// Behind the folder, so that it is locked until that is gone.
    _owner: File,
}

impl OwnedFolder {
    /// A new folder below `parent`, whose name begins with `prefix`. Those that such a program has left there
    /// go.
    ///
    /// # Errors
    /// `Io` where there can be none.
    pub(crate) fn new(prefix: &str, parent: &Path) -> Result<Self> {
        remove_abandoned(prefix, parent);
        create(prefix, parent).map_err(|error| Error::io("create a folder in", parent, error))
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

fn create(prefix: &str, parent: &Path) -> io::Result<OwnedFolder> {
    let folder = tempfile::Builder::new().prefix(prefix).tempdir_in(parent)?;
    // Under the name that others look at, it is locked from the start.
    let early = folder.path().join("new");
    let owner = File::create(&early)?;
    // Where files cannot be locked, a folder that is left stays.
    match owner.lock() {
        Ok(()) => fs::rename(&early, folder.path().join(OWNER))?,
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
        Err(error) => return Err(error),
    }
    Ok(OwnedFolder {
        folder,
        _owner: owner,
    })
}

/// Removes the folders below `parent` whose programs are no more; what cannot be removed stays.
fn remove_abandoned(prefix: &str, parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_folder || !name.to_string_lossy().starts_with(prefix) {
            continue;
        }
        let owner = entry.path().join(OWNER);
        if !fs::symlink_metadata(&owner).is_ok_and(|found| found.is_file()) {
            continue;
        }
        let owner = File::open(owner);
        if owner.is_ok_and(|owner| owner.try_lock().is_ok()) {
            drop(empty(&entry.path()).and_then(|()| fs::remove_dir_all(entry.path())));
        }
    }
}

/// Removes what is in `folder` but the file by which it is known, so that what stays here is tried again.
fn empty(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_programs_that_are_no_more_go() {
        let parent = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let folder = parent.path().join(name);
            fs::create_dir_all(folder.join("windrow/deeper")).unwrap();
            fs::write(folder.join("windrow/deeper/file"), "data").unwrap();
            folder
        };
        let alive = OwnedFolder::new("windrow-test-", parent.path()).unwrap();
        let abandoned = folder("windrow-test-abandoned");
        fs::write(abandoned.join(OWNER), "").unwrap();
        let other = folder("something-else");
        fs::write(other.join(OWNER), "").unwrap();
        let beginning = folder("windrow-test-beginning");
        #[cfg(unix)]
        {
            let link = parent.path().join("windrow-test-link");
            std::os::unix::fs::symlink(&other, link).unwrap();
        }
        let next = OwnedFolder::new("windrow-test-", parent.path()).unwrap();
        assert!(!abandoned.exists());
        assert!(alive.path().is_dir() && beginning.is_dir());
        assert!(other.join("windrow/deeper/file").is_file());
        let path = next.path().to_owned();
        drop(next);
        assert!(!path.exists() && alive.path().is_dir());
    }
}

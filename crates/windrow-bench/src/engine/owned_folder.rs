//! Folders that a program owns. The program removes its folder at its end. The next program that creates a folder
//! in the same place removes the folder of a killed one.
//!
//! A program holds the lock of a file in its folder while it lives.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use tempfile::TempDir;
use windrow::{Error, Result};

/// The locked file in each folder.
const OWNER: &str = "owner";

/// A folder that the drop of this value removes.
#[derive(Debug)]
pub(crate) struct OwnedFolder {
    folder: TempDir,
    /// Drops after the folder, so the lock outlives the folder.
    _owner: File,
}

impl OwnedFolder {
    /// Creates a folder below `parent` with a name that begins with `prefix`. Removes the folders of killed
    /// programs there.
    ///
    /// # Errors
    /// `Io` if the creation fails.
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
    // The file is locked before it gets the name that other programs look for.
    let early = folder.path().join("new");
    let owner = File::create(&early)?;
    // On a file system without locks, the folder of a killed program stays.
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

/// Removes the folders below `parent` of ended programs, as far as the file system allows.
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

/// Removes the contents of `folder` except for the locked file, so the next program retries a partial removal.
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

//! The page cache, which a load on the device must not find full.
//!
//! A page that a process has mapped stays in the cache, so the caller closes the store first.

use std::path::Path;

use serde::{Deserialize, Serialize};
use windrow::{Error, Result};

/// The caches that were dropped before a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DroppedCaches {
    /// The page cache of the system. Only root may drop it.
    System,
    /// The pages of the files of the store.
    StoreFiles,
}

impl DroppedCaches {
    /// What was dropped, for reports.
    pub fn text(self) -> &'static str {
        match self {
            Self::System => "the page cache of the system",
            Self::StoreFiles => "the cached pages of the store's files",
        }
    }
}

/// Writes all dirty pages to their devices.
pub(crate) fn sync() {
    #[cfg(target_os = "linux")]
    rustix::fs::sync();
}

/// Writes dirty pages and drops the page cache: that of the system, or the pages of all files in `folder` if only root
/// may do that.
///
/// # Errors
/// An error of the file system.
pub(crate) fn drop_caches(folder: &Path) -> Result<DroppedCaches> {
    sync();
    if std::fs::write("/proc/sys/vm/drop_caches", "1").is_ok() {
        return Ok(DroppedCaches::System);
    }
    drop_pages(folder)?;
    Ok(DroppedCaches::StoreFiles)
}

/// Drops the clean cached pages of all files in `folder`, at any depth.
#[cfg(target_os = "linux")]
fn drop_pages(folder: &Path) -> Result<()> {
    use rustix::fs::{Advice, fadvise};
    let failed = |error| Error::io("list", folder, error);
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (path, kind) = (entry.path(), entry.file_type().map_err(failed)?);
        if kind.is_dir() {
            drop_pages(&path)?;
        } else if kind.is_file() {
            let file =
                std::fs::File::open(&path).map_err(|error| Error::io("open", &path, error))?;
            // No length is the whole file.
            let dropped = fadvise(&file, 0, None, Advice::DontNeed);
            dropped.map_err(|error| Error::io("drop cached pages of", &path, error.into()))?;
        }
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn drop_pages(folder: &Path) -> Result<()> {
    let error = std::io::ErrorKind::Unsupported.into();
    Err(Error::io("drop cached pages in", folder, error))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs::{self, File};
    use std::io::IoSliceMut;

    use rustix::io::{Errno, ReadWriteFlags, preadv2};

    use super::*;

    /// Whether the first page of the file is in the page cache; `None` if the file system does not report it.
    fn is_cached(path: &Path) -> Option<bool> {
        let mut page = [0; 4096];
        let file = File::open(path).ok()?;
        let buffers = &mut [IoSliceMut::new(&mut page)];
        match preadv2(&file, buffers, 0, ReadWriteFlags::NOWAIT) {
            Ok(length) => Some(length > 0),
            Err(Errno::AGAIN) => Some(false),
            Err(_) => None,
        }
    }

    /// The way of users without the rights of root.
    #[test]
    fn pages_of_files_at_any_depth_are_dropped() {
        // Not in a file system in memory, which some systems have at the default place.
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let (above, below) = (
            folder.path().join("file"),
            folder.path().join("deeper/file"),
        );
        fs::create_dir(folder.path().join("deeper")).unwrap();
        for file in [&above, &below] {
            fs::write(file, vec![1; 1 << 20]).unwrap();
            File::open(file).unwrap().sync_all().unwrap();
        }
        if is_cached(&above) != Some(true) {
            eprintln!("skipped: this file system does not report which pages are cached");
            return;
        }
        // It is advice: the system leaves a page that it looks at itself just then.
        let are_dropped = || {
            drop_pages(folder.path()).unwrap();
            [&above, &below].map(|file| is_cached(file)) == [Some(false); 2]
        };
        assert!((0..1000).any(|_| are_dropped()));
        let missing = drop_pages(&folder.path().join("missing")).unwrap_err();
        assert!(missing.to_string().contains("missing"), "{missing}");
    }
}

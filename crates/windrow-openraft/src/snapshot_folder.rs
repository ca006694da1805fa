//! The files of snapshots beside the database.
//!
//! The file `snapshot` is the newest one. Others end in `.new` while they are written, and an open removes them.
//!
//! Invariants:
//! - I1: `snapshot` is whole and synced: it gets its name afterwards.
//! - I2: `snapshot` is never replaced by an older one.
//!
//! Concurrency: any thread may publish at any time. A file that somebody reads stays readable when it is replaced.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "openraft sends and receives files of the system, which are no part of the database"
)]

use std::fs::{self, File};
use std::io::{self, Seek};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use openraft::RaftTypeConfig;
use windrow::{Error, Result};

use crate::snapshot_file::{Meta, SnapshotReader};

const END: &str = "new";

/// The folder of a node.
#[derive(Debug, Clone)]
pub(crate) struct SnapshotFolder {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    /// The number of the next new file.
    next: AtomicU64,
    /// Held while `snapshot` is compared and replaced.
    publishing: Mutex<()>,
}

/// A file that is written. It loses its own name when this is dropped.
#[derive(Debug)]
pub(crate) struct NewFile {
    path: PathBuf,
    pub(crate) file: File,
}

impl SnapshotFolder {
    /// Makes the folder if it is missing, and removes unfinished files.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let prepare = || {
            fs::create_dir_all(path)?;
            for entry in fs::read_dir(path)? {
                let path = entry?.path();
                if path.extension().is_some_and(|end| end == END) {
                    fs::remove_file(path)?;
                }
            }
            Ok(())
        };
        prepare().map_err(|error| Error::io("prepare", path, error))?;
        let shared = Shared {
            path: path.to_owned(),
            next: AtomicU64::new(1),
            publishing: Mutex::new(()),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// A new file to write and read.
    pub(crate) fn create(&self) -> Result<NewFile> {
        let number = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let path = self.shared.path.join(format!("{number}.{END}"));
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path);
        let file = file.map_err(|error| Error::io("create", &path, error))?;
        Ok(NewFile { path, file })
    }

    /// A file without a name, which goes when it is closed.
    pub(crate) fn create_nameless(&self) -> Result<File> {
        let new = self.create()?;
        let file = new.file.try_clone();
        file.map_err(|error| Error::io("create", &new.path, error))
    }

    /// Makes `new` durable, and the newest snapshot unless there is a newer one. Returns the file, at its beginning.
    pub(crate) fn publish<C: RaftTypeConfig>(&self, new: &NewFile, meta: &Meta<C>) -> Result<File> {
        let file = new.file.try_clone().and_then(|mut file| {
            file.sync_all()?;
            file.rewind()?;
            Ok(file)
        });
        let file = file.map_err(|error| Error::io("sync", &new.path, error))?;
        let publishing = self.shared.publishing.lock();
        let publishing = publishing.unwrap_or_else(PoisonError::into_inner);
        let is_newest = match self.current::<C>()? {
            Some((current, _)) => current.last_log_id <= meta.last_log_id,
            None => true,
        };
        if is_newest {
            let name = self.name();
            let renamed = fs::rename(&new.path, &name);
            let synced = renamed.and_then(|()| File::open(&self.shared.path)?.sync_all());
            synced.map_err(|error| Error::io("rename", &name, error))?;
        }
        drop(publishing);
        Ok(file)
    }

    /// The newest snapshot, at its beginning.
    pub(crate) fn current<C: RaftTypeConfig>(&self) -> Result<Option<(Meta<C>, File)>> {
        let name = self.name();
        let mut file = match File::open(&name) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("open", &name, error)),
        };
        let (meta, _) = SnapshotReader::open::<C>(&file)?;
        let rewound = file.rewind();
        rewound.map_err(|error| Error::io("read", &name, error))?;
        Ok(Some((meta, file)))
    }

    fn name(&self) -> PathBuf {
        self.shared.path.join("snapshot")
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // After a publication the file has another name. What cannot be removed goes with the next open.
        let _removed = fs::remove_file(&self.path);
    }
}

//! The files of snapshots beside the database.
//!
//! The file `snapshot` is the newest one. Others are a number with the ending `.new` while they are written, and an open
//! removes them. Files of other names are not of these stores. A snapshot that is damaged counts for nothing: the state
//! is in the database.
//!
//! Invariants:
//! - I1: `snapshot` is whole and synced: it gets its name afterwards.
//! - I2: `snapshot` is never replaced by an older one.
//! - I3: `snapshot` is not ahead of the state. An open removes one that is, since the database was then replaced by an older
//!   one.
//!
//! Concurrency: the lock of the database guards the folder, so it is opened after the database. Any thread may publish at
//! any time. A file that somebody reads stays readable when it is replaced.

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

use openraft::{LogId, RaftTypeConfig};
use windrow::{Error, ErrorKind, Result};

use crate::snapshot_file::{self, Meta, SnapshotReader};

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
    pub(crate) path: PathBuf,
    pub(crate) file: File,
}

impl SnapshotFolder {
    /// Makes the folder if it is missing, and removes unfinished files.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let prepare = || {
            fs::create_dir_all(path)?;
            for entry in fs::read_dir(path)? {
                let path = entry?.path();
                if is_new(&path) {
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
        let is_newest = match usable(self.read_current(SnapshotReader::open::<C>))? {
            Some(((current, _), _)) => current.last_log_id <= meta.last_log_id,
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

    /// The newest snapshot, at its beginning, if it is there and undamaged.
    pub(crate) fn current<C: RaftTypeConfig>(&self) -> Result<Option<(Meta<C>, File)>> {
        let read = usable(self.read_current(snapshot_file::verify::<C>))?;
        let Some((meta, mut file)) = read else {
            return Ok(None);
        };
        let rewound = file.rewind();
        rewound.map_err(|error| Error::io("read", &self.name(), error))?;
        Ok(Some((meta, file)))
    }

    /// Whether there is a snapshot, damaged or not.
    pub(crate) fn has_snapshot(&self) -> Result<bool> {
        let name = self.name();
        let exists = name.try_exists();
        exists.map_err(|error| Error::io("read", &name, error))
    }

    /// Removes the snapshot if it is ahead of the state, which ends with `applied` (I3).
    pub(crate) fn remove_ahead<C: RaftTypeConfig>(
        &self,
        applied: Option<&LogId<C::NodeId>>,
    ) -> Result<()> {
        let read = usable(self.read_current(SnapshotReader::open::<C>))?;
        let is_ahead = read.is_some_and(|((meta, _), _)| meta.last_log_id.as_ref() > applied);
        if !is_ahead {
            return Ok(());
        }
        let name = self.name();
        let removed = fs::remove_file(&name);
        removed.map_err(|error| Error::io("remove", &name, error))
    }

    /// Reads the newest snapshot by `read`, and returns its file, too.
    fn read_current<T>(
        &self,
        read: impl FnOnce(File, &Path) -> Result<T>,
    ) -> Result<Option<(T, File)>> {
        let name = self.name();
        let failed = |error| Error::io("open", &name, error);
        let file = match File::open(&name) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let same = file.try_clone().map_err(failed)?;
        Ok(Some((read(same, &name)?, file)))
    }

    fn name(&self) -> PathBuf {
        self.shared.path.join("snapshot")
    }
}

/// `read`, or nothing if the snapshot cannot be used.
fn usable<T>(read: Result<Option<T>>) -> Result<Option<T>> {
    match read {
        Err(error) if matches!(error.kind(), ErrorKind::Corruption | ErrorKind::Unsupported) => {
            Ok(None)
        }
        read => read,
    }
}

/// Whether `path` is that of a [`NewFile`].
fn is_new(path: &Path) -> bool {
    let number = path.file_stem().and_then(|stem| stem.to_str());
    path.extension().is_some_and(|end| end == END)
        && number.is_some_and(|number| number.parse::<u64>().is_ok())
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // After a publication the file has another name. What cannot be removed goes with the next open.
        let _removed = fs::remove_file(&self.path);
    }
}

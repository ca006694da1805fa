//! A folder as a store of backups.
//!
//! An object is a file. It is written under another name, synced, renamed, and then the folder is synced. Files of
//! interrupted writes are removed by the next open for writing.
//!
//! Invariants:
//! - I1. A name of an object stands for all of its bytes, and these are durable before the name is.
//! - I2. What an open for writing finds is durable when the open returns: a process may have ended before its last sync
//!   of the folder.
//! - I3. After a failed sync of the folder nothing is changed: another sync might succeed without making durable what the
//!   first one has lost.
//!
//! Concurrency: a writer locks the folder alone, readers share it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::damage::damage;
use super::names::ObjectName;
use super::store::{BackupStore, ByteSource, StoredObject};
use crate::base::sync::atomic::{AtomicBool, Ordering};
use crate::base::{Error, ErrorKind, Result};
use crate::manifest::names::FileName;
use crate::vfs::{File, FileWriter, LockGuard, OpenMode, Vfs};

/// What is written is a name of an object and this, until it is renamed.
const UNFINISHED: &str = ".new";

/// The bytes of one read or write.
const BUFFER_BYTES: usize = 256 << 10;

/// A folder that holds backups.
#[derive(Debug)]
pub struct FolderStore {
    vfs: Arc<dyn Vfs>,
    path: PathBuf,
    is_read_only: bool,
    /// A sync of the folder has failed.
    is_uncertain: AtomicBool,
    /// `None` if an open for reading has found nothing to lock.
    _lock: Option<Box<dyn LockGuard>>,
}

impl FolderStore {
    /// Opens the folder `path` on `vfs` for writing, and creates it if it is missing.
    ///
    /// # Errors
    /// `Locked` while another process uses it; `InvalidArgument` if it holds a database; `Io`; `NoSpace`.
    pub fn open(vfs: Arc<dyn Vfs>, path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        vfs.create_dir_all(path)
            .map_err(|error| Error::io("create", path, error))?;
        check_no_database(&list(&*vfs, path)?, path)?;
        let lock_path = path.join(FileName::Lock.to_string());
        let lock = vfs.lock(&lock_path);
        let lock = lock.map_err(|error| lock_failure(path, error))?;
        let names = list(&*vfs, path)?;
        for name in names.iter().filter(|name| is_unfinished(name)) {
            let path = path.join(name);
            vfs.remove(&path)
                .map_err(|error| Error::io("remove", &path, error))?;
        }
        // I2. The removed names do not return either.
        sync_folder(&*vfs, path)?;
        Ok(Self {
            vfs,
            path: path.to_owned(),
            is_read_only: false,
            is_uncertain: AtomicBool::new(false),
            _lock: Some(lock),
        })
    }

    /// Opens the folder `path` on `vfs` for reading. Changes nothing.
    ///
    /// # Errors
    /// `NotFound` if it does not exist; `Locked` while another process writes to it; `Io`.
    pub fn open_read_only(vfs: Arc<dyn Vfs>, path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        match vfs.list(path) {
            Ok(names) => check_no_database(&names, path)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let message = format!("there are no backups in {}", path.display());
                return Err(Error::new(ErrorKind::NotFound, message));
            }
            Err(error) => return Err(Error::io("list", path, error)),
        }
        let lock = match vfs.lock_shared(&path.join(FileName::Lock.to_string())) {
            Ok(lock) => Some(lock),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(lock_failure(path, error)),
        };
        Ok(Self {
            vfs,
            path: path.to_owned(),
            is_read_only: true,
            is_uncertain: AtomicBool::new(false),
            _lock: lock,
        })
    }

    fn check_writable(&self) -> Result<()> {
        if self.is_read_only {
            let message = format!(
                "the backups in {} are open for reading only",
                self.path.display()
            );
            return Err(Error::new(ErrorKind::ReadOnly, message));
        }
        if self.is_uncertain.load(Ordering::Acquire) {
            let message = format!(
                "a sync of {} has failed, so these backups are changed only after they have been opened again",
                self.path.display()
            );
            return Err(Error::new(ErrorKind::Poisoned, message));
        }
        Ok(())
    }

    /// Makes the names durable, or lets nothing rely on them (I3).
    fn sync(&self) -> Result<()> {
        sync_folder(&*self.vfs, &self.path)
            .inspect_err(|_| self.is_uncertain.store(true, Ordering::Release))
    }

    /// Writes `content` to the new file `path` and syncs it, but not its name.
    fn write(&self, path: &Path, content: &mut dyn ByteSource) -> Result<()> {
        let mut file = FileWriter::create(&*self.vfs, path.to_owned())?;
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            let count = content.read(&mut buffer)?;
            if count == 0 {
                return file.sync();
            }
            file.put(&buffer[..count])?;
            // Nobody is going to read a backup soon.
            file.judge(false);
        }
    }
}

impl BackupStore for FolderStore {
    fn put(&self, name: &str, content: &mut dyn ByteSource) -> Result<()> {
        self.check_writable()?;
        let path = self.path.join(name);
        let unfinished = self.path.join(format!("{name}{UNFINISHED}"));
        let written = self.write(&unfinished, content).and_then(|()| {
            self.vfs
                .rename(&unfinished, &path)
                .map_err(|error| Error::io("rename", &unfinished, error))
        });
        if let Err(error) = written {
            // The file of a failed attempt; another attempt needs the name. What this cannot remove, the next open does.
            drop(self.vfs.remove(&unfinished));
            return Err(error);
        }
        self.sync().inspect_err(|_| {
            // So that a failed backup is not listed.
            drop(self.vfs.remove(&path));
        })
    }

    fn get(&self, name: &str) -> Result<Box<dyn ByteSource + '_>> {
        let path = self.path.join(name);
        let file = self.vfs.open(&path, OpenMode::Read);
        let file = file.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                let message = format!("{} does not exist", path.display());
                Error::new(ErrorKind::NotFound, message)
            }
            io::ErrorKind::InvalidData => damage(name, 0, error),
            _ => Error::io("open", &path, error),
        })?;
        let offset = 0;
        Ok(Box::new(FileBytes { file, path, offset }))
    }

    fn list(&self) -> Result<Vec<StoredObject>> {
        let names = list(&*self.vfs, &self.path)?;
        let objects = names.into_iter().filter(|name| is_object(name));
        let object = |name: String| {
            let path = self.path.join(&name);
            let file = self.vfs.open(&path, OpenMode::Read);
            let length = match file.and_then(|file| file.length()) {
                // So damaged that it has no bytes. No object is empty, so each use finds the damage.
                Err(error) if error.kind() == io::ErrorKind::InvalidData => 0,
                length => length.map_err(|error| Error::io("read", &path, error))?,
            };
            Ok(StoredObject { name, length })
        };
        objects.map(object).collect()
    }

    fn delete(&self, names: &[String]) -> Result<()> {
        self.check_writable()?;
        for name in names {
            let path = self.path.join(name);
            match self.vfs.remove(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Error::io("remove", &path, error));
                }
                _ => {}
            }
        }
        self.sync()
    }
}

/// The bytes of a file from its start.
struct FileBytes {
    file: Arc<dyn File>,
    path: PathBuf,
    offset: u64,
}

impl ByteSource for FileBytes {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        loop {
            match self.file.read_at(buffer, self.offset) {
                Ok(count) => {
                    self.offset += count as u64;
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io("read", &self.path, error)),
            }
        }
    }
}

fn is_object(name: &str) -> bool {
    ObjectName::parse(name).is_some()
}

fn is_unfinished(name: &str) -> bool {
    name.strip_suffix(UNFINISHED).is_some_and(is_object)
}

/// A mistaken folder would get a lock, and a database does not open among other files.
fn check_no_database(names: &[String], path: &Path) -> Result<()> {
    if names.contains(&FileName::Current.to_string()) {
        return Err(Error::invalid_argument(format!(
            "{} is the folder of a database: backups have a folder of their own",
            path.display()
        )));
    }
    Ok(())
}

fn lock_failure(path: &Path, error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::WouldBlock {
        let holder = error.get_ref().map(|holder| format!(" by {holder}"));
        let message = format!(
            "the backups in {} are in use{}",
            path.display(),
            holder.unwrap_or_default()
        );
        return Error::new(ErrorKind::Locked, message);
    }
    Error::io("lock", path, error)
}

fn list(vfs: &dyn Vfs, path: &Path) -> Result<Vec<String>> {
    vfs.list(path)
        .map_err(|error| Error::io("list", path, error))
}

fn sync_folder(vfs: &dyn Vfs, path: &Path) -> Result<()> {
    vfs.sync_dir(path)
        .map_err(|error| Error::io("sync", path, error))
}

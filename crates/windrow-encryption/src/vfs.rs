//! The file system whose files are encrypted.
//!
//! Concurrency: that of [`Vfs`].

use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windrow::vfs::{File, LockGuard, OpenMode, Vfs};

use crate::context::Context;
use crate::file::{EncryptedFile, read_sector};
use crate::keys::KeyProvider;
use crate::sector::{FileCipher, SECTOR_BYTES, key_name};

/// The file that names the content of a database. Its key is checked before anything is written.
const CURRENT: &str = "CURRENT";

/// A file system that encrypts what another one stores. For [`Options::with_vfs`](windrow::Options::with_vfs),
/// [`Backups::with_vfs`](windrow::backup::Backups::with_vfs) and whatever takes a [`Vfs`].
#[derive(Clone)]
pub struct EncryptedVfs {
    inner: Arc<dyn Vfs>,
    context: Arc<Context>,
}

impl EncryptedVfs {
    /// Stores files in `inner`, encrypted with the keys of `keys`.
    pub fn new(inner: Arc<dyn Vfs>, keys: Arc<dyn KeyProvider>) -> Self {
        let context = Arc::new(Context::new(keys));
        Self { inner, context }
    }

    /// How many files of the directory `path` have each key, by its name. A key that no file has any more can be destroyed,
    /// unless a checkpoint or a backup needs it. Files without bytes, and those that are not encrypted, such as `LOCK`, do not
    /// count. `LOG`, which the database does not need, keeps its key until it is full, and so does a `STATUS` that a killed process
    /// has left; both can be removed.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn files_by_key(&self, path: &Path) -> io::Result<BTreeMap<String, u64>> {
        let mut counts = BTreeMap::new();
        for name in self.inner.list(path)? {
            let file = self.inner.open(&path.join(&name), OpenMode::Read);
            let header = file.and_then(|file| {
                let has_cells = file.length()? > SECTOR_BYTES as u64;
                if has_cells {
                    read_sector(&*file, 0)
                } else {
                    Ok(None)
                }
            });
            let header = match header {
                // It is gone by now, or a directory.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) if error.kind() == io::ErrorKind::IsADirectory => continue,
                header => header?,
            };
            if let Some(key) = header.as_ref().and_then(key_name) {
                *counts.entry(key.to_owned()).or_default() += 1;
            }
        }
        Ok(counts)
    }

    /// Checks the key of the database whose lock is `path`.
    fn check_key(&self, path: &Path) -> io::Result<()> {
        let current = path.with_file_name(CURRENT);
        let refused = match self.check_header(&current) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => error,
            Ok(()) => return Ok(()),
        };
        // It may be damaged. The key is right if it is that of another file.
        let folder = path.parent().unwrap_or(Path::new(""));
        let names = self.inner.list(folder)?;
        let is_ours = |name: &String| self.check_header(&folder.join(name)).is_ok();
        if refused.kind() == io::ErrorKind::InvalidData && names.iter().any(is_ours) {
            return Ok(());
        }
        let message = format!("{}: {refused}", current.display());
        Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
    }

    /// Checks that the file `path` is encrypted with a key that is here.
    fn check_header(&self, path: &Path) -> io::Result<()> {
        let file = self.inner.open(path, OpenMode::Read)?;
        let header = read_sector(&*file, 0)?.unwrap_or([0; SECTOR_BYTES]);
        FileCipher::open(&header, |name| self.context.key(name)).map(drop)
    }
}

impl Vfs for EncryptedVfs {
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.inner.create_dir_all(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.inner.create_dir(path)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let file = EncryptedFile::create(self.inner.create(path)?, &self.context);
        // A name without a header would be in the way of the next try.
        let file = file.inspect_err(|_| drop(self.inner.remove(path)))?;
        Ok(Arc::new(file))
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let file = EncryptedFile::open(self.inner.open(path, mode)?, &self.context)?;
        Ok(Arc::new(file))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.inner.list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.rename(from, to)
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        self.inner.resolve(path)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.link(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.inner.remove(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.inner.sync_dir(path)
    }

    fn available_bytes(&self, path: &Path) -> io::Result<u64> {
        self.inner.available_bytes(path)
    }

    /// # Errors
    /// `PermissionDenied` if the database has another key or is not encrypted. Nothing is written then.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn LockGuard>> {
        self.check_key(path)?;
        self.inner.lock(path)
    }

    /// # Errors
    /// As of [`lock`](Self::lock).
    fn lock_shared(&self, path: &Path) -> io::Result<Box<dyn LockGuard>> {
        self.check_key(path)?;
        self.inner.lock_shared(path)
    }
}

impl Debug for EncryptedVfs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncryptedVfs")
            .field("inner", &self.inner)
            .field("keys", &self.context.keys)
            .finish()
    }
}

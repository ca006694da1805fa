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
    /// count. `LOG`, which the database does not need, keeps its key until it is full; it can be removed.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn files_by_key(&self, path: &Path) -> io::Result<BTreeMap<String, u64>> {
        let mut counts = BTreeMap::new();
        for name in self.inner.list(path)? {
            // A directory cannot be opened; a file may be gone by now.
            let Ok(file) = self.inner.open(&path.join(&name), OpenMode::Read) else {
                continue;
            };
            if file.length()? <= SECTOR_BYTES as u64 {
                continue;
            }
            let header = read_sector(&*file, 0)?;
            if let Some(key) = header.as_ref().and_then(key_name) {
                *counts.entry(key.to_owned()).or_default() += 1;
            }
        }
        Ok(counts)
    }

    /// Checks the key of the database whose lock is `path`.
    fn check_key(&self, path: &Path) -> io::Result<()> {
        let file = match self
            .inner
            .open(&path.with_file_name(CURRENT), OpenMode::Read)
        {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            file => file?,
        };
        let cipher = match read_sector(&*file, 0)? {
            Some(header) => FileCipher::open(&header, |name| self.context.keys.key(name))?,
            None => None,
        };
        if cipher.is_none() {
            let message = "the database is not encrypted, or its CURRENT is damaged";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
        }
        Ok(())
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

//! The file system whose files are encrypted.
//!
//! Concurrency: that of [`Vfs`].

use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::io;
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windrow::vfs::{File, LockGuard, OpenMode, Vfs, read_up_to_end_at};

use crate::context::Context;
use crate::file::{EncryptedFile, read_sector};
use crate::keys::KeyProvider;
use crate::sector::{FileCipher, SECTOR_BYTES, begins_header, key_name};

/// The file that names the content of a database. Its key is checked before anything is written.
const CURRENT: &str = "CURRENT";

/// The extensions of files with data of a database or of backups.
const DATA: [&str; 7] = [
    "manifest", "wal", "table", "values", "backup", "archive", "piece",
];

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

    /// Checks the key of the database, or of the backups, whose lock is `path`: that of `CURRENT`, or, if that is damaged or
    /// missing, that of any other file.
    fn check_key(&self, path: &Path) -> io::Result<()> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let names = match self.inner.list(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            names => names?,
        };
        let others = names
            .iter()
            .map(String::as_str)
            .filter(|name| is_data(name));
        let mut refusal = None;
        for name in iter::once(CURRENT).chain(others) {
            let path = folder.join(name);
            match self.has_our_data(&path) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) => {
                    let message = format!("{}: {error}", path.display());
                    refusal.get_or_insert(io::Error::new(io::ErrorKind::PermissionDenied, message));
                    // Another file may show more about damage, and about keys of backups. A provider that fails is asked once.
                    let goes_on = match error.kind() {
                        io::ErrorKind::InvalidData => true,
                        io::ErrorKind::PermissionDenied => name != CURRENT,
                        _ => false,
                    };
                    if !goes_on {
                        break;
                    }
                }
            }
        }
        refusal.map_or(Ok(()), Err)
    }

    /// Whether the file `path` is encrypted with a key that is here; not if it is missing, or has no cells because its creation
    /// was interrupted.
    fn has_our_data(&self, path: &Path) -> io::Result<bool> {
        let file = match self.inner.open(path, OpenMode::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            file => file?,
        };
        // In clear, the file is that short.
        let has_cells = path.ends_with(CURRENT) || file.length()? > SECTOR_BYTES as u64;
        if !has_cells {
            return Ok(false);
        }
        let header = read_sector(&*file, 0)?.unwrap_or([0; SECTOR_BYTES]);
        FileCipher::open(&header, |name| self.context.key(name)).map(|_| true)
    }
}

/// Whether the file `path` of `vfs` begins as an encrypted one does. Nothing is decrypted: no key is needed for that.
///
/// # Errors
/// `NotFound`, or the file cannot be read.
pub fn is_encrypted(vfs: &dyn Vfs, path: &Path) -> io::Result<bool> {
    let mut header = [0; SECTOR_BYTES];
    read_up_to_end_at(&*vfs.open(path, OpenMode::Read)?, &mut header, 0)?;
    Ok(begins_header(&header))
}

/// Whether a file of this name has data of a database or of backups.
fn is_data(name: &str) -> bool {
    let extension = Path::new(name).extension();
    extension.is_some_and(|extension| DATA.iter().any(|data| extension == *data))
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

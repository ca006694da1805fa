//! What all files of an encrypted file system have in common.
//!
//! Concurrency: the locks of `rewrites` are held while one write goes to the page cache.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::keys::{Key, KeyProvider};

/// See the [module](self).
pub(crate) struct Context {
    pub(crate) keys: Arc<dyn KeyProvider>,
    rewrites: [Mutex<()>; 64],
}

impl Context {
    pub(crate) fn new(keys: Arc<dyn KeyProvider>) -> Self {
        let rewrites = std::array::from_fn(|_| Mutex::new(()));
        Self { keys, rewrites }
    }

    /// The key with this name, that of a file.
    ///
    /// # Errors
    /// `PermissionDenied` if there is none, `Other` if the provider has failed. Neither means that a file is damaged or missing.
    pub(crate) fn key(&self, name: &str) -> io::Result<Key> {
        self.keys.key(name).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                let message = format!(
                    "the file is encrypted with the key {name:?}, and there is no such key here"
                );
                io::Error::new(io::ErrorKind::PermissionDenied, message)
            }
            _ => failed(&format!("the key {name:?}"), &error),
        })
    }

    /// The key of a new file, and its name.
    ///
    /// # Errors
    /// `Other` if the provider has failed.
    pub(crate) fn current(&self) -> io::Result<(String, Key)> {
        let failed = |error| failed("the key of new files", &error);
        let name = self.keys.current().map_err(failed)?;
        let key = self.keys.key(&name).map_err(failed)?;
        Ok((name, key))
    }

    /// Held while a cell of the file `id` that may be read is written again.
    pub(crate) fn rewrites(&self, id: u64) -> MutexGuard<'_, ()> {
        let lock = &self.rewrites[(id % 64) as usize];
        lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The error of a provider, whose kind says nothing about a file.
fn failed(what: &str, error: &io::Error) -> io::Error {
    io::Error::other(format!(
        "the provider of keys does not give {what}: {error}"
    ))
}

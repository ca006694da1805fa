//! What all files of an encrypted file system have in common.
//!
//! Concurrency: the locks of `rewrites` are held while one write goes to the page cache.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::keys::KeyProvider;

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

    /// Held while a cell of the file `id` that may be read is written again.
    pub(crate) fn rewrites(&self, id: u64) -> MutexGuard<'_, ()> {
        let lock = &self.rewrites[(id % 64) as usize];
        lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

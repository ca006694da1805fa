//! Caches: a capacity, and the databases that were opened with it. Each of these has a cache of its own of that capacity.
//!
//! Concurrency: any thread may use a cache.

#![expect(
    clippy::disallowed_types,
    reason = "no model replaces the locks of this crate"
)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The bytes of blocks in the cache of a database; `None` once it is closed.
pub(crate) type Usage = Box<dyn Fn() -> Option<u64> + Send + Sync>;

/// What `rocksdb_cache_t` stands for.
pub(crate) struct Cache {
    bytes: AtomicUsize,
    users: Mutex<Vec<Usage>>,
}

impl Cache {
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            bytes: AtomicUsize::new(bytes),
            users: Mutex::default(),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn set_bytes(&self, bytes: usize) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// Notes a database that was opened with the cache.
    pub(crate) fn add_user(&self, usage: Usage) {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        users.retain(|usage| usage().is_some());
        users.push(usage);
    }

    /// The bytes of blocks in the caches of its databases.
    pub(crate) fn usage(&self) -> usize {
        let users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: u64 = users.iter().filter_map(|usage| usage()).sum();
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }
}

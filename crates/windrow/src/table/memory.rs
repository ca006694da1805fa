//! The memory of tables, of their readers and of the jobs that rewrite them, and its limits.
//!
//! Concurrency: all threads share the trackers.

use std::sync::Arc;

use crate::base::MemoryTracker;
use crate::base::sync::atomic::{AtomicBool, Ordering};

/// The memory trackers of tables and their readers, and their limits.
#[derive(Debug)]
pub(crate) struct TableMemory {
    /// Indexes, filters and properties of open tables.
    pub(crate) tables: Arc<MemoryTracker>,
    /// Cursors of readers.
    pub(crate) cursors: Arc<MemoryTracker>,
    /// Buffers of flushes and compactions.
    pub(crate) jobs: Arc<MemoryTracker>,
    /// What open tables, cursors and the block cache may always hold together. Beyond it, the cache
    /// shrinks, and then the least recently used tables are closed.
    pub(crate) readers_min: u64,
    /// Counts memory that readers may use while it is free: they may hold `lent_max` more, less the bytes
    /// counted here.
    pub(crate) lender: Arc<MemoryTracker>,
    pub(crate) lent_max: u64,
    /// The least capacity of the cache.
    pub(crate) cache_floor: u64,
    /// Beyond this, jobs read with small buffers.
    pub(crate) jobs_max: u64,
    /// Whether an open table has grown beyond the limit of all.
    pub(crate) is_over: AtomicBool,
}

impl TableMemory {
    fn readers_max(&self) -> u64 {
        let lent = self.lent_max.saturating_sub(self.lender.bytes());
        self.readers_min.saturating_add(lent)
    }

    /// What open tables may hold. Beyond it, the least recently used are closed.
    pub(crate) fn tables_max(&self) -> u64 {
        self.readers_max().saturating_sub(self.cache_floor)
    }

    /// Notes that an open table holds more.
    pub(crate) fn note_growth(&self) {
        if self.tables.bytes() > self.tables_max() {
            self.is_over.store(true, Ordering::Relaxed);
        }
    }

    /// Whether an open table has grown beyond the limit since the last call that returned true.
    #[inline]
    pub(crate) fn take_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed) && self.is_over.swap(false, Ordering::Relaxed)
    }

    /// What is left for the block cache.
    pub(crate) fn left_for_cache(&self) -> u64 {
        self.readers_max()
            .saturating_sub(self.tables.bytes() + self.cursors.bytes())
            .max(self.cache_floor)
    }
}

impl Default for TableMemory {
    /// Without limits.
    fn default() -> Self {
        Self {
            tables: Arc::default(),
            cursors: Arc::default(),
            jobs: Arc::default(),
            readers_min: u64::MAX,
            lender: Arc::default(),
            lent_max: 0,
            cache_floor: 0,
            jobs_max: u64::MAX,
            is_over: AtomicBool::new(false),
        }
    }
}

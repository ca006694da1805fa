//! What tables, their readers and the jobs that rewrite them hold in memory, and how much they may.
//!
//! Concurrency: accounts are shared by all threads.

use std::sync::Arc;

use crate::base::MemoryTracker;

/// The accounts of tables and of who reads them, and their limits.
#[derive(Debug)]
pub(crate) struct TableMemory {
    /// Indexes, filters and properties of open tables.
    pub(crate) tables: Arc<MemoryTracker>,
    /// Cursors of readers.
    pub(crate) cursors: Arc<MemoryTracker>,
    /// Buffers of flushes and merges.
    pub(crate) jobs: Arc<MemoryTracker>,
    /// What open tables, cursors and the block cache may hold together whatever else is held; the
    /// cache gives way, and then the least used tables are closed.
    pub(crate) readers_min: u64,
    /// Who lends them more: they may hold `lent_max` beyond, less what is held here.
    pub(crate) lender: Arc<MemoryTracker>,
    pub(crate) lent_max: u64,
    /// What the cache keeps when it gives way.
    pub(crate) cache_floor: u64,
    /// Beyond this, merges read with small windows.
    pub(crate) jobs_max: u64,
}

impl TableMemory {
    fn readers_max(&self) -> u64 {
        let lent = self.lent_max.saturating_sub(self.lender.bytes());
        self.readers_min.saturating_add(lent)
    }

    /// What open tables may hold; where it is used up, others are closed.
    pub(crate) fn tables_max(&self) -> u64 {
        self.readers_max().saturating_sub(self.cache_floor)
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
        }
    }
}

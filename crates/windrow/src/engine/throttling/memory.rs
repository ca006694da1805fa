//! The memory of a database: how much each purpose holds, and how much it may hold under the budget.
//!
//! An open divides the budget once:
//!
//! | purpose | of the budget | when it is used up |
//! |---|---|---|
//! | memtables, active and frozen | 1/2 | the largest is flushed early; writers are delayed, then stopped |
//! | one memtable | 1/8 | it is full, whatever its keyspace's options say |
//! | buffers of background jobs | 1/8 | jobs read with small buffers |
//! | open tables, cursors and block cache | 3/8 | the cache shrinks to a minimum; tables drop parts: `table/memory.rs` |
//! | of these, the minimum of the cache | 1/16, at most `cache_bytes` | |
//!
//! Open tables and the cache borrow what memtables leave of their part, except space for one more memtable.
//! They shrink as memtables grow. So reads after a load have most of the budget.
//!
//! Each owner of long-lived memory counts it when it takes it and when it drops it. So a report costs a few
//! loads.
//!
//! The budget does not bound memory that cannot be refused: memtables that a cursor keeps after their
//! flush, the buffers of a cursor, what open transactions have read, written and locked, and the batch of one writer.
//! All but the last is counted nevertheless, and the cache shrinks for cursors.
//!
//! Concurrency: memory trackers are atomics; the limits never change.

use std::sync::Arc;

use crate::base::MemoryTracker;
use crate::cache::BlockCache;
use crate::options::Options;
use crate::table::TableMemory;

/// The memory of a database, in bytes, by purpose.
///
/// It counts what the engine allocates. The system's own memory and memory-mapped files are not in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct MemoryUse {
    /// The limit of all of it; 0 for no limit.
    pub budget: u64,
    /// The sum of the following fields.
    pub total: u64,
    /// Memtables: active, frozen, and kept by cursors.
    pub memtables: u64,
    /// Blocks in the cache.
    pub block_cache: u64,
    /// Indexes, filters and properties of open tables.
    pub tables: u64,
    /// Cursors.
    pub cursors: u64,
    /// Buffers of flushes, compactions and garbage collections.
    pub jobs: u64,
    /// Locks, and what open transactions have read and written.
    pub transactions: u64,
}

/// The memory trackers of a database and the parts of its budget.
#[derive(Debug)]
pub(crate) struct Memory {
    budget: u64,
    /// Chunks of all memtables.
    pub(in crate::engine) memtables: Arc<MemoryTracker>,
    /// The most that active and frozen memtables may hold together.
    pub(in crate::engine) memtables_max: u64,
    /// The most that one memtable may hold.
    memtable_max: u64,
    pub(in crate::engine) tables: Arc<TableMemory>,
    /// What open transactions have read and written.
    pub(in crate::engine) transactions: Arc<MemoryTracker>,
    /// Locks of keys.
    pub(in crate::engine) locks: Arc<MemoryTracker>,
}

impl Memory {
    pub(crate) fn new(options: &Options) -> Self {
        let budget = options.memory_budget;
        let fraction = |numerator: u64, denominator: u64| match budget {
            0 => u64::MAX,
            _ => budget / denominator * numerator,
        };
        let cache_floor = (budget / 16).min(options.cache_bytes);
        let memtables = Arc::default();
        let (memtables_max, memtable_max) = (fraction(1, 2), fraction(1, 8));
        Self {
            budget,
            memtables: Arc::clone(&memtables),
            memtables_max,
            memtable_max,
            tables: Arc::new(TableMemory {
                readers_min: fraction(3, 8),
                lender: memtables,
                lent_max: memtables_max - memtable_max,
                cache_floor,
                jobs_max: fraction(1, 8),
                ..TableMemory::default()
            }),
            transactions: Arc::default(),
            locks: Arc::default(),
        }
    }

    /// The size of a full memtable whose options say `wanted`.
    pub(crate) fn memtable_bytes(&self, wanted: usize) -> usize {
        wanted.min(usize::try_from(self.memtable_max).unwrap_or(usize::MAX))
    }

    /// The current use.
    pub(super) fn in_use(&self, cache: &BlockCache) -> MemoryUse {
        let mut used = MemoryUse {
            budget: self.budget,
            total: 0,
            memtables: self.memtables.bytes(),
            block_cache: cache.bytes(),
            tables: self.tables.tables.bytes(),
            cursors: self.tables.cursors.bytes(),
            jobs: self.tables.jobs.bytes(),
            transactions: self.transactions.bytes() + self.locks.bytes(),
        };
        used.total = used.memtables + used.block_cache + used.tables + used.cursors + used.jobs;
        used.total += used.transactions;
        used
    }
}

#[cfg(test)]
mod tests {
    use super::Memory;
    use crate::base::Held;
    use crate::options::Options;

    fn memory(budget: u64) -> Memory {
        Memory::new(&Options {
            memory_budget: budget,
            cache_bytes: 32 << 20,
            ..Options::default()
        })
    }

    #[test]
    fn the_parts_add_up_to_the_budget() {
        for budget in [8 << 20, 128 << 20, 512 << 20, 100_000_000] {
            let memory = memory(budget);
            let tables = &memory.tables;
            let sum = memory.memtables_max + tables.readers_min + tables.jobs_max;
            assert!(sum <= budget && sum > budget - 32, "{sum} of {budget}");
            assert!(tables.cache_floor <= 32 << 20);
            assert!(memory.memtable_bytes(usize::MAX) as u64 <= memory.memtables_max / 4);
            assert_eq!(memory.memtable_bytes(4096), 4096);
            for memtables in [0, budget / 8, budget / 2, budget] {
                let _held = Held::new(&memory.memtables, memtables);
                let readers = tables.tables_max() + tables.cache_floor;
                assert!(readers >= tables.readers_min);
                let sum = memtables.min(memory.memtables_max) + readers + tables.jobs_max;
                assert!(sum <= budget, "{sum} of {budget}");
                let is_idle = memtables == 0;
                assert_eq!(readers > budget * 5 / 8, is_idle, "{readers} of {budget}");
                let is_full = memtables >= memory.memtables_max;
                assert_eq!(
                    readers == tables.readers_min,
                    is_full,
                    "{readers} of {budget}"
                );
            }
        }
    }

    #[test]
    fn without_a_budget_nothing_is_bounded() {
        let memory = memory(0);
        assert_eq!(memory.memtables_max, u64::MAX);
        assert_eq!(memory.memtable_bytes(usize::MAX), usize::MAX);
        assert_eq!(memory.tables.tables_max(), u64::MAX);
        assert_eq!(memory.tables.left_for_cache(), u64::MAX);
    }
}

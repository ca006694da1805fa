//! The memory of a database: who holds how much, and how much each may hold under the budget.
//!
//! The budget is dealt out once, when the database is opened:
//!
//! | share | of the budget | when it is used up |
//! |---|---|---|
//! | memtables, active and waiting | 1/2 | the largest is flushed early; writers are delayed, then stopped |
//! | one memtable | 1/8 | it is full, whatever its keyspace's options say |
//! | buffers of flushes and merges | 1/8 | merges read with small windows |
//! | open tables, cursors and block cache | 3/8 | the cache shrinks, down to a floor; the least used tables are closed |
//! | of these, what the cache keeps | 1/16 | |
//!
//! What memtables leave of their share, but for room for one more, is lent to open tables and the cache,
//! which give it back as memtables grow: reading after a load has most of the budget.
//!
//! What cannot be refused is not bounded by it: memtables that a cursor keeps after their flush, a
//! cursor's own buffers, and the batch that one writer commits. They are counted all the same, and the
//! cache gives way to cursors.
//!
//! Concurrency: accounts are atomics; shares never change.

use std::sync::Arc;

use crate::base::MemoryTracker;
use crate::base::sync::atomic::Ordering;
use crate::cache::BlockCache;
use crate::options::Options;
use crate::table::TableMemory;

use crate::engine::{Engine, KeyspaceCore};

/// What a database holds in memory, in bytes, by purpose.
///
/// Counted where it is taken and given back; the system's own bookkeeping and what is mapped from
/// files are not in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct MemoryUse {
    /// What all of it may be; 0 for no limit.
    pub budget: u64,
    /// The sum of what follows.
    pub total: u64,
    /// Memtables: active, waiting for their flush, and kept by cursors.
    pub memtables: u64,
    /// Blocks in the cache.
    pub block_cache: u64,
    /// Indexes, filters and fences of open tables.
    pub tables: u64,
    /// Cursors.
    pub cursors: u64,
    /// Buffers of flushes and merges.
    pub jobs: u64,
}

/// The accounts of a database and the shares of its budget.
#[derive(Debug)]
pub(crate) struct Memory {
    budget: u64,
    /// Chunks of all memtables.
    pub(in crate::engine) memtables: Arc<MemoryTracker>,
    /// What active and frozen memtables may hold together.
    pub(in crate::engine) memtables_max: u64,
    /// What one memtable may hold.
    memtable_max: u64,
    pub(in crate::engine) tables: Arc<TableMemory>,
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
        }
    }

    /// The size at which a memtable is full where its options say `wanted`.
    pub(crate) fn memtable_bytes(&self, wanted: usize) -> usize {
        wanted.min(usize::try_from(self.memtable_max).unwrap_or(usize::MAX))
    }

    /// What is held now.
    fn in_use(&self, cache: &BlockCache) -> MemoryUse {
        let mut used = MemoryUse {
            budget: self.budget,
            total: 0,
            memtables: self.memtables.bytes(),
            block_cache: cache.bytes(),
            tables: self.tables.tables.bytes(),
            cursors: self.tables.cursors.bytes(),
            jobs: self.tables.jobs.bytes(),
        };
        used.total = used.memtables + used.block_cache + used.tables + used.cursors + used.jobs;
        used
    }
}

/// What the memtables that hold entries take, and which to flush when that is too much.
#[derive(Debug, Default)]
pub(super) struct MemtableUse {
    pub(super) active: u64,
    pub(super) frozen: u64,
    largest: Option<(u64, Arc<KeyspaceCore>)>,
}

impl Engine {
    /// What the database holds in memory.
    pub(crate) fn memory(&self) -> MemoryUse {
        self.memory.in_use(&self.tables.context().cache)
    }

    /// What is active or waits; others that are still counted are only kept by cursors.
    pub(super) fn memtable_use(&self) -> MemtableUse {
        let mut used = MemtableUse::default();
        for keyspace in self.keyspaces.load().iter() {
            let state = keyspace.state();
            for frozen in &state.frozen {
                used.frozen += frozen.memtable.allocated_bytes() as u64;
            }
            // An empty one holds little, and no flush would give it back.
            if !state.active.is_empty() {
                let bytes = state.active.allocated_bytes() as u64;
                used.active += bytes;
                if used
                    .largest
                    .as_ref()
                    .is_none_or(|(largest, _)| *largest < bytes)
                {
                    used.largest = Some((bytes, Arc::clone(keyspace)));
                }
            }
        }
        used
    }

    /// The keyspace to flush early: that with the largest active memtable, where all active ones
    /// together have half of the share. So what waits has the other half, and whenever memtables have
    /// used up their share, a flush is due.
    pub(in crate::engine) fn largest_memtable(&self) -> Option<Arc<KeyspaceCore>> {
        let half = self.memory.memtables_max / 2;
        if self.memory.memtables.bytes() <= half {
            return None;
        }
        let used = self.memtable_use();
        let (_, keyspace) = used.largest.filter(|_| used.active > half)?;
        Some(keyspace)
    }

    /// Whether the shared pressure was worked out for the memory that is in use now.
    #[inline]
    pub(super) fn is_memtable_use_current(&self) -> bool {
        self.memory.memtables.bytes()
            == self
                .background
                .measured_memtable_bytes
                .load(Ordering::Relaxed)
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
    fn shares_add_up_to_the_budget() {
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

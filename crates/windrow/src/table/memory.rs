//! The memory of tables, of their readers and of the jobs that rewrite them, and its limits.
//!
//! Open tables that exceed their limit drop index partitions first, then whole filters, and are closed last: a read
//! without its partition costs one more block, a get without the filter of a table at most one more for each probe,
//! and a closed table both and more. Either kind of part keeps a fraction of the limit, so that the ones that are used
//! most stay, and so that a search for parts to drop is short.
//!
//! Concurrency: all threads share the trackers.

use std::sync::Arc;

use crate::base::sync::atomic::{AtomicBool, Ordering};
use crate::base::{Held, MemoryTracker};
use crate::cache::Excess;

/// The memory trackers of tables and their readers, and their limits.
#[derive(Debug)]
pub(crate) struct TableMemory {
    /// Indexes, filters and properties of open tables.
    pub(crate) tables: Arc<MemoryTracker>,
    /// Of these, index partitions.
    pub(crate) partitions: Arc<MemoryTracker>,
    /// Of these, whole filters that can be dropped.
    pub(crate) filters: Arc<MemoryTracker>,
    /// Cursors of readers.
    pub(crate) cursors: Arc<MemoryTracker>,
    /// Buffers of flushes and compactions.
    pub(crate) jobs: Arc<MemoryTracker>,
    /// What open tables, cursors and the block cache may always hold together. Beyond it, the cache
    /// shrinks, and then the least recently used tables drop parts or are closed.
    pub(crate) readers_min: u64,
    /// Counts memory that readers may use while it is free: they may hold `lent_max` more, less the bytes
    /// counted here.
    pub(crate) lender: Arc<MemoryTracker>,
    pub(crate) lent_max: u64,
    /// The least capacity of the cache.
    pub(crate) cache_floor: u64,
    /// Beyond this, jobs read with small buffers.
    pub(crate) jobs_max: u64,
    /// Whether open tables have grown beyond their limit, or one wants its filters.
    pub(crate) is_due: AtomicBool,
}

/// The parts that an open table can drop, by their numbers in an [`Excess`].
pub(crate) const PARTITIONS: usize = 0;
pub(crate) const FILTERS: usize = 1;

/// Either kind of part keeps this fraction of the limit of open tables.
const KEPT_FRACTION: u64 = 16;

/// What open tables should free that hold `tables` bytes, `partitions` and `filters` among them, but may hold
/// `tables_max`.
fn excess(tables: u64, partitions: u64, filters: u64, tables_max: u64) -> Excess {
    let kept = tables_max / KEPT_FRACTION;
    let over = tables.saturating_sub(tables_max);
    let partitions = over.min(partitions.saturating_sub(kept));
    let filters = (over - partitions).min(filters.saturating_sub(kept));
    Excess {
        parts: [partitions, filters],
        files: over - partitions - filters,
    }
}

/// Whether a filter of `bytes` may be loaded whole beside open tables that hold `tables` bytes, `partitions` among
/// them, but may hold `tables_max`. Partitions give way to filters.
fn fits(bytes: u64, tables: u64, partitions: u64, tables_max: u64) -> bool {
    let gives_way = partitions.saturating_sub(tables_max / KEPT_FRACTION);
    tables.saturating_sub(gives_way).saturating_add(bytes) <= tables_max
}

/// The bytes of a part of an open table, counted until dropped.
#[derive(Debug)]
pub(crate) struct HeldPart {
    of_tables: Held,
    _of_kind: Held,
}

impl HeldPart {
    fn new(memory: &TableMemory, kind: &Arc<MemoryTracker>, bytes: usize) -> Self {
        Self {
            of_tables: Held::new(&memory.tables, bytes as u64),
            _of_kind: Held::new(kind, bytes as u64),
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.of_tables.bytes()
    }
}

impl TableMemory {
    /// Counts an index partition of `bytes`.
    pub(crate) fn hold_partition(&self, bytes: usize) -> HeldPart {
        HeldPart::new(self, &self.partitions, bytes)
    }

    /// Counts a whole filter of `bytes`.
    pub(crate) fn hold_filter(&self, bytes: usize) -> HeldPart {
        HeldPart::new(self, &self.filters, bytes)
    }

    /// Counts a whole filter of `bytes` that cannot be dropped.
    pub(crate) fn hold_small_filter(&self, bytes: usize) -> HeldPart {
        HeldPart {
            of_tables: Held::new(&self.tables, bytes as u64),
            _of_kind: Held::new(&self.filters, 0),
        }
    }

    /// What open tables should free.
    pub(crate) fn excess(&self) -> Excess {
        excess(
            self.tables.bytes(),
            self.partitions.bytes(),
            self.filters.bytes(),
            self.tables_max(),
        )
    }

    /// Whether a table with a filter of `bytes` is opened with it.
    pub(crate) fn has_space_for_filter(&self, bytes: u64) -> bool {
        fits(
            bytes,
            self.tables.bytes(),
            self.partitions.bytes(),
            self.tables_max(),
        )
    }

    fn readers_max(&self) -> u64 {
        let lent = self.lent_max.saturating_sub(self.lender.bytes());
        self.readers_min.saturating_add(lent)
    }

    /// What open tables may hold. Beyond it, the least recently used drop parts or are closed.
    pub(crate) fn tables_max(&self) -> u64 {
        self.readers_max().saturating_sub(self.cache_floor)
    }

    /// Notes that an open table holds more.
    pub(crate) fn note_growth(&self) {
        if self.tables.bytes() > self.tables_max() {
            self.note_due();
        }
    }

    /// Notes that a table wants its filters.
    pub(crate) fn note_due(&self) {
        self.is_due.store(true, Ordering::Relaxed);
    }

    /// Whether there was a note since the last call that returned true.
    #[inline]
    pub(crate) fn take_due(&self) -> bool {
        self.is_due.load(Ordering::Relaxed) && self.is_due.swap(false, Ordering::Relaxed)
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
            partitions: Arc::default(),
            filters: Arc::default(),
            cursors: Arc::default(),
            jobs: Arc::default(),
            readers_min: u64::MAX,
            lender: Arc::default(),
            lent_max: 0,
            cache_floor: 0,
            jobs_max: u64::MAX,
            is_due: AtomicBool::new(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_go_before_filters_and_filters_before_tables() {
        let rows = [
            // tables, partitions, filters; parts and files to free. The limit is 1600, so 100 of each part stay.
            (1600, 900, 700, [0, 0], 0),
            (1601, 900, 700, [1, 0], 0),
            (2400, 900, 700, [800, 0], 0),
            (2500, 900, 700, [800, 100], 0),
            (3100, 900, 700, [800, 600], 100),
            (3100, 50, 50, [0, 0], 1500),
        ];
        for (tables, partitions, filters, parts, files) in rows {
            let expected = Excess { parts, files };
            assert_eq!(excess(tables, partitions, filters, 1600), expected);
        }
        assert_eq!(
            TableMemory::default().excess(),
            Excess::default(),
            "without limits"
        );
    }

    #[test]
    fn a_filter_fits_if_partitions_beyond_their_fraction_make_space_for_it() {
        let rows = [
            // bytes, tables, partitions, whether it fits under a limit of 1600
            (100, 1500, 0, true),
            (101, 1500, 0, false),
            (300, 1600, 400, true),
            (301, 1600, 400, false),
            (1, 1600, 100, false),
            (1, 5000, 100, false),
        ];
        for (bytes, tables, partitions, expected) in rows {
            assert_eq!(fits(bytes, tables, partitions, 1600), expected, "{bytes}");
        }
    }

    #[test]
    fn parts_are_counted_by_kind_while_they_are_held() {
        let memory = TableMemory::default();
        let (partition, filter) = (memory.hold_partition(3), memory.hold_filter(5));
        drop(memory.hold_small_filter(7));
        let counts = || [&memory.tables, &memory.partitions, &memory.filters].map(|it| it.bytes());
        assert_eq!(counts(), [8, 3, 5]);
        drop(partition);
        assert_eq!((counts(), filter.bytes()), ([5, 0, 5], 5));
    }
}

//! The tables in memory, bounded by their bytes, and the filter units that each has.
//!
//! A table is opened with its filters in memory if there is space for them, and else reads them by pieces. Memory in
//! excess takes filters from tables that are used little. A table whose pieces have cost twice as much as a load of its
//! filters loads them: the tables that are probed most, as those of upper levels, get theirs first.
//!
//! Concurrency: that of [`OpenFiles`].

use std::sync::Arc;

use crate::base::Result;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::cache::{CachedFile, Excess, FileSlot, OpenFile, OpenFiles};
use crate::filter::LoadedUnits;

use super::format::FileMeta;
use super::memory::{FILTERS, PARTITIONS, TableMemory};
use super::read::{Segment, SegmentFilter, Table, TableContext, TableFilters};

/// Holds the table of one file while it is open.
pub(crate) type TableSlot = FileSlot<Table>;

/// An open table, borrowed from its slot.
pub(crate) type OpenTable = OpenFile<Table>;

/// How many units of its filters are allocated to a table, as a word.
#[derive(Debug)]
pub(crate) struct FilterUnits(AtomicU64);

impl From<LoadedUnits> for FilterUnits {
    fn from(units: LoadedUnits) -> Self {
        Self(AtomicU64::new(units.to_word()))
    }
}

impl Default for FilterUnits {
    fn default() -> Self {
        LoadedUnits::ALL.into()
    }
}

impl CachedFile for Table {
    type State = FilterUnits;
    type Budget = Arc<TableMemory>;

    fn memory_bytes(&self) -> u64 {
        self.segments
            .iter()
            .map(|segment| segment.memory_bytes())
            .sum()
    }

    fn excess(budget: &Arc<TableMemory>) -> Excess {
        TableMemory::excess(budget)
    }

    fn has_part(&self, part: usize) -> bool {
        let has_part = |segment: &Arc<Segment>| match part {
            PARTITIONS => segment.has_partitions(),
            FILTERS => segment.filter.can_be_dropped(),
            _ => false,
        };
        self.segments.iter().any(has_part)
    }

    fn without(&self, part: usize) -> Option<Self> {
        match part {
            PARTITIONS => self.without_partitions(),
            FILTERS => self.without_filters(),
            _ => None,
        }
    }
}

impl TableSlot {
    /// A slot for the file after an append: the first `segments` keep their filter units, and the new
    /// ones have all of theirs.
    pub(crate) fn grown(&self, segments: usize) -> Self {
        Self::new(self.filter_units().with_all_after(segments).into())
    }

    /// How many units of its filters are allocated to the table.
    pub(crate) fn filter_units(&self) -> LoadedUnits {
        LoadedUnits::from_word(self.state.0.load(Ordering::Relaxed))
    }

    /// How many units of its filters the table has in memory while it is open: none of the segments that it reads by
    /// pieces now. And how many units its probes use.
    pub(crate) fn used_units(&self) -> UsedUnits {
        let allocated = self.filter_units();
        let mut units = UsedUnits {
            in_memory: allocated,
            probed: allocated,
        };
        let table = self.peek();
        let segments = table.iter().flat_map(|table| &table.segments);
        for (position, segment) in segments.enumerate() {
            if let SegmentFilter::ByPieces(_) = segment.filter {
                units.in_memory.limit(position, 0);
                units.probed.limit(position, 1);
            }
        }
        units
    }
}

/// The filter units that a table uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UsedUnits {
    pub(crate) in_memory: LoadedUnits,
    pub(crate) probed: LoadedUnits,
}

/// Opens tables on demand and closes the least recently used.
#[derive(Debug)]
pub(crate) struct OpenTables {
    context: TableContext,
    tables: OpenFiles<Table>,
}

impl OpenTables {
    /// Tables that share `context`. The budget of its memory bounds their number, and its files are bounded by
    /// themselves.
    pub(crate) fn new(context: TableContext) -> Self {
        Self {
            tables: OpenFiles::new(usize::MAX, Arc::clone(&context.memory)),
            context,
        }
    }

    /// Opens no more tables and closes those that no reader holds.
    pub(crate) fn close(&self) {
        self.tables.close();
        self.context.files.close();
    }

    /// The table in `slot`, opened as `meta` describes it if need be.
    #[inline]
    pub(crate) fn get(&self, slot: &Arc<TableSlot>, meta: &FileMeta) -> Result<OpenTable> {
        if self.context.memory.take_due() {
            self.settle();
        }
        match slot.get() {
            Some(table) => Ok(table),
            None => self.open(slot, meta, None),
        }
    }

    /// What all tables share.
    pub(crate) fn context(&self) -> &TableContext {
        &self.context
    }

    #[cold]
    fn open(
        &self,
        slot: &Arc<TableSlot>,
        meta: &FileMeta,
        known: Option<&Table>,
    ) -> Result<OpenTable> {
        let open = || {
            let filters = self.filters(meta, slot.filter_units());
            let table = self.open_table(meta, filters, known)?;
            Ok(Arc::new(table.at_home(slot)))
        };
        let table = self.tables.open(slot, open)?;
        self.fit_cache();
        Ok(table)
    }

    /// Allocates `units` of its filters to the table in `slot`, and opens it again with these if it is
    /// open. Its readers keep the old table.
    pub(crate) fn set_filter_units(
        &self,
        slot: &Arc<TableSlot>,
        meta: &FileMeta,
        units: LoadedUnits,
    ) -> Result<()> {
        let opening = slot.lock();
        let known = slot.peek().filter(|_| slot.filter_units() != units);
        if let Some(known) = &known {
            let table = self.open_table(meta, self.filters(meta, units), Some(known))?;
            self.tables.replace(slot, Arc::new(table.at_home(slot)));
        }
        // If the open failed, the table keeps the units that it has.
        slot.state.0.store(units.to_word(), Ordering::Relaxed);
        drop(opening);
        if known.is_some() {
            // More units of a filter in memory take more of it.
            drop(known);
            self.fit();
        }
        Ok(())
    }

    /// Opens the table of `slot` in `grown` too, if it is open: the file has grown to what `meta`
    /// describes, and only the new segments are read.
    pub(crate) fn open_grown(
        &self,
        slot: &TableSlot,
        grown: &Arc<TableSlot>,
        meta: &FileMeta,
    ) -> Result<()> {
        match slot.peek() {
            Some(known) => self.open(grown, meta, Some(&known)).map(drop),
            None => Ok(()),
        }
    }

    /// Opens the file that `meta` describes with its filters in memory, even if it is open already.
    pub(crate) fn open_anew(&self, meta: &FileMeta) -> Result<Arc<Table>> {
        self.open_table(meta, TableFilters::WHOLE, None)
            .map(Arc::new)
    }

    /// Segments that `known` has too are reused.
    fn open_table(
        &self,
        meta: &FileMeta,
        filters: TableFilters,
        known: Option<&Table>,
    ) -> Result<Table> {
        let open = || Table::open(meta, self.context.clone(), filters, known);
        self.tables.unless_closed(open)?
    }

    /// The filters that the table of `meta` is opened with, of which `units` are allocated to it.
    fn filters(&self, meta: &FileMeta, units: LoadedUnits) -> TableFilters {
        let segments = meta.segments.iter().enumerate();
        let bytes = segments.flat_map(|(position, segment)| {
            let allocated = segment.filter_units.iter().take(units.of(position));
            allocated.copied()
        });
        let bytes = bytes.fold(0, u64::saturating_add);
        TableFilters {
            units,
            are_whole: self.context.memory.has_space_for_filter(bytes),
        }
    }

    /// Loads the filters that tables want, and closes tables beyond the bounds.
    #[cold]
    fn settle(&self) {
        for slot in self.context.piece_reads.take_wanted() {
            let Some(slot) = slot.upgrade() else { continue };
            let opening = slot.lock();
            // A filter that does not fit even alone would drive out all others, and then itself.
            let fits = |table: &Arc<Table>| {
                let bytes = table.memory_bytes().saturating_add(table.pieced_bytes());
                bytes <= self.context.memory.tables_max()
            };
            // A table whose filters cannot be read reads on by pieces, which report what fails.
            let table = slot.peek().filter(fits);
            let table = table.and_then(|table| table.with_whole_filters().ok()?);
            if let Some(table) = table {
                self.tables.replace(&slot, Arc::new(table));
            }
            drop(opening);
        }
        self.fit();
    }

    /// Drops parts of tables and closes tables beyond the bounds, and fits the cache into what is left.
    pub(crate) fn fit(&self) {
        self.tables.fit();
        self.fit_cache();
    }

    fn fit_cache(&self) {
        let left = self.context.memory.left_for_cache();
        self.context.cache.fit(left);
    }
}

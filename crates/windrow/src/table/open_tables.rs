//! The tables in memory, bounded by their bytes, and the filter units that each has.
//!
//! Concurrency: that of [`OpenFiles`].

use std::sync::Arc;

use crate::base::Result;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::cache::{CachedFile, FileSlot, OpenFile, OpenFiles};
use crate::filter::LoadedUnits;

use super::format::FileMeta;
use super::memory::TableMemory;
use super::read::{Table, TableContext};

/// Holds the table of one file while it is open.
pub(crate) type TableSlot = FileSlot<Table>;

/// An open table, borrowed from its slot.
pub(crate) type OpenTable = OpenFile<Table>;

/// How many units of its filters a table has in memory while it is open, as a word.
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

    fn exceeds(budget: &Arc<TableMemory>, closed_bytes: u64) -> bool {
        budget.tables.bytes().saturating_sub(closed_bytes) > budget.tables_max()
    }

    fn shrunk(&self) -> Option<Self> {
        Self::shrunk(self)
    }
}

impl TableSlot {
    /// A slot for the file after an append: the first `segments` keep their filter units, and the new
    /// ones have all of theirs.
    pub(crate) fn grown(&self, segments: usize) -> Self {
        Self::new(self.filter_units().with_all_after(segments).into())
    }

    /// How many units of its filters the table has in memory while it is open.
    pub(crate) fn filter_units(&self) -> LoadedUnits {
        LoadedUnits::from_word(self.state.0.load(Ordering::Relaxed))
    }
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
        if self.context.memory.take_over() {
            self.fit();
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
        let open = || self.open_anew(meta, slot.filter_units(), known);
        let table = self.tables.open(slot, open)?;
        self.fit_cache();
        Ok(table)
    }

    /// Allocates `units` of its filters to the table in `slot`, and opens it again with these if it is
    /// open. Its readers keep the old table.
    pub(crate) fn set_filter_units(
        &self,
        slot: &TableSlot,
        meta: &FileMeta,
        units: LoadedUnits,
    ) -> Result<()> {
        let opening = slot.lock();
        if slot.filter_units() != units
            && let Some(known) = slot.peek()
        {
            let table = self.open_anew(meta, units, Some(&known))?;
            self.tables.replace(slot, table);
        }
        // If the open failed, the table keeps the units that it has.
        slot.state.0.store(units.to_word(), Ordering::Relaxed);
        drop(opening);
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

    /// Opens the file that `meta` describes with `units` of its filters, even if it is open already.
    /// Segments that `known` has too are reused.
    pub(crate) fn open_anew(
        &self,
        meta: &FileMeta,
        units: LoadedUnits,
        known: Option<&Table>,
    ) -> Result<Arc<Table>> {
        let open = || Table::open(meta, self.context.clone(), units, known);
        self.tables.unless_closed(open)?.map(Arc::new)
    }

    /// Closes tables beyond the bounds, and fits the cache into what is left.
    pub(crate) fn fit(&self) {
        self.tables.fit();
        self.fit_cache();
    }

    fn fit_cache(&self) {
        let left = self.context.memory.left_for_cache();
        self.context.cache.fit(left);
    }
}

//! A bounded set of open table files.
//!
//! Each file of a version has a [`TableSlot`]. A read takes the open table out of its slot without
//! a lock; only opening and closing take locks. Beyond the bounds, of files and of bytes in memory, a
//! clock hand closes tables that were not used since it last passed. It passes over those that
//! somebody reads: closing them would free nothing, and they might be opened twice.
//!
//! Invariants:
//! - I1. A slot that holds a table is on the clock exactly once.
//! - I2. A table taken out of a slot stays usable, its file open, until it is dropped.
//!
//! Concurrency: lock order is a slot's opening lock, then the clock.

use std::collections::VecDeque;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use arc_swap::{ArcSwapOption, Guard};

use crate::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::base::sync::{Mutex, MutexGuard};
use crate::base::{Error, Result};
use crate::filter::LoadedUnits;
use crate::vfs::{OpenMode, Vfs};

use super::format::{FileMeta, file_name};
use super::read::{Table, TableContext};

/// Holds the table of one file while it is open.
#[derive(Debug)]
pub(crate) struct TableSlot {
    pub(super) table: ArcSwapOption<Table>,
    /// Whether a read came by since the clock hand last passed.
    used: AtomicBool,
    /// How many units of its filters the table has in memory while it is open, as a word.
    filter_units: AtomicU64,
    /// Held while the table is opened, so that it is opened once.
    opening: Mutex<()>,
}

impl Default for TableSlot {
    fn default() -> Self {
        Self {
            table: ArcSwapOption::empty(),
            used: AtomicBool::default(),
            filter_units: AtomicU64::new(LoadedUnits::ALL.to_word()),
            opening: Mutex::default(),
        }
    }
}

impl TableSlot {
    /// A slot for the file once it has grown: what was granted to its `segments` so far stays, and what is
    /// behind them has all its filter units.
    pub(crate) fn grown(&self, segments: usize) -> Self {
        let units = self.filter_units().with_all_behind(segments);
        Self {
            filter_units: AtomicU64::new(units.to_word()),
            ..Self::default()
        }
    }

    /// How many units of its filters the table has in memory while it is open.
    pub(crate) fn filter_units(&self) -> LoadedUnits {
        LoadedUnits::from_word(self.filter_units.load(Ordering::Relaxed))
    }

    /// Lets go of the table, if it is open.
    pub(crate) fn close(&self) {
        self.table.store(None);
    }
}

/// Opens tables on demand and closes the least used.
#[derive(Debug)]
pub(crate) struct OpenTables {
    vfs: Arc<dyn Vfs>,
    directory: PathBuf,
    context: TableContext,
    open_max: usize,
    clock: Mutex<VecDeque<Weak<TableSlot>>>,
    /// Set under the lock of `clock`, after which the files may be another process's.
    is_closed: AtomicBool,
}

/// An open table on loan from its slot.
#[derive(Debug)]
pub(crate) struct OpenTable(Guard<Option<Arc<Table>>>);

impl Deref for OpenTable {
    type Target = Arc<Table>;

    #[inline]
    fn deref(&self) -> &Arc<Table> {
        match &*self.0 {
            Some(table) => table,
            None => unreachable!("made only around a table"),
        }
    }
}

impl OpenTables {
    /// Tables of `directory`, about `open_max` of them open at a time.
    pub(crate) fn new(
        vfs: Arc<dyn Vfs>,
        directory: PathBuf,
        context: TableContext,
        open_max: usize,
    ) -> Self {
        Self {
            vfs,
            directory,
            context,
            open_max,
            clock: Mutex::default(),
            is_closed: AtomicBool::new(false),
        }
    }

    /// Opens no file from here on and closes those that nobody reads; a cursor that stays may read
    /// the file it stands in.
    pub(crate) fn close(&self) {
        let mut clock = self.clock.lock();
        self.is_closed.store(true, Ordering::Release);
        let slots = std::mem::take(&mut *clock);
        drop(clock);
        for slot in slots.iter().filter_map(Weak::upgrade) {
            slot.close();
        }
    }

    /// The table in `slot`, opened if need be as `meta` describes it.
    #[inline]
    pub(crate) fn get(&self, slot: &Arc<TableSlot>, meta: &FileMeta) -> Result<OpenTable> {
        let table = slot.table.load();
        if table.is_some() {
            if !slot.used.load(Ordering::Relaxed) {
                slot.used.store(true, Ordering::Relaxed);
            }
            return Ok(OpenTable(table));
        }
        drop(table);
        self.open(slot, meta)
    }

    /// What all tables share.
    pub(crate) fn context(&self) -> &TableContext {
        &self.context
    }

    #[cold]
    fn open(&self, slot: &Arc<TableSlot>, meta: &FileMeta) -> Result<OpenTable> {
        let opening = slot.opening.lock();
        if let Some(table) = slot.table.load_full() {
            return Ok(OpenTable(Guard::from_inner(Some(table))));
        }
        let table = self.open_anew(meta, slot.filter_units(), None)?;
        slot.table.store(Some(Arc::clone(&table)));
        slot.used.store(true, Ordering::Relaxed);
        self.admit(slot);
        drop(opening);
        Ok(OpenTable(Guard::from_inner(Some(table))))
    }

    /// Lets the table in `slot` have `units` of its filters in memory, and opens it again with as many
    /// where it is open. Who reads it meanwhile goes on with the old.
    pub(crate) fn allocation(
        &self,
        slot: &TableSlot,
        meta: &FileMeta,
        units: LoadedUnits,
    ) -> Result<()> {
        let opening = slot.opening.lock();
        let known = slot.table.load_full();
        if slot.filter_units() != units && known.is_some() {
            let table = self.open_anew(meta, units, known.as_deref())?;
            // Under this lock nobody else closes it, so that the slot stays on the clock (I1).
            let clock = self.clock.lock();
            if slot.table.load().is_some() {
                slot.table.store(Some(table));
            }
            drop(clock);
        }
        // Where that failed, the table goes on with what it has.
        slot.filter_units.store(units.to_word(), Ordering::Relaxed);
        drop(opening);
        Ok(())
    }

    /// The file of `slot` has grown to what `meta` describes, in `grown`: where it is open, it is opened
    /// there, too, of which only what is new is read.
    pub(crate) fn follow(
        &self,
        slot: &TableSlot,
        grown: &Arc<TableSlot>,
        meta: &FileMeta,
    ) -> Result<()> {
        let Some(known) = slot.table.load_full() else {
            return Ok(());
        };
        let opening = grown.opening.lock();
        if grown.table.load().is_none() {
            let table = self.open_anew(meta, grown.filter_units(), Some(&known))?;
            grown.table.store(Some(table));
            grown.used.store(true, Ordering::Relaxed);
            self.admit(grown);
        }
        drop(opening);
        Ok(())
    }

    /// Opens the file that `meta` describes with `units` of its filters, whether or not it is open
    /// already; what it has in common with `known` is shared.
    pub(crate) fn open_anew(
        &self,
        meta: &FileMeta,
        units: LoadedUnits,
        known: Option<&Table>,
    ) -> Result<Arc<Table>> {
        let name = file_name(meta.number);
        let path = self.directory.join(&name);
        let file = self.vfs.open(&path, OpenMode::Read);
        // Asked afterwards, so that a file which went meanwhile is not called missing.
        if self.is_closed.load(Ordering::Acquire) {
            return Err(Error::closed());
        }
        let file = file.map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Error::corruption(&name, 0, "the file is missing"),
            _ => Error::io("open", &path, error),
        })?;
        Ok(Arc::new(Table::open(
            file,
            name,
            meta,
            self.context.clone(),
            units,
            known,
        )?))
    }

    /// Puts `slot` on the clock (I1) and closes tables beyond the bounds.
    fn admit(&self, slot: &Arc<TableSlot>) {
        let mut clock = self.clock.lock();
        if self.is_closed.load(Ordering::Acquire) {
            drop(clock);
            slot.close();
            return;
        }
        clock.push_back(Arc::downgrade(slot));
        self.close_least_used(clock, Some(slot));
    }

    /// Closes tables beyond the bounds, and fits the cache into what is left.
    pub(crate) fn fit(&self) {
        self.close_least_used(self.clock.lock(), None);
    }

    fn close_least_used(
        &self,
        mut clock: MutexGuard<'_, VecDeque<Weak<TableSlot>>>,
        spared: Option<&Arc<TableSlot>>,
    ) {
        let memory = &self.context.memory;
        let tables_max = memory.tables_max();
        let mut closed = Vec::new();
        let mut closed_bytes = 0;
        let is_over = |open: usize, closed_bytes: u64| {
            let held = memory.tables.bytes().saturating_sub(closed_bytes);
            open > self.open_max || (held > tables_max && open > 1)
        };
        // Every table gets at most one more chance, so the hand stops after two rounds.
        let mut steps = 2 * clock.len();
        while is_over(clock.len(), closed_bytes) && steps > 0 {
            steps -= 1;
            let Some(weak) = clock.pop_front() else { break };
            let Some(candidate) = weak.upgrade() else {
                continue;
            };
            let used = candidate.used.swap(false, Ordering::Relaxed);
            let table = candidate.table.load_full();
            // One is the slot's, one is ours.
            let is_read = table
                .as_ref()
                .is_some_and(|table| Arc::strong_count(table) > 2);
            let is_spared = spared.is_some_and(|slot| Arc::ptr_eq(&candidate, slot));
            if used || is_read || is_spared {
                clock.push_back(weak);
            } else {
                closed_bytes += table.as_ref().map_or(0, |table| table.memory_bytes());
                candidate.close();
                closed.push(table);
            }
        }
        // Files are closed outside the lock.
        drop(clock);
        drop(closed);
        self.context.cache.fit(memory.left_for_cache());
    }
}

//! A bounded cache of open files.
//!
//! Each file of a version has a [`FileSlot`]. A read borrows the open file from its slot without a lock;
//! only opening and closing take locks. The clock algorithm closes files that exceed the bounds on their
//! number and their memory, if no read used them since the hand last passed. The hand skips files that a reader holds:
//! closing them would free nothing, and they might be opened twice.
//!
//! A file may have *parts* that it can drop without a close and load again. Memory in excess says how many bytes of
//! each part to drop, and how many bytes of files to close. The hand goes round for one after the other. It forgets the
//! use of a file only where the file could give what it looks for: otherwise a fast search for one part would make all
//! files look unused to the slow search for another.
//!
//! Invariants:
//! - I1. A slot that holds a file is on the clock exactly once.
//! - I2. A borrowed file stays usable until it is dropped.
//!
//! Concurrency: lock order is the `opening` lock of a slot, then the clock.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::ops::Deref;
use std::sync::{Arc, Weak};

use arc_swap::{ArcSwapOption, Guard};

use crate::base::sync::atomic::{AtomicBool, Ordering};
use crate::base::sync::{Mutex, MutexGuard};
use crate::base::{Error, Result};

/// The kinds of parts that files may have.
const PARTS: usize = 2;

/// The bytes that open files should free: of each part in this order, and then by closes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Excess {
    pub(crate) parts: [u64; PARTS],
    pub(crate) files: u64,
}

/// A file that [`OpenFiles`] keeps open.
pub(crate) trait CachedFile: Sized {
    /// What a slot keeps while its file is closed.
    type State: Debug + Default;
    /// The bound on the memory of all open files.
    type Budget: Debug;

    /// The bytes that the file holds in memory while it is open, as far as a budget bounds them.
    fn memory_bytes(&self) -> u64 {
        0
    }
    /// What all open files should free.
    fn excess(_budget: &Self::Budget) -> Excess {
        Excess::default()
    }
    /// Whether the file has a part now that it can drop.
    fn has_part(&self, _part: usize) -> bool {
        false
    }
    /// The same file without a part, which it loads again on demand. It holds less memory.
    fn without(&self, _part: usize) -> Option<Self> {
        None
    }
}

/// Holds one file while it is open.
#[derive(Debug)]
pub(crate) struct FileSlot<F: CachedFile> {
    file: ArcSwapOption<F>,
    /// Whether a read used the file since the clock hand last passed.
    used: AtomicBool,
    /// Held while the file is opened, so that it is opened once.
    opening: Mutex<()>,
    pub(crate) state: F::State,
}

impl<F: CachedFile> Default for FileSlot<F> {
    fn default() -> Self {
        Self::new(F::State::default())
    }
}

impl<F: CachedFile> FileSlot<F> {
    /// An empty slot.
    pub(crate) fn new(state: F::State) -> Self {
        Self {
            file: ArcSwapOption::empty(),
            used: AtomicBool::default(),
            opening: Mutex::default(),
            state,
        }
    }

    /// The file, if it is open.
    #[inline]
    pub(crate) fn get(&self) -> Option<OpenFile<F>> {
        let file = self.file.load();
        if file.is_none() {
            return None;
        }
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
        Some(OpenFile(file))
    }

    /// The file, if it is open; does not count as a use.
    pub(crate) fn peek(&self) -> Option<Arc<F>> {
        self.file.load_full()
    }

    /// Keeps others from opening the file.
    pub(crate) fn lock(&self) -> MutexGuard<'_, ()> {
        self.opening.lock()
    }

    /// Whether the hand passes `file`, which the slot holds: it was used since the hand last passed, which this call
    /// forgets, a reader holds it, or it is `spared`.
    fn is_kept(self: &Arc<Self>, file: &Arc<F>, spared: Option<&Arc<Self>>) -> bool {
        let used = self.used.swap(false, Ordering::Relaxed);
        // The slot holds one reference, and `file` is another.
        let is_read = Arc::strong_count(file) > 2;
        used || is_read || spared.is_some_and(|slot| Arc::ptr_eq(self, slot))
    }

    /// Closes the file, if it is open, once its last reader drops it.
    pub(crate) fn close(&self) {
        self.file.store(None);
    }
}

/// An open file, borrowed from its slot.
#[derive(Debug)]
pub(crate) struct OpenFile<F>(Guard<Option<Arc<F>>>);

impl<F> From<Arc<F>> for OpenFile<F> {
    fn from(file: Arc<F>) -> Self {
        Self(Guard::from_inner(Some(file)))
    }
}

impl<F> Deref for OpenFile<F> {
    type Target = Arc<F>;

    #[inline]
    fn deref(&self) -> &Arc<F> {
        match &*self.0 {
            Some(file) => file,
            None => unreachable!("the guard always holds a file"),
        }
    }
}

/// Opens files on demand and closes the least recently used.
#[derive(Debug)]
pub(crate) struct OpenFiles<F: CachedFile> {
    open_max: usize,
    budget: F::Budget,
    clock: Mutex<VecDeque<Weak<FileSlot<F>>>>,
    /// Set under the lock of `clock`. Afterwards the files may belong to another process.
    is_closed: AtomicBool,
}

impl<F: CachedFile> OpenFiles<F> {
    /// Keeps about `open_max` files open, within `budget`.
    pub(crate) fn new(open_max: usize, budget: F::Budget) -> Self {
        Self {
            open_max,
            budget,
            clock: Mutex::default(),
            is_closed: AtomicBool::new(false),
        }
    }

    /// Opens no more files and closes those that no reader holds. A remaining cursor may still read
    /// its file.
    pub(crate) fn close(&self) {
        let mut clock = self.clock.lock();
        self.is_closed.store(true, Ordering::Release);
        let slots = std::mem::take(&mut *clock);
        drop(clock);
        for slot in slots.iter().filter_map(Weak::upgrade) {
            slot.close();
        }
    }

    /// The outcome of `open`, or `Closed` after [`close`](Self::close).
    ///
    /// The check follows the open: otherwise a file that was removed in between would count as missing.
    pub(crate) fn unless_closed<T>(&self, open: impl FnOnce() -> T) -> Result<T> {
        let opened = open();
        if self.is_closed.load(Ordering::Acquire) {
            return Err(Error::closed());
        }
        Ok(opened)
    }

    /// The file in `slot`, which `open` opens unless another thread did so first.
    pub(crate) fn open(
        &self,
        slot: &Arc<FileSlot<F>>,
        open: impl FnOnce() -> Result<Arc<F>>,
    ) -> Result<OpenFile<F>> {
        let opening = slot.lock();
        if let Some(file) = slot.peek() {
            return Ok(file.into());
        }
        let file = open()?;
        slot.file.store(Some(Arc::clone(&file)));
        slot.used.store(true, Ordering::Relaxed);
        self.admit(slot);
        drop(opening);
        Ok(file.into())
    }

    /// Replaces the file in `slot`, whose lock the caller holds, by `file`, unless the slot was closed
    /// meanwhile.
    pub(crate) fn replace(&self, slot: &FileSlot<F>, file: Arc<F>) {
        // No other thread closes the slot under this lock, so it stays on the clock (I1).
        let clock = self.clock.lock();
        if slot.file.load().is_some() {
            slot.file.store(Some(file));
        }
        drop(clock);
    }

    /// Puts `slot` on the clock (I1) and closes files beyond the bounds.
    fn admit(&self, slot: &Arc<FileSlot<F>>) {
        let mut clock = self.clock.lock();
        if self.is_closed.load(Ordering::Acquire) {
            drop(clock);
            slot.close();
            return;
        }
        clock.push_back(Arc::downgrade(slot));
        self.close_least_used(clock, Some(slot));
    }

    /// The number of open files, those aside that only readers hold.
    #[cfg(test)]
    pub(crate) fn open_files(&self) -> usize {
        self.clock.lock().len()
    }

    /// Closes files beyond the bounds.
    pub(crate) fn fit(&self) {
        self.close_least_used(self.clock.lock(), None);
    }

    fn close_least_used(
        &self,
        mut clock: MutexGuard<'_, VecDeque<Weak<FileSlot<F>>>>,
        spared: Option<&Arc<FileSlot<F>>>,
    ) {
        let mut dropped = Vec::new();
        let excess = F::excess(&self.budget);
        // What one search does not find, the next one should.
        let mut missing = 0;
        for (part, bytes) in excess.parts.into_iter().enumerate() {
            let wanted = missing + bytes;
            missing = Self::drop_parts(&mut clock, spared, part, wanted, &mut dropped);
        }
        self.close_files(&mut clock, spared, missing + excess.files, &mut dropped);
        // Files are closed outside the lock.
        drop(clock);
        drop(dropped);
    }

    /// Drops about `wanted` bytes of a part of the least used files. Returns how many bytes are still wanted.
    fn drop_parts(
        clock: &mut VecDeque<Weak<FileSlot<F>>>,
        spared: Option<&Arc<FileSlot<F>>>,
        part: usize,
        mut wanted: u64,
        dropped: &mut Vec<Arc<F>>,
    ) -> u64 {
        // Every file gets at most one more chance, so the hand stops after two rounds.
        let mut steps = 2 * clock.len();
        while wanted > 0 && steps > 0 {
            steps -= 1;
            let Some(weak) = clock.pop_front() else { break };
            let Some(candidate) = weak.upgrade() else {
                continue;
            };
            let Some(file) = candidate.peek() else {
                continue;
            };
            clock.push_back(weak);
            if !file.has_part(part) || candidate.is_kept(&file, spared) {
                continue;
            }
            if let Some(less) = file.without(part) {
                wanted =
                    wanted.saturating_sub(file.memory_bytes().saturating_sub(less.memory_bytes()));
                // A slot that was closed meanwhile stays closed.
                candidate
                    .file
                    .compare_and_swap(&Some(Arc::clone(&file)), Some(Arc::new(less)));
                dropped.push(file);
            }
        }
        wanted
    }

    /// Closes about `wanted` bytes of the least used files, and as many files as exceed the bound on their number.
    fn close_files(
        &self,
        clock: &mut VecDeque<Weak<FileSlot<F>>>,
        spared: Option<&Arc<FileSlot<F>>>,
        mut wanted: u64,
        dropped: &mut Vec<Arc<F>>,
    ) {
        let mut steps = 2 * clock.len();
        while (clock.len() > self.open_max || (clock.len() > 1 && wanted > 0)) && steps > 0 {
            steps -= 1;
            let Some(weak) = clock.pop_front() else { break };
            let Some(candidate) = weak.upgrade() else {
                continue;
            };
            let Some(file) = candidate.peek() else {
                continue;
            };
            if candidate.is_kept(&file, spared) {
                clock.push_back(weak);
                continue;
            }
            wanted = wanted.saturating_sub(file.memory_bytes());
            candidate.close();
            dropped.push(file);
        }
    }
}

#[cfg(test)]
mod tests;

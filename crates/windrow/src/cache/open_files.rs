//! A bounded cache of open files.
//!
//! Each file of a version has a [`FileSlot`]. A read borrows the open file from its slot without a lock;
//! only opening and closing take locks. The clock algorithm closes files that exceed the bounds on their
//! number and their memory, if no read used them since the hand last passed. A file that can be smaller is shrunk
//! first. The hand skips files that a reader holds: closing them would free nothing, and they might be opened twice.
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

/// A file that [`OpenFiles`] keeps open.
pub(crate) trait CachedFile {
    /// What a slot keeps while its file is closed.
    type State: Debug + Default;
    /// The bound on the memory of all open files.
    type Budget: Debug;

    /// The bytes that the file holds in memory while it is open, as far as a budget bounds them.
    fn memory_bytes(&self) -> u64 {
        0
    }
    /// Whether open files hold too much memory once `closed_bytes` of it are free.
    fn exceeds(_budget: &Self::Budget, _closed_bytes: u64) -> bool {
        false
    }
    /// The same file with less in memory, which loads the rest again on demand; `None` if it has the least.
    fn shrunk(&self) -> Option<Self>
    where
        Self: Sized,
    {
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
        let mut closed = Vec::new();
        let mut closed_bytes = 0;
        let is_over = |open: usize, closed_bytes: u64| {
            open > self.open_max || (open > 1 && F::exceeds(&self.budget, closed_bytes))
        };
        // Every file gets at most one more chance, and is shrunk at most once, so the hand stops after three rounds.
        let mut steps = 3 * clock.len();
        while is_over(clock.len(), closed_bytes) && steps > 0 {
            steps -= 1;
            let Some(weak) = clock.pop_front() else { break };
            let Some(candidate) = weak.upgrade() else {
                continue;
            };
            let used = candidate.used.swap(false, Ordering::Relaxed);
            let file = candidate.peek();
            // The slot holds one reference, and `file` is another.
            let is_read = file
                .as_ref()
                .is_some_and(|file| Arc::strong_count(file) > 2);
            let is_spared = spared.is_some_and(|slot| Arc::ptr_eq(&candidate, slot));
            if used || is_read || is_spared {
                clock.push_back(weak);
                continue;
            }
            closed_bytes += file.as_ref().map_or(0, |file| file.memory_bytes());
            let is_many = clock.len() >= self.open_max;
            let shrunk = file
                .as_ref()
                .filter(|_| !is_many)
                .and_then(|file| file.shrunk());
            if let Some(shrunk) = shrunk {
                // What both have counts in both.
                closed_bytes -= shrunk.memory_bytes();
                // A slot that was closed meanwhile stays closed.
                candidate
                    .file
                    .compare_and_swap(&file, Some(Arc::new(shrunk)));
                clock.push_back(weak);
            } else {
                candidate.close();
            }
            closed.push(file);
        }
        // Files are closed outside the lock.
        drop(clock);
        drop(closed);
    }
}

#[cfg(test)]
mod tests;

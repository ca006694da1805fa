//! Cursors that lend and iterators that own.
//!
//! Invariant: the database stays open for as long as a cursor lives, and the files that it reads stay, whatever
//! compactions and garbage collections do meanwhile. So an open cursor keeps disk space in use.
//!
//! Concurrency: a cursor belongs to one thread at a time; what it sees does not change.

use std::fmt;
use std::sync::Arc;

use super::Snapshot;
use crate::base::{Error, Result};
use crate::engine::{Handle, KeyspaceCore, StateCursor, StateView};
use crate::read::visible::KeyRange;

/// An entry with its own bytes: key and value.
pub type Entry = (Vec<u8>, Vec<u8>);

/// A cursor over the entries of a keyspace at one moment. It lends keys and values: nothing is
/// allocated or copied per step.
///
/// It stands nowhere until it is moved; moving past either end makes it invalid until the next
/// seek. Direction may change at any step. After an error every further move returns an error. A
/// cursor pins the files it reads.
pub struct Cursor {
    entries: StateCursor,
    /// Keeps the database open; declared last, so that it is dropped last.
    handle: Arc<Handle>,
}

impl Cursor {
    pub(super) fn new(
        handle: Arc<Handle>,
        core: &KeyspaceCore,
        snapshot: Option<&Snapshot>,
        range: KeyRange,
    ) -> Result<Self> {
        let view = handle
            .engine()
            .state_view(core, snapshot.map(Snapshot::sequence))?;
        Ok(Self {
            entries: view.cursor(range),
            handle,
        })
    }

    /// Moves to the first entry; returns whether there is one.
    ///
    /// # Errors
    /// `Corruption` or `Io` from reading tables; here and in all other moves.
    pub fn seek_to_first(&mut self) -> Result<bool> {
        self.entries.moving().seek_to_first()
    }

    /// Moves to the last entry; returns whether there is one.
    pub fn seek_to_last(&mut self) -> Result<bool> {
        self.entries.moving().seek_to_last()
    }

    /// Moves to the first entry whose key is `key` or greater; returns whether there is one.
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.entries.moving().seek(key.as_ref())
    }

    /// Moves to the next entry; returns whether there is one.
    #[inline]
    #[expect(
        clippy::should_implement_trait,
        reason = "a lending cursor cannot be an Iterator"
    )]
    pub fn next(&mut self) -> Result<bool> {
        self.entries.next()
    }

    /// Moves to the entry before; returns whether there is one.
    pub fn prev(&mut self) -> Result<bool> {
        self.entries.prev()
    }

    /// Whether the cursor stands on an entry.
    pub fn is_valid(&self) -> bool {
        self.entries.is_valid()
    }

    /// The key of the entry; empty while the cursor stands nowhere.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.entries.key()
    }

    /// The value of the entry; empty while the cursor stands nowhere. One that does not stand beside
    /// its key is fetched now, once.
    ///
    /// # Errors
    /// `Corruption` that names key, file and offset where such a value is damaged; `Io`. The cursor may
    /// go on behind it.
    #[inline]
    pub fn value(&self) -> Result<&[u8]> {
        self.entries.value()
    }

    pub(super) fn entry(&self) -> Result<Entry> {
        Ok((self.key().to_vec(), self.value()?.to_vec()))
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        self.handle.engine().count_scan(&mut self.entries);
    }
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor")
            .field("is_valid", &self.is_valid())
            .finish_non_exhaustive()
    }
}

/// An iterator over entries with their own bytes, from either end.
///
/// An error ends the iteration; asked again, it yields an error again.
pub struct Range {
    view: StateView,
    bounds: KeyRange,
    front: Option<Cursor>,
    back: Option<Cursor>,
    /// What ended the iteration, where that was an error.
    failed: Option<Error>,
    handle: Arc<Handle>,
}

impl Range {
    pub(super) fn new(
        handle: Arc<Handle>,
        core: &KeyspaceCore,
        snapshot: Option<&Snapshot>,
        bounds: KeyRange,
    ) -> Result<Self> {
        let view = handle
            .engine()
            .state_view(core, snapshot.map(Snapshot::sequence))?;
        Ok(Self {
            view,
            bounds,
            front: None,
            back: None,
            failed: None,
            handle,
        })
    }

    fn open(&self) -> Cursor {
        Cursor {
            entries: self.view.cursor(self.bounds.clone()),
            handle: Arc::clone(&self.handle),
        }
    }

    /// Takes `step`, unless an error has ended the iteration before.
    fn take(&mut self, step: fn(&mut Self) -> Result<Option<Entry>>) -> Option<Result<Entry>> {
        if let Some(error) = &self.failed {
            return Some(Err(error.duplicate()));
        }
        let entry = step(self);
        self.failed = entry.as_ref().err().map(Error::duplicate);
        entry.transpose()
    }

    fn step_front(&mut self) -> Result<Option<Entry>> {
        let found = if let Some(front) = &mut self.front {
            front.next()?
        } else {
            let mut front = self.open();
            let found = front.seek_to_first();
            self.front = Some(front);
            found?
        };
        match &self.front {
            Some(front) if found && !self.has_met() => front.entry().map(Some),
            _ => Ok(None),
        }
    }

    fn step_back(&mut self) -> Result<Option<Entry>> {
        let found = if let Some(back) = &mut self.back {
            back.prev()?
        } else {
            let mut back = self.open();
            let found = back.seek_to_last();
            self.back = Some(back);
            found?
        };
        match &self.back {
            Some(back) if found && !self.has_met() => back.entry().map(Some),
            _ => Ok(None),
        }
    }

    /// Whether both ends have reached the same entry, so that nothing is left between them.
    fn has_met(&self) -> bool {
        match (&self.front, &self.back) {
            (Some(front), Some(back)) => {
                !front.is_valid() || !back.is_valid() || front.key() >= back.key()
            }
            _ => false,
        }
    }
}

impl Iterator for Range {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        self.take(Self::step_front)
    }
}

impl DoubleEndedIterator for Range {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.take(Self::step_back)
    }
}

impl fmt::Debug for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Range").finish_non_exhaustive()
    }
}

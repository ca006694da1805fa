//! Cursors, which lend keys and values, and iterators, which copy them.
//!
//! Invariant: a cursor keeps the database open and keeps the files that it reads, even if a compaction or garbage
//! collection replaces them. So an open cursor keeps disk space in use.
//!
//! Concurrency: one thread at a time uses a cursor. A cursor always reads the same state.

use std::fmt;
use std::sync::Arc;

use super::ends::{Ends, Steps};
use crate::base::{Expiry, Result};
use crate::engine::{Handle, StateCursor, StateView};
use crate::read::visible::KeyRange;

pub use super::ends::Entry;

/// A cursor over the entries of a keyspace in one state: that at its creation, or that of a snapshot. It lends keys
/// and values, so a step allocates and copies nothing.
///
/// A new cursor has no position. A move past either end makes it invalid until the next seek. It may change its
/// direction at any step. After an error of a move every further move returns an error. A cursor keeps the files that
/// it reads, and so their disk space, until it is dropped.
pub struct Cursor {
    entries: StateCursor,
    /// Keeps the database open. The last field is dropped last.
    handle: Arc<Handle>,
}

impl Cursor {
    pub(super) fn new(handle: Arc<Handle>, entries: StateCursor) -> Self {
        Self { entries, handle }
    }

    /// Moves to the first entry. Returns whether it exists.
    ///
    /// # Errors
    /// `Corruption` or `Io` from reads of tables, in this and in all other moves. `Closed` if a move needs a table
    /// that is not open after [`Db::close`](super::Db::close).
    pub fn seek_to_first(&mut self) -> Result<bool> {
        self.entries.seek_to_first()
    }

    /// Moves to the last entry. Returns whether it exists.
    pub fn seek_to_last(&mut self) -> Result<bool> {
        self.entries.seek_to_last()
    }

    /// Moves to the first entry of the cursor's range whose key is `key` or greater. Returns whether it exists.
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.entries.seek(key.as_ref())
    }

    /// Moves to the next entry. Returns whether it exists.
    #[inline]
    #[expect(
        clippy::should_implement_trait,
        reason = "a lending cursor cannot be an Iterator"
    )]
    pub fn next(&mut self) -> Result<bool> {
        self.entries.next()
    }

    /// Moves to the previous entry. Returns whether it exists.
    pub fn prev(&mut self) -> Result<bool> {
        self.entries.prev()
    }

    /// Whether the cursor is at an entry.
    pub fn is_valid(&self) -> bool {
        self.entries.is_valid()
    }

    /// The key of the entry; empty if the cursor is at no entry.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.entries.key()
    }

    /// The value of the entry; empty if the cursor is at no entry. The first call reads a value that is stored
    /// apart from its key.
    ///
    /// # Errors
    /// `Corruption` if such a value is damaged; it names key, file and offset. `Io`; `Closed`; `Poisoned` if an earlier
    /// failed write or sync may have lost the value; `Merge` if the key has operands that cannot be folded. The cursor can
    /// still move after these errors.
    #[inline]
    pub fn value(&self) -> Result<&[u8]> {
        self.entries.value()
    }

    /// When the entry expires; [`Expiry::Never`] if the cursor is at no entry.
    pub fn expires_at(&self) -> Expiry {
        self.entries.expiry().into()
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

impl Steps for Cursor {
    fn seek_to_first(&mut self) -> Result<bool> {
        self.seek_to_first()
    }

    fn seek_to_last(&mut self) -> Result<bool> {
        self.seek_to_last()
    }

    fn next(&mut self) -> Result<bool> {
        self.next()
    }

    fn prev(&mut self) -> Result<bool> {
        self.prev()
    }

    fn key(&self) -> Option<&[u8]> {
        self.is_valid().then(|| self.key())
    }

    fn entry(&self) -> Result<Entry> {
        self.entry()
    }
}

/// An iterator over copies of entries, from either end.
///
/// An error ends the iteration. Every later call yields that error again, never `None`: stop at the first error. Only
/// [`Merge`](crate::ErrorKind::Merge) is an error of one key: it comes once, and the next call yields the next key.
pub struct Range {
    source: Source,
    ends: Ends<Cursor>,
}

/// What both ends of a range read.
struct Source {
    view: StateView,
    bounds: KeyRange,
    handle: Arc<Handle>,
}

impl Source {
    fn open(&self) -> Cursor {
        let entries = self.view.cursor(self.bounds.clone());
        Cursor::new(Arc::clone(&self.handle), entries)
    }
}

impl Range {
    pub(super) fn new(handle: Arc<Handle>, view: StateView, bounds: KeyRange) -> Self {
        Self {
            source: Source {
                view,
                bounds,
                handle,
            },
            ends: Ends::default(),
        }
    }
}

impl Iterator for Range {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        self.ends.next(|| Ok(self.source.open()))
    }
}

impl DoubleEndedIterator for Range {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.ends.next_back(|| Ok(self.source.open()))
    }
}

impl fmt::Debug for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Range").finish_non_exhaustive()
    }
}

//! Cursors and iterators of a transaction.
//!
//! Concurrency: used by the thread of their transaction.

use std::fmt;
use std::sync::Arc;

use crate::api::cursor::Entry;
use crate::api::ends::{Ends, Steps};
use crate::base::{Expiry, Result};
use crate::engine::{self, Engine, KeyspaceCore, TransactionCore};
use crate::read::visible::KeyRange;

/// A cursor over a keyspace as its transaction sees it. It moves as a [`Cursor`](crate::Cursor) does, and shows writes
/// that the transaction makes behind its position while it is open.
///
/// Under [`Isolation::Serializable`](crate::Isolation::Serializable) the commit covers every key that the cursor has
/// passed, absent ones too.
pub struct TransactionCursor<'a> {
    entries: engine::TransactionCursor<'a>,
    engine: &'a Engine,
}

impl<'a> TransactionCursor<'a> {
    pub(super) fn new(engine: &'a Engine, entries: engine::TransactionCursor<'a>) -> Self {
        Self { entries, engine }
    }

    /// Moves to the first entry. Returns whether it exists.
    ///
    /// # Errors
    /// `Corruption` or `Io` from reads of tables, in this and in all other moves; `Closed`.
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
    pub fn key(&self) -> &[u8] {
        self.entries.key()
    }

    /// The value of the entry; empty if the cursor is at no entry.
    ///
    /// # Errors
    /// As [`Cursor::value`](crate::Cursor::value).
    pub fn value(&self) -> Result<&[u8]> {
        self.entries.value()
    }

    /// When the entry expires; [`Expiry::Never`] if the cursor is at no entry.
    pub fn expires_at(&self) -> Expiry {
        self.entries.expiry().into()
    }
}

impl Steps for TransactionCursor<'_> {
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
        Ok((self.key().to_vec(), self.value()?.to_vec()))
    }
}

impl Drop for TransactionCursor<'_> {
    fn drop(&mut self) {
        self.engine.count_scan(self.entries.base_mut());
    }
}

impl fmt::Debug for TransactionCursor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransactionCursor")
            .field("is_valid", &self.is_valid())
            .finish_non_exhaustive()
    }
}

/// An iterator over copies of the entries that a transaction sees, from either end.
///
/// An error ends the iteration. Every later call yields that error again, never `None`: stop at the first error. Only
/// [`Merge`](crate::ErrorKind::Merge) is an error of one key: it comes once, and the next call yields the next key.
pub struct TransactionRange<'a> {
    source: Source<'a>,
    ends: Ends<TransactionCursor<'a>>,
}

/// What both ends of a range read.
struct Source<'a> {
    engine: &'a Engine,
    transaction: &'a TransactionCore,
    keyspace: Arc<KeyspaceCore>,
    bounds: KeyRange,
}

impl<'a> Source<'a> {
    fn open(&self) -> Result<TransactionCursor<'a>> {
        let bounds = self.bounds.clone();
        let entries = self
            .transaction
            .cursor(self.engine, &self.keyspace, bounds)?;
        Ok(TransactionCursor::new(self.engine, entries))
    }
}

impl<'a> TransactionRange<'a> {
    pub(super) fn new(
        engine: &'a Engine,
        transaction: &'a TransactionCore,
        keyspace: Arc<KeyspaceCore>,
        bounds: KeyRange,
    ) -> Self {
        Self {
            source: Source {
                engine,
                transaction,
                keyspace,
                bounds,
            },
            ends: Ends::default(),
        }
    }
}

impl Iterator for TransactionRange<'_> {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        self.ends.next(|| self.source.open())
    }
}

impl DoubleEndedIterator for TransactionRange<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.ends.next_back(|| self.source.open())
    }
}

impl fmt::Debug for TransactionRange<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransactionRange").finish_non_exhaustive()
    }
}

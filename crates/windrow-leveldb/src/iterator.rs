//! Iterators: a cursor over all entries, with its first error.
//!
//! After an error an iterator is at no entry and stays there; its error says why.
//!
//! Concurrency: one thread at a time uses an iterator; the handle for C has a lock.

use std::sync::Arc;

use windrow::Result;
use windrow_ffi::iterator::Entries;
use windrow_ffi::key_order::KeyOrder;
use windrow_ffi::leveldb::EntryCursor;

use crate::status;

/// An iterator over the entries of a database in one state.
pub(crate) struct EntryIterator {
    /// `None` after a failed creation.
    cursor: Option<EntryCursor>,
    /// A custom comparator.
    order: Option<Arc<KeyOrder>>,
    /// The first error.
    error: Option<String>,
}

impl EntryIterator {
    pub(crate) fn new(cursor: Result<EntryCursor>, order: Option<Arc<KeyOrder>>) -> Self {
        let (cursor, error) = match cursor {
            Ok(cursor) => (Some(cursor), None),
            Err(error) => (None, Some(status::text(&error))),
        };
        Self {
            cursor,
            order,
            error,
        }
    }

    pub(crate) fn seek_to_first(&mut self) {
        self.go(|cursor, _| cursor.seek_to_first().map(drop));
    }

    pub(crate) fn seek_to_last(&mut self) {
        self.go(|cursor, _| cursor.seek_to_last().map(drop));
    }

    /// Moves to the first entry whose key is `key` or greater.
    pub(crate) fn seek(&mut self, key: &[u8]) {
        self.go(|cursor, order| {
            cursor.seek(key)?;
            match (order, cursor.key()) {
                (Some(order), Some(found)) if !found.is_empty() => order.check(key, found),
                _ => Ok(()),
            }
        });
    }

    pub(crate) fn next(&mut self) {
        self.go(|cursor, order| step(cursor, order, EntryCursor::next));
    }

    pub(crate) fn prev(&mut self) {
        self.go(|cursor, order| step(cursor, order, EntryCursor::prev));
    }

    /// Moves the iterator. It stays at no entry after an error.
    fn go(&mut self, movement: impl FnOnce(&mut EntryCursor, Option<&KeyOrder>) -> Result<()>) {
        if self.error.is_some() {
            return;
        }
        let Some(cursor) = &mut self.cursor else {
            return;
        };
        if let Err(error) = movement(cursor, self.order.as_deref()) {
            self.fail(status::text(&error));
        }
    }
}

impl Entries for EntryIterator {
    fn key(&self) -> Option<&[u8]> {
        self.cursor.as_ref().filter(|_| self.error.is_none())?.key()
    }

    fn value(&mut self) -> Option<&[u8]> {
        self.key()?;
        match self.cursor.as_ref()?.value() {
            Ok(value) => Some(value),
            Err(error) => {
                self.error.get_or_insert_with(|| status::text(&error));
                None
            }
        }
    }

    fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    fn fail(&mut self, error: String) {
        self.error.get_or_insert(error);
    }
}

/// Moves the cursor by a step, and checks a custom comparator by the keys before and after. Every order begins with the
/// empty key.
fn step(
    cursor: &mut EntryCursor,
    order: Option<&KeyOrder>,
    step: impl FnOnce(&mut EntryCursor) -> Result<bool>,
) -> Result<()> {
    let Some(order) = order else {
        return step(cursor).map(drop);
    };
    let before = cursor.key().unwrap_or_default().to_vec();
    step(cursor)?;
    match cursor.key() {
        Some(after) if !before.is_empty() && !after.is_empty() => order.check(&before, after),
        _ => Ok(()),
    }
}

//! Iterators: a cursor, with the empty key before its first entry.
//!
//! After an error an iterator is at no entry and stays there; its error says why.
//!
//! Concurrency: one thread at a time uses an iterator; the handle for C has a lock.

use std::sync::Arc;

use windrow::{Cursor, Result};
use windrow_ffi::iterator::Entries;
use windrow_ffi::key_order::KeyOrder;

use crate::status;

/// What an iterator reads.
pub(crate) struct Source {
    pub(crate) cursor: Cursor,
    /// The value of the empty key.
    pub(crate) empty_key: Option<Vec<u8>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    None,
    EmptyKey,
    Cursor,
}

impl Position {
    fn of_cursor(is_valid: bool) -> Self {
        if is_valid { Self::Cursor } else { Self::None }
    }
}

/// An iterator over the entries of a database in one state.
pub(crate) struct EntryIterator {
    /// `None` after a failed creation.
    source: Option<Source>,
    position: Position,
    /// A custom comparator.
    order: Option<Arc<KeyOrder>>,
    /// The first error.
    error: Option<String>,
}

impl EntryIterator {
    pub(crate) fn new(source: Result<Source>, order: Option<Arc<KeyOrder>>) -> Self {
        let (source, error) = match source {
            Ok(source) => (Some(source), None),
            Err(error) => (None, Some(status::text(&error))),
        };
        Self {
            source,
            position: Position::None,
            order,
            error,
        }
    }

    pub(crate) fn seek_to_first(&mut self) {
        self.go(|source, _| {
            if source.empty_key.is_some() {
                return Ok(Position::EmptyKey);
            }
            source.cursor.seek_to_first().map(Position::of_cursor)
        });
    }

    pub(crate) fn seek_to_last(&mut self) {
        self.go(|source, _| {
            let found = source.cursor.seek_to_last()?;
            Ok(source.at_or_before(found))
        });
    }

    /// Moves to the first entry whose key is `key` or greater.
    pub(crate) fn seek(&mut self, key: &[u8]) {
        let order = self.order.clone();
        self.go(|source, _| {
            if key.is_empty() && source.empty_key.is_some() {
                return Ok(Position::EmptyKey);
            }
            let found = source.cursor.seek(key)?;
            if let Some(order) = order.filter(|_| found) {
                order.check(key, source.cursor.key())?;
            }
            Ok(Position::of_cursor(found))
        });
    }

    pub(crate) fn next(&mut self) {
        let order = self.order.clone();
        self.go(|source, position| match position {
            Position::None => Ok(Position::None),
            Position::EmptyKey => source.cursor.seek_to_first().map(Position::of_cursor),
            Position::Cursor => source
                .step(order.as_deref(), Cursor::next)
                .map(Position::of_cursor),
        });
    }

    pub(crate) fn prev(&mut self) {
        let order = self.order.clone();
        self.go(|source, position| match position {
            Position::None | Position::EmptyKey => Ok(Position::None),
            Position::Cursor => {
                let found = source.step(order.as_deref(), Cursor::prev)?;
                Ok(source.at_or_before(found))
            }
        });
    }

    /// Moves the iterator. It stays at no entry after an error.
    fn go(&mut self, movement: impl FnOnce(&mut Source, Position) -> Result<Position>) {
        let position = self.position;
        self.position = Position::None;
        if self.error.is_some() {
            return;
        }
        let Some(source) = &mut self.source else {
            return;
        };
        match movement(source, position) {
            Ok(position) => self.position = position,
            Err(error) => self.fail(status::text(&error)),
        }
    }
}

impl Entries for EntryIterator {
    fn key(&self) -> Option<&[u8]> {
        match (self.position, &self.source) {
            (Position::Cursor, Some(source)) => Some(source.cursor.key()),
            (Position::EmptyKey, _) => Some(&[]),
            _ => None,
        }
    }

    fn value(&mut self) -> Option<&[u8]> {
        match (self.position, &self.source) {
            (Position::Cursor, Some(source)) => match source.cursor.value() {
                Ok(value) => Some(value),
                Err(error) => {
                    self.error.get_or_insert_with(|| status::text(&error));
                    None
                }
            },
            (Position::EmptyKey, Some(source)) => source.empty_key.as_deref(),
            _ => None,
        }
    }

    fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    fn fail(&mut self, error: String) {
        self.error.get_or_insert(error);
        self.position = Position::None;
    }
}

impl Source {
    /// Moves the cursor, and checks a custom comparator by the keys before and after.
    fn step(
        &mut self,
        order: Option<&KeyOrder>,
        step: impl FnOnce(&mut Cursor) -> Result<bool>,
    ) -> Result<bool> {
        let Some(order) = order else {
            return step(&mut self.cursor);
        };
        let before = self.cursor.key().to_vec();
        let found = step(&mut self.cursor)?;
        if found {
            order.check(&before, self.cursor.key())?;
        }
        Ok(found)
    }

    /// The position after a backward move of the cursor.
    fn at_or_before(&self, found: bool) -> Position {
        if !found && self.empty_key.is_some() {
            return Position::EmptyKey;
        }
        Position::of_cursor(found)
    }
}

//! A cursor over the entries of LevelDB's interfaces: that of the keyspace, with the empty key before its first entry.
//!
//! Invariant: after an error of a move the cursor is at no entry.
//!
//! Concurrency: one thread at a time uses a cursor.

use windrow::{Cursor, Result, View};

/// The key that stands for the empty one in the keyspace of the empty key.
pub(super) const EMPTY_KEY: &[u8] = &[0];

/// Where a cursor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    None,
    EmptyKey,
    Cursor,
}

/// A cursor over the entries of a database in one state.
#[derive(Debug)]
pub struct EntryCursor {
    cursor: Cursor,
    /// Where the empty key is, if it can be in the cursor's range. The first move reads its value.
    unread: Option<View>,
    /// The value of the empty key, if it has one in the range.
    empty_key: Option<Vec<u8>>,
    position: Position,
}

impl EntryCursor {
    pub(super) fn new(cursor: Cursor, empty_key: Option<View>) -> Self {
        Self {
            cursor,
            unread: empty_key,
            empty_key: None,
            position: Position::None,
        }
    }

    /// Moves to the first entry. Returns whether it exists.
    ///
    /// # Errors
    /// Those of [`Cursor::seek_to_first`], in this and in all other moves.
    pub fn seek_to_first(&mut self) -> Result<bool> {
        self.go(|it, _| {
            if it.empty_key.is_some() {
                return Ok(Position::EmptyKey);
            }
            it.cursor.seek_to_first().map(of_cursor)
        })
    }

    /// Moves to the last entry. Returns whether it exists.
    pub fn seek_to_last(&mut self) -> Result<bool> {
        self.go(|it, _| {
            let found = it.cursor.seek_to_last()?;
            Ok(it.at_or_before(found))
        })
    }

    /// Moves to the first entry whose key is `key` or greater. Returns whether it exists.
    pub fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.go(|it, _| {
            if key.is_empty() && it.empty_key.is_some() {
                return Ok(Position::EmptyKey);
            }
            it.cursor.seek(key).map(of_cursor)
        })
    }

    /// Moves to the next entry. Returns whether it exists.
    #[expect(
        clippy::should_implement_trait,
        reason = "a lending cursor cannot be an Iterator"
    )]
    pub fn next(&mut self) -> Result<bool> {
        self.go(|it, position| match position {
            Position::None => Ok(Position::None),
            Position::EmptyKey => it.cursor.seek_to_first().map(of_cursor),
            Position::Cursor => it.cursor.next().map(of_cursor),
        })
    }

    /// Moves to the previous entry. Returns whether it exists.
    pub fn prev(&mut self) -> Result<bool> {
        self.go(|it, position| match position {
            Position::None | Position::EmptyKey => Ok(Position::None),
            Position::Cursor => {
                let found = it.cursor.prev()?;
                Ok(it.at_or_before(found))
            }
        })
    }

    /// The key of the entry, if the cursor is at one.
    pub fn key(&self) -> Option<&[u8]> {
        match self.position {
            Position::None => None,
            Position::EmptyKey => Some(&[]),
            Position::Cursor => Some(self.cursor.key()),
        }
    }

    /// The value of the entry; empty if the cursor is at none.
    ///
    /// # Errors
    /// Those of [`Cursor::value`].
    pub fn value(&self) -> Result<&[u8]> {
        match self.position {
            Position::None => Ok(&[]),
            Position::EmptyKey => Ok(self.empty_key.as_deref().unwrap_or_default()),
            Position::Cursor => self.cursor.value(),
        }
    }

    fn go(
        &mut self,
        movement: impl FnOnce(&mut Self, Position) -> Result<Position>,
    ) -> Result<bool> {
        let position = self.position;
        self.position = Position::None;
        if let Some(view) = &self.unread {
            self.empty_key = view.get(EMPTY_KEY)?;
            self.unread = None;
        }
        self.position = movement(self, position)?;
        Ok(self.position != Position::None)
    }

    /// The position after a backward move of the keyspace's cursor.
    fn at_or_before(&self, found: bool) -> Position {
        if !found && self.empty_key.is_some() {
            return Position::EmptyKey;
        }
        of_cursor(found)
    }
}

/// The position after a move of the keyspace's cursor.
fn of_cursor(found: bool) -> Position {
    if found {
        Position::Cursor
    } else {
        Position::None
    }
}

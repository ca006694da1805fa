//! One cursor over the entries of several keyspaces.
//!
//! Owns a cursor for each keyspace, all at one snapshot. Entries are ordered by key, and those of one key by the position
//! of their keyspace. There are few keyspaces, so a step compares the keys of all cursors.
//!
//! Invariants, while the cursor is on an entry:
//! - I1: Moving forward, each other cursor is on its first entry behind it, or at its end.
//! - I2: Moving backward, each other cursor is on its last entry before it, or at its end.
//!
//! Concurrency: one thread at a time uses a cursor.

use std::cmp::Ordering;
use std::fmt;

use super::Cursor;
use crate::base::{Error, Expiry, Result};

/// A cursor over the entries of several keyspaces in one state, from [`Db::merged_cursor`](super::Db::merged_cursor).
///
/// Entries come in the order of their keys. A key that several keyspaces have comes once for each, in the order in which
/// the keyspaces were given. It moves like a [`Cursor`].
pub struct MergedCursor {
    cursors: Vec<Cursor>,
    /// The cursor with the present entry.
    present: Option<usize>,
    is_backward: bool,
    /// The first error; each further move returns it.
    failed: Option<Error>,
}

impl MergedCursor {
    pub(super) fn new(cursors: Vec<Cursor>) -> Self {
        Self {
            cursors,
            present: None,
            is_backward: false,
            failed: None,
        }
    }

    /// Moves to the first entry. Returns whether it exists.
    ///
    /// # Errors
    /// As the moves of a [`Cursor`].
    pub fn seek_to_first(&mut self) -> Result<bool> {
        self.seek_all(false, Cursor::seek_to_first)
    }

    /// Moves to the last entry. Returns whether it exists.
    ///
    /// # Errors
    /// As the moves of a [`Cursor`].
    pub fn seek_to_last(&mut self) -> Result<bool> {
        self.seek_all(true, Cursor::seek_to_last)
    }

    /// Moves to the first entry whose key is `key` or greater. Returns whether it exists.
    ///
    /// # Errors
    /// As the moves of a [`Cursor`].
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.seek_all(false, |cursor| cursor.seek(key.as_ref()))
    }

    /// Moves to the next entry. Returns whether it exists.
    ///
    /// # Errors
    /// As the moves of a [`Cursor`].
    #[expect(
        clippy::should_implement_trait,
        reason = "a lending cursor cannot be an Iterator"
    )]
    pub fn next(&mut self) -> Result<bool> {
        self.step(false)
    }

    /// Moves to the previous entry. Returns whether it exists.
    ///
    /// # Errors
    /// As the moves of a [`Cursor`].
    pub fn prev(&mut self) -> Result<bool> {
        self.step(true)
    }

    /// Whether the cursor is at an entry.
    pub fn is_valid(&self) -> bool {
        self.present.is_some()
    }

    /// The position of the entry's keyspace in the list that the cursor was made with; `None` if the cursor is at no
    /// entry.
    pub fn keyspace(&self) -> Option<usize> {
        self.present
    }

    /// The key of the entry; empty if the cursor is at no entry.
    pub fn key(&self) -> &[u8] {
        self.present.map_or(&[], |at| self.cursors[at].key())
    }

    /// The value of the entry; empty if the cursor is at no entry.
    ///
    /// # Errors
    /// As [`Cursor::value`].
    pub fn value(&self) -> Result<&[u8]> {
        self.present.map_or(Ok(&[]), |at| self.cursors[at].value())
    }

    /// When the entry expires; [`Expiry::Never`] if the cursor is at no entry.
    pub fn expires_at(&self) -> Expiry {
        let present = self.present.map(|at| self.cursors[at].expires_at());
        present.unwrap_or(Expiry::Never)
    }

    fn seek_all(
        &mut self,
        is_backward: bool,
        mut seek: impl FnMut(&mut Cursor) -> Result<bool>,
    ) -> Result<bool> {
        self.present = None;
        let mut cursors = self.cursors.iter_mut();
        let sought = cursors.try_for_each(|cursor| seek(cursor).map(drop));
        self.is_backward = is_backward;
        self.arrive(sought)
    }

    fn step(&mut self, is_backward: bool) -> Result<bool> {
        let Some(present) = self.present.take() else {
            return self.arrive(Ok(()));
        };
        let turned = if self.is_backward == is_backward {
            Ok(())
        } else {
            self.turn(present, is_backward)
        };
        self.is_backward = is_backward;
        let cursor = &mut self.cursors[present];
        let moved = turned.and_then(|()| {
            if is_backward {
                cursor.prev().map(drop)
            } else {
                cursor.next().map(drop)
            }
        });
        self.arrive(moved)
    }

    /// Moves each cursor but `present` to the other side of the present entry.
    fn turn(&mut self, present: usize, is_backward: bool) -> Result<()> {
        let key = self.cursors[present].key().to_vec();
        for (position, cursor) in self.cursors.iter_mut().enumerate() {
            if position == present {
                continue;
            }
            let is_found = cursor.seek(&key)?;
            let is_before = is_found && cursor.key() == key && position < present;
            match (is_backward, is_before) {
                (false, true) => drop(cursor.next()?),
                (true, false) if is_found => drop(cursor.prev()?),
                (true, false) => drop(cursor.seek_to_last()?),
                _ => {}
            }
        }
        Ok(())
    }

    /// Chooses the present entry after a move of the cursors.
    fn arrive(&mut self, moved: Result<()>) -> Result<bool> {
        if let Err(error) = moved {
            self.failed.get_or_insert(error);
        }
        if let Some(error) = &self.failed {
            return Err(error.duplicate());
        }
        let valid = (0..self.cursors.len()).filter(|&at| self.cursors[at].is_valid());
        let order = |left: &usize, right: &usize| -> Ordering {
            let keys = self.cursors[*left].key().cmp(self.cursors[*right].key());
            keys.then(left.cmp(right))
        };
        self.present = if self.is_backward {
            valid.max_by(order)
        } else {
            valid.min_by(order)
        };
        Ok(self.present.is_some())
    }
}

impl fmt::Debug for MergedCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MergedCursor")
            .field("keyspace", &self.present)
            .finish_non_exhaustive()
    }
}

//! Iterators: a cursor, with the writes of a transaction over it.
//!
//! A cursor stands at an entry of the database, or at none. If the transaction has written entries, the entry of the
//! iterator is either that of the cursor or one of the transaction; the cursor is then anywhere, and each move seeks.
//!
//! After an error an iterator is at no entry and stays there; its error says why.
//!
//! Concurrency: one thread at a time uses an iterator; the handle for C has a lock.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use windrow::{Cursor, Error, Result, Snapshot};
use windrow_ffi::iterator::Entries;
use windrow_ffi::key_order::KeyOrder;

use crate::families::Family;
use crate::options::ReadOptions;
use crate::prefix::Prefix;
use crate::status::{self, unsupported};

/// What a transaction has written: values, and `None` for removed keys.
pub(crate) type Written = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// What an iterator reads.
pub(crate) struct Source {
    family: Arc<Family>,
    snapshot: Option<Snapshot>,
    lower: Option<Vec<u8>>,
    upper: Option<Vec<u8>>,
    /// The prefix extractor, if an iteration ends with the prefix of its first key.
    prefix: Option<Arc<Prefix>>,
    is_tailing: bool,
    written: Option<Written>,
}

impl Source {
    pub(crate) fn new(
        family: &Arc<Family>,
        options: &ReadOptions,
        written: Option<Written>,
    ) -> Result<Self> {
        options.check()?;
        let has_prefix = options.prefix_same_as_start && !options.total_order_seek;
        Ok(Self {
            family: Arc::clone(family),
            snapshot: options.snapshot.clone(),
            lower: options.lower.clone(),
            upper: options.upper.clone(),
            prefix: family.prefix.clone().filter(|_| has_prefix),
            is_tailing: options.is_tailing,
            written,
        })
    }

    fn open(&self) -> Result<Cursor> {
        let lower = self
            .lower
            .as_deref()
            .map_or(Bound::Unbounded, Bound::Included);
        let upper = self
            .upper
            .as_deref()
            .map_or(Bound::Unbounded, Bound::Excluded);
        let keyspace = self.family.keyspace()?;
        match &self.snapshot {
            None => keyspace.range_cursor::<&[u8]>((lower, upper)),
            Some(snapshot) => keyspace.at(snapshot)?.range_cursor::<&[u8]>((lower, upper)),
        }
    }

    /// The writes of the transaction; `None` if there are none.
    fn written(&self) -> Option<&Written> {
        self.written.as_ref().filter(|written| !written.is_empty())
    }
}

#[derive(Clone, PartialEq, Eq)]
enum Position {
    None,
    /// At the entry of the cursor.
    Cursor,
    /// At this key of the transaction.
    Written(Vec<u8>),
}

impl Position {
    fn of_cursor(is_valid: bool) -> Self {
        if is_valid { Self::Cursor } else { Self::None }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

/// An iterator over the entries of a column family in one state.
pub(crate) struct EntryIterator {
    /// `None` after a failed creation.
    source: Option<(Source, Cursor)>,
    position: Position,
    /// The prefix that all entries must have.
    prefix: Option<Vec<u8>>,
    /// The first error.
    error: Option<String>,
}

impl EntryIterator {
    pub(crate) fn new(source: Result<Source>) -> Self {
        let opened = source.and_then(|source| {
            let cursor = source.open()?;
            Ok((source, cursor))
        });
        let (source, error) = match opened {
            Ok(source) => (Some(source), None),
            Err(error) => (None, Some(status::text(&error))),
        };
        Self {
            source,
            position: Position::None,
            prefix: None,
            error,
        }
    }

    /// Reads the newest state from now on. The iterator is at no entry then.
    pub(crate) fn refresh(&mut self) -> Result<()> {
        self.position = Position::None;
        let Some((source, cursor)) = &mut self.source else {
            return Err(Error::invalid_argument("the iterator has no source"));
        };
        if source.written.is_some() {
            return Err(unsupported(
                "the iterator of a transaction cannot be refreshed",
            ));
        }
        source.snapshot = None;
        *cursor = source.open()?;
        self.error = None;
        Ok(())
    }

    pub(crate) fn seek_to_first(&mut self) {
        self.go(&Start::Any, |source, cursor, _| {
            source.follow(cursor)?;
            let found = cursor.seek_to_first()?;
            source.settle(cursor, found, Direction::Forward, Bound::Unbounded)
        });
    }

    pub(crate) fn seek_to_last(&mut self) {
        self.go(&Start::Any, |source, cursor, _| {
            source.refuse_backward()?;
            let found = cursor.seek_to_last()?;
            source.settle(cursor, found, Direction::Backward, Bound::Unbounded)
        });
    }

    /// Moves to the first entry whose key is `key` or greater.
    pub(crate) fn seek(&mut self, key: &[u8]) {
        self.go(&Start::Key(key), |source, cursor, _| {
            source.follow(cursor)?;
            let found = cursor.seek(key)?;
            source.settle(cursor, found, Direction::Forward, Bound::Included(key))
        });
    }

    /// Moves to the last entry whose key is `key` or smaller.
    pub(crate) fn seek_for_prev(&mut self, key: &[u8]) {
        self.go(&Start::Key(key), |source, cursor, _| {
            source.refuse_backward()?;
            let found = if cursor.seek(key)? {
                cursor.key() == key || cursor.prev()?
            } else {
                cursor.seek_to_last()?
            };
            source.settle(cursor, found, Direction::Backward, Bound::Included(key))
        });
    }

    pub(crate) fn next(&mut self) {
        self.go(&Start::Step, |source, cursor, position| {
            if source.is_tailing && position == Position::Cursor {
                let key = cursor.key().to_vec();
                source.follow(cursor)?;
                let found = seek_behind(cursor, &key)?;
                return Ok(Position::of_cursor(found));
            }
            let (found, key) = match position {
                Position::None => return Ok(Position::None),
                Position::Cursor if source.written().is_none() => {
                    return cursor.next().map(Position::of_cursor);
                }
                Position::Cursor => {
                    let key = cursor.key().to_vec();
                    (cursor.next()?, key)
                }
                Position::Written(key) => (seek_behind(cursor, &key)?, key),
            };
            source.settle(cursor, found, Direction::Forward, Bound::Excluded(&key))
        });
    }

    pub(crate) fn prev(&mut self) {
        self.go(&Start::Step, |source, cursor, position| {
            source.refuse_backward()?;
            let (found, key) = match position {
                Position::None => return Ok(Position::None),
                Position::Cursor if source.written().is_none() => {
                    return cursor.prev().map(Position::of_cursor);
                }
                Position::Cursor => {
                    let key = cursor.key().to_vec();
                    (cursor.prev()?, key)
                }
                Position::Written(key) => {
                    let found = if cursor.seek(&key)? {
                        cursor.prev()?
                    } else {
                        cursor.seek_to_last()?
                    };
                    (found, key)
                }
            };
            source.settle(cursor, found, Direction::Backward, Bound::Excluded(&key))
        });
    }

    /// Moves the iterator. It stays at no entry after an error, and ends where the prefix does.
    fn go(
        &mut self,
        start: &Start<'_>,
        movement: impl FnOnce(&Source, &mut Cursor, Position) -> Result<Position>,
    ) {
        let before = (self.order().is_some() && matches!(start, Start::Step))
            .then(|| self.key().map(<[u8]>::to_vec))
            .flatten();
        let position = std::mem::replace(&mut self.position, Position::None);
        if self.error.is_some() {
            return;
        }
        let Some((source, cursor)) = &mut self.source else {
            return;
        };
        match movement(source, cursor, position) {
            Ok(position) => self.position = position,
            Err(error) => return self.fail(status::text(&error)),
        }
        if let Err(error) = self.check_order(start, before.as_deref()) {
            return self.fail(status::text(&error));
        }
        self.end_with_prefix(start);
    }

    fn order(&self) -> Option<&KeyOrder> {
        let (source, _) = self.source.as_ref()?;
        source.family.order.as_ref().map(|order| &**order.order())
    }

    /// Compares the keys before and after a move by a custom comparator.
    fn check_order(&self, start: &Start<'_>, before: Option<&[u8]>) -> Result<()> {
        let before = match start {
            Start::Key(key) => Some(*key),
            Start::Any | Start::Step => before,
        };
        match (self.order(), before, self.key()) {
            (Some(order), Some(before), Some(key)) => order.check(before, key),
            _ => Ok(()),
        }
    }

    fn end_with_prefix(&mut self, start: &Start<'_>) {
        let Some((source, _)) = &self.source else {
            return;
        };
        let Some(prefix) = source.prefix.clone() else {
            return;
        };
        let own = |key: &[u8]| prefix.of(key).map(Cow::into_owned);
        let found = self.key().map(own);
        match start {
            Start::Any => self.prefix = found.clone().flatten(),
            Start::Key(key) => self.prefix = own(key),
            Start::Step => {}
        }
        if self.prefix.is_some() && found.is_some_and(|found| found != self.prefix) {
            self.position = Position::None;
        }
    }
}

/// Where a move begins.
enum Start<'a> {
    /// At either end.
    Any,
    /// At a key.
    Key(&'a [u8]),
    /// At the entry of the iterator.
    Step,
}

/// Moves to the first entry behind `key`.
fn seek_behind(cursor: &mut Cursor, key: &[u8]) -> Result<bool> {
    let found = cursor.seek(key)?;
    if found && cursor.key() == key {
        return cursor.next();
    }
    Ok(found)
}

impl Source {
    /// Takes the newest state, for a tailing iterator.
    fn follow(&self, cursor: &mut Cursor) -> Result<()> {
        if self.is_tailing {
            *cursor = self.open()?;
        }
        Ok(())
    }

    fn refuse_backward(&self) -> Result<()> {
        if self.is_tailing {
            return Err(unsupported("a tailing iterator moves forward only"));
        }
        Ok(())
    }

    /// The position from `from` on, where the cursor is at the entry of the database that comes next, if `is_valid`.
    fn settle(
        &self,
        cursor: &mut Cursor,
        is_valid: bool,
        direction: Direction,
        from: Bound<&[u8]>,
    ) -> Result<Position> {
        let Some(written) = self.written() else {
            return Ok(Position::of_cursor(is_valid));
        };
        let mut is_valid = is_valid;
        let mut candidates: Box<dyn Iterator<Item = _>> = match direction {
            Direction::Forward => Box::new(written.range::<[u8], _>((from, Bound::Unbounded))),
            Direction::Backward => {
                Box::new(written.range::<[u8], _>((Bound::Unbounded, from)).rev())
            }
        };
        loop {
            let Some((key, value)) = candidates.next() else {
                return Ok(Position::of_cursor(is_valid));
            };
            let is_first = is_valid
                && match direction {
                    Direction::Forward => cursor.key() < &key[..],
                    Direction::Backward => cursor.key() > &key[..],
                };
            if is_first {
                return Ok(Position::Cursor);
            }
            if value.is_some() {
                return Ok(Position::Written(key.clone()));
            }
            // The transaction has removed the key.
            if is_valid && cursor.key() == &key[..] {
                is_valid = match direction {
                    Direction::Forward => cursor.next()?,
                    Direction::Backward => cursor.prev()?,
                };
            }
        }
    }
}

impl Entries for EntryIterator {
    fn key(&self) -> Option<&[u8]> {
        match (&self.position, &self.source) {
            (Position::Cursor, Some((_, cursor))) => Some(cursor.key()),
            (Position::Written(key), _) => Some(key),
            _ => None,
        }
    }

    fn value(&mut self) -> Option<&[u8]> {
        match (&self.position, &self.source) {
            (Position::Cursor, Some((_, cursor))) => match cursor.value() {
                Ok(value) => Some(value),
                Err(error) => {
                    self.error.get_or_insert_with(|| status::text(&error));
                    None
                }
            },
            (Position::Written(key), Some((source, _))) => {
                source.written.as_ref()?.get(key)?.as_deref()
            }
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

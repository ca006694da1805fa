//! An iteration that goes both ways: a place between two entries, and entries that were read ahead of it.
//!
//! Invariant: the place is behind the last entry that was taken, in the direction in which it was taken. So a step back
//! gives that entry again. Entries that were read ahead lie on the other side of the place, in the direction of the last
//! step.
//!
//! Errors: what was read before an error can still be taken; the next read meets the error again. A value that cannot be
//! read is passed: its error comes once, and then the place is behind its entry. After an error of a move the cursor, and
//! so every later read, has the error, too.
//!
//! Concurrency: owned by one iterator.

use std::ops::Range;

use windrow::Result;
use windrow_ffi::moves::Moves;

/// The most entries that are read ahead.
const AHEAD_MAX: usize = 256;

/// No entry is read ahead after this many bytes.
const AHEAD_BYTES: usize = 64 << 10;

/// In the order of keys, or against it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward,
    Backward,
}

impl Direction {
    pub(crate) fn new(reverse: bool) -> Self {
        if reverse {
            Self::Backward
        } else {
            Self::Forward
        }
    }

    pub(crate) fn opposite(self) -> Self {
        match self {
            Self::Forward => Self::Backward,
            Self::Backward => Self::Forward,
        }
    }
}

/// A place between two entries.
#[derive(Debug)]
enum Place {
    Start,
    Before(Vec<u8>),
    After(Vec<u8>),
    End,
}

/// The state of an iteration.
#[derive(Debug)]
pub(crate) struct Iteration {
    /// Keys and values that were read ahead, one after the other.
    bytes: Vec<u8>,
    entries: Vec<(Range<usize>, Range<usize>)>,
    /// How many of the entries were taken.
    taken: usize,
    /// In which the entries were read.
    direction: Direction,
    /// Where the first entry was read from.
    place: Place,
    /// Whether the cursor is at the last entry that was read.
    is_positioned: bool,
    /// How many entries are read at once: 1 if nothing may be read ahead.
    ahead: usize,
    ahead_max: usize,
    with_values: bool,
}

impl Iteration {
    pub(crate) fn new(reads_ahead: bool, direction: Direction, with_values: bool) -> Self {
        Self {
            bytes: Vec::new(),
            entries: Vec::new(),
            taken: 0,
            direction,
            place: match direction {
                Direction::Forward => Place::Start,
                Direction::Backward => Place::End,
            },
            is_positioned: false,
            ahead: if reads_ahead { 4 } else { 1 },
            ahead_max: if reads_ahead { AHEAD_MAX } else { 1 },
            with_values,
        }
    }

    /// Moves to the start or end.
    pub(crate) fn go_to_end(&mut self, direction: Direction) {
        self.go_to(match direction {
            Direction::Forward => Place::End,
            Direction::Backward => Place::Start,
        });
    }

    /// Moves to the place before `key`.
    pub(crate) fn go_before(&mut self, key: &[u8]) {
        self.go_to(Place::Before(key.to_vec()));
    }

    fn go_to(&mut self, place: Place) {
        self.place = place;
        self.forget();
    }

    fn forget(&mut self) {
        self.bytes.clear();
        self.entries.clear();
        self.taken = 0;
        self.is_positioned = false;
    }

    /// The next entry that was read ahead in this direction, key and value. `None` means that [`read`](Self::read) must
    /// look.
    pub(crate) fn take(&mut self, direction: Direction) -> Option<(&[u8], &[u8])> {
        if direction != self.direction {
            return None;
        }
        let (key, value) = self.entries.get(self.taken)?.clone();
        self.taken += 1;
        Some((&self.bytes[key], &self.bytes[value]))
    }

    /// The bytes of the entry that was taken last.
    pub(crate) fn taken_bytes(&self) -> usize {
        let taken = self.taken.checked_sub(1);
        let taken = taken.and_then(|last| self.entries.get(last));
        taken.map_or(0, |(key, value)| key.len() + value.len())
    }

    /// Reads entries ahead in this direction. Afterwards there is one to take, or the iteration is at its end.
    pub(crate) fn read<M: Moves>(&mut self, cursor: &mut M, direction: Direction) -> Result<()> {
        let goes_on = direction == self.direction && self.is_positioned;
        self.settle();
        self.direction = direction;
        let mut found = if goes_on {
            step(cursor, direction)?
        } else {
            self.position(cursor, direction)?
        };
        while found {
            if let Err(error) = self.push(cursor) {
                if self.entries.is_empty() {
                    self.pass(cursor.key().to_vec());
                    return Err(error);
                }
                // The next read begins with this entry.
                self.is_positioned = false;
                break;
            }
            self.is_positioned = true;
            if self.entries.len() == self.ahead || self.bytes.len() >= AHEAD_BYTES {
                break;
            }
            // The next read meets the error again.
            found = step(cursor, direction).unwrap_or(false);
            self.is_positioned = found;
        }
        if self.entries.is_empty() {
            self.go_to_end(direction);
        } else {
            self.ahead = (self.ahead * 4).min(self.ahead_max);
        }
        Ok(())
    }

    /// Notes the present place, and forgets what was read.
    fn settle(&mut self) {
        if let Some((key, _)) = self
            .taken
            .checked_sub(1)
            .and_then(|last| self.entries.get(last))
        {
            let key = self.bytes[key.clone()].to_vec();
            self.pass(key);
        }
        self.forget();
    }

    /// Moves behind the entry of `key`, in the present direction.
    fn pass(&mut self, key: Vec<u8>) {
        self.place = match self.direction {
            Direction::Forward => Place::After(key),
            Direction::Backward => Place::Before(key),
        };
    }

    /// Moves the cursor from the present place to the next entry in this direction.
    fn position<M: Moves>(&self, cursor: &mut M, direction: Direction) -> Result<bool> {
        match (direction, &self.place) {
            (Direction::Forward, Place::End) | (Direction::Backward, Place::Start) => Ok(false),
            (Direction::Forward, Place::Start) => cursor.seek_to_first(),
            (Direction::Backward, Place::End) => cursor.seek_to_last(),
            (Direction::Forward, Place::Before(key)) => cursor.seek(key),
            (Direction::Forward, Place::After(key)) => {
                let found = cursor.seek(key)?;
                if found && cursor.key() == key {
                    cursor.next()
                } else {
                    Ok(found)
                }
            }
            (Direction::Backward, Place::Before(key)) => cursor.seek_before(key),
            (Direction::Backward, Place::After(key)) => {
                if !cursor.seek(key)? {
                    cursor.seek_to_last()
                } else if cursor.key() == key {
                    Ok(true)
                } else {
                    cursor.prev()
                }
            }
        }
    }

    fn push<M: Moves>(&mut self, cursor: &M) -> Result<()> {
        let value = if self.with_values {
            cursor.value()?
        } else {
            &[]
        };
        let start = self.bytes.len();
        self.bytes.extend_from_slice(cursor.key());
        let middle = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.entries.push((start..middle, middle..self.bytes.len()));
        Ok(())
    }
}

fn step<M: Moves>(cursor: &mut M, direction: Direction) -> Result<bool> {
    match direction {
        Direction::Forward => cursor.next(),
        Direction::Backward => cursor.prev(),
    }
}

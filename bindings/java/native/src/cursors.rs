//! Cursors. A read moves a cursor, and goes on in the same direction until it has many entries: they cross the border as
//! one array.
//!
//! Errors: a read that has entries ends before an error, and the next one begins with it. A value that cannot be read is
//! passed: its error comes once.
//!
//! Concurrency: a lock for each cursor.

use std::sync::{Mutex, MutexGuard, PoisonError};

use jni::objects::JByteArray;
use jni::sys::jlong;
use windrow::{Cursor, Error, Result, View};
use windrow_ffi::moves::Moves;

use crate::arguments::{Bytes, Keys};
use crate::handles::method;
use crate::handles::{Handle, give};
use crate::packed::push;

/// No entry is added to a read after this many bytes.
const READ_BYTES: usize = 64 << 10;

/// Where a read begins. The numbers are those of the class `Reader`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Move {
    First,
    Last,
    /// At the first entry that is not less than a key.
    From,
    /// At the last entry that is less than a key.
    Before,
    /// Behind the entry of the last read, in the order of keys.
    Next,
    /// The same, against the order of keys.
    Previous,
}

impl Move {
    pub(crate) fn new(number: i32) -> Result<Self> {
        let moves = [
            Self::First,
            Self::Last,
            Self::From,
            Self::Before,
            Self::Next,
            Self::Previous,
        ];
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        let found = moves.get(number).copied();
        found.ok_or_else(|| Error::invalid_argument("there is no such move"))
    }

    fn is_forward(self) -> bool {
        matches!(self, Self::First | Self::From | Self::Next)
    }
}

/// What a cursor has read.
#[derive(Default)]
pub(crate) struct Entries {
    /// A byte, which is 1 if there is no entry behind these, and then keys and values, each behind its length.
    bytes: Vec<u8>,
    /// Whether the cursor is at an entry that was not read yet.
    is_ahead: bool,
}

impl Entries {
    /// Moves the cursor, and reads up to `count` entries.
    pub(crate) fn read<M: Moves>(
        &mut self,
        cursor: &mut M,
        begin: Move,
        key: &[u8],
        count: i32,
    ) -> Result<&[u8]> {
        self.bytes.clear();
        self.bytes.push(0);
        let was_ahead = std::mem::take(&mut self.is_ahead);
        let mut found = match begin {
            Move::First => cursor.seek_to_first()?,
            Move::Last => cursor.seek_to_last()?,
            Move::From => cursor.seek(key)?,
            Move::Before => cursor.seek_before(key)?,
            Move::Next | Move::Previous if was_ahead => true,
            Move::Next => cursor.next()?,
            Move::Previous => cursor.prev()?,
        };
        let mut read = 0;
        while found {
            if let Err(error) = self.push(cursor) {
                if read == 0 {
                    return Err(error);
                }
                self.is_ahead = true;
                return Ok(&self.bytes);
            }
            read += 1;
            if read >= count || self.bytes.len() >= READ_BYTES {
                return Ok(&self.bytes);
            }
            let step = if begin.is_forward() {
                cursor.next()
            } else {
                cursor.prev()
            };
            match step {
                Ok(step) => found = step,
                // The next read meets the error again.
                Err(_) => return Ok(&self.bytes),
            }
        }
        self.bytes[0] = 1;
        Ok(&self.bytes)
    }

    fn push<M: Moves>(&mut self, cursor: &M) -> Result<()> {
        let value = cursor.value()?;
        push(&mut self.bytes, cursor.key())?;
        push(&mut self.bytes, value)
    }
}

/// A cursor of a view.
pub(crate) struct SharedCursor(Mutex<(Cursor, Entries)>);

impl SharedCursor {
    fn lock(&self) -> MutexGuard<'_, (Cursor, Entries)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

method!(Java_io_windrow_Native_cursor, env, view: Handle<View>, start: JByteArray<'local>, end: JByteArray<'local>; jlong, {
    let keys = Keys::new(env, &start, &end)?;
    let cursor = view.range_cursor::<&[u8]>(keys.bounds())?;
    Ok(give(SharedCursor(Mutex::new((cursor, Entries::default())))))
});

method!(Java_io_windrow_Native_read, env, cursor: Handle<SharedCursor>, begin: i32, key: JByteArray<'local>, count: i32; JByteArray<'local>, {
    let begin = Move::new(begin)?;
    let key = Bytes::optional(env, &key)?;
    let mut state = cursor.lock();
    let (cursor, entries) = &mut *state;
    let read = entries.read(cursor, begin, key.as_deref().unwrap_or_default(), count)?;
    Ok(env.byte_array_from_slice(read)?)
});

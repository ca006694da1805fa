//! Keys, values and writes in one buffer. All numbers have four bytes, the lowest first.
//!
//! - Keys: for each its length, and the key.
//! - Writes: for each a byte for its kind, then by kind:
//!   - 0, a removal: the length of the key, and the key;
//!   - 1, a value, and 2, an operand: the lengths of both, the key and the value or operand;
//!   - 3, a value that expires: its time to live in milliseconds as a double of eight bytes, then as 1;
//!   - 4, a removal of a range: the flags of its bounds (1 and 2: there is a lower one, and it is included; 4 and 8: as
//!     much of an upper one), the lengths of both, and both;
//!   - 5: the writes that follow are of the keyspace with this number; before, they are of the first one.
//! - Writes of a change: for each its kind (0 put, 1 removal, 2 merge, 3 range), the position of its keyspace, the length of the
//!   key, and that of the value and one, or zero if there is none; when it expires as a number of eight bytes, in milliseconds
//!   since 1970, or zero; then the key and the value. The value of a range is the key behind it.
//! - Values: for each its length and one, or zero if there is none; then the value.
//! - Entries: twice their number, and one if they are the last ones; then for each both lengths, the key and the value.
//!
//! `lib/packed.js` is the other side.
//!
//! Concurrency: no state.

use std::ops::Bound;
use std::time::Duration;

use windrow::{Error, Result};
use windrow_ffi::leveldb::Bounds;

/// The most bytes that one answer has.
const ANSWER_BYTES_MAX: usize = 2 << 30;

/// One write of a buffer.
pub(crate) enum Write<'a> {
    Remove(&'a [u8]),
    Put(&'a [u8], &'a [u8]),
    Merge(&'a [u8], &'a [u8]),
    PutFor(Duration, &'a [u8], &'a [u8]),
    RemoveRange(Bounds<'a>),
    /// The writes that follow are of this keyspace.
    In(usize),
}

/// The keys or writes of a buffer.
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(packed: &'a [u8]) -> Self {
        Self(packed)
    }

    /// The next key, if there is one.
    pub(crate) fn key(&mut self) -> Result<Option<&'a [u8]>> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let length = self.number()?;
        self.take(length).map(Some)
    }

    /// The next write, if there is one.
    pub(crate) fn write(&mut self) -> Result<Option<Write<'a>>> {
        let Some((kind, rest)) = self.0.split_first() else {
            return Ok(None);
        };
        self.0 = rest;
        Ok(Some(match kind {
            0 => {
                let length = self.number()?;
                Write::Remove(self.take(length)?)
            }
            1 => {
                let (key, value) = self.pair()?;
                Write::Put(key, value)
            }
            2 => {
                let (key, operand) = self.pair()?;
                Write::Merge(key, operand)
            }
            3 => {
                let ttl = milliseconds(f64::from_le_bytes(*self.array()?))?;
                let (key, value) = self.pair()?;
                Write::PutFor(ttl, key, value)
            }
            4 => {
                let flags = self.number()?;
                let (lower, upper) = self.pair()?;
                Write::RemoveRange((bound(flags, lower), bound(flags >> 2, upper)))
            }
            5 => Write::In(self.number()?),
            _ => return Err(Error::invalid_argument("a write has an unknown kind")),
        }))
    }

    /// Two that follow their lengths.
    fn pair(&mut self) -> Result<(&'a [u8], &'a [u8])> {
        let (first, second) = (self.number()?, self.number()?);
        Ok((self.take(first)?, self.take(second)?))
    }

    fn number(&mut self) -> Result<usize> {
        Ok(u32::from_le_bytes(*self.array()?) as usize)
    }

    fn array<const N: usize>(&mut self) -> Result<&'a [u8; N]> {
        let (array, rest) = self.0.split_first_chunk().ok_or_else(cut)?;
        self.0 = rest;
        Ok(array)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or_else(cut)?;
        self.0 = rest;
        Ok(taken)
    }
}

fn bound(flags: usize, key: &[u8]) -> Bound<&[u8]> {
    match flags & 3 {
        1 => Bound::Excluded(key),
        3 => Bound::Included(key),
        _ => Bound::Unbounded,
    }
}

/// So many milliseconds.
///
/// # Errors
/// `InvalidArgument` if they are negative, or no number.
pub(crate) fn milliseconds(number: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(number / 1000.0).map_err(|error| {
        Error::invalid_argument(format!("{number} milliseconds are no time: {error}"))
    })
}

fn cut() -> Error {
    Error::invalid_argument("the buffer ends in the middle")
}

/// Values, one after the other.
#[derive(Default)]
pub(crate) struct Values(Vec<u8>);

impl Values {
    /// Adds a value, or that there is none.
    ///
    /// # Errors
    /// `InvalidArgument` if all together are too long for one buffer.
    pub(crate) fn push(&mut self, value: Option<&[u8]>) -> Result<()> {
        match value {
            None => self.0.extend_from_slice(&0_u32.to_le_bytes()),
            Some(value) => {
                if self.0.len() + value.len() > ANSWER_BYTES_MAX {
                    return Err(Error::invalid_argument(
                        "the values of these keys have more than 2 GiB: get fewer keys at once",
                    ));
                }
                self.0.extend_from_slice(&number(value.len() + 1));
                self.0.extend_from_slice(value);
            }
        }
        Ok(())
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// A write of a change.
pub(crate) struct ChangeWrite<'a> {
    pub(crate) kind: u8,
    /// The position of its keyspace.
    pub(crate) keyspace: usize,
    pub(crate) key: &'a [u8],
    pub(crate) value: Option<&'a [u8]>,
    /// When it expires, since 1970.
    pub(crate) expires_at: Option<Duration>,
}

/// Writes of a change, one after the other.
#[derive(Default)]
pub(crate) struct ChangeWrites(Vec<u8>);

impl ChangeWrites {
    /// Adds a write.
    ///
    /// # Errors
    /// `InvalidArgument` if all together are too long for one buffer.
    pub(crate) fn push(&mut self, write: &ChangeWrite<'_>) -> Result<()> {
        let value = write.value.unwrap_or_default();
        if self.0.len() + write.key.len() + value.len() > ANSWER_BYTES_MAX {
            let message = "the writes of the change have more than 2 GiB";
            return Err(Error::invalid_argument(message));
        }
        let length = write.value.map_or(0, |value| value.len() + 1);
        for part in [write.kind.into(), write.keyspace, write.key.len(), length] {
            self.0.extend_from_slice(&number(part));
        }
        let milliseconds = write
            .expires_at
            .map_or(0, |since_1970| since_1970.as_millis());
        let milliseconds = u64::try_from(milliseconds).unwrap_or(u64::MAX);
        self.0.extend_from_slice(&milliseconds.to_le_bytes());
        self.0.extend_from_slice(write.key);
        self.0.extend_from_slice(value);
        Ok(())
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// Entries, one after the other.
pub(crate) struct Entries {
    packed: Vec<u8>,
    count: usize,
    /// Of keys and values.
    bytes: usize,
}

impl Entries {
    pub(crate) fn new() -> Self {
        Self {
            packed: vec![0; 4],
            count: 0,
            bytes: 0,
        }
    }

    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) {
        self.packed.reserve(8 + key.len() + value.len());
        self.packed.extend_from_slice(&number(key.len()));
        self.packed.extend_from_slice(&number(value.len()));
        self.packed.extend_from_slice(key);
        self.packed.extend_from_slice(value);
        self.count += 1;
        self.bytes += key.len() + value.len();
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The buffer. `are_last` says that no entry follows.
    pub(crate) fn into_bytes(mut self, are_last: bool) -> Vec<u8> {
        let header = number(2 * self.count + usize::from(are_last));
        self.packed[..4].copy_from_slice(&header);
        self.packed
    }
}

/// A number that is below 2^32: lengths are at most 1 GiB, and so are counts of entries.
fn number(number: usize) -> [u8; 4] {
    u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes()
}

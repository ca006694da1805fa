//! Write batches, in the bytes that RocksDB writes: 8 bytes for a sequence number, 4 for the number of writes (both
//! little-endian), then the records. A record is a tag, the id of a column family unless it is 0, and one or two byte
//! strings with their lengths. Ids and lengths are variable-length numbers: 7 bits in each byte, the lowest first.
//!
//! So a batch needs no database, and its bytes are those that programs which ship batches know.
//!
//! I1. `count` is the number of records that write something; those with log data do not count.
//!
//! Concurrency: owned by one thread, or read by several.

use windrow::{Error, ErrorKind, Result};

/// The id of the column family `default`.
pub(crate) const DEFAULT_FAMILY: u32 = 0;

const COUNT_AT: usize = 8;
const HEADER_BYTES: usize = 12;

/// Tags of records of `default`, and of those with the id of a family.
const DELETE: (u8, u8) = (0x0, 0x4);
const PUT: (u8, u8) = (0x1, 0x5);
const MERGE: (u8, u8) = (0x2, 0x6);
const SINGLE_DELETE: (u8, u8) = (0x7, 0x8);
const DELETE_RANGE: (u8, u8) = (0xf, 0xe);
const LOG_DATA: u8 = 0x3;
const NOOP: u8 = 0xd;

/// What a record does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Write<'a> {
    /// Sets the value of a key.
    Put(&'a [u8], &'a [u8]),
    /// Adds an operand to a key.
    Merge(&'a [u8], &'a [u8]),
    /// Removes a key.
    Delete(&'a [u8]),
    /// Removes a key that was set once.
    SingleDelete(&'a [u8]),
    /// Removes the keys from the first to before the second.
    DeleteRange(&'a [u8], &'a [u8]),
}

impl<'a> Write<'a> {
    fn tag(self, family: u32) -> u8 {
        let tags = match self {
            Self::Put(..) => PUT,
            Self::Merge(..) => MERGE,
            Self::Delete(_) => DELETE,
            Self::SingleDelete(_) => SINGLE_DELETE,
            Self::DeleteRange(..) => DELETE_RANGE,
        };
        if family == DEFAULT_FAMILY {
            tags.0
        } else {
            tags.1
        }
    }

    /// Its byte strings.
    fn parts(self) -> (&'a [u8], Option<&'a [u8]>) {
        match self {
            Self::Put(key, value) | Self::Merge(key, value) | Self::DeleteRange(key, value) => {
                (key, Some(value))
            }
            Self::Delete(key) | Self::SingleDelete(key) => (key, None),
        }
    }
}

/// A place to which a batch can be rolled back.
#[derive(Debug, Clone, Copy)]
struct SavePoint {
    length: usize,
    count: u32,
}

/// Writes in the order in which they were added.
#[derive(Debug, Clone)]
pub(crate) struct WriteBatch {
    bytes: Vec<u8>,
    /// The most bytes that it may have; 0 for no limit.
    bytes_max: usize,
    save_points: Vec<SavePoint>,
    /// The first write that could not be added.
    fault: Option<String>,
}

impl Default for WriteBatch {
    fn default() -> Self {
        Self::new(HEADER_BYTES, 0)
    }
}

impl WriteBatch {
    /// An empty batch with space for `reserved_bytes`, and at most `bytes_max` (0 for no limit).
    pub(crate) fn new(reserved_bytes: usize, bytes_max: usize) -> Self {
        let mut bytes = Vec::new();
        // What there is no memory for is not reserved.
        drop(bytes.try_reserve(reserved_bytes.max(HEADER_BYTES)));
        bytes.resize(HEADER_BYTES, 0);
        Self {
            bytes,
            bytes_max,
            save_points: Vec::new(),
            fault: None,
        }
    }

    /// The batch with these bytes. Damage shows when it is written.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        let mut batch = Self::default();
        if bytes.len() < HEADER_BYTES {
            batch.add_fault(|| "the bytes of a batch are too short".to_owned());
        } else {
            bytes.clone_into(&mut batch.bytes);
        }
        batch
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn count(&self) -> u32 {
        let count = self.bytes[COUNT_AT..HEADER_BYTES].try_into();
        count.map_or(0, u32::from_le_bytes)
    }

    fn set_count(&mut self, count: u32) {
        self.bytes[COUNT_AT..HEADER_BYTES].copy_from_slice(&count.to_le_bytes());
    }

    /// Sets the number of the first write, which a batch has when it comes out of a log.
    pub(crate) fn set_sequence(&mut self, sequence: u64) {
        self.bytes[..COUNT_AT].copy_from_slice(&sequence.to_le_bytes());
    }

    pub(crate) fn add(&mut self, family: u32, write: Write<'_>) {
        let before = self.bytes.len();
        self.bytes.push(write.tag(family));
        if family != DEFAULT_FAMILY {
            put_number(&mut self.bytes, u64::from(family));
        }
        let (first, second) = write.parts();
        put_string(&mut self.bytes, first);
        if let Some(second) = second {
            put_string(&mut self.bytes, second);
        }
        if self.is_in_limit(before) {
            self.set_count(self.count().wrapping_add(1));
        }
    }

    /// Adds bytes that are no write. Windrow's log does not keep them.
    pub(crate) fn add_log_data(&mut self, data: &[u8]) {
        let before = self.bytes.len();
        self.bytes.push(LOG_DATA);
        put_string(&mut self.bytes, data);
        self.is_in_limit(before);
    }

    /// Takes the last record back if the batch is too long with it.
    fn is_in_limit(&mut self, before: usize) -> bool {
        let max = if self.bytes_max == 0 {
            usize::MAX
        } else {
            self.bytes_max
        };
        if self.bytes.len() <= max {
            return true;
        }
        self.bytes.truncate(before);
        self.add_fault(|| format!("the batch would have more than {max} bytes"));
        false
    }

    /// Notes that a write could not be added: the function of C has no error, so the commit returns it.
    pub(crate) fn add_fault(&mut self, fault: impl FnOnce() -> String) {
        self.fault.get_or_insert_with(fault);
    }

    /// # Errors
    /// `InvalidArgument` if a write could not be added.
    pub(crate) fn check(&self) -> Result<()> {
        match &self.fault {
            None => Ok(()),
            Some(fault) => Err(Error::invalid_argument(fault)),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.truncate(HEADER_BYTES);
        self.bytes.fill(0);
        self.save_points.clear();
        self.fault = None;
    }

    pub(crate) fn set_save_point(&mut self) {
        self.save_points.push(SavePoint {
            length: self.bytes.len(),
            count: self.count(),
        });
    }

    /// Removes what was added after the last save point, and the save point.
    ///
    /// # Errors
    /// `NotFound` without a save point.
    pub(crate) fn roll_back_to_save_point(&mut self) -> Result<()> {
        let SavePoint { length, count } = self.take_save_point()?;
        self.bytes.truncate(length);
        self.set_count(count);
        Ok(())
    }

    /// Forgets the last save point.
    ///
    /// # Errors
    /// `NotFound` without a save point.
    pub(crate) fn pop_save_point(&mut self) -> Result<()> {
        self.take_save_point().map(drop)
    }

    fn take_save_point(&mut self) -> Result<SavePoint> {
        let missing = || Error::new(ErrorKind::NotFound, "there is no save point");
        self.save_points.pop().ok_or_else(missing)
    }

    /// The writes with the ids of their families. The last item is an error if the bytes are damaged.
    pub(crate) fn writes(&self) -> Writes<'_> {
        Writes {
            rest: &self.bytes[HEADER_BYTES..],
            left: self.count(),
            has_failed: false,
        }
    }
}

/// The writes of a batch.
pub(crate) struct Writes<'a> {
    rest: &'a [u8],
    /// How many are left by the count of the batch.
    left: u32,
    has_failed: bool,
}

impl<'a> Writes<'a> {
    /// The next write, or none at the end.
    fn record(&mut self) -> Result<Option<(u32, Write<'a>)>> {
        while !self.rest.is_empty() {
            let tag = self.byte()?;
            let has_family =
                [PUT.1, MERGE.1, DELETE.1, SINGLE_DELETE.1, DELETE_RANGE.1].contains(&tag);
            let family = if has_family {
                u32::try_from(self.number()?).map_err(|_| damaged())?
            } else {
                DEFAULT_FAMILY
            };
            let write = match tag {
                NOOP => continue,
                LOG_DATA => {
                    self.string()?;
                    continue;
                }
                tag if tag == PUT.0 || tag == PUT.1 => Write::Put(self.string()?, self.string()?),
                tag if tag == MERGE.0 || tag == MERGE.1 => {
                    Write::Merge(self.string()?, self.string()?)
                }
                tag if tag == DELETE.0 || tag == DELETE.1 => Write::Delete(self.string()?),
                tag if tag == SINGLE_DELETE.0 || tag == SINGLE_DELETE.1 => {
                    Write::SingleDelete(self.string()?)
                }
                tag if tag == DELETE_RANGE.0 || tag == DELETE_RANGE.1 => {
                    Write::DeleteRange(self.string()?, self.string()?)
                }
                _ => return Err(damaged()),
            };
            // More writes than the batch counts are damage.
            self.left = self.left.checked_sub(1).ok_or_else(damaged)?;
            return Ok(Some((family, write)));
        }
        if self.left > 0 {
            return Err(damaged());
        }
        Ok(None)
    }

    fn byte(&mut self) -> Result<u8> {
        let (&first, rest) = self.rest.split_first().ok_or_else(damaged)?;
        self.rest = rest;
        Ok(first)
    }

    fn number(&mut self) -> Result<u64> {
        let mut number = 0;
        for shift in (0..35).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(damaged())
    }

    fn string(&mut self) -> Result<&'a [u8]> {
        let length = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        let found = self.rest.split_at_checked(length);
        let (string, rest) = found.ok_or_else(damaged)?;
        self.rest = rest;
        Ok(string)
    }
}

fn damaged() -> Error {
    Error::new(ErrorKind::Corruption, "the bytes of a batch are damaged")
}

impl<'a> Iterator for Writes<'a> {
    type Item = Result<(u32, Write<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let record = self.record();
        self.has_failed = record.is_err();
        record.transpose()
    }
}

fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= 7;
        if number == 0 {
            bytes.push(low & 0x7f);
            return;
        }
        bytes.push(low | 0x80);
    }
}

fn put_string(bytes: &mut Vec<u8>, string: &[u8]) {
    put_number(bytes, string.len() as u64);
    bytes.extend_from_slice(string);
}

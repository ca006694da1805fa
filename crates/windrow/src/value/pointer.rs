//! The pointer to a value, which a table holds instead of the value. See "Value files" in `docs/format.md`.
//!
//! Invariants:
//! - I1. A decoded pointer has lengths that a record can have, and its record ends within 64 bits.
//!
//! Concurrency: none; a plain value.

use crate::base::FileNumber;
use crate::base::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use crate::codec::Reader;
use crate::codec::reader::DecodeError;
use crate::codec::varint::put_varint;

use super::meta::ValueFileMeta;

/// The checksum and the compression code of a record.
const RECORD_HEADER_BYTES: usize = 5;

/// The length of a record of an empty value without its key.
pub(super) const RECORD_BYTES_MIN: usize = RECORD_HEADER_BYTES + 2;

/// The length of the longest record. The lengths of its key and value take three and five bytes.
pub(super) const RECORD_BYTES_MAX: usize =
    RECORD_HEADER_BYTES + 3 + KEY_BYTES_MAX + 5 + VALUE_BYTES_MAX;

/// The place of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ValuePointer {
    pub(crate) file: FileNumber,
    /// The offset of its record in the file.
    pub(crate) offset: u64,
    /// The length of the record.
    pub(crate) record_bytes: u64,
    /// The length of the value before compression.
    pub(crate) value_bytes: u64,
}

impl ValuePointer {
    /// Appends the pointer's bytes.
    pub(crate) fn encode(&self, buffer: &mut Vec<u8>) {
        let fields = [
            self.file.0,
            self.offset,
            self.record_bytes,
            self.value_bytes,
        ];
        for field in fields {
            put_varint(buffer, field);
        }
    }

    /// The pointer that is all of `bytes` (I1).
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let file = FileNumber(reader.varint("a pointer has no file")?);
        let offset = reader.varint("a pointer has no offset")?;
        let lengths = reader.clone();
        let record_bytes = reader.varint("a pointer has no length")?;
        let value_bytes = reader.varint("a pointer has no length of its value")?;
        reader.finish("bytes follow a pointer")?;
        let pointer = Self {
            file,
            offset,
            record_bytes,
            value_bytes,
        };
        pointer.check().map_err(|what| lengths.error(what))?;
        Ok(pointer)
    }

    /// Checks I1.
    fn check(&self) -> Result<(), &'static str> {
        let possible = RECORD_BYTES_MIN as u64..=RECORD_BYTES_MAX as u64;
        if !possible.contains(&self.record_bytes)
            || self.value_bytes > VALUE_BYTES_MAX as u64
            || self.offset.checked_add(self.record_bytes).is_none()
        {
            return Err("a pointer has an impossible length");
        }
        Ok(())
    }

    /// Checks I1 and that the record lies in the file that `meta` describes.
    pub(super) fn check_within(&self, meta: &ValueFileMeta) -> Result<(), DecodeError> {
        let damaged = |what| DecodeError::damaged(0, what);
        self.check().map_err(damaged)?;
        if self.file != meta.number {
            return Err(damaged("a pointer leads to another file"));
        }
        if self.offset + self.record_bytes > meta.length {
            return Err(damaged("a pointer leads beyond the end of the records"));
        }
        Ok(())
    }
}

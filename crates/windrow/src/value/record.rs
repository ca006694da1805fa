//! The record of a value in a value file. See "Value files" in `docs/format.md`.
//!
//! Invariants:
//! - I1. A record is sound for one key, file and offset only: they seed the checksum, even if the key
//!   is not stored.
//! - I2. No length is trusted. A value is decompressed only if the pointer and the record agree on its
//!   length, and its codec can produce that length from the stored bytes.
//!
//! Concurrency: none; bytes in, bytes out.

use crate::base::FileNumber;
use crate::base::limits::{KEY_BYTES_MAX, VALUE_BYTES_COMPRESSED_MAX, VALUE_BYTES_MAX};
use crate::codec::checksum::{PartialChecksum, checksum, checksum_of_two, key_hash, seed};
use crate::codec::compression::{Compressor, unpack, unpacked_length, unpacked_length_by_front};
use crate::codec::reader::DecodeError;
use crate::codec::varint::{put_bytes, put_varint};
use crate::codec::{Compression, Reader};
use crate::vfs::WRITE_BYTES;

use super::pointer::{RECORD_BYTES_MIN, ValuePointer};

/// The bytes of the checksum.
const CHECKSUM_BYTES: usize = 4;

/// The seed of the checksum of a record of `key` (I1).
fn seed_for(file: FileNumber, offset: u64, key: &[u8]) -> u64 {
    seed(file.0, 0, offset) ^ key_hash(key)
}

/// Values shorter than this are stored uncompressed.
const COMPRESSED_FROM_BYTES: usize = 256;

/// Encodes one record after the other and reuses its memory.
#[derive(Debug)]
pub(super) struct RecordEncoder {
    compressor: Compressor,
    /// The last record without its stored value.
    head: Vec<u8>,
    /// The last value, compressed.
    packed: Vec<u8>,
}

impl RecordEncoder {
    pub(super) fn new() -> Self {
        Self {
            compressor: Compressor::new(Compression::None),
            head: Vec::new(),
            packed: Vec::new(),
        }
    }

    /// The two parts of the record of `value` at `offset` of `file`: the second is the stored value,
    /// compressed if that saves an eighth. The record is of `key` and holds `stored_key`, the key or
    /// nothing.
    pub(super) fn encode<'a>(
        &'a mut self,
        (file, offset): (FileNumber, u64),
        (key, stored_key): (&[u8], &[u8]),
        value: &'a [u8],
        compression: Compression,
    ) -> (&'a [u8], &'a [u8]) {
        assert!(
            (1..=KEY_BYTES_MAX).contains(&key.len()) && value.len() <= VALUE_BYTES_MAX,
            "a record needs a key and a value within the limits"
        );
        self.packed.clear();
        let mut codec = Compression::None;
        let compressible = COMPRESSED_FROM_BYTES..=VALUE_BYTES_COMPRESSED_MAX;
        if compression != Compression::None && compressible.contains(&value.len()) {
            self.compressor.set_codec(compression);
            codec = self.compressor.append_smaller(value, &mut self.packed);
        }
        let body = match codec {
            Compression::None => value,
            _ => &self.packed,
        };
        let head = &mut self.head;
        head.clear();
        head.extend_from_slice(&[0; CHECKSUM_BYTES]);
        head.push(codec.code());
        put_bytes(head, stored_key);
        put_varint(head, body.len() as u64);
        let sum = checksum_of_two(seed_for(file, offset, key), &head[CHECKSUM_BYTES..], body);
        head[..CHECKSUM_BYTES].copy_from_slice(&sum.to_le_bytes());
        (head, body)
    }

    /// Frees the memory of a long value.
    pub(super) fn trim(&mut self) {
        if self.packed.capacity() > WRITE_BYTES {
            self.packed = Vec::new();
        }
    }

    /// The bytes that the encoder holds in memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.head.capacity() + self.packed.capacity()
    }
}

/// Checks the record of `key` that `pointer` leads to; returns the codec and the stored value, which
/// ends the record.
pub(super) fn verify<'a>(
    record: &'a [u8],
    key: &[u8],
    pointer: &ValuePointer,
) -> Result<(Compression, &'a [u8]), DecodeError> {
    let mut reader = Reader::new(record);
    let sum = reader.u32("a record is shorter than its header")?;
    if checksum(seed_for(pointer.file, pointer.offset, key), reader.rest()) != sum {
        return Err(Reader::new(record).error("a record fails its checksum"));
    }
    let (codec, stored_key, body) = parts(&mut reader)?;
    let end = reader.clone();
    reader.finish("bytes follow the value of a record")?;
    if !stored_key.is_empty() && stored_key != key {
        return Err(end.error("a record is of another key"));
    }
    if value_bytes(codec, body)? as u64 != pointer.value_bytes {
        return Err(end.error("a value does not have the length of its pointer"));
    }
    Ok((codec, body))
}

/// The codec, the stored key and the stored value, which follow the checksum.
fn parts<'a>(reader: &mut Reader<'a>) -> Result<(Compression, &'a [u8], &'a [u8]), DecodeError> {
    let (codec, stored_key) = front(reader)?;
    let body = reader.prefixed_bytes(VALUE_BYTES_MAX, "a record has no value")?;
    Ok((codec, stored_key, body))
}

/// The codec and the stored key, which are between the checksum and the stored value.
fn front<'a>(reader: &mut Reader<'a>) -> Result<(Compression, &'a [u8]), DecodeError> {
    let start = reader.clone();
    let code = reader.u8("a record is shorter than its header")?;
    let codec = Compression::from_code(code)
        .ok_or_else(|| start.unsupported("a value is compressed with an unknown codec"))?;
    let stored_key = reader.prefixed_bytes(KEY_BYTES_MAX, "a record has no key")?;
    Ok((codec, stored_key))
}

/// The length of the value whose stored form is `body`.
fn value_bytes(codec: Compression, body: &[u8]) -> Result<usize, DecodeError> {
    match codec {
        Compression::None => Ok(body.len()),
        _ => unpacked_length(codec, body),
    }
}

/// What the front of a record says of it.
#[derive(Debug)]
pub(super) struct Outline<'a> {
    /// Empty if the record holds none.
    pub(super) key: &'a [u8],
    pub(super) record_bytes: u64,
    /// The length of the value before compression.
    pub(super) value_bytes: u64,
}

/// The most bytes that the [outline](outline) of a record needs.
pub(crate) const RECORD_HEAD_BYTES_MAX: usize = RECORD_BYTES_MIN + 3 + KEY_BYTES_MAX + 10 + 16;

/// The outline of the record at the front of `bytes`, which need to hold only the first bytes of its
/// value.
pub(super) fn outline(bytes: &[u8]) -> Result<Outline<'_>, DecodeError> {
    let mut reader = Reader::new(bytes);
    reader.u32("a record is shorter than its header")?;
    let (codec, key) = front(&mut reader)?;
    let start = reader.clone();
    let body_bytes = reader.varint_at_most(VALUE_BYTES_MAX as u64, "a record has no value")?;
    let length = usize::try_from(body_bytes).map_err(|_| start.error("a value is too long"))?;
    let value_bytes = match codec {
        Compression::None => length,
        _ => unpacked_length_by_front(codec, reader.rest(), length)?,
    };
    Ok(Outline {
        key,
        record_bytes: reader.position() as u64 + body_bytes,
        value_bytes: value_bytes as u64,
    })
}

/// The length of the record at the front of `bytes`, if they look like one.
pub(crate) fn record_bytes(bytes: &[u8]) -> Option<usize> {
    usize::try_from(outline(bytes).ok()?.record_bytes).ok()
}

/// Checks a record that holds its key, piece by piece.
pub(super) struct RecordCheck {
    stored: Vec<u8>,
    sum: PartialChecksum,
}

impl RecordCheck {
    /// For the record of `key` at `offset` of `file`.
    pub(super) fn new(key: &[u8], (file, offset): (FileNumber, u64)) -> Self {
        Self {
            stored: Vec::with_capacity(CHECKSUM_BYTES),
            sum: PartialChecksum::new(seed_for(file, offset, key)),
        }
    }

    /// The next bytes of the record. Returns those of them that the checksum is over.
    pub(super) fn update<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let missing = (CHECKSUM_BYTES - self.stored.len()).min(bytes.len());
        let (stored, rest) = bytes.split_at(missing);
        self.stored.extend_from_slice(stored);
        self.sum.update(rest);
        rest
    }

    /// Whether the record is sound (I1).
    pub(super) fn is_sound(&self) -> bool {
        self.stored == self.sum.finish().to_le_bytes()
    }
}

/// Computes the checksum of a record at two places, its own and a new one, piece by piece.
pub(super) struct MovedChecksum {
    here: RecordCheck,
    there: PartialChecksum,
}

impl MovedChecksum {
    /// For the record of `key` that `pointer` leads to, copied to `place`.
    pub(super) fn new(key: &[u8], pointer: &ValuePointer, place: (FileNumber, u64)) -> Self {
        Self {
            here: RecordCheck::new(key, (pointer.file, pointer.offset)),
            there: PartialChecksum::new(seed_for(place.0, place.1, key)),
        }
    }

    /// The next bytes of the record.
    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.there.update(self.here.update(bytes));
    }

    /// The checksum at the new place, if the record is sound at its own (I1).
    pub(super) fn finish(self) -> Result<[u8; CHECKSUM_BYTES], DecodeError> {
        if !self.here.is_sound() {
            return Err(Reader::new(&[]).error("a record fails its checksum"));
        }
        Ok(self.there.finish().to_le_bytes())
    }
}

/// A record that was found without a pointer.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    pub(crate) record_bytes: usize,
    pub(crate) codec: Compression,
    /// Empty if the record holds none.
    pub(crate) stored_key: &'a [u8],
    /// The length of the value before compression.
    pub(crate) value_bytes: usize,
    /// Whether the checksum is right; `None` without a key.
    pub(crate) is_sound: Option<bool>,
}

/// The record at the front of `bytes`, at `offset` of `file`.
pub(crate) fn find_record(
    bytes: &[u8],
    (file, offset): (FileNumber, u64),
) -> Result<Found<'_>, DecodeError> {
    let mut reader = Reader::new(bytes);
    let sum = reader.u32("a record is shorter than its header")?;
    let (codec, stored_key, body) = parts(&mut reader)?;
    let record_bytes = reader.position();
    let summed = &bytes[CHECKSUM_BYTES..record_bytes];
    let is_right = || checksum(seed_for(file, offset, stored_key), summed) == sum;
    Ok(Found {
        record_bytes,
        codec,
        stored_key,
        value_bytes: value_bytes(codec, body)?,
        is_sound: (!stored_key.is_empty()).then(is_right),
    })
}

/// Replaces `value` by the decompressed `body`, which was verified (I2).
pub(super) fn decompress(
    codec: Compression,
    body: &[u8],
    value: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    value.clear();
    if codec == Compression::None {
        value.extend_from_slice(body);
        return Ok(());
    }
    value.resize(unpacked_length(codec, body)?, 0);
    unpack(codec, body, value)
}

//! The payload of a WAL record: one or more batches that commit together.
//!
//! The first entry has the next sequence number after the previous payload. The [log's
//! header](super::wal_header) has the first sequence number of a log. See "Batches" in `docs/format.md`.
//!
//! I1. Decoding yields exactly the encoded entries, or an error. It allocates only the caller's buffer
//!     for decompressed entries.

use crate::base::expiry::{EXPIRY_BYTES, split_expiring};
use crate::base::key::SEQUENCE_MAX;
use crate::base::limits::{
    KEY_BYTES_MAX, OPERAND_BYTES_MAX, POINTER_BYTES_MAX, RANGE_END_BYTES_MAX, VALUE_BYTES_MAX,
};
use crate::base::range_tombstones::is_range;
use crate::base::{KeyspaceId, Kind, SequenceNumber};
use crate::codec::compression::{self, BLOCK_BYTES_MAX, Compressor};
use crate::codec::reader::DecodeError;
use crate::codec::varint::{get_varint, put_bytes, put_varint};
use crate::codec::{Compression, Reader};

/// The low bits of the first number of a payload: the codec of its entries. The high bits are the count
/// of the entries.
const CODEC_BITS: u32 = 2;

/// The largest first number of a payload.
const HEAD_MAX: u64 = (1 << (u32::BITS + CODEC_BITS)) - 1;

const CODEC_MASK: u64 = (1 << CODEC_BITS) - 1;

/// The fewest bytes of entries that are compressed; fewer bytes gain nothing.
pub(crate) const PACKED_FROM_BYTES: usize = 256;

/// The most bytes of entries that are compressed: more would delay all writers. Only huge batches have
/// more.
const PACKED_BYTES_MAX: usize = 16 << 20;

const _: () = assert!(PACKED_BYTES_MAX <= BLOCK_BYTES_MAX);

/// One write of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub(crate) sequence: SequenceNumber,
    pub(crate) keyspace: KeyspaceId,
    pub(crate) kind: Kind,
    pub(crate) key: &'a [u8],
    /// Empty for a tombstone; a pointer if the value is in a value log; an operand; or the end of a range tombstone. If
    /// the entry expires, it begins with the expiry.
    pub(crate) value: &'a [u8],
}

impl<'a> Entry<'a> {
    /// The pointer into a value log, if it has one.
    pub(crate) fn log_pointer(&self) -> Option<&'a [u8]> {
        match self.kind {
            Kind::ValueLogPointer => Some(self.value),
            Kind::ExpiringValueLogPointer => Some(split_expiring(self.value).1),
            _ => None,
        }
    }
}

/// Begins a payload of `count` entries.
#[inline]
pub(crate) fn put_count(buffer: &mut Vec<u8>, count: u32) {
    put_varint(buffer, u64::from(count) << CODEC_BITS);
}

/// Appends one entry; `key` and `value` are within the limits, and `value` is empty for a
/// tombstone.
#[inline]
pub(crate) fn put_entry(
    buffer: &mut Vec<u8>,
    keyspace: KeyspaceId,
    kind: Kind,
    key: &[u8],
    value: &[u8],
) {
    debug_assert!(!key.is_empty() && key.len() <= KEY_BYTES_MAX);
    debug_assert!(value.len() <= EXPIRY_BYTES + VALUE_BYTES_MAX);
    buffer.push(kind.code());
    put_varint(buffer, u64::from(keyspace.0));
    put_bytes(buffer, key);
    match kind {
        Kind::Tombstone => debug_assert!(value.is_empty()),
        Kind::Value
        | Kind::ValueLogPointer
        | Kind::Operand
        | Kind::RangeTombstone
        | Kind::ExpiringValue
        | Kind::ExpiringValueLogPointer => put_bytes(buffer, value),
        Kind::TransientPointer | Kind::ExpiringTransientPointer => {
            unreachable!("flushes write transient logs, after the values were logged")
        }
    }
}

/// The keyspace of an entry that only takes a sequence number. It never exists.
const NO_KEYSPACE: KeyspaceId = KeyspaceId(0);

/// What has a sequence number and no entries in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numbered {
    /// Tables that an ingestion adds.
    Tables,
    /// A change of keyspaces.
    Keyspaces,
}

/// Appends an entry that changes nothing and takes a sequence number. Recovery skips it like the entries of dropped
/// keyspaces.
pub(crate) fn put_number(buffer: &mut Vec<u8>, what: Numbered) {
    let key = match what {
        Numbered::Tables => [0],
        Numbered::Keyspaces => [1],
    };
    put_entry(buffer, NO_KEYSPACE, Kind::Tombstone, &key, &[]);
}

/// What `entry` has taken its sequence number for, if it does nothing else.
pub(crate) fn numbered(entry: &Entry<'_>) -> Option<Numbered> {
    let what = match entry.key {
        [0] => Numbered::Tables,
        _ => Numbered::Keyspaces,
    };
    (entry.keyspace == NO_KEYSPACE).then_some(what)
}

/// Compresses the entries of the payload at `start` in `buffer` if that saves an eighth. `scratch` is
/// a buffer for the result.
pub(crate) fn pack(
    buffer: &mut Vec<u8>,
    start: usize,
    compressor: &mut Compressor,
    scratch: &mut Vec<u8>,
) {
    let Some((_, head_bytes)) = get_varint(&buffer[start..]) else {
        return;
    };
    let entries = &buffer[start + head_bytes..];
    if !(PACKED_FROM_BYTES..=PACKED_BYTES_MAX).contains(&entries.len()) {
        return;
    }
    scratch.clear();
    let codec = compressor.append_smaller(entries, scratch);
    if codec != Compression::None {
        buffer.truncate(start + head_bytes);
        buffer.extend_from_slice(scratch);
        // The low bits of a varint are in its first byte.
        buffer[start] |= codec.code();
    }
}

/// Decodes a payload entry by entry.
#[derive(Debug, Clone)]
pub(crate) struct BatchReader<'a> {
    reader: Reader<'a>,
    /// The sequence number of the next entry.
    sequence: SequenceNumber,
    remaining: u32,
}

impl<'a> BatchReader<'a> {
    /// Begins at the start of `payload`, whose first entry has sequence number `base`. Compressed entries
    /// are decompressed into `buffer`; the offsets of their errors are those before compression.
    pub(crate) fn new(
        payload: &'a [u8],
        base: SequenceNumber,
        buffer: &'a mut Vec<u8>,
    ) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(payload);
        let start = reader.clone();
        let (head, count) = read_head(&mut reader, base)?;
        let [code, ..] = (head & CODEC_MASK).to_le_bytes();
        let codec = Compression::from_code(code)
            .ok_or_else(|| start.unsupported("an unknown compression of a batch"))?;
        if codec != Compression::None {
            let (head, body) = payload.split_at(reader.position());
            let length = compression::unpacked_length(codec, body)?;
            buffer.clear();
            buffer.extend_from_slice(head);
            buffer.resize(head.len() + length, 0);
            compression::unpack(codec, body, &mut buffer[head.len()..])?;
            reader = Reader::new(buffer);
            reader.bytes(head.len(), "count of a batch")?;
        }
        Ok(Self {
            reader,
            sequence: base,
            remaining: count,
        })
    }

    /// Reads `count` encoded entries without a header. The first has sequence number `base`.
    pub(crate) fn entries(encoded: &'a [u8], base: SequenceNumber, count: u32) -> Self {
        Self {
            reader: Reader::new(encoded),
            sequence: base,
            remaining: count,
        }
    }

    /// The sequence number of the next entry.
    pub(crate) fn sequence(&self) -> SequenceNumber {
        self.sequence
    }

    /// The number of remaining entries.
    pub(crate) fn remaining(&self) -> u32 {
        self.remaining
    }

    /// The next entry, or `None` behind the last one. An error does not change the position.
    pub(crate) fn next(&mut self) -> Result<Option<Entry<'a>>, DecodeError> {
        let mut reader = self.reader.clone();
        if self.remaining == 0 {
            reader.finish("bytes behind the last entry of a batch")?;
            return Ok(None);
        }
        let start = reader.clone();
        let kind = read_kind(&mut reader)?;
        let keyspace = reader.varint_at_most(u64::from(u32::MAX), "keyspace of an entry")?;
        let key_start = reader.clone();
        let key = reader.prefixed_bytes(KEY_BYTES_MAX, "key of an entry")?;
        if key.is_empty() {
            return Err(key_start.error("an empty key"));
        }
        let value = match kind {
            Kind::Tombstone => &[],
            Kind::TransientPointer | Kind::ExpiringTransientPointer => {
                return Err(start.error("a log holds a pointer into a transient log"));
            }
            Kind::Value => reader.prefixed_bytes(VALUE_BYTES_MAX, "value of an entry")?,
            Kind::ValueLogPointer => {
                reader.prefixed_bytes(POINTER_BYTES_MAX, "pointer of an entry")?
            }
            Kind::ExpiringValue | Kind::ExpiringValueLogPointer => {
                let most = match kind {
                    Kind::ExpiringValue => VALUE_BYTES_MAX,
                    _ => POINTER_BYTES_MAX,
                };
                let start = reader.clone();
                let what = "an expiry with the value or the pointer of an entry";
                let stored = reader.prefixed_bytes(EXPIRY_BYTES + most, what)?;
                if stored.len() < EXPIRY_BYTES {
                    return Err(start.error("an entry that expires without an expiry"));
                }
                stored
            }
            Kind::Operand => reader.prefixed_bytes(OPERAND_BYTES_MAX, "operand of an entry")?,
            Kind::RangeTombstone => {
                let end = reader.prefixed_bytes(RANGE_END_BYTES_MAX, "end of a range tombstone")?;
                if !is_range(key, end) {
                    return Err(key_start.error(
                        "a range tombstone whose end is not above its start, or is no end of keys",
                    ));
                }
                end
            }
        };
        let entry = Entry {
            sequence: self.sequence,
            keyspace: KeyspaceId(u32::try_from(keyspace).unwrap_or(u32::MAX)),
            kind,
            key,
            value,
        };
        self.reader = reader;
        self.sequence += 1;
        self.remaining -= 1;
        Ok(Some(entry))
    }
}

/// The sequence number of the last entry of `payload`, whose first one has `base`.
pub(crate) fn last_sequence(
    payload: &[u8],
    base: SequenceNumber,
) -> Result<SequenceNumber, DecodeError> {
    let (_, count) = read_head(&mut Reader::new(payload), base)?;
    Ok(base + u64::from(count) - 1)
}

/// Reads the head of a batch whose first entry has sequence number `base`, and returns it with the number of entries.
fn read_head(reader: &mut Reader<'_>, base: SequenceNumber) -> Result<(u64, u32), DecodeError> {
    let start = reader.clone();
    let head = reader.varint_at_most(HEAD_MAX, "count of a batch")?;
    let count = u32::try_from(head >> CODEC_BITS).unwrap_or(u32::MAX);
    if count == 0 {
        return Err(start.error("a batch without entries"));
    }
    let last = base.checked_add(u64::from(count) - 1);
    if last.is_none_or(|last| last > SEQUENCE_MAX) {
        return Err(start.error("a sequence number beyond the largest"));
    }
    Ok((head, count))
}

fn read_kind(reader: &mut Reader<'_>) -> Result<Kind, DecodeError> {
    let start = reader.clone();
    let code = reader.u8("kind of an entry")?;
    match Kind::from_code(code) {
        Some(kind) => Ok(kind),
        None if Kind::is_reserved(code) => Err(start.unsupported("a reserved kind of entry")),
        None => Err(start.error("an unknown kind of entry")),
    }
}

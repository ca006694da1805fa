//! The payload of a WAL record: one or more batches that commit together.
//!
//! Entry number i of a payload has sequence number `base + i`. See "Batches" in `docs/format.md`.
//!
//! I1. Decoding yields exactly the entries that were encoded, or an error; it allocates nothing.

use crate::base::key::{RESERVED_KINDS, SEQUENCE_MAX};
use crate::base::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use crate::base::{KeyspaceId, Kind, SequenceNumber};
use crate::codec::Reader;
use crate::codec::reader::DecodeError;
use crate::codec::varint::{put_bytes, put_varint};

/// The bytes before the first entry: the base sequence number and the count of entries.
pub(crate) const BATCH_HEADER_BYTES: usize = 12;

/// One write of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub(crate) sequence: SequenceNumber,
    pub(crate) keyspace: KeyspaceId,
    pub(crate) kind: Kind,
    pub(crate) key: &'a [u8],
    /// Empty for a tombstone.
    pub(crate) value: &'a [u8],
}

/// Appends the header of a payload of `count` entries whose first has sequence number `base`.
#[inline]
pub(crate) fn put_header(buffer: &mut Vec<u8>, base: SequenceNumber, count: u32) {
    buffer.extend_from_slice(&base.to_le_bytes());
    buffer.extend_from_slice(&count.to_le_bytes());
}

/// Sets the base sequence number of the payload that begins at the front of `payload`.
#[inline]
pub(crate) fn set_base(payload: &mut [u8], base: SequenceNumber) {
    payload[..8].copy_from_slice(&base.to_le_bytes());
}

/// Sets the count of the payload that begins at the front of `payload`.
#[inline]
pub(crate) fn set_count(payload: &mut [u8], count: u32) {
    payload[8..BATCH_HEADER_BYTES].copy_from_slice(&count.to_le_bytes());
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
    debug_assert!(value.len() <= VALUE_BYTES_MAX);
    buffer.push(kind.code());
    put_varint(buffer, u64::from(keyspace.0));
    put_bytes(buffer, key);
    match kind {
        Kind::Tombstone => debug_assert!(value.is_empty()),
        Kind::Value => put_bytes(buffer, value),
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
    /// Begins at the front of `payload`.
    pub(crate) fn new(payload: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(payload);
        let start = reader.clone();
        let sequence = reader.u64("base sequence number of a batch")?;
        let remaining = reader.u32("count of a batch")?;
        if remaining == 0 {
            return Err(start.error("a batch without entries"));
        }
        let last = sequence.checked_add(u64::from(remaining) - 1);
        if last.is_none_or(|last| last > SEQUENCE_MAX) {
            return Err(start.error("a sequence number beyond the largest"));
        }
        Ok(Self {
            reader,
            sequence,
            remaining,
        })
    }

    /// The sequence number of the next entry.
    pub(crate) fn sequence(&self) -> SequenceNumber {
        self.sequence
    }

    /// How many entries are left.
    pub(crate) fn remaining(&self) -> u32 {
        self.remaining
    }

    /// The next entry, or `None` behind the last one. After an error the position is as before.
    pub(crate) fn next(&mut self) -> Result<Option<Entry<'a>>, DecodeError> {
        let mut reader = self.reader.clone();
        if self.remaining == 0 {
            reader.finish("bytes behind the last entry of a batch")?;
            return Ok(None);
        }
        let kind = read_kind(&mut reader)?;
        let keyspace = reader.varint_at_most(u64::from(u32::MAX), "keyspace of an entry")?;
        let key_start = reader.clone();
        let key = reader.prefixed_bytes(KEY_BYTES_MAX, "key of an entry")?;
        if key.is_empty() {
            return Err(key_start.error("an empty key"));
        }
        let value = match kind {
            Kind::Tombstone => &[],
            Kind::Value => reader.prefixed_bytes(VALUE_BYTES_MAX, "value of an entry")?,
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

fn read_kind(reader: &mut Reader<'_>) -> Result<Kind, DecodeError> {
    let start = reader.clone();
    let code = reader.u8("kind of an entry")?;
    match Kind::from_code(code) {
        Some(kind) => Ok(kind),
        None if RESERVED_KINDS.contains(&code) => {
            Err(start.unsupported("a reserved kind of entry"))
        }
        None => Err(start.error("an unknown kind of entry")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Owned = (u32, Option<Vec<u8>>, Vec<u8>);

    fn entries() -> impl Strategy<Value = Vec<Owned>> {
        let bytes = |range| proptest::collection::vec(any::<u8>(), range);
        let entry = (
            any::<u32>(),
            proptest::option::of(bytes(0..40)),
            bytes(1..20),
        );
        proptest::collection::vec(entry, 1..12)
    }

    fn encode(base: u64, entries: &[Owned]) -> Vec<u8> {
        let mut payload = Vec::new();
        put_header(&mut payload, 0, u32::try_from(entries.len()).unwrap());
        set_base(&mut payload, base);
        for (keyspace, value, key) in entries {
            let kind = if value.is_some() {
                Kind::Value
            } else {
                Kind::Tombstone
            };
            let value = value.as_deref().unwrap_or_default();
            put_entry(&mut payload, KeyspaceId(*keyspace), kind, key, value);
        }
        payload
    }

    fn decode(payload: &[u8]) -> Result<Vec<Entry<'_>>, DecodeError> {
        let mut reader = BatchReader::new(payload)?;
        let mut entries = Vec::new();
        while let Some(entry) = reader.next()? {
            entries.push(entry);
        }
        Ok(entries)
    }

    proptest! {
        #[test]
        fn round_trips(base in 0..SEQUENCE_MAX - 100, entries in entries()) {
            let payload = encode(base, &entries);
            let decoded = decode(&payload).unwrap();
            prop_assert_eq!(decoded.len(), entries.len());
            for ((entry, (keyspace, value, key)), sequence) in
                decoded.iter().zip(&entries).zip(base..)
            {
                prop_assert_eq!(entry.sequence, sequence);
                prop_assert_eq!(entry.keyspace.0, *keyspace);
                prop_assert_eq!(entry.kind == Kind::Value, value.is_some());
                prop_assert_eq!(entry.key, &key[..]);
                prop_assert_eq!(entry.value, value.as_deref().unwrap_or_default());
            }
        }

        #[test]
        fn a_cut_or_longer_payload_is_an_error(entries in entries()) {
            let mut payload = encode(7, &entries);
            payload.push(0);
            prop_assert!(decode(&payload).is_err());
            for length in 0..payload.len() - 1 {
                prop_assert!(decode(&payload[..length]).is_err());
            }
        }

        #[test]
        fn arbitrary_bytes_have_one_encoding(
            body in proptest::collection::vec(0..4u8, 0..60), count in 1..4u32,
        ) {
            let mut payload = Vec::new();
            put_header(&mut payload, 9, count);
            payload.extend(body);
            if let Ok(entries) = decode(&payload) {
                let owned: Vec<Owned> = entries
                    .iter()
                    .map(|entry| {
                        let value = (entry.kind == Kind::Value).then(|| entry.value.to_vec());
                        (entry.keyspace.0, value, entry.key.to_vec())
                    })
                    .collect();
                prop_assert_eq!(encode(9, &owned), payload);
            }
        }
    }

    fn one_entry() -> Vec<u8> {
        encode(1, &[(0, Some(b"value".to_vec()), b"key".to_vec())])
    }

    #[test]
    fn kinds_are_checked() {
        for code in 2..=255 {
            let mut payload = one_entry();
            payload[BATCH_HEADER_BYTES] = code;
            let error = decode(&payload).unwrap_err();
            assert_eq!(error.unsupported, RESERVED_KINDS.contains(&code), "{code}");
            assert_eq!(error.offset, BATCH_HEADER_BYTES);
        }
    }

    #[test]
    fn counts_are_checked() {
        for count in [0, 2, u32::MAX] {
            let mut payload = one_entry();
            payload[8..12].copy_from_slice(&count.to_le_bytes());
            assert!(decode(&payload).is_err(), "{count}");
        }
    }

    #[test]
    fn sequence_numbers_stay_within_their_bounds() {
        let mut payload = one_entry();
        set_base(&mut payload, SEQUENCE_MAX);
        assert!(decode(&payload).is_ok());
        for base in [SEQUENCE_MAX + 1, u64::MAX] {
            set_base(&mut payload, base);
            assert!(decode(&payload).is_err());
        }
    }

    #[test]
    fn limits_of_keys_and_values_are_checked() {
        let entry = |key: &[u8], value: &[u8]| {
            let mut payload = Vec::new();
            put_header(&mut payload, 1, 1);
            payload.extend([Kind::Value.code(), 0]);
            put_bytes(&mut payload, key);
            put_bytes(&mut payload, value);
            payload
        };
        let key = vec![1; KEY_BYTES_MAX + 1];
        let value = vec![1; VALUE_BYTES_MAX + 1];
        assert!(decode(&entry(&key[1..], &value[1..])).is_ok());
        assert!(decode(&entry(&key, b"")).is_err());
        assert!(decode(&entry(b"", b"")).is_err());
        assert!(decode(&entry(b"k", &value)).is_err());
    }

    #[test]
    fn an_error_stays_an_error() {
        let mut payload = one_entry();
        payload.pop();
        let mut reader = BatchReader::new(&payload).unwrap();
        let error = reader.next().unwrap_err();
        assert_eq!(reader.next(), Err(error));
    }
}

//! The payloads of WAL records.

use proptest::prelude::*;

use super::super::batch::*;
use crate::base::key::{RESERVED_KINDS, SEQUENCE_MAX};
use crate::base::limits::{KEY_BYTES_MAX, POINTER_BYTES_MAX};
use crate::base::{KeyspaceId, Kind};
use crate::codec::reader::DecodeError;
use crate::codec::varint::put_bytes;

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
    put_header(&mut payload, base, u32::try_from(entries.len()).unwrap());
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
            let mut again = Vec::new();
            put_header(&mut again, 9, count);
            for entry in entries {
                put_entry(&mut again, entry.keyspace, entry.kind, entry.key, entry.value);
            }
            prop_assert_eq!(again, payload);
        }
    }
}

fn one_entry() -> Vec<u8> {
    encode(1, &[(0, Some(b"value".to_vec()), b"key".to_vec())])
}

#[test]
fn kinds_are_checked() {
    for code in (2..=255).filter(|code| *code != Kind::LogPointer.code()) {
        let mut payload = one_entry();
        payload[BATCH_HEADER_BYTES] = code;
        let error = decode(&payload).unwrap_err();
        assert_eq!(error.unsupported, RESERVED_KINDS.contains(&code), "{code}");
        assert_eq!(error.offset, BATCH_HEADER_BYTES);
    }
}

#[test]
fn pointers_are_no_longer_than_they_can_be() {
    for (length, is_sound) in [
        (1, true),
        (POINTER_BYTES_MAX, true),
        (POINTER_BYTES_MAX + 1, false),
    ] {
        let mut payload = Vec::new();
        put_header(&mut payload, 1, 1);
        let pointer = vec![7; length];
        put_entry(
            &mut payload,
            KeyspaceId(1),
            Kind::LogPointer,
            b"key",
            &pointer,
        );
        let decoded = decode(&payload);
        assert_eq!(decoded.is_ok(), is_sound, "{length}");
        for entry in decoded.into_iter().flatten() {
            assert_eq!((entry.kind, entry.value), (Kind::LogPointer, &pointer[..]));
        }
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
    payload[..8].copy_from_slice(&SEQUENCE_MAX.to_le_bytes());
    assert!(decode(&payload).is_ok());
    for base in [SEQUENCE_MAX + 1, u64::MAX] {
        payload[..8].copy_from_slice(&base.to_le_bytes());
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
    assert!(decode(&entry(&key[1..], &vec![1; 1 << 20])).is_ok());
    assert!(decode(&entry(&key, b"")).is_err());
    assert!(decode(&entry(b"", b"")).is_err());
}

#[test]
fn an_error_stays_an_error() {
    let mut payload = one_entry();
    payload.pop();
    let mut reader = BatchReader::new(&payload).unwrap();
    let error = reader.next().unwrap_err();
    assert_eq!(reader.next(), Err(error));
}

//! The payloads of WAL records.

use proptest::prelude::*;

use super::super::batch::*;
use crate::base::key::{RESERVED_KINDS, SEQUENCE_MAX};
use crate::base::limits::{KEY_BYTES_MAX, POINTER_BYTES_MAX};
use crate::base::{KeyspaceId, Kind};
use crate::codec::Compression;
use crate::codec::checksum::key_hash;
use crate::codec::compression::Compressor;
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

/// `entries`, whose values can be compressed, as they are logged in a keyspace that is compressed.
fn packed(entries: &[Owned]) -> Vec<u8> {
    let mut buffer = b"what stands before".to_vec();
    let start = buffer.len();
    buffer.extend(encode(9, entries));
    let mut compressor = Compressor::new(Compression::Lz4);
    pack(&mut buffer, start, &mut compressor, &mut Vec::new());
    assert!(buffer.starts_with(b"what stands before"));
    buffer.split_off(start)
}

fn repetitive(count: usize) -> Vec<Owned> {
    let entry = |number: usize| (1, Some(vec![7; 40]), format!("key{number}").into_bytes());
    (0..count).map(entry).collect()
}

// I1
#[test]
fn what_is_compressed_is_as_it_was() {
    let entries = repetitive(20);
    let plain = encode(9, &entries);
    let packed = packed(&entries);
    assert!(packed.len() < plain.len() / 2);
    assert!(decode(&packed).is_err());
    let mut buffer = vec![1; 3];
    assert_eq!(unpacked(&packed, &mut buffer).unwrap(), plain);
    assert_eq!(unpacked(&plain, &mut buffer).unwrap(), plain);
}

#[test]
fn what_does_not_pay_is_not_compressed() {
    let short = repetitive(2);
    assert_eq!(packed(&short), encode(9, &short));
    let noise: Vec<u8> = (0..60_u64)
        .flat_map(|word| mixed(word).to_le_bytes())
        .collect();
    let noise = [(1, Some(noise), b"key".to_vec())];
    assert_eq!(packed(&noise), encode(9, &noise));
}

fn mixed(word: u64) -> u64 {
    key_hash(&word.to_le_bytes())
}

#[test]
fn damage_to_what_is_compressed_is_an_error_or_other_entries() {
    let packed = packed(&repetitive(20));
    let mut buffer = Vec::new();
    for bit in 0..8 * packed.len() {
        let mut damaged = packed.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        if let Ok(payload) = unpacked(&damaged, &mut buffer) {
            drop(decode(payload));
        }
    }
    for length in 0..packed.len() {
        let cut = unpacked(&packed[..length], &mut buffer);
        assert!(cut.is_err() || decode(cut.unwrap()).is_err(), "{length}");
    }
    let mut unknown = packed;
    unknown[7] = 9;
    assert!(unpacked(&unknown, &mut buffer).unwrap_err().unsupported);
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

//! The payloads of WAL records.

use proptest::prelude::*;

use super::super::batch::*;
use crate::base::key::SEQUENCE_MAX;
use crate::base::limits::{KEY_BYTES_MAX, POINTER_BYTES_MAX};
use crate::base::{KeyspaceId, Kind};
use crate::codec::Compression;
use crate::codec::checksum::key_hash;
use crate::codec::compression::Compressor;
use crate::codec::reader::DecodeError;
use crate::codec::varint::{put_bytes, put_varint};

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

const BASE: u64 = 9;

fn encode(entries: &[Owned]) -> Vec<u8> {
    let mut payload = Vec::new();
    put_count(&mut payload, u32::try_from(entries.len()).unwrap());
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

/// The entries of a batch and their sequence numbers.
fn decode_from(base: u64, payload: &[u8]) -> Result<Vec<(u64, Kind, Owned)>, DecodeError> {
    let mut buffer = vec![1; 3];
    let mut reader = BatchReader::new(payload, base, &mut buffer)?;
    let mut entries = Vec::new();
    while let Some(entry) = reader.next()? {
        let value = (entry.kind != Kind::Tombstone).then(|| entry.value.to_vec());
        let owned = (entry.keyspace.0, value, entry.key.to_vec());
        entries.push((entry.sequence, entry.kind, owned));
    }
    Ok(entries)
}

fn decode(payload: &[u8]) -> Result<Vec<Owned>, DecodeError> {
    let entries = decode_from(BASE, payload)?;
    Ok(entries.into_iter().map(|(_, _, entry)| entry).collect())
}

proptest! {
    #[test]
    fn round_trips(base in 1..SEQUENCE_MAX - 100, entries in entries()) {
        let payload = encode(&entries);
        let decoded = decode_from(base, &payload).unwrap();
        let expected = entries.into_iter().zip(base..).map(|(entry, sequence)| {
            let kind = if entry.1.is_some() { Kind::Value } else { Kind::Tombstone };
            (sequence, kind, entry)
        });
        prop_assert_eq!(decoded, expected.collect::<Vec<_>>());
    }

    #[test]
    fn a_cut_or_longer_payload_is_an_error(entries in entries()) {
        let mut payload = encode(&entries);
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
        put_count(&mut payload, count);
        payload.extend(body);
        if let Ok(entries) = decode_from(BASE, &payload) {
            let mut again = Vec::new();
            put_count(&mut again, count);
            for (_, kind, (keyspace, value, key)) in entries {
                let value = value.unwrap_or_default();
                put_entry(&mut again, KeyspaceId(keyspace), kind, &key, &value);
            }
            prop_assert_eq!(again, payload);
        }
    }
}

/// The compressed payload of `entries`.
fn packed(entries: &[Owned]) -> Vec<u8> {
    let mut buffer = b"earlier bytes".to_vec();
    let start = buffer.len();
    buffer.extend(encode(entries));
    let mut compressor = Compressor::new(Compression::Lz4);
    pack(&mut buffer, start, &mut compressor, &mut Vec::new());
    assert!(buffer.starts_with(b"earlier bytes"));
    buffer.split_off(start)
}

fn repetitive(count: usize) -> Vec<Owned> {
    let entry = |number: usize| (1, Some(vec![7; 40]), format!("key{number}").into_bytes());
    (0..count).map(entry).collect()
}

// I1
#[test]
fn compressed_entries_round_trip() {
    let entries = repetitive(20);
    let plain = encode(&entries);
    let packed = packed(&entries);
    assert!(packed.len() < plain.len() / 2);
    assert_eq!(decode(&packed).unwrap(), entries);
    assert_eq!(decode(&plain).unwrap(), entries);
}

#[test]
fn entries_that_do_not_shrink_are_not_compressed() {
    let short = repetitive(2);
    assert_eq!(packed(&short), encode(&short));
    let noise: Vec<u8> = (0..60_u64)
        .flat_map(|word| mixed(word).to_le_bytes())
        .collect();
    let noise = [(1, Some(noise), b"key".to_vec())];
    assert_eq!(packed(&noise), encode(&noise));
}

fn mixed(word: u64) -> u64 {
    key_hash(&word.to_le_bytes())
}

#[test]
fn damage_of_compressed_entries_is_an_error_or_other_entries() {
    let packed = packed(&repetitive(20));
    for bit in 0..8 * packed.len() {
        let mut damaged = packed.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        drop(decode(&damaged));
    }
    for length in 0..packed.len() {
        assert!(decode(&packed[..length]).is_err(), "{length}");
    }
    let mut unknown = packed;
    unknown[0] |= 3;
    assert!(decode(&unknown).unwrap_err().unsupported);
}

fn one_entry() -> Vec<u8> {
    encode(&[(0, Some(b"value".to_vec()), b"key".to_vec())])
}

/// A range tombstone from `key` to before `end`.
fn one_range(end: &[u8]) -> Vec<u8> {
    let mut entries = Vec::new();
    put_entry(
        &mut entries,
        KeyspaceId(0),
        Kind::RangeTombstone,
        b"key",
        end,
    );
    let mut payload = Vec::new();
    put_count(&mut payload, 1);
    payload.extend(entries);
    payload
}

#[test]
fn the_ends_of_range_tombstones_are_checked() {
    let longest = vec![b'z'; KEY_BYTES_MAX];
    let sound: [&[u8]; 4] = [b"", b"kez", &longest, &[&longest[..], &[0]].concat()];
    for end in sound {
        assert!(decode(&one_range(end)).is_ok(), "{} bytes", end.len());
    }
    // No table could name its largest key.
    let too_long = [&longest[..], b"z"].concat();
    for end in [&b"key"[..], b"a", &too_long] {
        let error = decode(&one_range(end)).unwrap_err();
        assert!(error.what.contains("range tombstone"), "{}", error.what);
    }
}

#[test]
fn kinds_are_checked() {
    let sound = [
        Kind::ValueLogPointer,
        Kind::Operand,
        Kind::RangeTombstone,
        Kind::ExpiringValue,
        Kind::ExpiringValueLogPointer,
    ];
    let sound = sound.map(Kind::code);
    for code in (2..=255).filter(|code| !sound.contains(code)) {
        let mut payload = one_entry();
        payload[1] = code;
        let error = decode(&payload).unwrap_err();
        assert_eq!(error.unsupported, matches!(code, 6..=8 | 12..=15), "{code}");
        assert_eq!(error.offset, 1);
    }
}

#[test]
fn entries_that_expire_have_an_expiry() {
    let most = [
        (Kind::ExpiringValue, usize::MAX),
        (Kind::ExpiringValueLogPointer, POINTER_BYTES_MAX),
    ];
    for (kind, most) in most {
        for length in [0, 5, 6, 7, 6 + POINTER_BYTES_MAX, 7 + POINTER_BYTES_MAX] {
            let mut payload = Vec::new();
            put_count(&mut payload, 1);
            put_entry(&mut payload, KeyspaceId(1), kind, b"key", &vec![7; length]);
            let is_sound = length >= 6 && length - 6 <= most;
            assert_eq!(
                decode_from(BASE, &payload).is_ok(),
                is_sound,
                "{kind:?} {length}"
            );
        }
    }
}

#[test]
fn pointers_have_a_largest_length() {
    for (length, is_sound) in [
        (1, true),
        (POINTER_BYTES_MAX, true),
        (POINTER_BYTES_MAX + 1, false),
    ] {
        let mut payload = Vec::new();
        put_count(&mut payload, 1);
        let pointer = vec![7; length];
        put_entry(
            &mut payload,
            KeyspaceId(1),
            Kind::ValueLogPointer,
            b"key",
            &pointer,
        );
        let decoded = decode_from(BASE, &payload);
        assert_eq!(decoded.is_ok(), is_sound, "{length}");
        for (_, kind, (_, value, _)) in decoded.into_iter().flatten() {
            assert_eq!(
                (kind, value.as_ref()),
                (Kind::ValueLogPointer, Some(&pointer))
            );
        }
    }
}

#[test]
fn counts_are_checked() {
    let entry = &one_entry()[1..];
    for count in [0, 1, 2, 31, 32, 4095, 4096, u32::MAX] {
        let mut payload = Vec::new();
        put_count(&mut payload, count);
        payload.extend_from_slice(entry);
        assert_eq!(decode(&payload).is_ok(), count == 1, "{count}");
    }
    for count in [1_u64 << 32, u64::MAX >> 2] {
        let mut payload = Vec::new();
        put_varint(&mut payload, count << 2);
        payload.extend_from_slice(entry);
        let error = decode(&payload).unwrap_err();
        assert_eq!((error.offset, error.unsupported), (0, false));
    }
}

#[test]
fn up_to_31_entries_are_counted_in_one_byte() {
    for (count, bytes) in [(1, 1), (31, 1), (32, 2), (4095, 2), (u32::MAX, 5)] {
        let mut payload = Vec::new();
        put_count(&mut payload, count);
        assert_eq!(payload.len(), bytes, "{count}");
    }
}

#[test]
fn batches_of_any_count_are_compressed() {
    for count in [31, 32, 4095, 4096] {
        let entries = repetitive(count);
        assert_eq!(decode(&packed(&entries)).unwrap(), entries);
    }
}

#[test]
fn sequence_numbers_stay_within_their_bounds() {
    let payload = encode(&repetitive(2));
    assert!(decode_from(SEQUENCE_MAX - 1, &payload).is_ok());
    for base in [SEQUENCE_MAX, SEQUENCE_MAX + 1, u64::MAX] {
        assert!(decode_from(base, &payload).is_err(), "{base}");
    }
}

#[test]
fn limits_of_keys_and_values_are_checked() {
    let entry = |key: &[u8], value: &[u8]| {
        let mut payload = Vec::new();
        put_count(&mut payload, 1);
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
    let mut buffer = Vec::new();
    let mut reader = BatchReader::new(&payload, BASE, &mut buffer).unwrap();
    let error = reader.next().unwrap_err();
    assert_eq!(reader.next(), Err(error));
}

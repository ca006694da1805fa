//! The block with the range tombstones of a segment, for lookups; each also stands among the entries, at its start.
//!
//! See "Range tombstones" in `docs/format.md`.

use crate::base::key::SEQUENCE_MAX;
use crate::base::limits::{KEY_BYTES_MAX, RANGE_END_BYTES_MAX};
use crate::base::range_tombstones::{Limit, is_range};
use crate::base::{RangeTombstone, RangeTombstones};
use crate::codec::Reader;
use crate::codec::reader::DecodeError;
use crate::codec::varint::{put_bytes, put_varint};

/// What the properties say of the range tombstones of a segment that has any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RangeBlock {
    /// How many there are, at least 1.
    pub(crate) count: u32,
    /// The bytes of the block, which ends where the top-level index begins.
    pub(crate) bytes: u64,
}

impl RangeBlock {
    pub(super) fn encode(self, output: &mut Vec<u8>) {
        put_varint(output, u64::from(self.count));
        put_varint(output, self.bytes);
    }

    pub(super) fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(body);
        let what = "a property of a table is malformed";
        let start = reader.clone();
        let count = reader.varint_at_most(u64::from(u32::MAX), what)?;
        let bytes = reader.varint(what)?;
        reader.finish(what)?;
        match u32::try_from(count) {
            Ok(count @ 1..) => Ok(Self { count, bytes }),
            _ => Err(start.error(what)),
        }
    }
}

/// Appends `tombstones`, which are in the order of their entries.
pub(crate) fn put_ranges(output: &mut Vec<u8>, tombstones: &[RangeTombstone]) {
    for tombstone in tombstones {
        put_bytes(output, &tombstone.start);
        put_bytes(output, &tombstone.end);
        put_varint(output, tombstone.sequence);
    }
}

/// Reads the `count` range tombstones of a segment whose largest key is `largest`. They then cover no key above it: what
/// is left of them continues in the next file.
pub(crate) fn read_ranges(
    payload: &[u8],
    count: u32,
    largest: &[u8],
) -> Result<RangeTombstones, DecodeError> {
    let mut reader = Reader::new(payload);
    let mut tombstones = Vec::new();
    let largest = Limit::new(largest);
    for _ in 0..count {
        let at = reader.clone();
        let start = reader.prefixed_bytes(KEY_BYTES_MAX, "start of a range tombstone")?;
        let end = reader.prefixed_bytes(RANGE_END_BYTES_MAX, "end of a range tombstone")?;
        let sequence = reader.varint_at_most(SEQUENCE_MAX, "age of a range tombstone")?;
        let tombstone = RangeTombstone {
            start: start.into(),
            end: end.into(),
            sequence,
        };
        let is_sound = !start.is_empty() && is_range(start, end);
        let within = tombstone.up_to(&largest).filter(|_| is_sound);
        tombstones.push(within.ok_or_else(|| at.error("a range tombstone is malformed"))?);
    }
    reader.finish("bytes behind the last range tombstone")?;
    Ok(RangeTombstones::new(tombstones))
}

#[cfg(test)]
#[cfg(not(any(loom, shuttle)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample() -> Vec<RangeTombstone> {
        let at = |start: &[u8], end: &[u8], sequence| RangeTombstone {
            start: start.into(),
            end: end.into(),
            sequence,
        };
        vec![at(b"b", b"", 9), at(b"b", b"c", 7), at(b"f", b"k", 300)]
    }

    #[test]
    fn they_round_trip_within_the_bounds_of_their_segment() {
        let mut payload = Vec::new();
        put_ranges(&mut payload, &sample());
        let read = read_ranges(&payload, 3, b"h").unwrap();
        let ends = [7, 9, 300].map(|sequence| {
            let found = read.all().iter().find(|it| it.sequence == sequence);
            found.unwrap().end.to_vec()
        });
        assert_eq!(ends, [&b"c"[..], b"h\0", b"h\0"]);
        for length in 0..payload.len() {
            assert!(read_ranges(&payload[..length], 3, b"h").is_err());
        }
        for (count, largest) in [(2, &b"h"[..]), (4, b"h"), (3, b"e")] {
            assert!(read_ranges(&payload, count, largest).is_err());
        }
    }

    #[test]
    fn the_property_round_trips() {
        let block = RangeBlock {
            count: 3,
            bytes: 700,
        };
        let mut body = Vec::new();
        block.encode(&mut body);
        assert_eq!(RangeBlock::decode(&body).unwrap(), block);
        for body in [&[0, 9][..], &[1], &[1, 9, 0]] {
            assert!(RangeBlock::decode(body).is_err());
        }
    }

    proptest! {
        #[test]
        fn decoding_anything_never_panics(
            payload in proptest::collection::vec(any::<u8>(), 0..60),
            count in 0..9_u32,
        ) {
            drop(read_ranges(&payload, count, b"m"));
        }
    }

    /// Otherwise four bytes would take as much memory as the longest key.
    #[test]
    fn ranges_that_reach_behind_a_long_key_share_its_bytes() {
        let largest = vec![b'z'; KEY_BYTES_MAX];
        let mut payload = Vec::new();
        for sequence in 0..1000 {
            put_bytes(&mut payload, b"a");
            put_bytes(&mut payload, &[]);
            put_varint(&mut payload, sequence);
        }
        let mut found = RangeTombstones::default();
        let allocated = allocation_counter::measure(|| {
            found = read_ranges(&payload, 1000, &largest).unwrap();
        });
        assert_eq!(found.all().len(), 1000);
        assert!(allocated.bytes_max < 1 << 20, "{allocated:?}");
        assert!(found.memory_bytes() < 1 << 20);
    }
}

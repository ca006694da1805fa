//! The properties block: counts, bounds and references of a segment.
//!
//! See "Properties block" in `docs/format.md`. A reader refuses the file if it meets an unknown tag below
//! [`OPTIONAL_TAGS`]; it skips unknown tags from there on. All reserved tags change reads.

use std::sync::Arc;

use crate::base::key::{SEQUENCE_MAX, UNNUMBERED};
use crate::base::limits::KEY_BYTES_MAX;
use crate::base::{KeyspaceId, SequenceNumber};
use crate::codec::Reader;
use crate::codec::reader::DecodeError;
use crate::codec::varint::{put_bytes, put_varint};

use super::expiring::Expiring;
use super::meta::SegmentMeta;
use super::ranges::RangeBlock;
use super::references::{LogSums, ReferenceList};

/// The first tag that a reader may skip.
const OPTIONAL_TAGS: u64 = 128;

/// The keyspace for which the segment was written; absent in an external table. Only a repair without a manifest needs it.
const KEYSPACE: u64 = 128;

const SMALLEST: u64 = 1;
const LARGEST: u64 = 2;
const ENTRIES: u64 = 3;
const TOMBSTONES: u64 = 4;
const SEQUENCE_MIN: u64 = 5;
const SEQUENCE_MAX_TAG: u64 = 6;
const LOGICAL_BYTES: u64 = 7;
const FILTER_BYTES: u64 = 8;
const BLOCKS: u64 = 9;
/// The block of range tombstones; absent if there are none.
const RANGE_TOMBSTONES: u64 = 16;
/// The entries that expire; absent if there are none.
const EXPIRING: u64 = 18;
/// References to transient logs; absent if there are none.
const TRANSIENT_REFERENCES: u64 = 19;
/// The sums of the references to value logs; absent if there are none.
const LOG_REFERENCES: u64 = 20;
/// The operands; absent if there are none.
const OPERANDS: u64 = 21;

/// The properties of a segment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Properties {
    pub(crate) smallest: Box<[u8]>,
    pub(crate) largest: Box<[u8]>,
    pub(crate) entries: u64,
    pub(crate) tombstones: u64,
    pub(crate) sequence_min: SequenceNumber,
    pub(crate) sequence_max: SequenceNumber,
    /// Bytes of keys, of values in the table and in transient logs before any encoding, and of pointers into
    /// value logs.
    pub(crate) logical_bytes: u64,
    /// Bytes of all filter units.
    pub(crate) filter_bytes: u64,
    /// Data blocks.
    pub(crate) blocks: u64,
    /// The block of its range tombstones, if there are any.
    pub(crate) ranges: Option<RangeBlock>,
    pub(crate) operands: u64,
    /// The entries that expire, if there are any.
    pub(crate) expiring: Option<Box<Expiring>>,
    /// The references of the entries to transient logs, if there are any.
    pub(crate) transient: Option<Arc<ReferenceList>>,
    /// The sums of their references to value logs, if there are any. The segment has a block with the list.
    pub(crate) logs: Option<LogSums>,
    /// The keyspace for which the segment was written, if it is known.
    pub(crate) keyspace: Option<KeyspaceId>,
}

impl Properties {
    fn numbers(&self) -> [(u64, u64); 7] {
        [
            (ENTRIES, self.entries),
            (TOMBSTONES, self.tombstones),
            (SEQUENCE_MIN, self.sequence_min),
            (SEQUENCE_MAX_TAG, self.sequence_max),
            (LOGICAL_BYTES, self.logical_bytes),
            (FILTER_BYTES, self.filter_bytes),
            (BLOCKS, self.blocks),
        ]
    }

    /// Appends the block's payload to `output`.
    pub(crate) fn encode(&self, output: &mut Vec<u8>) {
        for (tag, key) in [(SMALLEST, &self.smallest), (LARGEST, &self.largest)] {
            put_varint(output, tag);
            put_bytes(output, key);
        }
        let mut body = Vec::new();
        for (tag, number) in self.numbers() {
            body.clear();
            put_varint(&mut body, number);
            put_varint(output, tag);
            put_bytes(output, &body);
        }
        if let Some(ranges) = self.ranges {
            body.clear();
            ranges.encode(&mut body);
            put_varint(output, RANGE_TOMBSTONES);
            put_bytes(output, &body);
        }
        if let Some(expiring) = &self.expiring {
            body.clear();
            expiring.encode(&mut body);
            put_varint(output, EXPIRING);
            put_bytes(output, &body);
        }
        if let Some(transient) = &self.transient {
            body.clear();
            transient.encode(&mut body);
            put_varint(output, TRANSIENT_REFERENCES);
            put_bytes(output, &body);
        }
        if let Some(logs) = self.logs {
            body.clear();
            logs.encode(&mut body);
            put_varint(output, LOG_REFERENCES);
            put_bytes(output, &body);
        }
        if self.operands > 0 {
            body.clear();
            put_varint(&mut body, self.operands);
            put_varint(output, OPERANDS);
            put_bytes(output, &body);
        }
        if let Some(keyspace) = self.keyspace {
            body.clear();
            put_varint(&mut body, u64::from(keyspace.0));
            put_varint(output, KEYSPACE);
            put_bytes(output, &body);
        }
    }

    /// Reads a properties block.
    pub(crate) fn decode(payload: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(payload);
        let mut properties = Self::default();
        let mut last_tag = 0;
        let mut known = 0;
        while !reader.is_empty() {
            let start = reader.clone();
            let tag = reader.varint("a property is cut off")?;
            let body = reader.prefixed_bytes(payload.len(), "a property is cut off")?;
            if tag <= last_tag {
                return Err(start.error("the properties of a table are out of order"));
            }
            last_tag = tag;
            let number = |max| {
                let mut body = Reader::new(body);
                let value = body.varint_at_most(max, "");
                value
                    .ok()
                    .filter(|_| body.is_empty())
                    .ok_or_else(|| start.error("a property of a table is malformed"))
            };
            let key = || {
                if (1..=KEY_BYTES_MAX).contains(&body.len()) {
                    Ok(body.into())
                } else {
                    Err(start.error("a property of a table is malformed"))
                }
            };
            match tag {
                SMALLEST => properties.smallest = key()?,
                LARGEST => properties.largest = key()?,
                ENTRIES => properties.entries = number(u64::MAX)?,
                TOMBSTONES => properties.tombstones = number(u64::MAX)?,
                SEQUENCE_MIN => properties.sequence_min = number(SEQUENCE_MAX)?,
                SEQUENCE_MAX_TAG => properties.sequence_max = number(SEQUENCE_MAX)?,
                LOGICAL_BYTES => properties.logical_bytes = number(u64::MAX)?,
                FILTER_BYTES => properties.filter_bytes = number(u64::MAX)?,
                BLOCKS => properties.blocks = number(u64::MAX)?,
                RANGE_TOMBSTONES => {
                    let malformed = |_| start.error("a property of a table is malformed");
                    properties.ranges = Some(RangeBlock::decode(body).map_err(malformed)?);
                    continue;
                }
                EXPIRING => {
                    let mut body = Reader::new(body);
                    let read = Expiring::read(&mut body).ok().filter(|_| body.is_empty());
                    let malformed = || start.error("a property of a table is malformed");
                    properties.expiring = Some(Box::new(read.ok_or_else(malformed)?));
                    continue;
                }
                TRANSIENT_REFERENCES => {
                    let list = ReferenceList::decode(body).ok();
                    let malformed = || start.error("the references of a table are malformed");
                    let list = list.and_then(ReferenceList::shared);
                    properties.transient = Some(list.ok_or_else(malformed)?);
                    continue;
                }
                LOG_REFERENCES => {
                    let mut body = Reader::new(body);
                    let sums = LogSums::read(&mut body).ok().filter(|_| body.is_empty());
                    let malformed = || start.error("the references of a table are malformed");
                    properties.logs = Some(sums.ok_or_else(malformed)?);
                    continue;
                }
                OPERANDS => {
                    properties.operands = number(u64::MAX)?;
                    if properties.operands == 0 {
                        return Err(start.error("a property of a table is malformed"));
                    }
                    continue;
                }
                KEYSPACE => {
                    let id = u32::try_from(number(u64::from(u32::MAX))?);
                    properties.keyspace = id.ok().map(KeyspaceId);
                    continue;
                }
                optional if optional >= OPTIONAL_TAGS => continue,
                _ => return Err(start.unsupported("a table has an unknown property")),
            }
            known += 1;
        }
        if known == 9 {
            Ok(properties)
        } else {
            Err(reader.error("a table lacks a property"))
        }
    }

    /// Whether all its entries have the number that the manifest records.
    fn is_unnumbered(&self) -> bool {
        (self.sequence_min, self.sequence_max) == (UNNUMBERED, UNNUMBERED)
    }

    /// Whether the manifest records the same of the segment.
    pub(crate) fn agree_with(&self, meta: &SegmentMeta) -> bool {
        *self.smallest == *meta.smallest()
            && *self.largest == *meta.largest()
            && self.entries == meta.entries
            && self.tombstones == meta.tombstones
            && ((self.sequence_min, self.sequence_max) == (meta.sequence_min, meta.sequence_max)
                || self.is_unnumbered() && meta.sequence_min == meta.sequence_max)
            && self.logical_bytes == meta.logical_bytes
            && self.filter_bytes == meta.filter_bytes()
            && self.ranges.map_or(0, |ranges| ranges.count) == meta.range_tombstones
            && self.operands == meta.operands
            && self.expiring == meta.expiring
            && meta
                .references
                .agree_with(self.transient.as_ref(), self.logs)
    }
}

#[cfg(test)]
mod tests {
    use super::super::references::{References, Referred};
    use super::*;
    use crate::base::{FileNumber, Kind, Trailer};
    use crate::value::ValuePointer;
    use proptest::prelude::*;

    fn sample() -> Properties {
        Properties {
            smallest: (*b"a").into(),
            largest: (*b"zz").into(),
            entries: 300,
            tombstones: 2,
            sequence_min: 5,
            sequence_max: 1 << 40,
            logical_bytes: 12345,
            filter_bytes: 64,
            blocks: 7,
            ..Properties::default()
        }
    }

    #[test]
    fn references_round_trip_and_their_damage_is_found() {
        let mut references = References::default();
        for (file, record_bytes, kind) in [
            (9, 100, Kind::TransientPointer),
            (7, 50, Kind::TransientPointer),
            (9, 40, Kind::TransientPointer),
            (4, 60, Kind::ValueLogPointer),
            (6, 70, Kind::ValueLogPointer),
        ] {
            let mut pointer = Vec::new();
            ValuePointer {
                file: FileNumber(file),
                offset: 5,
                record_bytes,
                value_bytes: 30,
            }
            .encode(&mut pointer);
            let noted = references.note(Trailer::new(1, kind), &pointer).unwrap();
            let is_log = kind == Kind::ValueLogPointer;
            assert_eq!(noted, if is_log { pointer.len() as u64 } else { 30 });
        }
        let expected = |file, entries, bytes| (FileNumber(file), Referred { entries, bytes });
        let properties = Properties {
            ranges: Some(RangeBlock {
                count: 3,
                bytes: 90,
            }),
            expiring: Some(Box::new(Expiring {
                entries: 5,
                bytes: 1000,
                moments: [7, 7, 20, 30, 31, 32, 33, 90, 300],
            })),
            transient: references.transient(),
            logs: references.logs().log_sums(),
            operands: 300,
            keyspace: Some(KeyspaceId(7)),
            ..sample()
        };
        let transient: Vec<_> = properties
            .transient
            .iter()
            .flat_map(|it| it.iter())
            .collect();
        assert_eq!(transient, [expected(7, 1, 50), expected(9, 2, 140)]);
        let logs: Vec<_> = references.logs().iter().collect();
        assert_eq!(logs, [expected(4, 1, 60), expected(6, 1, 70)]);
        assert_eq!(references.transient_bytes(), 190);
        let mut payload = Vec::new();
        properties.encode(&mut payload);
        assert_eq!(Properties::decode(&payload).unwrap(), properties);
        for (tag, body) in [
            (RANGE_TOMBSTONES, &[0, 1][..]),
            (EXPIRING, &[0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]),
            (EXPIRING, &[1, 1, 1, 1, 1, 1, 1, 1, 1, 1]),
            (EXPIRING, &[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]),
            // The last moment of a clock, and one after it.
            (
                EXPIRING,
                &[
                    1, 1, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f, 1,
                ],
            ),
            (
                EXPIRING,
                &[
                    1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40,
                ],
            ),
            (TRANSIENT_REFERENCES, &[0]),
            (TRANSIENT_REFERENCES, &[1, 7, 0, 0]),
            (TRANSIENT_REFERENCES, &[2, 7, 1, 1, 0, 1, 1]),
            (TRANSIENT_REFERENCES, &[1, 7, 1]),
            (TRANSIENT_REFERENCES, &[1, 7, 1, 1, 0]),
            (LOG_REFERENCES, &[0, 1, 7, 1]),
            (LOG_REFERENCES, &[1, 1, 7]),
            (LOG_REFERENCES, &[1, 1, 7, 1, 0]),
            (OPERANDS, &[0]),
            (OPERANDS, &[]),
            (OPERANDS, &[1, 1]),
            (KEYSPACE, &[]),
            (KEYSPACE, &[1, 1]),
            (KEYSPACE, &[0x80, 0x80, 0x80, 0x80, 0x10]),
        ] {
            let mut payload = Vec::new();
            sample().encode(&mut payload);
            put_varint(&mut payload, tag);
            put_bytes(&mut payload, body);
            assert!(Properties::decode(&payload).is_err(), "{tag} {body:?}");
        }
    }

    #[test]
    fn properties_round_trip_and_optional_fields_are_skipped() {
        let mut payload = Vec::new();
        sample().encode(&mut payload);
        assert_eq!(Properties::decode(&payload).unwrap(), sample());
        put_varint(&mut payload, OPTIONAL_TAGS + 1);
        put_bytes(&mut payload, b"later");
        assert_eq!(Properties::decode(&payload).unwrap(), sample());
    }

    #[test]
    fn unknown_fields_that_change_reads_are_refused() {
        let mut payload = Vec::new();
        sample().encode(&mut payload);
        put_varint(&mut payload, 17);
        put_bytes(&mut payload, b"prefix filter");
        assert!(Properties::decode(&payload).unwrap_err().unsupported);
    }

    #[test]
    fn a_missing_field_is_damage() {
        let mut payload = Vec::new();
        sample().encode(&mut payload);
        for length in 0..payload.len() {
            assert!(Properties::decode(&payload[..length]).is_err());
        }
    }

    proptest! {
        #[test]
        fn decoding_anything_never_panics(
            payload in proptest::collection::vec(any::<u8>(), 0..60),
        ) {
            drop(Properties::decode(&payload));
        }
    }
}

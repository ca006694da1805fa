//! The properties block: counts, bounds and references of a segment.
//!
//! See "Properties block" in `docs/format.md`. A reader refuses the file if it meets an unknown tag below
//! [`OPTIONAL_TAGS`]; it skips unknown tags from there on. All reserved tags change reads.

use crate::base::SequenceNumber;
use crate::base::key::SEQUENCE_MAX;
use crate::base::limits::KEY_BYTES_MAX;
use crate::codec::Reader;
use crate::codec::reader::DecodeError;
use crate::codec::varint::{put_bytes, put_varint};

use super::meta::{References, SegmentMeta};

/// The first tag that a reader may skip.
const OPTIONAL_TAGS: u64 = 128;

const SMALLEST: u64 = 1;
const LARGEST: u64 = 2;
const ENTRIES: u64 = 3;
const TOMBSTONES: u64 = 4;
const SEQUENCE_MIN: u64 = 5;
const SEQUENCE_MAX_TAG: u64 = 6;
const LOGICAL_BYTES: u64 = 7;
const FILTER_BYTES: u64 = 8;
const BLOCKS: u64 = 9;
/// Absent if there are none.
const REFERENCES: u64 = 19;

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
    /// The references of the entries to value files.
    pub(crate) references: References,
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
        if self.references != References::default() {
            body.clear();
            self.references.encode(&mut body);
            put_varint(output, REFERENCES);
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
                REFERENCES => {
                    properties.references = read_references(body)
                        .ok_or_else(|| start.error("the references of a table are malformed"))?;
                    continue;
                }
                OPTIONAL_TAGS.. => continue,
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

    /// Whether the manifest records the same of the segment.
    pub(crate) fn agree_with(&self, meta: &SegmentMeta) -> bool {
        self.smallest == meta.smallest
            && self.largest == meta.largest
            && self.entries == meta.entries
            && self.tombstones == meta.tombstones
            && self.sequence_min == meta.sequence_min
            && self.sequence_max == meta.sequence_max
            && self.logical_bytes == meta.logical_bytes
            && self.filter_bytes == meta.filter_bytes()
            && self.references == meta.references
    }
}

/// The references of a segment that has any.
fn read_references(body: &[u8]) -> Option<References> {
    let mut reader = Reader::new(body);
    let references = References::read(&mut reader).ok()?;
    (reader.is_empty() && references != References::default()).then_some(references)
}

#[cfg(test)]
mod tests {
    use super::super::meta::Referred;
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
            references: References::default(),
        }
    }

    #[test]
    fn references_round_trip_and_their_damage_is_found() {
        let mut properties = sample();
        for (file, record_bytes) in [(9, 100), (7, 50), (9, 40)] {
            let mut pointer = Vec::new();
            ValuePointer {
                file: FileNumber(file),
                offset: 5,
                record_bytes,
                value_bytes: 30,
            }
            .encode(&mut pointer);
            let trailer = Trailer::new(1, Kind::TransientPointer);
            let noted = properties.references.note(trailer, &pointer).unwrap();
            assert_eq!(noted, 30);
        }
        let referred: Vec<_> = properties.references.iter().collect();
        let expected = |file, entries, bytes| {
            let is_log = false;
            let referred = Referred {
                is_log,
                entries,
                bytes,
            };
            (FileNumber(file), referred)
        };
        assert_eq!(referred, [expected(7, 1, 50), expected(9, 2, 140)]);
        let mut payload = Vec::new();
        properties.encode(&mut payload);
        assert_eq!(Properties::decode(&payload).unwrap(), properties);
        for body in [
            &[0][..],
            &[1, 7, 0, 0, 0],
            &[1, 7, 2, 1, 1],
            &[2, 7, 0, 1, 1, 7, 0, 1, 1],
            &[1, 7, 0, 1],
            &[1, 7, 0, 1, 1, 0],
        ] {
            let mut payload = Vec::new();
            sample().encode(&mut payload);
            put_varint(&mut payload, REFERENCES);
            put_bytes(&mut payload, body);
            assert!(Properties::decode(&payload).is_err(), "{body:?}");
        }
    }

    #[test]
    fn properties_round_trip_and_optional_fields_are_skipped() {
        let mut payload = Vec::new();
        sample().encode(&mut payload);
        assert_eq!(Properties::decode(&payload).unwrap(), sample());
        put_varint(&mut payload, OPTIONAL_TAGS);
        put_bytes(&mut payload, b"later");
        assert_eq!(Properties::decode(&payload).unwrap(), sample());
    }

    #[test]
    fn unknown_fields_that_change_reads_are_refused() {
        let mut payload = Vec::new();
        sample().encode(&mut payload);
        put_varint(&mut payload, 16);
        put_bytes(&mut payload, b"range deletions");
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

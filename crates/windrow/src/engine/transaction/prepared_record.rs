//! What is stored of a prepared transaction: its writes, and what it has read. It holds both until its end.
//!
//! The bytes are in `docs/format.md` ("Prepared transactions").
//!
//! I1. Decoding yields exactly what was encoded, or an error. It allocates nothing by an unchecked length.
//!
//! Concurrency: none.

use std::ops::Bound;

use super::write_set::EncodedWrites;
use crate::base::KeyspaceId;
use crate::base::limits::{BATCH_BYTES_MAX, KEY_BYTES_MAX, TRANSACTION_READS_BYTES_MAX};
use crate::codec::Reader;
use crate::codec::reader::DecodeError;
use crate::codec::varint::{put_bytes, put_varint};
use crate::engine::commit::read_set::ReadSet;
use crate::log::batch::BatchReader;
use crate::read::visible::KeyRange;

/// The version of the form.
pub(crate) const VERSION: u8 = 1;

const UNBOUNDED: u8 = 0;
const INCLUDED: u8 = 1;
const EXCLUDED: u8 = 2;

/// A decoded record.
#[derive(Debug)]
pub(super) struct PreparedRecord<'a> {
    count: u32,
    entries: &'a [u8],
    pub(super) keys: Vec<(KeyspaceId, &'a [u8])>,
    pub(super) ranges: Vec<(KeyspaceId, KeyRange)>,
}

impl<'a> PreparedRecord<'a> {
    /// The writes.
    pub(super) fn writes(&self) -> BatchReader<'a> {
        BatchReader::entries(self.entries, 0, self.count)
    }

    pub(super) fn decode(record: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(record);
        let start = reader.clone();
        if reader.u8("version of a prepared transaction")? != VERSION {
            return Err(start.unsupported("a newer form of a prepared transaction"));
        }
        let count = reader.varint_at_most(u64::from(u32::MAX), "count of writes")?;
        let entries = reader.prefixed_bytes(BATCH_BYTES_MAX, "writes of a prepared transaction")?;
        let mut keys = Vec::new();
        for _ in 0..reader.varint("count of keys")? {
            let keyspace = keyspace(&mut reader)?;
            keys.push((keyspace, reader.prefixed_bytes(KEY_BYTES_MAX, "a key")?));
        }
        let mut ranges = Vec::new();
        for _ in 0..reader.varint("count of ranges")? {
            let keyspace = keyspace(&mut reader)?;
            let (lower, upper) = (bound(&mut reader)?, bound(&mut reader)?);
            ranges.push((keyspace, KeyRange { lower, upper }));
        }
        reader.finish("bytes behind a prepared transaction")?;
        Ok(Self {
            count: u32::try_from(count).unwrap_or(u32::MAX),
            entries,
            keys,
            ranges,
        })
    }
}

fn keyspace(reader: &mut Reader<'_>) -> Result<KeyspaceId, DecodeError> {
    let id = reader.varint_at_most(u64::from(u32::MAX), "keyspace of a read")?;
    Ok(KeyspaceId(u32::try_from(id).unwrap_or(u32::MAX)))
}

fn bound(reader: &mut Reader<'_>) -> Result<Bound<Box<[u8]>>, DecodeError> {
    let start = reader.clone();
    let kind = reader.u8("kind of a bound")?;
    if kind == UNBOUNDED {
        return Ok(Bound::Unbounded);
    }
    // Callers choose the bounds of cursors: they may be longer than a key.
    let key = reader
        .prefixed_bytes(TRANSACTION_READS_BYTES_MAX, "a bound")?
        .into();
    match kind {
        INCLUDED => Ok(Bound::Included(key)),
        EXCLUDED => Ok(Bound::Excluded(key)),
        _ => Err(start.error("an unknown kind of a bound")),
    }
}

fn put_bound(record: &mut Vec<u8>, bound: &Bound<Box<[u8]>>) {
    let (kind, key) = match bound {
        Bound::Unbounded => return record.push(UNBOUNDED),
        Bound::Included(key) => (INCLUDED, key),
        Bound::Excluded(key) => (EXCLUDED, key),
    };
    record.push(kind);
    put_bytes(record, key);
}

/// The record of a transaction with these writes and reads.
pub(super) fn encode(writes: &EncodedWrites, reads: &ReadSet) -> Vec<u8> {
    let mut record = vec![VERSION];
    put_varint(&mut record, u64::from(writes.count()));
    put_bytes(&mut record, writes.entries());
    let (ranges, keys) = reads.len();
    put_varint(&mut record, keys as u64);
    for reads in reads.keyspaces() {
        for key in reads.keys.keys() {
            put_varint(&mut record, u64::from(reads.keyspace.id().0));
            put_bytes(&mut record, key);
        }
    }
    put_varint(&mut record, ranges as u64);
    for reads in reads.keyspaces() {
        for (range, _) in &reads.ranges {
            put_varint(&mut record, u64::from(reads.keyspace.id().0));
            put_bound(&mut record, &range.lower);
            put_bound(&mut record, &range.upper);
        }
    }
    record
}

#[cfg(test)]
#[cfg(not(any(loom, shuttle)))]
mod tests {
    use super::*;

    fn record() -> Vec<u8> {
        let mut record = encode(&EncodedWrites::default(), &ReadSet::default());
        record.truncate(3);
        record.extend([2, 7, 1, b'a', 7, 2, b'b', b'c']);
        record.extend([1, 9, INCLUDED, 1, b'x', UNBOUNDED]);
        record
    }

    #[test]
    fn what_was_encoded_is_decoded() {
        let empty = encode(&EncodedWrites::default(), &ReadSet::default());
        assert_eq!(empty, [VERSION, 0, 0, 0, 0]);
        assert!(PreparedRecord::decode(&empty).unwrap().keys.is_empty());
        let record = record();
        let decoded = PreparedRecord::decode(&record).unwrap();
        let keys: [(KeyspaceId, &[u8]); 2] = [(KeyspaceId(7), b"a"), (KeyspaceId(7), b"bc")];
        assert_eq!(decoded.keys, keys);
        let (keyspace, range) = &decoded.ranges[0];
        assert_eq!(
            (*keyspace, &range.upper),
            (KeyspaceId(9), &Bound::Unbounded)
        );
        assert!(range.is_above_lower(b"x") && !range.is_above_lower(b"w"));
    }

    #[test]
    fn damaged_records_are_refused() {
        let record = record();
        for length in 0..record.len() {
            assert!(
                PreparedRecord::decode(&record[..length]).is_err(),
                "{length}"
            );
        }
        let mut longer = record.clone();
        longer.push(0);
        assert!(PreparedRecord::decode(&longer).is_err());
        let mut newer = record;
        newer[0] = VERSION + 1;
        assert!(PreparedRecord::decode(&newer).unwrap_err().unsupported);
    }
}

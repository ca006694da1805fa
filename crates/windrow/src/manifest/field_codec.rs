//! The bytes of the fields of a record. See "Manifest" in `docs/format.md`.
//!
//! I1. A field that decodes is consistent in itself: at least one segment, segments one behind the
//!     other, ordered keys and sequence numbers, no more tombstones than entries.
//! I2. A field that decodes encodes to the same bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::key::SEQUENCE_MAX;
use crate::base::limits::KEYSPACE_NAME_BYTES_MAX;
use crate::base::limits::{KEY_BYTES_MAX, LEVELS_MAX, SEGMENTS_MAX};
use crate::base::{FileNumber, KeyspaceId, SegmentId, Totals};
use crate::codec::Reader;
use crate::codec::reader::DecodeError;
use crate::codec::varint::{put_bytes, put_varint};
use crate::filter::FILTER_UNITS_MAX;
use crate::options::RecordedOptions;
use crate::table::{
    Expiring, FenceKeys, FileMeta, SEGMENT_ALIGNMENT, SegmentMeta, SegmentReferences,
};
use crate::value::{DiscardList, RelocationTable, ValueFileMeta};

/// The longest name, and the longest value, of an option, in bytes.
const OPTION_BYTES_MAX: usize = 4096;

/// A field of a record.
pub(super) trait Field: Sized {
    /// Appends the field to `body`.
    fn put(&self, body: &mut Vec<u8>);

    /// Reads the field that [`put`](Field::put) wrote.
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError>;
}

/// An id, a sequence number or an offset.
impl Field for u64 {
    fn put(&self, body: &mut Vec<u8>) {
        put_varint(body, *self);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.varint("number in a record")
    }
}

impl<F: Field> Field for Arc<F> {
    fn put(&self, body: &mut Vec<u8>) {
        F::put(self, body);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        F::read(reader).map(Arc::new)
    }
}

/// A level, or a number of levels.
impl Field for u8 {
    fn put(&self, body: &mut Vec<u8>) {
        body.push(*self);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let start = reader.clone();
        let level = reader.u8("level")?;
        if usize::from(level) > LEVELS_MAX {
            return Err(start.error("a level beyond the deepest"));
        }
        Ok(level)
    }
}

impl Field for FileNumber {
    fn put(&self, body: &mut Vec<u8>) {
        put_varint(body, self.0);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.varint("number of a file").map(FileNumber)
    }
}

/// File numbers up to the end of the body.
impl Field for Vec<FileNumber> {
    fn put(&self, body: &mut Vec<u8>) {
        for number in self {
            number.put(body);
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut numbers = Vec::new();
        while !reader.is_empty() {
            numbers.push(FileNumber::read(reader)?);
        }
        Ok(numbers)
    }
}

impl Field for KeyspaceId {
    fn put(&self, body: &mut Vec<u8>) {
        put_varint(body, u64::from(self.0));
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let start = reader.clone();
        let id = reader.varint("id of a keyspace")?;
        match u32::try_from(id) {
            Ok(id) => Ok(KeyspaceId(id)),
            Err(_) => Err(start.error("id of a keyspace beyond the largest")),
        }
    }
}

/// The name of a keyspace.
impl Field for String {
    fn put(&self, body: &mut Vec<u8>) {
        put_bytes(body, self.as_bytes());
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let start = reader.clone();
        let name = reader.prefixed_bytes(KEYSPACE_NAME_BYTES_MAX, "name")?;
        match std::str::from_utf8(name) {
            Ok(name) if !name.is_empty() => Ok(name.to_owned()),
            _ => Err(start.error("a name is empty or not UTF-8")),
        }
    }
}

/// Names and values up to the end of the body.
impl Field for RecordedOptions {
    fn put(&self, body: &mut Vec<u8>) {
        for (name, text) in self {
            put_bytes(body, name.as_bytes());
            put_bytes(body, text.as_bytes());
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut options = RecordedOptions::new();
        while !reader.is_empty() {
            let start = reader.clone();
            let name = read_text(reader, "name of an option")?;
            let text = read_text(reader, "value of an option")?;
            let last = options.last_key_value();
            if last.is_some_and(|(last, _)| *last >= name) {
                return Err(start.error("options out of order")); // I2
            }
            options.insert(name, text);
        }
        Ok(options)
    }
}

/// Counters up to the end of the body.
impl Field for Totals {
    fn put(&self, body: &mut Vec<u8>) {
        for (number, total) in self {
            put_varint(body, *number);
            put_varint(body, *total);
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut totals = Self::new();
        while !reader.is_empty() {
            let start = reader.clone();
            let number = reader.varint("number of a counter")?;
            let total = reader.varint("total of a counter")?;
            let last = totals.last_key_value();
            if total == 0 || last.is_some_and(|(last, _)| *last >= number) {
                return Err(start.error("totals out of order, or of zero")); // I2
            }
            totals.insert(number, total);
        }
        Ok(totals)
    }
}

impl Field for FileMeta {
    fn put(&self, body: &mut Vec<u8>) {
        put_varint(body, self.number.0);
        body.push(u8::from(self.sealed) + u8::from(self.external));
        put_varint(body, self.segments.len() as u64);
        for (position, segment) in self.segments.iter().enumerate() {
            match position {
                0 => put_first_segment(body, segment),
                _ => segment.put(body),
            }
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let number = FileNumber(reader.varint("number of a table file")?);
        let start = reader.clone();
        let (sealed, external) = match reader.u8("flags of a table file")? {
            0 => (false, false),
            1 => (true, false),
            2 => (true, true),
            _ => return Err(start.unsupported("unknown flags of a table file")),
        };
        let start = reader.clone();
        let count = reader.varint_at_most(SEGMENTS_MAX as u64, "count of segments")?;
        if count == 0 {
            return Err(start.error("a table file without segments"));
        }
        let mut segments = Vec::with_capacity(usize::try_from(count).unwrap_or(SEGMENTS_MAX));
        let mut free = 0;
        for position in 0..count {
            let start = reader.clone();
            let segment = match position {
                0 => read_first_segment(reader)?,
                _ => SegmentMeta::read(reader)?,
            };
            if segment.offset < free {
                return Err(start.error("a segment inside the one before"));
            }
            free = segment.end();
            segments.push(segment);
        }
        Ok(FileMeta {
            number,
            sealed,
            external,
            segments: segments.into(),
        })
    }
}

/// A segment that is not the first of its file.
impl Field for SegmentMeta {
    fn put(&self, body: &mut Vec<u8>) {
        put_first_segment(body, self);
        put_varint(body, self.overwrites);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let segment = read_first_segment(reader)?;
        let what = "keys of a segment that older segments hold";
        let overwrites = reader.varint_at_most(segment.entries, what)?;
        Ok(SegmentMeta {
            overwrites,
            ..segment
        })
    }
}

impl Field for ValueFileMeta {
    fn put(&self, body: &mut Vec<u8>) {
        put_varint(body, self.number.0);
        put_varint(body, self.length);
        put_varint(body, self.entries);
        put_varint(body, self.value_bytes);
        put_varint(body, self.end - self.length);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let start = reader.clone();
        let number = FileNumber(reader.varint("number of a value file")?);
        let length = reader.varint("length of a value file")?;
        let entries = reader.varint("entries of a value file")?;
        let value_bytes = reader.varint("bytes of the values of a value file")?;
        let behind = reader.varint("bytes behind the records of a value file")?;
        let end = length
            .checked_add(behind)
            .ok_or_else(|| start.error("a value file that is too long"))?;
        let file = ValueFileMeta {
            number,
            length,
            entries,
            value_bytes,
            end,
        };
        if length < entries || file.is_growing() {
            return Err(start.error("a value file with more entries than it can hold"));
        }
        Ok(file)
    }
}

impl Field for RelocationTable {
    fn put(&self, body: &mut Vec<u8>) {
        put_varint(body, self.origin.0);
        put_varint(body, self.origin_bytes);
        put_varint(body, self.gc_output.0);
        put_varint(body, self.offset);
        put_varint(body, self.entries);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let start = reader.clone();
        let table = RelocationTable {
            origin: FileNumber(reader.varint("origin of a relocation table")?),
            origin_bytes: reader.varint("length of the origin of a relocation table")?,
            gc_output: FileNumber(reader.varint("GC output of a relocation table")?),
            offset: reader.varint("offset of a relocation table")?,
            entries: reader.varint("entries of a relocation table")?,
        };
        if table.entries == 0 || table.entries > table.origin_bytes || table.end().is_none() {
            return Err(start.error("a relocation table with an impossible number of entries"));
        }
        Ok(table)
    }
}

impl Field for DiscardList {
    fn put(&self, body: &mut Vec<u8>) {
        put_varint(body, self.number.0);
        put_varint(body, self.length);
        put_varint(body, self.counts.len() as u64);
        for (file, count) in &self.counts {
            put_varint(body, file.0);
            put_varint(body, *count);
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let number = FileNumber(reader.varint("number of a discard list")?);
        let length = reader.varint("length of a discard list")?;
        let files = reader.varint("count of value files of a discard list")?;
        let mut counts = BTreeMap::new();
        for _ in 0..files {
            let start = reader.clone();
            let file = FileNumber(reader.varint("value file of a discard list")?);
            let count = reader.varint("count of garbage values")?;
            let last = counts.last_key_value().map(|(last, _)| *last);
            if last >= Some(file) || count == 0 || count > length {
                return Err(start.error("counts of a discard list are out of order or impossible"));
            }
            counts.insert(file, count);
        }
        Ok(DiscardList {
            number,
            length,
            counts,
        })
    }
}

/// Added to the count of filter units if a count of range tombstones follows them.
const HAS_RANGE_TOMBSTONES: u64 = 8;

/// Added to the same if a description of the entries that expire follows.
const HAS_EXPIRING: u64 = 16;

/// Added to the same if a count of operands follows.
const HAS_OPERANDS: u64 = 32;

/// Added to the same if the number of entries follows that the range tombstones hide.
const HAS_HIDDEN: u64 = 64;

fn put_first_segment(buffer: &mut Vec<u8>, segment: &SegmentMeta) {
    put_varint(buffer, segment.id.0);
    put_varint(buffer, segment.offset);
    put_varint(buffer, segment.length);
    put_varint(buffer, segment.entries);
    put_varint(buffer, segment.tombstones);
    put_bytes(buffer, segment.smallest());
    put_bytes(buffer, segment.largest());
    put_varint(buffer, segment.sequence_min);
    put_varint(buffer, segment.sequence_max);
    put_varint(buffer, segment.logical_bytes);
    let units = segment.filter_units.iter().filter(|unit| **unit > 0);
    let has_ranges = segment.range_tombstones > 0;
    let mut marked = units.clone().count() as u64;
    marked += if has_ranges { HAS_RANGE_TOMBSTONES } else { 0 };
    marked += if segment.expiring.is_some() {
        HAS_EXPIRING
    } else {
        0
    };
    marked += if segment.operands > 0 {
        HAS_OPERANDS
    } else {
        0
    };
    let has_hidden = segment.hidden_below > 0;
    marked += if has_hidden { HAS_HIDDEN } else { 0 };
    put_varint(buffer, marked);
    for unit in units {
        put_varint(buffer, *unit);
    }
    if has_ranges {
        put_varint(buffer, segment.range_tombstones.into());
    }
    if has_hidden {
        put_varint(buffer, segment.hidden_below.into());
    }
    if let Some(expiring) = &segment.expiring {
        expiring.encode(buffer);
    }
    if segment.operands > 0 {
        put_varint(buffer, segment.operands);
    }
    buffer.extend_from_slice(&segment.footer_checksum.to_le_bytes());
    segment.references.encode(buffer);
}

fn read_first_segment(reader: &mut Reader<'_>) -> Result<SegmentMeta, DecodeError> {
    let start = reader.clone();
    let mut segment = SegmentMeta {
        id: SegmentId(reader.varint("id of a segment")?),
        offset: reader.varint("offset of a segment")?,
        length: reader.varint("length of a segment")?,
        entries: reader.varint("entries of a segment")?,
        tombstones: reader.varint("tombstones of a segment")?,
        keys: FenceKeys::new(read_key(reader)?, read_key(reader)?),
        sequence_min: reader.varint("smallest sequence number of a segment")?,
        sequence_max: reader
            .varint_at_most(SEQUENCE_MAX, "largest sequence number of a segment")?,
        logical_bytes: reader.varint("logical bytes of a segment")?,
        overwrites: 0,
        filter_units: [0; FILTER_UNITS_MAX],
        range_tombstones: 0,
        operands: 0,
        hidden_below: 0,
        expiring: None,
        footer_checksum: 0,
        references: SegmentReferences::default(),
    };
    read_marked(reader, &mut segment)?;
    segment.footer_checksum = reader.u32("footer checksum of a segment")?;
    segment.references = SegmentReferences::read(reader)?;
    if !segment.offset.is_multiple_of(SEGMENT_ALIGNMENT)
        || segment.offset.checked_add(segment.length).is_none()
    {
        return Err(start.error("a segment where none can be"));
    }
    if segment.tombstones > segment.entries || segment.entries == 0 {
        return Err(start.error("a segment without entries, or with more tombstones than entries"));
    }
    if u64::from(segment.range_tombstones) > segment.tombstones {
        return Err(start.error("a segment with more range tombstones than tombstones"));
    }
    if segment.hidden_below > 0 && segment.range_tombstones == 0 {
        return Err(start.error("a segment that hides entries without range tombstones"));
    }
    let expiring = segment.expiring.as_ref().map_or(0, |it| it.entries);
    if expiring > segment.entries - segment.tombstones {
        return Err(start.error("a segment with more entries that expire than values"));
    }
    if segment.operands > segment.entries - segment.tombstones - expiring {
        return Err(start.error("a segment with more operands than other entries"));
    }
    if segment.smallest() > segment.largest() {
        return Err(start.error("a segment whose smallest key is above its largest"));
    }
    if segment.sequence_min > segment.sequence_max {
        return Err(start.error("a segment whose smallest sequence number is above its largest"));
    }
    if segment.references.entries() > segment.entries {
        return Err(start.error("a segment with more references than entries"));
    }
    Ok(segment)
}

/// Reads the lengths of the filter units, the number of range tombstones and of what they hide, what is known of entries
/// that expire, and the number of operands.
fn read_marked(reader: &mut Reader<'_>, segment: &mut SegmentMeta) -> Result<(), DecodeError> {
    let most = FILTER_UNITS_MAX as u64;
    let start = reader.clone();
    let all_marks = HAS_RANGE_TOMBSTONES | HAS_EXPIRING | HAS_OPERANDS | HAS_HIDDEN;
    let marked = reader.varint_at_most(all_marks + most, "count of filter units")?;
    let count = marked & !all_marks;
    if count > most {
        return Err(start.error("too many filter units"));
    }
    for (unit, _) in segment.filter_units.iter_mut().zip(0..count) {
        let start = reader.clone();
        *unit = reader.varint("bytes of a filter unit")?;
        if *unit == 0 {
            return Err(start.error("an empty filter unit"));
        }
    }
    if marked & HAS_RANGE_TOMBSTONES != 0 {
        segment.range_tombstones = read_count(reader, "count of range tombstones")?;
    }
    if marked & HAS_HIDDEN != 0 {
        segment.hidden_below = read_count(reader, "count of hidden entries")?;
    }
    if marked & HAS_EXPIRING != 0 {
        segment.expiring = Some(Box::new(Expiring::read(reader)?));
    }
    if marked & HAS_OPERANDS != 0 {
        let start = reader.clone();
        segment.operands = reader.varint("count of operands")?;
        if segment.operands == 0 {
            return Err(start.error("a count of operands that is zero"));
        }
    }
    Ok(())
}

/// A count from 1 to 2^32 - 1.
fn read_count(reader: &mut Reader<'_>, what: &'static str) -> Result<u32, DecodeError> {
    let start = reader.clone();
    match u32::try_from(reader.varint(what)?) {
        Ok(count @ 1..) => Ok(count),
        _ => Err(start.error("a count out of its bounds")),
    }
}

fn read_key<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], DecodeError> {
    let start = reader.clone();
    let key = reader.prefixed_bytes(KEY_BYTES_MAX, "boundary key of a segment")?;
    if key.is_empty() {
        return Err(start.error("an empty boundary key"));
    }
    Ok(key)
}

fn read_text(reader: &mut Reader<'_>, what: &'static str) -> Result<String, DecodeError> {
    let start = reader.clone();
    let bytes = reader.prefixed_bytes(OPTION_BYTES_MAX, what)?;
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(start.error("an option that is not UTF-8")),
    }
}

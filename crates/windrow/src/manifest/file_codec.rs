//! The bytes of the metadata of table files and value files in an edit. See "Manifest" in `docs/format.md`.
//!
//! I1. What decodes is consistent in itself: at least one segment, segments one behind the other,
//!     ordered keys and sequence numbers, no more tombstones than entries.

use std::collections::BTreeMap;

use crate::base::key::SEQUENCE_MAX;
use crate::base::limits::{KEY_BYTES_MAX, SEGMENTS_MAX};
use crate::base::{FileNumber, SegmentId};
use crate::codec::Reader;
use crate::codec::reader::DecodeError;
use crate::codec::varint::{put_bytes, put_varint};
use crate::filter::FILTER_UNITS_MAX;
use crate::table::{FileMeta, References, SEGMENT_ALIGNMENT, SegmentMeta};
use crate::value::{DiscardList, RelocationTable, ValueFileMeta};

/// Appends `file` to `buffer`.
pub(super) fn put_file(buffer: &mut Vec<u8>, file: &FileMeta) {
    put_varint(buffer, file.number.0);
    buffer.push(u8::from(file.sealed));
    put_varint(buffer, file.segments.len() as u64);
    for (position, segment) in file.segments.iter().enumerate() {
        match position {
            0 => put_segment(buffer, segment),
            _ => put_later_segment(buffer, segment),
        }
    }
}

/// Appends `segment`, which has others before it in its file, to `buffer`.
pub(super) fn put_later_segment(buffer: &mut Vec<u8>, segment: &SegmentMeta) {
    put_segment(buffer, segment);
    put_varint(buffer, segment.overwrites);
}

fn put_segment(buffer: &mut Vec<u8>, segment: &SegmentMeta) {
    put_varint(buffer, segment.id.0);
    put_varint(buffer, segment.offset);
    put_varint(buffer, segment.length);
    put_varint(buffer, segment.entries);
    put_varint(buffer, segment.tombstones);
    put_bytes(buffer, &segment.smallest);
    put_bytes(buffer, &segment.largest);
    put_varint(buffer, segment.sequence_min);
    put_varint(buffer, segment.sequence_max);
    put_varint(buffer, segment.logical_bytes);
    let units = segment.filter_units.iter().filter(|unit| **unit > 0);
    put_varint(buffer, units.clone().count() as u64);
    for unit in units {
        put_varint(buffer, *unit);
    }
    buffer.extend_from_slice(&segment.footer_checksum.to_le_bytes());
    segment.references.encode(buffer);
}

/// Reads what [`put_file`] wrote.
pub(super) fn read_file(reader: &mut Reader<'_>) -> Result<FileMeta, DecodeError> {
    let number = FileNumber(reader.varint("number of a table file")?);
    let start = reader.clone();
    let sealed = match reader.u8("flags of a table file")? {
        0 => false,
        1 => true,
        _ => return Err(start.unsupported("unknown flags of a table file")),
    };
    let start = reader.clone();
    let count = reader.varint_at_most(SEGMENTS_MAX as u64, "count of segments")?;
    if count == 0 {
        return Err(start.error("a table file without segments"));
    }
    let mut segments = Vec::new();
    let mut free = 0;
    for position in 0..count {
        let start = reader.clone();
        let segment = match position {
            0 => read_segment(reader)?,
            _ => read_later_segment(reader)?,
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
        segments,
    })
}

/// Reads what [`put_later_segment`] wrote.
pub(super) fn read_later_segment(reader: &mut Reader<'_>) -> Result<SegmentMeta, DecodeError> {
    let segment = read_segment(reader)?;
    let what = "keys of a segment that older ones have";
    let overwrites = reader.varint_at_most(segment.entries, what)?;
    Ok(SegmentMeta {
        overwrites,
        ..segment
    })
}

/// Reads what [`put_segment`] wrote.
fn read_segment(reader: &mut Reader<'_>) -> Result<SegmentMeta, DecodeError> {
    let start = reader.clone();
    let segment = SegmentMeta {
        id: SegmentId(reader.varint("id of a segment")?),
        offset: reader.varint("offset of a segment")?,
        length: reader.varint("length of a segment")?,
        entries: reader.varint("entries of a segment")?,
        tombstones: reader.varint("tombstones of a segment")?,
        smallest: read_key(reader)?,
        largest: read_key(reader)?,
        sequence_min: reader.varint("smallest sequence number of a segment")?,
        sequence_max: reader
            .varint_at_most(SEQUENCE_MAX, "largest sequence number of a segment")?,
        logical_bytes: reader.varint("logical bytes of a segment")?,
        overwrites: 0,
        filter_units: read_filter_units(reader)?,
        footer_checksum: reader.u32("footer checksum of a segment")?,
        references: References::read(reader)?,
    };
    if !segment.offset.is_multiple_of(SEGMENT_ALIGNMENT)
        || segment.offset.checked_add(segment.length).is_none()
    {
        return Err(start.error("a segment where none can be"));
    }
    if segment.tombstones > segment.entries || segment.entries == 0 {
        return Err(start.error("a segment without entries, or with more tombstones than entries"));
    }
    if segment.smallest > segment.largest {
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

/// Appends `file` to `buffer`.
pub(super) fn put_value_file(buffer: &mut Vec<u8>, file: &ValueFileMeta) {
    put_varint(buffer, file.number.0);
    put_varint(buffer, file.length);
    put_varint(buffer, file.entries);
    put_varint(buffer, file.value_bytes);
    put_varint(buffer, file.end - file.length);
}

/// Appends `table` to `buffer`.
pub(super) fn put_table(buffer: &mut Vec<u8>, table: &RelocationTable) {
    put_varint(buffer, table.origin.0);
    put_varint(buffer, table.origin_bytes);
    put_varint(buffer, table.gc_output.0);
    put_varint(buffer, table.offset);
    put_varint(buffer, table.entries);
}

/// Reads what [`put_table`] wrote.
pub(super) fn read_table(reader: &mut Reader<'_>) -> Result<RelocationTable, DecodeError> {
    let start = reader.clone();
    let table = RelocationTable {
        origin: FileNumber(reader.varint("origin of a relocation table")?),
        origin_bytes: reader.varint("length of the origin of a relocation table")?,
        gc_output: FileNumber(reader.varint("successor of a value log")?),
        offset: reader.varint("offset of a relocation table")?,
        entries: reader.varint("entries of a relocation table")?,
    };
    if table.entries == 0 || table.entries > table.origin_bytes || table.end().is_none() {
        return Err(start.error("a relocation table with an impossible number of entries"));
    }
    Ok(table)
}

/// Appends `list` to `buffer`.
pub(super) fn put_discard_list(buffer: &mut Vec<u8>, list: &DiscardList) {
    put_varint(buffer, list.number.0);
    put_varint(buffer, list.length);
    put_varint(buffer, list.counts.len() as u64);
    for (file, count) in &list.counts {
        put_varint(buffer, file.0);
        put_varint(buffer, *count);
    }
}

/// Reads what [`put_discard_list`] wrote.
pub(super) fn read_discard_list(reader: &mut Reader<'_>) -> Result<DiscardList, DecodeError> {
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

/// Reads what [`put_value_file`] wrote.
pub(super) fn read_value_file(reader: &mut Reader<'_>) -> Result<ValueFileMeta, DecodeError> {
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

fn read_filter_units(reader: &mut Reader<'_>) -> Result<[u64; FILTER_UNITS_MAX], DecodeError> {
    let count = reader.varint_at_most(FILTER_UNITS_MAX as u64, "count of filter units")?;
    let mut units = [0; FILTER_UNITS_MAX];
    for (unit, _) in units.iter_mut().zip(0..count) {
        let start = reader.clone();
        *unit = reader.varint("bytes of a filter unit")?;
        if *unit == 0 {
            return Err(start.error("an empty filter unit"));
        }
    }
    Ok(units)
}

fn read_key(reader: &mut Reader<'_>) -> Result<Box<[u8]>, DecodeError> {
    let start = reader.clone();
    let key = reader.prefixed_bytes(KEY_BYTES_MAX, "boundary key of a segment")?;
    if key.is_empty() {
        return Err(start.error("an empty boundary key"));
    }
    Ok(key.into())
}

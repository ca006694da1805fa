//! The bytes of the metadata of table files and value files in an edit. See "Manifest" in `docs/format.md`.
//!
//! I1. What decodes is consistent in itself: at least one segment, segments one behind the other,
//!     ordered keys and sequence numbers, no more tombstones than entries.

use crate::base::key::SEQUENCE_MAX;
use crate::base::limits::{KEY_BYTES_MAX, SEGMENTS_MAX};
use crate::base::{FileNumber, SegmentId};
use crate::codec::Reader;
use crate::codec::reader::DecodeError;
use crate::codec::varint::{put_bytes, put_varint};
use crate::filter::FILTER_UNITS_MAX;
use crate::table::{FileMeta, References, SegmentMeta};
use crate::value::ValueFileMeta;

/// Appends `file` to `buffer`.
pub(super) fn put_file(buffer: &mut Vec<u8>, file: &FileMeta) {
    put_varint(buffer, file.number.0);
    buffer.push(u8::from(file.sealed));
    put_varint(buffer, file.segments.len() as u64);
    for segment in &file.segments {
        put_segment(buffer, segment);
    }
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
    for _ in 0..count {
        let start = reader.clone();
        let segment = read_segment(reader)?;
        if segment.offset < free {
            return Err(start.error("a segment inside the one before"));
        }
        free = segment
            .offset
            .checked_add(segment.length)
            .ok_or_else(|| start.error("a segment beyond the largest file"))?;
        segments.push(segment);
    }
    Ok(FileMeta {
        number,
        sealed,
        segments,
    })
}

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
        filter_units: read_filter_units(reader)?,
        footer_checksum: reader.u32("footer checksum of a segment")?,
        references: References::read(reader)?,
    };
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
}

/// Reads what [`put_value_file`] wrote.
pub(super) fn read_value_file(reader: &mut Reader<'_>) -> Result<ValueFileMeta, DecodeError> {
    let start = reader.clone();
    let file = ValueFileMeta {
        number: FileNumber(reader.varint("number of a value file")?),
        length: reader.varint("length of a value file")?,
        entries: reader.varint("entries of a value file")?,
        value_bytes: reader.varint("bytes of the values of a value file")?,
    };
    if file.length < file.entries || file.is_growing() {
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

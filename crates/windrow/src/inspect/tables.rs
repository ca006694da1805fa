//! A table file, segment by segment and block by block.
//!
//! Without a manifest, the last segment is the one with the last sound footer. Bytes behind it may come
//! from a failed append. Each footer has the offset of the previous one.

use std::sync::Arc;

use super::{File, Record, Report};
use crate::base::expiry::split_expiring;
use crate::base::limits::SEGMENTS_MAX;
use crate::base::{Error, ErrorKind, FileNumber, Kind, Result, SegmentId, SequenceNumber};
use crate::block::Layout;
use crate::block::stored::{Place, decompress, verify};
use crate::codec::Compression;
use crate::codec::reader::DecodeError;
use crate::filter::Filter;
use crate::table::{
    EXTERNAL_FILE, EXTERNAL_SEGMENTS, Expiring, FOOTER_BYTES, Footer, Handle, IndexPartition,
    Properties, ReferenceList, Referred, TopLevelIndex, UnitLayout, read_ranges,
};
use crate::value::ValuePointer;
use crate::vfs::{self, read_exact_at};

/// Shows a table file.
pub(super) fn table(file: &File<'_>, number: FileNumber, report: &mut Report<'_>) -> Result<()> {
    let source = file.open()?;
    let length = source
        .length()
        .map_err(|error| Error::io("read the length of", file.path, error))?;
    let mut table = Table {
        file,
        source: &*source,
        checksum_file: number,
    };
    if table.is_external(length)? {
        table.checksum_file = EXTERNAL_FILE;
    }
    report.show(
        &Record::new("table")
            .number("file", number.0)
            .number("length", length),
    )?;
    let mut segments = Vec::new();
    let mut next = table.last_segment(length, report)?;
    let end = next.as_ref().map(Segment::end);
    while let Some(segment) = next {
        let before = segment.footer.previous;
        // A footer is before the segment that names it, so the loop ends.
        let before = before.filter(|&offset| offset < segment.footer.segment_offset);
        segments.push(segment);
        next = match before {
            Some(offset) if segments.len() < SEGMENTS_MAX => {
                report.sound(table.footer(offset + FOOTER_BYTES as u64))?
            }
            _ => None,
        };
    }
    for segment in segments.iter().rev() {
        table.segment(segment, report)?;
    }
    if let Some(end) = end.filter(|end| *end < length) {
        let free = Record::new("free").number("offset", end);
        report.show(&free.number("bytes", length - end))?;
    }
    Ok(())
}

/// The bytes of one step of the search for footers.
const SEARCH_BYTES: u64 = 64 << 10;

/// The record of the references to one value file.
pub(super) fn reference(file: FileNumber, referred: Referred) -> Record<'static> {
    Record::new("reference")
        .number("file", file.0)
        .number("entries", referred.entries)
        .number("bytes", referred.bytes)
}

/// The record of an entry of a batch or a block, which stores `stored`.
pub(super) fn entry<'k>(
    kind: Kind,
    sequence: SequenceNumber,
    key: &'k [u8],
    stored: &[u8],
) -> Record<'k> {
    let (expiry, value) = if kind.is_expiring() {
        let (expiry, value) = split_expiring(stored);
        (Some(expiry), value)
    } else {
        (None, stored)
    };
    let value_bytes = value.len() as u64;
    let record = match kind {
        Kind::Tombstone => Record::new("tombstone").bytes("key", key),
        Kind::Value => Record::new("value")
            .bytes("key", key)
            .number("value_bytes", value_bytes),
        Kind::TransientPointer => Record::new("transient_pointer").bytes("key", key),
        Kind::ValueLogPointer => Record::new("value_log_pointer").bytes("key", key),
        Kind::Operand => Record::new("operand")
            .bytes("key", key)
            .number("operand_bytes", value_bytes),
        Kind::RangeTombstone => Record::new("range_tombstone").bytes("key", key),
        Kind::ExpiringValue => Record::new("expiring_value")
            .bytes("key", key)
            .number("value_bytes", value_bytes),
        Kind::ExpiringTransientPointer => {
            Record::new("expiring_transient_pointer").bytes("key", key)
        }
        Kind::ExpiringValueLogPointer => {
            Record::new("expiring_value_log_pointer").bytes("key", key)
        }
    };
    let record = record.number("sequence", sequence);
    match expiry {
        Some(expiry) => record.number("expires_at_ms", expiry),
        None => record,
    }
}

struct Table<'a> {
    file: &'a File<'a>,
    source: &'a dyn vfs::File,
    /// The file number in its checksums.
    checksum_file: FileNumber,
}

struct Segment {
    id: SegmentId,
    footer: Footer,
    footer_offset: u64,
}

impl Segment {
    fn end(&self) -> u64 {
        self.footer_offset + FOOTER_BYTES as u64
    }
}

impl Table<'_> {
    /// Whether the file, of this length, says that it was written outside of a database.
    fn is_external(&self, length: u64) -> Result<bool> {
        let footer = FOOTER_BYTES as u64;
        let Some(offset) = length.checked_sub(footer) else {
            return Ok(false);
        };
        let bytes = self.read(Handle {
            offset,
            length: footer,
        })?;
        let segment = Footer::claimed_segment(&bytes).unwrap_or_default();
        Ok(Footer::begins(&bytes) && segment.0 >= EXTERNAL_SEGMENTS)
    }

    /// The last segment of a file of this length.
    fn last_segment(&self, length: u64, report: &mut Report<'_>) -> Result<Option<Segment>> {
        let Some(last) = self.footer_before(length)? else {
            // The error of the last bytes, which are not a footer.
            return report.sound(self.footer(length));
        };
        if last.end() < length && self.begins_footer(length)? {
            report.sound(self.footer(length))?;
        }
        if self.is_whole(&last)? {
            return Ok(Some(last));
        }
        // If a failed append has left this segment, the next append has begun at the same offset.
        let mut end = last.footer_offset;
        // Few appends have failed there; a file that somebody has made may have as many footers as fit.
        for _ in 0..SEGMENTS_MAX {
            let Some(earlier) = self.footer_before(end)? else {
                break;
            };
            if earlier.footer.segment_offset < last.footer.segment_offset {
                break;
            }
            if self.is_whole(&earlier)? {
                return Ok(Some(earlier));
            }
            end = earlier.footer_offset;
        }
        Ok(Some(last))
    }

    /// The last sound footer that ends at `end` or before.
    fn footer_before(&self, end: u64) -> Result<Option<Segment>> {
        let footer_bytes = FOOTER_BYTES as u64;
        // The first offset that is too late for a footer.
        let mut late = (end + 1).saturating_sub(footer_bytes);
        while late > 0 {
            let from = late.saturating_sub(SEARCH_BYTES);
            let bytes = self.read(Handle {
                offset: from,
                length: late - from + footer_bytes - 1,
            })?;
            let offsets = (from..late).rev().zip(bytes.windows(FOOTER_BYTES).rev());
            for (offset, bytes) in offsets {
                if !Footer::begins(bytes) {
                    continue;
                }
                match self.footer(offset + footer_bytes) {
                    Ok(segment) => return Ok(Some(segment)),
                    Err(error) if error.kind() == ErrorKind::Io => return Err(error),
                    Err(_) => {}
                }
            }
            late = from;
        }
        Ok(None)
    }

    /// Whether the last bytes before `end` begin like a footer.
    fn begins_footer(&self, end: u64) -> Result<bool> {
        let length = FOOTER_BYTES as u64;
        let offset = end.saturating_sub(length);
        let bytes = self.read(Handle { offset, length })?;
        Ok(Footer::begins(&bytes))
    }

    /// Whether the first block belongs to `segment`: no later append has begun at the same offset.
    fn is_whole(&self, segment: &Segment) -> Result<bool> {
        let first = self.index(segment).and_then(|index| {
            let first = self.partition(segment, &index, 0)?.block(0);
            let (offset, length) = (first.offset, first.length as u64);
            let bytes = self.read(Handle { offset, length })?;
            verify(&bytes, self.place(segment.id, offset))
                .map(drop)
                .map_err(self.damaged(offset))
        });
        match first {
            Err(error) if error.kind() == ErrorKind::Io => Err(error),
            outcome => Ok(outcome.is_ok()),
        }
    }

    /// The top-level index of `segment`. The manifest knows the bounds of its keys; without it any key is within them.
    fn index(&self, segment: &Segment) -> Result<TopLevelIndex> {
        let footer = &segment.footer;
        self.block(segment, footer.index, |payload| {
            TopLevelIndex::decode(payload, (b"", b""), footer.data(), footer.partitions)
        })
    }

    fn partition(
        &self,
        segment: &Segment,
        index: &TopLevelIndex,
        number: usize,
    ) -> Result<IndexPartition> {
        self.block(segment, index.partition(number), |payload| {
            index.decode_partition(payload, number)
        })
    }

    /// The bytes of `handle`, which a checksum covers or the file's length bounds.
    fn read(&self, handle: Handle) -> Result<Vec<u8>> {
        let length = usize::try_from(handle.length).map_err(|_| {
            let what = "a block is too long for this machine";
            Error::corruption(self.file.name, handle.offset, what)
        })?;
        let mut bytes = vec![0; length];
        read_exact_at(self.source, &mut bytes, handle.offset)
            .map_err(|error| Error::io("read", self.file.path, error))?;
        Ok(bytes)
    }

    /// The footer that ends at `end`.
    fn footer(&self, end: u64) -> Result<Segment> {
        let offset = end.checked_sub(FOOTER_BYTES as u64).ok_or_else(|| {
            Error::corruption(self.file.name, end, "the file is too short for a footer")
        })?;
        let bytes = self.read(Handle {
            offset,
            length: FOOTER_BYTES as u64,
        })?;
        let id = Footer::claimed_segment(&bytes).unwrap_or_default();
        let (footer, _) =
            Footer::read(&bytes, self.place(id, offset)).map_err(self.damaged(offset))?;
        Ok(Segment {
            id,
            footer,
            footer_offset: offset,
        })
    }

    fn place(&self, segment: SegmentId, offset: u64) -> Place {
        Place {
            file: self.checksum_file,
            segment,
            offset,
        }
    }

    /// The error of the block at `offset`.
    fn damaged(&self, offset: u64) -> impl Fn(DecodeError) -> Error {
        move |error| error.in_file(self.file.name, offset)
    }

    /// The number of pieces of a filter unit, and the unit.
    fn filter_unit(
        &self,
        segment: &Segment,
        unit: Handle,
        number: usize,
    ) -> Result<(usize, Filter)> {
        let damaged = self.damaged(unit.offset);
        let layout = UnitLayout::new(unit, number).map_err(&damaged)?;
        let filter = layout.decode(&self.read(unit)?, self.place(segment.id, unit.offset));
        Ok((layout.pieces(), filter.map_err(damaged)?))
    }

    /// Shows one segment: its metadata, then its data.
    fn segment(&self, segment: &Segment, report: &mut Report<'_>) -> Result<()> {
        let footer = &segment.footer;
        let mut record = Record::new("footer")
            .number("offset", segment.footer_offset)
            .number("segment", segment.id.0)
            .number("segment_offset", footer.segment_offset);
        if let Some(previous) = footer.previous {
            record = record.number("previous_footer", previous);
        }
        report.show(&record)?;
        let properties = self.block(segment, footer.properties, Properties::decode);
        let mut range_block = None;
        if let Some(found) = report.sound(properties)? {
            range_block = found.ranges.map(|block| (block, found.largest.clone()));
            report.show(&properties_record(footer.properties, &found))?;
            if let Some(expiring) = &found.expiring {
                report.show(&expiring_record(expiring).at_depth(1))?;
            }
            for (file, referred) in found.transient.iter().flat_map(|list| list.iter()) {
                report.show(&reference(file, referred).at_depth(1))?;
            }
        }
        let range_bytes = range_block.as_ref().map_or(0, |(block, _)| block.bytes);
        let lists = footer.references_and_ranges(range_bytes);
        let (references, ranges) = lists.unwrap_or_default();
        if let Some((block, largest)) = range_block {
            let read = |payload: &[u8]| read_ranges(payload, block.count, &largest);
            if let Some(found) = report.sound(self.block(segment, ranges, read))? {
                report.show(&block_record("range_tombstones", ranges))?;
                for range in found.all() {
                    let record = Record::new("range").bytes("start", &range.start);
                    let record = record.bytes("end", &range.end);
                    report.show(&record.number("sequence", range.sequence).at_depth(1))?;
                }
            }
        }
        if references.length > 0 {
            let list = self.block(segment, references, ReferenceList::decode);
            if let Some(found) = report.sound(list)? {
                report.show(&block_record("log_references", references))?;
                for (file, referred) in found.iter() {
                    report.show(&reference(file, referred).at_depth(1))?;
                }
            }
        }
        for (number, handle) in footer.filter_units().enumerate() {
            let filter = self.filter_unit(segment, handle, number);
            if let Some((pieces, found)) = report.sound(filter)? {
                let bits = found.memory_bytes() as u64 * 8;
                let record = block_record("filter", handle).number("bits", bits);
                report.show(&record.number("pieces", pieces as u64))?;
            }
        }
        let Some(index) = report.sound(self.index(segment))? else {
            return Ok(());
        };
        let record = block_record("index", footer.index)
            .number("partitions", index.partitions() as u64)
            .number("blocks", index.blocks() as u64);
        report.show(&record)?;
        for number in 0..index.partitions() {
            let partition = self.partition(segment, &index, number);
            let Some(partition) = report.sound(partition)? else {
                continue;
            };
            let blocks = index.blocks_of(number);
            let place = index.partition(number);
            let record = block_record("index_partition", place);
            report.show(&record.number("blocks", blocks.len() as u64))?;
            for block in blocks {
                let block = partition.block(block);
                let handle = Handle {
                    offset: block.offset,
                    length: block.length as u64,
                };
                let shown = self.data_block(segment, handle, report);
                report.sound(shown)?;
            }
        }
        Ok(())
    }

    /// Reads a block that is never compressed.
    fn block<T>(
        &self,
        segment: &Segment,
        handle: Handle,
        decode: impl FnOnce(&[u8]) -> std::result::Result<T, DecodeError>,
    ) -> Result<T> {
        let bytes = self.read(handle)?;
        let place = self.place(segment.id, handle.offset);
        verify(&bytes, place)
            .and_then(|(_, payload)| decode(payload))
            .map_err(self.damaged(handle.offset))
    }

    fn data_block(&self, segment: &Segment, handle: Handle, report: &mut Report<'_>) -> Result<()> {
        let bytes = self.read(handle)?;
        let place = self.place(segment.id, handle.offset);
        let damaged = self.damaged(handle.offset);
        let (codec, body) = verify(&bytes, place).map_err(&damaged)?;
        let decompressed: Arc<[u8]>;
        let payload = if codec == Compression::None {
            body
        } else {
            decompressed = decompress(codec, body).map_err(&damaged)?;
            &decompressed
        };
        let layout = Layout::check(payload).map_err(&damaged)?;
        report.show(
            &block_record("block", handle)
                .text("compression", compression_name(codec))
                .number("payload_bytes", payload.len() as u64)
                .number("entries", layout.count() as u64),
        )?;
        let mut key = layout.prefix(payload).unwrap_or_default().to_vec();
        let mut offset = layout.entries_start();
        for _ in 0..layout.count() {
            let found = layout.entry(payload, offset);
            let found = found.ok_or_else(|| damaged(malformed(offset)))?;
            let suffix = payload.get(found.suffix..found.value);
            key.truncate(layout.prefix_length());
            key.extend_from_slice(suffix.unwrap_or_default());
            let trailer = found.step.trailer();
            let (kind, sequence) = (trailer.kind(), trailer.sequence());
            let stored = payload.get(found.value..found.end).unwrap_or_default();
            let mut record = entry(kind, sequence, &key, stored).at_depth(1);
            let value = if kind.is_expiring() {
                split_expiring(stored).1
            } else {
                stored
            };
            if kind == Kind::RangeTombstone {
                record = record.bytes("end", value);
            } else if kind.lasting() == Kind::TransientPointer {
                let pointer = ValuePointer::decode(value).map_err(&damaged)?;
                record = record
                    .number("file", pointer.file.0)
                    .number("offset", pointer.offset)
                    .number("record_bytes", pointer.record_bytes)
                    .number("value_bytes", pointer.value_bytes);
            }
            report.show(&record)?;
            offset = found.end;
        }
        Ok(())
    }
}

fn malformed(offset: usize) -> DecodeError {
    DecodeError {
        what: "a block entry is malformed",
        offset,
        unsupported: false,
    }
}

fn block_record(name: &'static str, handle: Handle) -> Record<'static> {
    Record::new(name)
        .number("offset", handle.offset)
        .number("bytes", handle.length)
}

fn properties_record(handle: Handle, properties: &Properties) -> Record<'_> {
    block_record("properties", handle)
        .bytes("smallest", &properties.smallest)
        .bytes("largest", &properties.largest)
        .number("entries", properties.entries)
        .number("tombstones", properties.tombstones)
        .number("operands", properties.operands)
        .number("sequence_min", properties.sequence_min)
        .number("sequence_max", properties.sequence_max)
        .number("logical_bytes", properties.logical_bytes)
        .number("filter_bytes", properties.filter_bytes)
        .number("blocks", properties.blocks)
}

/// The record of what is known of entries that expire.
pub(super) fn expiring_record(expiring: &Expiring) -> Record<'static> {
    const MOMENTS: [&str; Expiring::PARTS + 1] = [
        "earliest_ms",
        "eighth_1_ms",
        "eighth_2_ms",
        "eighth_3_ms",
        "eighth_4_ms",
        "eighth_5_ms",
        "eighth_6_ms",
        "eighth_7_ms",
        "latest_ms",
    ];
    let record = Record::new("expiring")
        .number("entries", expiring.entries)
        .number("bytes", expiring.bytes);
    let moments = MOMENTS.into_iter().zip(expiring.moments);
    moments.fold(record, |record, (name, moment)| record.number(name, moment))
}

pub(super) fn compression_name(codec: Compression) -> &'static str {
    match codec {
        Compression::None => "none",
        Compression::Lz4 => "lz4",
        Compression::Zstd => "zstd",
    }
}

#[cfg(test)]
mod tests;

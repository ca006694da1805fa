//! A table file, segment by segment and block by block.
//!
//! Without a manifest the last footer is the one at the end of the file; each footer leads to the one
//! before it.

use std::sync::Arc;

use super::{File, Record, Report};
use crate::base::limits::SEGMENTS_MAX;
use crate::base::{Error, FileNumber, Kind, Result, SegmentId, SequenceNumber};
use crate::block::Layout;
use crate::block::stored::{Place, unfold, verify};
use crate::codec::Compression;
use crate::codec::reader::DecodeError;
use crate::filter::Filter;
use crate::table::{FOOTER_BYTES, Footer, Handle, Properties, SegmentIndex};
use crate::value::ValuePointer;
use crate::vfs::{self, read_exact_at};

/// Shows a table file.
pub(super) fn table(file: &File<'_>, number: FileNumber, report: &mut Report<'_>) -> Result<()> {
    let source = file.open()?;
    let length = source
        .length()
        .map_err(|error| Error::io("read the length of", file.path, error))?;
    let table = Table {
        file,
        source: &*source,
        number,
    };
    report.show(
        &Record::new("table")
            .number("file", number.0)
            .number("length", length),
    )?;
    let mut segments = Vec::new();
    let mut end = length;
    while segments.len() < SEGMENTS_MAX {
        let footer = table.footer(end);
        let Some(segment) = report.sound(footer)? else {
            break;
        };
        let before = segment.footer.previous;
        // A footer lies before the segment that names it, so this comes to an end.
        let before = before.filter(|&offset| offset < segment.footer.segment_offset);
        segments.push(segment);
        match before {
            Some(offset) => end = offset + FOOTER_BYTES as u64,
            None => break,
        }
    }
    for segment in segments.iter().rev() {
        table.segment(segment, report)?;
    }
    Ok(())
}

/// A line for an entry of a batch or a block.
pub(super) fn entry(
    kind: Kind,
    sequence: SequenceNumber,
    key: &[u8],
    value_bytes: usize,
) -> Record<'_> {
    let record = match kind {
        Kind::Tombstone => Record::new("tombstone").bytes("key", key),
        Kind::Value => Record::new("value")
            .bytes("key", key)
            .number("value_bytes", value_bytes as u64),
        Kind::RunPointer => Record::new("run_pointer").bytes("key", key),
        Kind::LogPointer => Record::new("log_pointer").bytes("key", key),
    };
    record.number("sequence", sequence)
}

struct Table<'a> {
    file: &'a File<'a>,
    source: &'a dyn vfs::File,
    number: FileNumber,
}

struct Segment {
    id: SegmentId,
    footer: Footer,
    footer_offset: u64,
}

impl Table<'_> {
    /// The bytes of `handle`, which a checksum has vouched for or the file's length bounds.
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
            file: self.number,
            segment,
            offset,
        }
    }

    /// Says where a block that begins at `offset` could not be decoded.
    fn damaged(&self, offset: u64) -> impl Fn(DecodeError) -> Error {
        move |error| error.in_file(self.file.name, offset)
    }

    /// Shows one segment: what describes it, then its data.
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
        if let Some(found) = report.sound(properties)? {
            report.show(&properties_record(footer.properties, &found))?;
        }
        for handle in footer.filter_units() {
            let filter = self.block(segment, handle, Filter::decode);
            if let Some(found) = report.sound(filter)? {
                let bytes = found.memory_bytes() as u64;
                report.show(&block_record("filter", handle).number("bits", bytes * 8))?;
            }
        }
        let index = self.block(segment, footer.index, |payload| {
            SegmentIndex::decode(payload, footer.segment_offset, footer.data_end())
        });
        let Some(index) = report.sound(index)? else {
            return Ok(());
        };
        let blocks = index.blocks();
        report.show(&block_record("index", footer.index).number("blocks", blocks as u64))?;
        for block in 0..blocks {
            let (offset, length) = index.block(block);
            let handle = Handle {
                offset,
                length: length as u64,
            };
            let shown = self.data_block(segment, handle, report);
            report.sound(shown)?;
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
        let unfolded: Arc<[u8]>;
        let payload = if codec == Compression::None {
            body
        } else {
            unfolded = unfold(codec, body).map_err(&damaged)?;
            &unfolded
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
            let suffix = payload.get(found.suffix..found.suffix_end);
            key.truncate(layout.prefix_length());
            key.extend_from_slice(suffix.unwrap_or_default());
            let (kind, sequence) = (found.trailer.kind(), found.trailer.sequence());
            let mut record = entry(kind, sequence, &key, found.end - found.value).at_depth(1);
            if kind == Kind::RunPointer {
                let value = payload.get(found.value..found.end).unwrap_or_default();
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
        .number("sequence_min", properties.sequence_min)
        .number("sequence_max", properties.sequence_max)
        .number("logical_bytes", properties.logical_bytes)
        .number("filter_bytes", properties.filter_bytes)
        .number("blocks", properties.blocks)
}

pub(super) fn compression_name(codec: Compression) -> &'static str {
    match codec {
        Compression::None => "none",
        Compression::Lz4 => "lz4",
        Compression::Zstd => "zstd",
    }
}

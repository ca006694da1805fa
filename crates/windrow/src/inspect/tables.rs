//! A table file, segment by segment and block by block.
//!
//! Without a manifest the last segment is the one whose footer is nearest to the end of the file: behind
//! it may be what an append that failed has left. Each footer leads to the one before it.

use std::sync::Arc;

use super::{File, Record, Report};
use crate::base::limits::SEGMENTS_MAX;
use crate::base::{Error, ErrorKind, FileNumber, Kind, Result, SegmentId, SequenceNumber};
use crate::block::Layout;
use crate::block::stored::{Place, decompress, verify};
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
    let mut next = table.last_segment(length, report)?;
    let end = next.as_ref().map(Segment::end);
    while let Some(segment) = next {
        let before = segment.footer.previous;
        // A footer lies before the segment that names it, so this comes to an end.
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

/// How much of a file is searched for footers at a time.
const SEARCH_BYTES: u64 = 64 << 10;

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
        Kind::TransientPointer => Record::new("transient_pointer").bytes("key", key),
        Kind::ValueLogPointer => Record::new("log_pointer").bytes("key", key),
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

impl Segment {
    fn end(&self) -> u64 {
        self.footer_offset + FOOTER_BYTES as u64
    }
}

impl Table<'_> {
    /// The last segment of a file of this length.
    fn last_segment(&self, length: u64, report: &mut Report<'_>) -> Result<Option<Segment>> {
        let Some(last) = self.footer_before(length)? else {
            // Says what is wrong with what should be one.
            return report.sound(self.footer(length));
        };
        if last.end() < length && self.begins_footer(length)? {
            report.sound(self.footer(length))?;
        }
        if self.is_whole(&last)? {
            return Ok(Some(last));
        }
        // Where that was left by an append that failed, the next one has begun at the same place.
        let mut end = last.footer_offset;
        while let Some(earlier) = self.footer_before(end)? {
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
        // The first offset that is too late for one.
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

    /// Whether what ends at `end` begins like a footer.
    fn begins_footer(&self, end: u64) -> Result<bool> {
        let length = FOOTER_BYTES as u64;
        let offset = end.saturating_sub(length);
        let bytes = self.read(Handle { offset, length })?;
        Ok(Footer::begins(&bytes))
    }

    /// Whether the first block of `segment` is its own: no other was begun at the same place since.
    fn is_whole(&self, segment: &Segment) -> Result<bool> {
        let first = self.index(segment).and_then(|index| {
            let (offset, length) = index.block(0);
            let length = length as u64;
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

    fn index(&self, segment: &Segment) -> Result<SegmentIndex> {
        let footer = &segment.footer;
        self.block(segment, footer.index, |payload| {
            SegmentIndex::decode(payload, footer.segment_offset, footer.data_end())
        })
    }

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
        let Some(index) = report.sound(self.index(segment))? else {
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
            let suffix = payload.get(found.suffix..found.suffix_end);
            key.truncate(layout.prefix_length());
            key.extend_from_slice(suffix.unwrap_or_default());
            let (kind, sequence) = (found.trailer.kind(), found.trailer.sequence());
            let mut record = entry(kind, sequence, &key, found.end - found.value).at_depth(1);
            if kind == Kind::TransientPointer {
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{File, Report};
    use super::{ErrorKind, FOOTER_BYTES, FileNumber, Kind, Result, SegmentId, table};
    use crate::base::Trailer;
    use crate::codec::Compression;
    use crate::table::{FileMeta, TableOptions, TableWriter, file_name};
    use crate::vfs::memory::MemoryVfs;

    const NUMBER: FileNumber = FileNumber(7);

    /// Writes a segment of so many entries, behind what `before` describes.
    fn write(vfs: &MemoryVfs, before: Option<&FileMeta>, id: u64, entries: u32) -> FileMeta {
        let options = TableOptions {
            block_bytes: 512,
            filter_units: [10.0, 0.0, 0.0, 0.0],
            compression: Compression::None,
        };
        let (folder, id) = (Path::new(""), SegmentId(id));
        let writer = match before {
            None => TableWriter::create(vfs, folder, NUMBER, id, &options),
            Some(before) => TableWriter::append(vfs, folder, before, id, &options),
        };
        let mut writer = writer.unwrap();
        for number in 0..entries {
            let trailer = Trailer::new(id.0, Kind::Value);
            writer
                .add(&number.to_be_bytes(), trailer, &[7; 50])
                .unwrap();
        }
        writer.finish().unwrap()
    }

    /// The ids of the segments that the file shows, the offset of what is free behind them, and how
    /// that ends.
    fn shown(vfs: &MemoryVfs) -> (Vec<u64>, Option<u64>, Result<()>) {
        let name = file_name(NUMBER);
        let path = Path::new(&name);
        let (mut ids, mut free) = (Vec::new(), None);
        let mut visitor = |record: &super::Record<'_>| {
            let number = |field| match record.field(field) {
                Some(super::super::Field::Number(number)) => Some(number),
                _ => None,
            };
            match record.name() {
                "footer" => ids.extend(number("segment")),
                "free" => free = number("offset"),
                _ => {}
            }
            Ok(())
        };
        let mut report = Report {
            path,
            visitor: &mut visitor,
            damage: None,
        };
        let file = File {
            vfs,
            path,
            directory: Path::new(""),
            name: &name,
        };
        table(&file, NUMBER, &mut report).unwrap();
        let damage = report.damage.map_or(Ok(()), Err);
        (ids, free, damage)
    }

    #[test]
    fn what_a_failed_append_has_left_is_passed_over() {
        let vfs = MemoryVfs::default();
        let first = write(&vfs, None, 10, 50);
        let two = write(&vfs, Some(&first), 11, 50);
        let file = vfs.file(Path::new(&file_name(NUMBER)));
        let check = |expected: &[u64], free: Option<u64>| {
            let (ids, found, outcome) = shown(&vfs);
            outcome.unwrap();
            assert_eq!(ids, expected);
            assert_eq!(found, free);
        };
        check(&[10, 11], None);

        // Zeros, as many as are searched at a time and more.
        let sound = file.bytes.lock().clone();
        for more in [1, FOOTER_BYTES, (64 << 10) - 1, 64 << 10, 200 << 10] {
            file.bytes.lock().resize(sound.len() + more, 0);
            check(&[10, 11], Some(two.end()));
        }
        file.bytes.lock().truncate(sound.len());

        // An attempt of which the end was never written.
        let long = write(&vfs, Some(&two), 12, 500);
        let length = file.bytes.lock().len();
        file.bytes.lock()[length - FOOTER_BYTES..].fill(0);
        check(&[10, 11], Some(two.end()));

        // A whole one that no manifest names, of which nothing but the manifest can tell; then shorter
        // ones at the same place, and inside it.
        write(&vfs, Some(&two), 13, 500);
        check(&[10, 11, 13], None);
        let three = write(&vfs, Some(&two), 14, 50);
        check(&[10, 11, 14], Some(three.end()));
        let four = write(&vfs, Some(&three), 15, 50);
        assert!(four.end() < long.end());
        check(&[10, 11, 14, 15], Some(four.end()));
    }

    #[test]
    fn a_damaged_segment_is_not_passed_over() {
        let vfs = MemoryVfs::default();
        let first = write(&vfs, None, 10, 50);
        let two = write(&vfs, Some(&first), 11, 50);
        let file = vfs.file(Path::new(&file_name(NUMBER)));
        let place = |offset: u64| usize::try_from(offset).unwrap();
        let offset = two.segments[1].offset;
        for (at, expected) in [
            // The first block, the index or behind it, the footer.
            (offset, vec![10, 11]),
            (two.end() - FOOTER_BYTES as u64 - 10, vec![10, 11]),
            (two.end() - 10, vec![10]),
        ] {
            file.bytes.lock()[place(at)] ^= 1;
            let (ids, _, outcome) = shown(&vfs);
            file.bytes.lock()[place(at)] ^= 1;
            assert_eq!(ids, expected, "damage at {at}");
            assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Corruption);
        }
        // Without any footer.
        file.bytes.lock().truncate(FOOTER_BYTES);
        let (ids, _, outcome) = shown(&vfs);
        assert!(ids.is_empty());
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Corruption);
    }
}

//! Reads what is sound of a table file, part by part, whatever else is damaged.
//!
//! A block counts if its checksum holds at its place, and its form is sound. The index leads to the blocks. Where
//! a part of it is damaged, blocks are found by trying their lengths: a block begins where the one before it
//! ends, so a sound one leads to the next. A block that is damaged itself ends such a walk.
//!
//! A range tombstone reaches beyond the keys of its block. It is in the block of ranges too, which counts if a data block is
//! lost. If both are lost, nobody knows how far the lost part reaches.
//!
//! Invariants:
//! - I1. Nothing is passed on that does not lie in a block with a sound checksum.
//! - I2. Memory is bounded by the largest block, by [`PART_BYTES_MAX`] and by the keys of [`LOST_PARTS_MAX`] lost parts, and the work by the bytes of the file and of the walks:
//!   a walk computes one checksum over all lengths that it tries.
//!
//! Concurrency: none; it belongs to one thread.

use crate::base::key::UNNUMBERED;
use crate::base::limits::{KEY_BYTES_MAX, VALUE_BYTES_IN_PLACE_MAX};
use crate::base::{
    Error, FileNumber, KeyspaceId, Kind, RangeTombstone, Result, SegmentId, SequenceNumber, Trailer,
};
use crate::block::Layout;
use crate::block::stored::{Place, TRAILER_BYTES, decompress, verify};
use crate::codec::Compression;
use crate::codec::checksum::PartialChecksum;
use crate::codec::reader::DecodeError;
use crate::vfs::{File, read_exact_at};

use super::format::{
    FOOTER_BYTES, Footer, Handle, Properties, SegmentMeta, TopLevelIndex, read_ranges,
};

/// The longest block that a walk finds: one entry of the largest key and value, and what surrounds them.
const WALK_BLOCK_BYTES_MAX: u64 = (VALUE_BYTES_IN_PLACE_MAX + 2 * KEY_BYTES_MAX) as u64;

/// The bytes in which a walk looks for a block first.
const WALK_BLOCK_BYTES: u64 = 64 << 10;

/// The bytes of the checksum behind a block.
const CHECKSUM_BYTES: usize = size_of::<u32>();

/// The longest part that is read at once. An index, properties or a block of ranges that claims more counts as damaged.
const PART_BYTES_MAX: u64 = 256 << 20;

/// The most lost parts of a segment that are noted one by one: each holds two keys. The last one reaches to where the last damage ends.
const LOST_PARTS_MAX: usize = 1000;

/// How many segments may claim each byte of a file, on average.
const CLAIMED_BYTES_PER_BYTE: u64 = 16;

/// The bytes of one step of the search for footers.
const SEARCH_BYTES: u64 = 64 << 10;

/// A segment to read.
#[derive(Debug, Clone)]
pub(crate) struct SegmentPlace {
    /// The file number in its checksums.
    pub(crate) file: FileNumber,
    pub(crate) id: SegmentId,
    pub(crate) offset: u64,
    /// The offset just after its footer.
    pub(crate) end: u64,
    /// The number of entries without one.
    pub(crate) raise: SequenceNumber,
    /// How many entries it has, if that is known.
    pub(crate) entries: Option<u64>,
    /// How many of them are range tombstones, if that is known.
    pub(crate) ranges: Option<u32>,
}

/// A part of a segment that is lost. Its keys lie between the two, both included, where they are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LostPart {
    pub(crate) offset: u64,
    pub(crate) from: Option<Vec<u8>>,
    pub(crate) to: Option<Vec<u8>>,
}

/// Takes the key, the sequence number with the kind, and what the entry stores.
pub(crate) type TakeEntry<'a> = dyn FnMut(&[u8], Trailer, &[u8]) -> Result<()> + 'a;

impl SegmentPlace {
    /// The place of a segment that the manifest describes.
    pub(crate) fn of(file: FileNumber, meta: &SegmentMeta) -> Self {
        Self {
            file,
            id: meta.id,
            offset: meta.offset,
            end: meta.end(),
            raise: meta.sequence_max,
            entries: Some(meta.entries),
            ranges: Some(meta.range_tombstones),
        }
    }

    /// The largest sequence number of the segment, if its properties are sound.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn sequence_max(
        &self,
        source: &dyn File,
        name: &str,
    ) -> Result<Option<SequenceNumber>> {
        let properties = self.properties(source, name)?;
        Ok(properties.map(|properties| properties.sequence_max))
    }

    /// The keyspace for which the segment was written, if its properties are sound and say so.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn keyspace(&self, source: &dyn File, name: &str) -> Result<Option<KeyspaceId>> {
        let properties = self.properties(source, name)?;
        Ok(properties.and_then(|properties| properties.keyspace))
    }

    fn properties(&self, source: &dyn File, name: &str) -> Result<Option<Properties>> {
        let reader = SegmentReader::new(self, source, name);
        match reader.footer()? {
            Some(footer) => reader.block(footer.properties, Properties::decode),
            None => Ok(None),
        }
    }

    /// Passes all entries in sound blocks to `take`, in their order, and returns what is lost.
    ///
    /// # Errors
    /// `Io`, and those of `take`.
    pub(crate) fn salvage(
        &self,
        source: &dyn File,
        name: &str,
        take: &mut TakeEntry<'_>,
    ) -> Result<Vec<LostPart>> {
        let reader = SegmentReader::new(self, source, name);
        let mut salvage = Salvage {
            place: self,
            reader: &reader,
            take,
            last_key: None,
            entries: 0,
            lost: Vec::new(),
            is_open: false,
        };
        let footer = reader.footer()?;
        let data_end = footer
            .as_ref()
            .map_or(self.end, |footer| footer.data().end().unwrap_or(self.end));
        let index = match &footer {
            None => None,
            Some(footer) => reader.block(footer.index, |payload| {
                TopLevelIndex::decode(payload, (b"", b""), footer.data(), footer.partitions)
            })?,
        };
        match &index {
            Some(index) => salvage.by_index(index)?,
            None => salvage.walk(self.offset, data_end, footer.is_some())?,
        }
        let is_short = self
            .entries
            .is_some_and(|entries| salvage.entries < entries);
        if is_short && salvage.lost.is_empty() {
            let offset = self.offset;
            salvage.lose(offset);
        }
        if !salvage.lost.is_empty() && self.ranges != Some(0) {
            salvage.pass_ranges(footer.as_ref())?;
        }
        Ok(salvage.lost)
    }
}

/// The segments of a file that no manifest describes, by their sound footers, from front to back, and whether that is all of them.
/// Some may be left by appends that failed, and overlap others. If somebody has made so many that they claim more than
/// [`CLAIMED_BYTES_PER_BYTE`] times the file, the others are left out: each is read as a whole.
///
/// # Errors
/// `Io`.
pub(crate) fn find_segments(
    source: &dyn File,
    name: &str,
    number: FileNumber,
) -> Result<(Vec<SegmentPlace>, bool)> {
    let failed = |offset| move |error| Error::read(name, offset, error);
    let length = source.length().map_err(failed(0))?;
    let footer_bytes = FOOTER_BYTES as u64;
    let mut found = Vec::new();
    let mut claimed = 0_u64;
    let mut start = 0;
    while start + footer_bytes <= length {
        let step = (SEARCH_BYTES + footer_bytes - 1).min(length - start);
        let bytes = read(
            source,
            name,
            Handle {
                offset: start,
                length: step,
            },
        )?;
        for (offset, bytes) in (start..).zip(bytes.windows(FOOTER_BYTES)) {
            if !Footer::begins(bytes) {
                continue;
            }
            let id = Footer::claimed_segment(bytes).unwrap_or_default();
            // The number of the file is in the checksum; an external file has none.
            for file in [number, super::EXTERNAL_FILE] {
                let place = Place {
                    file,
                    segment: id,
                    offset,
                };
                let Ok((footer, _)) = Footer::read(bytes, place) else {
                    continue;
                };
                let end = offset + footer_bytes;
                claimed = claimed.saturating_add(end.saturating_sub(footer.data().offset));
                if claimed / CLAIMED_BYTES_PER_BYTE > length {
                    return Ok((found, false));
                }
                found.push(SegmentPlace {
                    file,
                    id,
                    offset: footer.data().offset,
                    end,
                    raise: UNNUMBERED,
                    entries: None,
                    ranges: None,
                });
            }
        }
        start += SEARCH_BYTES;
    }
    Ok((found, true))
}

fn read(source: &dyn File, name: &str, handle: Handle) -> Result<Vec<u8>> {
    let length = usize::try_from(handle.length).unwrap_or(usize::MAX);
    let mut bytes = vec![0; length];
    read_exact_at(source, &mut bytes, handle.offset)
        .map_err(|error| Error::read(name, handle.offset, error))?;
    Ok(bytes)
}

/// Reads the blocks of one segment.
struct SegmentReader<'a> {
    place: &'a SegmentPlace,
    source: &'a dyn File,
    name: &'a str,
}

impl<'a> SegmentReader<'a> {
    fn new(place: &'a SegmentPlace, source: &'a dyn File, name: &'a str) -> Self {
        Self {
            place,
            source,
            name,
        }
    }

    fn at(&self, offset: u64) -> Place {
        Place {
            file: self.place.file,
            segment: self.place.id,
            offset,
        }
    }

    /// The bytes of `handle`; `None` if it is not within the segment and the file.
    fn bytes(&self, handle: Handle) -> Result<Option<Vec<u8>>> {
        let length = self.source.length();
        let length = length.map_err(|error| Error::read(self.name, handle.offset, error))?;
        let end = handle
            .end()
            .filter(|end| *end <= self.place.end.min(length));
        if end.is_none() || handle.offset < self.place.offset || handle.length > PART_BYTES_MAX {
            return Ok(None);
        }
        read(self.source, self.name, handle).map(Some)
    }

    /// The footer, if it is sound.
    fn footer(&self) -> Result<Option<Footer>> {
        let Some(offset) = self.place.end.checked_sub(FOOTER_BYTES as u64) else {
            return Ok(None);
        };
        let handle = Handle {
            offset,
            length: FOOTER_BYTES as u64,
        };
        let bytes = self.bytes(handle)?;
        let read = |bytes: Vec<u8>| Footer::read(&bytes, self.at(offset)).ok();
        let footer = bytes.and_then(read).map(|(footer, _)| footer);
        Ok(footer.filter(|footer| footer.data().offset == self.place.offset))
    }

    /// A block that is never compressed, if it is sound.
    fn block<T>(
        &self,
        handle: Handle,
        decode: impl FnOnce(&[u8]) -> std::result::Result<T, DecodeError>,
    ) -> Result<Option<T>> {
        let bytes = self.bytes(handle)?;
        Ok(bytes.and_then(|bytes| {
            let (codec, payload) = verify(&bytes, self.at(handle.offset)).ok()?;
            (codec == Compression::None).then(|| decode(payload).ok())?
        }))
    }

    /// The range tombstones of the segment, within its bounds; `None` if they are lost.
    fn ranges(&self, footer: &Footer) -> Result<Option<Vec<RangeTombstone>>> {
        let Some(properties) = self.block(footer.properties, Properties::decode)? else {
            return Ok(None);
        };
        let Some(block) = properties.ranges else {
            return Ok(Some(Vec::new()));
        };
        let Some((_, handle)) = footer.references_and_ranges(block.bytes) else {
            return Ok(None);
        };
        let read = |payload: &[u8]| read_ranges(payload, block.count, &properties.largest);
        let ranges = self.block(handle, read)?;
        Ok(ranges.map(|ranges| ranges.all().to_vec()))
    }

    /// The payload of the data block that is stored in `bytes` at `offset`, and its layout, if both are sound.
    fn data_block(&self, bytes: &[u8], offset: u64) -> Option<(Vec<u8>, Layout)> {
        let (codec, body) = verify(bytes, self.at(offset)).ok()?;
        let payload = match codec {
            Compression::None => body.to_vec(),
            codec => decompress(codec, body).ok()?.to_vec(),
        };
        let (layout, _) = Layout::check_but_order(&payload).ok()?;
        Some((payload, layout))
    }

    /// The sound data block that begins at `offset` and ends at `limit` or before, whatever its length is; with that.
    fn find_block(&self, offset: u64, limit: u64) -> Result<Option<(u64, Vec<u8>, Layout)>> {
        let mut sum = PartialChecksum::new(self.at(offset).seed());
        let (mut summed, mut tried) = (0, TRAILER_BYTES);
        for most in [WALK_BLOCK_BYTES, WALK_BLOCK_BYTES_MAX] {
            let length = most.min(limit.saturating_sub(offset));
            let Some(bytes) = self.bytes(Handle { offset, length })? else {
                return Ok(None);
            };
            for length in tried + 1..=bytes.len() {
                // The code of the compression rejects nearly all lengths before any checksum.
                if Compression::from_code(bytes[length - TRAILER_BYTES]).is_none() {
                    continue;
                }
                let (covered, stored) = bytes[..length].split_at(length - CHECKSUM_BYTES);
                sum.update(&covered[summed..]);
                summed = covered.len();
                if sum.finish().to_le_bytes()[..] != *stored {
                    continue;
                }
                if let Some((payload, layout)) = self.data_block(&bytes[..length], offset) {
                    return Ok(Some((length as u64, payload, layout)));
                }
            }
            tried = bytes.len();
        }
        Ok(None)
    }
}

/// The state of the salvage of one segment.
struct Salvage<'a, 't> {
    place: &'a SegmentPlace,
    reader: &'a SegmentReader<'a>,
    take: &'a mut TakeEntry<'t>,
    /// The last key that was passed on.
    last_key: Option<Vec<u8>>,
    entries: u64,
    lost: Vec<LostPart>,
    /// Whether the last lost part has no end yet.
    is_open: bool,
}

impl Salvage<'_, '_> {
    fn by_index(&mut self, index: &TopLevelIndex) -> Result<()> {
        for number in 0..index.partitions() {
            let decode = |payload: &[u8]| index.decode_partition(payload, number);
            let data = index.data(number);
            let Some(partition) = self.reader.block(index.partition(number), decode)? else {
                let end = data.end().unwrap_or(data.offset);
                self.walk(data.offset, end, true)?;
                continue;
            };
            for block in index.blocks_of(number) {
                let place = partition.block(block);
                let handle = Handle {
                    offset: place.offset,
                    length: place.length as u64,
                };
                let bytes = self.reader.bytes(handle)?;
                let sound = bytes.and_then(|bytes| self.reader.data_block(&bytes, place.offset));
                match sound {
                    Some((payload, layout)) => self.pass(&payload, &layout)?,
                    None => self.lose(place.offset),
                }
            }
        }
        Ok(())
    }

    /// Reads blocks from `offset` on, up to `end`: data blocks end there if that `is_exact`, otherwise they end there or
    /// before.
    fn walk(&mut self, mut offset: u64, end: u64, is_exact: bool) -> Result<()> {
        while offset < end {
            let Some((length, payload, layout)) = self.reader.find_block(offset, end)? else {
                if is_exact {
                    self.lose(offset);
                }
                return Ok(());
            };
            self.pass(&payload, &layout)?;
            offset += length;
        }
        Ok(())
    }

    fn lose(&mut self, offset: u64) {
        if !self.is_open {
            if self.lost.len() < LOST_PARTS_MAX {
                self.lost.push(LostPart {
                    offset,
                    from: self.last_key.clone(),
                    to: None,
                });
            }
            self.is_open = true;
        }
    }

    /// Passes all range tombstones on: those of lost blocks are among them. Otherwise the lost parts reach to any key.
    fn pass_ranges(&mut self, footer: Option<&Footer>) -> Result<()> {
        let ranges = match footer {
            Some(footer) => self.reader.ranges(footer)?,
            None => None,
        };
        let Some(ranges) = ranges else {
            for lost in &mut self.lost {
                lost.to = None;
            }
            return Ok(());
        };
        for range in ranges {
            let trailer = Trailer::new(range.sequence, Kind::RangeTombstone);
            (self.take)(&range.start, trailer, &range.end)?;
        }
        Ok(())
    }

    /// Passes the entries of a block on.
    fn pass(&mut self, payload: &[u8], layout: &Layout) -> Result<()> {
        let mut key = layout.prefix(payload).unwrap_or_default().to_vec();
        let mut offset = layout.entries_start();
        for _ in 0..layout.count() {
            let Some(entry) = layout.entry(payload, offset) else {
                return Ok(());
            };
            key.truncate(layout.prefix_length());
            key.extend_from_slice(&payload[entry.suffix..entry.value]);
            if self.is_open {
                if let Some(lost) = self.lost.last_mut() {
                    lost.to = Some(key.clone());
                }
                self.is_open = false;
            }
            let mut trailer = entry.step.trailer();
            if trailer.sequence() == UNNUMBERED {
                trailer = Trailer::new(self.place.raise, trailer.kind());
            }
            (self.take)(&key, trailer, &payload[entry.value..entry.end])?;
            self.entries += 1;
            offset = entry.end;
        }
        self.last_key = Some(key);
        Ok(())
    }
}

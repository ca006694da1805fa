//! The footer: the fixed-size end of a segment, with the places of its other parts.
//!
//! See "Footer" in `docs/format.md`.
//!
//! Every later version keeps the length of the footer and the places of the magic, the version and the
//! checksum.
//!
//! Invariant I1: data blocks, filter units, index partitions, references to value logs, top-level index, properties and
//! footer fill the segment in this order without gaps, so each of its bytes is under a checksum.

use crate::base::SegmentId;
use crate::block::stored::{Place, TRAILER_BYTES};
use crate::codec::Reader;
use crate::codec::checksum::checksum;
use crate::codec::reader::DecodeError;
use crate::filter::FILTER_UNITS_MAX;

use super::meta::{FileMeta, SegmentMeta};

/// The length of a footer.
pub(crate) const FOOTER_BYTES: usize = 164;

/// The version of the table format that this code writes, and the newest that it reads.
const FORMAT_VERSION: u32 = 1;

/// The first bytes of every footer.
const MAGIC: [u8; 8] = *b"\x89WRTABLE";

/// The offset of the segment id in a footer.
const SEGMENT_ID_OFFSET: usize = 24;

/// The previous footer's offset in the first segment of a file.
const NO_FOOTER: u64 = u64::MAX;

/// The place of a block in the file, its trailer included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Handle {
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

impl Handle {
    /// The offset just after the block.
    pub(crate) fn end(self) -> Option<u64> {
        self.offset.checked_add(self.length)
    }
}

/// The decoded footer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) segment_offset: u64,
    pub(crate) previous: Option<u64>,
    /// All index partitions, one after the other.
    pub(crate) partitions: Handle,
    /// The top-level index.
    pub(crate) index: Handle,
    pub(crate) properties: Handle,
    /// Absent units have length zero and follow the present ones.
    pub(crate) filters: [Handle; FILTER_UNITS_MAX],
}

impl Footer {
    /// The bytes of the footer at `place`, and its checksum.
    pub(crate) fn encode(&self, place: Place) -> ([u8; FOOTER_BYTES], u32) {
        let mut bytes = Vec::with_capacity(FOOTER_BYTES);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        for word in [
            place.file.0,
            place.segment.0,
            self.segment_offset,
            self.previous.unwrap_or(NO_FOOTER),
        ] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        let handles = [self.partitions, self.index, self.properties];
        for handle in handles.iter().chain(&self.filters) {
            bytes.extend_from_slice(&handle.offset.to_le_bytes());
            bytes.extend_from_slice(&handle.length.to_le_bytes());
        }
        let sum = checksum(place.seed(), &bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        let mut footer = [0; FOOTER_BYTES];
        footer.copy_from_slice(&bytes);
        (footer, sum)
    }

    /// Reads the footer of the segment that `meta` describes, and checks it against that.
    pub(crate) fn decode(
        bytes: &[u8],
        place: Place,
        meta: &SegmentMeta,
    ) -> Result<Self, DecodeError> {
        let (footer, sum) = Self::read(bytes, place)?;
        if sum != meta.footer_checksum {
            return Err(Reader::new(bytes).error("a table footer is not the recorded one"));
        }
        if footer.segment_offset != meta.offset {
            return Err(Reader::new(bytes).error("a table footer belongs to another segment"));
        }
        Ok(footer)
    }

    /// Reads the footer at `place`, checked only against its own checksum, and returns both.
    pub(crate) fn read(bytes: &[u8], place: Place) -> Result<(Self, u32), DecodeError> {
        let mut reader = Reader::new(bytes);
        let cut = "a table footer is cut off";
        if reader.array::<8>(cut)? != MAGIC {
            return Err(Reader::new(bytes).error("a table footer has a wrong magic"));
        }
        let Some((covered, sum)) = bytes.split_last_chunk() else {
            return Err(reader.error(cut));
        };
        let sum = u32::from_le_bytes(*sum);
        if checksum(place.seed(), covered) != sum {
            return Err(Reader::new(bytes).error("a table footer fails its checksum"));
        }
        let version = reader.clone();
        if reader.u32(cut)? != FORMAT_VERSION || reader.u32(cut)? != 0 {
            return Err(version.unsupported("a table of a newer format"));
        }
        let ids = reader.clone();
        if reader.u64(cut)? != place.file.0 || reader.u64(cut)? != place.segment.0 {
            return Err(ids.error("a table footer belongs to another segment"));
        }
        let segment_offset = reader.u64(cut)?;
        let previous = Some(reader.u64(cut)?).filter(|&offset| offset != NO_FOOTER);
        let mut handles = [Handle::default(); 3 + FILTER_UNITS_MAX];
        for handle in &mut handles {
            handle.offset = reader.u64(cut)?;
            handle.length = reader.u64(cut)?;
        }
        let [partitions, index, properties, filters @ ..] = handles;
        let footer = Self {
            segment_offset,
            previous,
            partitions,
            index,
            properties,
            filters,
        };
        if footer.fills(place.offset) {
            Ok((footer, sum))
        } else {
            Err(ids.error("a table footer's blocks do not fill the segment"))
        }
    }

    /// Whether `bytes` begin with the magic of a footer.
    pub(crate) fn begins(bytes: &[u8]) -> bool {
        bytes.starts_with(&MAGIC)
    }

    /// The segment that the footer in `bytes` names: the start of the search in a file that no manifest
    /// describes.
    pub(crate) fn claimed_segment(bytes: &[u8]) -> Option<SegmentId> {
        let id = bytes.get(SEGMENT_ID_OFFSET..)?.first_chunk()?;
        Some(SegmentId(u64::from_le_bytes(*id)))
    }

    /// The present filter units.
    pub(crate) fn filter_units(&self) -> impl Iterator<Item = Handle> {
        self.filters.into_iter().filter(|unit| unit.length > 0)
    }

    /// The data blocks.
    pub(crate) fn data(&self) -> Handle {
        let behind = self.filter_units().next().unwrap_or(self.partitions);
        Handle {
            offset: self.segment_offset,
            length: behind.offset.saturating_sub(self.segment_offset),
        }
    }

    /// The space between the index partitions and the top-level index, for two blocks. Either may be absent.
    fn lists(&self) -> Handle {
        let offset = self.partitions.end().unwrap_or(u64::MAX);
        Handle {
            offset,
            length: self.index.offset.saturating_sub(offset),
        }
    }

    /// The block with the references to value logs, and behind it that with range tombstones, which has `range_bytes`.
    /// The length of an absent block is zero. `None` if there is less space.
    pub(crate) fn references_and_ranges(&self, range_bytes: u64) -> Option<(Handle, Handle)> {
        let lists = self.lists();
        let references = Handle {
            length: lists.length.checked_sub(range_bytes)?,
            ..lists
        };
        let ranges = Handle {
            offset: references.end()?,
            length: range_bytes,
        };
        Some((references, ranges))
    }

    /// I1, for a footer at `end`.
    fn fills(&self, end: u64) -> bool {
        let units = self.filter_units().count();
        let present_first = self.filters[..units].iter().all(|unit| unit.length > 0)
            && self.filters[units..]
                .iter()
                .all(|unit| *unit == Handle::default());
        let mut position = self.data().end();
        let mut long_enough = self.data().length > 0;
        let lists = self.lists();
        let lists = (lists.length > 0).then_some(&lists);
        let handles = self.filters[..units].iter().chain([&self.partitions]);
        let handles = handles.chain(lists);
        for handle in handles.chain([&self.index, &self.properties]) {
            long_enough &= handle.length > TRAILER_BYTES as u64;
            position = position
                .filter(|&position| position == handle.offset)
                .and_then(|_| handle.end());
        }
        present_first && long_enough && position == Some(end)
    }
}

/// The place of the footer of `segment` of `file`; `None` if the segment is too short for one.
pub(crate) fn footer_place(file: &FileMeta, segment: &SegmentMeta) -> Option<Place> {
    let offset = segment
        .offset
        .checked_add(segment.length)?
        .checked_sub(FOOTER_BYTES as u64)?;
    (offset >= segment.offset).then_some(Place {
        file: file.checksum_file(),
        segment: segment.id,
        offset,
    })
}

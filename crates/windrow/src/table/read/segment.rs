//! An open segment: its index, filters and properties in memory.
//!
//! Invariant I1: everything loaded here agrees with the footer, and the footer with the manifest.
//!
//! Concurrency: immutable, except for the marks of verified blocks; shared freely.

use std::sync::Arc;

use crate::base::{Error, FileNumber, Held, MemoryTracker, Result, SegmentId};
use crate::block::stored::{Place, verify};
use crate::cache::Marks;
use crate::codec::Compression;
use crate::codec::reader::DecodeError;
use crate::filter::{Filter, units_rate};
use crate::vfs::{File, read_exact_at};

use super::super::format::{
    FOOTER_BYTES, FileMeta, Footer, Handle, Properties, SegmentIndex, SegmentMeta, footer_place,
};

/// A segment of an open table.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) id: SegmentId,
    pub(crate) index: SegmentIndex,
    pub(crate) filters: Box<[Filter]>,
    pub(crate) properties: Properties,
    /// The blocks that readers may use in place in the mapping.
    pub(crate) marks: Marks,
    /// The bytes that the segment holds in memory, itself included.
    held: Held,
}

/// Reads the metadata blocks of one segment.
struct MetadataReader<'a> {
    file: &'a dyn File,
    name: &'a str,
    number: FileNumber,
    segment: SegmentId,
}

impl MetadataReader<'_> {
    /// Reads the block at `handle` and decodes its payload.
    fn block<T>(
        &self,
        handle: Handle,
        decode: impl FnOnce(&[u8]) -> std::result::Result<T, DecodeError>,
    ) -> Result<T> {
        let place = Place {
            file: self.number,
            segment: self.segment,
            offset: handle.offset,
        };
        let bytes = read_exact(self.file, self.name, handle.offset, handle.length)?;
        verify(&bytes, place)
            .and_then(|(codec, payload)| match codec {
                Compression::None => decode(payload),
                Compression::Lz4 | Compression::Zstd => {
                    let what = "only data blocks may be compressed";
                    Err(DecodeError::damaged(0, what))
                }
            })
            .map_err(|error| error.in_file(self.name, handle.offset))
    }
}

impl Segment {
    /// Loads the segment of `file` that `meta` describes, with the first `filter_units` of its filter.
    /// `tracker` counts its memory. The file is long enough for the segment.
    pub(crate) fn open(
        file: &dyn File,
        name: &str,
        table: &FileMeta,
        meta: &SegmentMeta,
        filter_units: usize,
        tracker: &Arc<MemoryTracker>,
    ) -> Result<Self> {
        let damaged = |what| Error::corruption(name, meta.offset, what);
        let place = footer_place(table, meta)
            .ok_or_else(|| damaged("the recorded length is too short for a segment"))?;
        let bytes = read_exact(file, name, place.offset, FOOTER_BYTES as u64)?;
        let footer = Footer::decode(&bytes, place, meta)
            .map_err(|error| error.in_file(name, place.offset))?;
        let metadata = MetadataReader {
            file,
            name,
            number: table.number,
            segment: meta.id,
        };
        let mut properties = metadata.block(footer.properties, Properties::decode)?;
        if !properties.agree_with(meta) {
            return Err(Error::corruption(
                name,
                footer.properties.offset,
                "the properties differ from the manifest",
            ));
        }
        // Equal, and shared with the manifest.
        properties.references = meta.references.clone();
        let index = metadata.block(footer.index, |payload| {
            SegmentIndex::decode(payload, meta.offset, footer.data_end())
        })?;
        let filters = footer
            .filter_units()
            .take(filter_units)
            .map(|unit| metadata.block(unit, Filter::decode))
            .collect::<Result<Box<[Filter]>>>()?;
        let units = footer.filters.map(|unit| unit.length);
        if index.blocks() as u64 != properties.blocks || units != meta.filter_units {
            return Err(Error::corruption(
                name,
                footer.properties.offset,
                "the properties differ from the segment",
            ));
        }
        let mut segment = Self {
            id: meta.id,
            marks: Marks::new(index.blocks()),
            index,
            filters,
            properties,
            held: Held::new(tracker, 0),
        };
        segment.held.set(segment.count_bytes() as u64);
        Ok(segment)
    }

    /// The bytes that the segment holds in memory, itself included.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.held.bytes()
    }

    fn count_bytes(&self) -> usize {
        let filters: usize = self.filters.iter().map(Filter::memory_bytes).sum();
        let keys = self.properties.smallest.len() + self.properties.largest.len();
        size_of::<Self>() + self.index.memory_bytes() + filters + keys + self.marks.memory_bytes()
    }

    /// The rate of false positives of the loaded filter.
    pub(crate) fn filter_rate(&self) -> f64 {
        let units = self.filters.iter().map(|unit| unit.memory_bytes() as u64);
        units_rate(units, self.properties.entries)
    }

    /// Whether the key with this hash may be in the segment.
    #[inline]
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        self.filters.iter().all(|unit| unit.may_contain(hash))
    }
}

/// Reads `length` bytes at `offset`, which are within the file.
fn read_exact(file: &dyn File, name: &str, offset: u64, length: u64) -> Result<Vec<u8>> {
    let length = usize::try_from(length)
        .map_err(|_| Error::corruption(name, offset, "a block is too long for this machine"))?;
    let mut bytes = vec![0; length];
    read_exact_at(file, &mut bytes, offset).map_err(|error| Error::read(name, offset, error))?;
    Ok(bytes)
}

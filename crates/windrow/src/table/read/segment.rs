//! An open segment: its top-level index, filters and properties in memory, and the index partitions that reads needed.
//!
//! Invariant I1: everything loaded here agrees with the footer, and the footer with the manifest.
//!
//! Concurrency: immutable, except for the marks of verified blocks, and for index partitions, which are loaded once;
//! shared freely.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use crate::base::{Error, FileNumber, Held, MemoryTracker, Result, SegmentId};
use crate::block::stored::{Place, verify};
use crate::cache::Marks;
use crate::codec::Compression;
use crate::codec::reader::DecodeError;
use crate::filter::{Filter, units_rate};
use crate::vfs::{File, read_exact_at};

use super::super::format::{
    FOOTER_BYTES, FileMeta, Footer, Handle, IndexPartition, Properties, ReferenceList, SegmentMeta,
    TopLevelIndex, footer_place,
};

/// A segment of an open table.
#[derive(Debug)]
pub(crate) struct Segment {
    parts: Arc<SegmentParts>,
    /// The partitions of the index, each loaded by the first read that needs it.
    partitions: Box<[OnceLock<Box<LoadedPartition>>]>,
}

/// What a segment has in memory whatever was read.
#[derive(Debug)]
pub(crate) struct SegmentParts {
    pub(crate) id: SegmentId,
    pub(crate) index: TopLevelIndex,
    pub(crate) filters: Box<[Filter]>,
    pub(crate) properties: Properties,
    /// The block with the references to value logs; empty if there are none.
    references: Handle,
    /// The blocks that readers may use in place in the mapping.
    pub(crate) marks: Marks,
    /// The bytes that the segment holds in memory without its partitions, itself included.
    held: Held,
}

/// A partition of the index in memory.
#[derive(Debug)]
struct LoadedPartition {
    index: IndexPartition,
    held: Held,
}

impl Deref for Segment {
    type Target = SegmentParts;

    #[inline]
    fn deref(&self) -> &SegmentParts {
        &self.parts
    }
}

/// The bytes at the end of a segment that are read at once. They hold footer, properties and top-level index of most
/// segments, so a table without filters opens with one request to the device.
const TAIL_BYTES: u64 = 8 << 10;

/// Reads the metadata blocks of one segment.
struct MetadataReader<'a> {
    file: &'a dyn File,
    name: &'a str,
    number: FileNumber,
    segment: SegmentId,
    /// The end of the segment, from `tail_offset` of the file on; may be empty.
    tail: Vec<u8>,
    tail_offset: u64,
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
        let read;
        let bytes = if let Some(bytes) = self.in_tail(handle) {
            bytes
        } else {
            read = read_exact(self.file, self.name, handle.offset, handle.length)?;
            &read
        };
        verify(bytes, place)
            .and_then(|(codec, payload)| match codec {
                Compression::None => decode(payload),
                Compression::Lz4 | Compression::Zstd => {
                    let what = "only data blocks may be compressed";
                    Err(DecodeError::damaged(0, what))
                }
            })
            .map_err(|error| error.in_file(self.name, handle.offset))
    }

    /// The bytes of `handle`, if the tail has them.
    fn in_tail(&self, handle: Handle) -> Option<&[u8]> {
        let start = usize::try_from(handle.offset.checked_sub(self.tail_offset)?).ok()?;
        let end = start.checked_add(usize::try_from(handle.length).ok()?)?;
        self.tail.get(start..end)
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
        let tail_offset = meta.end() - meta.length.min(TAIL_BYTES);
        let metadata = MetadataReader {
            file,
            name,
            number: table.number,
            segment: meta.id,
            tail: read_exact(file, name, tail_offset, meta.end() - tail_offset)?,
            tail_offset,
        };
        let (_, footer) = metadata
            .tail
            .split_at(metadata.tail.len().saturating_sub(FOOTER_BYTES));
        let footer = Footer::decode(footer, place, meta)
            .map_err(|error| error.in_file(name, place.offset))?;
        let mut properties = metadata.block(footer.properties, Properties::decode)?;
        let references = footer.references();
        if !properties.agree_with(meta) || properties.logs.is_some() != (references.length > 0) {
            return Err(Error::corruption(
                name,
                footer.properties.offset,
                "the properties differ from the manifest",
            ));
        }
        // Equal, and shared with the manifest.
        properties.transient = meta.references.transient_list().cloned();
        let index = metadata.block(footer.index, |payload| {
            let bounds = (&*meta.smallest, &*meta.largest);
            TopLevelIndex::decode(payload, bounds, footer.data(), footer.partitions)
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
        let mut parts = SegmentParts {
            id: meta.id,
            marks: Marks::new(index.blocks()),
            index,
            filters,
            properties,
            references,
            held: Held::new(tracker, 0),
        };
        parts.held.set(parts.count_bytes() as u64);
        Ok(Self::without_partitions(Arc::new(parts)))
    }

    fn without_partitions(parts: Arc<SegmentParts>) -> Self {
        let partitions = (0..parts.index.partitions()).map(|_| OnceLock::new());
        Self {
            partitions: partitions.collect(),
            parts,
        }
    }

    /// This segment without index partitions; `None` if it has none.
    pub(crate) fn shrunk(&self) -> Option<Self> {
        let is_loaded = |partition: &OnceLock<_>| partition.get().is_some();
        self.partitions
            .iter()
            .any(is_loaded)
            .then(|| Self::without_partitions(Arc::clone(&self.parts)))
    }

    /// Partition `number` of the index, if it is in memory.
    #[inline]
    pub(crate) fn loaded_partition(&self, number: usize) -> Option<&IndexPartition> {
        self.partitions[number].get().map(|loaded| &loaded.index)
    }

    /// Loads partition `number` of the index of this segment of `file`, whose number is `table`.
    #[cold]
    pub(crate) fn load_partition(
        &self,
        number: usize,
        file: &dyn File,
        name: &str,
        table: FileNumber,
        tracker: &Arc<MemoryTracker>,
    ) -> Result<&IndexPartition> {
        let metadata = MetadataReader {
            file,
            name,
            number: table,
            segment: self.id,
            tail: Vec::new(),
            tail_offset: 0,
        };
        let index = metadata.block(self.index.partition(number), |payload| {
            self.index.decode_partition(payload, number)
        })?;
        let bytes = size_of::<LoadedPartition>() + index.memory_bytes();
        let loaded = Box::new(LoadedPartition {
            held: Held::new(tracker, bytes as u64),
            index,
        });
        // Another thread may have loaded it meanwhile.
        Ok(&self.partitions[number].get_or_init(|| loaded).index)
    }

    /// Reads the references to value logs of this segment of `file`, whose number is `table`.
    ///
    /// # Errors
    /// `Corruption` if the list is damaged, or its sums are not those of the properties.
    pub(crate) fn log_references(
        &self,
        file: &dyn File,
        name: &str,
        table: FileNumber,
    ) -> Result<ReferenceList> {
        if self.references.length == 0 {
            return Ok(ReferenceList::default());
        }
        let metadata = MetadataReader {
            file,
            name,
            number: table,
            segment: self.id,
            tail: Vec::new(),
            tail_offset: 0,
        };
        let list = metadata.block(self.references, ReferenceList::decode)?;
        if list.log_sums() != self.properties.logs {
            let what = "the references of a segment do not add up to its properties";
            return Err(Error::corruption(name, self.references.offset, what));
        }
        Ok(list)
    }

    /// The bytes that the segment holds in memory, itself included.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let loaded = self.partitions.iter().filter_map(OnceLock::get);
        self.held.bytes() + loaded.map(|partition| partition.held.bytes()).sum::<u64>()
    }
}

impl SegmentParts {
    fn count_bytes(&self) -> usize {
        let filters: usize = self.filters.iter().map(Filter::memory_bytes).sum();
        let keys = self.properties.smallest.len() + self.properties.largest.len();
        let partitions = self.index.partitions() * size_of::<OnceLock<Box<LoadedPartition>>>();
        let parts = size_of::<Segment>() + size_of::<Self>() + partitions;
        parts + self.index.memory_bytes() + filters + keys + self.marks.memory_bytes()
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

//! An open segment: its top-level index and properties in memory, its filter in one of two forms, and the index
//! partitions that reads needed.
//!
//! Invariant I1: everything loaded here agrees with the footer, and the footer with the manifest.
//!
//! Concurrency: immutable, except for the marks of verified blocks, and for index partitions, which are loaded once;
//! shared freely.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use crate::base::key::UNNUMBERED;
use crate::base::{Error, FileNumber, Held, RangeTombstones, Result, SegmentId, SequenceNumber};
use crate::block::stored::{Place, verify};
use crate::cache::Marks;
use crate::codec::Compression;
use crate::codec::reader::DecodeError;
use crate::filter::{FILTER_UNITS_MAX, Filter};
use crate::vfs::{File, read_exact_at};

use super::super::format::{
    FOOTER_BYTES, FileMeta, Footer, Handle, IndexPartition, Properties, ReferenceList, SegmentMeta,
    TopLevelIndex, UnitLayout, footer_place, read_ranges,
};
use super::super::memory::{HeldPart, TableMemory};
use super::filter::{FilterForm, PiecedFilter, SMALL_FILTER_BYTES, SegmentFilter, WholeFilter};

/// A segment of an open table.
#[derive(Debug)]
pub(crate) struct Segment {
    parts: Arc<SegmentParts>,
    pub(crate) filter: SegmentFilter,
    /// The partitions of the index, each loaded by the first read that needs it.
    partitions: Box<[OnceLock<Arc<LoadedPartition>>]>,
}

/// What a segment has in memory whatever was read.
#[derive(Debug)]
pub(crate) struct SegmentParts {
    pub(crate) id: SegmentId,
    pub(crate) index: TopLevelIndex,
    /// As stored, except in an unnumbered segment: there `sequence_max` is the number of the manifest.
    pub(crate) properties: Properties,
    /// The stored bytes of each filter unit.
    unit_bytes: [u64; FILTER_UNITS_MAX],
    /// The block with the references to value logs; empty if there are none.
    references: Handle,
    /// The range tombstones, if there are any, within the bounds of the segment.
    pub(crate) ranges: Option<Arc<RangeTombstones>>,
    /// The blocks that readers may use in place in the mapping.
    pub(crate) marks: Marks,
    /// The bytes that the segment holds in memory without its filter and its partitions, itself included.
    held: Held,
}

/// A partition of the index in memory.
#[derive(Debug)]
struct LoadedPartition {
    index: IndexPartition,
    held: HeldPart,
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
pub(crate) const TAIL_BYTES: u64 = 8 << 10;

/// The file of a segment.
#[derive(Clone, Copy)]
pub(crate) struct SegmentFile<'a> {
    pub(crate) file: &'a dyn File,
    pub(crate) name: &'a str,
    /// The file number in its checksums.
    pub(crate) number: FileNumber,
}

/// Reads the metadata blocks of one segment.
struct MetadataReader<'a> {
    file: SegmentFile<'a>,
    segment: SegmentId,
    /// The end of the segment, from `tail_offset` of the file on; may be empty.
    tail: Vec<u8>,
    tail_offset: u64,
}

impl MetadataReader<'_> {
    fn place(&self, offset: u64) -> Place {
        Place {
            file: self.file.number,
            segment: self.segment,
            offset,
        }
    }

    /// Reads the block at `handle` and decodes its payload.
    fn block<T>(
        &self,
        handle: Handle,
        decode: impl FnOnce(&[u8]) -> std::result::Result<T, DecodeError>,
    ) -> Result<T> {
        self.bytes(handle, |bytes| {
            verify(bytes, self.place(handle.offset)).and_then(|(codec, payload)| match codec {
                Compression::None => decode(payload),
                Compression::Lz4 | Compression::Zstd => {
                    let what = "only data blocks may be compressed";
                    Err(DecodeError::damaged(0, what))
                }
            })
        })
    }

    /// Reads a filter unit, whole.
    fn filter_unit(&self, unit: &UnitLayout) -> Result<Filter> {
        let place = self.place(unit.unit().offset);
        self.bytes(unit.unit(), |stored| unit.decode(stored, place))
    }

    /// Reads the bytes at `handle` and decodes them.
    fn bytes<T>(
        &self,
        handle: Handle,
        decode: impl FnOnce(&[u8]) -> std::result::Result<T, DecodeError>,
    ) -> Result<T> {
        let read;
        let bytes = if let Some(bytes) = self.in_tail(handle) {
            bytes
        } else {
            read = read_exact(self.file, handle.offset, handle.length)?;
            &read
        };
        decode(bytes).map_err(|error| error.in_file(self.file.name, handle.offset))
    }

    /// The bytes of `handle`, if the tail has them.
    fn in_tail(&self, handle: Handle) -> Option<&[u8]> {
        let start = usize::try_from(handle.offset.checked_sub(self.tail_offset)?).ok()?;
        let end = start.checked_add(usize::try_from(handle.length).ok()?)?;
        self.tail.get(start..end)
    }
}

impl Segment {
    /// Loads the segment of `file` that `meta` describes, with its filter in the form `form`. This process wrote it in the
    /// interval `written_in`, if it did. The file is long enough for the segment.
    pub(crate) fn open(
        file: SegmentFile<'_>,
        table: &FileMeta,
        meta: &SegmentMeta,
        form: FilterForm,
        memory: &TableMemory,
        written_in: Option<u64>,
    ) -> Result<Self> {
        let name = file.name;
        let damaged = |what| Error::corruption(name, meta.offset, what);
        let place = footer_place(table, meta)
            .ok_or_else(|| damaged("the recorded length is too short for a segment"))?;
        let tail_offset = meta.end() - meta.length.min(TAIL_BYTES);
        let metadata = MetadataReader {
            file,
            segment: meta.id,
            tail: read_exact(file, tail_offset, meta.end() - tail_offset)?,
            tail_offset,
        };
        let (_, footer) = metadata
            .tail
            .split_at(metadata.tail.len().saturating_sub(FOOTER_BYTES));
        let footer = Footer::decode(footer, place, meta)
            .map_err(|error| error.in_file(name, place.offset))?;
        let mut properties = metadata.block(footer.properties, Properties::decode)?;
        let differ = || {
            let what = "the properties differ from the manifest";
            Error::corruption(name, footer.properties.offset, what)
        };
        let range_bytes = properties.ranges.map_or(0, |ranges| ranges.bytes);
        let lists = footer.references_and_ranges(range_bytes);
        let (references, ranges) = lists.ok_or_else(differ)?;
        if !properties.agree_with(meta) || properties.logs.is_some() != (references.length > 0) {
            return Err(differ());
        }
        let ranges = properties.ranges.map(|block| {
            let read = |payload: &[u8]| read_ranges(payload, block.count, meta.largest());
            metadata.block(ranges, read).map(Arc::new)
        });
        properties.sequence_max = meta.sequence_max;
        // Equal, and shared with the manifest.
        properties.transient = meta.references.transient_list().cloned();
        let index = metadata.block(footer.index, |payload| {
            let bounds = (meta.smallest(), meta.largest());
            TopLevelIndex::decode(payload, bounds, footer.data(), footer.partitions)
        })?;
        let unit_bytes = footer.filters.map(|unit| unit.length);
        if index.blocks() as u64 != properties.blocks || unit_bytes != meta.filter_units {
            return Err(Error::corruption(
                name,
                footer.properties.offset,
                "the properties differ from the segment",
            ));
        }
        let mut parts = SegmentParts {
            id: meta.id,
            marks: Marks::new(index.blocks()).written_in(written_in),
            index,
            properties,
            unit_bytes,
            references,
            ranges: ranges.transpose()?,
            held: Held::new(&memory.tables, 0),
        };
        parts.held.set(parts.count_bytes() as u64);
        let filter = parts.filter(&metadata, form, memory)?;
        Ok(Self::new(Arc::new(parts), filter))
    }

    /// A segment without index partitions.
    fn new(parts: Arc<SegmentParts>, filter: SegmentFilter) -> Self {
        let partitions = (0..parts.index.partitions()).map(|_| OnceLock::new());
        Self {
            partitions: partitions.collect(),
            filter,
            parts,
        }
    }

    /// This segment with its filter in the form `form`.
    pub(crate) fn with_filter(
        &self,
        file: SegmentFile<'_>,
        form: FilterForm,
        memory: &TableMemory,
    ) -> Result<Self> {
        let metadata = MetadataReader {
            file,
            segment: self.id,
            tail: Vec::new(),
            tail_offset: 0,
        };
        let filter = match (&self.filter, form) {
            (SegmentFilter::Whole(whole), FilterForm::Whole(units))
                if units < whole.units().len() =>
            {
                whole.first(units, memory)
            }
            _ => self.parts.filter(&metadata, form, memory)?,
        };
        Ok(self.with(filter))
    }

    /// This segment with its filter read by pieces; `None` if it has no filter to drop.
    pub(crate) fn without_filter(&self, memory: &TableMemory) -> Option<Self> {
        let SegmentFilter::Whole(whole) = &self.filter else {
            return None;
        };
        if !self.filter.can_be_dropped() {
            return None;
        }
        // The unit was loaded, so its layout is known.
        let filter = self.parts.pieced_filter(whole.units().len(), memory);
        filter.ok().map(|filter| self.with(filter))
    }

    /// This segment with another filter, and its partitions.
    fn with(&self, filter: SegmentFilter) -> Self {
        Self {
            parts: Arc::clone(&self.parts),
            filter,
            partitions: self.partitions.clone(),
        }
    }

    /// This segment without index partitions; `None` if it has none.
    pub(crate) fn without_partitions(&self) -> Option<Self> {
        self.has_partitions()
            .then(|| Self::new(Arc::clone(&self.parts), self.filter.clone()))
    }

    /// Partition `number` of the index, if it is in memory.
    #[inline]
    pub(crate) fn loaded_partition(&self, number: usize) -> Option<&IndexPartition> {
        self.partitions[number].get().map(|loaded| &loaded.index)
    }

    /// Loads partition `number` of the index of this segment of `file`.
    #[cold]
    pub(crate) fn load_partition(
        &self,
        number: usize,
        file: SegmentFile<'_>,
        memory: &TableMemory,
    ) -> Result<&IndexPartition> {
        let metadata = MetadataReader {
            file,
            segment: self.id,
            tail: Vec::new(),
            tail_offset: 0,
        };
        let index = metadata.block(self.index.partition(number), |payload| {
            self.index.decode_partition(payload, number)
        })?;
        let bytes = size_of::<LoadedPartition>() + index.memory_bytes();
        let loaded = Arc::new(LoadedPartition {
            held: memory.hold_partition(bytes),
            index,
        });
        // Another thread may have loaded it meanwhile.
        Ok(&self.partitions[number].get_or_init(|| loaded).index)
    }

    /// Reads the references to value logs of this segment of `file`.
    ///
    /// # Errors
    /// `Corruption` if the list is damaged, or its sums are not those of the properties.
    pub(crate) fn log_references(&self, file: SegmentFile<'_>) -> Result<ReferenceList> {
        if self.references.length == 0 {
            return Ok(ReferenceList::default());
        }
        let metadata = MetadataReader {
            file,
            segment: self.id,
            tail: Vec::new(),
            tail_offset: 0,
        };
        let list = metadata.block(self.references, ReferenceList::decode)?;
        if list.log_sums() != self.properties.logs {
            let what = "the references of a segment do not add up to its properties";
            return Err(Error::corruption(file.name, self.references.offset, what));
        }
        Ok(list)
    }

    /// Whether an index partition is in memory.
    pub(crate) fn has_partitions(&self) -> bool {
        let mut partitions = self.partitions.iter();
        partitions.any(|partition| partition.get().is_some())
    }

    /// The stored bytes of the allocated units of a filter that is read by pieces; 0 for others.
    pub(crate) fn pieced_bytes(&self) -> u64 {
        match self.filter.form() {
            FilterForm::Whole(_) => 0,
            FilterForm::ByPieces(units) => self.units().take(units).map(|unit| unit.length).sum(),
        }
    }

    /// The bytes of the index partitions in memory.
    fn partition_bytes(&self) -> u64 {
        let loaded = self.partitions.iter().filter_map(OnceLock::get);
        loaded.map(|partition| partition.held.bytes()).sum()
    }

    /// The bytes that the segment holds in memory, itself included.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.held.bytes() + self.filter.memory_bytes() + self.partition_bytes()
    }
}

impl SegmentParts {
    /// How much higher the sequence numbers of its entries are than those in the file.
    #[inline]
    pub(crate) fn raise(&self) -> SequenceNumber {
        if self.properties.sequence_min == UNNUMBERED {
            self.properties.sequence_max
        } else {
            0
        }
    }

    fn count_bytes(&self) -> usize {
        let keys = self.properties.smallest.len() + self.properties.largest.len();
        let partitions = self.index.partitions() * size_of::<OnceLock<Arc<LoadedPartition>>>();
        let parts = size_of::<Segment>() + size_of::<Self>() + partitions;
        let ranges = self.ranges.as_ref().map_or(0, |it| it.memory_bytes());
        parts + self.index.memory_bytes() + keys + ranges + self.marks.memory_bytes()
    }

    /// The places of the filter units, which follow the data blocks.
    fn units(&self) -> impl Iterator<Item = Handle> {
        let mut offset = self.index.data_end();
        let present = self.unit_bytes.iter().take_while(|length| **length > 0);
        present.map(move |&length| {
            let unit = Handle { offset, length };
            offset += length;
            unit
        })
    }

    /// The filter in the form `form`.
    fn filter(
        &self,
        metadata: &MetadataReader<'_>,
        form: FilterForm,
        memory: &TableMemory,
    ) -> Result<SegmentFilter> {
        let at =
            |unit: Handle| move |error: DecodeError| error.in_file(metadata.file.name, unit.offset);
        let units = match form {
            FilterForm::Whole(units) => units,
            FilterForm::ByPieces(units) if self.is_small(units) => units,
            FilterForm::ByPieces(units) => {
                let filter = self.pieced_filter(units, memory);
                return filter.map_err(|(unit, error)| at(unit)(error));
            }
        };
        let load = |(number, unit)| {
            let layout = UnitLayout::new(unit, number).map_err(at(unit))?;
            metadata.filter_unit(&layout)
        };
        let units = self.units().take(units).enumerate().map(load);
        Ok(WholeFilter::of(units.collect::<Result<_>>()?, memory))
    }

    /// Whether the first `units` units are so small that they stay in memory.
    fn is_small(&self, units: usize) -> bool {
        let bytes = self.units().take(units).map(|unit| unit.length);
        bytes.sum::<u64>() < SMALL_FILTER_BYTES as u64
    }

    /// The filter read by pieces, of which `units` units are allocated. An error comes with the place of its unit.
    fn pieced_filter(
        &self,
        units: usize,
        memory: &TableMemory,
    ) -> std::result::Result<SegmentFilter, (Handle, DecodeError)> {
        let Some(first) = self.units().next().filter(|_| units > 0) else {
            return Ok(SegmentFilter::Absent);
        };
        let layout = UnitLayout::new(first, 0).map_err(|error| (first, error))?;
        let filter = PiecedFilter::new(layout, units, memory);
        Ok(SegmentFilter::ByPieces(Arc::new(filter)))
    }
}

/// Reads `length` bytes at `offset`, which are within the file.
fn read_exact(file: SegmentFile<'_>, offset: u64, length: u64) -> Result<Vec<u8>> {
    let length = usize::try_from(length).map_err(|_| {
        Error::corruption(file.name, offset, "a block is too long for this machine")
    })?;
    let mut bytes = vec![0; length];
    read_exact_at(file.file, &mut bytes, offset)
        .map_err(|error| Error::read(file.name, offset, error))?;
    Ok(bytes)
}

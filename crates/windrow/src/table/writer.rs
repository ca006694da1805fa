//! Writes a segment, entry by entry, in bounded memory: the first of a new table file, or one more that
//! is appended to a file.
//!
//! Invariants:
//! - I1. Entries come in strictly ascending order of (key, descending sequence); another order is an error before it
//!   reaches the disk. It comes from an input of the caller whose checksums are right. Either all entries have a sequence number or none has.
//! - I2. Memory is one block, one write buffer, eight bytes per key for the filter, the index, and the references by
//!   value file. None of them grows with the database beyond what the entries of a table take.
//! - I3. An appended segment begins after all that the manifest knows of the file, so no byte that a reader
//!   may read is written. The bytes of a failed attempt are truncated or overwritten. Their checksums do not
//!   fit the new segment, because no segment id is used twice.
//!
//! Concurrency: none; that of [`FileWriter`]. A file has one writer at a time.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::key::{UNNUMBERED, compare_entries};
use crate::base::limits::SEGMENTS_MAX;
use crate::base::range_tombstones::Limit;
use crate::base::{
    Error, ErrorKind, FileNumber, KeyspaceId, RangeTombstone, Result, SegmentId, Trailer,
};
use crate::block::BlockBuilder;
use crate::block::stored::{Place, TRAILER_BYTES, seal};
use crate::codec::Compression;
use crate::codec::checksum::key_hash;
use crate::codec::compression::Compressor;
use crate::codec::reader::DecodeError;
use crate::filter::{FILTER_UNITS_MAX, FilterBuilder};
use crate::vfs::{FileWriter, OpenMode, Vfs, WRITE_BYTES};

use super::format::{
    EXTERNAL_FILE, EXTERNAL_SEGMENTS, ExpiringTally, FOOTER_BYTES, FenceKeys, FileMeta, Footer,
    Handle, IndexBuilder, LogReferences, Properties, RangeBlock, ReferenceList, References,
    SegmentMeta, SegmentReferences, file_name, put_ranges, write_pieces,
};
use super::overlap::keys_in;
use super::page_fit::{self, PAGE_BYTES};
use super::read::Table;

/// How a table is written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TableOptions {
    /// Size of a data block before compression.
    pub(crate) block_bytes: usize,
    /// Bits per key of each filter unit; 0 writes none.
    pub(crate) filter_units: [f64; FILTER_UNITS_MAX],
    /// Compression of data blocks.
    pub(crate) compression: Compression,
}

/// Writes one table file.
#[derive(Debug)]
pub(crate) struct TableWriter {
    output: Output,
    options: TableOptions,
    compressor: Compressor,
    block: BlockBuilder,
    /// The most payload bytes of the block under construction.
    payload_max: usize,
    payload: Vec<u8>,
    filter: FilterBuilder,
    index: IndexBuilder,
    properties: Properties,
    references: References,
    ranges: Vec<RangeTombstone>,
    /// See [`SegmentMeta::hidden_below`].
    hidden_below: u32,
    expiring: ExpiringTally,
    /// Whether the segment ends at its last key: a range tombstone that reaches beyond it continues in the next file.
    ends_at_last_key: bool,
    /// See [`LogReferences`].
    generation: FileNumber,
    keyspace: Option<KeyspaceId>,
    last_key: Vec<u8>,
    last_sequence: u64,
    /// Where the segment begins.
    segment_offset: u64,
    /// The earlier segments of the file.
    before: Vec<SegmentMeta>,
    /// The file before the append, if it is open.
    older: Option<Arc<Table>>,
}

/// A table file with the segment that was written.
#[derive(Debug)]
pub(crate) struct WrittenTable {
    pub(crate) file: FileMeta,
    /// The references of the segment to value logs, as they stand in its block.
    pub(crate) log_references: ReferenceList,
    /// Whether readers of the mapped segment find what was written: its blocks are not compressed, and the page cache has
    /// kept them all.
    pub(crate) stays: bool,
}

/// Segments begin at multiples of this.
pub(crate) const SEGMENT_ALIGNMENT: u64 = PAGE_BYTES;

/// The file, and the segment that is written to it.
#[derive(Debug)]
struct Output {
    writer: FileWriter,
    number: FileNumber,
    segment: SegmentId,
}

impl Output {
    fn place(&self) -> Place {
        Place {
            file: self.number,
            segment: self.segment,
            offset: self.writer.position(),
        }
    }

    /// Appends a block whose body `fill` writes.
    fn append(&mut self, fill: impl FnOnce(&mut Vec<u8>) -> Compression) -> Result<Handle> {
        let place = self.place();
        let buffer = self.writer.buffer();
        let start = buffer.len();
        let codec = fill(buffer);
        seal(buffer, start, codec, place);
        let length = (buffer.len() - start) as u64;
        if buffer.len() >= WRITE_BYTES {
            self.writer.flush()?;
        }
        Ok(Handle {
            offset: place.offset,
            length,
        })
    }
}

/// The error of an entry that does not follow the one before it (I1).
#[cold]
fn out_of_order(sequence: u64, last: u64) -> Error {
    let what = format!("table entries must ascend: sequence number {sequence} comes after {last}");
    Error::new(ErrorKind::Corruption, what)
}

impl TableWriter {
    /// Creates table file `number` in `directory`, with one segment `segment`.
    pub(crate) fn create(
        vfs: &dyn Vfs,
        directory: &Path,
        number: FileNumber,
        segment: SegmentId,
        options: &TableOptions,
    ) -> Result<Self> {
        let writer = FileWriter::create(vfs, directory.join(file_name(number)))?;
        let output = Output {
            writer,
            number,
            segment,
        };
        Ok(Self::new(output, Vec::new(), options))
    }

    /// Creates an external table at `path`, whose segment has the id [`EXTERNAL_SEGMENTS`] plus `random`.
    pub(crate) fn create_external(
        vfs: &dyn Vfs,
        path: PathBuf,
        random: u64,
        options: &TableOptions,
    ) -> Result<Self> {
        let output = Output {
            writer: FileWriter::create(vfs, path)?,
            number: EXTERNAL_FILE,
            segment: SegmentId(EXTERNAL_SEGMENTS | random),
        };
        Ok(Self::new(output, Vec::new(), options))
    }

    /// Adds the segment `segment` to the file in `directory` that `table` describes, which is not sealed
    /// and has fewer than [`SEGMENTS_MAX`] segments.
    pub(crate) fn append(
        vfs: &dyn Vfs,
        directory: &Path,
        table: &FileMeta,
        segment: SegmentId,
        options: &TableOptions,
    ) -> Result<Self> {
        assert!(
            !table.sealed && table.segments.len() < SEGMENTS_MAX,
            "no segment can be appended to table file {}",
            table.number
        );
        let path = directory.join(file_name(table.number));
        let start = table.end().next_multiple_of(SEGMENT_ALIGNMENT); // I3
        let output = Output {
            writer: FileWriter::append(vfs, path, start)?,
            number: table.number,
            segment,
        };
        Ok(Self::new(output, table.segments.to_vec(), options))
    }

    /// Estimates from the filters of `older`, the file before the append, how many keys its segments
    /// have too.
    #[must_use]
    pub(crate) fn with_older(mut self, older: Arc<Table>) -> Self {
        self.older = Some(older);
        self
    }

    /// Records that the segment is of `keyspace`.
    #[must_use]
    pub(crate) fn of_keyspace(mut self, keyspace: KeyspaceId) -> Self {
        self.keyspace = Some(keyspace);
        self
    }

    /// Records the newest GC output that the pointers of the entries can lead to (see [`LogReferences`]).
    #[must_use]
    pub(crate) fn with_generation(mut self, generation: FileNumber) -> Self {
        self.generation = generation;
        self
    }

    fn new(mut output: Output, before: Vec<SegmentMeta>, options: &TableOptions) -> Self {
        let capacity = WRITE_BYTES + 2 * options.block_bytes;
        output.writer.buffer().reserve_exact(capacity);
        Self {
            segment_offset: output.writer.position(),
            before,
            older: None,
            options: *options,
            compressor: Compressor::new(options.compression),
            block: BlockBuilder::default(),
            payload_max: payload_max(&output, options),
            payload: Vec::new(),
            filter: FilterBuilder::default(),
            index: IndexBuilder::default(),
            properties: Properties::default(),
            references: References::default(),
            ranges: Vec::new(),
            hidden_below: 0,
            expiring: ExpiringTally::default(),
            ends_at_last_key: false,
            generation: FileNumber(0),
            keyspace: None,
            last_key: Vec::new(),
            last_sequence: 0,
            output,
        }
    }

    /// Adds an entry (I1). The value of a range tombstone is its end.
    pub(crate) fn add(&mut self, key: &[u8], trailer: Trailer, value: &[u8]) -> Result<()> {
        assert!(!key.is_empty(), "a table entry needs a key");
        let sequence = trailer.sequence();
        let first = self.properties.entries == 0;
        let order = compare_entries(&self.last_key, self.last_sequence, key, sequence);
        if !first && order.is_ge() {
            return Err(out_of_order(sequence, self.last_sequence));
        }
        if !self.block.try_add(key, trailer, value, self.payload_max) {
            self.finish_block(Some(key))?;
            let added = self.block.try_add(key, trailer, value, self.payload_max);
            assert!(added, "an empty block takes any entry");
        }

        if first || self.last_key != key {
            if self.options.filter_units[0] > 0.0 {
                self.filter.add(key_hash(key));
            }
            self.last_key.clear();
            self.last_key.extend_from_slice(key);
        }
        self.last_sequence = sequence;

        let value_bytes = self
            .references
            .note(trailer, value)
            .map_err(malformed_pointer)?;
        if trailer.is_range_tombstone() {
            self.ranges.push(RangeTombstone {
                start: key.into(),
                end: value.into(),
                sequence,
            });
        }
        let properties = &mut self.properties;
        if first {
            properties.smallest = key.into();
            properties.sequence_min = sequence;
        }
        properties.entries += 1;
        properties.tombstones += u64::from(trailer.is_tombstone());
        properties.operands += u64::from(trailer.is_operand());
        properties.sequence_min = properties.sequence_min.min(sequence);
        properties.sequence_max = properties.sequence_max.max(sequence);
        properties.logical_bytes += key.len() as u64 + value_bytes;
        if trailer.is_expiring() {
            self.expiring
                .add(key, trailer, value)
                .map_err(malformed_pointer)?;
        }
        Ok(())
    }

    /// The last key that was added; empty without one.
    pub(crate) fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// Lets the segment end at its last key, even if range tombstones reach beyond it: they continue in the next file.
    pub(crate) fn end_at_last_key(&mut self) {
        self.ends_at_last_key = true;
    }

    /// Notes how many entries of lower levels the range tombstones so far hide, by a count of those in some ranges.
    pub(crate) fn note_hidden(&mut self, count: impl FnOnce(Vec<RangeTombstone>) -> u64) {
        if self.ranges.is_empty() {
            return;
        }
        let ranges = self.ranges.iter();
        let limit = Limit::new(self.largest());
        let within = ranges.filter_map(|range| range.up_to(&limit));
        self.hidden_below = u32::try_from(count(within.collect())).unwrap_or(u32::MAX);
    }

    /// The largest key that the segment covers.
    fn largest(&self) -> &[u8] {
        let ends = self.ranges.iter().map(RangeTombstone::largest);
        match ends.max() {
            Some(end) if !self.ends_at_last_key && end > &*self.last_key => end,
            _ => &self.last_key,
        }
    }

    /// About how long the segment would be if it were finished now.
    pub(crate) fn bytes_written_so_far(&self) -> u64 {
        let pending = self.block.block_bytes() + self.index.bytes();
        self.output.writer.position() - self.segment_offset + pending as u64
    }

    /// The bytes in transient logs that the entries so far refer to.
    pub(crate) fn transient_bytes(&self) -> u64 {
        self.references.transient_bytes()
    }

    /// The bytes that the writer holds in memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let buffers = self.output.writer.memory_bytes() + self.payload.capacity();
        let ranges = self.ranges.capacity() * size_of::<RangeTombstone>();
        let metadata =
            self.filter.memory_bytes() + self.index.memory_bytes() + self.references.memory_bytes();
        // The block under construction is as large as the last one.
        (buffers + self.payload.capacity() + metadata + ranges) as u64
    }

    /// Whether a whole piece of the file waits for a judgement.
    #[inline]
    pub(crate) fn has_unjudged_piece(&self) -> bool {
        self.output.writer.has_unjudged_piece()
    }

    /// Judges whether the whole pieces since the last judgement stay in the page cache. Filters, index and footer
    /// always stay: the first read of the table loads them.
    pub(crate) fn judge(&mut self, stays: bool) {
        self.output.writer.judge(stays);
    }

    /// Writes the block under construction; `next` is the key after it.
    fn finish_block(&mut self, next: Option<&[u8]>) -> Result<()> {
        self.payload.clear();
        self.block.finish(&mut self.payload);
        if self.options.compression == Compression::None && next.is_some() {
            let end = self.output.writer.position() + (self.payload.len() + TRAILER_BYTES) as u64;
            let zeros = page_fit::padding(end, self.options.block_bytes);
            self.payload.resize(self.payload.len() + zeros, 0);
        }
        let (compressor, payload) = (&mut self.compressor, &self.payload);
        let handle = self
            .output
            .append(|buffer| compressor.append(payload, buffer))?;
        self.index.add(handle.length, &self.last_key, next);
        self.payload_max = payload_max(&self.output, &self.options);
        Ok(())
    }

    /// Writes the filters, index, references, properties and footer, and syncs the file; the caller syncs the
    /// directory of a new file. There must be an entry. Returns the file with this segment.
    ///
    /// # Errors
    /// `Corruption` if some entries have no sequence number, and some have one; those of I/O.
    pub(crate) fn finish(mut self) -> Result<WrittenTable> {
        assert!(self.properties.entries > 0, "a table needs an entry");
        if self.properties.sequence_min == UNNUMBERED && self.properties.sequence_max != UNNUMBERED
        {
            // Only tables that somebody has made lead here, by a compaction of some.
            let what = "entries with and without sequence numbers meet in a table";
            return Err(Error::new(ErrorKind::Corruption, what));
        }
        self.finish_block(None)?;

        let mut filters = [Handle::default(); FILTER_UNITS_MAX];
        let wanted = self.options.filter_units;
        for ((number, bits_per_key), handle) in (0..).zip(wanted).zip(&mut filters) {
            let Some(unit) = self.filter.unit(number, bits_per_key) else {
                break;
            };
            handle.offset = self.output.writer.position();
            write_pieces(&unit, handle.offset, |body| {
                self.output.append(|buffer| plain(body, buffer))?;
                Ok::<_, Error>(self.output.writer.position())
            })?;
            handle.length = self.output.writer.position() - handle.offset;
        }
        let mut partitions = Handle {
            offset: self.output.writer.position(),
            length: 0,
        };
        for body in self.index.partitions() {
            partitions.length += self.output.append(|buffer| plain(body, buffer))?.length;
        }
        let log_references = self.references.logs();
        if !log_references.is_empty() {
            self.output.append(|buffer| {
                log_references.encode(buffer);
                Compression::None
            })?;
        }
        let ranges = if self.ranges.is_empty() {
            None
        } else {
            let block = self.output.append(|buffer| {
                put_ranges(buffer, &self.ranges);
                Compression::None
            })?;
            let count = u32::try_from(self.ranges.len());
            let too_many = |_| Error::invalid_argument("a table has 2^32 range tombstones");
            Some(RangeBlock {
                count: count.map_err(too_many)?,
                bytes: block.length,
            })
        };
        let index = self.output.append(|buffer| {
            self.index.finish(buffer);
            Compression::None
        })?;
        let properties = Properties {
            largest: self.largest().into(),
            ranges,
            keyspace: self.keyspace,
            expiring: self.expiring.finish(),
            filter_bytes: filters.iter().map(|unit| unit.length).sum(),
            blocks: self.index.blocks(),
            transient: self.references.transient(),
            logs: log_references.log_sums(),
            ..self.properties
        };
        let properties_handle = self.output.append(|buffer| {
            properties.encode(buffer);
            Compression::None
        })?;
        let footer = Footer {
            segment_offset: self.segment_offset,
            previous: self
                .before
                .last()
                .map(|segment| segment.end() - FOOTER_BYTES as u64),
            partitions,
            index,
            properties: properties_handle,
            filters,
        };
        let (bytes, footer_checksum) = footer.encode(self.output.place());
        self.output.writer.buffer().extend_from_slice(&bytes);
        self.output.writer.sync()?;
        let mut segments = self.before;
        let overwrites = match &self.older {
            _ if segments.is_empty() => 0,
            Some(older) if !self.filter.hashes().is_empty() => keys_in(older, self.filter.hashes()),
            _ => properties.entries,
        };
        let generation = self.generation;
        let logs = properties
            .logs
            .map(|sums| LogReferences { sums, generation });
        segments.push(SegmentMeta {
            id: self.output.segment,
            offset: self.segment_offset,
            length: self.output.writer.position() - self.segment_offset,
            entries: properties.entries,
            tombstones: properties.tombstones,
            keys: FenceKeys::new(&properties.smallest, &properties.largest),
            sequence_min: properties.sequence_min,
            sequence_max: properties.sequence_max,
            logical_bytes: properties.logical_bytes,
            overwrites,
            filter_units: filters.map(|unit| unit.length),
            footer_checksum,
            range_tombstones: properties.ranges.map_or(0, |ranges| ranges.count),
            operands: properties.operands,
            hidden_below: self.hidden_below,
            expiring: properties.expiring,
            references: SegmentReferences::new(properties.transient, logs),
        });
        Ok(WrittenTable {
            file: FileMeta {
                number: self.output.number,
                sealed: self.output.number == EXTERNAL_FILE,
                external: self.output.number == EXTERNAL_FILE,
                segments: segments.into(),
            },
            log_references,
            stays: self.options.compression == Compression::None && self.output.writer.stays(),
        })
    }
}

fn malformed_pointer(error: DecodeError) -> Error {
    let what = format!("an entry has a malformed pointer: {}", error.what);
    Error::new(ErrorKind::Corruption, what)
}

/// Truncates table file `number` of `directory` to its known `end`; no other job appends to it.
pub(crate) fn truncate_table(
    vfs: &dyn Vfs,
    directory: &Path,
    number: FileNumber,
    end: u64,
) -> Result<()> {
    let path = directory.join(file_name(number));
    vfs.open(&path, OpenMode::ReadWrite)
        .and_then(|file| file.truncate(end))
        .map_err(|error| Error::io("truncate", &path, error))
}

/// The most payload bytes of the next data block. The end of a compressed block is not known in advance.
fn payload_max(output: &Output, options: &TableOptions) -> usize {
    match options.compression {
        Compression::None => {
            page_fit::payload_max(output.writer.position(), options.block_bytes, TRAILER_BYTES)
        }
        _ => options.block_bytes,
    }
}

fn plain(body: &[u8], buffer: &mut Vec<u8>) -> Compression {
    buffer.extend_from_slice(body);
    Compression::None
}

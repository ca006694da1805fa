//! Writes a segment, entry by entry, in bounded memory: the first of a new table file, or one more
//! behind those that a file has.
//!
//! Invariants:
//! - I1. Entries come in strictly ascending order of (key, descending sequence); a violation is a
//!   bug of the caller and panics before it reaches the disk.
//! - I2. Memory is one block, one write buffer, eight bytes per key for the filter, and the index;
//!   none of them follows the size of the database.
//!
//! - I3. A segment that is added begins behind all that the manifest knows of the file, so that no byte
//!   which anyone may read is written. What an attempt that failed has left there is cut off, or written
//!   over.
//!
//! Concurrency: none; a writer belongs to one job, and a file has one writer at a time. Dropped before
//! `finish`, it leaves a file that no manifest names, or bytes behind the recorded end of one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::key::compare_entries;
use crate::base::limits::SEGMENTS_MAX;
use crate::base::{Error, ErrorKind, FileNumber, Result, SegmentId, Trailer};
use crate::block::BlockBuilder;
use crate::block::stored::{Place, seal};
use crate::codec::Compression;
use crate::codec::checksum::key_hash;
use crate::codec::compression::Compressor;
use crate::filter::{FILTER_UNITS_MAX, FilterBuilder};
use crate::vfs::{File, OpenMode, Vfs, write_all_at};

use super::format::{
    FOOTER_BYTES, FileMeta, Footer, Handle, IndexBuilder, Properties, SegmentMeta, file_name,
};
use super::overlap::keys_in;
use super::read::Table;

/// Bytes gathered before a write.
const WRITE_BYTES: usize = 256 << 10;

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
    payload: Vec<u8>,
    filter: FilterBuilder,
    index: IndexBuilder,
    properties: Properties,
    last_key: Vec<u8>,
    last_sequence: u64,
    /// Where the segment begins.
    segment_offset: u64,
    /// The segments that the file has without it.
    before: Vec<SegmentMeta>,
    /// The file without it, where that is open.
    older: Option<Arc<Table>>,
}

/// Segments begin at multiples of this.
pub(crate) const SEGMENT_ALIGNMENT: u64 = 4096;

/// The file and what waits to be written to it.
#[derive(Debug)]
struct Output {
    file: Arc<dyn File>,
    path: PathBuf,
    number: FileNumber,
    segment: SegmentId,
    buffer: Vec<u8>,
    /// Where the buffer belongs in the file.
    written: u64,
}

impl Output {
    /// Where the next byte goes.
    fn position(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    fn place(&self) -> Place {
        Place {
            file: self.number,
            segment: self.segment,
            offset: self.position(),
        }
    }

    /// Appends a block whose body `fill` writes.
    fn append(&mut self, fill: impl FnOnce(&mut Vec<u8>) -> Compression) -> Result<Handle> {
        let place = self.place();
        let start = self.buffer.len();
        let codec = fill(&mut self.buffer);
        seal(&mut self.buffer, start, codec, place);
        let handle = Handle {
            offset: place.offset,
            length: (self.buffer.len() - start) as u64,
        };
        if self.buffer.len() >= WRITE_BYTES {
            self.flush()?;
        }
        Ok(handle)
    }

    fn flush(&mut self) -> Result<()> {
        write_all_at(&*self.file, &self.buffer, self.written)
            .map_err(|error| Error::io("write", &self.path, error))?;
        self.written = self.position();
        self.buffer.clear();
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.flush()?;
        self.file
            .sync_data()
            .map_err(|error| Error::io("sync", &self.path, error))
    }
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
        let path = directory.join(file_name(number));
        let file = vfs
            .create(&path)
            .map_err(|error| Error::io("create", &path, error))?;
        let place = Place {
            file: number,
            segment,
            offset: 0,
        };
        Ok(Self::new(file, path, place, Vec::new(), options))
    }

    /// Adds the segment `segment` to the file in `directory` that `table` describes, which is not sealed
    /// and has room for one more.
    pub(crate) fn append(
        vfs: &dyn Vfs,
        directory: &Path,
        table: &FileMeta,
        segment: SegmentId,
        options: &TableOptions,
    ) -> Result<Self> {
        assert!(
            !table.sealed && table.segments.len() < SEGMENTS_MAX,
            "nothing is added to table file {}",
            table.number
        );
        let path = directory.join(file_name(table.number));
        let file = vfs
            .open(&path, OpenMode::ReadWrite)
            .map_err(|error| Error::io("open", &path, error))?;
        let place = Place {
            file: table.number,
            segment,
            offset: table.end().next_multiple_of(SEGMENT_ALIGNMENT), // I3
        };
        let before = table.segments.clone();
        Ok(Self::new(file, path, place, before, options))
    }

    /// Lets `older`, the file as it was, tell which keys its segments may have.
    #[must_use]
    pub(crate) fn asking(mut self, older: Arc<Table>) -> Self {
        self.older = Some(older);
        self
    }

    fn new(
        file: Arc<dyn File>,
        path: PathBuf,
        place: Place,
        before: Vec<SegmentMeta>,
        options: &TableOptions,
    ) -> Self {
        Self {
            output: Output {
                file,
                path,
                number: place.file,
                segment: place.segment,
                buffer: Vec::with_capacity(WRITE_BYTES + 2 * options.block_bytes),
                written: place.offset,
            },
            segment_offset: place.offset,
            before,
            older: None,
            options: *options,
            compressor: Compressor::new(options.compression),
            block: BlockBuilder::default(),
            payload: Vec::new(),
            filter: FilterBuilder::default(),
            index: IndexBuilder::default(),
            properties: Properties::default(),
            last_key: Vec::new(),
            last_sequence: 0,
        }
    }

    /// Adds an entry (I1).
    pub(crate) fn add(&mut self, key: &[u8], trailer: Trailer, value: &[u8]) -> Result<()> {
        assert!(!key.is_empty(), "a table entry needs a key");
        let sequence = trailer.sequence();
        let first = self.properties.entries == 0;
        let order = compare_entries(&self.last_key, self.last_sequence, key, sequence);
        assert!(
            first || order.is_lt(),
            "table entries must ascend: sequence {sequence} after {}",
            self.last_sequence
        );
        let limit = self.options.block_bytes;
        if !self.block.try_add(key, trailer, value, limit) {
            self.finish_block(Some(key))?;
            let added = self.block.try_add(key, trailer, value, limit);
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

        let properties = &mut self.properties;
        let value_bytes = properties
            .references
            .note(trailer, value)
            .map_err(|error| {
                let what = format!("{}: an entry refers to nowhere", error.what);
                Error::new(ErrorKind::Corruption, what)
            })?;
        if first {
            properties.smallest = key.into();
            properties.sequence_min = sequence;
        }
        properties.entries += 1;
        properties.tombstones += u64::from(trailer.is_tombstone());
        properties.sequence_min = properties.sequence_min.min(sequence);
        properties.sequence_max = properties.sequence_max.max(sequence);
        properties.logical_bytes += key.len() as u64 + value_bytes;
        Ok(())
    }

    /// About how long the segment would be if it were finished now.
    pub(crate) fn bytes_written_so_far(&self) -> u64 {
        let waiting = self.block.block_bytes() + self.index.bytes();
        self.output.position() - self.segment_offset + waiting as u64
    }

    /// The bytes in transient logs that the entries so far refer to.
    pub(crate) fn transient_bytes(&self) -> u64 {
        self.properties.references.transient_bytes()
    }

    /// The bytes that the writer holds in memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let buffers = self.output.buffer.capacity() + self.payload.capacity();
        let behind = self.filter.memory_bytes() + self.index.memory_bytes();
        // The block that is being filled is as large as the last one.
        (buffers + self.payload.capacity() + behind) as u64
    }

    /// Writes the block that waits; `next` is the key after it.
    fn finish_block(&mut self, next: Option<&[u8]>) -> Result<()> {
        self.payload.clear();
        self.block.finish(&mut self.payload);
        let (compressor, payload) = (&mut self.compressor, &self.payload);
        let handle = self
            .output
            .append(|buffer| compressor.append(payload, buffer))?;
        self.index.add(handle.length, &self.last_key, next);
        Ok(())
    }

    /// Writes what belongs behind the data and syncs the file; where that is new, the caller syncs the
    /// directory. There must be an entry. Returns the file with this segment.
    pub(crate) fn finish(mut self) -> Result<FileMeta> {
        assert!(self.properties.entries > 0, "a table needs an entry");
        self.finish_block(None)?;

        let mut filters = [Handle::default(); FILTER_UNITS_MAX];
        let mut unit = Vec::new();
        let wanted = self.options.filter_units;
        for ((number, bits_per_key), handle) in (0..).zip(wanted).zip(&mut filters) {
            unit.clear();
            if !self.filter.finish(number, bits_per_key, &mut unit) {
                break;
            }
            *handle = self.output.append(|buffer| plain(&unit, buffer))?;
        }
        let index = self.output.append(|buffer| {
            self.index.finish(buffer);
            Compression::None
        })?;
        let properties = Properties {
            largest: self.last_key.into(),
            filter_bytes: filters.iter().map(|unit| unit.length).sum(),
            blocks: self.index.blocks(),
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
            index,
            properties: properties_handle,
            filters,
        };
        let (bytes, footer_checksum) = footer.encode(self.output.place());
        self.output.buffer.extend_from_slice(&bytes);
        self.output.sync()?;
        let mut segments = self.before;
        let overwrites = match &self.older {
            _ if segments.is_empty() => 0,
            Some(older) if !self.filter.hashes().is_empty() => keys_in(older, self.filter.hashes()),
            _ => properties.entries,
        };
        segments.push(SegmentMeta {
            id: self.output.segment,
            offset: self.segment_offset,
            length: self.output.position() - self.segment_offset,
            entries: properties.entries,
            tombstones: properties.tombstones,
            smallest: properties.smallest,
            largest: properties.largest,
            sequence_min: properties.sequence_min,
            sequence_max: properties.sequence_max,
            logical_bytes: properties.logical_bytes,
            overwrites,
            filter_units: filters.map(|unit| unit.length),
            footer_checksum,
            references: properties.references,
        });
        Ok(FileMeta {
            number: self.output.number,
            sealed: false,
            segments,
        })
    }
}

/// Cuts off what is behind the known `end` of table file `number` of `directory`, which nobody else appends
/// to.
pub(crate) fn cut_back(
    vfs: &dyn Vfs,
    directory: &Path,
    number: FileNumber,
    end: u64,
) -> Result<()> {
    let path = directory.join(file_name(number));
    vfs.open(&path, OpenMode::ReadWrite)
        .and_then(|file| file.truncate(end))
        .map_err(|error| Error::io("cut", &path, error))
}

fn plain(body: &[u8], buffer: &mut Vec<u8>) -> Compression {
    buffer.extend_from_slice(body);
    Compression::None
}

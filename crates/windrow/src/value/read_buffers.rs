//! Reads values in the order of their keys, for compactions, verification and recovery.
//!
//! Each file has a read buffer, which advances over the file as pointers ascend. Pointers through a
//! relocation table come in another order than that of the table, so blocks of relocation tables are
//! cached. The mapping is never used, so a failed read is an error and no signal.
//!
//! Invariants:
//! - I1. No byte of a file is read twice while its pointers ascend and it keeps its buffer.
//! - I2. Memory is [`READ_BUFFERS_BYTES`], divided over the buffers. Each buffer takes between
//!   [`SMALL_READ_BUFFER_BYTES`] and [`READ_BUFFER_BYTES`], and there are at most
//!   [`READ_BUFFERS_MAX`]; the least recently used is evicted. A record that is longer than a buffer and a
//!   decompressed value take memory beside it. The memory tracker counts all. A buffer that moves stays
//!   small, or gets the length of one record, if the tracked memory is used up or the pointers into the
//!   file do not ascend: what follows a record is then not read next.
//! - I3. No value is returned that did not pass the checks of its record in the same call.
//! - I4. At most [`FILES_OPEN_MAX`] files are open.
//! - I5. If the bytes to read of a file are known, its buffer is no longer than the rest of them, except
//!   for [`SMALL_READ_BUFFER_BYTES`]: the bytes after them are not read.
//! - I6. Blocks of relocation tables take [`BLOCKS_BYTES`] at most, and only while less than half of the
//!   tracked memory is used: the rest stays for what jobs cannot do without. A block that failed a
//!   check is not kept.
//!
//! Concurrency: none; it belongs to one job.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::base::{Error, FileNumber, Held, MemoryTracker, Result};
use crate::codec::Compression;
use crate::codec::reader::DecodeError;
use crate::vfs::{Footprint, PassedBytes, Vfs};

use super::file::{check_growing, open_whole};
use super::meta::{ValueFileMeta, file_name};
use super::pointer::ValuePointer;
use super::record;
use super::relocation::RelocationTable;

/// The longest read buffer of a file.
pub(super) const READ_BUFFER_BYTES: usize = 64 << 10;

/// The read buffer of a file if there are many files, or if the memory is used up.
pub(super) const SMALL_READ_BUFFER_BYTES: usize = 4 << 10;

/// The bytes of all read buffers, unless there are so many that each is small.
pub(super) const READ_BUFFERS_BYTES: usize = 8 << 20;

/// The most read buffers.
pub(super) const READ_BUFFERS_MAX: usize = 4096;

/// The most open files. Many systems allow a process 1024, which tables, value files and all jobs share.
pub(super) const FILES_OPEN_MAX: usize = 64;

/// The most bytes of relocation tables. Pointers come in the order of keys, and tables are in the order of
/// the log, so each block is read many times.
const BLOCKS_BYTES: u64 = 8 << 20;

/// Read buffers over value files.
#[derive(Debug)]
pub(crate) struct ValueReadBuffers {
    vfs: Arc<dyn Vfs>,
    directory: PathBuf,
    tracker: Arc<MemoryTracker>,
    /// Counts the records that were read.
    passed: Arc<PassedBytes>,
    /// The memory is used up once the tracker counts this much.
    tracked_max: u64,
    read_buffers: BTreeMap<FileNumber, ReadBuffer>,
    /// The most buffers, and the length of each.
    read_buffers_max: usize,
    read_buffer_bytes: usize,
    /// The bytes that remain to be read of files, if known.
    slices: BTreeMap<FileNumber, u64>,
    /// The number of reads, which orders the buffers by their last use.
    reads: u64,
    bytes_read: u64,
    blocks: Blocks,
    /// A record that is longer than a read buffer.
    alone: Buffer,
    /// A decompressed value.
    unpacked: Buffer,
}

/// A part of a file.
#[derive(Debug)]
struct ReadBuffer {
    name: String,
    /// `None` while it is closed.
    file: Option<Footprint>,
    length: u64,
    buffer: Buffer,
    /// The offset of the buffer in the file.
    start: u64,
    /// Whether a pointer into the file was before an earlier one.
    is_unsorted: bool,
    last_read: u64,
}

/// A file, an offset in it and a length.
type Place = (FileNumber, u64, usize);

/// Blocks of relocation tables.
#[derive(Debug)]
struct Blocks {
    kept: BTreeMap<Place, Box<[u8]>>,
    held: Held,
}

impl Blocks {
    /// Keeps a block, and evicts others until all take at most `space` more than now.
    ///
    /// The first is evicted: pointers come in any order here, so all are equally good.
    fn keep(&mut self, place: Place, block: &[u8], space: u64) {
        let most = BLOCKS_BYTES.min(self.held.bytes() + space);
        while self.held.bytes() + block.len() as u64 > most {
            let Some((_, gone)) = self.kept.pop_first() else {
                return;
            };
            self.held.set(self.held.bytes() - gone.len() as u64);
        }
        self.held.set(self.held.bytes() + block.len() as u64);
        self.kept.insert(place, block.into());
    }

    fn clear(&mut self) {
        self.kept.clear();
        self.held.set(0);
    }
}

/// Bytes that a memory tracker counts.
#[derive(Debug)]
struct Buffer {
    bytes: Vec<u8>,
    held: Held,
}

impl Buffer {
    fn new(tracker: &Arc<MemoryTracker>) -> Self {
        Self {
            bytes: Vec::new(),
            held: Held::new(tracker, 0),
        }
    }

    fn resize(&mut self, length: usize) {
        let more = length.saturating_sub(self.bytes.len());
        self.bytes.reserve_exact(more);
        self.count();
        self.bytes.resize(length, 0);
    }

    /// Counts the capacity.
    fn count(&mut self) {
        self.held.grow_to(self.bytes.capacity() as u64);
    }
}

impl ValueReadBuffers {
    /// Read buffers over value files of `directory`. `tracker` counts their memory, and should count about
    /// `tracked_max` bytes at most.
    pub(crate) fn new(
        vfs: Arc<dyn Vfs>,
        directory: PathBuf,
        tracker: &Arc<MemoryTracker>,
        tracked_max: u64,
    ) -> Self {
        Self {
            vfs,
            directory,
            tracker: Arc::clone(tracker),
            passed: Arc::default(),
            tracked_max,
            read_buffers: BTreeMap::new(),
            read_buffers_max: READ_BUFFERS_BYTES / READ_BUFFER_BYTES,
            read_buffer_bytes: READ_BUFFER_BYTES,
            slices: BTreeMap::new(),
            reads: 0,
            bytes_read: 0,
            blocks: Blocks {
                kept: BTreeMap::new(),
                held: Held::new(tracker, 0),
            },
            alone: Buffer::new(tracker),
            unpacked: Buffer::new(tracker),
        }
    }

    /// Counts the records that it reads in `passed`.
    #[must_use]
    pub(crate) fn counting(mut self, passed: &Arc<PassedBytes>) -> Self {
        self.passed = Arc::clone(passed);
        self
    }

    /// Counts the records that were read.
    pub(crate) fn passed(&self) -> &Arc<PassedBytes> {
        &self.passed
    }

    /// With a buffer for each of `files` files.
    pub(crate) fn over(mut self, files: usize) -> Self {
        self.read_buffers_max = files.clamp(self.read_buffers_max, READ_BUFFERS_MAX);
        self.read_buffer_bytes =
            (READ_BUFFERS_BYTES / self.read_buffers_max).max(SMALL_READ_BUFFER_BYTES);
        self
    }

    /// With a buffer for each of the files in `slices`, and the bytes that are to be read of each.
    pub(crate) fn over_slices(mut self, slices: BTreeMap<FileNumber, u64>) -> Self {
        let files = slices.len();
        self.slices = slices;
        self.over(files)
    }

    /// The length of the buffer of `file` for a record of `length` bytes, which counts as read.
    fn read_buffer_for(&mut self, file: FileNumber, length: usize) -> usize {
        let Some(left) = self.slices.get_mut(&file) else {
            return self.read_buffer_bytes.max(length);
        };
        let read_buffer = usize::try_from(*left).unwrap_or(usize::MAX);
        *left = left.saturating_sub(length as u64);
        read_buffer
            .clamp(SMALL_READ_BUFFER_BYTES, self.read_buffer_bytes)
            .max(length)
    }

    #[cfg(test)]
    pub(super) fn open_files(&self) -> usize {
        let read_buffers = self.read_buffers.values();
        read_buffers
            .filter(|read_buffer| read_buffer.file.is_some())
            .count()
    }

    /// How many bytes of files were read.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// The value of `key` that `pointer` leads to in the file that `meta` describes.
    pub(crate) fn read(
        &mut self,
        meta: &ValueFileMeta,
        key: &[u8],
        pointer: &ValuePointer,
    ) -> Result<&[u8]> {
        let length = usize::try_from(pointer.record_bytes).unwrap_or(usize::MAX);
        let known = self.read_buffers.get(&meta.number);
        let is_held =
            known.is_some_and(|read_buffer| read_buffer.bytes_from(pointer.offset).len() >= length);
        self.open(meta, !is_held)?;
        let read_buffer_bytes = self.read_buffer_for(meta.number, length);
        let Some(read_buffer) = self.read_buffers.get_mut(&meta.number) else {
            unreachable!("the buffer was added just now")
        };
        read_buffer.check(pointer.check_within(meta), pointer)?;
        let record_bytes = pointer.record_bytes;
        let record = if length <= self.read_buffer_bytes && !meta.is_growing() {
            let space = || self.tracked_max.saturating_sub(self.tracker.bytes());
            let read = read_buffer.go_to(pointer.offset, length, read_buffer_bytes, space)?;
            self.bytes_read += read as u64;
            if read > 0 {
                let left = self.slices.get(&meta.number).copied().unwrap_or(u64::MAX);
                let end = (pointer.offset + record_bytes).saturating_add(left);
                read_buffer.ask_ahead(end); // I5
            }
            read_buffer.bytes_from(pointer.offset).get(..length)
        } else {
            if let Some(file) = &read_buffer.file {
                let checked = check_growing(file.file(), meta, pointer);
                checked.map_err(|error| Error::read(&read_buffer.name, pointer.offset, error))?;
            }
            self.bytes_read +=
                read_buffer.read_alone(pointer.offset, length, &mut self.alone)? as u64;
            self.alone.bytes.get(..length)
        };
        let resident = read_buffer.resident_bytes(pointer.offset, record_bytes);
        self.passed.add(record_bytes, resident);
        let verified = record::verify(record.unwrap_or_default(), key, pointer);
        let (codec, body) = read_buffer.check(verified, pointer)?;
        if codec == Compression::None {
            return Ok(body);
        }
        let decompressed = record::decompress(codec, body, &mut self.unpacked.bytes);
        self.unpacked.count();
        read_buffer.check(decompressed, pointer)?;
        Ok(&self.unpacked.bytes)
    }

    /// The new place of the value that `pointer`, into the origin of `table`, leads to; `meta` describes the
    /// GC output.
    pub(crate) fn relocate(
        &mut self,
        meta: &ValueFileMeta,
        table: &RelocationTable,
        pointer: &ValuePointer,
    ) -> Result<ValuePointer> {
        let moved = table.relocate(pointer, |buffer, offset| {
            let place = (meta.number, offset, buffer.len());
            if let Some(known) = self.blocks.kept.get(&place) {
                buffer.copy_from_slice(known);
                return Ok(());
            }
            self.open(meta, true)?;
            let Some(read_buffer) = self.read_buffers.get_mut(&meta.number) else {
                unreachable!("the buffer was added just now")
            };
            self.bytes_read += buffer.len() as u64;
            read_at(read_buffer.file.as_mut(), buffer, offset)
                .map_err(|error| Error::read(&read_buffer.name, offset, error))?;
            let space = (self.tracked_max / 2).saturating_sub(self.tracker.bytes());
            self.blocks.keep(place, buffer, space);
            Ok(())
        });
        moved.inspect_err(|_| self.blocks.clear())
    }

    /// Makes sure that the file that `meta` describes has a buffer, now the most recently used, and is
    /// open if `needs_file`.
    fn open(&mut self, meta: &ValueFileMeta, needs_file: bool) -> Result<()> {
        let known = self.read_buffers.get(&meta.number);
        let opens = needs_file && known.is_none_or(|read_buffer| read_buffer.file.is_none());
        if opens {
            self.make_space(meta.number);
        }
        self.reads += 1;
        let read_buffer = match self.read_buffers.entry(meta.number) {
            Entry::Occupied(present) => present.into_mut(),
            Entry::Vacant(free) => free.insert(ReadBuffer {
                name: file_name(meta.number),
                file: None,
                length: meta.length,
                buffer: Buffer::new(&self.tracker),
                start: 0,
                is_unsorted: false,
                last_read: 0,
            }),
        };
        read_buffer.last_read = self.reads;
        if opens {
            let file = open_whole(&*self.vfs, &self.directory, &read_buffer.name, meta)?;
            read_buffer.file = Some(Footprint::new(file));
        }
        Ok(())
    }

    /// Frees a buffer for `file`, if it needs one, by evicting the least recently used (I2), and closes the
    /// least recently used file if the most are open (I4).
    fn make_space(&mut self, file: FileNumber) {
        if self.read_buffers.len() >= self.read_buffers_max
            && !self.read_buffers.contains_key(&file)
        {
            let read_buffers = self.read_buffers.iter();
            let oldest = read_buffers.min_by_key(|(_, read_buffer)| read_buffer.last_read);
            if let Some(number) = oldest.map(|(number, _)| *number) {
                self.read_buffers.remove(&number);
            }
        }
        let open = || {
            self.read_buffers
                .values()
                .filter(|read_buffer| read_buffer.file.is_some())
        };
        if open().count() >= FILES_OPEN_MAX {
            let open = self
                .read_buffers
                .values_mut()
                .filter(|it| it.file.is_some());
            if let Some(oldest) = open.min_by_key(|read_buffer| read_buffer.last_read) {
                oldest.file = None;
            }
        }
    }
}

impl ReadBuffer {
    /// The bytes of the buffer from `offset` on; none if that is outside.
    fn bytes_from(&self, offset: u64) -> &[u8] {
        let position = offset.checked_sub(self.start);
        position
            .and_then(|position| usize::try_from(position).ok())
            .and_then(|position| self.buffer.bytes.get(position..))
            .unwrap_or_default()
    }

    /// Lets the page cache drop what was read before `offset`. A file whose pointers do not ascend is read there again.
    fn pass(&mut self, offset: u64) {
        if let Some(footprint) = self.file.as_mut().filter(|_| !self.is_unsorted) {
            footprint.pass(offset);
        }
    }

    /// Asks for the bytes behind the buffer, up to `end` and not too many, if they are read next.
    fn ask_ahead(&mut self, end: u64) {
        let next = self.start + self.buffer.bytes.len() as u64;
        let end = end.min(self.length).min(next + READ_BUFFER_BYTES as u64);
        if let Some(footprint) = self
            .file
            .as_mut()
            .filter(|_| !self.is_unsorted && next < end)
        {
            footprint.ask_ahead(next..end);
        }
    }

    /// How many of the bytes from `offset` on were resident; none if the file was closed since they were read.
    fn resident_bytes(&self, offset: u64, length: u64) -> u64 {
        let resident = |footprint: &Footprint| footprint.resident_bytes(offset..offset + length);
        self.file.as_ref().map_or(0, resident)
    }

    /// Moves the buffer to `offset`, unless it holds the `length` bytes there, which the file has. Returns
    /// how many bytes were read. The buffer grows if `space` allows, or is small (I2).
    fn go_to(
        &mut self,
        offset: u64,
        length: usize,
        read_buffer_bytes: usize,
        space: impl Fn() -> u64,
    ) -> Result<usize> {
        let kept = self.bytes_from(offset).len();
        if kept >= length {
            return Ok(0);
        }
        self.is_unsorted |= offset < self.start;
        self.pass(offset);
        let passed = self.buffer.bytes.len() - kept;
        self.buffer.bytes.drain(..passed);
        self.start = offset;
        let left = usize::try_from(self.length - offset).unwrap_or(usize::MAX);
        let wanted = left.min(read_buffer_bytes);
        let has_space = wanted as u64 <= self.buffer.held.bytes() + space();
        self.buffer.resize(if has_space && !self.is_unsorted {
            wanted
        } else {
            wanted.min(length.max(SMALL_READ_BUFFER_BYTES))
        });
        let offset = offset + kept as u64;
        let read = read_at(self.file.as_mut(), &mut self.buffer.bytes[kept..], offset);
        read.map_err(|error| {
            self.buffer.bytes.truncate(kept);
            Error::read(&self.name, offset, error)
        })?;
        Ok(self.buffer.bytes.len() - kept)
    }

    /// Replaces the content of `alone` by the `length` bytes at `offset`; returns how many were read.
    fn read_alone(&mut self, offset: u64, length: usize, alone: &mut Buffer) -> Result<usize> {
        self.pass(offset);
        let known = self.bytes_from(offset);
        alone.bytes.clear();
        alone.resize(length);
        alone.bytes[..known.len()].copy_from_slice(known);
        let known = known.len();
        let offset = offset + known as u64;
        read_at(self.file.as_mut(), &mut alone.bytes[known..], offset)
            .map_err(|error| Error::read(&self.name, offset, error))?;
        Ok(length - known)
    }

    /// Gives a decoding error the file and the offset.
    fn check<T>(
        &self,
        result: std::result::Result<T, DecodeError>,
        pointer: &ValuePointer,
    ) -> Result<T> {
        result.map_err(|error| error.in_file(&self.name, pointer.offset))
    }
}

/// Fills `buffer` from `offset` on. The file is open unless `buffer` is empty.
fn read_at(file: Option<&mut Footprint>, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    match file {
        Some(file) => file.read_exact_at(buffer, offset),
        None if buffer.is_empty() => Ok(()),
        None => Err(io::Error::other("the file is not open")),
    }
}

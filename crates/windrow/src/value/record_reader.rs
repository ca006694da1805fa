//! Reads the records of a value log from front to back.
//!
//! Invariants:
//! - I1. Memory is one buffer of [`BUFFER_BYTES`], which holds all of a record except its value.
//! - I2. A returned record is well-formed and lies within the records of the file. Its checksum is not
//!   verified.
//!
//! Concurrency: none; it belongs to one job.

use std::path::Path;

use crate::base::limits::KEY_BYTES_MAX;
use crate::base::{Error, Result};
use crate::vfs::{Footprint, Vfs};

use super::file::open_whole;
use super::meta::{ValueFileMeta, file_name};
use super::pointer::ValuePointer;
use super::record;
use super::relocation::{Move, RelocationTable};

/// The bytes of one read.
pub(super) const BUFFER_BYTES: usize = 256 << 10;

const _: () = assert!(
    BUFFER_BYTES > record::RECORD_HEAD_BYTES_MAX && record::RECORD_HEAD_BYTES_MAX > KEY_BYTES_MAX
);

/// Reads the records of one file.
#[derive(Debug)]
pub(crate) struct RecordReader {
    name: String,
    footprint: Footprint,
    meta: ValueFileMeta,
    buffer: Vec<u8>,
    /// The offset of the buffer in the file.
    start: u64,
    /// The offset of the next record.
    next: u64,
    bytes_read: u64,
}

impl RecordReader {
    /// Opens the file that `meta` describes, before its first record.
    pub(crate) fn open(vfs: &dyn Vfs, directory: &Path, meta: &ValueFileMeta) -> Result<Self> {
        let name = file_name(meta.number);
        Ok(Self {
            footprint: Footprint::new(open_whole(vfs, directory, &name, meta)?),
            name,
            meta: *meta,
            buffer: Vec::new(),
            start: 0,
            next: 0,
            bytes_read: 0,
        })
    }

    /// The open file, for copies of its records. What was read stays in the page cache until the records are copied
    /// and the footprint passes them.
    pub(crate) fn footprint(&mut self) -> &mut Footprint {
        &mut self.footprint
    }

    /// The bytes that the reader holds in memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.buffer.capacity() + self.footprint.memory_bytes()
    }

    /// How many bytes were read.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// Passes every entry of `table`, which is in this file, to `take`.
    pub(crate) fn each_move(
        &mut self,
        table: &RelocationTable,
        take: impl FnMut(Move),
    ) -> Result<()> {
        self.bytes_read += table.bytes();
        let read = |buffer: &mut [u8], offset: u64| {
            self.footprint
                .read_exact_at(buffer, offset)
                .map_err(|error| Error::read(&self.name, offset, error))
        };
        table.each(read, take)
    }

    /// The key of the next record and a pointer to it; `None` after the last.
    ///
    /// # Errors
    /// `Corruption` if the record is malformed, or the records do not end where the manifest says.
    pub(crate) fn next(&mut self) -> Result<Option<(&[u8], ValuePointer)>> {
        let offset = self.next;
        if offset == self.meta.length {
            self.buffer = Vec::new();
            return Ok(None);
        }
        self.fill(offset)?;
        let name = &self.name;
        let at = usize::try_from(offset - self.start).unwrap_or(usize::MAX);
        let bytes = self.buffer.get(at..).unwrap_or_default();
        let outline = record::outline(bytes).map_err(|error| error.in_file(name, offset))?;
        let pointer = ValuePointer {
            file: self.meta.number,
            offset,
            record_bytes: outline.record_bytes,
            value_bytes: outline.value_bytes,
        };
        pointer
            .check_within(&self.meta)
            .map_err(|error| error.in_file(name, offset))?;
        if outline.key.is_empty() {
            let what = "a record of a value log has no key";
            return Err(Error::corruption(name, offset, what));
        }
        self.next = offset + outline.record_bytes;
        Ok(Some((outline.key, pointer)))
    }

    /// Fills the buffer with the head of the record at `offset`, unless it is there.
    fn fill(&mut self, offset: u64) -> Result<()> {
        let left = self.meta.length - offset;
        let wanted = usize::try_from(left).unwrap_or(usize::MAX);
        let end = self.start + self.buffer.len() as u64;
        let held = end.saturating_sub(offset.max(self.start));
        if offset >= self.start && held >= left.min(record::RECORD_HEAD_BYTES_MAX as u64) {
            return Ok(());
        }
        let passed = usize::try_from(offset - self.start).unwrap_or(usize::MAX);
        if passed < self.buffer.len() {
            self.buffer.drain(..passed);
        } else {
            self.buffer.clear();
        }
        self.start = offset;
        let kept = self.buffer.len();
        self.buffer.resize(wanted.min(BUFFER_BYTES), 0);
        let from = offset + kept as u64;
        let read = &mut self.buffer[kept..];
        self.footprint
            .read_exact_at(read, from)
            .map_err(|error| Error::read(&self.name, from, error))?;
        self.bytes_read += read.len() as u64;
        let next = from + read.len() as u64;
        let end = self.meta.length.min(next + BUFFER_BYTES as u64);
        if next < end {
            self.footprint.ask_ahead(next..end);
        }
        Ok(())
    }
}

//! Writes the GC output: copies of the live records of value logs, then the relocation tables.
//!
//! Invariants:
//! - I1. A copy is sound for its new place only if the record was sound at its old one.
//! - I2. Memory is that of a [`ValueWriter`] and one buffer, however long a value is.
//!
//! Concurrency: none; it belongs to one job.

use std::path::Path;

use crate::base::{Error, FileNumber, Result};
use crate::vfs::{Footprint, Vfs, WRITE_BYTES};

use super::meta::{ValueFileMeta, file_name};
use super::pointer::ValuePointer;
use super::record;
use super::relocation::{self, BLOCK_ENTRIES, Move, OFFSET_MAX, RelocationTable};
use super::writer::ValueWriter;

/// Writes one GC output.
#[derive(Debug)]
pub(crate) struct GcOutputWriter {
    writer: ValueWriter,
    buffer: Vec<u8>,
    tables: Vec<RelocationTable>,
    /// The end of the records, once there are tables.
    length: Option<u64>,
}

impl GcOutputWriter {
    /// Creates value file `number` in `directory`.
    pub(crate) fn create(vfs: &dyn Vfs, directory: &Path, number: FileNumber) -> Result<Self> {
        Ok(Self {
            writer: ValueWriter::create(vfs, directory, number)?,
            buffer: Vec::new(),
            tables: Vec::new(),
            length: None,
        })
    }

    /// The bytes that the writer holds in memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.writer.memory_bytes() + self.buffer.capacity() as u64
    }

    /// Whether a whole piece of the file waits for a judgement.
    pub(crate) fn has_unjudged_piece(&self) -> bool {
        self.writer.has_unjudged_piece()
    }

    /// Judges whether the whole pieces since the last judgement stay in the page cache.
    pub(crate) fn judge(&mut self, stays: bool) {
        self.writer.judge(stays);
    }

    /// Copies the record of `key` that `pointer` leads to in `source`; returns its offset here. Calls
    /// `progress` after each piece, with the bytes that were written, which may be none.
    ///
    /// # Errors
    /// `Corruption` where the record is damaged (I1); those of `progress`.
    pub(crate) fn copy(
        &mut self,
        source: &mut Footprint,
        key: &[u8],
        pointer: &ValuePointer,
        mut progress: impl FnMut(u64) -> Result<()>,
    ) -> Result<u64> {
        let name = file_name(pointer.file);
        let offset = self.writer.bytes();
        if offset + pointer.record_bytes >= OFFSET_MAX {
            return Err(Error::invalid_argument("a value file grows too long"));
        }
        let place = (self.writer.number(), offset);
        let mut sums = record::MovedChecksum::new(key, pointer, place);
        let mut again = record::MovedChecksum::new(key, pointer, place);
        // The sum comes first, and in pieces: a long value takes no more memory than a short one.
        let mut done = 0;
        while done < pointer.record_bytes {
            done += self.read_piece(source, pointer, done)?;
            sums.update(&self.buffer);
            progress(0)?;
        }
        let sum = sums
            .finish()
            .map_err(|error| error.in_file(&name, pointer.offset))?;
        let is_one_piece = self.buffer.len() as u64 == pointer.record_bytes;
        let mut done = 0;
        while done < pointer.record_bytes {
            if !is_one_piece {
                self.read_piece(source, pointer, done)?;
                again.update(&self.buffer);
            }
            if done == 0 {
                self.buffer[..sum.len()].copy_from_slice(&sum);
            }
            self.writer.put(&self.buffer)?;
            done += self.buffer.len() as u64;
            progress(self.buffer.len() as u64)?;
        }
        // The written bytes must be those of the sum.
        if !is_one_piece {
            again
                .finish()
                .map_err(|error| error.in_file(&name, pointer.offset))?;
        }
        self.writer.count(pointer.value_bytes);
        Ok(offset)
    }

    /// Fills the buffer with the next bytes of the record after `done`; returns how many.
    fn read_piece(
        &mut self,
        source: &mut Footprint,
        pointer: &ValuePointer,
        done: u64,
    ) -> Result<u64> {
        let left = usize::try_from(pointer.record_bytes - done).unwrap_or(usize::MAX);
        self.buffer.resize(left.min(WRITE_BYTES), 0);
        let offset = pointer.offset + done;
        source
            .read_exact_at(&mut self.buffer, offset)
            .map_err(|error| Error::read(&file_name(pointer.file), offset, error))?;
        Ok(self.buffer.len() as u64)
    }

    /// Appends the table of `moves`, ascending and not empty, for pointers into `origin`, which was
    /// `origin_bytes` long. No record may be copied afterwards.
    pub(crate) fn add_table(
        &mut self,
        origin: FileNumber,
        origin_bytes: u64,
        moves: &[Move],
    ) -> Result<()> {
        let offset = self.writer.bytes();
        self.length.get_or_insert(offset);
        for moves in moves.chunks(BLOCK_ENTRIES) {
            let place = (self.writer.number(), self.writer.bytes());
            relocation::encode_block(&mut self.buffer, place, origin, moves);
            self.writer.put(&self.buffer)?;
        }
        self.tables.push(RelocationTable {
            origin,
            origin_bytes,
            gc_output: self.writer.number(),
            offset,
            entries: moves.len() as u64,
        });
        Ok(())
    }

    /// Writes the rest and syncs the file; the caller syncs the directory.
    pub(crate) fn finish(self) -> Result<(ValueFileMeta, Vec<RelocationTable>)> {
        let whole = self.writer.finish()?;
        let length = self.length.unwrap_or(whole.length);
        Ok((ValueFileMeta { length, ..whole }, self.tables))
    }
}

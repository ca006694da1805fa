//! The check of the checksums of a value log or a GC output, record by record: what a scrub does.
//!
//! The records hold their keys, which seed their checksums, so the file is read from front to back and no table is needed. A
//! damaged record may be one that no table refers to any more.
//!
//! Concurrency: none; it belongs to one job.

use std::path::Path;

use crate::base::{Error, Result};
use crate::vfs::{Footprint, PassBytes, Vfs};

use super::file::open_whole;
use super::meta::{ValueFileMeta, file_name};
use super::record::{RECORD_HEAD_BYTES_MAX, RecordCheck, outline};
use super::relocation::{BLOCK_BYTES, find_moves};

/// The bytes of one read.
const BUFFER_BYTES: usize = 256 << 10;

const _: () = assert!(BUFFER_BYTES > RECORD_HEAD_BYTES_MAX && BUFFER_BYTES > BLOCK_BYTES);

/// Checks the file that `meta` describes from `offset` on, where a record or a block of a relocation table begins, as long as
/// `pass` wants it. Returns the offset to go on from; `None` at the end.
///
/// # Errors
/// The first damage; `Io`; those of `pass`.
pub(crate) fn check_checksums(
    (vfs, directory): (&dyn Vfs, &Path),
    meta: &ValueFileMeta,
    offset: u64,
    pass: &mut PassBytes<'_>,
) -> Result<Option<u64>> {
    let name = file_name(meta.number);
    let mut reader = RecordChecker {
        footprint: Footprint::new(open_whole(vfs, directory, &name, meta)?),
        name,
        meta,
        buffer: Vec::new(),
        passed: 0,
        offset,
    };
    while reader.offset < meta.end {
        let goes_on = if reader.offset < meta.length {
            reader.record(pass)?
        } else {
            reader.moves(pass)?
        };
        if !goes_on {
            return Ok(Some(reader.offset));
        }
    }
    Ok(None)
}

/// Reads a file from front to back.
struct RecordChecker<'a> {
    footprint: Footprint,
    name: String,
    meta: &'a ValueFileMeta,
    buffer: Vec<u8>,
    /// How many bytes of the buffer are checked.
    passed: usize,
    /// Where the rest of the buffer is in the file.
    offset: u64,
}

impl RecordChecker<'_> {
    /// Checks the record at the offset.
    fn record(&mut self, pass: &mut PassBytes<'_>) -> Result<bool> {
        let start = self.offset;
        self.fill(RECORD_HEAD_BYTES_MAX)?;
        let outline = outline(self.rest()).map_err(|error| error.in_file(&self.name, start))?;
        let mut left = outline.record_bytes;
        if outline.key.is_empty() {
            return Err(self.damaged(start, "a record of a value log has no key"));
        }
        if left > self.meta.length - start {
            return Err(self.damaged(start, "a record ends behind the end of all records"));
        }
        let mut check = RecordCheck::new(outline.key, (self.meta.number, start));
        let mut goes_on = true;
        while left > 0 {
            self.fill(1)?;
            let bytes = self.rest();
            let count = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
            check.update(bytes.get(..count).unwrap_or_default());
            self.advance(count);
            left -= count as u64;
            goes_on = pass(count as u64)?;
        }
        if !check.is_sound() {
            return Err(self.damaged(start, "a record fails its checksum"));
        }
        Ok(goes_on)
    }

    /// Checks the block of a relocation table at the offset.
    fn moves(&mut self, pass: &mut PassBytes<'_>) -> Result<bool> {
        let (start, number) = (self.offset, self.meta.number);
        self.fill(BLOCK_BYTES)?;
        let Some(moves) = find_moves(self.rest(), (number, start)) else {
            return Err(self.damaged(start, "a block of a relocation table is malformed"));
        };
        let count = moves
            .map_err(|error| error.in_file(&self.name, start))?
            .bytes;
        self.advance(count);
        pass(count as u64)
    }

    fn damaged(&self, offset: u64, what: &str) -> Error {
        Error::corruption(&self.name, offset, what)
    }

    fn advance(&mut self, count: usize) {
        self.passed += count;
        self.offset += count as u64;
    }

    /// The bytes at the offset that are in memory.
    fn rest(&self) -> &[u8] {
        self.buffer.get(self.passed..).unwrap_or_default()
    }

    /// Reads at least `count` bytes from the offset on, or all that are left.
    fn fill(&mut self, count: usize) -> Result<()> {
        let left = usize::try_from(self.meta.end - self.offset).unwrap_or(usize::MAX);
        if self.buffer.len() - self.passed < count.min(left) {
            self.buffer.drain(..self.passed);
            self.passed = 0;
            let held = self.buffer.len();
            self.buffer.resize(left.min(BUFFER_BYTES), 0);
            let from = self.offset + held as u64;
            self.footprint.pass(self.offset);
            let rest = self.buffer.get_mut(held..).unwrap_or_default();
            self.footprint
                .read_exact_at(rest, from)
                .map_err(|error| Error::read(&self.name, from, error))?;
        }
        Ok(())
    }
}

//! Writes a file from front to back through a buffer.
//!
//! Invariants:
//! - I1. Bytes lie one after the other from the start, without gaps.
//! - I2. Memory is one buffer. A piece of [`WRITE_BYTES`] or more is written from where it is.
//! - I3. At most two times [`WRITE_BACK_BYTES`], and one write, are neither on the device nor in its queue.
//! - I4. Pieces leave the page cache only if the caller has judged so, and only after their write back: the system
//!   drops no other bytes. All else stays.
//!
//! Concurrency: none; a writer belongs to one job. Dropped before `sync`, it leaves a file that nothing
//! names, or bytes that nothing names at the end of one. After an error it can only be dropped.

use std::collections::VecDeque;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use crate::base::{Error, Result};

use super::{Advice, File, OpenMode, PIECE_BYTES, Vfs, WriteBack, write_all_at};

/// Bytes that are collected before a write.
pub(crate) const WRITE_BYTES: usize = 256 << 10;

/// The bytes of one write back.
const WRITE_BACK_BYTES: u64 = 1 << 20;

const _: () = assert!(WRITE_BACK_BYTES.is_multiple_of(PIECE_BYTES));

/// Writes one file.
#[derive(Debug)]
pub(crate) struct FileWriter {
    file: Arc<dyn File>,
    path: PathBuf,
    buffer: Vec<u8>,
    /// The offset of the buffer in the file.
    written: u64,
    /// The end of the write back that was begun, and of the one that has ended: ends of pieces, or the start.
    begun: u64,
    ended: u64,
    /// The end of the judged pieces.
    judged: u64,
    /// The judged pieces that leave the page cache, ascending.
    leaving: VecDeque<Range<u64>>,
    /// Whether no judged piece leaves it.
    all_stay: bool,
}

impl FileWriter {
    /// Creates the file `path`; the caller syncs the directory.
    pub(crate) fn create(vfs: &dyn Vfs, path: PathBuf) -> Result<Self> {
        let file = vfs.create(&path);
        let file = file.map_err(|error| Error::io("create", &path, error))?;
        Ok(Self::new(file, path, 0))
    }

    /// Opens the file `path` and writes from `start` on.
    pub(crate) fn append(vfs: &dyn Vfs, path: PathBuf, start: u64) -> Result<Self> {
        let file = vfs.open(&path, OpenMode::ReadWrite);
        let file = file.map_err(|error| Error::io("open", &path, error))?;
        Ok(Self::new(file, path, start))
    }

    fn new(file: Arc<dyn File>, path: PathBuf, start: u64) -> Self {
        Self {
            file,
            path,
            buffer: Vec::new(),
            written: start,
            begun: start,
            ended: start,
            // What lies before the start is not judged.
            judged: start.next_multiple_of(PIECE_BYTES),
            leaving: VecDeque::new(),
            all_stay: true,
        }
    }

    /// The offset of the next byte.
    pub(crate) fn position(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// The bytes that are not written yet; more may be appended to them.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// The bytes that the writer holds in memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.buffer.capacity()
    }

    /// Appends `bytes` to the buffer, or writes them from where they are (I2).
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<()> {
        if self.buffer.len() + bytes.len() > WRITE_BYTES {
            self.flush()?;
        }
        if bytes.len() < WRITE_BYTES {
            self.buffer.extend_from_slice(bytes);
            return Ok(());
        }
        self.write(bytes)?;
        self.written += bytes.len() as u64;
        self.write_back()
    }

    /// Writes the buffer.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.write(&self.buffer)?;
        self.written = self.position();
        self.buffer.clear();
        self.write_back()
    }

    /// Whether a whole piece waits for a judgement.
    #[inline]
    pub(crate) fn has_unjudged_piece(&self) -> bool {
        self.position() >= self.judged + PIECE_BYTES
    }

    /// Judges whether the whole pieces since the last judgement stay in the page cache (I4).
    pub(crate) fn judge(&mut self, stays: bool) {
        let end = self.position() / PIECE_BYTES * PIECE_BYTES;
        if end <= self.judged {
            return;
        }
        let pieces = self.judged..end;
        self.judged = end;
        self.all_stay &= stays;
        match self.leaving.back_mut() {
            _ if stays => {}
            Some(last) if last.end == pieces.start => last.end = end,
            _ => self.leaving.push_back(pieces),
        }
    }

    /// Whether no piece so far leaves the page cache.
    pub(crate) fn stays(&self) -> bool {
        self.all_stay
    }

    /// Begins the write back of what is written, if that is enough, and waits for the one before (I3).
    fn write_back(&mut self) -> Result<()> {
        if self.written < self.begun + WRITE_BACK_BYTES {
            return Ok(());
        }
        let end = self.written / PIECE_BYTES * PIECE_BYTES;
        let (begun, ended) = (self.begun..end, self.ended..self.begun);
        (self.begun, self.ended) = (end, self.begun);
        for (range, half) in [(begun, WriteBack::Begin), (ended, WriteBack::End)] {
            if !range.is_empty() {
                self.file
                    .write_back(range, half)
                    .map_err(|error| Error::io("write back", &self.path, error))?;
            }
        }
        self.let_leave(self.ended);
        Ok(())
    }

    /// Drops the pieces before `end` that leave the page cache.
    fn let_leave(&mut self, end: u64) {
        let end = end / PIECE_BYTES * PIECE_BYTES;
        while let Some(pieces) = self.leaving.front_mut() {
            let part = pieces.start..pieces.end.min(end);
            if part.is_empty() {
                return;
            }
            self.file.advise(part.clone(), Advice::DontNeed);
            pieces.start = part.end;
            if pieces.is_empty() {
                self.leaving.pop_front();
            }
        }
    }

    fn write(&self, bytes: &[u8]) -> Result<()> {
        write_all_at(&*self.file, bytes, self.written)
            .map_err(|error| Error::io("write", &self.path, error))
    }

    /// Writes the buffer and syncs the file.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.flush()?;
        self.file
            .sync_data()
            .map_err(|error| Error::io("sync", &self.path, error))?;
        self.let_leave(self.written);
        Ok(())
    }
}

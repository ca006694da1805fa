//! A reader of a log, from the start to the end.
//!
//! The reader owns one read buffer, which grows only for a long payload that has a sound header and fits
//! in the file.
//!
//! I1. The reader yields a prefix of the appended records, each whole and unchanged.
//! I2. A read error is an error, never an end. The next call reads the same bytes again.
//! I3. Behind the end, the reader finds every sound long header with a synced offset beyond the end.
//! I4. [`skip_damage`](LogReader::skip_damage) moves to a sound chunk only, and only forward.
//! I5. The work is bounded by the length of the file, also if somebody has made its headers: the search for evidence reads
//!     the file once, and the searches for sound chunks compute checksums over at most [`TRIED_BYTES_PER_BYTE`] times its
//!     length in long chunks, and over one short chunk for each byte near damage.
//!
//! Concurrency: one thread. Its writer may append meanwhile, behind the end that [`LogReader::extend_to`] gives. A reader that
//! does not know the end, because another process writes, calls [`LogReader::refresh`] at what looks like the end.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::chunk::{HEADER_BYTES, Header, SHORT_PAYLOAD_BYTES_MAX};
use super::tail::{Next, TailAction, TailState, decide};
use crate::base::{Error, FileNumber, Result};
use crate::vfs::{self, Advice, File, OpenMode, Vfs};

/// The bytes of one read.
const READ_BUFFER_BYTES: usize = 256 << 10;

/// How far behind damage a short chunk is searched for; a long one is found at any distance. Long chunks come again
/// at distances of about 4 KiB and a record.
const SHORT_SEARCH_BYTES: u64 = 64 << 10;

/// Searches behind damage give up after checksums over so many bytes of long chunks, for each byte of the file. Only headers
/// that somebody has made for it ask for as much: each claims all that follows. Those of a log claim each byte once.
const TRIED_BYTES_PER_BYTE: u64 = 4;

// An unverified length never grows the read buffer.
const _: () = assert!(HEADER_BYTES + SHORT_PAYLOAD_BYTES_MAX <= READ_BUFFER_BYTES);

/// A record lent by [`LogReader::next`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    /// Where its chunk begins.
    pub(crate) offset: u64,
    /// Where its chunk ends.
    pub(crate) end: u64,
    /// The synced offset in the chunk, if it is long.
    pub(crate) synced_up_to: Option<u64>,
    /// The appended bytes.
    pub(crate) payload: &'a [u8],
}

impl Record<'_> {
    /// Where its payload begins.
    pub(crate) fn payload_offset(&self) -> u64 {
        self.end - self.payload.len() as u64
    }
}

/// The end of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct End {
    /// Where the sound chunks end.
    pub(crate) offset: u64,
    /// The largest synced offset in any sound header.
    pub(crate) evidence: u64,
    /// The length of the file.
    pub(crate) file_length: u64,
    /// The length at which the log was closed, if it is known.
    pub(crate) recorded_length: Option<u64>,
}

impl End {
    /// The action at the end. `synced_to_recorded_length`: something outside the log proves that it was
    /// durable up to its recorded length.
    pub(crate) fn action(&self, synced_to_recorded_length: bool) -> TailAction {
        let synced_beyond = self.evidence > self.offset
            || synced_to_recorded_length
                && self
                    .recorded_length
                    .is_some_and(|length| length > self.offset);
        decide(TailState {
            position: self.offset,
            recorded_length: self.recorded_length,
            next: Next::Invalid,
            synced_beyond,
        })
    }
}

/// Streams the records of one log.
#[derive(Debug)]
pub(crate) struct LogReader {
    file: Arc<dyn File>,
    path: PathBuf,
    name: String,
    number: FileNumber,
    file_length: u64,
    recorded_length: Option<u64>,
    /// Where the next chunk begins.
    position: u64,
    /// The largest `synced_up_to` of the chunks so far.
    synced_up_to: u64,
    /// The largest synced offset behind the first end, once it was searched for. It proves as much at any later end: a
    /// header in front of that end has a smaller offset.
    evidence: Option<u64>,
    /// The bytes of long chunks over which searches behind damage have computed checksums.
    tried_bytes: u64,
    /// Bytes of the file from `read_buffer_start`.
    buffer: Vec<u8>,
    read_buffer_start: u64,
}

impl LogReader {
    /// Opens the log `name` in `directory`. If `recorded_length` is given, the log was closed at that
    /// length, and the reader stops there.
    ///
    /// # Errors
    /// `Corruption` if the file is missing; `Io`.
    pub(crate) fn open(
        vfs: &dyn Vfs,
        directory: &Path,
        name: &str,
        number: FileNumber,
        recorded_length: Option<u64>,
    ) -> Result<Self> {
        let path = directory.join(name);
        let failure = |error: io::Error| failure(name, &path, 0, error);
        let file = vfs.open(&path, OpenMode::Read).map_err(failure)?;
        let file_length = file.length().map_err(failure)?;
        file.advise(0..file_length, Advice::Sequential);
        Ok(Self {
            file,
            name: name.to_owned(),
            number,
            file_length,
            recorded_length,
            position: 0,
            synced_up_to: 0,
            evidence: None,
            tried_bytes: 0,
            buffer: Vec::new(),
            read_buffer_start: 0,
            path,
        })
    }

    /// From now on the log ends at `length`, up to which it is written: its writer may append behind that meanwhile.
    ///
    /// # Errors
    /// `Io` if the length of the file cannot be read.
    pub(crate) fn extend_to(&mut self, length: u64) -> Result<()> {
        let file_length = self.file.length();
        let file_length = file_length.map_err(|error| Error::io("read", &self.path, error))?;
        self.file_length = file_length.min(length);
        self.recorded_length = Some(length);
        self.evidence = None;
        Ok(())
    }

    /// Forgets what was read ahead, and takes the present length of the file: the next chunk, which was not there or not
    /// whole, may be whole now.
    ///
    /// # Errors
    /// `Io` if the length of the file cannot be read.
    pub(crate) fn refresh(&mut self) -> Result<()> {
        let length = self.file.length();
        self.file_length = length.map_err(|error| Error::io("read", &self.path, error))?;
        self.evidence = None;
        self.buffer.clear();
        Ok(())
    }

    /// Goes back to the chunk at `offset`, which the reader has passed.
    pub(crate) fn return_to(&mut self, offset: u64) {
        debug_assert!(offset <= self.position, "the chunk was passed");
        self.position = offset;
        self.evidence = None;
    }

    /// The next record, or `None` at the end of the sound chunks or at the recorded length.
    ///
    /// # Errors
    /// `Io` if the file cannot be read (I2).
    pub(crate) fn next(&mut self) -> Result<Option<Record<'_>>> {
        while let Some((header, offset)) = self.pass()? {
            if header.payload_bytes > 0 {
                let end = self.position;
                let chunk = self.load(offset, header.chunk_bytes())?;
                return Ok(Some(Record {
                    offset,
                    end,
                    synced_up_to: header.synced_up_to,
                    payload: &chunk[header.payload_at..header.chunk_bytes()],
                }));
            }
        }
        Ok(None)
    }

    /// The offset and the bytes of the next chunk, a record or a marker.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub(super) fn next_chunk(&mut self) -> Result<Option<(u64, &[u8])>> {
        let Some((header, offset)) = self.pass()? else {
            return Ok(None);
        };
        let bytes = self.load(offset, header.chunk_bytes())?;
        Ok(Some((offset, &bytes[..header.chunk_bytes()])))
    }

    /// Whether it has read the log up to its recorded length.
    pub(crate) fn is_at_end(&self) -> bool {
        self.recorded_length == Some(self.position)
    }

    /// Where the next chunk begins.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Reads the next chunk into the buffer and moves behind it. Returns its header and offset.
    fn pass(&mut self) -> Result<Option<(Header, u64)>> {
        let chunk = self.probe()?;
        let state = TailState {
            position: self.position,
            recorded_length: self.recorded_length,
            next: chunk.map_or(Next::Invalid, |_| Next::Valid),
            synced_beyond: false,
        };
        let (Some(header), TailAction::Apply) = (chunk, decide(state)) else {
            return Ok(None);
        };
        let offset = self.position;
        self.position += header.chunk_bytes() as u64;
        self.synced_up_to = self.synced_up_to.max(header.synced_up_to.unwrap_or(0));
        Ok(Some((header, offset)))
    }

    /// The end of the log, after [`next`](Self::next) has returned `None`. Searches every byte behind the
    /// end for synced offsets (I3).
    ///
    /// # Errors
    /// `Io` if the file cannot be read.
    pub(crate) fn end(&mut self) -> Result<End> {
        let offset = self.position;
        let closed = self.recorded_length.is_some_and(|length| offset >= length);
        let evidence = if closed {
            self.synced_up_to
        } else {
            let evidence = match self.evidence {
                Some(evidence) => evidence,
                None => self.scan_for_evidence()?,
            };
            self.evidence = Some(evidence);
            evidence.max(self.synced_up_to)
        };
        Ok(End {
            offset,
            evidence,
            file_length: self.file_length,
            recorded_length: self.recorded_length,
        })
    }

    /// Moves to `offset`, where a chunk begins.
    pub(crate) fn move_to(&mut self, offset: u64) {
        self.position = offset;
    }

    /// Moves from the damage at the position to the next sound chunk behind it. Returns whether there is one; if not,
    /// the position does not change. Each byte is tried once, and all searches together are bounded (I5).
    ///
    /// # Errors
    /// `Io` if the file cannot be read.
    pub(crate) fn skip_damage(&mut self) -> Result<bool> {
        let start = self.position;
        let end = self.recorded_length.unwrap_or(self.file_length);
        let end = end.min(self.file_length);
        // A long header may be sound although its payload is not.
        let claimed = self.claimed_end()?;
        for offset in claimed.into_iter().chain(start + 1..end) {
            if offset >= end || !self.may_begin_at(offset, start)? {
                continue;
            }
            if self.tried_bytes / TRIED_BYTES_PER_BYTE > self.file_length {
                break; // I5
            }
            self.position = offset;
            if self.probe()?.is_some() {
                return Ok(true);
            }
        }
        self.position = start;
        Ok(false)
    }

    #[cfg(test)]
    pub(super) fn tried_bytes(&self) -> u64 {
        self.tried_bytes
    }

    /// Where the chunk at the position ends according to its header, if that is long and sound.
    fn claimed_end(&mut self) -> Result<Option<u64>> {
        let (number, offset) = (self.number, self.position);
        if self.file_length.saturating_sub(offset) < HEADER_BYTES as u64 {
            return Ok(None);
        }
        let bytes = self.load(offset, HEADER_BYTES)?;
        let header = bytes.first_chunk();
        let header = header.and_then(|bytes| Header::decode_long(bytes, number, offset));
        Ok(header.map(|header| offset + header.chunk_bytes() as u64))
    }

    /// Whether a chunk behind damage at `start` may begin at `offset`: a sound long header, or, near the damage, the
    /// form of a short one.
    fn may_begin_at(&mut self, offset: u64, start: u64) -> Result<bool> {
        let number = self.number;
        let left = self.file_length - offset;
        let front = usize::try_from(left).map_or(HEADER_BYTES, |left| left.min(HEADER_BYTES));
        let bytes = self.load(offset, front)?;
        let header = Header::decode(&bytes[..front.min(bytes.len())], number, offset);
        let Some(header) = header else {
            return Ok(false);
        };
        let is_long = header.synced_up_to.is_some();
        if is_long {
            self.tried_bytes += left.min(header.chunk_bytes() as u64);
        }
        Ok(is_long || offset - start <= SHORT_SEARCH_BYTES)
    }

    /// The header of the chunk at the position, if the whole chunk is sound.
    fn probe(&mut self) -> Result<Option<Header>> {
        let (number, offset) = (self.number, self.position);
        let closed = self.recorded_length.is_some_and(|length| offset >= length);
        let left = self.file_length.saturating_sub(offset);
        if closed || left == 0 {
            return Ok(None);
        }
        let front = usize::try_from(left).map_or(HEADER_BYTES, |left| left.min(HEADER_BYTES));
        let bytes = self.load(offset, front)?;
        let Some(header) = Header::decode(bytes, number, offset) else {
            return Ok(None);
        };
        if header.chunk_bytes() as u64 > left {
            return Ok(None);
        }
        let chunk = self.load(offset, header.chunk_bytes())?;
        let sound = header.covers(&chunk[..header.chunk_bytes()], number, offset);
        Ok(sound.then_some(header))
    }

    fn scan_for_evidence(&mut self) -> Result<u64> {
        let number = self.number;
        let mut evidence = self.synced_up_to;
        let mut offset = self.position;
        while self.file_length.saturating_sub(offset) >= HEADER_BYTES as u64 {
            let bytes = self.load(offset, HEADER_BYTES)?;
            let starts = bytes.len() - HEADER_BYTES + 1;
            for (index, offset) in (0..starts).zip(offset..) {
                let synced = bytes[index + HEADER_BYTES - 8..].first_chunk();
                let synced = synced.map_or(0, |bytes| u64::from_le_bytes(*bytes));
                // Nearly all bytes are rejected here, before any checksum.
                if synced > evidence
                    && synced <= offset
                    && let Some(bytes) = bytes[index..].first_chunk()
                    && Header::decode_long(bytes, number, offset).is_some()
                {
                    evidence = synced;
                }
            }
            offset += starts as u64;
        }
        Ok(evidence)
    }

    /// The bytes from `offset`: at least `needed` of them, which the file holds, and more if the buffer
    /// has them.
    fn load(&mut self, offset: u64, needed: usize) -> Result<&[u8]> {
        let skipped = offset
            .checked_sub(self.read_buffer_start)
            .and_then(|skipped| usize::try_from(skipped).ok())
            .filter(|&skipped| skipped <= self.buffer.len());
        match skipped {
            Some(skipped) if self.buffer.len() - skipped >= needed => {
                return Ok(&self.buffer[skipped..]);
            }
            Some(skipped) => drop(self.buffer.drain(..skipped)),
            None => self.buffer.clear(),
        }
        self.read_buffer_start = offset;
        let held = self.buffer.len();
        let rest = usize::try_from(self.file_length - offset).unwrap_or(usize::MAX);
        self.buffer
            .resize(needed.max(READ_BUFFER_BYTES).min(rest), 0);
        let outcome =
            vfs::read_exact_at(&*self.file, &mut self.buffer[held..], offset + held as u64);
        if let Err(error) = outcome {
            self.buffer.clear(); // I2
            return Err(failure(&self.name, &self.path, offset, error));
        }
        Ok(&self.buffer)
    }
}

/// The error for a file that cannot be opened or read at `offset`.
fn failure(name: &str, path: &Path, offset: u64, error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::InvalidData {
        return Error::corruption(name, offset, error);
    }
    let next = match error.kind() {
        io::ErrorKind::NotFound => Next::FileMissing,
        _ => Next::ReadError,
    };
    let state = TailState {
        position: offset,
        recorded_length: None,
        next,
        synced_beyond: false,
    };
    match decide(state) {
        TailAction::Corruption => Error::corruption(name, offset, "the file is missing"),
        _ => Error::io("read", path, error),
    }
}

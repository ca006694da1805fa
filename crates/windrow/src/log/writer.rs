//! Appends to a log.
//!
//! Owns the end of the file. A record costs one write of header and payload together, from a reused
//! buffer. [`LogFile`] reserves space ahead of the bytes.
//!
//! I1. `end` is the sum of all written chunks, and the offset of the next chunk.
//! I2. A chunk's `synced_up_to` is the length that was durable before the chunk was written.
//! I3. `NoSpace` means that the file is unchanged; any other failure breaks the log for good.
//! I4. The first chunk after a sync is long and records it, and the following long chunks record it
//!     again. All evidence of syncs is in long chunks ([`Repeats`]).
//!
//! Concurrency: one thread at a time; [`LogSync`] is shared with all.

use std::path::Path;
use std::sync::Arc;

use super::chunk::{HEADER_BYTES, PAYLOAD_BYTES_MAX, SHORT_PAYLOAD_BYTES_MAX, complete};
use super::file::LogFile;
use super::sync::LogSync;
use crate::base::{Error, FileNumber, Result};
use crate::vfs::Vfs;

/// How much space to reserve ahead, at first and at most. Little at first, since a short log never uses
/// the rest.
const AHEAD_BYTES: (u64, u64) = (4 << 10, 1 << 20);

/// The distance from a long chunk to the next one: at first, and at most; it doubles each time. So the bytes
/// that damage must cover to destroy the evidence of a sync grow with the bytes written since, and are
/// more than a sector from the start.
const LONG_AGAIN_BYTES: (u64, u64) = (512, 4 << 10);

/// A larger buffer is freed after the record that needed it.
const CHUNK_KEPT_BYTES: usize = 4 << 20;

/// When a chunk must be long although nothing was synced since the previous one.
#[derive(Debug, Default)]
struct Repeats {
    /// Chunks that begin before this offset may be short.
    due: u64,
    /// The distance of `due` from the last long chunk.
    gap: u64,
}

impl Repeats {
    /// Notes a long chunk at `offset`. The chunk after a marker repeats it, so damage to one of them leaves
    /// the other.
    fn note(&mut self, offset: u64, is_marker: bool, is_news: bool) {
        let (first, most) = LONG_AGAIN_BYTES;
        self.gap = match (is_marker, is_news) {
            (true, _) => 0,
            (false, true) => first,
            (false, false) => (2 * self.gap).clamp(first, most),
        };
        self.due = offset + self.gap;
    }
}

/// Writes one log from its first byte to its last.
#[derive(Debug)]
pub(crate) struct LogWriter {
    number: FileNumber,
    file: LogFile,
    end: u64,
    /// The newest `synced_up_to` in the file.
    recorded: u64,
    repeats: Repeats,
    /// The chunk under construction: space for the header, then the payload.
    chunk: Vec<u8>,
}

impl LogWriter {
    /// Creates the log `name` in `directory`; the caller makes the name durable.
    ///
    /// If the log continues another, `before` is that one, and nothing more is appended to it: this log
    /// becomes durable only together with it.
    pub(crate) fn create(
        vfs: &dyn Vfs,
        directory: &Path,
        name: &str,
        number: FileNumber,
        before: Option<Arc<LogSync>>,
    ) -> Result<Self> {
        Ok(Self {
            number,
            file: LogFile::create(vfs, directory.join(name), before, AHEAD_BYTES)?,
            end: 0,
            recorded: 0,
            repeats: Repeats::default(),
            chunk: Vec::new(),
        })
    }

    /// Begins a record: the caller appends the payload to the returned buffer, whose first
    /// [`HEADER_BYTES`] are the header.
    #[inline]
    pub(crate) fn begin(&mut self) -> &mut Vec<u8> {
        self.chunk.clear();
        self.chunk.shrink_to(CHUNK_KEPT_BYTES);
        self.chunk.extend_from_slice(&[0; HEADER_BYTES]);
        &mut self.chunk
    }

    /// Writes the record that was begun, whose payload is not empty.
    ///
    /// # Errors
    /// `NoSpace` if the disk is full: nothing has changed, and the writer can continue. `Poisoned`
    /// after an earlier failure. Any other error breaks the log, and may have written the record.
    pub(crate) fn commit(&mut self) -> Result<()> {
        assert!(
            self.chunk.len() > HEADER_BYTES,
            "an empty payload would be a sync marker"
        );
        self.write_chunk()
    }

    /// Appends a marker that records how far the log is durable, unless the file records it already. A log
    /// ends with one whenever possible: only a marker distinguishes damage to the last record from a torn
    /// tail.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub(crate) fn append_marker(&mut self) -> Result<()> {
        if self.file.shared().synced() > self.recorded {
            self.begin();
            self.write_chunk()?;
        }
        Ok(())
    }

    /// Makes sure that a payload of `payload_bytes` can be appended without running out of space.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub(crate) fn reserve(&mut self, payload_bytes: usize) -> Result<()> {
        let length = (HEADER_BYTES + payload_bytes) as u64;
        self.file.reserve(self.end, length)
    }

    /// The length of the log.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// The log's number.
    pub(crate) fn number(&self) -> FileNumber {
        self.number
    }

    /// Whether a write or sync has failed, so that nothing more can be appended.
    pub(crate) fn is_broken(&self) -> bool {
        self.file.shared().is_broken()
    }

    /// The part that makes appended records durable.
    pub(crate) fn shared(&self) -> Arc<LogSync> {
        Arc::clone(self.file.shared())
    }

    fn write_chunk(&mut self) -> Result<()> {
        let payload_bytes = self.chunk.len() - HEADER_BYTES;
        let payload_length = u32::try_from(payload_bytes)
            .ok()
            .filter(|&length| length <= PAYLOAD_BYTES_MAX)
            .ok_or_else(|| {
                Error::invalid_argument(format!(
                    "a record of {payload_bytes} bytes does not fit in a log"
                ))
            })?;
        self.reserve(payload_bytes)?;
        let synced = self.file.shared().synced(); // I2
        let is_news = synced > self.recorded;
        let is_marker = payload_bytes == 0;
        let is_long = is_news
            || is_marker
            || payload_bytes > SHORT_PAYLOAD_BYTES_MAX
            || self.end >= self.repeats.due;
        let place = (self.number, self.end);
        let synced_up_to = is_long.then_some(synced);
        let chunk = complete(&mut self.chunk, payload_length, synced_up_to, place);
        self.file.write(chunk, self.end)?;
        if is_long {
            self.repeats.note(self.end, is_marker, is_news); // I4
            self.recorded = synced;
        }
        self.end += chunk.len() as u64; // I1
        self.file.shared().publish_written(self.end);
        Ok(())
    }
}

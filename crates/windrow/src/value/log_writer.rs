//! Appends values to a value log.
//!
//! Owns the end of the file. The leader of a group commit appends the large values of the group, writes
//! them, and then writes the record of the write-ahead log that points to them. Values up to
//! [`WRITE_BYTES`] together are one write. Space is reserved ahead of the bytes, so a full disk fails the
//! group before any value counts.
//!
//! Invariants:
//! - I1. Records lie one after the other in commit order, without gaps. No offset is written twice: if
//!   a group fails after its values are written, the log ends before them.
//! - I2. [`written`](LogSync::written) covers a value before any record that points to it is written.
//! - I3. `NoSpace` means that nothing counts that was appended since the last
//!   [`keep`](ValueLogWriter::keep). Any other failure breaks the log for good.
//!
//! Concurrency: one thread at a time; [`LogSync`] is shared with all.

use std::path::Path;
use std::sync::Arc;

use crate::base::{FileNumber, Result};
use crate::codec::Compression;
use crate::log::{LogFile, LogSync};
use crate::vfs::{Vfs, WRITE_BYTES};

use super::meta::file_name;
use super::pointer::ValuePointer;
use super::record::RecordEncoder;

/// How much space is reserved ahead.
const AHEAD_BYTES: u64 = 1 << 20;

/// How long a value log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LogPosition {
    /// Where the last record ends.
    pub(crate) end: u64,
    pub(crate) entries: u64,
    /// The bytes of the values before compression.
    pub(crate) value_bytes: u64,
}

/// Collects records and writes them together.
#[derive(Debug)]
struct Output {
    file: LogFile,
    /// Appended and not written.
    buffer: Vec<u8>,
    /// The offset of the buffer in the file.
    flushed: u64,
}

impl Output {
    /// The offset of the next record.
    fn end(&self) -> u64 {
        self.flushed + self.buffer.len() as u64
    }

    fn put(&mut self, head: &[u8], body: &[u8]) -> Result<()> {
        let length = head.len() + body.len();
        self.file.reserve(self.end(), length as u64)?;
        if self.buffer.len() + length <= WRITE_BYTES {
            self.buffer.extend_from_slice(head);
            self.buffer.extend_from_slice(body);
            return Ok(());
        }
        self.flush()?;
        self.file.write(head, self.flushed)?;
        self.file.write(body, self.flushed + head.len() as u64)?;
        self.flushed += length as u64;
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.file.write(&self.buffer, self.flushed)?;
        self.flushed = self.end();
        self.buffer.clear();
        Ok(())
    }
}

/// Writes one value log.
#[derive(Debug)]
pub(crate) struct ValueLogWriter {
    number: FileNumber,
    output: Output,
    encoder: RecordEncoder,
    /// The records that count.
    position: LogPosition,
    /// The entries appended since; its `end` is not used.
    pending: LogPosition,
}

impl ValueLogWriter {
    /// Creates value log `number` in `directory`; the caller makes the name durable.
    pub(crate) fn create(vfs: &dyn Vfs, directory: &Path, number: FileNumber) -> Result<Self> {
        let path = directory.join(file_name(number));
        let file = LogFile::create(vfs, path, None, (AHEAD_BYTES, AHEAD_BYTES))?;
        Ok(Self {
            number,
            output: Output {
                file,
                buffer: Vec::new(),
                flushed: 0,
            },
            encoder: RecordEncoder::new(),
            position: LogPosition::default(),
            pending: LogPosition::default(),
        })
    }

    /// The log's number.
    pub(crate) fn number(&self) -> FileNumber {
        self.number
    }

    /// The part that makes values durable.
    pub(crate) fn shared(&self) -> &Arc<LogSync> {
        self.output.file.shared()
    }

    /// How long the log is.
    pub(crate) fn position(&self) -> LogPosition {
        self.position
    }

    /// Appends the value of `key` and returns its pointer, which is valid once [`write`](Self::write)
    /// returns. The value is compressed if that saves an eighth.
    ///
    /// # Errors
    /// I3.
    pub(crate) fn append(
        &mut self,
        key: &[u8],
        value: &[u8],
        compression: Compression,
    ) -> Result<ValuePointer> {
        let offset = self.output.end();
        let place = (self.number, offset);
        let (head, body) = self.encoder.encode(place, (key, key), value, compression);
        let put = self.output.put(head, body);
        self.encoder.trim();
        put?;
        self.pending.entries += 1;
        self.pending.value_bytes += value.len() as u64;
        Ok(ValuePointer {
            file: self.number,
            offset,
            record_bytes: self.output.end() - offset,
            value_bytes: value.len() as u64,
        })
    }

    /// Writes the appended records and returns their bytes. They count from the next
    /// [`keep`](Self::keep) on.
    ///
    /// # Errors
    /// I3.
    pub(crate) fn write(&mut self) -> Result<u64> {
        self.output.flush()?;
        let end = self.output.flushed;
        let bytes = end - self.shared().written();
        self.shared().publish_written(end); // I2
        Ok(bytes)
    }

    /// Counts the written records: a written record of the write-ahead log points to them.
    pub(crate) fn keep(&mut self) {
        self.position = LogPosition {
            end: self.output.flushed,
            entries: self.position.entries + self.pending.entries,
            value_bytes: self.position.value_bytes + self.pending.value_bytes,
        };
        self.pending = LogPosition::default();
    }

    /// Drops the records since the last [`keep`](Self::keep), to which nothing points. Returns whether
    /// none of them was written, so that the log can go on; otherwise it must end here (I1).
    pub(crate) fn forget(&mut self) -> bool {
        self.output.buffer.clear();
        self.pending = LogPosition::default();
        self.output.flushed == self.position.end
    }
}

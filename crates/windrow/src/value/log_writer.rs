//! Appends values to a value log.
//!
//! Owns the end of the file. Whoever leads the commits appends the large values of a group, writes
//! them with one write, and then writes the record of the write-ahead log that points to them. Space is
//! reserved ahead of the bytes, so that a full disk is met before anything was promised.
//!
//! Invariants:
//! - I1. Records lie one behind the other in commit order, without gaps. No place is written twice: where
//!   a group fails behind its values, the log ends before them.
//! - I2. [`written`](LogSync::written) covers a value before any record that points to it is written.
//! - I3. `NoSpace` means that nothing counts of what was appended since the last `write`; any other
//!   failure breaks the log for good.
//!
//! Concurrency: one thread at a time; [`LogSync`] is shared with all.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::base::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use crate::base::{Error, FileNumber, Result};
use crate::codec::Compression;
use crate::codec::compression::Compressor;
use crate::log::LogSync;
use crate::vfs::{self, Vfs};

use super::pointer::ValuePointer;
use super::record;
use super::writer::{WRITE_BYTES, may_compress};

/// How much space is reserved ahead.
const AHEAD_BYTES: u64 = 1 << 20;

/// How far a value log has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LogPosition {
    /// Where the last record ends.
    pub(crate) end: u64,
    pub(crate) entries: u64,
    /// The bytes of the values before compression.
    pub(crate) value_bytes: u64,
}

/// Writes one value log.
#[derive(Debug)]
pub(crate) struct ValueLogWriter {
    number: FileNumber,
    shared: Arc<LogSync>,
    compressor: Compressor,
    /// What was appended and is not written.
    buffer: Vec<u8>,
    /// Where the buffer belongs in the file.
    flushed: u64,
    /// Writes below this offset cannot run out of space; `u64::MAX` where the file system cannot
    /// reserve.
    reserved: u64,
    head: Vec<u8>,
    packed: Vec<u8>,
    /// What counts.
    position: LogPosition,
    /// What was appended since, apart from its place.
    pending: LogPosition,
}

impl ValueLogWriter {
    /// Creates value log `number` in `directory`; the caller makes the name durable.
    pub(crate) fn create(vfs: &dyn Vfs, directory: &Path, number: FileNumber) -> Result<Self> {
        let path = directory.join(super::file_name(number));
        let file = vfs
            .create(&path)
            .map_err(|error| Error::io("create", &path, error))?;
        Ok(Self {
            number,
            shared: Arc::new(LogSync::new(file, path, None)),
            compressor: Compressor::new(Compression::None),
            buffer: Vec::new(),
            flushed: 0,
            reserved: 0,
            head: Vec::new(),
            packed: Vec::new(),
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
        &self.shared
    }

    /// How far it has come.
    pub(crate) fn position(&self) -> LogPosition {
        self.position
    }

    /// Appends the value of `key` and tells where it will be once [`write`](Self::write) returns. It is
    /// compressed where that saves an eighth.
    ///
    /// # Errors
    /// I3.
    pub(crate) fn append(
        &mut self,
        key: &[u8],
        value: &[u8],
        compression: Compression,
    ) -> Result<ValuePointer> {
        debug_assert!((1..=KEY_BYTES_MAX).contains(&key.len()) && value.len() <= VALUE_BYTES_MAX);
        self.packed.clear();
        let mut codec = Compression::None;
        if may_compress(value, compression) {
            self.compressor.set_codec(compression);
            codec = self.compressor.append_smaller(value, &mut self.packed);
        }
        let packed = std::mem::take(&mut self.packed);
        let body = match codec {
            Compression::None => value,
            _ => &packed,
        };
        let offset = self.end();
        let mut head = std::mem::take(&mut self.head);
        record::begin(&mut head, (self.number, offset), (key, key), codec, body);
        let put = self.put(&head, body);
        self.head = head;
        if packed.capacity() <= WRITE_BYTES {
            self.packed = packed;
        }
        put?;
        self.pending.entries += 1;
        self.pending.value_bytes += value.len() as u64;
        Ok(ValuePointer {
            file: self.number,
            offset,
            record_bytes: self.end() - offset,
            value_bytes: value.len() as u64,
        })
    }

    /// Writes what was appended, and returns how much that was; it counts from here on if
    /// [`keep`](Self::keep) is called.
    ///
    /// # Errors
    /// I3.
    pub(crate) fn write(&mut self) -> Result<u64> {
        self.flush()?;
        let bytes = self.flushed - self.shared.written();
        self.shared.publish_written(self.flushed); // I2
        Ok(bytes)
    }

    /// What was written is pointed to by a record that was written, too.
    pub(crate) fn keep(&mut self) {
        self.position = LogPosition {
            end: self.flushed,
            entries: self.position.entries + self.pending.entries,
            value_bytes: self.position.value_bytes + self.pending.value_bytes,
        };
        self.pending = LogPosition::default();
    }

    /// Nothing points to what was appended since the last [`keep`](Self::keep), nor ever will. Returns
    /// whether nothing of it was written, so that the log can go on; else it has to end here (I1).
    pub(crate) fn forget(&mut self) -> bool {
        self.buffer.clear();
        self.pending = LogPosition::default();
        self.flushed == self.position.end
    }

    /// Where the next record goes.
    fn end(&self) -> u64 {
        self.flushed + self.buffer.len() as u64
    }

    fn put(&mut self, head: &[u8], body: &[u8]) -> Result<()> {
        self.reserve((head.len() + body.len()) as u64)?;
        if self.buffer.len() + head.len() + body.len() <= WRITE_BYTES {
            self.buffer.extend_from_slice(head);
            self.buffer.extend_from_slice(body);
            return Ok(());
        }
        self.flush()?;
        self.write_at(head, self.flushed)?;
        self.write_at(body, self.flushed + head.len() as u64)?;
        self.flushed += (head.len() + body.len()) as u64;
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.write_at(&self.buffer, self.flushed)?;
        self.flushed = self.end();
        self.buffer.clear();
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        vfs::write_all_at(self.shared.file(), bytes, offset).map_err(|error| {
            self.shared.mark_broken();
            self.shared.failure("write to", error)
        })
    }

    /// Makes sure that `length` more bytes can be appended without running out of space.
    fn reserve(&mut self, length: u64) -> Result<()> {
        self.shared.check_sound()?;
        let needed = self.end() + length;
        if needed <= self.reserved {
            return Ok(());
        }
        let outcome = match self.reserve_up_to(needed + AHEAD_BYTES) {
            // What is left may still be enough.
            Err(error) if is_full(&error) => self.reserve_up_to(needed),
            outcome => outcome,
        };
        match outcome {
            Ok(reserved) => self.reserved = reserved,
            Err(error) if error.kind() == io::ErrorKind::Unsupported => self.reserved = u64::MAX,
            Err(error) => {
                if !is_full(&error) {
                    self.shared.mark_broken();
                }
                return Err(self.shared.refusal("reserve space in", error)); // I3
            }
        }
        Ok(())
    }

    fn reserve_up_to(&self, end: u64) -> io::Result<u64> {
        let start = self.end();
        loop {
            match self.shared.file().reserve(start, end - start) {
                Ok(()) => return Ok(end),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

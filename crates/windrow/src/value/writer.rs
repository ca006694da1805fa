//! Writes a value file, record by record, in bounded memory. Keys are only in the tables that point to
//! it, but for what others [put](ValueWriter::put).
//!
//! Invariants:
//! - I1. Records lie one behind the other from offset 0, without gaps.
//! - I2. Memory is one write buffer, one key and the compressed form of one value; a value that is
//!   stored as it is and longer than the buffer is written from where it is.
//!
//! Concurrency: none; a writer belongs to one job. Dropped before `finish`, it leaves a file that
//! nothing names. After an error it is good for nothing but that.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::limits::{KEY_BYTES_MAX, VALUE_BYTES_COMPRESSED_MAX, VALUE_BYTES_MAX};
use crate::base::{Error, FileNumber, Result};
use crate::codec::Compression;
use crate::codec::compression::Compressor;
use crate::vfs::{File, Vfs, write_all_at};

use super::pointer::ValuePointer;
use super::{ValueFileMeta, record};

/// Bytes gathered before a write.
pub(super) const WRITE_BYTES: usize = 256 << 10;

/// Values shorter than this are stored as they are.
const COMPRESSED_FROM_BYTES: usize = 256;

/// Whether it is tried to compress `value`.
pub(super) fn may_compress(value: &[u8], compression: Compression) -> bool {
    compression != Compression::None
        && (COMPRESSED_FROM_BYTES..=VALUE_BYTES_COMPRESSED_MAX).contains(&value.len())
}

/// Writes one value file.
#[derive(Debug)]
pub(crate) struct ValueWriter {
    file: Arc<dyn File>,
    path: PathBuf,
    number: FileNumber,
    compressor: Compressor,
    /// What waits to be written; never more than [`WRITE_BYTES`].
    buffer: Vec<u8>,
    /// Where the buffer belongs in the file.
    written: u64,
    /// The present record up to its value.
    head: Vec<u8>,
    /// The present value, compressed.
    packed: Vec<u8>,
    entries: u64,
    value_bytes: u64,
}

impl ValueWriter {
    /// Creates value file `number` in `directory`.
    pub(crate) fn create(vfs: &dyn Vfs, directory: &Path, number: FileNumber) -> Result<Self> {
        let path = directory.join(super::file_name(number));
        let file = vfs
            .create(&path)
            .map_err(|error| Error::io("create", &path, error))?;
        Ok(Self {
            file,
            path,
            number,
            compressor: Compressor::new(Compression::None),
            buffer: Vec::with_capacity(WRITE_BYTES),
            written: 0,
            head: Vec::new(),
            packed: Vec::new(),
            entries: 0,
            value_bytes: 0,
        })
    }

    /// Appends the value of `key` and tells where it is. It is compressed where that saves an eighth.
    pub(crate) fn append(
        &mut self,
        key: &[u8],
        value: &[u8],
        compression: Compression,
    ) -> Result<ValuePointer> {
        assert!(
            (1..=KEY_BYTES_MAX).contains(&key.len()) && value.len() <= VALUE_BYTES_MAX,
            "a record needs a key and a value within the limits"
        );
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
        let offset = self.bytes();
        let mut head = std::mem::take(&mut self.head);
        let place = (self.number, offset);
        record::begin(&mut head, place, (key, &[]), codec, body);
        self.put(&head)?;
        self.put(body)?;
        self.head = head;
        // What one long value took is not kept for the others (I2).
        if packed.capacity() <= WRITE_BYTES {
            self.packed = packed;
        }
        self.count(value.len() as u64);
        Ok(ValuePointer {
            file: self.number,
            offset,
            record_bytes: self.bytes() - offset,
            value_bytes: value.len() as u64,
        })
    }

    /// Counts a record that was put, of a value of `value_bytes` before compression.
    pub(super) fn count(&mut self, value_bytes: u64) {
        self.entries += 1;
        self.value_bytes += value_bytes;
    }

    /// The file's number.
    pub(super) fn number(&self) -> FileNumber {
        self.number
    }

    /// Puts `bytes` behind what waits, or writes them from where they are if they are long (I2).
    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<()> {
        if self.buffer.len() + bytes.len() > WRITE_BYTES {
            self.flush()?;
        }
        if bytes.len() < WRITE_BYTES {
            self.buffer.extend_from_slice(bytes);
            return Ok(());
        }
        self.write(bytes, self.written)?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.write(&self.buffer, self.written)?;
        self.written = self.bytes();
        self.buffer.clear();
        Ok(())
    }

    fn write(&self, bytes: &[u8], offset: u64) -> Result<()> {
        write_all_at(&*self.file, bytes, offset)
            .map_err(|error| Error::io("write", &self.path, error))
    }

    /// The length of the records so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// The bytes that the writer holds in memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.buffer.capacity() + self.head.capacity() + self.packed.capacity()) as u64
    }

    /// Writes what waits and syncs the file; the caller syncs the directory.
    pub(crate) fn finish(mut self) -> Result<ValueFileMeta> {
        self.flush()?;
        self.file
            .sync_data()
            .map_err(|error| Error::io("sync", &self.path, error))?;
        Ok(ValueFileMeta {
            number: self.number,
            length: self.bytes(),
            end: self.bytes(),
            entries: self.entries,
            value_bytes: self.value_bytes,
        })
    }
}

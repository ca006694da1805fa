//! Writes a value file, record by record, in bounded memory. The records of a transient log hold no keys: these are in
//! the tables that point to the file. GC outputs [put](ValueWriter::put) whole records instead, and folds
//! [add the key](ValueWriter::append_with_key).
//!
//! Invariants:
//! - I1. Records lie one after the other from offset 0, without gaps.
//! - I2. Memory is one write buffer and the compressed form of one value.
//!
//! Concurrency: none; that of [`FileWriter`].

use std::path::Path;

use crate::base::{FileNumber, Result};
use crate::codec::Compression;
use crate::vfs::{FileWriter, Vfs, WRITE_BYTES};

use super::meta::{ValueFileMeta, file_name};
use super::pointer::ValuePointer;
use super::record::RecordEncoder;

/// Writes one value file.
#[derive(Debug)]
pub(crate) struct ValueWriter {
    output: FileWriter,
    number: FileNumber,
    encoder: RecordEncoder,
    entries: u64,
    value_bytes: u64,
}

impl ValueWriter {
    /// Creates value file `number` in `directory`.
    pub(crate) fn create(vfs: &dyn Vfs, directory: &Path, number: FileNumber) -> Result<Self> {
        let mut output = FileWriter::create(vfs, directory.join(file_name(number)))?;
        output.buffer().reserve_exact(WRITE_BYTES);
        Ok(Self {
            output,
            number,
            encoder: RecordEncoder::new(),
            entries: 0,
            value_bytes: 0,
        })
    }

    /// Appends the value of `key` and returns its pointer. The value is compressed if that saves an
    /// eighth.
    pub(crate) fn append(
        &mut self,
        key: &[u8],
        value: &[u8],
        compression: Compression,
    ) -> Result<ValuePointer> {
        self.append_record((key, &[]), value, compression)
    }

    /// As [`append`](Self::append), with the key in the record, as in a value log.
    pub(crate) fn append_with_key(
        &mut self,
        key: &[u8],
        value: &[u8],
        compression: Compression,
    ) -> Result<ValuePointer> {
        self.append_record((key, key), value, compression)
    }

    /// Appends the value of the first of `keys`; the record holds the second.
    fn append_record(
        &mut self,
        keys: (&[u8], &[u8]),
        value: &[u8],
        compression: Compression,
    ) -> Result<ValuePointer> {
        let offset = self.bytes();
        let place = (self.number, offset);
        let (head, body) = self.encoder.encode(place, keys, value, compression);
        self.output.put(head)?;
        self.output.put(body)?;
        self.encoder.trim(); // I2
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

    /// Appends bytes of a record or a relocation table.
    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.output.put(bytes)
    }

    /// Whether a whole piece of the file waits for a judgement.
    #[inline]
    pub(crate) fn has_unjudged_piece(&self) -> bool {
        self.output.has_unjudged_piece()
    }

    /// Judges whether the whole pieces since the last judgement stay in the page cache.
    pub(crate) fn judge(&mut self, stays: bool) {
        self.output.judge(stays);
    }

    /// The length of the file so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.output.position()
    }

    /// The bytes that the writer holds in memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.output.memory_bytes() + self.encoder.memory_bytes()) as u64
    }

    /// Writes the rest and syncs the file; the caller syncs the directory.
    pub(crate) fn finish(mut self) -> Result<ValueFileMeta> {
        self.output.sync()?;
        Ok(ValueFileMeta {
            number: self.number,
            length: self.bytes(),
            end: self.bytes(),
            entries: self.entries,
            value_bytes: self.value_bytes,
        })
    }
}

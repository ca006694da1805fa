//! Tests of whole value files.

mod damage;
mod format;
mod garbage_collection;
mod logs;
mod open_values;
mod pointers;
mod read_buffers;
mod writing;

use std::path::Path;
use std::sync::Arc;

use crate::base::{FileNumber, Result};
use crate::codec::Compression;
use crate::codec::checksum::key_hash;
use crate::options::BlockSource;
use crate::vfs::memory::MemoryVfs;

use super::file::ValueFile;
use super::{ValueFileMeta, ValueLogWriter, ValuePointer, ValueWriter, file_name};

const NUMBER: FileNumber = FileNumber(15);

const SOURCES: [BlockSource; 2] = [BlockSource::Mapped, BlockSource::Buffered];

/// The place of the keys of a file's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keys {
    /// In the records, as of value logs.
    InRecords,
    /// Only in the tables that point to them, as of transient logs.
    InTables,
}

const KEYS: [Keys; 2] = [Keys::InRecords, Keys::InTables];

/// A value with its key and its compression.
#[derive(Debug, Clone)]
struct Owned {
    key: Vec<u8>,
    value: Vec<u8>,
    compression: Compression,
}

/// The codecs of this build.
fn codecs() -> Vec<Compression> {
    [Compression::None, Compression::Lz4, Compression::Zstd]
        .into_iter()
        .filter(|codec| codec.is_available())
        .collect()
}

/// A value of `length` bytes that shrinks under compression, or does not.
fn value(length: usize, seed: u64, shrinks: bool) -> Vec<u8> {
    let words = (0..length.div_ceil(8) as u64).map(|word| if shrinks { word / 64 } else { word });
    let mut value: Vec<u8> = words
        .flat_map(|word| key_hash(&(seed << 32 | word).to_le_bytes()).to_le_bytes())
        .collect();
    value.truncate(length);
    value
}

/// Entries with values of these lengths.
fn entries(lengths: &[usize]) -> Vec<Owned> {
    let codecs = codecs();
    let entry = |(index, length): (usize, &usize)| Owned {
        key: format!("key{index:05}").into_bytes(),
        value: value(*length, index as u64, index % 3 > 0),
        compression: codecs[index % codecs.len()],
    };
    lengths.iter().enumerate().map(entry).collect()
}

/// Writes `entries` to value file `number`.
fn write(
    vfs: &MemoryVfs,
    number: FileNumber,
    keys: Keys,
    entries: &[Owned],
) -> (ValueFileMeta, Vec<ValuePointer>) {
    if keys == Keys::InRecords {
        return write_log(vfs, number, entries);
    }
    let mut writer = ValueWriter::create(vfs, Path::new(""), number).unwrap();
    let append = |entry: &Owned| {
        writer
            .append(&entry.key, &entry.value, entry.compression)
            .unwrap()
    };
    let pointers = entries.iter().map(append).collect();
    (writer.finish().unwrap(), pointers)
}

fn write_log(
    vfs: &MemoryVfs,
    number: FileNumber,
    entries: &[Owned],
) -> (ValueFileMeta, Vec<ValuePointer>) {
    let mut writer = ValueLogWriter::create(vfs, Path::new(""), number).unwrap();
    let append = |entry: &Owned| {
        writer
            .append(&entry.key, &entry.value, entry.compression)
            .unwrap()
    };
    let pointers = entries.iter().map(append).collect();
    writer.write().unwrap();
    writer.keep();
    let position = writer.position();
    let meta = ValueFileMeta {
        number,
        length: position.end,
        entries: position.entries,
        value_bytes: position.value_bytes,
        end: position.end,
    };
    (meta, pointers)
}

/// The bytes of value file `number`.
fn bytes(vfs: &MemoryVfs, number: FileNumber) -> Vec<u8> {
    let file = vfs.file(Path::new(&file_name(number)));
    file.bytes.lock().clone()
}

/// Sets the bytes of value file `number`.
fn set_bytes(vfs: &MemoryVfs, number: FileNumber, bytes: &[u8]) {
    let file = vfs.file(Path::new(&file_name(number)));
    *file.bytes.lock() = bytes.to_vec();
}

fn open(vfs: &MemoryVfs, meta: &ValueFileMeta, source: BlockSource) -> Result<ValueFile> {
    ValueFile::open(vfs, Path::new(""), meta, &source.into())
}

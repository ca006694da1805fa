//! Discard lists: the records of value logs that no entry points to any more. A flush or a compaction
//! that drops such entries writes one; garbage collection reads them. See "Discard lists" in
//! `docs/format.md`.
//!
//! Invariants:
//! - I1. A list names each record once. The manifest records the count of each value file.
//! - I2. Memory is one chunk, for the writer and for the reader; no length is trusted.
//!
//! Concurrency: none; writers and readers belong to one job each.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::base::{Error, FileNumber, Result};
use crate::codec::Reader;
use crate::codec::checksum::{checksum, seed};
use crate::codec::reader::DecodeError;
use crate::codec::varint::put_varint;
use crate::vfs::{File, FileWriter, Footprint, OpenMode, Vfs, read_exact_at};

/// The most records of a chunk.
const CHUNK_ENTRIES: usize = 8 << 10;

/// The checksum, and the length of the records after the header.
const HEADER_BYTES: usize = 8;

/// The most bytes after the header: two numbers of ten bytes per record.
const CHUNK_BYTES_MAX: usize = CHUNK_ENTRIES * 20;

/// What is recorded of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DiscardList {
    pub(crate) number: FileNumber,
    pub(crate) length: u64,
    /// The records that it names of each value file that is not collected yet.
    pub(crate) counts: BTreeMap<FileNumber, u64>,
}

/// The name of a list within the database's directory.
pub(crate) fn discard_list_name(number: FileNumber) -> String {
    format!("{number}.dead")
}

/// Writes one list.
#[derive(Debug)]
pub(crate) struct DiscardListWriter {
    output: FileWriter,
    number: FileNumber,
    /// The records that are not written yet.
    chunk: Vec<(FileNumber, u64)>,
    counts: BTreeMap<FileNumber, u64>,
}

impl DiscardListWriter {
    /// Creates list `number` in `directory`.
    pub(crate) fn create(vfs: &dyn Vfs, directory: &Path, number: FileNumber) -> Result<Self> {
        Ok(Self {
            output: FileWriter::create(vfs, directory.join(discard_list_name(number)))?,
            number,
            chunk: Vec::new(),
            counts: BTreeMap::new(),
        })
    }

    /// Names the record at `offset` of `file`.
    pub(crate) fn add(&mut self, file: FileNumber, offset: u64) -> Result<()> {
        self.chunk.push((file, offset));
        *self.counts.entry(file).or_default() += 1;
        if self.chunk.len() == CHUNK_ENTRIES {
            self.write_chunk()?;
        }
        Ok(())
    }

    /// The bytes that the writer holds in memory, except the counts.
    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.chunk.capacity() * size_of::<(FileNumber, u64)>() + self.output.memory_bytes()) as u64
    }

    fn write_chunk(&mut self) -> Result<()> {
        self.chunk.sort_unstable();
        let offset = self.output.position();
        let buffer = self.output.buffer();
        buffer.resize(HEADER_BYTES, 0);
        let mut last = (FileNumber(0), 0);
        for &(file, offset) in &self.chunk {
            let from = if file == last.0 { last.1 } else { 0 };
            put_varint(buffer, file.0 - last.0.0);
            put_varint(buffer, offset - from);
            last = (file, offset);
        }
        let length = u32::try_from(buffer.len() - HEADER_BYTES).unwrap_or(u32::MAX);
        buffer[4..HEADER_BYTES].copy_from_slice(&length.to_le_bytes());
        let sum = checksum(seed(self.number.0, 0, offset), &buffer[4..]);
        buffer[..4].copy_from_slice(&sum.to_le_bytes());
        self.output.flush()?;
        self.chunk.clear();
        Ok(())
    }

    /// Writes the last chunk and syncs the file; the caller syncs the directory.
    pub(crate) fn finish(mut self) -> Result<DiscardList> {
        if !self.chunk.is_empty() {
            self.write_chunk()?;
        }
        self.output.sync()?;
        Ok(DiscardList {
            number: self.number,
            length: self.output.position(),
            counts: self.counts,
        })
    }
}

/// Passes the value file and the offset of every record that counts in `list` to `take`.
///
/// # Errors
/// `Corruption` if the list is missing, damaged, or does not name as many records as recorded; those of
/// `take`.
pub(crate) fn read_discard_list(
    vfs: &dyn Vfs,
    directory: &Path,
    list: &DiscardList,
    mut take: impl FnMut(FileNumber, u64) -> Result<()>,
) -> Result<()> {
    let name = discard_list_name(list.number);
    let path = directory.join(&name);
    let file = vfs
        .open(&path, OpenMode::Read)
        .map_err(|error| Error::open(&name, &path, error))?;
    let length = file.length();
    let length = length.map_err(|error| Error::io("read the length of", &path, error))?;
    if length < list.length {
        let what = "the file ends before its recorded end";
        return Err(Error::corruption(&name, length, what));
    }
    let mut footprint = Footprint::new(Arc::clone(&file));
    footprint.touch(0..list.length);
    let mut left = list.counts.clone();
    each_discarded(&*file, list.number, list.length, |number, offset| {
        // Value files that were deleted do not count any more.
        let Some(count) = left.get_mut(&number) else {
            return Ok(());
        };
        *count = count.checked_sub(1).ok_or_else(|| {
            let what = format!("more garbage values of value file {number} than recorded");
            Error::corruption(&name, 0, what)
        })?;
        take(number, offset)
    })?;
    if left.values().any(|count| *count > 0) {
        let what = "fewer garbage values than recorded";
        return Err(Error::corruption(&name, list.length, what));
    }
    Ok(())
}

/// Passes every record that list `number` names in its first `length` bytes to `take`.
///
/// # Errors
/// `Corruption` if it is damaged; those of `take`.
pub(crate) fn each_discarded(
    file: &dyn File,
    number: FileNumber,
    length: u64,
    mut take: impl FnMut(FileNumber, u64) -> Result<()>,
) -> Result<()> {
    let name = discard_list_name(number);
    let mut offset = 0;
    let mut chunk = Vec::new();
    while offset < length {
        read_chunk(file, &name, (number, length), offset, &mut chunk)?;
        let base = offset + HEADER_BYTES as u64;
        let in_file = |error: DecodeError| error.in_file(&name, base);
        let mut reader = Reader::new(&chunk[HEADER_BYTES..]);
        let mut last = (0_u64, 0_u64);
        while !reader.is_empty() {
            let entry = reader.clone();
            let beyond = || in_file(entry.error("a record is beyond the largest file or offset"));
            let step = reader.varint("file of a garbage value").map_err(in_file)?;
            let ahead = reader
                .varint("offset of a garbage value")
                .map_err(in_file)?;
            let from = if step == 0 { last.1 } else { 0 };
            last = last
                .0
                .checked_add(step)
                .zip(from.checked_add(ahead))
                .ok_or_else(beyond)?;
            take(FileNumber(last.0), last.1)?;
        }
        offset += chunk.len() as u64;
    }
    Ok(())
}

/// Replaces `chunk` by the one at `offset`, header included, of list `number` of `length` bytes.
fn read_chunk(
    file: &dyn File,
    name: &str,
    (number, length): (FileNumber, u64),
    offset: u64,
    chunk: &mut Vec<u8>,
) -> Result<()> {
    let corrupt = |what| Error::corruption(name, offset, what);
    let left = length - offset;
    let mut header = [0; HEADER_BYTES];
    if left < HEADER_BYTES as u64 {
        return Err(corrupt("a chunk is cut off"));
    }
    read_exact_at(file, &mut header, offset).map_err(|error| Error::read(name, offset, error))?;
    let [_, _, _, _, a, b, c, d] = header;
    let chunk_bytes = u32::from_le_bytes([a, b, c, d]) as usize;
    if chunk_bytes > CHUNK_BYTES_MAX || (HEADER_BYTES + chunk_bytes) as u64 > left {
        return Err(corrupt("a chunk has an impossible length"));
    }
    chunk.clear();
    chunk.resize(HEADER_BYTES + chunk_bytes, 0);
    read_exact_at(file, chunk, offset).map_err(|error| Error::read(name, offset, error))?;
    let sum = checksum(seed(number.0, 0, offset), &chunk[4..]);
    if sum.to_le_bytes() != chunk[..4] {
        return Err(corrupt("a chunk fails its checksum"));
    }
    Ok(())
}

//! An open value file, for point reads.
//!
//! *Mapped*: uncompressed values are returned in place if all pages of their record have a
//! [mark](crate::cache::Marks) or are in memory. *Buffered*, and mapped otherwise: each read is one `pread` of the
//! record. A value log that is being written is always read with `pread`, because it still grows.
//!
//! Invariants:
//! - I1. No value is returned that did not pass the checks of its record in the same call.
//! - I2. A read allocates at most the length of the record, and that of the value once the record has
//!   passed its checks.
//!
//! Concurrency: shared freely; nothing here blocks but I/O.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::base::{Error, Held, MemoryTracker, Result};
use crate::block::PinnedValue;
use crate::cache::{MarkClock, Marks};
use crate::codec::Compression;
use crate::codec::reader::DecodeError;
use crate::options::BlockSource;
use crate::vfs::{Advice, File, OpenMode, Region, Vfs, map_if_possible, read_exact_at};

use super::meta::{ValueFileMeta, file_name};
use super::pointer::ValuePointer;
use super::record;
use super::relocation::RelocationTable;

/// What all value files of a database share.
#[derive(Debug, Clone)]
pub(crate) struct ValueContext {
    pub(crate) source: BlockSource,
    pub(crate) clock: Arc<MarkClock>,
    /// Counts the memory of open files.
    pub(crate) files: Arc<MemoryTracker>,
    /// Counts the memory of cursors.
    pub(crate) cursors: Arc<MemoryTracker>,
}

#[cfg(test)]
impl From<BlockSource> for ValueContext {
    fn from(source: BlockSource) -> Self {
        Self {
            source,
            clock: Arc::default(),
            files: Arc::default(),
            cursors: Arc::default(),
        }
    }
}

/// An open value file.
#[derive(Debug)]
pub(crate) struct ValueFile {
    name: String,
    meta: ValueFileMeta,
    file: Arc<dyn File>,
    /// The mapping, in mapped mode, if the file can be mapped.
    region: Option<Arc<Region>>,
    /// The pages of the mapping that readers may use in place.
    marks: Marks,
    clock: Arc<MarkClock>,
    _memory: Held,
}

/// The piece of the mapping that has one mark, in bytes.
const PAGE_BYTES: usize = 4096;

/// Opens the file `name` that `meta` describes and checks its length.
pub(super) fn open_whole(
    vfs: &dyn Vfs,
    directory: &Path,
    name: &str,
    meta: &ValueFileMeta,
) -> Result<Arc<dyn File>> {
    let path = directory.join(name);
    let file = vfs
        .open(&path, OpenMode::Read)
        .map_err(|error| Error::open(name, &path, error))?;
    let length = file
        .length()
        .map_err(|error| Error::io("read the length of", &path, error))?;
    if length < meta.end && !meta.is_growing() {
        let what = "the file ends before its recorded end";
        return Err(Error::corruption(name, length, what));
    }
    Ok(file)
}

/// A read of a growing file asks for its length before a longer record: no recorded length bounds the record (I2), and the
/// question costs as much as a short read.
const UNCHECKED_RECORD_BYTES: u64 = 64 << 10;

/// Refuses a record that `file` is too short for, if that is growing.
pub(super) fn check_growing(
    file: &dyn File,
    meta: &ValueFileMeta,
    pointer: &ValuePointer,
) -> io::Result<()> {
    let is_checked = meta.is_growing() && pointer.record_bytes > UNCHECKED_RECORD_BYTES;
    if is_checked && file.length()? < pointer.offset.saturating_add(pointer.record_bytes) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}

impl ValueFile {
    /// Opens the file that `meta` describes.
    ///
    /// # Errors
    /// `Corruption` if it is missing or too short.
    pub(crate) fn open(
        vfs: &dyn Vfs,
        directory: &Path,
        meta: &ValueFileMeta,
        context: &ValueContext,
    ) -> Result<Self> {
        let name = file_name(meta.number);
        let file = open_whole(vfs, directory, &name, meta)?;
        file.advise(0..meta.end, Advice::Random);
        let region = match context.source {
            BlockSource::Mapped if !meta.is_growing() => map_if_possible(&*file, meta.end)
                .map_err(|error| Error::io("map", &directory.join(&name), error))?,
            _ => None,
        };
        let pages = region
            .as_ref()
            .map_or(0, |_| meta.end.div_ceil(PAGE_BYTES as u64));
        let marks = Marks::new(usize::try_from(pages).unwrap_or(usize::MAX));
        Ok(Self {
            name,
            meta: *meta,
            file,
            region,
            _memory: Held::new(&context.files, marks.memory_bytes() as u64),
            marks,
            clock: Arc::clone(&context.clock),
        })
    }

    /// Whether the bytes of `range` can be read without waiting for a device. In a file that is not mapped, its ends count:
    /// and the question itself may make the system read the page, so a mapping answers if there is one.
    pub(crate) fn is_resident(&self, range: &Range<u64>) -> bool {
        let Some(last) = range.end.checked_sub(1).filter(|last| *last >= range.start) else {
            return true;
        };
        if let Some(region) = &self.region {
            let [start, end] =
                [range.start, range.end].map(|at| usize::try_from(at).unwrap_or(usize::MAX));
            return region.is_resident(start..end);
        }
        let page = |offset: u64| offset / PAGE_BYTES as u64;
        self.file.is_resident(range.start)
            && (page(last) == page(range.start) || self.file.is_resident(last))
    }

    /// Asks the system to read `range` ahead, in the background.
    pub(crate) fn will_need(&self, range: Range<u64>) {
        self.file.advise(range, Advice::WillNeed);
    }

    /// Asks the system, without a wait, for the record that `pointer` leads to, unless it is in memory.
    pub(crate) fn announce(&self, pointer: &ValuePointer) {
        let record = pointer.offset..pointer.offset.saturating_add(pointer.record_bytes);
        if !self.is_resident(&record) {
            self.will_need(record);
        }
    }

    /// The value of `key` that `pointer` leads to, in place if possible.
    pub(crate) fn read(&self, key: &[u8], pointer: &ValuePointer) -> Result<PinnedValue> {
        if let Some(region) = self.region_with(pointer.offset, pointer.record_bytes) {
            let (record, end) = self.mapped(region, pointer)?;
            let (codec, body) = self.located(record::verify(record, key, pointer), pointer)?;
            if codec == Compression::None {
                let range = end - body.len()..end;
                return Ok(PinnedValue::mapped(Arc::clone(region), range));
            }
            let mut value = Vec::new();
            self.located(record::decompress(codec, body, &mut value), pointer)?;
            return Ok(PinnedValue::owned(value));
        }
        let mut value = Vec::new();
        self.read_into(key, pointer, &mut value)?;
        Ok(PinnedValue::owned(value))
    }

    /// Replaces the content of `value` by the value of `key` that `pointer` leads to. An error leaves
    /// `value` empty. Returns whether the read is likely to have waited for a device.
    pub(crate) fn read_into(
        &self,
        key: &[u8],
        pointer: &ValuePointer,
        value: &mut Vec<u8>,
    ) -> Result<bool> {
        let outcome = match self.region_with(pointer.offset, pointer.record_bytes) {
            Some(region) => self.copy(region, key, pointer, value).map(|()| false),
            None => self.load(key, pointer, value),
        };
        if outcome.is_err() {
            value.clear();
        }
        outcome
    }

    /// The new place of the value that `pointer`, into the origin of `table`, leads to.
    pub(crate) fn relocate(
        &self,
        table: &RelocationTable,
        pointer: &ValuePointer,
    ) -> Result<ValuePointer> {
        let read =
            |buffer: &mut [u8], offset: u64| match self.region_with(offset, buffer.len() as u64) {
                Some(region) => {
                    let bytes = usize::try_from(offset).ok();
                    let bytes = bytes.and_then(|offset| region.bytes().get(offset..));
                    let bytes = bytes.and_then(|bytes| bytes.get(..buffer.len()));
                    let what = "a relocation table ends beyond its file";
                    buffer.copy_from_slice(
                        bytes.ok_or_else(|| Error::corruption(&self.name, offset, what))?,
                    );
                    Ok(())
                }
                None => read_exact_at(&*self.file, buffer, offset)
                    .map_err(|error| Error::read(&self.name, offset, error)),
            };
        table.relocate(pointer, read)
    }

    /// The mapping, if a read of `length` bytes at `offset` from it does not wait for the device.
    #[inline]
    fn region_with(&self, offset: u64, length: u64) -> Option<&Arc<Region>> {
        let region = self.region.as_ref()?;
        let end = offset
            .checked_add(length)
            .filter(|&end| end <= self.meta.end)?;
        #[expect(clippy::cast_possible_truncation, reason = "the file is mapped whole")]
        let pages = offset as usize / PAGE_BYTES..(end as usize).div_ceil(PAGE_BYTES);
        (self.marks.contain(pages.clone(), &self.clock) || self.mark(region, pages))
            .then_some(region)
    }

    /// Marks `pages` if all are in memory; returns whether they are.
    #[cold]
    fn mark(&self, region: &Region, pages: Range<usize>) -> bool {
        let range = pages.start * PAGE_BYTES..(pages.end * PAGE_BYTES).min(region.bytes().len());
        if !region.is_resident(range) {
            let represented = pages.map(Marks::represented).max();
            self.clock.note_cold_read(represented.unwrap_or(1));
            return false;
        }
        for page in pages {
            self.marks.insert(page, &self.clock);
        }
        true
    }

    fn copy(
        &self,
        region: &Region,
        key: &[u8],
        pointer: &ValuePointer,
        value: &mut Vec<u8>,
    ) -> Result<()> {
        let (record, _) = self.mapped(region, pointer)?;
        let (codec, body) = self.located(record::verify(record, key, pointer), pointer)?;
        self.located(record::decompress(codec, body, value), pointer)
    }

    /// Reads the record into `value`, then moves the value to the front or decompresses it. Returns whether it was not
    /// in memory; a growing file counts as being in memory.
    fn load(&self, key: &[u8], pointer: &ValuePointer, value: &mut Vec<u8>) -> Result<bool> {
        self.located(pointer.check_within(&self.meta), pointer)?;
        let is_buffered = self.region.is_none() && !self.meta.is_growing();
        let record = pointer.offset..pointer.offset.saturating_add(pointer.record_bytes);
        let is_cold = self.region.is_some() || is_buffered && !self.is_resident(&record);
        if is_buffered && is_cold {
            self.clock.note_cold_read(1);
        }
        let length = usize::try_from(pointer.record_bytes).map_err(|_| self.too_long(pointer))?;
        value.clear();
        check_growing(&*self.file, &self.meta, pointer)
            .and_then(|()| {
                value.resize(length, 0);
                read_exact_at(&*self.file, value, pointer.offset)
            })
            .map_err(|error| Error::read(&self.name, pointer.offset, error))?;
        let (codec, body) = self.located(record::verify(value, key, pointer), pointer)?;
        let start = length - body.len();
        if codec == Compression::None {
            value.drain(..start);
            return Ok(is_cold);
        }
        let record = std::mem::take(value);
        let unpacked = record::decompress(codec, &record[start..], value);
        self.located(unpacked, pointer).map(|()| is_cold)
    }

    /// The unverified record that `pointer` leads to, and its end in the mapping.
    fn mapped<'a>(&self, region: &'a Region, pointer: &ValuePointer) -> Result<(&'a [u8], usize)> {
        self.located(pointer.check_within(&self.meta), pointer)?;
        let range = usize::try_from(pointer.offset)
            .ok()
            .zip(usize::try_from(pointer.offset + pointer.record_bytes).ok());
        range
            .and_then(|(start, end)| Some((region.bytes().get(start..end)?, end)))
            .ok_or_else(|| self.too_long(pointer))
    }

    #[cold]
    fn too_long(&self, pointer: &ValuePointer) -> Error {
        let what = "a record is too long for this machine";
        Error::corruption(&self.name, pointer.offset, what)
    }

    /// Gives a decoding error the file and the offset.
    fn located<T>(
        &self,
        result: std::result::Result<T, DecodeError>,
        pointer: &ValuePointer,
    ) -> Result<T> {
        result.map_err(|error| error.in_file(&self.name, pointer.offset))
    }
}

//! Tests of whole tables; the tests of parts are in their modules.

mod cold_reads;
mod damage;
mod filter_pieces;
mod format;
mod model;
mod open_tables;
mod pointers;
mod salvage;
mod segments;
mod sequential;
mod written;

use std::path::Path;
use std::sync::Arc;

use crate::base::{Cursor, FileNumber, Kind, Result, SegmentId, Trailer};
use crate::cache::BlockCache;
use crate::codec::Compression;
use crate::codec::checksum::key_hash;
use crate::options::BlockSource;

use super::format::BlockPlace;
use super::{
    FileMeta, PointRead, ReadCounters, Table, TableContext, TableFiles, TableFilters, TableOptions,
    TableWriter, file_name,
};
use crate::vfs::memory::{MemoryFile, MemoryVfs};

/// An entry that owns its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owned {
    key: Vec<u8>,
    trailer: Trailer,
    value: Vec<u8>,
}

impl Owned {
    fn new(key: &[u8], sequence: u64, value: Option<&[u8]>) -> Self {
        let kind = if value.is_some() {
            Kind::Value
        } else {
            Kind::Tombstone
        };
        Self {
            key: key.to_vec(),
            trailer: Trailer::new(sequence, kind),
            value: value.unwrap_or_default().to_vec(),
        }
    }

    /// The entry at the cursor.
    fn under(cursor: &impl Cursor) -> Option<Self> {
        cursor.is_valid().then(|| Self {
            key: cursor.key().to_vec(),
            trailer: cursor.trailer(),
            value: cursor.value().to_vec(),
        })
    }
}

const NUMBER: FileNumber = FileNumber(12);
const SEGMENT: SegmentId = SegmentId(13);

fn plain() -> TableOptions {
    TableOptions {
        block_bytes: 4096,
        filter_units: [10.0, 0.0, 0.0, 0.0],
        compression: Compression::None,
    }
}

/// Writes `entries` and returns the file's bytes.
fn write(entries: &[Owned], options: &TableOptions) -> (FileMeta, Vec<u8>) {
    let vfs = MemoryVfs::default();
    let meta = write_to(&vfs, NUMBER, entries, options);
    let file = vfs.file(Path::new(&file_name(NUMBER)));
    let bytes = file.bytes.lock().clone();
    (meta, bytes)
}

fn write_to(
    vfs: &MemoryVfs,
    number: FileNumber,
    entries: &[Owned],
    options: &TableOptions,
) -> FileMeta {
    let writer = TableWriter::create(vfs, Path::new(""), number, SEGMENT, options);
    finish(writer.unwrap(), entries)
}

fn finish(mut writer: TableWriter, entries: &[Owned]) -> FileMeta {
    for entry in entries {
        writer.add(&entry.key, entry.trailer, &entry.value).unwrap();
    }
    writer.finish().unwrap().file
}

/// Appends `entries` to the file that `table` describes.
fn append(
    vfs: &MemoryVfs,
    table: &FileMeta,
    id: u64,
    entries: &[Owned],
    options: &TableOptions,
) -> FileMeta {
    let writer = TableWriter::append(vfs, Path::new(""), table, SegmentId(id), options);
    finish(writer.unwrap(), entries)
}

/// Files of `vfs`, `open_max` of them open at a time.
fn files(vfs: Arc<MemoryVfs>, source: BlockSource, open_max: usize) -> Arc<TableFiles> {
    Arc::new(TableFiles::new(vfs, "".into(), source, open_max))
}

fn context(source: BlockSource) -> TableContext {
    TableContext {
        files: files(Arc::new(MemoryVfs::default()), source, 1000),
        cache: Arc::new(BlockCache::new(1 << 20)),
        clock: Arc::default(),
        memory: Arc::default(),
        piece_reads: Arc::default(),
        scans: Arc::default(),
    }
}

fn open(bytes: Vec<u8>, meta: &FileMeta, source: BlockSource) -> Result<Arc<Table>> {
    open_file(MemoryFile::holding(bytes), meta, context(source))
}

fn open_file(
    file: Arc<dyn crate::vfs::File>,
    meta: &FileMeta,
    context: TableContext,
) -> Result<Arc<Table>> {
    Table::open_holding(file, meta, context, TableFilters::WHOLE).map(Arc::new)
}

/// As [`open_file`], with filters that are read by pieces.
fn open_by_pieces(
    file: Arc<dyn crate::vfs::File>,
    meta: &FileMeta,
    context: TableContext,
) -> Result<Arc<Table>> {
    let filters = TableFilters {
        are_whole: false,
        ..TableFilters::WHOLE
    };
    Table::open_holding(file, meta, context, filters).map(Arc::new)
}

/// The place of block `number` of the first segment.
fn block(table: &Table, number: usize) -> BlockPlace {
    table.block_place(&table.segments[0], number).unwrap()
}

/// A get, copied.
fn get(table: &Table, key: &[u8], sequence: u64) -> Result<Option<(Trailer, Vec<u8>)>> {
    let mut read = PointRead::default();
    let found = table.get(key, key_hash(key), sequence, &mut read)?;
    Ok(found.map(|found| (found.trailer(), found.value().to_vec())))
}

/// All entries of a cursor from front to back.
fn scan(cursor: &mut impl Cursor) -> Result<Vec<Owned>> {
    let mut entries = Vec::new();
    cursor.seek_to_first()?;
    while let Some(entry) = Owned::under(cursor) {
        entries.push(entry);
        cursor.next()?;
    }
    Ok(entries)
}

const SOURCES: [BlockSource; 2] = [BlockSource::Mapped, BlockSource::Buffered];

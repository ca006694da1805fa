//! The value files of a version, and the resolution of pointers.
//!
//! They are in the [chunks](chunk) of the manifest's state. An edit makes the chunks that it has changed anew, and keeps the
//! others. So it costs the files of these chunks, and a step for each chunk.
//!
//! I1. The chunks and relocations are those of one state of the manifest. The sums are those over all chunks.
//!
//! Concurrency: everything is shared freely.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::sync::Shared;
use crate::base::{Error, ErrorKind, FileNumber, Result};
use crate::table::FileMeta;
use crate::value::{
    LogSummary, RelocationTable, SummedLogs, ValueFile, ValuePointer, ValueReadBuffers,
};

use super::handle::ValueHandle;
use super::keyspace::KeyspaceState;
use super::names::FileName;
use super::obsolete::{Obsolete, ObsoleteGuard};
use super::values::{NumberMap, Relocation, ValueFileKind, ValueFileState};
use chunk::{FilesChunk, Needs};

pub(crate) use chunk::ValueSums;

mod chunk;

/// The length of a value file, and the use that tables make of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Usage {
    pub(crate) length: u64,
    /// Bytes of the records that tables refer to.
    pub(crate) referred: u64,
}

impl Usage {
    /// The part of the length that references to `bytes` keep: their fraction of all references.
    fn pinned_by(self, bytes: u64) -> u64 {
        let product = u128::from(self.length) * u128::from(bytes);
        let pinned = product / u128::from(self.referred.max(1));
        u64::try_from(pinned).unwrap_or(u64::MAX)
    }
}

/// The value files of a keyspace, their relocation tables and their discard lists.
#[derive(Debug, Default)]
pub(crate) struct ValueFiles {
    chunks: Vec<Shared<FilesChunk>>,
    /// The largest number of each chunk.
    ends: Vec<FileNumber>,
    sums: ValueSums,
    /// The relocations of collected value logs, by origin.
    relocations: NumberMap<Relocation>,
    /// See [`generation`](Self::generation).
    generation: FileNumber,
    /// The discard lists, which only jobs read, and their bytes. They exist while a version holds this.
    discard_lists: BTreeMap<FileNumber, Arc<ObsoleteGuard>>,
    list_bytes: u64,
}

/// The place of a value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// The file.
    pub(crate) file: &'a Shared<ValueHandle>,
    /// The pointer of the entry.
    pub(crate) pointer: ValuePointer,
    /// The relocation table, if the pointer names a collected value log.
    pub(crate) table: Option<&'a RelocationTable>,
}

impl Place<'_> {
    /// The pointer to the value in `file`, the open file of this place.
    #[inline]
    pub(crate) fn pointer_in(&self, file: &ValueFile) -> Result<ValuePointer> {
        match self.table {
            None => Ok(self.pointer),
            Some(table) => file.relocate(table, &self.pointer),
        }
    }

    /// The pointer to the value in the file of this place. `read_buffers` reads the relocation table.
    pub(crate) fn pointer_with(&self, read_buffers: &mut ValueReadBuffers) -> Result<ValuePointer> {
        match self.table {
            None => Ok(self.pointer),
            Some(table) => read_buffers.relocate(&self.file.meta, table, &self.pointer),
        }
    }

    /// The value of `key` at this place.
    pub(crate) fn read<'b>(
        &self,
        read_buffers: &'b mut ValueReadBuffers,
        key: &[u8],
    ) -> Result<&'b [u8]> {
        let pointer = self.pointer_with(read_buffers)?;
        read_buffers.read(&self.file.meta, key, &pointer)
    }
}

impl ValueFiles {
    /// The chunk with the file of this number, and its place there.
    #[inline]
    fn place(&self, number: FileNumber) -> Option<(&FilesChunk, usize)> {
        let chunk = self.ends.partition_point(|end| *end < number);
        let chunk = self.chunks.get(chunk)?;
        Some((chunk, chunk.files.position(number)?))
    }

    /// The file with this number.
    #[inline]
    pub(crate) fn find(&self, number: FileNumber) -> Option<&Shared<ValueHandle>> {
        let (chunk, place) = self.place(number)?;
        chunk.handles.get(place)
    }

    /// The relocation table of `origin`.
    pub(crate) fn table(&self, origin: FileNumber) -> Option<&RelocationTable> {
        Some(&self.relocations.get(&origin)?.table)
    }

    /// The usage of the file with this number.
    pub(crate) fn usage(&self, number: FileNumber) -> Option<Usage> {
        let (chunk, place) = self.place(number)?;
        let file = &chunk.files.values()[place];
        Some(Usage {
            length: file.as_read().length,
            referred: file.referred.bytes,
        })
    }

    /// The value log or GC output with this number, in numbers.
    pub(crate) fn log(&self, number: FileNumber) -> Option<LogSummary> {
        let (chunk, place) = self.place(number)?;
        chunk.log(&chunk.files.values()[place])
    }

    /// The number of chunks.
    pub(crate) fn chunks(&self) -> usize {
        self.chunks.len()
    }

    /// The value logs and GC outputs of a chunk, by number.
    pub(crate) fn logs(&self, chunk: usize) -> impl Iterator<Item = LogSummary> {
        let chunk = self.chunks.get(chunk);
        chunk.into_iter().flat_map(|chunk| chunk.logs())
    }

    /// Sums over these.
    pub(crate) fn log_sums(&self, chunk: usize) -> SummedLogs {
        let chunk = self.chunks.get(chunk);
        chunk.map_or_else(SummedLogs::default, |chunk| chunk.sums.logs)
    }

    /// The files that garbage collection may take, as the manifest describes them.
    pub(crate) fn collectable(&self) -> impl Iterator<Item = &ValueFileState> {
        self.chunks.iter().flat_map(|chunk| chunk.collectable())
    }

    /// Sums over all files.
    pub(crate) fn sums(&self) -> &ValueSums {
        &self.sums
    }

    /// The bytes of transient logs that `table` keeps, garbage included: the table's fraction of all
    /// references to each file.
    pub(crate) fn pinned_bytes(&self, table: &FileMeta) -> u64 {
        let segments = table.segments.iter();
        let segments = segments.filter(|segment| segment.references.transient_files() > 0);
        let transient = segments.flat_map(|it| it.references.transient());
        let pinned = transient.map(|(file, referred)| {
            let usage = self.usage(file).unwrap_or_default();
            usage.pinned_by(referred.bytes)
        });
        pinned.fold(0, u64::saturating_add)
    }

    /// The newest file that a relocation table leads to, or 0: the [generation](crate::table::LogReferences) of
    /// pointers that are resolved here.
    pub(crate) fn generation(&self) -> FileNumber {
        self.generation
    }

    /// The value logs, GC outputs and origins, each with the bytes that tables refer to there; and for an origin, the
    /// file that has its values now.
    pub(crate) fn referred_logs(
        &self,
    ) -> impl Iterator<Item = (FileNumber, u64, Option<FileNumber>)> {
        let files = self.chunks.iter().flat_map(|chunk| chunk.files.values());
        let logs = files.filter(|file| file.kind != ValueFileKind::TransientLog);
        let logs = logs.map(|file| (file.file.number, file.referred.bytes, None));
        let origins = self.relocations.values().map(|it| {
            let table = &it.table;
            (table.origin, it.referred.bytes, Some(table.gc_output))
        });
        logs.chain(origins)
    }

    /// The place of the value that an entry's `pointer` refers to.
    ///
    /// # Errors
    /// `Corruption`: damage that a table's checksums did not find, or a bug.
    #[inline]
    pub(crate) fn resolve(&self, pointer: &[u8]) -> Result<Place<'_>> {
        let pointer = ValuePointer::decode(pointer).map_err(|error| dangling(error.what))?;
        if let Some(file) = self.find(pointer.file) {
            return Ok(Place {
                file,
                pointer,
                table: None,
            });
        }
        self.resolve_relocated(pointer)
    }

    fn resolve_relocated(&self, pointer: ValuePointer) -> Result<Place<'_>> {
        let table = self.table(pointer.file);
        let file = table.and_then(|table| self.find(table.gc_output));
        let file = file.ok_or_else(|| {
            let name = FileName::Values(pointer.file);
            dangling(&format!("{name} is not part of the database"))
        })?;
        Ok(Place {
            file,
            pointer,
            table,
        })
    }

    /// The bytes of the files and the discard lists, except value logs that are not sealed.
    pub(super) fn bytes(&self) -> u64 {
        self.sums.complete_bytes.saturating_add(self.list_bytes)
    }

    /// All files.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Shared<ValueHandle>> {
        self.chunks.iter().flat_map(|chunk| &chunk.handles)
    }

    /// The value files of `keyspace`, after these. It keeps the handles of files that stay, makes new handles, and marks the
    /// handles of files that a durable edit has removed. Costs the files of chunks that have changed, and a step for each
    /// chunk and each discard list.
    pub(super) fn updated(&self, keyspace: &KeyspaceState, obsolete: &Arc<Obsolete>) -> Self {
        let values = &keyspace.values;
        let needs = Needs::of(keyspace);
        let mark_removed = |gone: &Shared<FilesChunk>| {
            for file in &gone.handles {
                if !values.files.contains_key(&file.meta.number) {
                    file.guard.mark();
                }
            }
        };
        let mut known = self.chunks.iter().peekable();
        let mut chunks = Vec::with_capacity(values.files.chunks().len());
        for files in values.files.chunks() {
            while let Some(gone) = known.next_if(|it| it.files.first() < files.first()) {
                mark_removed(gone);
            }
            let before = known.next_if(|it| it.files.first() == files.first());
            if let Some(same) = before.filter(|it| it.is_of(files, needs)) {
                chunks.push(Shared::clone(same));
                continue;
            }
            before.into_iter().for_each(mark_removed);
            let handle = |place: usize, file: &ValueFileState| {
                let number = file.file.number;
                // Mostly at the same place as before.
                let known = before.and_then(|it| it.handles.get(place));
                let known = known.filter(|known| known.meta.number == number);
                value_handle(file, known.or_else(|| self.find(number)), obsolete)
            };
            chunks.push(FilesChunk::new(files, needs, handle));
        }
        known.for_each(mark_removed);
        let sums = chunks.iter().map(|chunk| chunk.sums);
        let lists = values.discard_lists.values();
        Self {
            ends: chunks.iter().map(|chunk| chunk.files.last()).collect(),
            sums: sums.fold(ValueSums::default(), ValueSums::plus),
            chunks,
            relocations: values.relocations.clone(),
            generation: values.newest_relocation().unwrap_or(FileNumber(0)),
            discard_lists: self.updated_lists(keyspace, obsolete),
            list_bytes: lists.fold(0, |bytes, list| bytes.saturating_add(list.length)),
        }
    }

    fn updated_lists(
        &self,
        keyspace: &KeyspaceState,
        obsolete: &Arc<Obsolete>,
    ) -> BTreeMap<FileNumber, Arc<ObsoleteGuard>> {
        let lists = &keyspace.values.discard_lists;
        for (number, guard) in &self.discard_lists {
            if !lists.contains_key(number) {
                guard.mark();
            }
        }
        let list = |&number: &FileNumber| {
            let known = self.discard_lists.get(&number).map(Arc::clone);
            let new = || ObsoleteGuard::new(FileName::DiscardList(number), obsolete);
            (number, known.unwrap_or_else(new))
        };
        lists.keys().map(list).collect()
    }

    /// How many chunks `before` does not have.
    #[cfg(test)]
    pub(super) fn new_chunks(&self, before: &Self) -> usize {
        let is_known = |chunk: &&Shared<FilesChunk>| {
            let mut known = before.chunks.iter();
            known.any(|known| Shared::ptr_eq(known, chunk))
        };
        self.chunks.len() - self.chunks.iter().filter(is_known).count()
    }

    /// Records that the edit that removes all of it is durable.
    pub(super) fn mark_obsolete(&self) {
        for file in self.iter() {
            file.guard.mark();
        }
        for guard in self.discard_lists.values() {
            guard.mark();
        }
    }
}

/// The handle on `file`, which has had the handle `known`: another one if its length has changed.
fn value_handle(
    file: &ValueFileState,
    known: Option<&Shared<ValueHandle>>,
    obsolete: &Arc<Obsolete>,
) -> Shared<ValueHandle> {
    let meta = file.as_read();
    match known {
        Some(known) if known.meta == meta => Shared::clone(known),
        known => Shared::new(ValueHandle {
            meta,
            is_transient: file.kind == ValueFileKind::TransientLog,
            slot: Arc::default(),
            guard: known.map_or_else(
                || ObsoleteGuard::new(FileName::Values(meta.number), obsolete),
                |known| Arc::clone(&known.guard),
            ),
        }),
    }
}

#[cold]
fn dangling(what: &str) -> Error {
    let message = format!("a value pointer is invalid: {what}");
    Error::new(ErrorKind::Corruption, message)
}

//! The value files of a version, and the resolution of pointers.
//!
//! Concurrency: everything is shared freely.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::sync::Shared;
use crate::base::{Error, ErrorKind, FileNumber, Result};
use crate::table::FileMeta;
use crate::value::{RelocationTable, ValueFile, ValuePointer, ValueReadBuffers};

use super::handle::ValueHandle;
use super::names::FileName;
use super::obsolete::{Obsolete, ObsoleteGuard};
use super::values::{ValueFileKind, ValueFileState, ValueState};

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
    files: Vec<Shared<ValueHandle>>,
    /// Of the files and the discard lists, except value logs that are not sealed.
    bytes: u64,
    /// Their numbers, ascending. A search of this array has fewer cache misses than a search of the
    /// handles.
    numbers: Vec<FileNumber>,
    usages: Vec<Usage>,
    /// The relocation tables of collected value logs, ascending by origin.
    tables: Vec<RelocationTable>,
    /// The bytes that tables refer to through each of them.
    relocated: Vec<u64>,
    /// The discard lists, which only jobs read. They exist while a version holds this.
    discard_lists: BTreeMap<FileNumber, Arc<ObsoleteGuard>>,
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
    /// The file with this number.
    #[inline]
    pub(crate) fn find(&self, number: FileNumber) -> Option<&Shared<ValueHandle>> {
        self.files.get(self.position(number)?)
    }

    /// The relocation table of `origin`.
    pub(crate) fn table(&self, origin: FileNumber) -> Option<&RelocationTable> {
        let position = self
            .tables
            .binary_search_by_key(&origin, |table| table.origin);
        self.tables.get(position.ok()?)
    }

    #[inline]
    fn position(&self, number: FileNumber) -> Option<usize> {
        self.numbers.binary_search(&number).ok()
    }

    /// The usage of the file with this number.
    pub(crate) fn usage(&self, number: FileNumber) -> Option<Usage> {
        Some(self.usages[self.position(number)?])
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
        let gc_outputs = self.tables.iter().map(|table| table.gc_output);
        gc_outputs.max().unwrap_or(FileNumber(0))
    }

    /// The value logs, GC outputs and origins, each with the bytes that tables refer to there; and for an origin, the
    /// file that has its values now.
    pub(crate) fn referred_logs(
        &self,
    ) -> impl Iterator<Item = (FileNumber, u64, Option<FileNumber>)> {
        let logs = self.files.iter().zip(&self.usages);
        let logs = logs.filter(|(file, _)| !file.is_transient);
        let logs = logs.map(|(file, usage)| (file.meta.number, usage.referred, None));
        let origins = self.tables.iter().zip(&self.relocated);
        logs.chain(origins.map(|(table, bytes)| (table.origin, *bytes, Some(table.gc_output))))
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
        self.bytes
    }

    /// All files.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &Shared<ValueHandle>> {
        self.files.iter()
    }

    /// The files of `values`. It keeps the handles of `this`, makes new handles, and marks the handles
    /// of files that a durable edit has removed.
    pub(super) fn updated(
        this: &Shared<Self>,
        values: &ValueState,
        obsolete: &Arc<Obsolete>,
    ) -> Shared<Self> {
        let tables = values
            .relocations
            .values()
            .map(|relocation| &relocation.table);
        let relocated = values.relocations.values();
        let relocated = relocated.map(|relocation| relocation.referred.bytes);
        let usage = |file: &ValueFileState| Usage {
            length: file.as_read().length,
            referred: file.referred.bytes,
        };
        let usages = values.files.values().map(usage);
        let is_same = this
            .iter()
            .map(|file| file.meta)
            .eq(values.files.values().map(ValueFileState::as_read))
            && this.usages.iter().copied().eq(usages.clone())
            && this.tables.iter().eq(tables.clone())
            && this.relocated.iter().copied().eq(relocated.clone())
            && this.discard_lists.keys().eq(values.discard_lists.keys());
        if is_same {
            return Shared::clone(this);
        }
        for file in &this.files {
            if !values.files.contains_key(&file.meta.number) {
                file.guard.mark();
            }
        }
        for (number, guard) in &this.discard_lists {
            if !values.discard_lists.contains_key(number) {
                guard.mark();
            }
        }
        let guard = |name: FileName| ObsoleteGuard::new(name, obsolete);
        let handle = |file: &ValueFileState| {
            let meta = file.as_read();
            match this.find(meta.number) {
                Some(known) if known.meta == meta => Shared::clone(known),
                known => Shared::new(ValueHandle {
                    meta,
                    is_transient: file.kind == ValueFileKind::TransientLog,
                    slot: Arc::default(),
                    guard: known.map_or_else(
                        || guard(FileName::Values(meta.number)),
                        |known| Arc::clone(&known.guard),
                    ),
                }),
            }
        };
        let list = |&number: &FileNumber| {
            let known = this.discard_lists.get(&number).map(Arc::clone);
            (
                number,
                known.unwrap_or_else(|| guard(FileName::DiscardList(number))),
            )
        };
        Shared::new(Self {
            files: values.files.values().map(handle).collect(),
            bytes: values.complete_bytes(),
            numbers: values.files.keys().copied().collect(),
            usages: usages.collect(),
            tables: tables.copied().collect(),
            relocated: relocated.collect(),
            discard_lists: values.discard_lists.keys().map(list).collect(),
        })
    }

    /// Records that the edit that removes all of it is durable.
    pub(super) fn mark_obsolete(&self) {
        for file in &self.files {
            file.guard.mark();
        }
        for guard in self.discard_lists.values() {
            guard.mark();
        }
    }
}

#[cold]
fn dangling(what: &str) -> Error {
    let message = format!("a value pointer is invalid: {what}");
    Error::new(ErrorKind::Corruption, message)
}

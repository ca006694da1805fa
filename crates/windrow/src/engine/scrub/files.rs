//! The files that a scrub checks, and the check of one.
//!
//! Tables, complete value logs and GC outputs, discard lists, closed logs and kept logs. The values of transient logs are
//! checked with the tables that point to them, because their checksums need the keys. Files that are being written are left
//! to the pass after they are complete.
//!
//! Concurrency: a step holds the tables and the value files, so they stay until it ends. Nothing holds a log or a discard
//! list.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

use crate::base::sync::Shared;
use crate::base::{Error, FileNumber, Result};
use crate::engine::Engine;
use crate::engine::admin::verify::{check_log, open_passing};
use crate::manifest::names::FileName;
use crate::manifest::{FileHandle, ValueHandle, Version};
use crate::options::BlockSource;
use crate::table::{FileMeta, TAIL_BYTES, Table, TableContext, TableFiles, TableFilters};
use crate::value::{DiscardList, check_checksums, read_discard_list};
use crate::vfs::{PassBytes, Vfs};

/// A file that a scrub checks.
#[derive(Debug, Clone)]
pub(super) enum ScrubFile {
    /// A table, and the version with the value files that it refers to.
    Table(Shared<FileHandle>, Shared<Version>),
    /// A value log or a GC output.
    Values(Shared<ValueHandle>),
    DiscardList(Arc<DiscardList>),
    /// A log that is closed at this length.
    Log(FileNumber, u64),
}

impl ScrubFile {
    pub(super) fn name(&self) -> FileName {
        match self {
            Self::Table(table, _) => FileName::Table(table.meta.number),
            Self::Values(values) => FileName::Values(values.meta.number),
            Self::DiscardList(list) => FileName::DiscardList(list.number),
            Self::Log(number, _) => FileName::Wal(*number),
        }
    }

    pub(super) fn number(&self) -> FileNumber {
        self.name().number().unwrap_or_default()
    }

    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Table(table, _) => table.meta.end(),
            Self::Values(values) => values.meta.end,
            Self::DiscardList(list) => list.length,
            Self::Log(_, length) => *length,
        }
    }
}

/// How a file is checked.
pub(super) struct Way<'a> {
    /// Gets how many bytes more were checked, and says whether to go on.
    pub(super) pass: &'a mut PassBytes<'a>,
    /// Gets what was met in a transient log that the file leads to. An error ends the check.
    pub(super) elsewhere: &'a mut dyn FnMut(Error) -> Result<()>,
}

/// Where a file is read.
pub(super) struct Place<'a> {
    pub(super) vfs: &'a Arc<dyn Vfs>,
    pub(super) directory: &'a Path,
    pub(super) tables: TableContext,
    /// Whether it is the database: then the values of transient logs are checked with the tables.
    pub(super) is_database: bool,
}

impl Engine {
    /// The files that can be checked now.
    pub(super) fn scrub_files(&self) -> Vec<ScrubFile> {
        let mut files = Vec::new();
        for keyspace in self.keyspaces.load().iter() {
            // Under the catalog's lock, so that both have the same edits.
            let (version, lists) = self.catalog.with_state(|manifest| {
                let recorded = manifest.keyspaces.get(&keyspace.id());
                let lists = recorded.map(|it| it.values.discard_lists.clone());
                let version = Shared::clone(&keyspace.state_full().version);
                (version, lists.unwrap_or_default())
            });
            for level in version.levels() {
                for table in level.files() {
                    let version = Shared::clone(&version);
                    files.push(ScrubFile::Table(Shared::clone(table), version));
                }
            }
            for values in version.values().iter() {
                if !values.is_transient && !values.meta.is_growing() {
                    files.push(ScrubFile::Values(Shared::clone(values)));
                }
            }
            files.extend(lists.into_values().map(ScrubFile::DiscardList));
        }
        let mut closed = self.chain.lengths();
        closed.pop();
        let kept = self.catalog.with_state(|state| {
            let kept = state.changes.kept_logs.iter();
            kept.map(|(number, log)| (*number, log.length))
                .collect::<Vec<_>>()
        });
        let logs = closed.into_iter().chain(kept);
        files.extend(logs.map(|(number, length)| ScrubFile::Log(number, length)));
        files
    }

    /// The files of the database.
    pub(super) fn own_place(&self) -> Place<'_> {
        Place {
            vfs: &self.options.vfs,
            directory: &self.directory,
            tables: self.tables.context().clone(),
            is_database: true,
        }
    }

    /// Copies of its files in another place.
    pub(super) fn place_in<'a>(&self, vfs: &'a Arc<dyn Vfs>, directory: &'a Path) -> Place<'a> {
        let mut tables = self.tables.context().clone();
        let (own, folder) = (Arc::clone(vfs), directory.to_owned());
        tables.files = Arc::new(TableFiles::new(own, folder, BlockSource::Buffered, 1));
        Place {
            vfs,
            directory,
            tables,
            is_database: false,
        }
    }

    /// Checks `file` in `place` from `offset` on, as long as `way.pass` wants it. Returns the offset to go on from;
    /// `None` at the end.
    ///
    /// # Errors
    /// The first damage of the file; `Io`; those of `way`.
    pub(super) fn check_file(
        &self,
        file: &ScrubFile,
        place: &Place<'_>,
        offset: u64,
        way: &mut Way<'_>,
    ) -> Result<Option<u64>> {
        let folder = (&**place.vfs, place.directory);
        let pass = &mut way.pass;
        match file {
            ScrubFile::Table(table, version) => {
                self.check_table_from(&table.meta, version, place, (offset, way))
            }
            ScrubFile::Values(values) => check_checksums(folder, &values.meta, offset, pass),
            ScrubFile::DiscardList(list) => {
                read_discard_list(folder.0, folder.1, list, |_, _| Ok(()))?;
                pass(list.length).map(|_| None)
            }
            ScrubFile::Log(number, length) => check_log(folder, (*number, *length), offset, pass),
        }
    }

    fn check_table_from(
        &self,
        meta: &FileMeta,
        version: &Version,
        place: &Place<'_>,
        (offset, way): (u64, &mut Way<'_>),
    ) -> Result<Option<u64>> {
        let Way { pass, elsewhere } = way;
        // An open reads all metadata but index partitions and lists. The first step of a file checks them; later ones read the
        // ends of the segments again.
        let filters = TableFilters {
            are_whole: offset == 0,
            ..TableFilters::WHOLE
        };
        let open = || Table::open(meta, place.tables.clone(), filters, None).map(Arc::new);
        let folder = (&**place.vfs, place.directory);
        let (table, _metadata) = open_passing(folder, meta, open)?;
        let lengths = table.metadata(meta).map(|range| range.end - range.start);
        let bytes_max = if offset == 0 { u64::MAX } else { TAIL_BYTES };
        pass(lengths.map(|length| length.min(bytes_max)).sum())?;
        let mut values = self.value_read_buffers();
        let value_bytes = Cell::new(0);
        let mut check_value = |key: &[u8], pointer: &[u8]| {
            if !place.is_database {
                return Ok(());
            }
            self.check_cancelled()?;
            let found = version.values().resolve(pointer)?;
            value_bytes.set(value_bytes.get() + found.pointer.record_bytes);
            let read = found.read(&mut values, key).map(drop);
            read.or_else(&mut *elsewhere)
        };
        let mut pass = |block_bytes: u64| pass(block_bytes + value_bytes.take());
        table.check_checksums(offset, &mut pass, &mut check_value)
    }
}

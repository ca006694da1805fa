//! The files that a scrub checks, and the check of one.
//!
//! Tables, complete value logs and GC outputs, discard lists, closed logs and kept logs. The values of transient logs are
//! checked with the tables that point to them, because their checksums need the keys. Files that are being written are left
//! to the pass after they are complete.
//!
//! Concurrency: a check holds its table or value file, and the value files that the table refers to, so they stay until the step
//! ends. Nothing holds a log or a discard list.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

use crate::base::sync::Shared;
use crate::base::{Error, FileNumber, Result};
use crate::engine::Engine;
use crate::log::LogReader;
use crate::manifest::names::FileName;
use crate::manifest::{FileHandle, ValueHandle, Version};
use crate::options::BlockSource;
use crate::table::{FileMeta, PassBytes, Table, TableContext, TableFiles, TableFilters};
use crate::value::{DiscardList, check_checksums, read_discard_list};
use crate::vfs::{Footprint, OpenMode, Vfs};

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

/// Where a file is read.
pub(super) struct Place<'a> {
    pub(super) vfs: &'a Arc<dyn Vfs>,
    pub(super) directory: &'a Path,
    pub(super) tables: TableContext,
    /// Whether it is the database: then the values of transient logs are checked with the tables.
    pub(super) is_database: bool,
}

impl Engine {
    /// Gives each file that can be checked now to `take`.
    pub(super) fn each_scrub_file(&self, take: &mut dyn FnMut(ScrubFile)) {
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
                    take(ScrubFile::Table(
                        Shared::clone(table),
                        Shared::clone(&version),
                    ));
                }
            }
            for values in version.values().iter() {
                if !values.is_transient && !values.meta.is_growing() {
                    take(ScrubFile::Values(Shared::clone(values)));
                }
            }
            for list in lists.into_values() {
                take(ScrubFile::DiscardList(list));
            }
        }
        let mut closed = self.chain.lengths();
        closed.pop();
        let kept = self.catalog.with_state(|state| {
            let kept = state.changes.kept_logs.iter();
            kept.map(|(number, log)| (*number, log.length))
                .collect::<Vec<_>>()
        });
        for (number, length) in closed.into_iter().chain(kept) {
            take(ScrubFile::Log(number, length));
        }
    }

    /// The file of this number, if it can be checked now.
    pub(super) fn scrub_file(&self, number: FileNumber) -> Option<ScrubFile> {
        let mut found = None;
        self.each_scrub_file(&mut |file| {
            if file.number() == number {
                found = Some(file);
            }
        });
        found
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

    /// Checks `file` in `place` from `offset` on, as long as `pass` wants it. Returns the offset to go on from; `None` at the
    /// end.
    ///
    /// # Errors
    /// The first damage; `Io`; those of `pass`.
    pub(super) fn check_file(
        &self,
        file: &ScrubFile,
        place: &Place<'_>,
        offset: u64,
        pass: &mut PassBytes<'_>,
    ) -> Result<Option<u64>> {
        let folder = (&**place.vfs, place.directory);
        match file {
            ScrubFile::Table(table, version) => {
                self.check_table_from(&table.meta, version, place, (offset, pass))
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
        (offset, pass): (u64, &mut PassBytes<'_>),
    ) -> Result<Option<u64>> {
        // An open reads all metadata but index partitions and lists. The first step of a file checks them.
        let filters = if offset == 0 {
            TableFilters::WHOLE
        } else {
            TableFilters {
                are_whole: false,
                ..TableFilters::WHOLE
            }
        };
        let path = place
            .directory
            .join(FileName::Table(meta.number).to_string());
        let file = place.vfs.open(&path, OpenMode::Read).ok();
        let mut metadata = file.map(Footprint::new);
        if let Some(metadata) = &mut metadata {
            metadata.note(0..meta.end());
        }
        let table = Arc::new(Table::open(meta, place.tables.clone(), filters, None)?);
        let mut metadata_bytes = 0;
        for range in table.metadata(meta) {
            metadata_bytes += range.end - range.start;
            if let Some(metadata) = &mut metadata {
                metadata.touch(range);
            }
        }
        if offset == 0 {
            pass(metadata_bytes)?;
        }
        let mut values = self.value_read_buffers();
        let value_bytes = Cell::new(0);
        let mut check_value = |key: &[u8], pointer: &[u8]| {
            if !place.is_database {
                return Ok(());
            }
            let found = version.values().resolve(pointer)?;
            value_bytes.set(value_bytes.get() + found.pointer.record_bytes);
            found.read(&mut values, key).map(drop)
        };
        let mut pass = |block_bytes: u64| pass(block_bytes + value_bytes.take());
        table.check_checksums(offset, &mut pass, &mut check_value)
    }
}

/// Checks the log of this number, closed at this length, as [`Engine::check_file`] does.
fn check_log(
    (vfs, directory): (&dyn Vfs, &Path),
    (number, length): (FileNumber, u64),
    offset: u64,
    pass: &mut PassBytes<'_>,
) -> Result<Option<u64>> {
    let name = FileName::Wal(number).to_string();
    let mut reader = LogReader::open(vfs, directory, &name, number, None)?;
    reader.extend_to(length)?;
    reader.move_to(offset);
    while let Some(record) = reader.next()? {
        let (bytes, end) = (record.end - record.offset, record.end);
        if !pass(bytes)? {
            return Ok(Some(end));
        }
    }
    if reader.is_at_end() {
        return Ok(None);
    }
    let what = "a record that was committed is damaged or missing";
    Err(Error::corruption(&name, reader.position(), what))
}

//! The ingestion of external tables: it checks files, gives them names in the folder of the database, and adds them.
//!
//! A file is linked, or copied if the file system cannot link, and its bytes stay as they are: the manifest has what is
//! different in this database, its number and the sequence number of its entries. It is sealed, since others may use the
//! same bytes.
//!
//! I1. A file is checked under its name in the folder, so what is added is what was checked.
//!
//! Concurrency: the calling thread works; it counts as a job, so a close waits for it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::tables::NewTables;
use crate::base::{Error, FileNumber, Result};
use crate::compact::pending_files::PendingFiles;
use crate::engine::copies::link_or_copy;
use crate::engine::counters;
use crate::engine::{Engine, KeyspaceCore};
use crate::manifest::ReferenceChanges;
use crate::manifest::names::FileName;
use crate::options::FileCheck;
use crate::table::{FileMeta, Table, TableFilters, read_external};
use crate::vfs::OpenMode;

impl Engine {
    /// Adds each table file to its keyspace, all in one step, or none after an error. Returns the number of their
    /// entries.
    ///
    /// # Errors
    /// `InvalidArgument` if a file is no external table, if two files for one keyspace overlap, or if entries expire that are
    /// for a keyspace with a merge operator; `Corruption` and
    /// `Unsupported`; `Io`; `NoSpace`; `NotFound` if a keyspace was dropped; `Closed`; `ReadOnly`: nothing was added.
    /// `Poisoned`, or the error that poisoned the database: a reopen shows whether the files count.
    pub(crate) fn ingest(
        &self,
        files: Vec<(Arc<KeyspaceCore>, PathBuf)>,
        check: FileCheck,
    ) -> Result<u64> {
        self.check_writable()?;
        let Some(running) = self.signal.begin_job() else {
            return Err(Error::closed());
        };
        let mut pending = PendingFiles::adopt(self, Vec::new());
        let mut new: Vec<NewTables> = Vec::new();
        for (keyspace, path) in files {
            self.check_needed(&keyspace)?;
            let table = self.take_file(&path, check, &mut pending);
            let table = table.map_err(|error| error.with_next_step("write the file again"))?;
            if table.expiring_entries() > 0 {
                keyspace.check_expiring()?;
            }
            match new
                .iter_mut()
                .find(|it| Arc::ptr_eq(&it.keyspace, &keyspace))
            {
                Some(added) => added.tables.push(table),
                None => new.push(NewTables {
                    keyspace,
                    tables: vec![table],
                    transient_logs: Vec::new(),
                    value_logs: Vec::new(),
                    discard_lists: Vec::new(),
                    references: ReferenceChanges::default(),
                }),
            }
        }
        if new.is_empty() {
            running.end_unchanged();
            return Ok(0);
        }
        new.sort_by_key(|added| added.keyspace.id());
        for added in &mut new {
            added
                .tables
                .sort_by(|left, right| left.range().cmp(&right.range()));
            check_disjoint(&added.tables)?;
        }
        self.sync_directory()?;
        self.add_tables(&new, pending)?;
        let tables = || new.iter().flat_map(|added| &added.tables);
        let entries = tables().map(FileMeta::entries).sum();
        let counters = &self.counters;
        counters::add(&counters.user_writes, entries);
        counters::add(
            &counters.user_bytes,
            tables().map(FileMeta::logical_bytes).sum(),
        );
        counters::add(&counters.ingestions, 1);
        Ok(entries)
    }

    /// Gives the file at `path` a name in the folder, and checks it there (I1).
    fn take_file(
        &self,
        path: &Path,
        check: FileCheck,
        pending: &mut PendingFiles<'_>,
    ) -> Result<FileMeta> {
        let vfs = &*self.options.vfs;
        let number = FileNumber(self.catalog.allocate()?);
        let open = |path: &Path| {
            let file = vfs.open(path, OpenMode::Read);
            file.map_err(|error| Error::io("open", path, error))
        };
        let shown = path.display().to_string();
        // Before anything is linked or copied.
        let meta = read_external(&*open(path)?, &shown, number)?;
        let own = self.directory.join(FileName::Table(number).to_string());
        pending.add(FileName::Table(number));
        link_or_copy(vfs, path, meta.end(), &own)?;
        let file = open(&own)?;
        // Whoever wrote it may not have made it durable.
        file.sync_data()
            .map_err(|error| Error::io("sync", path, error))?;
        let meta = read_external(&*file, &shown, number)?;
        drop(file);
        let named = |error: Error| error.context(format!("table file {shown}"));
        if check == FileCheck::Whole {
            self.check_table(&meta).map_err(named)?;
        }
        Ok(meta)
    }

    /// Reads the whole table that `meta` describes.
    fn check_table(&self, meta: &FileMeta) -> Result<()> {
        let context = self.tables.context().clone();
        let table = Arc::new(Table::open(meta, context, TableFilters::WHOLE, None)?);
        let mut damage = Vec::new();
        let name = table.name.clone();
        let mut no_values = |_: &[u8], _: &[u8]| {
            let what = "an external table points to a value file";
            Err(Error::corruption(&name, 0, what))
        };
        table.verify(&mut damage, &mut no_values)?;
        damage.into_iter().next().map_or(Ok(()), Err)
    }
}

/// # Errors
/// `InvalidArgument` if two of the sorted `tables` overlap.
fn check_disjoint(tables: &[FileMeta]) -> Result<()> {
    for pair in tables.windows(2) {
        let (left, right) = (pair[0].range(), pair[1].range());
        if left.1 >= right.0 {
            return Err(Error::invalid_argument(format!(
                "two table files for one keyspace overlap: \"{}\" to \"{}\", and \"{}\" to \"{}\"",
                left.0.escape_ascii(),
                left.1.escape_ascii(),
                right.0.escape_ascii(),
                right.1.escape_ascii()
            )));
        }
    }
    Ok(())
}

//! The files that a job has created and no manifest edit names yet.
//!
//! I1. If a job fails, its new files are removed and its appended bytes are cut off. The next open
//!     removes a file that cannot be removed now. The next append overwrites bytes that cannot be cut
//!     off now.

use std::fmt;

use super::job::JobContext;
use crate::base::{Error, ErrorKind, FileNumber, Result};
use crate::manifest::names::FileName;
use crate::table::truncate_table;
use crate::value::{DiscardListWriter, ValueWriter};

/// A change of a job on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PendingFile {
    New(FileName),
    /// A table file with appended bytes behind this offset.
    Appended(FileNumber, u64),
}

/// The files that a job has created or appended to. A drop undoes the changes (I1), while the job still
/// has its claim.
pub(crate) struct PendingFiles<'a> {
    context: &'a dyn JobContext,
    files: Vec<PendingFile>,
}

impl<'a> PendingFiles<'a> {
    /// Takes over the files that subcompactions have [released](Self::release).
    pub(crate) fn adopt(context: &'a dyn JobContext, files: Vec<PendingFile>) -> Self {
        Self { context, files }
    }

    /// Gives up the files without removing them.
    pub(crate) fn release(mut self) -> Vec<PendingFile> {
        std::mem::take(&mut self.files)
    }

    pub(super) fn context(&self) -> &'a dyn JobContext {
        self.context
    }

    pub(super) fn has_new_files(&self) -> bool {
        let is_new = |file: &PendingFile| matches!(file, PendingFile::New(_));
        self.files.iter().any(is_new)
    }

    /// Adds a new file.
    pub(crate) fn add(&mut self, file: FileName) {
        self.files.push(PendingFile::New(file));
    }

    /// Adds the appended bytes behind `end` of table file `number`.
    pub(super) fn add_append(&mut self, number: FileNumber, end: u64) {
        self.files.push(PendingFile::Appended(number, end));
    }

    /// Creates a value file.
    pub(super) fn create_value_file(&mut self) -> Result<ValueWriter> {
        let context = self.context;
        let number = FileNumber(context.allocate_id()?);
        let writer = ValueWriter::create(context.vfs(), context.directory(), number)?;
        self.add(FileName::Values(number));
        Ok(writer)
    }

    /// Creates a discard list.
    pub(super) fn create_discard_list(&mut self) -> Result<DiscardListWriter> {
        let context = self.context;
        let number = FileNumber(context.allocate_id()?);
        let list = DiscardListWriter::create(context.vfs(), context.directory(), number)?;
        self.add(FileName::DiscardList(number));
        Ok(list)
    }

    /// Commits `edit`, which names all files. The files stay if the edit is or may be durable: also after
    /// a panic, and after every error except those that leave the manifest unchanged.
    pub(crate) fn commit<R>(mut self, edit: impl FnOnce() -> Result<R>) -> Result<R> {
        let files = std::mem::take(&mut self.files);
        let outcome = edit();
        let is_refused = |error: &Error| {
            let kind = error.kind();
            // `NotFound`: the keyspace was dropped.
            matches!(
                kind,
                ErrorKind::NoSpace | ErrorKind::Closed | ErrorKind::NotFound
            )
        };
        if outcome.as_ref().is_err_and(is_refused) {
            self.files = files;
        }
        outcome
    }
}

impl Drop for PendingFiles<'_> {
    fn drop(&mut self) {
        let (vfs, directory) = (self.context.vfs(), self.context.directory());
        for file in &self.files {
            match file {
                PendingFile::New(file) => drop(vfs.remove(&directory.join(file.to_string()))),
                PendingFile::Appended(number, end) => {
                    drop(truncate_table(vfs, directory, *number, *end));
                }
            }
        }
    }
}

impl fmt::Debug for PendingFiles<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PendingFiles").field(&self.files).finish()
    }
}

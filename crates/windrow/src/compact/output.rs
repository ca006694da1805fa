//! Where flushes and merges write: tables cut to size.
//!
//! Invariants:
//! - I1: All versions of a user key go to one file, so files of a level stay disjoint.
//! - I2: Every attempt takes file numbers and segment ids that were never used before.
//! - I3: A file is complete and durable, and its name too, before [`Output::finish`] returns it.
//!
//! Concurrency: owned by one job.

use std::path::Path;

use crate::base::{Error, FileNumber, Result, SegmentId, Trailer};
use crate::policy::OutputCutter;
use crate::table::{FileMeta, TableOptions, TableWriter, file_name};
use crate::vfs::Vfs;

/// What a job needs from the engine.
pub(crate) trait JobContext {
    /// The file system.
    fn vfs(&self) -> &dyn Vfs;
    /// The folder of the database.
    fn directory(&self) -> &Path;
    /// A number that was never used.
    fn allocate_id(&self) -> Result<u64>;
    /// Fails when the job is to be abandoned.
    fn check_cancelled(&self) -> Result<()>;
}

/// Writes ascending entries into as many tables as they need.
pub(crate) struct Output<'a> {
    context: &'a dyn JobContext,
    options: TableOptions,
    /// Where one file ends and the next begins; without it there is one file.
    cutter: Option<OutputCutter<&'a [u8]>>,
    writer: Option<TableWriter>,
    finished: Vec<FileMeta>,
    /// Every file that was created, finished or not.
    created: Vec<FileNumber>,
    entries: u64,
}

impl<'a> Output<'a> {
    pub(crate) fn new(
        context: &'a dyn JobContext,
        options: TableOptions,
        cutter: Option<OutputCutter<&'a [u8]>>,
    ) -> Self {
        Self {
            context,
            options,
            cutter,
            writer: None,
            finished: Vec::new(),
            created: Vec::new(),
            entries: 0,
        }
    }

    /// Tells that the entries from here on are versions of `key`, greater than any before it (I1).
    pub(crate) fn begin_key(&mut self, key: &[u8]) -> Result<()> {
        let (Some(writer), Some(cutter)) = (&self.writer, &mut self.cutter) else {
            return Ok(());
        };
        if cutter.ends_before(key, writer.bytes_written_so_far()) {
            self.close_file()?;
            self.context.check_cancelled()?;
        }
        Ok(())
    }

    /// Appends an entry of the key that was begun last.
    pub(crate) fn add(&mut self, key: &[u8], trailer: Trailer, value: &[u8]) -> Result<()> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => self.writer.insert(Self::open_file(
                self.context,
                &self.options,
                &mut self.created,
            )?),
        };
        writer.add(key, trailer, value)?;
        self.entries += 1;
        Ok(())
    }

    /// How many entries were added.
    pub(crate) fn entries(&self) -> u64 {
        self.entries
    }

    /// Completes the last file and makes all of them durable.
    pub(crate) fn finish(mut self) -> Result<Vec<FileMeta>> {
        self.close_file()?;
        if !self.created.is_empty() {
            let directory = self.context.directory();
            self.context
                .vfs()
                .sync_dir(directory)
                .map_err(|error| Error::io("sync", directory, error))?;
        }
        self.created.clear();
        Ok(std::mem::take(&mut self.finished))
    }

    fn open_file(
        context: &dyn JobContext,
        options: &TableOptions,
        created: &mut Vec<FileNumber>,
    ) -> Result<TableWriter> {
        let number = FileNumber(context.allocate_id()?);
        let segment = SegmentId(context.allocate_id()?);
        created.push(number);
        TableWriter::create(context.vfs(), context.directory(), number, segment, options)
    }

    fn close_file(&mut self) -> Result<()> {
        if let Some(writer) = self.writer.take() {
            self.finished.push(writer.finish()?);
        }
        Ok(())
    }
}

impl Drop for Output<'_> {
    /// Removes the files of a job that was given up. What cannot be removed now is removed when the
    /// database is opened next.
    fn drop(&mut self) {
        self.writer = None;
        for number in &self.created {
            let path = self.context.directory().join(file_name(*number));
            drop(self.context.vfs().remove(&path));
        }
    }
}

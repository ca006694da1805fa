//! Where flushes and merges write: tables cut to size.
//!
//! Invariants:
//! - I1: All versions of a user key go to one file, so files of a level stay disjoint.
//! - I2: Every attempt takes file numbers and segment ids that were never used before.
//! - I3: A file is complete and durable, and its name too, before [`Output::finish`] returns it.
//!
//! Concurrency: owned by one job.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::base::{Account, Error, ErrorKind, FileNumber, Held, Result, SegmentId, Trailer};
use crate::policy::OutputCutter;
use crate::table::{FileMeta, TableOptions, TableWriter, file_name};
use crate::vfs::Vfs;

/// What a job writes for, in the order of urgency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum IoClass {
    /// A memtable: writers wait for its memory.
    Flush,
    /// Runs of level 0: reads wait for there to be fewer.
    Level0,
    /// Deeper levels.
    Merge,
}

/// A job is paced each time it has written so many bytes, and for the rest at its end.
const PACE_BYTES: u64 = 256 << 10;

/// A job that does not write looks whether it is still wanted each time it has passed so many keys.
const KEYS_PER_LOOK: u64 = 4096;

/// Fails once nobody wants what a job does, with the reason.
pub(crate) type Wanted<'a> = &'a dyn Fn() -> Result<()>;

/// What a job needs from the engine.
pub(crate) trait JobContext {
    /// The file system.
    fn vfs(&self) -> &dyn Vfs;
    /// The folder of the database.
    fn directory(&self) -> &Path;
    /// A number that was never used.
    fn allocate_id(&self) -> Result<u64>;
    /// Makes the names in the folder durable.
    fn sync_directory(&self) -> Result<()>;
    /// Waits until a job of `class` may write `bytes` more, or fails as `wanted` does.
    fn pace(&self, class: IoClass, bytes: u64, wanted: Wanted<'_>) -> Result<()>;
    /// Where the buffers of jobs are counted.
    fn memory(&self) -> &Arc<Account>;
}

/// Writes ascending entries into as many tables as they need.
pub(crate) struct Output<'a, 'keys> {
    context: &'a dyn JobContext,
    wanted: Wanted<'keys>,
    class: IoClass,
    /// Keys that were begun.
    keys: u64,
    /// Entry bytes that were added since the job was paced.
    unpaced: u64,
    options: TableOptions,
    /// Where one file ends and the next begins; without it there is one file.
    cutter: Option<OutputCutter<&'keys [u8]>>,
    writer: Option<TableWriter>,
    finished: Vec<FileMeta>,
    /// Every file, finished or not; dropped after its writer.
    created: Created<'a>,
    entries: u64,
    /// What the writer holds in memory.
    held: Held,
}

impl<'a, 'keys> Output<'a, 'keys> {
    pub(crate) fn new(
        context: &'a dyn JobContext,
        wanted: Wanted<'keys>,
        class: IoClass,
        options: TableOptions,
        cutter: Option<OutputCutter<&'keys [u8]>>,
    ) -> Self {
        Self {
            context,
            wanted,
            class,
            keys: 0,
            unpaced: 0,
            options,
            cutter,
            writer: None,
            finished: Vec::new(),
            created: Created {
                context,
                numbers: Vec::new(),
            },
            entries: 0,
            held: Held::new(context.memory(), 0),
        }
    }

    /// Tells that the entries from here on are versions of `key`, greater than any before it (I1).
    pub(crate) fn begin_key(&mut self, key: &[u8]) -> Result<()> {
        self.keys += 1;
        if self.keys.is_multiple_of(KEYS_PER_LOOK) {
            (self.wanted)()?;
        }
        let (Some(writer), Some(cutter)) = (&self.writer, &mut self.cutter) else {
            return Ok(());
        };
        if cutter.ends_before(key, writer.bytes_written_so_far()) {
            self.close_file()?;
            (self.wanted)()?;
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
                &mut self.created.numbers,
            )?),
        };
        writer.add(key, trailer, value)?;
        self.held.grow_to(writer.memory_bytes());
        self.entries += 1;
        self.unpaced += (key.len() + value.len()) as u64;
        if self.unpaced >= PACE_BYTES {
            self.pace()?;
        }
        Ok(())
    }

    fn pace(&mut self) -> Result<()> {
        self.context.pace(self.class, self.unpaced, self.wanted)?;
        self.unpaced = 0;
        Ok(())
    }

    /// How many entries were added.
    pub(crate) fn entries(&self) -> u64 {
        self.entries
    }

    /// Completes the last file and makes all of them durable. They are removed again unless what is
    /// returned with them is told to keep them.
    pub(crate) fn finish(mut self) -> Result<(Vec<FileMeta>, Created<'a>)> {
        self.close_file()?;
        self.pace()?;
        if !self.created.numbers.is_empty() {
            self.context.sync_directory()?;
        }
        Ok((self.finished, self.created))
    }

    fn open_file(
        context: &dyn JobContext,
        options: &TableOptions,
        created: &mut Vec<FileNumber>,
    ) -> Result<TableWriter> {
        let number = FileNumber(context.allocate_id()?);
        let segment = SegmentId(context.allocate_id()?);
        let (vfs, directory) = (context.vfs(), context.directory());
        let writer = TableWriter::create(vfs, directory, number, segment, options)?;
        created.push(number);
        Ok(writer)
    }

    fn close_file(&mut self) -> Result<()> {
        if let Some(writer) = self.writer.take() {
            self.finished.push(writer.finish()?);
            self.held.set(0);
        }
        Ok(())
    }
}

/// Files of a job that no manifest names yet. Dropping it removes them; what cannot be removed now is
/// removed when the database is opened next.
pub(crate) struct Created<'a> {
    context: &'a dyn JobContext,
    numbers: Vec<FileNumber>,
}

impl<'a> Created<'a> {
    /// Files `numbers`, which parts of a merge have [released](Self::release).
    pub(crate) fn adopt(context: &'a dyn JobContext, numbers: Vec<FileNumber>) -> Self {
        Self { context, numbers }
    }

    /// Gives the files to whoever adopts them.
    pub(crate) fn release(mut self) -> Vec<FileNumber> {
        std::mem::take(&mut self.numbers)
    }

    /// Carries out `edit`, which names the files. They stay if it counts or may count: always, after
    /// a panic too, but where it failed without a trace.
    pub(crate) fn name_by<R>(mut self, edit: impl FnOnce() -> Result<R>) -> Result<R> {
        let numbers = std::mem::take(&mut self.numbers);
        let outcome = edit();
        let is_refused = |error: &Error| {
            let kind = error.kind();
            // Not found: the keyspace was dropped meanwhile.
            matches!(
                kind,
                ErrorKind::NoSpace | ErrorKind::Closed | ErrorKind::NotFound
            )
        };
        if outcome.as_ref().is_err_and(is_refused) {
            self.numbers = numbers;
        }
        outcome
    }
}

impl Drop for Created<'_> {
    fn drop(&mut self) {
        for number in &self.numbers {
            let path = self.context.directory().join(file_name(*number));
            drop(self.context.vfs().remove(&path));
        }
    }
}

impl fmt::Debug for Created<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Created").field(&self.numbers).finish()
    }
}

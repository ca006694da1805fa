//! Where flushes and merges write: new tables cut to size, and segments that are appended.
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

use super::values::Values;
use crate::base::sync::Shared;
use crate::base::{
    Error, ErrorKind, FileNumber, Held, MemoryTracker, Result, SegmentId, SequenceNumber, Trailer,
};
use crate::filter::FILTER_UNITS_MAX;
use crate::manifest::FileHandle;
use crate::manifest::names::FileName;
use crate::policy::{OutputCutter, cut_bytes};
use crate::table::{FileMeta, OpenTables, TableOptions, TableWriter, truncate_table};
use crate::value::{DiscardList, DiscardListWriter, ValueFileMeta, ValuePointer};
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
const RATE_LIMITED_BYTES: u64 = 256 << 10;

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
    fn rate_limiter(&self, class: IoClass, bytes: u64, wanted: Wanted<'_>) -> Result<()>;
    /// Where the buffers of jobs are counted.
    fn memory(&self) -> &Arc<MemoryTracker>;
}

/// The files that a merge appends to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Targets<'a> {
    pub(crate) files: &'a [Shared<FileHandle>],
    pub(crate) tables: &'a OpenTables,
    /// Bits per key of each filter unit of what is appended.
    pub(crate) filter_units: [f64; FILTER_UNITS_MAX],
}

/// What a job has written, all of it durable.
#[derive(Debug)]
pub(crate) struct Written<'a> {
    pub(crate) tables: Vec<FileMeta>,
    /// Files that were there, each with one more segment.
    pub(crate) grown: Vec<FileMeta>,
    /// Files of transient logs.
    pub(crate) transient_logs: Vec<ValueFileMeta>,
    /// Lists of values that nothing points to any more.
    pub(crate) garbage: Vec<DiscardList>,
    /// Removes all that unless it comes to be named by the manifest.
    pub(crate) created: Created<'a>,
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
    targets: Option<Targets<'keys>>,
    /// The file that entries are appended to, where it is not a new one.
    target: Option<FileNumber>,
    writer: Option<TableWriter>,
    finished: Vec<FileMeta>,
    grown: Vec<FileMeta>,
    /// What becomes of values.
    values: Values,
    /// Names what dropped entries pointed to in value logs.
    garbage: Option<DiscardListWriter>,
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
        values: Values,
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
            targets: None,
            target: None,
            writer: None,
            finished: Vec::new(),
            grown: Vec::new(),
            values,
            garbage: None,
            created: Created {
                context,
                traces: Vec::new(),
            },
            entries: 0,
            held: Held::new(context.memory(), 0),
        }
    }

    /// Appends to `targets` what the cutter names them for.
    pub(crate) fn appending_to(mut self, targets: Targets<'keys>) -> Self {
        self.targets = Some(targets);
        self
    }

    /// Tells that the entries from here on are versions of `key`, greater than any before it (I1).
    pub(crate) fn begin_key(&mut self, key: &[u8]) -> Result<()> {
        self.keys += 1;
        if self.keys.is_multiple_of(KEYS_PER_LOOK) {
            (self.wanted)()?;
        }
        let Some(cutter) = &mut self.cutter else {
            return Ok(());
        };
        let held = |writer: &TableWriter| {
            cut_bytes(writer.bytes_written_so_far(), writer.transient_bytes())
        };
        let place = cutter.place(key, self.writer.as_ref().map_or(0, held));
        if place.begins {
            self.close_file()?;
            (self.wanted)()?;
        }
        self.target = place.target;
        Ok(())
    }

    /// Appends an entry of the key that was begun last.
    pub(crate) fn add(&mut self, key: &[u8], trailer: Trailer, value: &[u8]) -> Result<()> {
        let before = self.values.bytes_written();
        let (trailer, value) = self.values.place(&mut self.created, key, trailer, value)?;
        if self.writer.is_none() {
            self.writer = Some(match (self.target, self.targets) {
                (None, _) => Self::open_file(&self.options, &mut self.created)?,
                (Some(target), Some(targets)) => {
                    targets.open(target, &self.options, &mut self.created)?
                }
                (Some(_), None) => unreachable!("only a merge with targets names one"),
            });
        }
        let Some(writer) = &mut self.writer else {
            unreachable!("a writer was opened just now")
        };
        writer.add(key, trailer, value)?;
        self.entries += 1;
        self.unpaced += (key.len() + value.len()) as u64;
        self.unpaced += self.values.bytes_written() - before;
        let garbage = self
            .garbage
            .as_ref()
            .map_or(0, DiscardListWriter::memory_bytes);
        let held = writer.memory_bytes() + self.values.memory_bytes() + garbage;
        self.held.grow_to(held);
        if self.unpaced >= RATE_LIMITED_BYTES {
            self.rate_limiter()?;
        }
        Ok(())
    }

    /// An entry with this pointer into a value log is not written again.
    pub(crate) fn note_discarded(&mut self, pointer: &[u8]) -> Result<()> {
        let pointer = ValuePointer::decode(pointer)
            .map_err(|error| error.in_file("an entry that was dropped", 0))?;
        let list = match &mut self.garbage {
            Some(list) => list,
            None => self.garbage.insert(open_discard_list(&mut self.created)?),
        };
        list.add(pointer.file, pointer.offset)
    }

    /// Writes the value of an entry that will be added, ahead of it; for ascending sequence numbers.
    pub(super) fn write_ahead(
        &mut self,
        key: &[u8],
        sequence: SequenceNumber,
        value: &[u8],
    ) -> Result<()> {
        let created = &mut self.created;
        self.values.write_ahead(created, key, sequence, value)?;
        self.held.grow_to(self.values.memory_bytes());
        Ok(())
    }

    fn rate_limiter(&mut self) -> Result<()> {
        self.context
            .rate_limiter(self.class, self.unpaced, self.wanted)?;
        self.unpaced = 0;
        Ok(())
    }

    /// How many entries were added.
    pub(crate) fn entries(&self) -> u64 {
        self.entries
    }

    /// Bytes of transient logs that were read for values, and of the tables that lead pointers on.
    pub(crate) fn transient_log_bytes_read(&self) -> u64 {
        self.values.bytes_read()
    }

    /// Completes the last file and makes all of them durable. They are removed again unless what is
    /// returned with them is told to keep them.
    pub(crate) fn finish(mut self) -> Result<Written<'a>> {
        self.close_file()?;
        self.rate_limiter()?;
        let transient_logs = self.values.finish()?;
        let garbage = self.garbage.map(DiscardListWriter::finish).transpose()?;
        if self.created.has_files() {
            self.context.sync_directory()?;
        }
        Ok(Written {
            tables: self.finished,
            grown: self.grown,
            transient_logs,
            garbage: garbage.into_iter().collect(),
            created: self.created,
        })
    }

    fn open_file(options: &TableOptions, created: &mut Created<'_>) -> Result<TableWriter> {
        let context = created.context;
        let number = FileNumber(context.allocate_id()?);
        let segment = SegmentId(context.allocate_id()?);
        let (vfs, directory) = (context.vfs(), context.directory());
        let writer = TableWriter::create(vfs, directory, number, segment, options)?;
        created.note(FileName::Table(number));
        Ok(writer)
    }

    fn close_file(&mut self) -> Result<()> {
        if let Some(writer) = self.writer.take() {
            let written = writer.finish()?;
            match self.target {
                None => self.finished.push(written),
                Some(_) => self.grown.push(written),
            }
            self.held.set(0);
        }
        Ok(())
    }
}

impl Targets<'_> {
    /// Begins a segment of the file `number`.
    fn open(
        self,
        number: FileNumber,
        options: &TableOptions,
        created: &mut Created<'_>,
    ) -> Result<TableWriter> {
        let context = created.context();
        let file = self.files.iter().find(|file| file.meta.number == number);
        let Some(file) = file else {
            unreachable!("a merge appends to its targets only")
        };
        let segment = SegmentId(context.allocate_id()?);
        let options = TableOptions {
            filter_units: self.filter_units,
            ..*options
        };
        let (vfs, directory) = (context.vfs(), context.directory());
        let writer = TableWriter::append(vfs, directory, &file.meta, segment, &options)?;
        created.traces.push(Trace::Behind(number, file.meta.end()));
        Ok(match self.tables.get(file.slot(), &file.meta) {
            Ok(older) => writer.with_older(Arc::clone(&older)),
            // It is not read, so its damage is nothing to the merge.
            Err(_) => writer,
        })
    }
}

/// A new list of garbage values, noted in `created`.
pub(super) fn open_discard_list(created: &mut Created<'_>) -> Result<DiscardListWriter> {
    let context = created.context();
    let number = FileNumber(context.allocate_id()?);
    let list = DiscardListWriter::create(context.vfs(), context.directory(), number)?;
    created.note(FileName::DiscardList(number));
    Ok(list)
}

/// What a job has left on the disk so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trace {
    /// A new file.
    File(FileName),
    /// Bytes behind the end of a table file.
    Behind(FileNumber, u64),
}

/// What a job has made that no manifest names yet. Dropping it removes files and cuts off what was appended,
/// while the job still has its claim on them. What cannot be removed now is removed when the database is
/// opened next; what cannot be cut off, the next append to the file writes over.
pub(crate) struct Created<'a> {
    context: &'a dyn JobContext,
    traces: Vec<Trace>,
}

impl<'a> Created<'a> {
    /// What parts of a merge have [released](Self::release).
    pub(crate) fn adopt(context: &'a dyn JobContext, traces: Vec<Trace>) -> Self {
        Self { context, traces }
    }

    /// Gives everything to whoever adopts it.
    pub(crate) fn release(mut self) -> Vec<Trace> {
        std::mem::take(&mut self.traces)
    }

    /// What made the files.
    pub(super) fn context(&self) -> &'a dyn JobContext {
        self.context
    }

    fn has_files(&self) -> bool {
        let is_file = |trace: &Trace| matches!(trace, Trace::File(_));
        self.traces.iter().any(is_file)
    }

    /// One more file.
    pub(super) fn note(&mut self, file: FileName) {
        self.traces.push(Trace::File(file));
    }

    /// Carries out `edit`, which names everything. It stays if it counts or may count: always, after
    /// a panic too, but where it failed without a trace.
    pub(crate) fn name_by<R>(mut self, edit: impl FnOnce() -> Result<R>) -> Result<R> {
        let traces = std::mem::take(&mut self.traces);
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
            self.traces = traces;
        }
        outcome
    }
}

impl Drop for Created<'_> {
    fn drop(&mut self) {
        let (vfs, directory) = (self.context.vfs(), self.context.directory());
        for trace in &self.traces {
            match trace {
                Trace::File(file) => drop(vfs.remove(&directory.join(file.to_string()))),
                Trace::Behind(number, end) => drop(truncate_table(vfs, directory, *number, *end)),
            }
        }
    }
}

impl fmt::Debug for Created<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Created").field(&self.traces).finish()
    }
}

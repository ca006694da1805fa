//! The output of flushes and compactions: new tables, cut to size, and appended segments.
//!
//! Invariants:
//! - I1: All versions of a user key are in one file, so files of a level stay disjoint. A range tombstone that reaches
//!   beyond the last key of a file begins again in the next one, right behind that key. So each key that it covers
//!   belongs to a file that has it.
//! - I2: Every attempt takes new file numbers and segment ids.
//! - I3: A file and its name are durable before [`Output::finish`] returns the file.
//!
//! Concurrency: owned by one job.

use std::cmp::Reverse;
use std::mem;
use std::sync::Arc;

use super::job::{CancelCheck, IoPriority, JobContext};
use super::pending_files::PendingFiles;
use super::residence::Residence;
use super::values::Values;
use crate::base::expiry::{put_expiring, split_expiring};
use crate::base::key::next_key;
use crate::base::sync::Shared;
use crate::base::{
    FileNumber, Held, KeyspaceId, Kind, RangeTombstone, Result, SegmentId, SequenceNumber, Trailer,
};
use crate::filter::FILTER_UNITS_MAX;
use crate::manifest::names::FileName;
use crate::manifest::{FileHandle, ReferenceChanges, Version};
use crate::policy::{OutputCutter, cut_bytes};
use crate::table::{FileMeta, OpenTables, TableOptions, TableWriter};
use crate::value::{DiscardList, DiscardListWriter, ValueFileMeta, ValuePointer};

/// The bytes of one request to the rate limiter. A job requests the rest at its end.
const REQUEST_BYTES: u64 = 256 << 10;

/// The keys between two cancel checks of a job that drops all entries.
const KEYS_PER_CHECK: u64 = 4096;

/// The files that a compaction appends to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Targets<'a> {
    pub(crate) files: &'a [Shared<FileHandle>],
    pub(crate) tables: &'a OpenTables,
    /// Bits per key of each filter unit of the appended segments.
    pub(crate) filter_units: [f64; FILTER_UNITS_MAX],
}

/// The durable files that a job has written.
#[derive(Debug)]
pub(crate) struct OutputFiles<'a> {
    pub(crate) tables: Vec<FileMeta>,
    /// Older files, each with one more segment.
    pub(crate) grown: Vec<FileMeta>,
    /// Transient log files.
    pub(crate) transient_logs: Vec<ValueFileMeta>,
    /// Value logs with the large results of folds.
    pub(crate) value_logs: Vec<ValueFileMeta>,
    pub(crate) discard_lists: Vec<DiscardList>,
    /// The references of all written segments to value logs.
    pub(crate) log_references: ReferenceChanges,
    /// Removes the files unless an edit names them.
    pub(crate) pending: PendingFiles<'a>,
}

/// Writes ascending entries to tables.
pub(crate) struct Output<'a, 'keys> {
    context: &'a dyn JobContext,
    cancel: CancelCheck<'keys>,
    priority: IoPriority,
    /// The number of keys that were begun.
    keys: u64,
    /// Bytes that were written since the last request to the rate limiter.
    unrequested: u64,
    /// Bytes of keys and values in the present file.
    entry_bytes: u64,
    options: TableOptions,
    keyspace: KeyspaceId,
    /// Decides the ends of files. Without it the output is one file.
    cutter: Option<OutputCutter<&'keys [u8]>>,
    targets: Option<Targets<'keys>>,
    /// What the range tombstones hide: the version, from this level on.
    below: Option<(Shared<Version>, usize)>,
    /// The file that entries are appended to; `None` for a new file.
    target: Option<FileNumber>,
    writer: Option<TableWriter>,
    /// Of the tables.
    residence: Residence,
    finished: Vec<FileMeta>,
    grown: Vec<FileMeta>,
    log_references: ReferenceChanges,
    /// The [generation](crate::table::LogReferences) of all entries.
    generation: FileNumber,
    values: Values,
    /// Names the values of value logs that dropped entries pointed to.
    discard_list: Option<DiscardListWriter>,
    /// Every file, finished or not; dropped after its writer.
    pending: PendingFiles<'a>,
    entries: u64,
    /// The range tombstones that were written and may reach beyond the last key.
    open: Vec<RangeTombstone>,
    /// Whether the present file ends before the next key that is not right behind the last one.
    is_cut_due: bool,
    /// How often a cut has divided a range tombstone.
    continued: u64,
    /// What the last entry stores that expires.
    expiring: Vec<u8>,
    /// The memory of the writers.
    held: Held,
}

impl<'a, 'keys> Output<'a, 'keys> {
    pub(crate) fn new(
        context: &'a dyn JobContext,
        cancel: CancelCheck<'keys>,
        priority: IoPriority,
        (keyspace, options): (KeyspaceId, TableOptions),
        values: Values,
        cutter: Option<OutputCutter<&'keys [u8]>>,
    ) -> Self {
        Self {
            context,
            cancel,
            priority,
            keys: 0,
            unrequested: 0,
            entry_bytes: 0,
            options,
            keyspace,
            cutter,
            targets: None,
            below: None,
            target: None,
            writer: None,
            residence: Residence::new(values.passed()),
            finished: Vec::new(),
            grown: Vec::new(),
            log_references: ReferenceChanges::default(),
            generation: values.generation(),
            values,
            discard_list: None,
            pending: PendingFiles::adopt(context, Vec::new()),
            entries: 0,
            open: Vec::new(),
            is_cut_due: false,
            continued: 0,
            expiring: Vec::new(),
            held: Held::new(context.memory(), 0),
        }
    }

    /// Appends entries to `targets` where the cutter names one of them.
    pub(crate) fn appending_to(mut self, targets: Targets<'keys>) -> Self {
        self.targets = Some(targets);
        self
    }

    /// Counts what range tombstones hide in `version` from level `first` on.
    pub(crate) fn above(mut self, version: &Shared<Version>, first: usize) -> Self {
        self.below = Some((Shared::clone(version), first));
        self
    }

    /// Begins the versions of `key`, which is above all earlier keys (I1).
    pub(crate) fn begin_key(&mut self, key: &[u8]) -> Result<()> {
        self.keys += 1;
        if self.keys.is_multiple_of(KEYS_PER_CHECK) {
            (self.cancel)()?;
        }
        let Some(cutter) = &mut self.cutter else {
            return Ok(());
        };
        let held = |writer: &TableWriter| {
            cut_bytes(writer.bytes_written_so_far(), writer.transient_bytes())
        };
        let place = cutter.place(key, self.writer.as_ref().map_or(0, held));
        self.is_cut_due |= place.begins;
        if self.is_cut_due && self.open.is_empty() {
            self.cut()?;
        } else if self.is_cut_due {
            return self.cut_ranges(key, place.target);
        }
        self.target = place.target;
        Ok(())
    }

    /// Ends the present file at its last key.
    fn cut(&mut self) -> Result<()> {
        self.is_cut_due = false;
        if let Some(writer) = &mut self.writer {
            writer.end_at_last_key();
        }
        self.close_file()?;
        (self.cancel)()
    }

    /// Ends the present file before `key`, and lets the range tombstones that reach further begin again in the next one.
    /// They begin at the first key behind the file. If that is `key` itself, whose versions come in between, the file
    /// ends later.
    fn cut_ranges(&mut self, key: &[u8], target: Option<FileNumber>) -> Result<()> {
        assert!(target.is_none(), "range tombstones are not appended");
        let last = self.writer.as_ref().map(TableWriter::last_key);
        let next = last.and_then(next_key).unwrap_or_default();
        self.open.retain(|range| range.covers(&next));
        if !self.open.is_empty() && next == key {
            return Ok(());
        }
        self.cut()?;
        self.target = target;
        let mut open = mem::take(&mut self.open);
        open.sort_by_key(|range| Reverse(range.sequence));
        for range in open {
            self.continued += 1;
            let trailer = Trailer::new(range.sequence, Kind::RangeTombstone);
            self.add(&next, trailer, &range.end)?;
        }
        Ok(())
    }

    /// Appends an entry of the last begun key.
    pub(crate) fn add(&mut self, key: &[u8], trailer: Trailer, value: &[u8]) -> Result<()> {
        self.write(key, trailer, value, false)
    }

    /// Appends an entry of the last begun key, with a value or an operand that a fold has made.
    pub(crate) fn add_folded(&mut self, key: &[u8], trailer: Trailer, value: &[u8]) -> Result<()> {
        self.write(key, trailer, value, true)
    }

    fn write(&mut self, key: &[u8], trailer: Trailer, value: &[u8], is_folded: bool) -> Result<()> {
        let before = self.values.bytes_written();
        let (values, pending) = (&mut self.values, &mut self.pending);
        let (trailer, value) = if is_folded {
            values.place_folded(pending, key, trailer, value)?
        } else if trailer.is_expiring() {
            let (expiry, value) = split_expiring(value);
            let (placed, value) = values.place(pending, key, trailer.lasting(), value)?;
            self.expiring.clear();
            put_expiring(&mut self.expiring, expiry, value);
            let kind = placed.kind().expiring();
            (placed.with_kind(kind), &self.expiring[..])
        } else {
            values.place(pending, key, trailer, value)?
        };
        if self.writer.is_none() {
            let writer = match (self.target, self.targets) {
                (None, _) => Self::open_file(&self.options, &mut self.pending)?,
                (Some(target), Some(targets)) => {
                    targets.open(target, &self.options, &mut self.pending)?
                }
                (Some(_), None) => unreachable!("only a cutter with targets names one"),
            };
            let writer = writer.of_keyspace(self.keyspace);
            self.writer = Some(writer.with_generation(self.generation));
        }
        let Some(writer) = &mut self.writer else {
            unreachable!("a writer was opened just now")
        };
        writer.add(key, trailer, value)?;
        if writer.has_unjudged_piece() {
            writer.judge(self.residence.stays());
        }
        self.entries += 1;
        if trailer.is_range_tombstone() {
            self.open.push(RangeTombstone {
                start: key.into(),
                end: value.into(),
                sequence: trailer.sequence(),
            });
        }
        let entry_bytes = (key.len() + value.len()) as u64;
        self.entry_bytes += entry_bytes;
        self.unrequested += entry_bytes;
        self.unrequested += self.values.bytes_written() - before;
        let discard_list = self.discard_list.as_ref();
        let discard_list = discard_list.map_or(0, DiscardListWriter::memory_bytes);
        let held = writer.memory_bytes() + self.values.memory_bytes() + discard_list;
        self.held.grow_to(held);
        if self.unrequested >= REQUEST_BYTES {
            self.request_io()?;
            self.context.leave_space(self.priority)?;
        }
        Ok(())
    }

    /// Lists the value of a dropped entry, which has this pointer into a value log, as garbage.
    pub(crate) fn discard(&mut self, pointer: &[u8]) -> Result<()> {
        let pointer =
            ValuePointer::decode(pointer).map_err(|error| error.in_file("a dropped entry", 0))?;
        let list = match &mut self.discard_list {
            Some(list) => list,
            None => self
                .discard_list
                .insert(self.pending.create_discard_list()?),
        };
        list.add(pointer.file, pointer.offset)
    }

    /// Writes the value of a later entry to a transient log. Calls have ascending sequence numbers.
    pub(super) fn write_ahead(
        &mut self,
        key: &[u8],
        sequence: SequenceNumber,
        value: &[u8],
    ) -> Result<()> {
        let pending = &mut self.pending;
        self.values.write_ahead(pending, key, sequence, value)?;
        self.held.grow_to(self.values.memory_bytes());
        Ok(())
    }

    fn request_io(&mut self) -> Result<()> {
        self.context
            .request_io(self.priority, self.unrequested, self.cancel)?;
        self.unrequested = 0;
        Ok(())
    }

    /// How often a cut has divided a range tombstone: each time adds an entry.
    pub(crate) fn continued(&self) -> u64 {
        self.continued
    }

    /// The number of written entries.
    pub(crate) fn entries(&self) -> u64 {
        self.entries
    }

    /// The bytes of transient logs and of relocation tables that were read.
    pub(crate) fn transient_log_bytes_read(&self) -> u64 {
        self.values.bytes_read()
    }

    /// Completes the last file and makes all files durable. A drop of the result removes them.
    pub(crate) fn finish(mut self) -> Result<OutputFiles<'a>> {
        self.close_file()?;
        self.request_io()?;
        let (transient_logs, value_logs) = self.values.finish()?;
        let discard_list = self.discard_list.map(DiscardListWriter::finish);
        let discard_list = discard_list.transpose()?;
        if self.pending.has_new_files() {
            self.context.sync_directory()?;
        }
        Ok(OutputFiles {
            tables: self.finished,
            grown: self.grown,
            transient_logs,
            value_logs,
            discard_lists: discard_list.into_iter().collect(),
            log_references: self.log_references,
            pending: self.pending,
        })
    }

    fn open_file(options: &TableOptions, pending: &mut PendingFiles<'_>) -> Result<TableWriter> {
        let context = pending.context();
        let number = FileNumber(context.allocate_id()?);
        let segment = SegmentId(context.allocate_id()?);
        let (vfs, directory) = (context.vfs(), context.directory());
        let writer = TableWriter::create(vfs, directory, number, segment, options)?;
        pending.add(FileName::Table(number));
        Ok(writer)
    }

    fn close_file(&mut self) -> Result<()> {
        if let Some(mut writer) = self.writer.take() {
            if let Some((version, first)) = &self.below {
                writer.note_hidden(|ranges| version.entries_in(ranges, *first));
            }
            let written = writer.finish()?;
            self.log_references.add(&written.log_references);
            let entry_bytes = mem::take(&mut self.entry_bytes);
            if let Some(segment) = written.file.segments.last() {
                // Also index, filter, and what blocks have beside keys and values.
                self.unrequested += segment.length.saturating_sub(entry_bytes);
                if written.stays {
                    self.context.note_written(segment.id);
                }
            }
            match self.target {
                None => self.finished.push(written.file),
                Some(_) => self.grown.push(written.file),
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
        pending: &mut PendingFiles<'_>,
    ) -> Result<TableWriter> {
        let context = pending.context();
        let file = self.files.iter().find(|file| file.meta.number == number);
        let Some(file) = file else {
            unreachable!("a compaction appends to its targets only")
        };
        let segment = SegmentId(context.allocate_id()?);
        let options = TableOptions {
            filter_units: self.filter_units,
            ..*options
        };
        let (vfs, directory) = (context.vfs(), context.directory());
        let writer = TableWriter::append(vfs, directory, &file.meta, segment, &options)?;
        pending.add_append(number, file.meta.end());
        Ok(match self.tables.get(file.slot(), &file.meta) {
            Ok(older) => writer.with_older(Arc::clone(&older)),
            // The append does not read the older segments, so it succeeds despite their damage.
            Err(_) => writer,
        })
    }
}

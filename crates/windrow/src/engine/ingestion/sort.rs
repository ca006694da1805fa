//! The external sort of a bulk load: it brings entries in any order into the order of their keys, on disk.
//!
//! 1. Collect entries up to the bound of memory. Sort them, keep the last one of each key, write them to a table: a
//!    *sorted run*. Large values go to value logs now, and stay there.
//! 2. Merge [`FAN_IN`] runs that were merged equally often to one, with all of their entries, as soon as there are so many.
//! 3. Merge the runs that are left as a compaction merges tables, keep the newest entry of each key, and write the load.
//!    Values in value logs of entries that are left out are listed as garbage.
//!
//! Runs are numbered: the sequence number of an entry is that of its first run, until the last merge. A run that ends at
//! the end of the source is written to the load from memory if it is the only one, without a file.
//!
//! Invariants:
//! - I1. Of equal keys the last one of the source is loaded.
//! - I2. Memory is bounded by the given bytes, and a read buffer for each run of a merge: less than [`FAN_IN`] for each
//!   pass that the number of runs needs.
//! - I3. No edit names a run. Its files are removed when it is merged or the load ends, and by the next open after a crash.
//!
//! Concurrency: that of the bulk load.

use std::sync::Arc;

use super::bulk_load::BulkWriter;
use crate::base::expiry::put_expiring;
use crate::base::sync::Shared;
use crate::base::{Cursor as _, Error, Expiry, Held, Kind, Moment, Result, Trailer};
use crate::compact::job::{IoPriority, JobContext};
use crate::compact::output::Output;
use crate::compact::pending_files::{PendingFile, PendingFiles};
use crate::compact::values::Values;
use crate::engine::jobs::context::table_options;
use crate::engine::{Engine, KeyspaceCore, Lifetime};
use crate::filter::FILTER_UNITS_MAX;
use crate::manifest::FileHandle;
use crate::manifest::names::FileName;
use crate::options;
use crate::read::merge::MergingCursor;
use crate::read::run::{Run, RunCursor};
use crate::table::{FileMeta, SequentialCursor};
use crate::value::ValueFileMeta;

/// The entries between two reports of the progress of the merge.
const REPORT_ENTRIES: u64 = 1 << 14;

/// The runs that one merge takes before the last one.
const FAN_IN: usize = 64;

/// The buffer is counted as memory in steps of this many bytes.
const COUNTED_BYTES: usize = 1 << 20;

/// An entry in memory: where its key begins, and the lengths of the key and of what the entry stores.
#[derive(Debug, Clone, Copy)]
struct Place {
    start: usize,
    key_bytes: u32,
    stored_bytes: u32,
    kind: Kind,
}

/// Entries in memory.
#[derive(Debug, Default)]
struct Buffer {
    /// Keys and what is stored, one after the other.
    bytes: Vec<u8>,
    entries: Vec<Place>,
}

impl Buffer {
    fn add(&mut self, key: &[u8], value: &[u8], expiry: Option<Moment>) {
        let start = self.bytes.len();
        let length = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
        self.bytes.extend_from_slice(key);
        let kind = if let Some(expiry) = expiry {
            put_expiring(&mut self.bytes, expiry, value);
            Kind::ExpiringValue
        } else {
            self.bytes.extend_from_slice(value);
            Kind::Value
        };
        self.entries.push(Place {
            start,
            key_bytes: length(key.len()),
            stored_bytes: length(self.bytes.len() - start - key.len()),
            kind,
        });
    }

    fn memory_bytes(&self) -> usize {
        self.bytes.len() + size_of_val(self.entries.as_slice())
    }

    /// Sorts the entries, and keeps the last one of each key (I1).
    fn sort(&mut self) {
        let bytes = &self.bytes;
        let key = |it: &Place| &bytes[it.start..it.start + it.key_bytes as usize];
        self.entries.sort_unstable_by(|left, right| {
            let by_key = key(left).cmp(key(right));
            by_key.then(right.start.cmp(&left.start))
        });
        self.entries
            .dedup_by(|later, first| key(later) == key(first));
    }

    /// Keys, kinds, and what is stored.
    fn iter(&self) -> impl Iterator<Item = (&[u8], Kind, &[u8])> {
        self.entries.iter().map(|it| {
            let (key, rest) = self.bytes[it.start..].split_at(it.key_bytes as usize);
            (key, it.kind, &rest[..it.stored_bytes as usize])
        })
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }
}

/// Entries of the source in the order of their keys. A drop removes its files.
struct SortedRun<'e> {
    tables: Vec<FileMeta>,
    _files: PendingFiles<'e>,
    /// How often its entries were merged.
    merges: u32,
}

/// Sorts the entries of a bulk load.
pub(crate) struct Sorter<'w, 'e, 'c> {
    /// Takes the sorted entries.
    writer: &'w mut BulkWriter<'e, 'c>,
    memory_bytes: usize,
    buffer: Buffer,
    held: Held,
    /// Oldest first. So those with fewer merges are behind the others.
    runs: Vec<SortedRun<'e>>,
    /// The runs that were written from the buffer.
    numbered: u64,
    value_logs: Vec<ValueFileMeta>,
    /// These value logs, which the load keeps.
    kept: PendingFiles<'e>,
}

impl<'w, 'e, 'c> Sorter<'w, 'e, 'c> {
    pub(crate) fn new(writer: &'w mut BulkWriter<'e, 'c>, memory_bytes: usize) -> Self {
        let engine = writer.engine;
        Self {
            memory_bytes,
            buffer: Buffer::default(),
            held: Held::new(JobContext::memory(engine), 0),
            runs: Vec::new(),
            numbered: 0,
            value_logs: Vec::new(),
            kept: PendingFiles::adopt(engine, Vec::new()),
            writer,
        }
    }

    /// Adds an entry. Without an `expiry` it expires as the load says.
    ///
    /// # Errors
    /// `InvalidArgument` if key or value break a limit, or the entry cannot expire so; `NoSpace`, `Io`; `Closed`; `NotFound` if the keyspace was
    /// dropped. The load is over then.
    pub(crate) fn add(&mut self, key: &[u8], value: &[u8], expiry: Option<Expiry>) -> Result<()> {
        options::check_key(key)?;
        options::check_value(value)?;
        let expiry = self.writer.expiry_of(expiry)?;
        self.buffer.add(key, value, expiry);
        let memory_bytes = self.buffer.memory_bytes();
        if memory_bytes >= self.memory_bytes {
            self.write_run()?;
            self.merge_equals()?;
        } else if memory_bytes as u64 >= self.held.bytes() + COUNTED_BYTES as u64 {
            self.held.set(memory_bytes as u64);
        }
        Ok(())
    }

    /// Writes what is collected to a run.
    fn write_run(&mut self) -> Result<()> {
        self.held.set(self.buffer.memory_bytes() as u64);
        self.buffer.sort();
        self.numbered += 1;
        let mut output = self.run_output();
        for (key, kind, stored) in self.buffer.iter() {
            output.begin_key(key)?;
            output.add(key, Trailer::new(self.numbered, kind), stored)?;
        }
        self.add_run(output, 0)?;
        self.buffer.clear();
        self.held.set(0);
        Ok(())
    }

    /// The output of a run.
    fn run_output(&self) -> Output<'e, 'c> {
        let BulkWriter {
            engine,
            keyspace,
            cancel,
            ..
        } = *self.writer;
        let options = keyspace.options();
        let version = Shared::clone(&keyspace.state().version);
        Output::new(
            engine,
            cancel,
            IoPriority::Compaction,
            // Nothing looks a key up.
            (
                keyspace.id(),
                table_options(&options, [0.0; FILTER_UNITS_MAX]),
            ),
            // The load places medium values.
            Values::of_flush(version.values(), options, true),
            None,
        )
    }

    /// Ends a run whose entries were merged this often.
    fn add_run(&mut self, output: Output<'e, 'c>, merges: u32) -> Result<()> {
        let written = output.finish()?;
        let mut files = PendingFiles::adopt(self.writer.engine, Vec::new());
        for file in written.pending.release() {
            match file {
                PendingFile::New(name @ FileName::Table(_)) => files.add(name),
                PendingFile::New(name) => self.kept.add(name),
                PendingFile::Appended(..) => {}
            }
        }
        self.value_logs.extend(written.value_logs);
        self.runs.push(SortedRun {
            tables: written.tables,
            _files: files,
            merges,
        });
        Ok(())
    }

    /// Merges runs while there are [`FAN_IN`] that were merged equally often.
    fn merge_equals(&mut self) -> Result<()> {
        while let Some(first) = self.runs.len().checked_sub(FAN_IN)
            && self.runs[first].merges == self.runs[self.runs.len() - 1].merges
        {
            let merges = self.runs[first].merges + 1;
            let mut output = self.run_output();
            let mut last_key = Vec::new();
            pass_entries(
                self.writer.engine,
                &self.runs[first..],
                |key, trailer, value| {
                    if key != last_key {
                        last_key.clear();
                        last_key.extend_from_slice(key);
                        output.begin_key(key)?;
                    }
                    output.add(key, trailer, value)
                },
            )?;
            self.runs.truncate(first);
            self.add_run(output, merges)?;
        }
        Ok(())
    }

    /// Merges the runs into the load. Calls `merged` now and then with the number of entries that were merged.
    pub(crate) fn finish(mut self, merged: &mut dyn FnMut(u64)) -> Result<()> {
        if self.runs.is_empty() {
            self.held.set(self.buffer.memory_bytes() as u64);
            self.buffer.sort();
            let mut entries = self.buffer.iter();
            return entries
                .try_for_each(|(key, kind, stored)| self.writer.add_stored(key, kind, stored));
        }
        if !self.buffer.entries.is_empty() {
            self.write_run()?;
        }
        self.buffer = Buffer::default();
        let (mut last_key, mut count) = (Vec::new(), 0);
        pass_entries(self.writer.engine, &self.runs, |key, trailer, value| {
            if key == last_key {
                self.writer.leave_out(trailer.kind(), value)?;
            } else {
                last_key.clear();
                last_key.extend_from_slice(key);
                self.writer.add_stored(key, trailer.kind(), value)?;
            }
            count += 1;
            if count % REPORT_ENTRIES == 0 {
                merged(count);
            }
            Ok(())
        })?;
        self.writer.keep(self.value_logs, self.kept);
        Ok(())
    }
}

/// Passes the entries of `runs`, which are oldest first, in their order, which for a key begins with the newest one.
fn pass_entries(
    engine: &Engine,
    runs: &[SortedRun<'_>],
    mut take: impl FnMut(&[u8], Trailer, &[u8]) -> Result<()>,
) -> Result<()> {
    let handle = |table: &FileMeta| FileHandle::new(table.clone(), &engine.obsolete);
    let of_run = |run: &SortedRun<'_>| run.tables.iter().map(handle).collect();
    let handles: Vec<Vec<Shared<FileHandle>>> = runs.iter().map(of_run).collect();
    let cursor = |run| RunCursor::<SequentialCursor>::new(Arc::clone(&engine.tables), run);
    let cursors = handles.iter().rev().flat_map(|files| Run::of_files(files));
    let mut cursor = MergingCursor::new(cursors.map(cursor).collect());
    let passed = cursor.seek_to_first().and_then(|()| {
        while cursor.is_valid() {
            take(cursor.key(), cursor.trailer(), cursor.value())?;
            cursor.next()?;
        }
        Ok(())
    });
    drop(cursor);
    for handle in handles.iter().flatten() {
        // Closes the file before it is removed.
        handle.slot().close();
    }
    passed
}

impl Engine {
    /// As [`bulk_load`](Self::bulk_load), for entries in any order, which are sorted with about `memory_bytes` of memory.
    /// Of equal keys the last one counts. Calls `merged` now and then while sorted entries are merged, with their number.
    ///
    /// # Errors
    /// As [`bulk_load`](Self::bulk_load).
    pub(crate) fn bulk_load_unsorted<E: From<Error>>(
        &self,
        keyspace: &Arc<KeyspaceCore>,
        lifetime: Lifetime,
        memory_bytes: usize,
        merged: &mut dyn FnMut(u64),
        fill: impl FnOnce(&mut Sorter<'_, '_, '_>) -> std::result::Result<(), E>,
    ) -> std::result::Result<u64, E> {
        self.bulk_load(keyspace, lifetime, |writer| {
            let mut sorter = Sorter::new(writer, memory_bytes);
            fill(&mut sorter)?;
            Ok(sorter.finish(merged)?)
        })
    }
}

//! The value log of a keyspace: where its large values go before the records that point to them.
//!
//! Whoever leads the commits separates the large values of its group: it appends them to the value
//! logs of their keyspaces, writes those, and then writes the record of the write-ahead log, with
//! pointers in the place of values. That log becomes durable only together with what it refers to
//! ([`LogSync::refer_to`](crate::log::LogSync::refer_to)).
//!
//! A log that has reached its size is full, and another is begun; the next flush, before which all logs
//! are durable, records how it ended.
//!
//! Invariants:
//! - I1: A value log is durably named by the manifest before a record points into it.
//! - I2: Every value that a record points to was written before that record.
//! - I3: What the manifest says of a log that is being written covers exactly what flushed entries
//!   refer to; recovery adds what the write-ahead log refers to.
//!
//! Concurrency: one lock per keyspace, taken by the leader of the commits, by whoever keeps it from
//! leading, and by flushes for a moment.

use std::sync::Arc;

use super::Logged;
use super::write::Write;
use crate::base::{Error, ErrorKind, FileNumber, KeyspaceId, Kind, Result, SequenceNumber};
use crate::engine::admin::stats;
use crate::engine::{Engine, KeyspaceCore};
use crate::log::batch::{self, BatchReader};
use crate::log::{LogSync, LogWriter};
use crate::manifest::Record;
use crate::manifest::names::FileName;
use crate::options::KeyspaceOptions;
use crate::policy::{self, Class};
use crate::value::{ValueFileMeta, ValueLogWriter, ValuePointer};

/// The value logs of one keyspace that are not sealed.
#[derive(Debug, Default)]
pub(crate) struct ValueLog {
    active: Option<ValueLogWriter>,
    /// The newest entry that points into the active one.
    last_sequence: SequenceNumber,
    /// Those that are full, oldest first.
    full: Vec<FullLog>,
    /// Bytes to which entries of the active memtable point.
    behind: u64,
}

/// A value log to which nothing is added.
#[derive(Debug)]
struct FullLog {
    file: ValueFileMeta,
    last_sequence: SequenceNumber,
}

impl ValueLog {
    /// How far the active log has come.
    pub(super) fn position(&self) -> Option<ValueFileMeta> {
        let active = self.active.as_ref()?;
        let position = active.position();
        Some(ValueFileMeta {
            number: active.number(),
            length: position.end,
            entries: position.entries,
            value_bytes: position.value_bytes,
            end: position.end,
        })
    }

    /// Bytes to which entries of the active memtable point.
    pub(in crate::engine) fn behind(&self) -> u64 {
        self.behind
    }

    /// The active memtable is frozen; returns how far the active log has come.
    pub(in crate::engine) fn note_rotation(&mut self) -> Option<ValueFileMeta> {
        self.behind = 0;
        self.position()
    }

    /// The records that seal every log as it is now.
    pub(in crate::engine) fn seals(&self, keyspace: KeyspaceId) -> Vec<Record> {
        let active = self.position().map(|file| (file, self.last_sequence));
        let full = self.full.iter().map(|log| (log.file, log.last_sequence));
        let seal = |(file, last_sequence)| Record::SealValueLog {
            keyspace,
            file,
            last_sequence,
        };
        full.chain(active).map(seal).collect()
    }

    /// The records of a flush of all entries up to where a log was at `position`: the first `durable`
    /// full logs are sealed.
    pub(in crate::engine) fn flush_records(
        &self,
        keyspace: KeyspaceId,
        durable: usize,
        position: Option<ValueFileMeta>,
    ) -> Vec<Record> {
        let seal = |log: &FullLog| Record::SealValueLog {
            keyspace,
            file: log.file,
            last_sequence: log.last_sequence,
        };
        let (sealed, rest) = self.full.split_at(durable);
        let active = self.position();
        let open = rest.iter().map(|log| log.file).chain(active);
        let is_open = |file: &ValueFileMeta| open.clone().any(|log| log.number == file.number);
        let at = position
            .filter(is_open)
            .map(|file| Record::ValueLogAt { keyspace, file });
        sealed.iter().map(seal).chain(at).collect()
    }

    /// The manifest has the first `count` full logs as sealed.
    pub(in crate::engine) fn note_sealed(&mut self, count: usize) {
        self.full.drain(..count);
    }

    /// How many full logs there are.
    pub(in crate::engine) fn full_count(&self) -> usize {
        self.full.len()
    }

    /// The length of a log that is not sealed.
    pub(in crate::engine) fn length_of(&self, number: FileNumber) -> Option<u64> {
        let full = self.full.iter().map(|log| log.file);
        let found = full
            .chain(self.position())
            .find(|file| file.number == number);
        found.map(|file| file.length)
    }

    /// Nothing more is added to the active log.
    pub(in crate::engine) fn retire(&mut self) {
        let last_sequence = self.last_sequence;
        let position = self.position();
        self.full.extend(position.map(|file| FullLog {
            file,
            last_sequence,
        }));
        self.active = None;
    }
}

/// The value logs that have taken values of a group.
#[derive(Debug, Default)]
pub(super) struct Touched {
    keyspaces: Vec<Arc<KeyspaceCore>>,
    /// There is no log for a value.
    is_refused: bool,
}

impl Touched {
    fn has(&self, keyspace: &Arc<KeyspaceCore>) -> bool {
        self.keyspaces
            .iter()
            .any(|known| Arc::ptr_eq(known, keyspace))
    }

    fn note(&mut self, keyspace: &Arc<KeyspaceCore>) {
        if !self.has(keyspace) {
            self.keyspaces.push(Arc::clone(keyspace));
        }
    }

    /// Writes the values, to which `log` is about to refer (I2); returns how many bytes that was.
    pub(super) fn write(&self, log: &LogSync) -> Result<u64> {
        let mut bytes = 0;
        for keyspace in &self.keyspaces {
            if let Some(active) = &mut keyspace.value_log.lock().active {
                bytes += active.write()?;
                log.refer_to(active.shared());
            }
        }
        Ok(bytes)
    }

    /// The record that points to the values was written, with entries up to `last`. Returns whether as
    /// much stands behind any memtable as may.
    pub(super) fn keep(&self, last: SequenceNumber) -> bool {
        let mut is_enough = false;
        for keyspace in &self.keyspaces {
            let mut log = keyspace.value_log.lock();
            log.last_sequence = last;
            if let Some(active) = &mut log.active {
                let before = active.position().end;
                active.keep();
                let more = active.position().end - before;
                log.behind += more;
            }
            is_enough |= keyspace.is_enough_behind(log.behind);
        }
        is_enough
    }

    /// It was not: a log to which values were written ends before them.
    pub(super) fn forget(&self) {
        for keyspace in &self.keyspaces {
            let mut log = keyspace.value_log.lock();
            let is_clean = log.active.as_mut().is_none_or(ValueLogWriter::forget);
            if !is_clean {
                log.retire();
            }
        }
    }

    /// Whether the group is refused before its record was written: no value log could be made for it.
    pub(super) fn is_refused(&self) -> bool {
        self.is_refused
    }
}

impl Engine {
    /// Appends the entries of `write` to `record`, large values to their logs. Where there were any,
    /// returns the entries as they are logged.
    pub(super) fn put_entries(
        &self,
        record: &mut Vec<u8>,
        write: &Write<'_>,
        touched: &mut Touched,
    ) -> Result<Logged> {
        if !write.may_separate() {
            write.encode_into(record);
            return Ok(None);
        }
        let start = record.len();
        let is_separated = match *write {
            Write::One {
                keyspace,
                kind,
                key,
                value,
            } => self.put_entry(record, keyspace, kind, key, value, touched)?,
            Write::Batch {
                entries, keyspaces, ..
            } => self.put_each(record, entries, write.count(), keyspaces, touched)?,
        };
        Ok(is_separated.then(|| record[start..].to_vec()))
    }

    /// As [`put_entries`](Self::put_entries), for encoded entries.
    pub(super) fn put_encoded(
        &self,
        record: &mut Vec<u8>,
        (encoded, count): (&[u8], u32),
        keyspaces: &[Arc<KeyspaceCore>],
        touched: &mut Touched,
    ) -> Result<Logged> {
        let start = record.len();
        let is_separated = self.put_each(record, encoded, count, keyspaces, touched)?;
        Ok(is_separated.then(|| record[start..].to_vec()))
    }

    fn put_each(
        &self,
        record: &mut Vec<u8>,
        encoded: &[u8],
        count: u32,
        keyspaces: &[Arc<KeyspaceCore>],
        touched: &mut Touched,
    ) -> Result<bool> {
        let damaged = || Error::invalid_argument("a batch was damaged in memory");
        let mut entries = BatchReader::entries(encoded, 0, count);
        let mut is_separated = false;
        while let Some(entry) = entries.next().map_err(|_| damaged())? {
            let keyspace = keyspaces.iter().find(|core| core.id() == entry.keyspace);
            let keyspace = keyspace.ok_or_else(damaged)?;
            is_separated |= self.put_entry(
                record,
                keyspace,
                entry.kind,
                entry.key,
                entry.value,
                touched,
            )?;
        }
        Ok(is_separated)
    }

    fn put_entry(
        &self,
        record: &mut Vec<u8>,
        keyspace: &Arc<KeyspaceCore>,
        kind: Kind,
        key: &[u8],
        value: &[u8],
        touched: &mut Touched,
    ) -> Result<bool> {
        let options = keyspace.options();
        let is_large =
            kind == Kind::Value && policy::class(key.len(), value.len(), &options) == Class::Large;
        if !is_large {
            batch::put_entry(record, keyspace.id(), kind, key, value);
            return Ok(false);
        }
        let Some(pointer) = self.append_value(keyspace, &options, key, value, touched)? else {
            // The keyspace is gone, and nobody reads what is written to it.
            batch::put_entry(record, keyspace.id(), Kind::Tombstone, key, &[]);
            return Ok(true);
        };
        let mut encoded = Vec::new();
        pointer.encode(&mut encoded);
        batch::put_entry(record, keyspace.id(), Kind::ValueLogPointer, key, &encoded);
        Ok(true)
    }

    /// Appends a value to the log of its keyspace; `None` where that was dropped.
    fn append_value(
        &self,
        keyspace: &Arc<KeyspaceCore>,
        options: &KeyspaceOptions,
        key: &[u8],
        value: &[u8],
        touched: &mut Touched,
    ) -> Result<Option<ValuePointer>> {
        // What a group adds goes to one log.
        if !touched.has(keyspace) {
            let made = self.make_space_for_values(keyspace);
            made.inspect_err(|_| touched.is_refused = true)?;
        }
        let mut log = keyspace.value_log.lock();
        let Some(active) = &mut log.active else {
            return Ok(None);
        };
        touched.note(keyspace);
        active.append(key, value, options.compression).map(Some)
    }

    /// Begins a new value log where the present one is full or there is none.
    fn make_space_for_values(&self, keyspace: &Arc<KeyspaceCore>) -> Result<()> {
        let log_bytes = keyspace.value_log_bytes();
        let mut log = keyspace.value_log.lock();
        let is_full =
            |file: ValueFileMeta| policy::is_value_log_full(file.length, file.entries, log_bytes);
        if log.position().is_some_and(|file| !is_full(file)) {
            return Ok(());
        }
        log.retire();
        drop(log); // Flushes take this lock under that of the catalog.
        let created = self.create_value_log(keyspace)?;
        keyspace.value_log.lock().active = created;
        Ok(())
    }

    /// An empty value log that the manifest knows (I1); `None` where the keyspace was dropped.
    fn create_value_log(&self, keyspace: &Arc<KeyspaceCore>) -> Result<Option<ValueLogWriter>> {
        let number = FileNumber(self.catalog.allocate()?);
        let writer = ValueLogWriter::create(&*self.options.vfs, &self.directory, number)?;
        let record = Record::AddValueLog {
            keyspace: keyspace.id(),
            number,
        };
        let added = self.sync_directory().and_then(|()| {
            self.catalog.commit_in(
                keyspace,
                |_| vec![record],
                |state| {
                    keyspace.install_version(self.next_version(keyspace, state, &[], &[]));
                },
            )
        });
        match added {
            Ok(()) => Ok(Some(writer)),
            Err(error) => {
                if !self.poison.is_set() {
                    self.remove_file(FileName::Values(number));
                }
                match error.kind() {
                    ErrorKind::NotFound => Ok(None),
                    _ => Err(error),
                }
            }
        }
    }

    /// Writes the record that `log` has begun, and before it the values that it points to.
    pub(super) fn write_record(
        &self,
        log: &mut LogWriter,
        touched: &Touched,
        last: SequenceNumber,
    ) -> Result<()> {
        let written = touched.write(&log.shared()).and_then(|bytes| {
            stats::add(&self.counters.value_log_bytes, bytes);
            log.commit()
        });
        match &written {
            Ok(()) => {
                if touched.keep(last) {
                    self.background.request_rotation();
                }
            }
            Err(_) => touched.forget(),
        }
        written
    }
}

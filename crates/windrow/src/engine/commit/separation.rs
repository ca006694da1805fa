//! The separation of large values from the entries of a group.
//!
//! The leader of the commits appends the large values of its group to the [value logs](super::value_log) of their
//! keyspaces and writes those. Then it writes the record of the write-ahead log, which has pointers
//! instead of the values. The write-ahead log becomes durable only together with the values that it
//! refers to ([`LogSync::refer_to`](crate::log::LogSync::refer_to)).
//!
//! Concurrency: that of [`value_log`](super::value_log).

use std::sync::Arc;

use super::write::Write;
use crate::base::expiry::{put_expiring, split_expiring};
use crate::base::{Error, ErrorKind, FileNumber, Kind, Result, SequenceNumber};
use crate::engine::counters;
use crate::engine::{Engine, KeyspaceCore};
use crate::log::batch::{self, BatchReader};
use crate::log::{LogSync, LogWriter};
use crate::manifest::Record;
use crate::manifest::names::FileName;
use crate::options::KeyspaceOptions;
use crate::policy::{self, Class};
use crate::value::{ValueFileMeta, ValueLogWriter, ValuePointer};

/// The entries of one writer as logged, if values were separated from them.
pub(super) type Logged = Option<Vec<u8>>;

/// The value logs that hold values of a group.
#[derive(Debug, Default)]
pub(super) struct Touched {
    keyspaces: Vec<Arc<KeyspaceCore>>,
    /// Whether no value log could be created for a value.
    is_log_missing: bool,
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

    /// Writes the values before `log` refers to them (I2 of [`value_log`](super::value_log)). Returns the bytes
    /// written.
    #[inline]
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

    /// Accepts the values: the record that points to them was written, with entries up to `last`. Returns
    /// whether any memtable has reached its limit of value bytes.
    #[inline]
    pub(super) fn accept(&self, last: SequenceNumber) -> bool {
        let mut is_enough = false;
        for keyspace in &self.keyspaces {
            let mut log = keyspace.value_log.lock();
            log.last_sequence = last;
            if let Some(active) = &mut log.active {
                let before = active.position().end;
                active.keep();
                let more = active.position().end - before;
                log.memtable_value_bytes += more;
            }
            is_enough |= keyspace.is_value_limit_reached(log.memtable_value_bytes);
        }
        is_enough
    }

    /// Discards the values: their record was not written. A value log that has them in its file ends before them.
    pub(super) fn discard(&self) {
        for keyspace in &self.keyspaces {
            let mut log = keyspace.value_log.lock();
            let is_clean = log.active.as_mut().is_none_or(ValueLogWriter::forget);
            if !is_clean {
                log.retire();
            }
        }
    }

    /// Whether the group failed before its record was written, because no value log could be created.
    pub(super) fn is_log_missing(&self) -> bool {
        self.is_log_missing
    }
}

impl Engine {
    /// Appends the entries of `write` to `record`, and large values to their value logs. Returns the
    /// entries as logged if it separated any.
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

    /// The same as [`put_entries`](Self::put_entries), for encoded entries.
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
            let Some(keyspace) = keyspace else {
                if batch::numbered(&entry).is_none() {
                    return Err(damaged());
                }
                batch::put_entry(record, entry.keyspace, entry.kind, entry.key, entry.value);
                continue;
            };
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
        stored: &[u8],
        touched: &mut Touched,
    ) -> Result<bool> {
        let options = keyspace.options();
        let (expiry, value) = match kind {
            Kind::ExpiringValue => {
                let (expiry, value) = split_expiring(stored);
                (Some(expiry), value)
            }
            _ => (None, stored),
        };
        let is_large = kind.lasting() == Kind::Value
            && policy::class(key.len(), value.len(), &options) == Class::Large;
        if !is_large {
            batch::put_entry(record, keyspace.id(), kind, key, stored);
            return Ok(false);
        }
        let Some(pointer) = self.append_value(keyspace, &options, key, value, touched)? else {
            // The keyspace was dropped, and no reader sees this entry.
            batch::put_entry(record, keyspace.id(), Kind::Tombstone, key, &[]);
            return Ok(true);
        };
        let mut encoded = Vec::new();
        let kind = match expiry {
            Some(expiry) => {
                put_expiring(&mut encoded, expiry, &[]);
                Kind::ExpiringValueLogPointer
            }
            None => Kind::ValueLogPointer,
        };
        pointer.encode(&mut encoded);
        batch::put_entry(record, keyspace.id(), kind, key, &encoded);
        Ok(true)
    }

    /// Appends a value to the log of its keyspace; `None` if the keyspace was dropped.
    fn append_value(
        &self,
        keyspace: &Arc<KeyspaceCore>,
        options: &KeyspaceOptions,
        key: &[u8],
        value: &[u8],
        touched: &mut Touched,
    ) -> Result<Option<ValuePointer>> {
        // All values of a group and keyspace go to one log.
        if !touched.has(keyspace) {
            let made = self.make_space_for_values(keyspace);
            made.inspect_err(|_| touched.is_log_missing = true)?;
        }
        let mut log = keyspace.value_log.lock();
        let Some(active) = &mut log.active else {
            return Ok(None);
        };
        touched.note(keyspace);
        active.append(key, value, options.compression).map(Some)
    }

    /// Begins a new value log if the active one is full or none exists.
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

    /// An empty value log that the manifest names (I1); `None` if the keyspace was dropped.
    fn create_value_log(&self, keyspace: &Arc<KeyspaceCore>) -> Result<Option<ValueLogWriter>> {
        let number = FileNumber(self.catalog.allocate()?);
        let writer = ValueLogWriter::create(&*self.options.vfs, &self.directory, number)?;
        let record = Record::AddValueLog {
            keyspace: keyspace.id(),
            number,
        };
        let added = self.add_to_manifest(FileName::Values(number), || {
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
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes the values of the group, then the record of `log` that points to them.
    pub(super) fn write_record(
        &self,
        log: &mut LogWriter,
        touched: &Touched,
        last: SequenceNumber,
    ) -> Result<()> {
        let written = touched.write(&log.shared()).and_then(|bytes| {
            counters::add(&self.counters.value_log_bytes, bytes);
            log.commit()
        });
        match &written {
            Ok(()) => {
                if touched.accept(last) {
                    self.background.request_rotation();
                }
            }
            Err(_) => touched.discard(),
        }
        written
    }
}

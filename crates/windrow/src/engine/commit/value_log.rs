//! The value logs of a keyspace that are not sealed yet.
//!
//! [`separation`](super::separation) appends large values to the active log. A log that has reached its size
//! is full, and the next value begins a new log. These seal logs in the manifest:
//!
//! 1. A flush syncs all logs and seals the full ones.
//! 2. If no flush will come, because no entry needs one, a job seals the full ones.
//! 3. If the active log is mostly garbage, the tree takes too much space, and no other log is worth a
//!    garbage collection, the active log becomes full early. Then 1 or 2 applies.
//! 4. An open seals all logs. New values go to new logs.
//!
//! Invariants:
//! - I1: The manifest names a value log durably before a record points into it.
//! - I2: A value is written before the record that points to it.
//! - I3: For a log that is being written, the manifest covers exactly the values that flushed entries
//!   refer to. Recovery adds those that the write-ahead log refers to.
//!
//! Concurrency: one lock per keyspace. Only a thread that has the leadership of the commits appends, retires and
//! writes. Jobs and statistics take the lock to read the state; edits that seal logs take it under the catalog's lock.

use crate::base::{FileNumber, KeyspaceId, SequenceNumber};
use crate::manifest::Record;
use crate::value::{ValueFileMeta, ValueLogWriter};

/// The value logs of one keyspace that are not sealed.
#[derive(Debug, Default)]
pub(crate) struct ValueLog {
    pub(super) active: Option<ValueLogWriter>,
    /// The newest entry that points into the active one.
    pub(super) last_sequence: SequenceNumber,
    /// The full logs, oldest first.
    full: Vec<FullLog>,
    /// Bytes of values that entries of the active memtable point to.
    pub(super) memtable_value_bytes: u64,
}

/// A value log that gets no more values.
#[derive(Debug, Clone, Copy)]
struct FullLog {
    file: ValueFileMeta,
    last_sequence: SequenceNumber,
}

impl FullLog {
    fn seal(&self, keyspace: KeyspaceId) -> Record {
        Record::SealValueLog {
            keyspace,
            file: self.file,
            last_sequence: self.last_sequence,
        }
    }
}

impl ValueLog {
    /// Logs that another process writes, as far as a state refers to them, each with the newest entry that points there.
    pub(in crate::engine) fn of_state(
        logs: impl Iterator<Item = (ValueFileMeta, SequenceNumber)>,
    ) -> Self {
        let full = |(file, last_sequence)| FullLog {
            file,
            last_sequence,
        };
        Self {
            full: logs.map(full).collect(),
            ..Self::default()
        }
    }

    /// The end of the active log.
    pub(in crate::engine) fn position(&self) -> Option<ValueFileMeta> {
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

    /// Bytes of values that entries of the active memtable point to.
    pub(in crate::engine) fn memtable_value_bytes(&self) -> u64 {
        self.memtable_value_bytes
    }

    /// Starts the count for a new memtable. Returns the end of the active log.
    pub(in crate::engine) fn note_rotation(&mut self) -> Option<ValueFileMeta> {
        self.memtable_value_bytes = 0;
        self.position()
    }

    /// The records that seal every log at its present end.
    pub(in crate::engine) fn seals(&self, keyspace: KeyspaceId) -> Vec<Record> {
        let logs = self.full.iter().copied().chain(self.active_ended());
        logs.map(|log| log.seal(keyspace)).collect()
    }

    /// The records of a flush: they seal the first `durable` full logs, and record `position` for the log
    /// that a memtable's last entries point into.
    pub(in crate::engine) fn flush_records(
        &self,
        keyspace: KeyspaceId,
        durable: usize,
        position: Option<ValueFileMeta>,
    ) -> Vec<Record> {
        let (sealed, rest) = self.full.split_at(durable);
        let active = self.position();
        let open = rest.iter().map(|log| log.file).chain(active);
        let is_open = |file: &ValueFileMeta| open.clone().any(|log| log.number == file.number);
        let at = position
            .filter(is_open)
            .map(|file| Record::ValueLogAt { keyspace, file });
        sealed
            .iter()
            .map(|log| log.seal(keyspace))
            .chain(at)
            .collect()
    }

    /// Forgets the first `count` full logs, which the manifest has sealed.
    pub(in crate::engine) fn note_sealed(&mut self, count: usize) {
        self.full.drain(..count);
    }

    /// The number of full logs.
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

    /// The bytes of the logs that are not sealed.
    pub(in crate::engine) fn bytes(&self) -> u64 {
        let full = self.full.iter().map(|log| log.file);
        full.chain(self.position()).map(|file| file.length).sum()
    }

    /// Makes the active log a full one.
    pub(in crate::engine) fn retire(&mut self) {
        self.full.extend(self.active_ended());
        self.active = None;
    }

    /// The active log, ended at its present end.
    fn active_ended(&self) -> Option<FullLog> {
        self.position().map(|file| FullLog {
            file,
            last_sequence: self.last_sequence,
        })
    }
}

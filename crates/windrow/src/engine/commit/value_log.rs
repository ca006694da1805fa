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

use crate::base::{FileNumber, KeyspaceId, SequenceNumber};
use crate::manifest::Record;
use crate::value::{ValueFileMeta, ValueLogWriter};

/// The value logs of one keyspace that are not sealed.
#[derive(Debug, Default)]
pub(crate) struct ValueLog {
    pub(super) active: Option<ValueLogWriter>,
    /// The newest entry that points into the active one.
    pub(super) last_sequence: SequenceNumber,
    /// Those that are full, oldest first.
    full: Vec<FullLog>,
    /// Bytes to which entries of the active memtable point.
    pub(super) behind: u64,
}

/// A value log to which nothing is added.
#[derive(Debug)]
struct FullLog {
    file: ValueFileMeta,
    last_sequence: SequenceNumber,
}

impl ValueLog {
    /// How far the active log has come.
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

//! The entries that a [follower](super::follower) reads from the logs: what they need, and where they go.
//!
//! I1. An entry is applied only if the state names its keyspace and its value file, and if its value is there.
//! I2. What a value log has is known up to the last value that an applied entry points to: a copy of the state ends it there.
//!
//! Concurrency: one thread.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::key::SEQUENCE_MAX;
use crate::base::sync::Shared;
use crate::base::{
    Cursor as _, Error, ErrorKind, FileNumber, KeyspaceId, Result, SequenceNumber, Trailer,
};
use crate::engine::recovery::replay::Target;
use crate::engine::recovery::value_order::{ValueOrder, misplaced};
use crate::log::batch::{self, Entry};
use crate::manifest::names::FileName;
use crate::manifest::{ManifestState, ValueFileKind, ValueFileState, Version};
use crate::memtable::{Memtable, MemtableCursor};
use crate::value::{ValueFileMeta, ValuePointer, ValueReadBuffers};
use crate::vfs::{OpenMode, Vfs};

/// The entries of one keyspace.
#[derive(Debug)]
pub(super) struct Tree {
    /// Those that are not flushed.
    pub(super) memtable: Arc<Memtable>,
    pub(super) version: Shared<Version>,
    pub(super) flushed: SequenceNumber,
    /// Whether anything has changed since the last view.
    pub(super) is_changed: bool,
}

/// The part of a value log that records point to, and the newest of these.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadValueLog {
    pub(super) file: ValueFileMeta,
    pub(super) last_sequence: SequenceNumber,
}

/// By file.
pub(super) type ReadValueLogs = BTreeMap<FileNumber, ReadValueLog>;

/// What became of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Applied(SequenceNumber),
    /// The manifest that was read does not name what it needs.
    NeedsManifest,
    /// It is the number of an ingestion whose tables are not there.
    NeedsTables,
    /// A value is missing.
    MissingValue,
}

/// What records point to in the value log `log`, by what was `read`, or by the manifest if that covers more.
pub(super) fn read_value_log(
    log: &ValueFileState,
    flushed: SequenceNumber,
    read: &ReadValueLogs,
) -> ReadValueLog {
    let recorded = ReadValueLog {
        file: log.file,
        last_sequence: flushed,
    };
    let read = read.get(&log.file.number).copied();
    let further = read.filter(|read| read.file.length > recorded.file.length);
    further.unwrap_or(recorded)
}

fn decode(pointer: &[u8]) -> Result<ValuePointer> {
    ValuePointer::decode(pointer).map_err(|error| {
        let what = format!("an entry of the write-ahead log: {}", error.what);
        Error::new(ErrorKind::Corruption, what)
    })
}

/// Copies the entries of `from` above `flushed` to `to`.
pub(super) fn copy_newer(from: &Memtable, flushed: SequenceNumber, to: &Memtable) -> Result<()> {
    let mut cursor = MemtableCursor::new(from);
    cursor.seek(&[], SEQUENCE_MAX)?;
    while cursor.is_valid() {
        let trailer = cursor.trailer();
        if trailer.sequence() > flushed {
            insert(to, cursor.key(), trailer, cursor.value());
        }
        cursor.next()?;
    }
    Ok(())
}

fn insert(memtable: &Memtable, key: &[u8], trailer: Trailer, value: &[u8]) {
    if trailer.is_tombstone() {
        memtable.insert_tombstone(key, trailer, value);
    } else {
        memtable.insert(key, trailer, value);
    }
}

/// How the values that records point to are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueCheck {
    /// They are known to be durable: their reads report damage.
    None,
    /// Their files are long enough.
    Length,
    /// They are read.
    Content,
}

/// The value files that records point into. What this knows may be older than the next record.
pub(super) struct Values {
    vfs: Arc<dyn Vfs>,
    directory: PathBuf,
    buffers: ValueReadBuffers,
    lengths: BTreeMap<FileNumber, u64>,
    order: ValueOrder,
}

impl Values {
    pub(super) fn new(vfs: &Arc<dyn Vfs>, directory: &Path) -> Self {
        let of = || (Arc::clone(vfs), directory.to_owned());
        Self {
            vfs: of().0,
            directory: of().1,
            buffers: ValueReadBuffers::new(of().0, of().1, &Arc::default(), u64::MAX),
            lengths: BTreeMap::new(),
            order: ValueOrder::default(),
        }
    }

    /// Forgets which values were read, before a record is read again.
    pub(super) fn read_again(&mut self) {
        self.order = ValueOrder::default();
    }

    fn is_sound(
        &mut self,
        file: &ValueFileMeta,
        key: &[u8],
        pointer: &ValuePointer,
    ) -> Result<bool> {
        self.order.pass(pointer)?;
        match self.buffers.read(file, key, pointer) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::Corruption => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn is_long_enough(&mut self, pointer: &ValuePointer) -> Result<bool> {
        let end = pointer.offset + pointer.record_bytes;
        let known = self.lengths.get(&pointer.file);
        if known.is_some_and(|length| *length >= end) {
            return Ok(true);
        }
        let name = FileName::Values(pointer.file).to_string();
        let path = self.directory.join(name);
        let opened = self.vfs.open(&path, OpenMode::Read);
        let length = match opened.and_then(|file| file.length()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            outcome => outcome.map_err(|error| Error::io("read", &path, error))?,
        };
        self.lengths.insert(pointer.file, length);
        Ok(length >= end)
    }
}

/// Receives the entries of a record.
pub(super) struct Entries<'a> {
    pub(super) state: &'a ManifestState,
    pub(super) trees: &'a mut BTreeMap<KeyspaceId, Tree>,
    pub(super) value_logs: &'a mut ReadValueLogs,
    pub(super) values: &'a mut Values,
    pub(super) check: ValueCheck,
    /// Why an entry was refused.
    pub(super) refused: Outcome,
}

impl Entries<'_> {
    /// Counts the value of `entry`, if its file is being written.
    fn note_value(&mut self, entry: &Entry<'_>, pointer: &ValuePointer) -> Result<()> {
        let keyspace = self.state.keyspaces.get(&entry.keyspace);
        let file = keyspace.and_then(|it| Some((it, it.values.files.get(&pointer.file)?)));
        let open = file.filter(|(_, log)| log.kind == ValueFileKind::OpenLog);
        let Some((keyspace, log)) = open else {
            return Ok(());
        };
        let mut read = read_value_log(log, keyspace.flushed, self.value_logs);
        if pointer.offset != read.file.length {
            return Err(misplaced(pointer));
        }
        read.file.length = pointer.offset + pointer.record_bytes;
        read.file.end = read.file.length;
        read.file.entries += 1;
        read.file.value_bytes = read.file.value_bytes.saturating_add(pointer.value_bytes);
        read.last_sequence = entry.sequence;
        self.value_logs.insert(pointer.file, read);
        Ok(())
    }

    fn refuse(&mut self, why: Outcome) -> bool {
        self.refused = why;
        false
    }
}

impl Target for Entries<'_> {
    fn has_value(&mut self, entry: &Entry<'_>) -> Result<bool> {
        if batch::numbered(entry).is_some() {
            return Ok(
                self.state.last_sequence() >= entry.sequence || self.refuse(Outcome::NeedsTables)
            );
        }
        let Some(tree) = self.trees.get(&entry.keyspace) else {
            return Ok(self.state.is_dropped(entry.keyspace) || self.refuse(Outcome::NeedsManifest));
        };
        let Some(pointer) = entry
            .log_pointer()
            .filter(|_| entry.sequence > tree.flushed)
        else {
            return Ok(true);
        };
        let pointer = decode(pointer)?;
        let keyspace = self.state.keyspaces.get(&entry.keyspace);
        let file = keyspace.and_then(|it| it.values.files.get(&pointer.file));
        let Some(file) = file.map(ValueFileState::as_read) else {
            return Ok(self.refuse(Outcome::NeedsManifest));
        };
        let is_there = match self.check {
            ValueCheck::None => true,
            ValueCheck::Length => self.values.is_long_enough(&pointer)?,
            ValueCheck::Content => self.values.is_sound(&file, entry.key, &pointer)?,
        };
        Ok(is_there || self.refuse(Outcome::MissingValue))
    }

    fn apply(&mut self, entry: Entry<'_>, _is_durable: bool) -> Result<bool> {
        let tree = self.trees.get(&entry.keyspace);
        if tree.is_none_or(|tree| entry.sequence <= tree.flushed) {
            return Ok(false);
        }
        if let Some(pointer) = entry.log_pointer() {
            self.note_value(&entry, &decode(pointer)?)?;
        }
        let trailer = Trailer::new(entry.sequence, entry.kind);
        if let Some(tree) = self.trees.get_mut(&entry.keyspace) {
            tree.is_changed = true;
            insert(&tree.memtable, entry.key, trailer, entry.value);
        }
        Ok(true)
    }
}

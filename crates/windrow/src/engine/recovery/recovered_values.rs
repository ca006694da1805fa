//! The recovery of replayed entries: it inserts them into memtables, and finds the end of each value log.
//!
//! For a value log that was being written, the manifest covers the values that flushed entries refer to. The
//! recovery adds those that the write-ahead log refers to and seals the log there. New values go to new
//! files. If history is cut at damage, logs that were sealed with later values are cut as well
//! ([`RecoveredValues::cut_behind`]): a garbage collection must find each record referred to, or named by a discard list.
//!
//! Concurrency: one thread, before the database is open.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::replay::Target;
use super::value_order::{ValueOrder, misplaced};
use crate::base::{Error, ErrorKind, FileNumber, KeyspaceId, Result, SequenceNumber, Trailer};
use crate::engine::KeyspaceCore;
use crate::log::batch::Entry;
use crate::manifest::names::FileName;
use crate::manifest::{Edit, ManifestState, Record, ValueFileKind, ValueFileState};
use crate::value::{RecordReader, ValueFileMeta, ValuePointer, ValueReadBuffers, rewrite};
use crate::vfs::Vfs;

/// A value log that was being written.
#[derive(Debug)]
struct OpenLog {
    keyspace: KeyspaceId,
    /// How much of it entries refer to.
    file: ValueFileMeta,
    /// The records after the part that is known to be durable: offsets and lengths.
    in_doubt: Vec<(u64, usize)>,
    last_sequence: SequenceNumber,
}

/// Receives the history: the [`Target`] of the replay.
#[derive(Debug)]
pub(super) struct RecoveredValues<'a> {
    state: &'a ManifestState,
    /// By id.
    keyspaces: &'a [Arc<KeyspaceCore>],
    logs: BTreeMap<FileNumber, OpenLog>,
    /// How many entries refer to each other value log.
    in_other_logs: BTreeMap<FileNumber, u64>,
    values: ValueReadBuffers,
    order: ValueOrder,
}

impl<'a> RecoveredValues<'a> {
    pub(super) fn new(
        vfs: &Arc<dyn Vfs>,
        directory: &Path,
        state: &'a ManifestState,
        keyspaces: &'a [Arc<KeyspaceCore>],
    ) -> Self {
        let mut logs = BTreeMap::new();
        for (&id, keyspace) in &state.keyspaces {
            let open = keyspace.values.files.values();
            for log in open.filter(|file| file.kind == ValueFileKind::OpenLog) {
                let open = OpenLog {
                    keyspace: id,
                    file: log.file,
                    in_doubt: Vec::new(),
                    last_sequence: keyspace.flushed,
                };
                logs.insert(log.file.number, open);
            }
        }
        Self {
            state,
            keyspaces,
            logs,
            in_other_logs: BTreeMap::new(),
            values: ValueReadBuffers::new(
                Arc::clone(vfs),
                directory.to_owned(),
                &Arc::default(),
                u64::MAX,
            ),
            order: ValueOrder::default(),
        }
    }

    /// Makes the replayed values durable.
    pub(super) fn make_durable(&self, vfs: &dyn Vfs, directory: &Path) -> Result<()> {
        for log in self.logs.values() {
            if !log.in_doubt.is_empty() {
                rewrite(vfs, directory, log.file.number, &log.in_doubt)?;
            }
        }
        Ok(())
    }

    /// Each value log up to the last value that an entry refers to, with its keyspace and the newest such entry.
    pub(super) fn ends(&self) -> Vec<(KeyspaceId, ValueFileMeta, SequenceNumber)> {
        let logs = self.logs.values();
        logs.map(|log| (log.keyspace, log.file, log.last_sequence))
            .collect()
    }

    /// The edit that seals each value log after the last value that an entry refers to. It keeps no log
    /// open: a log without references is removed next.
    pub(super) fn into_seals(self) -> Edit {
        let seal = |log: &OpenLog| Record::SealValueLog {
            keyspace: log.keyspace,
            file: log.file,
            last_sequence: log.last_sequence,
        };
        Edit {
            records: self.logs.values().map(seal).collect(),
        }
    }

    /// The value logs that were sealed with values of commits behind `last`, the end of a history that was cut: each with what
    /// is left of it, the values that entries refer to or have referred to. A log whose records cannot be read is left as it
    /// is.
    ///
    /// # Errors
    /// Those of I/O.
    pub(super) fn cut_behind(
        &self,
        vfs: &dyn Vfs,
        directory: &Path,
        last: SequenceNumber,
    ) -> Result<Vec<(KeyspaceId, ValueFileMeta)>> {
        let mut cut = Vec::new();
        for (&id, keyspace) in &self.state.keyspaces {
            let known = last.max(keyspace.flushed);
            let values = &keyspace.values;
            for (number, log) in values.files.iter() {
                let ValueFileKind::SealedLog { last_sequence } = log.kind else {
                    continue;
                };
                if last_sequence <= known {
                    continue;
                }
                let replayed = self.in_other_logs.get(number).copied().unwrap_or(0);
                let in_tables = log.live().entries + values.garbage_in(*number);
                let count = in_tables.saturating_add(replayed);
                match first_records(vfs, directory, &log.file, count) {
                    Ok(file) => cut.push((id, file)),
                    Err(error) if error.kind() == ErrorKind::Corruption => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(cut)
    }

    /// The keyspace of an entry that is in no table yet.
    fn unflushed(&self, entry: &Entry<'_>) -> Result<Option<&'a Arc<KeyspaceCore>>> {
        let keyspaces = self.keyspaces;
        let found = keyspaces.binary_search_by_key(&entry.keyspace, |core| core.id());
        let Some(keyspace) = found.ok().and_then(|index| keyspaces.get(index)) else {
            if self.state.is_dropped(entry.keyspace) {
                return Ok(None);
            }
            return Err(unknown_keyspace(entry.keyspace));
        };
        let known = self.state.keyspaces.get(&entry.keyspace);
        let flushed = known.map_or(0, |state| state.flushed);
        Ok((entry.sequence > flushed).then_some(keyspace))
    }

    /// The value file of `pointer`, as its keyspace knows it.
    fn file(&self, keyspace: KeyspaceId, pointer: &ValuePointer) -> Result<ValueFileMeta> {
        let known = self.state.keyspaces.get(&keyspace);
        let file = known.and_then(|keyspace| keyspace.values.files.get(&pointer.file));
        file.map(ValueFileState::as_read).ok_or_else(|| {
            Error::new(
                ErrorKind::Corruption,
                format!(
                    "the write-ahead log points into {}, which the manifest does not know",
                    FileName::Values(pointer.file)
                ),
            )
        })
    }

    /// Counts one more reference to a log.
    fn note(
        &mut self,
        sequence: SequenceNumber,
        pointer: &ValuePointer,
        is_durable: bool,
    ) -> Result<()> {
        let Some(log) = self.logs.get_mut(&pointer.file) else {
            *self.in_other_logs.entry(pointer.file).or_default() += 1;
            return Ok(());
        };
        if pointer.offset != log.file.length {
            return Err(misplaced(pointer));
        }
        log.file.length = pointer.offset + pointer.record_bytes;
        log.file.end = log.file.length;
        log.file.entries += 1;
        log.file.value_bytes = log.file.value_bytes.saturating_add(pointer.value_bytes);
        log.last_sequence = sequence;
        if is_durable {
            log.in_doubt.clear();
        } else {
            let length = usize::try_from(pointer.record_bytes).unwrap_or(usize::MAX);
            log.in_doubt.push((pointer.offset, length));
        }
        Ok(())
    }
}

/// The first `count` records of a value log: they are in the order of commits.
fn first_records(
    vfs: &dyn Vfs,
    directory: &Path,
    file: &ValueFileMeta,
    count: u64,
) -> Result<ValueFileMeta> {
    let mut records = RecordReader::open(vfs, directory, file)?;
    let mut first = ValueFileMeta {
        length: 0,
        entries: 0,
        value_bytes: 0,
        end: 0,
        ..*file
    };
    while first.entries < count
        && let Some((_, pointer)) = records.next()?
    {
        first.length = pointer.offset + pointer.record_bytes;
        first.end = first.length;
        first.entries += 1;
        first.value_bytes = first.value_bytes.saturating_add(pointer.value_bytes);
    }
    Ok(first)
}

fn unknown_keyspace(id: KeyspaceId) -> Error {
    Error::new(
        ErrorKind::Corruption,
        format!("the write-ahead log names keyspace {id}, which the manifest does not know"),
    )
}

fn decode(pointer: &[u8]) -> Result<ValuePointer> {
    ValuePointer::decode(pointer).map_err(|error| {
        let what = format!("an entry of the write-ahead log: {}", error.what);
        Error::new(ErrorKind::Corruption, what)
    })
}

impl Target for RecoveredValues<'_> {
    fn has_value(&mut self, entry: &Entry<'_>) -> Result<bool> {
        let Some(pointer) = entry.log_pointer() else {
            return Ok(true);
        };
        if self.unflushed(entry)?.is_none() {
            return Ok(true);
        }
        let pointer = decode(pointer)?;
        let file = self.file(entry.keyspace, &pointer)?;
        self.order.pass(&pointer)?;
        match self.values.read(&file, entry.key, &pointer) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::Corruption => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn apply(&mut self, entry: Entry<'_>, is_durable: bool) -> Result<bool> {
        let Some(keyspace) = self.unflushed(&entry)? else {
            return Ok(false);
        };
        if let Some(pointer) = entry.log_pointer() {
            let pointer = decode(pointer)?;
            self.file(entry.keyspace, &pointer)?;
            self.note(entry.sequence, &pointer, is_durable)?;
        }
        let memtable = Arc::clone(&keyspace.state().active);
        let trailer = Trailer::new(entry.sequence, entry.kind);
        if trailer.is_tombstone() {
            memtable.insert_tombstone(entry.key, trailer, entry.value);
        } else {
            memtable.insert(entry.key, trailer, entry.value);
        }
        if keyspace.is_memtable_full() {
            keyspace.rotate(entry.sequence);
        }
        Ok(true)
    }
}

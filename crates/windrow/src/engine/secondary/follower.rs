//! A reader of manifest and logs that follows a writer in another process.
//!
//! Each pass reads the new edits of the manifest, then what the logs have behind the last record that was read. Nothing
//! overtakes the log, so the logs have every entry that the manifest calls flushed.
//!
//! I1. The state after a pass is a prefix of the commit order: all tables of the manifest, and each record of the logs up to
//!     the last one, applied once.
//! I2. A record is applied only if the manifest that was read names what it needs: its keyspaces, and its value files.
//!     Otherwise the manifest is read again: both are named durably before the record is written.
//! I3. A record by which an ingestion has taken its number is passed only if its tables are there, or if a record follows it
//!     in the log: then they never will be, or the manifest, read after that, has them.
//! I4. A place without a sound record is looked at twice, since its record may have been half written. If the log is known to
//!     go on behind it, that is damage, or a torn log that no writer has opened yet: the rules of
//!     [`tail`](crate::log) decide.
//! I5. No entry of a tree is in its memtable and in its tables: folds count operands.
//!
//! Concurrency: one thread. Readers of earlier states share the memtables: new entries have higher sequence numbers.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::base::key::SEQUENCE_MAX;
use crate::base::sync::Shared;
use crate::base::{
    Cursor as _, Error, ErrorKind, FileNumber, KeyspaceId, Result, SequenceNumber, Trailer,
};
use crate::engine::recovery::open::no_database;
use crate::engine::recovery::replay::{
    Batch, Target, check_predecessor, lost_record, lost_value, read_header, wal_name,
};
use crate::engine::throttling::memory::Memory;
use crate::log::batch::{self, Entry};
use crate::log::{LogReader, WalHeader};
use crate::manifest::names::FileName;
use crate::manifest::{
    Contradiction, ManifestFollower, ManifestState, News, Obsolete, ValueFileKind, ValueFileState,
    Version,
};
use crate::memtable::{Memtable, MemtableCursor};
use crate::value::{ValueFileMeta, ValuePointer, ValueReadBuffers};
use crate::vfs::Vfs;

/// The entries of one keyspace.
#[derive(Debug)]
pub(super) struct Tree {
    /// Those that are not flushed.
    pub(super) memtable: Arc<Memtable>,
    pub(super) version: Shared<Version>,
    flushed: SequenceNumber,
}

/// The log that is read.
#[derive(Debug)]
struct OpenLog {
    number: FileNumber,
    name: String,
    reader: LogReader,
    first_sequence: SequenceNumber,
    /// Whether all of it is known to be durable: then its values exist, or their reads report the damage.
    is_durable: bool,
}

/// Why a pass over a log ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The log is closed, and read as a whole.
    Closed,
    /// What comes next is not written yet.
    Written,
    /// The history of the database is another one now than the one that was read.
    Diverged,
}

/// What became of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Applied(SequenceNumber),
    /// The manifest that was read does not name what it needs.
    NeedsManifest,
    /// It is the number of an ingestion whose tables are not there.
    NeedsTables,
    /// A value is missing.
    MissingValue,
}

/// The state of a database, up to the end of a pass.
#[derive(Debug)]
pub(super) struct Follower {
    vfs: Arc<dyn Vfs>,
    directory: PathBuf,
    memory: Arc<Memory>,
    obsolete: Arc<Obsolete>,
    manifest: ManifestFollower,
    trees: BTreeMap<KeyspaceId, Tree>,
    log: Option<OpenLog>,
    /// The log before it, and where it has ended.
    before: Option<(FileNumber, u64)>,
    last_sequence: SequenceNumber,
    /// The logs that are read as a whole, and that recovery would read.
    closed: Vec<ReadLog>,
    /// The value logs that are being written, up to the last value that a record points to.
    value_logs: BTreeMap<FileNumber, ReadValueLog>,
}

/// The part of a log that was read.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadLog {
    pub(super) number: FileNumber,
    pub(super) first_sequence: SequenceNumber,
    pub(super) last_sequence: SequenceNumber,
    pub(super) length: u64,
}

/// The part of a value log that records point to, and the newest of these.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadValueLog {
    pub(super) file: ValueFileMeta,
    pub(super) last_sequence: SequenceNumber,
}

impl Follower {
    /// Reads the database in `directory`.
    ///
    /// # Errors
    /// `NotFound`; `Corruption`; `Unsupported`; `Io`.
    pub(super) fn open(
        vfs: &Arc<dyn Vfs>,
        directory: &PathBuf,
        memory: &Arc<Memory>,
        obsolete: &Arc<Obsolete>,
    ) -> Result<Self> {
        let manifest = ManifestFollower::open(&**vfs, directory)?;
        let mut follower = Self {
            vfs: Arc::clone(vfs),
            directory: directory.clone(),
            memory: Arc::clone(memory),
            obsolete: Arc::clone(obsolete),
            manifest: manifest.ok_or_else(|| no_database(directory))?,
            trees: BTreeMap::new(),
            log: None,
            before: None,
            last_sequence: 0,
            closed: Vec::new(),
            value_logs: BTreeMap::new(),
        };
        follower.update_trees()?;
        match follower.follow_logs()? {
            End::Diverged => Err(follower.contradiction("it falls back while it is read")),
            _ => Ok(follower),
        }
    }

    /// Reads what was written since. `None` if the database has another history now, for example after a power failure
    /// that the writer has survived in a copy: then only a new follower can read it. Otherwise whether anything has changed.
    ///
    /// # Errors
    /// `Corruption`; `Io`. The follower is of no further use.
    pub(super) fn catch_up(&mut self) -> Result<Option<bool>> {
        let (before, position) = (self.last_sequence, self.manifest.position());
        self.follow_manifest()?;
        Ok(match self.follow_logs()? {
            End::Diverged => None,
            _ => Some(self.last_sequence > before || self.manifest.position() != position),
        })
    }

    pub(super) fn manifest(&self) -> &ManifestFollower {
        &self.manifest
    }

    pub(super) fn tree(&self, id: KeyspaceId) -> Option<&Tree> {
        self.trees.get(&id)
    }

    /// The newest sequence number of the state.
    pub(super) fn last_sequence(&self) -> SequenceNumber {
        self.last_sequence
            .max(self.manifest.state().last_sequence())
    }

    /// The logs that recovery would read for this state, oldest first.
    pub(super) fn logs(&self) -> impl Iterator<Item = ReadLog> {
        self.closed.iter().copied().chain(self.read_part())
    }

    /// What is read of the open log.
    fn read_part(&self) -> Option<ReadLog> {
        let log = self.log.as_ref()?;
        Some(ReadLog {
            number: log.number,
            first_sequence: log.first_sequence,
            last_sequence: self.last_sequence,
            length: log.reader.position(),
        })
    }

    /// The value logs of a keyspace that are being written, each up to the last value that this state refers to.
    pub(super) fn value_logs(&self, id: KeyspaceId) -> Vec<ReadValueLog> {
        let Some(keyspace) = self.manifest.state().keyspaces.get(&id) else {
            return Vec::new();
        };
        let open = keyspace.values.files.values();
        let open = open.filter(|log| log.kind == ValueFileKind::OpenLog);
        open.map(|log| read_value_log(log, keyspace.flushed, &self.value_logs))
            .collect()
    }

    /// Reads the new edits. Returns whether there were any.
    fn follow_manifest(&mut self) -> Result<bool> {
        let news = self.manifest.follow(&*self.vfs, &self.directory)?;
        if news != News::Nothing {
            self.update_trees()?;
        }
        Ok(news != News::Nothing)
    }

    /// Brings the trees to the state of the manifest (I5).
    fn update_trees(&mut self) -> Result<()> {
        let state = Arc::clone(self.manifest.state());
        self.trees.retain(|id, _| state.keyspaces.contains_key(id));
        self.closed.retain(|log| state.logs.contains(&log.number));
        let is_open = |file: &FileNumber| {
            let mut keyspaces = state.keyspaces.values();
            keyspaces.any(|keyspace| {
                let known = keyspace.values.files.get(file);
                known.is_some_and(|log| log.kind == ValueFileKind::OpenLog)
            })
        };
        self.value_logs.retain(|file, _| is_open(file));
        for (&id, keyspace) in &state.keyspaces {
            let (obsolete, memtables) = (&self.obsolete, &self.memory.memtables);
            let failure = |contradiction: Contradiction| {
                let what = format!("the manifest contradicts itself: {contradiction}");
                Error::new(ErrorKind::Corruption, what)
            };
            let Some(tree) = self.trees.get_mut(&id) else {
                let version = Version::from_state(keyspace, obsolete).map_err(failure)?;
                let tree = Tree {
                    memtable: Arc::new(Memtable::new(memtables)),
                    version: Shared::new(version),
                    flushed: keyspace.flushed,
                };
                self.trees.insert(id, tree);
                continue;
            };
            let version = tree
                .version
                .following(keyspace, obsolete)
                .map_err(failure)?;
            tree.version = Shared::new(version);
            if tree.flushed < keyspace.flushed {
                tree.flushed = keyspace.flushed;
                if !tree.memtable.is_empty() {
                    let unflushed = Memtable::new(memtables);
                    copy_newer(&tree.memtable, tree.flushed, &unflushed)?;
                    tree.memtable = Arc::new(unflushed);
                }
            }
        }
        // Nobody removes files here.
        drop(self.obsolete.take());
        Ok(())
    }

    fn follow_logs(&mut self) -> Result<End> {
        loop {
            if let Some(log) = &self.log
                && self.is_past(log.number)
            {
                // All of its entries are in tables.
                (self.log, self.before) = (None, None);
            }
            let end = if self.log.is_some() {
                self.read_log()?
            } else {
                match self.enter_next_log()? {
                    Some(end) => end,
                    None => continue,
                }
            };
            match end {
                End::Closed => {
                    if let Some(log) = self.read_part() {
                        self.before = Some((log.number, log.length));
                        self.closed.push(log);
                    }
                    self.log = None;
                }
                End::Written => return self.check_complete(),
                End::Diverged => return Ok(End::Diverged),
            }
        }
    }

    /// Whether recovery would begin behind `log`.
    fn is_past(&self, log: FileNumber) -> bool {
        let logs = &self.manifest.state().logs;
        !logs.contains(&log) && logs.first().is_none_or(|first| log < *first)
    }

    /// Opens the next log. `Some` if there is none, or if it has not begun.
    fn enter_next_log(&mut self) -> Result<Option<End>> {
        let state = Arc::clone(self.manifest.state());
        if self.before.is_some_and(|(before, _)| self.is_past(before)) {
            self.before = None;
        }
        let next = match self.before {
            Some((before, _)) => state.logs.iter().find(|log| **log > before),
            None => state.logs.first(),
        };
        let Some(&number) = next else {
            return Ok(Some(End::Written));
        };
        let Some(header) = read_header(&*self.vfs, &self.directory, number)? else {
            return Ok(Some(End::Written));
        };
        match self.before {
            Some(before) => check_predecessor(number, header, before, self.last_sequence)?,
            None if header.base <= self.last_sequence => return Ok(Some(End::Diverged)),
            None => self.last_sequence = header.base - 1,
        }
        let name = wal_name(number);
        let reader = LogReader::open(&*self.vfs, &self.directory, &name, number, None)?;
        let closed = self.closed_at(number)?;
        self.log = Some(OpenLog {
            number,
            name,
            reader,
            first_sequence: header.base,
            is_durable: closed.is_some_and(|(_, is_durable)| is_durable),
        });
        Ok(None)
    }

    /// Applies the records of the open log from its present place on.
    fn read_log(&mut self) -> Result<End> {
        let Some(number) = self.log.as_ref().map(|log| log.number) else {
            return Ok(End::Closed);
        };
        let mut looks = 0;
        loop {
            let Some(log) = &mut self.log else {
                return Ok(End::Closed);
            };
            log.reader.refresh()?;
            // What it reads ahead may be written only later. So each look has another one.
            let mut values = self.value_buffers();
            let mut missing = None;
            loop {
                match self.apply_next(&mut values)? {
                    None => break,
                    Some((_, Outcome::Applied(last))) => {
                        self.last_sequence = last;
                        looks = 0;
                    }
                    Some((offset, Outcome::NeedsManifest)) => {
                        self.return_to(offset);
                        if !self.follow_manifest()? {
                            return Err(self.unknown(number, offset));
                        }
                    }
                    Some((offset, Outcome::NeedsTables)) => {
                        if !self.pass_number(offset)? {
                            return Ok(End::Written);
                        }
                    }
                    Some((offset, Outcome::MissingValue)) => {
                        self.return_to(offset);
                        missing = Some(offset);
                        break;
                    }
                }
            }
            looks += 1;
            if let Some(end) = self.end_of_log(number, missing, looks)? {
                return Ok(end);
            }
        }
    }

    fn value_buffers(&self) -> ValueReadBuffers {
        let (vfs, directory) = (Arc::clone(&self.vfs), self.directory.clone());
        ValueReadBuffers::new(vfs, directory, &Arc::default(), u64::MAX)
    }

    /// What the place behind the last record means, after so many `looks` at it. `None`: look again (I4).
    fn end_of_log(
        &mut self,
        number: FileNumber,
        missing: Option<u64>,
        looks: usize,
    ) -> Result<Option<End>> {
        let closed = self.closed_at(number)?;
        let Some(log) = &mut self.log else {
            return Ok(Some(End::Closed));
        };
        let position = log.reader.position();
        if let Some((end, _)) = closed {
            if end < position {
                return Ok(Some(End::Diverged));
            }
            if end == position {
                return Ok(Some(End::Closed));
            }
        }
        if looks < 2 {
            return Ok(None);
        }
        let by_evidence = log.reader.end()?.evidence > position;
        if !by_evidence && !closed.is_some_and(|(_, is_durable)| is_durable) {
            return Ok(Some(End::Written));
        }
        // What proves it may have been written after the second look.
        if looks < 3 {
            return Ok(None);
        }
        Err(match missing {
            Some(_) => lost_value(number, position),
            None => lost_record(number, position),
        })
    }

    /// Where `number` was closed, and whether it is known to be durable up to there.
    fn closed_at(&self, number: FileNumber) -> Result<Option<(u64, bool)>> {
        let state = self.manifest.state();
        if let Some(end) = state.log_ends.get(&number) {
            return Ok(Some((*end, true)));
        }
        let Some(next) = state.logs.iter().find(|log| **log > number) else {
            return Ok(None);
        };
        let header = read_header(&*self.vfs, &self.directory, *next)?;
        let predecessor = header.and_then(|header| header.predecessor);
        let predecessor = predecessor.filter(|it| it.number == number);
        Ok(predecessor.map(|it| (it.end, it.synced)))
    }

    /// Applies the next record of the open log. Returns its offset and what became of it; `None` at the end of the sound
    /// records.
    fn apply_next(&mut self, values: &mut ValueReadBuffers) -> Result<Option<(u64, Outcome)>> {
        let Some(log) = &mut self.log else {
            return Ok(None);
        };
        let Some(record) = log.reader.next()? else {
            return Ok(None);
        };
        let offset = record.offset;
        if offset == 0 {
            WalHeader::decode(record.payload)
                .map_err(|error| error.in_file(&log.name, record.payload_offset()))?;
            return Ok(Some((offset, Outcome::Applied(self.last_sequence))));
        }
        let batch = Batch {
            payload: record.payload,
            name: &log.name,
            offset: record.payload_offset(),
            is_durable: log.is_durable,
        };
        let mut entries = Entries {
            state: self.manifest.state(),
            trees: &self.trees,
            value_logs: &mut self.value_logs,
            values,
            refused: Outcome::MissingValue,
        };
        let applied = batch.apply(self.last_sequence, &mut entries)?;
        let refused = entries.refused;
        Ok(Some(match applied {
            Some((last, _)) => (offset, Outcome::Applied(last)),
            None => (offset, refused),
        }))
    }

    /// Passes the number at `offset`, whose tables were not there, if that is right now (I3). Otherwise it goes back to it.
    fn pass_number(&mut self, offset: u64) -> Result<bool> {
        let number = self.last_sequence + 1;
        let Some(log) = &mut self.log else {
            return Ok(false);
        };
        let behind = log.reader.position();
        log.reader.refresh()?;
        let is_followed = log.reader.next()?.is_some();
        self.follow_manifest()?;
        let is_passed = is_followed || self.manifest.state().last_sequence() >= number;
        self.return_to(if is_passed { behind } else { offset });
        if is_passed {
            self.last_sequence = number;
        }
        Ok(is_passed)
    }

    fn return_to(&mut self, offset: u64) {
        if let Some(log) = &mut self.log {
            log.reader.return_to(offset);
        }
    }

    /// # Errors
    /// `Corruption` if the logs end before what the manifest has recorded.
    fn check_complete(&self) -> Result<End> {
        let recorded = self.manifest.state().last_sequence();
        if self.log.is_some() && self.last_sequence < recorded {
            let what = format!(
                "it records sequence number {recorded}, but the logs end at {}",
                self.last_sequence
            );
            return Err(self.contradiction(&what));
        }
        Ok(End::Written)
    }

    fn unknown(&self, log: FileNumber, offset: u64) -> Error {
        let what = format!(
            "{} at offset {offset} needs what it does not name",
            wal_name(log)
        );
        self.contradiction(&what)
    }

    fn contradiction(&self, what: &str) -> Error {
        let name = FileName::Manifest(self.manifest.number());
        Error::corruption(&name.to_string(), self.manifest.position().offset, what)
    }
}

/// What records point to in the value log `log`, by what was `read`, or by the manifest if that covers more.
fn read_value_log(
    log: &ValueFileState,
    flushed: SequenceNumber,
    read: &BTreeMap<FileNumber, ReadValueLog>,
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
fn copy_newer(from: &Memtable, flushed: SequenceNumber, to: &Memtable) -> Result<()> {
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

/// Receives the entries of a record.
#[derive(Debug)]
struct Entries<'a> {
    state: &'a ManifestState,
    trees: &'a BTreeMap<KeyspaceId, Tree>,
    value_logs: &'a mut BTreeMap<FileNumber, ReadValueLog>,
    values: &'a mut ValueReadBuffers,
    /// Why an entry was refused.
    refused: Outcome,
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
            return Err(Error::corruption(
                &FileName::Values(pointer.file).to_string(),
                pointer.offset,
                "the write-ahead log points to a value that does not follow those of earlier entries",
            ));
        }
        read.file.length = pointer.offset + pointer.record_bytes;
        read.file.end = read.file.length;
        read.file.entries += 1;
        read.file.value_bytes += pointer.value_bytes;
        read.last_sequence = entry.sequence;
        self.value_logs.insert(pointer.file, read);
        Ok(())
    }

    fn refuse(&mut self, why: Outcome) -> Result<bool> {
        self.refused = why;
        Ok(false)
    }
}

impl Target for Entries<'_> {
    fn has_value(&mut self, entry: &Entry<'_>) -> Result<bool> {
        if batch::numbered(entry).is_some() {
            return if self.state.last_sequence() < entry.sequence {
                self.refuse(Outcome::NeedsTables)
            } else {
                Ok(true)
            };
        }
        let Some(tree) = self.trees.get(&entry.keyspace) else {
            return if self.state.is_dropped(entry.keyspace) {
                Ok(true)
            } else {
                self.refuse(Outcome::NeedsManifest)
            };
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
        let Some(file) = file.map(|file| file.as_read()) else {
            return self.refuse(Outcome::NeedsManifest);
        };
        match self.values.read(&file, entry.key, &pointer) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::Corruption => {
                self.refuse(Outcome::MissingValue)
            }
            Err(error) => Err(error),
        }
    }

    fn apply(&mut self, entry: Entry<'_>, _is_durable: bool) -> Result<bool> {
        let tree = self.trees.get(&entry.keyspace);
        let Some(tree) = tree.filter(|tree| entry.sequence > tree.flushed) else {
            return Ok(false);
        };
        if let Some(pointer) = entry.log_pointer() {
            self.note_value(&entry, &decode(pointer)?)?;
        }
        let trailer = Trailer::new(entry.sequence, entry.kind);
        insert(&tree.memtable, entry.key, trailer, entry.value);
        Ok(true)
    }
}

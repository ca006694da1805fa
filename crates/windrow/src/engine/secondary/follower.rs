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
//! I6. No change of keyspaces lies between the manifest and the logs of a pass, which have no common order: after the logs
//!     it looks at the manifest again.
//! I7. A pass ends: behind the second look at the end of the last log that the manifest names.
//!
//! Concurrency: one thread. Readers of earlier states share the memtables: new entries have higher sequence numbers. A reader may
//! meanwhile replace operands by what they fold to, which is the same for every state.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::entries::{
    Entries, Outcome, ReadValueLog, ReadValueLogs, Tree, ValueCheck, Values, copy_newer,
    read_value_log,
};
use crate::base::sync::Shared;
use crate::base::{Error, ErrorKind, FileNumber, KeyspaceId, Result, SequenceNumber};
use crate::engine::recovery::folder::no_database;
use crate::engine::recovery::replay::{
    Batch, check_predecessor, lost_record, lost_value, read_header, wal_name,
};
use crate::engine::throttling::memory::Memory;
use crate::log::{LogReader, WalHeader};
use crate::manifest::names::FileName;
use crate::manifest::{
    ChangedKeyspaces, Contradiction, ManifestFollower, Obsolete, ValueFileKind, Version,
};
use crate::memtable::Memtable;
use crate::vfs::Vfs;

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

/// How often the end of the open log was looked at.
#[derive(Debug, Clone, Copy, Default)]
struct Looks {
    in_all: usize,
    /// Those since the last record.
    without_news: usize,
}

/// Why a pass over a log ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The log is closed, and read as a whole.
    Closed,
    /// The manifest does not name the log any more: all of its entries are in tables.
    Past,
    /// What comes next is not written yet.
    Written,
    /// The history of the database is another one now than the one that was read.
    Diverged,
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
    value_logs: ReadValueLogs,
    /// Whether the values of records are read, to see that they are there. After the first pass a writer lives, or nobody
    /// writes: then it suffices that their files are long enough.
    reads_values: bool,
    /// Whether the manifest has lost what was read before.
    has_fallen_back: bool,
    /// How often there were new edits.
    edits_read: u64,
}

/// The part of a log that was read.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadLog {
    pub(super) number: FileNumber,
    pub(super) first_sequence: SequenceNumber,
    pub(super) last_sequence: SequenceNumber,
    pub(super) length: u64,
}

impl Follower {
    /// Reads the database in `directory`.
    ///
    /// # Errors
    /// `NotFound`; `Corruption`; `Unsupported`; `Io`.
    pub(super) fn open(
        vfs: &Arc<dyn Vfs>,
        directory: &Path,
        memory: &Arc<Memory>,
        obsolete: &Arc<Obsolete>,
    ) -> Result<Self> {
        let manifest = ManifestFollower::open(&**vfs, directory)?;
        let mut follower = Self {
            vfs: Arc::clone(vfs),
            directory: directory.to_owned(),
            memory: Arc::clone(memory),
            obsolete: Arc::clone(obsolete),
            manifest: manifest.ok_or_else(|| no_database(directory))?,
            trees: BTreeMap::new(),
            log: None,
            before: None,
            last_sequence: 0,
            closed: Vec::new(),
            value_logs: BTreeMap::new(),
            reads_values: true,
            has_fallen_back: false,
            edits_read: 0,
        };
        follower.update_trees(&ChangedKeyspaces::All)?;
        if follower.read_on()? {
            follower.reads_values = false;
            return Ok(follower);
        }
        Err(follower.contradiction("it falls back while it is read"))
    }

    /// Reads what was written since. `None` if the database has another history now, for example because its writer has lost
    /// the newest entries by a failed sync, and opened it again: then only a new follower can read it. Otherwise whether
    /// anything has changed.
    ///
    /// # Errors
    /// `Corruption`; `Io`. The follower is of no further use.
    pub(super) fn catch_up(&mut self) -> Result<Option<bool>> {
        let before = (self.last_sequence, self.edits_read);
        self.follow_manifest()?;
        let is_same_history = self.read_on()?;
        Ok(is_same_history.then(|| (self.last_sequence, self.edits_read) != before))
    }

    /// Reads the logs, until no change of keyspaces has come in between (I6). Returns false if the history is another one.
    fn read_on(&mut self) -> Result<bool> {
        loop {
            if self.follow_logs()? == End::Diverged {
                return Ok(false);
            }
            if !self.manifest.look(&*self.vfs, &self.directory)? {
                return Ok(true);
            }
            self.follow_manifest()?;
        }
    }

    pub(super) fn manifest(&self) -> &ManifestFollower {
        &self.manifest
    }

    /// Notes that there is a view of this state.
    pub(super) fn note_view(&mut self) {
        for tree in self.trees.values_mut() {
            tree.is_changed = false;
        }
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

    /// Reads and applies the new edits. Returns whether there were any.
    fn follow_manifest(&mut self) -> Result<bool> {
        let changed = self.manifest.follow(&*self.vfs, &self.directory)?;
        if let Some(changed) = &changed {
            self.edits_read += 1;
            self.update_trees(changed)?;
        }
        Ok(changed.is_some())
    }

    /// Brings the trees to the state of the manifest (I5).
    fn update_trees(&mut self, changed: &ChangedKeyspaces) -> Result<()> {
        let state = Arc::clone(self.manifest.state());
        if state.is_unlogged {
            let message =
                "a secondary needs the log of a database, and this one is written without";
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
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
                    is_changed: true,
                };
                self.trees.insert(id, tree);
                continue;
            };
            let is_changed = match changed {
                ChangedKeyspaces::These(ids) => ids.contains(&id),
                ChangedKeyspaces::All => true,
            };
            if !is_changed {
                continue;
            }
            tree.is_changed = true;
            let version = tree.version.following(keyspace, obsolete);
            tree.version = Shared::new(version.map_err(failure)?);
            self.has_fallen_back |= keyspace.flushed < tree.flushed;
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
            if self.is_other_history() {
                return Ok(End::Diverged);
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
                End::Past => (self.log, self.before) = (None, None),
                End::Written => return self.check_complete(),
                End::Diverged => return Ok(End::Diverged),
            }
        }
    }

    /// Whether the manifest contradicts what was read: a writer has lost some of that, and has gone on without it.
    fn is_other_history(&self) -> bool {
        let state = self.manifest.state();
        let is_void = |log: FileNumber| !state.logs.contains(&log) && !self.is_past(log);
        let has_other_end = |log: &ReadLog| {
            let end = state.log_ends.get(&log.number);
            end.is_some_and(|end| *end != log.length)
        };
        self.has_fallen_back
            || self.log.as_ref().is_some_and(|log| is_void(log.number))
            || self.closed.iter().any(has_other_end)
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
        let mut looks = Looks::default();
        loop {
            // Each pass over the records may have read the manifest again.
            if self.is_other_history() {
                return Ok(End::Diverged);
            }
            if self.is_past(number) {
                return Ok(End::Past);
            }
            let Some(log) = &mut self.log else {
                return Ok(End::Closed);
            };
            log.reader.refresh()?;
            // What it reads ahead may be written only later. So each look has another one.
            let mut values = Values::new(&self.vfs, &self.directory);
            let mut is_value_missing = false;
            looks.in_all += 1;
            looks.without_news += 1;
            loop {
                match self.apply_next(&mut values)? {
                    None => break,
                    Some((_, Outcome::Applied(last))) => {
                        self.last_sequence = last;
                        looks.without_news = 0;
                    }
                    Some((offset, Outcome::NeedsManifest)) => {
                        self.return_to(offset);
                        values.read_again();
                        if !self.follow_manifest()? {
                            return Err(self.unknown(number, offset));
                        }
                    }
                    Some((offset, Outcome::NeedsTables)) => {
                        if !self.pass_number(number, offset)? {
                            return Ok(End::Written);
                        }
                    }
                    Some((offset, Outcome::MissingValue)) => {
                        self.return_to(offset);
                        is_value_missing = true;
                        break;
                    }
                }
            }
            if self.is_other_history() || self.is_past(number) {
                continue;
            }
            if let Some(end) = self.end_of_log(number, is_value_missing, looks)? {
                return Ok(end);
            }
        }
    }

    /// What the place behind the last record means. `None`: look again (I4).
    fn end_of_log(
        &mut self,
        number: FileNumber,
        is_value_missing: bool,
        looks: Looks,
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
        if looks.in_all < 2 {
            return Ok(None);
        }
        if looks.without_news == 0 && closed.is_none() {
            return Ok(Some(End::Written)); // I7
        }
        let by_evidence = log.reader.end()?.evidence > position;
        if !by_evidence && !closed.is_some_and(|(_, is_durable)| is_durable) {
            return Ok(Some(End::Written));
        }
        // What proves it may have been written after the last look.
        if looks.without_news < 3 {
            return Ok(None);
        }
        Err(if is_value_missing {
            lost_value(number, position)
        } else {
            lost_record(number, position)
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
    fn apply_next(&mut self, values: &mut Values) -> Result<Option<(u64, Outcome)>> {
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
            // What a record needs is asked of durable logs, too: the manifest may be older than the log.
            is_durable: false,
        };
        let mut entries = Entries {
            state: self.manifest.state(),
            trees: &mut self.trees,
            value_logs: &mut self.value_logs,
            values,
            check: match (log.is_durable, self.reads_values) {
                (true, _) => ValueCheck::None,
                (false, true) => ValueCheck::Content,
                (false, false) => ValueCheck::Length,
            },
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
    fn pass_number(&mut self, log_number: FileNumber, offset: u64) -> Result<bool> {
        let number = self.last_sequence + 1;
        let Some(log) = &mut self.log else {
            return Ok(false);
        };
        let behind = log.reader.position();
        log.reader.refresh()?;
        // The next record may be in the next log.
        let is_followed = log.reader.next()?.is_some()
            || self
                .closed_at(log_number)?
                .is_some_and(|(end, _)| end == behind);
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

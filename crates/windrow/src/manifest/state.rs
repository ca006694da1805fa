//! The state that a sequence of edits adds up to. Pure: no files, no locks.
//!
//! I1. Every id that occurs is below `next_id`, which is at most [`FILE_NUMBER_MAX`]. Each file has one
//!     place.
//! I2. Sequence numbers, ids and log numbers only grow.
//! I3. After each edit, every value file that tables refer to exists, every value file, relocation and discard list is
//!     [needed](ValueState), and the counted references to value logs add up to those of all tables.
//! I4. [`snapshot`](ManifestState::snapshot) applied to an empty state gives the same state.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;

use crate::base::limits::LEVELS_MAX;
use crate::base::{FileNumber, KeyspaceId, Moment, SequenceNumber, Totals};
use crate::table::{EXTERNAL_SEGMENTS, FileMeta};
use crate::value::{DiscardList, RelocationTable, ValueFileMeta};

use super::changes::ChangeState;
use super::contradiction::{Contradiction, grow, require};
use super::edit::{Edit, Record};
use super::keyspace::KeyspaceState;
use super::names::{FILE_NUMBER_MAX, FileName};
use super::values::{ValueFileKind, ValueState};

/// The state of the whole database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ManifestState {
    pub(crate) keyspaces: BTreeMap<KeyspaceId, KeyspaceState>,
    /// The largest id of any keyspace, including dropped keyspaces; ids begin at 1.
    pub(crate) last_keyspace: KeyspaceId,
    /// Every sequence number up to this one was allocated, perhaps for entries that no longer exist.
    pub(crate) used_sequence: SequenceNumber,
    /// Every id from here on is unused; ids begin at 1.
    pub(crate) next_id: u64,
    /// The logs whose records count, oldest first.
    pub(crate) logs: BTreeSet<FileNumber>,
    /// The offsets at which recoveries and clean closes have ended logs; a subset of `logs`.
    pub(crate) log_ends: BTreeMap<FileNumber, u64>,
    /// The logs are durable up to here: a log and an offset in it.
    pub(crate) log_synced: Option<(FileNumber, u64)>,
    /// Entries that have expired by this moment may be gone.
    pub(crate) expired_by: Moment,
    /// The lifetime counters. Nothing depends on them.
    pub(crate) totals: Totals,
    /// What consumers of the change feed hold.
    pub(crate) changes: ChangeState,
    /// Whether writes go to no log, and edits count only up to the length in `CURRENT`.
    pub(crate) is_unlogged: bool,
    /// All tables, value files and discard lists of all keyspaces.
    files: BTreeSet<FileNumber>,
    /// The keyspaces by name.
    names: BTreeMap<String, KeyspaceId>,
}

impl Default for ManifestState {
    fn default() -> Self {
        Self {
            keyspaces: BTreeMap::new(),
            last_keyspace: KeyspaceId(0),
            used_sequence: 0,
            next_id: 1,
            logs: BTreeSet::new(),
            log_ends: BTreeMap::new(),
            log_synced: None,
            expired_by: 0,
            totals: Totals::new(),
            changes: ChangeState::default(),
            is_unlogged: false,
            files: BTreeSet::new(),
            names: BTreeMap::new(),
        }
    }
}

impl ManifestState {
    /// Applies `edit`. After an error the state is of no further use.
    pub(crate) fn apply(&mut self, edit: &Edit) -> Result<(), Contradiction> {
        edit.records
            .iter()
            .try_for_each(|record| self.apply_record(record))?;
        let keyspaces = edit.records.iter().filter_map(|record| match record {
            Record::AddTransientLog { keyspace, .. }
            | Record::AddFile { keyspace, .. }
            | Record::AddSegment { keyspace, .. }
            | Record::RemoveFile { keyspace, .. }
            | Record::AddValueLog { keyspace, .. }
            | Record::ValueLogAt { keyspace, .. }
            | Record::SealValueLog { keyspace, .. }
            | Record::AddGcOutput { keyspace, .. }
            | Record::Relocate { keyspace, .. }
            | Record::AddDiscardList { keyspace, .. }
            | Record::TakeDiscardList { keyspace, .. }
            | Record::CountReferences { keyspace, .. }
            | Record::Flushed { keyspace, .. } => Some(*keyspace),
            _ => None,
        });
        let mut keyspaces: BTreeSet<KeyspaceId> = keyspaces.collect();
        let changes_consumer =
            |record: &Record| matches!(record, Record::Consumer { .. } | Record::RemoveConsumer(_));
        if edit.records.iter().any(changes_consumer) {
            keyspaces.extend(self.keyspaces.keys());
        }
        self.changes.remove_unheld();
        self.settle(keyspaces)
    }

    /// Removes the value files that nothing in `keyspaces` needs.
    fn settle(&mut self, keyspaces: BTreeSet<KeyspaceId>) -> Result<(), Contradiction> {
        for id in keyspaces {
            if let Some(keyspace) = self.keyspaces.get_mut(&id) {
                keyspace.settled = self.changes.settled(keyspace.flushed);
                let settled = keyspace.settled;
                keyspace.values.remove_unneeded(settled, &mut self.files)?; // I3
            }
        }
        Ok(())
    }

    /// The edit that turns an empty state into this one.
    pub(crate) fn snapshot(&self) -> Edit {
        let mut records = vec![Record::FormatVersion, Record::NextId(self.next_id)];
        records.extend(self.is_unlogged.then_some(Record::Unlogged));
        for (&id, keyspace) in &self.keyspaces {
            keyspace.snapshot(id, &mut records);
        }
        let newest = self.keyspaces.keys().next_back();
        if self.used_sequence > 0 || newest.is_none_or(|newest| *newest < self.last_keyspace) {
            records.push(Record::Used {
                keyspace: self.last_keyspace,
                sequence: self.used_sequence,
            });
        }
        for &number in &self.logs {
            records.push(Record::AddLog(number));
            if let Some(&offset) = self.log_ends.get(&number) {
                records.push(Record::LogEnd { number, offset });
            }
        }
        let synced = self.log_synced;
        records.extend(synced.map(|(number, offset)| Record::LogSynced { number, offset }));
        if self.expired_by > 0 {
            records.push(Record::ExpiredBy(self.expired_by));
        }
        if !self.totals.is_empty() {
            records.push(Record::Totals(self.totals.clone()));
        }
        self.changes.snapshot(&mut records);
        Edit { records }
    }

    /// Forgets what it knows of commits behind the sequence number `last`, which are lost: history ends in the log `number`,
    /// before the end that was recorded. Consumers of changes that have seen them fall behind.
    pub(crate) fn cut_history(&mut self, number: Option<FileNumber>, last: SequenceNumber) {
        self.log_ends.retain(|log, _| Some(*log) < number);
        self.changes.cut_behind(last);
    }

    /// Cuts these sealed value logs, which have values of commits behind the sequence number `last`, to what is left of them.
    pub(crate) fn cut_value_logs(
        &mut self,
        logs: &[(KeyspaceId, ValueFileMeta)],
        last: SequenceNumber,
    ) -> Result<(), Contradiction> {
        for (keyspace, file) in logs {
            self.values(*keyspace)?.cut_sealed_log(*file, last)?;
        }
        self.settle(logs.iter().map(|(keyspace, _)| *keyspace).collect())
    }

    /// Ends the logs at the log and offset `end`, where recovery has ended, and drops the logs before `oldest`.
    /// Without both, it drops all logs.
    pub(crate) fn end_history(
        &mut self,
        oldest: Option<FileNumber>,
        end: Option<(FileNumber, u64)>,
    ) -> Result<(), Contradiction> {
        self.log_synced = None;
        if let (Some(oldest), Some((number, offset))) = (oldest, end) {
            self.apply_record(&Record::OldestLog(oldest))?;
            return self.end_log(number, offset);
        }
        self.logs.clear();
        self.log_ends.clear();
        Ok(())
    }

    /// Removes all consumers of changes, and what only they hold: a copy begins without.
    pub(crate) fn forget_consumers(&mut self) -> Result<(), Contradiction> {
        let names = self.changes.consumers.keys().cloned();
        let records = names.map(Record::RemoveConsumer).collect();
        self.apply(&Edit { records })
    }

    /// Seals every table file, because another database uses the same bytes.
    pub(crate) fn seal_files(&mut self) {
        let levels = self.keyspaces.values_mut().flat_map(|own| &mut own.levels);
        for file in levels.flat_map(BTreeMap::values_mut) {
            Arc::make_mut(file).sealed = true;
        }
    }

    /// Takes less memory. Files that were added in the order of their numbers have left the nodes of their maps half
    /// full.
    pub(super) fn pack(&mut self) {
        self.files = mem::take(&mut self.files).into_iter().collect();
        let levels = self.keyspaces.values_mut().flat_map(|own| &mut own.levels);
        for files in levels {
            *files = mem::take(files).into_iter().collect();
        }
    }

    /// The largest sequence number that is known to be allocated.
    pub(crate) fn last_sequence(&self) -> SequenceNumber {
        let flushed = self.keyspaces.values().map(|keyspace| keyspace.flushed);
        let used = self.used_sequence.max(self.changes.last_sequence());
        flushed.fold(used, SequenceNumber::max)
    }

    /// All tables, value files and discard lists of all keyspaces, with their lengths.
    pub(crate) fn files(&self) -> impl Iterator<Item = (FileName, u64)> {
        self.keyspaces.values().flat_map(KeyspaceState::files)
    }

    fn apply_record(&mut self, record: &Record) -> Result<(), Contradiction> {
        match record {
            Record::FormatVersion => require(*self == Self::default(), || {
                "a format version after the first record".to_owned()
            }),
            Record::NextId(id) => {
                require(*id <= FILE_NUMBER_MAX, || {
                    format!("next id {id} is too large")
                })?;
                grow(&mut self.next_id, *id, "next id")
            }
            Record::LogSynced { number, offset } => {
                let synced = Some((*number, *offset));
                require(self.log_synced <= synced, || {
                    format!("the durable end of the logs falls back to {offset} of log {number}")
                })?;
                self.log_synced = synced;
                Ok(())
            }
            Record::CreateKeyspace { id, name } => self.create_keyspace(*id, name),
            Record::AddFile {
                keyspace,
                level,
                file,
            } => self.add_file(*keyspace, *level, file),
            Record::RemoveFile {
                keyspace,
                level,
                number,
            } => {
                self.keyspace(*keyspace)?.remove_file(*level, *number)?;
                self.files.remove(number);
                Ok(())
            }
            Record::AddSegment {
                keyspace,
                level,
                number,
                segment,
            } => {
                self.check_id(segment.id.0)?;
                let keyspace = self.keyspace(*keyspace)?;
                keyspace.add_segment(*level, *number, segment)
            }
            Record::AddTransientLog { keyspace, file } => {
                self.add_values(*keyspace, *file, ValueFileKind::TransientLog)
            }
            Record::AddValueLog { keyspace, number } => {
                let file = ValueFileMeta {
                    length: 0,
                    end: 0,
                    ..ValueFileMeta::growing(*number)
                };
                self.add_values(*keyspace, file, ValueFileKind::OpenLog)
            }
            Record::ValueLogAt { keyspace, file } => {
                let values = self.values(*keyspace)?;
                values.update_open_log(*file, ValueFileKind::OpenLog)
            }
            Record::SealValueLog {
                keyspace,
                file,
                last_sequence,
            } => {
                let last_sequence = *last_sequence;
                let values = self.values(*keyspace)?;
                values.update_open_log(*file, ValueFileKind::SealedLog { last_sequence })
            }
            Record::AddGcOutput { keyspace, file } => {
                self.add_values(*keyspace, *file, ValueFileKind::GcOutput)
            }
            Record::Relocate { keyspace, table } => self.relocate(*keyspace, *table),
            Record::AddDiscardList { keyspace, list } => self.add_discard_list(*keyspace, list),
            Record::TakeDiscardList {
                keyspace,
                list,
                files,
            } => self.values(*keyspace)?.take_discard_list(*list, files),
            Record::CountReferences { keyspace, changes } => {
                self.values(*keyspace)?.count_log_references(changes)
            }
            Record::LevelCount { keyspace, count } => {
                require((1..=LEVELS_MAX).contains(&usize::from(*count)), || {
                    format!("keyspace {keyspace} has {count} levels")
                })?;
                self.keyspace(*keyspace)?.level_count = *count;
                Ok(())
            }
            Record::Flushed { keyspace, sequence } => {
                let flushed = &mut self.keyspace(*keyspace)?.flushed;
                grow(flushed, *sequence, "flushed sequence number")
            }
            Record::AddLog(number) => self.add_log(*number),
            Record::OldestLog(oldest) => {
                self.logs = self.logs.split_off(oldest);
                self.log_ends = self.log_ends.split_off(oldest);
                Ok(())
            }
            Record::LogEnd { number, offset } => self.end_log(*number, *offset),
            Record::DropKeyspace(id) => self.drop_keyspace(*id),
            Record::RenameKeyspace { keyspace, name } => self.rename_keyspace(*keyspace, name),
            Record::KeyspaceOptions { keyspace, options } => {
                self.keyspace(*keyspace)?.options.clone_from(options);
                Ok(())
            }
            Record::ExpiredBy(moment) => {
                // Jobs may end in another order than they have looked at the clock.
                self.expired_by = self.expired_by.max(*moment);
                Ok(())
            }
            Record::MergeOperator { keyspace, name } => {
                let known = &mut self.keyspace(*keyspace)?.merge_operator;
                require(known.as_ref().is_none_or(|known| known == name), || {
                    format!("keyspace {keyspace} changes its merge operator to {name}")
                })?;
                *known = Some(name.clone());
                Ok(())
            }
            Record::Consumer { name, state } => self.changes.set_consumer(name, *state),
            Record::RemoveConsumer(name) => self.changes.remove_consumer(name),
            Record::KeepLog { number, log } => {
                self.logs.remove(number);
                self.log_ends.remove(number);
                self.changes.keep_log(*number, *log)
            }
            Record::ChangeEvent { sequence, event } => self.changes.add_event(*sequence, event),
            Record::Unlogged => {
                self.is_unlogged = true;
                Ok(())
            }
            Record::Totals(totals) => {
                self.totals.clone_from(totals);
                Ok(())
            }
            Record::KeyspaceTotals { keyspace, totals } => {
                self.keyspace(*keyspace)?.totals.clone_from(totals);
                Ok(())
            }
            Record::Used { keyspace, sequence } => {
                require(self.last_keyspace <= *keyspace, || {
                    format!("the last id of a keyspace falls to {keyspace}")
                })?;
                self.last_keyspace = *keyspace;
                grow(&mut self.used_sequence, *sequence, "used sequence number")
            }
        }
    }

    /// Whether `id` belonged to a keyspace that was dropped.
    pub(crate) fn is_dropped(&self, id: KeyspaceId) -> bool {
        id <= self.last_keyspace && !self.keyspaces.contains_key(&id)
    }

    fn create_keyspace(&mut self, id: KeyspaceId, name: &str) -> Result<(), Contradiction> {
        require(self.last_keyspace < id, || {
            format!("keyspace {id} is not newer than the others")
        })?;
        let taken = self.names.insert(name.to_owned(), id);
        require(taken.is_none(), || format!("two keyspaces named {name}"))?;
        self.keyspaces
            .insert(id, KeyspaceState::new(name.to_owned()));
        self.last_keyspace = id;
        Ok(())
    }

    fn rename_keyspace(&mut self, id: KeyspaceId, name: &str) -> Result<(), Contradiction> {
        let renamed = self.keyspace(id)?;
        let before = mem::replace(&mut renamed.name, name.to_owned());
        self.names.remove(&before);
        if let Some(other) = self.names.insert(name.to_owned(), id) {
            self.keyspace(other)?.name.clone_from(&before);
            self.names.insert(before, other);
        }
        Ok(())
    }

    fn drop_keyspace(&mut self, id: KeyspaceId) -> Result<(), Contradiction> {
        let dropped = self.keyspaces.remove(&id);
        let dropped = dropped.ok_or_else(|| no_keyspace(id))?;
        self.names.remove(&dropped.name);
        for number in dropped.files().filter_map(|(name, _)| name.number()) {
            self.files.remove(&number);
        }
        self.used_sequence = self.used_sequence.max(dropped.flushed);
        Ok(())
    }

    fn add_file(
        &mut self,
        keyspace: KeyspaceId,
        level: u8,
        file: &Arc<FileMeta>,
    ) -> Result<(), Contradiction> {
        let number = file.number;
        self.check_id(number.0)?;
        for segment in &file.segments {
            if !file.external {
                self.check_id(segment.id.0)?;
            } else if segment.id.0 < EXTERNAL_SEGMENTS {
                let what = format!("external table file {number} has the segment of a database");
                return Err(Contradiction::new(what));
            }
        }
        self.keyspace(keyspace)?.add_file(level, file)?;
        require(self.files.insert(number), || {
            format!("table file {number} is added twice")
        })
    }

    fn add_values(
        &mut self,
        keyspace: KeyspaceId,
        file: ValueFileMeta,
        kind: ValueFileKind,
    ) -> Result<(), Contradiction> {
        self.check_id(file.number.0)?;
        self.values(keyspace)?.add(file, kind);
        require(self.files.insert(file.number), || {
            format!("value file {} is added twice", file.number)
        })
    }

    fn relocate(
        &mut self,
        keyspace: KeyspaceId,
        table: RelocationTable,
    ) -> Result<(), Contradiction> {
        // A snapshot has no record that adds the origin.
        self.check_id(table.origin.0)?;
        let changes = &self.changes;
        let known = self.keyspaces.get_mut(&keyspace);
        let keyspace = known.ok_or_else(|| no_keyspace(keyspace))?;
        let settled = changes.settled(keyspace.flushed);
        if keyspace.values.relocate(table, settled)? {
            self.files.remove(&table.origin);
        }
        Ok(())
    }

    fn add_discard_list(
        &mut self,
        keyspace: KeyspaceId,
        list: &DiscardList,
    ) -> Result<(), Contradiction> {
        let number = list.number;
        self.check_id(number.0)?;
        self.values(keyspace)?.add_discard_list(list)?;
        require(self.files.insert(number), || {
            format!("discard list {number} is added twice")
        })
    }

    fn add_log(&mut self, number: FileNumber) -> Result<(), Contradiction> {
        self.check_id(number.0)?;
        require(self.logs.last().is_none_or(|last| *last < number), || {
            format!("log {number} is not newer than the others")
        })?;
        self.logs.insert(number);
        Ok(())
    }

    fn end_log(&mut self, number: FileNumber, offset: u64) -> Result<(), Contradiction> {
        require(self.logs.contains(&number), || {
            format!("log {number} is ended and does not exist")
        })?;
        let earlier = self.log_ends.insert(number, offset);
        require(earlier.is_none_or(|earlier| earlier == offset), || {
            format!("log {number} is ended twice")
        })?;
        // The later logs are void.
        self.logs.retain(|log| *log <= number);
        self.log_ends.retain(|log, _| *log <= number);
        Ok(())
    }

    /// I1.
    fn check_id(&self, id: u64) -> Result<(), Contradiction> {
        require((1..self.next_id).contains(&id), || {
            format!("id {id} was never allocated")
        })
    }

    fn keyspace(&mut self, id: KeyspaceId) -> Result<&mut KeyspaceState, Contradiction> {
        let keyspace = self.keyspaces.get_mut(&id);
        keyspace.ok_or_else(|| no_keyspace(id))
    }

    fn values(&mut self, keyspace: KeyspaceId) -> Result<&mut ValueState, Contradiction> {
        Ok(&mut self.keyspace(keyspace)?.values)
    }
}

fn no_keyspace(id: KeyspaceId) -> Contradiction {
    Contradiction::new(format!("keyspace {id} does not exist"))
}

//! The value files of a keyspace: what tables refer to in them, where the values of collected ones have
//! gone, and which lists speak of their dead ones. Pure.
//!
//! I1. What is referred to in a file, or through relocation tables, is no more than it holds.
//! I2. A file stays while anything is referred to in it, or unflushed entries may refer to it. A
//!     relocation stays while its origin is referred to or spoken of by a list, or while an older origin
//!     that leads to the same file is referred to: a merge under way may have led pointers on from that
//!     to this one, when this one was the file. A list stays while it speaks of a file or an origin.
//!     Each goes by itself with the edit after which nothing keeps it.
//! I3. Every relocation leads to a file that is there, in one step.
//! I4. What lists say of each file and origin is kept as a sum: an edit costs what it changes and a look
//!     at each file, however many lists there are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::base::{FileNumber, KeyspaceId, SequenceNumber};
use crate::table::{Referred, SegmentMeta};
use crate::value::{DiscardList, RelocationTable, ValueFileMeta};

use super::edit::Record;
use super::names::FileName;
use super::state::{Contradiction, require};

/// The value files of a keyspace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ValueState {
    /// The files of transient logs, value logs and their successors.
    pub(crate) files: BTreeMap<FileNumber, ValueFileState>,
    /// By the value logs that they were: where their values have gone.
    pub(crate) relocated: BTreeMap<FileNumber, Relocated>,
    /// Dead values that no successor has left behind yet.
    pub(crate) garbage: BTreeMap<FileNumber, Arc<DiscardList>>,
    /// What these say of each file and origin (I4).
    spoken_of: BTreeMap<FileNumber, u64>,
}

/// A value file, and what the tables of its keyspace refer to in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ValueFileState {
    /// Of a value log that is being written, what tables refer to.
    pub(crate) file: ValueFileMeta,
    pub(crate) kind: ValueFileKind,
    pub(crate) referred: Referred,
}

/// What a value file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueFileKind {
    /// A file of a transient log.
    TransientLog,
    /// A value log that is being written.
    OpenLog,
    /// A value log that is complete; entries up to `last_sequence` refer to it.
    SealedLog { last_sequence: SequenceNumber },
    /// What was live in value logs when they were collected.
    GcOutput,
}

/// A value log, or a successor of some, and what is left of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogUse {
    /// Of a log that is being written, what entries up to the last flush have pointed to.
    pub(crate) file: ValueFileMeta,
    /// What tables refer to in it, or through its tables.
    pub(crate) live: Referred,
    /// Entries of its relocation tables that count.
    pub(crate) moves: u64,
    /// Whether it is complete, and everything that ever pointed into it is in tables.
    pub(crate) is_settled: bool,
    pub(crate) is_open: bool,
}

/// A value log that was collected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Relocated {
    pub(crate) table: RelocationTable,
    /// What tables refer to by the place where it was.
    pub(crate) referred: Referred,
}

impl ValueFileState {
    /// The file as readers know it.
    pub(crate) fn as_read(&self) -> ValueFileMeta {
        match self.kind {
            ValueFileKind::OpenLog => ValueFileMeta::growing(self.file.number),
            ValueFileKind::TransientLog
            | ValueFileKind::SealedLog { .. }
            | ValueFileKind::GcOutput => self.file,
        }
    }

    /// Whether it is a value log or a successor of some that is complete, and everything that ever
    /// pointed into it is in tables once entries up to `flushed` are.
    pub(crate) fn is_settled_log(&self, flushed: SequenceNumber) -> bool {
        match self.kind {
            ValueFileKind::TransientLog | ValueFileKind::OpenLog => false,
            ValueFileKind::SealedLog { last_sequence } => last_sequence <= flushed,
            ValueFileKind::GcOutput => true,
        }
    }

    fn snapshot(&self, keyspace: KeyspaceId, records: &mut Vec<Record>) {
        let file = self.file;
        let number = file.number;
        match self.kind {
            ValueFileKind::TransientLog => records.push(Record::AddTransientLog { keyspace, file }),
            ValueFileKind::OpenLog => {
                records.push(Record::AddValueLog { keyspace, number });
                records.push(Record::ValueLogAt { keyspace, file });
            }
            ValueFileKind::SealedLog { last_sequence } => {
                records.push(Record::AddValueLog { keyspace, number });
                records.push(Record::SealValueLog {
                    keyspace,
                    file,
                    last_sequence,
                });
            }
            ValueFileKind::GcOutput => records.push(Record::AddGcOutput { keyspace, file }),
        }
    }
}

impl ValueState {
    /// Adds what these segments of `table` refer to, or takes it away, by `count`.
    pub(super) fn count_references(
        &mut self,
        table: FileNumber,
        segments: &[SegmentMeta],
        count: impl Fn(u64, u64) -> Option<u64>,
    ) -> Result<(), Contradiction> {
        for (number, referred) in segments.iter().flat_map(|it| it.references.iter()) {
            let known = match self.files.get_mut(&number) {
                Some(value_file) => Some(&mut value_file.referred),
                None => self.relocated.get_mut(&number).map(|it| &mut it.referred),
            };
            let known = known.ok_or_else(|| {
                Contradiction::new(format!(
                    "table file {table} refers to value file {number}, which is not there"
                ))
            })?;
            let entries = count(known.entries, referred.entries);
            let bytes = count(known.bytes, referred.bytes);
            let (Some(entries), Some(bytes), true) =
                (entries, bytes, known.is_log == referred.is_log)
            else {
                return Err(Contradiction::new(format!(
                    "the references to value file {number} do not add up"
                )));
            };
            (known.entries, known.bytes) = (entries, bytes);
        }
        Ok(())
    }

    pub(super) fn add(&mut self, file: ValueFileMeta, kind: ValueFileKind) {
        let added = ValueFileState {
            file,
            kind,
            referred: Referred {
                is_log: kind != ValueFileKind::TransientLog,
                ..Referred::default()
            },
        };
        self.files.insert(file.number, added);
    }

    /// The value log that is being written has come to `file`.
    pub(super) fn move_log(
        &mut self,
        file: ValueFileMeta,
        kind: ValueFileKind,
    ) -> Result<(), Contradiction> {
        let known = self.files.get_mut(&file.number);
        let known = known.filter(|known| known.kind == ValueFileKind::OpenLog);
        let known = known.ok_or_else(|| {
            Contradiction::new(format!("value log {} is not being written", file.number))
        })?;
        let grows = known.file.length <= file.length && known.file.entries <= file.entries;
        require(grows, || format!("value log {} shrinks", file.number))?;
        (known.file, known.kind) = (file, kind);
        Ok(())
    }

    /// Pointers into the origin of `table` lead through it from here on. Returns whether the origin was
    /// a file until now.
    pub(super) fn relocate(
        &mut self,
        table: RelocationTable,
        flushed: SequenceNumber,
    ) -> Result<bool, Contradiction> {
        let origin = table.origin;
        let gc_result = self.files.remove(&origin);
        if let Some(log) = &gc_result {
            require(log.is_settled_log(flushed), || {
                format!("value file {origin} is collected while entries may come to refer to it")
            })?;
        }
        let known = match &gc_result {
            Some(log) => Some(log.referred),
            None => self.relocated.get(&origin).map(|known| known.referred),
        };
        let referred = known.unwrap_or(Referred {
            is_log: true,
            ..Referred::default()
        });
        self.relocated.insert(origin, Relocated { table, referred });
        Ok(gc_result.is_some())
    }

    /// `list` speaks of more garbage values.
    pub(super) fn add_discard_list(&mut self, list: &DiscardList) -> Result<(), Contradiction> {
        for (file, count) in &list.counts {
            let sum = self.spoken_of.entry(*file).or_default();
            *sum = sum.checked_add(*count).ok_or_else(|| {
                Contradiction::new(format!("too many garbage values of value file {file}"))
            })?;
        }
        self.garbage.insert(list.number, Arc::new(list.clone()));
        Ok(())
    }

    /// What `list` says of `files` is known to a successor.
    pub(super) fn take_discard_list(
        &mut self,
        list: FileNumber,
        files: &[FileNumber],
    ) -> Result<(), Contradiction> {
        let mut known = self.garbage.get_mut(&list).map(Arc::make_mut);
        for file in files {
            let taken = known.as_mut().and_then(|known| known.counts.remove(file));
            let taken = taken.ok_or_else(|| {
                Contradiction::new(format!(
                    "discard list {list} says nothing of value file {file}"
                ))
            })?;
            if let Some(sum) = self.spoken_of.get_mut(file) {
                *sum -= taken;
                if *sum == 0 {
                    self.spoken_of.remove(file);
                }
            }
        }
        Ok(())
    }

    /// Lists say nothing of files and origins that are gone; the numbers of those that have nothing else
    /// to say are taken from `numbers`.
    fn forget_discarded(&mut self, numbers: &mut BTreeSet<FileNumber>) {
        let gone = |file: &FileNumber| {
            !self.files.contains_key(file) && !self.relocated.contains_key(file)
        };
        let gone: Vec<FileNumber> = self.spoken_of.keys().copied().filter(gone).collect();
        for file in &gone {
            self.spoken_of.remove(file);
            let lists = self.garbage.values_mut();
            for list in lists.filter(|list| list.counts.contains_key(file)) {
                Arc::make_mut(list).counts.remove(file);
            }
        }
        self.garbage.retain(|number, list| {
            if list.counts.is_empty() {
                numbers.remove(number);
            }
            !list.counts.is_empty()
        });
    }

    /// The value logs and their successors, where entries up to `flushed` are in tables.
    pub(super) fn logs(&self, flushed: SequenceNumber) -> Vec<LogUse> {
        let through = self.referred_through();
        let mut moves: BTreeMap<FileNumber, u64> = BTreeMap::new();
        for table in self.relocated.values().map(|it| it.table) {
            *moves.entry(table.gc_output).or_default() += table.entries;
        }
        let files = self.files.values();
        let logs = files.filter(|it| it.kind != ValueFileKind::TransientLog);
        let log = |it: &ValueFileState| {
            let number = it.file.number;
            LogUse {
                file: it.file,
                live: it
                    .referred
                    .plus(through.get(&number).copied().unwrap_or_default()),
                moves: moves.get(&number).copied().unwrap_or_default(),
                is_settled: it.is_settled_log(flushed),
                is_open: it.kind == ValueFileKind::OpenLog,
            }
        };
        logs.map(log).collect()
    }

    /// What is referred to in each file that relocations lead to, through these.
    pub(crate) fn referred_through(&self) -> BTreeMap<FileNumber, Referred> {
        let mut sums: BTreeMap<FileNumber, Referred> = BTreeMap::new();
        for relocated in self.relocated.values() {
            let sum = sums.entry(relocated.table.gc_output).or_default();
            *sum = sum.plus(relocated.referred);
        }
        sums
    }

    /// What lists say of each file and origin.
    #[cfg(test)]
    pub(super) fn spoken_of(&self) -> &BTreeMap<FileNumber, u64> {
        &self.spoken_of
    }

    /// I1 to I3; the numbers of files that went are taken from `numbers`.
    pub(super) fn settle(
        &mut self,
        flushed: SequenceNumber,
        numbers: &mut BTreeSet<FileNumber>,
    ) -> Result<(), Contradiction> {
        // The oldest origin that is referred to, of each file that relocations lead to.
        let mut oldest: BTreeMap<FileNumber, FileNumber> = BTreeMap::new();
        for (origin, relocated) in &self.relocated {
            if relocated.referred.entries > 0 {
                oldest.entry(relocated.table.gc_output).or_insert(*origin);
            }
        }
        let spoken_of = &self.spoken_of;
        self.relocated.retain(|origin, relocated| {
            let older = oldest.get(&relocated.table.gc_output);
            older.is_some_and(|older| older <= origin) || spoken_of.contains_key(origin)
        });
        let through = self.referred_through();
        let live = |value_file: &ValueFileState| {
            let through = through.get(&value_file.file.number).copied();
            value_file.referred.plus(through.unwrap_or_default())
        };
        for value_file in self.files.values() {
            let file = value_file.file;
            let live = live(value_file);
            require(
                live.entries <= file.entries && live.bytes <= file.length,
                || {
                    format!(
                        "more is referred to in value file {} than it holds",
                        file.number
                    )
                },
            )?;
        }
        for relocated in self.relocated.values() {
            let table = &relocated.table;
            let gc_output = self.files.get(&table.gc_output);
            let is_within = gc_output.is_some_and(|it| {
                let end = table.end().unwrap_or(u64::MAX);
                it.file.length <= table.offset && end <= it.file.end
            });
            require(is_within, || {
                let origin = table.origin;
                format!("the relocation table of value file {origin} is not where it should be")
            })?; // I3
        }
        self.files.retain(|number, value_file| {
            let is_needed = live(value_file).entries > 0
                || match value_file.kind {
                    ValueFileKind::TransientLog | ValueFileKind::GcOutput => false,
                    ValueFileKind::OpenLog => true,
                    ValueFileKind::SealedLog { last_sequence } => last_sequence > flushed,
                };
            if !is_needed {
                numbers.remove(number);
            }
            is_needed
        });
        // With the last live value of a file nobody asks any more which ones are dead.
        let files = &self.files;
        self.relocated
            .retain(|_, relocated| files.contains_key(&relocated.table.gc_output));
        self.forget_discarded(numbers);
        Ok(())
    }

    /// All files.
    pub(super) fn names(&self) -> impl Iterator<Item = FileName> {
        let files = self.files.keys().copied().map(FileName::Values);
        files.chain(self.garbage.keys().copied().map(FileName::DiscardList))
    }

    pub(super) fn snapshot(&self, keyspace: KeyspaceId, records: &mut Vec<Record>) {
        for value_file in self.files.values() {
            value_file.snapshot(keyspace, records);
        }
        let tables = self.relocated.values().map(|relocated| relocated.table);
        records.extend(tables.map(|table| Record::Relocate { keyspace, table }));
        let lists = self.garbage.values().map(|list| DiscardList::clone(list));
        records.extend(lists.map(|list| Record::AddDiscardList { keyspace, list }));
    }
}

//! The value files of a keyspace: the references of tables to them, the relocations of collected value
//! logs, and the lists of garbage values. Pure.
//!
//! I1. Tables refer to no more in a file, directly or through relocation tables, than the file holds.
//! I2. A file stays while tables refer to it, or unflushed entries may, or changes that a consumer holds. A discard list stays
//!     while it names a file or an origin. A relocation stays while tables refer to its origin, while a
//!     discard list names its origin, or while tables refer to an older origin that resolves to the same
//!     file: a running compaction may have rewritten pointers from the older origin to this one, when
//!     this one was still a file. The edit after which nothing needs one of them removes it.
//! I3. Every relocation resolves to an existing file in one step.
//! I4. The garbage counts of each file and origin are kept as a sum, each GC output has the sums of its relocations, and
//!     files that no table refers to are listed by the sequence number up to which entries need them. So an edit costs
//!     its changes and a step for each discard list: only what it has changed is checked.
//! I5. After each edit, the counted references to all value logs, GC outputs and origins add up to those of all tables.
//!     Tables list their transient logs, which are counted from there. Their lists of value logs are not in the
//!     manifest: each edit says how these counts change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::base::{FileNumber, KeyspaceId, SequenceNumber};
use crate::table::Referred;
use crate::value::{DiscardList, LogSummary, RelocationTable, ValueFileMeta};

use super::contradiction::{Contradiction, require};
use super::edit::Record;
use super::names::FileName;

mod number_map;
mod references;
mod removal;

pub(crate) use number_map::{NumberChunk, NumberMap};

/// The value files of a keyspace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ValueState {
    /// Transient log files, value logs and GC outputs.
    pub(crate) files: NumberMap<ValueFileState>,
    /// By origin: the relocations of collected value logs.
    pub(crate) relocations: NumberMap<Relocation>,
    /// The lists of garbage that no garbage collection has left behind yet.
    pub(crate) discard_lists: BTreeMap<FileNumber, Arc<DiscardList>>,
    /// The garbage values that the lists name in each file and origin (I4).
    garbage: BTreeMap<FileNumber, u64>,
    /// Each GC output with the origins whose values are there (I4).
    origins: BTreeSet<(FileNumber, FileNumber)>,
    /// The files that nothing needs once [entries up to a sequence number](ValueFileState::needed_up_to) are settled (I4).
    unreferred: BTreeSet<(SequenceNumber, FileNumber)>,
    /// The files and origins that records of the present edit have changed: none between edits.
    changed: Vec<FileNumber>,
    /// Entries and bytes that are counted as references to value logs, less those of all tables: zero between edits
    /// (I5).
    surplus: (i128, i128),
}

/// A value file, and the references of its keyspace's tables to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ValueFileState {
    /// For an open value log: the part that tables refer to.
    pub(crate) file: ValueFileMeta,
    pub(crate) kind: ValueFileKind,
    /// The references that name the file.
    pub(crate) referred: Referred,
    /// Those that name origins whose values are here, and the entries of the relocation tables of these.
    pub(crate) through: Referred,
    pub(crate) relocated_entries: u64,
}

/// The kind of a value file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueFileKind {
    /// A file of a transient log.
    TransientLog,
    /// A value log that commits write to.
    OpenLog,
    /// A complete value log; entries up to `last_sequence` refer to it.
    SealedLog { last_sequence: SequenceNumber },
    /// The live values of collected value logs.
    GcOutput,
}

/// The relocation of a collected value log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Relocation {
    pub(crate) table: RelocationTable,
    /// The references of tables to the origin.
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

    /// Whether garbage collection may take the file: it is a complete value log or a GC output, and nothing but tables
    /// refers to it, if that is so for the entries up to `settled`.
    pub(crate) fn is_collectable(&self, settled: SequenceNumber) -> bool {
        match self.kind {
            ValueFileKind::TransientLog | ValueFileKind::OpenLog => false,
            ValueFileKind::SealedLog { last_sequence } => last_sequence <= settled,
            ValueFileKind::GcOutput => true,
        }
    }

    /// All references of tables to its records.
    pub(crate) fn live(&self) -> Referred {
        self.referred.plus(self.through)
    }

    /// The entries up to this sequence number may need the file, and nothing else does; `None` while tables refer to it or
    /// it is open.
    fn needed_up_to(&self) -> Option<SequenceNumber> {
        let up_to = match self.kind {
            ValueFileKind::OpenLog => None,
            ValueFileKind::SealedLog { last_sequence } => Some(last_sequence),
            ValueFileKind::TransientLog | ValueFileKind::GcOutput => Some(0),
        };
        up_to.filter(|_| self.live().entries == 0)
    }

    /// The value log or GC output in numbers, if nothing but tables and consumers of changes needs the values of entries up
    /// to `flushed`, and no consumer those of entries up to `settled`; `None` for a transient log.
    pub(crate) fn log_summary(
        &self,
        settled: SequenceNumber,
        flushed: SequenceNumber,
    ) -> Option<LogSummary> {
        let is_open = match self.kind {
            ValueFileKind::TransientLog => return None,
            ValueFileKind::OpenLog => true,
            ValueFileKind::SealedLog { .. } | ValueFileKind::GcOutput => false,
        };
        let live_bytes = self.live().bytes;
        let is_ready = self.is_collectable(settled);
        Some(LogSummary {
            number: self.file.number,
            table_bytes: self.file.end.saturating_sub(self.file.length),
            live_bytes,
            // Memtables may refer to values that no table refers to.
            garbage_bytes: if is_ready || is_open {
                self.file.length.saturating_sub(live_bytes)
            } else {
                0
            },
            moves: self.file.entries.saturating_add(self.relocated_entries),
            is_ready,
            is_held: self.is_collectable(flushed) && !is_ready,
            is_open,
            failures: 0,
            is_resting: false,
        })
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
    pub(super) fn add(&mut self, file: ValueFileMeta, kind: ValueFileKind) {
        let mut added = ValueFileState {
            file,
            kind,
            referred: Referred::default(),
            through: Referred::default(),
            relocated_entries: 0,
        };
        for origin in self.origins_of(file.number) {
            added.add_relocation(&self.relocations[&origin]);
        }
        self.changed.push(file.number);
        let needed_up_to = added.needed_up_to();
        self.unreferred
            .extend(needed_up_to.map(|up_to| (up_to, file.number)));
        self.files.insert(file.number, added);
    }

    /// Changes the file with this number, and what is kept about it; `None` if there is no such file.
    fn change<R>(
        &mut self,
        number: FileNumber,
        change: impl FnOnce(&mut ValueFileState) -> R,
    ) -> Option<R> {
        self.changed.push(number);
        let file = self.files.get_mut(&number)?;
        let before = file.needed_up_to();
        let changed = change(file);
        let after = file.needed_up_to();
        if before != after {
            if let Some(up_to) = before {
                self.unreferred.remove(&(up_to, number));
            }
            self.unreferred.extend(after.map(|up_to| (up_to, number)));
        }
        Some(changed)
    }

    /// Updates the open value log to `file` and `kind`.
    pub(super) fn update_open_log(
        &mut self,
        file: ValueFileMeta,
        kind: ValueFileKind,
    ) -> Result<(), Contradiction> {
        let updated = self.change(file.number, |known| {
            require(known.kind == ValueFileKind::OpenLog, || {
                format!("value log {} is not open", file.number)
            })?;
            let grows = known.file.length <= file.length && known.file.entries <= file.entries;
            require(grows, || format!("value log {} shrinks", file.number))?;
            (known.file, known.kind) = (file, kind);
            Ok(())
        });
        updated.unwrap_or_else(|| {
            let number = file.number;
            Err(Contradiction::new(format!(
                "value log {number} does not exist"
            )))
        })
    }

    /// Cuts a sealed value log to `file`, whose values are of entries up to `last_sequence`.
    pub(super) fn cut_sealed_log(
        &mut self,
        file: ValueFileMeta,
        last_sequence: SequenceNumber,
    ) -> Result<(), Contradiction> {
        let kind = ValueFileKind::SealedLog { last_sequence };
        let cut = self.change(file.number, |known| {
            (known.file, known.kind) = (file, kind);
        });
        cut.ok_or_else(|| Contradiction::new(format!("value log {} does not exist", file.number)))
    }

    /// The values in `file`, by this name, that discard lists name.
    pub(crate) fn garbage_in(&self, file: FileNumber) -> u64 {
        self.garbage.get(&file).copied().unwrap_or(0)
    }

    /// Adds a relocation. Returns whether its origin was a file until now.
    pub(super) fn relocate(
        &mut self,
        table: RelocationTable,
        settled: SequenceNumber,
    ) -> Result<bool, Contradiction> {
        let origin = table.origin;
        let collected = self.remove_file(origin);
        if let Some(log) = &collected {
            require(log.is_collectable(settled), || {
                format!("value file {origin} is collected before all its entries are in tables")
            })?;
        }
        let known = match (&collected, self.remove_relocation(origin)) {
            (Some(log), _) => Some(log.referred),
            (None, relocation) => relocation.map(|known| known.referred),
        };
        let referred = known.unwrap_or_default();
        let relocation = Relocation { table, referred };
        self.change(table.gc_output, |file| file.add_relocation(&relocation));
        self.origins.insert((table.gc_output, origin));
        self.relocations.insert(origin, relocation);
        Ok(collected.is_some())
    }

    /// The origins whose values are in `gc_output`, ascending.
    fn origins_of(&self, gc_output: FileNumber) -> impl Iterator<Item = FileNumber> {
        let all = (gc_output, FileNumber(0))..=(gc_output, FileNumber(u64::MAX));
        self.origins.range(all).map(|(_, origin)| *origin)
    }

    /// The relocation tables that lead to `gc_output`, by origin.
    pub(crate) fn relocations_to(
        &self,
        gc_output: FileNumber,
    ) -> impl Iterator<Item = &RelocationTable> {
        let origins = self.origins_of(gc_output);
        origins.map(|origin| &self.relocations[&origin].table)
    }

    /// The newest file that a relocation table leads to.
    pub(super) fn newest_relocation(&self) -> Option<FileNumber> {
        self.origins.last().map(|(gc_output, _)| *gc_output)
    }

    pub(super) fn add_discard_list(&mut self, list: &DiscardList) -> Result<(), Contradiction> {
        for (file, count) in &list.counts {
            let sum = self.garbage.entry(*file).or_default();
            *sum = sum.checked_add(*count).ok_or_else(|| {
                Contradiction::new(format!("too many garbage values of value file {file}"))
            })?;
        }
        self.changed.extend(list.counts.keys());
        self.discard_lists
            .insert(list.number, Arc::new(list.clone()));
        Ok(())
    }

    /// Removes `files` from `list`: a GC output leaves behind the values that it names there.
    pub(super) fn take_discard_list(
        &mut self,
        list: FileNumber,
        files: &[FileNumber],
    ) -> Result<(), Contradiction> {
        let mut known = self.discard_lists.get_mut(&list).map(Arc::make_mut);
        for file in files {
            let taken = known.as_mut().and_then(|known| known.counts.remove(file));
            let taken = taken.ok_or_else(|| {
                Contradiction::new(format!(
                    "discard list {list} does not name value file {file}"
                ))
            })?;
            if let Some(sum) = self.garbage.get_mut(file) {
                *sum -= taken;
                if *sum == 0 {
                    self.garbage.remove(file);
                }
            }
            let relocation = self.relocations.get(file);
            self.changed.extend(relocation.map(|it| it.table.gc_output));
        }
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn garbage(&self) -> &BTreeMap<FileNumber, u64> {
        &self.garbage
    }

    /// All value files and discard lists, with their lengths.
    pub(super) fn files(&self) -> impl Iterator<Item = (FileName, u64)> {
        let files = self.files.values().map(|values| &values.file);
        let files = files.map(|file| (FileName::Values(file.number), file.end));
        let lists = self.discard_lists.values();
        files.chain(lists.map(|list| (FileName::DiscardList(list.number), list.length)))
    }

    pub(super) fn snapshot(&self, keyspace: KeyspaceId, records: &mut Vec<Record>) {
        for value_file in self.files.values() {
            value_file.snapshot(keyspace, records);
        }
        let tables = self.relocations.values().map(|relocation| relocation.table);
        records.extend(tables.map(|table| Record::Relocate { keyspace, table }));
        let lists = self
            .discard_lists
            .values()
            .map(|list| DiscardList::clone(list));
        records.extend(lists.map(|list| Record::AddDiscardList { keyspace, list }));
        records.extend(self.counted_references(keyspace));
    }
}

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
//! I4. The garbage counts of each file and origin are kept as a sum. So an edit costs its changes and a
//!     look at each file, and does not depend on the number of lists.
//! I5. After each edit, the counted references to all value logs, GC outputs and origins add up to those of all tables.
//!     Tables list their transient logs, which are counted from there. Their lists of value logs are not in the
//!     manifest: each edit says how these counts change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::base::{FileNumber, KeyspaceId, SequenceNumber};
use crate::table::Referred;
use crate::value::{DiscardList, RelocationTable, ValueFileMeta};

use super::contradiction::{Contradiction, require};
use super::edit::Record;
use super::names::FileName;

mod references;

/// The value files of a keyspace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ValueState {
    /// Transient log files, value logs and GC outputs.
    pub(crate) files: BTreeMap<FileNumber, ValueFileState>,
    /// By origin: the relocations of collected value logs.
    pub(crate) relocations: BTreeMap<FileNumber, Relocation>,
    /// The lists of garbage that no garbage collection has left behind yet.
    pub(crate) discard_lists: BTreeMap<FileNumber, Arc<DiscardList>>,
    /// The garbage values that the lists name in each file and origin (I4).
    garbage: BTreeMap<FileNumber, u64>,
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
    pub(crate) referred: Referred,
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

/// The use of a value log or a GC output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ValueLogUsage {
    /// For an open log: the part that flushed entries have pointed to.
    pub(crate) file: ValueFileMeta,
    /// The references of tables to it, also through relocation tables.
    pub(crate) live: Referred,
    /// The entries of its relocation tables that are still needed.
    pub(crate) relocated_entries: u64,
    /// Whether garbage collection may take it.
    pub(crate) is_collectable: bool,
    /// Whether only consumers of changes keep garbage collection from taking it.
    pub(crate) is_held: bool,
    pub(crate) is_open: bool,
}

/// The use that all tables together make of value files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ValueSums {
    /// The bytes of all files of transient logs, and of their records that tables refer to.
    pub(crate) transient_length: u64,
    pub(crate) transient_bytes: u64,
    /// The bytes that tables refer to through relocation tables.
    pub(crate) relocated_bytes: u64,
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
        let added = ValueFileState {
            file,
            kind,
            referred: Referred::default(),
        };
        self.files.insert(file.number, added);
    }

    /// Updates the open value log to `file` and `kind`.
    pub(super) fn update_open_log(
        &mut self,
        file: ValueFileMeta,
        kind: ValueFileKind,
    ) -> Result<(), Contradiction> {
        let known = self.files.get_mut(&file.number);
        let known = known.filter(|known| known.kind == ValueFileKind::OpenLog);
        let known = known
            .ok_or_else(|| Contradiction::new(format!("value log {} is not open", file.number)))?;
        let grows = known.file.length <= file.length && known.file.entries <= file.entries;
        require(grows, || format!("value log {} shrinks", file.number))?;
        (known.file, known.kind) = (file, kind);
        Ok(())
    }

    /// Adds a relocation. Returns whether its origin was a file until now.
    pub(super) fn relocate(
        &mut self,
        table: RelocationTable,
        settled: SequenceNumber,
    ) -> Result<bool, Contradiction> {
        let origin = table.origin;
        let collected = self.files.remove(&origin);
        if let Some(log) = &collected {
            require(log.is_collectable(settled), || {
                format!("value file {origin} is collected before all its entries are in tables")
            })?;
        }
        let known = match &collected {
            Some(log) => Some(log.referred),
            None => self.relocations.get(&origin).map(|known| known.referred),
        };
        let referred = known.unwrap_or_default();
        self.relocations
            .insert(origin, Relocation { table, referred });
        Ok(collected.is_some())
    }

    pub(super) fn add_discard_list(&mut self, list: &DiscardList) -> Result<(), Contradiction> {
        for (file, count) in &list.counts {
            let sum = self.garbage.entry(*file).or_default();
            *sum = sum.checked_add(*count).ok_or_else(|| {
                Contradiction::new(format!("too many garbage values of value file {file}"))
            })?;
        }
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
        }
        Ok(())
    }

    /// Removes files and origins that no longer exist from the lists. Removes empty lists, and their
    /// numbers from `numbers`.
    fn trim_discard_lists(&mut self, numbers: &mut BTreeSet<FileNumber>) {
        let is_gone = |file: &FileNumber| {
            !self.files.contains_key(file) && !self.relocations.contains_key(file)
        };
        let gone: BTreeSet<FileNumber> = self.garbage.keys().copied().filter(is_gone).collect();
        if !gone.is_empty() {
            self.garbage.retain(|file, _| !gone.contains(file));
            for list in self.discard_lists.values_mut() {
                if list.counts.keys().any(|file| gone.contains(file)) {
                    Arc::make_mut(list)
                        .counts
                        .retain(|file, _| !gone.contains(file));
                }
            }
        }
        self.discard_lists.retain(|number, list| {
            if list.counts.is_empty() {
                numbers.remove(number);
            }
            !list.counts.is_empty()
        });
    }

    /// The value logs and GC outputs, if nothing but tables and consumers of changes needs the values of entries up to `flushed`,
    /// and no consumer those of entries up to `settled`.
    pub(super) fn logs(
        &self,
        settled: SequenceNumber,
        flushed: SequenceNumber,
    ) -> Vec<ValueLogUsage> {
        let through = self.referred_through();
        let mut relocated: BTreeMap<FileNumber, u64> = BTreeMap::new();
        for table in self.relocations.values().map(|it| it.table) {
            let entries = relocated.entry(table.gc_output).or_default();
            *entries = entries.saturating_add(table.entries);
        }
        let files = self.files.values();
        let logs = files.filter(|it| it.kind != ValueFileKind::TransientLog);
        let log = |it: &ValueFileState| {
            let number = it.file.number;
            let through = through.get(&number).copied().unwrap_or_default();
            ValueLogUsage {
                file: it.file,
                live: it.referred.plus(through),
                relocated_entries: relocated.get(&number).copied().unwrap_or_default(),
                is_collectable: it.is_collectable(settled),
                is_held: it.is_collectable(flushed) && !it.is_collectable(settled),
                is_open: it.kind == ValueFileKind::OpenLog,
            }
        };
        logs.map(log).collect()
    }

    /// The use that all tables together make of the files.
    pub(super) fn summed(&self) -> ValueSums {
        let mut sums = ValueSums::default();
        let is_transient = |it: &&ValueFileState| it.kind == ValueFileKind::TransientLog;
        for it in self.files.values().filter(is_transient) {
            sums.transient_length = sums.transient_length.saturating_add(it.file.length);
            sums.transient_bytes = sums.transient_bytes.saturating_add(it.referred.bytes);
        }
        for it in self.relocations.values() {
            sums.relocated_bytes = sums.relocated_bytes.saturating_add(it.referred.bytes);
        }
        sums
    }

    /// The references to each GC output through relocation tables.
    pub(crate) fn referred_through(&self) -> BTreeMap<FileNumber, Referred> {
        let mut sums: BTreeMap<FileNumber, Referred> = BTreeMap::new();
        for relocation in self.relocations.values() {
            let sum = sums.entry(relocation.table.gc_output).or_default();
            *sum = sum.plus(relocation.referred);
        }
        sums
    }

    #[cfg(test)]
    pub(super) fn garbage(&self) -> &BTreeMap<FileNumber, u64> {
        &self.garbage
    }

    /// Removes everything that nothing needs (I2), if only tables need the values of entries up to `settled`, and the numbers of removed files from `numbers`.
    /// Checks I1, I3 and I5.
    pub(super) fn remove_unneeded(
        &mut self,
        settled: SequenceNumber,
        numbers: &mut BTreeSet<FileNumber>,
    ) -> Result<(), Contradiction> {
        self.check_surplus()?; // I5
        // For each GC output: the oldest origin that tables refer to.
        let mut oldest: BTreeMap<FileNumber, FileNumber> = BTreeMap::new();
        for (origin, relocation) in &self.relocations {
            if relocation.referred.entries > 0 {
                oldest.entry(relocation.table.gc_output).or_insert(*origin);
            }
        }
        let garbage = &self.garbage;
        self.relocations.retain(|origin, relocation| {
            let older = oldest.get(&relocation.table.gc_output);
            older.is_some_and(|older| older <= origin) || garbage.contains_key(origin)
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
                        "tables refer to more of value file {} than it holds",
                        file.number
                    )
                },
            )?;
        }
        for relocation in self.relocations.values() {
            let table = &relocation.table;
            let gc_output = self.files.get(&table.gc_output);
            let is_within = gc_output.is_some_and(|it| {
                let end = table.end().unwrap_or(u64::MAX);
                it.file.length <= table.offset && end <= it.file.end
            });
            require(is_within, || {
                let origin = table.origin;
                format!("the relocation table of value file {origin} is outside its GC output")
            })?; // I3
        }
        self.files.retain(|number, value_file| {
            let is_needed = live(value_file).entries > 0
                || match value_file.kind {
                    ValueFileKind::TransientLog | ValueFileKind::GcOutput => false,
                    ValueFileKind::OpenLog => true,
                    ValueFileKind::SealedLog { last_sequence } => last_sequence > settled,
                };
            if !is_needed {
                numbers.remove(number);
            }
            is_needed
        });
        // A GC output without live values needs neither relocations nor garbage counts.
        let files = &self.files;
        self.relocations
            .retain(|_, relocation| files.contains_key(&relocation.table.gc_output));
        self.trim_discard_lists(numbers);
        Ok(())
    }

    /// The bytes of all value files and discard lists, except value logs that are not sealed.
    pub(super) fn complete_bytes(&self) -> u64 {
        let complete = |file: &&ValueFileState| file.kind != ValueFileKind::OpenLog;
        let files = self.files.values().filter(complete);
        let lists = self.discard_lists.values().map(|list| list.length);
        let bytes = files.map(|file| file.file.end).chain(lists);
        bytes.fold(0, u64::saturating_add)
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

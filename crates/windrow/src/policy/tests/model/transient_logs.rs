//! The transient logs of the model: the file that each separated value is in.

use std::collections::{BTreeMap, HashMap};

use super::Entry;
use crate::base::SequenceNumber;
use crate::policy::InputTransientLog;

#[derive(Debug)]
pub(super) struct TransientLogs {
    value_bytes: u64,
    /// The file of each separated value, by the sequence number of its entry.
    file_of: HashMap<SequenceNumber, u64>,
    /// How many values each file was written with, and how many of them are still needed.
    files: HashMap<u64, (u64, u64)>,
    /// The file that is being written.
    open: Option<u64>,
}

impl TransientLogs {
    pub(super) fn new(value_bytes: u64) -> Self {
        Self {
            value_bytes,
            file_of: HashMap::new(),
            files: HashMap::new(),
            open: None,
        }
    }

    /// Appends a value to the open file, which is full at this `length`. `last` is the largest file number.
    pub(super) fn put(&mut self, sequence: SequenceNumber, length: u64, last: &mut u64) {
        let file = self.open.unwrap_or_else(|| {
            *last += 1;
            *last
        });
        self.open = Some(file);
        self.file_of.insert(sequence, file);
        let (written, needed) = self.files.entry(file).or_default();
        (*written, *needed) = (*written + 1, *needed + 1);
        if *written * self.value_bytes >= length {
            self.open = None;
        }
    }

    pub(super) fn close(&mut self) {
        self.open = None;
    }

    pub(super) fn take(&mut self, sequence: SequenceNumber) {
        let Some(file) = self.file_of.remove(&sequence) else {
            return;
        };
        let (_, needed) = self.files.get_mut(&file).unwrap();
        *needed -= 1;
        if *needed == 0 {
            self.files.remove(&file);
        }
    }

    pub(super) fn file_of(&self, sequence: SequenceNumber) -> Option<u64> {
        self.file_of.get(&sequence).copied()
    }

    /// How many values `entries` have in each file.
    pub(super) fn references(&self, entries: &[Entry]) -> BTreeMap<u64, u64> {
        let mut references = BTreeMap::new();
        let files = entries
            .iter()
            .filter_map(|it| self.file_of(it.1.sequence()));
        for file in files {
            *references.entry(file).or_default() += 1;
        }
        references
    }

    /// What `entries` refer to in each file, which here count as one slice of it.
    pub(super) fn inputs(&self, entries: &[Entry]) -> HashMap<u64, InputTransientLog> {
        let references = self.references(entries).into_iter();
        let input = |(file, count)| {
            let (written, needed) = self.files[&file];
            let input = InputTransientLog {
                length: written * self.value_bytes,
                referred_bytes: needed * self.value_bytes,
                input_bytes: count * self.value_bytes,
                slices: 1,
            };
            (file, input)
        };
        references.map(input).collect()
    }

    /// The bytes that a table with these `references` keeps, garbage included.
    pub(super) fn pinned_bytes(&self, references: &BTreeMap<u64, u64>) -> u64 {
        let pinned = references.iter().map(|(file, count)| {
            let (written, needed) = self.files[file];
            written * self.value_bytes * count / needed
        });
        pinned.sum()
    }

    /// The bytes of all files, garbage included.
    pub(super) fn bytes(&self) -> u64 {
        let written: u64 = self.files.values().map(|(written, _)| written).sum();
        written * self.value_bytes
    }

    pub(super) fn count(&self) -> u64 {
        self.files.len() as u64
    }
}

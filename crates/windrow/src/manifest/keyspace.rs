//! The state of one keyspace in the manifest: its options, its levels and its value files. Pure.
//!
//! I1. The references that the [value files](ValueState) count are those of the table files: for each transient log,
//!     and for all value logs together.

use std::collections::BTreeMap;
use std::slice;
use std::sync::Arc;

use crate::base::limits::{LEVELS_MAX, SEGMENTS_MAX};
use crate::base::{FileNumber, KeyspaceId, SequenceNumber, Totals};
use crate::options::RecordedOptions;
use crate::table::{FileMeta, SegmentMeta};

use super::contradiction::{Contradiction, require};
use super::edit::Record;
use super::names::FileName;
use super::values::ValueState;

/// The state of one keyspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyspaceState {
    pub(crate) name: String,
    /// The options that were set last, including names that this version does not know.
    pub(crate) options: RecordedOptions,
    /// The name of its merge operator. Without one it has no operands.
    pub(crate) merge_operator: Option<String>,
    /// The nominal number of levels below level 0.
    pub(crate) level_count: u8,
    /// The files of each possible level, level 0 first. Handles on them share their descriptions.
    pub(crate) levels: Vec<BTreeMap<FileNumber, Arc<FileMeta>>>,
    /// Every entry up to this sequence number is in table files.
    pub(crate) flushed: SequenceNumber,
    /// No log has entries up to this sequence number that recovery or a consumer of changes needs, as far as the value
    /// logs are concerned that they point to.
    pub(crate) settled: SequenceNumber,
    pub(crate) values: ValueState,
    /// The lifetime counters. Nothing depends on them.
    pub(crate) totals: Totals,
}

impl KeyspaceState {
    pub(super) fn new(name: String) -> Self {
        Self {
            name,
            options: RecordedOptions::new(),
            merge_operator: None,
            level_count: 1,
            levels: vec![BTreeMap::new(); LEVELS_MAX + 1],
            flushed: 0,
            settled: 0,
            values: ValueState::default(),
            totals: Totals::new(),
        }
    }

    /// The files of `level`.
    pub(super) fn level(
        &mut self,
        level: u8,
    ) -> Result<&mut BTreeMap<FileNumber, Arc<FileMeta>>, Contradiction> {
        self.levels
            .get_mut(usize::from(level))
            .ok_or_else(|| Contradiction::new(format!("level {level} does not exist")))
    }

    pub(super) fn add_file(
        &mut self,
        level: u8,
        file: &Arc<FileMeta>,
    ) -> Result<(), Contradiction> {
        self.level(level)?.insert(file.number, Arc::clone(file));
        self.values.add_references(file.number, &file.segments)
    }

    pub(super) fn remove_file(
        &mut self,
        level: u8,
        number: FileNumber,
    ) -> Result<(), Contradiction> {
        let removed = self.level(level)?.remove(&number);
        let removed = removed.ok_or_else(|| {
            Contradiction::new(format!(
                "level {level} has no table file {number} to remove"
            ))
        })?;
        self.values.remove_references(number, &removed.segments)
    }

    pub(super) fn add_segment(
        &mut self,
        level: u8,
        number: FileNumber,
        segment: &SegmentMeta,
    ) -> Result<(), Contradiction> {
        let file = self.level(level)?.get_mut(&number);
        let file = file.ok_or_else(|| {
            Contradiction::new(format!(
                "level {level} has no table file {number} to append to"
            ))
        })?;
        let has_space = level > 0 && !file.sealed && file.segments.len() < SEGMENTS_MAX;
        require(has_space && file.end() <= segment.offset, || {
            format!("table file {number} cannot have segment {}", segment.id.0)
        })?;
        Arc::make_mut(file).segments.push(segment.clone());
        self.values.add_references(number, slice::from_ref(segment))
    }

    /// All tables, value files and discard lists, with their lengths.
    pub(super) fn files(&self) -> impl Iterator<Item = (FileName, u64)> {
        let tables = self.levels.iter().flat_map(BTreeMap::values);
        let tables = tables.map(|file| (FileName::Table(file.number), file.end()));
        tables.chain(self.values.files())
    }

    /// Appends the records that make this keyspace.
    pub(super) fn snapshot(&self, keyspace: KeyspaceId, records: &mut Vec<Record>) {
        records.push(Record::CreateKeyspace {
            id: keyspace,
            name: self.name.clone(),
        });
        if !self.options.is_empty() {
            records.push(Record::KeyspaceOptions {
                keyspace,
                options: self.options.clone(),
            });
        }
        records.extend(
            self.merge_operator
                .iter()
                .map(|name| Record::MergeOperator {
                    keyspace,
                    name: name.clone(),
                }),
        );
        if !self.totals.is_empty() {
            records.push(Record::KeyspaceTotals {
                keyspace,
                totals: self.totals.clone(),
            });
        }
        records.push(Record::LevelCount {
            keyspace,
            count: self.level_count,
        });
        records.push(Record::Flushed {
            keyspace,
            sequence: self.flushed,
        });
        self.values.snapshot(keyspace, records);
        for (level, files) in (0..).zip(&self.levels) {
            records.extend(files.values().map(|file| Record::AddFile {
                keyspace,
                level,
                file: Arc::clone(file),
            }));
        }
    }
}

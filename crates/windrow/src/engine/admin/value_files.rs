//! The report of a keyspace's value files: how much of each is live, and which tables keep it.
//!
//! The manifest has only the sums of references. Which level refers to which value log is read from all tables, on
//! demand.
//!
//! Concurrency: manifest and version are taken under the lock of the catalog, so that they have the same edits. Tables
//! are read without it.

use std::collections::BTreeMap;

use super::stats::ValueFileStats;
use crate::base::{FileNumber, Result};
use crate::engine::commit::value_log::ValueLog;
use crate::engine::{Engine, KeyspaceCore};
use crate::manifest::{KeyspaceState, ValueFileKind, Version};
use crate::table::Referred;

/// The purpose of a value file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum ValueFileUse {
    /// Medium values, until compactions put them in place.
    TransientLog,
    /// Large values as committed.
    #[cfg_attr(feature = "serde", serde(rename = "value_log"))]
    Log,
    /// The live values of collected value logs.
    GcOutput,
}

/// One value file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ValueFileReport {
    /// The number in its name.
    pub number: u64,
    /// Its purpose.
    pub kind: ValueFileUse,
    /// Whether it is a value log that is being written.
    pub is_open: bool,
    /// Bytes in it.
    pub bytes: u64,
    /// Values that tables refer to.
    pub live_values: u64,
    /// Bytes of these.
    pub live_bytes: u64,
    /// Values that no table refers to any more.
    pub garbage_values: u64,
    /// Bytes of these.
    pub garbage_bytes: u64,
    /// Bytes of values that only memtables refer to. Overwritten ones count until their flush.
    pub unflushed_bytes: u64,
    /// The levels whose tables refer to it, shallow ones first.
    pub references: Vec<ValueReferences>,
    /// The collected logs whose pointers it resolves, oldest first.
    pub relocations: Vec<ValueRelocation>,
}

/// The references of a level's tables to a value file, direct or through a relocation table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ValueReferences {
    /// The level.
    pub level: usize,
    /// Its tables that refer to the file.
    pub tables: usize,
    /// Values that they refer to.
    pub values: u64,
    /// Bytes of these.
    pub bytes: u64,
}

/// A collected log whose pointers lead to a value file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ValueRelocation {
    /// The number of the collected log.
    pub origin: u64,
    /// Values with a new place in its relocation table.
    pub entries: u64,
    /// Values that tables still refer to by their old place.
    pub live_values: u64,
}

impl Engine {
    /// The value files of `keyspace`, ascending by number.
    pub(crate) fn value_files(&self, keyspace: &KeyspaceCore) -> Result<Vec<ValueFileReport>> {
        keyspace.check_exists()?;
        let taken = self.catalog.with_state(|manifest| {
            let manifest = manifest.keyspaces.get(&keyspace.id())?;
            let reports = reports(manifest, &keyspace.value_log.lock());
            Some((reports, keyspace.state_full()))
        });
        let Some((mut reports, state)) = taken else {
            return Ok(Vec::new());
        };
        self.add_references(&mut reports, &state.version)?;
        Ok(reports.into_values().collect())
    }

    /// Adds to each report the levels of `version` that refer to the file.
    fn add_references(
        &self,
        reports: &mut BTreeMap<FileNumber, ValueFileReport>,
        version: &Version,
    ) -> Result<()> {
        for (level, files) in version.levels().iter().enumerate() {
            for file in files.files() {
                let mut sums: BTreeMap<FileNumber, Referred> = BTreeMap::new();
                let mut add = |number: FileNumber, referred: Referred| {
                    let table = version.values().table(number);
                    let file = table.map_or(number, |table| table.gc_output);
                    let sum = sums.entry(file).or_default();
                    *sum = sum.plus(referred);
                };
                let segments = file.meta.segments.iter();
                let transient = segments.flat_map(|it| it.references.transient());
                transient.for_each(|(number, referred)| add(number, referred));
                if file.meta.log_bytes() > 0 {
                    let table = self.tables.get(file.slot(), &file.meta)?;
                    for list in table.log_references() {
                        list?
                            .iter()
                            .for_each(|(number, referred)| add(number, referred));
                    }
                }
                for (number, referred) in sums {
                    if let Some(report) = reports.get_mut(&number) {
                        note_table(&mut report.references, level, referred);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Adds a table of `level` with these references. Levels ascend.
fn note_table(references: &mut Vec<ValueReferences>, level: usize, referred: Referred) {
    if references.last().is_none_or(|last| last.level != level) {
        references.push(ValueReferences {
            level,
            ..ValueReferences::default()
        });
    }
    if let Some(references) = references.last_mut() {
        references.tables += 1;
        references.values += referred.entries;
        references.bytes += referred.bytes;
    }
}

/// The statistics of transient logs, and of value logs with their GC outputs. `written` has the lengths
/// of logs that are being written.
pub(super) fn value_stats(
    manifest: Option<&KeyspaceState>,
    written: &ValueLog,
) -> (ValueFileStats, ValueFileStats) {
    let (mut transient_logs, mut logs) = (ValueFileStats::default(), ValueFileStats::default());
    let reports = manifest.map(|manifest| reports(manifest, written));
    for report in reports.unwrap_or_default().values() {
        let stats = match report.kind {
            ValueFileUse::TransientLog => &mut transient_logs,
            ValueFileUse::Log | ValueFileUse::GcOutput => &mut logs,
        };
        stats.files += 1;
        stats.bytes += report.bytes;
        stats.live_bytes += report.live_bytes;
        stats.garbage_bytes += report.garbage_bytes;
        stats.unflushed_bytes += report.unflushed_bytes;
    }
    (transient_logs, logs)
}

/// The reports, without the references.
fn reports(manifest: &KeyspaceState, written: &ValueLog) -> BTreeMap<FileNumber, ValueFileReport> {
    let mut reports: BTreeMap<FileNumber, ValueFileReport> = BTreeMap::new();
    for file in manifest.values.files.values() {
        let number = file.file.number;
        let live = file.live();
        let (kind, is_flushed) = match file.kind {
            ValueFileKind::TransientLog => (ValueFileUse::TransientLog, true),
            ValueFileKind::OpenLog => (ValueFileUse::Log, true),
            ValueFileKind::SealedLog { last_sequence } => {
                (ValueFileUse::Log, last_sequence <= manifest.flushed)
            }
            ValueFileKind::GcOutput => (ValueFileUse::GcOutput, true),
        };
        // Memtables may refer to values that no table refers to.
        let garbage = |all: u64, live: u64| {
            if is_flushed {
                all.saturating_sub(live)
            } else {
                0
            }
        };
        let is_open = file.kind == ValueFileKind::OpenLog;
        let bytes = written.length_of(number).unwrap_or(file.file.end);
        // What the manifest says of an open log covers what flushed entries can refer to.
        let unflushed_bytes = match is_flushed {
            true if is_open => bytes.saturating_sub(file.file.length),
            true => 0,
            false => file.file.length.saturating_sub(live.bytes),
        };
        let report = ValueFileReport {
            number: number.0,
            kind,
            is_open,
            bytes,
            live_values: live.entries,
            live_bytes: live.bytes,
            garbage_values: garbage(file.file.entries, live.entries),
            garbage_bytes: garbage(file.file.length, live.bytes),
            unflushed_bytes,
            references: Vec::new(),
            relocations: Vec::new(),
        };
        reports.insert(number, report);
    }
    for (origin, relocated) in manifest.values.relocations.iter() {
        if let Some(report) = reports.get_mut(&relocated.table.gc_output) {
            report.relocations.push(ValueRelocation {
                origin: origin.0,
                entries: relocated.table.entries,
                live_values: relocated.referred.entries,
            });
        }
    }
    reports
}

//! The full check of all files.
//!
//! Concurrency: works on held versions, and runs concurrently with everything else.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use super::stats::VerifyReport;
use crate::base::{Error, ErrorKind, FileNumber, Result};
use crate::engine::{Engine, KeyspaceCore};
use crate::log::LogReader;
use crate::manifest::names::FileName;
use crate::manifest::{ManifestState, ValueState, Version};
use crate::table::{FileMeta, Referred, Table};
use crate::value::read_discard_list;
use crate::vfs::{Footprint, OpenMode, PIECE_BYTES, PassBytes, Vfs};

/// Few records of a log are longer. The rest of a longer one stays in the page cache.
const RECORD_BYTES: u64 = 8 * PIECE_BYTES;

/// A reader of a log, and the system for it, read about so much behind a record.
const READ_AHEAD_BYTES: u64 = 2 * PIECE_BYTES;

impl Engine {
    /// Checks every block of every table of every keyspace against the manifest, every value that tables refer to, the
    /// counts of the discard lists and of the references, and the logs that are kept for consumers of changes.
    pub(crate) fn verify(&self) -> Result<VerifyReport> {
        self.check_open()?;
        let mut report = VerifyReport::default();
        for keyspace in self.keyspaces.load().iter() {
            self.verify_keyspace(keyspace, &mut report)?;
        }
        self.verify_kept_logs(&mut report)?;
        Ok(report)
    }

    /// Reads every chunk of the logs that only consumers of changes need.
    fn verify_kept_logs(&self, report: &mut VerifyReport) -> Result<()> {
        let kept = |state: &ManifestState| state.changes.kept_logs.clone();
        for (number, log) in self.catalog.with_state(kept) {
            let folder = (&*self.options.vfs, &*self.directory);
            let read = check_log(folder, (number, log.length), 0, &mut |_| Ok(true));
            if let Err(error) = read {
                if error.kind() == ErrorKind::Io {
                    return Err(error);
                }
                // It may have been removed since.
                if self.is_kept(number) {
                    report.damage.push(error);
                }
            }
        }
        Ok(())
    }

    fn verify_keyspace(&self, keyspace: &KeyspaceCore, report: &mut VerifyReport) -> Result<()> {
        // Under the catalog's lock, so that both have the same edits.
        let (state, recorded) = self.catalog.with_state(|manifest| {
            let recorded = manifest.keyspaces.get(&keyspace.id());
            (keyspace.state_full(), recorded.map(|it| it.values.clone()))
        });
        let unflushed = state.memtables().map(|memtable| memtable.entries());
        report.unflushed_entries += unflushed.sum::<u64>();
        if let Err(contradiction) = state.version.check() {
            report.damage.push(Error::new(
                ErrorKind::Corruption,
                format!("keyspace {}: {contradiction}", *keyspace.name()),
            ));
        }
        // Value files are opened again, as tables are.
        let files = state.version.values().iter().count();
        let mut values = self.value_read_buffers().over(files);
        let mut found: BTreeMap<FileNumber, Referred> = BTreeMap::new();
        let damage_before = report.damage.len();
        for file in state
            .version
            .levels()
            .iter()
            .flat_map(|level| level.files())
        {
            report.files += 1;
            let folder = (&*self.options.vfs, &*self.directory);
            // Opened again, so that footers, indexes and filters are read again.
            match open_passing(folder, &file.meta, || self.tables.open_anew(&file.meta)) {
                Ok((table, _metadata)) => {
                    let mut check_value = |key: &[u8], pointer: &[u8]| {
                        report.values += 1;
                        let place = state.version.values().resolve(pointer)?;
                        let sum = found.entry(place.pointer.file).or_default();
                        sum.entries += 1;
                        sum.bytes += place.pointer.record_bytes;
                        place.read(&mut values, key).map(drop)
                    };
                    let checked = table.verify(&mut report.damage, &mut check_value)?;
                    report.segments += checked.segments;
                    report.blocks += checked.blocks;
                    report.entries += checked.entries;
                    report.bytes += checked.bytes;
                }
                Err(error) if matches!(error.kind(), ErrorKind::Io | ErrorKind::Closed) => {
                    return Err(error);
                }
                Err(error) => report.damage.push(error),
            }
        }
        // The references of an unreadable table are unknown.
        if report.damage.len() == damage_before
            && let Some(recorded) = recorded
        {
            verify_counts(&recorded, &found, report);
            self.verify_logs(&state.version, &recorded, &found, report)?;
        }
        Ok(())
    }

    /// Checks each value log that gets no new references: each of its records has a reference or is
    /// garbage, and the bytes with references equal the recorded ones, so that the others are garbage.
    /// `found` counts the references that were found, by value file and origin.
    fn verify_logs(
        &self,
        version: &Version,
        recorded: &ValueState,
        found: &BTreeMap<FileNumber, Referred>,
        report: &mut VerifyReport,
    ) -> Result<()> {
        // Relocation tables lead from origins to the files that hold their values.
        let resolved = |file: FileNumber| {
            let relocation = recorded.relocations.get(&file);
            relocation.map_or(file, |it| it.table.gc_output)
        };
        let mut live: BTreeMap<FileNumber, Referred> = BTreeMap::new();
        for (file, referred) in found {
            let sum = live.entry(resolved(*file)).or_default();
            *sum = sum.plus(*referred);
        }
        let mut garbage: BTreeMap<FileNumber, u64> = BTreeMap::new();
        for list in recorded.discard_lists.values() {
            let vfs = &*self.options.vfs;
            let counted = read_discard_list(vfs, &self.directory, list, |file, _| {
                *garbage.entry(resolved(file)).or_default() += 1;
                Ok(())
            });
            match counted {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::Io => return Err(error),
                Err(error) => {
                    report.damage.push(error);
                    return Ok(());
                }
            }
        }
        for log in version.values().collectable() {
            let number = log.file.number;
            let live = live.get(&number).copied().unwrap_or_default();
            let garbage = garbage.get(&number).copied().unwrap_or_default();
            let recorded = log.live();
            let is_recorded = live == recorded;
            if !is_recorded || live.entries + garbage != log.file.entries {
                let what = format!(
                    "it holds {} values: tables refer to {} of them with {} bytes (recorded: {} with {}), and \
                     {garbage} are garbage",
                    log.file.entries, live.entries, live.bytes, recorded.entries, recorded.bytes,
                );
                let name = FileName::Values(number).to_string();
                report.damage.push(Error::corruption(&name, 0, what));
            }
        }
        Ok(())
    }
}

/// The table of `meta` in a folder, as `open` opens it, and the footprint of its metadata; none if there is no such file, which
/// `open` reports.
pub(in crate::engine) fn open_passing(
    (vfs, directory): (&dyn Vfs, &Path),
    meta: &FileMeta,
    open: impl FnOnce() -> Result<Arc<Table>>,
) -> Result<(Arc<Table>, Option<Footprint>)> {
    let path = directory.join(FileName::Table(meta.number).to_string());
    let file = vfs.open(&path, OpenMode::Read).ok();
    // The recorded end may be beyond that of the file, which `open` reports.
    let length = file.as_ref().and_then(|file| file.length().ok());
    let end = meta.end().min(length.unwrap_or(0));
    let mut footprint = file.map(Footprint::new);
    if let Some(footprint) = &mut footprint {
        footprint.note(0..end);
    }
    let table = open()?;
    if let Some(footprint) = &mut footprint {
        let ranges = table.metadata(meta);
        ranges.for_each(|range| footprint.touch(range));
    }
    Ok((table, footprint))
}

/// Checks the log of this number, closed at this length, from `offset` on, where a chunk begins, as long as `pass` wants it.
/// Returns the offset to go on from; `None` at the end.
///
/// # Errors
/// The first damage; `Io`; those of `pass`.
pub(in crate::engine) fn check_log(
    (vfs, directory): (&dyn Vfs, &Path),
    (number, length): (FileNumber, u64),
    offset: u64,
    pass: &mut PassBytes<'_>,
) -> Result<Option<u64>> {
    let name = FileName::Wal(number).to_string();
    let mut reader = LogReader::open(vfs, directory, &name, number, None)?;
    reader.extend_to(length)?;
    reader.move_to(offset);
    let file = vfs.open(&directory.join(&name), OpenMode::Read).ok();
    let mut footprint = file.map(Footprint::new);
    loop {
        let position = reader.position();
        if let Some(footprint) = &mut footprint {
            footprint.pass(position);
            footprint.note(position..length.min(position + RECORD_BYTES));
        }
        let Some(record) = reader.next()? else {
            break;
        };
        let (bytes, end) = (record.end - record.offset, record.end);
        if let Some(footprint) = &mut footprint {
            footprint.touch(position..length.min(end + READ_AHEAD_BYTES));
        }
        if !pass(bytes)? {
            return Ok(Some(end));
        }
    }
    if reader.is_at_end() {
        return Ok(None);
    }
    let what = "a record that was committed is damaged or missing";
    Err(Error::corruption(&name, reader.position(), what))
}

/// Checks that tables refer to what the manifest counts in each value file and origin: it has no lists, and deletes a
/// value file when its count is zero. `found` counts the references that were found.
fn verify_counts(
    recorded: &ValueState,
    found: &BTreeMap<FileNumber, Referred>,
    report: &mut VerifyReport,
) {
    let counted = recorded.references().filter(|(_, it)| it.entries > 0);
    let counted: BTreeMap<FileNumber, Referred> = counted.collect();
    let numbers: BTreeSet<&FileNumber> = counted.keys().chain(found.keys()).collect();
    for number in numbers {
        let of = |counts: &BTreeMap<_, _>| counts.get(number).copied().unwrap_or_default();
        let (counted, found): (Referred, Referred) = (of(&counted), of(found));
        if counted != found {
            let what = format!(
                "the manifest counts {} references with {} bytes, and tables have {} with {}",
                counted.entries, counted.bytes, found.entries, found.bytes,
            );
            let name = FileName::Values(*number).to_string();
            report.damage.push(Error::corruption(&name, 0, what));
        }
    }
}

#[cfg(test)]
#[cfg(not(any(loom, shuttle)))]
mod tests;

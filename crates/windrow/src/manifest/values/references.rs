//! The counts of references in the value files of a keyspace. Pure.
//!
//! I5 of [`ValueState`] is kept here.

use crate::base::{FileNumber, KeyspaceId};
use crate::table::{Referred, SegmentMeta};

use super::super::contradiction::{Contradiction, require};
use super::super::edit::Record;
use super::super::reference_changes::{ReferenceChange, ReferenceChanges};
use super::{ValueFileKind, ValueState};

impl ValueState {
    /// Adds the references of these segments of `table`.
    pub(in crate::manifest) fn add_references(
        &mut self,
        table: FileNumber,
        segments: &[SegmentMeta],
    ) -> Result<(), Contradiction> {
        self.count_references(table, segments, u64::checked_add, -1)
    }

    /// Subtracts the references of these segments of `table`.
    pub(in crate::manifest) fn remove_references(
        &mut self,
        table: FileNumber,
        segments: &[SegmentMeta],
    ) -> Result<(), Contradiction> {
        self.count_references(table, segments, u64::checked_sub, 1)
    }

    /// Adds the references to transient logs to the counts, or subtracts them: `count` does either. Those to value logs
    /// change the surplus of what is counted, by `sign` times their sums.
    fn count_references(
        &mut self,
        table: FileNumber,
        segments: &[SegmentMeta],
        count: impl Fn(u64, u64) -> Option<u64>,
        sign: i128,
    ) -> Result<(), Contradiction> {
        for logs in segments.iter().map(|it| it.references.in_logs()) {
            self.surplus.0 += sign * i128::from(logs.entries);
            self.surplus.1 += sign * i128::from(logs.bytes);
        }
        for (number, referred) in segments.iter().flat_map(|it| it.references.transient()) {
            let counted = self.change(number, |known| {
                if known.kind != ValueFileKind::TransientLog {
                    return Err(no_transient_log(table, number));
                }
                let entries = count(known.referred.entries, referred.entries);
                let bytes = count(known.referred.bytes, referred.bytes);
                let (Some(entries), Some(bytes)) = (entries, bytes) else {
                    return Err(Contradiction::new(format!(
                        "the references to value file {number} do not add up"
                    )));
                };
                known.referred = Referred { entries, bytes };
                Ok(())
            });
            counted.unwrap_or_else(|| Err(no_transient_log(table, number)))?;
        }
        Ok(())
    }

    /// Changes the counted references to value logs, GC outputs and origins.
    pub(in crate::manifest) fn count_log_references(
        &mut self,
        changes: &[ReferenceChange],
    ) -> Result<(), Contradiction> {
        for change in changes {
            let number = change.file;
            let counted = self.change(number, |file| match file.kind {
                ValueFileKind::TransientLog => Err(no_value_log(number)),
                _ => add(change, &mut file.referred),
            });
            match counted {
                Some(counted) => counted?,
                None => self.count_origin_references(change)?,
            }
            self.surplus.0 += i128::from(change.entries);
            self.surplus.1 += i128::from(change.bytes);
        }
        Ok(())
    }

    /// Changes the counted references to an origin, and those through its relocation table.
    fn count_origin_references(&mut self, change: &ReferenceChange) -> Result<(), Contradiction> {
        let known = self.relocations.get_mut(&change.file);
        let known = known.ok_or_else(|| no_value_log(change.file))?;
        let (gc_output, before) = (known.table.gc_output, known.referred);
        add(change, &mut known.referred)?;
        let after = known.referred;
        self.change(gc_output, |file| file.count_through(before, after));
        Ok(())
    }

    /// Checks I5.
    pub(super) fn check_surplus(&self) -> Result<(), Contradiction> {
        let (entries, bytes) = self.surplus;
        require((entries, bytes) == (0, 0), || {
            format!(
                "the counted references to value logs differ from those of all tables by {entries} entries and {bytes} \
                 bytes"
            )
        })
    }

    /// The record that counts from zero.
    pub(super) fn counted_references(&self, keyspace: KeyspaceId) -> Option<Record> {
        let mut counts = ReferenceChanges::default();
        for (number, referred) in self.log_references() {
            counts.count(number, referred);
        }
        Record::count_references(keyspace, &counts)
    }

    /// The references of tables to each value file and origin.
    pub(crate) fn references(&self) -> impl Iterator<Item = (FileNumber, Referred)> {
        let files = self.files.iter().map(|(number, it)| (*number, it.referred));
        let origins = self.relocations.iter();
        files.chain(origins.map(|(number, it)| (*number, it.referred)))
    }

    /// The references of tables to each value log, GC output and origin.
    fn log_references(&self) -> impl Iterator<Item = (FileNumber, Referred)> {
        let logs = self.files.iter();
        let logs = logs.filter(|(_, it)| it.kind != ValueFileKind::TransientLog);
        let logs = logs.map(|(number, it)| (*number, it.referred));
        let origins = self.relocations.iter();
        logs.chain(origins.map(|(number, it)| (*number, it.referred)))
    }
}

/// Adds `change` to the references `known`.
fn add(change: &ReferenceChange, known: &mut Referred) -> Result<(), Contradiction> {
    let changed = |count: u64, change: i64| {
        let changed = count.checked_add_signed(change);
        // A snapshot counts from zero.
        changed.filter(|count| i64::try_from(*count).is_ok())
    };
    let entries = changed(known.entries, change.entries);
    let bytes = changed(known.bytes, change.bytes);
    match (entries, bytes) {
        (Some(entries), Some(bytes)) if entries > 0 || bytes == 0 => {
            *known = Referred { entries, bytes };
            Ok(())
        }
        _ => Err(Contradiction::new(format!(
            "the counted references to value log {} are impossible",
            change.file
        ))),
    }
}

fn no_transient_log(table: FileNumber, number: FileNumber) -> Contradiction {
    Contradiction::new(format!(
        "table file {table} refers to transient log {number}, which does not exist"
    ))
}

fn no_value_log(number: FileNumber) -> Contradiction {
    Contradiction::new(format!(
        "references to value log {number} are counted, which does not exist"
    ))
}

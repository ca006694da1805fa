//! What nothing needs any more of the value files of a keyspace. Pure.
//!
//! I1 to I4 of [`ValueState`] are checked and kept here, at the end of each edit.

use std::collections::BTreeSet;
use std::mem;
use std::sync::Arc;

use crate::base::{FileNumber, SequenceNumber};

use super::super::contradiction::{Contradiction, require};
use super::{Relocation, ValueFileState, ValueState};
use crate::table::Referred;

impl ValueFileState {
    /// Adds what tables refer to through `relocation`, which leads here.
    pub(super) fn add_relocation(&mut self, relocation: &Relocation) {
        let entries = self.relocated_entries;
        self.relocated_entries = entries.saturating_add(relocation.table.entries);
        self.through = self.through.plus(relocation.referred);
    }

    /// Subtracts it again.
    fn remove_relocation(&mut self, relocation: &Relocation) {
        let entries = self.relocated_entries;
        self.relocated_entries = entries.saturating_sub(relocation.table.entries);
        self.count_through(relocation.referred, Referred::default());
    }

    /// Tables have referred to `before` through a relocation, and refer to `after` now.
    pub(super) fn count_through(&mut self, before: Referred, after: Referred) {
        self.through = self.through.minus(before).plus(after);
    }
}

impl ValueState {
    /// Removes everything that nothing needs (I2), if only tables need the values of entries up to `settled`, and the numbers of
    /// removed files from `numbers`. Checks I1, I3 and I5. Costs a step for each file that the edit has changed or removes, for each
    /// origin whose values are there, and for each discard list.
    pub(in crate::manifest) fn remove_unneeded(
        &mut self,
        settled: SequenceNumber,
        numbers: &mut BTreeSet<FileNumber>,
    ) -> Result<(), Contradiction> {
        self.check_surplus()?; // I5
        let mut changed = mem::take(&mut self.changed);
        changed.sort_unstable();
        changed.dedup();
        // Discard lists need not name these any more.
        let mut gone = Vec::new();
        for number in changed {
            self.remove_unneeded_relocations(number, &mut gone);
            self.check(number)?;
            if !self.files.contains_key(&number) {
                gone.push(number);
            }
        }
        while let Some((_, number)) = self.first_unneeded(settled) {
            self.remove_file(number);
            numbers.remove(&number);
            gone.push(number);
            // A GC output without live values needs neither relocations nor garbage counts.
            let origins: Vec<FileNumber> = self.origins_of(number).collect();
            for origin in origins {
                self.remove_relocation(origin);
                gone.push(origin);
            }
        }
        self.trim_discard_lists(&gone, numbers);
        self.changed.clear();
        Ok(())
    }

    /// The first file that nothing needs.
    fn first_unneeded(&self, settled: SequenceNumber) -> Option<(SequenceNumber, FileNumber)> {
        let first = self.unreferred.first().copied();
        first.filter(|(up_to, _)| *up_to <= settled)
    }

    pub(super) fn remove_file(&mut self, number: FileNumber) -> Option<ValueFileState> {
        let removed = self.files.remove(&number)?;
        self.changed.push(number);
        if let Some(up_to) = removed.needed_up_to() {
            self.unreferred.remove(&(up_to, number));
        }
        Some(removed)
    }

    pub(super) fn remove_relocation(&mut self, origin: FileNumber) -> Option<Relocation> {
        let removed = self.relocations.remove(&origin)?;
        let gc_output = removed.table.gc_output;
        self.origins.remove(&(gc_output, origin));
        self.change(gc_output, |file| file.remove_relocation(&removed));
        Some(removed)
    }

    /// Removes the relocations to `gc_output` that nothing needs (I2), and adds their origins to `gone`.
    fn remove_unneeded_relocations(&mut self, gc_output: FileNumber, gone: &mut Vec<FileNumber>) {
        let mut has_older = false;
        let is_unneeded = |origin: &FileNumber| {
            // From the oldest origin that tables refer to.
            has_older |= self.relocations[origin].referred.entries > 0;
            !has_older && !self.garbage.contains_key(origin)
        };
        let unneeded: Vec<FileNumber> = self.origins_of(gc_output).filter(is_unneeded).collect();
        for origin in unneeded {
            self.remove_relocation(origin);
            gone.push(origin);
        }
    }

    /// Checks I1 and I3 for the file `number`, or for the relocations that lead to it although it does not exist.
    fn check(&self, number: FileNumber) -> Result<(), Contradiction> {
        let file = self.files.get(&number);
        if let Some(known) = file {
            let live = known.live();
            let holds = live.entries <= known.file.entries && live.bytes <= known.file.length;
            require(holds, || {
                format!("tables refer to more of value file {number} than it holds")
            })?; // I1
        }
        for table in self.relocations_to(number) {
            let is_within = file.is_some_and(|it| {
                let end = table.end().unwrap_or(u64::MAX);
                it.file.length <= table.offset && end <= it.file.end
            });
            require(is_within, || {
                let origin = table.origin;
                format!("the relocation table of value file {origin} is outside its GC output")
            })?; // I3
        }
        Ok(())
    }

    /// Removes those of `gone` from the lists that are neither files nor origins. Removes empty lists, and their
    /// numbers from `numbers`.
    fn trim_discard_lists(&mut self, gone: &[FileNumber], numbers: &mut BTreeSet<FileNumber>) {
        let is_there = |number: &FileNumber| {
            self.files.contains_key(number) || self.relocations.contains_key(number)
        };
        let gone = gone.iter().copied().filter(|number| !is_there(number));
        let gone: BTreeSet<FileNumber> = gone
            .filter(|number| self.garbage.remove(number).is_some())
            .collect();
        for list in self.discard_lists.values_mut() {
            let counts = &list.counts;
            // As many steps as the shorter one has names.
            let named: Vec<FileNumber> = if gone.len() < counts.len() {
                let named = gone.iter().filter(|number| counts.contains_key(number));
                named.copied().collect()
            } else {
                let named = counts.keys().filter(|number| gone.contains(number));
                named.copied().collect()
            };
            if !named.is_empty() {
                let counts = &mut Arc::make_mut(list).counts;
                for number in &named {
                    counts.remove(number);
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
}

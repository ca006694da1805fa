//! The filter bits of a simulated tree.

use std::collections::HashMap;

use crate::base::FileNumber;
use crate::filter::{FILTER_UNITS_MAX, LoadedUnits, units_rate};
use crate::options::KeyspaceOptions;
use crate::policy::{FileSummary, TreeSummary, allocate_filters, is_allocation_due, price_alone};

#[derive(Debug)]
pub(super) struct Filters {
    /// What a bit costs.
    pub(super) price: f64,
    /// Entries that came with files written since the last allocation.
    changed: u64,
    /// The units that are allocated to each file; all of them for a new file.
    allocated: HashMap<FileNumber, LoadedUnits>,
}

impl Filters {
    pub(super) fn new(options: &KeyspaceOptions) -> Self {
        Self {
            price: price_alone(options),
            changed: 0,
            allocated: HashMap::new(),
        }
    }

    /// The bytes that each segment of `file` has in memory, and the part of absent keys that passes it.
    pub(super) fn loaded<'f>(
        &self,
        file: &'f FileSummary<u64>,
    ) -> impl Iterator<Item = (u64, f64)> + use<'f> {
        let allocated = self.allocated.get(&file.number);
        let allocated = allocated.copied().unwrap_or(LoadedUnits::ALL);
        let segments = file.segments.iter().enumerate();
        segments.map(move |(number, segment)| {
            let units = &segment.filter_units[..allocated.of(number).min(FILTER_UNITS_MAX)];
            let rate = units_rate(units.iter().copied(), segment.entries);
            (units.iter().sum(), rate)
        })
    }

    /// Notes that a file of this many segments gets another one, which has all its units until the next
    /// allocation.
    pub(super) fn note_append(&mut self, number: FileNumber, segments: usize) {
        if let Some(units) = self.allocated.get_mut(&number) {
            *units = units.with_all_after(segments);
        }
    }

    /// Allocates the bits of `tree` anew after a change by this many entries, if that is due.
    pub(super) fn note_change(
        &mut self,
        tree: &TreeSummary<u64>,
        options: &KeyspaceOptions,
        entries: u64,
    ) {
        self.changed += entries;
        let files = tree.levels.iter().flatten();
        let all: u64 = files.clone().map(|file| file.entries).sum();
        if !is_allocation_due(self.changed, files.count(), all) {
            return;
        }
        let allocation = allocate_filters(tree, options);
        *self = Self {
            price: allocation.price,
            changed: 0,
            allocated: allocation.units.into_iter().collect(),
        };
    }
}

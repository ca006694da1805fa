//! The filter units that are allocated to the tables of a keyspace.
//!
//! After a change of the tree the policy allocates filter bits to all its files. In a large tree one job changes
//! little, so a new allocation waits until a fraction of the entries has changed. A file without an allocation keeps
//! all its units meanwhile. If the allocation of an open table changes, the table is opened again, and its readers
//! keep the old one. An open of a large tree leaves the first allocation to a job.
//!
//! Concurrency: one thread at a time per keyspace allocates bits, under the lock of `changed`. Threads that read or
//! write tables do not wait for it.

use std::ops::Add;
use std::sync::Arc;

use super::filter_state::ALL;
use super::tree_summary::{all_files, summary};
use crate::base::sync::Shared;
use crate::base::sync::atomic::Ordering;
use crate::base::{Cursor, Result};
use crate::engine::keyspace::KeyspaceWork;
use crate::engine::{Engine, KeyspaceCore};
use crate::filter::{FILTER_UNITS_MAX, LoadedUnits, units_rate};
use crate::manifest::{FileHandle, Level};
use crate::memtable::{Memtable, MemtableCursor};
use crate::policy::{self, Claim};
use crate::table::{Measure, SegmentMeta};

impl KeyspaceCore {
    /// The current price of a filter bit.
    pub(in crate::engine) fn filter_price(&self) -> f64 {
        self.filters.price()
    }

    /// The filter units of the table that a flush of `memtable` writes.
    pub(super) fn flush_filter_units(
        &self,
        memtable: &Memtable,
    ) -> Result<[f64; FILTER_UNITS_MAX]> {
        let mut cursor = MemtableCursor::new(memtable);
        cursor.seek_to_first()?;
        let smallest = cursor.key().to_vec();
        cursor.seek_to_last()?;
        let claim = Claim {
            level: 0,
            smallest: &smallest[..],
            largest: cursor.key(),
        };
        let version = &self.state_full().version;
        let work = KeyspaceWork::default();
        let tree = summary(version, &work);
        let fraction = policy::flush_fraction(&tree, &claim, memtable.entries());
        Ok(policy::filter_units(
            fraction,
            self.filter_price(),
            &self.options(),
        ))
    }
}

/// An open leaves the first allocation to a job if the tree has more files: it costs about 5 us for each.
const FILES_AT_OPEN_MAX: usize = 4096;

impl Engine {
    /// Allocates the filter bits of `keyspace` after an open, or leaves that to a job.
    pub(in crate::engine) fn allocate_first_filters(&self, keyspace: &KeyspaceCore) {
        let levels = keyspace.state_full();
        let levels = levels.version.levels().iter();
        let files: usize = levels.map(|level| level.len()).sum();
        // No job runs in a database that is open for reading.
        if files > FILES_AT_OPEN_MAX && !self.is_read_only() {
            keyspace.filters.is_left.store(true, Ordering::Release);
        } else {
            self.allocate_filters(keyspace, ALL);
        }
    }

    /// A keyspace whose first allocation an open has left to a job.
    pub(super) fn claim_allocation(&self) -> Option<Arc<KeyspaceCore>> {
        let keyspaces = self.keyspaces.load();
        let is_left = |keyspace: &&Arc<KeyspaceCore>| {
            let is_left = &keyspace.filters.is_left;
            is_left.load(Ordering::Acquire) && is_left.swap(false, Ordering::AcqRel)
        };
        keyspaces.iter().find(is_left).cloned()
    }

    /// Allocates the filter bits of `keyspace` anew after a change of its tree by `entries`.
    pub(in crate::engine) fn allocate_filters(&self, keyspace: &KeyspaceCore, entries: u64) {
        let filters = &keyspace.filters;
        let mut changed = filters.changed.lock();
        *changed = changed.saturating_add(entries);
        let state = keyspace.state_full();
        let levels = state.version.levels();
        let count = levels.iter().map(|level| level.len()).sum();
        let entries = levels
            .iter()
            .map(|level| level.sums().get(Measure::Entries));
        let entries = entries.fold(0, u64::saturating_add);
        if !policy::is_allocation_due(*changed, count, entries) {
            return;
        }
        let tree = all_files(&state.version);
        let allocations = policy::allocate_filters(&tree, &keyspace.options());
        filters
            .price
            .store(allocations.price.to_bits(), Ordering::Relaxed);
        *changed = 0;
        let files = levels.iter().flat_map(|level| level.files());
        for (file, (number, units)) in files.zip(allocations.units) {
            debug_assert_eq!(
                file.meta.number, number,
                "allocations are in the order of the tree"
            );
            // If a table cannot be opened again, its open handle stays.
            drop(self.tables.set_filter_units(file.slot(), &file.meta, units));
        }
    }
}

/// Each segment of `file`, with the bytes of its first filter units, as many as `units` says.
fn with_units(
    file: &FileHandle,
    units: LoadedUnits,
) -> impl Iterator<Item = (&SegmentMeta, &[u64])> {
    let segments = file.meta.segments.iter().enumerate();
    segments.map(move |(number, segment)| {
        let written = segment.filter_unit_count();
        let used = &segment.filter_units[..units.of(number).min(written)];
        (segment, used)
    })
}

/// The bytes of the filter units that the files of `level` keep in memory while they are open.
pub(in crate::engine) fn loaded_bytes(level: &Level) -> u64 {
    let loaded = |file| with_units(file, file.slot().used_units().in_memory);
    let units = level
        .files()
        .flat_map(|file| loaded(file).flat_map(|(_, units)| units));
    units.fold(0, |sum, unit| sum.saturating_add(*unit))
}

/// The average number of false-positive reads of a get of an absent key in `files`, which are level `level`.
pub(in crate::engine) fn false_positive_reads(files: &Level, level: usize) -> f64 {
    let rate = |file: &Shared<FileHandle>| {
        let of_segment = |(segment, units): (&SegmentMeta, &[u64])| {
            units_rate(units.iter().copied(), segment.entries)
        };
        let probed = with_units(file, file.slot().used_units().probed);
        probed.map(of_segment).fold(0.0, f64::add)
    };
    if level == 0 {
        return files.files().map(rate).fold(0.0, f64::add);
    }
    let entries = files.sums().get(Measure::Entries);
    let weighted = |file| rate(file) * file.meta.entries() as f64;
    files.files().map(weighted).fold(0.0, f64::add) / entries.max(1) as f64
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::base::Kind;
    use crate::engine::{Access, Handle, Write};
    use crate::options::{Durability, Options};

    #[test]
    fn an_allocation_that_an_open_leaves_is_a_job() {
        let directory = tempfile::tempdir().unwrap();
        let handle = Handle::open(directory.path(), Options::default(), Access::ReadWrite).unwrap();
        let engine = handle.engine();
        let keyspace = engine.open_keyspace("k", None).unwrap();
        let write = Write::One {
            keyspace: &keyspace,
            kind: Kind::Value,
            key: b"key",
            value: b"value",
        };
        engine.commit(&write, Durability::Buffered).unwrap();
        engine.flush_all().unwrap();
        engine.wait_idle().unwrap();
        let price = keyspace.filter_price();
        keyspace.filters.price.store(0, Ordering::Relaxed);
        keyspace.filters.is_left.store(true, Ordering::Release);
        engine.wait_idle().unwrap();
        assert_eq!(keyspace.filter_price().to_bits(), price.to_bits());
    }
}

//! Entries in any order, as sorted runs in the folder of the new database: what damaged tables and logs have left.
//!
//! The entries keep their sequence numbers, and their pointers into the old value files. A run is a temporary table,
//! which no edit names. Entries without a number get runs of their own: in a table either all entries have one or none has.
//!
//! I1. Memory is bounded by the given bytes and one entry.
//! I2. A run has one entry for each key and number: of two, the one that decides more. A fold has the number of its newest
//!     operand, and an expired entry becomes a tombstone with its number.
//!
//! Concurrency: one thread.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

use crate::base::expiry::{EXPIRY_BYTES, split_expiring};
use crate::base::key::UNNUMBERED;
use crate::base::limits::{KEY_BYTES_MAX, RANGE_END_BYTES_MAX, VALUE_BYTES_IN_PLACE_MAX};
use crate::base::range_tombstones::is_range;
use crate::base::sync::Shared;
use crate::base::{FileNumber, Held, KeyspaceId, Kind, RangeTombstone, Result, SegmentId, Trailer};
use crate::codec::Compression;
use crate::compact::job::JobContext;
use crate::compact::pending_files::PendingFiles;
use crate::engine::Engine;
use crate::filter::FILTER_UNITS_MAX;
use crate::manifest::FileHandle;
use crate::manifest::names::FileName;
use crate::table::{TableOptions, TableWriter};
use crate::value::ValuePointer;

/// The bytes of a block of a run.
const BLOCK_BYTES: usize = 16 << 10;

/// An entry in memory: where its key begins, and the lengths of the key and of what it stores.
#[derive(Debug, Clone, Copy)]
struct Place {
    keyspace: KeyspaceId,
    start: usize,
    key_bytes: u32,
    stored_bytes: u32,
    trailer: Trailer,
}

impl Place {
    /// What all entries of a run have in common: the keyspace, and whether they have numbers.
    fn run(&self) -> (KeyspaceId, bool) {
        (self.keyspace, self.trailer.sequence() == UNNUMBERED)
    }
}

/// Sorts entries.
pub(super) struct Sorter<'e> {
    engine: &'e Engine,
    memory_bytes: usize,
    bytes: Vec<u8>,
    entries: Vec<Place>,
    held: Held,
    runs: BTreeMap<KeyspaceId, Vec<Shared<FileHandle>>>,
    /// The range tombstones of all sources.
    pub(super) ranges: BTreeMap<KeyspaceId, Vec<RangeTombstone>>,
    /// Removes the runs.
    files: PendingFiles<'e>,
}

/// How much an entry decides among those of one key and number: less is more.
pub(super) fn rank(kind: Kind) -> u8 {
    match kind {
        Kind::Tombstone | Kind::RangeTombstone => 0,
        Kind::Operand => 2,
        _ => 1,
    }
}

/// Whether a table can hold such an entry. A sound one is of this form, unless somebody made the checksum.
pub(super) fn is_valid(key: &[u8], kind: Kind, stored: &[u8]) -> bool {
    if kind.is_expiring() && stored.len() < EXPIRY_BYTES {
        return false;
    }
    let value = if kind.is_expiring() {
        split_expiring(stored).1
    } else {
        stored
    };
    let is_stored = match kind.lasting() {
        Kind::Tombstone => value.is_empty(),
        Kind::TransientPointer | Kind::ValueLogPointer => ValuePointer::decode(value).is_ok(),
        Kind::RangeTombstone => value.len() <= RANGE_END_BYTES_MAX && is_range(key, value),
        _ => value.len() <= VALUE_BYTES_IN_PLACE_MAX,
    };
    (1..=KEY_BYTES_MAX).contains(&key.len()) && is_stored
}

impl<'e> Sorter<'e> {
    pub(super) fn new(engine: &'e Engine, memory_bytes: usize) -> Self {
        Self {
            memory_bytes,
            bytes: Vec::new(),
            entries: Vec::new(),
            held: Held::new(JobContext::memory(engine), 0),
            runs: BTreeMap::new(),
            ranges: BTreeMap::new(),
            files: PendingFiles::adopt(engine, Vec::new()),
            engine,
        }
    }

    /// Adds a [valid](is_valid) entry.
    ///
    /// # Errors
    /// `NoSpace`, `Io`.
    pub(super) fn add(
        &mut self,
        keyspace: KeyspaceId,
        key: &[u8],
        trailer: Trailer,
        stored: &[u8],
    ) -> Result<()> {
        if trailer.is_range_tombstone() {
            self.add_range(keyspace, key, trailer, stored);
            return Ok(());
        }
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.entries.push(Place {
            keyspace,
            start: self.bytes.len(),
            key_bytes: length(key),
            stored_bytes: length(stored),
            trailer,
        });
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(stored);
        let used = self.bytes.len() + size_of_val(self.entries.as_slice());
        if used >= self.memory_bytes {
            self.held.set(used as u64);
            self.write_runs()?;
        }
        Ok(())
    }

    /// Adds a range tombstone of any source.
    pub(super) fn add_range(
        &mut self,
        keyspace: KeyspaceId,
        start: &[u8],
        trailer: Trailer,
        end: &[u8],
    ) {
        self.ranges
            .entry(keyspace)
            .or_default()
            .push(RangeTombstone {
                start: start.into(),
                end: end.into(),
                sequence: trailer.sequence(),
            });
    }

    /// The key of an entry, and what it stores.
    fn parts(&self, place: Place) -> (&[u8], &[u8]) {
        let (key, rest) = self.bytes[place.start..].split_at(place.key_bytes as usize);
        (key, &rest[..place.stored_bytes as usize])
    }

    fn compare(&self, left: Place, right: Place) -> Ordering {
        let order = |place: Place| {
            (
                Reverse(place.trailer.sequence()),
                rank(place.trailer.kind()),
            )
        };
        let by_run = left.run().cmp(&right.run());
        let by_key = by_run.then_with(|| self.parts(left).0.cmp(self.parts(right).0));
        by_key.then_with(|| order(left).cmp(&order(right)))
    }

    /// Writes what is in memory to a run for each keyspace.
    fn write_runs(&mut self) -> Result<()> {
        let mut entries = std::mem::take(&mut self.entries);
        entries.sort_by(|left, right| self.compare(*left, *right));
        // I2.
        entries.dedup_by(|right, left| {
            let is_same =
                left.run() == right.run() && left.trailer.sequence() == right.trailer.sequence();
            is_same && self.parts(*left).0 == self.parts(*right).0
        });
        for run in entries.chunk_by(|left, right| left.run() == right.run()) {
            let number = FileNumber(self.engine.allocate_id()?);
            let segment = SegmentId(self.engine.allocate_id()?);
            let options = TableOptions {
                block_bytes: BLOCK_BYTES,
                filter_units: [0.0; FILTER_UNITS_MAX],
                compression: Compression::None,
            };
            let (vfs, folder) = (self.engine.vfs(), self.engine.directory());
            let mut writer = TableWriter::create(vfs, folder, number, segment, &options)?;
            self.files.add(FileName::Table(number));
            for place in run {
                let (key, stored) = self.parts(*place);
                writer.add(key, place.trailer, stored)?;
            }
            let written = writer.finish()?;
            let handle = FileHandle::new(written.file, &self.engine.obsolete);
            self.runs.entry(run[0].keyspace).or_default().push(handle);
        }
        self.bytes.clear();
        self.held.set(0);
        Ok(())
    }

    /// The runs of each keyspace. The files stay as long as the sorter.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub(super) fn finish(&mut self) -> Result<BTreeMap<KeyspaceId, Vec<Shared<FileHandle>>>> {
        self.write_runs()?;
        Ok(std::mem::take(&mut self.runs))
    }
}

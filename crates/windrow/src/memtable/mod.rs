//! Layer 2: the memtable, a sorted map of the newest entries of a keyspace in memory.
//!
//! Owns the entries between their commit and their flush. A memtable only grows: an overwrite adds a
//! version, and a deletion adds a tombstone, or a range tombstone at the start of its range. An operand may be replaced by the value that it leads to; the memory of the
//! operand stays in use.
//!
//! Invariants:
//! - I1: (key, sequence number) is unique. A repetition is a bug of the caller and panics.
//! - I2: `memory_bytes` is exact: the bytes of all records, leaves and nodes, padding included, and of the sets of range
//!   tombstones.
//! - I3: a lookup and a cursor's move allocate nothing.
//! - I4: replacements take about half of the memory or less. Reads make them, and no throttle holds reads up.
//!
//! Concurrency: any number of threads may call everything at once. Readers see every entry whose
//! insertion has returned. They ignore the others by sequence number.

mod arena;
#[cfg(all(test, loom))]
mod models;
mod order;
mod ranges;
mod skiplist;
#[cfg(test)]
#[cfg(not(any(loom, shuttle)))]
mod tests;

use crate::base::key::SEQUENCE_MAX;
use crate::base::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::base::{
    Cursor, Kind, MemoryTracker, RangeTombstone, Result, SequenceNumber, Step, Trailer,
};
use ranges::Ranges;
use skiplist::{Position, Record, SkipList};
use std::fmt;
use std::sync::Arc;

/// A concurrent sorted map of entries in memory.
pub(crate) struct Memtable {
    list: Arc<SkipList>,
    entries: AtomicU64,
    tombstones: AtomicU64,
    /// Whether an entry expires.
    may_expire: AtomicBool,
    ranges: Ranges,
    /// The bytes of keys and values that have replaced operands.
    replaced_bytes: AtomicUsize,
}

impl Memtable {
    /// An empty memtable, whose memory `tracker` counts until it is dropped.
    pub(crate) fn new(tracker: &Arc<MemoryTracker>) -> Self {
        Self {
            list: Arc::new(SkipList::new(tracker)),
            entries: AtomicU64::new(0),
            tombstones: AtomicU64::new(0),
            may_expire: AtomicBool::new(false),
            ranges: Ranges::new(tracker),
            replaced_bytes: AtomicUsize::new(0),
        }
    }

    /// Adds an entry that is no tombstone.
    ///
    /// # Panics
    /// If the memtable has an entry of this key and sequence number.
    pub(crate) fn insert(&self, key: &[u8], trailer: Trailer, value: &[u8]) {
        if trailer.is_expiring() {
            self.may_expire.store(true, Ordering::Release);
        }
        self.list.insert(key, trailer, value);
        self.entries.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds a tombstone, or a range tombstone with `end` as its end. Searches find all that it covers deleted as soon as
    /// this returns, or before.
    ///
    /// # Panics
    /// As [`insert`](Self::insert).
    pub(crate) fn insert_tombstone(&self, key: &[u8], trailer: Trailer, end: &[u8]) {
        self.tombstones.fetch_add(1, Ordering::Relaxed);
        if trailer.is_range_tombstone() {
            self.ranges.add(RangeTombstone {
                start: key.into(),
                end: end.into(),
                sequence: trailer.sequence(),
            });
        }
        self.insert(key, trailer, end);
    }

    /// Replaces an entry by one of the same key and sequence number, if I4 allows it. It must have the same meaning to
    /// every reader: some read the old entry still.
    ///
    /// # Panics
    /// If the memtable has no such entry.
    pub(crate) fn replace(&self, key: &[u8], trailer: Trailer, value: &[u8]) {
        let bytes = key.len() + value.len();
        // Threads that meet here may pass the bound by one value each.
        if self.replaced_bytes.load(Ordering::Relaxed) + bytes <= self.memory_bytes() / 2 {
            self.replaced_bytes.fetch_add(bytes, Ordering::Relaxed);
            self.list.replace(key, trailer, value);
        }
    }

    /// The newest version of `key` that is at most `sequence`. It may be a range tombstone that covers the key.
    #[inline]
    pub(crate) fn get(&self, key: &[u8], sequence: SequenceNumber) -> Option<(Trailer, &[u8])> {
        if self.is_empty() {
            return None;
        }
        let mut deleted = 0;
        if self.ranges.has_any() {
            deleted = self.deleted_at(key, sequence);
        }
        let found = self.get_among(key, sequence);
        match found {
            _ if deleted == 0 => found,
            Some((trailer, _)) if trailer.sequence() >= deleted => found,
            _ => Some((Trailer::new(deleted, Kind::RangeTombstone), &[])),
        }
    }

    /// The newest range tombstone that covers `key` and is at most `sequence`; 0 if there is none.
    #[cold]
    fn deleted_at(&self, key: &[u8], sequence: SequenceNumber) -> SequenceNumber {
        let newest = self.ranges.newest(key, sequence, |range| range.sequence);
        newest.unwrap_or(0)
    }

    /// The newest range tombstone that covers `key` and is at most `sequence`, as `look` sees it.
    pub(crate) fn newest_range<R>(
        &self,
        key: &[u8],
        sequence: SequenceNumber,
        look: impl FnOnce(&RangeTombstone) -> R,
    ) -> Option<R> {
        let has_any = self.ranges.has_any();
        has_any.then(|| self.ranges.newest(key, sequence, look))?
    }

    /// Whether there are range tombstones.
    pub(crate) fn has_ranges(&self) -> bool {
        self.ranges.has_any()
    }

    /// All range tombstones.
    pub(crate) fn ranges(&self) -> Vec<RangeTombstone> {
        self.ranges.all()
    }

    fn get_among(&self, key: &[u8], sequence: SequenceNumber) -> Option<(Trailer, &[u8])> {
        let record = self.list.lower_bound(&self.list.target(key, sequence))?;
        (record.key() == key).then(|| (record.trailer(), record.value()))
    }

    /// The bytes of memory in use.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.list.used_bytes() + self.ranges.bytes()
    }

    /// The bytes of memory taken from the system, including unused bytes.
    pub(crate) fn allocated_bytes(&self) -> usize {
        self.list.allocated_bytes() + self.ranges.bytes()
    }

    /// The number of entries, including tombstones.
    pub(crate) fn entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }

    /// About how many entries have keys from `from` to before `to`; `None` is no bound. Exact up to some hundred entries.
    pub(crate) fn entries_between(&self, from: Option<&[u8]>, to: Option<&[u8]>) -> u64 {
        if let Some(between) = self.list.entries_between(from, to) {
            return between.min(self.entries());
        }
        let mut position = Position::new(Arc::clone(&self.list));
        position.seek(from.unwrap_or_default(), SEQUENCE_MAX);
        let mut count = 0;
        while let Some(record) = position.record()
            && to.is_none_or(|to| record.key() < to)
        {
            count += 1;
            position.next();
        }
        count
    }

    /// How many tombstones there are.
    pub(crate) fn tombstones(&self) -> u64 {
        self.tombstones.load(Ordering::Relaxed)
    }

    /// Whether an entry expires. Readers that see such an entry find so.
    #[inline]
    pub(crate) fn may_expire(&self) -> bool {
        self.may_expire.load(Ordering::Acquire)
    }

    /// Whether the memtable is empty. The count includes insertions whose commit the caller sees.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries() == 0
    }
}

impl fmt::Debug for Memtable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memtable")
            .field("entries", &self.entries())
            .field("memory_bytes", &self.memory_bytes())
            .finish_non_exhaustive()
    }
}

/// A cursor over a memtable, which it keeps in memory. It may or may not see concurrent insertions.
pub(crate) struct MemtableCursor {
    position: Position,
}

impl MemtableCursor {
    pub(crate) fn new(memtable: &Memtable) -> Self {
        Self {
            position: Position::new(Arc::clone(&memtable.list)),
        }
    }

    /// A new cursor over the same memtable.
    pub(crate) fn sibling(&self) -> Self {
        Self {
            position: self.position.sibling(),
        }
    }

    fn record(&self) -> Record<'_> {
        match self.position.record() {
            Some(record) => record,
            None => unreachable!("only a valid cursor has an entry"),
        }
    }
}

impl Cursor for MemtableCursor {
    fn seek_to_first(&mut self) -> Result<()> {
        self.position.seek_to_first();
        Ok(())
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.position.seek_to_last();
        Ok(())
    }

    fn seek(&mut self, key: &[u8], sequence: SequenceNumber) -> Result<()> {
        self.position.seek(key, sequence);
        Ok(())
    }

    fn next(&mut self) -> Result<Step> {
        let repeats_key = self.position.next();
        Ok(match self.position.record() {
            Some(record) => Step::to(record.trailer(), repeats_key),
            None => Step::END,
        })
    }

    #[inline]
    fn is_ahead(&self) -> bool {
        false
    }

    fn arrive(&mut self) -> Result<()> {
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        self.position.prev();
        Ok(())
    }

    fn is_valid(&self) -> bool {
        self.position.record().is_some()
    }

    fn key(&self) -> &[u8] {
        self.record().key()
    }

    fn trailer(&self) -> Trailer {
        self.record().trailer()
    }

    fn value(&self) -> &[u8] {
        self.record().value()
    }
}

impl fmt::Debug for MemtableCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MemtableCursor")
            .field(
                &self
                    .position
                    .record()
                    .map(|record| (record.key(), record.trailer())),
            )
            .finish()
    }
}

//! Layer 2: the newest entries of a keyspace, sorted in memory.
//!
//! Owns the entries between their commit and their flush to a table. A memtable only grows: an
//! overwritten key gains a version, and a deleted one a tombstone.
//!
//! Invariants:
//! - I1: (key, sequence number) is unique; a repetition is a bug of the caller and panics.
//! - I2: `memory_bytes` is exact: the bytes of all nodes, padding included.
//! - I3: a lookup and a cursor's move allocate nothing.
//!
//! Concurrency: everything may be called by any number of threads at once. Readers see every entry
//! whose insertion has returned; which of the others they may use is the business of sequence
//! numbers.

mod arena;
#[cfg(all(test, loom))]
mod models;
mod order;
mod skiplist;
#[cfg(test)]
#[cfg(not(any(loom, shuttle)))]
mod tests;

use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::base::{Cursor, MemoryTracker, Result, SequenceNumber, Step, Trailer};
use skiplist::{Position, Record, SkipList};
use std::fmt;
use std::sync::Arc;

/// A concurrent sorted map of entries in memory.
pub(crate) struct Memtable {
    list: Arc<SkipList>,
    entries: AtomicU64,
}

impl Memtable {
    /// An empty memtable, whose memory is counted in `account` for as long as anybody holds it.
    pub(crate) fn new(tracker: &Arc<MemoryTracker>) -> Self {
        Self {
            list: Arc::new(SkipList::new(tracker)),
            entries: AtomicU64::new(0),
        }
    }

    /// Adds an entry.
    ///
    /// # Panics
    /// If there is an entry of this key with this sequence number already.
    pub(crate) fn insert(&self, key: &[u8], trailer: Trailer, value: &[u8]) {
        self.list.insert(key, trailer, value);
        self.entries.fetch_add(1, Ordering::Relaxed);
    }

    /// The newest version of `key` that is at most `sequence`.
    #[inline]
    pub(crate) fn get(&self, key: &[u8], sequence: SequenceNumber) -> Option<(Trailer, &[u8])> {
        if self.is_empty() {
            return None;
        }
        self.get_among(key, sequence)
    }

    fn get_among(&self, key: &[u8], sequence: SequenceNumber) -> Option<(Trailer, &[u8])> {
        let record = self.list.lower_bound(&self.list.target(key, sequence))?;
        (record.key() == key).then(|| (record.trailer(), record.value()))
    }

    /// The bytes of memory in use.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.list.used_bytes()
    }

    /// The bytes of memory taken from the system, those that are not in use yet included.
    pub(crate) fn allocated_bytes(&self) -> usize {
        self.list.allocated_bytes()
    }

    /// How many entries there are, tombstones included.
    pub(crate) fn entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }

    /// Whether there is no entry. Insertions whose commit the caller sees are counted.
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

/// A cursor over a memtable, whose entries it keeps in memory. It meets entries inserted behind its
/// back or not.
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
            None => unreachable!("a cursor is asked for an entry only while it is valid"),
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

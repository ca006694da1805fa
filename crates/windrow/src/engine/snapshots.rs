//! The sequence numbers that readers hold.
//!
//! A snapshot pins a sequence number only. For each held number, compactions keep the version that it
//! sees. Iterators pin a version of the tree instead and have no entry here.
//!
//! Concurrency: one short lock. [`Snapshots::acquire`] reads the visible sequence number under it.
//! [`Snapshots::read_points`] reads that number before it lists the held ones. So a snapshot that it
//! misses was registered later, at the number that it read or a higher one.

#[cfg(all(test, loom))]
mod models;

use std::collections::BTreeMap;

use crate::base::SequenceNumber;
use crate::base::sync::Mutex;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::policy::ReadPoints;

/// The held sequence numbers, each with the number of its holders.
#[derive(Debug, Default)]
pub(crate) struct Snapshots(Mutex<BTreeMap<SequenceNumber, usize>>);

impl Snapshots {
    /// Holds the newest visible sequence number and returns it.
    pub(crate) fn acquire(&self, visible: &AtomicU64) -> SequenceNumber {
        let mut held = self.0.lock();
        let sequence = visible.load(Ordering::Acquire);
        *held.entry(sequence).or_insert(0) += 1;
        sequence
    }

    /// Releases one hold of `sequence`.
    pub(crate) fn release(&self, sequence: SequenceNumber) {
        let mut held = self.0.lock();
        let count = held.get_mut(&sequence);
        assert!(count.is_some(), "a snapshot was released twice");
        if let Some(count) = count {
            *count -= 1;
            if *count == 0 {
                held.remove(&sequence);
            }
        }
    }

    /// The sequence numbers at which readers read or may yet read. A compaction may drop what is invisible
    /// at all of them.
    pub(crate) fn read_points(&self, visible: &AtomicU64) -> ReadPoints {
        let visible = visible.load(Ordering::Acquire);
        let held = self.0.lock().keys().copied().collect();
        ReadPoints::new(held, visible)
    }
}

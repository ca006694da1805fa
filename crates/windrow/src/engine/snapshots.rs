//! Which sequence numbers readers hold.
//!
//! A snapshot pins a sequence number only: merges keep, for each held number, the version that it
//! sees. Iterators pin a version of the tree instead and need no entry here.
//!
//! Concurrency: one short lock. [`Snapshots::acquire`] reads the visible sequence number under it,
//! so that a merge that lists the held numbers afterwards knows every snapshot below what is
//! visible to it.

use std::collections::BTreeMap;

use crate::base::SequenceNumber;
use crate::base::sync::Mutex;
use crate::base::sync::atomic::{AtomicU64, Ordering};

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

    /// Gives one hold of `sequence` back.
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

    /// The held sequence numbers, ascending.
    pub(crate) fn held(&self) -> Vec<SequenceNumber> {
        self.0.lock().keys().copied().collect()
    }
}

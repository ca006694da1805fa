//! The sequence numbers and moments that readers hold.
//!
//! A snapshot pins a sequence number and the moment at which it reads. For each held number, compactions keep the version
//! that it sees. Iterators pin a version of the tree instead and have no entry here.
//!
//! Concurrency: one short lock. [`Snapshots::acquire`] reads the visible sequence number and the clock under it.
//! [`Snapshots::read_points`] reads that number before it takes the lock, and the clock under it before it lists the held
//! ones. So a snapshot that it misses was registered later, at the number and the moment that it read or higher ones.

#[cfg(all(test, loom))]
mod models;

use std::collections::BTreeMap;

use crate::base::sync::Mutex;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::base::{Moment, SequenceNumber};
use crate::policy::ReadPoints;

/// What a snapshot reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SnapshotPoint {
    /// It sees every write up to this one.
    pub(crate) sequence: SequenceNumber,
    /// It sees what expires later.
    pub(crate) moment: Moment,
}

/// A held sequence number.
#[derive(Debug)]
struct Hold {
    /// The moment of its first holder, the earliest one.
    moment: Moment,
    holders: usize,
}

/// The held sequence numbers.
#[derive(Debug, Default)]
pub(crate) struct Snapshots(Mutex<BTreeMap<SequenceNumber, Hold>>);

impl Snapshots {
    /// Holds the newest visible sequence number and the present moment.
    pub(crate) fn acquire(
        &self,
        visible: &AtomicU64,
        now: impl FnOnce() -> Moment,
    ) -> SnapshotPoint {
        let mut held = self.0.lock();
        let sequence = visible.load(Ordering::Acquire);
        let moment = now();
        let hold = held.entry(sequence).or_insert(Hold { moment, holders: 0 });
        hold.holders += 1;
        SnapshotPoint { sequence, moment }
    }

    /// Releases one hold of `sequence`.
    pub(crate) fn release(&self, sequence: SequenceNumber) {
        let mut held = self.0.lock();
        let hold = held.get_mut(&sequence);
        assert!(hold.is_some(), "a snapshot was released twice");
        if let Some(hold) = hold {
            hold.holders -= 1;
            if hold.holders == 0 {
                held.remove(&sequence);
            }
        }
    }

    /// The sequence numbers and moments at which readers read or may yet read. A compaction may drop what is invisible
    /// at all of them.
    pub(crate) fn read_points(
        &self,
        visible: &AtomicU64,
        now: impl FnOnce() -> Moment,
    ) -> ReadPoints {
        let visible = visible.load(Ordering::Acquire);
        let held = self.0.lock();
        let now = now();
        let points = held.iter().map(|(sequence, it)| (*sequence, it.moment));
        ReadPoints::new(points.collect(), visible, now)
    }
}

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
use std::sync::Arc;

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

/// A point that is held until it is dropped.
#[derive(Debug)]
pub(crate) struct HeldPoint {
    at: SnapshotPoint,
    register: Arc<Snapshots>,
}

impl HeldPoint {
    #[inline]
    pub(crate) fn at(&self) -> SnapshotPoint {
        self.at
    }
}

impl Drop for HeldPoint {
    fn drop(&mut self) {
        self.register.release(self.at.sequence);
    }
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
    /// Holds the newest visible sequence number and the present moment until the point is dropped.
    pub(crate) fn hold(
        self: &Arc<Self>,
        visible: &AtomicU64,
        now: impl FnOnce() -> Moment,
    ) -> HeldPoint {
        HeldPoint {
            at: self.acquire(visible, now),
            register: Arc::clone(self),
        }
    }

    /// Holds the newest visible sequence number and the present moment.
    fn acquire(&self, visible: &AtomicU64, now: impl FnOnce() -> Moment) -> SnapshotPoint {
        let mut held = self.0.lock();
        let sequence = visible.load(Ordering::Acquire);
        let moment = now();
        let hold = held.entry(sequence).or_insert(Hold { moment, holders: 0 });
        hold.holders += 1;
        SnapshotPoint { sequence, moment }
    }

    /// Releases one hold of `sequence`.
    fn release(&self, sequence: SequenceNumber) {
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

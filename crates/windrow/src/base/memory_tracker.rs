//! Memory accounting: each owner of memory counts its bytes in a tracker until it is dropped.
//!
//! Concurrency: one relaxed atomic per tracker; a sum over trackers may be a few operations old.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the bytes that one purpose holds.
#[derive(Debug, Default)]
pub(crate) struct MemoryTracker(AtomicU64);

impl MemoryTracker {
    pub(crate) fn add(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn remove(&self, bytes: u64) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The bytes of one owner, counted until dropped.
#[derive(Debug)]
pub(crate) struct Held {
    tracker: Arc<MemoryTracker>,
    bytes: u64,
}

impl Held {
    pub(crate) fn new(tracker: &Arc<MemoryTracker>, bytes: u64) -> Self {
        tracker.add(bytes);
        Self {
            tracker: Arc::clone(tracker),
            bytes,
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Sets the bytes of the owner.
    #[inline]
    pub(crate) fn set(&mut self, bytes: u64) {
        if bytes != self.bytes {
            self.tracker.add(bytes);
            self.tracker.remove(self.bytes);
            self.bytes = bytes;
        }
    }

    /// Raises the bytes of the owner to at least `bytes`.
    #[inline]
    pub(crate) fn grow_to(&mut self, bytes: u64) {
        if bytes > self.bytes {
            self.set(bytes);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.tracker.remove(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::{Held, MemoryTracker};
    use std::sync::Arc;

    #[test]
    fn what_is_held_is_counted_until_it_is_dropped() {
        let tracker = Arc::new(MemoryTracker::default());
        let mut first = Held::new(&tracker, 10);
        let second = Held::new(&tracker, 5);
        assert_eq!(tracker.bytes(), 15);
        first.grow_to(7);
        assert_eq!(tracker.bytes(), 15);
        first.grow_to(20);
        assert_eq!((tracker.bytes(), first.bytes()), (25, 20));
        first.set(1);
        drop(second);
        assert_eq!(tracker.bytes(), 1);
        drop(first);
        assert_eq!(tracker.bytes(), 0);
    }
}

//! The range tombstones of a memtable, for searches without locks.
//!
//! They stand in the list too, each at its start. Here they are in immutable sets. A new one becomes a set of its own,
//! together with all sets that are not larger. So the sizes of the sets at least double from the last to the first,
//! n range tombstones cost n * log n steps to add, and a search looks into log n sets.
//!
//! Concurrency: a lock guards additions. Readers see every range tombstone whose addition has returned.

use crate::base::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::base::sync::{ArcSwap, Mutex, Shared};
use crate::base::{Held, MemoryTracker, RangeTombstone, RangeTombstones, SequenceNumber};
use std::sync::Arc;

/// The range tombstones of a memtable.
pub(super) struct Ranges {
    /// Whether there are any: readers that find none look no further.
    has_any: AtomicBool,
    bytes: AtomicUsize,
    /// The largest set first.
    sets: ArcSwap<Vec<Shared<RangeTombstones>>>,
    /// Taken for additions; the memory of the sets.
    held: Mutex<Held>,
}

impl Ranges {
    pub(super) fn new(tracker: &Arc<MemoryTracker>) -> Self {
        Self {
            has_any: AtomicBool::new(false),
            bytes: AtomicUsize::new(0),
            sets: ArcSwap::from_pointee(Vec::new()),
            held: Mutex::new(Held::new(tracker, 0)),
        }
    }

    #[inline]
    pub(super) fn has_any(&self) -> bool {
        self.has_any.load(Ordering::Acquire)
    }

    /// The bytes of the sets in memory.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn add(&self, tombstone: RangeTombstone) {
        let mut held = self.held.lock();
        let mut sets = Vec::clone(&self.sets.load());
        let mut joined = vec![tombstone];
        while let Some(last) = sets.pop_if(|last| last.all().len() <= joined.len()) {
            joined.extend_from_slice(last.all());
        }
        sets.push(Shared::new(RangeTombstones::new(joined)));
        let bytes = sets.iter().map(|set| set.memory_bytes()).sum();
        self.bytes.store(bytes, Ordering::Relaxed);
        held.set(bytes as u64);
        self.sets.store(Shared::new(sets));
        self.has_any.store(true, Ordering::Release);
    }

    /// The newest range tombstone that covers `key` and is at most `sequence`, as `look` sees it.
    pub(super) fn newest<R>(
        &self,
        key: &[u8],
        sequence: SequenceNumber,
        look: impl FnOnce(&RangeTombstone) -> R,
    ) -> Option<R> {
        let sets = self.sets.load();
        let newest = sets.iter().filter_map(|set| set.newest(key, sequence));
        newest.max_by_key(|newest| newest.sequence).map(look)
    }

    /// All range tombstones.
    pub(super) fn all(&self) -> Vec<RangeTombstone> {
        let sets = self.sets.load();
        sets.iter().flat_map(|set| set.all()).cloned().collect()
    }
}

#[cfg(test)]
#[cfg(not(any(loom, shuttle)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_sets_agree_with_a_list_and_stay_few(
            ranges in proptest::collection::vec((0..30_u8, 1..10_u8), 0..60),
            key in 0..40_u8,
            sequence in 0..70_u64,
        ) {
            let tracker = Arc::default();
            let sets = Ranges::new(&tracker);
            prop_assert!(!sets.has_any());
            let mut list = Vec::new();
            for (number, (start, length)) in (1..).zip(ranges) {
                let tombstone = RangeTombstone {
                    start: [start].into(),
                    end: [start + length].into(),
                    sequence: number,
                };
                sets.add(tombstone.clone());
                list.push(tombstone);
                prop_assert!(sets.has_any());
                let lengths: Vec<_> = sets.sets.load().iter().map(|set| set.all().len()).collect();
                prop_assert!(lengths.is_sorted_by(|left, right| left > right));
                prop_assert!(lengths.len() <= 7);
            }
            let found = sets.newest(&[key], sequence, Clone::clone);
            let newest = list.iter().rev().find(|it| it.sequence <= sequence && it.covers(&[key]));
            prop_assert_eq!(found.as_ref(), newest);
            let mut all = sets.all();
            all.sort_by_key(|it| it.sequence);
            prop_assert_eq!(all, list);
            prop_assert_eq!(tracker.bytes(), sets.bytes() as u64);
            drop(sets);
            prop_assert_eq!(tracker.bytes(), 0);
        }
    }
}

//! The order of a leaf's slots, in one word, so that one store publishes it.
//!
//! From the lowest bits up: four bits with the number of used slots, then four bits per position with
//! the slot at that position. The positions from that number on hold the free slots.

/// The number of slots of a leaf.
pub(super) const SLOTS: usize = if cfg!(loom) { 3 } else { 15 };

/// Which slots of a leaf are used, and in what order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Order(pub(super) u64);

impl Order {
    /// All slots are free: slot `i` is at position `i`.
    pub(super) const EMPTY: Self = Self(0xedcb_a987_6543_2100);

    /// The first `count` slots used, in their own order.
    pub(super) fn first(count: usize) -> Self {
        Self(Self::EMPTY.0 | count as u64)
    }

    /// The number of used slots.
    #[inline]
    pub(super) fn count(self) -> usize {
        (self.0 & 0xf) as usize
    }

    /// The slot at `position`.
    #[inline]
    pub(super) fn slot(self, position: usize) -> usize {
        (self.0 >> (4 + 4 * position) & 0xf) as usize
    }

    /// The used slots in order.
    #[inline]
    pub(super) fn slots(self) -> impl Iterator<Item = usize> {
        (0..self.count()).map(move |position| self.slot(position))
    }

    /// The slot that [`insert`](Self::insert) will use. A free slot must exist.
    #[inline]
    pub(super) fn free_slot(self) -> usize {
        debug_assert!(self.count() < SLOTS);
        self.slot(self.count())
    }

    /// The order with the free slot put at `position`.
    #[inline]
    pub(super) fn insert(self, position: usize) -> Self {
        let count = self.count();
        debug_assert!(position <= count);
        let slots = self.0 >> 4;
        let before = slots & below(position);
        let between = slots & below(count) & !below(position);
        let after = slots & !below(count + 1);
        let free = (self.free_slot() as u64) << (4 * position);
        Self((before | free | between << 4 | after) << 4 | (count as u64 + 1))
    }

    /// The order of the first `count` used slots; the others are free.
    #[inline]
    pub(super) fn keep(self, count: usize) -> Self {
        debug_assert!(count <= self.count());
        Self(self.0 & !0xf | count as u64)
    }
}

/// The bits of the positions below `position`.
#[inline]
fn below(position: usize) -> u64 {
    (1 << (4 * position)) - 1
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{Order, SLOTS};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_a_list(steps in proptest::collection::vec((0..20_usize, any::<bool>()), 0..80)) {
            let mut order = Order::EMPTY;
            let mut list: Vec<usize> = Vec::new();
            for (number, grow) in steps {
                if grow && list.len() < SLOTS {
                    let position = number % (list.len() + 1);
                    prop_assert!(!list.contains(&order.free_slot()));
                    list.insert(position, order.free_slot());
                    order = order.insert(position);
                } else {
                    list.truncate(number);
                    order = order.keep(list.len());
                }
                prop_assert_eq!(order.slots().collect::<Vec<_>>(), list.clone());
                let mut all: Vec<usize> = (0..SLOTS).map(|position| order.slot(position)).collect();
                all.sort_unstable();
                prop_assert_eq!(all, (0..SLOTS).collect::<Vec<_>>());
            }
        }
    }
}

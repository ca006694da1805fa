//! The position of a cursor in a list.
//!
//! A position copies the order of a whole leaf at once. So most moves touch no shared memory, and the
//! addresses of the next entries are known before they are needed.
//!
//! The safety argument is that of the [list](super).

use super::SkipList;
use super::node::{Node, NodeHeader};
use super::record::{Record, RecordHeader, Target};
use crate::base::SequenceNumber;
use crate::base::sync::atomic::Ordering;
use crate::memtable::order::{Order, SLOTS};
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// A position in a list, which it keeps alive.
pub(in crate::memtable) struct Position {
    list: Arc<SkipList>,
    stand: Stand,
}

/// An entry of a leaf, among the entries that the leaf had when the position entered it.
struct Stand {
    /// The leaf's node.
    node: NonNull<NodeHeader>,
    /// The leaf's entries in order.
    records: [*mut RecordHeader; SLOTS],
    /// The number of entries.
    count: usize,
    /// The index of the entry; `count` if none.
    index: usize,
}

// SAFETY: its pointers belong to `list`, which may be shared between threads.
unsafe impl Send for Position {}
// SAFETY: as above; a shared `Position` only reads.
unsafe impl Sync for Position {}

impl Position {
    /// A position on no entry.
    pub(in crate::memtable) fn new(list: Arc<SkipList>) -> Self {
        let stand = Stand {
            node: list.head,
            records: [ptr::null_mut(); SLOTS],
            count: 0,
            index: 0,
        };
        Self { list, stand }
    }

    /// A position in the same list, on no entry.
    pub(in crate::memtable) fn sibling(&self) -> Self {
        Self::new(Arc::clone(&self.list))
    }

    /// The present entry.
    #[inline]
    pub(in crate::memtable) fn record(&self) -> Option<Record<'_>> {
        let header = *self.stand.records[..self.stand.count].get(self.stand.index)?;
        // SAFETY: the list's slots held it.
        Some(unsafe { Record::new(NonNull::new(header)?) })
    }

    pub(in crate::memtable) fn seek_to_first(&mut self) {
        self.stand.enter(self.list.head(), |_, _, _| Some(0));
    }

    pub(in crate::memtable) fn seek_to_last(&mut self) {
        self.stand.enter(self.list.last_node(), |_, order, next| {
            next.is_none().then(|| order.count().saturating_sub(1))
        });
    }

    /// Moves to the first entry that is not before (`key`, `sequence`).
    pub(in crate::memtable) fn seek(&mut self, key: &[u8], sequence: SequenceNumber) {
        let target = self.list.target(key, sequence);
        self.stand
            .enter(self.list.find(&target), |node, order, next| {
                let here = !target.reaches(next);
                here.then(|| node.position(order, &target))
            });
        if self.stand.index == self.stand.count {
            self.enter_next(&target);
        }
    }

    /// Moves to the next entry; returns whether it has the same key. Without an entry it does not move.
    #[inline]
    pub(in crate::memtable) fn next(&mut self) -> bool {
        let Some(left) = self.record() else {
            return false;
        };
        // SAFETY: a record of the list, which `self` keeps alive, wherever the position moves.
        let left = unsafe { Record::new(left.header) };
        if self.stand.index + 1 < self.stand.count {
            self.stand.index += 1;
        } else {
            self.stand.index = self.stand.count;
            let sequence = left.trailer().sequence();
            self.enter_next(&self.list.target(left.key(), sequence));
        }
        self.record()
            .is_some_and(|record| record.key() == left.key())
    }

    /// Moves to the previous entry. Without an entry it does not move.
    #[inline]
    pub(in crate::memtable) fn prev(&mut self) {
        if (1..self.stand.count).contains(&self.stand.index) {
            self.stand.index -= 1;
        } else {
            self.leave_backward();
        }
    }

    /// Moves from the leaf's first entry to the last before it.
    fn leave_backward(&mut self) {
        let Some(record) = self.record() else { return };
        // SAFETY: a record of the list, which `self` keeps alive, wherever the position moves.
        let record = unsafe { Record::new(record.header) };
        let target = self.list.target(record.key(), record.trailer().sequence());
        // No entry lies between this place and the target.
        let before = Target {
            sequence: target.sequence + 1,
            ..target
        };
        self.stand
            .enter(self.list.find(&before), |node, order, next| {
                let here = !before.reaches(next);
                here.then(|| match node.position(order, &target) {
                    // Only in the head: the entry was the first of the list.
                    0 => order.count(),
                    position => position - 1,
                })
            });
    }

    /// Moves from the end of the leaf to the first entry after `target`. The next leaf may hold
    /// entries that were split off after this one was entered; they lie before.
    fn enter_next(&mut self, target: &Target<'_>) {
        // SAFETY: the node belongs to the list.
        let node = unsafe { Node::new(self.stand.node) };
        let Some(next) = node.next() else { return };
        self.stand.enter(next, |node, order, next| {
            let after = |slot| target.order_of(node.record(slot)).is_gt();
            match order.slots().position(after) {
                None if next.is_some() => None,
                index => Some(index.unwrap_or(order.count())),
            }
        });
    }
}

impl Stand {
    /// Copies the entries of `node` and moves to the index that `place` returns. If it returns none, tries
    /// the next node, which must exist.
    #[inline]
    fn enter<'list>(
        &mut self,
        mut node: Node<'list>,
        place: impl Fn(Node<'list>, Order, Option<Node<'list>>) -> Option<usize>,
    ) {
        loop {
            let onward = node.read(|order, next| {
                let Some(index) = place(node, order, next) else {
                    return next;
                };
                self.index = index;
                self.count = order.count();
                for (entry, slot) in self.records.iter_mut().zip(order.slots()) {
                    *entry = node.leaf().records[slot].load(Ordering::Acquire);
                }
                None
            });
            self.node = node.header;
            match onward {
                Some(next) => node = next,
                None => return,
            }
        }
    }
}

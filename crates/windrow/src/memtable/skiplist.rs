//! The skip list: a sorted linked list of leaves with express lanes above it, into which any number
//! of threads insert while others read.
//!
//! In a list of single entries, each of about thirty steps of a search would cost a cache miss. Here the
//! lanes lead to a *leaf* of up to fifteen entries, so they have a tenth of the length and stay in the
//! cache. A leaf stores four bytes of each key side by side. A search has a handful of cache misses, and a
//! cursor knows the addresses of the next entries before it needs them.
//!
//! Owns, in three [`Arena`]s and never freed before them:
//! - *records* (`record.rs`): an entry's trailer, key and value;
//! - *leaves* (`node.rs`): the slots for records, and the [`Order`] of those in use;
//! - *nodes* (`node.rs`): the links of the lanes, the leaf, and a copy of the *anchor*, the leaf's
//!   first entry.
//!
//! A leaf holds the entries from its node's anchor up to the anchor of the next node in lane 0; the
//! first node, the head, has no anchor and precedes all others.
//!
//! Most keys of a list share a prefix, so each node also has its anchor's *head*: the eight bytes behind
//! the common prefix of the first keys, as a word. It decides all comparisons of a search except the last.
//!
//! Invariants:
//! - I1: in each lane anchors ascend strictly, and entries do within and across leaves.
//! - I2: a node enters the lanes from the lowest up, so lane 0 has every node.
//! - I3: records, and the anchors and leaves of nodes, never change. A slot in use may get another record of the same
//!   key and sequence number, with the same meaning to every reader; the anchor of its node stays the old one.
//! - I4: anchors never move: a split takes a leaf's upper half away, never its first entry.
//! - I5: except as I3 allows, a slot's content changes only while it is free, and a slot that a split has freed only
//!   after `splits` was counted up.
//! - I6: heads order like keys, except for ties: all begin behind the same prefix length, which is fixed
//!   before the first node is linked.
//! - I7: a node's height depends on its anchor only, so one history builds one list.
//!
//! Concurrency: inserting takes the lock of one leaf; readers take none. A reader sees every entry
//! whose insertion happened before its read began; of those inserted meanwhile it may see any.
//!
//! A reader of a leaf loads `splits`, then the order, then the node's next node, then slots, and then
//! `splits` again. If `splits` has changed, the reader starts over. This is enough: a split first links the
//! new node, then publishes the shrunk order, then counts. (a) A reader that sees a shrunk order sees the new
//! node, too, and follows it to the entries that moved. (b) A reader that sees an older order finds all its
//! slots as they were. If one of them were reused, the reader would also see that splits were counted (I5),
//! unless it saw the count from the start, and then it would see the shrunk order, too.
//!
//! # Safety argument
//!
//! [`Record`], [`Leaf`] and [`Node`] are pointers into the arenas of a list that is borrowed for
//! `'list`. They are made from memory that the builder has just written, or from pointers that a
//! slot, node or link holds; those were stored after the memory was written, with a release that the
//! load acquires. The arenas keep everything in place until the list is dropped, which no borrow
//! survives. So each of them points to written memory, and only atomics in it change (I3). Lane
//! `l` links only nodes higher than `l` (I2). Therefore a node met in lane `l` has the links `0..=l`.
//! All pointers keep the provenance of their whole piece, since no reference to a part is ever turned
//! back into one of them.

#![expect(unsafe_code, reason = "memory of varying size, linked by raw pointers")]

mod estimate;
mod node;
mod position;
mod record;

pub(super) use position::Position;
pub(super) use record::Record;
use record::Target;

use super::arena::Arena;
use super::order::{Order, SLOTS};
use crate::base::key::shared_bytes;
use crate::base::prefix_index::head_after;
use crate::base::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use crate::base::sync::{Mutex, MutexGuard};
use crate::base::{MemoryTracker, SequenceNumber, Trailer};
use crate::codec::checksum::key_hash;
use node::{Node, NodeHeader, build_node, narrow};
use record::RecordHeader;
use std::array;
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// The most lanes; enough for 65,000 leaves.
const HEIGHT_MAX: usize = if cfg!(loom) { 2 } else { 16 };

/// The number of locks that the leaves share.
const LOCKS: usize = if cfg!(loom) { 2 } else { 32 };

/// The number of bytes of the common prefix of the first keys that later keys may not share.
const COMMON_SPARED: usize = 4;

/// The entries of a full leaf that stay at a split.
const KEPT: usize = SLOTS.div_ceil(2);

/// A concurrent sorted list of entries; see the module.
pub(super) struct SkipList {
    /// The memory of nodes, leaves and records. It is separate, so that a search for a leaf touches few
    /// pages.
    nodes: Arena,
    leaves: Arena,
    records: Arena,
    /// The first node, of full height.
    head: NonNull<NodeHeader>,
    /// The height of the highest node, at least one lane.
    height: AtomicUsize,
    /// An entry whose key begins as most keys are expected to, by [`Self::common_length`] bytes; set
    /// when the first node is built, and then no more.
    example: AtomicPtr<RecordHeader>,
    common_length: AtomicUsize,
    /// Held while a leaf is changed.
    locks: [Mutex<()>; LOCKS],
}

// SAFETY: `head` points into the list's own arenas, which are shared only as the module says.
unsafe impl Send for SkipList {}
// SAFETY: as above; all mutation behind a shared borrow goes through atomics.
unsafe impl Sync for SkipList {}

impl SkipList {
    /// An empty list, whose memory `tracker` counts.
    pub(super) fn new(tracker: &Arc<MemoryTracker>) -> Self {
        let (nodes, leaves) = (Arena::new(tracker), Arena::new(tracker));
        let head = build_node(&nodes, &leaves, HEIGHT_MAX, 0, None, 0);
        Self {
            nodes,
            leaves,
            records: Arena::new(tracker),
            head,
            height: AtomicUsize::new(1),
            example: AtomicPtr::new(ptr::null_mut()),
            common_length: AtomicUsize::new(0),
            locks: array::from_fn(|_| Mutex::new(())),
        }
    }

    /// The place of an entry in the order of entries.
    #[inline]
    pub(super) fn target<'key>(&self, key: &'key [u8], sequence: SequenceNumber) -> Target<'key> {
        Target {
            key,
            sequence,
            head: self.common().map(|common| head_behind_common(key, common)),
        }
    }

    /// The expected prefix of most keys; empty while the list has no nodes.
    #[inline]
    fn common(&self) -> Option<&[u8]> {
        let example = NonNull::new(self.example.load(Ordering::Acquire))?;
        // SAFETY: `expect_keys_like` stored a written record of this list.
        let example = unsafe { Record::new(example) };
        Some(&example.key()[..self.common_length.load(Ordering::Relaxed)])
    }

    /// Expects keys like those of the first leaf, which is full and whose lock is held. In a list that
    /// is filled in order the keys to come differ from them earlier than they do among themselves.
    fn expect_keys_like(&self, first: Record<'_>, last: Record<'_>) {
        let common = shared_bytes(first.key(), last.key()).saturating_sub(COMMON_SPARED);
        self.common_length.store(common, Ordering::Relaxed);
        self.example.store(first.header.as_ptr(), Ordering::Release);
    }

    /// The bytes of all records, leaves and nodes, padding included.
    pub(super) fn used_bytes(&self) -> usize {
        self.nodes.used_bytes() + self.leaves.used_bytes() + self.records.used_bytes()
    }

    /// The bytes that the list takes from the system.
    pub(super) fn allocated_bytes(&self) -> usize {
        let arenas = [&self.nodes, &self.leaves, &self.records];
        arenas.map(Arena::allocated_bytes).into_iter().sum()
    }

    /// Adds an entry.
    ///
    /// # Panics
    /// If the list has an entry of this key and sequence number.
    pub(super) fn insert(&self, key: &[u8], trailer: Trailer, value: &[u8]) {
        let record = Record::build(self, key, trailer, value);
        let target = self.target(key, trailer.sequence());
        let (node, lock) = self.lock(&target);
        let order = Order(node.leaf().order.load(Ordering::Relaxed));
        let position = node.position(order, &target);
        let repeated =
            position < order.count() && target.order_of(node.record(order.slot(position))).is_eq();
        assert!(!repeated, "a key has one entry per sequence number"); // I1
        if order.count() < SLOTS {
            node.put(order, position, record);
        } else {
            let (new, height) = self.split(node, order, position, record);
            drop(lock);
            self.raise(new, height);
        }
    }

    /// Replaces the entry of this key and sequence number (I3).
    ///
    /// # Panics
    /// If the list has no such entry.
    pub(super) fn replace(&self, key: &[u8], trailer: Trailer, value: &[u8]) {
        let record = Record::build(self, key, trailer, value);
        let target = self.target(key, trailer.sequence());
        let (node, lock) = self.lock(&target);
        let order = Order(node.leaf().order.load(Ordering::Relaxed));
        let position = node.position(order, &target);
        assert!(
            position < order.count() && target.order_of(node.record(order.slot(position))).is_eq(),
            "only an entry of the list is replaced"
        );
        node.replace(order.slot(position), record);
        drop(lock);
    }

    /// The first entry that is not before `target`.
    #[inline]
    pub(super) fn lower_bound(&self, target: &Target<'_>) -> Option<Record<'_>> {
        let mut node = self.find(target);
        loop {
            let found = node.read(|order, next| match next {
                Some(next) if target.reaches(Some(next)) => Err(next),
                _ => {
                    let position = node.position(order, target);
                    Ok(if position < order.count() {
                        Some(node.record(order.slot(position)))
                    } else {
                        next.and_then(Node::first)
                    })
                }
            });
            match found {
                Ok(record) => return record,
                Err(next) => node = next,
            }
        }
    }

    fn head(&self) -> Node<'_> {
        // SAFETY: the head is a written node of this list.
        unsafe { Node::new(self.head) }
    }

    /// The last node whose anchor is not after `target`, or the head; newer ones may be missed.
    #[inline]
    fn find(&self, target: &Target<'_>) -> Node<'_> {
        let mut gap = (self.head(), None);
        for lane in (0..self.height.load(Ordering::Relaxed)).rev() {
            // SAFETY: the head has all lanes; other nodes were met in this lane or above.
            gap = unsafe { narrow(target, lane, gap) };
        }
        gap.0
    }

    fn last_node(&self) -> Node<'_> {
        let mut last = self.head();
        for lane in (0..self.height.load(Ordering::Relaxed)).rev() {
            // SAFETY: the head has all lanes; other nodes were met in this lane or above.
            while let Some(next) = unsafe { last.next_in(lane) } {
                last = next;
            }
        }
        last
    }

    /// The node in whose range `target` lies, with its lock.
    fn lock(&self, target: &Target<'_>) -> (Node<'_>, MutexGuard<'_, ()>) {
        let mut node = self.find(target);
        loop {
            let lock = self.locks[node.leaf().lock].lock();
            match node.next() {
                Some(next) if target.reaches(Some(next)) => node = next,
                _ => return (node, lock),
            }
        }
    }

    /// Splits the full leaf of `node`, whose lock is held, and puts `record` at `position` of the
    /// whole. Returns the new node, which is in lane 0 only, and its height.
    fn split<'list>(
        &'list self,
        node: Node<'list>,
        order: Order,
        position: usize,
        record: Record<'list>,
    ) -> (Node<'list>, usize) {
        // Ascending insertions leave full leaves.
        let kept = if position == SLOTS { SLOTS } else { KEPT };
        let moved = (kept..SLOTS).map(|position| node.record(order.slot(position)));
        let anchor = moved.clone().next().unwrap_or(record);
        let after = node.next();
        let skip = after.map_or(0, |after| shared_bytes(anchor.key(), after.key()));

        let random = random_of(anchor.key(), anchor.trailer().sequence());
        let height = height_of(random);
        let lock = usize::from(random.to_le_bytes()[0]) % LOCKS;
        if self.common().is_none() {
            let record_at = |position| node.record(order.slot(position));
            self.expect_keys_like(record_at(0), record_at(SLOTS - 1));
        }
        let common = self.common().unwrap_or_default();
        let anchored = Some((anchor, head_behind_common(anchor.key(), common)));
        let header = build_node(&self.nodes, &self.leaves, height, skip, anchored, lock);
        // SAFETY: just written.
        let new = unsafe { Node::new(header) };
        for (position, record) in moved.enumerate() {
            new.put(Order::first(position), position, record);
        }
        if position > kept || kept == SLOTS {
            let order = Order(new.leaf().order.load(Ordering::Relaxed));
            new.put(order, position - kept, record);
        }

        // SAFETY: every node has lane 0.
        let linked = unsafe { new.link_into(0, (node, after)) };
        assert!(linked, "a leaf's lock guards its node's link in lane 0");
        let leaf = node.leaf();
        leaf.order.store(order.keep(kept).0, Ordering::Release);
        let splits = leaf.splits.load(Ordering::Relaxed);
        leaf.splits.store(splits.wrapping_add(1), Ordering::Release);
        if position <= kept && kept < SLOTS {
            node.put(order.keep(kept), position, record);
        }
        (new, height)
    }

    /// Puts `node`, which is in lane 0, into the lanes above, below `height`.
    fn raise<'list>(&'list self, node: Node<'list>, height: usize) {
        let Some(anchor) = node.anchor() else { return };
        let target = self.target(anchor.key(), anchor.trailer().sequence());
        let mut gaps = [(self.head(), None); HEIGHT_MAX];
        let mut gap = (self.head(), None);
        for lane in (1..self.height.load(Ordering::Relaxed)).rev() {
            // SAFETY: the head has all lanes; other nodes were met in this lane or above.
            gap = unsafe { narrow(&target, lane, gap) };
            gaps[lane] = gap;
        }
        for (lane, gap) in gaps.iter_mut().enumerate().take(height).skip(1) {
            // SAFETY: `node` is higher than `lane`, and so is the start of a gap in it.
            while !unsafe { node.link_into(lane, *gap) } {
                // Another thread was faster: search again from the same node.
                // SAFETY: as above.
                *gap = unsafe { narrow(&target, lane, (gap.0, None)) };
            }
        }
        self.height.fetch_max(height, Ordering::Relaxed);
    }
}

/// A word that stands for `key` in a first comparison among keys that mostly begin with `common`: no
/// lesser key has a greater one.
#[inline]
fn head_behind_common(key: &[u8], common: &[u8]) -> u64 {
    if key.starts_with(common) {
        head_after(key, common.len())
    } else if key < common {
        0
    } else {
        u64::MAX
    }
}

/// A random number that depends on the entry only (I7).
pub(super) fn random_of(key: &[u8], sequence: SequenceNumber) -> u64 {
    key_hash(key) ^ sequence.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The height of a node in lanes: half of the nodes of each lane are in the next one too.
pub(super) fn height_of(random: u64) -> usize {
    (1 + random.leading_zeros() as usize).min(HEIGHT_MAX)
}

//! The skip list: a sorted linked list of leaves with express lanes above it, into which any number
//! of threads insert while others read.
//!
//! A list of single entries would cost a cache miss at each of some thirty steps of a search. Here
//! the lanes lead to a *leaf* of up to fifteen entries, so they are a tenth as long and stay in the
//! cache, and within a leaf eight bytes of each key stand side by side. A search meets a handful of
//! misses; a cursor knows the addresses of the next entries before it needs them.
//!
//! Owns, all in one [`Arena`] and never freed before it:
//! - *records*: an entry's trailer, key and value;
//! - *leaves*: the slots for records, and the [`Order`] of those in use;
//! - *nodes*: the links of the lanes, the leaf, and a copy of the *anchor*, the leaf's first entry.
//!
//! A leaf holds the entries from its node's anchor up to the anchor of the next node in lane 0; the
//! first node, the head, has none and stands before all.
//!
//! Invariants:
//! - I1: in each lane anchors ascend strictly, and entries do within and across leaves.
//! - I2: a node enters the lanes from the lowest up, so lane 0 has every node.
//! - I3: records, and the anchors and leaves of nodes, never change.
//! - I4: anchors never move: a split takes a leaf's upper half away, never its first entry.
//! - I5: a slot's content changes only while it is free, and a slot that a split has freed only
//!   after `splits` was counted up.
//! - I6: a node's height depends on its anchor only, so one history builds one list.
//!
//! Concurrency: inserting takes the lock of one leaf; readers take none. A reader sees every entry
//! whose insertion happened before its read began; of those inserted meanwhile it may see any.
//!
//! A reader of a leaf loads `splits`, then the order, then the node's next node, then slots, and
//! then `splits` again; if that changed, it starts over. Why that is enough: a split first links the
//! new node, then publishes the shrunk order, then counts. (a) Who sees a shrunk order sees the new
//! node, too, and follows it to the entries that moved. (b) Who sees an older order finds all its
//! slots as they were: were one of them reused, the reader would also see that splits were counted
//! (I5), unless it had seen the count from the start, and then the shrunk order with it.
//!
//! # Safety argument
//!
//! [`Record`], [`Leaf`] and [`Node`] are pointers into the arena of a list that is borrowed for
//! `'list`. They are made from memory that the builder has just written, or from pointers that a
//! slot, node or link holds; those were stored after the memory was written, with a release that the
//! load acquires. The arena keeps everything in place until the list is dropped, which no borrow
//! survives. So each of them points to written memory, of which only atomics ever change (I3). Lane
//! `l` links only nodes higher than `l` (I2), therefore a node met in lane `l` has the links `0..=l`.
//! All pointers keep the provenance of their whole piece, since no reference to a part is ever turned
//! back into one of them.

#![expect(unsafe_code, reason = "memory of varying size, linked by raw pointers")]

use super::arena::{ALIGNMENT, Arena};
use super::order::{Order, SLOTS};
use crate::base::prefix_index::head;
use crate::base::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::base::sync::{Handover, Mutex, MutexGuard};
use crate::base::{SequenceNumber, Trailer};
use crate::codec::checksum::key_hash;
use std::array;
use std::cmp;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Arc;

/// The most lanes; enough for 65,000 leaves.
const HEIGHT_MAX: usize = if cfg!(loom) { 2 } else { 16 };

/// How many locks the leaves share.
const LOCKS: usize = if cfg!(loom) { 2 } else { 32 };

/// How many entries of a full leaf stay when it is split.
const KEPT: usize = SLOTS.div_ceil(2);

/// The fixed part of a record; the key and then the value follow.
#[repr(C)]
struct RecordHeader {
    trailer: Trailer,
    key_length: u32,
    value_length: u32,
    /// Lets models see that a record is read only after its publication.
    handover: Handover,
}

/// An entry of a list that is borrowed for `'list`.
#[derive(Clone, Copy)]
pub(super) struct Record<'list> {
    header: NonNull<RecordHeader>,
    list: PhantomData<&'list SkipList>,
}

impl<'list> Record<'list> {
    /// # Safety
    /// `header` is the address of a written record of the list borrowed for `'list`.
    #[inline]
    unsafe fn new(header: NonNull<RecordHeader>) -> Self {
        Self {
            header,
            list: PhantomData,
        }
    }

    /// Writes a record.
    fn build(list: &'list SkipList, key: &[u8], trailer: Trailer, value: &[u8]) -> Self {
        let bytes = size_of::<RecordHeader>() + key.len() + value.len();
        let header = list.records.allocate(bytes).cast::<RecordHeader>();
        let fixed = RecordHeader {
            trailer,
            key_length: length(key),
            value_length: length(value),
            handover: Handover::new(),
        };
        fixed.handover.give();
        // SAFETY: the piece is aligned, large enough and still known to nobody else.
        unsafe { header.write(fixed) };
        // SAFETY: the key begins where the header ends.
        let start = unsafe { header.add(1) }.cast();
        // SAFETY: key and value fit there.
        unsafe { write_bytes(start, key, value) };
        // SAFETY: written above.
        unsafe { Self::new(header) }
    }

    #[inline]
    fn header(self) -> &'list RecordHeader {
        // SAFETY: written and immutable, for `'list`.
        unsafe { self.header.as_ref() }
    }

    #[inline]
    pub(super) fn trailer(self) -> Trailer {
        self.header().trailer
    }

    #[inline]
    pub(super) fn key(self) -> &'list [u8] {
        self.bytes(0, self.header().key_length as usize)
    }

    #[inline]
    pub(super) fn value(self) -> &'list [u8] {
        let header = self.header();
        self.bytes(header.key_length as usize, header.value_length as usize)
    }

    /// `length` bytes from `offset` after the header; within key and value.
    #[inline]
    fn bytes(self, offset: usize, length: usize) -> &'list [u8] {
        self.header().handover.receive();
        // SAFETY: the key begins where the header ends.
        let start = unsafe { self.header.add(1) }.cast::<u8>();
        // SAFETY: key and value follow; the callers stay within them.
        let start = unsafe { start.add(offset) };
        // SAFETY: `build` wrote these bytes.
        unsafe { slice::from_raw_parts(start.as_ptr(), length) }
    }

    /// The place of this entry in the order of entries.
    #[inline]
    fn target(self) -> Target<'list> {
        Target::new(self.key(), self.trailer().sequence())
    }
}

/// What a search looks for: a place in the order of entries.
#[derive(Clone, Copy)]
pub(super) struct Target<'key> {
    /// The first bytes of the key as a word.
    head: u64,
    key: &'key [u8],
    sequence: SequenceNumber,
}

impl<'key> Target<'key> {
    #[inline]
    pub(super) fn new(key: &'key [u8], sequence: SequenceNumber) -> Self {
        Self {
            head: head(key),
            key,
            sequence,
        }
    }

    /// How an entry stands to this place.
    #[inline]
    fn order_of(&self, record: Record<'_>) -> cmp::Ordering {
        let sequence = record.trailer().sequence();
        record
            .key()
            .cmp(self.key)
            .then(self.sequence.cmp(&sequence))
    }

    /// Whether the anchor of `node` is not after this place, and so the place not before `node`.
    #[inline]
    fn reaches(&self, node: Option<Node<'_>>) -> bool {
        node.is_some_and(|node| {
            let key = node.key();
            match head(key).cmp(&self.head).then_with(|| key.cmp(self.key)) {
                cmp::Ordering::Less => true,
                cmp::Ordering::Greater => false,
                cmp::Ordering::Equal => node
                    .anchor()
                    .is_some_and(|anchor| self.order_of(anchor).is_le()),
            }
        })
    }
}

/// The slots of one leaf, and what is fixed about it. All its keys begin with the same `skip` bytes.
#[repr(C)]
struct Leaf {
    /// An [`Order`].
    order: AtomicU64,
    /// How often the leaf was split.
    splits: AtomicU32,
    skip: u32,
    /// Per slot, the four bytes of its key after the first `skip`, as a word.
    heads: [AtomicU32; SLOTS],
    /// Which lock guards the leaf.
    lock: usize,
    records: [AtomicPtr<RecordHeader>; SLOTS],
    /// The first entry, which never leaves; nothing in the head.
    anchor: Option<NonNull<RecordHeader>>,
}

/// The links and the anchor's key of a leaf. The links above lane 0 stand before it, the key behind
/// it: one step of a search reads these few bytes only.
#[repr(C)]
struct NodeHeader {
    /// The link of lane 0.
    next: Link,
    leaf: NonNull<Leaf>,
    key_length: usize,
    handover: Handover,
}

type Link = AtomicPtr<NodeHeader>;

const _: () = assert!(align_of::<NodeHeader>() <= ALIGNMENT);
const _: () = assert!(align_of::<RecordHeader>() <= ALIGNMENT);
const _: () = assert!(align_of::<Leaf>() <= ALIGNMENT);

/// A leaf with its place in the lanes, of a list that is borrowed for `'list`.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Node<'list> {
    header: NonNull<NodeHeader>,
    list: PhantomData<&'list SkipList>,
}

/// Two neighbours of a lane: a node, perhaps the head, and the one after it, if any.
type Gap<'list> = (Node<'list>, Option<Node<'list>>);

impl<'list> Node<'list> {
    /// # Safety
    /// `header` is the address of a written node of the list borrowed for `'list`.
    #[inline]
    unsafe fn new(header: NonNull<NodeHeader>) -> Self {
        Self {
            header,
            list: PhantomData,
        }
    }

    #[inline]
    fn header(self) -> &'list NodeHeader {
        // SAFETY: written, and only its atomics change, for `'list`.
        unsafe { self.header.as_ref() }
    }

    #[inline]
    fn leaf(self) -> &'list Leaf {
        // SAFETY: written before the node, and only its atomics change, for `'list`.
        unsafe { self.header().leaf.as_ref() }
    }

    /// The first entry of the leaf, unless this is the head.
    #[inline]
    fn anchor(self) -> Option<Record<'list>> {
        // SAFETY: written before the node.
        self.leaf()
            .anchor
            .map(|anchor| unsafe { Record::new(anchor) })
    }

    /// The key of the anchor; empty for the head.
    #[inline]
    fn key(self) -> &'list [u8] {
        self.header().handover.receive();
        // SAFETY: the key begins where the header ends.
        let start = unsafe { self.header.add(1) }.cast::<u8>();
        // SAFETY: `build_node` wrote `key_length` bytes there.
        unsafe { slice::from_raw_parts(start.as_ptr(), self.header().key_length) }
    }

    /// # Safety
    /// The node is higher than `lane`.
    #[inline]
    unsafe fn link(self, lane: usize) -> &'list Link {
        // SAFETY: `lane` links stand directly before the header, in the same piece.
        let link = unsafe { self.header.cast::<Link>().sub(lane) };
        // SAFETY: written when the node was built; an atomic from then on.
        unsafe { link.as_ref() }
    }

    /// The node after this one in `lane`.
    ///
    /// # Safety
    /// The node is higher than `lane`.
    #[inline]
    unsafe fn next_in(self, lane: usize) -> Option<Node<'list>> {
        // SAFETY: the caller's promise.
        let link = unsafe { self.link(lane) };
        let header = NonNull::new(link.load(Ordering::Acquire))?;
        // SAFETY: links hold written nodes; acquired here.
        Some(unsafe { Node::new(header) })
    }

    /// The node after this one.
    #[inline]
    fn next(self) -> Option<Node<'list>> {
        // SAFETY: every node has lane 0.
        unsafe { self.next_in(0) }
    }

    /// Puts this node into `gap` of `lane`, unless the gap has changed; returns whether it did.
    ///
    /// # Safety
    /// Both this node, not yet in `lane`, and the start of the gap are higher than `lane`.
    unsafe fn link_into(self, lane: usize, gap: Gap<'list>) -> bool {
        let (before, after) = gap;
        let after = after.map_or(ptr::null_mut(), |node| node.header.as_ptr());
        // SAFETY: the caller's promise.
        let own = unsafe { self.link(lane) };
        own.store(after, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        let link = unsafe { before.link(lane) };
        // Release: whoever meets this node through the link sees all that was written to it.
        let own = self.header.as_ptr();
        link.compare_exchange(after, own, Ordering::Release, Ordering::Relaxed)
            .is_ok()
    }

    /// The record in `slot`, which some published order has named.
    #[inline]
    fn record(self, slot: usize) -> Record<'list> {
        let header = self.leaf().records[slot].load(Ordering::Acquire);
        let Some(header) = NonNull::new(header) else {
            unreachable!("a slot is filled before it is used")
        };
        // SAFETY: slots hold written records.
        unsafe { Record::new(header) }
    }

    /// The bytes by which the leaf compares `key`, which lies in its range.
    #[inline]
    fn head_of(self, key: &[u8]) -> u32 {
        (head(&key[self.leaf().skip as usize..]) >> 32) as u32
    }

    /// How many of the entries in `order` stand before `target`, which lies in the leaf's range or
    /// at its end.
    #[inline]
    fn position(self, order: Order, target: &Target<'_>) -> usize {
        let wanted = self.head_of(target.key);
        let leaf = self.leaf();
        let head_at = |position| leaf.heads[order.slot(position)].load(Ordering::Acquire);
        // Branch-free; ties are rare, since the bytes that all keys share are skipped.
        let mut before = (0..order.count())
            .map(|position| usize::from(head_at(position) < wanted))
            .sum();
        let mut end = order.count();
        if before == end || head_at(before) != wanted {
            return before;
        }
        while before < end {
            let middle = usize::midpoint(before, end);
            let tie = head_at(middle) == wanted;
            if tie && target.order_of(self.record(order.slot(middle))).is_lt() {
                before = middle + 1;
            } else {
                end = middle;
            }
        }
        before
    }

    /// What `read` makes of the leaf's order and the next node, undisturbed by splits: see the
    /// module.
    #[inline]
    fn read<T>(self, mut read: impl FnMut(Order, Option<Node<'list>>) -> T) -> T {
        let leaf = self.leaf();
        loop {
            let splits = leaf.splits.load(Ordering::Acquire);
            let order = Order(leaf.order.load(Ordering::Acquire));
            let result = read(order, self.next());
            if leaf.splits.load(Ordering::Relaxed) == splits {
                return result;
            }
        }
    }

    /// Puts `record` at `position` of `order`, the leaf's own, which has a free slot.
    ///
    /// The caller holds the leaf's lock, or the node is its own still.
    fn put(self, order: Order, position: usize, record: Record<'list>) {
        let leaf = self.leaf();
        let slot = order.free_slot();
        // Release: whoever sees a reused slot sees that splits were counted (I5).
        leaf.heads[slot].store(self.head_of(record.key()), Ordering::Release);
        leaf.records[slot].store(record.header.as_ptr(), Ordering::Release);
        leaf.order
            .store(order.insert(position).0, Ordering::Release);
    }
}

/// A concurrent sorted list of entries; see the module.
pub(super) struct SkipList {
    /// Where nodes, leaves and records live: apart, so that a search for a leaf stays within few
    /// pages.
    nodes: Arena,
    leaves: Arena,
    records: Arena,
    /// The node before all others, of full height.
    head: NonNull<NodeHeader>,
    /// At least one lane; when this was read, no node was higher.
    height: AtomicUsize,
    /// Held while a leaf is changed.
    locks: [Mutex<()>; LOCKS],
}

// SAFETY: `head` points into the list's own arena, which is shared only as the module says.
unsafe impl Send for SkipList {}
// SAFETY: as above; all mutation behind a shared borrow goes through atomics.
unsafe impl Sync for SkipList {}

impl SkipList {
    pub(super) fn new() -> Self {
        let (nodes, leaves) = (Arena::new(), Arena::new());
        let head = build_node(&nodes, &leaves, HEIGHT_MAX, 0, None, 0);
        Self {
            nodes,
            leaves,
            records: Arena::new(),
            head,
            height: AtomicUsize::new(1),
            locks: array::from_fn(|_| Mutex::new(())),
        }
    }

    /// The bytes of all records, leaves and nodes, padding included.
    pub(super) fn used_bytes(&self) -> usize {
        self.nodes.used_bytes() + self.leaves.used_bytes() + self.records.used_bytes()
    }

    /// Adds an entry.
    ///
    /// # Panics
    /// If there is an entry of this key with this sequence number already.
    pub(super) fn insert(&self, key: &[u8], trailer: Trailer, value: &[u8]) {
        let record = Record::build(self, key, trailer, value);
        let target = Target::new(key, trailer.sequence());
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
                        next.and_then(Node::anchor)
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
        // Entries that come in ascending order leave full leaves behind them.
        let kept = if position == SLOTS { SLOTS } else { KEPT };
        let moved = (kept..SLOTS).map(|position| node.record(order.slot(position)));
        let anchor = moved.clone().next().unwrap_or(record);
        let after = node.next();
        let skip = after.map_or(0, |after| shared_bytes(anchor.key(), after.key()));

        let random = random_of(anchor.key(), anchor.trailer().sequence());
        let height = height_of(random);
        let lock = usize::from(random.to_le_bytes()[0]) % LOCKS;
        let header = build_node(&self.nodes, &self.leaves, height, skip, Some(anchor), lock);
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
        let target = anchor.target();
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
                // Another thread was faster: look again from where this one stood.
                // SAFETY: as above.
                *gap = unsafe { narrow(&target, lane, (gap.0, None)) };
            }
        }
        self.height.fetch_max(height, Ordering::Relaxed);
    }
}

/// A random number that depends on the entry only (I6).
pub(super) fn random_of(key: &[u8], sequence: SequenceNumber) -> u64 {
    key_hash(key) ^ sequence.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// In how many lanes a node stands: half of those of each lane stand in the next, too.
pub(super) fn height_of(random: u64) -> usize {
    (1 + random.leading_zeros() as usize).min(HEIGHT_MAX)
}

/// The neighbours of `target` in `lane`, searched from the start of `gap` on: the last node whose
/// anchor is not after it, and the next. The end of `gap` is known to be after it, mostly from the
/// lane above, and not compared again.
///
/// # Safety
/// The start of `gap` is higher than `lane`.
#[inline]
unsafe fn narrow<'list>(target: &Target<'_>, lane: usize, gap: Gap<'list>) -> Gap<'list> {
    let (mut before, known) = gap;
    loop {
        // SAFETY: the caller's promise, and then a node met in this lane.
        let next = unsafe { before.next_in(lane) };
        match next {
            Some(node) if next != known && target.reaches(next) => before = node,
            _ => return (before, next),
        }
    }
}

/// Writes a node with an empty leaf and returns its address.
fn build_node(
    nodes: &Arena,
    leaves: &Arena,
    height: usize,
    skip: usize,
    anchor: Option<Record<'_>>,
    lock: usize,
) -> NonNull<NodeHeader> {
    let leaf = leaves.allocate(size_of::<Leaf>()).cast::<Leaf>();
    let empty = Leaf {
        order: AtomicU64::new(Order::EMPTY.0),
        splits: AtomicU32::new(0),
        skip: u32::try_from(skip).unwrap_or(0),
        heads: array::from_fn(|_| AtomicU32::new(0)),
        lock,
        records: array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
        anchor: anchor.map(|anchor| anchor.header),
    };
    // SAFETY: aligned, large enough and still known to nobody else.
    unsafe { leaf.write(empty) };

    let key = anchor.map_or(&[][..], Record::key);
    let links_bytes = ((height - 1) * size_of::<Link>()).next_multiple_of(ALIGNMENT);
    let piece = nodes.allocate(links_bytes + size_of::<NodeHeader>() + key.len());
    // SAFETY: the piece holds the links, the header and the key, in this order.
    let header = unsafe { piece.add(links_bytes) }.cast::<NodeHeader>();
    let fixed = NodeHeader {
        next: Link::new(ptr::null_mut()),
        leaf,
        key_length: key.len(),
        handover: Handover::new(),
    };
    fixed.handover.give();
    // SAFETY: aligned, since the piece and `links_bytes` are; still known to nobody else.
    unsafe { header.write(fixed) };
    for lane in 1..height {
        // SAFETY: `height - 1` links fit before the header.
        let link = unsafe { header.cast::<Link>().sub(lane) };
        // SAFETY: as for the header.
        unsafe { link.write(Link::new(ptr::null_mut())) };
    }
    // SAFETY: the key begins where the header ends.
    let start = unsafe { header.add(1) }.cast();
    // SAFETY: the key fits there.
    unsafe { write_bytes(start, key, &[]) };
    header
}

/// Writes `first` and then `second` to `start`.
///
/// # Safety
/// Both fit into fresh memory there.
unsafe fn write_bytes(start: NonNull<u8>, first: &[u8], second: &[u8]) {
    // SAFETY: the caller's promise; fresh memory overlaps nothing.
    unsafe { start.copy_from_nonoverlapping(NonNull::from(first).cast(), first.len()) };
    // SAFETY: the caller's promise.
    let start = unsafe { start.add(first.len()) };
    // SAFETY: as above.
    unsafe { start.copy_from_nonoverlapping(NonNull::from(second).cast(), second.len()) };
}

/// The length of a key or value, which the limits keep far below 4 GiB.
fn length(bytes: &[u8]) -> u32 {
    match u32::try_from(bytes.len()) {
        Ok(length) => length,
        Err(_) => unreachable!("keys and values are below 4 GiB"),
    }
}

/// How many bytes at the front two keys share.
fn shared_bytes(left: &[u8], right: &[u8]) -> usize {
    left.iter()
        .zip(right)
        .take_while(|(left, right)| left == right)
        .count()
}

/// A position in a list, which it keeps alive.
pub(super) struct Position {
    list: Arc<SkipList>,
    stand: Stand,
}

/// An entry among those that its leaf held when the position came there.
struct Stand {
    /// The leaf's node.
    node: NonNull<NodeHeader>,
    /// The leaf's entries in order.
    records: [*mut RecordHeader; SLOTS],
    /// How many there are.
    count: usize,
    /// Which of them it is; `count` if none.
    index: usize,
}

// SAFETY: its pointers belong to `list`, which may be shared between threads.
unsafe impl Send for Position {}
// SAFETY: as above; a shared `Position` only reads.
unsafe impl Sync for Position {}

impl Position {
    /// A position on no entry.
    pub(super) fn new(list: Arc<SkipList>) -> Self {
        let stand = Stand {
            node: list.head,
            records: [ptr::null_mut(); SLOTS],
            count: 0,
            index: 0,
        };
        Self { list, stand }
    }

    /// The entry it stands on.
    #[inline]
    pub(super) fn record(&self) -> Option<Record<'_>> {
        let header = *self.stand.records[..self.stand.count].get(self.stand.index)?;
        // SAFETY: the list's slots held it.
        Some(unsafe { Record::new(NonNull::new(header)?) })
    }

    pub(super) fn seek_to_first(&mut self) {
        self.stand.enter(self.list.head(), |_, _, _| Some(0));
    }

    pub(super) fn seek_to_last(&mut self) {
        self.stand.enter(self.list.last_node(), |_, order, next| {
            next.is_none().then(|| order.count().saturating_sub(1))
        });
    }

    /// Moves to the first entry that is not before `target`.
    pub(super) fn seek(&mut self, target: &Target<'_>) {
        self.stand
            .enter(self.list.find(target), |node, order, next| {
                let here = !target.reaches(next);
                here.then(|| node.position(order, target))
            });
        if self.stand.index == self.stand.count {
            self.enter_next(target);
        }
    }

    /// Moves to the entry after; from no entry, stays there.
    #[inline]
    pub(super) fn next(&mut self) {
        if self.stand.index + 1 < self.stand.count {
            self.stand.index += 1;
        } else {
            self.leave_forward();
        }
    }

    /// Moves to the entry before; from no entry, stays there.
    #[inline]
    pub(super) fn prev(&mut self) {
        if (1..self.stand.count).contains(&self.stand.index) {
            self.stand.index -= 1;
        } else {
            self.leave_backward();
        }
    }

    /// Moves from the leaf's last entry to the first after it.
    fn leave_forward(&mut self) {
        let Some(record) = self.record() else { return };
        // SAFETY: a record of the list, which `self` keeps alive whatever becomes of the position.
        let target = unsafe { Record::new(record.header) }.target();
        self.stand.index = self.stand.count;
        self.enter_next(&target);
    }

    /// Moves from the leaf's first entry to the last before it.
    fn leave_backward(&mut self) {
        let Some(record) = self.record() else { return };
        // SAFETY: a record of the list, which `self` keeps alive whatever becomes of the position.
        let target = unsafe { Record::new(record.header) }.target();
        // No entry lies between this place and the target.
        let before = Target {
            sequence: target.sequence + 1,
            ..target
        };
        self.stand
            .enter(self.list.find(&before), |node, order, next| {
                let here = !before.reaches(next);
                here.then(|| match node.position(order, &target) {
                    // Only in the head: the entry was the first of all.
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
    /// Takes in the entries of `node` and stands where `place` says, or tries the next node, which
    /// must exist, if it says nothing.
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

//! Nodes and leaves: the lanes with their anchors, and the slots of fifteen entries.
//!
//! The safety argument is that of the [list](super).

use super::SkipList;
use super::record::{Record, RecordHeader, Target, write_bytes};
use crate::base::key::compare_keys;
use crate::base::prefix_index::head;
use crate::base::sync::Handover;
use crate::base::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use crate::memtable::arena::{ALIGNMENT, Arena};
use crate::memtable::order::{Order, SLOTS};
use std::array;
use std::cmp;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::slice;

/// The slots of one leaf, and its constant fields. All its keys share the first `skip` bytes.
#[repr(C)]
pub(super) struct Leaf {
    /// An [`Order`].
    pub(super) order: AtomicU64,
    /// The number of splits of the leaf.
    pub(super) splits: AtomicU32,
    skip: u32,
    /// Per slot, the four bytes of its key after the first `skip`, as a word.
    heads: [AtomicU32; SLOTS],
    /// The index of the lock of the leaf.
    pub(super) lock: usize,
    pub(super) records: [AtomicPtr<RecordHeader>; SLOTS],
    /// The first entry, which never moves; null in the head.
    anchor: Option<NonNull<RecordHeader>>,
}

/// The links and the anchor's key of a leaf. The links above lane 0 stand before it, the key behind
/// it: one step of a search reads these few bytes only.
#[repr(C)]
pub(super) struct NodeHeader {
    /// The link of lane 0.
    next: Link,
    leaf: NonNull<Leaf>,
    /// The head of the anchor's key in the list.
    head: u64,
    key_length: usize,
    handover: Handover,
}

type Link = AtomicPtr<NodeHeader>;

const _: () = assert!(align_of::<NodeHeader>() <= ALIGNMENT);
const _: () = assert!(align_of::<Leaf>() <= ALIGNMENT);

/// A leaf with its place in the lanes, of a list that is borrowed for `'list`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Node<'list> {
    pub(super) header: NonNull<NodeHeader>,
    list: PhantomData<&'list SkipList>,
}

/// Two neighbours of a lane: a node, perhaps the head, and the one after it, if any.
pub(super) type Gap<'list> = (Node<'list>, Option<Node<'list>>);

impl<'list> Node<'list> {
    /// # Safety
    /// `header` is the address of a written node of the list borrowed for `'list`.
    #[inline]
    pub(super) unsafe fn new(header: NonNull<NodeHeader>) -> Self {
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
    pub(super) fn leaf(self) -> &'list Leaf {
        // SAFETY: written before the node, and only its atomics change, for `'list`.
        unsafe { self.header().leaf.as_ref() }
    }

    /// The first entry of the leaf, unless this is the head.
    #[inline]
    pub(super) fn anchor(self) -> Option<Record<'list>> {
        // SAFETY: written before the node.
        self.leaf()
            .anchor
            .map(|anchor| unsafe { Record::new(anchor) })
    }

    /// The first entry of the leaf as it is now, unless this is the head.
    #[inline]
    pub(super) fn first(self) -> Option<Record<'list>> {
        let anchor = self.anchor()?;
        if !anchor.trailer().is_operand() {
            return Some(anchor);
        }
        // It may have been replaced. It is always in the same slot, because it never moves.
        let order = Order(self.leaf().order.load(Ordering::Acquire));
        Some(self.record(order.slot(0)))
    }

    /// The head of the anchor's key.
    #[inline]
    fn head(self) -> u64 {
        self.header().handover.receive();
        self.header().head
    }

    /// The key of the anchor; empty for the head.
    #[inline]
    pub(super) fn key(self) -> &'list [u8] {
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
    pub(super) unsafe fn next_in(self, lane: usize) -> Option<Node<'list>> {
        // SAFETY: the caller's promise.
        let link = unsafe { self.link(lane) };
        let header = NonNull::new(link.load(Ordering::Acquire))?;
        // SAFETY: links hold written nodes; acquired here.
        Some(unsafe { Node::new(header) })
    }

    /// The node after this one.
    #[inline]
    pub(super) fn next(self) -> Option<Node<'list>> {
        // SAFETY: every node has lane 0.
        unsafe { self.next_in(0) }
    }

    /// Puts this node into `gap` of `lane`, unless the gap has changed; returns whether it did.
    ///
    /// # Safety
    /// Both this node, not yet in `lane`, and the start of the gap are higher than `lane`.
    pub(super) unsafe fn link_into(self, lane: usize, gap: Gap<'list>) -> bool {
        let (before, after) = gap;
        let after = after.map_or(ptr::null_mut(), |node| node.header.as_ptr());
        // SAFETY: the caller's promise.
        let own = unsafe { self.link(lane) };
        own.store(after, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        let link = unsafe { before.link(lane) };
        // Release: a thread that follows the link sees all writes to this node.
        let own = self.header.as_ptr();
        link.compare_exchange(after, own, Ordering::Release, Ordering::Relaxed)
            .is_ok()
    }

    /// The record in `slot`, which some published order has named.
    #[inline]
    pub(super) fn record(self, slot: usize) -> Record<'list> {
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

    /// The number of entries in `order` before `target`, which is in the leaf's range or at its end.
    #[inline]
    pub(super) fn position(self, order: Order, target: &Target<'_>) -> usize {
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

    /// The result of `read` for the leaf's order and the next node, without a split meanwhile: see the
    /// module.
    #[inline]
    pub(super) fn read<T>(self, mut read: impl FnMut(Order, Option<Node<'list>>) -> T) -> T {
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
    pub(super) fn put(self, order: Order, position: usize, record: Record<'list>) {
        let leaf = self.leaf();
        let slot = order.free_slot();
        // Release: a thread that sees a reused slot sees the counted split (I5).
        leaf.heads[slot].store(self.head_of(record.key()), Ordering::Release);
        leaf.records[slot].store(record.header.as_ptr(), Ordering::Release);
        leaf.order
            .store(order.insert(position).0, Ordering::Release);
    }

    /// Puts `record` into a `slot` in use, whose record has the same key and sequence number.
    ///
    /// The caller holds the leaf's lock.
    pub(super) fn replace(self, slot: usize, record: Record<'list>) {
        // Release: a thread that sees the record sees its content.
        self.leaf().records[slot].store(record.header.as_ptr(), Ordering::Release);
    }
}

impl Target<'_> {
    /// Whether the anchor of `node` is not after this place, and so the place not before `node`.
    #[inline]
    pub(super) fn reaches(&self, node: Option<Node<'_>>) -> bool {
        node.is_some_and(|node| match self.head {
            Some(head) if head != node.head() => node.head() < head,
            _ => match compare_keys(node.key(), self.key) {
                cmp::Ordering::Less => true,
                cmp::Ordering::Greater => false,
                cmp::Ordering::Equal => node
                    .anchor()
                    .is_some_and(|anchor| self.order_of(anchor).is_le()),
            },
        })
    }
}

/// The neighbours of `target` in `lane`, searched from the start of `gap` on: the last node whose
/// anchor is not after it, and the next. The end of `gap` is known to be after it, mostly from the
/// lane above, so it is not compared again.
///
/// # Safety
/// The start of `gap` is higher than `lane`.
#[inline]
pub(super) unsafe fn narrow<'list>(
    target: &Target<'_>,
    lane: usize,
    gap: Gap<'list>,
) -> Gap<'list> {
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

/// Writes a node with an empty leaf and returns its address; with the anchor comes its key's head.
pub(super) fn build_node(
    nodes: &Arena,
    leaves: &Arena,
    height: usize,
    skip: usize,
    anchor: Option<(Record<'_>, u64)>,
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
        anchor: anchor.map(|(anchor, _)| anchor.header),
    };
    // SAFETY: aligned, large enough and not shared yet.
    unsafe { leaf.write(empty) };

    let (key, head) = anchor.map_or((&[][..], 0), |(anchor, head)| (anchor.key(), head));
    let links_bytes = ((height - 1) * size_of::<Link>()).next_multiple_of(ALIGNMENT);
    let piece = nodes.allocate(links_bytes + size_of::<NodeHeader>() + key.len());
    // SAFETY: the piece holds the links, the header and the key, in this order.
    let header = unsafe { piece.add(links_bytes) }.cast::<NodeHeader>();
    let fixed = NodeHeader {
        next: Link::new(ptr::null_mut()),
        leaf,
        head,
        key_length: key.len(),
        handover: Handover::new(),
    };
    fixed.handover.give();
    // SAFETY: aligned, since the piece and `links_bytes` are; not shared yet.
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

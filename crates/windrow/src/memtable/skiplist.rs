//! The skip list: a sorted linked list with express lanes, into which any number of threads insert
//! while others read.
//!
//! Owns the nodes, which live in an [`Arena`] and are never unlinked. A node is one piece of memory:
//!
//! ```text
//! link h-1 | ... | link 1 || link 0 | trailer | key length, value length || key | value
//!                         ^ the node's address
//! ```
//!
//! so what a search reads of a node (one link and the key) lies in one or two cache lines.
//!
//! Invariants:
//! - I1: in each lane, entries ascend strictly in the order of [`compare_entries`]
//!   (crate::base::key::compare_entries).
//! - I2: a node in lane `l` is in every lane below, or is on its way there from below: lanes are
//!   entered from the lowest up, so lane 0 has every entry.
//! - I3: a node's trailer, key and value never change once it is linked.
//! - I4: a node's height depends on its key and sequence number only, so one history builds one
//!   list.
//!
//! Concurrency: inserting is lock-free, reading is wait-free. A reader sees every entry whose
//! insertion happened before its read began; of those inserted meanwhile it may see any.
//!
//! # Safety argument
//!
//! A [`Node`] is a pointer to a node of a list that is borrowed for `'list`. It is made in three ways
//! only: from the head, from a link of another node, and by `SkipList::build`. Links hold null or
//! addresses of fully written nodes of the same list (the release of the linking compare-and-swap
//! makes the writes visible to whoever acquires the link), and the arena keeps nodes in place until
//! the list is dropped, which no borrow survives. So a `Node` always points to written, immutable
//! memory; only its links change, and they are atomics. Lane `l` links only nodes higher than `l`
//! (I2), therefore a node met in lane `l` has the links `0..=l`. Pointers keep the provenance of the
//! whole piece, since no reference to a part of a node is ever turned back into a node.

#![expect(unsafe_code, reason = "nodes of varying size, linked by raw pointers")]

use super::arena::{ALIGNMENT, Arena};
use crate::base::prefix_index::head;
use crate::base::sync::Handover;
use crate::base::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use crate::base::{Kind, SequenceNumber, Trailer};
use crate::codec::checksum::key_hash;
use std::cmp;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Arc;

/// The most lanes. With half of each lane in the next, twenty serve a million entries.
const HEIGHT_MAX: usize = if cfg!(loom) { 2 } else { 20 };

type Link = AtomicPtr<Header>;

/// The fixed part of a node; the links above lane 0 stand before it, key and value after it.
#[repr(C)]
struct Header {
    /// The link of lane 0.
    next: Link,
    trailer: Trailer,
    key_length: u32,
    value_length: u32,
    /// Lets models see that the plain bytes of a node are read only after their publication.
    handover: Handover,
}

const _: () = assert!(align_of::<Header>() <= ALIGNMENT && align_of::<Link>() <= ALIGNMENT);
const _: () = assert!(size_of::<Header>().is_multiple_of(align_of::<Link>()));

/// A node of a list that is borrowed for `'list`.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Node<'list> {
    header: NonNull<Header>,
    list: PhantomData<&'list SkipList>,
}

impl<'list> Node<'list> {
    /// # Safety
    /// `header` is the address of a fully written node of the list borrowed for `'list`.
    #[inline]
    unsafe fn new(header: NonNull<Header>) -> Self {
        Self {
            header,
            list: PhantomData,
        }
    }

    #[inline]
    fn header(self) -> &'list Header {
        // SAFETY: the node is written, stays for `'list` and changes only in its atomics.
        unsafe { self.header.as_ref() }
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
    unsafe fn next(self, lane: usize) -> Option<Node<'list>> {
        // SAFETY: the caller's promise.
        let link = unsafe { self.link(lane) };
        let header = NonNull::new(link.load(Ordering::Acquire))?;
        // SAFETY: links hold null or written nodes of this list; acquired here.
        Some(unsafe { Node::new(header) })
    }

    /// Puts this node into `gap` of `lane`, unless the gap has changed; returns whether it did.
    ///
    /// # Safety
    /// Both this node, not yet in `lane`, and the start of the gap are higher than `lane`.
    #[inline]
    unsafe fn link_into(self, lane: usize, gap: Gap<'list>) -> bool {
        let (before, after) = gap;
        let after = after.map_or(ptr::null_mut(), |node| node.header.as_ptr());
        // SAFETY: the caller's promise.
        let own = unsafe { self.link(lane) };
        own.store(after, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        let link = unsafe { before.link(lane) };
        // Release: whoever meets this node through the link sees all that was written to it.
        link.compare_exchange(
            after,
            self.header.as_ptr(),
            Ordering::Release,
            Ordering::Relaxed,
        )
        .is_ok()
    }

    /// The first byte after the header: where the key begins.
    #[inline]
    fn bytes(self) -> *const u8 {
        self.header().handover.receive();
        // SAFETY: one past the header is within the piece, or its end.
        unsafe { self.header.add(1) }.as_ptr().cast()
    }

    #[inline]
    fn trailer(self) -> Trailer {
        self.header().trailer
    }

    #[inline]
    fn key(self) -> &'list [u8] {
        let length = self.header().key_length as usize;
        // SAFETY: `build` wrote `key_length` bytes there; they never change (I3).
        unsafe { slice::from_raw_parts(self.bytes(), length) }
    }

    #[inline]
    fn value(self) -> &'list [u8] {
        let key_length = self.header().key_length as usize;
        // SAFETY: the value follows the key in the same piece.
        let start = unsafe { self.bytes().add(key_length) };
        // SAFETY: `build` wrote `value_length` bytes there; they never change (I3).
        unsafe { slice::from_raw_parts(start, self.header().value_length as usize) }
    }

    #[inline]
    fn entry(self) -> Entry<'list> {
        Entry {
            key: self.key(),
            trailer: self.trailer(),
            value: self.value(),
        }
    }
}

/// One entry of the list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<'list> {
    pub(super) key: &'list [u8],
    pub(super) trailer: Trailer,
    pub(super) value: &'list [u8],
}

/// What a search looks for.
#[derive(Clone, Copy)]
struct Target<'key> {
    /// The first bytes of the key as a word: most comparisons end here.
    head: u64,
    key: &'key [u8],
    sequence: SequenceNumber,
}

impl<'key> Target<'key> {
    fn new(key: &'key [u8], sequence: SequenceNumber) -> Self {
        Self {
            head: head(key),
            key,
            sequence,
        }
    }

    /// How `node` stands to the target in the order of entries.
    #[inline]
    fn order(&self, node: Node<'_>) -> cmp::Ordering {
        let key = node.key();
        head(key)
            .cmp(&self.head)
            .then_with(|| key.cmp(self.key))
            .then_with(|| self.sequence.cmp(&node.trailer().sequence()))
    }

    /// The neighbours of the target in `lane`, searched from the start of `gap` on. The end of `gap`
    /// is known not to be before the target, mostly from the lane above, and not compared again.
    ///
    /// # Safety
    /// The start of `gap` is higher than `lane`.
    #[inline]
    unsafe fn narrow<'list>(&self, lane: usize, gap: Gap<'list>) -> Gap<'list> {
        let (mut before, known) = gap;
        loop {
            // SAFETY: the caller's promise, and then a node met in this lane.
            let next = unsafe { before.next(lane) };
            match next {
                Some(node) if next != known && self.order(node).is_lt() => before = node,
                _ => return (before, next),
            }
        }
    }
}

/// Two neighbours of a lane: a node, perhaps the head, and the one after it, if any.
type Gap<'list> = (Node<'list>, Option<Node<'list>>);

/// Writes a node and returns its address.
fn build(
    arena: &Arena,
    height: usize,
    key: &[u8],
    trailer: Trailer,
    value: &[u8],
) -> NonNull<Header> {
    let links_bytes = ((height - 1) * size_of::<Link>()).next_multiple_of(ALIGNMENT);
    let piece = arena.allocate(links_bytes + size_of::<Header>() + key.len() + value.len());
    // SAFETY: the piece holds the links, the header, the key and the value, in this order.
    let header = unsafe { piece.add(links_bytes) }.cast::<Header>();
    let handover = Handover::new();
    handover.give();
    let fixed = Header {
        next: Link::new(ptr::null_mut()),
        trailer,
        key_length: length(key),
        value_length: length(value),
        handover,
    };
    // SAFETY: aligned, since the piece and `links_bytes` are; nobody else knows the piece yet.
    unsafe { header.write(fixed) };
    for lane in 1..height {
        // SAFETY: `height - 1` links fit before the header.
        let link = unsafe { header.cast::<Link>().sub(lane) };
        // SAFETY: as for the header.
        unsafe { link.write(Link::new(ptr::null_mut())) };
    }
    // SAFETY: the key begins where the header ends.
    let key_start = unsafe { header.add(1) }.cast::<u8>();
    // SAFETY: fresh memory, which overlaps nothing.
    unsafe { key_start.copy_from_nonoverlapping(NonNull::from(key).cast(), key.len()) };
    // SAFETY: the value begins where the key ends.
    let value_start = unsafe { key_start.add(key.len()) };
    // SAFETY: fresh memory, which overlaps nothing.
    unsafe { value_start.copy_from_nonoverlapping(NonNull::from(value).cast(), value.len()) };
    header
}

/// The length of a key or value, which the limits keep far below 4 GiB.
fn length(bytes: &[u8]) -> u32 {
    match u32::try_from(bytes.len()) {
        Ok(length) => length,
        Err(_) => unreachable!("keys and values are below 4 GiB"),
    }
}

/// In how many lanes an entry stands: half of those of each lane stand in the next, too.
fn height_of(key: &[u8], sequence: SequenceNumber) -> usize {
    let random = key_hash(key) ^ sequence.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (1 + random.leading_zeros() as usize).min(HEIGHT_MAX)
}

/// A concurrent sorted list of entries; see the module.
pub(super) struct SkipList {
    arena: Arena,
    /// A node of full height without an entry, before all others.
    head: NonNull<Header>,
    /// At least one lane; no lane from here up was used when this was read.
    height: AtomicUsize,
}

// SAFETY: `head` points into the list's own arena, whose nodes are shared only as the module says.
unsafe impl Send for SkipList {}
// SAFETY: as above; all mutation behind a shared borrow goes through atomics.
unsafe impl Sync for SkipList {}

impl SkipList {
    pub(super) fn new() -> Self {
        let arena = Arena::new();
        let head = build(
            &arena,
            HEIGHT_MAX,
            &[],
            Trailer::new(0, Kind::Tombstone),
            &[],
        );
        Self {
            arena,
            head,
            height: AtomicUsize::new(1),
        }
    }

    /// The bytes of all nodes, padding included.
    pub(super) fn used_bytes(&self) -> usize {
        self.arena.used_bytes()
    }

    /// The bytes taken from the allocator.
    pub(super) fn allocated_bytes(&self) -> usize {
        self.arena.allocated_bytes()
    }

    /// Adds an entry.
    ///
    /// # Panics
    /// If there is an entry of this key with this sequence number already.
    pub(super) fn insert(&self, key: &[u8], trailer: Trailer, value: &[u8]) {
        let target = Target::new(key, trailer.sequence());
        let mut gaps = [(self.head(), None); HEIGHT_MAX];
        let mut gap = (self.head(), None);
        for lane in (0..self.height.load(Ordering::Relaxed)).rev() {
            // SAFETY: the head has all lanes; other nodes were met in this lane or above.
            gap = unsafe { target.narrow(lane, gap) };
            gaps[lane] = gap;
        }

        let height = height_of(key, trailer.sequence());
        let header = build(&self.arena, height, key, trailer, value);
        // SAFETY: just built in this list's arena.
        let node = unsafe { Node::new(header) };
        for (lane, gap) in gaps.iter_mut().enumerate().take(height) {
            loop {
                if lane == 0 {
                    let repeated = gap.1.is_some_and(|after| target.order(after).is_eq());
                    assert!(!repeated, "a key has one entry per sequence number"); // I1
                }
                // SAFETY: `node` is higher than `lane`, and so is the start of a gap in it.
                if unsafe { node.link_into(lane, *gap) } {
                    break;
                }
                // Another thread was faster: look again from where this one stood.
                // SAFETY: as above.
                *gap = unsafe { target.narrow(lane, (gap.0, None)) };
            }
        }
        self.height.fetch_max(height, Ordering::Relaxed);
    }

    /// The first entry that is not before (`key`, `sequence`).
    pub(super) fn lower_bound(&self, key: &[u8], sequence: SequenceNumber) -> Option<Entry<'_>> {
        let (_, after) = self.search(&Target::new(key, sequence));
        after.map(Node::entry)
    }

    /// The neighbours of `target`: the last node before it, or the head, and the first other.
    #[inline]
    fn search(&self, target: &Target<'_>) -> Gap<'_> {
        let mut gap = (self.head(), None);
        for lane in (0..self.height.load(Ordering::Relaxed)).rev() {
            // SAFETY: the head has all lanes; other nodes were met in this lane or above.
            gap = unsafe { target.narrow(lane, gap) };
        }
        gap
    }

    fn first(&self) -> Option<Node<'_>> {
        // SAFETY: every node has lane 0.
        unsafe { self.head().next(0) }
    }

    fn last(&self) -> Option<Node<'_>> {
        let mut last = self.head();
        for lane in (0..self.height.load(Ordering::Relaxed)).rev() {
            // SAFETY: the head has all lanes; other nodes were met in this lane or above.
            while let Some(next) = unsafe { last.next(lane) } {
                last = next;
            }
        }
        self.unless_head(last)
    }

    fn head(&self) -> Node<'_> {
        // SAFETY: the head is a written node of this list.
        unsafe { Node::new(self.head) }
    }

    fn unless_head<'list>(&'list self, node: Node<'list>) -> Option<Node<'list>> {
        (node != self.head()).then_some(node)
    }
}

/// A position in a list that it keeps alive.
pub(super) struct Position {
    list: Arc<SkipList>,
    /// The node it stands on.
    node: Option<NonNull<Header>>,
}

// SAFETY: the node belongs to `list`, which may be shared between threads.
unsafe impl Send for Position {}
// SAFETY: as above; a shared `Position` only reads.
unsafe impl Sync for Position {}

impl Position {
    /// A position on no entry.
    pub(super) fn new(list: Arc<SkipList>) -> Self {
        Self { list, node: None }
    }

    pub(super) fn seek_to_first(&mut self) {
        self.node = self.list.first().map(|node| node.header);
    }

    pub(super) fn seek_to_last(&mut self) {
        self.node = self.list.last().map(|node| node.header);
    }

    /// Moves to the first entry that is not before (`key`, `sequence`).
    pub(super) fn seek(&mut self, key: &[u8], sequence: SequenceNumber) {
        let (_, after) = self.list.search(&Target::new(key, sequence));
        self.node = after.map(|node| node.header);
    }

    /// Moves to the entry after; from no entry, stays there.
    pub(super) fn next(&mut self) {
        // SAFETY: every node has lane 0.
        let next = self.node().and_then(|node| unsafe { node.next(0) });
        self.node = next.map(|node| node.header);
    }

    /// Moves to the entry before; from no entry, stays there. Lanes lead forward only, so this is a
    /// search.
    pub(super) fn prev(&mut self) {
        let prev = self.node().and_then(|node| {
            let target = Target::new(node.key(), node.trailer().sequence());
            let (before, _) = self.list.search(&target);
            self.list.unless_head(before)
        });
        self.node = prev.map(|node| node.header);
    }

    /// The entry it stands on.
    #[inline]
    pub(super) fn entry(&self) -> Option<Entry<'_>> {
        self.node().map(Node::entry)
    }

    #[inline]
    fn node(&self) -> Option<Node<'_>> {
        // SAFETY: the node came from `list`, which is borrowed along.
        self.node.map(|header| unsafe { Node::new(header) })
    }
}

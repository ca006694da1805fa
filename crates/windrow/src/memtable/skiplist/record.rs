//! Records: the entries of a list, each one piece of memory that never changes.
//!
//! The safety argument is that of the [list](super).

use super::SkipList;
use crate::base::key::compare_keys;
use crate::base::sync::Handover;
use crate::base::{SequenceNumber, Trailer};
use crate::memtable::arena::ALIGNMENT;
use std::cmp;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::slice;

const _: () = assert!(align_of::<RecordHeader>() <= ALIGNMENT);

/// The fixed part of a record; the key and then the value follow.
#[repr(C)]
pub(super) struct RecordHeader {
    trailer: Trailer,
    key_length: u32,
    value_length: u32,
    /// Lets models see that a record is read only after its publication.
    handover: Handover,
}

/// An entry of a list that is borrowed for `'list`.
#[derive(Clone, Copy)]
pub(in crate::memtable) struct Record<'list> {
    pub(super) header: NonNull<RecordHeader>,
    list: PhantomData<&'list SkipList>,
}

impl<'list> Record<'list> {
    /// # Safety
    /// `header` is the address of a written record of the list borrowed for `'list`.
    #[inline]
    pub(super) unsafe fn new(header: NonNull<RecordHeader>) -> Self {
        Self {
            header,
            list: PhantomData,
        }
    }

    /// Writes a record.
    pub(super) fn build(list: &'list SkipList, key: &[u8], trailer: Trailer, value: &[u8]) -> Self {
        let bytes = size_of::<RecordHeader>() + key.len() + value.len();
        let header = list.records.allocate(bytes).cast::<RecordHeader>();
        let fixed = RecordHeader {
            trailer,
            key_length: length(key),
            value_length: length(value),
            handover: Handover::new(),
        };
        fixed.handover.give();
        // SAFETY: the piece is aligned, large enough and not shared yet.
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
    pub(in crate::memtable) fn trailer(self) -> Trailer {
        self.header().trailer
    }

    #[inline]
    pub(in crate::memtable) fn key(self) -> &'list [u8] {
        self.bytes(0, self.header().key_length as usize)
    }

    #[inline]
    pub(in crate::memtable) fn value(self) -> &'list [u8] {
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
}

/// The target of a search: a place in the order of entries.
#[derive(Clone, Copy)]
pub(in crate::memtable) struct Target<'key> {
    pub(super) key: &'key [u8],
    pub(super) sequence: SequenceNumber,
    /// The head of the key in its list, if that had nodes when the search began.
    pub(super) head: Option<u64>,
}

impl Target<'_> {
    /// The order of an entry relative to this place.
    #[inline]
    pub(super) fn order_of(&self, record: Record<'_>) -> cmp::Ordering {
        let sequence = record.trailer().sequence();
        compare_keys(record.key(), self.key).then(self.sequence.cmp(&sequence))
    }
}

/// Writes `first` and then `second` to `start`.
///
/// # Safety
/// Both fit into fresh memory there.
pub(super) unsafe fn write_bytes(start: NonNull<u8>, first: &[u8], second: &[u8]) {
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

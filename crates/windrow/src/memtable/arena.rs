//! The memory of one memtable: chunks that are filled from the front and freed all at once.
//!
//! Owns the chunks and the exact count of the bytes handed out of them.
//!
//! Invariants:
//! - I1: pieces handed out never overlap, are aligned to [`ALIGNMENT`] and never move.
//! - I2: a sealed chunk hands out nothing more, so `used_before` of the next chunk is final.
//! - I3: `used_bytes` is the sum of all pieces handed out so far, rounded up to the alignment; it
//!   never falls.
//!
//! Concurrency: any number of threads allocate at once. A piece costs one compare-and-swap; the
//! lock is taken only to add a chunk.
//!
//! # Safety argument
//!
//! Chunks form a list from `current` backwards through `previous`. A chunk is built before it is
//! published in `current`, and no chunk is freed before the arena is dropped, which needs exclusive
//! access. So every chunk pointer that a shared borrow of the arena can reach stays valid for that
//! borrow. A piece is the range that one successful compare-and-swap of `used` moved over: ranges of
//! different successes are disjoint, and each ends at or before `capacity`.

#![expect(
    unsafe_code,
    reason = "hands out raw memory that is shared by pointers"
)]

use crate::base::MemoryTracker;
use crate::base::sync::Mutex;
use crate::base::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// The alignment of every piece.
pub(super) const ALIGNMENT: usize = 8;

/// The first chunk is small, so that an idle keyspace costs little; each further one doubles.
pub(super) const CHUNK_BYTES_MIN: usize = 4 * 1024;

/// Chunks of this size make calls of the allocator rare and still waste little at the end.
const CHUNK_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Set in [`Chunk::used`] once the chunk is full.
const SEALED: usize = 1 << (usize::BITS - 1);

/// A piece of memory, filled from the front.
#[derive(Debug)]
struct Chunk {
    /// The first byte.
    start: NonNull<u8>,
    /// The number of bytes.
    capacity: usize,
    /// The number of bytes handed out, and [`SEALED`].
    used: AtomicUsize,
    /// The bytes handed out of all chunks before this one.
    used_before: usize,
    /// The bytes of all chunks before this one.
    allocated_before: usize,
    /// The previous chunk, or null.
    previous: *mut Chunk,
}

impl Chunk {
    /// Allocates a chunk behind `previous` and gives up its ownership.
    fn build(
        capacity: usize,
        (used_before, allocated_before): (usize, usize),
        previous: *mut Chunk,
    ) -> *mut Chunk {
        let layout = Self::layout(capacity);
        // SAFETY: the capacity is never zero.
        let start = unsafe { alloc(layout) };
        let Some(start) = NonNull::new(start) else {
            handle_alloc_error(layout)
        };
        Box::into_raw(Box::new(Self {
            start,
            capacity,
            used: AtomicUsize::new(0),
            used_before,
            allocated_before,
            previous,
        }))
    }

    fn layout(capacity: usize) -> Layout {
        match Layout::from_size_align(capacity, ALIGNMENT) {
            Ok(layout) => layout,
            Err(_) => unreachable!("a chunk is smaller than the address space"),
        }
    }

    /// Hands out `bytes` bytes, or nothing if they do not fit.
    #[inline]
    fn allocate(&self, bytes: usize) -> Option<NonNull<u8>> {
        let mut used = self.used.load(Ordering::Relaxed);
        loop {
            // A sealed `used` exceeds every capacity.
            let end = used.checked_add(bytes)?;
            if end > self.capacity {
                return None;
            }
            // Relaxed is enough: the new owner alone uses the piece until it publishes it.
            match self
                .used
                .compare_exchange_weak(used, end, Ordering::Relaxed, Ordering::Relaxed)
            {
                // SAFETY: the range `used..end` lies within the chunk's memory.
                Ok(_) => return Some(unsafe { self.start.add(used) }),
                Err(now) => used = now,
            }
        }
    }
}

/// A growing region of memory; see the module.
#[derive(Debug)]
pub(super) struct Arena {
    /// The chunk that is being filled; never null.
    current: AtomicPtr<Chunk>,
    /// Held while a chunk is added.
    growth: Mutex<()>,
    /// The tracker of the memory of all chunks.
    tracker: Arc<MemoryTracker>,
}

impl Arena {
    pub(super) fn new(tracker: &Arc<MemoryTracker>) -> Self {
        let chunk = Chunk::build(CHUNK_BYTES_MIN, (0, 0), ptr::null_mut());
        tracker.add(CHUNK_BYTES_MIN as u64);
        Self {
            current: AtomicPtr::new(chunk),
            growth: Mutex::new(()),
            tracker: Arc::clone(tracker),
        }
    }

    /// Hands out `bytes` uninitialised bytes, aligned to [`ALIGNMENT`], which stay where they are
    /// until the arena is dropped.
    #[inline]
    pub(super) fn allocate(&self, bytes: usize) -> NonNull<u8> {
        let bytes = bytes.next_multiple_of(ALIGNMENT);
        match self.current().allocate(bytes) {
            Some(piece) => piece,
            None => self.allocate_slowly(bytes),
        }
    }

    /// The bytes handed out, padding included.
    pub(super) fn used_bytes(&self) -> usize {
        let chunk = self.current();
        chunk.used_before + (chunk.used.load(Ordering::Relaxed) & !SEALED)
    }

    /// The bytes of all chunks: what the arena takes from the system, except its own bookkeeping.
    pub(super) fn allocated_bytes(&self) -> usize {
        let chunk = self.current();
        chunk.allocated_before + chunk.capacity
    }

    fn current(&self) -> &Chunk {
        // SAFETY: `current` points to a whole chunk that lives as long as the arena; only shared
        // borrows of chunks exist until then.
        unsafe { &*self.current.load(Ordering::Acquire) }
    }

    /// Adds chunks until `bytes` fit.
    #[cold]
    fn allocate_slowly(&self, bytes: usize) -> NonNull<u8> {
        let _growth = self.growth.lock();
        loop {
            // Another thread may have added a chunk while this one waited for the lock.
            let full = self.current();
            if let Some(piece) = full.allocate(bytes) {
                return piece;
            }
            let used = full.used.fetch_or(SEALED, Ordering::Relaxed);
            assert!(used & SEALED == 0, "a chunk is sealed once"); // I2
            let capacity = (full.capacity * 2).min(CHUNK_BYTES_MAX).max(bytes);
            let chunk = Chunk::build(
                capacity,
                (
                    full.used_before + used,
                    full.allocated_before + full.capacity,
                ),
                ptr::from_ref(full).cast_mut(),
            );
            self.tracker.add(capacity as u64);
            self.current.store(chunk, Ordering::Release);
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        let mut next = self.current.load(Ordering::Acquire);
        while !next.is_null() {
            // SAFETY: `next` came out of `Box::into_raw`, and this is the only walk that takes
            // chunks back.
            let chunk = unsafe { Box::from_raw(next) };
            // SAFETY: allocated with the same layout; the arena is no longer borrowed.
            unsafe { dealloc(chunk.start.as_ptr(), Chunk::layout(chunk.capacity)) };
            self.tracker.remove(chunk.capacity as u64);
            next = chunk.previous;
        }
    }
}

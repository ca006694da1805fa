//! Verified blocks in memory, bounded by their bytes.
//!
//! Holds the blocks that a mapping cannot show, decompressed: all of them in buffered mode, the
//! compressed ones in mapped mode.
//!
//! Invariants:
//! - I1. Only verified payloads are inserted.
//! - I2. The key is (file, segment, offset), where the file is the database's own number for it. No key is ever used
//!   again for other bytes, so no entry needs invalidation.
//!
//! Concurrency: shared by all threads; sharded locks inside, held for one look-up.

use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{OptionsBuilder, Weighter};

use crate::base::FileNumber;
use crate::base::sync::Mutex;
use crate::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::block::stored::Place;

/// Bytes of bookkeeping that an entry costs beside its block.
const ENTRY_BYTES: u64 = 96;

/// Estimates the number of entries for the first allocation.
const TYPICAL_BLOCK_BYTES: u64 = 4 << 10;

/// Verified blocks, bounded by their bytes.
pub(crate) struct BlockCache {
    blocks: Cache<BlockKey, Arc<[u8]>, Weight, BuildHasherDefault<PlaceHasher>>,
    /// The capacity if nothing else needs the memory.
    bytes_max: u64,
    /// The capacity now.
    capacity: AtomicU64,
    has_had_blocks: AtomicBool,
    /// Held while the capacity changes.
    fitting: Mutex<()>,
}

/// The capacity changes in steps. This many steps make the largest capacity.
const STEPS: u64 = 32;

/// Which block it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct BlockKey {
    file: u64,
    segment: u64,
    offset: u64,
}

impl BlockKey {
    /// Of the block at `place` in the database's file `number`. The place itself names no file of the database if the
    /// table was written outside of it.
    #[inline]
    pub(crate) fn new(number: FileNumber, place: Place) -> Self {
        Self {
            file: number.0,
            segment: place.segment.0,
            offset: place.offset,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Weight;

impl Weighter<BlockKey, Arc<[u8]>> for Weight {
    fn weight(&self, _: &BlockKey, block: &Arc<[u8]>) -> u64 {
        block.len() as u64 + ENTRY_BYTES
    }
}

/// Mixes the words of a key. Places come from the engine's own allocator, so no user chooses
/// collisions.
#[derive(Debug, Default, Clone, Copy)]
struct PlaceHasher(u64);

impl Hasher for PlaceHasher {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }
}

impl fmt::Debug for BlockCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockCache")
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}

impl BlockCache {
    /// Whether a block was ever inserted. Without compression a database with mapped blocks inserts none.
    pub(crate) fn has_had_blocks(&self) -> bool {
        self.has_had_blocks.load(Ordering::Relaxed)
    }

    /// A cache of about `bytes`.
    pub(crate) fn new(bytes: u64) -> Self {
        let entries = usize::try_from(bytes / TYPICAL_BLOCK_BYTES).unwrap_or(usize::MAX);
        let options = OptionsBuilder::new()
            .estimated_items_capacity(entries.max(1))
            .weight_capacity(bytes)
            .build();
        let Ok(options) = options else {
            unreachable!("the builder needs only the capacities");
        };
        Self {
            bytes_max: bytes,
            capacity: AtomicU64::new(bytes),
            has_had_blocks: AtomicBool::new(false),
            fitting: Mutex::new(()),
            blocks: Cache::with_options(
                options,
                Weight,
                BuildHasherDefault::default(),
                DefaultLifecycle::default(),
            ),
        }
    }

    /// The block, if it is cached.
    #[inline]
    pub(crate) fn get(&self, key: BlockKey) -> Option<Arc<[u8]>> {
        self.blocks.get(&key)
    }

    /// Adds a verified payload (I1).
    pub(crate) fn insert(&self, key: BlockKey, block: Arc<[u8]>) {
        self.has_had_blocks.store(true, Ordering::Relaxed);
        self.blocks.insert(key, block);
    }

    /// Sets the capacity to `bytes`, rounded down to a step, at most that of [`new`](Self::new).
    pub(crate) fn fit(&self, bytes: u64) {
        let step = (self.bytes_max / STEPS).max(1);
        let wanted = bytes.min(self.bytes_max) / step * step;
        if self.capacity.load(Ordering::Relaxed) != wanted {
            let fitting = self.fitting.lock();
            self.capacity.store(wanted, Ordering::Relaxed);
            self.blocks.set_capacity(wanted);
            drop(fitting);
        }
    }

    /// The bytes held now.
    pub(crate) fn bytes(&self) -> u64 {
        self.blocks.weight()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::SegmentId;

    fn key(file: u64, segment: u64, offset: u64) -> BlockKey {
        let place = Place {
            file: FileNumber(0),
            segment: SegmentId(segment),
            offset,
        };
        BlockKey::new(FileNumber(file), place)
    }

    fn place(offset: u64) -> BlockKey {
        key(1, 2, offset)
    }

    #[test]
    fn keeps_within_its_bytes() {
        let cache = BlockCache::new(1 << 20);
        for offset in 0..1000 {
            cache.insert(place(offset), vec![0; 4096].into());
            assert!(cache.bytes() <= 1 << 20);
        }
        assert!(cache.bytes() > 1 << 19);
    }

    #[test]
    fn places_do_not_collide() {
        let cache = BlockCache::new(1 << 20);
        cache.insert(place(7), Arc::from([7]));
        assert_eq!(cache.get(place(7)).as_deref(), Some(&[7][..]));
        assert_eq!(cache.get(place(8)), None);
        assert_eq!(cache.get(key(1, 3, 7)), None);
        assert_eq!(cache.get(key(2, 2, 7)), None);
    }

    #[test]
    fn the_capacity_shrinks_and_grows_again() {
        let cache = BlockCache::new(1 << 20);
        let fill =
            || (0..1000).for_each(|offset| cache.insert(place(offset), vec![0; 4096].into()));
        fill();
        cache.fit(1 << 18);
        assert!(cache.bytes() <= 1 << 18, "{}", cache.bytes());
        fill();
        assert!(cache.bytes() <= 1 << 18 && cache.bytes() > 1 << 16);
        cache.fit(u64::MAX);
        fill();
        assert!(cache.bytes() <= 1 << 20 && cache.bytes() > 1 << 19);
        cache.fit(0);
        assert_eq!(cache.bytes(), 0);
    }

    #[test]
    fn a_cache_without_capacity_keeps_nothing() {
        let cache = BlockCache::new(0);
        cache.insert(place(1), Arc::from([1]));
        assert_eq!(cache.get(place(1)), None);
    }
}

//! Decides when the verified blocks of a mapping must be verified again.
//!
//! Concurrency: all tables share one clock. `advance` may race with any read: a table that misses the
//! change at one access sees it at the next.

use crate::base::sync::atomic::{AtomicU64, Ordering};

/// Counts scrub intervals. A new interval makes every block unverified.
#[derive(Debug, Default)]
pub(crate) struct ScrubClock(AtomicU64);

impl ScrubClock {
    /// Begins the next interval.
    pub(crate) fn advance(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// The current interval.
    #[inline]
    pub(crate) fn epoch(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Which blocks of a segment were verified in this interval.
#[derive(Debug)]
pub(crate) struct Verified {
    epoch: AtomicU64,
    words: Box<[AtomicU64]>,
}

impl Verified {
    pub(crate) fn new(blocks: usize) -> Self {
        Self {
            epoch: AtomicU64::new(0),
            words: (0..blocks.div_ceil(64))
                .map(|_| AtomicU64::new(0))
                .collect(),
        }
    }

    /// The bytes held in memory.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.words)
    }

    /// Whether `block` was verified in interval `epoch`.
    #[inline]
    pub(crate) fn contains(&self, block: usize, epoch: u64) -> bool {
        if self.epoch.load(Ordering::Acquire) != epoch {
            self.forget(epoch);
        }
        self.words[block / 64].load(Ordering::Relaxed) >> (block % 64) & 1 != 0
    }

    /// Marks `block` as verified.
    pub(crate) fn insert(&self, block: usize) {
        self.words[block / 64].fetch_or(1 << (block % 64), Ordering::Relaxed);
    }

    #[cold]
    fn forget(&self, epoch: u64) {
        for word in &self.words {
            word.store(0, Ordering::Relaxed);
        }
        // The bits are cleared before any reader can see the new interval.
        self.epoch.store(epoch, Ordering::Release);
    }
}

//! The outcome of the last allocation of filter bits in a keyspace.
//!
//! Concurrency: a thread holds the lock of `changed` while it allocates bits.

use crate::base::sync::Mutex;
use crate::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::options::KeyspaceOptions;
use crate::policy;

/// A change by this many entries makes a new allocation due in a tree of any size.
pub(in crate::engine) const ALL: u64 = u64::MAX;

/// The outcome of the last allocation.
#[derive(Debug)]
pub(crate) struct FilterState {
    /// The price of a bit, as the bits of an `f64`.
    pub(super) price: AtomicU64,
    /// Whether an open has left the first allocation to a job.
    pub(super) is_left: AtomicBool,
    /// Entries of the files written since.
    pub(super) changed: Mutex<u64>,
}

impl FilterState {
    pub(crate) fn new(options: &KeyspaceOptions) -> Self {
        Self {
            price: AtomicU64::new(policy::price_alone(options).to_bits()),
            is_left: AtomicBool::new(false),
            changed: Mutex::new(ALL),
        }
    }

    pub(super) fn price(&self) -> f64 {
        f64::from_bits(self.price.load(Ordering::Relaxed))
    }
}

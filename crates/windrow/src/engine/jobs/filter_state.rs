//! The outcome of the last allocation of filter bits in a keyspace.

use crate::base::sync::Mutex;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::options::KeyspaceOptions;
use crate::policy;

/// A change by this many entries makes a new allocation due in a tree of any size.
pub(in crate::engine) const ALL: u64 = u64::MAX;

/// What the last sharing out came to.
#[derive(Debug)]
pub(crate) struct FilterState {
    /// What a bit costs, as the bits of an `f64`.
    pub(super) price: AtomicU64,
    /// Entries that came with files written since; locked while bits are shared out.
    pub(super) changed: Mutex<u64>,
}

impl FilterState {
    pub(crate) fn new(options: &KeyspaceOptions) -> Self {
        Self {
            price: AtomicU64::new(policy::price_alone(options).to_bits()),
            changed: Mutex::new(ALL),
        }
    }

    pub(super) fn price(&self) -> f64 {
        f64::from_bits(self.price.load(Ordering::Relaxed))
    }
}

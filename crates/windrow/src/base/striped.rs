//! Counters that every read touches.
//!
//! Concurrency: relaxed atomics, striped over cache lines by thread, so that readers do not contend; a
//! sum over stripes may be a few operations old.

use std::array;

use super::sync::atomic::{AtomicU64, Ordering};

/// The stripes of a counter.
const STRIPES: usize = 16;

/// `N` counters, striped over cache lines by thread.
#[derive(Debug)]
pub(crate) struct Striped<const N: usize>(Box<[Stripe<N>; STRIPES]>);

#[derive(Debug)]
#[repr(align(128))]
struct Stripe<const N: usize>([AtomicU64; N]);

impl<const N: usize> Striped<N> {
    pub(crate) fn new() -> Self {
        let stripe = |_| Stripe(array::from_fn(|_| AtomicU64::new(0)));
        Self(Box::new(array::from_fn(stripe)))
    }

    /// Adds `count` to counter `index`.
    #[inline]
    pub(crate) fn add(&self, index: usize, count: u64) {
        self.add_all([(index, count)]);
    }

    /// Adds each count to the counter with its index.
    #[inline]
    pub(crate) fn add_all(&self, counts: impl IntoIterator<Item = (usize, u64)>) {
        let stripe = &self.0[stripe_of_this_thread()].0;
        for (index, count) in counts {
            if count > 0 {
                stripe[index].fetch_add(count, Ordering::Relaxed);
            }
        }
    }

    /// Adds 1 to counter `index`. Returns the count of this thread's stripe before.
    #[inline]
    pub(crate) fn next(&self, index: usize) -> u64 {
        self.0[stripe_of_this_thread()].0[index].fetch_add(1, Ordering::Relaxed)
    }

    /// The count of this thread's stripe.
    #[inline]
    pub(crate) fn here(&self, index: usize) -> u64 {
        self.0[stripe_of_this_thread()].0[index].load(Ordering::Relaxed)
    }

    /// The sum of counter `index` over all stripes.
    pub(crate) fn sum(&self, index: usize) -> u64 {
        self.0
            .iter()
            .map(|stripe| stripe.0[index].load(Ordering::Relaxed))
            .sum()
    }
}

/// The stripe of this thread, assigned round-robin.
#[inline]
fn stripe_of_this_thread() -> usize {
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    thread_local! {
        static STRIPE: usize =
            NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES;
    }
    STRIPE.with(|stripe| *stripe)
}

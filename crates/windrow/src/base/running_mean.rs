//! Means over the last samples of several threads.
//!
//! Concurrency: threads share them without a lock. A sample may be lost when two threads meet, which changes only how soon
//! the mean follows.

use std::array;

use super::KeyspaceId;
use super::sync::atomic::{AtomicU32, Ordering};

/// The part that a sample has of the mean.
const WEIGHT: f64 = 1.0 / 16.0;

/// Keyspaces whose ids fall together share their means.
const KEYSPACES: usize = 16;

/// An exponentially weighted mean of counts. It begins at 0.
#[derive(Debug)]
pub(crate) struct RunningMean(AtomicU32);

impl RunningMean {
    fn new() -> Self {
        Self(AtomicU32::new(0_f32.to_bits()))
    }

    pub(crate) fn get(&self) -> f64 {
        f64::from(f32::from_bits(self.0.load(Ordering::Relaxed)))
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "a mean of counts needs few digits"
    )]
    pub(crate) fn note(&self, sample: u32) {
        let mean = self.get();
        let mean = mean + (f64::from(sample) - mean) * WEIGHT;
        self.0.store((mean as f32).to_bits(), Ordering::Relaxed);
    }
}

/// `COUNT` means for each keyspace.
#[derive(Debug)]
pub(crate) struct KeyspaceMeans<const COUNT: usize>([[RunningMean; COUNT]; KEYSPACES]);

impl<const COUNT: usize> Default for KeyspaceMeans<COUNT> {
    fn default() -> Self {
        Self(array::from_fn(|_| array::from_fn(|_| RunningMean::new())))
    }
}

impl<const COUNT: usize> KeyspaceMeans<COUNT> {
    /// Mean `index`, below `COUNT`, of a keyspace.
    pub(crate) fn of(&self, keyspace: KeyspaceId, index: usize) -> &RunningMean {
        &self.0[keyspace.0 as usize % KEYSPACES][index]
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_mean_follows_its_samples() {
        let means = KeyspaceMeans::<2>::default();
        let [first, other] = [(3, 0), (4, 0)].map(|(id, index)| means.of(KeyspaceId(id), index));
        assert!(first.get().abs() < 1e-9);
        for _ in 0..200 {
            first.note(10);
        }
        assert!((first.get() - 10.0).abs() < 0.01);
        first.note(26);
        assert!((first.get() - 11.0).abs() < 0.01);
        assert!(other.get().abs() < 1e-9);
    }
}

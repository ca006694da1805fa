//! The only allocator of file numbers and segment ids.
//!
//! Invariant: it allocates a number only below the mark that the manifest has recorded. So no number is ever
//! used twice, not even after an attempt that a crash interrupted. Checksums and cache keys rely on this. Without a log,
//! an open goes back to an earlier mark. It begins above the numbers of all files in the folder, but ids of segments that lie
//! behind the recorded ends of table files may be used again: each is overwritten and synced before an edit names it.
//!
//! Concurrency: lock-free. The thread that holds the catalog raises the mark.

use crate::base::sync::atomic::{AtomicU64, Ordering};

/// The distance of the recorded mark from the next number.
pub(crate) const RESERVED_AHEAD: u64 = 1 << 7;

/// Allocates numbers below a recorded mark.
#[derive(Debug)]
pub(crate) struct Ids {
    next: AtomicU64,
    recorded: AtomicU64,
}

impl Ids {
    /// Begins at `next`. The numbers from there up to `recorded` are free to use.
    pub(crate) fn new(next: u64, recorded: u64) -> Self {
        Self {
            next: AtomicU64::new(next),
            recorded: AtomicU64::new(recorded),
        }
    }

    /// A number that was never allocated, or `None` until the mark is raised.
    pub(crate) fn allocate(&self) -> Option<u64> {
        let recorded = self.recorded.load(Ordering::Acquire);
        self.next
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |next| {
                (next < recorded).then_some(next + 1)
            })
            .ok()
    }

    /// All numbers below it may be in use, and no other.
    pub(crate) fn next(&self) -> u64 {
        self.next.load(Ordering::Acquire)
    }

    /// The mark to record with the next manifest edit, if the current one is half used up.
    pub(crate) fn mark_due(&self) -> Option<u64> {
        let next = self.next.load(Ordering::Acquire);
        let left = self.recorded.load(Ordering::Acquire).saturating_sub(next);
        (left < RESERVED_AHEAD / 2).then_some(next + RESERVED_AHEAD)
    }

    /// Notes that `mark` is durable in the manifest.
    pub(crate) fn recorded(&self, mark: u64) {
        self.recorded.fetch_max(mark, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::{Ids, RESERVED_AHEAD};

    #[test]
    fn numbers_stay_below_the_recorded_mark() {
        let ids = Ids::new(7, 9);
        assert_eq!(ids.allocate(), Some(7));
        assert_eq!(ids.allocate(), Some(8));
        assert_eq!(ids.allocate(), None);
        let mark = ids.mark_due().unwrap();
        assert_eq!(mark, 9 + RESERVED_AHEAD);
        ids.recorded(mark);
        assert_eq!(ids.mark_due(), None);
        assert_eq!(ids.allocate(), Some(9));
    }
}

//! The wait between two tries of a transaction.
//!
//! The first tries follow at once: who lost against a group of commits has waited for it already. Later waits are random
//! and grow, so that writers of one key come at different times.
//!
//! Concurrency: a waiting thread holds no lock.

use std::time::Duration;

use crate::engine::Engine;

/// Tries without a wait.
pub(super) const TRIES_AT_ONCE: u32 = 4;

/// The bound of the first wait, and that of the last, which is several times the length of a slow sync: whoever begins
/// again during the sync of a group has lost against that group.
const WAIT_MIN: Duration = Duration::from_micros(20);
const WAIT_MAX: Duration = Duration::from_millis(50);

/// The most tries of a transaction.
pub(crate) const TRIES_MAX: u32 = 200;

impl Engine {
    /// Waits before the next try, after `tries` failed ones.
    pub(crate) fn wait_to_retry(&self, tries: u32) {
        let Some(doublings) = tries.checked_sub(TRIES_AT_ONCE) else {
            return;
        };
        let runtime = &self.options.runtime;
        runtime.sleep(wait(doublings, runtime.random()));
    }
}

/// A wait that `random` chooses below a bound, which grows with `doublings`.
fn wait(doublings: u32, random: u64) -> Duration {
    let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
    let bound = WAIT_MIN.saturating_mul(factor).min(WAIT_MAX);
    let nanoseconds = u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX);
    Duration::from_nanos(random % nanoseconds)
}

#[cfg(test)]
#[cfg(not(any(loom, shuttle)))]
mod tests {
    use super::{WAIT_MAX, WAIT_MIN, wait};

    #[test]
    fn waits_grow_and_are_bounded() {
        assert!(wait(0, u64::MAX) < WAIT_MIN);
        let longest = |doublings| (0..1000).map(|it| wait(doublings, it << 20)).max();
        assert!(longest(5) > longest(0));
        for doublings in [0, 1, 9, 31, 32, 1000] {
            assert!(wait(doublings, u64::MAX / 3) < WAIT_MAX);
        }
    }
}

//! The rate limiter: the bytes per second that jobs may write.
//!
//! All jobs share one token bucket. Every byte is taken from it. Whether a job waits for an empty
//! bucket depends on its class: a flush never waits, a compaction of level 0 waits once it owes the
//! bytes of a second, other compactions wait at once. No job waits while writers are throttled: the
//! limiter smooths I/O, but never causes a stall.
//!
//! Concurrency: one lock for a few instructions. A waiting job holds none.

use std::time::Duration;

use crate::base::sync::Mutex;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::base::{Result, TokenBucket};
use crate::compact::job::{CancelCheck, IoPriority};
use crate::engine::Engine;

/// A waiting job checks this often whether it is still needed.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The token bucket of all jobs.
#[derive(Debug, Default)]
pub(in crate::engine) struct RateLimiter {
    /// Bytes per second; 0 for no limit.
    rate: AtomicU64,
    bucket: Mutex<TokenBucket>,
}

impl RateLimiter {
    pub(in crate::engine) fn new(bytes_per_second: u64) -> Self {
        Self {
            rate: AtomicU64::new(bytes_per_second),
            bucket: Mutex::default(),
        }
    }

    /// Changes the limit. Jobs that wait already wait for the rest of their time.
    pub(in crate::engine) fn set_rate(&self, bytes_per_second: u64) {
        self.rate.store(bytes_per_second, Ordering::Relaxed);
    }

    /// Takes `bytes`. Returns how long the job must wait for them at `rate` bytes per second.
    fn take(&self, class: IoPriority, bytes: u64, rate: f64, now: Duration) -> Duration {
        let owed = self.bucket.lock().take(bytes, rate, now);
        let owed_freely = match class {
            IoPriority::Flush => return Duration::ZERO,
            IoPriority::Level0 => rate,
            IoPriority::Compaction => 0.0,
        };
        Duration::from_secs_f64((owed - owed_freely).max(0.0) / rate)
    }
}

impl Engine {
    /// Limits what compactions and garbage collections write, in bytes per second; 0 for no limit.
    pub(crate) fn set_compaction_rate(&self, bytes_per_second: u64) {
        self.background.rate_limiter.set_rate(bytes_per_second);
    }

    /// Waits until a job of `class` may continue after it has written `bytes`.
    ///
    /// # Errors
    /// The error of `wanted`, if it fails during the wait.
    pub(in crate::engine) fn limit_rate(
        &self,
        class: IoPriority,
        bytes: u64,
        wanted: CancelCheck<'_>,
    ) -> Result<()> {
        wanted()?;
        let rate = self.background.rate_limiter.rate.load(Ordering::Relaxed);
        if rate == 0 {
            return Ok(());
        }
        let now = self.options.runtime.now();
        let budget = &self.background.rate_limiter;
        let mut rest = budget.take(class, bytes, rate as f64, now);
        while !rest.is_zero() && !self.are_writers_throttled() {
            let piece = rest.min(POLL_INTERVAL);
            self.options.runtime.sleep(piece);
            rest -= piece;
            wanted()?;
        }
        Ok(())
    }

    fn are_writers_throttled(&self) -> bool {
        let keyspaces = self.keyspaces.load();
        let mut throttles = keyspaces.iter().map(|keyspace| keyspace.throttle());
        self.background.shared_throttle.load().fraction > 0.0
            || throttles.any(|throttle| throttle.fraction > 0.0)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{IoPriority, RateLimiter};
    use std::time::Duration;

    const RATE: f64 = 1000.0;

    #[test]
    fn each_class_waits_for_its_own_limit() {
        let budget = RateLimiter::default();
        let at = |millis| Duration::from_millis(millis);
        // The bucket holds a quarter of a second, however long it was left to fill.
        assert_eq!(
            budget.take(IoPriority::Compaction, 250, RATE, at(9000)),
            at(0)
        );
        assert_eq!(
            budget.take(IoPriority::Compaction, 100, RATE, at(9000)),
            at(100)
        );
        assert_eq!(budget.take(IoPriority::Flush, 400, RATE, at(9000)), at(0));
        assert_eq!(budget.take(IoPriority::Level0, 500, RATE, at(9000)), at(0));
        assert_eq!(
            budget.take(IoPriority::Level0, 200, RATE, at(9000)),
            at(200)
        );
        assert_eq!(
            budget.take(IoPriority::Compaction, 0, RATE, at(9700)),
            at(500)
        );
        assert_eq!(
            budget.take(IoPriority::Compaction, 0, RATE, at(10_200)),
            at(0)
        );
    }
}

//! The I/O budget of background work: bytes per second that jobs may write.
//!
//! One bucket for all jobs. Every byte is taken out of it, but who waits when it is empty depends on
//! what the bytes are for: a flush never, a merge of level 0 only once a second's worth is owed,
//! other merges at once. And nobody waits while writers are being held up for lack of merging: the
//! budget smooths I/O, it never costs a stall.
//!
//! Concurrency: one lock for a few instructions; waiting holds none.

use std::time::Duration;

use crate::base::Result;
use crate::base::sync::Mutex;
use crate::compact::output::{IoClass, Wanted};
use crate::engine::Engine;

/// The bucket holds at most what comes in this time.
const BURST: f64 = 0.25;

/// A wait looks this often whether it is still wanted.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// What jobs may write at present.
#[derive(Debug, Default)]
pub(in crate::engine) struct RateLimiter(Mutex<Bucket>);

#[derive(Debug, Default)]
struct Bucket {
    /// Bytes that may be written; negative where more were written already.
    bytes: f64,
    filled: Duration,
}

impl RateLimiter {
    /// Takes `bytes`, and tells how long the taker must wait for them at `rate` bytes per second.
    fn take(&self, class: IoClass, bytes: u64, rate: f64, now: Duration) -> Duration {
        let mut bucket = self.0.lock();
        let elapsed = now.saturating_sub(bucket.filled).as_secs_f64();
        bucket.filled = now;
        bucket.bytes = (bucket.bytes + elapsed * rate).min(rate * BURST) - bytes as f64;
        let owed_freely = match class {
            IoClass::Flush => return Duration::ZERO,
            IoClass::Level0 => rate,
            IoClass::Merge => 0.0,
        };
        Duration::from_secs_f64((-bucket.bytes - owed_freely).max(0.0) / rate)
    }
}

impl Engine {
    /// Waits until a job of `class` may go on, having written `bytes`.
    ///
    /// # Errors
    /// That of `wanted`, if it fails before.
    pub(in crate::engine) fn limit_rate(
        &self,
        class: IoClass,
        bytes: u64,
        wanted: Wanted<'_>,
    ) -> Result<()> {
        wanted()?;
        let rate = self.options.compaction_bytes_per_second;
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
    use super::{IoClass, RateLimiter};
    use std::time::Duration;

    const RATE: f64 = 1000.0;

    #[test]
    fn who_waits_and_how_long() {
        let budget = RateLimiter::default();
        let at = |millis| Duration::from_millis(millis);
        // A quarter of a second's worth has come together, however long it had.
        assert_eq!(budget.take(IoClass::Merge, 250, RATE, at(9000)), at(0));
        assert_eq!(budget.take(IoClass::Merge, 100, RATE, at(9000)), at(100));
        assert_eq!(budget.take(IoClass::Flush, 400, RATE, at(9000)), at(0));
        assert_eq!(budget.take(IoClass::Level0, 500, RATE, at(9000)), at(0));
        assert_eq!(budget.take(IoClass::Level0, 200, RATE, at(9000)), at(200));
        assert_eq!(budget.take(IoClass::Merge, 0, RATE, at(9700)), at(500));
        assert_eq!(budget.take(IoClass::Merge, 0, RATE, at(10_200)), at(0));
    }
}

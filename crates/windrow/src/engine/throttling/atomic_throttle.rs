//! The state of throttling that all threads share: throttles and the clock of delays.
//!
//! Concurrency: relaxed atomics; a reader may see a throttle that is one change old.

use std::time::Duration;

use crate::base::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::policy::{StallCause, Throttle};

/// The longest delay of a write of any size.
pub(super) const SLEEP_MAX: Duration = Duration::from_millis(500);

/// A throttle that any thread may read and replace.
#[derive(Debug, Default)]
pub(in crate::engine) struct AtomicThrottle(AtomicU32);

/// The stored fraction at which writers stop.
const STOP: f64 = 65535.0;

impl AtomicThrottle {
    #[inline]
    pub(in crate::engine) fn load(&self) -> Throttle {
        match self.0.load(Ordering::Relaxed) {
            0 => Throttle::NONE,
            packed => Throttle {
                cause: StallCause::ALL[packed as usize >> 16],
                fraction: f64::from(packed & 0xffff) / STOP,
            },
        }
    }

    pub(in crate::engine) fn store(&self, throttle: Throttle) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the fraction is from 0 to 1"
        )]
        let fraction = (throttle.fraction * STOP) as u32;
        let cause = match fraction {
            0 => 0,
            _ => (throttle.cause as u32) << 16,
        };
        self.0.store(cause | fraction, Ordering::Relaxed);
    }
}

/// The time at which the delays of all writers end, in nanoseconds of the runtime's clock.
#[derive(Debug, Default)]
pub(in crate::engine) struct DelayClock(AtomicU64);

impl DelayClock {
    /// Adds `delay` at `now`. Returns how long the writer must wait.
    pub(super) fn add(&self, now: Duration, delay: Duration) -> Duration {
        let (now, delay) = (nanos(now), nanos(delay));
        let latest = now.saturating_add(nanos(SLEEP_MAX));
        let add = |paid: u64| paid.max(now).saturating_add(delay).min(latest);
        let before = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |paid| Some(add(paid)));
        Duration::from_nanos(before.map_or(0, |paid| add(paid) - now))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{AtomicThrottle, DelayClock, SLEEP_MAX};
    use crate::policy::{StallCause, Throttle};
    use std::time::Duration;

    #[test]
    fn a_throttle_is_read_as_stored() {
        let atomic = AtomicThrottle::default();
        assert!(atomic.load().fraction == 0.0);
        for cause in StallCause::ALL {
            for fraction in [0.0, 0.25, 0.999, 1.0] {
                atomic.store(Throttle { cause, fraction });
                let read = atomic.load();
                assert!((read.fraction - fraction).abs() < 1e-4);
                assert!(fraction == 0.0 || read.cause == cause);
                assert_eq!(read.is_stop(), fraction >= 1.0);
            }
        }
    }

    #[test]
    fn delays_of_writers_add_up() {
        let paid = DelayClock::default();
        let millis = Duration::from_millis;
        let now = Duration::from_secs(5);
        assert_eq!(paid.add(now, millis(2)), millis(2));
        // Another writer waits after the first.
        assert_eq!(paid.add(now, millis(3)), millis(5));
        assert_eq!(paid.add(now + millis(4), millis(1)), millis(2));
        // Delays that have ended no longer count.
        assert_eq!(paid.add(now + millis(400), millis(1)), millis(1));
        assert_eq!(paid.add(now + millis(400), Duration::MAX), SLEEP_MAX);
    }
}

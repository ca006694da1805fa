//! Operations at a steady rate.

use std::thread;
use std::time::{Duration, Instant};

/// When the next operation of one thread is due.
#[derive(Debug)]
pub(crate) struct Pace {
    began: Instant,
    /// Operations in a second; as many as can be done where absent.
    rate: Option<f64>,
    begun: u64,
}

/// Who is ahead by less goes on: threads do not sleep for shorter.
const AHEAD_MAX: Duration = Duration::from_micros(100);

impl Pace {
    pub(crate) fn new(rate: Option<f64>) -> Self {
        Self {
            began: Instant::now(),
            rate,
            begun: 0,
        }
    }

    /// Waits until `operations` more are due; where it has waited, sets `start` to now.
    #[inline]
    pub(crate) fn wait(&mut self, start: &mut Instant, operations: u64) {
        if self.rate.is_none() {
            return;
        }
        let elapsed = self.began.elapsed();
        if let Some(ahead) = self.ahead(elapsed, operations) {
            thread::sleep(ahead);
            *start = Instant::now();
        }
    }

    /// How long to wait with the next operations, so long after the beginning.
    fn ahead(&mut self, elapsed: Duration, operations: u64) -> Option<Duration> {
        let rate = self.rate?;
        let due = Duration::from_secs_f64(self.begun as f64 / rate);
        self.begun += operations;
        let ahead = due.saturating_sub(elapsed);
        (ahead > AHEAD_MAX).then_some(ahead)
    }
}

#[cfg(test)]
mod tests {
    use super::{AHEAD_MAX, Pace};
    use std::time::Duration;

    #[test]
    fn operations_are_due_one_by_one() {
        let mut pace = Pace::new(Some(100.0));
        let (step, zero) = (Duration::from_millis(10), Duration::ZERO);
        assert_eq!(pace.ahead(zero, 1), None);
        assert_eq!(pace.ahead(zero, 1), Some(step));
        assert_eq!(pace.ahead(step, 1), Some(step));
        // Who is late, or hardly early, goes on, and what was missed is made up for.
        assert_eq!(pace.ahead((3 * step).saturating_sub(AHEAD_MAX), 1), None);
        assert_eq!(pace.ahead(9 * step, 1), None);
        assert_eq!(pace.ahead(zero, 1), Some(5 * step));
        assert_eq!(Pace::new(None).ahead(zero, 1), None);
    }
}

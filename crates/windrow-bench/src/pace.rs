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

    /// Waits until one more operation is due; where it has waited, sets `start` to now.
    #[inline]
    pub(crate) fn wait(&mut self, start: &mut Instant) {
        let Some(rate) = self.rate else { return };
        let due = Duration::from_secs_f64(self.begun as f64 / rate);
        self.begun += 1;
        let ahead = due.saturating_sub(self.began.elapsed());
        if ahead > AHEAD_MAX {
            thread::sleep(ahead);
            *start = Instant::now();
        }
    }
}

//! A rate limiter for operations: a steady rate or a wave.
//!
//! The clock and not the previous operation determines when an operation is due. A stall of the engine does not
//! postpone the next operations, and their delay counts in their latencies. A [`RateLimiter`] belongs to one
//! thread.

use std::time::{Duration, Instant};

/// The limit on operations per second.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Rate {
    /// No limit.
    #[default]
    Free,
    Steady(f64),
    Wave(Wave),
}

/// A rate of a sin(b t + c) + d at the second t, which changes at intervals.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wave {
    pub(crate) a: f64,
    pub(crate) b: f64,
    pub(crate) c: f64,
    pub(crate) d: f64,
    pub(crate) interval: Duration,
}

impl Wave {
    /// Whether the rate is a number at every second, and above 0 at some.
    pub(crate) fn is_rate(&self) -> bool {
        [self.a, self.b, self.c, self.d]
            .iter()
            .all(|number| number.is_finite())
            && self.a.abs() + self.d > 0.0
    }

    /// The rate in an interval.
    fn within(&self, interval: f64) -> f64 {
        // A wave at or below 0 gives almost no operations.
        const RATE_MIN: f64 = 1e-3;
        let phase = self.b * interval * self.interval.as_secs_f64() + self.c;
        (self.a * phase.sin() + self.d).max(RATE_MIN)
    }

    /// The second at which `operations` more are due after an operation that was due at the second `due`.
    fn after(&self, due: f64, operations: f64) -> f64 {
        let length = self.interval.as_secs_f64();
        let mut number = (due / length).floor();
        let (mut from, mut left) = (due, operations);
        loop {
            let rate = self.within(number);
            number += 1.0;
            let until = (number * length).max(from);
            let fit = rate * (until - from);
            if left <= fit {
                return from + left / rate;
            }
            left -= fit;
            from = until;
        }
    }
}

impl Rate {
    /// The rate of one of `threads`.
    pub(crate) fn shared(self, threads: u64) -> Self {
        let threads = threads as f64;
        match self {
            Self::Free => Self::Free,
            Self::Steady(rate) => Self::Steady(rate / threads),
            Self::Wave(wave) => Self::Wave(Wave {
                a: wave.a / threads,
                d: wave.d / threads,
                ..wave
            }),
        }
    }
}

/// The time at which the next operation of a thread is due. A late operation stays due.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    began: Instant,
    rate: Rate,
    /// The time at which the next operation is due, in seconds from the start.
    due: f64,
    /// The end of the last sleep, from the start. Delays before it are those of the sleep, not of an operation.
    woke: Duration,
}

/// The next action of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The next operations may begin. `late` is their delay by earlier operations, which counts in their latencies,
    /// as a client would measure it.
    Begin { late: Duration },
    /// The thread sleeps for this time.
    Sleep(Duration),
}

/// A thread that is ahead by less does not sleep: sleeps are not shorter.
const AHEAD_MAX: Duration = Duration::from_micros(100);

impl RateLimiter {
    pub(crate) fn new(rate: Rate) -> Self {
        Self {
            began: Instant::now(),
            rate,
            due: 0.0,
            woke: Duration::ZERO,
        }
    }

    /// Whether the rate has a limit.
    pub(crate) fn is_free(&self) -> bool {
        matches!(self.rate, Rate::Free)
    }

    /// The next action before `operations`.
    pub(crate) fn turn(&mut self, operations: u64) -> Turn {
        self.turn_at(self.began.elapsed(), operations)
    }

    /// Records the end of a sleep.
    pub(crate) fn wake(&mut self) {
        self.woke = self.began.elapsed();
    }

    fn turn_at(&mut self, now: Duration, operations: u64) -> Turn {
        let due = Duration::try_from_secs_f64(self.due).unwrap_or(Duration::MAX);
        let ahead = due.saturating_sub(now);
        if ahead > AHEAD_MAX {
            return Turn::Sleep(ahead);
        }
        let operations = operations as f64;
        match self.rate {
            Rate::Free => {}
            Rate::Steady(rate) => self.due += operations / rate,
            Rate::Wave(wave) => self.due = wave.after(self.due, operations),
        }
        Turn::Begin {
            late: now.saturating_sub(due.max(self.woke)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: Duration = Duration::from_millis(1);

    fn begin(late: Duration) -> Turn {
        Turn::Begin { late }
    }

    #[test]
    fn operations_are_due_one_by_one() {
        let mut rate_limiter = RateLimiter::new(Rate::Steady(100.0));
        let (step, zero) = (10 * MILLI, Duration::ZERO);
        assert_eq!(rate_limiter.turn_at(zero, 1), begin(zero));
        assert_eq!(rate_limiter.turn_at(zero, 1), Turn::Sleep(step));
        assert_eq!(rate_limiter.turn_at(step, 1), begin(zero));
        // A thread that is early by little does not sleep.
        assert_eq!(
            rate_limiter.turn_at((2 * step).saturating_sub(AHEAD_MAX), 1),
            begin(zero)
        );
        assert_eq!(RateLimiter::new(Rate::Free).turn_at(zero, 1), begin(zero));
    }

    #[test]
    fn who_is_held_up_is_late_and_makes_up_for_it() {
        let mut rate_limiter = RateLimiter::new(Rate::Steady(100.0));
        assert_eq!(
            rate_limiter.turn_at(Duration::ZERO, 1),
            begin(Duration::ZERO)
        );
        // The first lasted 35 ms: those of 10, 20 and 30 are late.
        assert_eq!(rate_limiter.turn_at(35 * MILLI, 1), begin(25 * MILLI));
        assert_eq!(rate_limiter.turn_at(35 * MILLI, 1), begin(15 * MILLI));
        assert_eq!(rate_limiter.turn_at(35 * MILLI, 1), begin(5 * MILLI));
        assert_eq!(rate_limiter.turn_at(35 * MILLI, 1), Turn::Sleep(5 * MILLI));
        // The sleep was late; no operation was.
        rate_limiter.woke = 43 * MILLI;
        assert_eq!(rate_limiter.turn_at(44 * MILLI, 1), begin(MILLI));
    }

    #[test]
    fn a_batch_is_due_as_its_entries() {
        let mut rate_limiter = RateLimiter::new(Rate::Steady(100.0));
        assert_eq!(
            rate_limiter.turn_at(Duration::ZERO, 10),
            begin(Duration::ZERO)
        );
        let nap = rate_limiter.turn_at(Duration::ZERO, 10);
        assert_eq!(nap, Turn::Sleep(100 * MILLI));
    }

    #[test]
    fn a_wave_changes_its_rate_at_its_intervals() {
        let wave = Wave {
            a: 50.0,
            b: std::f64::consts::FRAC_PI_2,
            c: 0.0,
            d: 100.0,
            interval: Duration::from_secs(1),
        };
        let rates = [0.0, 1.0, 2.0, 3.0].map(|interval| wave.within(interval).round());
        assert_eq!(format!("{rates:?}"), "[100.0, 150.0, 100.0, 50.0]");
        let at = |due, operations| (wave.after(due, operations) * 1e6).round();
        assert_eq!(at(0.0, 1.0).to_string(), "10000");
        // 100 in the first second, and then 75 at 150 a second.
        assert_eq!(at(0.0, 175.0).to_string(), "1500000");
        assert_eq!(at(0.5, 50.0 + 150.0 + 100.0 + 25.0).to_string(), "3500000");

        // The operations that a stall of three seconds delays stay due: 350, at 50 per second by then.
        let mut rate_limiter = RateLimiter::new(Rate::Wave(wave));
        let mut late = Vec::new();
        while let Turn::Begin { late: one } = rate_limiter.turn_at(3000 * MILLI, 1) {
            late.push(one);
        }
        assert_eq!(late.len(), 351);
        assert_eq!(late[0], 3000 * MILLI);
        let mut halved = RateLimiter::new(Rate::Wave(wave).shared(2));
        assert_eq!(halved.turn_at(Duration::ZERO, 1), begin(Duration::ZERO));
        assert_eq!(halved.turn_at(Duration::ZERO, 1), Turn::Sleep(20 * MILLI));
    }
}

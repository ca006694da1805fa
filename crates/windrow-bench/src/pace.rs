//! Operations at a rate: steady, or one that rises and falls.

use std::thread;
use std::time::{Duration, Instant};

/// Operations in a second, at most.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Rate {
    /// As many as can be done.
    #[default]
    Free,
    Steady(f64),
    Wave(Wave),
}

/// A rate of a sin(b t + c) + d at the second t, taken anew at intervals.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wave {
    pub(crate) a: f64,
    pub(crate) b: f64,
    pub(crate) c: f64,
    pub(crate) d: f64,
    pub(crate) interval: Duration,
}

impl Wave {
    fn at(&self, elapsed: Duration) -> f64 {
        // Where the wave is below nothing, hardly anything.
        const RATE_MIN: f64 = 1e-3;
        let phase = self.b * elapsed.as_secs_f64() + self.c;
        (self.a * phase.sin() + self.d).max(RATE_MIN)
    }
}

impl Rate {
    /// The share of one of `threads`.
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

/// When the next operation of one thread is due.
#[derive(Debug)]
pub(crate) struct Pace {
    began: Instant,
    /// When the last sleep ended, from the beginning: the sleeper, and no operation, was late until then.
    woke: Duration,
    rate: Rate,
    /// Since when the rate holds, from the beginning.
    since: Duration,
    /// Operations since then.
    begun: u64,
}

/// Who is ahead by less goes on: threads do not sleep for shorter.
const AHEAD_MAX: Duration = Duration::from_micros(100);

impl Pace {
    pub(crate) fn new(rate: Rate) -> Self {
        Self {
            began: Instant::now(),
            woke: Duration::ZERO,
            rate,
            since: Duration::ZERO,
            begun: 0,
        }
    }

    /// Waits until `operations` more are due, and sets `start` to when they begin: to now, or where those
    /// before them took so long that they are late, to when they were due. The time in between is theirs, as
    /// it is for whoever waits for an answer.
    #[inline]
    pub(crate) fn wait(&mut self, start: &mut Instant, operations: u64) {
        if matches!(self.rate, Rate::Free) {
            return;
        }
        let elapsed = self.began.elapsed();
        let (due, nap) = self.next(elapsed, operations);
        let begins = if nap.is_zero() {
            self.begins(due, elapsed)
        } else {
            thread::sleep(nap);
            self.woke = self.began.elapsed();
            self.woke
        };
        *start = self.began + begins;
    }

    /// From when an operation is measured that was due at `due` and can begin at `now`.
    fn begins(&self, due: Duration, now: Duration) -> Duration {
        due.max(self.woke).min(now)
    }

    /// When the next operations are due, and how long to sleep until then, both so long after the beginning.
    fn next(&mut self, elapsed: Duration, operations: u64) -> (Duration, Duration) {
        let mut nap_max = Duration::MAX;
        let rate = match self.rate {
            Rate::Free => return (elapsed, Duration::ZERO),
            Rate::Steady(rate) => rate,
            Rate::Wave(wave) => {
                if elapsed.saturating_sub(self.since) >= wave.interval {
                    (self.since, self.begun) = (elapsed, 0);
                }
                // By then there is another rate.
                nap_max = (self.since + wave.interval).saturating_sub(elapsed);
                wave.at(self.since)
            }
        };
        let due = Duration::try_from_secs_f64(self.begun as f64 / rate).unwrap_or(Duration::MAX);
        self.begun += operations;
        let due = self.since.saturating_add(due);
        let ahead = due.saturating_sub(elapsed);
        if ahead > AHEAD_MAX {
            (due, ahead.min(nap_max))
        } else {
            (due, Duration::ZERO)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long to sleep, where that is so.
    fn nap(pace: &mut Pace, elapsed: Duration, operations: u64) -> Option<Duration> {
        let (_, nap) = pace.next(elapsed, operations);
        (!nap.is_zero()).then_some(nap)
    }

    #[test]
    fn operations_are_due_one_by_one() {
        let mut pace = Pace::new(Rate::Steady(100.0));
        let (step, zero) = (Duration::from_millis(10), Duration::ZERO);
        assert_eq!(nap(&mut pace, zero, 1), None);
        assert_eq!(nap(&mut pace, zero, 1), Some(step));
        assert_eq!(nap(&mut pace, step, 1), Some(step));
        // Who is late, or hardly early, goes on, and what was missed is made up for.
        let early = (3 * step).saturating_sub(AHEAD_MAX);
        assert_eq!(nap(&mut pace, early, 1), None);
        assert_eq!(pace.next(9 * step, 1), (4 * step, zero));
        assert_eq!(nap(&mut pace, zero, 1), Some(5 * step));
        assert_eq!(nap(&mut Pace::new(Rate::Free), zero, 1), None);
    }

    #[test]
    fn who_is_held_up_by_those_before_is_measured_from_when_it_was_due() {
        let millis = Duration::from_millis;
        let mut pace = Pace::new(Rate::Steady(100.0));
        pace.woke = millis(20);
        // The one before lasted until 45.
        assert_eq!(pace.begins(millis(30), millis(45)), millis(30));
        // The sleeper was late itself; no operation was.
        assert_eq!(pace.begins(millis(19), millis(25)), millis(20));
        // It may begin a little early, and is measured from there.
        assert_eq!(pace.begins(millis(30), millis(29)), millis(29));
    }

    #[test]
    fn a_batch_is_due_as_its_entries() {
        let mut pace = Pace::new(Rate::Steady(100.0));
        assert_eq!(nap(&mut pace, Duration::ZERO, 10), None);
        let ahead = nap(&mut pace, Duration::ZERO, 10);
        assert_eq!(ahead, Some(Duration::from_millis(100)));
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
        let rates = [0, 1, 2, 3].map(|second| wave.at(Duration::from_secs(second)).round());
        assert_eq!(format!("{rates:?}"), "[100.0, 150.0, 100.0, 50.0]");
        let mut pace = Pace::new(Rate::Wave(wave).shared(2));
        let millis = Duration::from_millis;
        // 50 a second, then 75.
        assert_eq!(nap(&mut pace, millis(0), 1), None);
        assert_eq!(nap(&mut pace, millis(0), 10), Some(millis(20)));
        assert_eq!(nap(&mut pace, millis(1000), 75), None);
        let nearly = nap(&mut pace, millis(1000), 75).unwrap();
        assert!(nearly > millis(999) && nearly <= millis(1000));
        // Nobody sleeps beyond an interval.
        assert!(nap(&mut pace, millis(1500), 1).unwrap() <= millis(500));
    }
}

//! When entries expire, as an estimate from the first, the mean and the last expiry.
//!
//! Times are counts of writes. Entries expire at one rate up to the mean and at another one after it. A merge takes away
//! those that have expired, so the others expire later.

/// Entries that expire.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Lifetimes {
    pub(super) entries: f64,
    first: f64,
    mean: f64,
    last: f64,
}

impl Lifetimes {
    /// Entries that expire at one rate between these times.
    pub(super) fn even(entries: f64, first: f64, last: f64) -> Self {
        Self {
            entries,
            first,
            mean: first.midpoint(last),
            last,
        }
    }

    /// The same, with so many times the entries.
    pub(super) fn times(self, times: f64) -> Self {
        Self {
            entries: self.entries * times,
            ..self
        }
    }

    /// Both together.
    pub(super) fn and(self, other: Self) -> Self {
        if self.entries <= 0.0 {
            return other;
        }
        if other.entries <= 0.0 {
            return self;
        }
        let entries = self.entries + other.entries;
        let (first, last) = (self.first.min(other.first), self.last.max(other.last));
        let mean = (self.entries * self.mean + other.entries * other.mean) / entries;
        Self {
            entries,
            first,
            mean: mean.clamp(first, last),
            last,
        }
    }

    /// Whether all of them have expired at `now`.
    pub(super) fn are_expired(self, now: f64) -> bool {
        self.last <= now
    }

    /// How many have expired at `now`.
    pub(super) fn expired(self, now: f64) -> f64 {
        if self.are_expired(now) {
            return self.entries;
        }
        if now <= self.first {
            return 0.0;
        }
        let before_mean = self.before_mean();
        if now <= self.mean {
            return before_mean * (now - self.first) / (self.mean - self.first);
        }
        let rest = self.entries - before_mean;
        before_mean + rest * (now - self.mean) / (self.last - self.mean)
    }

    /// How many expire up to the mean, if it is not the last expiry.
    fn before_mean(self) -> f64 {
        self.entries * (self.last - self.mean) / (self.last - self.first)
    }

    /// Takes away what has expired at `now`. Returns how many these are.
    pub(super) fn expire(&mut self, now: f64) -> f64 {
        let expired = self.expired(now);
        if expired <= 0.0 {
            return 0.0;
        }
        if self.are_expired(now) {
            *self = Self::default();
            return expired;
        }
        let before_mean = self.before_mean();
        // The sum of the times at which they have expired.
        let times = if now <= self.mean {
            expired * self.first.midpoint(now)
        } else {
            let after = expired - before_mean;
            before_mean * self.first.midpoint(self.mean) + after * self.mean.midpoint(now)
        };
        let entries = self.entries - expired;
        if entries <= 0.0 {
            *self = Self::default();
            return expired;
        }
        let mean = (self.entries * self.mean - times) / entries;
        self.first = self.first.max(now);
        self.mean = mean.clamp(self.first, self.last);
        self.entries = entries;
        expired
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_near(one: f64, other: f64) {
        assert!((one - other).abs() < 1e-6, "{one} and {other}");
    }

    #[test]
    fn entries_expire_from_the_first_time_to_the_last() {
        let even = Lifetimes::even(100.0, 1000.0, 2000.0);
        for (now, expired) in [
            (500.0, 0.0),
            (1000.0, 0.0),
            (1250.0, 25.0),
            (1500.0, 50.0),
            (1900.0, 90.0),
            (2000.0, 100.0),
            (9000.0, 100.0),
        ] {
            assert_near(even.expired(now), expired);
        }
        assert!(even.are_expired(2000.0) && !even.are_expired(1999.0));
    }

    /// It does not matter whether a merge has taken away what expired before.
    #[test]
    fn what_is_left_expires_as_before() {
        for now in [1100.0, 1500.0, 1700.0] {
            let mut left = Lifetimes::even(100.0, 1000.0, 2000.0);
            let gone = left.expire(now);
            for later in [1800.0, 1950.0, 2000.0] {
                let all = Lifetimes::even(100.0, 1000.0, 2000.0).expired(later);
                assert_near(gone + left.expired(later), all);
            }
            assert_near(left.expire(now), 0.0);
            assert_near(left.expire(2000.0) + gone, 100.0);
            assert_eq!(left, Lifetimes::default());
        }
    }

    #[test]
    fn none_expire_before_the_first_time() {
        let never = Lifetimes::even(0.0, 1e19, 1e19);
        let at_once = Lifetimes::even(10.0, 1000.0, 1000.0);
        for mut lifetimes in [never, at_once, Lifetimes::default()] {
            assert_near(lifetimes.expired(999.0), 0.0);
            assert_near(lifetimes.expire(999.0), 0.0);
        }
        assert_near(at_once.expired(1000.0), 10.0);
    }

    #[test]
    fn lifetimes_add_up() {
        let (old, new) = (
            Lifetimes::even(30.0, 1000.0, 1200.0),
            Lifetimes::even(10.0, 2000.0, 2200.0),
        );
        let both = old.and(new);
        assert_near(both.entries, 40.0);
        assert_near(both.mean, 1350.0);
        assert!(!both.are_expired(2100.0) && both.are_expired(2200.0));
        assert_eq!(old.and(Lifetimes::default()), old);
        assert_eq!(Lifetimes::default().and(new), new);
        assert_near(old.times(0.5).expired(1100.0), 7.5);
    }
}

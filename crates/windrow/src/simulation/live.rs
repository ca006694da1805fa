//! How many keys are live, as an expectation.
//!
//! The values that one flush writes and that expire are a *cohort*. What a later flush supersedes lies evenly among the
//! keys, so it takes the same part of each older cohort. One product over all flushes says how much of each is left, so no
//! flush visits them all.
//!
//! I1. All values have one time to live, so the cohorts of a queue expire in their order.

use std::collections::VecDeque;

use super::lifetimes::Lifetimes;
use super::mass::Mass;

/// The product begins anew below this, long before it is too small for a number.
const KEPT_MIN: f64 = 1e-200;

/// The live keys of a class.
#[derive(Debug, Clone)]
pub(super) struct LiveKeys {
    pub(super) keys: f64,
    /// Those of them that expire, by cohort, oldest first. Each has `kept` times the entries that stand here.
    expiring: VecDeque<Lifetimes>,
    /// The product of the parts that flushes have left of the keys before them.
    kept: f64,
}

impl LiveKeys {
    /// No keys.
    pub(super) fn new() -> Self {
        Self {
            keys: 0.0,
            expiring: VecDeque::new(),
            kept: 1.0,
        }
    }

    /// Puts the mass of a flush over the keys before it, of `class_keys` in all. Its range tombstones cover the part
    /// `covered` of them. What has expired at `now` is no longer live.
    pub(super) fn put(&mut self, newest: Mass, class_keys: f64, covered: f64, now: f64) {
        let kept = newest.kept(class_keys, covered);
        self.keys = self.keys * kept + newest.entries(class_keys) - newest.tombstones;
        self.kept *= kept;
        if self.kept < KEPT_MIN {
            for cohort in &mut self.expiring {
                *cohort = cohort.times(self.kept);
            }
            self.kept = 1.0;
        }
        let cohort = newest.lifetimes.times(1.0 / self.kept);
        self.expiring.push_back(cohort);
        while let Some(oldest) = self.expiring.front_mut() {
            self.keys -= oldest.expire(now) * self.kept;
            if oldest.entries > 0.0 {
                return;
            }
            self.expiring.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: f64 = 1000.0;

    /// Flushes of 100 keys, one in each unit of time, and range deletes before them. All keys expire after three units.
    fn flush(live: &mut LiveKeys, covered: f64, now: f64) {
        let newest = Mass {
            inserts: 100.0,
            lifetimes: Lifetimes::even(100.0, now + 2.0, now + 3.0),
            ..Mass::default()
        };
        live.put(newest, KEYS, covered, now);
    }

    fn assert_near(one: f64, other: f64) {
        assert!((one - other).abs() < 1e-6, "{one} and {other}");
    }

    /// Over so many flushes the product begins anew three times.
    #[test]
    fn cohorts_shrink_and_expire_in_turn() {
        let (mut live, mut now) = (LiveKeys::new(), 0.0);
        for _ in 0..2500 {
            now += 1.0;
            flush(&mut live, 0.5, now);
            assert!(live.kept >= KEPT_MIN && live.expiring.len() <= 3);
        }
        assert_near(live.keys, 175.0);
        for left in [150.0, 100.0, 0.0, 0.0] {
            now += 1.0;
            live.put(Mass::default(), KEYS, 0.0, now);
            assert_near(live.keys, left);
        }
        assert!(live.expiring.is_empty());
    }

    /// A range delete of all keys, and tombstones.
    #[test]
    fn deleted_keys_do_not_expire() {
        let mut live = LiveKeys::new();
        flush(&mut live, 0.0, 1.0);
        flush(&mut live, 1.0, 2.0);
        assert_near(live.keys, 100.0);
        // Three of ten keys are drawn and deleted.
        let drawn = KEYS * -f64::ln(0.7);
        let deletes = Mass {
            draws: drawn,
            tombstones: 300.0,
            ..Mass::default()
        };
        live.put(deletes, KEYS, 0.0, 3.0);
        assert_near(live.keys, 70.0);
        live.put(Mass::default(), KEYS, 0.0, 4.0);
        assert_near(live.keys, 70.0);
        live.put(Mass::default(), KEYS, 0.0, 4.5);
        assert_near(live.keys, 35.0);
        live.put(Mass::default(), KEYS, 0.0, 5.0);
        assert_near(live.keys, 0.0);
    }
}

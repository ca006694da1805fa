//! How many bytes of some files have expired at each moment, by the [estimate](crate::table::Expiring::expired_bytes) of each
//! file. The sum of the estimates is asked for without a look at the files.
//!
//! The estimate of a file grows at one rate up to its mean expiry and at another one up to its last expiry. So the sum
//! grows at a constant rate between two neighbours of all these moments.
//!
//! Concurrency: immutable.

use crate::base::Moment;
use crate::table::Expiring;

/// A moment from which on the sum grows at another rate.
#[derive(Debug, Clone, Copy, Default)]
struct Knot {
    at: Moment,
    /// The sum then.
    bytes: f64,
    /// By how much the sum grows with each millisecond after it.
    rate: f64,
}

/// The sum of the estimates of some files.
#[derive(Debug, Default)]
pub(super) struct ExpiryCurve {
    /// By moment.
    knots: Box<[Knot]>,
}

impl ExpiryCurve {
    /// For files with these entries.
    pub(super) fn new(files: impl Iterator<Item = Expiring>) -> Self {
        // What each moment adds to the sum and to its rate.
        let mut changes = Vec::new();
        for file in files {
            let at_mean = file.bytes_at_mean();
            let parts = [
                (file.earliest, file.mean, at_mean),
                (file.mean, file.latest, file.bytes - at_mean),
            ];
            for (from, to, bytes) in parts {
                let bytes = bytes as f64;
                if from == to {
                    changes.push(Knot {
                        at: to,
                        bytes,
                        rate: 0.0,
                    });
                    continue;
                }
                let rate = bytes / (to - from) as f64;
                let change = |at, rate| Knot {
                    at,
                    bytes: 0.0,
                    rate,
                };
                changes.extend([change(from, rate), change(to, -rate)]);
            }
        }
        changes.sort_unstable_by_key(|change| change.at);
        let mut now = Knot::default();
        let mut knots: Vec<Knot> = Vec::with_capacity(changes.len());
        for change in changes {
            let passed = (change.at - now.at) as f64;
            now = Knot {
                at: change.at,
                bytes: now.bytes + now.rate * passed + change.bytes,
                rate: now.rate + change.rate,
            };
            match knots.last_mut() {
                Some(last) if last.at == now.at => *last = now,
                _ => knots.push(now),
            }
        }
        Self {
            knots: knots.into(),
        }
    }

    /// The sum at `now`.
    pub(super) fn expired_bytes(&self, now: Moment) -> f64 {
        let behind = self.knots.partition_point(|knot| knot.at <= now);
        let Some(knot) = behind.checked_sub(1).and_then(|at| self.knots.get(at)) else {
            return 0.0;
        };
        let passed = (now - knot.at) as f64;
        match self.knots.get(behind) {
            // Rates cancel one another, except for what rounding leaves.
            None => knot.bytes,
            Some(_) => (knot.bytes + knot.rate * passed).max(0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_curve_is_the_sum_of_the_files(
            files in proptest::collection::vec(
                (0..1_u64 << 34, 0..100_u64, 0..60_u64, any::<u64>()), 0..20,
            ),
            now in 0..200_u64,
        ) {
            let file = |&(bytes, earliest, between, to_mean): &(u64, u64, u64, u64)| Expiring {
                entries: 1,
                bytes,
                earliest,
                latest: earliest + between,
                mean: earliest + to_mean % (between + 1),
            };
            let files: Vec<Expiring> = files.iter().map(file).collect();
            let sum: u64 = files.iter().map(|file| file.expired_bytes(now)).sum();
            let curve = ExpiryCurve::new(files.iter().copied());
            let found = curve.expired_bytes(now);
            // Each file rounds down twice, and sums of numbers lose their last digits.
            let all: u64 = files.iter().map(|file| file.bytes).sum();
            let error = 2.0 * files.len() as f64 + all as f64 * 1e-9;
            prop_assert!((found - sum as f64).abs() <= error, "{} {}", found, sum);
        }
    }
}

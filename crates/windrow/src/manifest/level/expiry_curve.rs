//! How many bytes of some files have expired at each moment, by the [estimate](FileMeta::expired_bytes) of each file. The
//! sum of the estimates is asked for without a look at the files.
//!
//! The estimate of a segment grows at one rate from each of its nine moments to the next. So the sum grows at a constant
//! rate between two neighbours of all these moments, each of which takes 24 bytes.
//!
//! Concurrency: immutable.

use crate::base::Moment;
use crate::table::FileMeta;

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
    /// For these files.
    pub(super) fn new<'a>(files: impl Iterator<Item = &'a FileMeta>) -> Self {
        // What each moment adds to the sum and to its rate.
        let mut changes = Vec::new();
        for (from, to, bytes) in files.flat_map(FileMeta::expiring_parts) {
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

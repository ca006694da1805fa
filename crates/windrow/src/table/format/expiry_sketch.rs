//! By when each part of some bytes has expired, in little memory.
//!
//! Every 512 pairs of an expiry and a number of bytes are sorted and joined to 256 *groups* of neighbours with equal bytes,
//! which count as if they expired with their last member. Two such summaries of equally many pairs are joined in the same
//! way to one of twice as many, so there is at most one of each size, of 4 KiB.
//!
//! I1. What is expired is never overestimated, and underestimated by at most a 256th of all bytes for each size. For a
//!     million entries that is a 21st. For a sum divides at most one group of each summary that is made.
//!
//! Concurrency: owned by one thread.

use std::mem;

use crate::base::Moment;

/// About how many groups a summary has.
const GROUPS: usize = 256;

/// An expiry, and bytes that expire then.
type Pair = (Moment, u64);

/// The expiry of some bytes.
#[derive(Debug, Default)]
pub(super) struct ExpirySketch {
    /// Pairs without a summary.
    fresh: Vec<Pair>,
    /// Summaries of 512 pairs, of 1024, and so on; empty where there is none.
    summaries: Vec<Vec<Pair>>,
}

impl ExpirySketch {
    pub(super) fn add(&mut self, expiry: Moment, bytes: u64) {
        self.fresh.push((expiry, bytes));
        if self.fresh.len() < 2 * GROUPS {
            return;
        }
        let mut summary = joined(mem::take(&mut self.fresh));
        for smaller in &mut self.summaries {
            if smaller.is_empty() {
                *smaller = summary;
                return;
            }
            summary.append(smaller);
            summary = joined(summary);
        }
        self.summaries.push(summary);
    }

    /// The moments by which 1, 2, ... of `N + 1` equal parts of the bytes have expired.
    pub(super) fn quantiles<const N: usize>(&self) -> [Moment; N] {
        let mut pairs: Vec<Pair> = self.summaries.iter().flatten().copied().collect();
        pairs.extend(&self.fresh);
        pairs.sort_unstable();
        let all: u128 = pairs.iter().map(|(_, bytes)| u128::from(*bytes)).sum();
        let mut pairs = pairs.iter();
        let (mut expiry, mut passed) = (0, 0_u128);
        let mut part = 0_u128;
        [(); N].map(|()| {
            part += all;
            while passed * (N as u128 + 1) < part
                && let Some((next, bytes)) = pairs.next()
            {
                expiry = *next;
                passed += u128::from(*bytes);
            }
            expiry
        })
    }
}

/// Groups of neighbours of these pairs, by expiry.
fn joined(mut pairs: Vec<Pair>) -> Vec<Pair> {
    // Summaries are sorted already: the stable sort merges them.
    pairs.sort_by_key(|(expiry, _)| *expiry);
    let all = pairs
        .iter()
        .map(|(_, bytes)| *bytes)
        .fold(0, u64::saturating_add);
    let enough = all.div_ceil(GROUPS as u64);
    let (mut group, mut last) = (0_u64, 0);
    pairs.retain_mut(|(expiry, bytes)| {
        group = group.saturating_add(*bytes);
        last = *expiry;
        let is_enough = group >= enough;
        if is_enough {
            *bytes = mem::take(&mut group);
        }
        is_enough
    });
    if group > 0 {
        pairs.push((last, group));
    }
    pairs.shrink_to_fit();
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds the bytes up that are expired at `now`.
    fn expired<'a>(pairs: impl Iterator<Item = &'a Pair>, now: Moment) -> u64 {
        let expired = pairs.filter(|(expiry, _)| *expiry <= now);
        expired.map(|(_, bytes)| bytes).sum()
    }

    /// Invariant I1, for the orders in which expiries may come.
    #[test]
    fn little_is_underestimated_and_nothing_overestimated() {
        let count = 200_000_u64;
        let orders: [fn(u64) -> Pair; 5] = [
            |number| (number, 100),
            |number| (200_000 - number, 100),
            |number| {
                (
                    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40,
                    1 + number % 7,
                )
            },
            |number| {
                if number % 1000 == 999 {
                    (1 << 40, 5000)
                } else {
                    (number % 3, 50)
                }
            },
            |number| (number % 512 * 100 + number / 512, 1 << (number % 20)),
        ];
        for order in orders {
            let mut sketch = ExpirySketch::default();
            let pairs: Vec<Pair> = (0..count).map(order).collect();
            for (expiry, bytes) in &pairs {
                sketch.add(*expiry, *bytes);
            }
            let held = sketch.summaries.iter().map(Vec::len).sum::<usize>() + sketch.fresh.len();
            assert!(held <= 257 * 9 + 511, "{held}");
            let all = expired(pairs.iter(), Moment::MAX);
            for (now, _) in pairs.iter().step_by(997) {
                let right = expired(pairs.iter(), *now);
                let held = sketch.summaries.iter().flatten().chain(&sketch.fresh);
                let found = expired(held, *now);
                assert!(
                    found <= right && right - found <= all * 9 / 256,
                    "{found} {right} of {all}"
                );
            }
            assert_eq!(
                expired(
                    sketch.summaries.iter().flatten().chain(&sketch.fresh),
                    Moment::MAX
                ),
                all
            );
        }
    }

    #[test]
    fn quantiles_are_the_first_moments_by_which_a_part_has_expired() {
        let mut sketch = ExpirySketch::default();
        for (expiry, bytes) in [(7, 10), (3, 10), (9, 10), (5, 9), (3, 1)] {
            sketch.add(expiry, bytes);
        }
        assert_eq!(sketch.quantiles(), [3, 5, 7]);
        assert_eq!(sketch.quantiles(), [3, 3, 5, 5, 7, 7, 9]);
        assert_eq!(sketch.quantiles(), [5]);
        sketch.add(1, u64::MAX);
        sketch.add(8, u64::MAX);
        assert_eq!(sketch.quantiles(), [1, 5, 8]);
        assert_eq!(ExpirySketch::default().quantiles(), [0]);
    }
}

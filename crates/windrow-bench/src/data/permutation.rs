//! A permutation of the numbers below a bound.
//!
//! Rounds of invertible steps (a multiplication by an odd number, and a shift by at least half of the bits) permute
//! all numbers with the bits of the bound. A result at or above the bound is mapped again (cycle walking), which
//! keeps the map a permutation and takes less than two turns on average.

use crate::data::random::mix;

/// Enough for every bit of the input to reach every bit of the output.
const ROUNDS: usize = 3;

/// A permutation of the numbers below `size`, picked by a seed.
#[derive(Debug, Clone)]
pub(crate) struct Permutation {
    size: u64,
    mask: u64,
    /// At least half the bits, so that shifting twice restores the number.
    shift: u32,
    rounds: [Round; ROUNDS],
}

#[derive(Debug, Clone, Copy, Default)]
struct Round {
    added: u64,
    factor: u64,
    /// The factor's inverse modulo 2^64.
    inverse: u64,
}

impl Permutation {
    /// A permutation of the numbers below `size`, which is at least 1.
    pub(crate) fn new(size: u64, seed: u64) -> Self {
        let bits = u64::BITS - (size - 1).leading_zeros();
        let mut state = seed;
        let rounds = [(); ROUNDS].map(|()| {
            state = mix(state);
            let added = state;
            state = mix(state);
            let factor = state | 1;
            Round {
                added,
                factor,
                inverse: inverse(factor),
            }
        });
        Self {
            size,
            mask: (1_u64 << (bits / 2) << bits.div_ceil(2)).wrapping_sub(1),
            shift: bits.div_ceil(2),
            rounds,
        }
    }

    /// The bound.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// The image of `number`, which is below the size.
    #[inline]
    pub(crate) fn forward(&self, number: u64) -> u64 {
        let mut number = number;
        loop {
            for round in &self.rounds {
                number = number.wrapping_add(round.added) & self.mask;
                number = number.wrapping_mul(round.factor) & self.mask;
                number ^= number >> self.shift;
            }
            if number < self.size {
                return number;
            }
        }
    }

    /// The preimage of `number`, which is below the size.
    #[inline]
    pub(crate) fn backward(&self, number: u64) -> u64 {
        let mut number = number;
        loop {
            for round in self.rounds.iter().rev() {
                number ^= number >> self.shift;
                number = number.wrapping_mul(round.inverse) & self.mask;
                number = number.wrapping_sub(round.added) & self.mask;
            }
            if number < self.size {
                return number;
            }
        }
    }
}

/// The inverse of an odd number modulo 2^64. Each step of Newton's method doubles the correct bits; the number
/// itself has three.
fn inverse(odd: u64) -> u64 {
    (0..5).fold(odd, |inverse, _| {
        inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_met_once_and_found_again() {
        for size in [1, 2, 3, 4, 5, 7, 8, 9, 100, 1000, 1024, 1025] {
            for seed in 0..20 {
                let permutation = Permutation::new(size, seed);
                let mut met: Vec<u64> = (0..size).map(|n| permutation.forward(n)).collect();
                for (number, &image) in (0..).zip(&met) {
                    assert_eq!(permutation.backward(image), number, "{size} {seed}");
                }
                met.sort_unstable();
                assert!(met.into_iter().eq(0..size), "{size} {seed}");
            }
        }
    }

    #[test]
    fn large_numbers_come_back() {
        for size in [10_u64.pow(16), 1 << 53, (1 << 63) + 1, u64::MAX] {
            let permutation = Permutation::new(size, 7);
            for number in (0..2000).chain(size - 2000..size) {
                let image = permutation.forward(number);
                assert!(image < size);
                assert_eq!(permutation.backward(image), number);
            }
        }
    }

    #[test]
    fn neighbours_are_spread_evenly() {
        let size = 1_000_000;
        let permutation = Permutation::new(size, 1);
        let mut tenths = [0; 10];
        for number in 0..10_000 {
            tenths[usize::try_from(permutation.forward(number) * 10 / size).unwrap()] += 1;
        }
        assert!(
            tenths.iter().all(|count| (850..1150).contains(count)),
            "{tenths:?}"
        );
    }
}

//! The exact zipfian distribution: rank r of n has the probability r^-s over the sum of all weights.
//!
//! The sampling inverts the integral of x^-s and rejects the small excess (Hoermann and Derflinger,
//! "Rejection-inversion to generate variates from monotone discrete distributions", 1996). Its time does not depend
//! on n, it needs no sum over the ranks, and it is exact for every rank; the formula of YCSB is exact for the first
//! two only. Rounding changes a probability by less than a thousandth of it, also for the last of 10^10 ranks.

use crate::data::random::Rng;

/// YCSB's exponent.
pub(crate) const EXPONENT: f64 = 0.99;

/// Ranks from 0, the most frequent, to `n - 1`.
#[derive(Debug, Clone)]
pub(crate) struct Zipf {
    n: f64,
    exponent: f64,
    /// The integral from 1 to 1.5, less the whole step of rank 1.
    first: f64,
    /// The integral to half a step after the last rank.
    last: f64,
    /// A point this close to its rank is always under the rank's step.
    close: f64,
}

impl Zipf {
    /// The distribution over `n` ranks, at least one; the exponent is above 0 and not 1.
    pub(crate) fn new(n: u64, exponent: f64) -> Self {
        let mut zipf = Self {
            n: n as f64,
            exponent,
            first: 0.0,
            last: 0.0,
            close: 0.0,
        };
        zipf.first = zipf.integral(1.5) - 1.0;
        zipf.last = zipf.integral(zipf.n + 0.5);
        zipf.close = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.height(2.0));
        zipf
    }

    /// A rank.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank is between 1 and n"
    )]
    pub(crate) fn sample(&self, rng: &mut Rng) -> u64 {
        loop {
            let area = self.last + rng.fraction() * (self.first - self.last);
            let point = self.inverse(area);
            let rank = point.round().clamp(1.0, self.n);
            if rank - point <= self.close || area >= self.integral(rank + 0.5) - self.height(rank) {
                return rank as u64 - 1;
            }
        }
    }

    fn height(&self, x: f64) -> f64 {
        (-self.exponent * x.ln()).exp()
    }

    /// The integral of the height from 1 to `x`.
    fn integral(&self, x: f64) -> f64 {
        let power = 1.0 - self.exponent;
        (power * x.ln()).exp_m1() / power
    }

    fn inverse(&self, area: f64) -> f64 {
        let power = 1.0 - self.exponent;
        ((power * area).max(-1.0).ln_1p() / power).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum of the weights of the ranks `from..to`, from 0.
    fn weight(from: u64, to: u64) -> f64 {
        (from..to)
            .map(|rank| ((rank + 1) as f64).powf(-EXPONENT))
            .sum()
    }

    #[test]
    fn fractions_equal_the_exact_sums() {
        const SAMPLES: u64 = 400_000;
        for n in [1, 2, 3, 10, 1000, 1_000_000] {
            let zipf = Zipf::new(n, EXPONENT);
            let mut rng = Rng::new(n);
            let ranks: Vec<u64> = (0..SAMPLES).map(|_| zipf.sample(&mut rng)).collect();
            assert!(ranks.iter().all(|&rank| rank < n));
            let parts = [
                (0, 1),
                (1, 2),
                (2, 3),
                (3, 10),
                (10, 100),
                (100, 10_000),
                (10_000, n),
            ];
            for (from, to) in parts {
                let (from, to) = (from.min(n), to.min(n));
                let expected = weight(from, to) / weight(0, n);
                let met = ranks
                    .iter()
                    .filter(|&&rank| (from..to).contains(&rank))
                    .count();
                let fraction = met as f64 / SAMPLES as f64;
                // Five standard deviations.
                let tolerance = 5.0 * (expected * (1.0 - expected) / SAMPLES as f64).sqrt();
                assert!(
                    (fraction - expected).abs() <= tolerance + 1e-9,
                    "{fraction} instead of {expected} for {from}..{to} of {n}"
                );
            }
        }
    }
}

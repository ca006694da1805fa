//! mixgraph: the requests of Facebook's stores, by the model of Cao, Dong, Vemuri and Du, "Characterizing,
//! Modeling, and Benchmarking RocksDB Key-Value Workloads" (FAST 2020), with the parameters of `db_bench`.
//!
//! Gets, puts and seeks have fixed fractions. The keys are divided into ranges of equal size. The access frequency
//! of the range x is a e^(bx) + c e^(dx), and the ranges are shuffled. Within a range, the x hottest keys have the
//! fraction a x^b of its operations; a hash picks these keys. Sizes of values and lengths of scans follow a
//! generalized Pareto distribution; draws above the bound are taken modulo the bound, as in `db_bench`. Three
//! things differ from `db_bench`: each draw is independent of the others (there, one number determines key,
//! operation and size), hot ranges work without hot keys, and the hottest key differs in each range.

use windrow::{Error, Result, limits};

use crate::data::permutation::Permutation;
use crate::data::random::{Rng, mix};
use crate::measure::tally::Operation;
use crate::{MixModel, MixgraphArgs};

/// The smallest value.
const VALUE_BYTES_MIN: u64 = 10;
/// A range with a lower frequency is never picked.
const HEAT_MIN: f64 = 1e-16;

/// A generalized Pareto distribution.
#[derive(Debug, Clone, Copy)]
struct Pareto {
    theta: f64,
    k: f64,
    sigma: f64,
}

impl Pareto {
    /// The number that the fraction `above` of all draws exceeds, rounded up.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast saturates at 0 and at the largest number"
    )]
    fn at(&self, above: f64) -> u64 {
        let spread = if self.k.abs() < 1e-12 {
            -above.ln()
        } else {
            (above.powf(-self.k) - 1.0) / self.k
        };
        (self.theta + self.sigma * spread).ceil() as u64
    }
}

/// The distributions of mixgraph.
#[derive(Debug, Clone)]
pub(crate) struct Mixture {
    num: u64,
    /// The fractions of gets, and of gets and puts together.
    gets: f64,
    gets_and_puts: f64,
    /// The cumulative fraction of operations up to each range.
    ranges: Vec<f64>,
    /// a and b of the hottest keys of a range, if keys are hot.
    hot_keys: Option<(f64, f64)>,
    value_sizes: Pareto,
    value_bytes_max: u64,
    scan_lengths: Pareto,
    scan_length_max: u64,
    seed: u64,
}

impl Mixture {
    /// The mixture of `args` over `num` keys. `seed` determines the hot ranges and keys.
    ///
    /// # Errors
    /// `InvalidArgument` for parameters without a distribution.
    pub(crate) fn new(args: &MixgraphArgs, num: u64, seed: u64) -> Result<Self> {
        let refuse = |message: &str| Err(Error::invalid_argument(format!("mixgraph: {message}")));
        let has_ranges = matches!(
            args.mix_model,
            MixModel::PrefixRandom | MixModel::PrefixDist
        ) || args.keyrange_dist_a.or(args.keyrange_dist_c).is_some();
        let has_hot_keys = matches!(args.mix_model, MixModel::AllDist | MixModel::PrefixDist)
            || args.key_dist_a.or(args.key_dist_b).is_some();

        let fractions = [
            args.mix_get_ratio.unwrap_or(0.83),
            args.mix_put_ratio.unwrap_or(0.14),
            args.mix_seek_ratio.unwrap_or(0.03),
        ];
        let sum: f64 = fractions.iter().sum();
        if fractions
            .iter()
            .any(|fraction| !(0.0..=1e9).contains(fraction))
            || sum <= 0.0
        {
            return refuse(
                "the fractions of gets, puts and seeks must be 0 or more, and not all 0",
            );
        }
        let count = if has_ranges {
            args.keyrange_num.unwrap_or(30)
        } else {
            1
        };
        if count > num {
            return refuse("the number of ranges exceeds the number of keys");
        }
        let steep = (
            args.keyrange_dist_a.unwrap_or(14.18),
            args.keyrange_dist_b.unwrap_or(-2.917),
        );
        let flat = (
            args.keyrange_dist_c.unwrap_or(0.0164),
            args.keyrange_dist_d.unwrap_or(-0.08082),
        );
        let heat = |x: u64| {
            let x = x as f64;
            let heat = steep.0 * (steep.1 * x).exp() + flat.0 * (flat.1 * x).exp();
            if !has_ranges {
                1.0
            } else if heat >= HEAT_MIN {
                heat
            } else {
                0.0
            }
        };
        let shuffle = Permutation::new(count, seed);
        let mut ranges = Vec::new();
        let mut reach = 0.0;
        for place in 0..count {
            reach += heat(shuffle.forward(place) + 1);
            ranges.push(reach);
        }
        if !reach.is_finite() || reach <= 0.0 {
            return refuse("these parameters never pick a range of keys");
        }
        for part in &mut ranges {
            *part /= reach;
        }
        let hot_keys = (
            args.key_dist_a.unwrap_or(0.002_312),
            args.key_dist_b.unwrap_or(0.3467),
        );
        let are_numbers = hot_keys.0 >= 0.0 && hot_keys.1 >= 0.0;
        if !are_numbers {
            return refuse("key_dist_a and key_dist_b must be 0 or more");
        }
        let value_sizes = Pareto {
            theta: args.value_theta.unwrap_or(0.0),
            k: args.value_k.unwrap_or(0.2615),
            sigma: args.value_sigma.unwrap_or(25.45),
        };
        let scan_lengths = Pareto {
            theta: args.iter_theta.unwrap_or(0.0),
            k: args.iter_k.unwrap_or(2.517),
            sigma: args.iter_sigma.unwrap_or(14.236),
        };
        for pareto in [value_sizes, scan_lengths] {
            let is_one = pareto.theta.is_finite() && pareto.k.is_finite() && pareto.sigma >= 0.0;
            if !is_one || !pareto.sigma.is_finite() {
                return refuse("theta and k must be numbers, and sigma one of 0 or more");
            }
        }
        let value_bytes_max = args.mix_max_value_size.unwrap_or(1024);
        if value_bytes_max < VALUE_BYTES_MIN {
            return refuse("the largest value must have 10 bytes or more");
        }
        if value_bytes_max > limits::VALUE_BYTES_MAX as u64 {
            return refuse("the largest value is larger than the limit");
        }
        Ok(Self {
            num,
            gets: fractions[0] / sum,
            gets_and_puts: (fractions[0] + fractions[1]) / sum,
            ranges,
            // As in db_bench, 0 turns them off.
            hot_keys: (has_hot_keys && hot_keys.0 > 0.0 && hot_keys.1 > 0.0).then_some(hot_keys),
            value_sizes,
            value_bytes_max,
            scan_lengths,
            scan_length_max: args.mix_max_scan_len.unwrap_or(10_000),
            seed,
        })
    }

    pub(crate) fn operation(&self, rng: &mut Rng) -> Operation {
        match rng.fraction() {
            fraction if fraction < self.gets => Operation::Read,
            fraction if fraction < self.gets_and_puts => Operation::Write,
            _ => Operation::Seek,
        }
    }

    /// The index of a key.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank is at least 0, and huge ones become the largest number"
    )]
    pub(crate) fn index(&self, rng: &mut Rng) -> u64 {
        let fraction = rng.fraction();
        let last = self.ranges.len() - 1;
        let range = self
            .ranges
            .partition_point(|&reach| reach <= fraction)
            .min(last) as u64;
        let size = self.num / self.ranges.len() as u64;
        let offset = match self.hot_keys {
            None => rng.below(size),
            Some((a, b)) => {
                let rank = (rng.fraction() / a).powf(1.0 / b).ceil() as u64;
                Rng::new(mix(self.seed ^ range.rotate_left(32)) ^ rank).below(size)
            }
        };
        range * size + offset
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "the largest value fits into memory"
    )]
    pub(crate) fn value_size(&self, rng: &mut Rng) -> usize {
        let drawn = self.value_sizes.at(1.0 - rng.fraction());
        let size = if drawn > self.value_bytes_max {
            drawn % self.value_bytes_max
        } else {
            drawn
        };
        size.max(VALUE_BYTES_MIN) as usize
    }

    pub(crate) fn scan_length(&self, rng: &mut Rng) -> u64 {
        self.scan_lengths.at(1.0 - rng.fraction()) % self.scan_length_max
    }
}

#[cfg(test)]
mod tests;

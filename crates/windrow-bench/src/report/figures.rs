//! The comparison of engines in text and on pages: medians with their range, and ratios.
//!
//! Numbers that are not finite count as missing. Pure functions.

use clap::ValueEnum;

use crate::Load;

/// A figure over the rounds of an engine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    /// The minimum.
    pub(crate) least: f64,
    /// The median.
    pub(crate) median: f64,
    /// The maximum.
    pub(crate) most: f64,
    /// The number of rounds with this figure.
    pub(crate) rounds: usize,
}

impl Spread {
    /// The spread of `numbers`; `None` without numbers.
    pub(crate) fn of(numbers: impl IntoIterator<Item = f64>) -> Option<Self> {
        let numbers = numbers.into_iter();
        let mut numbers: Vec<f64> = numbers.filter(|number| number.is_finite()).collect();
        numbers.sort_by(f64::total_cmp);
        let middle = numbers.len() / 2;
        let median = if numbers.len() % 2 == 1 {
            numbers[middle]
        } else {
            f64::midpoint(*numbers.get(middle.checked_sub(1)?)?, numbers[middle])
        };
        Some(Self {
            least: *numbers.first()?,
            median,
            most: *numbers.last()?,
            rounds: numbers.len(),
        })
    }

    /// Its median over that of `other`, if the latter is above 0.
    pub(crate) fn times(&self, other: &Self) -> Option<f64> {
        let times = self.median / other.median;
        (other.median > 0.0 && times.is_finite()).then_some(times)
    }
}

/// The rate of the load `load` for comparisons: `alone`, without the background work after the load, if its own
/// threads only read, otherwise `settled`.
pub(crate) fn throughput(load: &str, alone: f64, settled: f64) -> f64 {
    if only_reads(load) { alone } else { settled }
}

/// Whether the own threads of the load `load` only read.
pub(crate) fn only_reads(load: &str) -> bool {
    Load::from_str(load, false).is_ok_and(Load::only_reads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_stand_in_the_middle() {
        let median = |numbers: &[f64]| {
            let spread = Spread::of(numbers.iter().copied())?;
            Some((spread.median, spread.rounds))
        };
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some((2.0, 3)));
        assert_eq!(median(&[4.0, 1.0]), Some((2.5, 2)));
        assert_eq!(median(&[4.0, f64::NAN]), Some((4.0, 1)));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn a_ratio_is_of_medians() {
        let spread = |number| Spread::of([number]).unwrap();
        assert_eq!(spread(6.0).times(&spread(2.0)), Some(3.0));
        assert_eq!(spread(6.0).times(&spread(0.0)), None);
        assert_eq!(spread(0.0).times(&spread(2.0)), Some(0.0));
    }

    #[test]
    fn loads_that_only_read_compare_without_settling() {
        for (load, rate) in [
            ("readrandom", 2.0),
            ("readwhilewriting", 2.0),
            ("ycsb-c", 2.0),
            ("ycsb-e", 1.0),
            ("fillrandom", 1.0),
            ("unknown", 1.0),
        ] {
            assert!((throughput(load, 2.0, 1.0) - rate).abs() < 1e-9, "{load}");
        }
    }
}

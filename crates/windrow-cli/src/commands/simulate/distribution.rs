//! Which keys are drawn, on the command line of `simulate` and of `advise`.
//!
//! Concurrency: none; no state.

use clap::{Args, ValueEnum};
use windrow::simulation::KeyDistribution;
use windrow::{Error, Result};

/// The default exponent of the zipfian distribution.
const EXPONENT: f64 = 0.99;

/// Which keys are drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Args)]
pub(in crate::commands) struct DistributionArgs {
    /// Which keys are drawn [default: uniform, or that of a trace]
    #[arg(long, value_enum)]
    pub(in crate::commands) distribution: Option<DistributionArg>,

    /// Exponent of the zipfian distribution, 0.99 unless given
    #[arg(long, value_name = "E")]
    pub(in crate::commands) exponent: Option<f64>,
}

/// [`KeyDistribution`] on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::commands) enum DistributionArg {
    /// All keys equally often
    Uniform,
    /// A few keys far more often than the others
    Zipfian,
    /// Inserts come in the order of the keys; updates and reads are uniform
    Sequential,
}

impl DistributionArgs {
    /// The distribution that was given.
    ///
    /// # Errors
    /// `InvalidArgument` for an exponent without a distribution that has one.
    pub(in crate::commands) fn chosen(self) -> Result<Option<KeyDistribution>> {
        match (self.distribution, self.exponent) {
            (Some(DistributionArg::Zipfian), exponent) => Ok(Some(KeyDistribution::Zipfian {
                exponent: exponent.unwrap_or(EXPONENT),
            })),
            (_, Some(_)) => Err(Error::invalid_argument(
                "--exponent needs --distribution zipfian",
            )),
            (Some(DistributionArg::Uniform), None) => Ok(Some(KeyDistribution::Uniform)),
            (Some(DistributionArg::Sequential), None) => Ok(Some(KeyDistribution::Sequential)),
            (None, None) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exponent_needs_the_zipfian_distribution() {
        let chosen = |distribution, exponent| {
            let args = DistributionArgs {
                distribution,
                exponent,
            };
            args.chosen().map_err(|error| error.to_string())
        };
        let zipfian = Some(DistributionArg::Zipfian);
        let of = |exponent| Ok(Some(KeyDistribution::Zipfian { exponent }));
        assert_eq!(chosen(zipfian, None), of(EXPONENT));
        assert_eq!(chosen(zipfian, Some(0.5)), of(0.5));
        assert_eq!(chosen(None, None), Ok(None));
        let sequential = Some(DistributionArg::Sequential);
        assert_eq!(
            chosen(sequential, None),
            Ok(Some(KeyDistribution::Sequential))
        );
        for other in [None, sequential, Some(DistributionArg::Uniform)] {
            assert!(chosen(other, Some(0.5)).unwrap_err().contains("zipfian"));
        }
    }
}

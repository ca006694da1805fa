//! The parameters of mixgraph on the command line, named as in `db_bench`.

use std::time::Duration;

use clap::builder::BoolishValueParser;
use clap::{Args, ValueEnum};

use super::values::parse_bytes;
use crate::measure::rate_limiter::Wave;

/// Fractions of gets, puts and scans, and the distributions of keys, sizes and lengths.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Parameters of mixgraph")]
pub struct MixgraphArgs {
    /// Named set of default parameters for the keys
    #[arg(long, value_enum, default_value_t)]
    pub mix_model: MixModel,

    /// Fraction of gets [default: 0.83]
    #[arg(long, alias = "mix_get_ratio", value_name = "FRACTION")]
    pub mix_get_ratio: Option<f64>,

    /// Fraction of puts [default: 0.14]
    #[arg(long, alias = "mix_put_ratio", value_name = "FRACTION")]
    pub mix_put_ratio: Option<f64>,

    /// Fraction of seeks, each with a scan [default: 0.03]
    #[arg(long, alias = "mix_seek_ratio", value_name = "FRACTION")]
    pub mix_seek_ratio: Option<f64>,

    /// Access frequency of the key range x: a of a e^(bx) + c e^(dx) [default: 14.18]
    #[arg(long, alias = "keyrange_dist_a", allow_hyphen_values = true)]
    pub keyrange_dist_a: Option<f64>,

    /// The same: b [default: -2.917]
    #[arg(long, alias = "keyrange_dist_b", allow_hyphen_values = true)]
    pub keyrange_dist_b: Option<f64>,

    /// The same: c [default: 0.0164]
    #[arg(long, alias = "keyrange_dist_c", allow_hyphen_values = true)]
    pub keyrange_dist_c: Option<f64>,

    /// The same: d [default: -0.08082]
    #[arg(long, alias = "keyrange_dist_d", allow_hyphen_values = true)]
    pub keyrange_dist_d: Option<f64>,

    /// Ranges of keys [default: 30]
    #[arg(long, alias = "keyrange_num", value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub keyrange_num: Option<u64>,

    /// Fraction of the x hottest keys of a range: a of a x^b [default: 0.002312]
    #[arg(long, alias = "key_dist_a")]
    pub key_dist_a: Option<f64>,

    /// The same: b [default: 0.3467]
    #[arg(long, alias = "key_dist_b")]
    pub key_dist_b: Option<f64>,

    /// Sizes of values: theta of a generalized Pareto distribution [default: 0]
    #[arg(long, alias = "value_theta")]
    pub value_theta: Option<f64>,

    /// The same: k [default: 0.2615]
    #[arg(long, alias = "value_k", allow_hyphen_values = true)]
    pub value_k: Option<f64>,

    /// The same: sigma [default: 25.45]
    #[arg(long, alias = "value_sigma")]
    pub value_sigma: Option<f64>,

    /// Lengths of scans: theta of a generalized Pareto distribution [default: 0]
    #[arg(long, alias = "iter_theta")]
    pub iter_theta: Option<f64>,

    /// The same: k [default: 2.517]
    #[arg(long, alias = "iter_k", allow_hyphen_values = true)]
    pub iter_k: Option<f64>,

    /// The same: sigma [default: 14.236]
    #[arg(long, alias = "iter_sigma")]
    pub iter_sigma: Option<f64>,

    /// Longest scan; a longer draw is taken modulo this length [default: 10000]
    #[arg(long, alias = "mix_max_scan_len", value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub mix_max_scan_len: Option<u64>,

    /// Largest value; a larger draw is taken modulo this size [default: 1024]
    #[arg(long, alias = "mix_max_value_size", value_name = "BYTES",
          value_parser = parse_bytes)]
    pub mix_max_value_size: Option<u64>,

    /// Vary the rate: a sin(b t + c) + d operations per second at the second t
    #[arg(long, alias = "sine_mix_rate", num_args = 0..=1, require_equals = true,
          default_value_t = false, default_missing_value = "true", value_name = "BOOL",
          hide_default_value = true, hide_possible_values = true,
          value_parser = BoolishValueParser::new(), action = clap::ArgAction::Set)]
    pub sine_mix_rate: bool,

    /// Time between changes of the rate [default: 10000]
    #[arg(long, alias = "sine_mix_rate_interval_milliseconds", value_name = "MILLISECONDS",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub sine_mix_rate_interval_milliseconds: Option<u64>,

    /// a of the sine [default: 1]
    #[arg(long, alias = "sine_a", allow_hyphen_values = true)]
    pub sine_a: Option<f64>,

    /// b of the sine [default: 1]
    #[arg(long, alias = "sine_b", allow_hyphen_values = true)]
    pub sine_b: Option<f64>,

    /// c of the sine [default: 0]
    #[arg(long, alias = "sine_c", allow_hyphen_values = true)]
    pub sine_c: Option<f64>,

    /// d of the sine [default: 1]
    #[arg(long, alias = "sine_d", allow_hyphen_values = true)]
    pub sine_d: Option<f64>,
}

impl MixgraphArgs {
    /// The rate, if it varies.
    pub(crate) fn wave(&self) -> Option<Wave> {
        let interval = self.sine_mix_rate_interval_milliseconds.unwrap_or(10_000);
        self.sine_mix_rate.then(|| Wave {
            a: self.sine_a.unwrap_or(1.0),
            b: self.sine_b.unwrap_or(1.0),
            c: self.sine_c.unwrap_or(0.0),
            d: self.sine_d.unwrap_or(1.0),
            interval: Duration::from_millis(interval),
        })
    }
}

/// The models of Facebook's paper, from the coarsest to the finest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum MixModel {
    /// All keys with the same frequency
    AllRandom,
    /// Hot keys anywhere
    AllDist,
    /// Hot ranges of keys
    PrefixRandom,
    /// Hot keys within hot ranges
    #[default]
    PrefixDist,
}

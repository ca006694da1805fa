//! The flags that describe a load.
//!
//! Concurrency: none; no state.

use clap::Args;
use windrow::simulation::ValueSize;
use windrow_bench::{Mix, parse_bytes};

use crate::commands::cost::{Fractions, MachineArgs};
use crate::commands::simulate::distribution::DistributionArgs;
use crate::commands::simulate::quantities::{TimeToLive, parse_time_to_live};

/// A weight is 0 or in this range, so that no result overflows.
pub(super) const WEIGHTS: std::ops::RangeInclusive<f64> = 1e-9..=1e12;

/// The load, as flags describe it.
#[derive(Debug, Clone, Default, Args)]
pub(in crate::commands::advise) struct DemandArgs {
    /// Bytes of keys and values that are stored, each key once
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub(in crate::commands::advise) bytes: Option<u64>,

    /// Number of keys that are stored, instead of their bytes
    #[arg(long, value_name = "N", conflicts_with = "bytes")]
    pub(in crate::commands::advise) keys: Option<u64>,

    /// Bytes of a key [default: 16, or 24 with a mix]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub(in crate::commands::advise) key_size: Option<u64>,

    /// Bytes of a key that are equal in its neighbours; tables hold them once a block
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub(in crate::commands::advise) shared_key_bytes: u64,

    /// Bytes of a value; or several sizes, each with its weight behind a colon: 100:9,4000:1
    #[arg(long, value_name = "BYTES[:WEIGHT],..", value_delimiter = ',', value_parser = parse_size,
          conflicts_with = "mix")]
    pub(in crate::commands::advise) value_size: Vec<ValueSize>,

    /// Sizes of values of the Parallax paper: small ones of 9, medium ones of 104 and large ones of 1004 bytes
    #[arg(long, value_enum, ignore_case = true)]
    pub(in crate::commands::advise) mix: Option<Mix>,

    /// Weight of writes of new keys among all operations; weights may add up to anything
    #[arg(long, value_name = "WEIGHT", value_parser = parse_weight)]
    pub(in crate::commands::advise) inserts: Option<f64>,

    /// Weight of writes of keys that exist
    #[arg(long, value_name = "WEIGHT", value_parser = parse_weight)]
    pub(in crate::commands::advise) updates: Option<f64>,

    /// Weight of deletes
    #[arg(long, value_name = "WEIGHT", value_parser = parse_weight)]
    pub(in crate::commands::advise) deletes: Option<f64>,

    /// Weight of merges of an operand
    #[arg(long, value_name = "WEIGHT", value_parser = parse_weight)]
    pub(in crate::commands::advise) merges: Option<f64>,

    /// Bytes of an operand [default: 8]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub(in crate::commands::advise) operand_size: Option<u64>,

    /// Weight of range deletes, at random places
    #[arg(long, value_name = "WEIGHT", value_parser = parse_weight)]
    pub(in crate::commands::advise) range_deletes: Option<f64>,

    /// The fraction of all keys that each range delete covers, above 0 and at most 1
    #[arg(long, value_name = "FRACTION")]
    pub(in crate::commands::advise) range_delete_part: Option<f64>,

    /// The fraction of the written values that expire, from 0 to 1
    #[arg(long, value_name = "FRACTION")]
    pub(in crate::commands::advise) expiring: Option<f64>,

    /// When a value expires that does: after this many further writes (100000), or bytes of writes (5GB)
    #[arg(long, value_name = "WRITES|BYTES", value_parser = parse_time_to_live)]
    pub(in crate::commands::advise) time_to_live: Option<TimeToLive>,

    /// Weight of gets that find their key
    #[arg(long, value_name = "WEIGHT", value_parser = parse_weight)]
    pub(in crate::commands::advise) gets: Option<f64>,

    /// Weight of gets of keys that do not exist
    #[arg(long, value_name = "WEIGHT", value_parser = parse_weight)]
    pub(in crate::commands::advise) missing: Option<f64>,

    /// Weight of scans
    #[arg(long, value_name = "WEIGHT", value_parser = parse_weight)]
    pub(in crate::commands::advise) scans: Option<f64>,

    /// Entries that a scan returns
    #[arg(long, value_name = "N", value_parser = parse_weight)]
    pub(in crate::commands::advise) scan_length: Option<f64>,

    #[command(flatten)]
    pub(in crate::commands::advise) distribution: DistributionArgs,

    #[command(flatten)]
    pub(in crate::commands::advise) machine: MachineArgs,
}

impl DemandArgs {
    /// The weights that flags give.
    pub(super) fn weights(&self) -> Fractions {
        Fractions {
            inserts: self.inserts.unwrap_or(0.0),
            updates: self.updates.unwrap_or(0.0),
            deletes: self.deletes.unwrap_or(0.0),
            merges: self.merges.unwrap_or(0.0),
            range_deletes: self.range_deletes.unwrap_or(0.0),
            gets: self.gets.unwrap_or(0.0),
            missing: self.missing.unwrap_or(0.0),
            scans: self.scans.unwrap_or(0.0),
        }
    }
}

/// 0, or one of [`WEIGHTS`].
fn parse_weight(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(weight) if weight == 0.0 || WEIGHTS.contains(&weight) => Ok(weight.abs()),
        _ => Err(format!(
            "expected a number that is not negative: 0, or from {:e} to {:e}",
            WEIGHTS.start(),
            WEIGHTS.end()
        )),
    }
}

/// A size, with a weight of 1 unless it has one.
fn parse_size(text: &str) -> Result<ValueSize, String> {
    let (bytes, fraction) = match text.split_once(':') {
        None => (text, 1.0),
        Some((bytes, weight)) => (bytes, parse_weight(weight)?),
    };
    let bytes = parse_bytes(bytes)?;
    if fraction == 0.0 {
        return Err("expected a weight above 0".to_owned());
    }
    Ok(ValueSize { fraction, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_weights() {
        let size = parse_size("4K:2.5").unwrap();
        assert_eq!(size.bytes, 4096);
        assert!((size.fraction - 2.5).abs() < 1e-9);
        assert!((parse_size("7").unwrap().fraction - 1.0).abs() < 1e-9);
        for text in ["", ":1", "7:", "7:0", "7:-1", "7:x", "7:inf", "7:1e308"] {
            parse_size(text).unwrap_err();
        }
    }

    #[test]
    fn weights_have_bounds() {
        for text in ["1e308", "1e13", "1e-300", "-1", "-1e-9", "nan", "inf", ""] {
            let error = parse_weight(text).unwrap_err();
            assert!(error.contains("from 1e-9 to 1e12"), "{error}");
        }
        for text in ["0", "-0", "1e-9", "95", "0.5", "1e12"] {
            assert!(parse_weight(text).unwrap().is_sign_positive());
        }
    }
}

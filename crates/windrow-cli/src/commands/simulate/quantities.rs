//! Ratios and bytes on the command line.
//!
//! Concurrency: none; no state.

use windrow_bench::parse_bytes;

use crate::amounts::whole;

/// How much is updated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Updates {
    /// This many for each insert.
    PerInsert(f64),
    /// Keys and values of this many bytes.
    Bytes(u64),
}

/// Reads a plain number as a ratio, one with a unit as bytes.
pub(super) fn parse_updates(text: &str) -> Result<Updates, String> {
    match text.parse::<f64>() {
        Ok(times) if times >= 0.0 && times.is_finite() => Ok(Updates::PerInsert(times)),
        Ok(_) => Err("expected a number that is not negative, such as 0.5, or bytes".to_owned()),
        Err(_) => parse_bytes(text).map(Updates::Bytes),
    }
}

/// After how much a value expires.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::commands) enum TimeToLive {
    Writes(u64),
    /// Writes with keys and values of this many bytes.
    Bytes(u64),
}

/// Reads a plain number as a number of writes, one with a unit as bytes.
pub(in crate::commands) fn parse_time_to_live(text: &str) -> Result<TimeToLive, String> {
    let life = match text.parse() {
        Ok(writes) => TimeToLive::Writes(writes),
        Err(_) => TimeToLive::Bytes(parse_bytes(text)?),
    };
    match life {
        TimeToLive::Writes(0) | TimeToLive::Bytes(0) => {
            Err("expected a number of writes above 0, or bytes".to_owned())
        }
        life => Ok(life),
    }
}

impl TimeToLive {
    /// In writes, of entries of `entry_bytes`.
    pub(in crate::commands) fn writes(self, entry_bytes: f64) -> u64 {
        match self {
            Self::Writes(writes) => writes,
            Self::Bytes(bytes) => whole(bytes as f64 / entry_bytes).max(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_number_is_a_ratio_and_a_unit_means_bytes() {
        assert_eq!(parse_updates("0.5"), Ok(Updates::PerInsert(0.5)));
        assert_eq!(parse_updates("5GB"), Ok(Updates::Bytes(5_000_000_000)));
        for text in ["-1", "inf", "nan", "5 GB"] {
            parse_updates(text).unwrap_err();
        }
    }

    #[test]
    fn a_time_to_live_is_a_number_of_writes_or_bytes() {
        assert_eq!(parse_time_to_live("5000"), Ok(TimeToLive::Writes(5000)));
        let bytes = parse_time_to_live("5GB").unwrap();
        assert_eq!(bytes, TimeToLive::Bytes(5_000_000_000));
        assert_eq!(bytes.writes(100.0), 50_000_000);
        assert_eq!(TimeToLive::Bytes(1).writes(100.0), 1);
        for text in ["0", "0GB", "-1", "inf", "5 days"] {
            parse_time_to_live(text).unwrap_err();
        }
    }
}

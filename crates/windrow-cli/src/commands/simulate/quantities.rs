//! Ratios and bytes on the command line.
//!
//! Concurrency: none; no state.

use windrow_bench::parse_bytes;

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
}

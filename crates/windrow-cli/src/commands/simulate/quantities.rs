//! Bytes and ratios as they are typed.

/// How much is updated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Updates {
    /// So many times for each insert.
    PerInsert(f64),
    /// Keys and values of so many bytes.
    Bytes(u64),
}

/// The units, and how many bytes each is.
const UNITS: [(&str, f64); 18] = [
    ("B", 1.0),
    ("K", 1024.0),
    ("M", 1_048_576.0),
    ("G", 1_073_741_824.0),
    ("T", 1_099_511_627_776.0),
    ("P", 1_125_899_906_842_624.0),
    ("KIB", 1024.0),
    ("MIB", 1_048_576.0),
    ("GIB", 1_073_741_824.0),
    ("TIB", 1_099_511_627_776.0),
    ("PIB", 1_125_899_906_842_624.0),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
    ("PB", 1e15),
    ("EB", 1e18),
    ("", 1.0),
];

/// Reads a number of bytes: digits, perhaps with a point, and a unit.
///
/// # Errors
/// A sentence for the person who typed it.
pub(super) fn parse_quantity(text: &str) -> Result<u64, String> {
    let wrong = || {
        "expected a number of bytes such as 65536, 64M, 1.5TB or 1GiB, from 1 to below 2^63"
            .to_owned()
    };
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = text[digits.len()..].to_ascii_uppercase();
    let (_, scale) = UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(wrong)?;
    let is_plain = digits
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number: f64 = digits.parse().map_err(|_| wrong())?;
    let bytes = (number * scale).round();
    if is_plain && (1.0..2.0_f64.powi(63)).contains(&bytes) {
        Ok(super::whole(bytes))
    } else {
        Err(wrong())
    }
}

/// Reads bytes, `never` for more than anything has.
pub(super) fn parse_threshold(text: &str) -> Result<u64, String> {
    match text {
        "never" => Ok(u64::MAX),
        "0" => Ok(0),
        _ => parse_quantity(text).map_err(|sentence| format!("{sentence}, or never")),
    }
}

/// Reads a plain number as a ratio, one with a unit as bytes.
pub(super) fn parse_updates(text: &str) -> Result<Updates, String> {
    match text.parse::<f64>() {
        Ok(times) if times >= 0.0 && times.is_finite() => Ok(Updates::PerInsert(times)),
        Ok(_) => Err("expected a number that is not negative, such as 0.5, or bytes".to_owned()),
        Err(_) => parse_quantity(text).map(Updates::Bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units() {
        for (text, bytes) in [
            ("1", 1),
            ("64M", 64 << 20),
            ("64MB", 64_000_000),
            ("64mib", 64 << 20),
            ("1.5TB", 1_500_000_000_000),
            ("1PB", 1_000_000_000_000_000),
            ("1P", 1 << 50),
            ("2GiB", 2 << 30),
            ("7B", 7),
        ] {
            assert_eq!(parse_quantity(text), Ok(bytes), "{text}");
        }
        for text in [
            "", "0", "-1", "1e9", "many", "1XB", "99EB", "1.5.5K", "nanK", "infB", ".K",
        ] {
            parse_quantity(text).unwrap_err();
        }
    }

    #[test]
    fn updates() {
        assert_eq!(parse_updates("0.5"), Ok(Updates::PerInsert(0.5)));
        assert_eq!(parse_updates("5GB"), Ok(Updates::Bytes(5_000_000_000)));
        for text in ["-1", "inf", "nan", "5 GB"] {
            parse_updates(text).unwrap_err();
        }
    }
}

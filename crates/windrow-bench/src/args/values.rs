//! Values on the command line: bytes, and the names of Windrow's choices.

use clap::ValueEnum;
use windrow::{BlockSource, Compression, FilterAllocation, MediumInPlace, MediumOrder, Preset};

/// Defines the command-line form of one of Windrow's enumerations, and the conversion from it.
macro_rules! arguments {
    ($(
        $(#[$meta:meta])*
        $name:ident for $target:ident {
            $($(#[$help:meta])* $argument:ident => $choice:ident,)+
        }
    )+) => {$(
        #[doc = concat!("[`", stringify!($target), "`] on the command line.")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
        $(#[$meta])*
        pub enum $name {
            $($(#[$help])* $argument,)+
        }

        impl From<$name> for $target {
            fn from(argument: $name) -> Self {
                match argument {
                    $($name::$argument => Self::$choice,)+
                }
            }
        }
    )+};
}

arguments! {
    #[derive(Default)]
    PresetArg for Preset {
        /// The default for most loads
        #[default]
        Balanced => Balanced,
        /// Garnering levels only
        Autumn => Autumn,
        /// Leveled compaction with one constant size ratio
        Leveling => Leveling,
        /// Placement of values by size only
        Parallax => Parallax,
        /// Append merges only
        Lsma => Lsma,
    }
    FilterAllocationArg for FilterAllocation {
        /// More bits for the files in which they save more reads
        Monkey => Monkey,
        /// The same for every file
        Uniform => Uniform,
    }
    MediumInPlaceArg for MediumInPlace {
        /// The last level that holds data
        Last => LastLevel,
        /// The level before the last one
        BeforeLast => LevelBeforeLast,
        /// No level
        Never => Never,
    }
    MediumOrderArg for MediumOrder {
        /// By key
        Sorted => Sorted,
        /// In the order of writes
        Written => Written,
    }
    CompressionArg for Compression {
        /// No compression
        None => None,
        /// LZ4
        Lz4 => Lz4,
        /// Zstandard, in builds with the feature `zstd`
        Zstd => Zstd,
    }
    BlockSourceArg for BlockSource {
        /// Read-only mappings of the table files
        Mapped => Mapped,
        /// `pread` into the block cache
        Buffered => Buffered,
    }
}

/// The unmeasured operations before a load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WarmUp {
    /// A number of operations.
    Ops(u64),
    /// A number of seconds.
    Seconds(f64),
}

/// Parses a number of seconds.
pub(crate) fn parse_seconds(text: &str) -> Result<f64, String> {
    // A time above a century is a mistake.
    const SECONDS_MAX: f64 = 4e9;
    let digits = text.strip_suffix('s').unwrap_or(text);
    match digits.parse() {
        Ok(seconds) if (0.0..SECONDS_MAX).contains(&seconds) => Ok(seconds),
        _ => Err("expected a number of seconds, such as 60 or 0.5".to_owned()),
    }
}

/// Parses a number of operations, or of seconds with the suffix s.
pub(crate) fn parse_warm_up(text: &str) -> Result<WarmUp, String> {
    if text.ends_with('s') {
        return parse_seconds(text).map(WarmUp::Seconds);
    }
    match text.parse() {
        Ok(ops) if ops > 0 => Ok(WarmUp::Ops(ops)),
        _ => Err(
            "expected a number of operations such as 10000, or of seconds such as 5s".to_owned(),
        ),
    }
}

/// Units of bytes: K and KiB are powers of 1024, KB of 1000.
const UNITS: [(&str, u64); 19] = [
    ("", 1),
    ("B", 1),
    ("K", 1 << 10),
    ("M", 1 << 20),
    ("G", 1 << 30),
    ("T", 1 << 40),
    ("P", 1 << 50),
    ("KIB", 1 << 10),
    ("MIB", 1 << 20),
    ("GIB", 1 << 30),
    ("TIB", 1 << 40),
    ("PIB", 1 << 50),
    ("EIB", 1 << 60),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("PB", 1_000_000_000_000_000),
    ("EB", 1_000_000_000_000_000_000),
];

/// Parses a number of bytes: digits, an optional point, and a unit. K, M, G, T, P and KiB to EiB are powers of
/// 1024, KB to EB of 1000.
///
/// # Errors
/// A sentence for the user.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let wrong =
        || "expected a number of bytes such as 65536, 64K, 1.5TB or 1GiB, below 2^64".to_owned();
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = text[digits.len()..].to_ascii_uppercase();
    let found = UNITS.iter().find(|(name, _)| *name == unit);
    let (_, scale) = found.ok_or_else(wrong)?;
    if !digits
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.')
    {
        return Err(wrong());
    }
    if let Ok(number) = digits.parse::<u64>() {
        return number.checked_mul(*scale).ok_or_else(wrong);
    }
    match digits
        .parse::<f64>()
        .map(|number| (number * *scale as f64).round())
    {
        Ok(bytes) if bytes < 2.0_f64.powi(64) => Ok(rounded(bytes)),
        _ => Err(wrong()),
    }
}

/// Parses a number of bytes in memory, as [`parse_bytes`] does.
pub(crate) fn parse_size(text: &str) -> Result<usize, String> {
    let bytes = parse_bytes(text)?;
    usize::try_from(bytes).map_err(|_| "more than this machine can address".to_owned())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a whole number, not negative and below 2^64"
)]
fn rounded(bytes: f64) -> u64 {
    bytes as u64
}

/// Parses a number of bytes, as [`parse_bytes`] does, or `never`.
pub fn parse_threshold(text: &str) -> Result<u64, String> {
    match text {
        "never" => Ok(u64::MAX),
        _ => parse_bytes(text).map_err(|sentence| format!("{sentence}, or never")),
    }
}

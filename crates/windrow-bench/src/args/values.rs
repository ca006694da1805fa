//! Values on the command line: bytes, and the names of Windrow's choices.

use clap::ValueEnum;
use windrow::{BlockSource, Compression, FilterAllocation, MediumInPlace, MediumOrder, Preset};

/// [`Preset`] on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PresetArg {
    /// What most loads want
    Balanced,
    /// Garnering levels alone
    Autumn,
    /// Leveled merging with one constant size ratio
    Leveling,
    /// Placement by size alone
    Parallax,
    /// Append merges alone
    Lsma,
}

/// [`FilterAllocation`] on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FilterAllocationArg {
    /// Most where they save most reads
    Monkey,
    /// The same for every file
    Uniform,
}

/// [`MediumInPlace`] on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MediumInPlaceArg {
    /// The last that holds data
    Last,
    /// The one before it
    BeforeLast,
    /// None
    Never,
}

/// [`MediumOrder`] on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MediumOrderArg {
    /// By their keys
    Sorted,
    /// As they were written
    Written,
}

/// [`Compression`] on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CompressionArg {
    /// Not at all
    None,
    /// LZ4
    Lz4,
    /// Zstandard, in builds with the feature `zstd`
    Zstd,
}

/// [`BlockSource`] on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BlockSourceArg {
    /// Read-only mappings of the table files
    Mapped,
    /// `pread` into the block cache
    Buffered,
}

impl From<PresetArg> for Preset {
    fn from(argument: PresetArg) -> Self {
        match argument {
            PresetArg::Balanced => Self::Balanced,
            PresetArg::Autumn => Self::Autumn,
            PresetArg::Leveling => Self::Leveling,
            PresetArg::Parallax => Self::Parallax,
            PresetArg::Lsma => Self::Lsma,
        }
    }
}

impl From<FilterAllocationArg> for FilterAllocation {
    fn from(argument: FilterAllocationArg) -> Self {
        match argument {
            FilterAllocationArg::Monkey => Self::Monkey,
            FilterAllocationArg::Uniform => Self::Uniform,
        }
    }
}

impl From<MediumInPlaceArg> for MediumInPlace {
    fn from(argument: MediumInPlaceArg) -> Self {
        match argument {
            MediumInPlaceArg::Last => Self::LastLevel,
            MediumInPlaceArg::BeforeLast => Self::LevelBeforeLast,
            MediumInPlaceArg::Never => Self::Never,
        }
    }
}

impl From<MediumOrderArg> for MediumOrder {
    fn from(argument: MediumOrderArg) -> Self {
        match argument {
            MediumOrderArg::Sorted => Self::Sorted,
            MediumOrderArg::Written => Self::Written,
        }
    }
}

impl From<CompressionArg> for Compression {
    fn from(argument: CompressionArg) -> Self {
        match argument {
            CompressionArg::None => Self::None,
            CompressionArg::Lz4 => Self::Lz4,
            CompressionArg::Zstd => Self::Zstd,
        }
    }
}

impl From<BlockSourceArg> for BlockSource {
    fn from(argument: BlockSourceArg) -> Self {
        match argument {
            BlockSourceArg::Mapped => Self::Mapped,
            BlockSourceArg::Buffered => Self::Buffered,
        }
    }
}

/// What is done before a load and not counted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WarmUp {
    /// So many operations.
    Ops(u64),
    /// So many seconds.
    Seconds(f64),
}

/// Reads a number of seconds; 0 turns off what it is for.
pub(crate) fn parse_seconds(text: &str) -> Result<f64, String> {
    // More than a century is a mistake.
    const SECONDS_MAX: f64 = 4e9;
    let digits = text.strip_suffix('s').unwrap_or(text);
    match digits.parse() {
        Ok(seconds) if (0.0..SECONDS_MAX).contains(&seconds) => Ok(seconds),
        _ => Err("expected a number of seconds, such as 60 or 0.5".to_owned()),
    }
}

/// Reads a number of operations, or of seconds with an s behind it.
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

/// Reads a number of bytes: digits, perhaps with a point, and a unit. K, M, G, T, P and KiB to EiB are
/// powers of 1024, KB to EB of 1000.
///
/// # Errors
/// A sentence for the person who typed it.
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

/// Reads a number of bytes as [`parse_bytes`] that are to be in memory.
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

/// Reads a number of bytes as [`parse_bytes`], or `never`.
pub fn parse_threshold(text: &str) -> Result<u64, String> {
    match text {
        "never" => Ok(u64::MAX),
        _ => parse_bytes(text).map_err(|sentence| format!("{sentence}, or never")),
    }
}

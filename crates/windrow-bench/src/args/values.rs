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

/// Reads a number of seconds above 0.
pub(crate) fn parse_seconds(text: &str) -> Result<f64, String> {
    // More than a century is a mistake.
    const SECONDS_MAX: f64 = 4e9;
    let digits = text.strip_suffix('s').unwrap_or(text);
    match digits.parse() {
        Ok(seconds) if seconds > 0.0 && seconds < SECONDS_MAX => Ok(seconds),
        _ => Err("expected a number of seconds above 0, such as 60 or 0.5".to_owned()),
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

/// Reads a number of bytes: digits, then optionally K, M, G or T for powers of 1024.
///
/// # Errors
/// A sentence for the person who typed it.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.as_bytes().last().map(u8::to_ascii_uppercase) {
        Some(b'K') => (&text[..text.len() - 1], 10),
        Some(b'M') => (&text[..text.len() - 1], 20),
        Some(b'G') => (&text[..text.len() - 1], 30),
        Some(b'T') => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| "expected a number of bytes such as 65536, 64K or 1G, below 2^64".to_owned())
}

/// Reads a number of bytes as [`parse_bytes`], or `never`.
pub(crate) fn parse_threshold(text: &str) -> Result<u64, String> {
    match text {
        "never" => Ok(u64::MAX),
        _ => parse_bytes(text).map_err(|sentence| format!("{sentence}, or never")),
    }
}

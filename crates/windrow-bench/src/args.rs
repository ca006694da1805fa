//! The command-line arguments of every program that runs loads.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use windrow::{
    BlockSource, Compression, Durability, Error, FilterAllocation, MediumInPlace, MediumOrder,
    Options, Preset, Result, SegmentLimit,
};

use crate::{DataSet, Load, Mix, ValueSizes};

/// Defaults of the arguments that always have a value.
const NUM: u64 = 1_000_000;
const PRESET: PresetArg = PresetArg::Balanced;
const THREADS: u64 = 1;
const WRITE_RATE: u64 = 20_000;
pub(crate) const SEED: u64 = 1;

/// What to run, on how much data, with which settings.
#[derive(Debug, Clone, Args)]
pub struct BenchArgs {
    /// Loads to run, in this order, with commas between them. The fills start from an empty
    /// store; every other load uses what the loads before it left
    #[arg(
        value_enum,
        value_delimiter = ',',
        required = true,
        value_name = "LOADS"
    )]
    pub loads: Vec<Load>,

    /// Number of different keys or records, and of entries that a fill writes
    #[arg(long, visible_alias = "records", value_name = "N", default_value_t = NUM,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub num: u64,

    /// Operations of each load that is not a fill [default: N for writes and readseq, N/10 for
    /// gets and YCSB's loads, N/50 for seeks and ycsb-e]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub ops: Option<u64>,

    /// Bytes of a key: a decimal number of up to 16 digits, then zeros [default: 16, or 24 with
    /// YCSB's loads or a mix]
    #[arg(long, value_name = "BYTES")]
    pub key_size: Option<usize>,

    /// Bytes of a value; half of them can be compressed away [default: 100]
    #[arg(long, value_name = "BYTES", conflicts_with = "mix")]
    pub value_size: Option<usize>,

    /// Sizes of values, in place of one: small ones of 9, medium ones of 104 and large ones of 1004
    /// bytes. Each write draws its size anew
    #[arg(long, value_enum, ignore_case = true)]
    pub mix: Option<Mix>,

    /// Named set of options to start from
    #[arg(long, value_enum, default_value_t = PRESET)]
    pub preset: PresetArg,

    /// Size ratio T of the last two levels
    #[arg(long, value_name = "T")]
    pub size_ratio: Option<f64>,

    /// How ratios grow towards the shallow levels: c, above 0 and at most 1
    #[arg(long, value_name = "C")]
    pub scaling: Option<f64>,

    /// How many segments a table file may have: scaled, or a number from 1 to 12
    #[arg(long, value_name = "LIMIT")]
    pub segment_limit: Option<SegmentLimit>,

    /// Filter bits per key; 0 turns filters off
    #[arg(long, value_name = "BITS")]
    pub bits_per_key: Option<f64>,

    /// How these bits are shared out among the files
    #[arg(long, value_enum)]
    pub filter_allocation: Option<FilterAllocationArg>,

    /// Bytes of tables over live bytes that merging aims to stay below; inf for no bound
    #[arg(long, value_name = "RATIO")]
    pub max_space_amp: Option<f64>,

    /// Bytes of key and value from which on a value is medium, or `never`
    #[arg(long, value_name = "BYTES", value_parser = parse_threshold)]
    pub medium_from: Option<u64>,

    /// Bytes of key and value from which on a value is large, or `never`; nothing is medium from there on
    #[arg(long, value_name = "BYTES", value_parser = parse_threshold)]
    pub large_from: Option<u64>,

    /// Level from which on merges write values of medium size in place
    #[arg(long, value_enum)]
    pub medium_in_place: Option<MediumInPlaceArg>,

    /// How flushes order values of medium size; for measurements
    #[arg(long, value_enum)]
    pub medium_order: Option<MediumOrderArg>,

    /// Cache for blocks
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub cache_bytes: Option<u64>,

    /// Memory that everything may take together; 0 for no limit
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub memory_budget: Option<u64>,

    /// Memory of one memtable
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub memtable_bytes: Option<u64>,

    /// Size of a table file
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub file_bytes: Option<u64>,

    /// Capacity of level 1 while it is the only level
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub base_bytes: Option<u64>,

    /// Flushed runs that level 0 gathers before they are merged
    #[arg(long, value_name = "N")]
    pub level0_runs: Option<usize>,

    /// Compression of data blocks
    #[arg(long, value_enum, default_value_t = CompressionArg::None)]
    pub compression: CompressionArg,

    /// Where reads take blocks from
    #[arg(long, value_enum)]
    pub block_source: Option<BlockSourceArg>,

    /// Sync the log before each write is acknowledged
    #[arg(long)]
    pub sync: bool,

    /// Threads that share the operations of each load
    #[arg(long, value_name = "T", default_value_t = THREADS,
          value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub threads: u64,

    /// Operations per second of each load but readseq, all threads together, without the writer of
    /// readwhilewriting [default: as many as can be done]
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u64).range(1..))]
    pub rate: Option<u64>,

    /// Writes per second beside the readers of readwhilewriting
    #[arg(long, value_name = "R", default_value_t = WRITE_RATE,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub write_rate: u64,

    /// Begin each load while the background work of the one before goes on; what that moves counts for
    /// the load beside which it moves
    #[arg(long)]
    pub unsettled: bool,

    /// Seed of all keys and values
    #[arg(long, value_name = "S", default_value_t = SEED)]
    pub seed: u64,

    /// Folder in which the store is kept after the run, in a subfolder named after the engine. A
    /// fill removes the store that is in this subfolder, and refuses a subfolder that holds
    /// anything but a store [default: a temporary folder, removed at the end]
    #[arg(long, value_name = "DIR")]
    pub db: Option<PathBuf>,
}

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

impl BenchArgs {
    /// The arguments of a command line that names `loads` and nothing else.
    pub fn new(loads: Vec<Load>) -> Self {
        Self {
            loads,
            num: NUM,
            ops: None,
            key_size: None,
            value_size: None,
            mix: None,
            preset: PRESET,
            size_ratio: None,
            scaling: None,
            bits_per_key: None,
            filter_allocation: None,
            max_space_amp: None,
            medium_from: None,
            large_from: None,
            medium_in_place: None,
            medium_order: None,
            segment_limit: None,
            cache_bytes: None,
            memory_budget: None,
            memtable_bytes: None,
            file_bytes: None,
            base_bytes: None,
            level0_runs: None,
            compression: CompressionArg::None,
            block_source: None,
            sync: false,
            threads: THREADS,
            rate: None,
            write_rate: WRITE_RATE,
            unsettled: false,
            seed: SEED,
            db: None,
        }
    }

    /// The keys and values for these arguments.
    ///
    /// # Errors
    /// `InvalidArgument` where sizes are beyond the limits.
    pub fn data_set(&self) -> Result<DataSet> {
        let is_ycsb = self.mix.is_some() || self.loads.iter().any(|load| load.is_ycsb());
        let key_size = self.key_size.unwrap_or(if is_ycsb { 24 } else { 16 });
        let value_sizes = match self.mix {
            Some(mix) => ValueSizes::mix(mix),
            None => ValueSizes::same(self.value_size.unwrap_or(100)),
        };
        DataSet::new(self.num, key_size, value_sizes, self.seed)
    }

    /// Windrow's options for these arguments.
    ///
    /// # Errors
    /// `InvalidArgument` that lists everything contradictory.
    pub fn windrow_options(&self) -> Result<Options> {
        let mut options = Options::preset(match self.preset {
            PresetArg::Balanced => Preset::Balanced,
            PresetArg::Leveling => Preset::Leveling,
            PresetArg::Autumn => Preset::Autumn,
            PresetArg::Parallax => Preset::Parallax,
            PresetArg::Lsma => Preset::Lsma,
        });
        let keyspace = &mut options.keyspace;
        set(&mut keyspace.size_ratio, self.size_ratio);
        set(&mut keyspace.scaling, self.scaling);
        set(&mut keyspace.segment_limit, self.segment_limit);
        set(&mut keyspace.bits_per_key, self.bits_per_key);
        set(
            &mut keyspace.filter_allocation,
            self.filter_allocation.map(FilterAllocation::from),
        );
        set(&mut keyspace.max_space_amp, self.max_space_amp);
        set(&mut keyspace.large_from, self.large_from);
        // Nobody has to say twice from where on nothing is medium.
        let medium_from = keyspace.medium_from.min(keyspace.large_from);
        keyspace.medium_from = self.medium_from.unwrap_or(medium_from);
        set(
            &mut keyspace.medium_in_place,
            self.medium_in_place.map(MediumInPlace::from),
        );
        set(
            &mut keyspace.medium_order,
            self.medium_order.map(MediumOrder::from),
        );
        set(&mut keyspace.file_bytes, self.file_bytes);
        set(&mut keyspace.base_bytes, self.base_bytes);
        set(&mut keyspace.level0_runs, self.level0_runs);
        let memtable_bytes = self.memtable_bytes.map(usize::try_from).transpose();
        let memtable_bytes = memtable_bytes.map_err(|_| {
            Error::invalid_argument("--memtable-bytes is more than this machine can address")
        })?;
        set(&mut keyspace.memtable_bytes, memtable_bytes);
        keyspace.compression = self.compression.into();
        set(&mut options.cache_bytes, self.cache_bytes);
        set(
            &mut options.block_source,
            self.block_source.map(BlockSource::from),
        );
        // A memtable takes at most an eighth.
        options.memory_budget = self.memory_budget.unwrap_or_else(|| {
            let wanted = (options.keyspace.memtable_bytes as u64).saturating_mul(8);
            options.memory_budget.max(wanted)
        });
        if self.sync {
            options.durability = Durability::Sync;
        }
        // The log must be able to hold what several memtables hold.
        let memtable_bytes = options.keyspace.memtable_bytes as u64;
        options.max_wal_bytes = options.max_wal_bytes.max(4 * memtable_bytes);
        options.validate()?;
        Ok(options)
    }
}

fn set<T>(field: &mut T, choice: Option<T>) {
    if let Some(choice) = choice {
        *field = choice;
    }
}

/// Reads a number of bytes: digits, then optionally K, M, G or T for powers of 1024.
///
/// # Errors
/// A sentence for the person who typed it.
pub fn parse_bytes(text: &str) -> std::result::Result<u64, String> {
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
fn parse_threshold(text: &str) -> std::result::Result<u64, String> {
    match text {
        "never" => Ok(u64::MAX),
        _ => parse_bytes(text).map_err(|sentence| format!("{sentence}, or never")),
    }
}

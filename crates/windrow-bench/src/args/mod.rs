//! The command-line arguments of every program that runs loads.

mod policy;
mod values;

use std::path::PathBuf;

use clap::Args;
use windrow::{BlockSource, Durability, Options, Result};

pub use self::policy::PolicyArgs;
use self::policy::set;
pub use self::values::{
    BlockSourceArg, CompressionArg, FilterAllocationArg, MediumInPlaceArg, MediumOrderArg,
    PresetArg, parse_bytes,
};
use crate::{DataSet, Load, Mix, ValueSizes};

/// Defaults of the arguments that always have a value.
const NUM: u64 = 1_000_000;
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

    /// The shape of the tree
    #[command(flatten)]
    pub policy: PolicyArgs,

    /// Cache for blocks
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub cache_bytes: Option<u64>,

    /// Memory that everything may take together; 0 for no limit
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub memory_budget: Option<u64>,

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
            policy: PolicyArgs::default(),
            cache_bytes: None,
            memory_budget: None,
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
        let mut options = self.policy.options()?;
        options.keyspace.compression = self.compression.into();
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

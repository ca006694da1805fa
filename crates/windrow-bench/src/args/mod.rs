//! The command-line arguments of every program that runs loads.

mod amount;
mod check;
mod mixgraph;
mod policy;
mod values;

use std::path::{Path, PathBuf};

use clap::builder::BoolishValueParser;
use clap::{Args, Command, FromArgMatches as _};
use windrow::{BlockSource, Compression, Durability, Options, Result};

pub use self::mixgraph::{MixModel, MixgraphArgs};
pub use self::policy::PolicyArgs;
use self::policy::set;
pub use self::values::{
    BlockSourceArg, CompressionArg, FilterAllocationArg, MediumInPlaceArg, MediumOrderArg,
    PresetArg, WarmUp, parse_bytes, parse_threshold,
};
use self::values::{parse_seconds, parse_size, parse_warm_up};
use crate::data::data_set::COMPRESSION_RATIO;
use crate::load::kinds::{Kind, LARGE_VALUE_BYTES};
use crate::load::numbers::NUMBER_BYTES;
use crate::measure::rate_limiter::Rate;
use crate::{DataSet, Load, MergeOperator, Mix, ValueSizes};

/// Defaults of arguments that always have a value.
const NUM: u64 = 1_000_000;
/// A larger number is a mistake.
const NUM_MAX: u64 = 1_000_000_000_000;
const THREADS: u64 = 1;
const WRITE_RATE: u64 = 20_000;
const READ_WRITE_PERCENT: u64 = 90;
pub(crate) const SEED: u64 = 1;

/// The loads to run, their data, and the settings.
#[derive(Debug, Clone, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of its own on the command line"
)]
pub struct BenchArgs {
    /// Loads to run, in this order, separated by commas. Fills start from an empty store; every other load uses the
    /// store that the loads before it left
    #[arg(
        value_enum,
        value_delimiter = ',',
        required_unless_present = "benchmarks",
        value_name = "LOADS"
    )]
    pub loads: Vec<Load>,

    /// The same, as in `db_bench`
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        conflicts_with = "loads",
        value_name = "LOADS",
        hide_possible_values = true
    )]
    pub benchmarks: Vec<Load>,

    /// Number of different keys or records, and of entries that a fill writes
    #[arg(long, visible_alias = "records", value_name = "N", default_value_t = NUM,
          value_parser = clap::value_parser!(u64).range(1..=NUM_MAX))]
    pub num: u64,

    /// Operations of each load that is not a fill [default: N for writes and walks, N/10 for
    /// gets and YCSB's loads, N/50 for seeks and ycsb-e]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub ops: Option<u64>,

    /// Operations of each load that reads, or reads and writes; overrides --ops
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub reads: Option<u64>,

    /// Operations of each load that writes, fills included; overrides --ops
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub writes: Option<u64>,

    /// Operations of each load that deletes; overrides --ops
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub deletes: Option<u64>,

    /// Seconds of each load of random operations, instead of a number of operations; with both, the first bound
    /// ends the load. Fills of each key, walks and deleteseq run to their end; 0 for no limit
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub duration: Option<f64>,

    /// The same for loads whose own threads only read; overrides --duration
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub read_duration: Option<f64>,

    /// Unmeasured operations before each load that only reads, without a companion that writes: a number of
    /// operations, or of seconds with the suffix s
    #[arg(long, alias = "warm_up", value_name = "OPS|SECONDS", value_parser = parse_warm_up)]
    pub warm_up: Option<WarmUp>,

    /// Bytes of a key: a decimal number of up to 16 digits, then zeros [default: 16, or 24 with
    /// YCSB's loads or a mix]
    #[arg(long, alias = "key_size", value_name = "BYTES", value_parser = parse_size)]
    pub key_size: Option<usize>,

    /// Bytes of a value [default: 100, or 8 with mergecounters]
    #[arg(
        long,
        alias = "value_size",
        value_name = "BYTES",
        value_parser = parse_size,
        conflicts_with = "mix"
    )]
    pub value_size: Option<usize>,

    /// Mix of value sizes instead of one size: small values of 9, medium ones of 104 and large ones of 1004 bytes.
    /// Each write draws its size at random
    #[arg(long, value_enum, ignore_case = true)]
    pub mix: Option<Mix>,

    /// Compressed size of each value as a fraction of its size
    #[arg(long, alias = "compression_ratio", value_name = "FRACTION", default_value_t = COMPRESSION_RATIO)]
    pub compression_ratio: f64,

    /// The shape of the tree
    #[command(flatten)]
    pub policy: PolicyArgs,

    /// Size of the block cache
    #[arg(long, aliases = ["cache-size", "cache_size"], value_name = "BYTES", value_parser = parse_bytes)]
    pub cache_bytes: Option<u64>,

    /// Limit on all memory together, 0 for no limit [default: 512M, or 8 memtables if that is more]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub memory_budget: Option<u64>,

    /// Windrow's threads for flushes and compactions
    #[arg(long, aliases = ["max-background-jobs", "max_background_jobs"], value_name = "N")]
    pub background_threads: Option<usize>,

    /// Compression of data blocks [default: that of the file of --options, or none]
    #[arg(long, aliases = ["compression-type", "compression_type"], value_enum)]
    pub compression: Option<CompressionArg>,

    /// Size of a data block [default: that of the file of --options, or 4K]
    #[arg(long, aliases = ["block-size", "block_size"], value_name = "BYTES", value_parser = parse_size)]
    pub block_bytes: Option<usize>,

    /// Source of blocks for reads
    #[arg(long, value_enum)]
    pub block_source: Option<BlockSourceArg>,

    /// Sync the log before each write is acknowledged
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = false,
          default_missing_value = "true", value_name = "BOOL", hide_default_value = true,
          hide_possible_values = true, value_parser = BoolishValueParser::new(),
          action = clap::ArgAction::Set)]
    pub sync: bool,

    /// Entries per batch in loads of single writes and in multireadrandom; fillbatch always has 1000
    #[arg(long, alias = "batch_size", value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub batch_size: u64,

    /// Steps after each seek [default: 0, or 10 in fwdrange and revrange]
    #[arg(long, alias = "seek_nexts", value_name = "N")]
    pub seek_nexts: Option<u32>,

    /// Step backward after a seek
    #[arg(long, alias = "reverse_iterator", num_args = 0..=1, require_equals = true, default_value_t = false,
          default_missing_value = "true", value_name = "BOOL", hide_default_value = true,
          hide_possible_values = true, value_parser = BoolishValueParser::new(),
          action = clap::ArgAction::Set)]
    pub reverse_iterator: bool,

    /// Use one iterator for all seeks of a thread instead of a new one for each seek. With a companion that writes,
    /// each seek has a new one in any case
    #[arg(long, alias = "keep_cursor", num_args = 0..=1, require_equals = true, default_value_t = false,
          default_missing_value = "true", value_name = "BOOL", hide_default_value = true,
          hide_possible_values = true, value_parser = BoolishValueParser::new(),
          action = clap::ArgAction::Set)]
    pub keep_cursor: bool,

    /// Percent of gets in readrandomwriterandom
    #[arg(long, aliases = ["read_write_percent", "readwritepercent"], value_name = "PERCENT",
          default_value_t = READ_WRITE_PERCENT, value_parser = clap::value_parser!(u64).range(0..=100))]
    pub read_write_percent: u64,

    /// Counters among which loads on counters pick, the first ones [default: all]
    #[arg(long, alias = "hot_keys", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub hot_keys: Option<u64>,

    /// Trace for replay: one operation per line, `KEY OPERATION SIZE`, plain or compressed (gzip, zstd, LZ4)
    #[arg(long, aliases = ["trace-file", "trace_file"], value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// Threads that share the operations of each load
    #[arg(long, value_name = "T", default_value_t = THREADS,
          value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub threads: u64,

    /// Operations per second of each load, all threads together, without the companion [default: no limit]
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u64).range(1..))]
    pub rate: Option<u64>,

    /// Writes per second of the companion in the loads while writing
    #[arg(long, value_name = "R", default_value_t = WRITE_RATE,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub write_rate: u64,

    /// Bytes of keys and values that loads write per second; also the rate of the companion, instead of --write-rate
    #[arg(long, alias = "benchmark_write_rate_limit", value_name = "BYTES", value_parser = parse_bytes)]
    pub benchmark_write_rate_limit: Option<u64>,

    /// Print the distribution of latencies below each line of the table
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = false,
          default_missing_value = "true", value_name = "BOOL", hide_default_value = true,
          hide_possible_values = true, value_parser = BoolishValueParser::new(),
          action = clap::ArgAction::Set)]
    pub histogram: bool,

    /// Print a line to standard error at this interval in seconds; 0 for none
    #[arg(long, alias = "stats_interval_seconds", value_name = "SECONDS", value_parser = parse_seconds)]
    pub stats_interval_seconds: Option<f64>,

    /// Begin each load without a wait for the background work of the load before; its bytes then count for the load
    /// during which they move
    #[arg(long)]
    pub unsettled: bool,

    /// Memory that the machine has left for the run, page cache included: a child process locks the rest. Needs root
    /// or a high limit of locked memory, and slows down other programs
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub memory: Option<u64>,

    /// Before each load on existing data: close the store, write dirty pages, and drop the page cache. Users without
    /// the rights of root drop the pages of the store's files only
    #[arg(long)]
    pub drop_caches: bool,

    /// Seed of all keys and values
    #[arg(long, value_name = "S", default_value_t = SEED)]
    pub seed: u64,

    /// Folder that keeps the store after the run, in a subfolder named after the engine. A fill removes the store
    /// in this subfolder, and refuses a subfolder that holds anything else [default: a temporary folder, removed at
    /// the end]
    #[arg(long, value_name = "DIR")]
    pub db: Option<PathBuf>,

    /// Refuse fills, which would remove the store of --db
    #[arg(long, alias = "use_existing_db", requires = "db", num_args = 0..=1, require_equals = true, default_value_t = false,
          default_missing_value = "true", value_name = "BOOL", hide_default_value = true,
          hide_possible_values = true, value_parser = BoolishValueParser::new(),
          action = clap::ArgAction::Set)]
    pub use_existing_db: bool,

    /// The parameters of mixgraph
    #[command(flatten)]
    pub mixgraph: MixgraphArgs,
}

impl BenchArgs {
    /// The arguments of a command line with `loads`, at least one, and nothing else.
    ///
    /// # Panics
    /// Without loads.
    #[expect(
        clippy::expect_used,
        reason = "the command line has the names of loads and defaults"
    )]
    pub fn new(loads: Vec<Load>) -> Self {
        let names: Vec<&str> = loads.into_iter().map(Load::name).collect();
        let command = Self::augment_args(Command::new("bench"));
        let matches = command.try_get_matches_from(["bench", &names.join(",")]);
        let args = matches.and_then(|matches| Self::from_arg_matches(&matches));
        args.expect("names of loads are arguments")
    }

    /// The loads to run.
    pub fn loads(&self) -> &[Load] {
        if self.benchmarks.is_empty() {
            &self.loads
        } else {
            &self.benchmarks
        }
    }

    /// The merge operator that the loads need.
    pub fn merge_operator(&self) -> Option<MergeOperator> {
        self.loads().iter().find_map(|load| load.merge_operator())
    }

    /// The number of first indexes from which `load` picks its keys.
    pub(crate) fn indexes(&self, load: Load) -> u64 {
        let indexes = load.indexes(self.num);
        match (load.contents(), self.hot_keys) {
            (Kind::Counters, Some(hot)) => indexes.min(hot),
            _ => indexes,
        }
    }

    /// Whether the loads are for the device and not for memory.
    pub fn runs_on_device(&self) -> bool {
        self.memory.is_some() || self.drop_caches
    }

    /// The limit on operations per second of `load`.
    pub(crate) fn rate_of(&self, load: Load, data: &DataSet) -> Rate {
        if let Some(wave) = self.mixgraph.wave().filter(|_| load == Load::MixGraph) {
            return Rate::Wave(wave);
        }
        let rate = self.rate.map(|rate| rate as f64);
        let entry_bytes = match load {
            // The key is negligible.
            Load::Fill100K => LARGE_VALUE_BYTES as u64,
            _ => data.entry_bytes(),
        };
        let writes = self.write_limit(entry_bytes).filter(|_| load.changes());
        match (rate, writes) {
            (None, None) => Rate::Free,
            (Some(rate), Some(writes)) => Rate::Steady(rate.min(writes)),
            (Some(rate), None) | (None, Some(rate)) => Rate::Steady(rate),
        }
    }

    /// Writes per second of the companion.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate of writes is far below 2^53"
    )]
    pub(crate) fn companion_rate(&self, data: &DataSet) -> u64 {
        self.write_limit(data.entry_bytes())
            .map_or(self.write_rate, |rate| rate.ceil() as u64)
    }

    /// The limit on bytes per second, in entries of `entry_bytes`.
    fn write_limit(&self, entry_bytes: u64) -> Option<f64> {
        let bytes = self.benchmark_write_rate_limit.filter(|&bytes| bytes > 0)?;
        Some(bytes as f64 / entry_bytes.max(1) as f64)
    }

    /// The keys and values for these arguments.
    ///
    /// # Errors
    /// `InvalidArgument` for sizes beyond the limits.
    pub fn data_set(&self) -> Result<DataSet> {
        let is_ycsb = self.mix.is_some() || self.loads().iter().any(|load| load.is_ycsb());
        let key_size = self.key_size.unwrap_or(if is_ycsb { 24 } else { 16 });
        let value_sizes = match self.mix {
            Some(mix) => ValueSizes::mix(mix),
            None => ValueSizes::same(self.value_size.unwrap_or(match self.merge_operator() {
                Some(MergeOperator::Add) => NUMBER_BYTES,
                _ => 100,
            })),
        };
        DataSet::new(self.num, key_size, value_sizes, self.seed)?
            .with_compression_ratio(self.compression_ratio)
    }

    /// The input files of these arguments: options, and a trace.
    pub fn inputs(&self) -> impl Iterator<Item = &Path> {
        let inputs = [&self.policy.options_file, &self.trace];
        inputs.into_iter().flatten().map(PathBuf::as_path)
    }

    /// Windrow's options for these arguments.
    ///
    /// # Errors
    /// `InvalidArgument` that lists everything contradictory.
    pub fn windrow_options(&self) -> Result<Options> {
        let mut options = self.policy.options()?;
        set(
            &mut options.keyspace.compression,
            self.compression.map(Compression::from),
        );
        set(&mut options.keyspace.block_bytes, self.block_bytes);
        set(&mut options.cache_bytes, self.cache_bytes);
        set(
            &mut options.block_source,
            self.block_source.map(BlockSource::from),
        );
        set(&mut options.background_threads, self.background_threads);
        // A memtable may take an eighth of the budget.
        options.memory_budget = self.memory_budget.unwrap_or_else(|| {
            let wanted = (options.keyspace.memtable_bytes as u64).saturating_mul(8);
            options.memory_budget.max(wanted)
        });
        if self.sync {
            options.durability = Durability::Sync;
        }
        // The log has capacity for several memtables.
        let memtable_bytes = options.keyspace.memtable_bytes as u64;
        options.max_wal_bytes = options.max_wal_bytes.max(memtable_bytes.saturating_mul(4));
        options.validate()?;
        Ok(options)
    }
}

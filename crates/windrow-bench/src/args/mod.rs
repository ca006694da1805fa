//! The command-line arguments of every program that runs loads.

mod check;
mod mixgraph;
mod policy;
mod values;

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::BoolishValueParser;
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
use crate::load::work::LARGE_VALUE_BYTES;
use crate::measure::rate_limiter::Rate;
use crate::{DataSet, Load, Mix, ValueSizes};

/// Defaults of the arguments that always have a value.
const NUM: u64 = 1_000_000;
/// Beyond this is a mistake.
const NUM_MAX: u64 = 1_000_000_000_000;
const THREADS: u64 = 1;
const WRITE_RATE: u64 = 20_000;
const READ_WRITE_PERCENT: u64 = 90;
pub(crate) const SEED: u64 = 1;

/// What to run, on how much data, with which settings.
#[derive(Debug, Clone, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of its own on the command line"
)]
pub struct BenchArgs {
    /// Loads to run, in this order, with commas between them. The fills start from an empty
    /// store; every other load uses what the loads before it left
    #[arg(
        value_enum,
        value_delimiter = ',',
        required_unless_present = "benchmarks",
        value_name = "LOADS"
    )]
    pub loads: Vec<Load>,

    /// The same, as `db_bench` has it
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

    /// Operations of each load that reads, or reads and writes; goes before --ops
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub reads: Option<u64>,

    /// Operations of each load that writes, fills among them; goes before --ops
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub writes: Option<u64>,

    /// Operations of each load that deletes; goes before --ops
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub deletes: Option<u64>,

    /// Seconds of each load of random operations, in place of a number of operations; with both,
    /// whichever is over first. Fills of each key, walks and deleteseq go to their end; 0 for no end by the
    /// clock
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub duration: Option<f64>,

    /// The same for loads whose own threads only read; goes before --duration
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub read_duration: Option<f64>,

    /// What each load that only reads, with no writer beside it, does beforehand and does not count: a number
    /// of operations, or of seconds with an s behind it
    #[arg(long, alias = "warm_up", value_name = "OPS|SECONDS", value_parser = parse_warm_up)]
    pub warm_up: Option<WarmUp>,

    /// Bytes of a key: a decimal number of up to 16 digits, then zeros [default: 16, or 24 with
    /// YCSB's loads or a mix]
    #[arg(long, alias = "key_size", value_name = "BYTES", value_parser = parse_size)]
    pub key_size: Option<usize>,

    /// Bytes of a value [default: 100]
    #[arg(
        long,
        alias = "value_size",
        value_name = "BYTES",
        value_parser = parse_size,
        conflicts_with = "mix"
    )]
    pub value_size: Option<usize>,

    /// Sizes of values, in place of one: small ones of 9, medium ones of 104 and large ones of 1004
    /// bytes. Each write draws its size anew
    #[arg(long, value_enum, ignore_case = true)]
    pub mix: Option<Mix>,

    /// The part of each value that is left when it is compressed
    #[arg(long, alias = "compression_ratio", value_name = "SHARE", default_value_t = COMPRESSION_RATIO)]
    pub compression_ratio: f64,

    /// The shape of the tree
    #[command(flatten)]
    pub policy: PolicyArgs,

    /// Cache for blocks
    #[arg(long, aliases = ["cache-size", "cache_size"], value_name = "BYTES", value_parser = parse_bytes)]
    pub cache_bytes: Option<u64>,

    /// Memory that everything may take together; 0 for no limit
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub memory_budget: Option<u64>,

    /// Windrow's threads for flushes and merges
    #[arg(long, aliases = ["max-background-jobs", "max_background_jobs"], value_name = "N")]
    pub background_threads: Option<usize>,

    /// Compression of data blocks [default: that of the file of --options, or none]
    #[arg(long, aliases = ["compression-type", "compression_type"], value_enum)]
    pub compression: Option<CompressionArg>,

    /// Size of a data block [default: that of the file of --options, or 4K]
    #[arg(long, aliases = ["block-size", "block_size"], value_name = "BYTES", value_parser = parse_size)]
    pub block_bytes: Option<usize>,

    /// Where reads take blocks from
    #[arg(long, value_enum)]
    pub block_source: Option<BlockSourceArg>,

    /// Sync the log before each write is acknowledged
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = false,
          default_missing_value = "true", value_name = "BOOL", hide_default_value = true,
          hide_possible_values = true, value_parser = BoolishValueParser::new(),
          action = clap::ArgAction::Set)]
    pub sync: bool,

    /// Entries that the loads of single writes and multireadrandom put into a batch; fillbatch always
    /// takes 1000
    #[arg(long, alias = "batch_size", value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub batch_size: u64,

    /// Steps behind each seek [default: 0, or 10 in fwdrange and revrange]
    #[arg(long, alias = "seek_nexts", value_name = "N")]
    pub seek_nexts: Option<u32>,

    /// Take the steps behind a seek backwards
    #[arg(long, alias = "reverse_iterator", num_args = 0..=1, require_equals = true, default_value_t = false,
          default_missing_value = "true", value_name = "BOOL", hide_default_value = true,
          hide_possible_values = true, value_parser = BoolishValueParser::new(),
          action = clap::ArgAction::Set)]
    pub reverse_iterator: bool,

    /// Let each thread do all its seeks with one scan, in place of a new one for each seek. Beside a
    /// writer each seek has a new one all the same
    #[arg(long, alias = "keep_cursor", num_args = 0..=1, require_equals = true, default_value_t = false,
          default_missing_value = "true", value_name = "BOOL", hide_default_value = true,
          hide_possible_values = true, value_parser = BoolishValueParser::new(),
          action = clap::ArgAction::Set)]
    pub keep_cursor: bool,

    /// Percent of gets in readrandomwriterandom
    #[arg(long, aliases = ["read_write_percent", "readwritepercent"], value_name = "PERCENT",
          default_value_t = READ_WRITE_PERCENT, value_parser = clap::value_parser!(u64).range(0..=100))]
    pub read_write_percent: u64,

    /// The trace that replay plays: an operation a line, `KEY OPERATION SIZE`, plain or compressed
    /// (gzip, zstd, LZ4)
    #[arg(long, aliases = ["trace-file", "trace_file"], value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// Threads that share the operations of each load
    #[arg(long, value_name = "T", default_value_t = THREADS,
          value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub threads: u64,

    /// Operations per second of each load, all threads together, without the writer beside them
    /// [default: as many as can be done]
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u64).range(1..))]
    pub rate: Option<u64>,

    /// Writes per second of the one writer beside the readers of the loads while writing
    #[arg(long, value_name = "R", default_value_t = WRITE_RATE,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub write_rate: u64,

    /// Bytes of keys and values that loads write in a second, the writer beside readers too
    #[arg(long, alias = "benchmark_write_rate_limit", value_name = "BYTES", value_parser = parse_bytes)]
    pub benchmark_write_rate_limit: Option<u64>,

    /// Print how latencies are distributed below each line of the table
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = false,
          default_missing_value = "true", value_name = "BOOL", hide_default_value = true,
          hide_possible_values = true, value_parser = BoolishValueParser::new(),
          action = clap::ArgAction::Set)]
    pub histogram: bool,

    /// Print a line to standard error every so many seconds; 0 for none
    #[arg(long, alias = "stats_interval_seconds", value_name = "SECONDS", value_parser = parse_seconds)]
    pub stats_interval_seconds: Option<f64>,

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

    /// Refuse fills, so that the store of --db stays what it is
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
    /// The arguments of a command line that names `loads` and nothing else.
    pub fn new(loads: Vec<Load>) -> Self {
        Self {
            loads,
            benchmarks: Vec::new(),
            num: NUM,
            ops: None,
            reads: None,
            writes: None,
            deletes: None,
            duration: None,
            read_duration: None,
            warm_up: None,
            key_size: None,
            value_size: None,
            mix: None,
            compression_ratio: COMPRESSION_RATIO,
            policy: PolicyArgs::default(),
            cache_bytes: None,
            memory_budget: None,
            background_threads: None,
            compression: None,
            block_bytes: None,
            block_source: None,
            sync: false,
            batch_size: 1,
            seek_nexts: None,
            reverse_iterator: false,
            keep_cursor: false,
            read_write_percent: READ_WRITE_PERCENT,
            trace: None,
            threads: THREADS,
            rate: None,
            write_rate: WRITE_RATE,
            benchmark_write_rate_limit: None,
            histogram: false,
            stats_interval_seconds: None,
            unsettled: false,
            seed: SEED,
            db: None,
            use_existing_db: false,
            mixgraph: MixgraphArgs::default(),
        }
    }

    /// The loads to run, however they were named.
    pub(crate) fn loads(&self) -> &[Load] {
        if self.benchmarks.is_empty() {
            &self.loads
        } else {
            &self.benchmarks
        }
    }

    /// Operations per second of `load`, at most.
    pub(crate) fn rate_of(&self, load: Load, data: &DataSet) -> Rate {
        if let Some(wave) = self.mixgraph.wave().filter(|_| load == Load::MixGraph) {
            return Rate::Wave(wave);
        }
        let rate = self.rate.map(|rate| rate as f64);
        let entry_bytes = match load {
            // Beside which a key is nothing.
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

    /// Writes per second of the writer beside readers.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate of writes is no huge number"
    )]
    pub(crate) fn companion_rate(&self, data: &DataSet) -> u64 {
        self.write_limit(data.entry_bytes())
            .map_or(self.write_rate, |rate| rate.ceil() as u64)
    }

    /// Entries of `entry_bytes` per second that are as many bytes as may be written.
    fn write_limit(&self, entry_bytes: u64) -> Option<f64> {
        let bytes = self.benchmark_write_rate_limit.filter(|&bytes| bytes > 0)?;
        Some(bytes as f64 / entry_bytes.max(1) as f64)
    }

    /// The keys and values for these arguments.
    ///
    /// # Errors
    /// `InvalidArgument` where sizes are beyond the limits.
    pub fn data_set(&self) -> Result<DataSet> {
        let is_ycsb = self.mix.is_some() || self.loads().iter().any(|load| load.is_ycsb());
        let key_size = self.key_size.unwrap_or(if is_ycsb { 24 } else { 16 });
        let value_sizes = match self.mix {
            Some(mix) => ValueSizes::mix(mix),
            None => ValueSizes::same(self.value_size.unwrap_or(100)),
        };
        DataSet::new(self.num, key_size, value_sizes, self.seed)?
            .with_compression_ratio(self.compression_ratio)
    }

    /// The files that loads with these arguments read: options, and a trace.
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
        // A memtable takes at most an eighth.
        set(&mut options.background_threads, self.background_threads);
        options.memory_budget = self.memory_budget.unwrap_or_else(|| {
            let wanted = (options.keyspace.memtable_bytes as u64).saturating_mul(8);
            options.memory_budget.max(wanted)
        });
        if self.sync {
            options.durability = Durability::Sync;
        }
        // The log must be able to hold what several memtables hold.
        let memtable_bytes = options.keyspace.memtable_bytes as u64;
        options.max_wal_bytes = options.max_wal_bytes.max(memtable_bytes.saturating_mul(4));
        options.validate()?;
        Ok(options)
    }
}

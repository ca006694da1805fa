//! The Garnering study: one tree after the other, over size ratios T and scalings c, on one build
//! and the same data; after the Autumn paper's experiments (fills, gets, seeks, the sweep of c, and
//! space), with its small memtables, files and levels.
//!
//! Each tree is filled in random order and settled; then keys that are absent and present are read,
//! and seeks of three lengths run. Without filters, blocks per absent key and per seek count the
//! runs that a key meets: those of the levels, and those that happen to be left in level 0. They are
//! counts, whatever the machine does meanwhile. The preset is that of the paper alone: nothing bounds
//! the space.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use windrow::{Error, Result};

use crate::args::{SEED, parse_bytes};
use crate::{BenchArgs, Load, PolicyArgs, PresetArg, Report, WindrowEngine, run};

/// What is done on each tree, in this order.
const LOADS: [Load; 6] = [
    Load::FillRandom,
    Load::ReadMissing,
    Load::ReadRandom,
    Load::SeekRandom,
    Load::Seek10,
    Load::Seek100,
];

/// Which trees to compare, on how much data.
#[derive(Debug, Clone, Args)]
pub struct GarneringArgs {
    /// Number of different keys, and of entries that are written
    #[arg(long, value_name = "N", default_value_t = 5_000_000,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub num: u64,

    /// Gets of each kind, and seeks of each length
    #[arg(long, value_name = "N", default_value_t = 100_000,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub ops: u64,

    /// Size ratios T of the last two levels
    #[arg(long, value_name = "T", value_delimiter = ',', default_values_t = [2.0, 5.0])]
    pub size_ratios: Vec<f64>,

    /// Scalings c; 1 is plain leveling
    #[arg(long, value_name = "C", value_delimiter = ',', default_values_t = [1.0, 0.8, 0.4])]
    pub scalings: Vec<f64>,

    /// Bytes of a key
    #[arg(long, value_name = "BYTES", default_value_t = 16)]
    pub key_size: usize,

    /// Bytes of a value
    #[arg(long, value_name = "BYTES", default_value_t = 100)]
    pub value_size: usize,

    /// Memory of one memtable
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, default_value = "4M")]
    pub memtable_bytes: u64,

    /// Size of a table file
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, default_value = "2M")]
    pub file_bytes: u64,

    /// Capacity of level 1 while it is the only level
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, default_value = "10M")]
    pub base_bytes: u64,

    /// Flushed runs that level 0 gathers before they are merged; 1 leaves the fewest runs beside the
    /// levels
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub level0_runs: usize,

    /// Filter bits per key; 0 turns filters off
    #[arg(long, value_name = "BITS", default_value_t = 0.0)]
    pub bits_per_key: f64,

    /// Seed of all keys and values
    #[arg(long, value_name = "S", default_value_t = SEED)]
    pub seed: u64,

    /// Folder in which the stores are kept, each in a subfolder named after its T and c [default:
    /// temporary folders, removed at the end]
    #[arg(long, value_name = "DIR")]
    pub db: Option<PathBuf>,
}

/// What one tree cost.
#[derive(Debug, Clone, Serialize)]
pub struct GarneringRow {
    /// T.
    pub size_ratio: f64,
    /// c.
    pub scaling: f64,
    /// The deepest level that holds anything after the fill.
    pub levels: u64,
    /// Runs that are left in level 0 after the fill. Chance decides, and a key meets each of them.
    pub level0_runs: u64,
    /// Each load.
    pub loads: Vec<Report>,
}

/// Runs the study; `each` gets every tree as soon as it is done.
///
/// # Errors
/// As [`run_watched`](crate::run_watched); `Corruption` where two trees read different data under the
/// one seed.
pub fn garnering(
    args: &GarneringArgs,
    mut each: impl FnMut(&GarneringRow) -> Result<()>,
) -> Result<()> {
    // Every tree is possible before the first is filled.
    let trees: Vec<BenchArgs> = args
        .size_ratios
        .iter()
        .flat_map(|&ratio| args.scalings.iter().map(move |&scaling| (ratio, scaling)))
        .map(|(ratio, scaling)| tree(args, ratio, scaling))
        .collect();
    for tree in &trees {
        tree.windrow_options()?;
    }
    let mut checksums: Option<Vec<String>> = None;
    for tree in &trees {
        let mut loads = Vec::new();
        let open = |folder: &_| WindrowEngine::open(folder, tree);
        run::<WindrowEngine>(tree, open, |report| {
            loads.push(report.clone());
            Ok(())
        })?;
        let read: Vec<String> = loads.iter().map(|load| load.checksum.clone()).collect();
        if *checksums.get_or_insert_with(|| read.clone()) != read {
            let message = "two trees of the same data were read differently";
            return Err(Error::corruption("the study", 0, message));
        }
        each(&GarneringRow::of(tree, loads))?;
    }
    Ok(())
}

/// The arguments of the run on one tree.
fn tree(args: &GarneringArgs, size_ratio: f64, scaling: f64) -> BenchArgs {
    let db = args.db.as_ref();
    BenchArgs {
        num: args.num,
        ops: Some(args.ops),
        key_size: Some(args.key_size),
        value_size: Some(args.value_size),
        policy: PolicyArgs {
            preset: PresetArg::Autumn,
            size_ratio: Some(size_ratio),
            scaling: Some(scaling),
            bits_per_key: Some(args.bits_per_key),
            memtable_bytes: Some(args.memtable_bytes),
            file_bytes: Some(args.file_bytes),
            base_bytes: Some(args.base_bytes),
            level0_runs: Some(args.level0_runs),
            ..PolicyArgs::default()
        },
        seed: args.seed,
        db: db.map(|folder| folder.join(format!("T{size_ratio}-c{scaling}"))),
        ..BenchArgs::new(LOADS.to_vec())
    }
}

impl GarneringRow {
    fn of(tree: &BenchArgs, loads: Vec<Report>) -> Self {
        let fill = loads.first();
        let levels = fill.map(|fill| fill.levels.as_slice()).unwrap_or_default();
        let filled = || levels.iter().filter(|level| level.files > 0);
        Self {
            size_ratio: tree.policy.size_ratio.unwrap_or_default(),
            scaling: tree.policy.scaling.unwrap_or_default(),
            levels: filled().map(|level| level.level).max().unwrap_or(0),
            level0_runs: filled()
                .find(|level| level.level == 0)
                .map_or(0, |level| level.files),
            loads,
        }
    }

    /// The line of the table for people.
    pub fn line(&self) -> String {
        let Some((fill, reads)) = self.loads.split_first() else {
            return String::new();
        };
        let reads: Vec<String> = reads
            .iter()
            .map(|load| {
                let blocks = load.block_reads_per_op.unwrap_or_default();
                format!("{:>6.0} {blocks:>6.3}", load.ops_per_second / 1e3)
            })
            .collect();
        let levels: Vec<String> = fill
            .levels
            .iter()
            .map(|level| format!("{:.1}", level.bytes as f64 / f64::from(1 << 20)))
            .collect();
        format!(
            "{:>4} {:>4} {:>6} {:>4} {:>6.0} {:>6.2}x {:>5.2}x  {}  {}",
            self.size_ratio,
            self.scaling,
            self.levels,
            self.level0_runs,
            fill.ops_per_second / 1e3,
            fill.write_amplification,
            fill.space_amplification.unwrap_or_default(),
            reads.join("  "),
            levels.join(" ")
        )
    }
}

/// The two lines over the lines of [`GarneringRow`]s.
pub fn garnering_header() -> String {
    let names: Vec<String> = LOADS[1..]
        .iter()
        .map(|load| format!("{:<13}", load.name()))
        .collect();
    let columns: Vec<&str> = LOADS[1..].iter().map(|_| "kops/s blocks").collect();
    format!(
        "{:>4} {:>4} {:>6} {:>4} {:<21}  {}\n{:>4} {:>4} {:>6} {:>4} {:>6} {:>7} {:>6}  {}  {}",
        "",
        "",
        "",
        "",
        LOADS[0].name(),
        names.join("  "),
        "T",
        "c",
        "levels",
        "L0",
        "kops/s",
        "written",
        "space",
        columns.join("  "),
        "MiB by level"
    )
}

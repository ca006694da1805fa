//! `simulate`: predicts what a load costs, without a disk for it.

pub(super) mod distribution;
mod plot;
pub(super) mod quantities;
mod reads;
mod report;

use std::path::PathBuf;

use clap::Args;
use windrow::simulation::{KeyDistribution, Load, ValueSize, simulate_large};
use windrow::{Error, Result};
use windrow_bench::{Mix, PolicyArgs, check_destination, parse_bytes};

use self::distribution::DistributionArgs;
use self::quantities::{TimeToLive, Updates, parse_time_to_live, parse_updates};
use self::reads::Reads;
use self::report::Report;
use super::cost::MachineArgs;
use crate::amounts::{MIX_KEY_BYTES, mix_sizes, whole};
use crate::outcome::Outcome;
use crate::output::Output;
use crate::progress;

/// Up to this many bytes of writes are simulated flush by flush. More are simulated in parts if they are more than
/// [`FLUSHES_MAX`] flushes.
const BYTES_IN_ONE_PIECE: f64 = 100e9;

/// The most flushes that are simulated of the beginning of a larger load, and of its lowest part.
const FLUSHES_MAX: u64 = 1_500;

/// A simulated tree has about this many files at most: fewer take less time.
const FILES_MAX: u64 = 2_048;

/// Arguments of `simulate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Bytes are a number and a unit, such as 1.5TB. KB, MB, GB, TB and PB are powers of 1000; KiB, MiB, GiB, \
TiB and PiB, and K, M, G, T and P alone, are powers of 1024.

Loads of up to 100 GB of writes, or of up to 1500 flushes, are simulated flush by flush. Larger loads \
are simulated in parts (docs/simulation.md), unless --exact asks for one piece.

With --memory the report has the requests and bytes that gets and seeks ask of the device once the load is \
written, and with --device or --calibration also how many a thread makes per second.

Examples:
  windrow simulate --bytes 1PB --entry-size 1000
  windrow simulate --bytes 1TB --entry-size 116 --size-ratio 4 --updates 1
  windrow simulate --bytes 200GB --mix MD --preset parallax --updates 500GB
  windrow simulate --bytes 50GB --distribution zipfian --updates 2 --json
  windrow simulate --bytes 50GB --value-size 32 --updates 2 --merges 0.2 --operand-size 8
  windrow simulate --bytes 50GB --updates 2 --range-deletes-per-write 0.0001 --range-delete-part 0.001
  windrow simulate --bytes 50GB --updates 3 --expiring 0.5 --time-to-live 20GB
  windrow simulate --bytes 50GB --updates 2 --plot tree.svg
  windrow simulate --bytes 2TB --entry-size 216 --memory 64G --device nvme
  windrow device /mnt/data --json > device.json && \
    windrow simulate --bytes 2TB --entry-size 216 --memory 64G --calibration device.json")]
pub(crate) struct SimulateArgs {
    /// Bytes of keys and values that are stored, each key once
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    bytes: u64,

    /// Bytes of an entry, key and value together [default: 116]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes,
          conflicts_with_all = ["value_size", "mix"])]
    entry_size: Option<u64>,

    /// Bytes of a key [default: 16, or 24 with a mix]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    key_size: Option<u64>,

    /// Bytes of a key that are equal in its neighbours; tables hold them once a block
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    shared_key_bytes: u64,

    /// Bytes of a value [default: 100]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, conflicts_with = "mix")]
    value_size: Option<u64>,

    /// Sizes of values, instead of one: small ones of 9, medium ones of 104 and large ones of 1004 bytes
    #[arg(long, value_enum, ignore_case = true)]
    mix: Option<Mix>,

    #[command(flatten)]
    distribution: DistributionArgs,

    /// Updates that follow the inserts: a number for each insert (0.5, 3), or bytes (500GB)
    #[arg(long, value_name = "RATIO|BYTES", value_parser = parse_updates, default_value = "0")]
    updates: Updates,

    /// The fraction of the updates that are deletes, from 0 to 1
    #[arg(long, value_name = "FRACTION", default_value_t = 0.0)]
    deletes: f64,

    /// The fraction of the updates that are merges of an operand, from 0 to 1
    #[arg(long, value_name = "FRACTION", default_value_t = 0.0)]
    merges: f64,

    /// Bytes of an operand [default: 8]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    operand_size: Option<u64>,

    /// Range deletes for each write, inserts included, at random places: 0.001 is one for 1000 writes
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0.0,
        requires = "range_delete_part"
    )]
    range_deletes_per_write: f64,

    /// The fraction of all keys that each range delete covers, above 0 and at most 1
    #[arg(long, value_name = "FRACTION", requires = "range_deletes_per_write")]
    range_delete_part: Option<f64>,

    /// The fraction of the written values that expire, from 0 to 1
    #[arg(
        long,
        value_name = "FRACTION",
        default_value_t = 0.0,
        requires = "time_to_live"
    )]
    expiring: f64,

    /// When a value expires that does: after this many further writes (100000), or bytes of writes (5GB)
    #[arg(long, value_name = "WRITES|BYTES", value_parser = parse_time_to_live, requires = "expiring")]
    time_to_live: Option<TimeToLive>,

    /// Seeks to random keys for each write; they trigger compactions, which leave fewer runs
    #[arg(long, value_name = "N", default_value_t = 0.0)]
    seeks_per_write: f64,

    /// Draw keys from the first write on, some twice and some never, instead of inserting each once
    #[arg(long)]
    drawn: bool,

    /// Simulate flush by flush with as many files as a database has, however long it takes
    #[arg(long)]
    exact: bool,

    #[command(flatten, next_help_heading = "Options of the tree")]
    tree: PolicyArgs,

    #[command(flatten, next_help_heading = "Reads from a device")]
    machine: MachineArgs,

    /// Reads of each kind that count, from an empty page cache on [default: the page cache is full]
    #[arg(long, value_name = "N", requires = "memory")]
    reads: Option<u64>,

    /// Plot the levels, the bytes written and the space over the size of the load
    #[arg(long, value_name = "FILE.svg", value_parser = parse_plot)]
    plot: Option<PathBuf>,
}

pub(crate) fn run(args: &SimulateArgs, output: &mut Output) -> Result<Outcome> {
    let load = args.load()?;
    let device = args.machine.cost()?;
    if let Some(path) = &args.plot {
        check_destination(path, &args.tree.options_file)?;
    }
    let bar = progress::spinner("simulating");
    let estimate = simulate_large(&load, load.writes());
    bar.finish_and_clear();
    let estimate = estimate?;
    let memory = args.machine.memory;
    let reads = memory.map(|memory| Reads::new(&load, &estimate, memory, args.reads, device));
    let report = Report::new(&load, &estimate, reads)?;
    output.object(&report)?;
    output.line(&report)?;
    if let Some(path) = &args.plot {
        plot::write(path, &report)?;
    }
    Ok(Outcome::Done)
}

impl SimulateArgs {
    fn load(&self) -> Result<Load> {
        let mut load = Load::inserts(1, self.tree.options()?.keyspace);
        (load.key_bytes, load.values) = self.sizes()?;
        load.validate()?;
        load.keys = whole(self.bytes as f64 / load.entry_bytes());
        if load.keys == 0 {
            return Err(Error::invalid_argument(format!(
                "--bytes {} is less than one entry",
                self.bytes
            )));
        }
        let updates = match self.updates {
            Updates::PerInsert(times) => load.keys as f64 * times,
            Updates::Bytes(bytes) => bytes as f64 / load.entry_bytes(),
        };
        load.draws = whole(updates);
        load.inserts = load.keys;
        if self.drawn {
            load.draws = load.draws.saturating_add(load.keys);
            load.inserts = 0;
        }
        load.shared_key_bytes = self.shared_key_bytes;
        load.deletes = self.deletes;
        load.merges = self.merges;
        if let Some(bytes) = self.operand_size {
            load.operand_bytes = bytes;
        }
        load.range_deletes_per_write = self.range_deletes_per_write;
        if let Some(part) = self.range_delete_part {
            load.range_delete_part = part;
        }
        load.expiring = self.expiring;
        if let Some(life) = self.time_to_live {
            load.time_to_live = life.writes(load.entry_bytes());
        }
        load.seeks_per_write = self.seeks_per_write;
        load.distribution = self.distribution.chosen()?.unwrap_or_default();
        if self.drawn && load.distribution == KeyDistribution::Sequential {
            return Err(Error::invalid_argument(
                "--distribution sequential is the order of inserts, and with --drawn there are none",
            ));
        }
        load.filters = load.options.bits_per_key > 0.0;
        let written = (load.inserts as f64 + load.draws as f64) * load.entry_bytes();
        if self.exact || written <= BYTES_IN_ONE_PIECE {
            load.flushes_max = u64::MAX;
        } else {
            load.flushes_max = FLUSHES_MAX;
        }
        if !self.exact {
            load.files_max = FILES_MAX;
        }
        load.validate()?;
        let is_ranked = matches!(load.distribution, KeyDistribution::Zipfian { .. });
        let draws_ranks = load.draws > 0 || self.machine.memory.is_some();
        let of_draws = load.deletes + load.merges;
        if (load.draws == 0 && of_draws > 0.0) || (is_ranked && !draws_ranks) {
            return Err(Error::invalid_argument(
                "deletes, merges and ranks are of updates, and there are none: give --updates, or --memory for ranks of reads",
            ));
        }
        if load.merges == 0.0 && self.operand_size.is_some() {
            return Err(Error::invalid_argument(
                "--operand-size is that of merges, and there are none: give --merges",
            ));
        }
        Ok(load)
    }

    /// Bytes of a key, and of values.
    fn sizes(&self) -> Result<(u64, Vec<ValueSize>)> {
        if let Some(mix) = self.mix {
            return Ok((self.key_size.unwrap_or(MIX_KEY_BYTES), mix_sizes(mix)));
        }
        let key = self.key_size.unwrap_or(16);
        let value = match self.entry_size {
            None => self.value_size.unwrap_or(100),
            Some(entry) => entry.checked_sub(key).ok_or_else(|| {
                Error::invalid_argument(format!(
                    "an entry of {entry} bytes cannot have a key of {key}: give a smaller --key-size"
                ))
            })?,
        };
        Ok((key, ValueSize::same(value)))
    }
}

/// A path whose ending says what a plot is.
fn parse_plot(text: &str) -> std::result::Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match path.extension() {
        Some(end) if end.eq_ignore_ascii_case("svg") => Ok(path),
        _ => Err("the plot is SVG: give a name that ends in .svg".to_owned()),
    }
}

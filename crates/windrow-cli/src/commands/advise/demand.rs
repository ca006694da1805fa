//! What a load asks of a store: how much it holds, what operations there are, and on what machine.
//!
//! A demand is put together from what a source knows (flags alone, the statistics of a store, a trace) and from
//! flags, which go before the source. What neither says, and what cannot be guessed, is asked for.

use clap::{Args, ValueEnum};
use serde::Serialize;
use windrow::simulation::{KeyDistribution, Load, ValueClass, ValueSize, value_class};
use windrow::{Error, KeyspaceOptions, Result};
use windrow_bench::{Mix, parse_bytes};

use super::device::Device;
use crate::amounts::{MIX_KEY_BYTES, mix_sizes, whole};

/// Bytes of a key where nothing says otherwise.
const KEY_BYTES: u64 = 16;

/// Exponent of the zipfian distribution where none is given.
const EXPONENT: f64 = 0.99;

/// How many keys a load must have for its tree to say anything.
const KEYS_MIN: u64 = 2;

/// The load, as flags describe it.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct DemandArgs {
    /// Bytes of keys and values that are stored, each key once
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub(super) bytes: Option<u64>,

    /// Number of keys that are stored, in place of their bytes
    #[arg(long, value_name = "N", conflicts_with = "bytes")]
    pub(super) keys: Option<u64>,

    /// Bytes of a key [default: 16, or 24 with a mix]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub(super) key_size: Option<u64>,

    /// Bytes of a key that it shares with its neighbours, which tables hold once a block
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub(super) shared_key_bytes: u64,

    /// Bytes of a value; or several sizes, each with its weight behind a colon: 100:9,4000:1
    #[arg(long, value_name = "BYTES[:WEIGHT],..", value_delimiter = ',', value_parser = parse_size,
          conflicts_with = "mix")]
    pub(super) value_size: Vec<ValueSize>,

    /// Sizes of values of the Parallax paper: small ones of 9, medium ones of 104 and large ones of 1004 bytes
    #[arg(long, value_enum, ignore_case = true)]
    pub(super) mix: Option<Mix>,

    /// Weight of writes of new keys among all operations; weights may add up to anything
    #[arg(long, value_name = "WEIGHT", value_parser = parse_weight)]
    pub(super) inserts: Option<f64>,

    /// Weight of writes of keys that are there
    #[arg(long, value_name = "WEIGHT", value_parser = parse_weight)]
    pub(super) updates: Option<f64>,

    /// Weight of deletes
    #[arg(long, value_name = "WEIGHT", value_parser = parse_weight)]
    pub(super) deletes: Option<f64>,

    /// Weight of gets that find their key
    #[arg(long, value_name = "WEIGHT", value_parser = parse_weight)]
    pub(super) gets: Option<f64>,

    /// Weight of gets of keys that are not there
    #[arg(long, value_name = "WEIGHT", value_parser = parse_weight)]
    pub(super) missing: Option<f64>,

    /// Weight of scans
    #[arg(long, value_name = "WEIGHT", value_parser = parse_weight)]
    pub(super) scans: Option<f64>,

    /// Entries that a scan returns
    #[arg(long, value_name = "N", value_parser = parse_weight)]
    pub(super) scan_length: Option<f64>,

    /// Which keys are updated and read
    #[arg(long, value_enum)]
    pub(super) distribution: Option<DistributionArg>,

    /// Exponent of the zipfian distribution, 0.99 unless given
    #[arg(long, value_name = "E")]
    pub(super) exponent: Option<f64>,

    /// Memory for memtables, filters, indexes and the page cache of the store's files [default: for all of
    /// them]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub(super) memory: Option<u64>,

    /// What files are on
    #[arg(long, value_enum, default_value_t = Device::Memory)]
    pub(super) device: Device,
}

/// [`KeyDistribution`] on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum DistributionArg {
    /// Each as likely as any other
    Uniform,
    /// A few far more often than the others
    Zipfian,
}

/// How often operations of each kind are.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub(super) struct Shares {
    pub(super) inserts: f64,
    pub(super) updates: f64,
    pub(super) deletes: f64,
    pub(super) gets: f64,
    pub(super) missing: f64,
    pub(super) scans: f64,
}

impl Shares {
    pub(super) fn sum(&self) -> f64 {
        self.writes() + self.gets + self.missing + self.scans
    }

    pub(super) fn writes(&self) -> f64 {
        self.inserts + self.updates + self.deletes
    }

    pub(super) fn reads(&self) -> f64 {
        self.gets + self.missing + self.scans
    }

    /// The same, with a sum of 1.
    fn of_one(self) -> Self {
        let sum = self.sum();
        Self {
            inserts: self.inserts / sum,
            updates: self.updates / sum,
            deletes: self.deletes / sum,
            gets: self.gets / sum,
            missing: self.missing / sum,
            scans: self.scans / sum,
        }
    }
}

/// What a source knows of a load.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    /// Where it comes from, for messages.
    pub(super) source: String,
    pub(super) keys: Option<u64>,
    pub(super) key_bytes: Option<u64>,
    /// Key and value together, where only that is known.
    pub(super) entry_bytes: Option<f64>,
    pub(super) values: Vec<ValueSize>,
    pub(super) weights: Option<Shares>,
    pub(super) scan_length: Option<f64>,
    pub(super) distribution: Option<KeyDistribution>,
    /// The options that the store has.
    pub(super) options: Option<KeyspaceOptions>,
}

/// What a load asks of a store.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Demand {
    pub(super) keys: u64,
    pub(super) key_bytes: u64,
    pub(super) shared_key_bytes: u64,
    pub(super) values: Vec<ValueSize>,
    pub(super) distribution: KeyDistribution,
    /// These add up to 1.
    pub(super) shares: Shares,
    /// Entries of a scan.
    pub(super) scan_length: f64,
    /// `None` for as much as everything takes.
    pub(super) memory: Option<u64>,
    pub(super) device: Device,
}

impl Demand {
    /// The demand of `args`, with what `known` says where they are silent.
    ///
    /// # Errors
    /// `InvalidArgument` for what is missing, or cannot be.
    pub(super) fn new(args: &DemandArgs, known: &Known) -> Result<Self> {
        let shares = shares(args, known)?;
        let (key_bytes, values) = sizes(args, known)?;
        let mut demand = Self {
            keys: KEYS_MIN,
            key_bytes,
            shared_key_bytes: args.shared_key_bytes,
            values,
            distribution: distribution(args, known)?,
            shares,
            scan_length: args.scan_length.or(known.scan_length).unwrap_or(0.0),
            memory: args.memory,
            device: args.device,
        };
        // First what an entry is, by which bytes become keys; then all of them.
        let options = KeyspaceOptions::default();
        demand.load(&options).validate()?;
        demand.keys = keys(args, known, demand.entry_bytes())?;
        demand.load(&options).validate()?;
        if shares.scans > 0.0 && args.scan_length.or(known.scan_length).is_none() {
            return Err(missing(known, "how long scans are", "--scan-length"));
        }
        if args.device != Device::Memory && args.memory.is_none() {
            return Err(Error::invalid_argument(
                "how much of the data is read from the device depends on memory: give --memory",
            ));
        }
        Ok(demand)
    }

    pub(super) fn value_bytes(&self) -> f64 {
        let all: f64 = self.values.iter().map(|size| size.share).sum();
        let bytes = |size: &ValueSize| size.share / all * size.bytes as f64;
        self.values.iter().map(bytes).sum()
    }

    /// Key and value, on average.
    pub(super) fn entry_bytes(&self) -> f64 {
        self.key_bytes as f64 + self.value_bytes()
    }

    /// All keys and values, each key once.
    pub(super) fn bytes(&self) -> f64 {
        self.keys as f64 * self.entry_bytes()
    }

    /// The class of a value of so many bytes under `options`.
    pub(super) fn class(&self, value_bytes: u64, options: &KeyspaceOptions) -> ValueClass {
        let bytes = |bytes| usize::try_from(bytes).unwrap_or(usize::MAX);
        value_class(bytes(self.key_bytes), bytes(value_bytes), options)
    }

    /// How many draws of keys follow the inserts of all, and how many of the last writes count.
    ///
    /// Where most writes are of new keys, the second half of the inserts counts, with its part of updates: at
    /// about this size most of the tree's life is spent. Where most are updates, half as many as there are
    /// keys bring the tree into its balance, and as many as there are keys count.
    pub(super) fn writes(&self) -> (u64, u64) {
        let keys = self.keys as f64;
        let draws = self.shares.updates + self.shares.deletes;
        if draws > self.shares.inserts {
            return (whole(keys * 1.5), self.keys);
        }
        let times = if draws > 0.0 {
            draws / self.shares.inserts
        } else {
            0.0
        };
        let draws = keys / 2.0 * times;
        (whole(draws), whole(keys / 2.0 + draws).max(1))
    }

    /// The load that is simulated.
    pub(super) fn load(&self, options: &KeyspaceOptions) -> Load {
        let shares = self.shares;
        let mut load = Load::inserts(1, options.clone());
        load.keys = self.keys;
        load.inserts = self.keys;
        load.draws = self.writes().0;
        let drawn = shares.updates + shares.deletes;
        load.deletes = if drawn > 0.0 {
            shares.deletes / drawn
        } else {
            0.0
        };
        load.distribution = self.distribution;
        load.key_bytes = self.key_bytes;
        load.shared_key_bytes = self.shared_key_bytes;
        load.values.clone_from(&self.values);
        if shares.writes() > 0.0 {
            load.seeks_per_write = shares.scans / shares.writes();
        }
        load
    }
}

fn shares(args: &DemandArgs, known: &Known) -> Result<Shares> {
    let typed = Shares {
        inserts: args.inserts.unwrap_or(0.0),
        updates: args.updates.unwrap_or(0.0),
        deletes: args.deletes.unwrap_or(0.0),
        gets: args.gets.unwrap_or(0.0),
        missing: args.missing.unwrap_or(0.0),
        scans: args.scans.unwrap_or(0.0),
    };
    let weights = match known.weights {
        _ if typed.sum() > 0.0 => typed,
        Some(weights) if weights.sum() > 0.0 => weights,
        _ => {
            return Err(missing(
                known,
                "how often operations of each kind are",
                "at least one of --inserts, --updates, --deletes, --gets, --missing and --scans above 0",
            ));
        }
    };
    Ok(weights.of_one())
}

fn sizes(args: &DemandArgs, known: &Known) -> Result<(u64, Vec<ValueSize>)> {
    if let Some(mix) = args.mix {
        return Ok((args.key_size.unwrap_or(MIX_KEY_BYTES), mix_sizes(mix)));
    }
    let key = args.key_size.or(known.key_bytes).unwrap_or(KEY_BYTES);
    if !args.value_size.is_empty() {
        return Ok((key, args.value_size.clone()));
    }
    if !known.values.is_empty() {
        return Ok((key, known.values.clone()));
    }
    match known.entry_bytes {
        Some(entry) if entry.round() >= key as f64 => {
            let value = whole((entry - key as f64).round());
            Ok((key, ValueSize::same(value)))
        }
        Some(entry) => Err(Error::invalid_argument(format!(
            "an entry of {entry:.0} bytes cannot have a key of {key}: give a smaller --key-size"
        ))),
        None => Err(missing(known, "how large values are", "--value-size")),
    }
}

fn keys(args: &DemandArgs, known: &Known, entry_bytes: f64) -> Result<u64> {
    let by_bytes = args.bytes.map(|bytes| whole(bytes as f64 / entry_bytes));
    let keys = args.keys.or(by_bytes).or(known.keys);
    match keys {
        Some(keys) if keys >= KEYS_MIN => Ok(keys),
        Some(_) => Err(Error::invalid_argument(
            "there is nothing to advise on for a store of less than two entries",
        )),
        None => Err(missing(known, "how much is stored", "--bytes or --keys")),
    }
}

fn distribution(args: &DemandArgs, known: &Known) -> Result<KeyDistribution> {
    let zipfian = |exponent| KeyDistribution::Zipfian { exponent };
    match (args.distribution, args.exponent) {
        (Some(DistributionArg::Zipfian), exponent) => Ok(zipfian(exponent.unwrap_or(EXPONENT))),
        (_, Some(_)) => Err(Error::invalid_argument(
            "--exponent goes with --distribution zipfian",
        )),
        (Some(DistributionArg::Uniform), None) => Ok(KeyDistribution::Uniform),
        (None, None) => Ok(known.distribution.unwrap_or_default()),
    }
}

/// What is to be said where nothing tells `what`, which `flags` would.
fn missing(known: &Known, what: &str, flags: &str) -> Error {
    let source = match known.source.as_str() {
        "" => "nothing says".to_owned(),
        source => format!("{source} does not tell"),
    };
    Error::invalid_argument(format!("{source} {what}: give {flags}"))
}

/// A number of at least 0.
fn parse_weight(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(weight) if weight >= 0.0 && weight.is_finite() => Ok(weight),
        _ => Err("expected a number that is not negative".to_owned()),
    }
}

/// A size, with a weight of 1 unless it has one.
fn parse_size(text: &str) -> std::result::Result<ValueSize, String> {
    let (bytes, share) = match text.split_once(':') {
        None => (text, 1.0),
        Some((bytes, weight)) => (bytes, parse_weight(weight)?),
    };
    let bytes = parse_bytes(bytes)?;
    if share == 0.0 {
        return Err("expected a weight above 0".to_owned());
    }
    Ok(ValueSize { share, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described() -> DemandArgs {
        DemandArgs {
            keys: Some(1000),
            value_size: ValueSize::same(100),
            updates: Some(3.0),
            gets: Some(1.0),
            ..DemandArgs::default()
        }
    }

    #[test]
    fn weights_become_shares() {
        let demand = Demand::new(&described(), &Known::default()).unwrap();
        assert!((demand.shares.updates - 0.75).abs() < 1e-9);
        assert!((demand.shares.sum() - 1.0).abs() < 1e-9);
        assert_eq!(demand.key_bytes, KEY_BYTES);
        assert!((demand.bytes() - 116_000.0).abs() < 1e-6);
    }

    #[test]
    fn flags_go_before_the_source() {
        let known = Known {
            keys: Some(7),
            key_bytes: Some(8),
            entry_bytes: Some(40.0),
            weights: Some(Shares {
                scans: 1.0,
                ..Shares::default()
            }),
            scan_length: Some(5.0),
            ..Known::default()
        };
        let demand = Demand::new(&described(), &known).unwrap();
        assert_eq!((demand.keys, demand.key_bytes), (1000, 8));
        assert!(demand.shares.scans.abs() < 1e-9);
        let alone = Demand::new(&DemandArgs::default(), &known).unwrap();
        assert_eq!(alone.keys, 7);
        assert_eq!(alone.values, ValueSize::same(32));
        assert!((alone.shares.scans - 1.0).abs() < 1e-9);
    }

    #[test]
    fn what_is_missing_is_asked_for() {
        let refused = |args: DemandArgs| {
            let error = Demand::new(&args, &Known::default()).unwrap_err();
            error.to_string()
        };
        let without = |change: fn(&mut DemandArgs)| {
            let mut args = described();
            change(&mut args);
            refused(args)
        };
        assert!(without(|args| args.keys = None).contains("--bytes"));
        assert!(without(|args| args.keys = Some(1)).contains("two entries"));
        assert!(without(|args| args.keys = Some(1 << 60)).contains("2^64 bytes"));
        assert!(without(|args| args.value_size.clear()).contains("--value-size"));
        assert!(without(|args| args.scans = Some(1.0)).contains("--scan-length"));
        assert!(without(|args| args.device = Device::Nvme).contains("--memory"));
        assert!(without(|args| args.exponent = Some(0.9)).contains("--distribution"));
        let no_operation = without(|args| (args.updates, args.gets) = (None, None));
        assert!(no_operation.contains("--inserts"));
    }

    #[test]
    fn sizes_have_weights() {
        let size = parse_size("4K:2.5").unwrap();
        assert_eq!(size.bytes, 4096);
        assert!((size.share - 2.5).abs() < 1e-9);
        assert!((parse_size("7").unwrap().share - 1.0).abs() < 1e-9);
        for text in ["", ":1", "7:", "7:0", "7:-1", "7:x", "7:inf"] {
            parse_size(text).unwrap_err();
        }
    }

    #[test]
    fn writes_that_count_are_those_of_a_tree_of_this_size() {
        let demand = |inserts, updates| {
            let args = DemandArgs {
                inserts: Some(inserts),
                updates: Some(updates),
                ..described()
            };
            Demand::new(&args, &Known::default()).unwrap()
        };
        assert_eq!(demand(1.0, 0.0).writes(), (0, 500));
        assert_eq!(demand(1.0, 1.0).writes(), (500, 1000));
        assert_eq!(demand(0.0, 1.0).writes(), (1500, 1000));
        // Only reads: the tree as the inserts leave it.
        assert_eq!(demand(0.0, 0.0).writes(), (0, 500));
    }
}

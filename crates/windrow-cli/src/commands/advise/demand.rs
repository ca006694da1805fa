//! What a load asks of a store: how much it holds, what operations there are, and on what machine.
//!
//! A demand is put together from what a source knows (flags alone, the statistics of a store, a trace) and from
//! flags, which go before the source. What neither says, and what cannot be guessed, is asked for.

use clap::Args;
use serde::Serialize;
use windrow::simulation::{KeyDistribution, Load, ValueClass, ValueSize, value_class};
use windrow::{Error, KeyspaceOptions, Result};
use windrow_bench::{Mix, parse_bytes};

use super::device::Device;
use crate::amounts::{MIX_KEY_BYTES, mix_sizes, whole};
use crate::commands::simulate::distribution::DistributionArgs;

/// Bytes of a key where nothing says otherwise.
const KEY_BYTES: u64 = 16;

/// What a weight may be beside 0, so that nothing that is reckoned from weights overflows.
const WEIGHTS: std::ops::RangeInclusive<f64> = 1e-9..=1e12;

/// So many draws for each key bring a tree into its balance, and are all that is simulated of them.
const DRAWS_MAX: f64 = 2.0;

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

    #[command(flatten)]
    pub(super) distribution: DistributionArgs,

    /// Memory for memtables, filters, indexes and the page cache of the store's files [default: for all of
    /// them]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub(super) memory: Option<u64>,

    /// What files are on
    #[arg(long, value_enum, default_value_t = Device::Memory)]
    pub(super) device: Device,
}

/// How often operations of each kind are.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub(super) struct Fractions {
    pub(super) inserts: f64,
    pub(super) updates: f64,
    pub(super) deletes: f64,
    pub(super) gets: f64,
    pub(super) missing: f64,
    pub(super) scans: f64,
}

impl Fractions {
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
    pub(super) entry_bytes: Option<EntryBytes>,
    pub(super) values: Vec<ValueSize>,
    /// The least that values of each of these sizes have, where they are means.
    pub(super) values_from: Vec<u64>,
    pub(super) weights: Option<Fractions>,
    pub(super) scan_length: Option<f64>,
    pub(super) distribution: Option<KeyDistribution>,
    /// The options that the store has.
    pub(super) options: Option<KeyspaceOptions>,
    /// What is to be said where the weights are taken from here, and where the sizes of entries are.
    pub(super) weights_note: Option<String>,
    pub(super) entry_note: Option<String>,
}

/// Bytes of an entry where keys and values are not told apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct EntryBytes {
    /// The mean of all entries.
    pub(super) mean: f64,
    /// The part of them that are deletes, which have no value.
    pub(super) deletes: f64,
}

impl EntryBytes {
    /// The mean of those that have a value.
    fn with_value(self, key_bytes: u64) -> f64 {
        let values = 1.0 - self.deletes;
        if values <= 0.0 {
            return key_bytes as f64;
        }
        (self.mean - self.deletes * key_bytes as f64) / values
    }
}

/// What is known of the sizes of entries.
#[derive(Debug, Clone, PartialEq)]
struct Sizes {
    key_bytes: u64,
    values: Vec<ValueSize>,
    values_from: Vec<u64>,
    /// Whether only the mean of keys and values together tells them.
    is_mean: bool,
}

/// What a load asks of a store.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Demand {
    pub(super) keys: u64,
    pub(super) key_bytes: u64,
    pub(super) shared_key_bytes: u64,
    pub(super) values: Vec<ValueSize>,
    /// The least that values of each size have: thresholds that tell sizes apart lie there.
    #[serde(skip)]
    pub(super) values_from: Vec<u64>,
    pub(super) distribution: KeyDistribution,
    /// These add up to 1.
    pub(super) fractions: Fractions,
    /// Entries of a scan.
    pub(super) scan_length: f64,
    /// `None` for as much as everything takes.
    pub(super) memory: Option<u64>,
    pub(super) device: Device,
    /// What is to be known of where all this comes from.
    pub(super) notes: Vec<String>,
}

/// How a store grows and changes: parts of all writes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Course {
    /// Writes by which there are more keys than before.
    growth: f64,
    /// Writes of keys that are drawn: updates, deletes, and inserts of what was deleted.
    draws: f64,
    /// The part of the draws that are deletes, at most a half.
    deletes: f64,
}

impl Demand {
    /// The demand of `args`, with what `known` says where they are silent.
    ///
    /// # Errors
    /// `InvalidArgument` for what is missing, or cannot be.
    pub(super) fn new(args: &DemandArgs, known: &Known) -> Result<Self> {
        let (fractions, fractions_note) = fractions(args, known)?;
        let sizes = sizes(args, known)?;
        let entry_note = known.entry_note.clone().filter(|_| sizes.is_mean);
        let weights_note = known.weights_note.clone();
        let weights_note = weights_note.filter(|_| typed(args).sum() == 0.0);
        let notes = [weights_note, fractions_note, entry_note]
            .into_iter()
            .flatten();
        let distribution = args.distribution.chosen()?.or(known.distribution);
        let mut demand = Self {
            keys: KEYS_MIN,
            key_bytes: sizes.key_bytes,
            shared_key_bytes: args.shared_key_bytes,
            values: sizes.values,
            values_from: sizes.values_from,
            distribution: distribution.unwrap_or_default(),
            fractions,
            scan_length: args.scan_length.or(known.scan_length).unwrap_or(0.0),
            memory: args.memory,
            device: args.device,
            notes: notes.collect(),
        };
        // First what an entry is, by which bytes become keys; then all of them.
        let options = KeyspaceOptions::default();
        demand.load(&options).validate()?;
        demand.keys = keys(args, known, demand.entry_bytes())?;
        demand.load(&options).validate()?;
        if fractions.scans > 0.0 && args.scan_length.or(known.scan_length).is_none() {
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
        let all: f64 = self.values.iter().map(|size| size.fraction).sum();
        let bytes = |size: &ValueSize| size.fraction / all * size.bytes as f64;
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

    /// How the writes change the store.
    ///
    /// Each delete is beside another write that puts a key there again: inserts first, which then add nothing to
    /// what is stored, and updates where there are fewer inserts than deletes.
    pub(super) fn course(&self) -> Course {
        let fractions = self.fractions;
        let all = fractions.writes();
        if all == 0.0 {
            return Course {
                growth: 1.0,
                draws: 0.0,
                deletes: 0.0,
            };
        }
        let growth = (fractions.inserts - fractions.deletes).max(0.0) / all;
        let draws = 1.0 - growth;
        let deletes = if draws > 0.0 {
            (fractions.deletes / all / draws).min(0.5)
        } else {
            0.0
        };
        Course {
            growth,
            draws,
            deletes,
        }
    }

    /// How many draws of keys follow the inserts of all, and how many of the last writes count.
    ///
    /// The second half of the inserts counts, with its part of draws: at about this size most of the tree's life
    /// is spent. Where these would be more than so many draws for each key, so many are enough, with fewer inserts
    /// before them.
    pub(super) fn writes(&self) -> (u64, u64) {
        let keys = self.keys as f64;
        let course = self.course();
        if keys / 2.0 * course.draws <= DRAWS_MAX * keys * course.growth {
            let draws = keys / 2.0 * (course.draws / course.growth);
            return (whole(draws), whole(keys / 2.0 + draws).max(1));
        }
        let draws = DRAWS_MAX * keys;
        (whole(draws), whole(draws / course.draws).max(1))
    }

    /// The load that is simulated.
    ///
    /// A part of the keys that are drawn is not there, since their last draw was a delete: it is as large as the part
    /// of the deletes, so that as many are there from the first draw to the last as are inserted.
    pub(super) fn load(&self, options: &KeyspaceOptions) -> Load {
        let fractions = self.fractions;
        let mut load = Load::inserts(1, options.clone());
        load.deletes = self.course().deletes;
        load.inserts = self.keys;
        let universe = self.keys as f64 / (1.0 - load.deletes);
        load.keys = whole(universe.round()).max(self.keys);
        load.draws = self.writes().0;
        load.distribution = self.distribution;
        load.key_bytes = self.key_bytes;
        load.shared_key_bytes = self.shared_key_bytes;
        load.values.clone_from(&self.values);
        if fractions.writes() > 0.0 {
            load.seeks_per_write = fractions.scans / fractions.writes();
        }
        load
    }
}

/// The weights that flags give.
fn typed(args: &DemandArgs) -> Fractions {
    Fractions {
        inserts: args.inserts.unwrap_or(0.0),
        updates: args.updates.unwrap_or(0.0),
        deletes: args.deletes.unwrap_or(0.0),
        gets: args.gets.unwrap_or(0.0),
        missing: args.missing.unwrap_or(0.0),
        scans: args.scans.unwrap_or(0.0),
    }
}

/// How often operations of each kind are, and what is to be said of that.
///
/// More deletes than inserts and updates together leave nothing of a store. Where somebody asks for that it is
/// refused; what was done for a while may be so, and deletes count as far as they can go on.
fn fractions(args: &DemandArgs, known: &Known) -> Result<(Fractions, Option<String>)> {
    let typed = typed(args);
    let is_typed = typed.sum() > 0.0;
    let mut weights = match known.weights {
        Some(weights) if !is_typed => weights,
        _ => typed,
    };
    let kept = weights.inserts + weights.updates;
    let mut note = None;
    // A little more comes of rounding.
    if weights.deletes > kept * (1.0 + 1e-9) {
        if is_typed {
            return Err(Error::invalid_argument(
                "there are more deletes than inserts and updates together, which leaves nothing of what is stored: \
                 give --deletes that are at most as many as --inserts and --updates",
            ));
        }
        note = Some(format!(
            "{} has more deletes than inserts and updates together, which leaves nothing in the long run: as many \
             deletes count as inserts and updates",
            known.source
        ));
        weights.deletes = kept;
    }
    if weights.sum() > 0.0 {
        return Ok((weights.of_one(), note));
    }
    Err(missing(
        known,
        "how often operations of each kind are",
        "at least one of --inserts, --updates, --deletes, --gets, --missing and --scans above 0",
    ))
}

fn sizes(args: &DemandArgs, known: &Known) -> Result<Sizes> {
    let exact = |key_bytes, values: Vec<ValueSize>| Sizes {
        key_bytes,
        values_from: values.iter().map(|size| size.bytes).collect(),
        values,
        is_mean: false,
    };
    if let Some(mix) = args.mix {
        let key = args.key_size.unwrap_or(MIX_KEY_BYTES);
        return Ok(exact(key, mix_sizes(mix)));
    }
    let key = args.key_size.or(known.key_bytes).unwrap_or(KEY_BYTES);
    if !args.value_size.is_empty() {
        return Ok(exact(key, args.value_size.clone()));
    }
    if !known.values.is_empty() {
        return Ok(Sizes {
            values_from: known.values_from.clone(),
            ..exact(key, known.values.clone())
        });
    }
    let Some(entry) = known.entry_bytes else {
        return Err(missing(known, "how large values are", "--value-size"));
    };
    let entry = entry.with_value(key).round();
    if entry < key as f64 {
        return Err(Error::invalid_argument(format!(
            "an entry of {entry:.0} bytes cannot have a key of {key}: give a smaller --key-size"
        )));
    }
    let value = entry - key as f64;
    Ok(Sizes {
        // Values are on both sides of their mean.
        values_from: vec![whole(value / std::f64::consts::SQRT_2)],
        is_mean: true,
        ..exact(key, ValueSize::same(whole(value)))
    })
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

/// What is to be said where nothing tells `what`, which `flags` would.
fn missing(known: &Known, what: &str, flags: &str) -> Error {
    let source = match known.source.as_str() {
        "" => "nothing says".to_owned(),
        source => format!("{source} does not tell"),
    };
    Error::invalid_argument(format!("{source} {what}: give {flags}"))
}

/// 0, or one of [`WEIGHTS`].
fn parse_weight(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(weight) if weight == 0.0 || WEIGHTS.contains(&weight) => Ok(weight.abs()),
        _ => Err(format!(
            "expected a number that is not negative: 0, or from {:e} to {:e}",
            WEIGHTS.start(),
            WEIGHTS.end()
        )),
    }
}

/// A size, with a weight of 1 unless it has one.
fn parse_size(text: &str) -> std::result::Result<ValueSize, String> {
    let (bytes, fraction) = match text.split_once(':') {
        None => (text, 1.0),
        Some((bytes, weight)) => (bytes, parse_weight(weight)?),
    };
    let bytes = parse_bytes(bytes)?;
    if fraction == 0.0 {
        return Err("expected a weight above 0".to_owned());
    }
    Ok(ValueSize { fraction, bytes })
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
        assert!((demand.fractions.updates - 0.75).abs() < 1e-9);
        assert!((demand.fractions.sum() - 1.0).abs() < 1e-9);
        assert_eq!(demand.key_bytes, KEY_BYTES);
        assert!((demand.bytes() - 116_000.0).abs() < 1e-6);
    }

    #[test]
    fn flags_go_before_the_source() {
        let known = Known {
            keys: Some(7),
            key_bytes: Some(8),
            entry_bytes: Some(EntryBytes {
                mean: 36.0,
                deletes: 0.125,
            }),
            weights: Some(Fractions {
                scans: 1.0,
                ..Fractions::default()
            }),
            scan_length: Some(5.0),
            ..Known::default()
        };
        let demand = Demand::new(&described(), &known).unwrap();
        assert_eq!((demand.keys, demand.key_bytes), (1000, 8));
        assert!(demand.fractions.scans.abs() < 1e-9);
        let alone = Demand::new(&DemandArgs::default(), &known).unwrap();
        assert_eq!(alone.keys, 7);
        // One in eight has a key of 8 bytes alone.
        assert_eq!(alone.values, ValueSize::same(32));
        assert_eq!(alone.values_from, [22]);
        assert!((alone.fractions.scans - 1.0).abs() < 1e-9);
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
        assert!(without(|args| args.keys = Some(1 << 60)).contains("32 PiB"));
        assert!(without(|args| args.value_size.clear()).contains("--value-size"));
        assert!(without(|args| args.scans = Some(1.0)).contains("--scan-length"));
        assert!(without(|args| args.device = Device::Nvme).contains("--memory"));
        assert!(without(|args| args.distribution.exponent = Some(0.9)).contains("--distribution"));
        assert!(without(|args| args.deletes = Some(3.1)).contains("more deletes than"));
        let no_operation = without(|args| (args.updates, args.gets) = (None, None));
        assert!(no_operation.contains("--inserts"));
    }

    #[test]
    fn sizes_have_weights() {
        let size = parse_size("4K:2.5").unwrap();
        assert_eq!(size.bytes, 4096);
        assert!((size.fraction - 2.5).abs() < 1e-9);
        assert!((parse_size("7").unwrap().fraction - 1.0).abs() < 1e-9);
        for text in ["", ":1", "7:", "7:0", "7:-1", "7:x", "7:inf", "7:1e308"] {
            parse_size(text).unwrap_err();
        }
    }

    #[test]
    fn weights_are_so_small_and_so_few_that_their_sums_are_numbers() {
        for text in ["1e308", "1e13", "1e-300", "-1", "-1e-9", "nan", "inf", ""] {
            let error = parse_weight(text).unwrap_err();
            assert!(error.contains("from 1e-9 to 1e12"), "{error}");
        }
        for text in ["0", "-0", "1e-9", "95", "0.5", "1e12"] {
            assert!(parse_weight(text).unwrap().is_sign_positive());
        }
        let far = DemandArgs {
            updates: Some(*WEIGHTS.start()),
            scans: Some(*WEIGHTS.end()),
            scan_length: Some(*WEIGHTS.end()),
            ..described()
        };
        let demand = Demand::new(&far, &Known::default()).unwrap();
        assert!(demand.fractions.updates > 0.0);
        assert!((demand.fractions.sum() - 1.0).abs() < 1e-9);
    }

    /// 1000 keys under so many inserts, updates and deletes.
    fn writing([inserts, updates, deletes]: [f64; 3]) -> Demand {
        let args = DemandArgs {
            inserts: Some(inserts),
            updates: Some(updates),
            deletes: Some(deletes),
            ..described()
        };
        Demand::new(&args, &Known::default()).unwrap()
    }

    #[test]
    fn writes_that_count_are_those_of_a_tree_of_this_size() {
        let writes = |of| writing(of).writes();
        assert_eq!(writes([1.0, 0.0, 0.0]), (0, 500));
        assert_eq!(writes([1.0, 1.0, 0.0]), (500, 1000));
        // A fifth of what counts are inserts, then less of fewer.
        assert_eq!(writes([1.0, 4.0, 0.0]), (2000, 2500));
        assert_eq!(writes([1.0, 9.0, 0.0]), (2000, 2222));
        assert_eq!(writes([0.0, 1.0, 0.0]), (2000, 2000));
        // Only reads: the tree as the inserts leave it.
        assert_eq!(writes([0.0, 0.0, 0.0]), (0, 500));
    }

    #[test]
    fn sources_with_too_many_deletes_count_as_many_as_can_go_on() {
        let known = Known {
            source: "trace".to_owned(),
            weights: Some(Fractions {
                inserts: 1.0,
                updates: 2.0,
                deletes: 5.0,
                gets: 4.0,
                ..Fractions::default()
            }),
            ..Known::default()
        };
        let args = DemandArgs {
            updates: None,
            gets: None,
            ..described()
        };
        let demand = Demand::new(&args, &known).unwrap();
        assert!((demand.fractions.deletes - 0.3).abs() < 1e-9);
        assert!((demand.course().deletes - 0.5).abs() < 1e-9);
        assert!(demand.notes[0].contains("more deletes than"));
        // Where weights are given, the source has no part in it.
        let demand = Demand::new(&described(), &known).unwrap();
        assert!(demand.notes.is_empty() && demand.fractions.deletes.abs() < 1e-9);
    }

    #[test]
    fn deletes_leave_as_many_keys_as_are_stored() {
        let options = KeyspaceOptions::default();
        let filled = writing([1.0, 0.0, 0.0]).load(&options);
        let filled = windrow::simulation::simulate(&filled).unwrap();
        let stored = filled.samples.last().unwrap().live_bytes;
        for (of, deletes, keys) in [
            // Inserts write again what is deleted, and no tree shrinks.
            ([50.0, 0.0, 50.0], 0.5, 2000),
            ([0.0, 50.0, 50.0], 0.5, 2000),
            ([25.0, 25.0, 50.0], 0.5, 2000),
            ([20.0, 60.0, 20.0], 0.2, 1250),
            ([0.0, 80.0, 20.0], 0.2, 1250),
            // Of the draws a third are deletes, and the other inserts are of new keys.
            ([60.0, 20.0, 20.0], 1.0 / 3.0, 1500),
            ([100.0, 0.0, 0.0], 0.0, 1000),
        ] {
            let load = writing(of).load(&options);
            assert!((load.deletes - deletes).abs() < 1e-9, "{of:?}");
            assert_eq!((load.keys, load.inserts), (keys, 1000), "{of:?}");
            let outcome = windrow::simulation::simulate(&load).unwrap();
            let live = outcome.samples.last().unwrap().live_bytes;
            let apart = live.abs_diff(stored);
            assert!(apart * 1000 < stored, "{of:?}: {live} {stored}");
        }
    }

    // A little more of one kind of operation changes what is simulated by a little.
    #[test]
    fn what_is_simulated_has_no_jumps() {
        let options = KeyspaceOptions::default();
        let of = |weights: [f64; 3]| {
            let demand = Demand {
                keys: 1_000_000_000,
                ..writing(weights)
            };
            let (load, (draws, counted)) = (demand.load(&options), demand.writes());
            let (draws, counted) = (draws as f64 / 1e9, counted as f64 / 1e9);
            // What is drawn, and deleted, and how often a key is.
            [
                draws,
                counted,
                draws * load.deletes,
                draws / load.keys as f64 * 1e9,
            ]
        };
        let mut points = 0;
        for first in 0..=100_u32 {
            for second in 0..=100 - first {
                let (inserts, updates) = (f64::from(first), f64::from(second));
                let deletes = 100.0 - inserts - updates;
                if deletes > inserts + updates {
                    continue;
                }
                let here = of([inserts, updates, deletes]);
                for step in [[0.01, 0.0, 0.0], [0.0, 0.01, 0.0], [0.01, 0.01, 0.01]] {
                    let there = of([inserts + step[0], updates + step[1], deletes + step[2]]);
                    let apart = here
                        .iter()
                        .zip(there)
                        .map(|(one, other)| (one - other).abs());
                    let most = apart.fold(0.0, f64::max);
                    assert!(
                        most < 0.005,
                        "{inserts} {updates} {deletes}: {here:?} {there:?}"
                    );
                }
                points += 1;
            }
        }
        assert!(points > 3000);
    }
}

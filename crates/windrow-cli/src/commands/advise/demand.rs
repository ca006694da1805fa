//! The demand of a load, from flags and a source.
//!
//! A demand comes from flags and from a source: the statistics of a store, a trace, or none. Flags have precedence.
//! An error asks for what neither says and what has no default.
//!
//! Concurrency: none; no state.

mod flags;
mod known;

use windrow::simulation::ValueSize;
use windrow::{Error, KeyspaceOptions, Result};

pub(super) use self::flags::DemandArgs;
pub(super) use self::known::{EntryBytes, Known};
use crate::amounts::{MIX_KEY_BYTES, mix_sizes, whole};
use crate::commands::cost::{Demand, Fractions, OtherWrites};

/// The default bytes of a key.
const KEY_BYTES: u64 = 16;

/// The fewest keys that make a tree.
const KEYS_MIN: u64 = 2;

/// The sizes of entries.
#[derive(Debug, Clone, PartialEq)]
struct Sizes {
    key_bytes: u64,
    values: Vec<ValueSize>,
    values_from: Vec<u64>,
    /// Whether they follow from the mean of keys and values together.
    is_mean: bool,
}

impl Demand {
    /// The demand of `args`; what they do not say comes from `known`.
    ///
    /// # Errors
    /// `InvalidArgument` for what is missing or impossible.
    pub(super) fn new(args: &DemandArgs, known: &Known) -> Result<Self> {
        let (fractions, fractions_note) = fractions(args, known)?;
        if fractions.range_deletes > fractions.writes() {
            return Err(Error::invalid_argument(
                "there are more range deletes than writes of keys: give fewer --range-deletes",
            ));
        }
        let sizes = sizes(args, known)?;
        let entry_note = known.entry_note.clone().filter(|_| sizes.is_mean);
        let weights_note = known.weights_note.clone();
        let weights_note = weights_note.filter(|_| args.weights().sum() == 0.0);
        let notes = [weights_note, fractions_note, entry_note]
            .into_iter()
            .flatten();
        let machine = &args.machine;
        let device = machine.cost()?;
        let distribution = args.distribution.chosen()?.or(known.distribution);
        let mut demand = Self {
            keys: KEYS_MIN,
            key_bytes: sizes.key_bytes,
            shared_key_bytes: args.shared_key_bytes,
            values: sizes.values,
            values_from: sizes.values_from,
            distribution: distribution.unwrap_or_default(),
            fractions,
            other_writes: OtherWrites::default(),
            scan_length: args.scan_length.or(known.scan_length).unwrap_or(0.0),
            memory: machine.memory,
            reads_counted: None,
            device,
            notes: notes.collect(),
        };
        // The bytes of an entry come first: the number of keys follows from them.
        let mut options = KeyspaceOptions::default();
        if fractions.merges > 0.0 {
            // The options of the trees say where values are.
            (options.medium_from, options.large_from) = (u64::MAX, u64::MAX);
        }
        demand.load(&options).validate()?;
        demand.keys = keys(args, known, demand.entry_bytes())?;
        demand.other_writes = other_writes(args, &demand)?;
        demand.load(&options).validate()?;
        if let Err(most) = demand.drawn_from() {
            let (most, keys) = (whole(most), demand.keys);
            return Err(Error::invalid_argument(format!(
                "of {keys} keys at most {most} stay stored, because range deletes and expiry take away more than writes \
                 bring: give fewer keys or range deletes, or a longer --time-to-live"
            )));
        }
        if fractions.scans > 0.0 && args.scan_length.or(known.scan_length).is_none() {
            return Err(missing(known, "how long scans are", "--scan-length"));
        }
        Ok(demand)
    }
}

/// The fractions of operations, and a note for users.
///
/// With more deletes than inserts, updates and merges together, nothing stays stored. Flags that say so are refused. A source
/// may say so of a limited time: then only as many deletes count.
fn fractions(args: &DemandArgs, known: &Known) -> Result<(Fractions, Option<String>)> {
    let typed = args.weights();
    let is_typed = typed.sum() > 0.0;
    let mut weights = match known.weights {
        Some(weights) if !is_typed => weights,
        _ => typed,
    };
    let kept = weights.inserts + weights.updates + weights.merges;
    let mut note = None;
    // Rounding may exceed it a little.
    if weights.deletes > kept * (1.0 + 1e-9) {
        if is_typed {
            return Err(Error::invalid_argument(
                "there are more deletes than inserts, updates and merges together, which leaves nothing of what is stored: \
                 give --deletes that are at most as many as these",
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
        "at least one of --inserts, --updates, --deletes, --merges, --gets, --missing and --scans above 0",
    ))
}

/// What merges, range deletes and values that expire are like, in a store of the keys of `demand`.
fn other_writes(args: &DemandArgs, demand: &Demand) -> Result<OtherWrites> {
    let mut other = OtherWrites::default();
    let keys = demand.keys as f64;
    let fractions = demand.fractions;
    let needs = |what: &str, flags: &str| {
        let message = format!("{what} need {flags}");
        Err(Error::invalid_argument(message))
    };
    match args.operand_size {
        Some(_) if fractions.merges == 0.0 => return needs("operands", "--merges"),
        Some(bytes) => other.operand_bytes = bytes,
        None => {}
    }
    match args.range_delete_part {
        None if fractions.range_deletes > 0.0 => {
            return needs("range deletes", "--range-delete-part");
        }
        Some(_) if fractions.range_deletes == 0.0 => {
            return needs("ranges", "--range-deletes above 0");
        }
        Some(part) if !(part > 0.0 && part <= 1.0) => {
            return Err(Error::invalid_argument(
                "--range-delete-part must be above 0 and at most 1",
            ));
        }
        Some(part) => other.range_delete_keys = part * keys,
        None => {}
    }
    match (args.expiring, args.time_to_live) {
        (Some(expiring), Some(life)) => {
            other.expiring = expiring;
            other.writes_to_live_per_key = life.writes(demand.entry_bytes()) as f64 / keys;
        }
        (None, None) => {}
        (Some(_), None) => return needs("values that expire", "--time-to-live"),
        (None, Some(_)) => return needs("times to live", "--expiring"),
    }
    Ok(other)
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
        // Values lie on both sides of their mean.
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

/// The error if nothing says `what`, and `flags` could.
fn missing(known: &Known, what: &str, flags: &str) -> Error {
    let source = match known.source.as_str() {
        "" => "nothing says".to_owned(),
        source => format!("{source} does not say"),
    };
    Error::invalid_argument(format!("{source} {what}: give {flags}"))
}

#[cfg(test)]
mod tests;

//! The load of a simulation: which keys are written how often, how large entries are, and under which options.

use super::key_space::{KeyClass, KeySpace};
use super::part::TreePart;
use crate::base::limits::{KEY_BYTES_MAX, OPERAND_BYTES_MAX, TABLE_FILES_MAX, VALUE_BYTES_MAX};
use crate::base::{Error, Result};
use crate::options::KeyspaceOptions;
use crate::policy::{Class, class};

/// The bound of all bytes written. Many times as many can be moved for them before a count overflows.
const BYTES_MAX: f64 = (1_u64 << 55) as f64;

/// How much more than 1 parts may add up to, because their sum is rounded.
const PARTS_EXCESS_MAX: f64 = 1e-9;

/// How the keys of a load are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum KeyDistribution {
    /// Inserts come in random order, and each key is as likely to be drawn as any other.
    #[default]
    Uniform,
    /// Inserts come in random order. The key of rank r is drawn in proportion to r to the power of minus
    /// the exponent, and ranks are spread randomly over the key space.
    Zipfian {
        /// 0.99 in YCSB; above 0.
        exponent: f64,
    },
    /// Inserts come in the order of the keys; draws are uniform.
    Sequential,
}

/// A size of values.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ValueSize {
    /// Their number in proportion to those of other sizes; above 0.
    pub fraction: f64,
    /// Bytes of one.
    pub bytes: u64,
}

impl ValueSize {
    /// All values are of `bytes`.
    pub fn same(bytes: u64) -> Vec<Self> {
        vec![Self {
            fraction: 1.0,
            bytes,
        }]
    }
}

/// A load: first inserts, each of a new key, then draws of any key.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Load {
    /// Different keys, at least 1.
    pub keys: u64,
    /// How many of them are inserted first, each once; at most `keys`.
    pub inserts: u64,
    /// How many writes of a drawn key follow.
    pub draws: u64,
    /// The part of the draws that delete their key.
    pub deletes: f64,
    /// The part of the draws that [merge](crate::Keyspace::merge) an operand into their key. The others give it a value.
    pub merges: f64,
    /// Bytes of an operand. One that others are folded to has as many, and a value that operands are folded to is of the
    /// size of [values](Self::values).
    pub operand_bytes: u64,
    /// [Range deletes](crate::Keyspace::delete_range) for each write. They come evenly among inserts and draws.
    pub range_deletes_per_write: f64,
    /// The part of the key space that each of them covers, at a random place; above 0 and at most 1.
    pub range_delete_part: f64,
    /// The part of the values that [expire](crate::Keyspace::insert_with_ttl).
    pub expiring: f64,
    /// After how many further writes a value expires. A simulation has no other clock.
    pub time_to_live: u64,
    /// How keys are chosen.
    pub distribution: KeyDistribution,
    /// Bytes of a key.
    pub key_bytes: u64,
    /// Those of them that it has in common with its neighbours: tables hold them once for each block.
    pub shared_key_bytes: u64,
    /// How large values are: each write draws a size.
    pub values: Vec<ValueSize>,
    /// Seeks of cursors to a random place for each write.
    pub seeks_per_write: f64,
    /// Whether filter bits are allocated segment by segment, which takes a while. Otherwise each entry has the same
    /// part of the budget, and the outcome says nothing about filters.
    pub filters: bool,
    /// About the most files of the tree, besides those of small levels. Fewer files take less time to
    /// simulate, and more files are more exact. A database has 65,536.
    pub files_max: u64,
    /// [`simulate_large`](super::simulate_large) simulates the upper levels separately if there would be more
    /// flushes than this.
    pub flushes_max: u64,
    /// The options of the keyspace.
    pub options: KeyspaceOptions,
    /// The part of the tree that is simulated.
    pub(super) part: TreePart,
}

impl Load {
    /// Inserts of `bytes` of keys and values in random order, with keys of 16 bytes and values of 100.
    pub fn inserts(bytes: u64, options: KeyspaceOptions) -> Self {
        let (key_bytes, value_bytes) = (16, 100);
        let keys = (bytes / (key_bytes + value_bytes)).max(1);
        Self {
            keys,
            inserts: keys,
            draws: 0,
            deletes: 0.0,
            merges: 0.0,
            operand_bytes: 8,
            range_deletes_per_write: 0.0,
            range_delete_part: 0.001,
            expiring: 0.0,
            time_to_live: u64::MAX,
            distribution: KeyDistribution::Uniform,
            key_bytes,
            shared_key_bytes: 0,
            values: ValueSize::same(value_bytes),
            seeks_per_write: 0.0,
            filters: false,
            files_max: TABLE_FILES_MAX,
            flushes_max: 12_000,
            options,
            part: TreePart::default(),
        }
    }

    /// The same load, followed by `times` as many draws.
    #[must_use]
    pub fn overwritten(mut self, times: f64) -> Self {
        self.draws = crate::policy::whole(self.keys as f64 * times);
        self
    }

    /// Checks the load and its options.
    ///
    /// # Errors
    /// `InvalidArgument` with the reason, for a load that cannot be simulated.
    pub fn validate(&self) -> Result<()> {
        let entry_bytes = self.entry_bytes();
        let operands = self.merges * self.operand_bytes as f64;
        let ranges = self.range_deletes_per_write * 2.0 * self.key_bytes as f64;
        let one = entry_bytes + operands + ranges;
        let is_bounded = |count: f64| one * count < BYTES_MAX;
        let writes = self.inserts.checked_add(self.draws);
        let is_fraction = |size: &ValueSize| size.fraction > 0.0 && size.fraction.is_finite();
        let (key_max, value_max) = (KEY_BYTES_MAX as u64, VALUE_BYTES_MAX as u64);
        let exponent = match self.distribution {
            KeyDistribution::Zipfian { exponent } => exponent,
            KeyDistribution::Uniform | KeyDistribution::Sequential => 1.0,
        };
        let wrong = [
            (self.keys == 0, "there must be a key"),
            (self.inserts > self.keys, "each key is inserted once"),
            (writes == Some(0), "there must be a write"),
            (
                self.values.is_empty() || !self.values.iter().all(is_fraction),
                "there must be sizes of values, each with a fraction above 0",
            ),
            (
                self.key_bytes == 0 || self.key_bytes > key_max,
                "a key must have from 1 byte to 64 KiB",
            ),
            (
                self.shared_key_bytes >= self.key_bytes,
                "keys must differ in some of their bytes",
            ),
            (
                self.values.iter().any(|size| size.bytes > value_max),
                "a value must have at most 1 GiB",
            ),
            (
                writes.is_none_or(|writes| !is_bounded(writes as f64))
                    || !is_bounded(self.keys as f64 * 2.0),
                "all entries together must have less than 16 PiB, and all that is written less than 32 PiB",
            ),
            (
                !(0.0..=1.0).contains(&self.deletes),
                "the part of deletes must be from 0 to 1",
            ),
            (
                !(0.0..=1.0).contains(&self.merges),
                "the part of merges must be from 0 to 1",
            ),
            (
                self.deletes + self.merges > 1.0 + PARTS_EXCESS_MAX,
                "deletes and merges are parts of the draws, and together at most all of them",
            ),
            (
                self.operand_bytes > OPERAND_BYTES_MAX as u64,
                "an operand must have at most 1 MiB",
            ),
            (
                !(0.0..=1.0).contains(&self.range_deletes_per_write),
                "range deletes for each write must be from 0 to 1",
            ),
            (
                !(self.range_delete_part > 0.0 && self.range_delete_part <= 1.0),
                "the part of the keys that a range delete covers must be above 0 and at most 1",
            ),
            (
                self.range_deletes_per_write > 0.0
                    && self.distribution == KeyDistribution::Sequential,
                "range deletes are simulated at random places, which sequential inserts have not reached: choose another \
                 distribution",
            ),
            (
                !(0.0..=1.0).contains(&self.expiring),
                "the part of the values that expire must be from 0 to 1",
            ),
            (
                self.expiring > 0.0 && self.merges > 0.0,
                "a keyspace has merges or entries that expire, not both",
            ),
            (
                self.expiring > 0.0 && self.time_to_live == 0,
                "a value must expire after a write or more",
            ),
            (
                self.merges > 0.0 && self.has_separated_values(),
                "merges are simulated for values in place alone, and some values are medium or large: give them less than \
                 64 bytes, or set medium_from and large_from to never",
            ),
            (
                !(exponent > 0.0 && exponent.is_finite()),
                "the exponent must be above 0",
            ),
            (
                !(self.seeks_per_write >= 0.0 && self.seeks_per_write.is_finite()),
                "seeks for each write must be 0 or more",
            ),
            (self.files_max == 0, "there must be a file"),
            (self.flushes_max == 0, "there must be a flush"),
        ];
        match wrong.iter().find(|(is_wrong, _)| *is_wrong) {
            Some((_, what)) => Err(Error::invalid_argument(format!("a load: {what}"))),
            None => self.options.validate(),
        }
    }

    /// Whether a value is medium or large under the options.
    fn has_separated_values(&self) -> bool {
        let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let key_bytes = bytes(self.key_bytes);
        let class = |size: &ValueSize| class(key_bytes, bytes(size.bytes), &self.options);
        self.values.iter().any(|size| class(size) != Class::Small)
    }

    /// Bytes of a value, on average.
    pub fn value_bytes(&self) -> f64 {
        let all: f64 = self.values.iter().map(|size| size.fraction).sum();
        let sizes = self.values.iter();
        sizes
            .map(|size| size.fraction * size.bytes as f64)
            .sum::<f64>()
            / all
    }

    /// Bytes of an entry that has a value, on average.
    pub fn entry_bytes(&self) -> f64 {
        self.key_bytes as f64 + self.value_bytes()
    }

    /// All writes.
    pub fn writes(&self) -> u64 {
        self.inserts + self.draws
    }

    /// The classes of keys, by how often they are drawn.
    pub(super) fn key_space(&self) -> KeySpace {
        let keys = self.keys as f64;
        let KeyDistribution::Zipfian { exponent } = self.distribution else {
            return KeySpace::new(vec![KeyClass { keys, drawn: 1.0 }], self.range_delete_part);
        };
        // By ranks from one power of two to the next.
        let mut classes = Vec::new();
        let mut first = 1.0;
        while first <= keys {
            let end = f64::min(first * 2.0, keys + 1.0);
            classes.push(KeyClass {
                keys: end - first,
                drawn: weight(first, end, exponent),
            });
            first = end;
        }
        let all: f64 = classes.iter().map(|class| class.drawn).sum();
        for class in &mut classes {
            class.drawn /= all;
        }
        KeySpace::new(classes, self.range_delete_part)
    }
}

/// How many of the first ranks are summed up one by one.
const SUMMED: f64 = 1024.0;

/// The sum of rank to the power of minus `exponent` from `first` to before `end`.
fn weight(first: f64, end: f64, exponent: f64) -> f64 {
    if end <= SUMMED {
        let mut sum = 0.0;
        let mut rank = first;
        while rank < end {
            sum += rank.powf(-exponent);
            rank += 1.0;
        }
        return sum;
    }
    let (from, to) = (first - 0.5, end - 0.5);
    let power = 1.0 - exponent;
    if power.abs() < 1e-9 {
        (to / from).ln()
    } else {
        (to.powf(power) - from.powf(power)) / power
    }
}

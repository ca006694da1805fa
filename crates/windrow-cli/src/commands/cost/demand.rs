//! What is stored, which operations there are, and on what machine.
//!
//! Concurrency: none; no state.

use serde::Serialize;
use windrow::KeyspaceOptions;
use windrow::simulation::{KeyDistribution, Load, ValueClass, ValueSize, value_class};

use super::device::DeviceCost;
use super::equilibrium::Losses;
use crate::amounts::whole;

/// This many draws for each key bring a tree into equilibrium; more are not simulated.
const DRAWS_MAX: f64 = 2.0;

/// A range delete of this part of the keys is one of all of them.
const ALL_KEYS: f64 = 0.999_999;

/// How frequent operations of each kind are.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub(crate) struct Fractions {
    pub(crate) inserts: f64,
    pub(crate) updates: f64,
    pub(crate) deletes: f64,
    pub(crate) merges: f64,
    pub(crate) range_deletes: f64,
    pub(crate) gets: f64,
    pub(crate) missing: f64,
    pub(crate) scans: f64,
}

impl Fractions {
    pub(crate) fn sum(&self) -> f64 {
        self.writes() + self.range_deletes + self.reads()
    }

    /// Writes of one key.
    pub(crate) fn writes(&self) -> f64 {
        self.inserts + self.updates + self.deletes + self.merges
    }

    pub(crate) fn reads(&self) -> f64 {
        self.gets + self.missing + self.scans
    }

    /// The same, with a sum of 1.
    pub(crate) fn of_one(self) -> Self {
        let sum = self.sum();
        Self {
            inserts: self.inserts / sum,
            updates: self.updates / sum,
            deletes: self.deletes / sum,
            merges: self.merges / sum,
            range_deletes: self.range_deletes / sum,
            gets: self.gets / sum,
            missing: self.missing / sum,
            scans: self.scans / sum,
        }
    }
}

/// What merges, range deletes and values that expire are like.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct OtherWrites {
    pub(crate) operand_bytes: u64,
    /// How many keys a range delete covers. A store of fewer keys loses as many.
    pub(crate) range_delete_keys: f64,
    /// The fraction of the written values that expire.
    pub(crate) expiring: f64,
    /// After how many writes, for each stored key.
    pub(crate) writes_to_live_per_key: f64,
}

impl Default for OtherWrites {
    fn default() -> Self {
        Self {
            operand_bytes: 8,
            range_delete_keys: 1.0,
            expiring: 0.0,
            writes_to_live_per_key: 1.0,
        }
    }
}

/// The demand of a load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Demand {
    pub(crate) keys: u64,
    pub(crate) key_bytes: u64,
    pub(crate) shared_key_bytes: u64,
    pub(crate) values: Vec<ValueSize>,
    /// The smallest value of each size: thresholds between sizes lie there.
    #[serde(skip)]
    pub(crate) values_from: Vec<u64>,
    pub(crate) distribution: KeyDistribution,
    /// These add up to 1.
    pub(crate) fractions: Fractions,
    #[serde(flatten)]
    pub(crate) other_writes: OtherWrites,
    /// Entries of a scan.
    pub(crate) scan_length: f64,
    /// `None` if all data is in memory.
    pub(crate) memory: Option<u64>,
    /// How many operations that read count, from an empty page cache on. `None` if it is full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reads_counted: Option<u64>,
    /// In microseconds.
    pub(crate) device: DeviceCost,
    /// Notes for users about the source.
    pub(crate) notes: Vec<String>,
}

/// How writes change a store, as fractions of all writes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Course {
    /// Writes that add a key.
    growth: f64,
    /// Writes of keys that are drawn: updates, deletes, and inserts of what was deleted.
    draws: f64,
    /// The fraction of deletes among the draws, at most a half.
    pub(crate) deletes: f64,
    /// The fraction of merges among the draws.
    pub(crate) merges: f64,
}

impl Demand {
    pub(crate) fn value_bytes(&self) -> f64 {
        let all: f64 = self.values.iter().map(|size| size.fraction).sum();
        let bytes = |size: &ValueSize| size.fraction / all * size.bytes as f64;
        self.values.iter().map(bytes).sum()
    }

    /// Key and value, on average.
    pub(crate) fn entry_bytes(&self) -> f64 {
        self.key_bytes as f64 + self.value_bytes()
    }

    /// All keys and values, each key once.
    pub(crate) fn bytes(&self) -> f64 {
        self.keys as f64 * self.entry_bytes()
    }

    /// The class of a value of so many bytes under `options`.
    pub(crate) fn class(&self, value_bytes: u64, options: &KeyspaceOptions) -> ValueClass {
        let bytes = |bytes| usize::try_from(bytes).unwrap_or(usize::MAX);
        value_class(bytes(self.key_bytes), bytes(value_bytes), options)
    }

    /// How the writes change the store.
    ///
    /// Each delete is paired with a write that inserts its key again. These writes are inserts, which then add no key,
    /// or updates or merges if there are fewer inserts than deletes. If range deletes or expiry take keys away, all writes
    /// are draws: the store keeps its size.
    pub(crate) fn course(&self) -> Course {
        let fractions = self.fractions;
        let all = fractions.writes();
        if all == 0.0 {
            return Course {
                growth: 1.0,
                draws: 0.0,
                deletes: 0.0,
                merges: 0.0,
            };
        }
        let growth = if self.loses_keys() {
            0.0
        } else {
            (fractions.inserts - fractions.deletes).max(0.0) / all
        };
        let draws = 1.0 - growth;
        let of_draws = |fraction: f64| {
            if draws > 0.0 {
                fraction / all / draws
            } else {
                0.0
            }
        };
        Course {
            growth,
            draws,
            deletes: of_draws(fractions.deletes).min(0.5),
            merges: of_draws(fractions.merges).min(1.0),
        }
    }

    /// Whether range deletes or expiry take keys away.
    fn loses_keys(&self) -> bool {
        self.fractions.range_deletes > 0.0 || self.other_writes.expiring > 0.0
    }

    /// Range deletes for each write of a key, and the part of the keys that each covers.
    fn range_deletes(&self) -> (f64, f64) {
        let writes = self.fractions.writes();
        if writes == 0.0 || self.fractions.range_deletes == 0.0 {
            return (0.0, 1.0);
        }
        let part = self.other_writes.range_delete_keys / self.keys as f64;
        (self.fractions.range_deletes / writes, part.min(1.0))
    }

    /// After how many writes values expire.
    fn time_to_live(&self) -> f64 {
        self.other_writes.writes_to_live_per_key * self.keys as f64
    }

    /// How many keys are drawn from, so that as many as now stay stored.
    ///
    /// # Errors
    /// The most that can stay stored, if that is less.
    pub(crate) fn drawn_from(&self) -> Result<f64, f64> {
        let keys = self.keys as f64;
        let course = self.course();
        if !self.loses_keys() {
            return Ok(keys / (1.0 - course.deletes));
        }
        let (range_deletes, part) = self.range_deletes();
        let losses = Losses {
            deletes: course.deletes,
            covers: range_deletes * -(-part.min(ALL_KEYS)).ln_1p(),
            expiring: self.other_writes.expiring,
            time_to_live: self.time_to_live(),
        };
        losses.drawn_from(keys)
    }

    /// How many draws of keys follow the inserts of all, and how many of the last writes count.
    ///
    /// The second half of the inserts counts, with its fraction of the draws: a tree has about this size for most
    /// of its life. More than [`DRAWS_MAX`] draws for each key are not simulated, and then fewer inserts count.
    pub(crate) fn writes(&self) -> (u64, u64) {
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
    /// Some of the drawn keys are absent, since a delete, a range delete or their expiry came last. There are as many of
    /// these as keep as many keys present as are inserted.
    pub(crate) fn load(&self, options: &KeyspaceOptions) -> Load {
        let fractions = self.fractions;
        let mut load = Load::inserts(1, options.clone());
        let course = self.course();
        (load.deletes, load.merges) = (course.deletes, course.merges);
        load.operand_bytes = self.other_writes.operand_bytes;
        if fractions.range_deletes > 0.0 {
            (load.range_deletes_per_write, load.range_delete_part) = self.range_deletes();
        }
        load.expiring = self.other_writes.expiring;
        load.time_to_live = whole(self.time_to_live()).max(1);
        load.inserts = self.keys;
        let drawn_from = self.drawn_from().unwrap_or(self.keys as f64);
        load.keys = whole(drawn_from.round()).max(self.keys);
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

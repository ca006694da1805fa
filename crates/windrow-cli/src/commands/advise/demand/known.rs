//! What a source knows of a load, before flags are added.
//!
//! Concurrency: none; no state.

use serde::Serialize;
use windrow::KeyspaceOptions;
use windrow::simulation::{KeyDistribution, ValueSize};

/// How frequent operations of each kind are.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub(in crate::commands::advise) struct Fractions {
    pub(in crate::commands::advise) inserts: f64,
    pub(in crate::commands::advise) updates: f64,
    pub(in crate::commands::advise) deletes: f64,
    pub(in crate::commands::advise) gets: f64,
    pub(in crate::commands::advise) missing: f64,
    pub(in crate::commands::advise) scans: f64,
}

impl Fractions {
    pub(in crate::commands::advise) fn sum(&self) -> f64 {
        self.writes() + self.gets + self.missing + self.scans
    }

    pub(in crate::commands::advise) fn writes(&self) -> f64 {
        self.inserts + self.updates + self.deletes
    }

    pub(in crate::commands::advise) fn reads(&self) -> f64 {
        self.gets + self.missing + self.scans
    }

    /// The same, with a sum of 1.
    pub(super) fn of_one(self) -> Self {
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

/// What a source says of a load.
#[derive(Debug, Clone, Default)]
pub(in crate::commands::advise) struct Known {
    /// Where it comes from, for messages.
    pub(in crate::commands::advise) source: String,
    pub(in crate::commands::advise) keys: Option<u64>,
    pub(in crate::commands::advise) key_bytes: Option<u64>,
    /// Key and value together, if only that is known.
    pub(in crate::commands::advise) entry_bytes: Option<EntryBytes>,
    pub(in crate::commands::advise) values: Vec<ValueSize>,
    /// The smallest value of each size, if the sizes are means.
    pub(in crate::commands::advise) values_from: Vec<u64>,
    pub(in crate::commands::advise) weights: Option<Fractions>,
    pub(in crate::commands::advise) scan_length: Option<f64>,
    pub(in crate::commands::advise) distribution: Option<KeyDistribution>,
    /// The options that the store has.
    pub(in crate::commands::advise) options: Option<KeyspaceOptions>,
    /// Notes for users if the weights come from here, and if the sizes of entries do.
    pub(in crate::commands::advise) weights_note: Option<String>,
    pub(in crate::commands::advise) entry_note: Option<String>,
}

/// Bytes of an entry, key and value together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::commands::advise) struct EntryBytes {
    /// The mean of all entries.
    pub(in crate::commands::advise) mean: f64,
    /// The fraction of deletes, which have no value.
    pub(in crate::commands::advise) deletes: f64,
}

impl EntryBytes {
    /// The mean of those that have a value.
    pub(super) fn with_value(self, key_bytes: u64) -> f64 {
        let values = 1.0 - self.deletes;
        if values <= 0.0 {
            return key_bytes as f64;
        }
        (self.mean - self.deletes * key_bytes as f64) / values
    }
}

//! What a source knows of a load, before flags are added.
//!
//! Concurrency: none; no state.

use windrow::KeyspaceOptions;
use windrow::simulation::{KeyDistribution, ValueSize};

use crate::commands::cost::Fractions;

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

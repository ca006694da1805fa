//! The compaction filters that an open of a database has, by keyspace.
//!
//! Concurrency: immutable while the database is open.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::filter::CompactionFilter;

/// Compaction filters by the names of their keyspaces.
#[derive(Clone, Default)]
pub(crate) struct CompactionFilters(BTreeMap<String, Arc<dyn CompactionFilter>>);

impl CompactionFilters {
    /// Registers `filter` for `keyspace`, instead of an earlier one.
    pub(crate) fn register(&mut self, keyspace: String, filter: Arc<dyn CompactionFilter>) {
        self.0.insert(keyspace, filter);
    }

    /// Whether `keyspace` has a filter.
    pub(crate) fn has(&self, keyspace: &str) -> bool {
        self.0.contains_key(keyspace)
    }

    /// The filter of `keyspace`.
    pub(crate) fn of_keyspace(&self, keyspace: &str) -> Option<Arc<dyn CompactionFilter>> {
        self.0.get(keyspace).cloned()
    }
}

impl fmt::Debug for CompactionFilters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.iter().map(|(name, it)| (name, it.name()));
        f.debug_map().entries(names).finish()
    }
}

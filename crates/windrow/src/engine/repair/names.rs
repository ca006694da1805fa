//! The names of the keyspaces of the new database.
//!
//! I1. No two keyspaces have one name.
//!
//! Concurrency: one thread.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::KeyspaceId;

/// Names by id.
#[derive(Debug, Default)]
pub(super) struct Names {
    by_id: BTreeMap<KeyspaceId, String>,
    used: BTreeSet<String>,
}

impl Names {
    /// The names that a manifest knows.
    pub(super) fn new(known: impl Iterator<Item = (KeyspaceId, String)>) -> Self {
        let by_id: BTreeMap<KeyspaceId, String> = known.collect();
        let used = by_id.values().cloned().collect();
        Self { by_id, used }
    }

    /// Names keyspace `id`, if it has no name: `wanted`, or else a name that begins with it and is free (I1).
    pub(super) fn add(&mut self, id: KeyspaceId, wanted: &str) {
        if self.by_id.contains_key(&id) {
            return;
        }
        let mut name = wanted.to_owned();
        let mut number = 1_u64;
        while self.used.contains(&name) {
            number += 1;
            name = format!("{wanted}-{number}");
        }
        self.used.insert(name.clone());
        self.by_id.insert(id, name);
    }

    /// The largest id that has a name.
    pub(super) fn last(&self) -> KeyspaceId {
        self.by_id.keys().next_back().copied().unwrap_or_default()
    }

    pub(super) fn into_map(self) -> BTreeMap<KeyspaceId, String> {
        self.by_id
    }
}

#[cfg(test)]
mod tests {
    use super::Names;
    use crate::base::KeyspaceId;

    #[test]
    fn a_name_that_is_taken_gets_a_number() {
        let known = (KeyspaceId(7), "table-9-3".to_owned());
        let mut names = Names::new(std::iter::once(known));
        for id in [1, 2, 3, 1] {
            names.add(KeyspaceId(id), "table-9");
        }
        assert_eq!(names.last(), KeyspaceId(7));
        let named: Vec<String> = names.into_map().into_values().collect();
        assert_eq!(named, ["table-9", "table-9-2", "table-9-4", "table-9-3"]);
    }
}

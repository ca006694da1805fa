//! Reads that say how they come to their answer.
//!
//! Concurrency: as reads.

use std::time::Duration;

use crate::base::Result;
use crate::base::expiry::is_expired;
use crate::base::sync::Guard;
use crate::engine::{Engine, KeyspaceCore, SnapshotPoint};
use crate::read::explain::{Explanation, explain_get, explain_seek};
use crate::read::visible::KeyRange;

impl Engine {
    /// How a get of `key` comes to its answer, as of `at` or in the newest state.
    pub(crate) fn explain_get(
        &self,
        keyspace: &KeyspaceCore,
        key: &[u8],
        at: Option<SnapshotPoint>,
    ) -> Result<Explanation> {
        self.check_readable(keyspace, at)?;
        let (state, sequence) = self.state_at(keyspace, at);
        let sources = self.sources(keyspace, &state, false);
        let now = || self.options.runtime.now();
        let lives = |expiry| !is_expired(expiry, self.moment_of(at));
        let steps = explain_get(sources, key, sequence, lives, &now)?;
        drop(state);
        let start = now();
        let value = self.get(keyspace, key, at, |found| found.to_vec())?;
        let again = now().saturating_sub(start);
        Ok(Explanation {
            is_found: value.is_some(),
            key: key.to_vec(),
            value_bytes: value.map_or(0, |value| value.len() as u64),
            steps,
            again_nanos: nanos(again),
        })
    }

    /// How a seek to `key` comes to its answer, as of `at` or in the newest state.
    pub(crate) fn explain_seek(
        &self,
        keyspace: &KeyspaceCore,
        key: &[u8],
        at: Option<SnapshotPoint>,
    ) -> Result<Explanation> {
        self.check_readable(keyspace, at)?;
        let (state, sequence) = self.state_at(keyspace, at);
        let state = Guard::into_inner(state);
        let now = || self.options.runtime.now();
        let tables = &self.tables;
        let steps = explain_seek(&state, keyspace.id(), tables, (key, sequence), &now)?;
        let start = now();
        let mut cursor = self.state_view(keyspace, at)?.cursor(KeyRange::ALL);
        let is_found = cursor.seek(key)?;
        let again = now().saturating_sub(start);
        let value_bytes = if is_found { cursor.value()?.len() } else { 0 };
        let key = cursor.key().to_vec();
        self.count_scan(&mut cursor);
        Ok(Explanation {
            is_found,
            key,
            value_bytes: value_bytes as u64,
            steps,
            again_nanos: nanos(again),
        })
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

//! The replicated application: each writer puts numbered values, and each number counts once. Repeated puts are counted, too,
//! so that nodes differ if one of them applies an entry twice or not at all.

use std::collections::BTreeMap;

use openraft::declare_raft_types;
use serde::{Deserialize, Serialize};
use windrow::{Keyspace, Result, Transaction};
use windrow_openraft::Application;

declare_raft_types!(
    /// The types of the cluster.
    pub(crate) Config: D = Put, R = bool, SnapshotData = tokio::fs::File,
);

/// The `number`-th put of a writer, who repeats it until it is acknowledged.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Put {
    pub(crate) writer: u64,
    pub(crate) number: u64,
}

/// All entries of a node's state.
pub(crate) type Contents = BTreeMap<String, u64>;

/// Keeps the last number of each writer, and the numbers of all new puts and of all calls.
pub(crate) struct Puts;

impl Application<Config> for Puts {
    /// Answers whether the put is new.
    fn apply(&self, state: &Keyspace, transaction: &Transaction, put: Put) -> Result<bool> {
        let Put { writer, number } = put;
        let get = |key: &str| -> Result<u64> {
            let stored = transaction.get(state, key)?;
            Ok(stored.map_or(0, |stored| value(&stored)))
        };
        let calls = get("calls")? + 1;
        transaction.insert(state, "calls", calls.to_le_bytes())?;
        let last = format!("last {writer}");
        if get(&last)? >= number {
            return Ok(false);
        }
        let count = get("count")? + 1;
        let key = format!("put {writer} {number}");
        for (key, value) in [(key, count), (last, number), ("count".to_owned(), count)] {
            transaction.insert(state, key, value.to_le_bytes())?;
        }
        Ok(true)
    }
}

/// The contents of `state`.
pub(crate) fn contents(state: &Keyspace) -> Result<Contents> {
    let entries = state.iter()?.map(|entry| {
        let (key, stored) = entry?;
        Ok((String::from_utf8_lossy(&key).into_owned(), value(&stored)))
    });
    entries.collect()
}

/// Panics unless `contents` has all puts of each writer up to the acknowledged number, once.
pub(crate) fn check(contents: &Contents, acknowledged: &[u64]) {
    for (writer, last) in acknowledged.iter().enumerate() {
        for number in 1..=*last {
            let key = format!("put {writer} {number}");
            assert!(contents.contains_key(&key), "{key} is lost");
        }
        assert_eq!(contents[&format!("last {writer}")], *last);
    }
    let total: u64 = acknowledged.iter().sum();
    assert_eq!(contents["count"], total, "puts counted");
    let puts = contents.keys().filter(|key| key.starts_with("put "));
    assert_eq!(puts.count() as u64, total, "puts stored");
}

fn value(stored: &[u8]) -> u64 {
    u64::from_le_bytes(stored.try_into().unwrap())
}

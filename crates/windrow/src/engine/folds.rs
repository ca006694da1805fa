//! What gets have folded, until a job writes it.
//!
//! A get of a key whose newest operands are in several tables searches all of these. The value that it has folded is kept
//! here with the sequence number of the newest operand. A job proposes it as a write in place of that operand
//! ([`proposals`](crate::engine::transaction)), so the value is in a memtable, and the next get ends there. If the newest operand is
//! in a memtable, the value goes there at once (`read/operands.rs`).
//!
//! Invariants:
//! - I1: Folds take at most [`BYTES_MAX`]. What would take more is dropped. There is one for each key, the newest.
//! - I2: A get waits for no job and no other lock, and what becomes of its fold is no business of its own: what fails is
//!   dropped.
//! - I3: No job is due while writers would have to wait. Otherwise each get would make one due that drops its fold.
//!
//! Concurrency: one lock, a leaf, for the search of a key among those that wait.

use std::collections::{BTreeMap, BTreeSet};
use std::slice;
use std::sync::Arc;

use crate::base::sync::Mutex;
use crate::base::{Held, KeyspaceId, Kind, MemoryTracker, Proposal, SequenceNumber};
use crate::engine::{Engine, KeyspaceCore, counters};
use crate::read::operands::FoldKeeper;

/// The memory of all folds that wait.
const BYTES_MAX: usize = 256 << 10;

/// The folds that wait.
#[derive(Debug)]
pub(super) struct KeptFolds {
    tracker: Arc<MemoryTracker>,
    waiting: Mutex<BTreeMap<KeyspaceId, KeyspaceFolds>>,
}

/// Those of one keyspace.
#[derive(Debug)]
pub(super) struct KeyspaceFolds {
    by_key: BTreeMap<Box<[u8]>, Fold>,
    memory: Held,
}

/// The value of a key from its newest operand on.
#[derive(Debug)]
struct Fold {
    newest: SequenceNumber,
    value: Vec<u8>,
}

/// What becomes of a fold.
#[derive(Debug, PartialEq, Eq)]
enum Added {
    /// It is the first one of its keyspace, so a job is due.
    First,
    /// It waits with others.
    Waits,
    /// It waits already, or a newer one does.
    Known,
    Dropped,
}

impl KeptFolds {
    pub(super) fn new(tracker: &Arc<MemoryTracker>) -> Self {
        Self {
            tracker: Arc::clone(tracker),
            waiting: Mutex::new(BTreeMap::new()),
        }
    }

    fn add(&self, keyspace: KeyspaceId, key: &[u8], newest: SequenceNumber, value: &[u8]) -> Added {
        let mut waiting = self.waiting.lock();
        let known = waiting.get(&keyspace).and_then(|it| it.by_key.get(key));
        if known.is_some_and(|known| known.newest >= newest) {
            return Added::Known;
        }
        let bytes = Proposal::bytes_of(key, value) as u64;
        let replaced = known.map_or(0, |known| Proposal::bytes_of(key, &known.value) as u64);
        let before: u64 = waiting.values().map(|it| it.memory.bytes()).sum();
        if before - replaced + bytes > BYTES_MAX as u64 {
            return Added::Dropped; // I1
        }
        let added = if waiting.contains_key(&keyspace) {
            Added::Waits
        } else {
            Added::First
        };
        let folds = waiting.entry(keyspace).or_insert_with(|| KeyspaceFolds {
            by_key: BTreeMap::new(),
            memory: Held::new(&self.tracker, 0),
        });
        let value = value.to_vec();
        folds.by_key.insert(key.into(), Fold { newest, value });
        folds.memory.set(folds.memory.bytes() - replaced + bytes);
        added
    }

    /// The keyspaces with folds that wait.
    fn keyspaces(&self) -> BTreeSet<KeyspaceId> {
        self.waiting.lock().keys().copied().collect()
    }

    fn take(&self, keyspace: KeyspaceId) -> Option<KeyspaceFolds> {
        self.waiting.lock().remove(&keyspace)
    }
}

impl FoldKeeper for Engine {
    #[cold]
    fn keep(&self, keyspace: KeyspaceId, key: &[u8], newest: SequenceNumber, value: &[u8]) {
        if self.check_writable().is_err() {
            return;
        }
        match self.folds.add(keyspace, key, newest, value) {
            Added::First => self.signal.notify(),
            Added::Waits | Added::Known => {}
            Added::Dropped => counters::add(&self.counters.folds_dropped, 1),
        }
    }
}

impl Engine {
    /// Takes the folds of a keyspace to which writers need not wait.
    pub(super) fn claim_folds(&self) -> Option<(Arc<KeyspaceCore>, KeyspaceFolds)> {
        let waiting = self.folds.keyspaces();
        if waiting.is_empty() || self.reserve.is_full() {
            return None;
        }
        let keyspaces = self.keyspaces.load();
        waiting.into_iter().find_map(|id| {
            let Some(keyspace) = keyspaces.iter().find(|it| it.id() == id) else {
                drop(self.folds.take(id));
                return None;
            };
            if self.is_throttled(slice::from_ref(keyspace)) {
                return None;
            }
            Some((Arc::clone(keyspace), self.folds.take(id)?))
        })
    }

    /// Writes those of `folds` whose operand is still the newest entry of its key.
    pub(super) fn write_folds(&self, keyspace: &Arc<KeyspaceCore>, folds: KeyspaceFolds) {
        let KeyspaceFolds { by_key, memory } = folds;
        let proposed = by_key.len();
        let proposals = by_key.into_iter().map(|(key, fold)| Proposal {
            key,
            replaced: fold.newest,
            kind: Kind::Value,
            stored: fold.value,
        });
        let written = self.commit_current(keyspace, proposals.collect());
        drop(memory);
        let written = written.map_or(0, |written| written.len()); // I2
        counters::add(&self.counters.folds_kept, written as u64);
        let dropped = proposed - written;
        counters::add(&self.counters.folds_dropped, dropped as u64);
    }
}

#[cfg(test)]
#[cfg(not(any(loom, shuttle)))]
mod tests;

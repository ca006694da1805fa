//! What a transaction has read: keys and ranges of keys, by keyspace.
//!
//! Invariants:
//! - I1: A key or range that was added stays. A range covers what a cursor has passed, and also an end of its bounds
//!   that it has reached.
//! - I2: The set takes a bounded amount of memory. A set that would take more forgets what it has and is full for ever.
//!   So a transaction can learn too late that it cannot commit, but it can never commit unchecked.
//!
//! Concurrency: one thread fills it; the leader of the commits reads it afterwards.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::base::limits::TRANSACTION_READS_BYTES_MAX;
use crate::engine::KeyspaceCore;
use crate::read::visible::KeyRange;

/// About the memory of a key or a bound beside its bytes.
const OVERHEAD_BYTES: usize = 48;

/// What was read.
#[derive(Debug, Default)]
pub(crate) struct ReadSet {
    keyspaces: Vec<KeyspaceReads>,
    /// About the memory in use.
    bytes: usize,
    is_full: bool,
}

/// What was read of one keyspace.
#[derive(Debug)]
pub(crate) struct KeyspaceReads {
    pub(super) keyspace: Arc<KeyspaceCore>,
    pub(super) keys: BTreeSet<Box<[u8]>>,
    pub(super) ranges: Vec<KeyRange>,
}

impl ReadSet {
    /// Whether more was read than the set can hold (I2).
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keyspaces.is_empty()
    }

    pub(super) fn keyspaces(&self) -> &[KeyspaceReads] {
        &self.keyspaces
    }

    /// The number of ranges and keys.
    pub(super) fn len(&self) -> (usize, usize) {
        let count = |of: fn(&KeyspaceReads) -> usize| self.keyspaces.iter().map(of).sum();
        (count(|it| it.ranges.len()), count(|it| it.keys.len()))
    }

    /// Adds `key`.
    pub(crate) fn add_key(&mut self, keyspace: &Arc<KeyspaceCore>, key: &[u8]) {
        let reads = self.of(keyspace);
        if !reads.keys.contains(key) {
            reads.keys.insert(key.into());
            self.grow(key.len() + OVERHEAD_BYTES);
        }
    }

    /// Adds the keys of `range`.
    pub(crate) fn add_range(&mut self, keyspace: &Arc<KeyspaceCore>, range: KeyRange) {
        let (lower, upper) = range.ends();
        let bytes = [lower, upper].map(|bound| bound.map_or(0, <[u8]>::len) + OVERHEAD_BYTES);
        self.of(keyspace).ranges.push(range);
        self.grow(bytes.iter().sum());
    }

    fn grow(&mut self, bytes: usize) {
        self.bytes += bytes;
        if self.bytes > TRANSACTION_READS_BYTES_MAX {
            self.is_full = true;
        }
        if self.is_full {
            self.keyspaces.clear();
        }
    }

    fn of(&mut self, keyspace: &Arc<KeyspaceCore>) -> &mut KeyspaceReads {
        let known = |reads: &KeyspaceReads| Arc::ptr_eq(&reads.keyspace, keyspace);
        let position = self.keyspaces.iter().position(known).unwrap_or_else(|| {
            self.keyspaces.push(KeyspaceReads {
                keyspace: Arc::clone(keyspace),
                keys: BTreeSet::new(),
                ranges: Vec::new(),
            });
            self.keyspaces.len() - 1
        });
        &mut self.keyspaces[position]
    }
}

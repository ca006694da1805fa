//! What a transaction has read: keys and ranges of keys, by keyspace.
//!
//! A key or range was read at the snapshot of the transaction, unless the transaction had locked it before.
//!
//! Invariants:
//! - I1: A key or range that was added stays, a key with the lowest sequence number at which it was read. A range covers
//!   what a cursor has passed, and also an end of its bounds that it has reached.
//! - I2: The set takes a bounded amount of memory. A set that would take more forgets what it has and is full for ever.
//!   So a transaction can learn too late that it cannot commit, but it can never commit unchecked.
//!
//! Concurrency: one thread fills it; the leader of the commits reads it afterwards.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::SequenceNumber;
use crate::base::limits::TRANSACTION_READS_BYTES_MAX;
use crate::engine::KeyspaceCore;
use crate::read::visible::KeyRange;

/// About the memory of a key or a bound beside its bytes.
const OVERHEAD_BYTES: usize = 56;

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
    pub(in crate::engine) keyspace: Arc<KeyspaceCore>,
    /// Each key with the sequence number that it was read at.
    pub(in crate::engine) keys: BTreeMap<Box<[u8]>, SequenceNumber>,
    /// Each range with the sequence number that it was read at.
    pub(in crate::engine) ranges: Vec<(KeyRange, SequenceNumber)>,
}

impl ReadSet {
    /// Whether more was read than the set can hold (I2).
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keyspaces.is_empty()
    }

    pub(in crate::engine) fn keyspaces(&self) -> &[KeyspaceReads] {
        &self.keyspaces
    }

    /// The number of ranges and keys.
    pub(crate) fn len(&self) -> (usize, usize) {
        let count = |of: fn(&KeyspaceReads) -> usize| self.keyspaces.iter().map(of).sum();
        (count(|it| it.ranges.len()), count(|it| it.keys.len()))
    }

    /// Adds `key`, which was read at `since`.
    pub(crate) fn add_key(
        &mut self,
        keyspace: &Arc<KeyspaceCore>,
        key: &[u8],
        since: SequenceNumber,
    ) {
        let reads = self.of(keyspace);
        if let Some(known) = reads.keys.get_mut(key) {
            *known = since.min(*known);
        } else {
            reads.keys.insert(key.into(), since);
            self.grow(key.len() + OVERHEAD_BYTES);
        }
    }

    /// Adds the keys of `range`, which were read at `since`.
    pub(crate) fn add_range(
        &mut self,
        keyspace: &Arc<KeyspaceCore>,
        range: KeyRange,
        since: SequenceNumber,
    ) {
        let (lower, upper) = range.ends();
        let bytes = [lower, upper].map(|bound| bound.map_or(0, <[u8]>::len) + OVERHEAD_BYTES);
        self.of(keyspace).ranges.push((range, since));
        self.grow(bytes.iter().sum());
    }

    /// About the memory in use, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes
    }

    fn grow(&mut self, bytes: usize) {
        self.bytes += bytes;
        if self.bytes > TRANSACTION_READS_BYTES_MAX {
            self.is_full = true;
        }
        if self.is_full {
            self.keyspaces.clear();
            self.bytes = 0;
        }
    }

    fn of(&mut self, keyspace: &Arc<KeyspaceCore>) -> &mut KeyspaceReads {
        let known = |reads: &KeyspaceReads| Arc::ptr_eq(&reads.keyspace, keyspace);
        let position = self.keyspaces.iter().position(known).unwrap_or_else(|| {
            self.keyspaces.push(KeyspaceReads {
                keyspace: Arc::clone(keyspace),
                keys: BTreeMap::new(),
                ranges: Vec::new(),
            });
            self.keyspaces.len() - 1
        });
        &mut self.keyspaces[position]
    }
}

//! What a transaction has written so far, by keyspace, and how to undo it.
//!
//! Invariants:
//! - I1: A key has its newest entry, and the operands that came after it. What is written to a key in a deleted range is
//!   newer than the deletion, so the deletions come first in the encoded form.
//! - I2: While a savepoint exists, each change is recorded together with what it replaced. So a roll-back restores the
//!   state of its savepoint, newest change first.
//! - I3: The encoded entries, and what savepoints keep, have together at most [`BATCH_BYTES_MAX`] bytes.
//!
//! Concurrency: owned by one thread.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::deleted_ranges::{Added, DeletedRanges};
use super::written::{Base, ENTRY_BYTES_MAX, Own, Written};
use crate::base::expiry::put_expiring;
use crate::base::limits::BATCH_BYTES_MAX;
use crate::base::{Error, KeyspaceId, Kind, Result};
use crate::engine::locks::Owner;
use crate::engine::{KeyspaceCore, Write};
use crate::log::batch;
use crate::read::visible::{KeyRange, is_ordered};

/// The writes of a transaction.
#[derive(Debug, Default)]
pub(super) struct WriteSet {
    keyspaces: Vec<KeyspaceWrites>,
    /// The most bytes of the encoded entries.
    bytes: usize,
    changes: Vec<Change>,
    /// The bytes of the changes.
    changes_bytes: usize,
    savepoints: Vec<Savepoint>,
    roll_backs: u64,
}

/// Names a savepoint. No other savepoint of any transaction has the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SavepointId(pub(super) Owner);

#[derive(Debug)]
struct Savepoint {
    id: SavepointId,
    /// The number of changes before it.
    changes: usize,
    /// The position of the transaction's locks.
    locks: usize,
}

#[derive(Debug)]
struct KeyspaceWrites {
    keyspace: Arc<KeyspaceCore>,
    entries: BTreeMap<Vec<u8>, Written>,
    deleted: DeletedRanges,
}

/// A change, as it is undone.
#[derive(Debug)]
struct Change {
    /// The position of its keyspace.
    keyspace: usize,
    undo: Undo,
}

/// What there was before a change.
#[derive(Debug)]
enum Undo {
    /// What was written to a key; `None` if nothing was.
    Entry(Vec<u8>, Option<Written>),
    /// A key got another operand.
    Operand(Vec<u8>),
    Deleted(Added),
}

/// The entries of a write set in the form of a log record.
#[derive(Debug, Default)]
pub(super) struct EncodedWrites {
    entries: Vec<u8>,
    count: u32,
    longest: usize,
    keyspaces: Vec<Arc<KeyspaceCore>>,
}

impl EncodedWrites {
    fn put(&mut self, keyspace: KeyspaceId, kind: Kind, key: &[u8], value: &[u8]) {
        batch::put_entry(&mut self.entries, keyspace, kind, key, value);
        self.count += 1;
        if kind.lasting() == Kind::Value {
            self.longest = self.longest.max(key.len() + value.len());
        }
    }

    pub(super) fn entries(&self) -> &[u8] {
        &self.entries
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }

    pub(super) fn write(&self) -> Write<'_> {
        Write::Batch {
            entries: &self.entries,
            count: self.count,
            longest: self.longest,
            keyspaces: &self.keyspaces,
        }
    }
}

/// The bytes of the change of a `key` to which `before` was written.
fn change_bytes(key: &[u8], before: Option<&Written>) -> usize {
    size_of::<Change>() + key.len() + before.map_or(0, Written::memory_bytes)
}

/// The most bytes of encoded deletions.
fn deleted_bytes(deleted: &DeletedRanges) -> usize {
    ENTRY_BYTES_MAX * deleted.len() + deleted.bytes()
}

impl Undo {
    /// The bytes of the change.
    fn bytes(&self) -> usize {
        match self {
            Self::Entry(key, before) => change_bytes(key, before.as_ref()),
            Self::Operand(key) => change_bytes(key, None),
            Self::Deleted(added) => size_of::<Change>() + added.bytes(),
        }
    }
}

impl KeyspaceWrites {
    fn is_deleted(&self, key: &[u8]) -> bool {
        self.deleted.around(key).is_some()
    }

    fn own<'a>(&self, key: &[u8], written: &'a Written) -> Own<'a> {
        written.own(!written.replaces() && self.is_deleted(key))
    }
}

impl WriteSet {
    pub(super) fn is_empty(&self) -> bool {
        let is_empty = |it: &KeyspaceWrites| it.entries.is_empty() && it.deleted.is_empty();
        self.keyspaces.iter().all(is_empty)
    }

    /// Makes `base` what `key` has: a value, or nothing.
    ///
    /// # Errors
    /// `InvalidArgument` if the set gets larger than 1 GiB (I3). Nothing has changed then.
    pub(super) fn put(
        &mut self,
        keyspace: &Arc<KeyspaceCore>,
        key: &[u8],
        base: Base,
    ) -> Result<()> {
        let written = Written::new(base);
        let bytes = self.bytes + written.entries_bytes(key.len());
        let mut changes_bytes = self.changes_bytes;
        if !self.savepoints.is_empty() {
            let before = self.of(keyspace).and_then(|it| it.entries.get(key));
            changes_bytes += change_bytes(key, before);
        }
        check_bytes(bytes + changes_bytes)?;
        self.bytes = bytes;
        self.changes_bytes = changes_bytes;
        let position = self.position_of(keyspace);
        let before = self.set(position, key.to_vec(), Some(written));
        if !self.savepoints.is_empty() {
            self.changes.push(Change {
                keyspace: position,
                undo: Undo::Entry(key.to_vec(), before),
            });
        }
        Ok(())
    }

    /// Adds an operand to `key`.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub(super) fn merge(
        &mut self,
        keyspace: &Arc<KeyspaceCore>,
        key: &[u8],
        operand: &[u8],
    ) -> Result<()> {
        let bytes = self.bytes + ENTRY_BYTES_MAX + key.len() + operand.len();
        let has_savepoint = !self.savepoints.is_empty();
        let mut changes_bytes = self.changes_bytes;
        if has_savepoint {
            changes_bytes += change_bytes(key, None);
        }
        check_bytes(bytes + changes_bytes)?;
        self.bytes = bytes;
        self.changes_bytes = changes_bytes;
        let position = self.position_of(keyspace);
        let entries = &mut self.keyspaces[position].entries;
        if let Some(written) = entries.get_mut(key) {
            written.operands.push(operand);
        } else {
            let mut written = Written::new(Base::Unwritten);
            written.operands.push(operand);
            entries.insert(key.to_vec(), written);
        }
        if has_savepoint {
            self.changes.push(Change {
                keyspace: position,
                undo: Undo::Operand(key.to_vec()),
            });
        }
        Ok(())
    }

    /// Deletes the keys from `start` to before `end`, or all from `start` on if `end` is empty.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub(super) fn delete_range(
        &mut self,
        keyspace: &Arc<KeyspaceCore>,
        start: &[u8],
        end: &[u8],
    ) -> Result<()> {
        let position = self.position_of(keyspace);
        let KeyspaceWrites {
            entries, deleted, ..
        } = &mut self.keyspaces[position];
        let upper = match end {
            [] => Bound::Unbounded,
            end => Bound::Excluded(end),
        };
        let covered = entries.range::<[u8], _>((Bound::Included(start), upper));
        let covered: Vec<Vec<u8>> = covered.map(|(key, _)| key.clone()).collect();
        let other_bytes = self.bytes - deleted_bytes(deleted);
        let added = deleted.add(start.to_vec(), end.to_vec());
        let bytes = other_bytes + deleted_bytes(deleted);
        let has_savepoint = !self.savepoints.is_empty();
        let mut changes_bytes = self.changes_bytes;
        if has_savepoint {
            changes_bytes += size_of::<Change>() + added.bytes();
            let entries = covered
                .iter()
                .map(|key| change_bytes(key, entries.get(key)));
            changes_bytes += entries.sum::<usize>();
        }
        if let Err(error) = check_bytes(bytes + changes_bytes) {
            deleted.undo(added);
            return Err(error);
        }
        self.bytes = bytes;
        self.changes_bytes = changes_bytes;
        for key in covered {
            let before = self.set(position, key.clone(), None);
            if has_savepoint {
                let undo = Undo::Entry(key, before);
                self.changes.push(Change {
                    keyspace: position,
                    undo,
                });
            }
        }
        if has_savepoint {
            self.changes.push(Change {
                keyspace: position,
                undo: Undo::Deleted(added),
            });
        }
        Ok(())
    }

    /// Removes the newest operand of `key`.
    fn remove_operand(&mut self, keyspace: usize, key: &[u8]) {
        let entries = &mut self.keyspaces[keyspace].entries;
        if let Some(written) = entries.get_mut(key) {
            self.bytes -= ENTRY_BYTES_MAX + key.len() + written.operands.pop();
            if written.is_empty() {
                entries.remove(key);
            }
        }
    }

    /// Replaces what was written to `key`. Returns what it was.
    fn set(&mut self, keyspace: usize, key: Vec<u8>, entry: Option<Written>) -> Option<Written> {
        let length = key.len();
        let entries = &mut self.keyspaces[keyspace].entries;
        let before = match entry {
            Some(written) => entries.insert(key, written),
            None => entries.remove(&key),
        };
        if let Some(before) = &before {
            self.bytes -= before.entries_bytes(length);
        }
        before
    }

    fn position_of(&mut self, keyspace: &Arc<KeyspaceCore>) -> usize {
        let known = |it: &KeyspaceWrites| Arc::ptr_eq(&it.keyspace, keyspace);
        self.keyspaces.iter().position(known).unwrap_or_else(|| {
            self.keyspaces.push(KeyspaceWrites {
                keyspace: Arc::clone(keyspace),
                entries: BTreeMap::new(),
                deleted: DeletedRanges::default(),
            });
            self.keyspaces.len() - 1
        })
    }

    fn of(&self, keyspace: &Arc<KeyspaceCore>) -> Option<&KeyspaceWrites> {
        let mut keyspaces = self.keyspaces.iter();
        keyspaces.find(|it| Arc::ptr_eq(&it.keyspace, keyspace))
    }

    /// What the writes say of `key`, if the transaction has written it or deleted a range around it.
    pub(super) fn get(&self, keyspace: &Arc<KeyspaceCore>, key: &[u8]) -> Option<Own<'_>> {
        let writes = self.of(keyspace)?;
        match writes.entries.get(key) {
            Some(written) => Some(writes.own(key, written)),
            None => writes.is_deleted(key).then_some(Own::Decided(None)),
        }
    }

    /// The deleted range that has `key`, as its start and end; the end is empty if it has none.
    pub(super) fn deleted_around(
        &self,
        keyspace: &Arc<KeyspaceCore>,
        key: &[u8],
    ) -> Option<(&[u8], &[u8])> {
        self.of(keyspace)?.deleted.around(key)
    }

    /// The first written key within `bounds`, and what the writes say of it.
    pub(super) fn first_in(
        &self,
        keyspace: &Arc<KeyspaceCore>,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
    ) -> Option<(&[u8], Own<'_>)> {
        let writes = self.of(keyspace).filter(|_| is_ordered(bounds))?;
        let (key, written) = writes.entries.range::<[u8], _>(bounds).next()?;
        Some((key, writes.own(key, written)))
    }

    /// The last written key within `bounds`, and what the writes say of it.
    pub(super) fn last_in(
        &self,
        keyspace: &Arc<KeyspaceCore>,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
    ) -> Option<(&[u8], Own<'_>)> {
        let writes = self.of(keyspace).filter(|_| is_ordered(bounds))?;
        let (key, written) = writes.entries.range::<[u8], _>(bounds).next_back()?;
        Some((key, writes.own(key, written)))
    }

    /// Begins to record changes after the savepoint `id`. `locks` is the position of the locks, which a roll-back
    /// returns.
    pub(super) fn savepoint(&mut self, id: SavepointId, locks: usize) {
        self.savepoints.push(Savepoint {
            id,
            changes: self.changes.len(),
            locks,
        });
    }

    /// Undoes every change after the savepoint `id`, and forgets later savepoints. Returns the position of the locks.
    ///
    /// # Errors
    /// `InvalidArgument` if the savepoint is gone, or of another transaction.
    pub(super) fn roll_back_to(&mut self, id: SavepointId) -> Result<usize> {
        let found = self.savepoints.iter().rposition(|it| it.id == id);
        let Some(position) = found else {
            return Err(Error::invalid_argument(
                "the savepoint is of another transaction, or this one was rolled back to before it",
            ));
        };
        self.roll_backs += 1;
        self.savepoints.truncate(position + 1);
        let Savepoint { changes, locks, .. } = self.savepoints[position];
        while self.changes.len() > changes
            && let Some(change) = self.changes.pop()
        {
            self.changes_bytes -= change.undo.bytes();
            match change.undo {
                Undo::Entry(key, before) => {
                    if let Some(before) = &before {
                        self.bytes += before.entries_bytes(key.len());
                    }
                    self.set(change.keyspace, key, before);
                }
                Undo::Operand(key) => self.remove_operand(change.keyspace, &key),
                Undo::Deleted(added) => {
                    let deleted = &mut self.keyspaces[change.keyspace].deleted;
                    self.bytes -= deleted_bytes(deleted);
                    deleted.undo(added);
                    self.bytes += deleted_bytes(deleted);
                }
            }
        }
        Ok(locks)
    }

    /// How often the writes were rolled back.
    pub(super) fn roll_backs(&self) -> u64 {
        self.roll_backs
    }

    /// About the memory in use, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes + self.changes_bytes
    }

    /// The deleted ranges with their keyspaces.
    pub(super) fn deleted(&self) -> impl Iterator<Item = (&Arc<KeyspaceCore>, KeyRange)> {
        self.keyspaces.iter().flat_map(|writes| {
            let ranges = writes.deleted.iter();
            ranges.map(|(start, end)| (&writes.keyspace, KeyRange::from_start(start, end)))
        })
    }

    /// The written keys with their keyspaces.
    pub(super) fn keys(&self) -> impl Iterator<Item = (&Arc<KeyspaceCore>, &[u8])> {
        self.keyspaces.iter().flat_map(|writes| {
            let keys = writes.entries.keys();
            keys.map(|key| (&writes.keyspace, &key[..]))
        })
    }

    /// The same without keys that only get operands.
    pub(super) fn replaced_keys(&self) -> impl Iterator<Item = (&Arc<KeyspaceCore>, &[u8])> {
        self.keyspaces.iter().flat_map(|writes| {
            let replaced = writes.entries.iter().filter(|(_, it)| it.replaces());
            replaced.map(|(key, _)| (&writes.keyspace, &key[..]))
        })
    }

    /// The entries, keyspace by keyspace: the deleted ranges, then the others in the order of keys (I1), those of one key
    /// oldest first.
    pub(super) fn encode(&self) -> EncodedWrites {
        let mut encoded = EncodedWrites {
            entries: Vec::with_capacity(self.bytes),
            ..EncodedWrites::default()
        };
        let mut expiring = Vec::new();
        for writes in &self.keyspaces {
            let KeyspaceWrites {
                keyspace,
                entries,
                deleted,
            } = writes;
            if entries.is_empty() && deleted.is_empty() {
                continue;
            }
            encoded.keyspaces.push(Arc::clone(keyspace));
            let id = keyspace.id();
            for (start, end) in deleted.iter() {
                encoded.put(id, Kind::RangeTombstone, start, end);
            }
            for (key, written) in entries {
                match &written.base {
                    Base::Unwritten => {}
                    Base::Removed => encoded.put(id, Kind::Tombstone, key, &[]),
                    Base::Value(written) => match written.expiry {
                        Some(expiry) => {
                            expiring.clear();
                            put_expiring(&mut expiring, expiry, &written.value);
                            encoded.put(id, Kind::ExpiringValue, key, &expiring);
                        }
                        None => encoded.put(id, Kind::Value, key, &written.value),
                    },
                }
                for position in 0..written.operands.len() {
                    encoded.put(id, Kind::Operand, key, written.operands.get(position));
                }
            }
        }
        encoded
    }
}

/// # Errors
/// `InvalidArgument` if a write set would have more than its most bytes (I3).
fn check_bytes(bytes: usize) -> Result<()> {
    if bytes > BATCH_BYTES_MAX {
        return Err(Error::invalid_argument(
            "the writes of a transaction, with those that its savepoints keep, cannot be larger than 1 GiB",
        ));
    }
    Ok(())
}

#[cfg(test)]
#[cfg(not(any(loom, shuttle)))]
mod tests;

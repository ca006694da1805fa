//! What a transaction has written so far, by keyspace, and how to undo it.
//!
//! Invariants:
//! - I1: A key has one entry, its newest.
//! - I2: While a savepoint exists, each change is recorded together with what it replaced. So a roll-back restores the
//!   state of its savepoint, newest change first.
//! - I3: The encoded entries, and what savepoints keep, have together at most [`BATCH_BYTES_MAX`] bytes.
//!
//! Concurrency: owned by one thread.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use crate::base::limits::BATCH_BYTES_MAX;
use crate::base::{Error, Kind, Result};
use crate::engine::{KeyspaceCore, Write};
use crate::log::batch;
use crate::read::visible::is_ordered;

/// The most bytes of an encoded entry beside its key and value.
const ENTRY_BYTES_MAX: usize = 32;

/// What a key has: a value, or none after a removal.
pub(super) type Written = Option<Vec<u8>>;

/// The writes of a transaction.
#[derive(Debug, Default)]
pub(super) struct WriteSet {
    keyspaces: Vec<KeyspaceWrites>,
    /// The most bytes of the encoded entries.
    bytes: usize,
    changes: Vec<Change>,
    /// The bytes of the changes.
    changes_bytes: usize,
    savepoints: Vec<(u64, usize)>,
    next_savepoint: u64,
}

#[derive(Debug)]
struct KeyspaceWrites {
    keyspace: Arc<KeyspaceCore>,
    entries: BTreeMap<Vec<u8>, Written>,
}

/// A change, as it is undone.
#[derive(Debug)]
struct Change {
    /// The position of its keyspace.
    keyspace: usize,
    key: Vec<u8>,
    /// What the key had before; `None` if the transaction had not written it.
    before: Option<Written>,
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
    pub(super) fn write(&self) -> Write<'_> {
        Write::Batch {
            entries: &self.entries,
            count: self.count,
            longest: self.longest,
            keyspaces: &self.keyspaces,
        }
    }
}

fn entry_bytes(key: &[u8], written: &Written) -> usize {
    ENTRY_BYTES_MAX + key.len() + written.as_ref().map_or(0, Vec::len)
}

/// The bytes of the change of a `key` that had the entry `before`.
fn change_bytes(key: &[u8], before: Option<&Written>) -> usize {
    let value = before.and_then(Option::as_ref).map_or(0, Vec::len);
    size_of::<Change>() + key.len() + value
}

impl WriteSet {
    pub(super) fn is_empty(&self) -> bool {
        self.keyspaces.iter().all(|it| it.entries.is_empty())
    }

    /// Sets the newest entry of `key`.
    ///
    /// # Errors
    /// `InvalidArgument` if the set gets larger than 1 GiB (I3). Nothing has changed then.
    pub(super) fn put(
        &mut self,
        keyspace: &Arc<KeyspaceCore>,
        key: &[u8],
        written: Written,
    ) -> Result<()> {
        let bytes = self.bytes + entry_bytes(key, &written);
        let mut changes_bytes = self.changes_bytes;
        if !self.savepoints.is_empty() {
            changes_bytes += change_bytes(key, self.get(keyspace, key));
        }
        if bytes + changes_bytes > BATCH_BYTES_MAX {
            return Err(Error::invalid_argument(
                "the writes of a transaction, with those that its savepoints keep, cannot be larger than 1 GiB",
            ));
        }
        self.bytes = bytes;
        self.changes_bytes = changes_bytes;
        let position = self.position_of(keyspace);
        let before = self.set(position, key.to_vec(), Some(written));
        if !self.savepoints.is_empty() {
            self.changes.push(Change {
                keyspace: position,
                key: key.to_vec(),
                before,
            });
        }
        Ok(())
    }

    /// Replaces the entry of `key`. Returns the one before.
    fn set(&mut self, keyspace: usize, key: Vec<u8>, entry: Option<Written>) -> Option<Written> {
        let length = key.len();
        let entries = &mut self.keyspaces[keyspace].entries;
        let before = match entry {
            Some(written) => entries.insert(key, written),
            None => entries.remove(&key),
        };
        if let Some(before) = &before {
            let value = before.as_ref().map_or(0, Vec::len);
            self.bytes -= ENTRY_BYTES_MAX + length + value;
        }
        before
    }

    fn position_of(&mut self, keyspace: &Arc<KeyspaceCore>) -> usize {
        let known = |it: &KeyspaceWrites| Arc::ptr_eq(&it.keyspace, keyspace);
        self.keyspaces.iter().position(known).unwrap_or_else(|| {
            self.keyspaces.push(KeyspaceWrites {
                keyspace: Arc::clone(keyspace),
                entries: BTreeMap::new(),
            });
            self.keyspaces.len() - 1
        })
    }

    fn of(&self, keyspace: &Arc<KeyspaceCore>) -> Option<&BTreeMap<Vec<u8>, Written>> {
        let mut keyspaces = self.keyspaces.iter();
        let found = keyspaces.find(|it| Arc::ptr_eq(&it.keyspace, keyspace));
        found.map(|it| &it.entries)
    }

    /// The entry of `key`, if the transaction has written it.
    pub(super) fn get(&self, keyspace: &Arc<KeyspaceCore>, key: &[u8]) -> Option<&Written> {
        self.of(keyspace)?.get(key)
    }

    /// The first written key within `bounds`, and its entry.
    pub(super) fn first_in(
        &self,
        keyspace: &Arc<KeyspaceCore>,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
    ) -> Option<(&[u8], &Written)> {
        let entries = self.of(keyspace).filter(|_| is_ordered(bounds))?;
        let (key, written) = entries.range::<[u8], _>(bounds).next()?;
        Some((key, written))
    }

    /// The last written key within `bounds`, and its entry.
    pub(super) fn last_in(
        &self,
        keyspace: &Arc<KeyspaceCore>,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
    ) -> Option<(&[u8], &Written)> {
        let entries = self.of(keyspace).filter(|_| is_ordered(bounds))?;
        let (key, written) = entries.range::<[u8], _>(bounds).next_back()?;
        Some((key, written))
    }

    /// Begins to record changes. Returns the number of the savepoint.
    pub(super) fn savepoint(&mut self) -> u64 {
        self.next_savepoint += 1;
        let number = self.next_savepoint;
        self.savepoints.push((number, self.changes.len()));
        number
    }

    /// Undoes every change after the savepoint `number`, and forgets later savepoints.
    ///
    /// # Errors
    /// `InvalidArgument` if the savepoint is gone.
    pub(super) fn roll_back_to(&mut self, number: u64) -> Result<()> {
        let found = self.savepoints.iter().rposition(|it| it.0 == number);
        let Some(position) = found else {
            return Err(Error::invalid_argument(
                "the transaction was rolled back to before this savepoint",
            ));
        };
        self.savepoints.truncate(position + 1);
        let (_, length) = self.savepoints[position];
        while self.changes.len() > length
            && let Some(change) = self.changes.pop()
        {
            self.changes_bytes -= change_bytes(&change.key, change.before.as_ref());
            if let Some(before) = &change.before {
                self.bytes += entry_bytes(&change.key, before);
            }
            self.set(change.keyspace, change.key, change.before);
        }
        Ok(())
    }

    /// The entries, keyspace by keyspace and in the order of keys.
    pub(super) fn encode(&self) -> EncodedWrites {
        let mut encoded = EncodedWrites {
            entries: Vec::with_capacity(self.bytes),
            ..EncodedWrites::default()
        };
        for KeyspaceWrites { keyspace, entries } in &self.keyspaces {
            if entries.is_empty() {
                continue;
            }
            encoded.keyspaces.push(Arc::clone(keyspace));
            for (key, written) in entries {
                let (kind, value) = match written {
                    Some(value) => (Kind::Value, &value[..]),
                    None => (Kind::Tombstone, &[][..]),
                };
                batch::put_entry(&mut encoded.entries, keyspace.id(), kind, key, value);
                encoded.count += 1;
                encoded.longest = encoded.longest.max(key.len() + value.len());
            }
        }
        encoded
    }
}

#[cfg(test)]
#[cfg(not(any(loom, shuttle)))]
mod tests;

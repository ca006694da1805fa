//! An open database.
//!
//! Concurrency: any thread may make any call.

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use windrow::{Batch, Durability, Error, PinnedValue, Result, Snapshot, Stats};
use windrow_ffi::key_order::CallOrder;
use windrow_ffi::leveldb::{self, Entries};

use crate::batch::{Write, WriteBatch};
use crate::iterator::EntryIterator;
use crate::options::OpenOptions;

/// The bounds of all keys.
const ALL: leveldb::Bounds<'_> = (Bound::Unbounded, Bound::Unbounded);

/// An open database.
pub(crate) struct Database {
    entries: Entries,
    order: Option<CallOrder>,
}

impl Database {
    pub(crate) fn open(path: &Path, options: &OpenOptions) -> Result<Self> {
        let (db, keyspace) = leveldb::open(path, &options.common)?;
        Ok(Self {
            entries: Entries::new(db, keyspace)?,
            order: options.order.clone().map(CallOrder::new),
        })
    }

    pub(crate) fn close(self) -> Result<()> {
        self.entries.db().clone().close()
    }

    pub(crate) fn get(
        &self,
        key: &[u8],
        snapshot: Option<&Snapshot>,
    ) -> Result<Option<PinnedValue>> {
        self.check_order(key)?;
        self.entries.get(key, snapshot)
    }

    pub(crate) fn put(&self, key: &[u8], value: &[u8], durability: Durability) -> Result<()> {
        self.check_order(key)?;
        self.entries.insert(key, value, durability)
    }

    pub(crate) fn delete(&self, key: &[u8], durability: Durability) -> Result<()> {
        self.check_order(key)?;
        self.entries.remove(key, durability)
    }

    pub(crate) fn write(&self, writes: &WriteBatch, durability: Durability) -> Result<()> {
        if let Some(fault) = writes.fault() {
            return Err(Error::invalid_argument(fault));
        }
        let mut batch = Batch::new();
        for write in writes.writes() {
            match write {
                Write::Put(key, value) => {
                    self.check_order(key)?;
                    self.entries.batch_insert(&mut batch, key, value)?;
                }
                Write::Delete(key) => {
                    self.check_order(key)?;
                    self.entries.batch_remove(&mut batch, key)?;
                }
            }
        }
        self.entries.db().write_with(&batch, durability)
    }

    /// An iterator over the present state, or that of `snapshot`.
    pub(crate) fn iterator(&self, snapshot: Option<&Snapshot>) -> EntryIterator {
        EntryIterator::new(
            self.entries.cursor(ALL, snapshot),
            self.order.as_ref().map(|order| Arc::clone(order.order())),
        )
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.entries.db().snapshot()
    }

    /// About how many bytes of files the keys from `start` to before `limit` have.
    pub(crate) fn approximate_size(&self, start: &[u8], limit: &[u8]) -> Result<u64> {
        self.entries.keyspace().approximate_size(start..limit)
    }

    /// Compacts the keys from `start` to `limit`; `None` for no bound.
    pub(crate) fn compact_range(&self, start: Option<&[u8]>, limit: Option<&[u8]>) -> Result<()> {
        let bound = |key: Option<_>| key.map_or(Bound::Unbounded, Bound::Included);
        self.entries
            .keyspace()
            .compact_range::<&[u8]>((bound(start), bound(limit)))
    }

    /// The statistics of the database, and the position of those of its keyspace.
    pub(crate) fn stats(&self) -> (Stats, Option<usize>) {
        let stats = self.entries.db().stats();
        let name = self.entries.keyspace().name();
        let position = stats
            .keyspaces
            .iter()
            .position(|keyspace| keyspace.name == name);
        (stats, position)
    }

    fn check_order(&self, key: &[u8]) -> Result<()> {
        self.order.as_ref().map_or(Ok(()), |order| order.check(key))
    }
}

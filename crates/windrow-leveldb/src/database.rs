//! An open database.
//!
//! Concurrency: any thread may make any call.

use std::ops::Bound;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use windrow::{
    Batch, Db, Durability, Error, ErrorKind, Keyspace, PinnedValue, Result, Snapshot, Stats,
};
use windrow_ffi::key_order::CallOrder;
use windrow_ffi::leveldb;

use crate::batch::{Write, WriteBatch};
use crate::iterator::{EntryIterator, Source};
use crate::options::OpenOptions;

/// The keyspace of the empty key.
const EMPTY_KEY_KEYSPACE: &str = "leveldb.empty-key";

/// The key in that keyspace that stands for the empty one.
const EMPTY_KEY: &[u8] = &[0];

/// An open database.
pub(crate) struct Database {
    db: Db,
    keyspace: Keyspace,
    /// The keyspace of the empty key, once it was written.
    empty_key: OnceLock<Keyspace>,
    order: Option<CallOrder>,
}

impl Database {
    pub(crate) fn open(path: &Path, options: &OpenOptions) -> Result<Self> {
        let (db, keyspace) = leveldb::open(path, &options.common)?;
        let empty_key = OnceLock::new();
        if let Some(found) = db.existing_keyspace(EMPTY_KEY_KEYSPACE)? {
            empty_key.get_or_init(|| found);
        }
        Ok(Self {
            db,
            keyspace,
            empty_key,
            order: options.order.clone().map(CallOrder::new),
        })
    }

    pub(crate) fn close(self) -> Result<()> {
        self.db.close()
    }

    pub(crate) fn get(
        &self,
        key: &[u8],
        snapshot: Option<&Snapshot>,
    ) -> Result<Option<PinnedValue>> {
        self.check_order(key)?;
        let Some((keyspace, key)) = self.place(key) else {
            return Ok(None);
        };
        match snapshot {
            None => keyspace.get_pinned(key),
            Some(snapshot) => keyspace.at(snapshot)?.get_pinned(key),
        }
    }

    pub(crate) fn put(&self, key: &[u8], value: &[u8], durability: Durability) -> Result<()> {
        self.check_order(key)?;
        let (keyspace, key) = self.place_for_put(key)?;
        keyspace.insert_with(key, value, durability)
    }

    pub(crate) fn delete(&self, key: &[u8], durability: Durability) -> Result<()> {
        self.check_order(key)?;
        match self.place(key) {
            Some((keyspace, key)) => keyspace.remove_with(key, durability),
            None => Ok(()),
        }
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
                    let (keyspace, key) = self.place_for_put(key)?;
                    batch.insert(keyspace, key, value)?;
                }
                Write::Delete(key) => {
                    self.check_order(key)?;
                    if let Some((keyspace, key)) = self.place(key) {
                        batch.remove(keyspace, key)?;
                    }
                }
            }
        }
        self.db.write_with(&batch, durability)
    }

    /// An iterator over the present state, or that of `snapshot`.
    pub(crate) fn iterator(&self, snapshot: Option<&Snapshot>) -> EntryIterator {
        EntryIterator::new(
            self.source(snapshot),
            self.order.as_ref().map(|order| Arc::clone(order.order())),
        )
    }

    fn source(&self, snapshot: Option<&Snapshot>) -> Result<Source> {
        let snapshot = snapshot.map_or_else(|| self.db.snapshot(), Snapshot::clone);
        let empty_key = match self.empty_key.get() {
            None => None,
            Some(keyspace) => keyspace.at(&snapshot)?.get(EMPTY_KEY)?,
        };
        Ok(Source {
            cursor: self.keyspace.at(&snapshot)?.cursor()?,
            empty_key,
        })
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.db.snapshot()
    }

    /// About how many bytes of files the keys from `start` to before `limit` have.
    pub(crate) fn approximate_size(&self, start: &[u8], limit: &[u8]) -> Result<u64> {
        self.keyspace.approximate_size(start..limit)
    }

    /// Compacts the keys from `start` to `limit`; `None` for no bound.
    pub(crate) fn compact_range(&self, start: Option<&[u8]>, limit: Option<&[u8]>) -> Result<()> {
        let bound = |key: Option<_>| key.map_or(Bound::Unbounded, Bound::Included);
        self.keyspace
            .compact_range::<&[u8]>((bound(start), bound(limit)))
    }

    /// The statistics of the database, and the position of those of its keyspace.
    pub(crate) fn stats(&self) -> (Stats, Option<usize>) {
        let stats = self.db.stats();
        let name = self.keyspace.name();
        let position = stats
            .keyspaces
            .iter()
            .position(|keyspace| keyspace.name == name);
        (stats, position)
    }

    fn check_order(&self, key: &[u8]) -> Result<()> {
        self.order.as_ref().map_or(Ok(()), |order| order.check(key))
    }

    /// The keyspace of `key`, and the key there. `None` for the empty key if nobody has written it.
    fn place<'a>(&'a self, key: &'a [u8]) -> Option<(&'a Keyspace, &'a [u8])> {
        if key.is_empty() {
            return self.empty_key.get().map(|keyspace| (keyspace, EMPTY_KEY));
        }
        Some((&self.keyspace, key))
    }

    /// As [`place`](Self::place), for a write that needs the place.
    fn place_for_put<'a>(&'a self, key: &'a [u8]) -> Result<(&'a Keyspace, &'a [u8])> {
        if key.is_empty() && self.empty_key.get().is_none() {
            // Of two threads, both get the same keyspace.
            let keyspace = self.db.keyspace(EMPTY_KEY_KEYSPACE)?;
            self.empty_key.get_or_init(|| keyspace);
        }
        let missing = || {
            Error::new(
                ErrorKind::NotFound,
                "the keyspace of the empty key is missing",
            )
        };
        self.place(key).ok_or_else(missing)
    }
}

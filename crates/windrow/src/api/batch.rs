//! Write batches.

mod contents;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::RangeBounds;
use std::sync::Arc;
use std::time::Duration;

use contents::write_of;

use super::Keyspace;
use super::bounds::start_and_end;
use crate::base::limits::BATCH_BYTES_MAX;
use crate::base::{Error, ErrorKind, KeyspaceId, Kind, Result};
use crate::codec::reader::DecodeError;
use crate::engine::{Engine, KeyspaceCore, Write};
use crate::log::batch::{self, BatchReader};
use crate::log::portable_batch::{self, PortableBatch};
use crate::options::{self, Durability};

pub use contents::{BatchEntries, BatchEntry, BatchWrite};

/// Writes to any keyspaces of one database. [`Db::write`](super::Db::write) commits them as one.
///
/// A later write to a key replaces an earlier one, or adds an operand to it. A batch can be written more than once.
/// After [`clear`](Self::clear) it can be filled again without new memory.
#[derive(Clone, Default)]
pub struct Batch {
    /// The entries in the form of a log record.
    entries: Vec<u8>,
    count: u32,
    /// The bytes of key and value of the longest entry.
    longest: usize,
    keyspaces: Vec<Arc<KeyspaceCore>>,
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a write that sets the value of `key`. If the keyspace has a default time to live, it begins now.
    ///
    /// # Errors
    /// `InvalidArgument` if the key is empty, the key or value longer than its limit, or the encoded batch longer
    /// than 1 GiB. The batch is unchanged then.
    pub fn insert(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.insert_stored(keyspace, key.as_ref(), value.as_ref(), None)
    }

    /// Adds a write that sets the value of `key` for the time `ttl` from now on, as [`Keyspace::insert_with_ttl`] does.
    ///
    /// # Errors
    /// As [`insert`](Self::insert) and [`Keyspace::insert_with_ttl`].
    pub fn insert_with_ttl(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<()> {
        self.insert_stored(keyspace, key.as_ref(), value.as_ref(), Some(ttl))
    }

    fn insert_stored(
        &mut self,
        keyspace: &Keyspace,
        key: &[u8],
        value: &[u8],
        ttl: Option<Duration>,
    ) -> Result<()> {
        options::check_value(value)?;
        let stored = keyspace.stored(value, ttl)?;
        self.add(keyspace, stored.kind, key, &stored.bytes)
    }

    /// Adds a write that removes `key`.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn remove(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<()> {
        self.add(keyspace, Kind::Tombstone, key.as_ref(), &[])
    }

    /// Adds a write that removes all keys in `range`, as [`Keyspace::delete_range`] does: those that the keyspace has, and
    /// those that the batch has set before.
    ///
    /// # Errors
    /// As [`insert`](Self::insert); `InvalidArgument` if a bound is longer than a key can be.
    pub fn delete_range<K: AsRef<[u8]>>(
        &mut self,
        keyspace: &Keyspace,
        range: impl RangeBounds<K>,
    ) -> Result<()> {
        match start_and_end(&range)? {
            Some((start, end)) => self.add(keyspace, Kind::RangeTombstone, &start, &end),
            None => Ok(()),
        }
    }

    /// Adds a write of an operand, as [`Keyspace::merge`] does.
    ///
    /// # Errors
    /// As [`insert`](Self::insert) and [`Keyspace::merge`].
    pub fn merge(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        keyspace.check_operand(operand.as_ref())?;
        self.add(keyspace, Kind::Operand, key.as_ref(), operand.as_ref())
    }

    fn add(&mut self, keyspace: &Keyspace, kind: Kind, key: &[u8], value: &[u8]) -> Result<()> {
        options::check_key(key)?;
        if self.entries.len() + key.len() + value.len() + 32 > BATCH_BYTES_MAX {
            return Err(Error::invalid_argument(
                "a batch cannot be larger than 1 GiB",
            ));
        }
        let core = keyspace.core();
        if !self.keyspaces.iter().any(|known| Arc::ptr_eq(known, core)) {
            self.keyspaces.push(Arc::clone(core));
        }
        batch::put_entry(&mut self.entries, core.id(), kind, key, value);
        self.count += 1;
        self.longest = self.longest.max(key.len() + value.len());
        Ok(())
    }

    /// The number of writes.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether the batch has no write.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Removes all writes and keeps the memory.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.count = 0;
        self.longest = 0;
        self.keyspaces.clear();
    }

    /// The writes, in the order in which they were added.
    pub fn iter(&self) -> BatchEntries<'_> {
        let entries = BatchReader::entries(&self.entries, 1, self.count);
        BatchEntries::new(entries, self.names())
    }

    /// The batch as bytes with a version and a checksum, for another process or another database. They name keyspaces
    /// by their present names. [`Db::batch_from_bytes`](super::Db::batch_from_bytes) reads them back.
    ///
    /// # Errors
    /// `NotFound` if one of the keyspaces was dropped: its name may be that of another one now.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        loop {
            for keyspace in &self.keyspaces {
                keyspace.check_exists()?;
            }
            let names = self.names();
            // An exchange of two names between these looks shows one of them twice.
            let distinct: BTreeSet<&str> = names.iter().map(|(_, name)| &**name).collect();
            if distinct.len() == names.len() {
                return Ok(portable_batch::encode(&names, self.count, &self.entries));
            }
        }
    }

    /// The batch that [`to_bytes`](Self::to_bytes) has made bytes of. `open` gives the keyspace of a name.
    pub(super) fn decode(
        bytes: &[u8],
        mut open: impl FnMut(&str) -> Result<Keyspace>,
    ) -> Result<Self> {
        let mut buffer = Vec::new();
        let portable = PortableBatch::decode(bytes).map_err(damaged)?;
        let names = portable.keyspaces.iter();
        let keyspaces: BTreeMap<KeyspaceId, Keyspace> = names
            .map(|&(id, name)| Ok((id, open(name)?)))
            .collect::<Result<_>>()?;
        let mut batch = Self::new();
        let Some(mut entries) = portable.entries(&mut buffer).map_err(damaged)? else {
            return Ok(batch);
        };
        while let Some(entry) = entries.next().map_err(damaged)? {
            let Some(keyspace) = keyspaces.get(&entry.keyspace) else {
                return Err(unsound("an entry of a keyspace that it does not name"));
            };
            match write_of(&entry) {
                // Not as an insertion: the default time to live has been applied, or is that of another keyspace.
                Some(BatchWrite::Insert(_)) => {
                    batch.add(keyspace, Kind::Value, entry.key, entry.value)?;
                }
                Some(BatchWrite::InsertUntil(..)) => {
                    keyspace.core().check_expiring()?;
                    batch.add(keyspace, Kind::ExpiringValue, entry.key, entry.value)?;
                }
                Some(BatchWrite::Remove) => batch.remove(keyspace, entry.key)?,
                Some(BatchWrite::Merge(operand)) => batch.merge(keyspace, entry.key, operand)?,
                Some(BatchWrite::DeleteRange(end)) => {
                    let end = end.unwrap_or_default();
                    batch.add(keyspace, Kind::RangeTombstone, entry.key, end)?;
                }
                None => return Err(unsound("a pointer into a value log")),
            }
        }
        Ok(batch)
    }

    fn names(&self) -> Vec<(KeyspaceId, Arc<str>)> {
        let name =
            |keyspace: &Arc<KeyspaceCore>| (keyspace.id(), Arc::from(keyspace.name().as_str()));
        self.keyspaces.iter().map(name).collect()
    }

    pub(super) fn commit(&self, engine: &Engine, durability: Durability) -> Result<()> {
        if self.is_empty() {
            return engine.check_writable();
        }
        for keyspace in &self.keyspaces {
            if !engine.owns(keyspace) {
                keyspace.check_exists()?;
                return Err(Error::invalid_argument(
                    "the batch holds writes to a keyspace of another database",
                ));
            }
        }
        let write = Write::Batch {
            entries: &self.entries,
            count: self.count,
            longest: self.longest,
            keyspaces: &self.keyspaces,
        };
        engine.commit(&write, durability)
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("len", &self.count)
            .finish_non_exhaustive()
    }
}

impl<'a> IntoIterator for &'a Batch {
    type Item = BatchEntry<'a>;
    type IntoIter = BatchEntries<'a>;

    fn into_iter(self) -> BatchEntries<'a> {
        self.iter()
    }
}

fn damaged(error: DecodeError) -> Error {
    error.in_file("the batch", 0)
}

fn unsound(what: &str) -> Error {
    Error::new(ErrorKind::Corruption, format!("the batch has {what}"))
        .with_next_step("fetch its bytes again from where they were made")
}

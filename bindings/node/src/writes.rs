//! Packed writes, made by a batch or in a transaction.
//!
//! Concurrency: no state.

use std::sync::Arc;
use std::time::Duration;

use windrow::{Batch, Error, Keyspace, Result, Transaction};
use windrow_ffi::leveldb::{Bounds, Entries};

use crate::owner::Owner;
use crate::packed::{Reader, Write};

/// What takes writes.
pub(crate) trait Writes {
    fn put(
        &mut self,
        entries: &Entries,
        key: &[u8],
        value: &[u8],
        ttl: Option<Duration>,
    ) -> Result<()>;
    fn remove(&mut self, entries: &Entries, key: &[u8]) -> Result<()>;
    fn merge(&mut self, entries: &Entries, key: &[u8], operand: &[u8]) -> Result<()>;
    fn remove_range(&mut self, entries: &Entries, bounds: Bounds<'_>) -> Result<()>;
}

/// Makes packed writes to these keyspaces.
pub(crate) fn write_all(
    target: &mut impl Writes,
    packed: &[u8],
    keyspaces: &[Arc<Owner>],
) -> Result<()> {
    let missing = || Error::invalid_argument("a write is of an unknown keyspace");
    let keyspace = |number: usize| keyspaces.get(number).map(|it| it.entries());
    let mut entries = keyspace(0).ok_or_else(missing)?;
    let mut writes = Reader::new(packed);
    while let Some(write) = writes.write()? {
        match write {
            Write::Put(key, value) => target.put(entries, key, value, None)?,
            Write::PutFor(ttl, key, value) => target.put(entries, key, value, Some(ttl))?,
            Write::Remove(key) => target.remove(entries, key)?,
            Write::Merge(key, operand) => target.merge(entries, key, operand)?,
            Write::RemoveRange(bounds) => target.remove_range(entries, bounds)?,
            Write::In(number) => entries = keyspace(number).ok_or_else(missing)?,
        }
    }
    Ok(())
}

impl Writes for Batch {
    fn put(
        &mut self,
        entries: &Entries,
        key: &[u8],
        value: &[u8],
        ttl: Option<Duration>,
    ) -> Result<()> {
        match ttl {
            None => entries.batch_insert(self, key, value),
            Some(ttl) => entries.batch_insert_with_ttl(self, key, value, ttl),
        }
    }

    fn remove(&mut self, entries: &Entries, key: &[u8]) -> Result<()> {
        entries.batch_remove(self, key)
    }

    fn merge(&mut self, entries: &Entries, key: &[u8], operand: &[u8]) -> Result<()> {
        entries.batch_merge(self, key, operand)
    }

    fn remove_range(&mut self, entries: &Entries, bounds: Bounds<'_>) -> Result<()> {
        entries.batch_delete_range(self, bounds)
    }
}

impl Writes for &Transaction {
    fn put(
        &mut self,
        entries: &Entries,
        key: &[u8],
        value: &[u8],
        ttl: Option<Duration>,
    ) -> Result<()> {
        let keyspace = keyspace(entries, key)?;
        match ttl {
            None => self.insert(keyspace, key, value),
            Some(ttl) => self.insert_with_ttl(keyspace, key, value, ttl),
        }
    }

    fn remove(&mut self, entries: &Entries, key: &[u8]) -> Result<()> {
        Transaction::remove(self, keyspace(entries, key)?, key)
    }

    fn merge(&mut self, entries: &Entries, key: &[u8], operand: &[u8]) -> Result<()> {
        Transaction::merge(self, keyspace(entries, key)?, key, operand)
    }

    fn remove_range(&mut self, entries: &Entries, bounds: Bounds<'_>) -> Result<()> {
        self.delete_range::<&[u8]>(entries.keyspace(), bounds)
    }
}

/// The keyspace of `key` for a transaction.
///
/// # Errors
/// `InvalidArgument` for the empty key, which is not where the others are.
pub(crate) fn keyspace<'a>(entries: &'a Entries, key: &[u8]) -> Result<&'a Keyspace> {
    if key.is_empty() {
        return Err(Error::invalid_argument(
            "a transaction does not have the empty key",
        ));
    }
    Ok(entries.keyspace())
}

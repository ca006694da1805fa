//! Bulk loads of a keyspace.

use super::Keyspace;
use crate::base::{Error, Expiry, Result};

/// An entry of a [bulk load](Keyspace::bulk_load): `(key, value)`, or `(key, value, expiry)`.
pub trait LoadEntry {
    /// The key.
    fn key(&self) -> &[u8];

    /// The value.
    fn value(&self) -> &[u8];

    /// When the entry expires; `None` if it lives as long as other writes of the same [`Keyspace`] do.
    fn expiry(&self) -> Option<Expiry> {
        None
    }
}

impl<K: AsRef<[u8]>, V: AsRef<[u8]>> LoadEntry for (K, V) {
    fn key(&self) -> &[u8] {
        self.0.as_ref()
    }

    fn value(&self) -> &[u8] {
        self.1.as_ref()
    }
}

impl<K: AsRef<[u8]>, V: AsRef<[u8]>> LoadEntry for (K, V, Expiry) {
    fn key(&self) -> &[u8] {
        self.0.as_ref()
    }

    fn value(&self) -> &[u8] {
        self.1.as_ref()
    }

    fn expiry(&self) -> Option<Expiry> {
        Some(self.2)
    }
}

impl Keyspace {
    /// Adds many entries at once, in strictly ascending order of their keys: all of them in one step, or none. Returns
    /// their number.
    ///
    /// The entries are written once, directly to tables, and the tables go to the deepest level with space for them. So
    /// a bulk load is the fastest way to fill a keyspace. Memory is bounded. Keys that exist get the new values. Other
    /// threads may read and write meanwhile: the entries become visible together at the end, as one commit. Values of
    /// the same keys that were written before, also during the load, are replaced. A time to live, that of
    /// [`with_ttl`](Self::with_ttl) or the [default one](crate::KeyspaceOptions::default_ttl), begins for all entries when
    /// the load begins, except for those that have an expiry of their own ([`LoadEntry`]).
    ///
    /// The iterator runs on this thread. It must not close the database or wait for its background work.
    ///
    /// # Errors
    /// `InvalidArgument` if a key is not above the one before it, a key or value breaks its limit, or entries of the
    /// keyspace cannot expire; `NoSpace`;
    /// `NotFound` after the keyspace is dropped; `Conflict` if a prepared transaction holds keys of the same range; `Io`;
    /// `Closed`; `ReadOnly`: nothing was added. After `Poisoned`, or the
    /// error that poisons the database, only a reopen shows whether the load counts.
    ///
    /// # Durability
    /// The entries are durable when this returns, and so is every write acknowledged before.
    ///
    /// ```
    /// # fn main() -> windrow::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(folder.path(), windrow::Options::default())?;
    /// let squares = db.keyspace("squares")?;
    /// let numbers = 0..1_000_000_u64;
    /// squares.bulk_load(numbers.map(|n| (n.to_be_bytes(), (n * n).to_be_bytes())))?;
    /// assert_eq!(squares.get(7_u64.to_be_bytes())?.as_deref(), Some(&49_u64.to_be_bytes()[..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn bulk_load<T: LoadEntry>(&self, entries: impl IntoIterator<Item = T>) -> Result<u64> {
        self.try_bulk_load(entries.into_iter().map(Ok::<_, Error>))
    }

    /// As [`bulk_load`](Self::bulk_load), for entries from a source that may fail. Its first error ends the load, and
    /// nothing is added.
    ///
    /// # Errors
    /// That of the source; those of [`bulk_load`](Self::bulk_load).
    ///
    /// # Durability
    /// That of [`bulk_load`](Self::bulk_load).
    pub fn try_bulk_load<T, E>(
        &self,
        entries: impl IntoIterator<Item = std::result::Result<T, E>>,
    ) -> std::result::Result<u64, E>
    where
        T: LoadEntry,
        E: From<Error>,
    {
        let engine = self.handle().engine();
        engine.bulk_load(self.core(), self.lifetime(), |writer| {
            for entry in entries {
                let entry = entry?;
                writer.add(entry.key(), entry.value(), entry.expiry())?;
            }
            Ok(())
        })
    }

    /// As [`try_bulk_load`](Self::try_bulk_load), for entries in any order; of equal keys the last one counts. They are
    /// sorted on disk, in the folder of the database, with about `memory_bytes` of memory; most entries are written
    /// twice. Once the source has ended, `merged` is called now and then with the number of entries that are done.
    ///
    /// # Errors
    /// As [`try_bulk_load`](Self::try_bulk_load), except that no key comes too late.
    ///
    /// # Durability
    /// That of [`bulk_load`](Self::bulk_load).
    pub fn try_bulk_load_unsorted<T, E>(
        &self,
        entries: impl IntoIterator<Item = std::result::Result<T, E>>,
        memory_bytes: usize,
        mut merged: impl FnMut(u64),
    ) -> std::result::Result<u64, E>
    where
        T: LoadEntry,
        E: From<Error>,
    {
        let engine = self.handle().engine();
        let (core, lifetime) = (self.core(), self.lifetime());
        engine.bulk_load_unsorted(core, lifetime, memory_bytes, &mut merged, |sorter| {
            for entry in entries {
                let entry = entry?;
                sorter.add(entry.key(), entry.value(), entry.expiry())?;
            }
            Ok(())
        })
    }
}

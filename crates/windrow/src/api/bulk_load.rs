//! Bulk loads of a keyspace.

use super::Keyspace;
use crate::base::{Error, Result};

impl Keyspace {
    /// Adds many entries at once, in strictly ascending order of their keys: all of them in one step, or none. Returns
    /// their number.
    ///
    /// The entries are written once, directly to tables, and the tables go to the deepest level with space for them. So
    /// a bulk load is the fastest way to fill a keyspace. Memory is bounded. Keys that exist get the new values. Other
    /// threads may read and write meanwhile: the entries become visible together at the end, as one commit. Values of
    /// the same keys that were written before, also during the load, are replaced. In a keyspace with a
    /// [default time to live](crate::KeyspaceOptions::default_ttl), it begins for all entries when the load begins.
    ///
    /// The iterator runs on this thread. It must not close the database or wait for its background work.
    ///
    /// # Errors
    /// `InvalidArgument` if a key is not above the one before it, or a key or value breaks its limit; `NoSpace`;
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
    pub fn bulk_load<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64> {
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
    pub fn try_bulk_load<K, V, E>(
        &self,
        entries: impl IntoIterator<Item = std::result::Result<(K, V), E>>,
    ) -> std::result::Result<u64, E>
    where
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
        E: From<Error>,
    {
        let engine = self.handle().engine();
        engine.bulk_load(self.core(), |writer| {
            for entry in entries {
                let (key, value) = entry?;
                writer.add(key.as_ref(), value.as_ref())?;
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
    pub fn try_bulk_load_unsorted<K, V, E>(
        &self,
        entries: impl IntoIterator<Item = std::result::Result<(K, V), E>>,
        memory_bytes: usize,
        mut merged: impl FnMut(u64),
    ) -> std::result::Result<u64, E>
    where
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
        E: From<Error>,
    {
        let engine = self.handle().engine();
        engine.bulk_load_unsorted(self.core(), memory_bytes, &mut merged, |sorter| {
            for entry in entries {
                let (key, value) = entry?;
                sorter.add(key.as_ref(), value.as_ref())?;
            }
            Ok(())
        })
    }
}

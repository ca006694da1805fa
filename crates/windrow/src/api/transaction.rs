//! Transactions: reads and writes that commit as one, or not at all.
//!
//! Concurrency: one thread at a time uses a transaction; it may be sent to another one.

mod cursor;

use std::fmt;
use std::ops::RangeBounds;
use std::sync::Arc;
use std::time::Duration;

pub use cursor::{TransactionCursor, TransactionRange};

use super::bounds::{key_range, start_and_end};
use super::{Keyspace, PreparedTransaction, Snapshot};
use crate::base::{Error, Expiry, Result};
use crate::engine::{Handle, Intent, KeyspaceCore, SavepointId, TransactionCore};
use crate::options::{self, Durability, Isolation};
use crate::read::visible::KeyRange;

/// Reads and writes over any keyspaces of a database that take effect at one place in the commit order, or not at all.
///
/// A transaction reads the state at its beginning, with its own writes over it. Its writes are visible to nobody else
/// before [`commit`](Self::commit). The commit fails with [`Conflict`](crate::ErrorKind::Conflict), and writes nothing,
/// if another write has changed in the meantime what the transaction depends on: see [`Isolation`]. This includes writes
/// without a transaction. Then a new transaction must read again: [`Db::transact`](super::Db::transact) does that.
///
/// # Optimistic and locking transactions
/// An optimistic transaction ([`Db::transaction`](super::Db::transaction)) takes no locks and makes nobody wait.
///
/// A locking one ([`Db::locking_transaction`](super::Db::locking_transaction)) locks a key when it writes it, at
/// [`get_for_update`](Self::get_for_update) and, beside others, at [`get_for_share`](Self::get_for_share). It keeps its
/// locks to its end; other locking transactions wait, in their order. A read under a lock gives the newest value, not that
/// of the snapshot. So a commit does not fail for what other locking transactions have done, as long as all reads that
/// matter are under locks, with one exception: nobody waits to write a key of a range that the transaction has deleted,
/// and the commit fails then. All other reads, and ranges, are of the snapshot, and the commit covers them as in an
/// optimistic transaction. Writes without locks do not wait, and the commit fails if one has changed a locked key.
/// A locking transaction is always [`Serializable`](Isolation::Serializable).
///
/// A lock that is not free in time is [`TimedOut`](crate::ErrorKind::TimedOut), and one that can never be free is a
/// [`Deadlock`](crate::ErrorKind::Deadlock). The transaction should be rolled back then, so that the others go on.
///
/// # Resources
/// A drop without a commit discards the writes and releases the locks. A transaction holds a snapshot,
/// so compactions keep old versions while it lives. A transaction with
/// more than [`TRANSACTION_READS_BYTES_MAX`](crate::limits::TRANSACTION_READS_BYTES_MAX) bytes of keys that it has read
/// can only read on.
///
/// ```
/// # fn main() -> windrow::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let db = windrow::Db::open(folder.path(), windrow::Options::default())?;
/// use windrow::ErrorKind;
///
/// let stock = db.keyspace("stock")?;
/// stock.insert("apples", "3")?;
///
/// let transaction = db.transaction();
/// assert_eq!(transaction.get(&stock, "apples")?.as_deref(), Some(&b"3"[..]));
/// transaction.insert(&stock, "apples", "2")?;
/// stock.insert("apples", "0")?; // another buyer was faster
/// let conflict = transaction.commit().unwrap_err();
/// assert_eq!(conflict.kind(), ErrorKind::Conflict);
/// assert_eq!(conflict.conflict(), Some(("stock", &b"apples"[..])));
/// # Ok(())
/// # }
/// ```
pub struct Transaction {
    core: TransactionCore,
    /// Dropped after the commit: it keeps what the commit compares with.
    snapshot: Snapshot,
    handle: Arc<Handle>,
}

/// A state of the writes and locks of one transaction, to which that transaction can be rolled back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Savepoint(SavepointId);

impl Transaction {
    pub(super) fn new(handle: &Arc<Handle>, isolation: Isolation) -> Self {
        let snapshot = Snapshot::new(Arc::clone(handle));
        Self {
            core: TransactionCore::new(handle.engine(), snapshot.at(), isolation),
            snapshot,
            handle: Arc::clone(handle),
        }
    }

    pub(super) fn locking(handle: &Arc<Handle>, timeout: Duration) -> Self {
        let snapshot = Snapshot::new(Arc::clone(handle));
        Self {
            core: TransactionCore::locking(handle.engine(), snapshot.at(), timeout),
            snapshot,
            handle: Arc::clone(handle),
        }
    }

    /// The state at the beginning of the transaction. Reads of it are not covered by the commit.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The value of `key`, or `None` if the key does not exist. It is that of the snapshot, or that of an own write or a
    /// lock that the transaction has.
    ///
    /// # Errors
    /// As [`View::get`](super::View::get), except that a dropped keyspace stays readable; `InvalidArgument` for a keyspace
    /// of another database, in this and in all other methods.
    pub fn get(&self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.read(keyspace, key.as_ref(), Intent::Plain)
    }

    /// The value of `key`. The commit fails if the key has changed, under each isolation. A locking transaction locks the
    /// key first and reads its newest value.
    ///
    /// # Errors
    /// As [`get`](Self::get). With locks: [`Deadlock`](crate::ErrorKind::Deadlock);
    /// [`TimedOut`](crate::ErrorKind::TimedOut); [`Conflict`](crate::ErrorKind::Conflict) if a write without a lock has
    /// changed the key since it was locked; `NotFound` for a dropped keyspace.
    pub fn get_for_update(
        &self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<Vec<u8>>> {
        self.read(keyspace, key.as_ref(), Intent::Update)
    }

    /// The same as [`get_for_update`](Self::get_for_update), except that locking transactions share the lock of the key
    /// until one of them writes it. Two that share a lock and both want to write are a deadlock.
    ///
    /// # Errors
    /// As [`get_for_update`](Self::get_for_update).
    pub fn get_for_share(
        &self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<Vec<u8>>> {
        self.read(keyspace, key.as_ref(), Intent::Share)
    }

    /// When the entry of `key` expires, or `None` if the key does not exist. It is a read as [`get`](Self::get) is.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn expires_at(&self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<Option<Expiry>> {
        options::check_key(key.as_ref())?;
        let core = self.own(keyspace)?;
        self.core.expiry(self.handle.engine(), core, key.as_ref())
    }

    fn read(&self, keyspace: &Keyspace, key: &[u8], intent: Intent) -> Result<Option<Vec<u8>>> {
        options::check_key(key)?;
        let core = self.own(keyspace)?;
        self.core.get(self.handle.engine(), core, key, intent)
    }

    /// The values of `keys`, in the order of `keys`.
    ///
    /// # Errors
    /// As [`get`](Self::get), for the first key in order that has one.
    pub fn multi_get<K: AsRef<[u8]>>(
        &self,
        keyspace: &Keyspace,
        keys: &[K],
    ) -> Result<Vec<Option<Vec<u8>>>> {
        for key in keys {
            options::check_key(key.as_ref())?;
        }
        let core = self.own(keyspace)?;
        self.core.multi_get(self.handle.engine(), core, keys)
    }

    /// A cursor over all entries. It has no position before its first move.
    ///
    /// # Errors
    /// `InvalidArgument` for a keyspace of another database; `Closed`.
    pub fn cursor(&self, keyspace: &Keyspace) -> Result<TransactionCursor<'_>> {
        self.cursor_over(keyspace, KeyRange::ALL)
    }

    /// A cursor over the entries whose keys are in `range`.
    ///
    /// # Errors
    /// As [`cursor`](Self::cursor).
    pub fn range_cursor<K: AsRef<[u8]>>(
        &self,
        keyspace: &Keyspace,
        range: impl RangeBounds<K>,
    ) -> Result<TransactionCursor<'_>> {
        self.cursor_over(keyspace, key_range(&range))
    }

    /// A cursor over the entries whose keys begin with `prefix`.
    ///
    /// # Errors
    /// As [`cursor`](Self::cursor).
    pub fn prefix_cursor(
        &self,
        keyspace: &Keyspace,
        prefix: impl AsRef<[u8]>,
    ) -> Result<TransactionCursor<'_>> {
        self.cursor_over(keyspace, KeyRange::prefix(prefix.as_ref()))
    }

    /// All entries in order. A write that the transaction makes meanwhile shows if it is ahead of the iterator.
    ///
    /// # Errors
    /// As [`cursor`](Self::cursor).
    #[expect(
        clippy::iter_not_returning_iterator,
        reason = "it iterates once the error is dealt with, and the name is what people look for"
    )]
    pub fn iter(&self, keyspace: &Keyspace) -> Result<TransactionRange<'_>> {
        self.range_over(keyspace, KeyRange::ALL)
    }

    /// The entries whose keys are in `range`, in order. A write that the transaction makes meanwhile shows if it is ahead
    /// of the iterator.
    ///
    /// # Errors
    /// As [`cursor`](Self::cursor).
    pub fn range<K: AsRef<[u8]>>(
        &self,
        keyspace: &Keyspace,
        range: impl RangeBounds<K>,
    ) -> Result<TransactionRange<'_>> {
        self.range_over(keyspace, key_range(&range))
    }

    /// The entries whose keys begin with `prefix`, in order. A write that the transaction makes meanwhile shows if it is
    /// ahead of the iterator.
    ///
    /// # Errors
    /// As [`cursor`](Self::cursor).
    pub fn prefix(
        &self,
        keyspace: &Keyspace,
        prefix: impl AsRef<[u8]>,
    ) -> Result<TransactionRange<'_>> {
        self.range_over(keyspace, KeyRange::prefix(prefix.as_ref()))
    }

    /// Sets the value of `key` in this transaction.
    ///
    /// # Errors
    /// `InvalidArgument` if the key is empty, the key or value longer than its limit, the keyspace of another database,
    /// or if the transaction has written more than 1 GiB, with what its savepoints keep, or read too much. With locks:
    /// [`Deadlock`](crate::ErrorKind::Deadlock); [`TimedOut`](crate::ErrorKind::TimedOut). Nothing is written then.
    pub fn insert(
        &self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.put(keyspace, key.as_ref(), Some((value.as_ref(), None)))
    }

    /// Sets the value of `key` in this transaction for the time `ttl` from now on, as [`Keyspace::insert_with_ttl`] does.
    /// The transaction itself sees the value until its end.
    ///
    /// # Errors
    /// As [`insert`](Self::insert) and [`Keyspace::insert_with_ttl`].
    pub fn insert_with_ttl(
        &self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<()> {
        self.put(keyspace, key.as_ref(), Some((value.as_ref(), Some(ttl))))
    }

    /// Removes `key` in this transaction.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn remove(&self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<()> {
        self.put(keyspace, key.as_ref(), None)
    }

    /// Writes an operand in this transaction, as [`Keyspace::merge`] does, without a read. Reads of the transaction fold
    /// its operands over what they find. The commit does not fail because others have written the key, under any
    /// isolation, unless it covers a read of the key, too. So transactions that only count do not conflict with one
    /// another. Under [`Isolation::Snapshot`] no plain read is covered: read with
    /// [`get_for_update`](Self::get_for_update) what an operand depends on. A locking transaction locks the key alone,
    /// so that what others have read under a lock stays true.
    ///
    /// ```
    /// # fn main() -> windrow::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// use std::sync::Arc;
    /// use windrow::operators::AddU64;
    /// use windrow::{Db, Isolation, Options};
    ///
    /// let options = Options::default().with_merge_operator("counts", Arc::new(AddU64::Wrapping));
    /// let db = Db::open(folder.path(), options)?;
    /// let counts = db.keyspace("counts")?;
    /// let one = db.transaction_with(Isolation::Snapshot);
    /// let other = db.transaction_with(Isolation::Snapshot);
    /// one.merge(&counts, "visits", 1_u64.to_le_bytes())?;
    /// other.merge(&counts, "visits", 2_u64.to_le_bytes())?;
    /// one.commit()?;
    /// other.commit()?;
    /// assert_eq!(counts.get("visits")?.as_deref(), Some(&3_u64.to_le_bytes()[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`insert`](Self::insert) and [`Keyspace::merge`].
    pub fn merge(
        &self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        let (key, operand) = (key.as_ref(), operand.as_ref());
        options::check_key(key)?;
        let core = self.own(keyspace)?;
        keyspace.check_operand(operand)?;
        self.core.merge(self.handle.engine(), core, key, operand)
    }

    /// Removes all keys in `range` in this transaction, as [`Keyspace::delete_range`] does: those of the snapshot and those
    /// that the transaction has set before. Under [`Isolation::Snapshot`] the commit fails if any key of the range was
    /// written since the transaction began.
    ///
    /// There are no locks of ranges. A locking transaction takes the lock of each key of the range that somebody else has
    /// locked, and waits for it. Its commit fails if any key of the range was written after that. So it never deletes what
    /// it has not waited for. Who locks a key of the range later is not kept from that, and finds it changed.
    ///
    /// # Errors
    /// As [`insert`](Self::insert); `InvalidArgument` if a bound is longer than a key can be.
    pub fn delete_range<K: AsRef<[u8]>>(
        &self,
        keyspace: &Keyspace,
        range: impl RangeBounds<K>,
    ) -> Result<()> {
        let core = self.own(keyspace)?;
        match start_and_end(&range)? {
            Some((start, end)) => {
                let engine = self.handle.engine();
                self.core.delete_range(engine, core, &start, &end)
            }
            None => Ok(()),
        }
    }

    /// Sets a value for a time to live, or the default one; `None` removes the key.
    fn put(
        &self,
        keyspace: &Keyspace,
        key: &[u8],
        value: Option<(&[u8], Option<Duration>)>,
    ) -> Result<()> {
        options::check_key(key)?;
        let core = self.own(keyspace)?;
        let stored = match value {
            Some((value, ttl)) => {
                options::check_value(value)?;
                Some(keyspace.stored(value, ttl)?)
            }
            None => None,
        };
        self.core.put(self.handle.engine(), core, key, stored)
    }

    /// Marks the present state of the transaction's writes and locks. From then on the transaction keeps what later writes replace.
    pub fn savepoint(&self) -> Savepoint {
        Savepoint(self.core.savepoint(self.handle.engine()))
    }

    /// Undoes every write after `savepoint`, and releases every lock that was taken after it. It can be used again, but
    /// later savepoints are gone. The commit still covers all reads, also those under locks that are released.
    ///
    /// # Errors
    /// `InvalidArgument` if the savepoint is of another transaction, or this one was rolled back to an earlier one.
    pub fn roll_back_to(&self, savepoint: Savepoint) -> Result<()> {
        self.core.roll_back_to(savepoint.0)
    }

    /// Makes the writes visible as one, if nothing has changed that the transaction depends on. An optimistic transaction
    /// without writes always commits: it has read one state.
    ///
    /// # Errors
    /// [`Conflict`](crate::ErrorKind::Conflict): nothing was written, and [`Error::conflict`] names the key. All others as
    /// [`Db::write`](super::Db::write); `Corruption` and `Io` if a table cannot be read that may show a conflict.
    ///
    /// # Durability
    /// That of [`Options::durability`](crate::Options::durability).
    pub fn commit(self) -> Result<()> {
        let durability = self.handle.engine().options().durability;
        self.commit_with(durability)
    }

    /// Commits with the given durability.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn commit_with(self, durability: Durability) -> Result<()> {
        self.core.commit(self.handle.engine(), durability)
    }

    /// Makes the transaction durable under `name`, which no other prepared one has, without its commit: the first phase of
    /// a two-phase commit. It fails as a commit would. After that the commit cannot fail by a conflict, also after a crash:
    /// what the transaction writes and has read is held for it. Who locks such a key waits. A range that it has read or
    /// deleted makes nobody wait: a commit with a write to it fails with `Conflict`. See [`PreparedTransaction`].
    ///
    /// An optimistic transaction takes locks here, and waits for them at most for
    /// [`Options::lock_timeout`](crate::Options::lock_timeout).
    ///
    /// ```
    /// # fn main() -> windrow::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(folder.path(), windrow::Options::default())?;
    /// let stock = db.keyspace("stock")?;
    /// let transaction = db.transaction();
    /// transaction.insert(&stock, "apples", "2")?;
    /// let prepared = transaction.prepare("order 17")?;
    /// assert_eq!(db.prepared_transactions(), ["order 17"]);
    /// // If all others are prepared, too:
    /// prepared.commit()?;
    /// assert_eq!(stock.get("apples")?.as_deref(), Some(&b"2"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`commit`](Self::commit), and the transaction is rolled back; `AlreadyExists` for a name in use;
    /// `InvalidArgument` for an empty name or one longer than 255 bytes, and under snapshot isolation if the written keys
    /// take more than [`TRANSACTION_READS_BYTES_MAX`](crate::limits::TRANSACTION_READS_BYTES_MAX). With locks:
    /// [`Deadlock`](crate::ErrorKind::Deadlock); [`TimedOut`](crate::ErrorKind::TimedOut).
    ///
    /// # Durability
    /// The prepared transaction survives a power failure when this returns. It may also survive if this fails because the
    /// database was poisoned, or if the process ends before it returns.
    pub fn prepare(self, name: &str) -> Result<PreparedTransaction> {
        self.core.prepare(self.handle.engine(), name)?;
        Ok(PreparedTransaction::new(self.handle, name.to_owned()))
    }

    /// Discards the writes and releases the locks, as a drop does.
    pub fn roll_back(self) {}

    fn own<'a>(&self, keyspace: &'a Keyspace) -> Result<&'a Arc<KeyspaceCore>> {
        if !keyspace.is_of(&self.handle) {
            return Err(Error::invalid_argument(
                "the keyspace belongs to another database than the transaction",
            ));
        }
        Ok(keyspace.core())
    }

    fn cursor_over(&self, keyspace: &Keyspace, range: KeyRange) -> Result<TransactionCursor<'_>> {
        let engine = self.handle.engine();
        let entries = self.core.cursor(engine, self.own(keyspace)?, range)?;
        Ok(TransactionCursor::new(engine, entries))
    }

    fn range_over(&self, keyspace: &Keyspace, range: KeyRange) -> Result<TransactionRange<'_>> {
        let engine = self.handle.engine();
        engine.check_open()?;
        let keyspace = Arc::clone(self.own(keyspace)?);
        Ok(TransactionRange::new(engine, &self.core, keyspace, range))
    }
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction")
            .field("snapshot", &self.snapshot)
            .finish_non_exhaustive()
    }
}

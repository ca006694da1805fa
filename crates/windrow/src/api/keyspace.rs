//! A named, ordered map inside a database.

use std::fmt;
use std::ops::{Deref, RangeBounds};
use std::sync::Arc;
use std::time::Duration;

use super::bounds::{key_range, start_and_end};
use super::{Snapshot, View};
use crate::base::{Error, Expiry, Kind, Result};
use crate::engine::{
    Change, Handle, KeyspaceCore, Lifetime, RangeEstimate, Stored, ValueFileReport, Write,
};
use crate::options::{self, Durability, KeyspaceOptions};

/// A named, ordered map from keys to values.
///
/// Keys have 1 byte to 64 KiB, values up to 1 GiB. The order of keys is bytewise. A keyspace dereferences
/// to a [`View`] of its newest state, which has all methods that read. A clone is cheap. Any number
/// of threads may read and write at once.
///
/// A read and a later write are two steps, and another thread may write between them. To compute a new value from the
/// old one, use [`update`](Self::update); for more keys, [`Db::transact`](super::Db::transact).
///
/// ```
/// # fn main() -> windrow::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let db = windrow::Db::open(folder.path(), windrow::Options::default())?;
/// let counters = db.keyspace("counters")?;
/// let visits = counters.update("visits", |old| {
///     let old = old.map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
///     Some((old + 1).to_le_bytes().to_vec())
/// })?;
/// assert_eq!(visits, Some(1_u64.to_le_bytes().to_vec()));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Keyspace {
    latest: View,
    /// How long values live that are written through this handle.
    lifetime: Lifetime,
}

impl Keyspace {
    pub(super) fn new(handle: Arc<Handle>, core: Arc<KeyspaceCore>) -> Self {
        Self {
            latest: View::new(handle, core, None),
            lifetime: Lifetime::Default,
        }
    }

    pub(super) fn core(&self) -> &Arc<KeyspaceCore> {
        self.latest.core()
    }

    /// Whether it is a keyspace of the database that `handle` has open.
    pub(super) fn is_of(&self, handle: &Arc<Handle>) -> bool {
        Arc::ptr_eq(self.latest.handle(), handle)
    }

    /// The present name.
    pub fn name(&self) -> String {
        self.core().name().to_string()
    }

    /// Gives the keyspace another name. All its handles go on. Its options, merge operator and compaction filter stay; later
    /// opens give operator and filter by the new name.
    ///
    /// # Errors
    /// `AlreadyExists` if another keyspace has the name: [`Db::swap_keyspaces`](super::Db::swap_keyspaces) exchanges two
    /// names; `InvalidArgument` for an empty name or one longer than 255 bytes; `NotFound` after the keyspace is dropped;
    /// `NoSpace` (nothing has changed); `Poisoned`; `Closed`; `ReadOnly`.
    ///
    /// # Durability
    /// The new name is durable when this returns, and so is every write acknowledged before.
    pub fn rename(&self, name: &str) -> Result<()> {
        let engine = self.latest.handle().engine();
        engine.rename_keyspace(self.core(), name)
    }

    /// The options of the keyspace.
    pub fn options(&self) -> KeyspaceOptions {
        KeyspaceOptions::clone(&self.core().options())
    }

    /// The same keyspace for writes whose values live for the time `ttl` from each write on, as with
    /// [`insert_with_ttl`](Self::insert_with_ttl). It counts for every write through this handle that sets a value: of one
    /// key, in batches and transactions, and in bulk loads, where the time begins with the load.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// # fn main() -> windrow::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(folder.path(), windrow::Options::default())?;
    /// let leases = db.keyspace("leases")?.with_ttl(Duration::from_secs(30));
    /// assert!(leases.insert_if_absent("job 7", "worker 1")?);
    /// assert!(!leases.insert_if_absent("job 7", "worker 2")?);
    /// // The holder renews its lease.
    /// assert!(leases.compare_and_swap("job 7", Some(b"worker 1"), Some(b"worker 1"))?);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_ttl(&self, ttl: Duration) -> Self {
        self.with_lifetime(Lifetime::For(ttl))
    }

    /// The same keyspace for writes whose values expire as `expiry` says. So [`expires_at`](View::expires_at) of one entry
    /// can be given to another one. With [`Expiry::Never`] they stay, whatever the default time to live of the keyspace is.
    /// An expiry that has come is no error: no read sees the value.
    #[must_use]
    pub fn with_expiry(&self, expiry: Expiry) -> Self {
        self.with_lifetime(Lifetime::Until(expiry))
    }

    fn with_lifetime(&self, lifetime: Lifetime) -> Self {
        Self {
            latest: self.latest.clone(),
            lifetime,
        }
    }

    pub(super) fn lifetime(&self) -> Lifetime {
        self.lifetime
    }

    /// Sets the value of `key`. It expires if the handle says so ([`with_ttl`](Self::with_ttl)), or if the keyspace has a
    /// [default time to live](KeyspaceOptions::default_ttl). A [`get`](View::get) before it is a separate step, and another
    /// thread may write between both: use [`update`](Self::update) or [`Db::transact`](super::Db::transact).
    ///
    /// # Errors
    /// `InvalidArgument` if the key is empty, or the key or value longer than its limit; `NoSpace` if the disk is
    /// full; `NotFound` after the keyspace is dropped; `Closed`; `ReadOnly`; the error of a failed background job that
    /// the write waited for. Nothing was written then. After `Poisoned`, or the error that poisons the database, only
    /// a reopen shows whether the write survives.
    ///
    /// # Durability
    /// That of [`Options::durability`](crate::Options::durability).
    pub fn insert(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.insert_with(key, value, self.default_durability())
    }

    /// Sets the value of `key` with the given durability.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn insert_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        durability: Durability,
    ) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        options::check_key(key)?;
        options::check_value(value)?;
        if self.lifetime != Lifetime::Default || self.core().has_default_ttl() {
            let stored = self.stored(value, None)?;
            return self.write_one(stored.kind, key, &stored.bytes, durability);
        }
        self.write_one(Kind::Value, key, value, durability)
    }

    /// Sets the value of `key` for the time `ttl`: from then on no read sees it, and compactions drop it. Parts of a
    /// millisecond count as a whole one. A value that lives for no time is a removal. The time is that of the system's
    /// clock ([`Expiry`](crate::Expiry)); if it goes back, what has expired stays so.
    ///
    /// A snapshot, a transaction and a cursor keep the moment of their beginning: what expires later stays in them.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// # fn main() -> windrow::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(folder.path(), windrow::Options::default())?;
    /// let sessions = db.keyspace("sessions")?;
    /// sessions.insert_with_ttl("token", "user 7", Duration::from_millis(10))?;
    /// std::thread::sleep(Duration::from_millis(20));
    /// assert_eq!(sessions.get("token")?, None);
    /// assert!(sessions.insert_if_absent("token", "user 8")?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`insert`](Self::insert). `InvalidArgument` if the value would expire after the year 10889, or if the keyspace
    /// has a merge operator: an operand has no time at which its result would expire.
    ///
    /// # Durability
    /// That of [`Options::durability`](crate::Options::durability).
    pub fn insert_with_ttl(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        options::check_key(key)?;
        options::check_value(value)?;
        let stored = self.stored(value, Some(ttl))?;
        self.write_one(stored.kind, key, &stored.bytes, self.default_durability())
    }

    /// What a write of `value` stores: for the time `ttl`, or as long as the handle says.
    pub(super) fn stored<'v>(&self, value: &'v [u8], ttl: Option<Duration>) -> Result<Stored<'v>> {
        let lifetime = ttl.map_or(self.lifetime, Lifetime::For);
        let engine = self.latest.handle().engine();
        engine.stored(self.core(), value, lifetime)
    }

    /// Removes `key`. The removal of a missing key is no error.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    ///
    /// # Durability
    /// That of [`Options::durability`](crate::Options::durability).
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.remove_with(key, self.default_durability())
    }

    /// Removes `key` with the given durability.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn remove_with(&self, key: impl AsRef<[u8]>, durability: Durability) -> Result<()> {
        options::check_key(key.as_ref())?;
        self.write_one(Kind::Tombstone, key.as_ref(), &[], durability)
    }

    /// Removes all keys in `range`. It is one small write, whatever the range holds, and other writes are not held up. The
    /// space of the removed entries is free after compactions.
    ///
    /// ```
    /// # fn main() -> windrow::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(folder.path(), windrow::Options::default())?;
    /// let events = db.keyspace("events")?;
    /// for day in ["2026-01-01", "2026-01-02", "2026-02-01"] {
    ///     events.insert(day, "...")?;
    /// }
    /// events.delete_range("2026-01".."2026-02")?;
    /// assert!(!events.contains_key("2026-01-02")?);
    /// assert!(events.contains_key("2026-02-01")?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`insert`](Self::insert). `InvalidArgument` if a bound is longer than a key can be. A range without keys is no
    /// error.
    ///
    /// # Durability
    /// That of [`Options::durability`](crate::Options::durability).
    pub fn delete_range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<()> {
        self.delete_range_with(range, self.default_durability())
    }

    /// Removes all keys in `range` with the given durability.
    ///
    /// # Errors
    /// As [`delete_range`](Self::delete_range).
    pub fn delete_range_with<K: AsRef<[u8]>>(
        &self,
        range: impl RangeBounds<K>,
        durability: Durability,
    ) -> Result<()> {
        match start_and_end(&range)? {
            Some((start, end)) => self.write_one(Kind::RangeTombstone, &start, &end, durability),
            None => self.latest.handle().engine().check_writable(),
        }
    }

    /// Removes all keys, as [`delete_range`](Self::delete_range) does.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    ///
    /// # Durability
    /// That of [`Options::durability`](crate::Options::durability).
    pub fn clear(&self) -> Result<()> {
        self.delete_range::<&[u8]>(..)
    }

    /// Sets the value of `key` to what `change` makes of its present one, in one step: no other write comes in between.
    /// `None` stands for no value, before and after. Returns the new value.
    ///
    /// The new value is written as by [`insert`](Self::insert): the expiry of the old one does not go on.
    ///
    /// `change` may be called more than once, since it holds up nobody. It costs less than a transaction. A value that
    /// expires between its read and the commit counts as present.
    ///
    /// # Errors
    /// As [`get`](View::get) and [`insert`](Self::insert); `Conflict` if other writes to the key came in between 200
    /// times in a row. Nothing was written then.
    ///
    /// # Durability
    /// That of [`Options::durability`](crate::Options::durability).
    pub fn update(
        &self,
        key: impl AsRef<[u8]>,
        mut change: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<Option<Vec<u8>>> {
        let (_, changed) = self.change(key.as_ref(), |old| match change(old) {
            Some(new) => Change::Put(new),
            None if old.is_some() => Change::Remove,
            None => Change::Keep,
        })?;
        Ok(match changed {
            Change::Put(new) => Some(new),
            Change::Remove | Change::Keep => None,
        })
    }

    /// Sets the value of `key` to `new` if it is `expected`; `None` stands for no value. Returns whether it was. A value
    /// that is equal to the old one is written, too, so it gets a new expiry. As for [`update`](Self::update), a value counts as
    /// present that expires between its read and the commit.
    ///
    /// # Errors
    /// As [`update`](Self::update).
    ///
    /// # Durability
    /// That of [`Options::durability`](crate::Options::durability).
    pub fn compare_and_swap(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool> {
        let (old, _) = self.change(key.as_ref(), |old| match new {
            _ if old != expected => Change::Keep,
            Some(new) => Change::Put(new),
            None if old.is_some() => Change::Remove,
            None => Change::Keep,
        })?;
        Ok(old.as_deref() == expected)
    }

    /// Sets the value of `key` if it has none. Returns whether it had none.
    ///
    /// # Errors
    /// As [`update`](Self::update).
    ///
    /// # Durability
    /// That of [`Options::durability`](crate::Options::durability).
    pub fn insert_if_absent(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        let (old, _) = self.change(key.as_ref(), |old| match old {
            None => Change::Put(value.as_ref()),
            Some(_) => Change::Keep,
        })?;
        Ok(old.is_none())
    }

    /// Removes `key` and returns its value: of several threads, one gets it. As for [`update`](Self::update), a value counts
    /// as present that expires between its read and the commit.
    ///
    /// # Errors
    /// As [`update`](Self::update).
    ///
    /// # Durability
    /// That of [`Options::durability`](crate::Options::durability).
    pub fn fetch_remove(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let (old, _) = self.change(key.as_ref(), |old| match old {
            Some(_) => Change::<&[u8]>::Remove,
            None => Change::Keep,
        })?;
        Ok(old)
    }

    fn change<V: AsRef<[u8]>>(
        &self,
        key: &[u8],
        decide: impl FnMut(Option<&[u8]>) -> Change<V>,
    ) -> Result<(Option<Vec<u8>>, Change<V>)> {
        options::check_key(key)?;
        let engine = self.latest.handle().engine();
        let durability = self.default_durability();
        engine.change(self.core(), key, durability, self.lifetime, decide)
    }

    /// Writes an operand, which the keyspace's merge operator folds into the value of `key`. It reads nothing, so it
    /// costs as much as an [`insert`](Self::insert), and increments of several threads all count. See
    /// [`MergeOperator`](crate::MergeOperator).
    ///
    /// # Errors
    /// As [`insert`](Self::insert). `InvalidArgument` if the operand has more than 1 MiB, or if the open of the
    /// database gave the keyspace no merge operator. An operand that the operator cannot fold is no error here: reads
    /// of the key return it.
    ///
    /// # Durability
    /// That of [`Options::durability`](crate::Options::durability).
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.merge_with(key, operand, self.default_durability())
    }

    /// Writes an operand with the given durability.
    ///
    /// # Errors
    /// As [`merge`](Self::merge).
    pub fn merge_with(
        &self,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
        durability: Durability,
    ) -> Result<()> {
        let (key, operand) = (key.as_ref(), operand.as_ref());
        options::check_key(key)?;
        self.check_operand(operand)?;
        self.write_one(Kind::Operand, key, operand, durability)
    }

    /// Checks that an operand has a sound length and can be folded.
    pub(super) fn check_operand(&self, operand: &[u8]) -> Result<()> {
        options::check_operand(operand)?;
        if self.core().can_fold() {
            return Ok(());
        }
        let message = format!(
            "this open of the database gave keyspace \"{}\" no merge operator",
            self.name()
        );
        Err(Error::invalid_argument(message))
    }

    /// The state of the keyspace at `snapshot`.
    ///
    /// # Errors
    /// `InvalidArgument` for a snapshot of another database.
    pub fn at(&self, snapshot: &Snapshot) -> Result<View> {
        let handle = self.latest.handle();
        if !snapshot.is_of(handle) {
            return Err(Error::invalid_argument(
                "the snapshot was taken of another database",
            ));
        }
        let (handle, core) = (Arc::clone(handle), Arc::clone(self.core()));
        Ok(View::new(handle, core, Some(snapshot.clone())))
    }

    /// Flushes all memtables, then compacts all entries in `range` down to the deepest level that holds data. Entries
    /// that no reader can see are dropped, and operands are folded. The calling thread does the work; free background
    /// threads help with large compactions. A [compaction filter](crate::CompactionFilter) is asked about everything, but
    /// may not get all changes: [`Stats::judged_dropped`](crate::Stats::judged_dropped) counts the others.
    ///
    /// # Errors
    /// That of the flush or compaction: no entry is lost. `NotFound` after the keyspace is dropped; `Poisoned`;
    /// `Closed`; `ReadOnly`.
    pub fn compact_range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<()> {
        let range = key_range(&range);
        self.latest
            .handle()
            .engine()
            .compact_range(self.core(), &range)
    }

    /// About how many keys are in `range` now. It reads metadata and at most two blocks of an index per level, so it
    /// costs microseconds where [`count`](View::count) reads every key. Each sorted run adds an error of up to a block of
    /// entries at either end of the range. What compactions have not dropped yet counts: older versions, operands, and
    /// entries that have expired or that range deletes hide.
    ///
    /// # Errors
    /// `InvalidArgument` for a bound longer than a key; `Corruption` and `Io` of a table that cannot be opened; `NotFound`
    /// after the keyspace is dropped; `Closed`.
    pub fn approximate_len<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<u64> {
        let estimate = self.estimate(&range)?;
        Ok(estimate.map_or(0, RangeEstimate::keys))
    }

    /// About how many bytes of files hold the entries of `range` now, with their values and what compactions have not
    /// dropped yet. Entries of memtables count nothing.
    ///
    /// # Errors
    /// As [`approximate_len`](Self::approximate_len).
    pub fn approximate_size<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<u64> {
        let estimate = self.estimate(&range)?;
        Ok(estimate.map_or(0, RangeEstimate::bytes))
    }

    /// `None` for a range without keys.
    fn estimate<K: AsRef<[u8]>>(
        &self,
        range: &impl RangeBounds<K>,
    ) -> Result<Option<RangeEstimate>> {
        let engine = self.latest.handle().engine();
        let ends = start_and_end(range)?;
        ends.map(|(start, end)| engine.estimate_range(self.core(), (&start, &end)))
            .transpose()
    }

    /// The value files of the keyspace, ascending by number: the live bytes of each, and what refers to it. Reads from
    /// every table which value logs it refers to.
    ///
    /// # Errors
    /// `NotFound` after the keyspace is dropped; `Corruption` and `Io` where a table cannot be read.
    pub fn value_files(&self) -> Result<Vec<ValueFileReport>> {
        self.latest.handle().engine().value_files(self.core())
    }

    fn default_durability(&self) -> Durability {
        self.latest.handle().engine().options().durability
    }

    fn write_one(
        &self,
        kind: Kind,
        key: &[u8],
        value: &[u8],
        durability: Durability,
    ) -> Result<()> {
        let write = Write::One {
            keyspace: self.core(),
            kind,
            key,
            value,
        };
        self.latest.handle().engine().commit(&write, durability)
    }
}

impl Deref for Keyspace {
    type Target = View;

    fn deref(&self) -> &View {
        &self.latest
    }
}

impl fmt::Debug for Keyspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyspace")
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}

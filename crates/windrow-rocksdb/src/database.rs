//! An open database: column families, reads, writes, administration.
//!
//! The functions for databases, for those with transactions that lock, and for those with optimistic ones share it. In one
//! with locks a write without a transaction is a transaction of its own, as in RocksDB.
//!
//! Concurrency: any thread may make any call.

#![expect(
    clippy::disallowed_types,
    reason = "no model replaces the locks of this crate"
)]

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use windrow::{Batch, Db, Error, ErrorKind, Keyspace, PinnedValue, Result, Snapshot, Transaction};
use windrow_ffi::leveldb;

use crate::batch::{Write, WriteBatch};
use crate::families::{Family, Place};
use crate::family_ids::{Ids, KnownIds, names};
use crate::iterator::{EntryIterator, Source};
use crate::options::{FamilyOptions, LockTimeouts, OpenOptions, ReadOptions, WriteOptions};
use crate::origin::{Origin, Secondary, open_for_reading};
use crate::statistics::Statistics;
use crate::{log, status};

/// What all handles of an open database share.
pub(crate) struct Shared {
    origin: Origin,
    pub(crate) default: Arc<Family>,
    families: RwLock<BTreeMap<u32, Arc<Family>>>,
    ids: Mutex<Ids>,
    /// The names of open transactions.
    pub(crate) transaction_names: Mutex<BTreeSet<String>>,
    pub(crate) cache_bytes: u64,
    statistics: Option<Arc<Statistics>>,
    /// The end of a wait that took longer than its caller had time.
    waiting: Mutex<Option<mpsc::Receiver<Result<()>>>>,
}

impl Shared {
    /// The database in its newest state.
    pub(crate) fn db(&self) -> Cow<'_, Db> {
        self.origin.db()
    }

    /// Makes the writes of `batch`, and counts them if the program wants that.
    pub(crate) fn counted(
        &self,
        batch: &WriteBatch,
        write: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        match &self.statistics {
            Some(statistics) => statistics.of_write(batch, write),
            None => write(),
        }
    }

    pub(crate) fn is_secondary(&self) -> bool {
        matches!(self.origin, Origin::Secondary(_))
    }

    /// The ids of the families. Nobody creates or drops one meanwhile.
    pub(crate) fn known_ids(&self) -> KnownIds {
        self.lock_ids().known()
    }

    fn lock_waiting(&self) -> MutexGuard<'_, Option<mpsc::Receiver<Result<()>>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_ids(&self) -> MutexGuard<'_, Ids> {
        let ids = self.ids.lock();
        ids.unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open database.
#[derive(Clone)]
pub(crate) struct Database {
    pub(crate) shared: Arc<Shared>,
    /// Those of a database whose transactions lock.
    pub(crate) locks: Option<LockTimeouts>,
}

/// What an open may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    ReadWrite,
    /// It reads one state.
    ReadOnly,
    /// It reads one state after the other of what another process writes.
    Secondary,
}

impl Database {
    /// Opens a database with the column families that the program knows, which are returned in their order.
    pub(crate) fn open(
        path: &Path,
        options: &OpenOptions,
        families: &[FamilyOptions<'_>],
        access: Access,
    ) -> Result<(Self, Vec<Arc<Family>>)> {
        options.check()?;
        check_families(families)?;
        let windrow = options.to_windrow(families);
        let cache_bytes = windrow.cache_bytes;
        let origin = match access {
            Access::ReadWrite => Db::open(path, windrow).map(Origin::Own),
            Access::ReadOnly => open_for_reading(path, windrow).map(Origin::Own),
            Access::Secondary => Secondary::open(path, windrow).map(Origin::Secondary),
        };
        let origin = origin.map_err(|error| status::of_folder(path, error))?;
        let db = origin.db();
        let existing = names(&db);
        check_existing(&existing, options, families, access)?;
        let mut ids = Ids::open(&db, access != Access::ReadWrite)?;
        let mut opened = Vec::new();
        for family in families {
            let is_new = !existing.iter().any(|name| name == family.name);
            let id = if is_new {
                ids.add(&db, family.name)?
            } else {
                ids.of(&db, family.name)?
            };
            let place = open_family(&origin, id, family, access)?;
            opened.push(Arc::new(Family::new(
                id,
                family.name,
                place,
                family.options,
            )));
        }
        drop(db);
        if access == Access::ReadWrite {
            write_log(path, options, families);
        }
        let by_id: BTreeMap<_, _> = opened
            .iter()
            .map(|family| (family.id, Arc::clone(family)))
            .collect();
        let default = by_id
            .first_key_value()
            .map(|(_, family)| Arc::clone(family));
        let default = default.ok_or_else(no_default)?;
        let shared = Shared {
            origin,
            default,
            families: RwLock::new(by_id),
            ids: Mutex::new(ids),
            transaction_names: Mutex::default(),
            cache_bytes,
            statistics: options.statistics.clone(),
            waiting: Mutex::default(),
        };
        let shared = Arc::new(shared);
        let options = families.iter().map(|family| family.options);
        for cache in options.filter_map(|options| options.cache.as_ref()) {
            let user = Arc::downgrade(&shared);
            cache.add_user(Box::new(move || {
                user.upgrade().map(|user| user.db().memory().block_cache)
            }));
        }
        let database = Self {
            shared,
            locks: None,
        };
        Ok((database, opened))
    }

    /// The names of the column families of a database.
    pub(crate) fn family_names(path: &Path, options: &OpenOptions) -> Result<Vec<String>> {
        let db = open_for_reading(path, options.to_windrow(&[]))
            .map_err(|error| status::of_folder(path, error))?;
        Ok(names(&db))
    }

    /// Opens a database, which recovers it, and checks all of it. Windrow removes no damage.
    pub(crate) fn repair(path: &Path, options: &OpenOptions) -> Result<()> {
        leveldb::repair(path, options.to_windrow(&[]))
    }

    pub(crate) fn close(self) -> Result<()> {
        self.shared.db().into_owned().close()
    }

    /// Reads what the process that writes the database has written since. Snapshots of the state before belong to that:
    /// reads with them fail from then on.
    ///
    /// # Errors
    /// `Unsupported` if the database is no secondary; those of [`windrow::Secondary::catch_up`].
    pub(crate) fn catch_up(&self) -> Result<()> {
        self.shared.origin.catch_up()
    }

    pub(crate) fn get(
        family: &Family,
        key: &[u8],
        options: &ReadOptions,
    ) -> Result<Option<PinnedValue>> {
        options.check()?;
        family.check_order(key)?;
        // The empty key cannot be written.
        if key.is_empty() {
            return Ok(None);
        }
        match &options.snapshot {
            None => family.keyspace()?.get_pinned(key),
            Some(snapshot) => family.keyspace()?.at(snapshot)?.get_pinned(key),
        }
    }

    /// Makes one write.
    pub(crate) fn write_one(
        &self,
        family: &Family,
        write: Write<'_>,
        options: WriteOptions,
    ) -> Result<()> {
        if self.shared.statistics.is_none() {
            return self.make_one(family, write, options);
        }
        let mut batch = WriteBatch::default();
        batch.add(family.id, write);
        self.shared
            .counted(&batch, || self.make_one(family, write, options))
    }

    fn make_one(&self, family: &Family, write: Write<'_>, options: WriteOptions) -> Result<()> {
        check_write(family, write)?;
        if let Some(locks) = &self.locks {
            let transaction = self.shared.db().locking_transaction_with(locks.write);
            write_in(&transaction, family, write)?;
            return transaction.commit_with(options.durability);
        }
        let (keyspace, durability) = (family.keyspace()?, options.durability);
        match write {
            Write::Put(key, value) => keyspace.insert_with(key, value, durability),
            Write::Merge(key, operand) => keyspace.merge_with(key, operand, durability),
            Write::Delete(key) | Write::SingleDelete(key) if key.is_empty() => Ok(()),
            Write::Delete(key) | Write::SingleDelete(key) => keyspace.remove_with(key, durability),
            Write::DeleteRange(start, end) => keyspace.delete_range_with(start..end, durability),
        }
    }

    /// Makes the writes of a batch as one.
    pub(crate) fn write(&self, writes: &WriteBatch, options: WriteOptions) -> Result<()> {
        self.shared
            .counted(writes, || self.make_all(writes, options))
    }

    fn make_all(&self, writes: &WriteBatch, options: WriteOptions) -> Result<()> {
        writes.check()?;
        let transaction = self
            .locks
            .map(|locks| self.shared.db().locking_transaction_with(locks.write));
        let mut batch = Batch::new();
        for write in writes.writes() {
            let (id, write) = write?;
            let Some(family) = self.family(id) else {
                if options.ignores_missing_families {
                    continue;
                }
                let message =
                    format!("the batch has a write for column family {id}, which is missing");
                return Err(Error::invalid_argument(message));
            };
            check_write(&family, write)?;
            match &transaction {
                Some(transaction) => write_in(transaction, &family, write)?,
                None => add_to(&mut batch, &*family.keyspace()?, write)?,
            }
        }
        match transaction {
            Some(transaction) => transaction.commit_with(options.durability),
            None => self.shared.db().write_with(&batch, options.durability),
        }
    }

    /// An iterator over the present state, or that of the options.
    pub(crate) fn iterator(family: &Arc<Family>, options: &ReadOptions) -> EntryIterator {
        EntryIterator::new(Source::new(family, options, None))
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.shared.db().snapshot()
    }

    /// Calls `read` with `options` and a snapshot, their own or that of the newest state, so that all that it reads is of one
    /// state. A secondary stays at its state meanwhile.
    pub(crate) fn at_one_state<R>(
        &self,
        options: &ReadOptions,
        read: impl FnOnce(&ReadOptions) -> R,
    ) -> R {
        if options.snapshot.is_some() {
            return read(options);
        }
        self.shared.origin.stay(|| {
            let options = ReadOptions {
                snapshot: Some(self.snapshot()),
                ..options.clone()
            };
            read(&options)
        })
    }

    /// About how many bytes of files the keys from `start` to before `limit` have.
    pub(crate) fn approximate_size(family: &Family, start: &[u8], limit: &[u8]) -> Result<u64> {
        family.keyspace()?.approximate_size(start..limit)
    }

    /// Compacts the keys from `start` to `limit`; `None` for no bound.
    pub(crate) fn compact_range(
        family: &Family,
        start: Option<&[u8]>,
        limit: Option<&[u8]>,
    ) -> Result<()> {
        let bound = |key: Option<_>| key.map_or(Bound::Unbounded, Bound::Included);
        let range = (bound(start), bound(limit));
        let _manual = family.manual_compaction();
        family.keyspace()?.compact_range::<&[u8]>(range)
    }

    /// The column family of an id, if the program has opened it.
    pub(crate) fn family(&self, id: u32) -> Option<Arc<Family>> {
        if id == self.shared.default.id {
            return Some(Arc::clone(&self.shared.default));
        }
        let families = self.shared.families.read();
        let families = families.unwrap_or_else(PoisonError::into_inner);
        families.get(&id).cloned()
    }

    /// Creates a column family.
    pub(crate) fn create_family(&self, family: &FamilyOptions<'_>) -> Result<Arc<Family>> {
        family.options.check()?;
        if family.options.filter().is_some() {
            return Err(status::unsupported(
                "the compaction filter of a column family begins with an open of the database",
            ));
        }
        let db = self.shared.db();
        let mut ids = self.shared.lock_ids();
        ids.check_writable()?;
        if names(&db).iter().any(|name| name == family.name) {
            let message = format!("column family \"{}\" exists already", family.name);
            return Err(Error::invalid_argument(message));
        }
        let id = ids.add(&db, family.name)?;
        let keyspace = db.keyspace_with(family.name, family.options.keyspace(family.ttl))?;
        let place = Place::Own(keyspace);
        let created = Arc::new(Family::new(id, family.name, place, family.options));
        let mut families = self.lock_families();
        families.insert(id, Arc::clone(&created));
        Ok(created)
    }

    /// Drops a column family with its entries.
    pub(crate) fn drop_family(&self, family: &Family) -> Result<()> {
        if family.id == self.shared.default.id {
            return Err(Error::invalid_argument(
                "the column family \"default\" cannot be dropped",
            ));
        }
        let mut ids = self.shared.lock_ids();
        if self.family(family.id).is_none() {
            let message = format!("column family \"{}\" was dropped already", family.name);
            return Err(Error::invalid_argument(message));
        }
        self.shared.db().drop_keyspace(&family.name)?;
        self.lock_families().remove(&family.id);
        ids.remove(&family.name)
    }

    fn lock_families(&self) -> std::sync::RwLockWriteGuard<'_, BTreeMap<u32, Arc<Family>>> {
        let families = self.shared.families.write();
        families.unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no background work is due, after a flush if the program wants one; not longer than the timeout, if it is
    /// not 0.
    ///
    /// A wait does such work itself, so it goes on in a thread of its own when the time is over, or until the close. The
    /// next call with a timeout lets it end first: there is one such thread for each caller at most.
    ///
    /// # Errors
    /// `TimedOut`; those of [`Db::flush`] and [`Db::wait_idle`].
    #[expect(
        clippy::disallowed_methods,
        reason = "no test depends on how long a wait takes"
    )]
    pub(crate) fn wait_idle(&self, flushes: bool, timeout: Duration) -> Result<()> {
        let db = self.shared.db().into_owned();
        let wait = move || {
            if flushes {
                db.flush()?;
            }
            db.wait_idle()
        };
        if timeout.is_zero() {
            return wait();
        }
        let start = Instant::now();
        let earlier = self.shared.lock_waiting().take();
        if let Some(earlier) = earlier {
            // What it did may have been before the last writes, so its result says nothing.
            drop(self.end_of_wait(earlier, timeout)?);
        }
        let (sender, ended) = mpsc::channel();
        let waiting = thread::Builder::new().spawn(move || drop(sender.send(wait())));
        waiting.map_err(|error| Error::new(ErrorKind::Io, error.to_string()))?;
        let left = timeout.saturating_sub(start.elapsed());
        self.end_of_wait(ended, left)?
    }

    /// What a wait in another thread has returned, if it ends in time.
    fn end_of_wait(
        &self,
        ended: mpsc::Receiver<Result<()>>,
        timeout: Duration,
    ) -> Result<Result<()>> {
        ended.recv_timeout(timeout).or_else(|error| match error {
            mpsc::RecvTimeoutError::Timeout => {
                *self.shared.lock_waiting() = Some(ended);
                let message = "background work was still due when the time was over";
                Err(Error::new(ErrorKind::TimedOut, message))
            }
            mpsc::RecvTimeoutError::Disconnected => {
                Ok(Err(Error::new(ErrorKind::Io, "the wait has panicked")))
            }
        })
    }

    /// Makes a copy in a folder that does not exist, as RocksDB demands. The log with the newest entries may be part of it
    /// if it is not longer than `log_bytes`.
    pub(crate) fn checkpoint(db: &Db, path: &Path, log_bytes: u64) -> Result<()> {
        if path.exists() {
            let message = format!("{} exists already", path.display());
            return Err(Error::invalid_argument(message));
        }
        if log_bytes == 0 {
            db.flush()?;
        }
        db.checkpoint(path)
    }
}

/// Says which options of an open have no effect, to its logger or in `folder`.
pub(crate) fn write_log(folder: &Path, options: &OpenOptions, families: &[FamilyOptions<'_>]) {
    let mut ignored = options.ignored.clone();
    ignored.extend(families.iter().flat_map(|family| &family.options.ignored));
    log::write(folder, options.logger.as_deref(), &ignored);
}

/// # Errors
/// `Unsupported`; `InvalidArgument` for two families of one name, and without `default`.
fn check_families(families: &[FamilyOptions<'_>]) -> Result<()> {
    let mut seen = BTreeSet::new();
    for family in families {
        family.options.check()?;
        if !seen.insert(family.name) {
            let message = format!("column family \"{}\" is named twice", family.name);
            return Err(Error::invalid_argument(message));
        }
    }
    if seen.contains(leveldb::KEYSPACE) {
        return Ok(());
    }
    Err(no_default())
}

fn no_default() -> Error {
    Error::invalid_argument("the column family \"default\" is not among those to open")
}

/// As in RocksDB, a program names all families of a database that it writes to.
fn check_existing(
    existing: &[String],
    options: &OpenOptions,
    families: &[FamilyOptions<'_>],
    access: Access,
) -> Result<()> {
    let is_named = |name: &&String| families.iter().any(|family| family.name == *name);
    if access == Access::ReadWrite && !existing.iter().all(|name| is_named(&name)) {
        let rest: Vec<_> = existing.iter().filter(|name| !is_named(name)).collect();
        let message = format!("these column families of the database are not opened: {rest:?}");
        return Err(Error::invalid_argument(message));
    }
    let creates = options.create_missing_families && access == Access::ReadWrite;
    let missing = families
        .iter()
        .find(|family| !existing.iter().any(|name| name == family.name));
    match missing {
        Some(family) if !creates => {
            let message = format!("there is no column family \"{}\"", family.name);
            Err(Error::invalid_argument(message))
        }
        _ => Ok(()),
    }
}

fn open_family(
    origin: &Origin,
    id: u32,
    family: &FamilyOptions<'_>,
    access: Access,
) -> Result<Place> {
    let (name, options) = (family.name, || family.options.keyspace(family.ttl));
    match origin {
        Origin::Own(db) if access == Access::ReadWrite => {
            db.keyspace_with(name, options()).map(Place::Own)
        }
        Origin::Own(db) => db.keyspace(name).map(Place::Own),
        Origin::Secondary(secondary) => {
            secondary.add(id, name)?;
            Ok(Place::Secondary(Arc::clone(secondary)))
        }
    }
}

/// The time to live of RocksDB's seconds; none from 0 down.
pub(crate) fn time_to_live(seconds: i32) -> Option<Duration> {
    let seconds = u64::try_from(seconds).ok().filter(|seconds| *seconds > 0);
    seconds.map(Duration::from_secs)
}

/// # Errors
/// `InvalidArgument` for a range whose end is in front of its start; `Unsupported` for an order that is not Windrow's.
pub(crate) fn check_write(family: &Family, write: Write<'_>) -> Result<()> {
    match write {
        Write::Put(key, _)
        | Write::Merge(key, _)
        | Write::Delete(key)
        | Write::SingleDelete(key) => family.check_order(key),
        Write::DeleteRange(start, end) => {
            family.check_order(start)?;
            family.check_order(end)?;
            if start > end {
                let message = "the end of the range is in front of its start";
                return Err(Error::invalid_argument(message));
            }
            Ok(())
        }
    }
}

fn add_to(batch: &mut Batch, keyspace: &Keyspace, write: Write<'_>) -> Result<()> {
    match write {
        Write::Put(key, value) => batch.insert(keyspace, key, value),
        Write::Merge(key, operand) => batch.merge(keyspace, key, operand),
        Write::Delete(key) | Write::SingleDelete(key) if key.is_empty() => Ok(()),
        Write::Delete(key) | Write::SingleDelete(key) => batch.remove(keyspace, key),
        Write::DeleteRange(start, end) => batch.delete_range(keyspace, start..end),
    }
}

/// Makes a write in a transaction.
pub(crate) fn write_in(transaction: &Transaction, family: &Family, write: Write<'_>) -> Result<()> {
    let keyspace = &*family.keyspace()?;
    match write {
        Write::Put(key, value) => transaction.insert(keyspace, key, value),
        Write::Merge(key, operand) => transaction.merge(keyspace, key, operand),
        Write::Delete(key) | Write::SingleDelete(key) if key.is_empty() => Ok(()),
        Write::Delete(key) | Write::SingleDelete(key) => transaction.remove(keyspace, key),
        Write::DeleteRange(start, end) => transaction.delete_range(keyspace, start..end),
    }
}

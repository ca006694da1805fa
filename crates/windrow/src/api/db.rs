//! An open database.
//!
//! [`Db`], keyspaces, snapshots and cursors each own a reference to the open database and keep it open. Every call
//! goes to `engine`, which checks options. This layer checks keys and values.
//!
//! Concurrency: a [`Db`] and its clones may be used from any thread at any time.

use std::fmt;
use std::ops::RangeBounds;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::{
    Batch, Keyspace, MergedCursor, PendingPersist, PreparedTransaction, Snapshot, Transaction,
};
use crate::base::{Error, ErrorKind, Result};
use crate::engine::{
    self, Access, Handle, MemoryUse, RepairReport, Stats, TRIES_MAX, VerifyReport,
};
use crate::options::{Durability, FileCheck, Isolation, KeyspaceOptions, Options};

/// An open database: a folder that holds named keyspaces under one commit order.
///
/// A clone is cheap. All clones, keyspaces, snapshots and cursors share one open database. The database
/// closes when the last of them is dropped or at a call of [`close`](Self::close).
///
/// ```
/// # fn main() -> windrow::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path();
/// use windrow::{Batch, Db, Options};
///
/// let db = Db::open(path, Options::default())?;
/// let users = db.keyspace("users")?;
/// users.insert("ada", "mathematician")?;
/// users.insert("grace", "admiral")?;
/// assert_eq!(users.get("ada")?.as_deref(), Some(&b"mathematician"[..]));
///
/// let snapshot = db.snapshot();
/// let mut batch = Batch::new();
/// batch.remove(&users, "ada")?;
/// batch.insert(&users, "alan", "logician")?;
/// db.write(&batch)?; // all of it or nothing
///
/// let names: Vec<_> = users.iter()?.map(|entry| entry.unwrap().0).collect();
/// assert_eq!(names, [b"alan".to_vec(), b"grace".to_vec()]);
/// assert!(users.at(&snapshot)?.contains_key("ada")?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Db {
    pub(super) handle: Arc<Handle>,
}

impl Db {
    /// Opens the database in the folder `path`, or creates it if
    /// [`Options::create_if_missing`] allows that.
    ///
    /// The database holds a prefix of the commit order. After the end of a process the prefix has every acknowledged
    /// write, and after a power failure at least every write that was durable. One that was written without a
    /// [log](Options::log) holds what it had at the last [`persist`](Self::persist), and nothing later.
    ///
    /// # Errors
    /// - `InvalidArgument`: bad options, a new database among other files, or no log for consumers of changes or prepared
    ///   transactions.
    /// - `Locked`: this or another process has the database open. The message names the process.
    /// - `NotFound`, `AlreadyExists`: the options refuse a missing or an existing database.
    /// - `Unsupported`: a newer version has written the data, or the data needs a feature that is off.
    /// - `Corruption`: damage. The message names the file, and the offset if one is known.
    /// - `NoSpace`: the disk is full, and the reserve does not suffice.
    /// - `Io`: the system reported an error. Another try may succeed.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let handle = Arc::new(Handle::open(path.as_ref(), options, Access::ReadWrite)?);
        Ok(Self { handle })
    }

    /// Opens the database in the folder `path` for reading only. No call changes the disk. The entries of the logs are
    /// read into memory, so this works in a read-only folder and on a full disk. Calls that write return `ReadOnly`.
    /// Keyspaces keep their recorded options.
    ///
    /// A database has any number of readers, or one writer: readers share the lock, and a writer holds it
    /// exclusively. A folder without a file `LOCK` cannot be locked. The caller must then ensure that no process
    /// opens the database for writing at the same time.
    ///
    /// The newest entries may not be durable. After the end of a process or a failed sync, a power
    /// failure can lose them until the database is opened for writing.
    ///
    /// # Errors
    /// As [`open`](Self::open); always `NotFound` if the folder has no database.
    pub fn open_read_only(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let handle = Arc::new(Handle::open(path.as_ref(), options, Access::ReadOnly)?);
        Ok(Self { handle })
    }

    /// Removes the database in the folder `path` with all its entries, also a damaged one. A missing database is no error.
    /// Of `options` only the file system counts. The folder stays, with its file `LOCK` and with files of others.
    ///
    /// After a crash or an error the folder has the whole database, or one that no open accepts, or none. Another call
    /// removes the rest.
    ///
    /// ```
    /// # fn main() -> windrow::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path();
    /// use windrow::{Db, ErrorKind, Options};
    ///
    /// Db::open(path, Options::default())?.close()?;
    /// Db::destroy(path, &Options::default())?;
    /// let error = Db::open_read_only(path, Options::default()).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::NotFound);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Locked`: this or another process has the database open. `Io`.
    ///
    /// # Durability
    /// The removal is durable when this returns.
    pub fn destroy(path: impl AsRef<Path>, options: &Options) -> Result<()> {
        engine::destroy(&*options.vfs, path.as_ref())
    }

    /// Writes all that is provably sound of the damaged database in the folder `from` to a new database in the folder `to`,
    /// which is empty or missing, and reports what is lost. `from` does not change. It may lack its manifest or `CURRENT`.
    /// Merge operators, the file system and the memory budget are those of `options`; keyspaces keep their recorded
    /// options.
    ///
    /// Of each key the newest sound version is kept. Where a newer one is lost, an older one may be there again: the report
    /// names the keys between which that can be. Without a whole manifest, files that no longer counted may add to
    /// that; `docs/repair.md` says how.
    ///
    /// ```
    /// # fn main() -> windrow::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let (damaged, new) = (folder.path().join("damaged"), folder.path().join("new"));
    /// use windrow::{Db, Options};
    ///
    /// let db = Db::open(&damaged, Options::default())?;
    /// db.keyspace("planets")?.insert("earth", "one moon")?;
    /// db.close()?;
    /// std::fs::remove_file(damaged.join("CURRENT")).unwrap();
    /// assert!(Db::open(&damaged, Options::default()).is_err());
    ///
    /// let report = Db::repair(&damaged, &new, &Options::default())?;
    /// assert_eq!(report.losses.len(), 1); // CURRENT itself
    /// let db = Db::open(&new, Options::default())?;
    /// assert_eq!(db.keyspace("planets")?.get("earth")?.as_deref(), Some(&b"one moon"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `AlreadyExists` if `to` is not empty, `InvalidArgument` if it is within `from`, `NotFound` if `from` has no file of a
    /// database, `Locked` if a process has one of them open; `Corruption` if `from` is what an unfinished repair has left, or
    /// has a sequence number that no database reaches; `Unsupported` for a newer format; `NoSpace`; `Io`, also if the device
    /// cannot read a part of a file. After an error or a crash no open accepts `to`: remove it and try again. Only if the
    /// last sync of the folder `to` fails or is cut off may it be there, and whole.
    ///
    /// # Durability
    /// The new database is durable when this returns.
    pub fn repair(
        from: impl AsRef<Path>,
        to: impl AsRef<Path>,
        options: &Options,
    ) -> Result<RepairReport> {
        engine::repair(from.as_ref(), to.as_ref(), options)
    }

    /// Opens the keyspace `name` with its recorded options. A missing keyspace is created with
    /// [`Options::keyspace`].
    ///
    /// # Errors
    /// `InvalidArgument` for an empty name, one longer than 255 bytes, or `windrow.prepared`, which holds prepared
    /// transactions; `NotFound` if a database that is open for
    /// reading has no such keyspace; `NoSpace` (nothing has changed); `Poisoned`; `Closed`.
    ///
    /// # Durability
    /// A new keyspace is durable when this returns, and so is every write acknowledged before.
    pub fn keyspace(&self, name: &str) -> Result<Keyspace> {
        let core = self.handle.engine().open_keyspace(name, None)?;
        Ok(Keyspace::new(Arc::clone(&self.handle), core))
    }

    /// Opens the keyspace `name` with its recorded options if it exists.
    ///
    /// # Errors
    /// `InvalidArgument` for an empty name or one longer than 255 bytes; `Closed`.
    pub fn existing_keyspace(&self, name: &str) -> Result<Option<Keyspace>> {
        let core = self.handle.engine().existing_keyspace(name)?;
        Ok(core.map(|core| Keyspace::new(Arc::clone(&self.handle), core)))
    }

    /// Opens the keyspace `name` and sets its options. A missing keyspace is created. The options hold for all handles
    /// of the keyspace and for later opens, until others are set. Existing files do not change. A database that is open
    /// for reading ignores the options.
    ///
    /// # Errors
    /// As [`keyspace`](Self::keyspace), and `InvalidArgument` for bad options.
    ///
    /// # Durability
    /// A new keyspace, and a change of options, is durable when this returns.
    pub fn keyspace_with(&self, name: &str, options: KeyspaceOptions) -> Result<Keyspace> {
        let core = self.handle.engine().open_keyspace(name, Some(options))?;
        Ok(Keyspace::new(Arc::clone(&self.handle), core))
    }

    /// Drops the keyspace `name` with all its entries. Calls to its handles return `NotFound` afterwards,
    /// and so do batches with writes to it. Views at a snapshot and open cursors still read it. Its memory and files
    /// are freed when its last handle, view and cursor is dropped. A new keyspace of the same name is empty.
    ///
    /// # Errors
    /// `NotFound` if the keyspace does not exist; `NoSpace` (nothing has changed); `Poisoned`; `Closed`; `ReadOnly`.
    ///
    /// # Durability
    /// The drop is durable when this returns, and so is every write acknowledged before. Like the
    /// creation of a keyspace, the drop is not part of the commit order: a batch that is written at the same time
    /// loses its part in this keyspace.
    pub fn drop_keyspace(&self, name: &str) -> Result<()> {
        self.handle.engine().drop_keyspace(name)
    }

    /// Exchanges the names of two keyspaces in one step, for example to put a rebuilt keyspace in place of the old one.
    /// Handles, views and cursors stay with their data, so they have the other name afterwards.
    ///
    /// Options, the recorded merge operator and the compaction filter stay with the data, too. Options of an open name
    /// them by keyspace: if the two differ in their operators, later opens must give them by the new names, or they fail
    /// with a sentence that says so. A rebuilt keyspace is best created with the options and the operator of the old one.
    ///
    /// # Errors
    /// `NotFound` if one of them does not exist; `NoSpace` (nothing has changed); `Poisoned`; `Closed`; `ReadOnly`.
    ///
    /// # Durability
    /// The swap is durable when this returns, and so is every write acknowledged before. A crash leaves both names
    /// exchanged or neither.
    pub fn swap_keyspaces(&self, first: &str, second: &str) -> Result<()> {
        self.handle.engine().swap_keyspaces(first, second)
    }

    /// The names of all keyspaces, sorted, without that of prepared transactions.
    pub fn keyspace_names(&self) -> Vec<String> {
        self.handle.engine().keyspace_names()
    }

    /// Writes `batch` as one: a reader sees all of it or nothing, and so does an open after a crash.
    ///
    /// # Errors
    /// `InvalidArgument` if the batch has a keyspace of another database; `NotFound` if it has a dropped keyspace;
    /// `NoSpace` if the disk is full (try again when it has space); `Closed`; `ReadOnly`; the error of a failed
    /// background job that the write waited for. Nothing was written then. After `Poisoned`, or the error that poisons
    /// the database, only a reopen shows whether the batch survives.
    ///
    /// # Durability
    /// That of [`Options::durability`].
    pub fn write(&self, batch: &Batch) -> Result<()> {
        self.write_with(batch, self.handle.engine().options().durability)
    }

    /// Writes `batch` as one, with the given durability.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_with(&self, batch: &Batch, durability: Durability) -> Result<()> {
        batch.commit(self.handle.engine(), durability)
    }

    /// The batch that [`Batch::to_bytes`] has made bytes of, perhaps for another database. This database must have
    /// keyspaces of the same names.
    ///
    /// ```
    /// # fn main() -> windrow::Result<()> {
    /// # let folders = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    /// # let db = windrow::Db::open(folders.0.path(), windrow::Options::default())?;
    /// # let copy = windrow::Db::open(folders.1.path(), windrow::Options::default())?;
    /// let planets = db.keyspace("planets")?;
    /// let mut batch = windrow::Batch::new();
    /// batch.insert(&planets, "earth", "one moon")?;
    /// db.write(&batch)?;
    /// let bytes = batch.to_bytes()?;
    ///
    /// // In another process, with another database:
    /// let planets = copy.keyspace("planets")?;
    /// copy.write(&copy.batch_from_bytes(&bytes)?)?;
    /// assert_eq!(planets.get("earth")?.as_deref(), Some(&b"one moon"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Corruption` if the bytes are damaged; `Unsupported` if a newer version has made them; `NotFound` if this
    /// database lacks one of the keyspaces; `InvalidArgument` for an operand if this open gave its keyspace no merge
    /// operator; `Closed`.
    pub fn batch_from_bytes(&self, bytes: &[u8]) -> Result<Batch> {
        Batch::decode(bytes, |name| {
            self.existing_keyspace(name)?.ok_or_else(|| {
                let message =
                    format!("the batch writes to keyspace \"{name}\", which does not exist");
                Error::new(ErrorKind::NotFound, message)
            })
        })
    }

    /// Keeps the present state of all keyspaces readable, for
    /// [`Keyspace::at`](super::Keyspace::at). The snapshot pins a sequence number, but no files.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(Arc::clone(&self.handle))
    }

    /// A cursor over the entries of several keyspaces, in the order of their keys, all as of now. Only keys in `range`
    /// count. It has no position before its first move.
    ///
    /// # Errors
    /// `InvalidArgument` for a keyspace of another database; `Closed`.
    pub fn merged_cursor<K: AsRef<[u8]>>(
        &self,
        keyspaces: &[&Keyspace],
        range: impl RangeBounds<K> + Clone,
    ) -> Result<MergedCursor> {
        let snapshot = self.snapshot();
        let cursors = keyspaces
            .iter()
            .map(|keyspace| keyspace.at(&snapshot)?.range_cursor(range.clone()));
        Ok(MergedCursor::new(cursors.collect::<Result<_>>()?))
    }

    /// Begins a [`Transaction`] with [`Isolation::Serializable`]. See [`transact`](Self::transact) for one that is tried
    /// again after a conflict.
    pub fn transaction(&self) -> Transaction {
        self.transaction_with(Isolation::default())
    }

    /// Begins a [`Transaction`] with the given isolation.
    pub fn transaction_with(&self, isolation: Isolation) -> Transaction {
        Transaction::new(&self.handle, isolation)
    }

    /// Begins a [`Transaction`] that locks the keys that it writes or reads for update. It waits for each lock at most for
    /// [`Options::lock_timeout`].
    ///
    /// ```
    /// # fn main() -> windrow::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(folder.path(), windrow::Options::default())?;
    /// let stock = db.keyspace("stock")?;
    /// stock.insert("apples", "3")?;
    ///
    /// let transaction = db.locking_transaction();
    /// // Other locking transactions wait here until this one has ended, and read what it has written.
    /// let apples = transaction.get_for_update(&stock, "apples")?;
    /// assert_eq!(apples.as_deref(), Some(&b"3"[..]));
    /// transaction.insert(&stock, "apples", "2")?;
    /// transaction.commit()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn locking_transaction(&self) -> Transaction {
        self.locking_transaction_with(self.handle.engine().options().lock_timeout)
    }

    /// Begins a locking [`Transaction`] that waits for each lock at most for `timeout`; zero for not at all.
    pub fn locking_transaction_with(&self, timeout: Duration) -> Transaction {
        Transaction::locking(&self.handle, timeout)
    }

    /// Runs `work` in a transaction with [`Isolation::Serializable`] and commits it. After a conflict it waits for a
    /// short random time and begins again with a new transaction, up to 200 times. An error of `work` ends the
    /// transaction without a commit; `work` can return a `Conflict` to be tried again.
    ///
    /// ```
    /// # fn main() -> windrow::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(folder.path(), windrow::Options::default())?;
    /// let jobs = db.keyspace("jobs")?;
    /// jobs.insert("waiting/1", "send a letter")?;
    ///
    /// // Any number of threads may do this; each job goes to one of them.
    /// let claimed = db.transact(|transaction| {
    ///     let Some(first) = transaction.prefix(&jobs, "waiting/")?.next() else {
    ///         return Ok(None);
    ///     };
    ///     let (key, job) = first?;
    ///     transaction.remove(&jobs, &key)?;
    ///     Ok(Some(job))
    /// })?;
    /// assert_eq!(claimed.as_deref(), Some(&b"send a letter"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// That of `work`; those of [`Transaction::commit`].
    ///
    /// # Durability
    /// That of [`Options::durability`].
    pub fn transact<R>(&self, work: impl FnMut(&Transaction) -> Result<R>) -> Result<R> {
        let durability = self.handle.engine().options().durability;
        self.transact_with(Isolation::default(), durability, work)
    }

    /// Runs `work` in a transaction with the given isolation, and commits it with the given durability.
    ///
    /// # Errors
    /// As [`transact`](Self::transact).
    pub fn transact_with<R>(
        &self,
        isolation: Isolation,
        durability: Durability,
        work: impl FnMut(&Transaction) -> Result<R>,
    ) -> Result<R> {
        self.transact_in(|| self.transaction_with(isolation), durability, work)
    }

    /// Runs `work` in a locking transaction and commits it with the given durability. After a conflict or a deadlock it
    /// begins again as [`transact`](Self::transact) does.
    ///
    /// # Errors
    /// As [`transact`](Self::transact); [`TimedOut`](ErrorKind::TimedOut).
    pub fn transact_locking<R>(
        &self,
        durability: Durability,
        work: impl FnMut(&Transaction) -> Result<R>,
    ) -> Result<R> {
        self.transact_in(|| self.locking_transaction(), durability, work)
    }

    fn transact_in<R>(
        &self,
        begin: impl Fn() -> Transaction,
        durability: Durability,
        mut work: impl FnMut(&Transaction) -> Result<R>,
    ) -> Result<R> {
        let mut tries = 0;
        loop {
            let transaction = begin();
            let outcome = work(&transaction)
                .and_then(|outcome| transaction.commit_with(durability).map(|()| outcome));
            tries += 1;
            match outcome {
                Err(error)
                    if [ErrorKind::Conflict, ErrorKind::Deadlock].contains(&error.kind())
                        && tries < TRIES_MAX =>
                {
                    self.handle.engine().wait_to_retry(tries);
                }
                outcome => return outcome,
            }
        }
    }

    /// Sets [`Options::background_threads`] until the close. Threads that are missing are started at once. If there are
    /// fewer than before, the others finish their jobs and then run flushes only.
    ///
    /// # Errors
    /// `InvalidArgument` for a number that the options would refuse, too; `Io` if the system allows no more threads;
    /// `Closed`. Nothing has changed then.
    pub fn set_background_threads(&self, count: usize) -> Result<()> {
        self.handle.set_background_threads(count)
    }

    /// Sets [`Options::compaction_bytes_per_second`] until the close; 0 for no limit. Jobs that run follow it, too.
    pub fn set_compaction_bytes_per_second(&self, bytes: u64) {
        self.handle.engine().set_compaction_rate(bytes);
    }

    /// The names of the prepared transactions, sorted: those of this open, and those that a crash or a close has left. See
    /// [`Transaction::prepare`].
    pub fn prepared_transactions(&self) -> Vec<String> {
        self.handle.engine().prepared_transactions().names()
    }

    /// The prepared transaction `name`, if there is one.
    pub fn prepared_transaction(&self, name: &str) -> Option<PreparedTransaction> {
        let prepared = self.handle.engine().prepared_transactions();
        let is_there = prepared.contains(name);
        is_there.then(|| PreparedTransaction::new(Arc::clone(&self.handle), name.to_owned()))
    }

    /// Makes all acknowledged writes durable: they survive a power failure. Without a [log](Options::log) it flushes all
    /// memtables for that.
    ///
    /// # Errors
    /// That of the sync, which poisons the database; without a log that of a flush: then the persist before counts. `Poisoned`;
    /// `Closed`; `ReadOnly`. Without a log `InvalidArgument` in a listener, a compaction filter or a merge operator.
    pub fn persist(&self) -> Result<()> {
        self.handle.engine().persist()
    }

    /// Makes all acknowledged writes durable, as [`persist`](Self::persist) does, but without a [log](Options::log) a background
    /// thread does the flushes and syncs. The writes that count are those before a moment during the call; later ones do not.
    /// Until it has ended, other flushes, loads and changes of keyspaces wait, and so does the next persist.
    ///
    /// A [`close`](Self::close) may come before it, and then the persist before counts. With a log it has ended on return.
    ///
    /// # Errors
    /// As [`persist`](Self::persist), but that of a flush comes from [`PendingPersist::wait`].
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// use windrow::{Db, Options};
    ///
    /// let mut options = Options::default();
    /// options.log = false;
    /// let db = Db::open(folder.path().join("db"), options)?;
    /// let words = db.keyspace("words")?;
    /// words.insert("one", "1")?;
    /// let pending = db.begin_persist()?;
    /// words.insert("two", "2")?; // does not count yet
    /// pending.wait()?; // "one" survives whatever happens
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn begin_persist(&self) -> Result<PendingPersist> {
        let point = self.handle.engine().begin_persist()?;
        Ok(PendingPersist::new(Arc::clone(&self.handle), point))
    }

    /// Writes all memtables to tables and waits until they are durable. Without a [log](Options::log) they count from the next
    /// [`persist`](Self::persist) on. The calling thread may flush itself, but never compacts, so it calls no compaction
    /// filter. A flush folds operands, so that thread may call the merge operators of any keyspace.
    ///
    /// # Errors
    /// That of the flush: the log still holds the data. `Poisoned`; `Closed`; `ReadOnly`.
    pub fn flush(&self) -> Result<()> {
        self.handle.engine().flush_all()
    }

    /// Makes a copy of the database in the folder `path`. The copy is a complete database with all acknowledged
    /// writes to all keyspaces, and no later ones. The folder must be empty or missing, and outside the folder of the
    /// database. After an error or a crash the copy is complete, or the folder does not open as a database.
    ///
    /// On one file system tables and value files are linked, not copied. Links take little time, and no space until
    /// compactions replace the files in this database. Reads, writes and compactions continue during the copy, but
    /// writers wait for a sync of the log. Afterwards neither database can change the other. A compaction of this
    /// database may append to a linked table. The file is then longer in the copy, too, and the copy ignores
    /// the bytes after its recorded end. Without a [log](Options::log) a checkpoint includes a [`persist`](Self::persist).
    ///
    /// # Errors
    /// `AlreadyExists` if the folder is not empty; `InvalidArgument` if it is in the folder of the database; `NoSpace`;
    /// `Io`; `Poisoned`; `Closed`; `ReadOnly`. Only a failed sync of its log affects this database.
    ///
    /// # Durability
    /// The copy is durable when this returns, and so are all writes that this database acknowledged before.
    pub fn checkpoint(&self, path: impl AsRef<Path>) -> Result<()> {
        self.handle.engine().checkpoint(path.as_ref())
    }

    /// Adds table files that a [`TableWriter`](crate::TableWriter) has made, each to its keyspace: all of them in one
    /// step, or none. Returns the number of their entries. Keys that exist get the new values, or lose theirs. Other
    /// threads see one commit.
    ///
    /// The database links the files, or copies them if the file system cannot link. They must not be changed afterwards,
    /// and may be removed: without a [log](Options::log) after the next [`persist`](Self::persist). The same file may be
    /// ingested again, here and elsewhere. Files for one keyspace must not overlap. Their tables go to the deepest level with space for them; if they overlap newer data, to level 0.
    ///
    /// # Errors
    /// `InvalidArgument` if a file is no such table, two files for one keyspace overlap, or a keyspace is of another
    /// database; `Corruption` if a file is damaged; `Unsupported` if it is of a newer version; `Io`; `NoSpace`; `NotFound`
    /// if a keyspace was dropped; `Conflict` if a prepared transaction holds keys of the same range; `Closed`; `ReadOnly`:
    /// nothing was added. After `Poisoned`, or the error that poisons
    /// the database, only a reopen shows whether the files count.
    ///
    /// # Durability
    /// The entries are durable when this returns, and so is every write acknowledged before.
    pub fn ingest<'k, P: AsRef<Path>>(
        &self,
        files: impl IntoIterator<Item = (&'k Keyspace, P)>,
    ) -> Result<u64> {
        self.ingest_with(files, FileCheck::default())
    }

    /// As [`ingest`](Self::ingest), with the given check of the files.
    ///
    /// # Errors
    /// As [`ingest`](Self::ingest).
    ///
    /// # Durability
    /// That of [`ingest`](Self::ingest).
    pub fn ingest_with<'k, P: AsRef<Path>>(
        &self,
        files: impl IntoIterator<Item = (&'k Keyspace, P)>,
        check: FileCheck,
    ) -> Result<u64> {
        let file = |(keyspace, path): (&Keyspace, P)| {
            if keyspace.is_of(&self.handle) {
                return Ok((Arc::clone(keyspace.core()), path.as_ref().to_owned()));
            }
            let message = format!("keyspace \"{}\" is of another database", keyspace.name());
            Err(Error::invalid_argument(message))
        };
        let files = files.into_iter().map(file).collect::<Result<Vec<_>>>()?;
        self.handle.engine().ingest(files, check)
    }

    /// Waits until no background work is due. Writes of other threads can prolong the wait, and so do checkpoints and
    /// backups that run.
    ///
    /// # Errors
    /// That of failed background work; `Poisoned`; `Closed`; `InvalidArgument` where the wait would never end: in a job of
    /// the database, so in the source of a bulk load, a listener of a job or of a backup, a compaction filter, or an operator
    /// that it calls.
    pub fn wait_idle(&self) -> Result<()> {
        self.handle.engine().wait_idle()
    }

    /// Checks every block of every table and every value that tables refer to, and compares them with the manifest.
    /// The check reads the files again, not the block cache. It does not check logs and garbage values.
    ///
    /// # Errors
    /// Only if the check itself cannot continue: `Io`; `Closed`. The report lists damage.
    pub fn verify(&self) -> Result<VerifyReport> {
        self.handle.engine().verify()
    }

    /// Statistics: the work since the open and in the life of the database, and the shape of each tree.
    pub fn stats(&self) -> Stats {
        self.handle.engine().stats()
    }

    /// The memory of the database by purpose, to compare with [`Options::memory_budget`].
    pub fn memory(&self) -> MemoryUse {
        self.handle.engine().memory()
    }

    /// The folder of the database.
    pub fn path(&self) -> &Path {
        self.handle.engine().path()
    }

    /// Ends background work, makes all acknowledged writes durable and releases the folder's lock. Other handles to
    /// this database return `Closed` afterwards. Memtables are flushed if the logs are longer than about 1 MiB, so that
    /// the next open is fast. Without a [log](Options::log) a close makes nothing durable: [`persist`](Self::persist) first.
    ///
    /// # Errors
    /// That of the last sync or of the last edit of the manifest; `Poisoned`. The lock is released in any case, except
    /// after `InvalidArgument`: a [listener](crate::EventListener), [compaction filter](crate::CompactionFilter) or merge
    /// operator has called this on a thread that a close would wait for, which changes nothing.
    pub fn close(self) -> Result<()> {
        self.handle.close()
    }
}

impl fmt::Debug for Db {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Db")
            .field("path", &self.path())
            .finish_non_exhaustive()
    }
}

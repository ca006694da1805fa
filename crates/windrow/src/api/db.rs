//! A database and its life.
//!
//! Owns nothing but a share of the open database, which [`Db`], keyspaces, snapshots and cursors keep alive
//! together. Every call passes on to `engine`; options are checked there, keys and values here.
//!
//! Concurrency: a [`Db`] and its clones may be used from any thread at any time.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::{Batch, Keyspace, Snapshot};
use crate::base::Result;
use crate::engine::{Access, Handle, MemoryUse, Stats, VerifyReport};
use crate::options::{Durability, KeyspaceOptions, Options};

/// An open database: a folder that holds named keyspaces under one commit order.
///
/// Cloning is cheap; all clones, keyspaces, snapshots and cursors share one open database, which
/// closes when the last of them is dropped or when [`close`](Self::close) is called.
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
    /// Opens the database in the folder `path`, creating it where
    /// [`Options::create_if_missing`] allows.
    ///
    /// What an earlier process acknowledged is there again, up to the durability it asked for:
    /// always a prefix of the commit order.
    ///
    /// # Errors
    /// `InvalidArgument` for bad options and for a new database among other files, `Locked` while
    /// the database is open elsewhere, `NotFound` or `AlreadyExists` as the options say,
    /// `Unsupported` for data of a newer version, `Corruption` that names the file and the offset
    /// of damage.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let handle = Arc::new(Handle::open(path.as_ref(), options, Access::ReadWrite)?);
        Ok(Self { handle })
    }

    /// Opens the database in the folder `path` for reading only: nothing on disk changes, whatever
    /// is called. What its logs hold is read into memory, so this works in a folder that cannot be
    /// written and on a full disk. Calls that write get `ReadOnly`; options say how to read, and
    /// those of keyspaces have no effect.
    ///
    /// Any number of readers, or one that writes: readers share the lock that a writer has alone.
    /// Where the folder has no file `LOCK` nothing can be locked, and it is up to the caller that
    /// nobody opens it for writing meanwhile.
    ///
    /// What is read may not be durable: after the end of a process, or a failed sync, a power failure
    /// can still take the newest of it, until the database is opened for writing.
    ///
    /// # Errors
    /// As [`open`](Self::open); `NotFound` where there is no database, whatever the options say.
    pub fn open_read_only(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let handle = Arc::new(Handle::open(path.as_ref(), options, Access::ReadOnly)?);
        Ok(Self { handle })
    }

    /// The keyspace `name` under the options that it had last; created with [`Options::keyspace`] if
    /// it is missing.
    ///
    /// # Errors
    /// `InvalidArgument` for an empty name or one longer than 255 bytes.
    ///
    /// # Durability
    /// A new keyspace is durable when this returns.
    pub fn keyspace(&self, name: &str) -> Result<Keyspace> {
        let core = self.handle.engine().open_keyspace(name, None)?;
        Ok(Keyspace::new(Arc::clone(&self.handle), core))
    }

    /// The keyspace `name` under these options from now on, created if it is missing. They hold for
    /// all its handles and for later openings, until others are chosen; files that are there stay
    /// as they are.
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

    /// Drops the keyspace `name` with everything in it. Its handles give `NotFound` from then on,
    /// for batches too; what a snapshot shows of it, and cursors that are open, can be read on.
    /// Memory and files go when the last handle, view and cursor of it is dropped. A keyspace that
    /// is created under the same name later begins empty.
    ///
    /// # Errors
    /// `NotFound` where there is none; `NoSpace`, where nothing has changed; `Poisoned`.
    ///
    /// # Durability
    /// That it is gone is durable when this returns, with every write acknowledged before. Like the
    /// creation of a keyspace it is not part of the commit order: of a write that runs at the same
    /// time, the part in this keyspace goes with it.
    pub fn drop_keyspace(&self, name: &str) -> Result<()> {
        self.handle.engine().drop_keyspace(name)
    }

    /// The names of all keyspaces, sorted.
    pub fn keyspace_names(&self) -> Vec<String> {
        self.handle.engine().keyspace_names()
    }

    /// Writes `batch` as one: readers and crashes see all of it or nothing.
    ///
    /// # Errors
    /// `InvalidArgument` for a batch above 1 GiB or with a keyspace of another database,
    /// `NoSpace` when the disk is full (nothing was written; try again when there is room),
    /// `Poisoned` after an earlier failure.
    ///
    /// # Durability
    /// As [`Options::durability`] says.
    pub fn write(&self, batch: &Batch) -> Result<()> {
        self.write_with(batch, self.handle.engine().options().durability)
    }

    /// Writes `batch` as one, durable as `durability` says.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_with(&self, batch: &Batch, durability: Durability) -> Result<()> {
        batch.commit(self.handle.engine(), durability)
    }

    /// Holds the present state of all keyspaces for reading with
    /// [`Keyspace::at`](super::Keyspace::at). It pins a sequence number, no files.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(Arc::clone(&self.handle))
    }

    /// Makes every write that was acknowledged so far survive a power failure.
    ///
    /// # Errors
    /// That of the sync, after which the database is `Poisoned`.
    pub fn persist(&self) -> Result<()> {
        self.handle.engine().persist()
    }

    /// Writes all memtables to tables and waits until they are durable.
    ///
    /// # Errors
    /// That of the flush; the data stays in the log.
    pub fn flush(&self) -> Result<()> {
        self.handle.engine().flush_all()
    }

    /// Makes a copy of the database in the folder `path`, of this moment: everything that was
    /// acknowledged, over all keyspaces, and nothing later. The folder must be empty or missing; it
    /// gets a complete database or, after an error or a crash, nothing that opens as one.
    ///
    /// On one file system tables are linked, not copied: that costs little time and, until merges
    /// replace them here, no room. Reading, writing and merging go on meanwhile, but writers wait
    /// for a sync of the log. Afterwards neither database can change the other. Merges here may still
    /// append to tables that are linked, which get longer in the copy, too: what is behind the end that it
    /// knows means nothing to it.
    ///
    /// # Errors
    /// `AlreadyExists` for a folder that is not empty; `NoSpace`; `Io`. This database is not
    /// affected, but for a failed sync of its log.
    ///
    /// # Durability
    /// The copy is durable when this returns, and so is everything acknowledged here before.
    pub fn checkpoint(&self, path: impl AsRef<Path>) -> Result<()> {
        self.handle.engine().checkpoint(path.as_ref())
    }

    /// Waits until no background work is due. Writes that go on meanwhile can make this wait long.
    ///
    /// # Errors
    /// That of background work which could not be done.
    pub fn wait_idle(&self) -> Result<()> {
        self.handle.engine().wait_idle()
    }

    /// Checks every byte of every table and the structure that holds them together.
    ///
    /// # Errors
    /// Only where the check itself cannot go on; damage is listed in the report.
    pub fn verify(&self) -> Result<VerifyReport> {
        self.handle.engine().verify()
    }

    /// What the database has done since it was opened and what it looks like now.
    pub fn stats(&self) -> Stats {
        self.handle.engine().stats()
    }

    /// What the database holds in memory, by purpose, against [`Options::memory_budget`].
    pub fn memory(&self) -> MemoryUse {
        self.handle.engine().memory()
    }

    /// The folder of the database.
    pub fn path(&self) -> &Path {
        self.handle.engine().path()
    }

    /// Ends background work, makes everything acknowledged durable and releases the folder's lock.
    /// Other handles to this database get `Closed` from then on.
    ///
    /// # Errors
    /// That of the last sync.
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

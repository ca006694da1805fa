//! An open database.
//!
//! Owns a reference to the open database. [`Db`], keyspaces, snapshots and cursors share it and keep it
//! open. Every call goes to `engine`, which checks options; keys and values are checked here.
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
    /// Opens the database in the folder `path`, or creates it if
    /// [`Options::create_if_missing`] allows that.
    ///
    /// The database holds every write that an earlier process acknowledged, up to the durability that
    /// the write had: always a prefix of the commit order.
    ///
    /// # Errors
    /// `InvalidArgument` for bad options and for a new database among other files, `Locked` while
    /// another process has the database open (the message names it), `NotFound` or `AlreadyExists` as the options say,
    /// `Unsupported` for data of a newer version, `Corruption` that names the file and the offset
    /// of damage.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let handle = Arc::new(Handle::open(path.as_ref(), options, Access::ReadWrite)?);
        Ok(Self { handle })
    }

    /// Opens the database in the folder `path` for reading only. No call changes anything on disk. The
    /// entries of the logs are read into memory, so this works in a folder that cannot be written and
    /// on a full disk. Calls that write return `ReadOnly`. Options of keyspaces have no effect.
    ///
    /// A database has any number of readers, or one writer: readers share the lock, and a writer has it
    /// alone. A folder without a file `LOCK` cannot be locked. Then the caller makes sure that nobody
    /// opens it for writing meanwhile.
    ///
    /// The newest entries may not be durable: if a process has ended or a sync has failed, a power
    /// failure can still take them, until the database is opened for writing.
    ///
    /// # Errors
    /// As [`open`](Self::open); `NotFound` if the folder has no database, whatever the options say.
    pub fn open_read_only(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let handle = Arc::new(Handle::open(path.as_ref(), options, Access::ReadOnly)?);
        Ok(Self { handle })
    }

    /// The keyspace `name` under the options that it had last. A missing one is created with
    /// [`Options::keyspace`].
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

    /// The keyspace `name` under these options from now on; a missing one is created. The options hold
    /// for all its handles and for later opens, until others are set. Existing files do not change.
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

    /// Drops the keyspace `name` with everything in it. Its handles return `NotFound` from then on,
    /// for batches too. Views at a snapshot and open cursors still read it. Its memory and files are
    /// freed when the last handle, view and cursor of it is dropped. A keyspace that is created under
    /// the same name later is empty.
    ///
    /// # Errors
    /// `NotFound` if the keyspace does not exist; `NoSpace`, and nothing has changed; `Poisoned`.
    ///
    /// # Durability
    /// The drop is durable when this returns, and so is every write acknowledged before. Like the
    /// creation of a keyspace it is not part of the commit order: a write at the same time loses its
    /// part in this keyspace.
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
    /// `NoSpace` when the disk is full (nothing was written; try again when it has space),
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

    /// Makes every write that was acknowledged so far durable: it survives a power failure.
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

    /// Makes a copy of the database in the folder `path`: everything that was acknowledged, over all
    /// keyspaces, and nothing later. The folder must be empty or missing, and outside the folder of the
    /// database. It gets a complete database. After an error or a crash it holds nothing that opens as
    /// one.
    ///
    /// On one file system tables are linked, not copied. That costs little time, and no space until
    /// compactions replace the tables here. Reads, writes and compactions go on meanwhile, but writers
    /// wait for a sync of the log. Afterwards neither database can change the other. Compactions here
    /// may append to linked tables, which then are longer in the copy, too; the copy ignores what is
    /// behind the end that it has recorded.
    ///
    /// # Errors
    /// `AlreadyExists` for a folder that is not empty; `InvalidArgument` for one in the folder of the
    /// database; `NoSpace`; `Io`. Only a failed sync of its log affects this database.
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
    /// Other handles to this database return `Closed` from then on. Memtables are flushed if the log is
    /// long (1 MiB), so that the next open reads little.
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

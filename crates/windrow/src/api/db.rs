//! A database and its life.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::{Batch, Keyspace, Snapshot};
use crate::base::Result;
use crate::engine::{Handle, MemoryUse, Stats, VerifyReport};
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
        let handle = Arc::new(Handle::open(path.as_ref(), options)?);
        Ok(Self { handle })
    }

    /// The keyspace `name`, created with [`Options::keyspace`] if it is missing.
    ///
    /// # Errors
    /// `InvalidArgument` for an empty name or one longer than 255 bytes.
    ///
    /// # Durability
    /// A new keyspace is durable when this returns.
    pub fn keyspace(&self, name: &str) -> Result<Keyspace> {
        self.keyspace_with(name, self.handle.engine().options().keyspace.clone())
    }

    /// The keyspace `name` under its own options, created if it is missing. Options apply from the
    /// first call of a process; later calls return the keyspace as it was opened.
    ///
    /// # Errors
    /// As [`keyspace`](Self::keyspace), and `InvalidArgument` for bad options.
    ///
    /// # Durability
    /// A new keyspace is durable when this returns.
    pub fn keyspace_with(&self, name: &str, options: KeyspaceOptions) -> Result<Keyspace> {
        let core = self.handle.engine().open_keyspace(name, options)?;
        Ok(Keyspace::new(Arc::clone(&self.handle), core))
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

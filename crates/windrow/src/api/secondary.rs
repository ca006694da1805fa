//! Reads of a database that another process writes.
//!
//! Concurrency: a [`Secondary`] may be used from any thread at any time.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::Db;
use crate::base::Result;
use crate::engine;
use crate::options::Options;

/// A reader of a database that another process may have open for writing. Any number of processes read beside it, and none
/// of them makes it wait.
///
/// Each state that a secondary has read is a [`Db`] that is open for reading: its keyspaces, snapshots and cursors all see the
/// same prefix of the commit order, whatever the writer does. Only entries that expire go with the time. Copies work, too
/// ([`Db::checkpoint`], [`Db::backup`]). [`catch_up`](Self::catch_up) reads what was committed since, and gives the next state.
/// It costs the new records of the logs; a step for each table of the keyspaces whose files have changed; and a copy of the
/// list of all files, if somebody holds the state before. What is not flushed yet is in memory.
///
/// A secondary keeps the files that its states need in the folder, by a lease there, which it renews on a thread of its own.
/// The lease of a process that has ended counts for nothing, and that of one that was stopped for 30 seconds, for example by
/// a debugger, neither. Then reads of its states may fail until it catches up. A state that is held for long keeps garbage on
/// the disk ([`Stats::files_held_by_readers`](crate::Stats::files_held_by_readers)). A state needs no `close`: it would close it
/// for all who have it. After a `fork` only the parent may use it.
///
/// ```
/// # fn main() -> windrow::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path();
/// use windrow::{Db, Options};
///
/// let writer = Db::open(path, Options::default())?; // most often in another process
/// let users = writer.keyspace("users")?;
/// users.insert("ada", "mathematician")?;
///
/// let secondary = Db::open_secondary(path, Options::default())?;
/// let db = secondary.db();
/// assert!(db.keyspace("users")?.contains_key("ada")?);
///
/// users.insert("grace", "admiral")?;
/// assert!(!db.keyspace("users")?.contains_key("grace")?);
/// let db = secondary.catch_up()?;
/// assert!(db.keyspace("users")?.contains_key("grace")?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Secondary(Arc<engine::Secondary>);

impl Secondary {
    /// The newest state that was read. No call changes the disk, and calls that write return `ReadOnly`.
    pub fn db(&self) -> Db {
        Db {
            handle: self.0.newest(),
        }
    }

    /// Reads what was committed since, and returns the newest state: the same one if nothing was. It has every commit that
    /// was acknowledged before this call, of any durability, while the writer lives.
    ///
    /// # Errors
    /// As [`Db::open_secondary`]; `FellBehind` if this process was stopped meanwhile for so long that the writer has given it
    /// up. The newest state stays, and the next call begins anew.
    pub fn catch_up(&self) -> Result<Db> {
        let handle = self.0.catch_up()?;
        Ok(Db { handle })
    }

    /// Catches up by itself after each `interval`, on a thread, until the secondary is dropped. What fails
    /// there is tried again. A second call changes the interval.
    ///
    /// # Errors
    /// `Io` if the system allows no thread.
    pub fn follow(&self, interval: Duration) -> Result<()> {
        self.0.follow(interval)
    }
}

impl fmt::Debug for Secondary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Secondary").field(&self.db()).finish()
    }
}

impl Db {
    /// Opens the database in the folder `path` for reading, also while this or another process has it open for writing. See
    /// [`Secondary`].
    ///
    /// This process must be allowed to write to the folder: its lease is there, in the folder `readers`. Otherwise see
    /// [`open_read_only`](Self::open_read_only), which keeps writers out.
    ///
    /// The newest entries may not be durable: a power failure can lose them, and the writer with them.
    ///
    /// # Errors
    /// As [`open`](Self::open), but never `Locked`; always `NotFound` if the folder has no database. `InvalidArgument` also if
    /// a keyspace has a merge operator that the options lack. `Io` also if the lease cannot be written.
    pub fn open_secondary(path: impl AsRef<Path>, options: Options) -> Result<Secondary> {
        engine::Secondary::open(path.as_ref(), options).map(Secondary)
    }
}

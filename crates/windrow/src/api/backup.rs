//! Backups and the archive of an open database, and the restore of states between backups.

use std::path::Path;

use super::Db;
use crate::backup::{ArchiveReport, BackupReport, Backups, RestoreTo, Restored};
use crate::base::Result;
use crate::engine::restore_to;

impl Db {
    /// Makes a backup of the database as of one moment during the call: all keyspaces, with all writes that were acknowledged
    /// before the call and no part of a batch. The store of `backups` gets what no backup there has yet. After an error or a
    /// crash the backup does not exist, and the next one continues with the files that are copied already.
    ///
    /// Reads, writes and compactions continue meanwhile, but writers wait for a sync of the log. Disk space of files that
    /// compactions replace is free only after the end. Files that the newest backup has from the same open of the database
    /// are not read again; others are read and compared. What is copied is read twice. A backup copies damage as it is:
    /// [`verify`](Self::verify) finds it.
    ///
    /// # Errors
    /// `NoSpace`; `Io`; `Corruption` if a file is missing or gives other bytes when it is read again; `Poisoned`; `Closed`
    /// once a close has begun; `ReadOnly`, also if the store is open for reading only. Only a failed sync of its log
    /// affects this database.
    ///
    /// # Durability
    /// The backup is durable when this returns, and so are all writes that this database acknowledged before.
    pub fn backup(&self, backups: &Backups) -> Result<BackupReport> {
        self.handle.engine().back_up(backups)
    }

    /// Archives the changes since the last call, so that [`Backups::restore_to`] reaches each state between two backups. Call
    /// it from time to time, for example each minute. A database has one store for its archive, that of its backups.
    ///
    /// Between two calls a [consumer](Self::consumer) holds the changes, with a name that begins with `archive`, within the
    /// bounds of [`Options::change_retention`](crate::Options::change_retention). The first call makes a backup, and so does
    /// one that finds a bulk load or an ingestion, whose entries are in no log. A new history begins, with a backup, if the
    /// store lacks changes that were archived before, or has others, or if the consumer has fallen behind: states between the
    /// old history and that backup are not reached.
    ///
    /// To end the archive, remove the consumer.
    ///
    /// ```
    /// # fn main() -> windrow::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path();
    /// use windrow::backup::{Backups, RestoreTo};
    /// use windrow::{Db, Options};
    ///
    /// let db = Db::open(path.join("db"), Options::default())?;
    /// let users = db.keyspace("users")?;
    /// let backups = Backups::open(path.join("backups"))?;
    /// db.archive(&backups)?;
    /// users.insert("ada", "mathematician")?;
    /// let before = db.snapshot().sequence();
    /// users.remove("ada")?;
    /// db.archive(&backups)?;
    ///
    /// backups.restore_to(RestoreTo::Sequence(before), None, path.join("restored"))?;
    /// let restored = Db::open(path.join("restored"), Options::default())?;
    /// assert!(restored.keyspace("users")?.contains_key("ada")?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`backup`](Self::backup) and of [`Changes::next`](crate::Changes::next); `InvalidArgument` without a log.
    ///
    /// # Durability
    /// The changes are durable in the store when this returns, and in this database.
    pub fn archive(&self, backups: &Backups) -> Result<ArchiveReport> {
        self.handle.engine().archive(backups)
    }
}

impl Backups {
    /// Writes the database as it was at `to` to the folder `target`, which must be empty or missing: the newest backup at or
    /// before that state, and the archived changes behind it. With `from` it begins with the backup of this number.
    ///
    /// Commits are whole, and have the sequence numbers that they had. Prepared transactions are prepared. Keyspaces have the
    /// options that they had in the backup; those that were created later have the options that they had when that was
    /// archived. The database has no consumers.
    ///
    /// All bytes are checked. After an error the folder is empty except for the lock, as far as its files can be removed. After a
    /// crash it does not open as a database, or, if only the last step was interrupted, is the whole database.
    ///
    /// # Errors
    /// `NotFound` if no backup and no changes lead there; the message names what does, for example behind a bulk load.
    /// `InvalidArgument` if databases that have parted both have the sequence number: name a backup. `Corruption`, which names
    /// what is damaged or missing; `Unsupported`; `AlreadyExists` if the folder is not empty; `NoSpace`; `Io`.
    ///
    /// # Durability
    /// The database is durable when this returns.
    pub fn restore_to(
        &self,
        to: RestoreTo,
        from: Option<u64>,
        target: impl AsRef<Path>,
    ) -> Result<Restored> {
        restore_to(self, to, from, target.as_ref())
    }
}

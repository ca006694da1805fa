//! Backups of an open database.

use super::Db;
use crate::backup::{BackupReport, Backups};
use crate::base::Result;

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
}

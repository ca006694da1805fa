//! Layer 4: backups of databases.
//!
//! A store of backups has objects of three kinds (`names`): pieces of files, named by their bytes, a `manifest` for
//! each backup, which names its pieces, and stretches of the `archive`. Backups share pieces, so a new backup copies what
//! has changed since the one before. The archive has the changes between backups.
//!
//! - `store`: where objects go; `folder`: a folder for them.
//! - `creation`, `restore`, `purge`, `check`, `copy`: what is done with backups, on top of `objects` and `transfer`.
//!
//! Invariants:
//! - I1. A backup exists when its manifest does. All of its pieces are durable before.
//! - I2. An object never changes, and is there as a whole or not at all.
//! - I3. Nothing is deleted that a backup needs.
//! - I4. No byte leaves a store for a database unless its piece has the checksum of its name.
//!
//! Concurrency: one call at a time changes or reads the store of a [`Backups`]; others wait. A store keeps other
//! processes out itself.

pub(crate) mod archive;
mod check;
mod copy;
mod creation;
mod damage;
mod folder;
mod manifest;
mod names;
mod objects;
mod purge;
mod restore;
mod store;
mod transfer;

use std::path::Path;
use std::sync::Arc;

pub use archive::{ArchiveReport, Reachable, ReachableStates, RestoreTo, Restored};
pub use check::{BackupCheck, BackupDamage, BackupInfo, ListedBackup};
pub use creation::BackupReport;
pub(crate) use creation::Contents;
pub use folder::FolderStore;
pub(crate) use manifest::{BackupManifest, Binding, MANIFEST_BYTES_MAX};
pub(crate) use names::{ObjectName, StretchName};
pub(crate) use objects::Objects;
pub use purge::{Purge, PurgeReport};
pub use store::{BackupStore, ByteSource, StoredObject};
pub(crate) use transfer::Meter;
pub use transfer::{BackupPhase, BackupProgress};

use crate::base::Result;
use crate::base::sync::{Mutex, MutexGuard};
use crate::manifest::names::FileName;
use crate::runtime::{Runtime, Threads};
use crate::vfs::{OsVfs, Vfs};
use creation::Creation;
use transfer::Settings;

/// Backups of databases in one store.
///
/// [`Db::backup`](crate::Db::backup) makes one. Each database has a store of its own. `docs/backup.md` describes them.
///
/// ```
/// # fn main() -> windrow::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path();
/// use windrow::backup::{Backups, Purge};
/// use windrow::{Db, Options};
///
/// let db = Db::open(path.join("db"), Options::default())?;
/// let users = db.keyspace("users")?;
/// users.insert("ada", "mathematician")?;
///
/// let backups = Backups::open(path.join("backups"))?;
/// let first = db.backup(&backups)?;
/// users.remove("ada")?;
/// db.backup(&backups)?;
///
/// backups.restore(first.number, path.join("restored"))?;
/// let restored = Db::open(path.join("restored"), Options::default())?;
/// assert!(restored.keyspace("users")?.contains_key("ada")?);
///
/// backups.purge(Purge::KeepNewest(1))?;
/// assert_eq!(backups.list()?.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Backups {
    store: Arc<dyn BackupStore>,
    vfs: Arc<dyn Vfs>,
    settings: Settings,
    /// Held during a call.
    in_use: Mutex<()>,
}

impl Backups {
    /// The backups in the folder `path`, which is created if it is missing. Other processes are kept out.
    ///
    /// # Errors
    /// Those of [`FolderStore::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let store = FolderStore::open(Arc::new(OsVfs), path)?;
        Ok(Self::new(Arc::new(store)))
    }

    /// The same, to list, check and restore them. Other processes may do the same meanwhile.
    ///
    /// # Errors
    /// Those of [`FolderStore::open_read_only`].
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self> {
        let store = FolderStore::open_read_only(Arc::new(OsVfs), path)?;
        Ok(Self::new(Arc::new(store)))
    }

    /// The backups in `store`.
    pub fn new(store: Arc<dyn BackupStore>) -> Self {
        Self {
            store,
            vfs: Arc::new(OsVfs),
            settings: Settings {
                runtime: Arc::new(Threads::default()),
                bytes_per_second: 0,
                listener: Arc::new(|_| ()),
            },
            in_use: Mutex::new(()),
        }
    }

    /// Reads at most this many bytes per second, of a database or of the store, in each call. Default 0, no limit. Set it
    /// if other programs use the disk.
    #[must_use]
    pub fn with_rate(mut self, bytes_per_second: u64) -> Self {
        self.settings.bytes_per_second = bytes_per_second;
        self
    }

    /// Calls `listener` on the thread of a call as it goes on: after each 256 KiB that are read, and each piece that need
    /// not be read. It must not use these backups.
    #[must_use]
    pub fn with_progress(
        mut self,
        listener: impl Fn(BackupProgress) + Send + Sync + 'static,
    ) -> Self {
        self.settings.listener = Arc::new(listener);
        self
    }

    /// Restores to another file system, for example a simulated one.
    #[must_use]
    pub fn with_vfs(mut self, vfs: Arc<dyn Vfs>) -> Self {
        self.vfs = vfs;
        self
    }

    /// Uses another clock.
    #[must_use]
    pub fn with_runtime(mut self, runtime: Arc<dyn Runtime>) -> Self {
        self.settings.runtime = runtime;
        self
    }

    /// The backups, oldest first, with those that cannot be used.
    ///
    /// # Errors
    /// `Io`.
    pub fn list(&self) -> Result<Vec<ListedBackup>> {
        let _in_use = self.in_use.lock();
        check::list(&*self.store)
    }

    /// The number of the newest backup, whatever its state; `None` if there is none.
    ///
    /// # Errors
    /// `Io`.
    pub fn newest(&self) -> Result<Option<u64>> {
        let _in_use = self.in_use.lock();
        Ok(Objects::list(&*self.store)?.backups.last().copied())
    }

    /// Reads all bytes of backup `number`, or of all backups, and compares them with their checksums. The report lists
    /// what is damaged or could not be read.
    ///
    /// # Errors
    /// `NotFound` if there is no such backup; `Io` if the store cannot be listed.
    pub fn verify(&self, number: Option<u64>) -> Result<BackupCheck> {
        let _in_use = self.in_use.lock();
        let mut meter = Meter::new(&self.settings, &|| Ok(()));
        check::check(&*self.store, number, &mut meter)
    }

    /// Writes the database of backup `number` to the folder `target`, which must be empty or missing. Its state is that
    /// of the moment at which the backup was made.
    ///
    /// All bytes are checked. After an error or a crash the folder is empty except for the lock, or does not open as a
    /// database, or, if only the last step was interrupted, holds the whole database. After an error its files are removed,
    /// as far as they can be.
    ///
    /// # Errors
    /// `NotFound` if there is no such backup; `Corruption`, which names the backup and what of it is damaged;
    /// `Unsupported`, if a newer version made it; `AlreadyExists` if the folder is not empty; `NoSpace`; `Io`.
    ///
    /// # Durability
    /// The database is durable when this returns.
    pub fn restore(&self, number: u64, target: impl AsRef<Path>) -> Result<()> {
        let _in_use = self.in_use.lock();
        let store = &*self.store;
        let manifest = Objects::list(store)?.whole_backup(store, number)?;
        let mut meter = Meter::new(&self.settings, &|| Ok(()));
        let target = target.as_ref();
        restore::restore(
            store,
            number,
            manifest,
            &self.vfs,
            (target, false),
            &mut meter,
        )
    }

    /// The states that a restore reaches from each backup, and what cannot be used. It reads no changes.
    ///
    /// # Errors
    /// `Io`.
    pub fn reachable(&self) -> Result<Reachable> {
        let _in_use = self.in_use.lock();
        archive::list(&*self.store)
    }

    /// Removes backups, and the pieces that no other backup needs. If it is interrupted, the next purge does the rest.
    ///
    /// # Errors
    /// `InvalidArgument` for [`Purge::KeepNewest`] of 0; `NotFound` if there is no such backup; `Corruption`, `Unsupported`
    /// or `Io` if a choice by count or age finds a backup that cannot be read: nothing is removed; `ReadOnly`; `Poisoned`
    /// after a failed sync of the store; `Io`.
    ///
    /// # Durability
    /// The removal is durable when this returns.
    pub fn purge(&self, purge: Purge) -> Result<PurgeReport> {
        let _in_use = self.in_use.lock();
        let now = self.settings.runtime.unix_time();
        purge::purge(&*self.store, purge, now)
    }

    /// The store, for a call of the archive. Others wait until it is dropped.
    pub(crate) fn take(&self) -> StoreInUse<'_> {
        StoreInUse {
            store: &*self.store,
            vfs: &self.vfs,
            settings: &self.settings,
            _in_use: self.in_use.lock(),
        }
    }

    /// The newest backup whose copy of `file`, a file of a database, satisfies `is_whole`.
    pub(crate) fn newest_copy(
        &self,
        file: FileName,
        is_whole: &dyn Fn(Vec<u8>) -> bool,
    ) -> Result<Option<u64>> {
        let _in_use = self.in_use.lock();
        let mut meter = Meter::new(&self.settings, &|| Ok(()));
        copy::newest_copy(&*self.store, file, is_whole, &mut meter)
    }

    /// Makes a backup of what `hold` returns, which is called when nothing else uses the store. `wanted` fails if the
    /// backup is no longer wanted.
    pub(crate) fn create<'a>(
        &self,
        hold: impl FnOnce() -> Result<Contents<'a>>,
        wanted: &dyn Fn() -> Result<()>,
    ) -> Result<BackupReport> {
        let _in_use = self.in_use.lock();
        let creation = Creation {
            store: &*self.store,
            settings: &self.settings,
            wanted,
        };
        creation.run(hold()?)
    }
}

/// A store that one call uses.
pub(crate) struct StoreInUse<'a> {
    pub(crate) store: &'a dyn BackupStore,
    pub(crate) vfs: &'a Arc<dyn Vfs>,
    settings: &'a Settings,
    _in_use: MutexGuard<'a, ()>,
}

impl<'a> StoreInUse<'a> {
    /// Counts the bytes of the call, which ends when `wanted` fails.
    pub(crate) fn meter<'m>(&self, wanted: &'m dyn Fn() -> Result<()>) -> Meter<'m>
    where
        'a: 'm,
    {
        Meter::new(self.settings, wanted)
    }

    pub(crate) fn runtime(&self) -> &Arc<dyn Runtime> {
        &self.settings.runtime
    }

    /// Writes the database of a backup to the folder `target`, marked as unfinished if changes follow.
    pub(crate) fn restore(
        &self,
        number: u64,
        manifest: BackupManifest,
        target: (&Path, bool),
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        restore::restore(self.store, number, manifest, self.vfs, target, meter)
    }
}

//! Layer 5: a database while it is open.
//!
//! Where to look:
//!
//! - this folder: [`handle`] (open and close), [`keyspace`], [`reads`], [`snapshots`], [`expiry_clock`], the kept [`folds`], the [`catalog`]
//!   (manifest), [`ids`], [`counters`], the [`directory`], and [`copies`] of files.
//! - [`commit`]: writes, the write-ahead log and the value logs.
//! - [`transaction`]: reads and writes before a commit on a condition; prepared transactions.
//! - [`observation`]: the job log, the status file, latencies, listeners.
//! - [`locks`]: the locks of keys, and what prepared transactions hold.
//! - [`changes`]: the change feed, and what is kept for its consumers.
//! - [`archive`]: the archiving of changes to a store of backups, and their application to a restored database.
//! - [`ingestion`]: tables that come from outside of the commit path.
//! - [`recovery`]: creation, recovery and reopening.
//! - [`secondary`]: readers beside a writer in another process; [`leased_files`]: the files that they keep alive.
//! - [`jobs`]: background jobs, which flush, compact and collect garbage.
//! - [`throttling`]: delays and stops of writers, the rate limiter, the memory budget.
//! - [`scrub`]: checks of all files, from time to time or by hand.
//! - [`errors`]: failed jobs, the poisoned database, the full disk and its reserve.
//! - [`admin`]: statistics, checks, checkpoints, backups, manual compactions.
//!
//! Invariants:
//! - I1: A write is visible only after it is in the log and in its memtable. Writes become visible in
//!   commit order.
//! - I2: Before an edit makes a record durable outside the log, the whole log up to that record is
//!   durable.
//! - I3: After an error that leaves durability unknown, the engine acknowledges nothing more
//!   ([`errors::poison`]).
//!
//! Concurrency, in lock order: `open` of the [`handle`]; `creating`; the claims of flushes, ascending by keyspace, where a
//! thread waits for them; the leadership of the commits, then its `log`,
//! then its `next`; the catalog; a keyspace's `work`, then its `install`. Outside this order, a list of
//! subcompactions comes before its parts, and the filter state before the slots of tables. All others are leaves. A
//! thread may hold these locks during I/O: `open`, `creating`, the leadership with `log` and `next`, the catalog,
//! `naming`, the log that it syncs, the value log that it writes, the filter state, the reserve, and the slot of a
//! file that it opens. Readers take only the last one, and the short locks of the block cache.

mod admin;
mod archive;
mod catalog;
mod changes;
mod commit;
mod copies;
mod counters;
mod directory;
mod errors;
mod expiry_clock;
mod folds;
mod handle;
mod ids;
mod ingestion;
mod jobs;
mod keyspace;
mod leased_files;
mod locks;
mod observation;
mod reads;
mod recovery;
mod repair;
mod scrub;
mod secondary;
mod snapshots;
mod throttling;
mod transaction;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::gate::Gate;
use crate::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::base::sync::{ArcSwap, Mutex};
use crate::base::{Error, KeyspaceId, Result};
use crate::manifest::Obsolete;
use crate::options::Options;
use crate::table::OpenTables;
use crate::value::OpenValues;

pub use admin::metrics::{Metric, MetricKind, Sample, SampleValue};
pub(crate) use admin::range_estimate::RangeEstimate;
pub use admin::stats::{
    JobStats, KeyspaceStats, LevelStats, PausedFile, StallStats, Stats, ValueFileStats,
    VerifyReport,
};
pub use admin::value_files::{ValueFileReport, ValueFileUse, ValueReferences, ValueRelocation};
pub(crate) use archive::restore_to;
pub use changes::ConsumerStats;
pub(crate) use changes::{ChangeFeed, CommittedBatch, CommittedChange};
pub(crate) use commit::PendingPoint;
pub(crate) use commit::expiring::{Lifetime, Stored};
pub(crate) use commit::write::Write;
pub(crate) use handle::Handle;
pub use ingestion::{TableSummary, TableWriter};
pub(crate) use keyspace::KeyspaceCore;
pub use reads::Near;
pub(crate) use reads::{StateCursor, StateView};
pub(crate) use recovery::destroy::destroy;
pub(crate) use repair::repair;
pub use repair::report::{Loss, ManifestUse, RepairReport, RepairedKeyspace};
pub use scrub::report::{Scrub, ScrubDamage, ScrubProgress, ScrubReport};
pub(crate) use secondary::Secondary;
pub(crate) use snapshots::{HeldPoint, SnapshotPoint};
pub use throttling::memory::MemoryUse;
pub(crate) use transaction::{
    Change, Intent, SavepointId, TRIES_MAX, TransactionCore, TransactionCursor,
};

use catalog::Catalog;
use changes::{CommitNotice, PendingTasks};
use commit::BegunPoint;
use commit::Commits;
use commit::wal::WalChain;
use counters::Counters;
use errors::full_disk::FullDisk;
use errors::poison::Poison;
use errors::reserve::Reserve;
use expiry_clock::ExpiryClock;
use folds::KeptFolds;
use jobs::Background;
use jobs::signal::Signal;
use leased_files::LeasedFiles;
use locks::{Holds, LockTable};
use observation::Observer;
use scrub::Scrubbing;
use snapshots::Snapshots;
use throttling::memory::Memory;
use transaction::PreparedTransactions;

/// A database while it is open.
pub(crate) struct Engine {
    directory: PathBuf,
    options: Options,
    memory: Arc<Memory>,
    tables: Arc<OpenTables>,
    values: Arc<OpenValues>,
    catalog: Catalog,
    chain: WalChain,
    commits: Commits,
    notice: CommitNotice,
    tasks: Arc<PendingTasks>,
    /// The newest sequence number that readers may see.
    visible: AtomicU64,
    /// What a feed of changes has given out or may give out is durable up to here.
    given_out: AtomicU64,
    snapshots: Arc<Snapshots>,
    expiry_clock: ExpiryClock,
    locks: Arc<LockTable>,
    holds: Holds,
    folds: KeptFolds,
    prepared: PreparedTransactions,
    /// By id.
    keyspaces: ArcSwap<Vec<Arc<KeyspaceCore>>>,
    /// Held while a thread opens, creates or drops a keyspace, and while a point is made.
    creating: Arc<Gate>,
    begun_point: BegunPoint,
    /// Held during a sync of the folder.
    naming: Mutex<()>,
    obsolete: Arc<Obsolete>,
    leased_files: LeasedFiles,
    poison: Arc<Poison>,
    access: Access,
    full_disk: FullDisk,
    is_closed: AtomicBool,
    /// What a listener that dropped the last handle leaves to its job to close.
    left: Mutex<Option<handle::Resources>>,
    signal: Signal,
    background: Background,
    reserve: Reserve,
    counters: Arc<Counters>,
    observer: Observer,
    scrubbing: Scrubbing,
    /// A random number that the first backup draws.
    instance: Mutex<Option<u128>>,
}

/// The mode of an open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    ReadWrite,
    /// As `ReadWrite`, by the repair or the restore that has marked the folder as unfinished. Prepared transactions hold
    /// nothing.
    Repair,
    /// The engine writes nothing, not even by jobs.
    ReadOnly,
    /// The same, for one state of a database that another process may write.
    View,
}

impl Engine {
    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    pub(crate) fn path(&self) -> &Path {
        &self.directory
    }

    /// Whether `keyspace` belongs to this database and is not dropped.
    pub(crate) fn owns(&self, keyspace: &Arc<KeyspaceCore>) -> bool {
        self.keyspaces
            .load()
            .iter()
            .any(|own| Arc::ptr_eq(own, keyspace))
    }

    pub(crate) fn prepared_transactions(&self) -> &PreparedTransactions {
        &self.prepared
    }

    /// The name of keyspace `id`; its number if it was dropped.
    fn keyspace_name(&self, id: KeyspaceId) -> String {
        let keyspaces = self.keyspaces.load();
        let found = keyspaces.iter().find(|keyspace| keyspace.id() == id);
        found.map_or_else(|| id.to_string(), |keyspace| keyspace.name().to_string())
    }

    /// Holds the newest state for readers, at the present moment.
    pub(crate) fn hold_snapshot(&self) -> HeldPoint {
        self.snapshots
            .hold(&self.visible, || self.expiry_clock.now())
    }

    /// # Errors
    /// `Closed` once the database is closed.
    #[inline]
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(Error::closed());
        }
        Ok(())
    }

    /// # Errors
    /// `Closed` once the close has begun.
    fn check_cancelled(&self) -> Result<()> {
        if self.signal.is_stopping() {
            return Err(Error::closed());
        }
        Ok(())
    }

    fn is_read_only(&self) -> bool {
        matches!(self.access, Access::ReadOnly | Access::View)
    }

    /// # Errors
    /// `Closed`, or `Poisoned` after an earlier failure: then it is unknown what a copy would hold.
    fn check_copyable(&self) -> Result<()> {
        self.check_open()?;
        self.poison.check()
    }

    /// # Errors
    /// `Closed`, `ReadOnly`, or `Poisoned` after an earlier failure.
    #[inline]
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.check_open()?;
        if self.is_read_only() {
            return Err(Error::read_only());
        }
        self.poison.check()
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

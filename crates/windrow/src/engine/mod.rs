//! Layer 5: a database while it is open.
//!
//! Owns everything that is shared: the catalog (manifest), the log chain, the commit queue, the
//! keyspaces, the counters, and the background jobs. Where to look:
//!
//! - this folder: what everything shares. The [`catalog`] (manifest), the [`keyspace`], the
//!   [`snapshots`], and the [`reads`] of all of them.
//! - [`commit`]: the path of a write into the log, its memtable and the value log.
//! - [`recovery`]: creation, recovery and reopening.
//! - [`jobs`]: the background jobs, which flush, compact and collect garbage.
//! - [`throttling`]: delays and stops of writers, the rate limiter, the memory budget.
//! - [`errors`]: failed jobs, the poisoned database, the full disk and its reserve.
//! - [`admin`]: what an operator calls: statistics, checks, checkpoints, manual compactions.
//!
//! Invariants:
//! - I1: A write is visible only after it is in the log and in its memtable, and writes become
//!   visible in commit order.
//! - I2: Nothing overtakes the log: before an edit makes a record durable outside the log, the whole
//!   log up to that record is durable.
//! - I3: After an error that leaves durability unknown nothing more is acknowledged ([`errors::poison`]).
//!
//! Concurrency, in lock order: the leadership of the commits; the catalog; a keyspace's `work`, then
//! its `install`; everything else is a leaf. Locks held during I/O are the leadership, the catalog,
//! that of the log being made or synced, that of the keyspace being created or dropped, that of the
//! reserve and, while a table is opened for the first time, its slot's; readers take the last only.

mod admin;
mod catalog;
mod commit;
mod errors;
mod ids;
mod jobs;
mod keyspace;
mod reads;
mod recovery;
mod snapshots;
mod throttling;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::base::sync::{ArcSwap, Mutex};
use crate::base::{Error, ErrorKind, Result, SequenceNumber};
use crate::cache::BlockCache;
use crate::manifest::Obsolete;
use crate::options::Options;
use crate::runtime::Workers;
use crate::table::{OpenTables, ScrubClock, TableContext};
use crate::value::OpenValues;
use crate::vfs::LockGuard;

pub use admin::stats::{
    KeyspaceStats, LevelStats, StallStats, Stats, ValueFileStats, VerifyReport,
};
pub use admin::value_files::{ValueFileReport, ValueFileUse, ValueReferences, ValueRelocation};
pub(crate) use commit::write::Write;
pub(crate) use keyspace::KeyspaceCore;
pub(crate) use reads::{StateCursor, StateView};
pub use throttling::memory::MemoryUse;

use admin::stats::Counters;
use catalog::Catalog;
use commit::Commits;
use commit::wal::WalChain;
use errors::full_disk::FullDisk;
use errors::poison::Poison;
use errors::reserve::{self, Reserve};
use jobs::signal::Signal;
use jobs::{Background, filters};
use recovery::open;
use snapshots::Snapshots;
use throttling::memory::Memory;

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
    /// The newest sequence number that readers may see.
    visible: AtomicU64,
    snapshots: Snapshots,
    /// By id.
    keyspaces: ArcSwap<Vec<Arc<KeyspaceCore>>>,
    /// Held while a keyspace is created or dropped.
    creating: Mutex<()>,
    /// Held while the names in the folder are made durable.
    naming: Mutex<()>,
    obsolete: Arc<Obsolete>,
    poison: Arc<Poison>,
    access: Access,
    full_disk: FullDisk,
    is_closed: AtomicBool,
    signal: Signal,
    background: Background,
    reserve: Reserve,
    counters: Arc<Counters>,
}

/// What a database is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    ReadWrite,
    /// Nothing is written at all, not even by jobs.
    ReadOnly,
}

impl Engine {
    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    pub(crate) fn path(&self) -> &Path {
        &self.directory
    }

    /// Whether `keyspace` belongs to this database; not once it is dropped.
    pub(crate) fn owns(&self, keyspace: &Arc<KeyspaceCore>) -> bool {
        self.keyspaces
            .load()
            .iter()
            .any(|own| Arc::ptr_eq(own, keyspace))
    }

    pub(crate) fn keyspace_names(&self) -> Vec<String> {
        let mut names: Vec<_> = self
            .keyspaces
            .load()
            .iter()
            .map(|keyspace| keyspace.name().to_owned())
            .collect();
        names.sort();
        names
    }

    pub(crate) fn acquire_snapshot(&self) -> SequenceNumber {
        self.snapshots.acquire(&self.visible)
    }

    pub(crate) fn release_snapshot(&self, sequence: SequenceNumber) {
        self.snapshots.release(sequence);
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
    /// `Closed` once the database is being closed.
    fn check_cancelled(&self) -> Result<()> {
        if self.signal.is_stopping() {
            return Err(Error::closed());
        }
        Ok(())
    }

    fn is_read_only(&self) -> bool {
        self.access == Access::ReadOnly
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

/// The open database with its workers and its lock; closes when dropped.
pub(crate) struct Handle {
    engine: Arc<Engine>,
    open: Mutex<Open>,
}

/// Whether the database is open, and if not, how closing it went.
enum Open {
    Yes {
        workers: Box<dyn Workers>,
        lock: Option<Box<dyn LockGuard>>,
    },
    No(Result<()>),
}

impl Handle {
    /// Opens the database in `directory` and starts its workers; for writing, on a full disk with the
    /// space of the reserve.
    pub(crate) fn open(directory: &Path, options: Options, access: Access) -> Result<Self> {
        options.validate()?;
        match Self::open_once(directory, options.clone(), access) {
            Err(error)
                if error.kind() == ErrorKind::NoSpace
                    && access == Access::ReadWrite
                    && reserve::give_up_unopened(&*options.vfs, directory) =>
            {
                Self::open_once(directory, options, access)
            }
            outcome => outcome,
        }
    }

    fn open_once(directory: &Path, options: Options, access: Access) -> Result<Self> {
        let counters = Arc::new(Counters::new());
        let poison = Arc::new(Poison::default());
        let obsolete = Arc::new(Obsolete::default());
        let memory = Arc::new(Memory::new(&options));
        let open = match access {
            Access::ReadWrite => open::open,
            Access::ReadOnly => open::open_read_only,
        };
        let opened = open(directory, &options, &memory, &obsolete, &counters, &poison)?;
        let context = TableContext {
            source: options.block_source,
            cache: Arc::new(BlockCache::new(options.cache_bytes)),
            scrub: Arc::new(ScrubClock::default()),
            memory: Arc::clone(&memory.tables),
        };
        let tables = OpenTables::new(
            Arc::clone(&options.vfs),
            directory.to_owned(),
            context,
            options.open_files_max,
        );
        let values = OpenValues::new(
            Arc::clone(&options.vfs),
            directory.to_owned(),
            options.block_source,
            options.open_files_max / 2,
            Arc::clone(&memory.tables.cursors),
        );
        let engine = Arc::new(Engine {
            directory: directory.to_owned(),
            memory,
            tables: Arc::new(tables),
            values: Arc::new(values),
            catalog: opened.catalog,
            chain: opened.chain,
            commits: Commits::new(opened.last_sequence),
            visible: AtomicU64::new(opened.last_sequence),
            snapshots: Snapshots::default(),
            keyspaces: ArcSwap::from_pointee(opened.keyspaces),
            creating: Mutex::new(()),
            naming: Mutex::new(()),
            obsolete,
            poison,
            access,
            full_disk: FullDisk::default(),
            is_closed: AtomicBool::new(false),
            signal: Signal::default(),
            background: Background::default(),
            reserve: Reserve::new(&options.vfs, directory, options.reserve_bytes),
            counters,
            options,
        });
        if access == Access::ReadWrite {
            engine.begin_first_log(opened.last_log)?;
            engine.shorten_chain()?;
            engine.reserve.take();
            engine.note_reserve();
        }
        for keyspace in engine.keyspaces.load().iter() {
            engine.allocate_filters(keyspace, filters::ALL);
            keyspace.refresh_throttle();
        }
        engine.refresh_shared_throttle();
        let runtime = Arc::clone(&engine.options.runtime);
        let work: Arc<dyn crate::runtime::Work> = Arc::<Engine>::clone(&engine);
        let workers = runtime
            .start(work, engine.options.background_threads)
            .map_err(|error| Error::io("start threads for", directory, error))?;
        Ok(Self {
            engine,
            open: Mutex::new(Open::Yes {
                workers,
                lock: opened.lock,
            }),
        })
    }

    #[inline]
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Ends all jobs, makes everything acknowledged durable and releases the lock. Another call
    /// waits for the first and has its outcome.
    ///
    /// # Errors
    /// That of the last sync.
    pub(crate) fn close(&self) -> Result<()> {
        let mut open = self.open.lock();
        let outcome = match std::mem::replace(&mut *open, Open::No(Ok(()))) {
            Open::Yes { workers, lock } => {
                let closed = self.end(workers);
                drop(lock);
                closed
            }
            Open::No(outcome) => outcome,
        };
        let reported = match &outcome {
            Ok(()) => Ok(()),
            Err(error) => Err(error.fraction()),
        };
        *open = Open::No(outcome);
        reported
    }

    /// Ends everything that may change files, in whatever thread it runs, before the lock goes.
    fn end(&self, workers: Box<dyn Workers>) -> Result<()> {
        self.engine.is_closed.store(true, Ordering::Release);
        self.engine.signal.stop();
        drop(workers);
        // Callers run jobs, too.
        self.engine.signal.wait_until_none_runs();
        drop(self.engine.creating.lock());
        let closed = if self.engine.is_read_only() {
            Ok(())
        } else {
            self.engine.close_log()
        };
        self.engine.remove_obsolete();
        self.engine.catalog.close();
        self.engine.tables.close();
        self.engine.values.close();
        closed
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Nobody is left to hear of an error; what was not made durable was never promised to be.
        drop(self.close());
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.engine.fmt(f)
    }
}

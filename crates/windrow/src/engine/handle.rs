//! The open database: its open, its workers, its close.
//!
//! Concurrency: a close holds the lock of `open`, so each further call waits and gets the same outcome. A close waits
//! for all jobs. So what a job calls cannot close: a listener, a compaction filter, a merge operator. A job in which one
//! of these drops the last handle closes the database after its own end. A task that waits for changes is woken at the begin of
//! the close, and the thread that wakes tasks ends behind it, so a waker may close.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::task::{Poll, Waker};

use super::changes::{ChangeFeed, CommitNotice, CommittedChange, PendingTasks};
use super::commit::{BegunPoint, Commits};
use super::counters::Counters;
use super::errors::full_disk::FullDisk;
use super::errors::poison::Poison;
use super::errors::reserve::{self, Reserve};
use super::expiry_clock::ExpiryClock;
use super::folds::KeptFolds;
use super::jobs::Background;
use super::jobs::signal::Signal;
use super::leased_files::LeasedFiles;
use super::locks::{Holds, LockTable};
use super::observation::Observer;
use super::recovery::open::{self, Opened, Parts};
use super::scrub::Scrubbing;
use super::snapshots::Snapshots;
use super::throttling::memory::Memory;
use super::transaction::PreparedTransactions;
use super::{Access, Engine, KeyspaceCore};
use crate::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::base::sync::{ArcSwap, Mutex};
use crate::base::{Error, ErrorKind, Result};
use crate::cache::{BlockCache, MarkClock};
use crate::events::{Event, is_in_listener};
use crate::manifest::Obsolete;
use crate::options::Options;
use crate::runtime::{Work, Workers};
use crate::table::{OpenTables, TableContext, TableFiles};
use crate::value::{OpenValues, ValueContext};
use crate::vfs::LockGuard;

/// The open database with its workers and its lock. It closes when dropped.
pub(crate) struct Handle {
    engine: Arc<Engine>,
    open: Mutex<Open>,
}

/// Whether the database is open; if not, the outcome of the close.
enum Open {
    Yes(Resources),
    No(Result<()>),
}

/// What a close ends.
pub(super) struct Resources {
    /// Those of the open, and those that were added later.
    workers: Vec<Box<dyn Workers>>,
    /// How many workers were asked for in all.
    threads: usize,
    lock: Option<Box<dyn LockGuard>>,
}

impl Handle {
    /// Opens the database in `directory` and starts its workers. An open for writing on a full disk uses
    /// the space of the reserve.
    pub(crate) fn open(directory: &Path, options: Options, access: Access) -> Result<Self> {
        options.validate()?;
        match Self::open_once(directory, options.clone(), access) {
            Err(error)
                if error.kind() == ErrorKind::NoSpace
                    && access != Access::ReadOnly
                    && reserve::release_unopened(&*options.vfs, directory) =>
            {
                Self::open_once(directory, options, access)
            }
            outcome => outcome,
        }
    }

    fn open_once(directory: &Path, options: Options, access: Access) -> Result<Self> {
        #[cfg(feature = "tracing")]
        let _span = super::observation::trace::open_span(directory);
        let start = options.is_observed().then(|| options.runtime.now());
        let parts = Parts {
            directory,
            options: &options,
            memory: Arc::new(Memory::new(&options)),
            obsolete: Arc::default(),
            counters: Arc::new(Counters::new()),
            poison: Arc::default(),
            access,
        };
        let opened = match access {
            Access::ReadWrite | Access::Repair => open::open(&parts)?,
            // A view is not opened: it has a state that was read.
            Access::ReadOnly | Access::View => open::open_read_only(&parts)?,
        };
        let files = OpenFileSets::new(directory, &options, &parts.memory);
        let Parts {
            memory,
            obsolete,
            counters,
            poison,
            ..
        } = parts;
        let (last_log, recovered) = (opened.last_log, opened.recovered);
        let cut = opened.damage.as_ref().map(|damage| Event::HistoryCut {
            damage: damage.message().to_owned(),
            last_sequence: opened.last_sequence,
        });
        let (engine, lock) = Engine::assemble(
            directory,
            options,
            access,
            opened,
            (memory, files),
            (obsolete, counters, poison),
        );
        if let Some(cut) = cut {
            engine.observer.notify(|| cut);
        }
        if matches!(access, Access::ReadWrite | Access::Repair) {
            engine.begin_first_log(last_log)?;
        }
        if let Some(start) = start {
            engine.observer.notify(|| Event::Opened {
                is_new: recovered.is_new,
                logs: recovered.logs,
                log_bytes: recovered.log_bytes,
                entries: engine.memtable_entries(),
                duration: engine.options.runtime.now().saturating_sub(start),
            });
        }
        if !engine.is_read_only() {
            engine.flush_long_chain()?;
            let manifest_bytes = engine.catalog.manifest_bytes();
            let file_bytes = engine.file_bytes();
            engine.reserve.take_first(file_bytes, manifest_bytes);
            engine.note_reserve();
        }
        for keyspace in engine.keyspaces.load().iter() {
            engine.allocate_first_filters(keyspace);
            keyspace.refresh_throttle();
        }
        engine.refresh_shared_throttle();
        if access != Access::Repair {
            engine.restore_prepared()?;
        }
        if engine.is_unlogged() && engine.prepared.count() > 0 {
            let what = "prepared transactions need a log: end them before an open without one";
            return Err(Error::invalid_argument(what));
        }
        let runtime = Arc::clone(&engine.options.runtime);
        let threads = engine.options.background_threads;
        let work: Arc<dyn Work> = Arc::<Engine>::clone(&engine);
        let workers = runtime
            .start(work, threads)
            .map_err(|error| Error::io("start threads for", directory, error))?;
        Ok(Self::new(engine, vec![workers], threads, lock))
    }

    /// A view of a database that another process may write: a state that does not change. `grown` are its keyspaces with tables
    /// that no view had before.
    pub(super) fn view(
        directory: &Path,
        options: Options,
        opened: Opened,
        shared: (Arc<Memory>, OpenFileSets),
        grown: &[Arc<KeyspaceCore>],
    ) -> Result<Self> {
        let parts = (Arc::default(), Arc::new(Counters::new()), Arc::default());
        let (engine, lock) =
            Engine::assemble(directory, options, Access::View, opened, shared, parts);
        for keyspace in grown {
            engine.allocate_first_filters(keyspace);
        }
        engine.restore_prepared()?;
        Ok(Self::new(engine, Vec::new(), 0, lock))
    }

    fn new(
        engine: Arc<Engine>,
        workers: Vec<Box<dyn Workers>>,
        threads: usize,
        lock: Option<Box<dyn LockGuard>>,
    ) -> Self {
        Self {
            engine,
            open: Mutex::new(Open::Yes(Resources {
                workers,
                threads,
                lock,
            })),
        }
    }

    #[inline]
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Lets `count` threads run jobs. Missing ones are started. Threads above that number find no compaction to run.
    ///
    /// # Errors
    /// `InvalidArgument`; `Closed`; `Io` if the system allows no more threads.
    pub(crate) fn set_background_threads(&self, count: usize) -> Result<()> {
        let mut options = self.engine.options.clone();
        options.background_threads = count;
        options.validate()?;
        let mut open = self.open.lock();
        let Open::Yes(resources) = &mut *open else {
            return Err(Error::closed());
        };
        if count > resources.threads {
            let work: Arc<dyn Work> = Arc::<Engine>::clone(&self.engine);
            let started = options
                .runtime
                .start(work, count - resources.threads)
                .map_err(|error| Error::io("start threads for", &self.engine.directory, error))?;
            resources.workers.push(started);
            resources.threads = count;
        }
        self.engine
            .background
            .threads
            .store(count, Ordering::Relaxed);
        self.engine.signal.notify();
        Ok(())
    }

    /// Ends all jobs, makes every acknowledged write durable and releases the lock. A second call waits
    /// for the first and returns its outcome.
    ///
    /// # Errors
    /// That of the last sync or edit; `Poisoned`; `InvalidArgument` in a listener, and in a job of this database.
    pub(crate) fn close(&self) -> Result<()> {
        if is_in_listener() || self.engine.signal.runs_here() {
            let message = "a listener, a compaction filter or a merge operator cannot close a database: another thread must";
            return Err(Error::invalid_argument(message));
        }
        let mut open = self.open.lock();
        let outcome = match std::mem::replace(&mut *open, Open::No(Ok(()))) {
            Open::Yes(resources) => self.engine.end(resources),
            Open::No(outcome) => outcome,
        };
        let reported = Error::duplicate_of(&outcome);
        *open = Open::No(outcome);
        drop(open);
        self.engine.end_tasks();
        reported
    }

    /// As [`Engine::poll_change`].
    pub(crate) fn poll_change(
        &self,
        feed: &mut ChangeFeed,
        waker: &Waker,
    ) -> Poll<Option<Result<CommittedChange>>> {
        self.engine.poll_change(feed, waker)
    }
}

/// The open tables and value files.
#[derive(Debug, Clone)]
pub(super) struct OpenFileSets {
    tables: Arc<OpenTables>,
    values: Arc<OpenValues>,
}

impl OpenFileSets {
    pub(super) fn new(directory: &Path, options: &Options, memory: &Memory) -> Self {
        let clock = Arc::new(MarkClock::new(&options.runtime));
        let files = TableFiles::new(
            Arc::clone(&options.vfs),
            directory.to_owned(),
            options.block_source,
            options.open_files_max,
        );
        let context = TableContext {
            files: Arc::new(files),
            cache: Arc::new(BlockCache::new(options.cache_bytes)),
            clock: Arc::clone(&clock),
            memory: Arc::clone(&memory.tables),
            piece_reads: Arc::default(),
            scans: Arc::default(),
        };
        let values = OpenValues::new(
            Arc::clone(&options.vfs),
            directory.to_owned(),
            ValueContext {
                source: options.block_source,
                clock,
                files: Arc::clone(&memory.tables.tables),
                cursors: Arc::clone(&memory.tables.cursors),
            },
            options.open_files_max / 2,
        );
        Self {
            tables: Arc::new(OpenTables::new(context)),
            values: Arc::new(values),
        }
    }
}

impl Engine {
    /// The engine of an opened database, before it does anything, and the lock of the open.
    fn assemble(
        directory: &Path,
        options: Options,
        access: Access,
        opened: Opened,
        (memory, files): (Arc<Memory>, OpenFileSets),
        (obsolete, counters, poison): (Arc<Obsolete>, Arc<Counters>, Arc<Poison>),
    ) -> (Arc<Self>, Option<Box<dyn LockGuard>>) {
        let expired_by = opened.catalog.with_state(|state| state.expired_by);
        let engine = Arc::new(Self {
            directory: directory.to_owned(),
            expiry_clock: ExpiryClock::new(&options.runtime, expired_by),
            locks: Arc::new(LockTable::new(&memory.locks, options.runtime.random())),
            holds: Holds::new(&memory.transactions),
            folds: KeptFolds::new(&memory.tables.jobs),
            memory,
            tables: files.tables,
            values: files.values,
            catalog: opened.catalog,
            chain: opened.chain,
            commits: Commits::new(opened.last_sequence),
            notice: CommitNotice::default(),
            tasks: Arc::<PendingTasks>::default(),
            given_out: AtomicU64::new(0),
            visible: AtomicU64::new(opened.last_sequence),
            snapshots: Arc::<Snapshots>::default(),
            prepared: PreparedTransactions::default(),
            keyspaces: ArcSwap::from_pointee(opened.keyspaces),
            creating: Arc::default(),
            begun_point: BegunPoint::default(),
            naming: Mutex::new(()),
            obsolete,
            leased_files: LeasedFiles::default(),
            poison,
            access,
            full_disk: FullDisk::default(),
            is_closed: AtomicBool::new(false),
            left: Mutex::new(None),
            signal: Signal::default(),
            background: Background::new(&options),
            reserve: Reserve::new(&options.vfs, directory, options.reserve_bytes),
            counters,
            observer: Observer::new(&options, directory, access),
            scrubbing: Scrubbing::default(),
            instance: Mutex::default(),
            options,
        });
        engine.remove_files(&opened.unnamed);
        (engine, opened.lock)
    }

    /// Entries in all memtables.
    fn memtable_entries(&self) -> u64 {
        let keyspaces = self.keyspaces.load();
        let states = keyspaces.iter().map(|keyspace| keyspace.state_full());
        let entries = states.map(|state| state.memtables().map(|it| it.entries()).sum::<u64>());
        entries.sum()
    }

    /// Ends every thread that may change files, before the lock is released.
    fn end(&self, open: Resources) -> Result<()> {
        let start = self
            .options
            .is_observed()
            .then(|| self.options.runtime.now());
        self.is_closed.store(true, Ordering::Release);
        self.notice.wake();
        self.signal.stop();
        drop(open.workers);
        // Threads of callers run jobs, too.
        self.signal.wait_until_none_runs();
        drop(self.begin_creating());
        let closed = if self.is_read_only() {
            Ok(())
        } else {
            self.end_writing()
        };
        if !self.is_read_only() {
            self.remove_obsolete();
        }
        self.catalog.close();
        // Views share their files.
        if self.access != Access::View {
            self.tables.close();
            self.values.close();
        }
        if let Some(start) = start {
            self.observer.notify(|| Event::Closed {
                error: closed.as_ref().err().map(ToString::to_string),
                duration: self.options.runtime.now().saturating_sub(start),
            });
        }
        self.observer.end();
        drop(open.lock);
        closed
    }

    /// Closes the database if the listener of a job of this thread has dropped the last handle.
    pub(super) fn end_if_left(&self) {
        let left = self.left.lock().take();
        if let Some(open) = left {
            self.end_unwatched(open);
        }
    }

    /// Closes the database where no caller can receive an error. Writes that are not durable were never promised to be.
    fn end_unwatched(&self, open: Resources) {
        drop(self.end(open));
        self.end_tasks();
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let open = std::mem::replace(&mut *self.open.lock(), Open::No(Ok(())));
        let Open::Yes(resources) = open else {
            return;
        };
        if self.engine.signal.runs_here() {
            *self.engine.left.lock() = Some(resources);
        } else {
            self.engine.end_unwatched(resources);
        }
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.engine.fmt(f)
    }
}

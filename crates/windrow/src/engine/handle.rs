//! The open database: its open, its workers, its close.
//!
//! Concurrency: a close holds the lock of `open`, so each further call waits and gets the same outcome.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::commit::Commits;
use super::counters::Counters;
use super::errors::full_disk::FullDisk;
use super::errors::reserve::{self, Reserve};
use super::jobs::signal::Signal;
use super::jobs::{Background, filter_state};
use super::recovery::open::{self, Parts};
use super::snapshots::Snapshots;
use super::throttling::memory::Memory;
use super::{Access, Engine};
use crate::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::base::sync::{ArcSwap, Mutex};
use crate::base::{Error, ErrorKind, Result};
use crate::cache::{BlockCache, MarkClock};
use crate::options::Options;
use crate::runtime::Workers;
use crate::table::{OpenTables, TableContext};
use crate::value::{OpenValues, ValueContext};
use crate::vfs::LockGuard;

/// The open database with its workers and its lock. It closes when dropped.
pub(crate) struct Handle {
    engine: Arc<Engine>,
    open: Mutex<Open>,
}

/// Whether the database is open; if not, the outcome of the close.
enum Open {
    Yes {
        workers: Box<dyn Workers>,
        lock: Option<Box<dyn LockGuard>>,
    },
    No(Result<()>),
}

impl Handle {
    /// Opens the database in `directory` and starts its workers. An open for writing on a full disk uses
    /// the space of the reserve.
    pub(crate) fn open(directory: &Path, options: Options, access: Access) -> Result<Self> {
        options.validate()?;
        match Self::open_once(directory, options.clone(), access) {
            Err(error)
                if error.kind() == ErrorKind::NoSpace
                    && access == Access::ReadWrite
                    && reserve::release_unopened(&*options.vfs, directory) =>
            {
                Self::open_once(directory, options, access)
            }
            outcome => outcome,
        }
    }

    fn open_once(directory: &Path, options: Options, access: Access) -> Result<Self> {
        let parts = Parts {
            directory,
            options: &options,
            memory: Arc::new(Memory::new(&options)),
            obsolete: Arc::default(),
            counters: Arc::new(Counters::new()),
            poison: Arc::default(),
        };
        let opened = match access {
            Access::ReadWrite => open::open(&parts)?,
            Access::ReadOnly => open::open_read_only(&parts)?,
        };
        let Parts {
            memory,
            obsolete,
            counters,
            poison,
            ..
        } = parts;
        let clock = Arc::new(MarkClock::new(&options.runtime));
        let context = TableContext {
            source: options.block_source,
            cache: Arc::new(BlockCache::new(options.cache_bytes)),
            clock: Arc::clone(&clock),
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
            ValueContext {
                source: options.block_source,
                clock,
                files: Arc::clone(&memory.tables.tables),
                cursors: Arc::clone(&memory.tables.cursors),
            },
            options.open_files_max / 2,
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
            engine.flush_long_chain()?;
            let manifest_bytes = engine.catalog.manifest_bytes();
            let file_bytes = engine.file_bytes();
            engine.reserve.take_first(file_bytes, manifest_bytes);
            engine.note_reserve();
        }
        for keyspace in engine.keyspaces.load().iter() {
            engine.allocate_filters(keyspace, filter_state::ALL);
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

    /// Ends all jobs, makes every acknowledged write durable and releases the lock. A second call waits
    /// for the first and returns its outcome.
    ///
    /// # Errors
    /// That of the last sync or edit; `Poisoned`.
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
            Err(error) => Err(error.duplicate()),
        };
        *open = Open::No(outcome);
        reported
    }

    /// Ends every thread that may change files, before the lock is released.
    fn end(&self, workers: Box<dyn Workers>) -> Result<()> {
        self.engine.is_closed.store(true, Ordering::Release);
        self.engine.signal.stop();
        drop(workers);
        // Threads of callers run jobs, too.
        self.engine.signal.wait_until_none_runs();
        drop(self.engine.creating.lock());
        let closed = if self.engine.is_read_only() {
            Ok(())
        } else {
            self.engine.end_writing()
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
        // No caller can receive an error here. Writes that are not durable were never promised to be.
        drop(self.close());
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.engine.fmt(f)
    }
}

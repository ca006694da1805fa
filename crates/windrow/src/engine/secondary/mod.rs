//! Readers of a database that another process may write.
//!
//! - [`follower`] reads manifest and logs, from where it has read them before.
//! - [`lease`] keeps the files alive that this process needs; [`leased_vfs`] knows why a file may be missing.
//! - Here: a [`Secondary`] turns each state into a view, an engine that writes nothing and whose state never changes. So all
//!   reads of a view agree, whatever the writer does, and nothing in the read path knows of other processes.
//!
//! The views share memtables, open files and the cache. Each holds its place in the manifest until it is closed.
//!
//! Concurrency: one thread catches up at a time. The [`Keeper`] renews the lease on a thread of its own, as long as the
//! secondary or one of its views lives.

mod follower;
pub(in crate::engine) mod lease;
mod leased_vfs;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::catalog::Catalog;
use super::commit::value_log::ValueLog;
use super::commit::wal::WalChain;
use super::counters::Counters;
use super::handle::{Handle, OpenFileSets};
use super::jobs::signal::Signal;
use super::recovery::open::{Opened, build_keyspace};
use super::throttling::memory::Memory;
use crate::base::sync::Mutex;
use crate::base::{Error, Result};
use crate::manifest::{ManifestPosition, Obsolete, Version};
use crate::options::Options;
use crate::runtime::{Work, Workers};
use crate::vfs::LockGuard;
use follower::Follower;
use lease::{HeldPlace, Lease, RENEW_INTERVAL};
use leased_vfs::LeasedVfs;

/// A reader of a database that another process may write.
#[derive(Debug)]
pub(crate) struct Secondary {
    directory: PathBuf,
    options: Options,
    memory: Arc<Memory>,
    obsolete: Arc<Obsolete>,
    followed: Mutex<Followed>,
    newest: Mutex<Arc<Handle>>,
}

/// What is read so far.
#[derive(Debug)]
struct Followed {
    keeper: Arc<Keeper>,
    /// The files of the keeper's lease.
    files: OpenFileSets,
    /// `None` after an error: the next pass begins anew.
    follower: Option<Follower>,
}

impl Secondary {
    /// Reads the database in `directory`, whoever has it open.
    ///
    /// # Errors
    /// `InvalidArgument`; `NotFound`; `Corruption`; `Unsupported`; `NoSpace`, and `Io`, also if the lease cannot be written.
    pub(crate) fn open(directory: &Path, options: Options) -> Result<Arc<Self>> {
        options.validate()?;
        let memory = Arc::new(Memory::new(&options));
        let obsolete = Arc::<Obsolete>::default();
        // A folder without a database stays as it is.
        if crate::manifest::read_current(&*options.vfs, directory)?.is_none() {
            return Err(super::recovery::open::no_database(directory));
        }
        let (keeper, files) = begin(directory, &options, &memory)?;
        let directory = directory.to_owned();
        let follower = Follower::open(&options.vfs, &directory, &memory, &obsolete)?;
        let view = view(&directory, &options, &memory, &files, &follower, &keeper)?;
        keeper.renew(follower.manifest().position())?;
        Ok(Arc::new(Self {
            newest: Mutex::new(Arc::new(view)),
            directory,
            options,
            memory,
            obsolete,
            followed: Mutex::new(Followed {
                keeper,
                files,
                follower: Some(follower),
            }),
        }))
    }

    /// The newest state that was read.
    pub(crate) fn newest(&self) -> Arc<Handle> {
        Arc::clone(&self.newest.lock())
    }

    /// Reads what was committed since, and returns the newest state.
    ///
    /// # Errors
    /// `Corruption`; `Io`; `FellBehind` if the writer takes this reader for dead meanwhile. The next call tries again.
    pub(crate) fn catch_up(&self) -> Result<Arc<Handle>> {
        let mut followed = self.followed.lock();
        if followed.keeper.core.lease.is_gone() {
            let (keeper, files) = begin(&self.directory, &self.options, &self.memory)?;
            let following = followed.keeper.core.following.lock().take();
            *keeper.core.following.lock() = following;
            *followed = Followed {
                keeper,
                files,
                follower: None,
            };
        }
        let Followed {
            keeper,
            files,
            follower,
        } = &mut *followed;
        let known = follower.take();
        let caught_up = match known {
            Some(mut known) => known.catch_up()?.map(|is_news| (known, is_news)),
            None => None,
        };
        let (known, is_news) = match caught_up {
            Some(caught_up) => caught_up,
            None => {
                let (vfs, memory) = (&self.options.vfs, &self.memory);
                let anew = Follower::open(vfs, &self.directory, memory, &self.obsolete)?;
                (anew, true)
            }
        };
        if is_news {
            let view = view(
                &self.directory,
                &self.options,
                &self.memory,
                files,
                &known,
                keeper,
            )?;
            *self.newest.lock() = Arc::new(view);
        }
        let renewed = keeper.renew(known.manifest().position());
        *follower = Some(known);
        renewed?;
        Ok(self.newest())
    }

    /// Catches up by itself after each `interval`, until this is dropped.
    pub(crate) fn follow(self: &Arc<Self>, interval: Duration) {
        let core = Arc::clone(&self.followed.lock().keeper.core);
        *core.following.lock() = Some((interval, Arc::downgrade(self)));
        core.signal.notify();
    }
}

/// Takes a lease, and opens the files that it keeps.
fn begin(
    directory: &Path,
    options: &Options,
    memory: &Memory,
) -> Result<(Arc<Keeper>, OpenFileSets)> {
    let keeper = Keeper::start(directory, options)?;
    let vfs = Arc::new(LeasedVfs {
        vfs: Arc::clone(&options.vfs),
        lease: Arc::clone(&keeper.core.lease),
    });
    let files = OpenFileSets::new(directory, &options.clone().with_vfs(vfs), memory);
    Ok((keeper, files))
}

/// The state of `follower` as an engine.
fn view(
    directory: &Path,
    options: &Options,
    memory: &Arc<Memory>,
    files: &OpenFileSets,
    follower: &Follower,
    keeper: &Arc<Keeper>,
) -> Result<Handle> {
    let manifest = follower.manifest();
    let mut keyspaces = Vec::new();
    for (&id, keyspace) in &manifest.state().keyspaces {
        let core = build_keyspace(id, keyspace, Version::default(), options, memory)?;
        if let Some(tree) = follower.tree(id) {
            core.show(&tree.memtable, &tree.version);
        }
        let value_logs = follower.value_logs(id).into_iter();
        let value_logs = value_logs.map(|log| (log.file, log.last_sequence));
        *core.value_log.lock() = ValueLog::of_state(value_logs);
        keyspaces.push(Arc::new(core));
    }
    let chain = WalChain::default();
    for log in follower.logs() {
        let sequences = (log.first_sequence, log.last_sequence);
        chain.push_replayed(log.number, sequences.0, log.length, sequences.1);
    }
    let position = manifest.position();
    let opened = Opened {
        lock: Some(Box::new(ViewLock {
            _held: keeper.core.lease.hold(position),
            _keeper: Arc::clone(keeper),
        })),
        unnamed: Vec::new(),
        catalog: Catalog::read_only(
            Arc::clone(&options.vfs),
            Arc::clone(manifest.state()),
            position.offset,
            Arc::new(Counters::new()),
            Arc::default(),
        ),
        chain,
        keyspaces,
        last_sequence: follower.last_sequence(),
        last_log: None,
    };
    let shared = (Arc::clone(memory), files.clone());
    Handle::view(directory, options.clone(), opened, shared)
}

/// What a view has in place of the database's lock.
#[derive(Debug)]
struct ViewLock {
    /// Before the keeper, so that the lease that it drops holds nothing.
    _held: HeldPlace,
    _keeper: Arc<Keeper>,
}

impl LockGuard for ViewLock {}

/// Renews the lease until it is dropped.
#[derive(Debug)]
struct Keeper {
    core: Arc<KeeperCore>,
    workers: Mutex<Option<Box<dyn Workers>>>,
}

#[derive(Debug)]
struct KeeperCore {
    options: Options,
    lease: Arc<Lease>,
    signal: Signal,
    /// What the lease needs if nobody holds a state.
    newest: Mutex<ManifestPosition>,
    renewed: Mutex<Duration>,
    /// How often to catch up, and when that was done last.
    following: Mutex<Option<(Duration, Weak<Secondary>)>>,
    caught_up: Mutex<Duration>,
}

impl Keeper {
    fn start(directory: &Path, options: &Options) -> Result<Arc<Self>> {
        let runtime = &options.runtime;
        let lease = Lease::take(&options.vfs, directory, || runtime.random())?;
        let core = Arc::new(KeeperCore {
            options: options.clone(),
            lease: Arc::new(lease),
            signal: Signal::default(),
            newest: Mutex::default(),
            renewed: Mutex::new(runtime.now()),
            following: Mutex::default(),
            caught_up: Mutex::new(runtime.now()),
        });
        let work: Arc<dyn Work> = Arc::<KeeperCore>::clone(&core);
        let workers = runtime
            .start(work, 1)
            .map_err(|error| Error::io("start a thread for", directory, error))?;
        Ok(Arc::new(Self {
            core,
            workers: Mutex::new(Some(workers)),
        }))
    }

    fn renew(&self, newest: ManifestPosition) -> Result<()> {
        *self.core.newest.lock() = newest;
        self.core.renew()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.core.signal.stop();
        drop(self.workers.lock().take());
    }
}

impl KeeperCore {
    fn renew(&self) -> Result<()> {
        *self.renewed.lock() = self.options.runtime.now();
        let newest = *self.newest.lock();
        self.lease.renew(newest)
    }

    /// The secondary that is to catch up by itself, if its time has come.
    fn due_follower(&self, now: Duration) -> Option<Arc<Secondary>> {
        let following = self.following.lock();
        let (interval, secondary) = following.as_ref()?;
        let mut caught_up = self.caught_up.lock();
        if now.saturating_sub(*caught_up) < *interval {
            return None;
        }
        *caught_up = now;
        secondary.upgrade()
    }
}

impl Work for KeeperCore {
    fn run_one(&self) -> bool {
        let now = self.options.runtime.now();
        if let Some(secondary) = self.due_follower(now) {
            // The next call of a user reports what fails here.
            drop(secondary.catch_up());
            return true;
        }
        let renewed = *self.renewed.lock();
        let is_due = now.saturating_sub(renewed) >= RENEW_INTERVAL;
        if is_due {
            drop(self.renew());
        }
        is_due
    }

    fn wait(&self) -> bool {
        let interval = self
            .following
            .lock()
            .as_ref()
            .map(|(interval, _)| *interval);
        let interval = interval.unwrap_or(RENEW_INTERVAL).min(RENEW_INTERVAL);
        let generation = self.signal.generation();
        if self.signal.is_stopping() {
            return false;
        }
        self.signal.wait_after(generation, interval);
        !self.signal.is_stopping()
    }
}

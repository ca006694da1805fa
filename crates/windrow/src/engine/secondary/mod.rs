//! Readers of a database that another process may write.
//!
//! - [`follower`] reads manifest and logs, from where it has read them before; [`entries`] has what they hold.
//! - [`lease`] keeps the files alive that this process needs, and [`keeper`] renews it; [`leased_vfs`] knows why a file may be
//!   missing.
//! - Here: a [`Secondary`] turns each state into a view, an engine that writes nothing and whose state never changes. So all
//!   reads of a view agree, whatever the writer does, and nothing in the read path knows of other processes.
//!
//! The views share memtables, open files and the cache. Each holds its place in the manifest until it is closed.
//!
//! Concurrency, in lock order: `followed`, which a catch-up holds during I/O, then `newest`. Views are dropped without either:
//! the last one ends threads.

mod entries;
mod follower;
mod keeper;
pub(in crate::engine) mod lease;
mod leased_vfs;

use std::collections::BTreeMap;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::catalog::Catalog;
use super::commit::value_log::ValueLog;
use super::commit::wal::WalChain;
use super::counters::Counters;
use super::handle::{Handle, OpenFileSets};
use super::jobs::signal::Signal;
use super::recovery::folder::{check_finished, list, no_database};
use super::recovery::open::{Opened, Recovered, build_keyspace};
use super::throttling::memory::Memory;
use super::{Access, KeyspaceCore};
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::base::sync::{Mutex, Shared};
use crate::base::{Error, ErrorKind, KeyspaceId, Result};
use crate::manifest::{KeyspaceState, Obsolete, Version, read_current};
use crate::options::{Options, RecordedOptions};
use crate::runtime::{Work, Workers};
use crate::vfs::LockGuard;
use follower::Follower;
use keeper::Keeper;
use lease::{HeldPlace, lost_message};
use leased_vfs::LeasedVfs;

/// The shortest interval of [`Secondary::follow`].
const INTERVAL_MIN: Duration = Duration::from_millis(1);

/// A reader of a database that another process may write.
#[derive(Debug)]
pub(crate) struct Secondary {
    directory: PathBuf,
    options: Options,
    memory: Arc<Memory>,
    obsolete: Arc<Obsolete>,
    followed: Mutex<Followed>,
    newest: Mutex<Arc<Handle>>,
    following: Mutex<Option<Following>>,
}

/// What is read so far.
#[derive(Debug)]
struct Followed {
    keeper: Arc<Keeper>,
    /// The options of views: their file system knows of the keeper's lease.
    options: Options,
    files: OpenFileSets,
    /// `None` after an error: the next pass begins anew.
    follower: Option<Follower>,
    /// The keyspaces of the newest view.
    shown: BTreeMap<KeyspaceId, Shown>,
}

/// A keyspace of a view, and what it was made of besides its tree.
#[derive(Debug, Clone)]
struct Shown {
    core: Arc<KeyspaceCore>,
    options: RecordedOptions,
    operator: Option<String>,
}

impl Shown {
    /// Whether the keyspace still is as the manifest describes it, except for its tree.
    fn is_like(&self, keyspace: &KeyspaceState) -> bool {
        *self.core.name() == keyspace.name
            && self.options == keyspace.options
            && self.operator == keyspace.merge_operator
    }
}

impl Secondary {
    /// Reads the database in `directory`, whoever has it open.
    ///
    /// # Errors
    /// `InvalidArgument`; `NotFound`; `Corruption`; `Unsupported`; `NoSpace`, and `Io`, also if the lease cannot be written.
    pub(crate) fn open(directory: &Path, options: Options) -> Result<Arc<Self>> {
        options.validate()?;
        // A folder without a database stays as it is.
        if read_current(&*options.vfs, directory)?.is_none() {
            return Err(no_database(directory));
        }
        check_finished(directory, &list(&*options.vfs, directory)?, Access::View)?;
        let memory = Arc::new(Memory::new(&options));
        let obsolete = Arc::<Obsolete>::default();
        let mut followed = Followed::begin(directory, &options, &memory)?;
        let opened = Follower::open(&options.vfs, directory, &memory, &obsolete);
        let mut follower = opened.map_err(|error| followed.explain(error))?;
        let view = followed.view(directory, &memory, &follower)?;
        follower.note_view();
        followed.keeper.renew(follower.manifest().position())?;
        followed.follower = Some(follower);
        Ok(Arc::new(Self {
            newest: Mutex::new(Arc::new(view)),
            directory: directory.to_owned(),
            options,
            memory,
            obsolete,
            followed: Mutex::new(followed),
            following: Mutex::default(),
        }))
    }

    /// The newest state that was read.
    pub(crate) fn newest(&self) -> Arc<Handle> {
        Arc::clone(&self.newest.lock())
    }

    /// Reads what was committed since, and returns the newest state.
    ///
    /// # Errors
    /// Those of an open; `FellBehind` if the writer takes this reader for dead meanwhile. The next call begins anew.
    pub(crate) fn catch_up(&self) -> Result<Arc<Handle>> {
        // Dropped behind the guards.
        let mut before: Option<Followed> = None;
        let mut view_before: Option<Arc<Handle>> = None;
        let mut followed = self.followed.lock();
        if followed.keeper.lease().is_gone() {
            let next = Followed::begin(&self.directory, &self.options, &self.memory)?;
            before = Some(mem::replace(&mut *followed, next));
        }
        let read = self.read_on(&mut followed);
        let (mut follower, is_news) = read.map_err(|error| followed.explain(error))?;
        if is_news || self.newest().engine().check_open().is_err() {
            let view = followed.view(&self.directory, &self.memory, &follower)?;
            follower.note_view();
            view_before = Some(mem::replace(&mut *self.newest.lock(), Arc::new(view)));
        }
        // What the old view held is given up with the next renewal at the latest.
        let renewed = followed.keeper.renew(follower.manifest().position());
        followed.follower = Some(follower);
        drop(followed);
        drop((before, view_before));
        renewed?;
        Ok(self.newest())
    }

    /// Lets the follower catch up, or begins anew. Returns it and whether it has read anything.
    fn read_on(&self, followed: &mut Followed) -> Result<(Follower, bool)> {
        if let Some(mut known) = followed.follower.take()
            && let Some(is_news) = known.catch_up()?
        {
            return Ok((known, is_news));
        }
        followed.shown.clear();
        let (vfs, memory) = (&self.options.vfs, &self.memory);
        let anew = Follower::open(vfs, &self.directory, memory, &self.obsolete)?;
        Ok((anew, true))
    }

    /// Catches up by itself after each `interval`, until this is dropped.
    ///
    /// # Errors
    /// `Io` if the system allows no thread.
    pub(crate) fn follow(self: &Arc<Self>, interval: Duration) -> Result<()> {
        let mut following = self.following.lock();
        let interval = interval.max(INTERVAL_MIN);
        if let Some(following) = &*following {
            following.core.set_interval(interval);
            return Ok(());
        }
        let core = Arc::new(FollowingCore {
            secondary: Arc::downgrade(self),
            interval_nanos: AtomicU64::new(0),
            signal: Signal::default(),
            options: self.options.clone(),
            caught_up: Mutex::new(self.options.runtime.now()),
        });
        core.set_interval(interval);
        let work: Arc<dyn Work> = Arc::<FollowingCore>::clone(&core);
        let workers = self.options.runtime.start(work, 1);
        let workers =
            workers.map_err(|error| Error::io("start a thread for", &self.directory, error))?;
        *following = Some(Following {
            core,
            workers: Some(workers),
        });
        Ok(())
    }
}

impl Followed {
    /// Takes a lease, and opens the files that it keeps.
    fn begin(directory: &Path, options: &Options, memory: &Memory) -> Result<Self> {
        let keeper = Keeper::start(directory, options)?;
        let vfs = Arc::new(LeasedVfs {
            vfs: Arc::clone(&options.vfs),
            lease: Arc::clone(keeper.lease()),
        });
        let options = options.clone().with_vfs(vfs);
        let files = OpenFileSets::new(directory, &options, memory);
        Ok(Self {
            keeper,
            options,
            files,
            follower: None,
            shown: BTreeMap::new(),
        })
    }

    /// `error`, or its reason if that is the loss of the lease.
    fn explain(&self, error: Error) -> Error {
        if self.keeper.lease().is_gone() && error.kind() != ErrorKind::FellBehind {
            error
                .with_kind(ErrorKind::FellBehind)
                .context(lost_message())
        } else {
            error
        }
    }

    /// The state of `follower` as an engine. Keyspaces to which nothing has happened are those of the view before.
    fn view(
        &mut self,
        directory: &Path,
        memory: &Arc<Memory>,
        follower: &Follower,
    ) -> Result<Handle> {
        let manifest = follower.manifest();
        let mut shown = BTreeMap::new();
        let mut grown = Vec::new();
        for (&id, keyspace) in &manifest.state().keyspaces {
            let Some(tree) = follower.tree(id) else {
                continue;
            };
            let known = self.shown.get(&id);
            if let Some(known) = known.filter(|it| !tree.is_changed && it.is_like(keyspace)) {
                shown.insert(id, known.clone());
                continue;
            }
            let core = build_keyspace(id, keyspace, Version::default(), &self.options, memory)?;
            core.show(&tree.memtable, &tree.version);
            let value_logs = follower.value_logs(id).into_iter();
            let value_logs = value_logs.map(|log| (log.file, log.last_sequence));
            *core.value_log.lock() = ValueLog::of_state(value_logs);
            let core = Arc::new(core);
            let has_same_tables = known.is_some_and(|known| {
                Shared::ptr_eq(&known.core.state_full().version, &tree.version)
            });
            if !has_same_tables {
                grown.push(Arc::clone(&core));
            }
            let options = keyspace.options.clone();
            let operator = keyspace.merge_operator.clone();
            shown.insert(
                id,
                Shown {
                    core,
                    options,
                    operator,
                },
            );
        }
        let chain = WalChain::default();
        for log in follower.logs() {
            chain.push_replayed(
                log.number,
                log.first_sequence,
                log.length,
                log.last_sequence,
            );
        }
        let position = manifest.position();
        let opened = Opened {
            lock: Some(Box::new(ViewLock {
                _held: self.keeper.lease().hold(position),
                _keeper: Arc::clone(&self.keeper),
            })),
            unnamed: Vec::new(),
            catalog: Catalog::read_only(
                Arc::clone(&self.options.vfs),
                Arc::clone(manifest.state()),
                position.offset,
                Arc::new(Counters::new()),
                Arc::default(),
            ),
            chain,
            keyspaces: shown.values().map(|it| Arc::clone(&it.core)).collect(),
            last_sequence: follower.last_sequence(),
            last_log: None,
            damage: None,
            recovered: Recovered::default(),
        };
        self.shown = shown;
        let shared = (Arc::clone(memory), self.files.clone());
        Handle::view(directory, self.options.clone(), opened, shared, &grown)
    }
}

/// What a view has in place of the database's lock.
#[derive(Debug)]
struct ViewLock {
    _held: HeldPlace,
    /// Renews the lease while there are views.
    _keeper: Arc<Keeper>,
}

impl LockGuard for ViewLock {}

/// The thread of [`Secondary::follow`]. It ends when this is dropped.
#[derive(Debug)]
struct Following {
    core: Arc<FollowingCore>,
    workers: Option<Box<dyn Workers>>,
}

impl Drop for Following {
    fn drop(&mut self) {
        self.core.signal.stop();
        drop(self.workers.take());
    }
}

#[derive(Debug)]
struct FollowingCore {
    secondary: Weak<Secondary>,
    interval_nanos: AtomicU64,
    signal: Signal,
    options: Options,
    /// When it has caught up last.
    caught_up: Mutex<Duration>,
}

impl FollowingCore {
    fn set_interval(&self, interval: Duration) {
        let nanos = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
        self.interval_nanos.store(nanos, Ordering::Release);
        self.signal.notify();
    }

    fn interval(&self) -> Duration {
        Duration::from_nanos(self.interval_nanos.load(Ordering::Acquire))
    }
}

impl Work for FollowingCore {
    fn run_one(&self) -> bool {
        let now = self.options.runtime.now();
        let mut caught_up = self.caught_up.lock();
        if now.saturating_sub(*caught_up) < self.interval() {
            return false;
        }
        *caught_up = now;
        drop(caught_up);
        let Some(secondary) = self.secondary.upgrade() else {
            return false;
        };
        // The next call of a user reports what fails here.
        drop(secondary.catch_up());
        true
    }

    fn wait(&self) -> bool {
        let generation = self.signal.generation();
        if self.signal.is_stopping() {
            return false;
        }
        self.signal.wait_after(generation, self.interval());
        !self.signal.is_stopping()
    }
}

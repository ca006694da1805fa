//! What all processes of a soak share: folders, options, the numbers that the writer has acknowledged, and reports.
//!
//! The parent speaks to a child by its standard input: `f` fills the disk, `e` empties it, and the end asks the child to end.
//! So children end with their parent. A child reports on its standard output, a line at a time.
//!
//! Concurrency: the threads of a child share a [`Stage`]; one more thread hears the parent.

use super::full_disk::Space;
use crate::stress::lanes::{Counts, LANES, with_lists};
use crate::{Random, combine};
use clap::{Args, ValueEnum};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use windrow::runtime::{Runtime, Threads};
use windrow::vfs::{self, File, OpenMode, OsVfs, Vfs};
use windrow::{ErrorKind, Options, Result};

/// How often a child looks whether it is to end.
const TICK: Duration = Duration::from_millis(10);

/// What a full disk has left at first.
const FULL_BYTES: u32 = 96 << 10;

/// What a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Role {
    /// Writes, archives, and serves the feed.
    Writer,
    /// Follows the writer and compares.
    FirstReader,
    /// The same.
    SecondReader,
    /// Makes, purges and restores backups.
    Backups,
    /// Keeps a second database equal by the feed.
    Replica,
}

impl Role {
    /// All of them. The writer is the first to start and the last to end.
    pub(super) const ALL: [Self; 5] = [
        Self::Writer,
        Self::FirstReader,
        Self::SecondReader,
        Self::Backups,
        Self::Replica,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Writer => "writer",
            Self::FirstReader => "first-reader",
            Self::SecondReader => "second-reader",
            Self::Backups => "backups",
            Self::Replica => "replica",
        }
    }
}

/// A process of a soak.
#[derive(Debug, Clone, Args)]
pub struct Child {
    pub(super) role: Role,
    pub(super) folder: PathBuf,
    pub(super) seed: u64,
    /// How many processes had this role before.
    pub(super) life: u64,
    /// Milliseconds between two backups.
    pub(super) interval: u64,
    /// The writer writes no batch.
    #[arg(long)]
    pub(super) quiet: bool,
}

/// What a process has done once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// The writer has opened the database and compared it.
    Opened,
    /// A write was refused for want of space.
    Refused,
    /// The database was verified while it was open.
    Verified,
    /// A secondary has caught up, and was compared.
    CaughtUp,
    /// A state of a secondary was compared again, after seconds.
    ComparedAgain,
    /// A state of a secondary that nobody has read was compared after seconds.
    ComparedLate,
    /// A scan of a state has taken seconds.
    Scanned,
    /// A backup was made.
    BackedUp,
    /// Old backups were purged.
    Purged,
    /// A backup was restored and compared.
    Restored,
    /// Changes were archived.
    Archived,
    /// A state between two backups was restored and compared.
    RestoredBetween,
    /// Changes of the feed are durable in the replica, and acknowledged.
    Acknowledged,
    /// The replica was compared.
    ReplicaCompared,
    /// The consumer of the replica has fallen behind.
    FellBehind,
    /// The replica has copied a whole state.
    Copied,
}

impl Event {
    /// All of them, with their names in reports.
    pub(super) const ALL: [(Self, &str); 16] = [
        (Self::Opened, "opens compared"),
        (Self::Refused, "writes refused on a full disk"),
        (Self::Verified, "verified while open"),
        (Self::CaughtUp, "catch-ups compared"),
        (Self::ComparedAgain, "held states compared again"),
        (
            Self::ComparedLate,
            "held states compared for the first time",
        ),
        (Self::Scanned, "slow scans compared"),
        (Self::BackedUp, "backups"),
        (Self::Purged, "purges"),
        (Self::Restored, "backups restored and compared"),
        (Self::Archived, "archivings"),
        (
            Self::RestoredBetween,
            "states between restored and compared",
        ),
        (Self::Acknowledged, "acknowledgements of the feed"),
        (Self::ReplicaCompared, "comparisons of the replica"),
        (Self::FellBehind, "consumer of the feed fallen behind"),
        (Self::Copied, "whole states copied to the replica"),
    ];
}

/// What a child reports to its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Report {
    Event(Event),
    /// The last state of a process that was asked to end.
    Last(Counts),
    /// The replica has all changes.
    Settled,
}

impl Report {
    fn line(self) -> String {
        match self {
            Self::Event(event) => {
                let (_, name) = Event::ALL[event as usize];
                format!("{name}\n")
            }
            Self::Last([one, other]) => format!("last {one} {other}\n"),
            Self::Settled => "settled\n".to_owned(),
        }
    }

    /// The report of a line; `None` if a kill has cut it.
    pub(super) fn parse(line: &str) -> Option<Self> {
        if let Some(counts) = line.strip_prefix("last ") {
            let (one, other) = counts.split_once(' ')?;
            return Some(Self::Last([one.parse().ok()?, other.parse().ok()?]));
        }
        if line == "settled" {
            return Some(Self::Settled);
        }
        let mut events = Event::ALL.into_iter();
        events
            .find(|(_, name)| *name == line)
            .map(|(event, _)| Self::Event(event))
    }
}

/// What the threads of a child share.
#[derive(Debug)]
pub(super) struct Stage {
    folder: PathBuf,
    pub(super) seed: u64,
    /// Fixes the random numbers of this process.
    life_seed: u64,
    pub(super) interval: Duration,
    pub(super) acknowledged: Acknowledged,
    pub(super) space: Space,
    is_over: Arc<AtomicBool>,
    pub(super) clock: Threads,
}

impl Stage {
    /// The stage of `child`, which ends with its standard input.
    pub(super) fn new(child: &Child) -> Self {
        let stage = Self {
            folder: child.folder.clone(),
            seed: child.seed,
            life_seed: combine(combine(child.seed, child.role as u64 + 1000), child.life),
            interval: Duration::from_millis(child.interval),
            acknowledged: Acknowledged::open(&child.folder).expect("the parent has made it"),
            space: Space::new(),
            is_over: Arc::default(),
            clock: Threads::default(),
        };
        stage.hear_parent();
        stage
    }

    fn hear_parent(&self) {
        let (space, is_over) = (self.space.clone(), Arc::clone(&self.is_over));
        let hear = move || {
            let mut byte = [0];
            while let Ok(1) = io::stdin().read(&mut byte) {
                match byte[0] {
                    b'f' => space.set_left(FULL_BYTES),
                    _ => space.set_plenty(),
                }
            }
            is_over.store(true, Ordering::SeqCst);
        };
        // Nobody waits for it: the process ends without it.
        thread::Builder::new()
            .spawn(hear)
            .expect("the system allows a thread");
    }

    /// The folder of the database.
    pub(super) fn db(&self) -> PathBuf {
        db_folder(&self.folder)
    }

    /// Another folder, or a file.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A folder that is not there. A process that was killed may have left it.
    pub(super) fn removed(&self, name: &str) -> PathBuf {
        removed(self.path(name))
    }

    /// The source of the random numbers of one thread.
    pub(super) fn random(&self, thread: u64) -> Random {
        Random::new(combine(self.life_seed, thread))
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// Sleeps, at most until the end.
    pub(super) fn sleep(&self, duration: Duration) {
        let until = self.clock.now() + duration;
        while let Some(left) = until.checked_sub(self.clock.now())
            && !left.is_zero()
            && !self.is_over()
        {
            self.clock.sleep(left.min(TICK));
        }
    }

    pub(super) fn report(&self, report: Report) {
        let mut pipe = io::stdout().lock();
        let written = pipe.write_all(report.line().as_bytes());
        if written.and_then(|()| pipe.flush()).is_err() {
            // Without a parent there is nothing to do.
            self.is_over.store(true, Ordering::SeqCst);
        }
    }

    pub(super) fn happened(&self, event: Event) {
        self.report(Report::Event(event));
    }

    /// Runs one of the threads of the process. An error or a panic ends all.
    pub(super) fn guarded(&self, body: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut guard = EndsAll {
            is_over: &self.is_over,
            is_fine: false,
        };
        let outcome = body();
        guard.is_fine = outcome.is_ok();
        outcome
    }
}

/// Ends all threads of a process, unless all is fine.
struct EndsAll<'a> {
    is_over: &'a AtomicBool,
    is_fine: bool,
}

impl Drop for EndsAll<'_> {
    fn drop(&mut self) {
        if !self.is_fine {
            self.is_over.store(true, Ordering::SeqCst);
        }
    }
}

/// `None` if the disk was full.
pub(super) fn unless_full<T>(outcome: Result<T>) -> Result<Option<T>> {
    match outcome {
        Err(error) if error.kind() == ErrorKind::NoSpace => Ok(None),
        outcome => outcome.map(Some),
    }
}

/// The folder of the database of a soak in `folder`.
pub(super) fn db_folder(folder: &Path) -> PathBuf {
    folder.join("db")
}

/// Removes the folder `path`, if it is there.
pub(super) fn removed(path: PathBuf) -> PathBuf {
    #[expect(
        clippy::disallowed_methods,
        reason = "what a killed process has left is no database"
    )]
    match std::fs::remove_dir_all(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            panic!("{} cannot be removed: {error}", path.display())
        }
        _ => path,
    }
}

/// The numbers of batches that the writer has acknowledged, in a file that all processes read.
#[derive(Debug)]
pub(super) struct Acknowledged(Arc<dyn File>);

impl Acknowledged {
    const NAME: &str = "acknowledged";

    pub(super) fn create(folder: &Path) -> io::Result<Self> {
        let made = Self(OsVfs.create(&folder.join(Self::NAME))?);
        for lane in 0..LANES {
            made.set(lane, 0)?;
        }
        Ok(made)
    }

    fn open(folder: &Path) -> io::Result<Self> {
        let path = folder.join(Self::NAME);
        Ok(Self(OsVfs.open(&path, OpenMode::ReadWrite)?))
    }

    pub(super) fn set(&self, lane: usize, count: u64) -> io::Result<()> {
        let bytes = [count.to_le_bytes(), (!count).to_le_bytes()].concat();
        vfs::write_all_at(&*self.0, &bytes, 16 * lane as u64)
    }

    /// Panics if the file cannot be read.
    pub(super) fn get(&self) -> Counts {
        std::array::from_fn(|lane| {
            loop {
                let mut bytes = [[0; 8]; 2];
                vfs::read_exact_at(&*self.0, bytes.as_flattened_mut(), 16 * lane as u64)
                    .expect("the file is there");
                let [count, inverse] = bytes.map(u64::from_le_bytes);
                // Otherwise it was just being written.
                if count == !inverse {
                    return count;
                }
            }
        })
    }
}

/// Sizes so small that flushes, compactions and garbage collections are always at work.
pub(super) fn options() -> Options {
    let mut options = Options::default();
    options.max_wal_bytes = 512 << 10;
    options.cache_bytes = 256 << 10;
    options.memory_budget = 16 << 20;
    options.status_interval = Duration::ZERO;
    options.keyspace.memtable_bytes = 64 << 10;
    options.keyspace.file_bytes = 32 << 10;
    options.keyspace.base_bytes = 128 << 10;
    options.keyspace.size_ratio = 4.0;
    options.keyspace.block_bytes = 1 << 10;
    options.keyspace.max_space_amp = 1.4;
    with_lists(options)
}

//! Entries that expire: what readers see while the clock is turned, what leaves the disk, and what is refused.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]

mod batches;
#[path = "../common/mod.rs"]
mod common;
mod files;
mod handles;
mod loads;
mod model;
mod operators;
mod reads;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use windrow::runtime::{Runtime, Threads, Work, Workers};
use windrow::{Db, Expiry, KeyspaceOptions, Options};

/// Threads with a clock that the test turns.
#[derive(Debug, Default)]
struct TurnedClock {
    threads: Threads,
    milliseconds: AtomicU64,
}

impl TurnedClock {
    fn at(milliseconds: u64) -> Arc<Self> {
        let clock = Self::default();
        clock.turn_to(milliseconds);
        Arc::new(clock)
    }

    fn turn_to(&self, milliseconds: u64) {
        self.milliseconds.store(milliseconds, Ordering::SeqCst);
    }
}

impl Runtime for TurnedClock {
    fn now(&self) -> Duration {
        self.threads.now()
    }

    fn unix_time(&self) -> Duration {
        Duration::from_millis(self.milliseconds.load(Ordering::SeqCst))
    }

    fn sleep(&self, duration: Duration) {
        self.threads.sleep(duration);
    }

    fn random(&self) -> u64 {
        self.threads.random()
    }

    fn start(&self, work: Arc<dyn Work>, count: usize) -> std::io::Result<Box<dyn Workers>> {
        self.threads.start(work, count)
    }

    fn step_instead_of_waiting(&self, work: &dyn Work) -> bool {
        self.threads.step_instead_of_waiting(work)
    }
}

/// Small memtables, files and blocks.
fn tiny() -> KeyspaceOptions {
    let mut options = KeyspaceOptions::default();
    options.memtable_bytes = 16 << 10;
    options.file_bytes = 8 << 10;
    options.base_bytes = 32 << 10;
    options.block_bytes = 512;
    options.size_ratio = 3.0;
    options
}

fn options(clock: &Arc<TurnedClock>) -> Options {
    let mut options = Options::default().with_runtime(Arc::<TurnedClock>::clone(clock));
    options.keyspace = tiny();
    options
}

fn open(folder: &Path, clock: &Arc<TurnedClock>) -> Db {
    Db::open(folder, options(clock)).unwrap()
}

fn milliseconds(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// The expiry at this time.
fn at(milliseconds: u64) -> Expiry {
    Expiry::At(SystemTime::UNIX_EPOCH + Duration::from_millis(milliseconds))
}

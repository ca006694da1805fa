//! Layer 1: threads, the clock and randomness as the engine sees them.
//!
//! [`Threads`] is the real runtime. The stress tests use one without threads: background work runs only
//! when the test steps it, or instead of a writer's wait, so a seed determines the whole history.
//!
//! Concurrency: all threads of a database share a runtime.

mod threads;

use std::fmt::Debug;
use std::io;
use std::sync::Arc;
use std::time::Duration;

pub use threads::Threads;

/// Background work for a runtime's workers.
pub trait Work: Send + Sync {
    /// Runs one job if one is due; returns whether one was. Never panics and never blocks on
    /// another job.
    fn run_one(&self) -> bool;

    /// Blocks until a job may be due; returns false when the workers must end.
    fn wait(&self) -> bool;
}

/// Running workers; dropping it joins them, unless a worker drops it, of whatever owner: then they end by themselves. The
/// owner first makes [`Work::wait`] return false.
pub trait Workers: Send + Sync + Debug {}

/// Threads, clock and randomness.
pub trait Runtime: Send + Sync + Debug {
    /// Time since an arbitrary fixed origin; never goes back.
    fn now(&self) -> Duration;

    /// The time of the system's clock since the start of 1970. It may go back.
    fn unix_time(&self) -> Duration;

    /// Blocks the calling thread for `duration`.
    fn sleep(&self, duration: Duration);

    /// A random number; no security is claimed. The numbers of two runtimes differ: by them a backup knows whether it has
    /// the same open of a database before it.
    fn random(&self) -> u64;

    /// Starts `count` workers that each repeat `while work.wait() { work.run_one(); }`; fewer if the system
    /// allows no more.
    ///
    /// # Errors
    /// The system allows no worker.
    fn start(&self, work: Arc<dyn Work>, count: usize) -> io::Result<Box<dyn Workers>>;

    /// The engine calls this, without any lock held, before it waits for background work. A runtime with
    /// threads returns false, and the caller waits. A runtime without threads runs one job of `work` and
    /// returns true; it panics if none is due, since the wait would never end.
    fn step_instead_of_waiting(&self, work: &dyn Work) -> bool;
}

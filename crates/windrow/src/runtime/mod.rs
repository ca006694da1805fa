//! Layer 1: threads, the clock and randomness as the engine sees them.
//!
//! [`Threads`] is the real one. The tests use a runtime with no threads at all: background work
//! happens only where the test steps it, or where a writer would have to wait for it, so that a
//! seed fixes the whole history.
//!
//! Concurrency: a runtime is shared by every thread of a database.

mod threads;

use std::fmt::Debug;
use std::io;
use std::sync::Arc;
use std::time::Duration;

pub use threads::Threads;

/// Background work that a runtime's workers carry out.
pub trait Work: Send + Sync {
    /// Runs one job if one is due; returns whether one was. Never panics and never blocks on
    /// another job.
    fn run_one(&self) -> bool;

    /// Blocks until a job may be due; returns false when the workers are to end.
    fn wait(&self) -> bool;
}

/// Running workers; dropping it joins them. The owner first makes [`Work::wait`] return false.
pub trait Workers: Send + Sync + Debug {}

/// Threads, clock and randomness.
pub trait Runtime: Send + Sync + Debug {
    /// Time since an arbitrary fixed origin; never goes back.
    fn now(&self) -> Duration;

    /// Blocks the calling thread for `duration`.
    fn sleep(&self, duration: Duration);

    /// A random number; no security is claimed.
    fn random(&self) -> u64;

    /// Starts `count` workers, each of which repeats `while work.wait() { work.run_one(); }`;
    /// fewer where the system allows no more.
    ///
    /// # Errors
    /// Not one worker could be started.
    fn start(&self, work: Arc<dyn Work>, count: usize) -> io::Result<Box<dyn Workers>>;

    /// Called in place of waiting for background work, without any lock held. A runtime without
    /// threads runs one job of `work` and returns true, and panics when none is due, since the wait
    /// would then never end. A runtime with threads returns false: the caller waits.
    fn step_instead_of_waiting(&self, work: &dyn Work) -> bool;
}

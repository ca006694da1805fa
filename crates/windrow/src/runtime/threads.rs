//! The real runtime: operating-system threads and the monotonic clock.
//!
//! Concurrency: threads share the clock and the random numbers without a lock. Dropping the workers joins them, unless a
//! worker drops them: it cannot join itself, and of two databases whose workers close each other, each would wait for the
//! other for ever.

#![expect(
    clippy::disallowed_methods,
    reason = "this file wraps threads and clocks for the engine"
)]

use super::{Runtime, Work, Workers};
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::base::sync::thread_local;
use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

thread_local! {
    /// Whether this thread is a worker, of any database.
    static IS_WORKER: Cell<bool> = Cell::default();
}

/// Threads of the operating system.
#[derive(Debug)]
pub struct Threads {
    origin: Instant,
    random: AtomicU64,
}

impl Default for Threads {
    fn default() -> Self {
        Self {
            origin: Instant::now(),
            random: AtomicU64::new(RandomState::new().hash_one(0)),
        }
    }
}

impl Runtime for Threads {
    fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    fn unix_time(&self) -> Duration {
        // A clock before 1970 shows its start.
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.unwrap_or_default()
    }

    fn sleep(&self, duration: Duration) {
        thread::sleep(duration);
    }

    fn random(&self) -> u64 {
        // SplitMix64: a counter, mixed.
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let state = self.random.fetch_add(STEP, Ordering::Relaxed);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn start(&self, work: Arc<dyn Work>, count: usize) -> io::Result<Box<dyn Workers>> {
        let mut workers = ThreadWorkers(Vec::with_capacity(count));
        for index in 0..count {
            let work = Arc::clone(&work);
            let worker = thread::Builder::new()
                .name(format!("windrow-{index}"))
                .spawn(move || {
                    IS_WORKER.with(|is_worker| is_worker.set(true));
                    while work.wait() {
                        work.run_one();
                    }
                });
            match worker {
                Ok(worker) => workers.0.push(worker),
                Err(error) if workers.0.is_empty() => return Err(error),
                Err(_) => break,
            }
        }
        Ok(Box::new(workers))
    }

    fn step_instead_of_waiting(&self, _: &dyn Work) -> bool {
        false
    }
}

/// Threads that are joined on drop, outside of workers.
#[derive(Debug)]
struct ThreadWorkers(Vec<thread::JoinHandle<()>>);

impl Workers for ThreadWorkers {}

impl Drop for ThreadWorkers {
    fn drop(&mut self) {
        if IS_WORKER.with(Cell::get) {
            return;
        }
        for worker in self.0.drain(..) {
            // A job that panicked was caught and reported by the engine.
            drop(worker.join());
        }
    }
}

#[cfg(test)]
mod tests;

//! A runtime whose threads shuttle schedules.
//!
//! The clock advances a little at each reading, and by the whole duration of a sleep. Otherwise a sleep only yields to
//! other threads.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use shuttle::thread::{self, JoinHandle};
use windrow::runtime::{Runtime, Work, Workers};

/// Threads of shuttle, and a clock that is a number.
#[derive(Debug, Default)]
pub(crate) struct ScheduledRuntime {
    nanos: AtomicU64,
}

impl ScheduledRuntime {
    /// Turns the clock on by `duration`.
    pub(crate) fn turn(&self, duration: Duration) {
        self.advance(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    }

    fn advance(&self, nanos: u64) -> u64 {
        self.nanos.fetch_add(nanos, Ordering::Relaxed) + nanos
    }
}

impl Runtime for ScheduledRuntime {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.advance(1000))
    }

    fn unix_time(&self) -> Duration {
        self.now()
    }

    fn sleep(&self, duration: Duration) {
        self.turn(duration);
        thread::yield_now();
    }

    fn random(&self) -> u64 {
        self.advance(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn start(&self, work: Arc<dyn Work>, count: usize) -> io::Result<Box<dyn Workers>> {
        let worker = || {
            let work = Arc::clone(&work);
            thread::spawn(move || {
                while work.wait() {
                    work.run_one();
                }
            })
        };
        let workers = (0..count).map(|_| worker()).collect();
        Ok(Box::new(ScheduledWorkers(workers)))
    }

    fn step_instead_of_waiting(&self, _: &dyn Work) -> bool {
        false
    }
}

/// Threads that are joined on drop.
#[derive(Debug)]
struct ScheduledWorkers(Vec<JoinHandle<()>>);

impl Workers for ScheduledWorkers {}

impl Drop for ScheduledWorkers {
    fn drop(&mut self) {
        for worker in self.0.drain(..) {
            // A job that panicked was caught and reported by the engine.
            drop(worker.join());
        }
    }
}

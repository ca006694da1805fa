//! A runtime without threads: the test steps background work, and a writer that would wait for work runs it. The
//! clock and the random numbers come from a seed.
//!
//! Concurrency: threads may share the runtime, but only one thread repeats a history exactly.

use crate::Random;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use windrow::runtime::{Runtime, Work, Workers};

/// What the system's clock shows at first.
pub(crate) const UNIX_TIME_START: Duration = Duration::from_secs(1_000_000);

/// A runtime that runs one job per step. Clones are handles of the same runtime.
#[derive(Clone)]
pub struct SteppedRuntime {
    state: Arc<Mutex<State>>,
}

struct State {
    clock: Duration,
    /// The time since 1970. Nothing but the test moves it.
    unix_time: Duration,
    random: Random,
    /// Started work that has not ended, oldest first.
    works: Vec<(u64, Arc<dyn Work>)>,
    next_id: u64,
    steps: u64,
}

impl SteppedRuntime {
    /// A runtime whose clock and random numbers `seed` fixes.
    pub fn new(seed: u64) -> Self {
        Self {
            state: Arc::new(Mutex::new(State {
                clock: Duration::from_secs(1),
                unix_time: UNIX_TIME_START,
                random: Random::new(seed),
                works: Vec::new(),
                next_id: 0,
                steps: 0,
            })),
        }
    }

    /// Runs one job if one is due; returns whether one was.
    pub fn step(&self) -> bool {
        let works = self.lock_state().works.clone();
        for (_, work) in works {
            if work.run_one() {
                self.lock_state().steps += 1;
                return true;
            }
        }
        false
    }

    /// Runs jobs until none is due; returns their number.
    ///
    /// # Panics
    /// After `limit` jobs, since endless background work is a fault.
    pub fn run_until_idle(&self, limit: usize) -> usize {
        for count in 0..=limit {
            if !self.step() {
                return count;
            }
        }
        panic!("background work remains after {limit} jobs");
    }

    /// The number of jobs that [`step`](Self::step) or waiting writers ran.
    pub fn steps(&self) -> u64 {
        self.lock_state().steps
    }

    /// Advances the clock by `duration`.
    pub fn advance(&self, duration: Duration) {
        self.lock_state().clock += duration;
    }

    /// Sets the time since 1970, which may go back.
    pub fn set_unix_time(&self, time: Duration) {
        self.lock_state().unix_time = time;
    }

    fn lock_state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for SteppedRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock_state();
        f.debug_struct("SteppedRuntime")
            .field("clock", &state.clock)
            .field("steps", &state.steps)
            .field("works", &state.works.len())
            .finish_non_exhaustive()
    }
}

impl Runtime for SteppedRuntime {
    fn now(&self) -> Duration {
        let mut state = self.lock_state();
        let passed = Duration::from_nanos(100 + state.random.below(10_000));
        state.clock += passed;
        state.clock
    }

    fn unix_time(&self) -> Duration {
        self.lock_state().unix_time
    }

    fn sleep(&self, duration: Duration) {
        self.advance(duration);
    }

    fn random(&self) -> u64 {
        self.lock_state().random.next_u64()
    }

    fn start(&self, work: Arc<dyn Work>, _: usize) -> io::Result<Box<dyn Workers>> {
        let mut state = self.lock_state();
        let id = state.next_id;
        state.next_id += 1;
        state.works.push((id, work));
        Ok(Box::new(SteppedWorkers {
            runtime: self.clone(),
            id,
        }))
    }

    fn step_instead_of_waiting(&self, work: &dyn Work) -> bool {
        assert!(
            work.run_one(),
            "a thread waits for background work and none is due: it would wait forever"
        );
        self.lock_state().steps += 1;
        true
    }
}

/// Work that the runtime steps until this is dropped.
#[derive(Debug)]
struct SteppedWorkers {
    runtime: SteppedRuntime,
    id: u64,
}

impl Workers for SteppedWorkers {}

impl Drop for SteppedWorkers {
    fn drop(&mut self) {
        // The work is dropped after the lock is free: it may own what uses this runtime.
        let mut ended = Vec::new();
        {
            let works = &mut self.runtime.lock_state().works;
            if let Some(index) = works.iter().position(|(id, _)| *id == self.id) {
                ended.push(works.remove(index));
            }
        }
        drop(ended);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    struct Jobs(AtomicUsize);

    impl Work for Jobs {
        fn run_one(&self) -> bool {
            let due = self.0.load(Ordering::Relaxed);
            self.0.store(due.saturating_sub(1), Ordering::Relaxed);
            due > 0
        }

        fn wait(&self) -> bool {
            unreachable!("no thread waits")
        }
    }

    #[test]
    fn steps_run_work_until_its_workers_are_dropped() {
        let runtime = SteppedRuntime::new(1);
        let jobs = Arc::new(Jobs(AtomicUsize::new(3)));
        let workers = runtime
            .start(Arc::clone(&jobs) as Arc<dyn Work>, 2)
            .unwrap();
        assert!(runtime.step());
        assert!(runtime.step_instead_of_waiting(&*jobs));
        assert_eq!(runtime.run_until_idle(10), 1);
        assert_eq!(runtime.steps(), 3);
        jobs.0.store(1, Ordering::Relaxed);
        drop(workers);
        assert!(!runtime.step());
        assert_eq!(Arc::strong_count(&jobs), 1);
    }

    #[test]
    #[should_panic(expected = "wait forever")]
    fn a_wait_without_due_work_panics() {
        SteppedRuntime::new(1).step_instead_of_waiting(&Jobs(AtomicUsize::new(0)));
    }

    #[test]
    fn a_seed_fixes_clock_and_numbers() {
        let history = |seed| {
            let runtime = SteppedRuntime::new(seed);
            let before = runtime.now();
            runtime.sleep(Duration::from_secs(1));
            let after = runtime.now();
            assert!(after > before + Duration::from_secs(1));
            (before, after, runtime.random())
        };
        assert_eq!(history(7), history(7));
        assert_ne!(history(7), history(8));
    }
}

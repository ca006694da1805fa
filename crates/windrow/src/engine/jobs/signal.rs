//! How threads wait for background work, and workers for something to do.
//!
//! One generation number stands for "something changed": a job became due, or one ended. A worker
//! that finds nothing due notes the generation it looked at and sleeps until there is another, so no
//! wake-up is lost between looking and sleeping.
//!
//! Concurrency: one lock, held for a few instructions.

use std::time::Duration;

use crate::base::sync::{Condvar, Mutex};

#[derive(Debug, Default)]
struct State {
    generation: u64,
    /// The newest generation at which nothing was due.
    quiet: Option<u64>,
    running: usize,
    stopping: bool,
}

/// Tells workers and waiters that something changed.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    state: Mutex<State>,
    changed: Condvar,
}

impl Signal {
    /// Something changed: a job may be due, or a wait may be over.
    pub(crate) fn notify(&self) {
        self.state.lock().generation += 1;
        self.changed.notify_all();
    }

    /// The present generation, to be read before looking for what [`Self::wait_after`] waits for.
    pub(crate) fn generation(&self) -> u64 {
        self.state.lock().generation
    }

    /// Blocks until something has changed since `generation`, at the latest after `timeout`.
    pub(crate) fn wait_after(&self, generation: u64, timeout: Duration) {
        let state = self.state.lock();
        if state.generation == generation {
            drop(self.changed.wait_timeout(state, timeout));
        }
    }

    /// Blocks a worker until a job may be due, at the latest after `timeout`; false when it is to
    /// end.
    pub(crate) fn wait_for_work(&self, timeout: Duration) -> bool {
        let state = self.state.lock();
        if !state.stopping && state.quiet == Some(state.generation) {
            return !self.changed.wait_timeout(state, timeout).stopping;
        }
        !state.stopping
    }

    /// Blocks while jobs are running and nothing has changed since `generation`, at the latest until
    /// `timeout` is over. Returns whether nothing has changed and nothing runs any more.
    pub(crate) fn wait_until_quiet(&self, generation: u64, timeout: Duration) -> bool {
        let mut state = self.state.lock();
        if state.generation == generation && state.running > 0 {
            state = self.changed.wait_timeout(state, timeout);
        }
        state.generation == generation && state.running == 0
    }

    /// Makes all workers end. Whoever waits for them learns of it.
    pub(crate) fn stop(&self) {
        let mut state = self.state.lock();
        state.stopping = true;
        state.generation += 1;
        drop(state);
        self.changed.notify_all();
    }

    /// Blocks until no job is running. None begins after [`Self::stop`].
    pub(crate) fn wait_until_none_runs(&self) {
        let mut state = self.state.lock();
        while state.running > 0 {
            state = self.changed.wait(state);
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.state.lock().stopping
    }

    /// Counts a job that begins; the guard counts its end and notifies. `None` once stopped: what
    /// runs then runs no more when the database is closed.
    pub(crate) fn begin_job(&self) -> Option<RunningJob<'_>> {
        let mut state = self.state.lock();
        if state.stopping {
            return None;
        }
        state.running += 1;
        Some(RunningJob {
            signal: self,
            end: End::Changed,
        })
    }
}

/// A job that is running, or a look for one.
#[derive(Debug)]
pub(crate) struct RunningJob<'a> {
    signal: &'a Signal,
    end: End,
}

/// What the end of a job says.
#[derive(Debug)]
enum End {
    /// It has changed something.
    Changed,
    /// It has changed nothing.
    Unchanged,
    /// It has changed nothing, and at this generation nothing was due.
    Quiet(u64),
}

impl RunningJob<'_> {
    /// Ends a look for any job, which found nothing due at `generation`.
    pub(crate) fn end_quietly(mut self, generation: u64) {
        self.end = End::Quiet(generation);
    }

    /// Ends a look for one kind of job; others may be due.
    pub(crate) fn end_unchanged(mut self) {
        self.end = End::Unchanged;
    }
}

impl Drop for RunningJob<'_> {
    fn drop(&mut self) {
        let mut state = self.signal.state.lock();
        state.running -= 1;
        match self.end {
            End::Changed => state.generation += 1,
            End::Unchanged => {}
            End::Quiet(generation) => state.quiet = state.quiet.max(Some(generation)),
        }
        // An end without a change matters only to those who wait until nothing runs.
        let wakes = matches!(self.end, End::Changed) || state.running == 0;
        drop(state);
        if wakes {
            self.signal.changed.notify_all();
        }
    }
}

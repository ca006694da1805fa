//! The wake-ups between workers, and threads that wait for background work.
//!
//! A generation number counts changes: a job became due, or a job ended. A worker that finds no job
//! notes the generation that it looked at, and sleeps until the next one. So no wake-up is lost
//! between the look and the sleep.
//!
//! Concurrency: one lock, held for a few instructions.

use std::cell::RefCell;
use std::ptr;
use std::time::Duration;

use crate::base::sync::{Condvar, Mutex, thread_local};

thread_local! {
    /// The signals of the jobs that this thread runs, by address. At the end of a thread it may be gone already.
    static RUNNING_HERE: RefCell<Vec<usize>> = RefCell::default();
}

#[derive(Debug, Default)]
struct State {
    generation: u64,
    /// The newest generation at which nothing was due.
    quiet: Option<u64>,
    running: usize,
    stopping: bool,
}

/// Notifies workers and waiting threads of changes.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    state: Mutex<State>,
    changed: Condvar,
}

impl Signal {
    /// Notifies of a change: a job may be due, or a wait may be over.
    pub(crate) fn notify(&self) {
        self.state.lock().generation += 1;
        self.changed.notify_all();
    }

    /// The current generation. Read it before checking the condition that [`Self::wait_after`] waits for.
    pub(crate) fn generation(&self) -> u64 {
        self.state.lock().generation
    }

    /// Blocks until a change after `generation`, or for `timeout`.
    pub(crate) fn wait_after(&self, generation: u64, timeout: Duration) {
        let state = self.state.lock();
        if state.generation == generation {
            drop(self.changed.wait_timeout(state, timeout));
        }
    }

    /// Blocks a worker until a job may be due, or for `timeout`. Returns false if the worker must end.
    pub(crate) fn wait_for_work(&self, timeout: Duration) -> bool {
        let state = self.state.lock();
        if !state.stopping && state.quiet == Some(state.generation) {
            return !self.changed.wait_timeout(state, timeout).stopping;
        }
        !state.stopping
    }

    /// Blocks while jobs run and nothing has changed since `generation`, for at most `timeout`. Returns
    /// whether nothing has changed and no job runs.
    pub(crate) fn wait_until_quiet(&self, generation: u64, timeout: Duration) -> bool {
        let mut state = self.state.lock();
        if state.generation == generation && state.running > 0 {
            state = self.changed.wait_timeout(state, timeout);
        }
        state.generation == generation && state.running == 0
    }

    /// Ends all workers and wakes all waiting threads.
    pub(crate) fn stop(&self) {
        let mut state = self.state.lock();
        state.stopping = true;
        state.generation += 1;
        drop(state);
        self.changed.notify_all();
    }

    /// Blocks until no job runs. None begins after [`Self::stop`].
    pub(crate) fn wait_until_none_runs(&self) {
        let mut state = self.state.lock();
        while state.running > 0 {
            state = self.changed.wait(state);
        }
    }

    /// Whether this thread runs a job.
    pub(crate) fn runs_here(&self) -> bool {
        RUNNING_HERE
            .try_with(|own| own.borrow().contains(&self.address()))
            .unwrap_or(false)
    }

    fn address(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.state.lock().stopping
    }

    /// Counts a job that begins; the guard counts its end and notifies. `None` after `stop`, so no job
    /// runs while the database closes.
    pub(crate) fn begin_job(&self) -> Option<RunningJob<'_>> {
        let mut state = self.state.lock();
        if state.stopping {
            return None;
        }
        state.running += 1;
        drop(state);
        RUNNING_HERE
            .try_with(|own| own.borrow_mut().push(self.address()))
            .ok();
        Some(RunningJob {
            signal: self,
            end: End::Changed,
        })
    }
}

/// A running job, or a search for one.
#[derive(Debug)]
pub(crate) struct RunningJob<'a> {
    signal: &'a Signal,
    end: End,
}

/// The effect of a job.
#[derive(Debug)]
enum End {
    /// It has changed something.
    Changed,
    /// It has changed nothing.
    Unchanged,
    /// It has changed nothing, and no job was due at this generation.
    Quiet(u64),
}

impl RunningJob<'_> {
    /// Ends a search for any job; none was due at `generation`.
    pub(crate) fn end_quietly(mut self, generation: u64) {
        self.end = End::Quiet(generation);
    }

    /// Ends a search for one kind of job; others may be due.
    pub(crate) fn end_unchanged(mut self) {
        self.end = End::Unchanged;
    }
}

impl Drop for RunningJob<'_> {
    fn drop(&mut self) {
        RUNNING_HERE
            .try_with(|own| {
                let mut own = own.borrow_mut();
                let newest = own.iter().rposition(|it| *it == self.signal.address());
                newest.map(|position| own.swap_remove(position));
            })
            .ok();
        let mut state = self.signal.state.lock();
        state.running -= 1;
        match self.end {
            End::Changed => state.generation += 1,
            End::Unchanged => {}
            End::Quiet(generation) => state.quiet = state.quiet.max(Some(generation)),
        }
        // Without a change only threads that wait for the last job need the wake-up.
        let wakes = matches!(self.end, End::Changed) || state.running == 0;
        drop(state);
        if wakes {
            self.signal.changed.notify_all();
        }
    }
}

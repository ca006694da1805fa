//! A kind of job that has failed: the error, for whoever needs the job, and a rest.
//!
//! Merges are looked at by keyspace, so that what one cannot do, others and flushes still can; all
//! other jobs together.
//!
//! Concurrency: one lock, held for a few instructions.

use std::time::Duration;

use super::Engine;
use crate::base::sync::Mutex;
use crate::base::sync::atomic::Ordering;
use crate::base::{Error, ErrorKind, Result};

/// How long jobs rest after a failure.
const REST: Duration = Duration::from_secs(1);

/// The last failure of one kind of job.
#[derive(Debug, Default)]
pub(crate) struct Failure(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Failures are numbered from 1.
    number: u64,
    last: Option<Error>,
    /// Such jobs rest until then.
    rest_until: Duration,
}

impl Failure {
    /// # Errors
    /// The last error, if it came after failure `number`.
    pub(super) fn check_since(&self, number: u64) -> Result<()> {
        let state = self.0.lock();
        match &state.last {
            Some(error) if state.number > number => Err(error.share()),
            _ => Ok(()),
        }
    }

    pub(super) fn is_resting(&self, now: Duration) -> bool {
        let state = self.0.lock();
        state.last.is_some() && now < state.rest_until
    }

    /// Lets such jobs be tried again at once; returns whether they had failed.
    fn forget(&self) -> bool {
        self.0.lock().last.take().is_some()
    }
}

impl Engine {
    /// Keeps the error of a failed job and lets its kind rest. Only what leaves durability unknown ends
    /// writing.
    pub(super) fn note_failure(&self, failure: &Failure, error: Error) {
        if matches!(error.kind(), ErrorKind::Poisoned) {
            self.poison.set(&error);
        }
        let number = self.background.failures.fetch_add(1, Ordering::AcqRel) + 1;
        let mut state = failure.0.lock();
        state.number = number;
        state.rest_until = self.options.runtime.now() + REST;
        state.last = Some(error);
    }

    /// How many jobs have failed.
    pub(super) fn failures(&self) -> u64 {
        self.background.failures.load(Ordering::Acquire)
    }

    /// # Errors
    /// The error of a job of any kind that came after failure `number`.
    pub(super) fn check_failures_since(&self, number: u64) -> Result<()> {
        self.background.failure.check_since(number)?;
        let keyspaces = self.keyspaces.load();
        let mut merges = keyspaces.iter().map(|keyspace| &keyspace.failure);
        merges.try_for_each(|failure| failure.check_since(number))
    }

    /// Lets jobs that have failed be tried again at once.
    pub(super) fn retry_failed_jobs(&self) {
        let mut had_failed = self.background.failure.forget();
        for keyspace in self.keyspaces.load().iter() {
            had_failed |= keyspace.failure.forget();
        }
        if had_failed {
            self.signal.notify();
        }
    }
}

//! The failures of jobs: the error, for threads that need the job, and a pause before the next try.
//!
//! Compactions and garbage collections fail by keyspace, so other keyspaces and flushes continue. All other jobs fail
//! together. The upper files of a failed compaction and the value logs of a failed garbage collection pause longer than
//! other jobs, and longer each time. So damage or a full disk that stops one job does not delay others. Statistics name
//! them. All of this is in memory only: after an open every job is tried again.
//!
//! Concurrency: one lock, held for a few instructions. [`Backoffs`] are in a keyspace's `work`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::base::sync::Mutex;
use crate::base::sync::atomic::Ordering;
use crate::base::{Error, ErrorKind, FileNumber, Result};
use crate::engine::Engine;
use crate::engine::admin::stats::PausedFile;
use crate::engine::counters::micros;
use crate::value::LogSummary;

/// The pause of jobs after a failure.
const BACKOFF: Duration = Duration::from_secs(1);

/// The pause of the files of a job after its first failure: longer than that of jobs, so that other
/// files get their turn.
const FILE_BACKOFF: Duration = Duration::from_secs(2);

/// The longest pause of files.
const FILE_BACKOFF_MAX: Duration = Duration::from_secs(15 * 60);

/// The files of failed jobs, each with its pause.
#[derive(Debug, Default)]
pub(crate) struct Backoffs(BTreeMap<FileNumber, Backoff>);

#[derive(Debug, Default)]
struct Backoff {
    until: Duration,
    /// The failures since the last success.
    failures: u32,
    /// The last of them.
    error: String,
}

impl Backoff {
    fn length(&self) -> Duration {
        let doublings = self.failures.saturating_sub(1).min(16);
        FILE_BACKOFF
            .saturating_mul(1 << doublings)
            .min(FILE_BACKOFF_MAX)
    }
}

impl Backoffs {
    /// Notes that a job of `files` has failed with `error`. Each pauses for twice the last pause, at most
    /// [`FILE_BACKOFF_MAX`].
    pub(in crate::engine) fn note_failure(
        &mut self,
        files: &[FileNumber],
        error: &Error,
        now: Duration,
    ) {
        for file in files {
            let rest = self.0.entry(*file).or_default();
            rest.failures = rest.failures.saturating_add(1);
            rest.until = now + rest.length();
            rest.error = error.to_string();
        }
    }

    /// The files that have failed and that `is_there` confirms, as statistics show them at `now`.
    pub(in crate::engine) fn report(
        &self,
        now: Duration,
        is_there: impl Fn(FileNumber) -> bool,
    ) -> Vec<PausedFile> {
        let there = self.0.iter().filter(|(file, _)| is_there(**file));
        let report = |(file, rest): (&FileNumber, &Backoff)| PausedFile {
            file: *file,
            failures: rest.failures,
            pause_micros: micros(rest.until.saturating_sub(now)),
            error: rest.error.clone(),
        };
        there.map(report).collect()
    }

    /// Notes that a job of `files` has succeeded.
    pub(in crate::engine) fn note_success(&mut self, files: &[FileNumber]) {
        for file in files {
            self.0.remove(file);
        }
    }

    pub(in crate::engine) fn is_paused(&self, file: FileNumber, now: Duration) -> bool {
        self.0.get(&file).is_some_and(|rest| now < rest.until)
    }

    /// The files that pause at `now`.
    pub(in crate::engine) fn paused(&self, now: Duration) -> BTreeSet<FileNumber> {
        let files = self.0.keys().copied();
        files.filter(|file| self.is_paused(*file, now)).collect()
    }

    /// The files that have failed.
    pub(in crate::engine) fn files(&self) -> impl Iterator<Item = FileNumber> {
        self.0.keys().copied()
    }

    /// The failures of jobs of `file` since the last success.
    fn failures(&self, file: FileNumber) -> u32 {
        self.0.get(&file).map_or(0, |rest| rest.failures)
    }

    /// Fills in the failures of `logs`, and whether they pause at `now`.
    pub(in crate::engine) fn annotate(&self, logs: &mut [LogSummary], now: Duration) {
        for log in logs {
            log.failures = self.failures(log.number);
            log.is_resting = self.is_paused(log.number, now);
        }
    }

    /// Forgets the files that no longer exist.
    pub(in crate::engine) fn keep_only(&mut self, is_there: impl Fn(FileNumber) -> bool) {
        self.0.retain(|file, _| is_there(*file));
    }

    /// Ends all pauses. The counts of failures stay.
    fn end(&mut self) {
        self.0
            .values_mut()
            .for_each(|rest| rest.until = Duration::ZERO);
    }
}

/// The last failure of one kind of job.
#[derive(Debug, Default)]
pub(crate) struct Failure(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The number of the last failure, from 1.
    number: u64,
    last: Option<Error>,
    /// Such jobs pause until then.
    paused_until: Duration,
}

impl Failure {
    /// # Errors
    /// The last error, if it came after failure `number`.
    pub(in crate::engine) fn check_since(&self, number: u64) -> Result<()> {
        let state = self.0.lock();
        match &state.last {
            Some(error) if state.number > number => Err(error.duplicate()),
            _ => Ok(()),
        }
    }

    pub(in crate::engine) fn is_paused(&self, now: Duration) -> bool {
        let state = self.0.lock();
        state.last.is_some() && now < state.paused_until
    }

    /// Whether such a job has failed since the last [`forget`](Self::forget).
    pub(in crate::engine) fn has_failed(&self) -> bool {
        self.0.lock().last.is_some()
    }

    /// Ends the pause. Returns whether such a job had failed.
    pub(in crate::engine) fn forget(&self) -> bool {
        self.0.lock().last.take().is_some()
    }
}

impl Engine {
    /// Keeps the error of a failed job and starts its pause. Only an error that leaves durability unknown
    /// poisons the database.
    pub(in crate::engine) fn note_failure(&self, failure: &Failure, error: Error) {
        if matches!(error.kind(), ErrorKind::Poisoned) {
            self.poison.set(&error);
        }
        let number = self.background.failures.fetch_add(1, Ordering::AcqRel) + 1;
        let mut state = failure.0.lock();
        state.number = number;
        state.paused_until = self.options.runtime.now() + BACKOFF;
        state.last = Some(error);
    }

    /// The number of failed jobs.
    pub(in crate::engine) fn failures(&self) -> u64 {
        self.background.failures.load(Ordering::Acquire)
    }

    /// # Errors
    /// The error of a job of any kind that came after failure `number`.
    pub(in crate::engine) fn check_failures_since(&self, number: u64) -> Result<()> {
        self.background.failure.check_since(number)?;
        let keyspaces = self.keyspaces.load();
        let mut own = keyspaces
            .iter()
            .flat_map(|keyspace| [&keyspace.failure, &keyspace.gc_failure]);
        own.try_for_each(|failure| failure.check_since(number))
    }

    /// Ends the pauses of all failed jobs.
    pub(in crate::engine) fn retry_failed_jobs(&self) {
        let mut had_failed = self.background.failure.forget();
        for keyspace in self.keyspaces.load().iter() {
            had_failed |= keyspace.failure.forget();
            had_failed |= keyspace.gc_failure.forget();
            let mut work = keyspace.work.lock();
            work.backoffs.end();
            work.gc_backoffs.end();
            work.victims_max = None;
        }
        if had_failed {
            self.signal.notify();
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{Backoffs, FILE_BACKOFF, FILE_BACKOFF_MAX};
    use crate::base::{Error, ErrorKind, FileNumber};
    use std::time::Duration;

    #[test]
    fn files_pause_longer_after_each_failure() {
        let (one, other) = (FileNumber(1), FileNumber(2));
        let error = Error::new(ErrorKind::NoSpace, "no space");
        let mut backoffs = Backoffs::default();
        let mut now = Duration::from_secs(5);
        let mut length = FILE_BACKOFF;
        for _ in 0..20 {
            backoffs.note_failure(&[one], &error, now);
            assert!(!backoffs.is_paused(other, now));
            assert!(backoffs.is_paused(one, now + length * 9 / 10));
            now += length;
            assert!(!backoffs.is_paused(one, now));
            length = (length * 2).min(FILE_BACKOFF_MAX);
        }
        backoffs.note_success(&[one]);
        backoffs.note_failure(&[one, other], &error, now);
        assert!(!backoffs.is_paused(one, now + FILE_BACKOFF));
        assert!(backoffs.is_paused(other, now));
        let report = backoffs.report(now + FILE_BACKOFF / 2, |file| file == other);
        let [paused] = &report[..] else {
            panic!("{report:?}")
        };
        assert_eq!((paused.file, paused.failures), (other, 1));
        assert_eq!(paused.pause_micros, 1_000_000);
        assert_eq!(paused.error, error.to_string());
        backoffs.end();
        assert!(!backoffs.is_paused(other, now));
        assert_eq!((backoffs.failures(one), backoffs.failures(other)), (1, 1));
        backoffs.note_failure(&[other], &error, now);
        assert!(backoffs.is_paused(other, now + FILE_BACKOFF));
        backoffs.keep_only(|file| file == one);
        assert_eq!((backoffs.failures(one), backoffs.failures(other)), (1, 0));
    }
}

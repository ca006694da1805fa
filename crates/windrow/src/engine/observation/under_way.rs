//! The jobs under way, for statistics.
//!
//! Concurrency: one short lock, a leaf.

use std::time::Duration;

use crate::base::sync::Mutex;
use crate::engine::admin::stats::JobStats;
use crate::engine::counters::micros;
use crate::events::Event;

/// The list of jobs.
#[derive(Debug, Default)]
pub(super) struct JobsUnderWay(Mutex<List>);

#[derive(Debug, Default)]
struct List {
    next: u64,
    /// The number of each job, what its beginning was, and when.
    jobs: Vec<(u64, JobStats, Duration)>,
}

/// A job in the list. Its drop takes it out.
#[derive(Debug)]
pub(super) struct Listed<'a> {
    list: &'a JobsUnderWay,
    number: u64,
}

impl JobsUnderWay {
    /// Adds the job that `began` describes and that began at `start`.
    pub(super) fn add(&self, began: &Event, start: Duration) -> Listed<'_> {
        let mut list = self.0.lock();
        let number = list.next;
        list.next += 1;
        list.jobs
            .extend(described(began).map(|job| (number, job, start)));
        Listed { list: self, number }
    }

    /// All jobs at `now`, the oldest first.
    pub(super) fn stats(&self, now: Duration) -> Vec<JobStats> {
        let list = self.0.lock();
        let jobs = list.jobs.iter();
        jobs.map(|(_, job, start)| JobStats {
            micros: micros(now.saturating_sub(*start)),
            ..job.clone()
        })
        .collect()
    }
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        let mut list = self.list.0.lock();
        list.jobs.retain(|(number, ..)| *number != self.number);
    }
}

/// The job that begins with the event; `None` for another event.
fn described(began: &Event) -> Option<JobStats> {
    let job = |job, keyspace: &String, level| JobStats {
        job,
        keyspace: keyspace.clone(),
        level,
        purpose: None,
        files: 0,
        bytes: 0,
        micros: 0,
    };
    match began {
        Event::FlushBegan { keyspace, .. } => Some(job("flush", keyspace, Some(0))),
        Event::CompactionBegan {
            keyspace,
            level,
            purpose,
            files,
            bytes,
        } => Some(JobStats {
            purpose: Some(purpose),
            files: *files,
            bytes: *bytes,
            ..job("compaction", keyspace, Some(*level))
        }),
        Event::GarbageCollectionBegan {
            keyspace,
            files,
            bytes,
        } => Some(JobStats {
            files: *files,
            bytes: *bytes,
            ..job("garbage_collection", keyspace, None)
        }),
        _ => None,
    }
}

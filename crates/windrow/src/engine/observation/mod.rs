//! What people and programs see of an open database while it works: its events, the jobs under way, and latencies.
//!
//! An event goes to the [job log](job_log), with the feature `tracing` to that crate, and to the listener of the options. The thread that looks for jobs also keeps the [status file](status) fresh, and reports a poison that it
//! finds.
//!
//! Invariant: nothing here changes what the engine does. A failure of a file is kept from it.
//!
//! Concurrency: any thread notifies, and holds no lock then, except in a close.

mod job_log;
mod status;
#[cfg(feature = "tracing")]
pub(super) mod trace;
mod under_way;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::admin::stats::JobStats;
use super::{Access, Engine};
use crate::base::sync::atomic::{AtomicBool, Ordering};
#[cfg(feature = "tracing")]
use crate::events::guarded;
use crate::events::{Event, Listener};
use crate::latency::{Latencies, Operation};
use crate::options::Options;
use job_log::JobLog;
use status::StatusFile;
use under_way::{JobsUnderWay, Listed};

/// A job under way. The drop is its end.
#[derive(Debug)]
pub(in crate::engine) struct JobUnderWay<'a> {
    #[cfg(feature = "tracing")]
    _span: Option<tracing::span::EnteredSpan>,
    _listed: Listed<'a>,
}

/// Receives what happens in a database.
#[derive(Debug)]
pub(in crate::engine) struct Observer {
    listener: Listener,
    log: Option<JobLog>,
    status: Option<StatusFile>,
    jobs: JobsUnderWay,
    latencies: Arc<Latencies>,
    /// Whether anybody wants events.
    is_listening: bool,
    has_reported_poison: AtomicBool,
    /// While the disk is full, the status rests: what is left is for removals.
    is_disk_full: AtomicBool,
}

impl Observer {
    pub(in crate::engine) fn new(options: &Options, directory: &Path, access: Access) -> Self {
        let writes = matches!(access, Access::ReadWrite | Access::Repair);
        let latencies = Latencies::new(&options.runtime, options.latency_interval);
        Self {
            listener: match access {
                // Its follower is what is open.
                Access::View => Listener::default(),
                _ => options.listener.clone(),
            },
            log: writes.then(|| JobLog::new(options, directory)).flatten(),
            status: writes
                .then(|| StatusFile::new(options, directory))
                .flatten(),
            jobs: JobsUnderWay::default(),
            latencies: Arc::new(latencies),
            is_listening: access != Access::View && options.is_observed(),
            has_reported_poison: AtomicBool::new(false),
            is_disk_full: AtomicBool::new(false),
        }
    }

    pub(in crate::engine) fn latencies(&self) -> &Arc<Latencies> {
        &self.latencies
    }

    /// Passes the event on, if anybody wants it.
    pub(in crate::engine) fn notify(&self, event: impl FnOnce() -> Event) {
        if !self.is_listening {
            return;
        }
        let event = event();
        self.note_latency(&event);
        match event {
            Event::NoSpace => self.is_disk_full.store(true, Ordering::Relaxed),
            Event::SpaceResumed => self.is_disk_full.store(false, Ordering::Relaxed),
            _ => {}
        }
        if let Some(log) = &self.log {
            log.note(&event);
        }
        #[cfg(feature = "tracing")]
        guarded(|| trace::note(&event));
        self.listener.notify(&event);
    }

    /// Notes and notifies that a job begins, at `start`. The drop of the result is its end.
    pub(in crate::engine) fn begin_job(&self, start: Duration, began: Event) -> JobUnderWay<'_> {
        let job = JobUnderWay {
            #[cfg(feature = "tracing")]
            _span: guarded(|| trace::job_span(&began)).flatten(),
            _listed: self.jobs.add(&began, start),
        };
        self.notify(|| began);
        job
    }

    fn note_latency(&self, event: &Event) {
        let (operation, time) = match event {
            Event::FlushEnded { duration, .. } => (Operation::Flush, duration),
            Event::CompactionEnded { duration, .. } => (Operation::Compaction, duration),
            Event::GarbageCollectionEnded { duration, .. } => {
                (Operation::GarbageCollection, duration)
            }
            Event::StallEnded { duration, .. } => (Operation::Stall, duration),
            _ => return,
        };
        self.latencies.note(operation, *time);
    }

    /// The jobs that run at `now`.
    pub(in crate::engine) fn jobs(&self, now: Duration) -> Vec<JobStats> {
        self.jobs.stats(now)
    }

    /// Ends with the close, before the lock is released.
    pub(in crate::engine) fn end(&self) {
        if let Some(status) = &self.status {
            status.end();
        }
    }
}

impl Engine {
    /// Does what is due from time to time. The caller holds no lock.
    pub(in crate::engine) fn observe(&self) {
        let observer = &self.observer;
        if self.poison.is_set() && !observer.has_reported_poison.swap(true, Ordering::Relaxed) {
            observer.notify(|| Event::Poisoned {
                error: self
                    .poison
                    .check()
                    .map_or_else(|error| error.to_string(), |()| String::new()),
            });
        }
        if let Some(log) = &observer.log {
            log.note_time();
        }
        self.refresh_status();
    }

    fn refresh_status(&self) {
        let Some(status) = &self.observer.status else {
            return;
        };
        if self.observer.is_disk_full.load(Ordering::Relaxed) {
            return;
        }
        let now = || self.options.runtime.now();
        if let Some(due) = status.take_due(now()) {
            let unix_time = self.options.runtime.unix_time();
            let stats = self.stats();
            status.write(
                &due,
                stats.to_prometheus(),
                &times(unix_time, self.options.status_interval),
                now,
            );
        }
    }
}

/// When the status was written, and how often it is.
fn times(unix_time: Duration, interval: Duration) -> String {
    let gauge = |name: &str, help: &str, value: f64| {
        format!("# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}\n")
    };
    let time = "The time of these statistics, in seconds since 1970.";
    let every = "How often they are written at most.";
    gauge("windrow_status_time_seconds", time, unix_time.as_secs_f64())
        + &gauge(
            "windrow_status_interval_seconds",
            every,
            interval.as_secs_f64(),
        )
}

//! The background jobs and their order.
//!
//! A worker runs the most urgent job that is due ([`Engine::next_job`]): remove obsolete files; make a point that was begun; create the reserve on a
//! full disk; freeze memtables if logs or memtables take too much, or an idle one that is mostly tombstones; flush;
//! allocate filter bits that an open has left; seal value logs; prepare the next log, or mark an idle one; write what
//! gets have folded; compact or collect garbage. If none is due, it does a step of a [scrub](super::scrub). With two or
//! more workers, one never compacts, so a flush never waits for a long compaction. Compactions and garbage collections take
//! turns. The policy picks the compactions. This module claims their inputs, so that no two jobs conflict, and releases them
//! at the end of the job.
//!
//! A job that fails leaves the tree unchanged. The engine keeps its error, and jobs of its kind pause for a while
//! ([`failure`](crate::engine::errors::failure)). A writer or a caller that needs such a job retries it at once, and
//! gets the error if the job fails again.
//!
//! The files: [`flush_job`], [`compaction_job`] with its [claim](compaction_claim),
//! [inputs](compaction_inputs), [range tombstones](compaction_ranges) and [`subcompactions`], [`gc_job`]; [`context`](self::context), what all jobs
//! share; [`tree_summary`], what the policy sees; [`filters`], the memory of filters; [`signal`], the
//! wake-ups.
//!
//! Concurrency: jobs run on workers, or on threads that wait for them. Claims are in each keyspace's
//! `work`.

pub(super) mod compaction_claim;
mod compaction_inputs;
mod compaction_job;
mod compaction_ranges;
pub(super) mod context;
pub(super) mod filter_state;
pub(super) mod filters;
mod flush_job;
mod gc_job;
pub(super) mod signal;
mod subcompactions;
pub(super) mod tree_summary;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::base::sync::Mutex;
use crate::base::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::base::{Error, ErrorKind, Result};
use crate::engine::commit::Point;
use crate::engine::errors::failure::Failure;
use crate::engine::errors::full_disk::SpaceUser;
use crate::engine::folds::KeyspaceFolds;
use crate::engine::throttling::atomic_throttle::{AtomicThrottle, DelayClock};
use crate::engine::throttling::rate_limiter::RateLimiter;
use crate::engine::{Engine, KeyspaceCore};
use crate::events::Event;
use crate::manifest::names::FileName;
use crate::options::Options;
use crate::read::state::FrozenMemtable;
use crate::runtime::Work;
use compaction_claim::CompactionJob;
use gc_job::GcJob;
use subcompactions::{Subcompaction, Subcompactions};

/// The pause of early work on the log after a full disk.
const LOG_PAUSE: Duration = Duration::from_secs(1);

/// An idle worker looks for a job again after this time.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The state of the background work of a database.
#[derive(Debug, Default)]
pub(super) struct Background {
    /// The number of [threads](crate::Options::background_threads) that may run jobs.
    pub(super) threads: AtomicUsize,
    rotation_requested: AtomicBool,
    pub(super) delay_clock: DelayClock,
    /// The throttle of writers to any keyspace, and the memtable bytes that it was computed for.
    pub(super) shared_throttle: AtomicThrottle,
    pub(super) measured_memtable_bytes: AtomicU64,
    /// Running compactions, subcompactions of other threads, and garbage collections.
    compactions_running: AtomicUsize,
    /// The number of compactions and garbage collections so far. It decides whose turn is next.
    compactions_claimed: AtomicUsize,
    pub(super) rate_limiter: RateLimiter,
    /// Compactions with subcompactions that are not taken yet.
    pub(super) offered_subcompactions: Mutex<Vec<Arc<Subcompactions>>>,
    /// Early work on the log pauses until then, after a full disk.
    log_paused_until: Mutex<Duration>,
    /// The number of failed jobs.
    pub(super) failures: AtomicU64,
    /// The last failure of a job that is no compaction and no garbage collection.
    pub(super) failure: Failure,
}

impl Background {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            threads: AtomicUsize::new(options.background_threads),
            rate_limiter: RateLimiter::new(options.compaction_bytes_per_second),
            ..Self::default()
        }
    }

    /// Asks the next leader of the commits to freeze full memtables.
    pub(super) fn request_rotation(&self) {
        self.rotation_requested.store(true, Ordering::Release);
    }

    pub(super) fn take_rotation_request(&self) -> bool {
        self.rotation_requested.load(Ordering::Acquire)
            && self.rotation_requested.swap(false, Ordering::AcqRel)
    }
}

/// A job that is claimed and about to run.
#[derive(Debug)]
enum Job {
    Remove(Vec<FileName>),
    MakePoint(Point),
    Flush(Arc<KeyspaceCore>, FrozenMemtable),
    PrepareLog,
    MarkLog,
    FreeLog(Vec<Arc<KeyspaceCore>>),
    FreeMemory(Arc<KeyspaceCore>),
    SealValues(Arc<KeyspaceCore>),
    TakeReserve,
    AllocateFilters(Arc<KeyspaceCore>),
    Compact(Arc<KeyspaceCore>, CompactionJob),
    CollectGarbage(Arc<KeyspaceCore>, GcJob),
    Subcompact(Subcompaction),
    WriteFolds(Arc<KeyspaceCore>, KeyspaceFolds),
}

/// Which jobs a thread takes on.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wanted {
    /// Whatever is due.
    All,
    /// All but compactions and garbage collections.
    Short,
}

impl Job {
    /// Its name in events, and the keyspace if it is a compaction or a garbage collection.
    fn description(&self) -> (&'static str, Option<Arc<KeyspaceCore>>) {
        match self {
            Self::Compact(keyspace, _) => ("compaction", Some(Arc::clone(keyspace))),
            Self::CollectGarbage(keyspace, _) => ("garbage_collection", Some(Arc::clone(keyspace))),
            Self::Flush(..) => ("flush", None),
            Self::MakePoint(_) => ("persist", None),
            _ => ("other", None),
        }
    }
}

impl Engine {
    /// Claims the most urgent job that is due, of those that are `wanted`.
    fn next_job(&self, wanted: Wanted) -> Option<Job> {
        if self.is_read_only() {
            return None;
        }
        let removable = self.obsolete.take();
        let now = self.options.runtime.now();
        if !removable.is_empty() || self.is_look_at_leases_due(now) {
            return Some(Job::Remove(removable));
        }
        if let Some(point) = self.begun_point.take() {
            return Some(Job::MakePoint(point));
        }
        if self.poison.is_set() {
            return None;
        }
        if self.reserve.is_due(now) {
            return Some(Job::TakeReserve);
        }
        let is_resting = self.background.failure.is_paused(now);
        let urgent = (!is_resting).then(|| self.next_short_job(now)).flatten();
        urgent.or_else(|| match wanted {
            Wanted::All => self.next_compaction(),
            Wanted::Short => None,
        })
    }

    /// Claims the most urgent job that is due and is no compaction.
    fn next_short_job(&self, now: Duration) -> Option<Job> {
        // Rotations first: the flushes that they cause then run by age.
        if let Some(pinning) = self.keyspaces_that_pin_the_oldest_log() {
            return Some(Job::FreeLog(pinning));
        }
        if let Some(keyspace) = self.largest_memtable() {
            return Some(Job::FreeMemory(keyspace));
        }
        if let Some(keyspace) = self.idle_tombstones(now) {
            return Some(Job::FreeMemory(keyspace));
        }
        if let Some(flush) = self.claim_flush() {
            return Some(flush);
        }
        if let Some(keyspace) = self.claim_allocation() {
            return Some(Job::AllocateFilters(keyspace));
        }
        if let Some(keyspace) = self.claim_seal(now) {
            return Some(Job::SealValues(keyspace));
        }
        if now >= *self.background.log_paused_until.lock() {
            if self.is_log_due() {
                return Some(Job::PrepareLog);
            }
            if self.is_marker_due() {
                return Some(Job::MarkLog);
            }
        }
        let (keyspace, folds) = self.claim_folds()?;
        Some(Job::WriteFolds(keyspace, folds))
    }

    /// A keyspace to which nothing is written, with many tombstones in its active memtable. In tables they meet what
    /// they hide.
    fn idle_tombstones(&self, now: Duration) -> Option<Arc<KeyspaceCore>> {
        let keyspaces = self.keyspaces.load();
        let is_due = |keyspace: &&Arc<KeyspaceCore>| keyspace.has_idle_tombstones(now);
        keyspaces.iter().find(is_due).cloned()
    }

    /// Claims a compaction that is due, or a subcompaction, if a thread is free for it.
    fn next_compaction(&self) -> Option<Job> {
        if self.background.compactions_running.load(Ordering::Acquire) >= self.compactions_max() {
            return None;
        }
        if let Some(part) = self.take_subcompaction() {
            self.background
                .compactions_running
                .fetch_add(1, Ordering::AcqRel);
            return Some(Job::Subcompact(part));
        }
        // Compactions and garbage collections take turns.
        let turn = self.background.compactions_claimed.load(Ordering::Relaxed);
        if turn.is_multiple_of(2) {
            self.claim_garbage_collection()
                .or_else(|| self.claim_compaction())
        } else {
            self.claim_compaction()
                .or_else(|| self.claim_garbage_collection())
        }
    }

    /// Claims a garbage collection. The keyspaces take turns.
    fn claim_garbage_collection(&self) -> Option<Job> {
        let keyspaces = self.keyspaces.load();
        let now = self.options.runtime.now();
        let turn = self.background.compactions_claimed.load(Ordering::Relaxed);
        let (before, behind) = keyspaces.split_at(turn % keyspaces.len().max(1));
        let mut line = behind.iter().chain(before);
        let claimed = line.find_map(|keyspace| {
            if keyspace.gc_failure.is_paused(now) {
                return None;
            }
            let gc = self.claim_gc(keyspace, now)?;
            Some(Job::CollectGarbage(Arc::clone(keyspace), gc))
        })?;
        self.background
            .compactions_running
            .fetch_add(1, Ordering::AcqRel);
        self.background
            .compactions_claimed
            .fetch_add(1, Ordering::Relaxed);
        Some(claimed)
    }

    /// The most threads that may compact at a time. One stays free for flushes.
    pub(super) fn compactions_max(&self) -> usize {
        let threads = self.background.threads.load(Ordering::Relaxed);
        threads.saturating_sub(1).max(1)
    }

    /// Claims the oldest frozen memtable of all keyspaces, so that a busy keyspace does not starve others.
    fn claim_flush(&self) -> Option<Job> {
        let keyspaces = self.keyspaces.load();
        let mut by_age: Vec<_> = keyspaces
            .iter()
            .filter_map(|keyspace| Some((keyspace.state().frozen.last()?.through, keyspace)))
            .collect();
        by_age.sort_by_key(|(through, _)| *through);
        by_age.into_iter().find_map(|(_, keyspace)| {
            let mut work = keyspace.work.lock();
            if work.is_flushing {
                return None;
            }
            let oldest = keyspace.state().frozen.last()?.clone();
            work.is_flushing = true;
            Some(Job::Flush(Arc::clone(keyspace), oldest))
        })
    }

    /// Claims a compaction in the keyspace whose debt throttles writers most. Keyspaces with equal
    /// throttles take turns, so that a busy one does not starve others.
    fn claim_compaction(&self) -> Option<Job> {
        let keyspaces = self.keyspaces.load();
        let turn = self.background.compactions_claimed.load(Ordering::Relaxed);
        let (before, behind) = keyspaces.split_at(turn % keyspaces.len().max(1));
        let now = self.options.runtime.now();
        let mut line: Vec<_> = behind.iter().chain(before).collect();
        line.retain(|keyspace| !keyspace.failure.is_paused(now));
        line.sort_by(|left, right| {
            let throttled = |keyspace: &KeyspaceCore| keyspace.throttle_by_disk().fraction;
            throttled(right).total_cmp(&throttled(left))
        });
        let readers = self.read_points();
        let claim = |keyspace: &Arc<KeyspaceCore>| {
            CompactionJob::claim(keyspace, now, &readers)
                .map(|merge| Job::Compact(Arc::clone(keyspace), merge))
        };
        let claimed = line.into_iter().find_map(claim)?;
        self.background
            .compactions_running
            .fetch_add(1, Ordering::AcqRel);
        self.background
            .compactions_claimed
            .fetch_add(1, Ordering::Relaxed);
        Some(claimed)
    }

    /// Whether the logs are long enough to free the oldest. The threshold leaves time to free it before
    /// writers must wait.
    fn are_logs_long(&self) -> bool {
        self.chain.bytes() > self.options.max_wal_bytes / 4 * 3
    }

    /// Whether a job of the logs may be due; takes no lock that is held during I/O.
    pub(super) fn may_log_be_due(&self) -> bool {
        self.chain.last_log_bytes() >= self.log_bytes_max() / 2 || self.are_logs_long()
    }

    /// The keyspaces that must freeze their memtables before the oldest log can go, if the logs are long.
    /// Empty if nothing pins that log but no flush has dropped it.
    fn keyspaces_that_pin_the_oldest_log(&self) -> Option<Vec<Arc<KeyspaceCore>>> {
        if !self.are_logs_long() {
            return None;
        }
        let last = self.chain.oldest_closed()?;
        let mut is_pinned = false;
        let pinning: Vec<_> = self.catalog.with_state(|state| {
            let pins = |keyspace: &&Arc<KeyspaceCore>| {
                let flushed = state
                    .keyspaces
                    .get(&keyspace.id())
                    .map_or(0, |state| state.flushed);
                let pins = keyspace
                    .unflushed(flushed)
                    .is_some_and(|sequence| sequence <= last);
                is_pinned |= pins;
                // Frozen memtables are flushed anyway.
                pins && keyspace.state().frozen.is_empty()
            };
            self.keyspaces.load().iter().filter(pins).cloned().collect()
        });
        (!is_pinned || !pinning.is_empty()).then_some(pinning)
    }

    fn run(&self, job: Job) -> Result<()> {
        match job {
            Job::Remove(files) => {
                self.remove_files(&files);
                Ok(())
            }
            Job::MakePoint(point) => self.make_point(point),
            Job::Flush(keyspace, oldest) => {
                let outcome = self.with_reserve(|| self.flush(&keyspace, &oldest));
                // Releases its memory before the throttle is computed.
                drop(oldest);
                keyspace.work.lock().is_flushing = false;
                keyspace.refresh_throttle();
                self.refresh_shared_throttle();
                if outcome.is_ok() {
                    self.grow_reserve();
                }
                self.end_in(&keyspace, outcome)
            }
            Job::PrepareLog => {
                // The flush of what the logs hold may need the reserve.
                self.grow_reserve();
                self.pause_log_if_full(self.prepare_log())
            }
            Job::MarkLog => self.pause_log_if_full(self.mark_log()),
            Job::FreeLog(keyspaces) if keyspaces.is_empty() => {
                let outcome = self.with_reserve(|| self.drop_logs());
                self.note_space(SpaceUser::Jobs, &outcome);
                outcome
            }
            Job::FreeLog(keyspaces) => self.rotate(&keyspaces).map(drop),
            Job::FreeMemory(keyspace) => self.rotate(&[keyspace]).map(drop),
            Job::SealValues(keyspace) => {
                let outcome = self.with_reserve(|| self.seal_values(&keyspace));
                keyspace.work.lock().is_flushing = false;
                self.end_in(&keyspace, outcome)
            }
            Job::TakeReserve => {
                self.reserve.take();
                self.note_reserve();
                Ok(())
            }
            Job::AllocateFilters(keyspace) => {
                self.allocate_filters(&keyspace, filter_state::ALL);
                Ok(())
            }
            Job::Compact(keyspace, compaction) => {
                let outcome = self.compact(&keyspace, &compaction);
                compaction.release(&keyspace, &outcome, self.options.runtime.now());
                self.end_compaction_in(&keyspace, outcome)
            }
            Job::CollectGarbage(keyspace, gc) => {
                let outcome = self.collect(&keyspace, &gc);
                gc.release(&keyspace, &outcome, self.options.runtime.now());
                self.end_compaction_in(&keyspace, outcome)
            }
            Job::Subcompact(part) => {
                // The leader of the compaction gets the outcome.
                self.run_subcompaction(part);
                self.end_compaction();
                Ok(())
            }
            Job::WriteFolds(keyspace, folds) => {
                self.write_folds(&keyspace, folds);
                Ok(())
            }
        }
    }

    /// Ends a job in `keyspace`. Its failure does not count if the keyspace was dropped meanwhile.
    fn end_in(&self, keyspace: &KeyspaceCore, outcome: Result<()>) -> Result<()> {
        let outcome = outcome.or_else(|error| {
            let is_moot = error.kind() != ErrorKind::Poisoned && keyspace.is_dropped();
            if is_moot { Ok(()) } else { Err(error) }
        });
        self.note_space(SpaceUser::Jobs, &outcome);
        outcome
    }

    /// Ends a compaction or a garbage collection in `keyspace`, whose claims are released.
    fn end_compaction_in(&self, keyspace: &KeyspaceCore, outcome: Result<()>) -> Result<()> {
        self.end_compaction();
        keyspace.refresh_throttle();
        self.end_in(keyspace, outcome)
    }

    fn end_compaction(&self) {
        self.background
            .compactions_running
            .fetch_sub(1, Ordering::AcqRel);
    }

    /// Runs `work`, which claims a job and runs it. A panic poisons the database: the claims are never
    /// released, and memory may disagree with the manifest.
    pub(super) fn poison_on_panic<R>(&self, work: impl FnOnce() -> Result<R>) -> Result<R> {
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
            let error = Error::new(ErrorKind::Poisoned, "a background job panicked");
            self.poison.set(&error);
            Err(error)
        })
    }

    /// Pauses early work on the log if the disk is full. No writer needs that work, so it is no failure.
    fn pause_log_if_full(&self, outcome: Result<()>) -> Result<()> {
        match outcome {
            Err(error) if error.kind() == ErrorKind::NoSpace => {
                *self.background.log_paused_until.lock() = self.options.runtime.now() + LOG_PAUSE;
                Ok(())
            }
            outcome => outcome,
        }
    }
}

impl Work for Engine {
    fn run_one(&self) -> bool {
        // A worker that has no job scrubs.
        let has_run = self.run_next_job(Wanted::All) || self.scrub_in_background();
        self.end_if_left();
        has_run
    }

    fn wait(&self) -> bool {
        self.signal.wait_for_work(POLL_INTERVAL)
    }
}

impl Engine {
    /// Runs the most urgent job that is due, of those that are `wanted`, for a thread that waits for jobs. Returns whether
    /// one was.
    pub(super) fn run_job(&self, wanted: Wanted) -> bool {
        let has_run = self.run_next_job(wanted);
        self.end_if_left();
        has_run
    }

    /// Runs the most urgent job that is due, of those that are `wanted`. Returns whether one was.
    fn run_next_job(&self, wanted: Wanted) -> bool {
        self.tables
            .context()
            .clock
            .advance_at(self.options.scrub_interval);
        let generation = self.signal.generation();
        let Some(running) = self.signal.begin_job() else {
            return false;
        };
        // A close waits for it, as for a job.
        self.observe();
        let has_run = self.poison_on_panic(|| {
            let Some(job) = self.next_job(wanted) else {
                return Ok(false);
            };
            let (name, keyspace) = job.description();
            let is_gc = matches!(job, Job::CollectGarbage(..));
            if let Err(error) = self.run(job) {
                // A close cancels jobs.
                if error.kind() != ErrorKind::Closed {
                    self.observer.notify(|| Event::JobFailed {
                        job: name,
                        keyspace: keyspace.as_ref().map(|it| it.name().to_string()),
                        error: error.to_string(),
                    });
                }
                let failure = match &keyspace {
                    Some(keyspace) if is_gc => &keyspace.gc_failure,
                    Some(keyspace) => &keyspace.failure,
                    None => &self.background.failure,
                };
                self.note_failure(failure, error);
            }
            Ok(true)
        });
        if matches!(has_run, Ok(false)) {
            match wanted {
                Wanted::All => running.end_quietly(generation),
                Wanted::Short => running.end_unchanged(),
            }
            return false;
        }
        if let Err(panicked) = has_run {
            self.note_failure(&self.background.failure, panicked);
        }
        true
    }
}

//! What is durable in a database without a log ([`Options::log`](crate::Options::log)).
//!
//! Writes are only in memtables, and flushes, merges and all else change the manifest as usual. At a point everything is
//! in tables, and `CURRENT` gets the length of the manifest. An open reads the manifest up to that length: so whatever ends
//! the process, the database is as it was at the last point. No log could say more, so none is written. Its file exists, with a
//! header alone.
//!
//! Invariants:
//! - I1: At a point the tables are a prefix of the commit order: all memtables are frozen between two commits, and are flushed,
//!   and until the point is made no other thread flushes, ingests, or changes which keyspaces there are.
//! - I2: No file that the last point needs is removed or changed before the next one
//!   ([`leased_files`](crate::engine::leased_files)). Table files grow behind the bytes that it needs.
//! - I3: A copy has files of a state that is no later than the last point. Otherwise an open would append to table files of which the
//!   copy has links, where the copy has entries of later merges.
//! - I4: A new manifest begins at a point only.
//!
//! A point is begun and made. Its begin decides what it has, by freezing the memtables, and takes their flushes and the gate of
//! changes of keyspaces. To make it, those are flushed and `CURRENT` is written: by the same thread, or by a worker
//! ([`PendingPoint`]). Whoever needs a flush or the gate that a begun point has taken, makes it. Writers that wait for memory
//! wait for a worker, as for any flush.
//!
//! Concurrency: any thread. Writers go on; ingestions and changes of keyspaces wait until the point is made.

use std::sync::Arc;
use std::time::Duration;

use crate::base::gate::Passage;
use crate::base::sync::{Mutex, Shared};
use crate::base::{Error, Result, SequenceNumber};
use crate::engine::errors::full_disk::SpaceUser;
use crate::engine::ingestion::Claims;
use crate::engine::{Engine, KeyspaceCore};
use crate::events::is_in_listener;

/// A thread that waits for a point looks again after this time.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A point that was begun. A drop gives it up: the point before counts.
#[derive(Debug)]
pub(in crate::engine) struct Point {
    /// The newest sequence number that it has.
    through: SequenceNumber,
    keyspaces: Shared<Vec<Arc<KeyspaceCore>>>,
    // Released in this order: who gets the gate then finds the flushes free.
    _flushes: Claims<'static>,
    _creating: Passage,
    outcome: PendingPoint,
}

impl Drop for Point {
    fn drop(&mut self) {
        self.outcome.end(Err(Error::closed()));
    }
}

/// How a point ends that another thread makes.
#[derive(Debug, Clone, Default)]
pub(crate) struct PendingPoint(Arc<Mutex<Option<Result<()>>>>);

impl PendingPoint {
    /// That of a point which is made already.
    pub(super) fn ended() -> Self {
        let ended = Self::default();
        ended.end(Ok(()));
        ended
    }

    /// The outcome; `None` until the point is made or given up.
    pub(crate) fn outcome(&self) -> Option<Result<()>> {
        self.0.lock().as_ref().map(Error::duplicate_of)
    }

    /// Only the first outcome counts.
    fn end(&self, outcome: Result<()>) {
        self.0.lock().get_or_insert(outcome);
    }
}

/// The point that was begun and waits for a thread.
#[derive(Debug, Default)]
pub(in crate::engine) struct BegunPoint(Mutex<Option<Point>>);

impl BegunPoint {
    /// Takes the point: the caller makes it.
    pub(in crate::engine) fn take(&self) -> Option<Point> {
        self.0.lock().take()
    }

    fn is_there(&self) -> bool {
        self.0.lock().is_some()
    }
}

impl Engine {
    /// Whether writes go to no log.
    pub(in crate::engine) fn is_unlogged(&self) -> bool {
        !self.options.log && !self.is_read_only()
    }

    /// # Errors
    /// `InvalidArgument` without a log.
    pub(in crate::engine) fn check_logged(&self) -> Result<()> {
        if self.is_unlogged() {
            let message = "it needs a log, and this database was opened without one";
            return Err(Error::invalid_argument(message));
        }
        Ok(())
    }

    /// # Errors
    /// Without a log, `InvalidArgument` in a listener, a compaction filter or a merge operator: the call could wait for the very
    /// flush that calls it.
    pub(in crate::engine) fn check_may_wait(&self) -> Result<()> {
        if self.is_unlogged() && (is_in_listener() || self.signal.runs_here()) {
            let message = "a listener, a compaction filter or a merge operator of a database without a log cannot do this: \
                           another thread must";
            return Err(Error::invalid_argument(message));
        }
        Ok(())
    }

    /// Makes a point of everything that was committed before the call.
    ///
    /// # Errors
    /// Those of [`at_point`](Self::at_point) and [`check_may_wait`](Self::check_may_wait).
    pub(super) fn persist_unlogged(&self) -> Result<()> {
        self.check_may_wait()?;
        let Some(running) = self.signal.begin_job() else {
            return Err(Error::closed());
        };
        let made = self.at_point(|_| Ok(()));
        drop(running);
        made
    }

    /// Begins a point of everything that is committed at a moment during the call. A worker makes it.
    ///
    /// # Errors
    /// As [`persist_unlogged`](Self::persist_unlogged), but those of flushes and of `CURRENT` are the outcome.
    pub(super) fn begin_point(&self) -> Result<PendingPoint> {
        self.check_may_wait()?;
        let Some(running) = self.signal.begin_job() else {
            return Err(Error::closed());
        };
        let point = self.poison_on_panic(|| self.freeze_point())?;
        let pending = point.outcome.clone();
        // The gate, which the point has, keeps all others out.
        *self.begun_point.0.lock() = Some(point);
        // Who waits for the gate makes the point.
        self.creating.wake();
        drop(running);
        Ok(pending)
    }

    /// Waits until the point of `pending` is made, and makes it if no other thread does so already.
    ///
    /// # Errors
    /// Those of [`at_point`](Self::at_point) and [`check_may_wait`](Self::check_may_wait); `Closed` if a close came first.
    pub(crate) fn wait_for_point(&self, pending: &PendingPoint) -> Result<()> {
        loop {
            if let Some(outcome) = pending.outcome() {
                return outcome;
            }
            self.check_may_wait()?;
            let generation = self.signal.generation();
            self.make_begun_point();
            if pending.outcome().is_none() {
                self.signal.wait_after(generation, POLL_INTERVAL);
            }
        }
    }

    /// Makes the point that waits for a thread, if there is one. Its outcome goes to who waits for it. Once a close has begun, the
    /// point is given up, and the one before counts.
    pub(in crate::engine) fn make_begun_point(&self) {
        if !self.begun_point.is_there() {
            return;
        }
        let Some(_running) = self.signal.begin_job() else {
            drop(self.begun_point.take());
            self.signal.notify();
            return;
        };
        if let Some(point) = self.begun_point.take() {
            // Reported by the outcome.
            drop(self.make_point(point));
        }
    }

    /// Keeps other threads from changes of keyspaces, and from points.
    pub(in crate::engine) fn begin_creating(&self) -> Passage {
        loop {
            self.make_begun_point();
            if let Some(passage) = self.creating.enter_within(POLL_INTERVAL) {
                return passage;
            }
        }
    }

    /// Makes a point of everything that is committed at a moment during the call, and calls `look` with the newest sequence
    /// number of that. The point has all edits that `look` has seen (I3).
    ///
    /// # Errors
    /// Those of the flushes, of `look`, and of `CURRENT`: then the point before counts, except after an error that poisons.
    pub(in crate::engine) fn at_point<R>(
        &self,
        look: impl FnOnce(SequenceNumber) -> Result<R>,
    ) -> Result<R> {
        let point = self.poison_on_panic(|| self.freeze_point())?;
        // After a panic nobody gets what the point has taken before the database is poisoned.
        let seen = self.poison_on_panic(|| self.flush_point(&point, look));
        self.release(point);
        seen
    }

    /// Makes a point that was begun, and notes how it has ended.
    pub(in crate::engine) fn make_point(&self, point: Point) -> Result<()> {
        let made = self.poison_on_panic(|| self.flush_point(&point, |_| Ok(())));
        self.note_space(SpaceUser::Jobs, &made);
        point.outcome.end(Error::duplicate_of(&made));
        self.release(point);
        made
    }

    /// Begins a point: freezes all memtables between two commits, and keeps all others from flushes.
    fn freeze_point(&self) -> Result<Point> {
        let creating = self.begin_creating();
        self.check_writable()?;
        let keyspaces = self.keyspaces.load_full();
        let mut flushes = Claims::default();
        for keyspace in keyspaces.iter() {
            self.claim_flush_of(keyspace, &mut flushes)?;
        }
        Ok(Point {
            through: self.rotate(&keyspaces)?,
            keyspaces,
            _flushes: flushes,
            _creating: creating,
            outcome: PendingPoint::default(),
        })
    }

    /// Flushes what `point` has, calls `look`, and writes `CURRENT`.
    fn flush_point<R>(
        &self,
        point: &Point,
        look: impl FnOnce(SequenceNumber) -> Result<R>,
    ) -> Result<R> {
        let flushed = || {
            self.check_writable()?;
            for keyspace in point.keyspaces.iter() {
                let flushed = self.flush_frozen(keyspace, point.through);
                // Writers may wait for the memory.
                keyspace.refresh_throttle();
                self.refresh_shared_throttle();
                self.signal.notify();
                flushed?;
            }
            let seen = look(point.through)?;
            self.with_reserve(|| self.catalog.record_manifest_length())?;
            Ok(seen)
        };
        let seen = flushed();
        self.remove_files(&[]);
        if seen.is_ok() {
            self.grow_reserve();
        }
        seen
    }

    /// Lets others flush, and change keyspaces.
    fn release(&self, point: Point) {
        drop(point);
        self.note_reserve();
        self.signal.notify();
    }
}

//! Write throttling: a delay that grows with the debt, and a stop before the debt grows too far.
//!
//! A write without a throttle costs a few loads. Delayed writes queue up on one clock, whatever their
//! threads: each adds its delay to the time at which all delays end, and sleeps until then if that is long
//! enough for a sleep. A stop lasts until a job has lowered the throttle. Every wait is counted under its
//! cause.
//!
//! There is no stop without a job that is due or running; if such jobs fail, the writer gets their error:
//!
//! | cause | job |
//! |---|---|
//! | level-0 runs, pending bytes | a compaction |
//! | memtables | a flush |
//! | memory | a flush, or the rotation of the largest memtable |
//! | log bytes | a flush, the rotation of memtables that pin the oldest log, or an edit that drops it |
//! | garbage values | none: they only delay |
//!
//! Concurrency: writers wait on the [signal](crate::engine::jobs::signal) and hold no lock.

use std::sync::Arc;
use std::time::Duration;

use super::memtable_use::MemtableUse;
use crate::base::sync::atomic::Ordering;
use crate::base::{ErrorKind, Result};
use crate::engine::counters::Waited;
use crate::engine::{Engine, KeyspaceCore, Write};
use crate::events::Event;
use crate::policy::{SharedBacklog, StallCause, Throttle, shared_throttle};

/// A shorter delay is added to the clock without a sleep.
const SLEEP_MIN: Duration = Duration::from_millis(1);

/// A delayed writer checks this often whether the database is closing.
const SLEEP_PIECE: Duration = Duration::from_millis(50);

/// A stopped writer checks again after this time if no job ends.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

impl Engine {
    /// Admits `write` at once, after a delay, or after a stop.
    #[inline]
    pub(in crate::engine) fn admit(&self, write: &Write<'_>) -> Result<()> {
        let throttle = self.throttle_of(write.keyspaces());
        if throttle.fraction > 0.0 {
            self.delay_or_stop(write, throttle)
        } else {
            Ok(())
        }
    }

    /// Waits as long as writes to `keyspaces` are stopped: for tables that are to be added to them, which no bytes of a
    /// memtable measure.
    ///
    /// # Errors
    /// As for a writer.
    pub(in crate::engine) fn admit_tables(&self, keyspaces: &[Arc<KeyspaceCore>]) -> Result<()> {
        let throttle = self.throttle_of(keyspaces);
        if throttle.is_stop() {
            return self.wait_until_admitted(keyspaces, throttle.cause);
        }
        Ok(())
    }

    /// Whether a write to `keyspaces` would be delayed or stopped.
    pub(in crate::engine) fn is_throttled(&self, keyspaces: &[Arc<KeyspaceCore>]) -> bool {
        self.throttle_of(keyspaces).fraction > 0.0
    }

    /// The strongest throttle of any of `keyspaces`.
    #[inline]
    fn throttle_of(&self, keyspaces: &[Arc<KeyspaceCore>]) -> Throttle {
        if !self.is_memtable_use_current() {
            self.refresh_shared_throttle();
        }
        let mut worst = self.background.shared_throttle.load();
        for keyspace in keyspaces {
            worst = worst.max(keyspace.throttle());
        }
        worst
    }

    #[cold]
    fn delay_or_stop(&self, write: &Write<'_>, throttle: Throttle) -> Result<()> {
        if throttle.is_stop() {
            return self.wait_until_admitted(write.keyspaces(), throttle.cause);
        }
        let runtime = &*self.options.runtime;
        let delay = throttle.delay(write.encoded_bytes_max());
        let wait = self.background.delay_clock.add(runtime.now(), delay);
        if wait >= SLEEP_MIN {
            let start = self.begin_stall(throttle.cause);
            self.sleep(wait);
            self.end_stall(throttle.cause, start);
            self.count_stall(throttle.cause, Waited::Delayed, start);
        }
        Ok(())
    }

    /// Sleeps for `rest`, or until the database is closing.
    fn sleep(&self, mut rest: Duration) {
        while !rest.is_zero() && !self.signal.is_stopping() {
            let piece = rest.min(SLEEP_PIECE);
            self.options.runtime.sleep(piece);
            rest -= piece;
        }
    }

    /// Waits until no throttle stops writes to `keyspaces`.
    fn wait_until_admitted(
        &self,
        keyspaces: &[Arc<KeyspaceCore>],
        mut cause: StallCause,
    ) -> Result<()> {
        let failures = self.failures();
        self.retry_failed_jobs();
        // One wake-up for the jobs that are due. A wake-up in each round would end the wait of that round.
        // While writers wait, a job becomes due only when another ends, and that end wakes the workers.
        self.signal.notify();
        let mut start = self.begin_stall(cause);
        let outcome = loop {
            let generation = self.signal.generation();
            if let Err(error) = self.check_writable() {
                break Err(error);
            }
            if let Err(error) = self.refresh_throttle_of(keyspaces) {
                break Err(error);
            }
            let throttle = self.throttle_of(keyspaces);
            if !throttle.is_stop() {
                break Ok(());
            }
            if throttle.cause != cause {
                self.end_stall(cause, start);
                self.count_stall(cause, Waited::Stopped, start);
                cause = throttle.cause;
                start = self.begin_stall(cause);
            }
            if let Err(error) = self.check_failures_of(keyspaces, cause, failures) {
                break Err(error);
            }
            if !self.options.runtime.step_instead_of_waiting(self) {
                self.signal.wait_after(generation, POLL_INTERVAL);
            }
        };
        self.end_stall(cause, start);
        let cause = match &outcome {
            Err(error) if error.kind() == ErrorKind::NoSpace => StallCause::DiskFull,
            _ => cause,
        };
        self.count_stall(cause, Waited::Stopped, start);
        outcome
    }

    /// Computes the throttle of writes to `keyspaces` anew, since without a job that is due no other thread would.
    ///
    /// # Errors
    /// `NotFound` if a keyspace of it was dropped: no job lowers its throttle.
    fn refresh_throttle_of(&self, keyspaces: &[Arc<KeyspaceCore>]) -> Result<()> {
        self.measure_shared_throttle();
        for keyspace in keyspaces {
            keyspace.check_exists()?;
            keyspace.refresh_throttle();
        }
        Ok(())
    }

    /// # Errors
    /// The error of a job that would end the wait of writes to `keyspaces` for `cause`, if it has failed after
    /// `failures` others.
    fn check_failures_of(
        &self,
        keyspaces: &[Arc<KeyspaceCore>],
        cause: StallCause,
        failures: u64,
    ) -> Result<()> {
        match cause {
            StallCause::Level0Runs | StallCause::PendingBytes => {
                let mut merges = keyspaces.iter().map(|keyspace| &keyspace.failure);
                merges.try_for_each(|failure| failure.check_since(failures))
            }
            _ => self.background.failure.check_since(failures),
        }
    }

    /// Notifies the listener that a writer begins to wait. Returns the time.
    fn begin_stall(&self, cause: StallCause) -> Duration {
        let cause = cause.name();
        self.observer.notify(|| Event::StallBegan { cause });
        self.options.runtime.now()
    }

    /// Notifies the listener that a writer has waited since `start`.
    fn end_stall(&self, cause: StallCause, start: Duration) {
        let duration = self.options.runtime.now().saturating_sub(start);
        self.observer.notify(|| Event::StallEnded {
            cause: cause.name(),
            duration,
        });
    }

    /// Counts the wait of a writer since `start`.
    pub(in crate::engine) fn count_stall(
        &self,
        cause: StallCause,
        waited: Waited,
        start: Duration,
    ) {
        let time = self.options.runtime.now().saturating_sub(start);
        self.counters.add_stall(cause, waited, time);
    }

    /// Computes the shared throttle of all writers anew, and wakes a worker if a job may be due.
    #[cold]
    pub(in crate::engine) fn refresh_shared_throttle(&self) {
        if self.measure_shared_throttle() {
            self.signal.notify();
        }
    }

    /// Shrinks open tables and the cache to what memtables leave them, and computes the shared throttle of
    /// all writers anew. Returns whether a job may be due.
    fn measure_shared_throttle(&self) -> bool {
        let counted = self.memory.memtables.bytes();
        self.tables.fit();
        let memtables_max = self.memory.memtables_max;
        // Below half of their part no write is slow and no job is due.
        let used = if counted > memtables_max / 2 {
            self.memtable_use()
        } else {
            MemtableUse::default()
        };
        let backlog = SharedBacklog {
            memtable_bytes: used.active + used.frozen,
            memtable_bytes_max: memtables_max,
            closed_log_bytes: self.chain.closed_bytes(),
            log_bytes_max: self.options.max_wal_bytes,
        };
        self.background
            .shared_throttle
            .store(shared_throttle(backlog));
        self.background
            .measured_memtable_bytes
            .store(counted, Ordering::Relaxed);
        used.active > memtables_max / 2 || self.may_log_be_due()
    }
}

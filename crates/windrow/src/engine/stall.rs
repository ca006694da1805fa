//! How writers wait for background work: a delay that grows with the debt, and a stop before the
//! debt gets out of hand.
//!
//! A write that meets no pressure pays one load for it. Delays are gathered until they are worth a
//! sleep. A stop lasts until a job has brought the pressure down; there is none without a job that
//! is due or running, and where jobs cannot be done the writer gets their error instead.
//!
//! Concurrency: writers wait on the [signal](super::signal) without any lock.

use std::sync::Arc;
use std::time::Duration;

use super::{Engine, KeyspaceCore, Write, stats};
use crate::base::Result;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::events::Event;
use crate::policy::Pressure;

/// Bytes per second that a writer is held to when the stop is near.
const SLOWEST_BYTES_PER_SECOND: f64 = 16e6;

/// A delay shorter than this is owed, not slept.
const SLEEP_MIN: Duration = Duration::from_millis(1);

/// No write is delayed for longer, however large it is.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// A delay notices this soon that the database is being closed.
const SLEEP_PIECE: Duration = Duration::from_millis(50);

/// How long a stopped writer waits before it looks again, should no job end.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What a listener hears that writers wait for.
const CAUSE: &str = "background work";

/// Nanoseconds of delay that writers owe.
#[derive(Debug, Default)]
pub(super) struct OwedDelay(AtomicU64);

impl Engine {
    /// Lets `write` pass as its keyspaces' pressure allows, and asks for a new memtable where one
    /// is full.
    #[inline]
    pub(super) fn admit(&self, write: &Write<'_>) -> Result<()> {
        for keyspace in write.keyspaces() {
            if keyspace.is_memtable_full() {
                self.background.request_rotation();
            }
            match keyspace.pressure() {
                Pressure::None => {}
                Pressure::Delay(fraction) => self.delay(fraction, write.encoded_bytes_max()),
                Pressure::Stop => self.wait_out(keyspace)?,
            }
        }
        Ok(())
    }

    #[cold]
    fn delay(&self, fraction: f64, bytes: usize) {
        let owed = Duration::from_secs_f64(fraction * bytes as f64 / SLOWEST_BYTES_PER_SECOND);
        let nanos = u64::try_from(owed.as_nanos()).unwrap_or(u64::MAX);
        let total = self.background.owed.0.fetch_add(nanos, Ordering::Relaxed) + nanos;
        let total = Duration::from_nanos(total);
        if total >= SLEEP_MIN {
            self.background.owed.0.store(0, Ordering::Relaxed);
            self.count_stall(|| self.sleep(total.min(SLEEP_MAX)));
        }
    }

    /// Sleeps for `rest`, or until the database is being closed.
    fn sleep(&self, mut rest: Duration) {
        while !rest.is_zero() && !self.signal.is_stopping() {
            let piece = rest.min(SLEEP_PIECE);
            self.options.runtime.sleep(piece);
            rest -= piece;
        }
    }

    #[cold]
    fn wait_out(&self, keyspace: &Arc<KeyspaceCore>) -> Result<()> {
        let failures = self.background.failures();
        self.retry_failed_jobs();
        self.count_stall(|| {
            loop {
                let generation = self.signal.generation();
                self.check_writable()?;
                keyspace.check_there()?;
                // Anew, since nothing else would do so where no job is due.
                keyspace.refresh_pressure();
                if keyspace.pressure() != Pressure::Stop {
                    return Ok(());
                }
                self.background.check_failures_since(failures)?;
                if !self.options.runtime.step_instead_of_waiting(self) {
                    self.signal.wait_after(generation, LOOK_AGAIN);
                }
            }
        })
    }

    fn count_stall<R>(&self, wait: impl FnOnce() -> R) -> R {
        let listener = &self.options.listener;
        let cause = CAUSE;
        listener.tell(|| Event::StallBegan { cause });
        let start = self.options.runtime.now();
        let outcome = wait();
        let waited = self.options.runtime.now().saturating_sub(start);
        listener.tell(|| Event::StallEnded {
            cause,
            duration: waited,
        });
        stats::add(&self.counters.stalls, 1);
        let micros = u64::try_from(waited.as_micros()).unwrap_or(u64::MAX);
        stats::add(&self.counters.stall_micros, micros);
        outcome
    }
}

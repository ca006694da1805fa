//! The common part of all inner loops: steps, rate, end, and latencies.

use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

use windrow::Result;

use crate::measure::gauge::Gauge;
use crate::measure::rate_limiter::{Rate, RateLimiter, Turn};
use crate::measure::tally::{Operation, Tally};

/// The part of one thread in a load.
#[derive(Debug, Clone)]
pub(crate) struct Lane<'a> {
    /// The steps of this thread.
    pub(crate) steps: Range<u64>,
    /// No step begins after this time.
    pub(crate) deadline: Option<Instant>,
    pub(crate) rate: Rate,
    /// The gauge for other threads.
    pub(crate) gauge: &'a Gauge,
}

impl Lane<'_> {
    /// Runs `operation` of kind `kind` for each step and records each latency.
    #[inline]
    pub(crate) fn each(
        &self,
        kind: Operation,
        mut operation: impl FnMut(u64, &mut Tally) -> Result<()>,
    ) -> Result<Tally> {
        let mut watch = Stopwatch::new(self);
        for step in self.steps.clone() {
            if !watch.continues(1) {
                break;
            }
            operation(step, &mut watch.tally)?;
            watch.done(kind, 1)?;
        }
        Ok(watch.tally)
    }
}

/// Measures the consecutive operations of one thread. Without a rate, each operation takes one reading of the
/// clock.
#[derive(Debug)]
pub(crate) struct Stopwatch<'a> {
    pub(crate) tally: Tally,
    gauge: &'a Gauge,
    deadline: Option<Instant>,
    rate_limiter: RateLimiter,
    start: Instant,
    /// The delay of the current operations by earlier ones.
    late: Duration,
}

impl<'a> Stopwatch<'a> {
    pub(crate) fn new(lane: &Lane<'a>) -> Self {
        Self {
            tally: Tally::default(),
            gauge: lane.gauge,
            deadline: lane.deadline,
            rate_limiter: RateLimiter::new(lane.rate),
            start: Instant::now(),
            late: Duration::ZERO,
        }
    }

    /// Time between operations does not count for the next one.
    pub(crate) fn begin_anew(&mut self) {
        self.start = Instant::now();
    }

    /// Waits until the next `operations` are due. Returns whether the load continues.
    #[inline]
    pub(crate) fn continues(&mut self, operations: u64) -> bool {
        let ends = |at| self.deadline.is_some_and(|deadline| at >= deadline);
        if ends(self.start) {
            return false;
        }
        if self.rate_limiter.is_free() {
            return true;
        }
        loop {
            match self.rate_limiter.turn(operations) {
                Turn::Begin { late } => {
                    (self.start, self.late) = (Instant::now(), late);
                    return true;
                }
                Turn::Sleep(nap) => {
                    let wakes = Instant::now().checked_add(nap);
                    if wakes.is_none_or(ends) {
                        return false;
                    }
                    thread::sleep(nap);
                    self.rate_limiter.wake();
                }
            }
        }
    }

    /// Counts `operations` of kind `kind` that end now.
    #[inline]
    pub(crate) fn done(&mut self, kind: Operation, operations: u64) -> Result<()> {
        let nanos = self
            .tally
            .record(kind, &mut self.start, operations, self.late)?;
        self.gauge.record(nanos, operations);
        Ok(())
    }
}

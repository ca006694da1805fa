//! What every inner loop of a load shares: its steps, its pace, its end, and its record.

use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

use windrow::Result;

use crate::measure::gauge::Gauge;
use crate::measure::rate_limiter::{Rate, RateLimiter, Turn};
use crate::measure::tally::{Operation, Tally};

/// The part of a load that one thread does.
#[derive(Debug, Clone)]
pub(crate) struct Lane<'a> {
    /// The steps of this thread.
    pub(crate) steps: Range<u64>,
    /// No step begins later.
    pub(crate) deadline: Option<Instant>,
    pub(crate) rate: Rate,
    /// Where others see how far it is.
    pub(crate) gauge: &'a Gauge,
}

impl Lane<'_> {
    /// Runs `operation`, which is of kind `kind`, for each step and records how long each took.
    #[inline]
    pub(crate) fn each(
        &self,
        kind: Operation,
        mut operation: impl FnMut(u64, &mut Tally) -> Result<()>,
    ) -> Result<Tally> {
        let mut watch = Stopwatch::new(self);
        for step in self.steps.clone() {
            if !watch.goes_on(1) {
                break;
            }
            operation(step, &mut watch.tally)?;
            watch.done(kind, 1)?;
        }
        Ok(watch.tally)
    }
}

/// Measures the operations of one thread, one after the other, with one look at the clock for each where
/// they have no rate.
#[derive(Debug)]
pub(crate) struct Stopwatch<'a> {
    pub(crate) tally: Tally,
    gauge: &'a Gauge,
    deadline: Option<Instant>,
    rate_limiter: RateLimiter,
    start: Instant,
    /// How late those before them have made the operations that are being measured.
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

    /// What was done since the last operation is no part of the next.
    pub(crate) fn begin_anew(&mut self) {
        self.start = Instant::now();
    }

    /// Waits until the next `operations` are due; whether there is time for them.
    #[inline]
    pub(crate) fn goes_on(&mut self, operations: u64) -> bool {
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

    /// Counts `operations` of kind `kind` that are done by now.
    #[inline]
    pub(crate) fn done(&mut self, kind: Operation, operations: u64) -> Result<()> {
        let nanos = self
            .tally
            .record(kind, &mut self.start, operations, self.late)?;
        self.gauge.record(nanos, operations);
        Ok(())
    }
}

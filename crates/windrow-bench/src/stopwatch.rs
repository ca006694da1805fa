//! What every inner loop of a load shares: its steps, its pace, its end, and its record.

use std::ops::Range;
use std::time::Instant;

use windrow::Result;

use crate::gauge::Gauge;
use crate::pace::{Pace, Rate};
use crate::tally::{Operation, Tally};

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

/// Measures the operations of one thread, one after the other, with one look at the clock for each.
#[derive(Debug)]
pub(crate) struct Stopwatch<'a> {
    pub(crate) tally: Tally,
    gauge: &'a Gauge,
    deadline: Option<Instant>,
    pace: Pace,
    start: Instant,
}

impl<'a> Stopwatch<'a> {
    pub(crate) fn new(lane: &Lane<'a>) -> Self {
        Self {
            tally: Tally::default(),
            gauge: lane.gauge,
            deadline: lane.deadline,
            pace: Pace::new(lane.rate),
            start: Instant::now(),
        }
    }

    /// Waits until the next `operations` are due; whether there is time for them.
    #[inline]
    pub(crate) fn goes_on(&mut self, operations: u64) -> bool {
        if self.deadline.is_some_and(|deadline| self.start >= deadline) {
            return false;
        }
        self.pace.wait(&mut self.start, operations);
        true
    }

    /// Counts `operations` of kind `kind` that are done by now.
    #[inline]
    pub(crate) fn done(&mut self, kind: Operation, operations: u64) -> Result<()> {
        let nanos = self.tally.record(kind, &mut self.start, operations)?;
        self.gauge.record(nanos, operations);
        Ok(())
    }
}

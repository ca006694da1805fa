//! The time series of a load. A watcher thread reads the gauges of the load at intervals.
//!
//! After [`INTERVALS_MAX`] intervals, the watcher joins neighbours and doubles the interval.
//!
//! Concurrency: the watcher only reads counters of other threads. The load sets a [`Phase`] and wakes the watcher.

use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use windrow::Result;

use crate::measure::gauge::{Gauge, Latencies};
use crate::measure::process::ProcessMemory;
use crate::{Engine, Progress, ProgressPoint};

/// One interval of a load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SeriesPoint {
    /// Seconds from the start of the load to the end of the interval.
    pub seconds: f64,
    /// Operations per second.
    pub ops_per_second: f64,
    /// The 99th percentile in microseconds, within 3 %; 0 without operations.
    pub p99_us: f64,
    /// Seconds of stalls, summed over threads, if the engine reports them.
    pub stall_seconds: f64,
    /// Bytes that the engine wrote to files.
    pub written_bytes: u64,
    /// Resident memory of the process at the end of the interval, if the system reports it.
    pub memory_bytes: Option<u64>,
    /// Whether the operations were done and background work continued.
    pub settling: bool,
}

/// The maximal number of points of a load.
const INTERVALS_MAX: usize = 600;
/// The length of an interval, at first.
const INTERVAL: Duration = Duration::from_secs(1);
/// The interval of progress.
const SHOWN_EVERY: Duration = Duration::from_millis(200);

/// The phase of a load, for its watcher.
#[derive(Debug, Default)]
pub(crate) struct Phase(AtomicU8);

impl Phase {
    const SETTLING: u8 = 1;
    const ENDED: u8 = 2;

    /// The operations are done.
    pub(crate) fn settle(&self, watcher: &thread::Thread) {
        self.0.store(Self::SETTLING, Ordering::Release);
        watcher.unpark();
    }

    /// The load has ended.
    pub(crate) fn end(&self, watcher: &thread::Thread) {
        self.0.store(Self::ENDED, Ordering::Release);
        watcher.unpark();
    }
}

/// The name and bounds of a load, for progress.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Watched<'a> {
    pub(crate) load: &'a str,
    pub(crate) total: Option<u64>,
    pub(crate) duration: Option<f64>,
}

/// One interval, with the counts to join it with the next.
#[derive(Debug)]
struct Interval {
    /// Seconds since the load began.
    end: f64,
    span: f64,
    ops: u64,
    latencies: Latencies,
    stall_seconds: f64,
    written_bytes: u64,
    memory_bytes: Option<u64>,
    settling: bool,
}

impl Interval {
    /// Joins this interval and the `next`.
    fn join(&mut self, next: &Self) {
        self.end = next.end;
        self.span += next.span;
        self.ops += next.ops;
        self.latencies.add(&next.latencies);
        self.stall_seconds += next.stall_seconds;
        self.written_bytes += next.written_bytes;
        self.memory_bytes = next.memory_bytes;
    }

    fn point(&self) -> SeriesPoint {
        SeriesPoint {
            seconds: self.end,
            ops_per_second: self.ops as f64 / self.span.max(1e-9),
            p99_us: self.latencies.p99_us(),
            stall_seconds: self.stall_seconds,
            written_bytes: self.written_bytes,
            memory_bytes: self.memory_bytes,
            settling: self.settling,
        }
    }
}

/// Joins neighbours of the same phase.
fn halve(intervals: Vec<Interval>) -> Vec<Interval> {
    let mut joined: Vec<Interval> = Vec::new();
    let mut is_single = false;
    for interval in intervals {
        match joined.last_mut() {
            Some(last) if is_single && last.settling == interval.settling => {
                last.join(&interval);
                is_single = false;
            }
            _ => {
                joined.push(interval);
                is_single = true;
            }
        }
    }
    joined
}

/// The watcher of a load.
pub(crate) struct Watcher<'a, E> {
    engine: &'a E,
    gauges: &'a [Gauge],
    watched: Watched<'a>,
    progress: &'a dyn Progress,
    began: Instant,
    /// The counts at the end of the last interval.
    seen: Vec<Latencies>,
    seen_ops: u64,
    seen_stall_seconds: f64,
    seen_written_bytes: u64,
    seen_at: f64,
    intervals: Vec<Interval>,
    length: Duration,
}

impl<'a, E: Engine> Watcher<'a, E> {
    /// A watcher that starts now.
    pub(crate) fn new(
        engine: &'a E,
        gauges: &'a [Gauge],
        watched: Watched<'a>,
        progress: &'a dyn Progress,
    ) -> Result<Self> {
        let counters = engine.counters()?;
        Ok(Self {
            engine,
            gauges,
            watched,
            progress,
            began: Instant::now(),
            seen: vec![Latencies::default(); gauges.len()],
            seen_ops: 0,
            seen_stall_seconds: counters.stall_seconds,
            seen_written_bytes: counters.written_bytes,
            seen_at: 0.0,
            intervals: Vec::new(),
            length: INTERVAL,
        })
    }

    /// Watches until the load has ended.
    pub(crate) fn run(mut self, phase: &Phase) -> Result<Vec<SeriesPoint>> {
        let outcome = self.watch(phase);
        if self.progress.is_shown() {
            self.progress.end();
        }
        outcome?;
        Ok(self.intervals.iter().map(Interval::point).collect())
    }

    fn watch(&mut self, phase: &Phase) -> Result<()> {
        let mut before = 0;
        loop {
            let mut nap = self.length.saturating_sub(self.since_interval());
            if self.progress.is_shown() {
                nap = nap.min(SHOWN_EVERY);
            }
            if phase.0.load(Ordering::Acquire) == before {
                thread::park_timeout(nap);
            }
            let now = phase.0.load(Ordering::Acquire);
            let settling = before == Phase::SETTLING;
            if self.progress.is_shown() && !(settling && E::SETTLES_BY_QUIET) {
                self.show(settling);
            }
            // A settling without duration has no point.
            let is_worth = !settling || 10 * self.since_interval() >= INTERVAL;
            if self.since_interval() >= self.length || now != before && is_worth {
                self.take(settling)?;
            }
            if now == Phase::ENDED {
                return Ok(());
            }
            before = now;
        }
    }

    fn since_interval(&self) -> Duration {
        let seconds = self.began.elapsed().as_secs_f64() - self.seen_at;
        Duration::try_from_secs_f64(seconds).unwrap_or_default()
    }

    fn ops(&self) -> u64 {
        self.gauges.iter().map(Gauge::ops).sum()
    }

    fn show(&self, settling: bool) {
        self.progress.show(&ProgressPoint {
            load: self.watched.load,
            ops: self.ops(),
            total: self.watched.total,
            seconds: self.began.elapsed().as_secs_f64(),
            duration: self.watched.duration,
            settling,
        });
    }

    /// Ends the current interval.
    fn take(&mut self, settling: bool) -> Result<()> {
        if self.intervals.len() == INTERVALS_MAX {
            self.intervals = halve(std::mem::take(&mut self.intervals));
            self.length *= 2;
        }
        let counters = self.engine.counters()?;
        let end = self.began.elapsed().as_secs_f64();
        let ops = self.ops();
        let mut latencies = Latencies::default();
        for (seen, gauge) in self.seen.iter_mut().zip(self.gauges) {
            latencies.add_since(seen, gauge);
        }
        self.intervals.push(Interval {
            end,
            span: end - self.seen_at,
            ops: ops - self.seen_ops,
            latencies,
            stall_seconds: counters.stall_seconds - self.seen_stall_seconds,
            written_bytes: counters.written_bytes - self.seen_written_bytes,
            memory_bytes: ProcessMemory::now().now_bytes,
            settling,
        });
        self.seen_at = end;
        self.seen_ops = ops;
        self.seen_stall_seconds = counters.stall_seconds;
        self.seen_written_bytes = counters.written_bytes;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(end: u32, settling: bool) -> Interval {
        Interval {
            end: f64::from(end),
            span: 1.0,
            ops: 10,
            latencies: Latencies::default(),
            stall_seconds: 0.5,
            written_bytes: u64::from(end),
            memory_bytes: Some(u64::from(end)),
            settling,
        }
    }

    #[test]
    fn neighbours_are_joined_within_their_phase() {
        let all = (1..=7).map(|end| interval(end, end > 3)).collect();
        let points: Vec<SeriesPoint> = halve(all).iter().map(Interval::point).collect();
        let ends: Vec<f64> = points.iter().map(|point| point.seconds).collect();
        assert_eq!(format!("{ends:?}"), "[2.0, 3.0, 5.0, 7.0]");
        assert_eq!(
            (points[0].written_bytes, points[0].memory_bytes),
            (3, Some(2))
        );
        assert!((points[0].ops_per_second - 10.0).abs() < 1e-9);
        assert!((points[2].stall_seconds - 1.0).abs() < 1e-9);
        let settling: Vec<bool> = points.iter().map(|point| point.settling).collect();
        assert_eq!(settling, [false, false, true, true]);
    }
}

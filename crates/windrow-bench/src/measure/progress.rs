//! Progress of a load for the user.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::{ProgressBar, ProgressStyle};

use crate::BenchArgs;

/// A listener for the progress of a load. The watcher thread calls it a few times per second.
pub trait Progress: Sync {
    /// The current progress of a load.
    fn show(&self, point: &ProgressPoint<'_>);

    /// The last load has ended.
    fn end(&self) {}

    /// Whether the listener shows anything.
    fn is_shown(&self) -> bool {
        true
    }
}

/// The progress of a load.
#[derive(Debug, Clone, Copy)]
pub struct ProgressPoint<'a> {
    /// The load.
    pub load: &'a str,
    /// Completed operations.
    pub ops: u64,
    /// The bound of its operations, if any.
    pub total: Option<u64>,
    /// Seconds since its start.
    pub seconds: f64,
    /// Its duration in seconds, if any.
    pub duration: Option<f64>,
    /// Whether its operations are done and it waits for background work.
    pub settling: bool,
}

impl BenchArgs {
    /// The listener of the loads: lines on standard error if the arguments request them, otherwise a bar on a
    /// terminal.
    pub fn progress(&self) -> Box<dyn Progress> {
        let interval = self.stats_interval_seconds.filter(|&seconds| seconds > 0.0);
        match interval {
            Some(seconds) => Box::new(IntervalLines::new(seconds)),
            None if io::stderr().is_terminal() => Box::new(LoadBar::new()),
            None => Box::new(Unseen),
        }
    }
}

/// A listener that shows nothing.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Unseen;

impl Progress for Unseen {
    fn show(&self, _point: &ProgressPoint<'_>) {}

    fn is_shown(&self) -> bool {
        false
    }
}

/// Writes a line to standard error at a steady interval, as `db_bench` does.
#[derive(Debug)]
struct IntervalLines {
    seconds: f64,
    /// Microseconds from the start of the load to the previous line.
    micros: AtomicU64,
    /// Operations up to the previous line.
    ops: AtomicU64,
}

impl IntervalLines {
    /// A line about every `seconds`.
    fn new(seconds: f64) -> Self {
        Self {
            seconds,
            micros: AtomicU64::new(0),
            ops: AtomicU64::new(0),
        }
    }

    /// The line for `point`, if one is due.
    fn line(&self, point: &ProgressPoint<'_>) -> Option<String> {
        let before = self.micros.load(Ordering::Relaxed) as f64 / 1e6;
        let span = point.seconds - before;
        if span < self.seconds {
            return None;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "seconds of a load are few"
        )]
        self.micros
            .store((point.seconds * 1e6) as u64, Ordering::Relaxed);
        let ops = point.ops - self.ops.swap(point.ops, Ordering::Relaxed).min(point.ops);
        let settling = if point.settling { ", settling" } else { "" };
        Some(format!(
            "{}: {:.0} s, {} operations, {:.0}/s now, {:.0}/s in all{settling}",
            point.load,
            point.seconds,
            point.ops,
            ops as f64 / span,
            point.ops as f64 / point.seconds.max(1e-9)
        ))
    }
}

impl Progress for IntervalLines {
    fn show(&self, point: &ProgressPoint<'_>) {
        if let Some(line) = self.line(point) {
            // This error has no place to be reported.
            drop(writeln!(io::stderr(), "{line}"));
        }
    }

    fn end(&self) {
        self.micros.store(0, Ordering::Relaxed);
        self.ops.store(0, Ordering::Relaxed);
    }
}

/// A progress bar on a terminal: the fraction of operations or of time.
#[derive(Debug)]
struct LoadBar(ProgressBar);

impl LoadBar {
    /// The resolution of the bar.
    const PARTS: u64 = 1000;

    /// The bar appears at the start of a load.
    fn new() -> Self {
        let template = "{prefix:>22} [{bar:40}] {msg}";
        let style = ProgressStyle::with_template(template);
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        Self(ProgressBar::new(Self::PARTS).with_style(style.progress_chars("=> ")))
    }
}

impl Progress for LoadBar {
    fn show(&self, point: &ProgressPoint<'_>) {
        let (fraction, message) = reported(point);
        self.0.set_prefix(point.load.to_owned());
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a fraction is between 0 and 1"
        )]
        self.0.set_position((fraction * Self::PARTS as f64) as u64);
        self.0.set_message(message);
    }

    fn end(&self) {
        // The line of the table follows.
        self.0.finish_and_clear();
        self.0.reset();
    }

    fn is_shown(&self) -> bool {
        !self.0.is_hidden()
    }
}

/// The completed fraction of a load, and the text next to the bar.
fn reported(point: &ProgressPoint<'_>) -> (f64, String) {
    let by_count = point
        .total
        .map_or(0.0, |total| point.ops as f64 / total.max(1) as f64);
    let by_clock = point
        .duration
        .map_or(0.0, |duration| point.seconds / duration);
    let rate = point.ops as f64 / point.seconds.max(1e-9);
    let message = if point.settling {
        format!("{} operations, settling for background work", point.ops)
    } else {
        format!("{} operations, {rate:.0}/s", point.ops)
    };
    (by_count.max(by_clock).clamp(0.0, 1.0), message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_at_their_interval() {
        let lines = IntervalLines::new(2.0);
        let point = |seconds, ops| ProgressPoint {
            load: "readrandom",
            ops,
            total: None,
            seconds,
            duration: None,
            settling: false,
        };
        assert_eq!(lines.line(&point(1.5, 10)), None);
        let line = lines.line(&point(2.0, 100)).unwrap();
        assert_eq!(
            line,
            "readrandom: 2 s, 100 operations, 50/s now, 50/s in all"
        );
        assert_eq!(lines.line(&point(3.5, 200)), None);
        let line = lines.line(&point(4.0, 500)).unwrap();
        assert_eq!(
            line,
            "readrandom: 4 s, 500 operations, 200/s now, 125/s in all"
        );
        lines.end();
        assert!(lines.line(&point(2.0, 10)).is_some());
    }

    #[test]
    fn a_load_is_as_far_as_its_nearer_end() {
        let point = |ops, total, seconds, duration| ProgressPoint {
            load: "readrandom",
            ops,
            total,
            seconds,
            duration,
            settling: false,
        };
        let fraction = |point| reported(&point).0;
        assert!((fraction(point(50, Some(200), 1.0, None)) - 0.25).abs() < 1e-9);
        assert!((fraction(point(50, None, 1.0, Some(2.0))) - 0.5).abs() < 1e-9);
        assert!((fraction(point(190, Some(200), 1.0, Some(2.0))) - 0.95).abs() < 1e-9);
        assert!((fraction(point(500, Some(200), 1.0, None)) - 1.0).abs() < 1e-9);
        assert!(fraction(point(5, None, 1.0, None)).abs() < 1e-9);
        assert!(reported(&point(50, None, 2.0, None)).1.contains("25/s"));
    }
}

//! Who waits for a load hears how far it is.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};

/// Hears a few times a second how far a load is, from a thread that does nothing else.
pub trait Progress: Sync {
    /// A load is at this moment.
    fn show(&self, moment: &Moment<'_>);

    /// The load that was shown last has ended.
    fn end(&self) {}

    /// Whether anybody looks.
    fn is_shown(&self) -> bool {
        true
    }
}

/// How far a load is.
#[derive(Debug, Clone, Copy)]
pub struct Moment<'a> {
    /// The load.
    pub load: &'a str,
    /// Operations that are done.
    pub ops: u64,
    /// Operations that it will do at most, where it has such a bound.
    pub total: Option<u64>,
    /// Seconds since it began.
    pub seconds: f64,
    /// Seconds after which it ends, where it ends by the clock.
    pub duration: Option<f64>,
    /// Its operations are done, and it waits for background work.
    pub settling: bool,
}

/// Nobody looks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unseen;

impl Progress for Unseen {
    fn show(&self, _moment: &Moment<'_>) {}

    fn is_shown(&self) -> bool {
        false
    }
}

/// Writes a line to standard error at a steady interval, as `db_bench` does.
#[derive(Debug)]
pub struct IntervalLines {
    seconds: f64,
    /// Of the line before: microseconds since the load began.
    micros: AtomicU64,
    /// Operations by then.
    ops: AtomicU64,
}

impl IntervalLines {
    /// A line about every so many seconds.
    pub fn new(seconds: f64) -> Self {
        Self {
            seconds,
            micros: AtomicU64::new(0),
            ops: AtomicU64::new(0),
        }
    }

    /// The line at `moment`, if one is due.
    fn line(&self, moment: &Moment<'_>) -> Option<String> {
        let before = self.micros.load(Ordering::Relaxed) as f64 / 1e6;
        let span = moment.seconds - before;
        if span < self.seconds {
            return None;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "seconds of a load are few"
        )]
        self.micros
            .store((moment.seconds * 1e6) as u64, Ordering::Relaxed);
        let ops = moment.ops - self.ops.swap(moment.ops, Ordering::Relaxed).min(moment.ops);
        let settling = if moment.settling { ", settling" } else { "" };
        Some(format!(
            "{}: {:.0} s, {} operations, {:.0}/s now, {:.0}/s in all{settling}",
            moment.load,
            moment.seconds,
            moment.ops,
            ops as f64 / span,
            moment.ops as f64 / moment.seconds.max(1e-9)
        ))
    }
}

impl Progress for IntervalLines {
    fn show(&self, moment: &Moment<'_>) {
        if let Some(line) = self.line(moment) {
            // There is nowhere to report that this failed.
            drop(writeln!(io::stderr(), "{line}"));
        }
    }

    fn end(&self) {
        self.micros.store(0, Ordering::Relaxed);
        self.ops.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_at_their_interval() {
        let lines = IntervalLines::new(2.0);
        let moment = |seconds, ops| Moment {
            load: "readrandom",
            ops,
            total: None,
            seconds,
            duration: None,
            settling: false,
        };
        assert_eq!(lines.line(&moment(1.5, 10)), None);
        let line = lines.line(&moment(2.0, 100)).unwrap();
        assert_eq!(
            line,
            "readrandom: 2 s, 100 operations, 50/s now, 50/s in all"
        );
        assert_eq!(lines.line(&moment(3.5, 200)), None);
        let line = lines.line(&moment(4.0, 500)).unwrap();
        assert_eq!(
            line,
            "readrandom: 4 s, 500 operations, 200/s now, 125/s in all"
        );
        lines.end();
        assert!(lines.line(&moment(2.0, 10)).is_some());
    }
}

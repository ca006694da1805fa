//! Progress bars on standard error, shown only where that is a terminal.

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressStyle};
use windrow_bench::{Moment, Progress};

/// A bar over `total` bytes, or a running count where the total is not known.
pub(crate) fn bytes(total: Option<u64>, what: &'static str) -> ProgressBar {
    let template = match total {
        Some(_) => "{msg:>12} [{bar:40}] {bytes} of {total_bytes}, {bytes_per_sec}, {eta} to go",
        None => "{msg:>12} {spinner} {bytes}, {bytes_per_sec}",
    };
    bar(total, template, what)
}

/// A bar over `total` things.
pub(crate) fn count(total: u64, what: &'static str) -> ProgressBar {
    let template = "{msg:>12} [{bar:40}] {human_pos} of {human_len}, {eta} to go";
    bar(Some(total), template, what)
}

/// A sign of life during work whose length is not known.
pub(crate) fn spinner(what: &'static str) -> ProgressBar {
    let bar = bar(None, "{msg:>12} {spinner} {elapsed}", what);
    bar.enable_steady_tick(std::time::Duration::from_millis(100));
    bar
}

fn bar(total: Option<u64>, template: &str, what: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template(template);
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = match total {
        Some(total) => ProgressBar::new(total),
        None => ProgressBar::new_spinner(),
    };
    bar.with_style(style.progress_chars("=> "))
        .with_message(what)
}

/// One line for the load of a bench that goes on: its share of operations or of time.
#[derive(Debug)]
pub(crate) struct LoadBar(ProgressBar);

impl LoadBar {
    /// Parts of the whole that the bar tells apart.
    const PARTS: u64 = 1000;

    /// Shown as soon as a load begins, on a terminal alone.
    pub(crate) fn new() -> Self {
        let template = "{prefix:>22} [{bar:40}] {msg}";
        let style = ProgressStyle::with_template(template);
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = if std::io::stderr().is_terminal() {
            ProgressBar::new(Self::PARTS)
        } else {
            ProgressBar::hidden()
        };
        Self(bar.with_style(style.progress_chars("=> ")))
    }
}

impl Progress for LoadBar {
    fn show(&self, moment: &Moment<'_>) {
        let (share, message) = told(moment);
        self.0.set_prefix(moment.load.to_owned());
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share is between 0 and 1"
        )]
        self.0.set_position((share * Self::PARTS as f64) as u64);
        self.0.set_message(message);
    }

    fn end(&self) {
        // The table's line comes next.
        self.0.finish_and_clear();
        self.0.reset();
    }

    fn is_shown(&self) -> bool {
        !self.0.is_hidden()
    }
}

/// How much of a load is done, and what is said beside the bar.
fn told(moment: &Moment<'_>) -> (f64, String) {
    let by_count = moment
        .total
        .map_or(0.0, |total| moment.ops as f64 / total.max(1) as f64);
    let by_clock = moment
        .duration
        .map_or(0.0, |duration| moment.seconds / duration);
    let rate = moment.ops as f64 / moment.seconds.max(1e-9);
    let message = if moment.settling {
        format!("{} operations, settling for background work", moment.ops)
    } else {
        format!("{} operations, {rate:.0}/s", moment.ops)
    };
    (by_count.max(by_clock).clamp(0.0, 1.0), message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_as_far_as_its_nearer_end() {
        let moment = |ops, total, seconds, duration| Moment {
            load: "readrandom",
            ops,
            total,
            seconds,
            duration,
            settling: false,
        };
        let share = |moment| told(&moment).0;
        assert!((share(moment(50, Some(200), 1.0, None)) - 0.25).abs() < 1e-9);
        assert!((share(moment(50, None, 1.0, Some(2.0))) - 0.5).abs() < 1e-9);
        assert!((share(moment(190, Some(200), 1.0, Some(2.0))) - 0.95).abs() < 1e-9);
        assert!((share(moment(500, Some(200), 1.0, None)) - 1.0).abs() < 1e-9);
        assert!(share(moment(5, None, 1.0, None)).abs() < 1e-9);
        assert!(told(&moment(50, None, 2.0, None)).1.contains("25/s"));
    }
}

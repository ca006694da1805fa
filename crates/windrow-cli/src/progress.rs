//! Progress bars on standard error, shown only if it is a terminal.
//!
//! Concurrency: a bar may be moved by several threads.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar over `total` bytes, or a running count if the total is not known.
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

/// The time so far, for work whose length is not known.
pub(crate) fn spinner(what: &'static str) -> ProgressBar {
    alive("{msg:>12} {spinner} {elapsed}", what)
}

/// The same, with a number of things that are done.
pub(crate) fn counter(what: &'static str) -> ProgressBar {
    alive("{msg:>12} {spinner} {human_pos} in {elapsed}", what)
}

fn alive(template: &str, what: &'static str) -> ProgressBar {
    let bar = bar(None, template, what);
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

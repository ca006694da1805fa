//! The job log: the file `LOG`, a line for each event of the database, for people.
//!
//! A line is a time, the name of an event, and its fields. A line that would make the file longer than half of
//! [`Options::job_log_bytes`] begins a new file. The one before stays as `LOG.old` until the next such line. Waits of
//! writers can be many: they are summed up, and a line with the sums is written at most once a second.
//!
//! Invariants:
//! - I1: Nothing depends on the file. No open reads it, nothing syncs it or its name, and a crash may lose its end or leave
//!   anything there. A write goes behind the end that the file had at the open.
//! - I2: A failure changes nothing but the file. The log then rests for a minute, and counts the lines that it loses.
//! - I3: Nothing is written while the disk is full: what is left of it is for removals. Nor is anything after the close.
//!
//! Concurrency: one lock, held during the write of a line, and one for the sums of stalls, which writers take. Both are
//! leaves; the second may be taken under the first.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::base::sync::Mutex;
use crate::events::Event;
use crate::manifest::names::FileName;
use crate::options::Options;
use crate::runtime::Runtime;
use crate::vfs::{File, OpenMode, Vfs, write_all_at};

/// The rest after a failure.
const REST: Duration = Duration::from_secs(60);

/// The sums of stalls are written this often at most.
const STALL_INTERVAL: Duration = Duration::from_secs(1);

/// The log of an open database.
#[derive(Debug)]
pub(super) struct JobLog {
    vfs: Arc<dyn Vfs>,
    runtime: Arc<dyn Runtime>,
    path: PathBuf,
    old_path: PathBuf,
    /// The most that one of the two files holds, unless one line is longer.
    file_bytes_max: u64,
    state: Mutex<State>,
    stalls: Mutex<StallSums>,
}

/// The stalls that no line has yet.
#[derive(Debug, Default)]
struct StallSums {
    causes: BTreeMap<&'static str, Stalls>,
    /// When the first of them ended.
    since: Duration,
}

#[derive(Debug, Default)]
struct State {
    /// `None` before the first line, and after a failure.
    file: Option<Arc<dyn File>>,
    length: u64,
    /// When a write has failed last, while no later one has succeeded.
    failed_at: Option<Duration>,
    /// Lines lost by failures, which no line reports yet.
    lost: u64,
    /// The last failure of a job, and when its line was written.
    failure: Option<(String, Duration)>,
    /// Whether the disk is full: what is left is for others.
    is_disk_full: bool,
    /// Whether the database is closed: the files may be those of another process.
    is_ended: bool,
}

/// The stalls of one cause that no line has yet.
#[derive(Debug, Default)]
struct Stalls {
    count: u64,
    duration: Duration,
    longest: Duration,
}

impl JobLog {
    /// The log of the database in `directory`; `None` if `options` want none.
    pub(super) fn new(options: &Options, directory: &Path) -> Option<Self> {
        (options.job_log_bytes > 0).then(|| Self {
            vfs: Arc::clone(&options.vfs),
            runtime: Arc::clone(&options.runtime),
            path: directory.join(FileName::JobLog.to_string()),
            old_path: directory.join(FileName::OldJobLog.to_string()),
            file_bytes_max: options.job_log_bytes / 2,
            state: Mutex::default(),
            stalls: Mutex::default(),
        })
    }

    /// Writes the line of `event`, or counts a stall: a writer waits for no file.
    pub(super) fn note(&self, event: &Event) {
        match event {
            Event::StallBegan { .. } => return,
            Event::StallEnded { cause, duration } => {
                let now = self.runtime.unix_time();
                return self.stalls.lock().add(cause, *duration, now);
            }
            _ => {}
        }
        let now = self.runtime.unix_time();
        let mut state = self.state.lock();
        self.write_stalls(&mut state, now);
        if matches!(event, Event::SpaceResumed) {
            state.is_disk_full = false;
        }
        if !state.repeats(event, now) {
            self.write(&mut state, now, event);
        }
        match event {
            Event::NoSpace => state.is_disk_full = true,
            Event::Closed { .. } => (state.is_ended, state.file) = (true, None),
            _ => {}
        }
    }

    /// Writes the sums of stalls that are old enough. Jobs call it.
    pub(super) fn note_time(&self) {
        let now = self.runtime.unix_time();
        if self.stalls.lock().are_old(now) {
            self.write_stalls(&mut self.state.lock(), now);
        }
    }

    fn write_stalls(&self, state: &mut State, now: Duration) {
        let sums = std::mem::take(&mut *self.stalls.lock());
        for (cause, stalls) in sums.causes {
            let line = format_args!("stalls cause=\"{cause}\" {stalls}");
            self.write(state, now, line);
        }
    }

    /// Writes a line; counts it if that fails (I2).
    fn write(&self, state: &mut State, now: Duration, line: impl fmt::Display) {
        if state.is_ended {
            return;
        }
        let rests = |failed_at: Duration| is_within(now, failed_at, REST);
        if state.is_disk_full || state.failed_at.is_some_and(rests) {
            state.lost += 1;
            return;
        }
        let time = Timestamp(now);
        let lost = match state.lost {
            0 => String::new(),
            lost => format!("{time} lines_lost lines={lost}\n"),
        };
        let text = format!("{lost}{time} {line}\n");
        if self.append(state, &text).is_ok() {
            (state.failed_at, state.lost) = (None, 0);
        } else {
            state.file = None;
            state.failed_at = Some(now);
            state.lost += 1;
        }
    }

    fn append(&self, state: &mut State, text: &str) -> io::Result<()> {
        let mut file = match state.file.take() {
            Some(file) => file,
            None => self.open(state)?,
        };
        if state.length > 0 && state.length + text.len() as u64 > self.file_bytes_max {
            drop(file);
            self.vfs.rename(&self.path, &self.old_path)?;
            file = self.vfs.create(&self.path)?;
            state.length = 0;
        }
        write_all_at(&*file, text.as_bytes(), state.length)?;
        state.length += text.len() as u64;
        state.file = Some(file);
        Ok(())
    }

    /// Opens the file, or creates it. What it holds may end within a line, so an empty line follows.
    fn open(&self, state: &mut State) -> io::Result<Arc<dyn File>> {
        let file = match self.vfs.open(&self.path, OpenMode::ReadWrite) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.vfs.create(&self.path),
            outcome => outcome,
        }?;
        state.length = file.length()?;
        if state.length > 0 {
            write_all_at(&*file, b"\n", state.length)?;
            state.length += 1;
        }
        Ok(file)
    }
}

impl State {
    /// Whether `event` is the same failure of a job as one that was written a moment ago: jobs are tried again each second.
    fn repeats(&mut self, event: &Event, now: Duration) -> bool {
        if !matches!(event, Event::JobFailed { .. }) {
            return false;
        }
        let text = event.to_string();
        let is_same = |(last, at): &(String, Duration)| *last == text && is_within(now, *at, REST);
        if self.failure.as_ref().is_some_and(is_same) {
            return true;
        }
        self.failure = Some((text, now));
        false
    }
}

/// Whether `now` is less than `length` after `start`. The clock may go back.
fn is_within(now: Duration, start: Duration, length: Duration) -> bool {
    (start..start.saturating_add(length)).contains(&now)
}

impl StallSums {
    fn add(&mut self, cause: &'static str, duration: Duration, now: Duration) {
        if self.causes.is_empty() {
            self.since = now;
        }
        self.causes.entry(cause).or_default().add(duration);
    }

    /// Whether there are any, and no line had any for a while.
    fn are_old(&self, now: Duration) -> bool {
        !self.causes.is_empty() && !is_within(now, self.since, STALL_INTERVAL)
    }
}

impl Stalls {
    fn add(&mut self, duration: Duration) {
        self.count += 1;
        self.duration += duration;
        self.longest = self.longest.max(duration);
    }
}

impl fmt::Display for Stalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (duration, longest) = (self.duration.as_secs_f64(), self.longest.as_secs_f64());
        let count = self.count;
        write!(
            f,
            "count={count} duration={duration:.6} longest={longest:.6}"
        )
    }
}

/// A time since 1970, as people read it, in UTC: `2026-11-27T00:04:36.123Z`.
#[derive(Debug)]
struct Timestamp(Duration);

/// The last second of the year 9999. Later ones are shown as that.
const SECONDS_MAX: u64 = 253_402_300_799;

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs().min(SECONDS_MAX);
        let (mut day, second) = (seconds / 86_400, seconds % 86_400);
        let mut year = 1970_u64;
        let is_leap = |year: u64| {
            year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
        };
        loop {
            let days = 365 + u64::from(is_leap(year));
            if day < days {
                break;
            }
            day -= days;
            year += 1;
        }
        let mut month = 1;
        let february = 28 + u64::from(is_leap(year));
        for days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
            if day < days {
                break;
            }
            day -= days;
            month += 1;
        }
        let (hour, minute) = (second / 3600, second / 60 % 60);
        let (day, second, milli) = (day + 1, second % 60, self.0.subsec_millis());
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z"
        )
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{Duration, Timestamp};

    #[test]
    fn times_are_shown_by_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00.250Z"),
            (68_169_599, "1972-02-28T23:59:59.250Z"),
            (68_169_600, "1972-02-29T00:00:00.250Z"),
            (68_256_000, "1972-03-01T00:00:00.250Z"),
            (951_782_400, "2000-02-29T00:00:00.250Z"),
            (1_798_761_599, "2026-12-31T23:59:59.250Z"),
            (1_798_761_600, "2027-01-01T00:00:00.250Z"),
            (4_107_542_400, "2100-03-01T00:00:00.250Z"),
            (253_402_300_799, "9999-12-31T23:59:59.250Z"),
            (u64::MAX, "9999-12-31T23:59:59.250Z"),
        ] {
            let time = Duration::new(seconds, 250_000_000);
            assert_eq!(Timestamp(time).to_string(), expected);
        }
    }
}

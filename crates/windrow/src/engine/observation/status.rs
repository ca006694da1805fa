//! The status file: the statistics of the process that has the database open for writing, for other processes.
//!
//! `STATUS` has the text of [`Stats::to_prometheus`](crate::Stats::to_prometheus) between a first and a last line with the
//! number of the write. The last one also has a checksum. The thread that looks for jobs writes it anew when it is due, in
//! place. So a reader may see a mixture of two writes, and then the checksum is wrong: it reads again. The time and the interval are in the text, so a reader can
//! see that the process has ended without its close, or is too busy.
//!
//! Invariants:
//! - I1: Nothing depends on the file, and nothing syncs it. A failure changes nothing but the file; the next try comes after a
//!   minute.
//! - I2: The writes take at most a hundredth of the time. If nothing has changed, one of ten is done.
//!
//! Concurrency: one thread writes at a time; others that find the file due leave it to that one.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::base::sync::Mutex;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::codec::checksum::checksum;
use crate::manifest::names::FileName;
use crate::options::Options;
use crate::vfs::{File, OpenMode, Vfs, read_exact_at, write_all_at};

/// The begin of the file. What begins otherwise is not written over.
const FIRST_LINE: &str = "# windrow status ";

/// The rest after a failure.
const REST: Duration = Duration::from_secs(60);

/// The rest after a write, in multiples of the time that it took (I2).
const REST_FACTOR: u32 = 100;

/// Unchanged statistics are written once in so many times (I2).
const UNCHANGED_SKIPPED: u32 = 10;

/// The status file of an open database.
#[derive(Debug)]
pub(super) struct StatusFile {
    vfs: Arc<dyn Vfs>,
    path: PathBuf,
    interval: Duration,
    /// When it is due, in nanoseconds of the runtime's clock: 0 before the first look, `u64::MAX` while a thread writes it.
    due: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    file: Option<Arc<dyn File>>,
    /// The bytes that were written at most.
    length: usize,
    number: u64,
    /// The statistics of the last write.
    written: String,
    skipped: u32,
    /// Whether the database is closed: the file may be that of another process.
    is_ended: bool,
}

/// The file is due, and this thread writes it.
#[derive(Debug)]
pub(super) struct Due {
    since: Duration,
}

impl StatusFile {
    /// The file of the database in `directory`; `None` if `options` want none.
    pub(super) fn new(options: &Options, directory: &Path) -> Option<Self> {
        (!options.status_interval.is_zero()).then(|| Self {
            vfs: Arc::clone(&options.vfs),
            path: directory.join(FileName::Status.to_string()),
            interval: options.status_interval,
            due: AtomicU64::new(0),
            state: Mutex::default(),
        })
    }

    /// Whether it is due at `now`. The caller then calls [`write`](Self::write).
    pub(super) fn take_due(&self, now: Duration) -> Option<Due> {
        let due = self.due.load(Ordering::Relaxed);
        if due == 0 {
            // A database that is closed soon has no file.
            let first = nanos(now.saturating_add(self.interval));
            self.due.store(first, Ordering::Relaxed);
            return None;
        }
        if nanos(now) < due || due == u64::MAX {
            return None;
        }
        let taken = self
            .due
            .compare_exchange(due, u64::MAX, Ordering::Relaxed, Ordering::Relaxed);
        taken.ok().map(|_| Due { since: now })
    }

    /// Writes `stats` with the `times`, unless nothing has changed. The call comes at `now`.
    pub(super) fn write(&self, due: &Due, stats: String, times: &str, now: impl Fn() -> Duration) {
        let mut state = self.state.lock();
        if state.is_ended {
            return;
        }
        let is_skipped = stats == state.written && state.skipped + 1 < UNCHANGED_SKIPPED;
        let outcome = if is_skipped {
            state.skipped += 1;
            Ok(())
        } else {
            state.number += 1;
            let number = state.number;
            let text = format!("{FIRST_LINE}{number}\n{times}{stats}");
            let checksum = checksum(number, text.as_bytes());
            let text = format!("{text}# end {number} {checksum:08x}\n");
            (state.written, state.skipped) = (stats, 0);
            self.write_text(&mut state, text)
        };
        let end = now();
        let rest = if outcome.is_ok() {
            let cost = end.saturating_sub(due.since).saturating_mul(REST_FACTOR);
            self.interval.max(cost)
        } else {
            // The next write looks at the file anew.
            (state.file, state.written) = (None, String::new());
            REST
        };
        drop(state);
        self.due
            .store(nanos(end.saturating_add(rest)), Ordering::Relaxed);
    }

    /// Writes `text` over the one before. Empty lines cover the rest of a longer one.
    fn write_text(&self, state: &mut State, mut text: String) -> io::Result<()> {
        let file = match state.file.take() {
            Some(file) => file,
            None => self.open(state)?,
        };
        let padding = state.length.saturating_sub(text.len());
        state.length = state.length.max(text.len());
        text.extend(std::iter::repeat_n('\n', padding));
        write_all_at(&*file, text.as_bytes(), 0)?;
        state.file = Some(file);
        Ok(())
    }

    fn open(&self, state: &mut State) -> io::Result<Arc<dyn File>> {
        let file = match self.vfs.open(&self.path, OpenMode::ReadWrite) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.vfs.create(&self.path),
            outcome => outcome,
        }?;
        let left = file.length()?;
        state.length = usize::try_from(left).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let mut first = [0; FIRST_LINE.len()];
        if state.length > 0 {
            read_exact_at(&*file, &mut first, 0)?;
        }
        // What others have put there stays.
        if state.length > LEFT_BYTES_MAX || state.length > 0 && first != *FIRST_LINE.as_bytes() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        Ok(file)
    }

    /// Removes the file at the close. If that fails, its time shows that it is old (I1).
    pub(super) fn end(&self) {
        self.due.store(u64::MAX, Ordering::Relaxed);
        let mut state = self.state.lock();
        state.is_ended = true;
        if state.file.take().is_some() {
            self.vfs.remove(&self.path).ok();
        }
    }
}

/// A file that is longer before the first write stays as it is.
const LEFT_BYTES_MAX: usize = 64 << 20;

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX - 1)
}

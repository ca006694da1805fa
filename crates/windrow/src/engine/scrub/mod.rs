//! Scrubs: the checksums of all files are compared from time to time, so that damage is found while a backup still has what it
//! has hit.
//!
//! A scrub in the background checks each byte about once in [`Options::full_scrub_interval`](crate::Options): a step of
//! [`STEP_BYTES`] when it is late, at most one a second, by a worker that has no job. A scrub by hand
//! ([`Engine::scrub`]) checks all at once on the thread of the caller, at its own rate. [`ScrubPass`] decides what is next.
//!
//! The files: [`files`](self::files), what is checked and how; [`progress`], how far a pass is, over closes and crashes;
//! [`copies`](self::copies), whole copies in backups; [`report`], what a caller sees.
//!
//! Invariants:
//! - I1: A scrub changes no file but its own note. Damage is an event, and no failure of a job.
//! - I2: A pass reports a damaged file once. A file that is not part of the database any more is not damaged.
//! - I3: Between two steps nothing is held: no version, no file, no lock.
//!
//! Concurrency: one step in the background at a time, whoever takes it out of its slot. Scrubs by hand have their own passes.

mod copies;
mod files;
mod progress;
pub(super) mod report;

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Access, Engine};
use crate::base::sync::Mutex;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::base::{Error, ErrorKind, FileNumber, Result, TokenBucket};
use crate::events::Event;
use crate::manifest::names::FileName;
use crate::policy::ScrubPass;
use files::ScrubFile;
use progress::ProgressFile;
use report::{Scrub, ScrubDamage, ScrubProgress, ScrubReport};

/// A step checks about so many bytes.
const STEP_BYTES: u64 = 1 << 20;

/// What a file counts at least in a step: to open it costs as much.
const FILE_COST: u64 = 64 << 10;

/// The first look in the background comes so long after the open, so that a database that is closed soon does not see one.
const FIRST_PAUSE: Duration = Duration::from_secs(60);

/// The time between two steps in the background.
const PAUSE: Duration = Duration::from_secs(1);

/// A scrub by hand that waits for its rate looks this often whether the database is still open.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The scrubs of an open database.
#[derive(Debug, Default)]
pub(super) struct Scrubbing {
    background: Mutex<Slot>,
    /// Bytes that were checked since the open.
    bytes: AtomicU64,
    /// Damaged files that were found since the open.
    damaged_files: AtomicU64,
}

/// The scrub in the background.
#[derive(Debug, Default)]
struct Slot {
    /// When the next step may be; `None` before the first look, and while a thread works on the pass.
    due: Option<Duration>,
    has_begun: bool,
    pass: Option<Pass>,
}

impl Scrubbing {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn damaged_files(&self) -> u64 {
        self.damaged_files.load(Ordering::Relaxed)
    }

    /// Whether a step may be due at `now`. The caller then has the slot, and [puts](Self::put) a pass there.
    fn claim(&self, now: Duration) -> bool {
        let mut slot = self.background.lock();
        if !slot.has_begun {
            slot.has_begun = true;
            slot.due = Some(now.saturating_add(FIRST_PAUSE));
        }
        slot.due.take_if(|due| *due <= now).is_some()
    }

    fn put(&self, pass: Pass, due: Duration) {
        let mut slot = self.background.lock();
        (slot.pass, slot.due) = (Some(pass), Some(due));
    }
}

/// A pass under way.
#[derive(Debug)]
struct Pass {
    state: ScrubPass,
    note: ProgressFile,
    /// The files whose damage is reported (I2).
    reported: BTreeSet<String>,
    /// The bytes that are left; `None` before the first look at the files.
    left: Option<u64>,
    is_over: bool,
}

/// What a step has done.
#[derive(Debug, Default)]
struct Step {
    bytes: u64,
    /// Files that are checked to their ends.
    files: u64,
    found: Vec<(ScrubFile, Error)>,
}

impl Engine {
    /// The pass that the file `note` is about, or a new one.
    fn resumed_pass(&self, note: FileName) -> Pass {
        let note = ProgressFile::new(&self.options.vfs, self.directory.join(note.to_string()));
        let state = note.read().map(ScrubPass::resumed);
        Pass {
            state: state.unwrap_or_else(|| self.new_pass()),
            note,
            reported: BTreeSet::new(),
            left: None,
            is_over: false,
        }
    }

    fn new_pass(&self) -> ScrubPass {
        let end = self.catalog.with_state(|state| FileNumber(state.next_id));
        ScrubPass::new(self.options.runtime.unix_time(), end)
    }

    /// Does a step in the background if one is due, on a worker, which a close waits for. Returns whether it has read
    /// anything.
    pub(super) fn scrub_in_background(&self) -> bool {
        let interval = self.options.full_scrub_interval;
        let may_scrub = self.access == Access::ReadWrite && !self.poison.is_set();
        if interval.is_zero() || !may_scrub {
            return false;
        }
        if !self.scrubbing.claim(self.options.runtime.now()) {
            return false;
        }
        let pass = self.scrubbing.background.lock().pass.take();
        let step = self.poison_on_panic(|| {
            let mut pass = pass.unwrap_or_else(|| self.resumed_pass(FileName::Scrub));
            let step = self.scrub_if_late(&mut pass, interval);
            let due = self.options.runtime.now().saturating_add(PAUSE);
            self.scrubbing.put(pass, due);
            step
        });
        step.is_ok_and(|step| step.bytes > 0)
    }

    fn scrub_if_late(&self, pass: &mut Pass, interval: Duration) -> Result<Step> {
        let now = self.options.runtime.unix_time();
        if pass.is_over {
            if !pass.state.is_next_due(now, interval) {
                return Ok(Step::default());
            }
            pass.state = self.new_pass();
            (pass.left, pass.is_over) = (None, false);
            pass.reported.clear();
        }
        let is_first_look = pass.left.is_none();
        let left = pass.left.unwrap_or_else(|| self.left(&pass.state));
        pass.left = Some(left);
        pass.is_over = left == 0;
        if !pass.is_over && !pass.state.is_late(now, interval, left) {
            if is_first_look {
                self.note_progress(pass);
            }
            return Ok(Step::default());
        }
        let step = self.scrub_step(pass);
        if let Ok(step) = &step {
            for (file, error) in &step.found {
                self.report_damage(pass, file, error, None);
            }
            if is_first_look || step.bytes > 0 || pass.is_over {
                self.note_progress(pass);
            }
        }
        step
    }

    /// Writes the note of `pass`, unless what is left of the disk is for removals.
    fn note_progress(&self, pass: &Pass) {
        if !self.reserve.is_full() {
            pass.note.write(&pass.state);
        }
    }

    /// The bytes that `pass` has yet to check.
    fn left(&self, pass: &ScrubPass) -> u64 {
        pass.next(self.file_lengths()).map_or(0, |next| next.left)
    }

    /// The files that can be checked now, with their bytes.
    fn file_lengths(&self) -> Vec<(FileNumber, u64)> {
        let mut lengths = Vec::new();
        self.each_scrub_file(&mut |file| lengths.push((file.number(), file.bytes())));
        lengths
    }

    /// Checks about [`STEP_BYTES`].
    ///
    /// # Errors
    /// `Closed` once the close has begun.
    fn scrub_step(&self, pass: &mut Pass) -> Result<Step> {
        let (mut step, mut cost) = (Step::default(), 0);
        let lengths = self.file_lengths();
        while cost < STEP_BYTES {
            let Some(next) = pass.state.next(lengths.iter().copied()) else {
                (pass.is_over, pass.left) = (true, Some(0));
                break;
            };
            let Some(file) = self.scrub_file(next.file) else {
                pass.state.note(next.file, None, 0); // It is gone.
                continue;
            };
            let mut bytes = 0;
            let checked = self.check_file(&file, &self.own_place(), next.offset, &mut |more| {
                bytes += more;
                self.check_cancelled()?;
                Ok(cost + bytes < STEP_BYTES)
            });
            let goes_on_at = match checked {
                Ok(goes_on_at) => goes_on_at,
                Err(closed) if closed.kind() == ErrorKind::Closed => return Err(closed),
                Err(error) => {
                    // Whoever has removed the file meanwhile needs it no more (I2).
                    if self.scrub_file(next.file).is_some() {
                        step.found.push((file, error));
                    }
                    None
                }
            };
            pass.state.note(next.file, goes_on_at, bytes);
            pass.left = Some(next.left.saturating_sub(bytes));
            step.bytes += bytes;
            step.files += u64::from(goes_on_at.is_none());
            cost += bytes.max(FILE_COST);
        }
        self.scrubbing
            .bytes
            .fetch_add(step.bytes, Ordering::Relaxed);
        Ok(step)
    }

    /// Reports what was found in a check of `file`, unless the pass has reported that already. `backup` has a whole copy.
    fn report_damage(
        &self,
        pass: &mut Pass,
        file: &ScrubFile,
        error: &Error,
        backup: Option<u64>,
    ) -> Option<ScrubDamage> {
        pass.state.damaged.insert(file.number());
        let name = damaged_file(file, error);
        if !pass.reported.insert(name.clone()) {
            return None;
        }
        self.scrubbing.damaged_files.fetch_add(1, Ordering::Relaxed);
        let damage = ScrubDamage {
            file: name,
            error: error.duplicate(),
            backup,
        };
        self.observer.notify(|| Event::DamageFound {
            file: damage.file.clone(),
            damage: damage.to_string(),
            backup,
        });
        Some(damage)
    }

    /// Checks all files once, on this thread. Goes on with the last call that was interrupted.
    pub(crate) fn scrub(&self, scrub: &Scrub<'_>) -> Result<ScrubReport> {
        self.check_open()?;
        let mut pass = self.resumed_pass(FileName::ScrubByHand);
        let mut report = ScrubReport {
            resumed_bytes: pass.state.checked,
            ..ScrubReport::default()
        };
        let mut bucket = TokenBucket::default();
        while !pass.is_over {
            let running = self.signal.begin_job().ok_or_else(Error::closed)?;
            let step = self.scrub_step(&mut pass);
            running.end_unchanged();
            let step = step?;
            report.bytes += step.bytes;
            report.files += step.files;
            for (file, error) in &step.found {
                let backup = scrub
                    .backups
                    .filter(|_| damaged_file(file, error) == file.name().to_string())
                    .and_then(|backups| self.whole_copy(backups, file));
                let damage = self.report_damage(&mut pass, file, error, backup);
                report.damage.extend(damage);
            }
            self.note_progress(&pass);
            if let Some(listener) = scrub.listener {
                let done = pass.state.checked;
                let total = done.saturating_add(pass.left.unwrap_or_default());
                listener(ScrubProgress { done, total });
            }
            self.wait_for_rate(&mut bucket, step.bytes, scrub.bytes_per_second)?;
        }
        pass.note.remove();
        Ok(report)
    }

    /// Waits until more bytes may follow the `bytes` that were read.
    fn wait_for_rate(&self, bucket: &mut TokenBucket, bytes: u64, rate: u64) -> Result<()> {
        if rate == 0 {
            return Ok(());
        }
        let runtime = &self.options.runtime;
        let owed = bucket.take(bytes, rate as f64, runtime.now());
        let mut rest = Duration::from_secs_f64(owed.max(0.0) / rate as f64);
        while !rest.is_zero() {
            let piece = rest.min(POLL_INTERVAL);
            runtime.sleep(piece);
            rest -= piece;
            self.check_cancelled()?;
        }
        Ok(())
    }
}

/// The name of the file that `error`, met in a check of `file`, is about: a table can lead to a damaged transient log.
fn damaged_file(file: &ScrubFile, error: &Error) -> String {
    let name = error.file().and_then(|path| path.file_name());
    name.map_or_else(
        || file.name().to_string(),
        |name| name.to_string_lossy().into_owned(),
    )
}

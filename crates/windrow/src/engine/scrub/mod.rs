//! Scrubs: the checksums of all files are compared from time to time, so that damage is found while a backup still has what it
//! has hit. A scrub does less than [`verify`](Engine::verify), which also compares order, counts and references, and in
//! pieces.
//!
//! A pass is a sequence of steps, which end with the block or the record that reaches [`STEP_BYTES`]; [`ScrubPass`] decides
//! what is next. The files: [`background`],
//! the steps that workers do, and [`by_hand`], those of [`Db::scrub`](crate::Db::scrub); [`files`](self::files), what is
//! checked and how; [`progress`], how far a pass is, over closes and crashes; [`copies`](self::copies), whole copies in
//! backups; [`report`], what a caller sees.
//!
//! Invariants:
//! - I1: A scrub changes no file but its own note. Neither damage nor a panic poisons the database.
//! - I2: A pass reports a damaged file once. A file that is not part of the database any more is not damaged.
//! - I3: Between two steps nothing is held: no version, no file, no lock.
//! - I4: What fails for another reason than damage is tried again, [`TRIES`] times in all. A step that failed is not noted.
//!   Then the pass leaves out the file and says so.
//! - I5: A note can be left from another database in the same folder: damage that is met where it says that a check is to go
//!   on is damage if a check from the begin of the file meets it, too.
//!
//! Concurrency: one step in the background at a time, whoever takes it out of its slot. Scrubs by hand have their own passes,
//! and one note: the last to write it wins, and what it notes was checked.

mod background;
mod by_hand;
mod copies;
mod files;
mod progress;
pub(super) mod report;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{Access, Engine};
use crate::base::sync::Mutex;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::base::{Error, ErrorKind, FileNumber, Result};
use crate::events::Event;
use crate::manifest::names::FileName;
use crate::policy::ScrubPass;
use background::Slot;
use files::{ScrubFile, Way};
use progress::ProgressFile;
use report::ScrubDamage;

/// A step checks about so many bytes.
const STEP_BYTES: u64 = 1 << 20;

/// What a file counts at least in a step: to open it costs as much.
const FILE_COST: u64 = 64 << 10;

/// A step reads as much behind what it checks, which the next one reads again. So rates count it.
const READ_AHEAD_BYTES: u64 = 256 << 10;

/// How often the same is tried (I4).
const TRIES: u32 = 3;

/// The scrubs of an open database.
#[derive(Debug, Default)]
pub(super) struct Scrubbing {
    background: Mutex<Slot>,
    /// Bytes that were checked since the open.
    bytes: AtomicU64,
    /// Damaged files that were found since the open.
    damaged_files: AtomicU64,
}

impl Scrubbing {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn damaged_files(&self) -> u64 {
        self.damaged_files.load(Ordering::Relaxed)
    }
}

/// A pass under way.
#[derive(Debug)]
struct Pass {
    state: ScrubPass,
    /// `None` if the database is open for reading: then nothing is written.
    note: Option<ProgressFile>,
    /// The files whose damage is reported (I2).
    reported: BTreeSet<String>,
    /// The bytes that are left; `None` before the first look at the files.
    left: Option<u64>,
    is_over: bool,
    /// The file that was checked last.
    file: Option<FileName>,
    /// How often its check has failed.
    failures: u32,
    /// Whether the next check begins at an offset that a note has.
    is_at_noted_offset: bool,
}

/// What a step has done.
#[derive(Debug, Default)]
struct Step {
    bytes: u64,
    /// Files that are checked to their ends.
    files: u64,
    found: Vec<(FileName, Error)>,
    /// What the pass leaves out, with the cause.
    left_out: Option<Error>,
    /// Whether it has changed what the note says.
    is_news: bool,
}

impl Pass {
    fn new(state: ScrubPass, note: Option<ProgressFile>) -> Self {
        Self {
            is_at_noted_offset: state.current.is_some(),
            state,
            note,
            reported: BTreeSet::new(),
            left: None,
            is_over: false,
            file: None,
            failures: 0,
        }
    }

    /// Notes that a step failed because of `error` (I4).
    fn note_failure(&mut self, step: &mut Step, error: Error) {
        step.is_news = false;
        self.failures += 1;
        if self.failures < TRIES {
            return;
        }
        self.failures = 0;
        step.is_news = true;
        let file = self
            .file
            .and_then(|name| name.number().map(|number| (name, number)));
        let Some((name, number)) = file else {
            // Not even the files are known.
            self.is_over = true;
            step.left_out = Some(error);
            return;
        };
        self.state.note(number, None, 0);
        if error.is_device_failure() {
            step.found.push((name, error));
        } else {
            self.state.damaged.insert(number);
            step.left_out = Some(error);
        }
    }
}

impl Engine {
    /// A pass that checks what there is now.
    fn new_pass(&self) -> ScrubPass {
        ScrubPass::new(self.options.runtime.unix_time(), self.next_file())
    }

    fn next_file(&self) -> FileNumber {
        self.catalog.with_state(|state| FileNumber(state.next_id))
    }

    /// The note of this name, if the database is open for writing.
    fn scrub_note(&self, name: FileName) -> Option<ProgressFile> {
        let path = self.directory.join(name.to_string());
        (self.access == Access::ReadWrite).then(|| ProgressFile::new(&self.options.vfs, path))
    }

    /// Does a step of `pass` by `work`, which may fail or panic (I1, I4).
    ///
    /// # Errors
    /// `Closed` once the close has begun.
    fn do_step(
        &self,
        pass: &mut Pass,
        work: impl FnOnce(&mut Pass, &mut Step) -> Result<()>,
    ) -> Result<Step> {
        let mut step = Step::default();
        let outcome = catch_unwind(AssertUnwindSafe(|| work(pass, &mut step)));
        let outcome = outcome.unwrap_or_else(|_| {
            let file = pass.file.map(|file| format!(" {file}")).unwrap_or_default();
            Err(Error::new(
                ErrorKind::Io,
                format!("the check of{file} panicked"),
            ))
        });
        match outcome {
            Err(closed) if closed.kind() == ErrorKind::Closed => return Err(closed),
            Err(error) => pass.note_failure(&mut step, error),
            Ok(()) => {}
        }
        let bytes = &self.scrubbing.bytes;
        bytes.fetch_add(step.bytes, Ordering::Relaxed);
        Ok(step)
    }

    /// Checks about [`STEP_BYTES`].
    ///
    /// # Errors
    /// `Closed` once the close has begun; what is no damage.
    fn check_some(&self, pass: &mut Pass, step: &mut Step) -> Result<()> {
        let last = pass.file.take();
        let (files, mut cost) = (self.scrub_files(), 0);
        while cost < STEP_BYTES {
            let lengths = files.iter().map(|file| (file.number(), file.bytes()));
            let next = pass.state.next(lengths);
            let file = next.and_then(|it| files.iter().find(|file| file.number() == it.file));
            let (Some(next), Some(file)) = (next, file) else {
                (pass.is_over, pass.left) = (true, Some(0));
                break;
            };
            if last != Some(file.name()) {
                pass.failures = 0;
            }
            pass.file = Some(file.name());
            let before = step.bytes;
            let checked = self.check_step_of(file, next.offset, pass, (step, cost));
            let goes_on_at = match checked {
                Err(error) if self.is_in_use(file) => {
                    if error.kind() != ErrorKind::Corruption {
                        return Err(error);
                    }
                    if pass.is_at_noted_offset {
                        Some(0) // The note may be about another file (I5).
                    } else {
                        step.found.push((file.name(), error));
                        None
                    }
                }
                // Whoever has removed the file meanwhile needs it no more (I2).
                checked => checked.unwrap_or_default(),
            };
            let bytes = step.bytes - before;
            (pass.failures, pass.is_at_noted_offset) = (0, false);
            pass.state.note(next.file, goes_on_at, bytes);
            pass.left = Some(next.left.saturating_sub(bytes));
            step.files += u64::from(goes_on_at.is_none());
            cost += bytes.max(FILE_COST);
        }
        step.is_news = true;
        Ok(())
    }

    /// Checks `file` from `offset` on until the step, which has cost `cost` so far, is long enough. Damage in the transient logs
    /// that it leads to is added to the step.
    fn check_step_of(
        &self,
        file: &ScrubFile,
        offset: u64,
        pass: &Pass,
        (step, cost): (&mut Step, u64),
    ) -> Result<Option<u64>> {
        let Step { bytes, found, .. } = step;
        let before = *bytes;
        let is_last_try = pass.failures + 1 >= TRIES;
        let mut way = Way {
            pass: &mut |more| {
                *bytes += more;
                self.check_cancelled()?;
                Ok(cost + (*bytes - before) < STEP_BYTES)
            },
            elsewhere: &mut |error| {
                let is_damage = error.kind() == ErrorKind::Corruption
                    || is_last_try && error.is_device_failure();
                if !is_damage {
                    return Err(error);
                }
                // Many values of one file may be damaged.
                if !found.iter().any(|(_, it)| it.file() == error.file()) {
                    found.push((file.name(), error));
                }
                Ok(())
            },
        };
        self.check_file(file, &self.own_place(), offset, &mut way)
    }

    /// Whether `file` is still part of the database. A log that was let go may be in the chain for a moment.
    fn is_in_use(&self, file: &ScrubFile) -> bool {
        if let ScrubFile::Log(number, _) = file {
            return self.is_log_named(*number);
        }
        let files = self.scrub_files();
        files.iter().any(|it| it.number() == file.number())
    }

    /// Reports what was found in a check of `file`, unless the pass has reported that already. `backup` has a whole copy.
    fn report_damage(
        &self,
        pass: &mut Pass,
        (file, error): (FileName, &Error),
        backup: Option<u64>,
    ) -> Option<ScrubDamage> {
        pass.state.damaged.extend(file.number());
        let name = damaged_file(file, error);
        if !pass.reported.insert(name.clone()) {
            return None;
        }
        let damaged = &self.scrubbing.damaged_files;
        damaged.fetch_add(1, Ordering::Relaxed);
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

    /// Reports what a pass leaves out.
    fn report_left_out(&self, step: &Step) {
        if let Some(error) = &step.left_out {
            self.observer.notify(|| Event::JobFailed {
                job: "scrub",
                keyspace: None,
                error: error.to_string(),
            });
        }
    }

    /// Writes the note of `pass`, unless what is left of the disk is for removals.
    fn note_progress(&self, pass: &Pass) {
        if !self.reserve.is_full() {
            self.change_note(pass, |note| note.write(&pass.state));
        }
    }

    /// Changes the note of `pass`, unless the database is closed: it may be that of another process.
    fn change_note(&self, pass: &Pass, change: impl FnOnce(&ProgressFile)) {
        if let (Some(note), Some(running)) = (&pass.note, self.signal.begin_job()) {
            change(note);
            running.end_unchanged();
        }
    }
}

/// The name of the file that `error`, met in a check of `file`, is about: a table can lead to a damaged transient log.
fn damaged_file(file: FileName, error: &Error) -> String {
    let name = error.file().and_then(|path| path.file_name());
    name.map_or_else(
        || file.to_string(),
        |name| name.to_string_lossy().into_owned(),
    )
}

//! Scrubs by hand: all files at once, on the thread of the caller.
//!
//! Concurrency: any number at a time, each with its own pass.

use std::time::Duration;

use super::report::{Scrub, ScrubProgress, ScrubReport};
use super::{Engine, Pass, ProgressFile, READ_AHEAD_BYTES, Step, damaged_file};
use crate::base::{Error, Result, TokenBucket};
use crate::manifest::names::FileName;

/// A scrub that waits looks this often whether the database is still open.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The time between two tries of what has failed.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

impl Engine {
    /// Checks all files once. Goes on with the last call that was interrupted.
    pub(crate) fn scrub(&self, scrub: &Scrub<'_>) -> Result<ScrubReport> {
        self.check_open()?;
        let mut pass = self.pass_by_hand();
        let mut report = ScrubReport {
            resumed_bytes: pass.state.checked,
            ..ScrubReport::default()
        };
        let mut bucket = TokenBucket::default();
        while !pass.is_over {
            let running = self.signal.begin_job().ok_or_else(Error::closed)?;
            let step = self.do_step(&mut pass, |pass, step| self.check_some(pass, step));
            running.end_unchanged();
            let step = step?;
            let (bytes, is_news) = (step.bytes, step.is_news);
            self.add_step(step, (scrub, &mut pass), &mut report);
            if !is_news {
                self.pause(RETRY_PAUSE)?;
                continue;
            }
            self.note_progress(&pass);
            if let Some(listener) = scrub.listener {
                let done = pass.state.checked;
                let total = done.saturating_add(pass.left.unwrap_or_default());
                listener(ScrubProgress { done, total });
            }
            let rate = scrub.bytes_per_second;
            if rate > 0 {
                let read = bytes.saturating_add(READ_AHEAD_BYTES);
                let owed = bucket.take(read, rate as f64, self.options.runtime.now());
                self.pause(Duration::from_secs_f64(owed.max(0.0) / rate as f64))?;
            }
        }
        self.change_note(&pass, ProgressFile::remove);
        Ok(report)
    }

    /// The pass that the note is about, or a new one.
    fn pass_by_hand(&self) -> Pass {
        let note = self.scrub_note(FileName::ScrubByHand);
        let noted = note.as_ref().and_then(ProgressFile::read);
        let now = self.options.runtime.unix_time();
        let noted = noted.and_then(|pass| pass.resumed_by_hand(self.next_file(), now));
        Pass::new(noted.unwrap_or_else(|| self.new_pass()), note)
    }

    /// Adds what `step` has found to `report`.
    fn add_step(
        &self,
        step: Step,
        (scrub, pass): (&Scrub<'_>, &mut Pass),
        report: &mut ScrubReport,
    ) {
        self.report_left_out(&step);
        report.bytes += step.bytes;
        report.files += step.files;
        report.left_out.extend(step.left_out);
        for (file, error) in step.found {
            let backups = scrub
                .backups
                .filter(|_| damaged_file(file, &error) == file.to_string());
            let backup = backups.and_then(|backups| self.whole_copy(backups, file));
            let damage = self.report_damage(pass, (file, &error), backup);
            report.damage.extend(damage);
        }
    }

    /// # Errors
    /// `Closed` once the close has begun.
    fn pause(&self, mut rest: Duration) -> Result<()> {
        while !rest.is_zero() {
            let piece = rest.min(POLL_INTERVAL);
            self.options.runtime.sleep(piece);
            rest -= piece;
            self.check_cancelled()?;
        }
        Ok(())
    }
}

//! The scrub in the background: it checks each byte about once in
//! [`Options::full_scrub_interval`](crate::Options::full_scrub_interval). A worker that has no job does a step if the
//! pass is late.
//!
//! Invariant I1: All steps together read at most [`BYTES_PER_SECOND`], and take at most a tenth of one thread.
//!
//! Concurrency: a worker claims the slot, so one step is done at a time. A close waits for it, as for a job.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::{Access, Engine, Pass, ProgressFile, READ_AHEAD_BYTES, Step};
use crate::base::Result;
use crate::manifest::names::FileName;

/// What the background reads at most.
const BYTES_PER_SECOND: u64 = 1 << 20;

/// The rest after a step, in multiples of the time that it took (I1).
const REST_FACTOR: u32 = 9;

/// The first look comes so long after the open, so that a database that is closed soon does not see one; and the next one
/// after a panic.
const FIRST_PAUSE: Duration = Duration::from_secs(60);

/// The time between two looks at least.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The scrub in the background.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// When the next step may be; `None` before the first look, and while a thread works on the pass.
    due: Option<Duration>,
    has_begun: bool,
    pass: Option<Pass>,
}

impl Slot {
    /// Whether a step may be due at `now`. The caller then has the pass, and puts it back.
    fn claim(&mut self, now: Duration) -> bool {
        if !self.has_begun {
            self.has_begun = true;
            self.due = Some(now.saturating_add(FIRST_PAUSE));
        }
        self.due.take_if(|due| *due <= now).is_some()
    }
}

impl Engine {
    /// Does a step if one is due. Returns whether it has read anything.
    pub(in crate::engine) fn scrub_in_background(&self) -> bool {
        let (runtime, slot) = (&self.options.runtime, &self.scrubbing.background);
        let is_wanted = !self.options.full_scrub_interval.is_zero();
        let may_scrub = self.access == Access::ReadWrite && !self.poison.is_set();
        if !is_wanted || !may_scrub || !slot.lock().claim(runtime.now()) {
            return false;
        }
        let Some(running) = self.signal.begin_job() else {
            return false;
        };
        let began = runtime.now();
        let pass = slot.lock().pass.take();
        // Also a panic outside of the check, as of a file system at the note, must not end the worker.
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let mut pass = pass.unwrap_or_else(|| self.background_pass());
            let bytes = self.scrub_if_late(&mut pass);
            (pass, bytes)
        }));
        let now = runtime.now();
        let (pass, bytes, rest) = match outcome {
            Ok((pass, bytes)) => {
                let rest = rest_after(bytes, now.saturating_sub(began));
                (Some(pass), bytes, rest)
            }
            Err(_) => (None, 0, FIRST_PAUSE),
        };
        let mut slot = slot.lock();
        (slot.pass, slot.due) = (pass, Some(now.saturating_add(rest)));
        drop(slot);
        running.end_unchanged();
        bytes > 0
    }

    /// The pass that the note is about, or a new one.
    fn background_pass(&self) -> Pass {
        let note = self.scrub_note(FileName::Scrub);
        let noted = note.as_ref().and_then(ProgressFile::read);
        let now = self.options.runtime.unix_time();
        let times = (now, self.options.full_scrub_interval);
        let noted = noted.and_then(|pass| pass.resumed_in_background(self.next_file(), times));
        Pass::new(noted.unwrap_or_else(|| self.new_pass()), note)
    }

    /// Does a step of `pass` if it is late, and reports what that finds. Returns the bytes that were checked.
    fn scrub_if_late(&self, pass: &mut Pass) -> u64 {
        let Ok(step) = self.do_step(pass, |pass, step| self.check_if_late(pass, step)) else {
            return 0; // The database is being closed.
        };
        for (file, error) in &step.found {
            self.report_damage(pass, (*file, error), None);
        }
        self.report_left_out(&step);
        if step.is_news {
            self.note_progress(pass);
        }
        step.bytes
    }

    fn check_if_late(&self, pass: &mut Pass, step: &mut Step) -> Result<()> {
        let interval = self.options.full_scrub_interval;
        let now = self.options.runtime.unix_time();
        if pass.is_over {
            if !pass.state.is_next_due(now, interval) {
                return Ok(());
            }
            *pass = Pass::new(self.new_pass(), pass.note.take());
        }
        let left = pass.left.unwrap_or_else(|| {
            step.is_news = true;
            let files = self.scrub_files();
            let lengths = files.iter().map(|file| (file.number(), file.bytes()));
            pass.state.next(lengths).map_or(0, |next| next.left)
        });
        pass.left = Some(left);
        // Values of transient logs count as read, and not as left: only a step knows the end.
        if left > 0 && !pass.state.is_late(now, interval, left) {
            return Ok(());
        }
        self.check_some(pass, step)
    }
}

/// The rest after a step that has checked so many `bytes` and taken so much `time` (I1).
fn rest_after(bytes: u64, time: Duration) -> Duration {
    if bytes == 0 {
        return LOOK_INTERVAL;
    }
    let read = bytes.saturating_add(READ_AHEAD_BYTES);
    let for_rate = Duration::from_secs_f64(read as f64 / BYTES_PER_SECOND as f64);
    LOOK_INTERVAL.max(for_rate).max(time * REST_FACTOR)
}

#[cfg(test)]
mod tests {
    use super::{BYTES_PER_SECOND, Duration, READ_AHEAD_BYTES, rest_after};

    #[test]
    fn steps_hold_the_rate_and_take_a_tenth_of_a_thread() {
        let second = Duration::from_secs(1);
        assert_eq!(rest_after(0, second), second);
        assert_eq!(rest_after(1, Duration::ZERO), second);
        let many = 5 * BYTES_PER_SECOND - READ_AHEAD_BYTES;
        assert_eq!(rest_after(many, Duration::ZERO), 5 * second);
        assert_eq!(rest_after(many, 4 * second), 36 * second);
    }
}

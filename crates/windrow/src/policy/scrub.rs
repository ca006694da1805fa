//! Which file a scrub checks next, and when. Pure.
//!
//! A pass checks each file once that was there when it began, the oldest first: files have ascending numbers, so those that
//! were not checked for longest come first, and one number says how far the pass is. What is written later is for the next
//! pass. A pass that was interrupted ends with the files in which it has found damage, so that it knows of them again, and so
//! that they keep no other file from its turn.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::base::FileNumber;

/// A scrub by hand does not go on with one that began longer ago: its report is about the present.
const RESUMED_AFTER_MAX: Duration = Duration::from_secs(24 * 3600);

/// How far a pass is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ScrubPass {
    /// When it began, since the start of 1970.
    pub(crate) began: Duration,
    /// The files before this one are checked, except those in `again`.
    pub(crate) done: FileNumber,
    /// The file that is checked in part, and the end of this part.
    pub(crate) current: Option<(FileNumber, u64)>,
    /// Files from this number on came later.
    pub(crate) end: FileNumber,
    /// The bytes that were checked.
    pub(crate) checked: u64,
    /// The files in which damage was found, or that were left out.
    pub(crate) damaged: BTreeSet<FileNumber>,
    /// Files that are checked once more, after all others.
    pub(crate) again: BTreeSet<FileNumber>,
}

/// What to check next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NextCheck {
    pub(crate) file: FileNumber,
    /// Where to begin in it.
    pub(crate) offset: u64,
    /// The bytes that are left, those of other files included.
    pub(crate) left: u64,
}

impl ScrubPass {
    /// A pass over the files before `end`, which begins at `now`.
    pub(crate) fn new(now: Duration, end: FileNumber) -> Self {
        Self {
            began: now,
            end,
            ..Self::default()
        }
    }

    /// This pass after an interruption, if it is one of this database, whose next file gets the number `next_file`.
    fn resumed(mut self, next_file: FileNumber) -> Option<Self> {
        self.again.append(&mut self.damaged);
        // What was found in the part that was checked must be found again.
        let again = &self.again;
        self.current.take_if(|(file, _)| again.contains(file));
        (self.end <= next_file).then_some(self)
    }

    /// The same for a pass in the background. If the next one is due at `now`, which finds all damage anew, nothing is checked
    /// again: a file that takes longer than each open would keep the pass from its end.
    pub(crate) fn resumed_in_background(
        self,
        next_file: FileNumber,
        (now, interval): (Duration, Duration),
    ) -> Option<Self> {
        let mut resumed = self.resumed(next_file)?;
        if resumed.is_next_due(now, interval) {
            resumed.again.clear();
        }
        Some(resumed)
    }

    /// The same for a pass by hand, which at `now` is to check what has come since, too.
    pub(crate) fn resumed_by_hand(self, next_file: FileNumber, now: Duration) -> Option<Self> {
        let age = now.checked_sub(self.began)?;
        let resumed = self.resumed(next_file)?;
        (age <= RESUMED_AFTER_MAX).then_some(Self {
            end: next_file,
            ..resumed
        })
    }

    /// What to check next, of the `files` that there are, with their bytes; `None` at the end of the pass.
    pub(crate) fn next(
        &self,
        files: impl IntoIterator<Item = (FileNumber, u64)>,
    ) -> Option<NextCheck> {
        let (mut left, mut first) = (0_u64, None);
        for (file, bytes) in files {
            let is_again = self.again.contains(&file);
            if !is_again && !(self.done..self.end).contains(&file) {
                continue;
            }
            let current = self.current.filter(|(current, _)| *current == file);
            let offset = current.map_or(0, |(_, offset)| offset);
            left = left.saturating_add(bytes.saturating_sub(offset));
            let rank = (current.is_none(), is_again, file);
            if first.is_none_or(|(least, _)| rank < least) {
                first = Some((rank, offset));
            }
        }
        first.map(|((_, _, file), offset)| NextCheck { file, offset, left })
    }

    /// Notes that `file` was checked up to `next`, or as a whole, by reading `bytes`.
    pub(crate) fn note(&mut self, file: FileNumber, next: Option<u64>, bytes: u64) {
        self.checked = self.checked.saturating_add(bytes);
        self.current = next.map(|offset| (file, offset));
        if next.is_none() {
            self.again.remove(&file);
            self.done = self.done.max(FileNumber(file.0.saturating_add(1)));
        }
    }

    /// Whether the pass, which has `left` bytes to check and is to end an `interval` after it began, is late at `now`.
    pub(crate) fn is_late(&self, now: Duration, interval: Duration, left: u64) -> bool {
        let Some(passed) = now.checked_sub(self.began) else {
            return true; // The clock went back. Nobody knows how much time is left.
        };
        let all = u128::from(self.checked) + u128::from(left);
        let wanted = passed.as_nanos().saturating_mul(all);
        u128::from(self.checked).saturating_mul(interval.as_nanos()) < wanted
    }

    /// Whether the pass that follows this one, which has ended, is to begin at `now`.
    pub(crate) fn is_next_due(&self, now: Duration, interval: Duration) -> bool {
        now.checked_sub(self.began)
            .is_none_or(|passed| passed >= interval)
    }
}

#[cfg(test)]
mod tests {
    use super::{FileNumber, NextCheck, ScrubPass};
    use std::time::Duration;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// The files with these numbers, of 100 bytes each.
    fn files(numbers: &[u64]) -> Vec<(FileNumber, u64)> {
        let files = numbers.iter();
        files.map(|number| (FileNumber(*number), 100)).collect()
    }

    fn next(pass: &ScrubPass, numbers: &[u64]) -> Option<(u64, u64, u64)> {
        let next = pass.next(files(numbers));
        next.map(|NextCheck { file, offset, left }| (file.0, offset, left))
    }

    #[test]
    fn a_pass_checks_each_file_once_that_was_there_when_it_began() {
        let mut pass = ScrubPass::new(at(5), FileNumber(20));
        assert_eq!(next(&pass, &[9, 3, 20, 7]), Some((3, 0, 300)));
        pass.note(FileNumber(3), Some(40), 40);
        // The file goes on where it was, whatever the order of the files.
        assert_eq!(next(&pass, &[7, 9, 3]), Some((3, 40, 260)));
        pass.note(FileNumber(3), None, 60);
        assert_eq!(next(&pass, &[9, 3, 7]), Some((7, 0, 200)));
        pass.note(FileNumber(7), Some(10), 10);
        // A merge removes a file, and writes one that the pass does not need.
        assert_eq!(next(&pass, &[3, 9, 21]), Some((9, 0, 100)));
        pass.note(FileNumber(9), None, 100);
        assert_eq!(next(&pass, &[3, 9, 20, 21]), None);
        assert_eq!(pass.checked, 210);
    }

    #[test]
    fn a_pass_that_goes_on_ends_with_the_damaged_files() {
        let mut pass = ScrubPass::new(at(5), FileNumber(20));
        for file in [3, 7] {
            pass.damaged.insert(FileNumber(file));
            pass.note(FileNumber(file), None, 1);
        }
        pass.note(FileNumber(9), Some(50), 50);
        let mut pass = pass.resumed(FileNumber(30)).unwrap();
        // The file that was begun is ended first.
        assert_eq!(next(&pass, &[3, 7, 9, 11]), Some((9, 50, 350)));
        pass.note(FileNumber(9), None, 50);
        assert_eq!(next(&pass, &[3, 7, 9, 11]), Some((11, 0, 300)));
        pass.note(FileNumber(11), None, 100);
        assert_eq!(next(&pass, &[3, 7, 9, 11]), Some((3, 0, 200)));
        pass.note(FileNumber(3), Some(30), 30);
        assert_eq!(next(&pass, &[3, 7, 9, 11]), Some((3, 30, 170)));
        pass.note(FileNumber(3), None, 70);
        // The other one is gone.
        assert_eq!(next(&pass, &[3, 9, 11]), None);
    }

    /// The damage can be in a transient log that the part before the interruption leads to.
    #[test]
    fn a_damaged_file_is_checked_from_its_begin_after_each_interruption() {
        for done in [9, 20] {
            let mut pass = ScrubPass::new(at(5), FileNumber(20));
            pass.done = FileNumber(done);
            pass.damaged.insert(FileNumber(9));
            pass.note(FileNumber(9), Some(50), 50);
            let mut pass = pass.resumed(FileNumber(30)).unwrap();
            if done == 9 {
                // Others have their turn before it.
                assert_eq!(next(&pass, &[9, 11]), Some((11, 0, 200)));
                pass.note(FileNumber(11), None, 100);
            }
            assert_eq!(next(&pass, &[9, 11]), Some((9, 0, 100)));
            pass.damaged.insert(FileNumber(9));
            pass.note(FileNumber(9), Some(50), 50);
            let mut pass = pass.resumed(FileNumber(30)).unwrap();
            assert_eq!(next(&pass, &[9, 11]), Some((9, 0, 100)));
            pass.note(FileNumber(9), None, 100);
            assert_eq!(next(&pass, &[9, 11]), None);
        }
    }

    #[test]
    fn a_late_pass_in_the_background_checks_nothing_again() {
        let mut pass = ScrubPass::new(at(5), FileNumber(20));
        pass.damaged.insert(FileNumber(9));
        pass.note(FileNumber(9), None, 100);
        let resumed = |now| {
            let times = (at(now), at(100));
            pass.clone().resumed_in_background(FileNumber(30), times)
        };
        assert_eq!(next(&resumed(104).unwrap(), &[9]), Some((9, 0, 100)));
        assert_eq!(next(&resumed(105).unwrap(), &[9]), None);
        let times = (at(6), at(100));
        let of_others = pass.clone().resumed_in_background(FileNumber(19), times);
        assert_eq!(of_others, None);
    }

    #[test]
    fn a_pass_by_hand_goes_on_for_a_day_and_over_what_has_come_since() {
        let mut pass = ScrubPass::new(at(5), FileNumber(20));
        pass.note(FileNumber(9), None, 100);
        let day = 24 * 3600;
        let resumed = |now, next| pass.clone().resumed_by_hand(FileNumber(next), at(now));
        let mut later = resumed(5 + day, 30).unwrap();
        assert_eq!(next(&later, &[3, 25, 30]), Some((25, 0, 100)));
        later.note(FileNumber(25), None, 100);
        assert_eq!(next(&later, &[3, 25, 30]), None);
        assert_eq!(resumed(6 + day, 30), None);
        assert_eq!(resumed(4, 30), None, "the clock went back");
        // The note is of another database.
        assert_eq!(resumed(5, 19), None);
        assert_eq!(pass.clone().resumed(FileNumber(19)), None);
        assert_eq!(pass.clone().resumed(FileNumber(20)), Some(pass));
    }

    #[test]
    fn a_pass_is_late_if_less_is_checked_than_time_has_passed() {
        let mut pass = ScrubPass::new(at(1000), FileNumber(20));
        let late = |pass: &ScrubPass, now, left| pass.is_late(at(now), at(100), left);
        assert!(!late(&pass, 1000, 400));
        assert!(late(&pass, 1001, 400));
        pass.checked = 100;
        assert!(!late(&pass, 1025, 300));
        assert!(late(&pass, 1026, 300));
        // More files were added or removed: the rest is spread over the rest of the time.
        assert!(late(&pass, 1025, 301));
        assert!(!late(&pass, 1049, 100));
        assert!(late(&pass, 999, 400), "the clock went back");
        let due = |now| pass.is_next_due(at(now), at(100));
        assert_eq!([999, 1000, 1099, 1100].map(due), [true, false, false, true]);
    }
}

//! What a caller says of a scrub, and gets from it.
//!
//! Concurrency: plain values.

use std::fmt;

use crate::backup::Backups;
use crate::base::Error;

/// How [`Db::scrub`](crate::Db::scrub) works.
#[derive(Clone, Copy, Default)]
pub struct Scrub<'a> {
    /// Bytes per second; 0 for no limit.
    pub(super) bytes_per_second: u64,
    pub(super) backups: Option<&'a Backups>,
    pub(super) listener: Option<&'a dyn Fn(ScrubProgress)>,
}

/// How far a scrub is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScrubProgress {
    /// The bytes that are checked, those before an interruption included.
    pub done: u64,
    /// All bytes, as far as they are known: files come and go.
    pub total: u64,
}

/// What a scrub has found.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct ScrubReport {
    /// The bytes that this call has checked.
    pub bytes: u64,
    /// The files that it has ended to check.
    pub files: u64,
    /// The bytes that an earlier call had checked before it was interrupted.
    pub resumed_bytes: u64,
    /// The first damage of each damaged file.
    pub damage: Vec<ScrubDamage>,
    /// What has kept files from being checked, three times each: no damage is known of them.
    pub left_out: Vec<Error>,
}

/// A file that is damaged, or that the device cannot read.
#[derive(Debug)]
#[non_exhaustive]
pub struct ScrubDamage {
    /// The name of the file, in the folder of the database.
    pub file: String,
    /// What is wrong with it.
    pub error: Error,
    /// The newest backup that has the whole file, of those that can be read. Files over a GiB are not looked for.
    pub backup: Option<u64>,
}

impl<'a> Scrub<'a> {
    /// Reads at most this many bytes per second. Default 0, no limit.
    #[must_use]
    pub fn with_rate(mut self, bytes_per_second: u64) -> Self {
        self.bytes_per_second = bytes_per_second;
        self
    }

    /// Looks in `backups` for a whole copy of each damaged file.
    #[must_use]
    pub fn with_backups(mut self, backups: &'a Backups) -> Self {
        self.backups = Some(backups);
        self
    }

    /// Calls `listener` on the thread of the call as it goes on.
    #[must_use]
    pub fn with_progress(mut self, listener: &'a dyn Fn(ScrubProgress)) -> Self {
        self.listener = Some(listener);
        self
    }
}

impl fmt::Debug for Scrub<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scrub")
            .field("bytes_per_second", &self.bytes_per_second)
            .field("backups", &self.backups)
            .finish_non_exhaustive()
    }
}

impl ScrubReport {
    /// Whether all files were checked, and no damage was found.
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty() && self.left_out.is_empty()
    }
}

impl ScrubDamage {
    /// What to do next: a sentence without a full stop.
    pub fn next_step(&self) -> String {
        let file = &self.file;
        match (self.backup, self.error.next_step()) {
            (Some(backup), _) => format!(
                "backup {backup} has this file whole: restore it to a new folder, close this database, and copy {file} \
                 from there over the damaged one"
            ),
            (None, Some(next_step)) => next_step.to_owned(),
            (None, None) => {
                "check the device, and make a backup while the rest can be read".to_owned()
            }
        }
    }
}

/// The damage, and what to do next.
impl fmt::Display for ScrubDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.error.message(), self.next_step())
    }
}

//! Scrubs by hand.

use super::Db;
use crate::base::Result;
use crate::engine::{Scrub, ScrubReport};

impl Db {
    /// Reads all tables, complete value files, discard lists and closed logs once and compares their checksums, at a bounded
    /// rate if `scrub` has one. It finds what a device has changed. [`verify`](Self::verify) checks more: order, counts and
    /// references.
    ///
    /// If the database is open for writing, a call that was interrupted, by a close or a crash, has left a note in the folder,
    /// and the next call within a day of its begin goes on from there, and over the files that have come since. What was added
    /// meanwhile to a file that was checked is left to the call after it. It ends with the files that were found damaged, so
    /// that its report has them. Reads, writes and compactions continue meanwhile. The page
    /// cache stays as it is, and what it holds is checked instead of the device.
    ///
    /// ```
    /// # fn main() -> windrow::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// use windrow::{Db, Options, Scrub};
    ///
    /// let db = Db::open(folder.path(), Options::default())?;
    /// db.keyspace("planets")?.insert("earth", "one moon")?;
    /// db.flush()?;
    /// let report = db.scrub(&Scrub::default().with_rate(50 << 20))?;
    /// assert!(report.is_sound() && report.files > 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Closed`. Damage, and what has kept a file from being checked, is in the report. So is the newest backup that has the
    /// whole file, if `scrub` has [backups](Scrub::with_backups); reading it has the rate of the backups.
    pub fn scrub(&self, scrub: &Scrub<'_>) -> Result<ScrubReport> {
        self.handle.engine().scrub(scrub)
    }
}

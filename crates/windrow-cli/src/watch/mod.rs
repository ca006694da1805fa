//! A look at a database that another process may have open: what `top` and `serve` share.
//!
//! The process that writes keeps its statistics in the file `STATUS` beside the data, in the text format of Prometheus. If
//! there is no such process, or it writes no such file, the statistics are those of a reader: then all that only the
//! process knows is missing, such as reads, stalls, jobs under way and memory.
//!
//! Concurrency: none; each look reads anew.

mod samples;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use windrow::{Result, inspect};

use crate::store;
pub(crate) use samples::{Sample, Samples};

/// A status is old if the process has not written it for so many of its intervals, and some seconds. If nothing changes, it
/// writes one of ten times.
const INTERVALS_MAX: f64 = 15.0;
const SECONDS_MAX: f64 = 5.0;

/// A database that is looked at.
#[derive(Debug)]
pub(crate) struct Watched {
    folder: PathBuf,
}

/// What a look has found.
#[derive(Debug)]
pub(crate) struct Look {
    /// The statistics, in the text format of Prometheus.
    pub(crate) text: String,
    /// Whether they are those of a process that writes.
    pub(crate) is_live: bool,
}

impl Watched {
    pub(crate) fn new(folder: &Path) -> Self {
        let folder = folder.to_owned();
        Self { folder }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The statistics of now.
    ///
    /// # Errors
    /// Those of opening the database to read it, if no process writes its status.
    pub(crate) fn look(&self) -> Result<Look> {
        if let Some(text) = inspect::status(&self.folder)?
            && is_fresh(&text)
        {
            let is_live = true;
            return Ok(Look { text, is_live });
        }
        let db = store::open_to_read(&self.folder)?;
        let text = db.stats().to_prometheus_stored();
        db.close()?;
        let is_live = false;
        Ok(Look { text, is_live })
    }
}

/// Whether the process that has written the status still does.
fn is_fresh(text: &str) -> bool {
    let samples = Samples::parse(text);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.map_or(0.0, |now| now.as_secs_f64());
    let of = |name| samples.value(name).unwrap_or(0.0);
    let age = now - of("windrow_status_time_seconds");
    age < of("windrow_status_interval_seconds") * INTERVALS_MAX + SECONDS_MAX
}

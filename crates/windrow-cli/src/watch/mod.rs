//! A look at a database that another process may have open: what `top` and `serve` share.
//!
//! The process that writes keeps its statistics in the file `STATUS` beside the data, in the text format of Prometheus. If
//! there is no such process, or it writes no such file, the statistics are those of a reader: then all that only the
//! process knows is missing, such as reads, stalls, jobs under way and memory.
//!
//! Concurrency: none; each look reads anew.

mod samples;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use windrow::{Db, Result, inspect};

use crate::store;

pub(crate) use samples::{Sample, Samples};

/// A status is old if the process has not written it for so many of its intervals, and some seconds. If nothing changes, it
/// writes one of ten times.
const INTERVALS_MAX: f64 = 15.0;
const SECONDS_MAX: f64 = 5.0;

/// After a look without a status, this many times its cost passes before the next one: it reads manifest and logs.
const REST_FACTOR: u32 = 20;

/// A database that is looked at.
#[derive(Debug)]
pub(crate) struct Watched {
    folder: PathBuf,
    /// The last look without a status, and until when it serves.
    stored: Option<(Look, Instant)>,
}

/// What a look has found.
#[derive(Debug, Clone)]
pub(crate) struct Look {
    /// The statistics, in the text format of Prometheus.
    pub(crate) text: String,
    /// Whether they are those of a process that writes.
    pub(crate) is_live: bool,
}

impl Watched {
    pub(crate) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            stored: None,
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The statistics of now.
    ///
    /// # Errors
    /// Those of reading the database, if no process writes its status.
    pub(crate) fn look(&mut self) -> Result<Look> {
        if let Some(text) = inspect::status(&*store::files(&self.folder)?, &self.folder)?
            && is_fresh(&text)
        {
            let text = format!("{}{text}", up(1));
            let is_live = true;
            return Ok(Look { text, is_live });
        }
        if let Some((look, until)) = &self.stored
            && Instant::now() < *until
        {
            return Ok(look.clone());
        }
        let start = Instant::now();
        let look = Look {
            text: format!("{}{}", up(0), stored(&self.folder)?),
            is_live: false,
        };
        let rest = start.elapsed() * REST_FACTOR;
        self.stored = Some((look.clone(), Instant::now() + rest.min(REST_MAX)));
        Ok(look)
    }
}

/// The longest rest.
const REST_MAX: Duration = Duration::from_secs(600);

/// Whether the statistics are those of a process.
fn up(is_live: u8) -> String {
    format!(
        "# HELP windrow_up 1 if a process that writes keeps its statistics, else 0.\n\
         # TYPE windrow_up gauge\nwindrow_up {is_live}\n"
    )
}

/// The present state of the database in `folder`. Counters are left out: those of the process that writes have other
/// values, and to Prometheus a counter that goes back has begun anew. A secondary takes no lock, so a process that is about
/// to write is not refused.
fn stored(folder: &Path) -> Result<String> {
    let reader = Db::open_secondary(folder, store::options(folder)?)?;
    let text = reader.db().stats().to_prometheus_stored();
    let is_counter = |line: &&str| {
        let line = line.trim_start_matches("# HELP ");
        let line = line.trim_start_matches("# TYPE ");
        let name = line.split([' ', '{']).next().unwrap_or_default();
        name.ends_with("_total")
    };
    let gauges = text.lines().filter(|line| !is_counter(line));
    Ok(gauges.flat_map(|line| [line, "\n"]).collect())
}

/// Whether the process that has written the status still does.
fn is_fresh(text: &str) -> bool {
    let samples = Samples::parse(text);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.map_or(0.0, |now| now.as_secs_f64());
    let of = |name| samples.value(name).unwrap_or(0.0);
    let age = now - of("windrow_status_time_seconds");
    let most = of("windrow_status_interval_seconds") * INTERVALS_MAX + SECONDS_MAX;
    // A later time is that of another clock.
    (-SECONDS_MAX..most).contains(&age)
}

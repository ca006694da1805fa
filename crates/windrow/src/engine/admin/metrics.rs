//! The statistics as metrics: one walk over all of their numbers, with names, kinds and labels.
//!
//! Each form in which programs outside get the statistics is made of this walk, such as the [text](super::prometheus) for
//! Prometheus. So each name is written once, in [`tables`].
//!
//! Invariant: the samples of a metric follow one another, and no two have the same labels.
//!
//! Concurrency: none; no state.

mod sample;
mod tables;

use super::stats::{JobStats, KeyspaceStats, LevelStats, Stats};
use crate::base::{LevelIoStats, LifetimeStats};
use crate::latency::LatencyStats;
pub use sample::{Metric, MetricKind, Sample, SampleValue};
use tables::{
    DATABASE, DISK_FULL, JOB_SECONDS, JOBS, KEYSPACE_READS, KEYSPACES, LEVEL_READS, LEVELS,
    LIFETIME, LONGEST_OPERATION, LONGEST_STALL, MEMORY, OPENED, OPERATIONS, READ, Row,
    STALL_SECONDS, STALLS, Split, WRITTEN,
};

/// Labels of a sample.
type Labels<'a> = Vec<(&'static str, &'a str)>;

/// Things of one kind, each with its labels.
type All<'a, T> = Vec<(Labels<'a>, &'a T)>;

impl Stats {
    /// Calls `each` with all that [`to_prometheus`](Self::to_prometheus) shows, in its order. The samples of a metric follow
    /// one another. A histogram comes as a whole.
    ///
    /// ```
    /// # fn main() -> windrow::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// let db = windrow::Db::open(folder.path(), windrow::Options::default())?;
    /// db.keyspace("planets")?.insert("earth", "one moon")?;
    /// let mut memtables = Vec::new();
    /// db.stats().for_each_sample(|sample| {
    ///     let windrow::SampleValue::Number(number) = sample.value else {
    ///         return;
    ///     };
    ///     if sample.metric.name == "windrow_memtable_entries" {
    ///         memtables.push((sample.labels[0].1.to_owned(), number));
    ///     }
    /// });
    /// assert_eq!(memtables, [("planets".to_owned(), 1.0)]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn for_each_sample(&self, each: impl FnMut(&Sample<'_>)) {
        let mut walk = Walk(each);
        walk.counted(self, &self.opened, |level| &level.io_stats);
        walk.lifetime(&self.lifetime);
        let database = [(Vec::new(), self)];
        walk.rows(OPENED, &database);
        walk.split(&MEMORY, &[(Vec::new(), &self.memory)]);
        let stalls = self.stalls.iter();
        let stalls: All<'_, _> = stalls
            .map(|stall| (vec![("cause", stall.cause.name())], stall))
            .collect();
        walk.rows(STALLS, &stalls);
        walk.rows(&[STALL_SECONDS, LONGEST_STALL], &stalls);
        let numbers = level_numbers(self);
        walk.rows(KEYSPACE_READS, &keyspaces(self));
        walk.rows(LEVEL_READS, &levels(self, &numbers));
        let (levels, ids) = (job_levels(self), job_ids(self));
        let jobs = self.jobs.iter().zip(levels.iter().zip(&ids));
        let jobs: All<'_, _> = jobs
            .map(|(job, (level, id))| (job_labels(job, level, id), job))
            .collect();
        walk.rows(&[JOB_SECONDS], &jobs);
        walk.rows(JOBS, &jobs);
        walk.latencies(&self.latencies);
    }

    /// The same, but its counters count since the database was created, and it lacks what a process counts only while it
    /// has the database open.
    pub(super) fn for_each_stored_sample(&self, each: impl FnMut(&Sample<'_>)) {
        Walk(each).counted(self, &self.lifetime, |level| &level.lifetime_io_stats);
    }
}

/// The numbers of all levels, as labels.
fn level_numbers(stats: &Stats) -> Vec<String> {
    let levels = stats.keyspaces.iter().map(|keyspace| keyspace.levels.len());
    let most = levels.max().unwrap_or(0);
    (0..most).map(|level| level.to_string()).collect()
}

/// The levels of all running jobs, as labels.
fn job_levels(stats: &Stats) -> Vec<String> {
    let levels = stats.jobs.iter().map(|job| job.level);
    levels
        .map(|level| level.map_or_else(String::new, |level| level.to_string()))
        .collect()
}

/// A number for each running job. No two samples may have the same labels.
fn job_ids(stats: &Stats) -> Vec<String> {
    (1..=stats.jobs.len()).map(|id| id.to_string()).collect()
}

fn job_labels<'a>(job: &'a JobStats, level: &'a str, id: &'a str) -> Labels<'a> {
    let purpose = job.purpose.unwrap_or_default();
    let all = [
        ("job", job.job),
        ("keyspace", job.keyspace.as_str()),
        ("level", level),
        ("purpose", purpose),
        ("number", id),
    ];
    let known = all.into_iter().filter(|(_, value)| !value.is_empty());
    known.collect()
}

fn keyspaces(stats: &Stats) -> All<'_, KeyspaceStats> {
    let keyspaces = stats.keyspaces.iter();
    keyspaces
        .map(|keyspace| (vec![("keyspace", keyspace.name.as_str())], keyspace))
        .collect()
}

/// The levels of all keyspaces. `numbers` are their numbers as labels.
fn levels<'a>(stats: &'a Stats, numbers: &'a [String]) -> All<'a, LevelStats> {
    let mut all = Vec::new();
    for (labels, keyspace) in keyspaces(stats) {
        for (level, number) in keyspace.levels.iter().zip(numbers) {
            let mut labels = labels.clone();
            labels.push(("level", number));
            all.push((labels, level));
        }
    }
    all
}

/// A walk that calls its function with each sample.
struct Walk<F>(F);

impl<F: FnMut(&Sample<'_>)> Walk<F> {
    /// The counters `done`, the present state, and the `io_stats` of each level.
    fn counted(
        &mut self,
        stats: &Stats,
        done: &LifetimeStats,
        io_stats: fn(&LevelStats) -> &LevelIoStats,
    ) {
        let numbers = level_numbers(stats);
        let database = [(Vec::new(), stats)];
        let levels = levels(stats, &numbers);
        let io_stats: All<'_, _> = levels
            .iter()
            .map(|(labels, level)| (labels.clone(), io_stats(level)))
            .collect();
        self.rows(LIFETIME, &[(Vec::new(), done)]);
        self.rows(DATABASE, &database);
        self.rows(&[DISK_FULL], &database);
        self.rows(KEYSPACES, &keyspaces(stats));
        self.rows(LEVELS, &levels);
        self.split(&WRITTEN, &io_stats);
        self.split(&READ, &io_stats);
    }

    /// Each of `rows` for each of `all`.
    fn rows<T>(&mut self, rows: &[Row<T>], all: &[(Labels<'_>, &T)]) {
        for row in rows {
            for (labels, of) in all {
                self.number(row.metric, labels, (row.value)(of));
            }
        }
    }

    /// Each part of `split` for each of `all`.
    fn split<T>(&mut self, split: &Split<T>, all: &[(Labels<'_>, &T)]) {
        for (labels, of) in all {
            for (part, value) in split.parts {
                let mut labels = labels.clone();
                labels.push((split.label, part));
                self.number(split.metric, &labels, value(of));
            }
        }
    }

    /// What the database has done since it was created, as gauges.
    fn lifetime(&mut self, lifetime: &LifetimeStats) {
        for row in LIFETIME {
            let name = row.metric.name.trim_start_matches("windrow_");
            let name = format!("windrow_lifetime_{}", name.trim_end_matches("_total"));
            let help = format!("{} Since the database was created.", row.metric.help);
            let metric = Metric {
                name: &name,
                help: &help,
                kind: MetricKind::Gauge,
            };
            self.number(metric, &[], (row.value)(lifetime));
        }
    }

    /// The times of operations, and the longest.
    fn latencies(&mut self, all: &[LatencyStats]) {
        let labelled = all.iter();
        let labelled: All<'_, _> = labelled
            .map(|stats| (vec![("operation", stats.operation.name())], stats))
            .collect();
        for (labels, stats) in &labelled {
            self.sample(OPERATIONS, labels, SampleValue::Times(stats));
        }
        self.rows(&[LONGEST_OPERATION], &labelled);
    }

    fn number(&mut self, metric: Metric<'_>, labels: &[(&'static str, &str)], value: f64) {
        self.sample(metric, labels, SampleValue::Number(value));
    }

    fn sample(
        &mut self,
        metric: Metric<'_>,
        labels: &[(&'static str, &str)],
        value: SampleValue<'_>,
    ) {
        (self.0)(&Sample {
            metric,
            labels,
            value,
        });
    }
}

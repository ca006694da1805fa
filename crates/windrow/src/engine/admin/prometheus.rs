//! Statistics in the text format of Prometheus: for each metric a HELP line, a TYPE line and samples.
//!
//! Concurrency: none; no state.

mod metrics;

use std::fmt::{Display, Write as _};

use super::stats::{JobStats, KeyspaceStats, LevelStats, Stats};
use crate::base::{LevelIoStats, LifetimeStats};
use crate::latency::LatencyStats;
use metrics::{
    DATABASE, DISK_FULL, JOB_SECONDS, JOBS, KEYSPACE_READS, KEYSPACES, Kind, LEVEL_READS, LEVELS,
    LIFETIME, LONGEST_STALL, MEMORY, Metric, OPENED, READ, STALL_SECONDS, STALLS, Split, WRITTEN,
};

/// The bounds of times, in nanoseconds: powers of 4 from 256 nanoseconds to 275 seconds. They are bounds of buckets.
const BOUNDS: [u64; 16] = {
    let mut bounds = [256; 16];
    let mut index = 1;
    while index < bounds.len() {
        bounds[index] = bounds[index - 1] * 4;
        index += 1;
    }
    bounds
};

/// Labels of a sample.
type Labels<'a> = Vec<(&'static str, &'a str)>;

/// Things of one kind, each with its labels.
type All<'a, T> = Vec<(Labels<'a>, &'a T)>;

impl Stats {
    /// All statistics in the text format of Prometheus, version 0.0.4. Counters begin at 0 with each open, as Prometheus
    /// expects it of a process. The life of the database is in gauges, which begin with `windrow_lifetime_`: a crash can set
    /// them back a little, and a counter that goes back would count as one that began at 0.
    ///
    /// ```
    /// # fn main() -> windrow::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// let db = windrow::Db::open(folder.path(), windrow::Options::default())?;
    /// db.keyspace("planets")?.insert("earth", "one moon")?;
    /// let text = db.stats().to_prometheus();
    /// assert!(text.contains("\nwindrow_user_writes_total 1\n"));
    /// assert!(text.contains("\nwindrow_memtable_entries{keyspace=\"planets\"} 1\n"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn to_prometheus(&self) -> String {
        let mut text = self.text_with(&self.opened, |level| &level.io_stats);
        text.lifetime(&self.lifetime);
        let database = [(Vec::new(), self)];
        text.metrics(OPENED, &database);
        text.split(&MEMORY, &[(Vec::new(), &self.memory)]);
        let stalls = self.stalls.iter();
        let stalls: All<'_, _> = stalls
            .map(|stall| (vec![("cause", stall.cause.name())], stall))
            .collect();
        text.metrics(STALLS, &stalls);
        text.metrics(&[STALL_SECONDS, LONGEST_STALL], &stalls);
        let numbers = level_numbers(self);
        text.metrics(KEYSPACE_READS, &keyspaces(self));
        text.metrics(LEVEL_READS, &levels(self, &numbers));
        let (levels, ids) = (job_levels(self), job_ids(self));
        let jobs = self.jobs.iter().zip(levels.iter().zip(&ids));
        let jobs: All<'_, _> = jobs
            .map(|(job, (level, id))| (job_labels(job, level, id), job))
            .collect();
        text.metrics(&[JOB_SECONDS], &jobs);
        text.metrics(JOBS, &jobs);
        text.latencies(&self.latencies);
        text.0
    }

    /// As [`to_prometheus`](Self::to_prometheus), but its counters count since the database was created, and it lacks what a
    /// process counts only while it has the database open: for one look by a program that opens a database for that.
    pub fn to_prometheus_stored(&self) -> String {
        let text = self.text_with(&self.lifetime, |level| &level.lifetime_io_stats);
        text.0
    }

    /// The counters `done`, the present state, and the `io_stats` of each level.
    fn text_with(&self, done: &LifetimeStats, io_stats: fn(&LevelStats) -> &LevelIoStats) -> Text {
        let numbers = level_numbers(self);
        let database = [(Vec::new(), self)];
        let levels = levels(self, &numbers);
        let io_stats: All<'_, _> = levels
            .iter()
            .map(|(labels, level)| (labels.clone(), io_stats(level)))
            .collect();
        let mut text = Text::default();
        text.metrics(LIFETIME, &[(Vec::new(), done)]);
        text.metrics(DATABASE, &database);
        text.metrics(&[DISK_FULL], &database);
        text.metrics(KEYSPACES, &keyspaces(self));
        text.metrics(LEVELS, &levels);
        text.split(&WRITTEN, &io_stats);
        text.split(&READ, &io_stats);
        text
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

/// The text so far.
#[derive(Debug, Default)]
struct Text(String);

impl Text {
    /// Each of `metrics` with a sample for each of `all`.
    fn metrics<T>(&mut self, metrics: &[Metric<T>], all: &[(Labels<'_>, &T)]) {
        for metric in metrics {
            self.heading(metric.kind, metric.name, metric.help);
            for (labels, of) in all {
                self.sample(metric.name, labels, (metric.value)(of));
            }
        }
    }

    /// One metric with a sample for each part of each of `all`.
    fn split<T>(&mut self, split: &Split<T>, all: &[(Labels<'_>, &T)]) {
        self.heading(split.kind, split.name, split.help);
        for (labels, of) in all {
            for (part, value) in split.parts {
                let mut labels = labels.clone();
                labels.push((split.label, part));
                self.sample(split.name, &labels, value(of));
            }
        }
    }

    /// What the database has done since it was created, as gauges.
    fn lifetime(&mut self, lifetime: &LifetimeStats) {
        for metric in LIFETIME {
            let name = metric.name.trim_start_matches("windrow_");
            let name = format!("windrow_lifetime_{}", name.trim_end_matches("_total"));
            let help = format!("{} Since the database was created.", metric.help);
            self.heading(Kind::Gauge, &name, &help);
            self.sample(&name, &[], (metric.value)(lifetime));
        }
    }

    /// The times of operations as a histogram, and the longest.
    fn latencies(&mut self, all: &[LatencyStats]) {
        let name = "windrow_operation_seconds";
        let help = "How long operations took, since the open; of gets, commits, seeks and steps some were timed.";
        self.heading(Kind::Histogram, name, help);
        for stats in all {
            let operation = ("operation", stats.operation.name());
            for bound in BOUNDS {
                let within = stats.buckets.iter().take_while(|(nanos, _)| *nanos < bound);
                let count: u64 = within.map(|(_, count)| count).sum();
                let seconds = (bound as f64 / 1e9).to_string();
                let labels = [operation, ("le", seconds.as_str())];
                self.sample(&format!("{name}_bucket"), &labels, count as f64);
            }
            let timed = stats.timed as f64;
            let labels = [operation, ("le", "+Inf")];
            self.sample(&format!("{name}_bucket"), &labels, timed);
            self.sample(
                &format!("{name}_sum"),
                &[operation],
                stats.nanos as f64 / 1e9,
            );
            self.sample(&format!("{name}_count"), &[operation], timed);
        }
        let name = "windrow_longest_operation_seconds";
        self.heading(Kind::Gauge, name, "The longest of these operations.");
        for stats in all {
            let operation = ("operation", stats.operation.name());
            self.sample(name, &[operation], stats.longest_nanos as f64 / 1e9);
        }
    }

    fn heading(&mut self, kind: Kind, name: &str, help: &str) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {kind}"));
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<_> = labels
            .iter()
            .map(|(label, text)| format!("{label}=\"{}\"", escape(text)))
            .collect();
        if labels.is_empty() {
            self.line(format_args!("{name} {value}"));
        } else {
            self.line(format_args!("{name}{{{}}} {value}", labels.join(",")));
        }
    }

    fn line(&mut self, line: impl Display) {
        // A string takes everything.
        writeln!(self.0, "{line}").ok();
    }
}

/// The value of a label: backslashes, quotes and line ends escaped.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use crate::engine::{KeyspaceStats, LevelStats, StallStats, Stats};
    use crate::latency::{LatencyStats, Operation};
    use crate::policy::StallCause;

    #[test]
    fn samples_follow_their_help_and_type() {
        let mut stats = Stats {
            disk_bytes: 1234,
            is_disk_full: true,
            gets: 12,
            ..Stats::default()
        };
        stats.memory.tables = 77;
        stats.opened.transient_log_bytes_written = 5;
        stats.lifetime.transient_log_bytes_written = 55;
        stats.lifetime.transient_log_bytes_read = 44;
        stats.lifetime.value_log_bytes = 66;
        stats.lifetime.garbage_collections = 3;
        stats.lifetime.gc_bytes_read = 77;
        stats.lifetime.gc_bytes_written = 11;
        stats.lifetime.gc_values_dropped = 9;
        for name in ["plain", "a \"quoted\\\nname"] {
            let mut keyspace = KeyspaceStats {
                name: name.to_owned(),
                discard_lists: 4,
                discard_list_bytes: 44,
                ..KeyspaceStats::default()
            };
            keyspace.transient_logs.files = 2;
            keyspace.transient_logs.bytes = 33;
            keyspace.transient_logs.live_bytes = 22;
            keyspace.transient_logs.garbage_bytes = 10;
            keyspace.value_logs.files = 1;
            keyspace.value_logs.bytes = 66;
            keyspace.value_logs.live_bytes = 5;
            keyspace.value_logs.garbage_bytes = 61;
            for number in 0..3 {
                let mut level = LevelStats {
                    level: number,
                    bytes: 10 + number as u64,
                    false_positive_reads: 0.25,
                    gets_answered: 5,
                    ..LevelStats::default()
                };
                level.io_stats.appended = 7;
                keyspace.levels.push(level);
            }
            stats.keyspaces.push(keyspace);
        }
        stats.stalls.push(StallStats {
            cause: StallCause::LogBytes,
            delays: 2,
            stops: 1,
            micros: 1_500_000,
            longest_micros: 1_000_000,
        });
        let text = stats.to_prometheus();
        let mut metric = "";
        let mut seen = std::collections::BTreeSet::new();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                metric = help.split(' ').next().unwrap();
                assert!(seen.insert(metric), "{metric} exists twice");
                let kind = lines.next().unwrap();
                let expected = match metric {
                    "windrow_operation_seconds" => "histogram",
                    metric if metric.ends_with("_total") => "counter",
                    _ => "gauge",
                };
                assert_eq!(kind, format!("# TYPE {metric} {expected}"));
            } else {
                let (sample, value) = line.rsplit_once(' ').unwrap();
                let name = sample.split('{').next().unwrap();
                let part = name.strip_prefix(metric);
                let is_part = ["", "_bucket", "_sum", "_count"].map(Some).contains(&part);
                assert!(is_part, "{name} under {metric}");
                assert!(value.parse::<f64>().unwrap().is_finite());
            }
        }
        assert!(text.contains("\nwindrow_disk_bytes 1234\n"));
        assert!(text.contains("\nwindrow_disk_full 1\n"));
        assert!(
            text.contains(
                "windrow_level_false_positive_reads{keyspace=\"plain\",level=\"0\"} 0.25\n"
            )
        );
        assert!(text.contains("windrow_level_bytes{keyspace=\"plain\",level=\"2\"} 12\n"));
        for sample in [
            "windrow_level_written_bytes_total{keyspace=\"plain\",level=\"1\",cause=\"append\"} 7",
            "windrow_transient_log_written_bytes_total 5",
            "windrow_lifetime_transient_log_written_bytes 55",
            "windrow_lifetime_transient_log_read_bytes 44",
            "windrow_transient_log_files{keyspace=\"plain\"} 2",
            "windrow_transient_log_bytes{keyspace=\"plain\"} 33",
            "windrow_transient_log_live_bytes{keyspace=\"plain\"} 22",
            "windrow_lifetime_value_log_written_bytes 66",
            "windrow_value_log_files{keyspace=\"plain\"} 1",
            "windrow_value_log_bytes{keyspace=\"plain\"} 66",
            "windrow_value_log_live_bytes{keyspace=\"plain\"} 5",
            "windrow_lifetime_garbage_collections 3",
            "windrow_lifetime_gc_read_bytes 77",
            "windrow_lifetime_gc_written_bytes 11",
            "windrow_lifetime_gc_dropped_values 9",
            "windrow_discard_lists{keyspace=\"plain\"} 4",
            "windrow_discard_list_bytes{keyspace=\"plain\"} 44",
            "windrow_transient_log_garbage_bytes{keyspace=\"plain\"} 10",
            "windrow_value_log_garbage_bytes{keyspace=\"plain\"} 61",
            "windrow_gets_total 12",
            "windrow_memory_bytes{purpose=\"tables\"} 77",
            "windrow_stall_stops_total{cause=\"log bytes\"} 1",
            "windrow_stall_seconds_total{cause=\"log bytes\"} 1.5",
            "windrow_level_gets_answered_total{keyspace=\"plain\",level=\"2\"} 5",
        ] {
            assert!(text.contains(&format!("\n{sample}\n")), "{text}");
        }
        let quoted = "windrow_memtables{keyspace=\"a \\\"quoted\\\\\\nname\"} 0\n";
        assert!(text.contains(quoted), "{text}");
        assert!(text.ends_with('\n'));
        let stored = stats.to_prometheus_stored();
        assert!(stored.contains("\nwindrow_value_log_written_bytes_total 66\n"));
        for name in ["windrow_gets_total", "stall", "windrow_memory_bytes"] {
            assert!(!stored.contains(name), "{name}");
        }
    }

    #[test]
    fn a_histogram_is_cumulative() {
        let latency = LatencyStats {
            operation: Operation::Get,
            timed: 6,
            nanos: 2_000_600,
            longest_nanos: 1_000_000,
            buckets: vec![(127, 1), (255, 1), (319, 2), (1_048_575, 2)],
        };
        let stats = Stats {
            latencies: vec![latency],
            ..Stats::default()
        };
        let text = stats.to_prometheus();
        for (bound, count) in [
            ("0.000000256", 2),
            ("0.000001024", 4),
            ("0.000262144", 4),
            ("0.001048576", 6),
            ("274.877906944", 6),
            ("+Inf", 6),
        ] {
            let name = "windrow_operation_seconds_bucket";
            let sample = format!("\n{name}{{operation=\"get\",le=\"{bound}\"}} {count}\n");
            assert!(text.contains(&sample), "{sample} in {text}");
        }
        for sample in [
            "windrow_operation_seconds_sum{operation=\"get\"} 0.0020006",
            "windrow_operation_seconds_count{operation=\"get\"} 6",
            "windrow_longest_operation_seconds{operation=\"get\"} 0.001",
        ] {
            assert!(
                text.contains(&format!("\n{sample}\n")),
                "{sample} in {text}"
            );
        }
    }
}

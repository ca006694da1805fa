//! Statistics in the text format of Prometheus: for each metric a HELP line, a TYPE line and samples.
//!
//! Concurrency: none; no state.

use std::fmt::{Display, Write as _};

use super::metrics::{Metric, MetricKind, Sample, SampleValue};
use super::stats::Stats;
use crate::latency::LatencyStats;

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
        let mut text = Text::default();
        self.for_each_sample(|sample| text.sample(sample));
        text.text
    }

    /// As [`to_prometheus`](Self::to_prometheus), but its counters count since the database was created, and it lacks what a
    /// process counts only while it has the database open: for one look by a program that opens a database for that.
    pub fn to_prometheus_stored(&self) -> String {
        let mut text = Text::default();
        self.for_each_stored_sample(|sample| text.sample(sample));
        text.text
    }
}

/// The text so far.
#[derive(Debug, Default)]
struct Text {
    text: String,
    /// The name of the last metric.
    metric: String,
}

impl Text {
    fn sample(&mut self, sample: &Sample<'_>) {
        let Sample { metric, labels, .. } = sample;
        if metric.name != self.metric {
            self.heading(metric);
        }
        match sample.value {
            SampleValue::Number(value) => self.number(metric.name, labels, value),
            SampleValue::Times(stats) => self.histogram(metric.name, labels, stats),
        }
    }

    fn heading(&mut self, metric: &Metric<'_>) {
        metric.name.clone_into(&mut self.metric);
        let kind = match metric.kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        let Metric { name, help, .. } = metric;
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {kind}"));
    }

    fn histogram(&mut self, name: &str, labels: &[(&str, &str)], stats: &LatencyStats) {
        let bucket = format!("{name}_bucket");
        let timed = stats.timed as f64;
        for bound in LatencyStats::BOUNDS_NANOS {
            let seconds = (bound as f64 / 1e9).to_string();
            let labels = [labels, &[("le", seconds.as_str())]].concat();
            self.number(&bucket, &labels, stats.count_below(bound) as f64);
        }
        self.number(&bucket, &[labels, &[("le", "+Inf")]].concat(), timed);
        self.number(&format!("{name}_sum"), labels, stats.nanos as f64 / 1e9);
        self.number(&format!("{name}_count"), labels, timed);
    }

    fn number(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
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
        writeln!(self.text, "{line}").ok();
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

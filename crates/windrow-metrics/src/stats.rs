//! The statistics of a database, sample by sample.
//!
//! The facade wants other things than the samples are. A counter of it is a whole number that only grows, and a histogram
//! takes single times. So a publisher keeps what it has passed on, and passes on what is new.
//!
//! - I1. What a recorder has counted of a sample is what the publisher has noted of it.
//! - I2. No gauge stays at a number that the statistics do not have: the facade cannot take a gauge back, so the gauge of
//!   a sample that is gone is 0.
//!
//! Concurrency: one thread at a time, since a call changes what is noted.

use std::collections::HashMap;
use std::mem;

use metrics::{Key, KeyName, Recorder, SharedString, Unit, with_recorder};
use windrow::{LatencyStats, Metric, MetricKind, Sample, SampleValue, Stats};

use crate::METADATA;
use crate::labels::OwnLabels;

/// Passes the statistics of a database on to the recorder of the facade `metrics`.
///
/// A publisher belongs to one open of one database. The recorder gets under the same names and labels what
/// [`Stats::to_prometheus`] shows:
///
/// - A counter is increased by what it has grown by since the last call. A recorder that is installed after the first call
///   misses what was counted before.
/// - A counter of seconds is a gauge, because the counters of the facade are whole numbers.
/// - A gauge is set. If what it is about is gone, such as a keyspace or a job, it is set to 0.
/// - Of a histogram, each new time is recorded as the longest of its bucket: at most a quarter too long, and never across one
///   of [`LatencyStats::BOUNDS_NANOS`]. A recorder with these bounds, in seconds, has the same buckets as the text. Its sum
///   is at most a quarter too large.
#[derive(Debug, Default)]
pub struct StatsPublisher {
    labels: OwnLabels,
    /// What the recorder has of each sample.
    published: HashMap<Key, Published>,
}

/// What the recorder has of a sample.
#[derive(Debug)]
enum Published {
    Counter(u64),
    Gauge,
    /// The counts of the buckets, by their bounds.
    Times(HashMap<u64, u64>),
}

impl StatsPublisher {
    /// A publisher that has passed nothing on yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives all samples the label `name` with this text. Several databases of a program need one, for example `database`.
    #[must_use]
    pub fn with_label(mut self, name: &str, text: &str) -> Self {
        self.labels.add(name, text);
        self
    }

    /// Passes `stats` on to the recorder of this thread, or the global one. Without one it is lost.
    ///
    /// It takes about as long as the text does, and [`Db::stats`](windrow::Db::stats) takes longer: once in a few seconds
    /// is enough.
    pub fn publish(&mut self, stats: &Stats) {
        with_recorder(|recorder| self.pass(stats, recorder));
    }

    fn pass(&mut self, stats: &Stats, recorder: &dyn Recorder) {
        let mut before = mem::take(&mut self.published);
        let mut described = String::new();
        stats.for_each_sample(|sample| {
            if sample.metric.name != described {
                sample.metric.name.clone_into(&mut described);
                describe(&sample.metric, recorder);
            }
            let labels = self.labels.and(sample.labels.iter().copied());
            let key = Key::from_parts(sample.metric.name.to_owned(), labels);
            let published = pass(sample, &key, before.remove(&key), recorder);
            self.published.insert(key, published);
        });
        // I2
        for (key, published) in before {
            if matches!(published, Published::Gauge) {
                recorder.register_gauge(&key, &METADATA).set(0.0);
            }
        }
    }
}

/// Passes `sample` on, of which the recorder has `before`.
fn pass(
    sample: &Sample<'_>,
    key: &Key,
    before: Option<Published>,
    recorder: &dyn Recorder,
) -> Published {
    match sample.value {
        SampleValue::Times(stats) => {
            let before = match before {
                Some(Published::Times(counts)) => counts,
                _ => HashMap::new(),
            };
            Published::Times(pass_times(stats, key, &before, recorder))
        }
        SampleValue::Number(value) if is_counter(&sample.metric) => {
            let now = whole(value);
            let before = match before {
                // Less than before: a new keyspace has an old name.
                Some(Published::Counter(before)) if before <= now => before,
                _ => 0,
            };
            recorder
                .register_counter(key, &METADATA)
                .increment(now - before);
            Published::Counter(now)
        }
        SampleValue::Number(value) => {
            recorder.register_gauge(key, &METADATA).set(value);
            Published::Gauge
        }
    }
}

/// Records the times that are not among `before`, and returns the counts of all.
fn pass_times(
    stats: &LatencyStats,
    key: &Key,
    before: &HashMap<u64, u64>,
    recorder: &dyn Recorder,
) -> HashMap<u64, u64> {
    let histogram = recorder.register_histogram(key, &METADATA);
    for (bound, count) in &stats.buckets {
        let before = before.get(bound).copied().unwrap_or(0);
        let new = usize::try_from(count.saturating_sub(before)).unwrap_or(usize::MAX);
        let nanos = *bound.min(&stats.longest_nanos);
        histogram.record_many(nanos as f64 / 1e9, new);
    }
    stats.buckets.iter().copied().collect()
}

fn describe(metric: &Metric<'_>, recorder: &dyn Recorder) {
    let name = KeyName::from(metric.name.to_owned());
    let help = SharedString::from(metric.help.to_owned());
    let unit = Some(unit(metric));
    match metric.kind {
        MetricKind::Histogram => recorder.describe_histogram(name, unit, help),
        MetricKind::Counter if is_counter(metric) => recorder.describe_counter(name, unit, help),
        MetricKind::Counter | MetricKind::Gauge => recorder.describe_gauge(name, unit, help),
    }
}

/// Whether `metric` is a counter of the facade, which takes whole numbers.
fn is_counter(metric: &Metric<'_>) -> bool {
    metric.kind == MetricKind::Counter && unit(metric) != Unit::Seconds
}

fn unit(metric: &Metric<'_>) -> Unit {
    let name = metric.name.trim_end_matches("_total");
    if name.ends_with("_seconds") {
        Unit::Seconds
    } else if name.ends_with("_bytes") {
        Unit::Bytes
    } else {
        Unit::Count
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a counter is a whole number of 64 bits, made a float by the walk"
)]
fn whole(value: f64) -> u64 {
    value as u64
}

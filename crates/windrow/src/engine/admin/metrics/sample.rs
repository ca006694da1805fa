//! What a walk over the statistics shows: samples of metrics.
//!
//! Concurrency: none; plain data.

use crate::latency::LatencyStats;

/// What the numbers of a [`Metric`] mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// It begins at 0 with each open and never falls while the database is open. Its name ends in `_total`.
    Counter,
    /// A state of now. It goes up and down.
    Gauge,
    /// The times of operations.
    Histogram,
}

/// A measured quantity. Its name says the unit, before `_total` if the name ends so: `_bytes` and `_seconds`; other
/// numbers are counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metric<'a> {
    /// The name, which begins with `windrow_`.
    pub name: &'a str,
    /// What it is, in a sentence.
    pub help: &'a str,
    /// What its numbers mean.
    pub kind: MetricKind,
}

/// What a [`Sample`] has measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SampleValue<'a> {
    /// The number of a counter or of a gauge. Counters of other units than seconds are whole.
    Number(f64),
    /// The times of a histogram.
    Times(&'a LatencyStats),
}

/// The value of a [`Metric`] for one thing: a keyspace, a level, an operation.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Sample<'a> {
    /// The metric.
    pub metric: Metric<'a>,
    /// What the sample is about: names of labels, and their texts. The texts are not escaped.
    pub labels: &'a [(&'static str, &'a str)],
    /// The value.
    pub value: SampleValue<'a>,
}

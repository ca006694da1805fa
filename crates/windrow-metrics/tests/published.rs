//! What the recorders of the facade get, compared with the text for Prometheus, sample by sample.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]
#![expect(
    clippy::disallowed_types,
    reason = "the listener of a test keeps what it gets"
)]
#![expect(
    clippy::float_cmp,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "what was passed on is equal, and nanoseconds are whole numbers"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use metrics::{Key, Unit, with_local_recorder};
use metrics_exporter_prometheus::PrometheusBuilder;
use metrics_util::MetricKind;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use windrow::{Db, Event, EventListener, EventValue, LatencyStats, Options, Stats};
use windrow_metrics::{EventPublisher, StatsPublisher};

/// Numbers by name and labels, as the text writes them.
type Samples = BTreeMap<String, f64>;

/// All samples of the text.
fn samples(text: &str) -> Samples {
    let is_sample = |line: &&str| !line.is_empty() && !line.starts_with('#');
    let lines = text.lines().filter(is_sample);
    let samples = lines.map(|line| {
        let (sample, value) = line.rsplit_once(' ').unwrap();
        (sample.to_owned(), value.parse().unwrap())
    });
    samples.collect()
}

fn written(key: &Key, more: &[(&str, &str)]) -> String {
    let own = key.labels().map(|label| (label.key(), label.value()));
    let labels: Vec<String> = own
        .chain(more.iter().copied())
        .map(|(name, text)| {
            let text = text.replace('\\', "\\\\").replace('"', "\\\"");
            format!("{name}=\"{}\"", text.replace('\n', "\\n"))
        })
        .collect();
    if labels.is_empty() {
        return key.name().to_owned();
    }
    format!("{}{{{}}}", key.name(), labels.join(","))
}

/// What a recorder has got so far. Its snapshots take what they show.
#[derive(Debug)]
struct Recorded {
    recorder: DebuggingRecorder,
    snapshotter: Snapshotter,
    /// Counters and gauges.
    numbers: Samples,
    /// Times of histograms, in nanoseconds.
    times: BTreeMap<String, Vec<u64>>,
    kinds: BTreeMap<String, MetricKind>,
    helps: BTreeMap<String, (Unit, String)>,
}

impl Recorded {
    fn new() -> Self {
        let recorder = DebuggingRecorder::new();
        let snapshotter = recorder.snapshotter();
        Self {
            recorder,
            snapshotter,
            numbers: Samples::new(),
            times: BTreeMap::new(),
            kinds: BTreeMap::new(),
            helps: BTreeMap::new(),
        }
    }

    fn publish(&mut self, publisher: &mut StatsPublisher, stats: &Stats) {
        with_local_recorder(&self.recorder, || publisher.publish(stats));
        self.look();
    }

    fn look(&mut self) {
        for (key, unit, help, value) in self.snapshotter.snapshot().into_vec() {
            let (kind, key) = key.into_parts();
            let name = key.name().to_owned();
            if let Some(help) = help {
                self.helps
                    .insert(name.clone(), (unit.unwrap(), help.to_string()));
            }
            self.kinds.insert(name, kind);
            let sample = written(&key, &[]);
            match value {
                DebugValue::Counter(more) => {
                    *self.numbers.entry(sample).or_default() += more as f64;
                }
                DebugValue::Gauge(value) => {
                    self.numbers.insert(sample, value.into_inner());
                }
                DebugValue::Histogram(times) => {
                    let nanos = times
                        .iter()
                        .map(|time| (time.into_inner() * 1e9).round() as u64);
                    self.times.entry(sample).or_default().extend(nanos);
                }
            }
        }
    }

    /// Compares everything with the text.
    fn check(&self, stats: &Stats) {
        let text = stats.to_prometheus();
        let (mut numbers, mut buckets) = (Samples::new(), Samples::new());
        for (sample, value) in samples(&text) {
            if sample.starts_with("windrow_operation_seconds") {
                buckets.insert(sample, value);
            } else {
                numbers.insert(sample, value);
            }
        }
        assert_eq!(self.numbers, numbers);
        self.check_buckets(&buckets);
        for line in text.lines() {
            if let Some((name, help)) = line
                .strip_prefix("# HELP ")
                .and_then(|it| it.split_once(' '))
            {
                assert_eq!(self.helps[name].1, help);
            }
            if let Some((name, kind)) = line
                .strip_prefix("# TYPE ")
                .and_then(|it| it.split_once(' '))
            {
                let expected = match kind {
                    "counter" if name != "windrow_stall_seconds_total" => MetricKind::Counter,
                    "histogram" => MetricKind::Histogram,
                    _ => MetricKind::Gauge,
                };
                assert_eq!(self.kinds[name], expected, "{name}");
            }
        }
    }

    /// The times that were recorded fill the buckets of the text. Their sum is at most a quarter too large.
    fn check_buckets(&self, expected: &Samples) {
        let mut buckets = Samples::new();
        for (sample, times) in &self.times {
            let operation = sample.split('"').nth(1).unwrap();
            let name = "windrow_operation_seconds";
            for bound in LatencyStats::BOUNDS_NANOS {
                let within = times.iter().filter(|nanos| **nanos <= bound).count();
                let le = bound as f64 / 1e9;
                let bucket = format!("{name}_bucket{{operation=\"{operation}\",le=\"{le}\"}}");
                buckets.insert(bucket, within as f64);
            }
            let all = times.len() as f64;
            let last = format!("{name}_bucket{{operation=\"{operation}\",le=\"+Inf\"}}");
            buckets.insert(last, all);
            buckets.insert(format!("{name}_count{{operation=\"{operation}\"}}"), all);
            let sum = times.iter().sum::<u64>() as f64 / 1e9;
            let name = format!("{name}_sum{{operation=\"{operation}\"}}");
            let exact = expected[&name];
            assert!(
                sum >= exact * 0.999 && sum <= exact * 1.251,
                "{sum} for {exact}"
            );
            buckets.insert(name, exact);
        }
        assert_eq!(&buckets, expected);
    }
}

/// Times each operation, and has small memtables, so that everything happens in a short test.
fn options() -> Options {
    let mut options = Options::default();
    options.latency_interval = 1;
    options.keyspace.memtable_bytes = 64 << 10;
    options.keyspace.file_bytes = 64 << 10;
    options.keyspace.base_bytes = 256 << 10;
    options
}

fn work(db: &Db, keyspace: &str, keys: u32) {
    let keyspace = db.keyspace(keyspace).unwrap();
    for key in 0..keys {
        let key = key.wrapping_mul(0x9e37_79b1).to_be_bytes();
        keyspace.insert(key, [7; 100]).unwrap();
        keyspace.get(key).unwrap();
    }
    for entry in keyspace.iter().unwrap().take(100) {
        entry.unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
}

#[test]
fn a_recorder_gets_the_samples_of_the_text() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path(), options()).unwrap();
    let (mut recorded, mut publisher) = (Recorded::new(), StatsPublisher::new());
    for round in 1..=4 {
        work(&db, "shop", round * 1000);
        work(&db, "a \"quoted\\\nname", 500);
        let stats = db.stats();
        recorded.publish(&mut publisher, &stats);
        recorded.check(&stats);
        // Nothing counts twice.
        recorded.publish(&mut publisher, &stats);
        recorded.check(&stats);
    }
    assert_eq!(recorded.kinds["windrow_flushes_total"], MetricKind::Counter);
    for (name, unit) in [
        ("windrow_user_bytes_total", Unit::Bytes),
        ("windrow_disk_bytes", Unit::Bytes),
        ("windrow_longest_operation_seconds", Unit::Seconds),
        ("windrow_user_writes_total", Unit::Count),
    ] {
        assert_eq!(recorded.helps[name].0, unit, "{name}");
    }
    db.close().unwrap();
}

#[test]
fn seconds_of_stalls_are_a_gauge() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path(), options()).unwrap();
    let mut stats = db.stats();
    let stall = stats.stalls.first_mut().unwrap();
    stall.micros = 1_500_000;
    let name = format!(
        "windrow_stall_seconds_total{{cause=\"{}\"}}",
        stall.cause.name()
    );
    let (mut recorded, mut publisher) = (Recorded::new(), StatsPublisher::new());
    recorded.publish(&mut publisher, &stats);
    recorded.check(&stats);
    assert_eq!(recorded.numbers.get(&name), Some(&1.5));
}

#[test]
fn gauges_of_what_is_gone_are_0() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path(), options()).unwrap();
    work(&db, "gone", 3000);
    work(&db, "stays", 10);
    let (mut recorded, mut publisher) = (Recorded::new(), StatsPublisher::new());
    let first = db.stats();
    // Without a look in between, because a look takes the numbers.
    with_local_recorder(&recorded.recorder, || publisher.publish(&first));
    db.drop_keyspace("gone").unwrap();
    let second = db.stats();
    recorded.publish(&mut publisher, &second);
    let (before, present) = (
        samples(&first.to_prometheus()),
        samples(&second.to_prometheus()),
    );
    let mut gone = 0;
    for (sample, value) in &recorded.numbers {
        match present.get(sample) {
            Some(expected) => assert_eq!(value, expected, "{sample}"),
            None if recorded.kinds[sample.split('{').next().unwrap()] == MetricKind::Gauge => {
                assert_eq!(*value, 0.0, "{sample}");
                gone += usize::from(before[sample] > 0.0);
            }
            // The facade cannot take a counter back.
            None => assert_eq!(*value, before[sample], "{sample}"),
        }
    }
    assert!(gone > 5, "{gone}");

    // The counters of a new keyspace of that name begin again, and those of the recorder go on.
    let answered = "windrow_gets_answered_by_memtables_total{keyspace=\"gone\"}";
    work(&db, "gone", 10);
    let third = db.stats();
    recorded.publish(&mut publisher, &third);
    let more = samples(&third.to_prometheus())[answered];
    assert!(more >= 1.0 && before[answered] > more, "{more}");
    assert_eq!(recorded.numbers[answered], before[answered] + more);
}

#[test]
fn an_exporter_with_the_bounds_has_the_buckets_of_the_text() {
    let bounds = LatencyStats::BOUNDS_NANOS.map(|nanos| nanos as f64 / 1e9);
    let builder = PrometheusBuilder::new().set_buckets(&bounds).unwrap();
    let recorder = builder.build_recorder();
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path(), options()).unwrap();
    let mut publisher = StatsPublisher::new();
    let mut stats = db.stats();
    for round in 1..=2 {
        work(&db, "shop", round * 1000);
        stats = db.stats();
        with_local_recorder(&recorder, || publisher.publish(&stats));
    }
    let exported = samples(&recorder.handle().render());
    let expected = samples(&stats.to_prometheus());
    let is_exact = |sample: &str| !sample.starts_with("windrow_operation_seconds_sum");
    for (sample, value) in expected.iter().filter(|(sample, _)| is_exact(sample)) {
        assert_eq!(exported.get(sample), Some(value), "{sample}");
    }
    assert_eq!(exported.len(), expected.len());
}

#[test]
fn two_databases_have_labels_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let mut recorded = Recorded::new();
    for (name, keys) in [("left", 10), ("right", 20)] {
        let db = Db::open(folder.path().join(name), options()).unwrap();
        work(&db, "k", keys);
        let mut publisher = StatsPublisher::new().with_label("database", name);
        recorded.publish(&mut publisher, &db.stats());
        let writes = format!("windrow_user_writes_total{{database=\"{name}\"}}");
        assert_eq!(recorded.numbers[&writes], f64::from(keys));
        let memtables = format!("windrow_memtables{{database=\"{name}\",keyspace=\"k\"}}");
        assert_eq!(recorded.numbers[&memtables], 1.0);
    }
}

/// An event with the labels of its counter, and its time.
fn expected_labels(event: &Event) -> String {
    let mut labels = format!("database=\"shop\",event=\"{}\"", event.name());
    for (name, value) in event.fields() {
        if ["keyspace", "level", "job", "purpose", "cause"].contains(&name) {
            let text = match value {
                EventValue::Text(text) => text.to_owned(),
                other => other.to_string(),
            };
            write!(labels, ",{name}=\"{text}\"").unwrap();
        }
    }
    labels
}

#[test]
fn events_are_counted_and_timed() {
    let folder = tempfile::tempdir().unwrap();
    let mut recorded = Recorded::new();
    let events = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&events);
    let listener = move |event: &Event| noted.lock().unwrap().push(event.clone());
    let db = Db::open(folder.path(), options().with_listener(Arc::new(listener))).unwrap();
    work(&db, "shop", 5000);
    db.close().unwrap();

    let events = events.lock().unwrap();
    let publisher = EventPublisher::new().with_label("database", "shop");
    with_local_recorder(&recorded.recorder, || {
        events.iter().for_each(|event| publisher.on_event(event));
    });
    recorded.look();
    let (mut counts, mut times) = (Samples::new(), BTreeMap::<String, Vec<u64>>::new());
    for event in events.iter() {
        let labels = expected_labels(event);
        *counts
            .entry(format!("windrow_events_total{{{labels}}}"))
            .or_default() += 1.0;
        for (name, value) in event.fields() {
            if let EventValue::Time(time) = value {
                assert_eq!(name, "duration");
                let times = times.entry(format!("windrow_event_seconds{{{labels}}}"));
                times
                    .or_default()
                    .push(u64::try_from(time.as_nanos()).unwrap());
            }
        }
    }
    assert_eq!(recorded.numbers, counts);
    // The recorder keeps times in blocks, the newest block first.
    let all = recorded.times.values_mut().chain(times.values_mut());
    all.for_each(|times| times.sort_unstable());
    assert_eq!(recorded.times, times);
    assert!(
        counts
            .keys()
            .any(|name| name.contains("event=\"compaction_ended\""))
    );
    assert!(
        counts
            .keys()
            .any(|name| name.contains("event=\"flush_ended\",keyspace=\"shop\""))
    );
    assert_eq!(recorded.helps["windrow_event_seconds"].0, Unit::Seconds);
}

/// A database whose listener is the publisher itself, with a recorder for all threads.
#[test]
fn the_listener_reaches_the_global_recorder() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    recorder.install().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let options = options().with_listener(Arc::new(EventPublisher::new()));
    let db = Db::open(folder.path(), options).unwrap();
    work(&db, "shop", 100);
    db.close().unwrap();
    let snapshot = snapshotter.snapshot().into_vec();
    let count = |event: &str| {
        let mut found = snapshot.iter().filter(|(key, ..)| {
            let key = key.key();
            key.name() == "windrow_events_total" && key.labels().any(|label| label.value() == event)
        });
        found.next().map(|(.., value)| value)
    };
    for event in ["opened", "flush_ended", "closed"] {
        assert_eq!(count(event), Some(&DebugValue::Counter(1)), "{event}");
    }
}

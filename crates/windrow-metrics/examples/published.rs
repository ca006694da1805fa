//! A program that shows the numbers of its database by the facade `metrics`, here with the recorder for Prometheus.
//!
//! `cargo run --release -p windrow-metrics --example published`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]
#![expect(clippy::disallowed_methods, reason = "a program sleeps as it likes")]

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusBuilder;
use windrow::{Db, LatencyStats, Options};
use windrow_metrics::{EventPublisher, StatsPublisher};

const INTERVAL: Duration = Duration::from_millis(200);

fn main() -> Result<(), Box<dyn Error>> {
    // First the recorder, because it misses what comes before. With these bounds its buckets are exact.
    let bounds = LatencyStats::BOUNDS_NANOS.map(|nanos| nanos as f64 / 1e9);
    let builder = PrometheusBuilder::new().set_buckets(&bounds)?;
    let recorder = builder.install_recorder()?;

    let folder = tempfile::tempdir()?;
    let options = Options::default().with_listener(Arc::new(EventPublisher::new()));
    let db = Db::open(folder.path(), options)?;
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        // The loop: the program says how often.
        scope.spawn(|| {
            let mut publisher = StatsPublisher::new();
            while !ends.load(Ordering::Relaxed) {
                publisher.publish(&db.stats());
                thread::sleep(INTERVAL);
            }
            // What happened since.
            publisher.publish(&db.stats());
        });
        let worked = work(&db);
        ends.store(true, Ordering::Relaxed);
        worked
    })?;
    let written = db.stats();

    // What an HTTP server of the program answers at `/metrics`.
    let text = recorder.render();
    for line in text.lines().filter(|line| is_shown(line)) {
        println!("{line}");
    }
    let counted = format!("\nwindrow_user_writes_total {}\n", written.user_writes);
    assert!(text.contains(&counted), "{counted} is not in {text}");
    assert!(text.contains("windrow_events_total{event=\"flush_ended\",keyspace=\"planets\"} 1"));
    db.close()?;
    Ok(())
}

fn work(db: &Db) -> windrow::Result<()> {
    let planets = db.keyspace("planets")?;
    for number in 0..100_000_u32 {
        planets.insert(number.to_be_bytes(), "a planet with some moons")?;
        planets.get(number.to_be_bytes())?;
    }
    db.flush()
}

/// Whether `line` is among the few that the example prints.
fn is_shown(line: &str) -> bool {
    let shown = [
        "windrow_user_",
        "windrow_gets_",
        "windrow_events_",
        "windrow_level_entries",
    ];
    shown.iter().any(|name| line.starts_with(name))
        || line.starts_with("windrow_operation_seconds_bucket{operation=\"get\"")
}

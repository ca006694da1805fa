//! Made-up lines of campaign files, and experiments.

use serde_json::{Value, json};

use crate::html::CampaignRecord;
use crate::paper::experiment::{Check, Experiment, Plot, PlotSeries, Table, Verdict};

/// The text of a file.
pub(super) fn file(lines: &[Value]) -> String {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    lines.join("\n")
}

pub(super) fn parse(lines: &[Value]) -> CampaignRecord {
    CampaignRecord::parse("made-up.jsonl", file(lines).as_bytes()).unwrap()
}

/// The first line.
pub(super) fn header() -> Value {
    let machine = json!({
        "processor": "Test processor",
        "cores": 2,
        "memory_bytes": 8_000_000_000_u64,
        "system": "Linux",
    });
    json!({
        "campaign": {
            "command": "windrow-bench run fillrandom",
            "version": "0.1.2",
            "folder": "/databases",
            "machine": machine,
            "began": "2026-11-22T18:00:00Z",
        },
    })
}

/// The line of a run.
pub(super) fn child(engine: &str, round: u32, group: &str, reports: &[Value]) -> Value {
    json!({
        "label": format!("{group} {engine} {round}"),
        "engine": engine,
        "round": round,
        "group": group,
        "command": format!("windrow-peers run --engine {engine} fillrandom"),
        "reports": reports,
    })
}

/// The line of a run of fillrandom at `rate`.
pub(super) fn fill(engine: &str, round: u32, rate: f64) -> Value {
    child(
        engine,
        round,
        "g",
        &[whole_report("fillrandom", engine, rate)],
    )
}

/// A report with all fields that a page shows.
pub(super) fn whole_report(load: &str, engine: &str, rate: f64) -> Value {
    let percentiles =
        json!({ "p50_us": 10.0, "p95_us": 30.0, "p99_us": 70, "p999_us": 200.5, "max_us": 9e3 });
    let curve = json!([
        { "quantile": 0.0, "us": 1.0 },
        { "quantile": 0.5, "us": 10.0 },
        { "quantile": 0.99, "us": 70.0 },
        { "quantile": 1.0, "us": 9e3 },
    ]);
    let of_kind = |kind: &str| {
        let mut latency = percentiles.clone();
        latency["operation"] = json!(kind);
        latency["latency_curve"] = curve.clone();
        latency
    };
    let mut report = json!({
        "name": load,
        "engine": engine,
        "settings": { "cache": format!("64 of {engine}"), "version": "1.2.3" },
        "ops": 1_000_000,
        "seconds": 10.5,
        "settled_seconds": 12.5,
        "ops_per_second": rate * 1.25,
        "settled_ops_per_second": rate,
        "operations": [of_kind("read"), of_kind("update")],
        "user_bytes": 250_000_000_u64,
        "write_amplification": 4.0,
        "space_amplification": 1.25,
        "read_bytes": 500_000_000_u64,
        "written_bytes": 1_000_000_000_u64,
        "process_read_bytes": 250_000_000_u64,
        "process_written_bytes": 1_100_000_000_u64,
        "device_reads_per_op": 1.5,
        "device_read_bytes_per_op": 6144.0,
        "device_written_bytes_per_op": 512.0,
        "device_read_bytes_per_user_byte": 2.5,
        "stalls": 3,
        "cpu_us_per_op": 14.0,
        "peak_memory_bytes": 300_000_000,
        "latency_curve": curve,
        "levels": [
            { "level": 0, "files": 2, "bytes": 5_000_000, "capacity": 0 },
            { "level": 1, "files": 9, "bytes": 9_000_000, "capacity": 10_485_760 },
            { "level": 2, "files": 0, "bytes": 0, "capacity": u64::MAX },
        ],
        "series": [
            { "seconds": 1.0, "ops_per_second": rate, "stall_seconds": 0.0, "settling": false },
            { "seconds": 2.0, "ops_per_second": rate, "stall_seconds": 0.5, "settling": false },
            { "seconds": 3.5, "ops_per_second": 0, "settling": true },
        ],
    });
    if engine == "windrow" {
        report["io_stats"] = json!([{ "purpose": "log", "written_bytes": 1, "read_bytes": 0 }]);
    }
    if let (Some(report), Some(percentiles)) = (report.as_object_mut(), percentiles.as_object()) {
        report.extend(percentiles.clone());
    }
    report
}

/// One experiment of each verdict: with a plot, without one, and with a name only.
pub(super) fn experiments() -> Vec<Experiment> {
    let text = str::to_owned;
    let experiment = |id: &str, title: &str, verdict| Experiment {
        id: text(id),
        title: text(title),
        setting: String::new(),
        verdict,
        checks: Vec::new(),
        table: Table::default(),
        plot: None,
        commands: Vec::new(),
    };
    let series = |name: &str, points: &[[f64; 2]]| PlotSeries {
        name: text(name),
        points: points.to_vec(),
    };
    let mut reads = experiment("AU-E1", "Reads over c", Verdict::Confirmed);
    reads.setting = text("T = 2");
    reads.checks = vec![Check::new(
        "Smaller c, faster reads",
        "1.7 times faster",
        text("1.9 times faster"),
        true,
    )];
    reads.table = Table::new(&["c", "ops/s"]);
    reads.table.row(["1", "1,234"].map(text));
    reads.table.row(["0.8", "-"].map(text));
    reads.plot = Some(Plot {
        x_label: text("c"),
        y_label: text("seeks per second"),
        series: vec![
            series("measured", &[[1.0, 100.0], [0.8, 190.0]]),
            series("published", &[[1.0, 50.0], [0.8, 85.0], [0.4, f64::NAN]]),
        ],
    });
    reads.commands = ["fillrandom", "readrandom"]
        .map(|load| format!("windrow-bench run {load}"))
        .to_vec();
    let mut mixes = experiment("PX-E3", "Mixes", Verdict::Explained);
    let check = Check::new("Large values gain most", "yes", text("no"), false);
    mixes.checks = vec![check.or_since("Old version", true)];
    let segments = experiment("LS-E2", "Segments", Verdict::Differs);
    vec![reads, mixes, segments]
}

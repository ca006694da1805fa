//! What a load found out, for programs and for people.
//!
//! Field names are the format of JSON lines and of campaigns: a file of today is read tomorrow, so a new field
//! has a default.

pub(crate) mod destination;
pub(crate) mod figures;
pub(crate) mod output;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::report::figures::throughput;

use crate::{
    BenchArgs, CompactionShape, CompanionReport, CurvePoint, IoShape, LevelShape, OperationReport,
    Percentiles, SeparatedReads, SeriesPoint, StallShape,
};

/// The result of one load.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    /// The load.
    pub name: String,
    /// The engine.
    pub engine: String,
    /// The settings that its store was opened with, under its names for them.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// Operations done: writes, gets, seeks, or entries walked over.
    pub ops: u64,
    /// Seconds that they took.
    pub seconds: f64,
    /// Seconds until background work had settled, too, if that was waited for.
    pub settled_seconds: f64,
    /// Operations per second, without the settling.
    pub ops_per_second: f64,
    /// Operations per second, with the settling.
    pub settled_ops_per_second: f64,
    /// Seconds of processor time that the process took, for itself and within the system, settling
    /// included.
    pub cpu_seconds: f64,
    /// The same per operation, in microseconds.
    pub cpu_us_per_op: f64,
    /// How long they took.
    #[serde(flatten)]
    pub latency: Percentiles,
    /// The same as a curve, denser towards the slowest; empty where nothing was done.
    pub latency_curve: Vec<CurvePoint>,
    /// The same for each kind of operation in the load.
    pub operations: Vec<OperationReport>,
    /// The operations of the companion thread, if it counts any.
    pub companion: Option<CompanionReport>,
    /// Gets that found a value, seeks that met their key, entries walked over.
    pub found: u64,
    /// Over every key and value read, in hexadecimal; equal for equal seeds and loads where
    /// `repeatable` says so.
    pub checksum: String,
    /// Whether what is read follows from the seed: not beside or after writers whose order chance
    /// decides, until the next fill.
    pub repeatable: bool,
    /// Bytes of the keys and values that the load wrote.
    pub user_bytes: u64,
    /// Bytes that the engine wrote per user byte during the load and the settling. None if the load wrote
    /// nothing, or less than a tenth of the store that it found: most bytes then belong to earlier loads.
    pub write_amplification: Option<f64>,
    /// The same for bytes written and read together.
    pub io_amplification: Option<f64>,
    /// Blocks consulted by gets and scans, where the engine tells.
    pub block_reads: Option<u64>,
    /// The same per operation.
    pub block_reads_per_op: Option<f64>,
    /// Sorted runs that a seek visits, segments among them, where the engine tells and there were seeks.
    pub runs_per_seek: Option<f64>,
    /// Values apart from their keys that gets and scans have read.
    pub separated_reads: SeparatedReads,
    /// Filters that gets asked, where the engine tells.
    pub filter_probes: Option<u64>,
    /// Filters that said yes where the key was absent, where the engine tells.
    pub filter_false_positives: Option<u64>,
    /// Bytes read from files, by gets and scans and by background work, settling included; of Windrow
    /// without values apart from their keys that gets and scans read.
    pub read_bytes: u64,
    /// Bytes written to files, settling included.
    pub written_bytes: u64,
    /// Bytes that the process read by system calls, whatever for, where the system tells; pages of
    /// mapped files are not among them.
    pub process_read_bytes: Option<u64>,
    /// Bytes that the process wrote by system calls, where the system tells.
    pub process_written_bytes: Option<u64>,
    /// The most memory of the process that was resident at a time, where the system tells: since the
    /// load began, or where the system does not lower the mark, since the process began.
    pub peak_memory_bytes: Option<u64>,
    /// What the engine wrote and read by purpose, where it tells.
    pub io_stats: Vec<IoShape>,
    /// Compactions during the load and the settling, if the engine reports them.
    pub compactions: Option<CompactionShape>,
    /// Delayed writes, where the engine tells.
    pub stalls: Option<u64>,
    /// Seconds of delay.
    pub stall_seconds: f64,
    /// What writes waited for during the load and the settling, where the engine tells.
    pub stalls_by_cause: Vec<StallShape>,
    /// Bytes of all files of the store after settling.
    pub disk_bytes: u64,
    /// Bytes of the keys and values that a reader can find; unknown where the store is older than
    /// the run.
    pub live_bytes: Option<u64>,
    /// Bytes on disk per live byte.
    pub space_amplification: Option<f64>,
    /// The tree after settling.
    pub levels: Vec<LevelShape>,
    /// From second to second; longer intervals in long loads.
    pub series: Vec<SeriesPoint>,
}

impl Report {
    /// The operations per second by which engines are compared: with the work that is left behind where the
    /// load's own threads write, and without it where they only read, since what little they leave was not
    /// asked for and would weigh the more the shorter the load.
    pub fn rate(&self) -> f64 {
        throughput(&self.name, self.ops_per_second, self.settled_ops_per_second)
    }
}

/// The heading over the [`lines`] of reports.
pub fn header() -> String {
    format!(
        "{:<22} {:>11} {:>11} {:>11} {:>8} {} {:>11} {:>8} {:>6} {:>9} {:>7} {:>9}  {}",
        "load",
        "ops",
        "ops/s",
        "settled/s",
        "CPU us",
        latency_columns(["p50", "p95", "p99", "p99.9", "max us"].map(str::to_owned)),
        "found",
        "written",
        "space",
        "blocks/op",
        "stalls",
        "stalled s",
        "MiB by level"
    )
}

/// The lines of the table for people: one for the load, and one for each kind of operation where
/// there are several.
pub(crate) fn row(report: &Report) -> String {
    let levels: Vec<String> = report
        .levels
        .iter()
        .map(|level| format!("{:.0}", level.bytes as f64 / f64::from(1 << 20)))
        .collect();
    let stalls = report.stalls.map(|stalls| stalls.to_string());
    let mut lines = vec![format!(
        "{:<22} {:>11} {:>11.0} {:>11.0} {:>8.2} {} {:>11} {:>8} {:>6} {:>9} {:>7} {:>9}  {}",
        report.name,
        report.ops,
        report.ops_per_second,
        report.settled_ops_per_second,
        report.cpu_us_per_op,
        latencies(&report.latency),
        report.found,
        or_dash(
            report
                .write_amplification
                .map(|ratio| format!("{ratio:.2}x"))
        ),
        or_dash(
            report
                .space_amplification
                .map(|ratio| format!("{ratio:.2}x"))
        ),
        or_dash(
            report
                .block_reads_per_op
                .map(|blocks| format!("{blocks:.3}"))
        ),
        or_dash(stalls),
        or_dash(
            report
                .stalls
                .map(|_| format!("{:.3}", report.stall_seconds))
        ),
        levels.join(" ")
    )];
    if report.operations.len() > 1 {
        lines.extend(report.operations.iter().map(|kind| {
            format!(
                "  {:<20} {:>11} {:>32} {}",
                kind.operation.name(),
                kind.ops,
                "",
                latencies(&kind.latency)
            )
        }));
    }
    if let Some(companion) = &report.companion {
        lines.push(format!(
            "  companion: {:.0} {}s/s, target {:.0} {:>10} {}",
            companion.per_second,
            companion.done.operation.name(),
            companion.target_per_second,
            "",
            latencies(&companion.done.latency)
        ));
    }
    let separated = report.separated_reads;
    if separated != SeparatedReads::default() {
        lines.push(format!(
            "  separated values: {} read from transient logs, {} from value logs, {} prefetched",
            separated.transient_log_reads, separated.value_log_reads, separated.prefetched
        ));
    }
    if let Some(runs) = report.runs_per_seek {
        lines.push(format!("  runs visited: {runs:.2} per seek"));
    }
    if let Some(compactions) = report.compactions.filter(|done| done.count > 0) {
        lines.push(format!(
            "  compactions: {}, {:.3} s, from {:.1} to {:.1} ms",
            compactions.count, compactions.seconds, compactions.shortest_ms, compactions.longest_ms
        ));
    }
    if matches!(report.name.as_str(), "stats" | "levelstats") {
        lines.extend(report.levels.iter().map(|level| {
            format!(
                "  level {}: {} files, {} segments, {} bytes of {}, {} entries",
                level.level,
                level.files,
                level.segments,
                level.bytes,
                level.capacity,
                level.entries
            )
        }));
    }
    lines.extend(report.stalls_by_cause.iter().map(|stall| {
        format!(
            "  stalls by {}: {} delays, {} stops, {:.3} s, longest {:.1} ms",
            stall.cause, stall.delays, stall.stops, stall.seconds, stall.longest_ms
        )
    }));
    lines.join("\n")
}

/// The report for people, as `args` ask for it: its row, and how its latencies are distributed.
pub fn lines(report: &Report, args: &BenchArgs) -> String {
    if args.histogram {
        format!("{}\n{}", row(report), histogram(report))
    } else {
        row(report)
    }
}

/// The distribution of the latencies for people, a line for each point of the curve: that of the load, then
/// those of each kind of operation, where there are several, and of what was done beside it.
pub(crate) fn histogram(report: &Report) -> String {
    let line =
        |point: &CurvePoint| format!("  {:>11.5} % {:>12.3} us", point.quantile * 100.0, point.us);
    let mut lines: Vec<String> = report.latency_curve.iter().map(line).collect();
    let kinds = report.operations.iter();
    let kinds = kinds.filter(|_| report.operations.len() > 1);
    let kinds = kinds.map(|kind| ("", kind));
    let companion = report.companion.iter();
    let companion = companion.map(|companion| ("companion: ", &companion.done));
    for (prefix, kind) in kinds.chain(companion) {
        lines.push(format!("  {prefix}{}", kind.operation.name()));
        lines.extend(kind.latency_curve.iter().map(line));
    }
    lines.join("\n")
}

fn latencies(latency: &Percentiles) -> String {
    let columns = [
        latency.p50_us,
        latency.p95_us,
        latency.p99_us,
        latency.p999_us,
        latency.max_us,
    ];
    latency_columns(columns.map(|micros| format!("{micros:.1}")))
}

fn latency_columns([p50, p95, p99, p999, max]: [String; 5]) -> String {
    format!("{p50:>7} {p95:>7} {p99:>8} {p999:>8} {max:>9}")
}

fn or_dash(figure: Option<String>) -> String {
    figure.unwrap_or_else(|| "-".to_owned())
}

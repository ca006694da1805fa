//! The report of a load, as JSON and as text.
//!
//! Field names are the format of JSON lines and of campaign files. A new field has a default, so older files stay
//! readable.

pub(crate) mod destination;
pub(crate) mod figures;
pub(crate) mod output;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::report::figures::throughput;

use crate::{
    BenchArgs, CompactionShape, CompanionReport, CurvePoint, DeviceReport, DroppedCaches, IoShape,
    LevelShape, OperationReport, Percentiles, SeparatedReads, SeriesPoint, StallShape,
};

/// The result of one load.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    /// The load.
    pub name: String,
    /// The engine.
    pub engine: String,
    /// The settings of its store, under the engine's names.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// Completed operations: writes, gets, seeks, or entries of a walk.
    pub ops: u64,
    /// Seconds of these operations.
    pub seconds: f64,
    /// Seconds until the end of background work, if the run waits for it.
    pub settled_seconds: f64,
    /// Operations per second, without the settling.
    pub ops_per_second: f64,
    /// Operations per second, with the settling.
    pub settled_ops_per_second: f64,
    /// Processor time of the process in seconds, user and system, settling included.
    pub cpu_seconds: f64,
    /// The same per operation, in microseconds.
    pub cpu_us_per_op: f64,
    /// The latencies.
    #[serde(flatten)]
    pub latency: Percentiles,
    /// The latencies as a curve, denser towards the slowest; empty without operations.
    pub latency_curve: Vec<CurvePoint>,
    /// The latencies of each kind of operation in the load.
    pub operations: Vec<OperationReport>,
    /// The operations of the companion thread, if it counts any.
    pub companion: Option<CompanionReport>,
    /// Gets that found a value, seeks that met their key, entries of a walk.
    pub found: u64,
    /// A checksum of every key and value that the load read, in hexadecimal; equal for equal seeds and loads if
    /// `repeatable` is true.
    pub checksum: String,
    /// Whether the reads follow from the seed. They do not during or after concurrent writes in a random order,
    /// until the next fill.
    pub repeatable: bool,
    /// The caches that the bench dropped before the load.
    #[serde(default)]
    pub dropped_caches: Option<DroppedCaches>,
    /// Bytes of the keys and values that the load wrote.
    pub user_bytes: u64,
    /// Bytes that the engine wrote per user byte during the load and the settling. None if the load wrote
    /// nothing, or less than a tenth of the store that it found: most bytes then belong to earlier loads.
    pub write_amplification: Option<f64>,
    /// The same for bytes written and read together.
    pub io_amplification: Option<f64>,
    /// Blocks that gets and scans read, if the engine reports them.
    pub block_reads: Option<u64>,
    /// The same per operation.
    pub block_reads_per_op: Option<f64>,
    /// Sorted runs that a seek visits, segments included, if the engine reports them and the load has seeks.
    pub runs_per_seek: Option<f64>,
    /// Separated values that gets and scans have read.
    pub separated_reads: SeparatedReads,
    /// Filters that gets probed, if the engine reports them.
    pub filter_probes: Option<u64>,
    /// Filters that passed an absent key, if the engine reports them.
    pub filter_false_positives: Option<u64>,
    /// Bytes that gets, scans and background work read from files, settling included. Windrow's do not include
    /// separated values that gets and scans read.
    pub read_bytes: u64,
    /// Bytes written to files, settling included.
    pub written_bytes: u64,
    /// Bytes that the process read by system calls, if the system reports it, without pages of mapped files.
    pub process_read_bytes: Option<u64>,
    /// Bytes that the process wrote by system calls, if the system reports it.
    pub process_written_bytes: Option<u64>,
    /// The I/O that reached the device, settling included.
    #[serde(flatten)]
    pub device: DeviceReport,
    /// Peak of the resident memory of the process, if the system reports it: since the start of the load, or since
    /// the start of the process if the system does not reset the peak.
    pub peak_memory_bytes: Option<u64>,
    /// The I/O of the engine by purpose, if it reports it.
    pub io_stats: Vec<IoShape>,
    /// Compactions during the load and the settling, if the engine reports them.
    pub compactions: Option<CompactionShape>,
    /// Stalls of writes, if the engine reports them.
    pub stalls: Option<u64>,
    /// Seconds of stalls.
    pub stall_seconds: f64,
    /// The stalls during the load and the settling by cause, if the engine reports them.
    pub stalls_by_cause: Vec<StallShape>,
    /// Bytes of all files of the store after settling.
    pub disk_bytes: u64,
    /// Bytes of live keys and values; unknown if the store is older than the run.
    pub live_bytes: Option<u64>,
    /// Bytes on disk per live byte.
    pub space_amplification: Option<f64>,
    /// The tree after settling.
    pub levels: Vec<LevelShape>,
    /// The time series: one point per second, fewer in long loads.
    pub series: Vec<SeriesPoint>,
}

impl Report {
    /// The operations per second for comparisons: with settling if the own threads of the load write, and without
    /// it if they only read. The little background work after reads would weigh more in shorter loads.
    pub fn rate(&self) -> f64 {
        throughput(&self.name, self.ops_per_second, self.settled_ops_per_second)
    }
}

/// The heading of the [`lines`] of reports.
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

/// The lines of a report in the table: one for the load, one for each kind of operation if the load has several,
/// and one for each further group of figures.
pub(crate) fn row(report: &Report) -> String {
    let levels: Vec<String> = report
        .levels
        .iter()
        .map(|level| format!("{:.0}", level.bytes as f64 / f64::from(1 << 20)))
        .collect();
    let ratio = |figure: Option<f64>| or_dash(figure.map(|ratio| format!("{ratio:.2}x")));
    let blocks = report
        .block_reads_per_op
        .map(|blocks| format!("{blocks:.3}"));
    let stall_seconds = report
        .stalls
        .map(|_| format!("{:.3}", report.stall_seconds));
    let mut lines = vec![format!(
        "{:<22} {:>11} {:>11.0} {:>11.0} {:>8.2} {} {:>11} {:>8} {:>6} {:>9} {:>7} {:>9}  {}",
        report.name,
        report.ops,
        report.ops_per_second,
        report.settled_ops_per_second,
        report.cpu_us_per_op,
        latencies(&report.latency),
        report.found,
        ratio(report.write_amplification),
        ratio(report.space_amplification),
        or_dash(blocks),
        or_dash(report.stalls.map(|stalls| stalls.to_string())),
        or_dash(stall_seconds),
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
    if let Some(dropped) = report.dropped_caches {
        lines.push(format!("  dropped before the load: {}", dropped.text()));
    }
    if report.ops > 0 {
        lines.push(format!("  {}", report.device.text(report.ops)));
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

/// The report as text: its row, and the distribution of latencies if `args` request it.
pub fn lines(report: &Report, args: &BenchArgs) -> String {
    if args.histogram {
        format!("{}\n{}", row(report), histogram(report))
    } else {
        row(report)
    }
}

/// The distribution of the latencies as text, one line for each point of the curve: of the load, then of each kind
/// of operation if the load has several, and of the companion.
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

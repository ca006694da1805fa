//! What a load found out, for programs and for people.

use serde::Serialize;

use crate::LevelShape;

/// The result of one load.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The load.
    pub name: &'static str,
    /// The engine.
    pub engine: &'static str,
    /// Operations done: writes, gets, seeks, or entries walked over.
    pub ops: u64,
    /// Seconds that they took.
    pub seconds: f64,
    /// Seconds until background work had settled, too.
    pub settled_seconds: f64,
    /// Operations per second, without the settling.
    pub ops_per_second: f64,
    /// Half of the operations took at most this many microseconds.
    pub p50_us: f64,
    /// 99 of 100 took at most this long.
    pub p99_us: f64,
    /// 999 of 1000 took at most this long.
    pub p999_us: f64,
    /// The slowest took this long.
    pub max_us: f64,
    /// Gets that found a value, seeks that met their key, entries walked over.
    pub found: u64,
    /// Over every key and value read, in hexadecimal; equal for equal seeds and loads, except for
    /// `readwhilewriting` and what runs on the store that it leaves.
    pub checksum: String,
    /// Bytes written by the engine per byte given, over this load alone, after settling; 0 where
    /// nothing was given.
    pub write_amplification: f64,
    /// Blocks consulted by gets and scans, where the engine tells.
    pub block_reads: Option<u64>,
    /// Bytes read from files by gets and scans.
    pub read_bytes: u64,
    /// Bytes written to files, settling included.
    pub written_bytes: u64,
    /// Delayed writes, where the engine tells.
    pub stalls: Option<u64>,
    /// Seconds of delay.
    pub stall_seconds: f64,
    /// The tree after settling.
    pub levels: Vec<LevelShape>,
}

/// The heading over [`row`]s.
pub fn header() -> String {
    format!(
        "{:<17} {:>11} {:>9} {:>11} {:>9} {:>9} {:>9} {:>10} {:>11} {:>7} {:>7}  {}",
        "load",
        "ops",
        "seconds",
        "ops/s",
        "p50 us",
        "p99 us",
        "p99.9 us",
        "max us",
        "found",
        "written",
        "stalls",
        "MiB by level"
    )
}

/// One line of the table for people.
pub fn row(report: &Report) -> String {
    let levels: Vec<String> = report
        .levels
        .iter()
        .map(|level| format!("{:.0}", level.bytes as f64 / f64::from(1 << 20)))
        .collect();
    let stalls = report
        .stalls
        .map_or_else(|| "-".to_owned(), |stalls| stalls.to_string());
    format!(
        "{:<17} {:>11} {:>9.3} {:>11.0} {:>9.2} {:>9.2} {:>9.2} {:>10.1} {:>11} {:>6.2}x {:>7}  {}",
        report.name,
        report.ops,
        report.seconds,
        report.ops_per_second,
        report.p50_us,
        report.p99_us,
        report.p999_us,
        report.max_us,
        report.found,
        report.write_amplification,
        stalls,
        levels.join(" ")
    )
}

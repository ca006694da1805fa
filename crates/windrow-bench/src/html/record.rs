//! The parts of a campaign file that a page shows.
//!
//! This is a separate, tolerant view for files of older and newer benches: every field may be missing or null, and
//! unknown fields are ignored. A line that is not an object, or a field of another type, is an error with the
//! number of the line.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Error as _, IgnoredAny};
use windrow::{Error, Result};

use crate::campaign::Campaign;
use crate::paper::experiment::Experiment;
use crate::{DeviceLimits, DroppedCaches};

/// A campaign: its command, machine, experiments and runs.
#[derive(Debug, Clone, Default)]
pub struct CampaignRecord {
    /// Its command.
    pub command: String,
    /// The time of its start, as text.
    pub began: String,
    /// The version of the program.
    pub version: String,
    /// Its machine.
    pub machine: Machine,
    /// The limits of its device.
    pub device: Option<DeviceLimits>,
    /// Its experiments of papers.
    pub experiments: Vec<Experiment>,
    /// All runs in the order of the file, failed ones included.
    pub runs: Vec<Run>,
}

/// The machine of a campaign.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// The name of the processor.
    pub processor: Option<String>,
    /// Its cores.
    pub cores: Option<u64>,
    /// Bytes of memory.
    pub memory_bytes: Option<f64>,
    /// The operating system.
    pub system: Option<String>,
}

/// One run: an engine and its loads.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Run {
    /// Its label in the campaign.
    pub label: Option<String>,
    /// The engine.
    pub engine: Option<String>,
    /// Its round.
    pub round: Option<u64>,
    /// The group of runs with the same settings.
    pub group: Option<String>,
    /// Its command.
    pub command: Option<String>,
    /// The failure, if the run failed. It then has no reports.
    pub failed: Option<String>,
    /// The reports of its loads.
    pub(super) reports: Vec<LoadReport>,
}

/// One load of a run.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct LoadReport {
    pub(super) name: Option<String>,
    pub(super) engine: Option<String>,
    pub(super) settings: Option<BTreeMap<String, String>>,
    pub(super) ops: Option<f64>,
    pub(super) seconds: Option<f64>,
    pub(super) ops_per_second: Option<f64>,
    pub(super) settled_seconds: Option<f64>,
    pub(super) settled_ops_per_second: Option<f64>,
    #[serde(flatten)]
    pub(super) latency: Latency,
    pub(super) operations: Option<Vec<OperationLatency>>,
    pub(super) latency_curve: Option<Vec<CurvePoint>>,
    pub(super) cpu_us_per_op: Option<f64>,
    pub(super) peak_memory_bytes: Option<f64>,
    pub(super) dropped_caches: Option<DroppedCaches>,
    pub(super) user_bytes: Option<f64>,
    pub(super) write_amplification: Option<f64>,
    pub(super) space_amplification: Option<f64>,
    pub(super) read_bytes: Option<f64>,
    pub(super) written_bytes: Option<f64>,
    pub(super) process_read_bytes: Option<f64>,
    pub(super) process_written_bytes: Option<f64>,
    pub(super) device_reads_per_op: Option<f64>,
    pub(super) device_read_bytes_per_op: Option<f64>,
    pub(super) device_written_bytes_per_op: Option<f64>,
    pub(super) device_read_bytes_per_user_byte: Option<f64>,
    /// Not empty for engines with their own counters.
    pub(super) io_stats: Option<Vec<IgnoredAny>>,
    pub(super) companion: Option<Companion>,
    pub(super) stall_seconds: Option<f64>,
    pub(super) levels: Option<Vec<Level>>,
    pub(super) series: Option<Vec<SeriesPoint>>,
}

/// The operations of the companion thread.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Companion {
    pub(super) per_second: Option<f64>,
}

/// Microseconds.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Latency {
    #[serde(rename = "p50_us")]
    pub(super) p50: Option<f64>,
    #[serde(rename = "p95_us")]
    pub(super) p95: Option<f64>,
    #[serde(rename = "p99_us")]
    pub(super) p99: Option<f64>,
    #[serde(rename = "p999_us")]
    pub(super) p999: Option<f64>,
    #[serde(rename = "max_us")]
    pub(super) max: Option<f64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct OperationLatency {
    pub(super) operation: Option<String>,
    pub(super) ops: Option<f64>,
    #[serde(flatten)]
    pub(super) latency: Latency,
    pub(super) latency_curve: Option<Vec<CurvePoint>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct CurvePoint {
    pub(super) quantile: Option<f64>,
    pub(super) us: Option<f64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Level {
    #[serde(rename = "level")]
    pub(super) number: Option<u64>,
    pub(super) files: Option<f64>,
    pub(super) bytes: Option<f64>,
    pub(super) capacity: Option<f64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct SeriesPoint {
    pub(super) seconds: Option<f64>,
    pub(super) ops_per_second: Option<f64>,
    pub(super) p99_us: Option<f64>,
    pub(super) stall_seconds: Option<f64>,
    pub(super) settling: Option<bool>,
}

/// The first line of a file.
#[derive(Deserialize)]
struct FirstLine {
    campaign: HeaderRecord,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct HeaderRecord {
    command: Option<String>,
    began: Option<String>,
    version: Option<String>,
    machine: Option<Machine>,
    device: Option<DeviceLimits>,
}

impl CampaignRecord {
    /// A campaign with its experiments. Its runs have no reports, only their failures.
    pub fn of_experiments(campaign: &Campaign, experiments: Vec<Experiment>) -> Self {
        let header = campaign.header();
        let machine = &header.machine;
        let failed = campaign.failures().iter();
        let failed = failed
            .map(|it| Run::reported(&it.label, &it.engine, it.round, &it.group, Some(&it.failed)));
        let passed = campaign.runs().iter();
        let passed =
            passed.map(|it| Run::reported(&it.label, &it.engine, it.round, &it.group, None));
        Self {
            command: header.command.clone(),
            began: header.began.clone(),
            version: header.version.clone(),
            machine: Machine {
                processor: Some(machine.processor.clone()),
                cores: Some(machine.cores as u64),
                memory_bytes: Some(machine.memory_bytes as f64),
                system: Some(machine.system.clone()),
            },
            device: header.device,
            experiments,
            runs: failed.chain(passed).collect(),
        }
    }

    /// Reads a campaign file. `name` is that of the file, for errors.
    ///
    /// # Errors
    ///
    /// [`windrow::ErrorKind::InvalidArgument`] for a file that does not begin with the header of a campaign;
    /// [`windrow::ErrorKind::Corruption`], with the number of the line, for an invalid line.
    pub fn parse(name: &str, text: &[u8]) -> Result<Self> {
        let mut record = None;
        let mut offset = 0;
        for (position, line) in text.split_inclusive(|&byte| byte == b'\n').enumerate() {
            let broken = |error: serde_json::Error| {
                let what = format!("line {}: {error}", position + 1);
                Error::corruption(name, offset, what)
            };
            match &mut record {
                None => {
                    let begun = Self::begin(line);
                    record = Some(begun.map_err(|error| no_campaign(name, &error.to_string()))?);
                }
                Some(_) if line.trim_ascii().is_empty() => {}
                Some(record) => match object(line) {
                    Ok(run) => record.runs.push(run),
                    // The incomplete line of a running or killed campaign.
                    Err(_) if !line.ends_with(b"\n") => {}
                    Err(error) => return Err(broken(error)),
                },
            }
            offset += line.len() as u64;
        }
        record.ok_or_else(|| no_campaign(name, "it is empty, as before its first run"))
    }

    /// A campaign without runs, from the first line of its file.
    fn begin(line: &[u8]) -> serde_json::Result<Self> {
        let FirstLine { campaign } = object(line)?;
        Ok(Self {
            command: campaign.command.unwrap_or_default(),
            began: campaign.began.unwrap_or_default(),
            version: campaign.version.unwrap_or_default(),
            machine: campaign.machine.unwrap_or_default(),
            device: campaign.device,
            experiments: Vec::new(),
            runs: Vec::new(),
        })
    }
}

impl Run {
    /// A run without reports.
    fn reported(label: &str, engine: &str, round: u32, group: &str, failed: Option<&str>) -> Self {
        Self {
            label: Some(label.to_owned()),
            engine: Some(engine.to_owned()),
            round: Some(round.into()),
            group: Some(group.to_owned()),
            failed: failed.map(str::to_owned),
            ..Self::default()
        }
    }

    /// The name of the engine, from the run or its first report.
    pub(super) fn engine_name(&self) -> &str {
        let reported = || {
            self.reports
                .first()
                .and_then(|first| first.engine.as_deref())
        };
        let name = self.engine.as_deref().or_else(reported);
        name.unwrap_or("unknown engine")
    }
}

/// The object of a line. Refuses an array, which serde accepts for a struct.
fn object<T: DeserializeOwned>(line: &[u8]) -> serde_json::Result<T> {
    if !line.trim_ascii_start().starts_with(b"{") {
        return Err(serde_json::Error::custom("expected an object"));
    }
    serde_json::from_slice(line)
}

fn no_campaign(name: &str, what: &str) -> Error {
    Error::invalid_argument(format!("{name} is not the file of a campaign: {what}"))
}

//! What a campaign file holds, as far as a page shows it.
//!
//! The reader's own view, so that files of older and newer benches can be read: every field may be
//! missing or null, and fields that are not known here are passed over. A line that is no object, or
//! a field of another type, is an error that names the line.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Error as _, IgnoredAny};
use windrow::{Error, Result};

use crate::campaign::Campaign;
use crate::paper::experiment::Experiment;

/// A campaign: what was done, where, and what came of it.
#[derive(Debug, Clone, Default)]
pub struct CampaignRecord {
    /// The command that ran it.
    pub command: String,
    /// When it began, as the file says.
    pub began: String,
    /// The version of the program.
    pub version: String,
    /// Where it ran.
    pub machine: Machine,
    /// Experiments of papers that were repeated.
    pub experiments: Vec<Experiment>,
    /// Every child, in the order of the file, those that failed among them.
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

/// One child: an engine, once through its loads.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Run {
    /// Its name in the campaign.
    pub label: Option<String>,
    /// The engine.
    pub engine: Option<String>,
    /// Which repetition it is.
    pub round: Option<u64>,
    /// The settings that it shares with others.
    pub group: Option<String>,
    /// The command that ran it.
    pub command: Option<String>,
    /// What happened, if it failed; it has no reports then.
    pub failed: Option<String>,
    /// What each load found out.
    pub(super) reports: Vec<LoadReport>,
}

/// One load of a child.
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
    pub(super) user_bytes: Option<f64>,
    pub(super) write_amplification: Option<f64>,
    pub(super) space_amplification: Option<f64>,
    pub(super) read_bytes: Option<f64>,
    pub(super) written_bytes: Option<f64>,
    pub(super) process_read_bytes: Option<f64>,
    pub(super) process_written_bytes: Option<f64>,
    /// Of engines that count themselves.
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
}

impl CampaignRecord {
    /// A campaign of which its experiments are shown, and of each run only that it passed, or how it failed.
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
            experiments,
            runs: failed.chain(passed).collect(),
        }
    }

    /// Reads a campaign file. `name` is that of the file, for errors.
    ///
    /// # Errors
    ///
    /// [`windrow::ErrorKind::InvalidArgument`] for a file that does not begin as a campaign's does;
    /// [`windrow::ErrorKind::Corruption`], with the number of the line, where a further line is not what it
    /// should be.
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
                    // What a campaign that goes on, or was killed, is writing.
                    Err(_) if !line.ends_with(b"\n") => {}
                    Err(error) => return Err(broken(error)),
                },
            }
            offset += line.len() as u64;
        }
        record.ok_or_else(|| no_campaign(name, "it is empty, as before the first run"))
    }

    /// A campaign without runs, of the first line of its file.
    fn begin(line: &[u8]) -> serde_json::Result<Self> {
        let FirstLine { campaign } = object(line)?;
        Ok(Self {
            command: campaign.command.unwrap_or_default(),
            began: campaign.began.unwrap_or_default(),
            version: campaign.version.unwrap_or_default(),
            machine: campaign.machine.unwrap_or_default(),
            experiments: Vec::new(),
            runs: Vec::new(),
        })
    }
}

impl Run {
    /// What is known of a run beside its reports.
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

    /// The engine's name, of the run or else of its first report.
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

/// The object of a line; an array would do for a struct, too, and is refused.
fn object<T: DeserializeOwned>(line: &[u8]) -> serde_json::Result<T> {
    if !line.trim_ascii_start().starts_with(b"{") {
        return Err(serde_json::Error::custom("expected an object"));
    }
    serde_json::from_slice(line)
}

fn no_campaign(name: &str, what: &str) -> Error {
    Error::invalid_argument(format!("{name} is not the file of a campaign: {what}"))
}

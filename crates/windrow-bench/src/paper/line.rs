//! What an experiment runs, and how it finds what came of it.

use std::fmt::Display;

use serde_json::Value;
use windrow::{Error, ErrorKind, Result};

use crate::Report;
use crate::campaign::{Order, Run};

/// The size of the experiments: 1 is what `paper` does by default.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale(pub(crate) f64);

impl Scale {
    /// So many entries or operations at scale 1.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count far below 2^53"
    )]
    pub(crate) fn count(self, entries: f64) -> u64 {
        (entries * self.0).round().max(100.0) as u64
    }

    /// `setting`, which is that at scale 1, as it is told of at this one.
    pub(crate) fn reported(self, setting: &str) -> String {
        if (self.0 - 1.0).abs() < f64::EPSILON {
            return setting.to_owned();
        }
        format!(
            "{setting}. That is scale 1; here counts and sizes are {} times as large, as the commands say",
            self.0
        )
    }

    /// So many bytes at scale 1, at least `least`.
    pub(crate) fn bytes(self, bytes: f64, least: u64) -> u64 {
        self.count(bytes).max(least)
    }
}

/// Sizes of a tree that keep its shape where all are scaled alike: memtables, files, and level 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    memtable: u64,
    file: u64,
    base: u64,
}

impl Sizes {
    /// Those of the papers on LevelDB and on Garnering, 4 MiB, 2 MiB and 10 MiB, times `share`.
    pub(crate) fn small(scale: Scale, fraction: f64) -> Self {
        Self::of(scale, fraction * 4.0, fraction * 2.0, fraction * 10.0)
    }

    /// RocksDB's defaults, 64 MiB, 64 MiB and 256 MiB, times `share`.
    pub(crate) fn large(scale: Scale, fraction: f64) -> Self {
        Self::of(scale, fraction * 64.0, fraction * 64.0, fraction * 256.0)
    }

    /// In MiB.
    fn of(scale: Scale, memtable: f64, file: f64, base: f64) -> Self {
        let bytes = |mebibytes: f64, least| scale.bytes(mebibytes * f64::from(1 << 20), least);
        Self {
            memtable: bytes(memtable, 64 << 10),
            file: bytes(file, 32 << 10),
            base: bytes(base, 128 << 10),
        }
    }
}

/// One run: loads on one store, with settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    loads: Vec<&'static str>,
    settings: Vec<String>,
}

impl Line {
    /// `loads`, one behind the other.
    pub(crate) fn new(loads: &[&'static str]) -> Self {
        Self {
            loads: loads.to_vec(),
            settings: Vec::new(),
        }
    }

    /// With the option `name`, such as `num`.
    pub(crate) fn with(mut self, name: &str, value: impl Display) -> Self {
        self.settings.push(format!("--{name}"));
        self.settings.push(value.to_string());
        self
    }

    /// With these sizes.
    pub(crate) fn sized(self, sizes: Sizes) -> Self {
        self.with("memtable-bytes", sizes.memtable)
            .with("file-bytes", sizes.file)
            .with("base-bytes", sizes.base)
    }

    /// With every value in its place.
    pub(crate) fn in_place(self) -> Self {
        self.with("medium-from", "never")
            .with("large-from", "never")
    }

    /// The run's name: what it does.
    fn label(&self) -> String {
        format!("{} {}", self.loads.join(","), self.settings.join(" "))
    }

    /// The run of a round as a campaign takes it.
    pub(crate) fn order(&self, group: &str, round: u32) -> Order {
        let mut arguments = vec![self.loads.join(",")];
        arguments.extend(self.settings.iter().cloned());
        Order {
            label: format!("{}{ROUND}{round}", self.label()),
            engine: "windrow".to_owned(),
            round,
            group: group.to_owned(),
            program: "windrow-bench".to_owned(),
            arguments,
        }
    }
}

/// Between a line and the number of a round in the name of a run.
const ROUND: &str = ", round ";

/// What came of all runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Results<'a>(pub(crate) &'a [Run]);

impl<'a> Results<'a> {
    /// The report of the first `load` of the line, each of its figures the median of the rounds.
    pub(crate) fn of(self, line: &Line, load: &str) -> Result<Report> {
        let label = line.label();
        let is_of_line = |run: &&Run| {
            let parts = run.label.split_once(ROUND);
            parts.is_some_and(|(line, _)| line == label)
        };
        let rounds = self.0.iter().filter(is_of_line);
        let report = |run: &'a Run| run.reports.iter().find(|report| report.name == load);
        let reports = rounds.filter_map(report).map(serde_json::to_value);
        let reports: Option<Vec<Value>> = reports.map(std::result::Result::ok).collect();
        let reports = reports.unwrap_or_default();
        let median = medians(&reports.iter().collect::<Vec<_>>());
        serde_json::from_value(median).map_err(|_| {
            let message = format!("the run {label:?} has no report of {load}");
            Error::new(ErrorKind::NotFound, message)
        })
    }
}

/// The median of what each place holds in all of `rounds`; what is no number, and what only some have, as the
/// first has it.
fn medians(rounds: &[&Value]) -> Value {
    let Some(&first) = rounds.first() else {
        return Value::Null;
    };
    match first {
        Value::Number(_) => {
            let mut numbers: Vec<&Value> =
                rounds.iter().filter(|it| it.is_number()).copied().collect();
            let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
            numbers.sort_by(|a, b| number(a).total_cmp(&number(b)));
            numbers[numbers.len() / 2].clone()
        }
        Value::Array(places) => {
            let median = |(place, _)| {
                let values = rounds.iter().filter_map(|round| round.get(place));
                medians(&values.collect::<Vec<_>>())
            };
            places.iter().enumerate().map(median).collect()
        }
        Value::Object(fields) => {
            let median = |(name, _): (&String, _)| {
                let values = rounds.iter().filter_map(|round| round.get(name));
                (name.clone(), medians(&values.collect::<Vec<_>>()))
            };
            Value::Object(fields.iter().map(median).collect())
        }
        other => other.clone(),
    }
}

/// Figures that the papers compare.
pub(crate) trait Figures {
    /// Thousands of operations per second.
    fn kops(&self) -> f64;
    /// Microseconds for each operation, all background work behind it included.
    fn settled_micros(&self) -> f64;
    /// Blocks consulted for each operation.
    fn blocks(&self) -> f64;
    /// The deepest level that holds anything.
    fn depth(&self) -> u64;
    /// Gets that `level` has answered since the store was opened.
    fn answered_by(&self, level: u64) -> u64;
    /// Bytes written and read for one purpose.
    fn moved_for(&self, purpose: &str) -> (u64, u64);
}

impl Figures for Report {
    fn kops(&self) -> f64 {
        self.ops_per_second / 1e3
    }

    fn settled_micros(&self) -> f64 {
        self.settled_seconds * 1e6 / self.ops.max(1) as f64
    }

    fn blocks(&self) -> f64 {
        self.block_reads_per_op.unwrap_or_default()
    }

    fn depth(&self) -> u64 {
        let filled = self.levels.iter().filter(|level| level.files > 0);
        filled.map(|level| level.level).max().unwrap_or(0)
    }

    fn answered_by(&self, level: u64) -> u64 {
        let levels = self.levels.iter().filter(|own| own.level == level);
        levels.map(|own| own.gets_answered).sum()
    }

    fn moved_for(&self, purpose: &str) -> (u64, u64) {
        let moved = self.io_stats.iter().find(|moved| moved.purpose == purpose);
        moved.map_or((0, 0), |moved| (moved.written_bytes, moved.read_bytes))
    }
}

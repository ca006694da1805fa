//! The runs of an experiment, and the reports of these runs.

use std::fmt::Display;

use serde_json::Value;
use windrow::{Error, ErrorKind, Result};

use super::experiment::Table;
use super::figures::Column;
use crate::Report;
use crate::campaign::{Order, Run};

/// The scale of the experiments; the default is 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale(pub(crate) f64);

impl Scale {
    /// The count of entries or operations for a count at scale 1.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count far below 2^53"
    )]
    pub(crate) fn count(self, entries: f64) -> u64 {
        (entries * self.0).round().max(100.0) as u64
    }

    /// The text of `setting`, which describes scale 1, for this scale.
    pub(crate) fn reported(self, setting: &str) -> String {
        if (self.0 - 1.0).abs() < f64::EPSILON {
            return setting.to_owned();
        }
        format!(
            "{setting}. That is scale 1; these counts and sizes are {} times larger, as the commands show",
            self.0
        )
    }

    /// The bytes for a number of bytes at scale 1, at least `least`.
    pub(crate) fn bytes(self, bytes: f64, least: u64) -> u64 {
        self.count(bytes).max(least)
    }
}

/// Sizes of a tree: memtables, files, and level 1. A common factor keeps the shape of the tree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    memtable: u64,
    file: u64,
    base: u64,
}

impl Sizes {
    /// Those of the papers on LevelDB and on Garnering, 4 MiB, 2 MiB and 10 MiB, times `fraction`.
    pub(crate) fn small(scale: Scale, fraction: f64) -> Self {
        Self::of(scale, fraction * 4.0, fraction * 2.0, fraction * 10.0)
    }

    /// RocksDB's defaults, 64 MiB, 64 MiB and 256 MiB, times `fraction`.
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
pub(crate) struct RunSpec {
    loads: Vec<&'static str>,
    settings: Vec<String>,
}

impl RunSpec {
    /// `loads`, one after the other.
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

    /// With every value in place.
    pub(crate) fn in_place(self) -> Self {
        self.with("medium-from", "never")
            .with("large-from", "never")
    }

    /// The name of the run: its loads and settings.
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

/// Stands between a label and the number of a round in the name of a run.
const ROUND: &str = ", round ";

/// The reports of all runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Results<'a>(pub(crate) &'a [Run]);

impl<'a> Results<'a> {
    /// The report of the first `load` of the run. Each figure is the median of the rounds.
    pub(crate) fn of(self, spec: &RunSpec, load: &str) -> Result<Report> {
        let label = spec.label();
        let is_of_spec = |run: &&Run| {
            let parts = run.label.split_once(ROUND);
            parts.is_some_and(|(name, _)| name == label)
        };
        let rounds = self.0.iter().filter(is_of_spec);
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

    /// A table with a row for each load of `rows`, and the reports of these rows. A row has its `names`, then a
    /// cell for each of the `columns`.
    pub(crate) fn table<'l>(
        self,
        names: &[&str],
        columns: &[Column],
        rows: impl IntoIterator<Item = (Vec<String>, RunSpec, &'l str)>,
    ) -> Result<(Table, Vec<Report>)> {
        let headings = columns.iter().map(|column| column.0);
        let headings: Vec<&str> = names.iter().copied().chain(headings).collect();
        let mut table = Table::new(&headings);
        let mut reports = Vec::new();
        for (mut cells, spec, load) in rows {
            let report = self.of(&spec, load)?;
            cells.extend(columns.iter().map(|column| column.1(&report)));
            table.rows.push(cells);
            reports.push(report);
        }
        Ok((table, reports))
    }
}

/// The median of each number over all `rounds`. Other values, and those that only some rounds have, are those of
/// the first round.
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

//! `compare`: the same loads on several engines, interleaved, each time in a new process with a
//! new folder; medians over the rounds, and ratios to the first engine.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use clap::Args;
use serde_json::{Value, json};
use windrow::{Error, Result};

use crate::{EngineName, print};

/// Arguments of `compare`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  windrow-peers compare --rounds 3 --engines windrow,rocksdb,leveldb \\
    fillrandom,overwrite,readrandom,readmissing,seekrandom,seek10,seek100,readseq --num 5000000
  windrow-peers compare --engines windrow,rocksdb,blobdb,fjall \\
    ycsb-load,ycsb-a,ycsb-b,ycsb-c,ycsb-d,ycsb-e,ycsb-f --mix SD --records 5000000 --ops 500000")]
pub(crate) struct CompareArgs {
    /// Engines to run; ratios are those of the first to each other one [default: all]
    #[arg(long, value_enum, value_delimiter = ',')]
    engines: Vec<EngineName>,

    /// Times that every engine runs
    #[arg(long, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// Folder for the databases [default: that for temporary files]
    #[arg(long, value_name = "DIR")]
    folder: Option<std::path::PathBuf>,

    /// Print an object a line instead of a table
    #[arg(long)]
    json: bool,

    /// Loads and settings, as for run
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required = true,
        value_name = "LOADS AND SETTINGS"
    )]
    bench: Vec<String>,
}

/// The reports of one load on one engine, a report per round.
type Rounds = Vec<Value>;

pub(crate) fn run(args: &CompareArgs) -> Result<()> {
    let engines: Vec<EngineName> = match args.engines.as_slice() {
        [] => clap::ValueEnum::value_variants().to_vec(),
        engines => engines.to_vec(),
    };
    // By place of the load in the list, then by engine.
    let mut results: BTreeMap<usize, Vec<Rounds>> = BTreeMap::new();
    for _ in 0..args.rounds {
        for (position, engine) in engines.iter().enumerate() {
            for (load, report) in run_child(*engine, args)?.into_iter().enumerate() {
                let row = results.entry(load).or_default();
                row.resize(engines.len().max(row.len()), Rounds::new());
                row[position].push(report);
            }
        }
    }
    if !args.json {
        print(&heading(&engines))?;
    }
    let mut agreed = Ok(());
    for row in results.values() {
        let comparison = Comparison::of(row);
        print(&if args.json {
            comparison.object(&engines).to_string()
        } else {
            comparison.line()
        })?;
        if row
            .iter()
            .flatten()
            .all(|report| report["repeatable"] == true)
        {
            agreed = agreed.and(check_checksums(&comparison.name, row));
        }
    }
    agreed
}

/// Runs the loads on `engine` in a child; its progress goes to standard error.
fn run_child(engine: EngineName, args: &CompareArgs) -> Result<Vec<Value>> {
    let failed = |error| Error::io("run", Path::new(engine.name()), error);
    let mut maker = tempfile::Builder::new();
    let folder = maker.prefix("windrow-peers-");
    let folder = match &args.folder {
        Some(parent) => folder.tempdir_in(parent),
        None => folder.tempdir(),
    };
    let folder = folder.map_err(failed)?;
    let mut child = Command::new(std::env::current_exe().map_err(failed)?)
        .args(["run", "--json", "--engine", engine.name(), "--db"])
        .arg(folder.path())
        .args(&args.bench)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let mut reports = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            let line = line.map_err(failed)?;
            let report: Value = serde_json::from_str(&line).map_err(|e| failed(e.into()))?;
            progress(&report);
            reports.push(report);
        }
    }
    let status = child.wait().map_err(failed)?;
    if !status.success() {
        return Err(failed(std::io::Error::other(status.to_string())));
    }
    Ok(reports)
}

/// Tells a person who waits what was just measured.
fn progress(report: &Value) {
    use std::io::Write as _;
    let line = format!(
        "{:>10} {:<17} {:>12.0} ops/s",
        text(report, "engine"),
        text(report, "name"),
        number(report, "ops_per_second")
    );
    drop(writeln!(std::io::stderr(), "{line}"));
}

/// One load on all engines.
struct Comparison {
    name: String,
    /// Medians per engine.
    ops_per_second: Vec<f64>,
    settled_ops_per_second: Vec<f64>,
    p99_us: Vec<f64>,
    write_amplification: Vec<f64>,
}

impl Comparison {
    fn of(engines: &[Rounds]) -> Self {
        let first = engines.iter().flatten().next();
        let name = first.map(|report| text(report, "name")).unwrap_or_default();
        let medians = |field: &dyn Fn(&Value) -> f64| -> Vec<f64> {
            engines
                .iter()
                .map(|rounds| median(rounds.iter().map(field).collect()))
                .collect()
        };
        Self {
            ops_per_second: medians(&|report| number(report, "ops_per_second")),
            settled_ops_per_second: medians(&|report| {
                number(report, "ops") / number(report, "settled_seconds").max(1e-9)
            }),
            p99_us: medians(&|report| number(report, "p99_us")),
            write_amplification: medians(&|report| number(report, "write_amplification")),
            name,
        }
    }

    fn ratio(&self, engine: usize) -> f64 {
        self.ops_per_second[0] / self.ops_per_second[engine].max(1e-9)
    }

    fn object(&self, engines: &[EngineName]) -> Value {
        let by_engine = engines.iter().enumerate().map(|(position, engine)| {
            let figures = json!({
                "ops_per_second": self.ops_per_second[position],
                "settled_ops_per_second": self.settled_ops_per_second[position],
                "p99_us": self.p99_us[position],
                "write_amplification": self.write_amplification[position],
                "ratio": self.ratio(position),
            });
            (engine.name().to_owned(), figures)
        });
        json!({ "name": self.name, "engines": by_engine.collect::<serde_json::Map<_, _>>() })
    }

    fn line(&self) -> String {
        let columns: Vec<String> = (0..self.ops_per_second.len())
            .map(|engine| {
                let ratio = match engine {
                    0 => String::new(),
                    _ => format!("{:>5.2}x", self.ratio(engine)),
                };
                format!(
                    "{:>9.0} {:>6} {:>5.2}",
                    self.ops_per_second[engine] / 1e3,
                    ratio,
                    self.write_amplification[engine]
                )
            })
            .collect();
        format!("{:<17} {}", self.name, columns.join("  "))
    }
}

fn heading(engines: &[EngineName]) -> String {
    let names = engines
        .iter()
        .map(|engine| format!("{:<22}", engine.name()));
    let columns = engines.iter().map(|_| "   kops/s  ratio  w-amp");
    format!(
        "{:<17} {}\n{:<17} {}",
        "",
        names.collect::<Vec<_>>().join("  "),
        "load",
        columns.collect::<Vec<_>>().join(" ")
    )
}

/// With one seed, every engine must have read the same.
fn check_checksums(name: &str, engines: &[Rounds]) -> Result<()> {
    let mut checksums = engines
        .iter()
        .flatten()
        .map(|report| text(report, "checksum"));
    let first = checksums.next();
    if checksums.any(|checksum| Some(checksum) != first) {
        return Err(Error::corruption(
            name,
            0,
            "the engines read different data under one seed",
        ));
    }
    Ok(())
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    match numbers.len() {
        0 => 0.0,
        length if length % 2 == 1 => numbers[middle],
        _ => f64::midpoint(numbers[middle - 1], numbers[middle]),
    }
}

fn text(report: &Value, field: &str) -> String {
    report[field].as_str().unwrap_or_default().to_owned()
}

fn number(report: &Value, field: &str) -> f64 {
    report[field].as_f64().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_stand_in_the_middle() {
        let equal = |left: f64, right: f64| (left - right).abs() < 1e-9;
        assert!(equal(median(vec![3.0, 1.0, 2.0]), 2.0));
        assert!(equal(median(vec![4.0, 1.0]), 2.5));
        assert!(equal(median(Vec::new()), 0.0));
    }

    #[test]
    fn different_checksums_are_an_error() {
        let report = |checksum: &str| json!({ "name": "readseq", "checksum": checksum });
        assert!(check_checksums("readseq", &[vec![report("a")], vec![report("a")]]).is_ok());
        assert!(check_checksums("readseq", &[vec![report("a")], vec![report("b")]]).is_err());
    }
}

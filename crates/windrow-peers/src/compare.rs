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
        "{:>10} {:<22} {:>12.0} ops/s",
        text(report, "engine"),
        text(report, "name"),
        number(report, "ops_per_second")
    );
    drop(writeln!(std::io::stderr(), "{line}"));
}

/// The figures of a report that are compared, by their names in it. Null where an engine does not
/// tell, and in reports without it.
const FIGURES: [&str; 13] = [
    "ops_per_second",
    "settled_ops_per_second",
    "cpu_us_per_op",
    "peak_memory_bytes",
    "p50_us",
    "p95_us",
    "p99_us",
    "p999_us",
    "max_us",
    "write_amplification",
    "io_amplification",
    "space_amplification",
    "block_reads_per_op",
];

/// One load on all engines.
struct Comparison {
    name: String,
    /// For each engine, the medians of its figures.
    engines: Vec<BTreeMap<&'static str, Option<f64>>>,
}

impl Comparison {
    fn of(engines: &[Rounds]) -> Self {
        let first = engines.iter().flatten().next();
        let median_of = |rounds: &Rounds, figure: &str| {
            let numbers = rounds.iter().filter_map(|report| report[figure].as_f64());
            median(numbers.collect())
        };
        Self {
            name: first.map(|report| text(report, "name")).unwrap_or_default(),
            engines: engines
                .iter()
                .map(|rounds| {
                    FIGURES
                        .iter()
                        .map(|&figure| (figure, median_of(rounds, figure)))
                        .collect()
                })
                .collect(),
        }
    }

    fn figure(&self, engine: usize, figure: &str) -> f64 {
        self.engines[engine]
            .get(figure)
            .copied()
            .flatten()
            .unwrap_or_default()
    }

    fn ratio(&self, engine: usize) -> f64 {
        self.figure(0, "ops_per_second") / self.figure(engine, "ops_per_second").max(1e-9)
    }

    fn object(&self, engines: &[EngineName]) -> Value {
        let by_engine = engines.iter().enumerate().map(|(position, engine)| {
            let mut figures = json!(self.engines[position]);
            figures["ratio"] = json!(self.ratio(position));
            (engine.name().to_owned(), figures)
        });
        json!({ "name": self.name, "engines": by_engine.collect::<serde_json::Map<_, _>>() })
    }

    fn line(&self) -> String {
        let columns: Vec<String> = (0..self.engines.len())
            .map(|engine| {
                let ratio = match engine {
                    0 => String::new(),
                    _ => format!("{:.2}x", self.ratio(engine)),
                };
                format!(
                    "{:>8.0} {:>6} {:>8.0} {:>7.2} {:>6.2} {:>5.2}",
                    self.figure(engine, "ops_per_second") / 1e3,
                    ratio,
                    self.figure(engine, "settled_ops_per_second") / 1e3,
                    self.figure(engine, "cpu_us_per_op"),
                    self.figure(engine, "write_amplification"),
                    self.figure(engine, "space_amplification"),
                )
            })
            .collect();
        format!("{:<22} {}", self.name, columns.join("  "))
    }
}

fn heading(engines: &[EngineName]) -> String {
    let names: Vec<String> = engines
        .iter()
        .map(|engine| format!("{:<45}", engine.name()))
        .collect();
    let columns: Vec<&str> = engines
        .iter()
        .map(|_| "  kops/s  ratio  settled  CPU us  w-amp space")
        .collect();
    format!(
        "{:<22} {}\n{:<22} {}",
        "",
        names.join("  "),
        "load",
        columns.join("  ")
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

/// The number in the middle; `None` of none.
fn median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    match numbers.len() {
        0 => None,
        length if length % 2 == 1 => Some(numbers[middle]),
        _ => Some(f64::midpoint(numbers[middle - 1], numbers[middle])),
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
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0]), Some(2.5));
        assert_eq!(median(Vec::new()), None);
    }

    #[test]
    fn engines_are_compared_by_their_medians() {
        let report = |kops: u32, space: Option<f64>| {
            json!({
                "name": "ycsb-a",
                "settled_ops_per_second": 2e3,
                "cpu_us_per_op": 7.5,
                "ops_per_second": f64::from(kops) * 1e3,
                "write_amplification": 3.0,
                "space_amplification": space,
            })
        };
        let comparison = Comparison::of(&[
            vec![
                report(90, Some(1.5)),
                report(100, Some(1.25)),
                report(400, Some(1.5)),
            ],
            vec![report(50, None)],
        ]);
        assert_eq!(comparison.engines[0]["ops_per_second"], Some(1e5));
        assert_eq!(comparison.engines[0]["settled_ops_per_second"], Some(2e3));
        assert_eq!(comparison.engines[0]["space_amplification"], Some(1.5));
        assert_eq!(comparison.engines[1]["space_amplification"], None);
        assert!((comparison.ratio(1) - 2.0).abs() < 1e-9);
        let line = comparison.line();
        let words: Vec<_> = line.split_whitespace().collect();
        assert_eq!(
            words,
            [
                "ycsb-a", "100", "2", "7.50", "3.00", "1.50", "50", "2.00x", "2", "7.50", "3.00",
                "0.00"
            ]
        );
    }

    #[test]
    fn different_checksums_are_an_error() {
        let report = |checksum: &str| json!({ "name": "readseq", "checksum": checksum });
        assert!(check_checksums("readseq", &[vec![report("a")], vec![report("a")]]).is_ok());
        assert!(check_checksums("readseq", &[vec![report("a")], vec![report("b")]]).is_err());
    }
}

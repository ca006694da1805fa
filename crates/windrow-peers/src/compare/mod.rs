//! `compare`: the same loads on several engines in turn, each run in a new process with a new folder. It prints
//! medians and spreads over the rounds, and ratios of the first engine to each other engine.
//!
//! A comparison is a campaign: the campaign file records each run at its end, and an interrupted campaign resumes.

mod suite;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::json;
use windrow::{Error, ErrorKind, Result};
use windrow_bench::campaign::{
    Campaign, Comparison, Header, Order, Outcome, Run, check_checksums, heading, settings_lines,
    settings_object, shell_words,
};
use windrow_bench::{BenchArgs, Load, Report, print, print_object};

use self::suite::{Group, Suite};
use crate::engines::EngineName;
use crate::run::RunArgs;

/// The default number of rounds.
const ROUNDS: u32 = 3;

/// Arguments of `compare`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  windrow-peers compare --engines windrow,rocksdb,leveldb --campaign loads.jsonl \\
    fillrandom,overwrite,readrandom,readmissing,seekrandom,seek10,seek100,readseq --num 5000000
  windrow-peers compare --engines windrow,rocksdb,blobdb,fjall \\
    ycsb-load,ycsb-a,ycsb-b,ycsb-c,ycsb-d,ycsb-e,ycsb-f --mix SD --records 5000000 --ops 500000
  windrow-peers compare --suite standard --campaign standard.jsonl --keep-going
  windrow-peers compare --suite standard --scale 0.01 --rounds 1 --cache-bytes 16M
  windrow-peers compare --suite features --campaign features.jsonl --keep-going
  windrow-peers compare --suite beyond --memory 1G --campaign beyond.jsonl

With --campaign, the same command resumes an interrupted comparison.")]
pub(crate) struct CompareArgs {
    /// Engines to run. Ratios compare the first with each other engine [default: all; a suite leaves out
    /// engines that would repeat what another does]
    #[arg(long, value_enum, value_delimiter = ',')]
    engines: Vec<EngineName>,

    /// Rounds of every engine [default: 3, or as in the suite]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,

    /// Folder for the databases [default: the folder for temporary files]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,

    /// File that records every finished run
    #[arg(long, value_name = "FILE")]
    campaign: Option<PathBuf>,

    /// Continue with the other engines if one fails
    #[arg(long)]
    keep_going: bool,

    /// Print one JSON object per line instead of tables
    #[arg(long)]
    json: bool,

    /// Run a named list of loads; settings may follow
    #[arg(long, value_enum)]
    suite: Option<Suite>,

    /// Factor on the data and the operations of the suite
    #[arg(long, value_name = "X", requires = "suite", default_value_t = 1.0)]
    scale: f64,

    /// Loads and settings, as for run; with a suite only settings
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required_unless_present = "suite",
        value_name = "LOADS AND SETTINGS"
    )]
    bench: Vec<String>,
}

impl CompareArgs {
    /// The engines that run the loads of `group`.
    fn engines(&self, group: &Group) -> Vec<EngineName> {
        if !self.engines.is_empty() {
            return self.engines.clone();
        }
        let all = EngineName::value_variants().iter().copied();
        all.filter(|engine| !group.without.contains(&engine.name()))
            .collect()
    }

    /// The groups to run: one, or those of the suite.
    fn groups(&self) -> Result<Vec<Group>> {
        let Some(suite) = self.suite else {
            return Ok(vec![Group {
                name: self.bench.join(" "),
                rounds: self.rounds.unwrap_or(ROUNDS),
                without: Vec::new(),
                loads: None,
                leaves_out: false,
                arguments: self.bench.clone(),
            }]);
        };
        let mut groups = suite.groups(self.scale, &self.bench)?;
        for group in &mut groups {
            group.rounds = self.rounds.unwrap_or(group.rounds);
        }
        Ok(groups)
    }

    /// The command line of the same runs.
    fn command(&self) -> String {
        let mut words = ["windrow-peers", "compare"].map(str::to_owned).to_vec();
        let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
        if !self.engines.is_empty() {
            let names: Vec<&str> = self.engines.iter().map(|engine| engine.name()).collect();
            option("--engines", names.join(","));
        }
        if let Some(rounds) = self.rounds {
            option("--rounds", rounds.to_string());
        }
        if let Some(suite) = self.suite {
            let name = suite.to_possible_value();
            let name = name.as_ref().map_or("", |value| value.get_name());
            option("--suite", name.to_owned());
            option("--scale", self.scale.to_string());
        }
        let words = words.iter().chain(&self.bench);
        shell_words(words.map(String::as_str))
    }
}

impl Group {
    /// The loads of the suite that `engine` runs.
    fn loads_of(&self, engine: EngineName) -> Option<String> {
        let has = |name: &&str| {
            let load = Load::from_str(name, false);
            !self.leaves_out || load.is_ok_and(|load| engine.has(load))
        };
        let loads = self.loads?.split(',').filter(has);
        Some(loads.collect::<Vec<_>>().join(","))
    }

    /// The run of `engine` in `round`.
    fn order(&self, engine: EngineName, round: u32) -> Order {
        let mut arguments = vec!["--engine".to_owned(), engine.name().to_owned()];
        let own = self.loads_of(engine).into_iter();
        arguments.extend(own.chain(self.arguments.iter().cloned()));
        Order {
            label: format!("{} {} {round}", engine.name(), arguments[2..].join(" ")),
            engine: engine.name().to_owned(),
            round,
            group: self.name.clone(),
            program: "windrow-peers".to_owned(),
            arguments,
        }
    }
}

/// The arguments that the child process of `order` will parse.
fn run_of(order: &Order) -> Result<RunArgs> {
    RunArgs::parsed(&order.arguments)
}

/// The arguments of the runs of `group` on `engine`.
///
/// # Errors
/// `InvalidArgument` for arguments that a run would refuse, and for those that the comparison sets itself.
fn checked(group: &Group, engine: EngineName) -> Result<BenchArgs> {
    let run = run_of(&group.order(engine, 0))?;
    let loads: Vec<&str> = run.bench.loads.iter().map(|load| load.name()).collect();
    let faults = [
        (
            run.engine != engine,
            "--engines before the loads chooses the engines",
        ),
        (run.json, "--json must stand before the loads"),
        (
            run.bench.db.is_some(),
            "each run has its own folder: give --folder before the loads, and no --db",
        ),
        (
            group
                .loads_of(engine)
                .is_some_and(|own| own != loads.join(",")),
            "a suite has its own loads: give only settings",
        ),
    ];
    match faults.into_iter().find(|(is_there, _)| *is_there) {
        Some((_, fault)) => Err(Error::invalid_argument(fault)),
        None => engine.check(&run.bench).map(|()| run.bench),
    }
}

/// A run that failed.
struct Failure {
    engine: EngineName,
    group: String,
    kind: ErrorKind,
}

/// The progress of a comparison.
struct Progress {
    /// Runs that were begun or skipped.
    begun: usize,
    all: usize,
    failures: Vec<Failure>,
}

pub(crate) fn run(args: &CompareArgs) -> Result<()> {
    let groups = args.groups()?;
    let (mut all, mut inputs) = (0, BTreeSet::new());
    let mut runs_on_device = false;
    for group in &groups {
        let engines = args.engines(group);
        for &engine in &engines {
            let bench = checked(group, engine)?;
            runs_on_device |= bench.runs_on_device();
            inputs.extend(bench.inputs().map(Path::to_owned));
        }
        all += group.rounds as usize * engines.len();
    }
    let header = Header::now(args.command(), inputs.iter().map(PathBuf::as_path))?;
    let campaign = Campaign::open(args.campaign.as_deref(), header)?;
    let mut campaign = campaign.calibrated(runs_on_device);
    let mut course = Progress {
        begun: 0,
        all,
        failures: Vec::new(),
    };
    let (mut ran, mut agreed) = (Ok(()), Ok(()));
    for group in &groups {
        let engines = args.engines(group);
        if ran.is_ok() {
            ran = run_group(group, &engines, args, &mut campaign, &mut course);
        }
        // Finished runs are shown even if another run failed.
        let runs = campaign.runs().iter();
        let runs: Vec<&Run> = runs.filter(|run| run.group == group.name).collect();
        if ran.is_ok() || !runs.is_empty() {
            show_device(&campaign, args.json)?;
            agreed = agreed.and(show(group, &engines, &runs, args.json));
        }
        show_failures(group, &campaign, args.json)?;
    }
    agreed?;
    ran?;
    match course.failures.as_slice() {
        [] => Ok(()),
        failures => {
            let names = failures
                .iter()
                .map(|failure| format!("{} in {:?}", failure.engine.name(), failure.group));
            let names = names.collect::<Vec<_>>().join(", ");
            // A wrong answer takes precedence over every other failure.
            let is_wrong = failures
                .iter()
                .any(|failure| failure.kind == ErrorKind::Corruption);
            let kind = if is_wrong {
                ErrorKind::Corruption
            } else {
                ErrorKind::Io
            };
            Err(Error::new(kind, format!("failed: {names}")))
        }
    }
}

/// The order of `engines` in `round`. Each round begins with the next engine. So no engine always runs first, or on a
/// machine in the state that the same other engine has left.
fn rotated(engines: &[EngineName], round: u32) -> impl Iterator<Item = EngineName> {
    let first = round as usize % engines.len().max(1);
    let (behind, ahead) = engines.split_at(first);
    ahead.iter().chain(behind).copied()
}

/// Does the runs of `group` that the campaign does not have. A failed engine does not run in the group again.
fn run_group(
    group: &Group,
    engines: &[EngineName],
    args: &CompareArgs,
    campaign: &mut Campaign,
    course: &mut Progress,
) -> Result<()> {
    for round in 0..group.rounds {
        for engine in rotated(engines, round) {
            course.begun += 1;
            let failed =
                |failure: &Failure| failure.engine == engine && failure.group == group.name;
            if course.failures.iter().any(failed) {
                continue;
            }
            let order = group.order(engine, round);
            if !campaign.has(&order.label) {
                let (number, all) = (course.begun, course.all);
                note(&format!(
                    "[{number} of {all}] {} (round {} of {})",
                    order.command(),
                    round + 1,
                    group.rounds
                ));
            }
            // An error of the campaign itself concerns every run and ends the campaign.
            let outcome = campaign.attempt(&order, args.folder.as_deref(), progress)?;
            if let Outcome::Failed(error) = outcome {
                // A wrong request concerns all runs.
                if !args.keep_going || error.kind() == ErrorKind::InvalidArgument {
                    return Err(error);
                }
                note(&format!("{error}; the other engines continue"));
                course.failures.push(Failure {
                    engine,
                    group: group.name.clone(),
                    kind: error.kind(),
                });
            }
        }
    }
    Ok(())
}

/// Prints the limits of the device, if the campaign has them.
fn show_device(campaign: &Campaign, json: bool) -> Result<()> {
    match (campaign.header().device, campaign.device_line()) {
        (Some(limits), _) if json => print_object(&json!({ "device": limits })),
        (_, Some(line)) => print(&format!("\n{line}")),
        _ => Ok(()),
    }
}

/// Prints the comparison of `runs` in `group`.
///
/// # Errors
/// `Corruption` if engines have read different data under one seed.
fn show(group: &Group, engines: &[EngineName], runs: &[&Run], json: bool) -> Result<()> {
    let names: Vec<&str> = engines.iter().map(|engine| engine.name()).collect();
    let comparisons = Comparison::all(&names, runs);
    if json {
        print(&settings_object(&group.name, &names, runs).to_string())?;
        for comparison in &comparisons {
            print(&comparison.object(&group.name).to_string())?;
        }
    } else {
        print(&format!("\n{}", group.name))?;
        print(&settings_lines(&names, runs))?;
        print(&heading())?;
        for comparison in &comparisons {
            print(&comparison.lines())?;
        }
    }
    check_checksums(runs)
}

/// Prints the failures in `group`, including those whose later try passed.
fn show_failures(group: &Group, campaign: &Campaign, json: bool) -> Result<()> {
    let failures = campaign.failures().iter();
    for failure in failures.filter(|failure| failure.group == group.name) {
        if json {
            print_object(failure)?;
            continue;
        }
        let then = if campaign.has(&failure.label) {
            "; a later try passed"
        } else {
            ""
        };
        let (engine, round, failed) = (&failure.engine, failure.round + 1, &failure.failed);
        print(&format!(
            "failed: {engine} in round {round}: {failed}{then}"
        ))?;
    }
    Ok(())
}

/// Reports what was just measured.
fn progress(report: &Report) {
    let kops = report.rate() / 1e3;
    note(&format!("  {:<22} {kops:>10.1} kops/s", report.name));
}

fn note(line: &str) {
    // The results are complete without these lines.
    drop(writeln!(std::io::stderr(), "{line}"));
}

#[cfg(test)]
mod tests;

//! `compare`: the same loads on several engines, interleaved, each time in a new process with a
//! new folder; medians and spreads over the rounds, and ratios of the first engine to each other.
//!
//! It is a campaign: each run is written down when it has ended, and a campaign that was broken off
//! goes on where it stopped.

mod suite;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Parser, ValueEnum};
use windrow::{Error, ErrorKind, Result};
use windrow_bench::campaign::{
    Campaign, Comparison, Header, Order, Outcome, Run, check_checksums, heading, parsed_run,
    settings_lines, settings_object, shell_words,
};
use windrow_bench::{BenchArgs, Report, print, print_object};

use self::suite::{Group, Suite};
use crate::{EngineName, RunArgs};

/// Times that every engine runs, where nobody says.
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

With --campaign the same command goes on where it stopped.")]
pub(crate) struct CompareArgs {
    /// Engines to run; ratios are those of the first to each other one [default: all, but in a suite those
    /// that do something of their own in a load]
    #[arg(long, value_enum, value_delimiter = ',')]
    engines: Vec<EngineName>,

    /// Times that every engine runs [default: 3, or what the suite says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,

    /// Folder for the databases [default: that for temporary files]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,

    /// File that keeps every run that has ended
    #[arg(long, value_name = "FILE")]
    campaign: Option<PathBuf>,

    /// Go on with the other engines where one fails
    #[arg(long)]
    keep_going: bool,

    /// Print an object a line instead of tables
    #[arg(long)]
    json: bool,

    /// Loads that are known by a name; settings may follow
    #[arg(long, value_enum)]
    suite: Option<Suite>,

    /// How large the suite's data is, and how long it runs: 1 as it is written down
    #[arg(long, value_name = "X", requires = "suite", default_value_t = 1.0)]
    scale: f64,

    /// Loads and settings, as for run; with a suite settings alone
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

    /// What to run: one group, or those of the suite.
    fn groups(&self) -> Result<Vec<Group>> {
        let Some(suite) = self.suite else {
            return Ok(vec![Group {
                name: self.bench.join(" "),
                rounds: self.rounds.unwrap_or(ROUNDS),
                without: Vec::new(),
                loads: None,
                arguments: self.bench.clone(),
            }]);
        };
        let mut groups = suite.groups(self.scale, &self.bench)?;
        for group in &mut groups {
            group.rounds = self.rounds.unwrap_or(group.rounds);
        }
        Ok(groups)
    }

    /// The command line that asks for the same runs.
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
    /// The run of `engine` in `round`.
    fn order(&self, engine: EngineName, round: u32) -> Order {
        let mut arguments = vec!["--engine".to_owned(), engine.name().to_owned()];
        arguments.extend(self.arguments.iter().cloned());
        Order {
            label: format!("{} {} {round}", engine.name(), self.arguments.join(" ")),
            engine: engine.name().to_owned(),
            round,
            group: self.name.clone(),
            program: "windrow-peers".to_owned(),
            arguments,
        }
    }
}

/// The command line of a run, to find what is wrong with it before anything runs.
#[derive(Debug, Parser)]
#[command(name = "run", disable_help_flag = true, args_override_self = true)]
struct RunLine {
    #[command(flatten)]
    run: RunArgs,
}

/// What the child that does `order` will read from its command line.
fn run_of(order: &Order) -> Result<RunArgs> {
    parsed_run::<RunLine>(&order.arguments).map(|line| line.run)
}

/// What the runs of `group` on `engine` will read from their command line.
///
/// # Errors
/// `InvalidArgument` for what such a run would refuse, and for what a comparison says itself.
fn checked(group: &Group, engine: EngineName) -> Result<BenchArgs> {
    let run = run_of(&group.order(engine, 0))?;
    let loads: Vec<&str> = run.bench.loads.iter().map(|load| load.name()).collect();
    let faults = [
        (
            run.engine != engine,
            "the engines are those of --engines, which goes before the loads",
        ),
        (run.json, "--json goes before the loads"),
        (
            run.bench.db.is_some(),
            "each run has a folder of its own: give --folder before the loads, and no --db",
        ),
        (
            group.loads.is_some_and(|own| own != loads.join(",")),
            "a suite has its own loads: give settings alone",
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

/// How far a comparison is.
struct Course {
    /// Runs whose turn has come.
    begun: usize,
    all: usize,
    failures: Vec<Failure>,
}

pub(crate) fn run(args: &CompareArgs) -> Result<()> {
    let groups = args.groups()?;
    let (mut all, mut inputs) = (0, BTreeSet::new());
    for group in &groups {
        let engines = args.engines(group);
        for &engine in &engines {
            let bench = checked(group, engine)?;
            inputs.extend(bench.inputs().map(Path::to_owned));
        }
        all += group.rounds as usize * engines.len();
    }
    let header = Header::now(args.command(), inputs.iter().map(PathBuf::as_path))?;
    let mut campaign = Campaign::open(args.campaign.as_deref(), header)?;
    let mut course = Course {
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
        // What was measured is shown whatever ended the rest.
        let runs = campaign.runs().iter();
        let runs: Vec<&Run> = runs.filter(|run| run.group == group.name).collect();
        if ran.is_ok() || !runs.is_empty() {
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
            // Nothing that fails is as bad as a wrong answer.
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

/// The order of `engines` in `round`: each round begins with the next one, so that none always runs after
/// the same other one, or when the machine is as another has left it.
fn rotated(engines: &[EngineName], round: u32) -> impl Iterator<Item = EngineName> {
    let first = round as usize % engines.len().max(1);
    let (behind, ahead) = engines.split_at(first);
    ahead.iter().chain(behind).copied()
}

/// Does the runs of `group` that the campaign does not have. An engine that failed in it does not run
/// in it again.
fn run_group(
    group: &Group,
    engines: &[EngineName],
    args: &CompareArgs,
    campaign: &mut Campaign,
    course: &mut Course,
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
                tell(&format!(
                    "[{number} of {all}] {} (round {} of {})",
                    order.command(),
                    round + 1,
                    group.rounds
                ));
            }
            // What is wrong with the campaign itself is wrong for every run, and ends it.
            let outcome = campaign.attempt(&order, args.folder.as_deref(), progress)?;
            if let Outcome::Failed(error) = outcome {
                // What is wrong with the request is wrong with all of it.
                if !args.keep_going || error.kind() == ErrorKind::InvalidArgument {
                    return Err(error);
                }
                tell(&format!("{error}; going on without it"));
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

/// Prints what `runs` say of `group`.
///
/// # Errors
/// `Corruption` where engines have read different data under one seed.
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

/// Prints what has failed in `group`, also where a later try has passed.
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

/// Tells a person who waits what was just measured.
fn progress(report: &Report) {
    let kops = report.rate() / 1e3;
    tell(&format!("  {:<22} {kops:>10.1} kops/s", report.name));
}

fn tell(line: &str) {
    // Whoever reads the results does not need it.
    drop(writeln!(std::io::stderr(), "{line}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> CompareArgs {
        #[derive(Debug, Parser)]
        struct Line {
            #[command(flatten)]
            compare: CompareArgs,
        }
        let words = std::iter::once("compare").chain(words.iter().copied());
        Line::try_parse_from(words).unwrap().compare
    }

    #[test]
    fn an_order_says_engine_settings_and_round() {
        let args = parsed(&["--engines", "windrow", "fillseq", "--num", "10"]);
        let groups = args.groups().unwrap();
        assert_eq!((groups.len(), groups[0].rounds), (1, ROUNDS));
        let order = groups[0].order(EngineName::Windrow, 2);
        assert_eq!(order.label, "windrow fillseq --num 10 2");
        assert_eq!(order.group, "fillseq --num 10");
        assert_eq!(
            order.command(),
            "windrow-peers run --engine windrow fillseq --num 10"
        );
        assert_eq!(
            args.command(),
            "windrow-peers compare --engines windrow fillseq --num 10"
        );
        let args = parsed(&["--suite", "standard", "--options", "my options"]);
        assert_eq!(
            args.command(),
            "windrow-peers compare --suite standard --scale 1 --options 'my options'"
        );
    }

    #[test]
    fn a_wrong_setting_is_found_before_anything_runs() {
        let wrong = |words: &[&str]| {
            let args = parsed(words);
            let groups = args.groups()?;
            checked(&groups[0], EngineName::Windrow)
        };
        assert!(wrong(&["fillseq", "--num", "10"]).is_ok());
        assert!(wrong(&["fillseq", "--nmu", "10"]).is_err());
        assert!(wrong(&["nothing"]).is_err());
        for words in [
            ["fillseq", "--db", "here"].as_slice(),
            &["fillseq", "--engine", "windrow-buffered"],
            &["fillseq", "--json"],
            &["ycsb-load", "--value-size", "4"],
            &["fillseq", "--size-ratio", "0.5"],
            &["fillseq", "--key-size", "3"],
            &["replay"],
            &["--suite", "standard", "fillseq"],
            &["--suite", "standard", "--num", "10", "fillseq,readseq"],
            &["--suite", "small", "--value_size=1000"],
            &["--suite", "ycsb", "--mix", "LD"],
        ] {
            assert!(wrong(words).is_err(), "{words:?}");
        }
        let args = parsed(&["fillseq", "--compression", "lz4"]);
        for engine in EngineName::value_variants() {
            let refused = checked(&args.groups().unwrap()[0], *engine).err();
            let has_none = ["leveldb", "redb", "lmdb"].contains(&engine.name());
            let says = refused.is_some_and(|error| error.to_string().contains("no LZ4"));
            assert_eq!(says, has_none, "{}", engine.name());
        }
        let args = parsed(&["fillseq", "--key-size", "600"]);
        for engine in EngineName::value_variants() {
            let refused = checked(&args.groups().unwrap()[0], *engine).err();
            let says = refused.is_some_and(|error| error.to_string().contains("keys of 511"));
            assert_eq!(says, engine.name() == "lmdb", "{}", engine.name());
        }
        let args = parsed(&["fillseq,compact"]);
        for engine in EngineName::value_variants() {
            let refused = checked(&args.groups().unwrap()[0], *engine).err();
            let has_none = ["redb", "lmdb"].contains(&engine.name());
            let says = refused.is_some_and(|error| error.to_string().contains("no compaction"));
            assert_eq!(says, has_none, "{}", engine.name());
        }
    }

    #[test]
    fn each_round_begins_with_the_next_engine() {
        let engines = [EngineName::Windrow, EngineName::WindrowBuffered];
        let order = |round| rotated(&engines, round).collect::<Vec<_>>();
        assert_eq!(order(0), engines);
        assert_eq!(order(1), [engines[1], engines[0]]);
        assert_eq!(order(2), engines);
        let all = EngineName::value_variants();
        for round in 0..2 * u32::try_from(all.len()).unwrap() {
            let order: Vec<EngineName> = rotated(all, round).collect();
            assert_eq!(order[0], all[round as usize % all.len()]);
            assert!(all.iter().all(|engine| order.contains(engine)));
            assert_eq!(order.len(), all.len());
        }
        assert_eq!(rotated(&[], 1).count(), 0);
    }

    #[test]
    fn runs_of_a_suite_have_different_labels() {
        let groups = parsed(&["--suite", "standard"]).groups().unwrap();
        let orders = groups.iter().flat_map(|group| {
            let engines = EngineName::value_variants().iter();
            engines.map(|&engine| group.order(engine, 0).label)
        });
        let labels: Vec<String> = orders.collect();
        let different: BTreeSet<&String> = labels.iter().collect();
        assert_eq!(labels.len(), different.len());
    }

    #[test]
    fn engines_that_do_what_others_do_take_part_if_they_are_named() {
        let all = |words: &[&str]| {
            let args = parsed(words);
            let groups = args.groups().unwrap();
            let engines = groups.iter().map(|group| args.engines(group));
            engines.collect::<Vec<_>>()
        };
        let every = EngineName::value_variants();
        assert_eq!(all(&["fillseq"]), [every]);
        let engines = all(&["--suite", "standard"]);
        let last = engines.len() - 1;
        for (group, engines) in engines.iter().enumerate() {
            let are_small = group == 0 || group == last;
            for engine in every {
                let keeps_apart = ["blobdb", "blobdb-direct", "fjall-separated"];
                let is_left_out = are_small && keeps_apart.contains(&engine.name());
                assert_eq!(engines.contains(engine), !is_left_out, "{}", engine.name());
            }
        }
        for engines in all(&["--engines", "windrow-buffered", "--suite", "standard"]) {
            assert_eq!(engines, [EngineName::WindrowBuffered]);
        }
    }

    /// Whatever the clock says of reads.
    #[test]
    fn every_engine_writes_all_that_the_suite_says() {
        let words = ["--suite", "standard", "--scale", "0.0004"];
        let mut args = parsed(&words);
        args.bench = ["--read-duration", "0.1"].map(str::to_owned).to_vec();
        for group in args.groups().unwrap() {
            let order = group.order(EngineName::Windrow, 0);
            let run = run_of(&order).unwrap();
            let (mut loads, mut written) = (0, 0);
            crate::measure(run.engine, run.min_blob_bytes, &run.bench, |report| {
                let is_ycsb = report.name.starts_with("ycsb");
                let ops = match report.name.as_str() {
                    "ycsb-load" => 800,
                    "readwhilewriting" | "ycsb-e" | "readtocache" => report.ops,
                    name if is_ycsb || name.starts_with("read") || name.starts_with("seek") => 200,
                    _ => 2000,
                };
                assert_eq!(report.ops, ops, "{}", report.name);
                assert_eq!(
                    report.repeatable,
                    report.name != "readwhilewriting",
                    "{}",
                    report.name
                );
                loads += 1;
                written += u32::from(ops == 2000);
                Ok(())
            })
            .unwrap();
            assert!(loads >= 7 && (written > 0 || group.name.starts_with("YCSB")));
        }
    }

    #[test]
    fn every_group_of_the_suite_can_run() {
        for scale in ["0.00001", "0.1", "1", "10"] {
            let words = [
                "--suite",
                "standard",
                "--scale",
                scale,
                "--cache-bytes",
                "8M",
            ];
            let groups = parsed(&words).groups().unwrap();
            assert!(groups.len() > 1);
            for group in &groups {
                checked(group, EngineName::Windrow).unwrap();
                let given = group.arguments.join(" ");
                assert!(given.contains("--cache-bytes 8M"));
            }
            // A group that is about the cache keeps its own.
            let caches = groups.iter().map(|group| {
                let order = group.order(EngineName::WindrowBuffered, 0);
                let bench = run_of(&order).unwrap().bench;
                bench.windrow_options().unwrap();
                (bench.cache_bytes, bench.memory_budget)
            });
            let mut caches: Vec<_> = caches.collect();
            caches.sort_unstable();
            let (largest, others) = caches.split_last().unwrap();
            let held = if scale == "10" { 20 } else { 2 };
            assert_eq!(*largest, (Some(held << 30), Some(0)));
            assert!(others.iter().all(|cache| *cache == (Some(8 << 20), None)));
        }
        assert!(
            parsed(&["--suite", "standard", "--scale", "0"])
                .groups()
                .is_err()
        );
    }
}

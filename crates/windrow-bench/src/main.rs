//! The program `windrow-bench`: loads, campaigns, the papers' experiments, and reports.
//!
//! Exit codes: 0 success, 1 invalid arguments, or a shape that differs from its paper's for an unknown reason, 2 an
//! error of the environment, 3 a read with wrong data.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use windrow::Result;
use windrow_bench::campaign::{
    CampaignProgress, Comparison, RoundsArgs, Run, check_checksums, end_with_parent, heading,
    run_rounds, settings_lines, settings_object,
};
use windrow_bench::html::{ReportArgs, report};
use windrow_bench::paper::experiment::Verdict;
use windrow_bench::paper::{PaperArgs, paper};
use windrow_bench::{
    BenchArgs, DeviceArgs, Engine as _, HoldArgs, Report, WindrowEngine, exit_code, header,
    hold_memory, lines, print, print_object, reader_is_gone, run_loads,
};

/// Loads that measure Windrow
#[derive(Debug, Parser)]
#[command(name = "windrow-bench", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,

    /// Print JSON, one object per line, instead of text
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run loads, one after the other, and report each
    // The last of repeated settings wins, also in the runs of a campaign.
    #[command(
        args_override_self = true,
        after_help = "\
Examples:
  windrow-bench run fillrandom,readrandom,seek10 --num 1000000
  windrow-bench run ycsb-load,ycsb-a,ycsb-b --mix SD --records 1000000 --ops 500000 --json"
    )]
    Run(Box<BenchArgs>),
    /// Run the same loads several times, and keep the reports in a file
    #[command(after_help = "\
Examples:
  windrow-bench campaign evening.jsonl fillrandom,readrandom,seek10 --num 1000000
  windrow-bench report evening.jsonl --output evening.html

Each round is a separate process with a new folder. The same command resumes a campaign that stopped.")]
    Campaign(RoundsArgs),
    /// Repeat experiments of the papers, and judge the shape of their figures
    #[command(after_help = "\
Examples:
  windrow-bench paper AU-E4
  windrow-bench paper LS --scale 2
  windrow-bench paper all --campaign papers.jsonl --output papers.html

The same command resumes a campaign that stopped.

The exit code is 1 if a shape differs for an unknown reason.")]
    Paper(PaperArgs),
    /// Write the HTML page of a campaign, and its plots
    Report(ReportArgs),
    /// Measure the limits of a device: random reads, and bandwidth
    #[command(after_help = "\
Example:
  windrow-bench device .")]
    Device(DeviceArgs),
    /// Holds all memory but a rest for a run with --memory
    #[command(hide = true)]
    HoldMemory(HoldArgs),
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let code = ExitCode::from(u8::from(error.exit_code() != 0));
            return error.print().map_or(ExitCode::from(2), |()| code);
        }
    };
    let json = arguments.json;
    let result = match arguments.command {
        Command::Run(args) => run(&args, json),
        Command::Campaign(args) => run_campaign(&args, json),
        Command::Paper(args) => repeat(&args, json),
        Command::Report(args) => write_report(&args, json),
        Command::Device(args) => measure_device(&args, json),
        Command::HoldMemory(args) => hold_memory(&args).map(|()| ExitCode::SUCCESS),
    };
    result.unwrap_or_else(|error| {
        if reader_is_gone(&error) {
            return ExitCode::SUCCESS;
        }
        drop(writeln!(io::stderr(), "windrow-bench: {error}"));
        ExitCode::from(exit_code(error.kind()))
    })
}

fn run(args: &BenchArgs, json: bool) -> Result<ExitCode> {
    end_with_parent()?;
    let mut heading = Some(header());
    let open = |folder: &_| WindrowEngine::open(folder, args);
    run_loads::<WindrowEngine>(args, open, &*args.progress(), |report| {
        if json {
            return print_object(report);
        }
        if let Some(heading) = heading.take() {
            print(&heading)?;
        }
        print(&lines(report, args))
    })?;
    Ok(ExitCode::SUCCESS)
}

fn run_campaign(args: &RoundsArgs, json: bool) -> Result<ExitCode> {
    let campaign = run_rounds(args, &mut Reported)?;
    let runs: Vec<&Run> = campaign.runs().iter().collect();
    let group = runs.first().map_or("", |run| run.group.as_str());
    let names = [WindrowEngine::NAME];
    let comparisons = Comparison::all(&names, &runs);
    if json {
        print_object(&settings_object(group, &names, &runs))?;
        if let Some(limits) = campaign.header().device {
            print_object(&serde_json::json!({ "device": limits }))?;
        }
        for comparison in &comparisons {
            print_object(&comparison.object(group))?;
        }
    } else {
        print(&settings_lines(&names, &runs))?;
        if let Some(line) = campaign.device_line() {
            print(&line)?;
        }
        print(&heading())?;
        for comparison in &comparisons {
            print(&comparison.lines())?;
        }
    }
    check_checksums(&runs)?;
    Ok(ExitCode::SUCCESS)
}

fn measure_device(args: &DeviceArgs, json: bool) -> Result<ExitCode> {
    let limits = args.measure()?;
    if json {
        print_object(&limits)?;
    } else {
        print(&limits.table())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn repeat(args: &PaperArgs, json: bool) -> Result<ExitCode> {
    let mut verdicts = Vec::new();
    paper(args, &mut Reported, |judged| {
        verdicts.push(judged.verdict);
        if json {
            print_object(judged)
        } else {
            print(&judged.text())
        }
    })?;
    let count = |verdict| verdicts.iter().filter(|&&other| other == verdict).count();
    let differing = count(Verdict::Differs);
    if !json && verdicts.len() > 1 {
        print(&format!(
            "{} confirmed, {} explained, {differing} differ",
            count(Verdict::Confirmed),
            count(Verdict::Explained),
        ))?;
    }
    Ok(ExitCode::from(u8::from(differing > 0)))
}

fn write_report(args: &ReportArgs, json: bool) -> Result<ExitCode> {
    for path in report(args)? {
        if json {
            print_object(&serde_json::json!({ "file": path }))?;
        } else {
            print(&path.display().to_string())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints progress to standard error.
struct Reported;

impl CampaignProgress for Reported {
    fn begins(&mut self, number: usize, all: usize, command: &str) {
        drop(writeln!(io::stderr(), "[{number} of {all}] {command}"));
    }

    fn reports(&mut self, report: &Report) {
        let kops = report.rate() / 1e3;
        drop(writeln!(
            io::stderr(),
            "    {:<17} {kops:>9.1} kops/s",
            report.name
        ));
    }
}

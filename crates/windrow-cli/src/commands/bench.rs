//! `bench`: loads and what they cost.

use clap::{Args, Subcommand};
use windrow::Result;
use windrow_bench::{
    BenchArgs, GarneringArgs, IntervalLines, Progress, Unseen, WindrowEngine, garnering,
    garnering_header, header, histogram, row, run_watched,
};

use crate::outcome::Outcome;
use crate::output::Output;
use crate::progress::LoadBar;

/// Loads, or a study that chooses its own.
#[derive(Debug, Clone, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct BenchCommand {
    #[command(subcommand)]
    study: Option<Study>,

    #[command(flatten)]
    bench: BenchArgs,
}

/// Studies, each with a table of its own.
#[derive(Debug, Clone, Subcommand)]
enum Study {
    /// Compare trees of several size ratios and scalings on the same data
    #[command(after_help = "\
Examples:
  windrow bench garnering --num 5000000
  windrow bench garnering --size-ratios 3 --scalings 1,0.9,0.8,0.7,0.6,0.5 --json")]
    Garnering(GarneringArgs),
}

pub(crate) fn run(command: &BenchCommand, output: &mut Output) -> Result<Outcome> {
    match &command.study {
        None => loads(&command.bench, output),
        Some(Study::Garnering(args)) => study_garnering(args, output),
    }
}

fn loads(args: &BenchArgs, output: &mut Output) -> Result<Outcome> {
    let mut heading = Some(header());
    let open = |folder: &_| WindrowEngine::open(folder, args);
    let bar = LoadBar::new();
    let lines = args.stats_interval_seconds.map(IntervalLines::new);
    let progress: &dyn Progress = match &lines {
        Some(lines) => lines,
        None if bar.is_shown() => &bar,
        None => &Unseen,
    };
    run_watched::<WindrowEngine>(args, open, progress, |report| {
        if let Some(heading) = heading.take() {
            output.line(heading)?;
        }
        output.object(report)?;
        output.line(row(report))?;
        if args.histogram {
            output.line(histogram(report))?;
        }
        output.flush()
    })?;
    Ok(Outcome::Done)
}

fn study_garnering(args: &GarneringArgs, output: &mut Output) -> Result<Outcome> {
    let mut heading = Some(garnering_header());
    garnering(args, |tree| {
        if let Some(heading) = heading.take() {
            output.line(heading)?;
        }
        output.object(tree)?;
        output.line(tree.line())?;
        output.flush()
    })?;
    Ok(Outcome::Done)
}

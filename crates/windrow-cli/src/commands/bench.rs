//! `bench`: loads and what they cost.

use clap::{Args, Subcommand};
use windrow::Result;
use windrow_bench::{
    BenchArgs, GarneringArgs, WindrowEngine, garnering, garnering_header, header, lines,
    run_watched,
};

use crate::outcome::Outcome;
use crate::output::Output;

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
    run_watched::<WindrowEngine>(args, open, &*args.progress(), |report| {
        if let Some(heading) = heading.take() {
            output.line(heading)?;
        }
        output.object(report)?;
        output.line(lines(report, args))?;
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

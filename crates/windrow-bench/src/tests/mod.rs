//! Tests of the bench: the command line, the data set, and every load on a small store.

mod arguments;
mod data_set;
mod faulty_engine;
mod features;
mod loads;
mod no_op_engine;
mod runs;

use std::path::Path;

use clap::Parser;
use windrow::Result;

use crate::measure::progress::Unseen;
use crate::{BenchArgs, Report, WindrowEngine, run_loads};

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    bench: BenchArgs,
}

fn args(line: &str) -> BenchArgs {
    let words = std::iter::once("bench").chain(line.split_whitespace());
    Command::try_parse_from(words).unwrap().bench
}

fn try_reports(args: &BenchArgs) -> Result<Vec<Report>> {
    let mut reports = Vec::new();
    let open = |folder: &Path| WindrowEngine::open(folder, args);
    run_loads::<WindrowEngine>(args, open, &Unseen, |report| {
        reports.push(report.clone());
        Ok(())
    })?;
    Ok(reports)
}

fn reports(line: &str) -> Vec<Report> {
    try_reports(&args(line)).unwrap()
}

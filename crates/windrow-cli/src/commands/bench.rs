//! `bench`: loads and what they cost.

use windrow::Result;
use windrow_bench::{BenchArgs, WindrowEngine, header, row};

use crate::outcome::Outcome;
use crate::output::Output;

pub(crate) fn run(args: &BenchArgs, output: &mut Output) -> Result<Outcome> {
    let mut heading = Some(header());
    windrow_bench::run::<WindrowEngine>(args, |report| {
        if let Some(heading) = heading.take() {
            output.line(heading)?;
        }
        output.object(report)?;
        output.line(row(report))?;
        output.flush()
    })?;
    Ok(Outcome::Done)
}

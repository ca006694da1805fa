//! `bench`: loads and what they cost. `device`: what the device can do at most.

use windrow::Result;
use windrow_bench::{BenchArgs, DeviceArgs, WindrowEngine, header, lines, run_loads};

use crate::outcome::Outcome;
use crate::output::Output;

pub(crate) fn run(args: &BenchArgs, output: &mut Output) -> Result<Outcome> {
    let mut heading = Some(header());
    let open = |folder: &_| WindrowEngine::open(folder, args);
    run_loads::<WindrowEngine>(args, open, &*args.progress(), |report| {
        if let Some(heading) = heading.take() {
            output.line(heading)?;
        }
        output.object(report)?;
        output.line(lines(report, args))?;
        output.flush()
    })?;
    Ok(Outcome::Done)
}

pub(crate) fn device(args: &DeviceArgs, output: &mut Output) -> Result<Outcome> {
    let limits = args.measure()?;
    output.object(&limits)?;
    output.line(limits.table())?;
    Ok(Outcome::Done)
}

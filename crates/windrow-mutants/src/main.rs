//! Shows that the tests find planted bugs (mutation testing).
//!
//! Each `mutants/*.patch` is a mutant: one bug, and the test that must fail for it. The program plants all
//! bugs in one copy of the tree, each behind a switch in its functions ([`gate`]), and builds the copy once for
//! each kind of build. A test process takes the number of its mutant from the environment.
//!
//! Every named test must pass without a mutant first, since a test that fails without a mutant finds
//! nothing.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    reason = "runs builds and tests, not a database"
)]

mod gate;
mod mutant;
mod plant;
mod tests_run;

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use mutant::Selection;
use plant::Planted;
use tests_run::{Outcome, TestRuns};

/// What ends a run early: one sentence.
type Fault = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if matches!(arguments.first().map(|it| &**it), Some("--help" | "-h")) {
        println!(
            "Plants each bug of mutants/*.patch and expects its test to fail.\n\n\
             Usage: cargo run -p windrow-mutants [-- [--part K/N] [NAME ...]]\n\n\
             NAME selects the mutants whose file names contain it; without one, all are planted.\n\
             --part K/N plants the K-th of N equal parts of them, whose tests are neighbours.\n\
             Exit codes: 0 every bug was found, 1 not every bug was found."
        );
        return ExitCode::SUCCESS;
    }
    match Selection::parse(&arguments).and_then(|selection| run(&selection)) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(missed) => {
            println!("{missed} planted bugs were not found");
            ExitCode::FAILURE
        }
        Err(fault) => {
            println!("{fault}");
            ExitCode::FAILURE
        }
    }
}

/// Plants and tests; returns how many bugs no test found.
fn run(selection: &Selection) -> Result<usize, Fault> {
    let mutants = mutant::read_all(selection)?;
    let planted = Planted::new(&mutants)?;
    let runs = TestRuns::new(planted.tree(), planted.target());
    for build in tests_run::builds(mutants.iter().map(|mutant| &*mutant.test)) {
        let start = Instant::now();
        runs.build(&build)?;
        println!("built in {} s: {build}", start.elapsed().as_secs());
    }
    let mut tests: Vec<&str> = mutants.iter().map(|mutant| &*mutant.test).collect();
    tests.sort_unstable();
    tests.dedup();
    let failing = Mutex::new(Vec::new());
    in_parallel(&tests, |test| {
        if let Outcome::Failed(log) = runs.run(test, None)
            && let Ok(mut failing) = failing.lock()
        {
            failing.push(format!("{log}\n{test} fails without a mutant"));
        }
    });
    let failing = failing.into_inner().unwrap_or_default();
    if !failing.is_empty() {
        return Err(failing.join("\n").into());
    }
    println!("{} tests pass without a mutant", tests.len());

    let missed = AtomicUsize::new(0);
    in_parallel(&mutants, |mutant| {
        let start = Instant::now();
        let (verdict, log) = match runs.run(&mutant.test, Some(mutant.number)) {
            Outcome::Failed(_) => ("found", None),
            Outcome::Passed(log) => ("MISSED", Some(log)),
        };
        println!(
            "{:<44} {verdict:<8} {:>4} s  {}",
            mutant.name,
            start.elapsed().as_secs(),
            mutant.bug
        );
        if let Some(log) = log {
            missed.fetch_add(1, Ordering::Relaxed);
            println!("{log}");
        }
    });
    let missed = missed.into_inner();
    println!(
        "{} of {} planted bugs were found",
        mutants.len() - missed,
        mutants.len()
    );
    Ok(missed)
}

/// Calls `work` for each item, on as many threads as there are processors.
fn in_parallel<T: Sync>(items: &[T], work: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    work(item);
                }
            });
        }
    });
}

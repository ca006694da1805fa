//! The bench's loads on Windrow and other engines.
//!
//! `run` runs loads on one engine in this process. `compare` runs several engines in turn, each in a child process
//! with a new folder, and prints medians, spreads and ratios. All engines get the same settings, as far as they have
//! them: write buffer, cache, filter bits, compression and sync. `needs` lists what each engine needs on the machine.
//!
//! Exit codes: 0 success, 1 invalid arguments, 2 an error of the environment, 3 an engine read wrong data, or engines
//! read different data under one seed.

mod compare;
mod engines;
#[cfg(feature = "fjall")]
mod fjall;
#[cfg(any(feature = "fjall", feature = "leveldb"))]
mod idled;
#[cfg(feature = "leveldb")]
mod leveldb;
#[cfg(feature = "lmdb")]
mod lmdb;
mod needs;
#[cfg(feature = "redb")]
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;
mod run;
#[cfg(any(
    feature = "fjall",
    feature = "leveldb",
    feature = "lmdb",
    feature = "redb",
    feature = "rocksdb"
))]
mod settings;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use windrow::Result;
use windrow_bench::{HoldArgs, exit_code, hold_memory, print, reader_is_gone};

use crate::compare::CompareArgs;
use crate::run::RunArgs;

const RUN_EXAMPLES: &str = "\
Example:
  windrow-peers run --engine windrow ycsb-load,ycsb-a --mix SD --records 1000000";

/// Runs the bench's loads on Windrow and other engines
#[derive(Debug, Parser)]
#[command(name = "windrow-peers", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run loads on one engine
    #[command(after_help = RUN_EXAMPLES, args_override_self = true)]
    Run(Box<RunArgs>),
    /// Run the same loads on several engines and compare
    Compare(CompareArgs),
    /// List what the engines of each feature need to be built, and whether this machine has it
    Needs,
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
    let result = match arguments.command {
        Command::Run(args) => run::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Needs => show_needs(),
        Command::HoldMemory(args) => hold_memory(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if reader_is_gone(&error) => ExitCode::SUCCESS,
        Err(error) => {
            drop(writeln!(io::stderr(), "windrow-peers: {error}"));
            ExitCode::from(exit_code(error.kind()))
        }
    }
}

/// Prints what each feature needs, and whether the machine has it.
fn show_needs() -> Result<()> {
    print(&format!(
        "{:<9} {:<50} {:<8} {:<46} {}",
        "feature", "engines", "ready", "needs besides Rust and Linux (Debian's package)", "remark"
    ))?;
    for feature in &needs::FEATURES {
        let needs: Vec<String> = feature
            .needs
            .iter()
            .map(|need| format!("{} ({})", need.name(), need.package()))
            .collect();
        let needs = match needs.as_slice() {
            [] => "nothing".to_owned(),
            needs => needs.join(", "),
        };
        let here = match feature.advice() {
            None => "yes",
            Some(_) => "no",
        };
        let (name, engines, remark) = (feature.name, feature.engines, feature.remark);
        let line = format!("{name:<9} {engines:<50} {here:<8} {needs:<46} {remark}");
        print(line.trim_end())?;
    }
    for advice in needs::FEATURES.iter().filter_map(needs::Feature::advice) {
        print(&advice)?;
    }
    Ok(())
}

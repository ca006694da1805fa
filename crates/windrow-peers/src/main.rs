//! The bench's loads on other engines, beside Windrow.
//!
//! `run` drives one engine in this process; `compare` runs several, interleaved, each in a child
//! process of its own with a fresh folder, and prints medians and ratios. All engines get the same
//! settings: write buffer, cache, filter bits, compression and sync.
#![cfg_attr(
    any(feature = "leveldb", feature = "rocksdb"),
    expect(
        clippy::disallowed_methods,
        reason = "a bench runs on the real file system, in real time and in child processes"
    )
)]

mod compare;
#[cfg(feature = "leveldb")]
mod leveldb;
#[cfg(any(feature = "leveldb", feature = "rocksdb"))]
mod process_io;
#[cfg(feature = "rocksdb")]
mod rocksdb;
#[cfg(any(feature = "leveldb", feature = "rocksdb"))]
mod settings;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use windrow::{Error, Result};
use windrow_bench::{BenchArgs, Engine, Report, WindrowEngine, header, row};

use crate::compare::CompareArgs;

/// Runs the bench's loads on Windrow and other engines
#[derive(Debug, Parser)]
#[command(name = "windrow-peers", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run loads on one engine
    Run {
        /// The engine
        #[arg(long, value_enum)]
        engine: EngineName,

        /// Print an object a line instead of a table
        #[arg(long)]
        json: bool,

        #[command(flatten)]
        bench: BenchArgs,
    },
    /// Run the same loads on several engines and compare
    Compare(CompareArgs),
}

/// The engines of this build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EngineName {
    Windrow,
    #[cfg(feature = "rocksdb")]
    Rocksdb,
    #[cfg(feature = "leveldb")]
    Leveldb,
}

impl EngineName {
    fn name(self) -> &'static str {
        match self {
            Self::Windrow => WindrowEngine::NAME,
            #[cfg(feature = "rocksdb")]
            Self::Rocksdb => rocksdb::RocksDb::NAME,
            #[cfg(feature = "leveldb")]
            Self::Leveldb => leveldb::LevelDb::NAME,
        }
    }
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Run {
            engine,
            json,
            bench,
        } => run(engine, json, &bench),
        Command::Compare(args) => compare::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            drop(writeln!(io::stderr(), "windrow-peers: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn run(engine: EngineName, json: bool, args: &BenchArgs) -> Result<()> {
    let show = |report: &Report| {
        if json {
            let text = serde_json::to_string(report);
            print(&text.map_err(|error| print_failed(error.into()))?)
        } else {
            print(&row(report))
        }
    };
    if !json {
        print(&header())?;
    }
    match engine {
        EngineName::Windrow => windrow_bench::run::<WindrowEngine>(args, show),
        #[cfg(feature = "rocksdb")]
        EngineName::Rocksdb => windrow_bench::run::<rocksdb::RocksDb>(args, show),
        #[cfg(feature = "leveldb")]
        EngineName::Leveldb => windrow_bench::run::<leveldb::LevelDb>(args, show),
    }
}

/// Prints a line at once.
fn print(line: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")
        .and_then(|()| stdout.flush())
        .map_err(print_failed)
}

fn print_failed(error: io::Error) -> Error {
    Error::io("write to", Path::new("standard output"), error)
}

//! The bench's loads on other engines, beside Windrow.
//!
//! `run` drives one engine in this process; `compare` runs several, interleaved, each in a child
//! process of its own with a fresh folder, and prints medians and ratios. All engines get the same
//! settings: write buffer, cache, filter bits, compression and sync.

mod compare;
#[cfg(feature = "fjall")]
mod fjall;
#[cfg(feature = "leveldb")]
mod leveldb;
#[cfg(feature = "rocksdb")]
mod rocksdb;
#[cfg(any(feature = "fjall", feature = "leveldb", feature = "rocksdb"))]
mod settings;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use windrow::{Error, Result};
use windrow_bench::{
    BenchArgs, Engine, IntervalLines, Progress, Report, Unseen, WindrowEngine, header, histogram,
    parse_bytes, row, run_watched,
};

use crate::compare::CompareArgs;

const RUN_EXAMPLES: &str = "\
Example:
  windrow-peers run --engine windrow ycsb-load,ycsb-a --mix SD --records 1000000";

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
    #[command(after_help = RUN_EXAMPLES)]
    Run {
        /// The engine
        #[arg(long, value_enum)]
        engine: EngineName,

        /// Print an object a line instead of a table
        #[arg(long)]
        json: bool,

        /// Bytes from which BlobDB keeps values apart from their keys; the default includes the
        /// large ones of --mix
        #[arg(long, value_name = "BYTES", value_parser = parse_bytes, default_value_t = 1000)]
        min_blob_bytes: u64,

        #[command(flatten)]
        bench: Box<BenchArgs>,
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
    /// RocksDB with large values in files of their own
    #[cfg(feature = "rocksdb")]
    Blobdb,
    #[cfg(feature = "leveldb")]
    Leveldb,
    #[cfg(feature = "fjall")]
    Fjall,
}

impl EngineName {
    fn name(self) -> &'static str {
        match self {
            Self::Windrow => WindrowEngine::NAME,
            #[cfg(feature = "rocksdb")]
            Self::Rocksdb => rocksdb::RocksDb::<false>::NAME,
            #[cfg(feature = "rocksdb")]
            Self::Blobdb => rocksdb::RocksDb::<true>::NAME,
            #[cfg(feature = "leveldb")]
            Self::Leveldb => leveldb::LevelDb::NAME,
            #[cfg(feature = "fjall")]
            Self::Fjall => fjall::Fjall::NAME,
        }
    }
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Run {
            engine,
            json,
            min_blob_bytes,
            bench,
        } => run(engine, json, min_blob_bytes, &bench),
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

fn run(engine: EngineName, json: bool, min_blob_bytes: u64, args: &BenchArgs) -> Result<()> {
    if !json {
        print(&header())?;
    }
    measure(engine, min_blob_bytes, args, |report| {
        if json {
            let text = serde_json::to_string(report);
            print(&text.map_err(|error| print_failed(error.into()))?)
        } else {
            print(&row(report))?;
            if args.histogram {
                print(&histogram(report))?;
            }
            Ok(())
        }
    })
}

/// Runs the loads of `args` on `engine`; `show` gets each report.
#[cfg_attr(
    not(feature = "rocksdb"),
    expect(unused_variables, reason = "only BlobDB has blobs")
)]
fn measure(
    engine: EngineName,
    min_blob_bytes: u64,
    args: &BenchArgs,
    show: impl FnMut(&Report) -> Result<()>,
) -> Result<()> {
    let lines = args.stats_interval_seconds.map(IntervalLines::new);
    let progress: &dyn Progress = match &lines {
        Some(lines) => lines,
        None => &Unseen,
    };
    match engine {
        EngineName::Windrow => {
            let open = |folder: &Path| WindrowEngine::open(folder, args);
            run_watched(args, open, progress, show)
        }
        #[cfg(feature = "rocksdb")]
        EngineName::Rocksdb => {
            let open = |folder: &Path| rocksdb::RocksDb::<false>::open(folder, args, 0);
            run_watched(args, open, progress, show)
        }
        #[cfg(feature = "rocksdb")]
        EngineName::Blobdb => {
            let open = |folder: &Path| rocksdb::RocksDb::<true>::open(folder, args, min_blob_bytes);
            run_watched(args, open, progress, show)
        }
        #[cfg(feature = "leveldb")]
        EngineName::Leveldb => {
            let open = |folder: &Path| leveldb::LevelDb::open(folder, args);
            run_watched(args, open, progress, show)
        }
        #[cfg(feature = "fjall")]
        EngineName::Fjall => {
            let open = |folder: &Path| fjall::Fjall::open(folder, args);
            run_watched(args, open, progress, show)
        }
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

#[cfg(test)]
mod tests {
    use windrow_bench::{Load, Mix, PolicyArgs};

    use super::*;

    #[test]
    fn every_engine_reads_what_windrow_reads() {
        let args = |loads: &[Load]| BenchArgs {
            num: 2000,
            ops: Some(500),
            mix: Some(Mix::MD),
            policy: PolicyArgs {
                memtable_bytes: Some(256 << 10),
                ..PolicyArgs::default()
            },
            ..BenchArgs::new(loads.to_vec())
        };
        let runs = [
            args(&[
                Load::FillBatch,
                Load::Overwrite,
                Load::MultiReadRandom,
                Load::RevRange,
                Load::ReadReverse,
            ]),
            args(&[
                Load::FillRandom,
                Load::DeleteRandom,
                Load::ReadRandom,
                Load::Seek10,
                Load::ReadSeq,
            ]),
            args(&[Load::YcsbLoad, Load::YcsbA, Load::YcsbE, Load::YcsbF]),
        ];
        for args in runs {
            let read_by = |engine: EngineName| {
                let mut read = Vec::new();
                measure(engine, 1000, &args, |report| {
                    read.push((report.name.clone(), report.found, report.checksum.clone()));
                    assert!(report.disk_bytes > 0);
                    Ok(())
                })
                .unwrap();
                read
            };
            let expected = read_by(EngineName::Windrow);
            for engine in EngineName::value_variants() {
                assert_eq!(read_by(*engine), expected, "{}", engine.name());
            }
        }
    }
}

//! The bench's loads on other engines, beside Windrow.
//!
//! `run` drives one engine in this process; `compare` runs several, interleaved, each in a child
//! process of its own with a fresh folder, and prints medians, spreads and ratios. All engines get the
//! same settings, as far as they have them: write buffer, cache, filter bits, compression and sync.
//! `needs` tells what must be installed for each engine.
//!
//! Exit codes: 0 done, 1 a wrong request, 2 the environment failed, 3 what was read is not what was
//! written, or engines read different data under one seed.

mod compare;
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
#[cfg(any(
    feature = "fjall",
    feature = "leveldb",
    feature = "lmdb",
    feature = "redb",
    feature = "rocksdb"
))]
mod settings;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};
use windrow::Result;
use windrow_bench::campaign::{end_with_parent, settings_text};
use windrow_bench::{
    BenchArgs, BlockSourceArg, Engine, Report, WindrowEngine, check_loads, exit_code, header,
    lines, parse_bytes, print, print_object, reader_is_gone, run_loads,
};

use crate::compare::CompareArgs;

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
    /// Tell what the engines of each feature need to be built, and whether it is here
    Needs,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
struct RunArgs {
    /// The engine
    #[arg(long, value_enum)]
    engine: EngineName,

    /// Print an object a line instead of a table
    #[arg(long)]
    json: bool,

    /// Bytes from which BlobDB and fjall-separated keep values apart from their keys; the default
    /// includes the large ones of --mix
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, default_value_t = 1000)]
    min_blob_bytes: u64,

    #[command(flatten)]
    bench: BenchArgs,
}

/// The engines of this build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EngineName {
    Windrow,
    /// Windrow with blocks in its own cache, whatever --block-source says
    WindrowBuffered,
    #[cfg(feature = "rocksdb")]
    Rocksdb,
    /// RocksDB with large values in files of their own
    #[cfg(feature = "rocksdb")]
    Blobdb,
    /// The same with direct write, which does not promise that a crash leaves large values that were
    /// not flushed
    #[cfg(feature = "rocksdb")]
    BlobdbDirect,
    #[cfg(feature = "leveldb")]
    Leveldb,
    #[cfg(feature = "fjall")]
    Fjall,
    /// fjall with large values in files of their own
    #[cfg(feature = "fjall")]
    FjallSeparated,
    #[cfg(feature = "redb")]
    Redb,
    #[cfg(feature = "lmdb")]
    Lmdb,
}

/// The name of Windrow with blocks in its own cache.
const WINDROW_BUFFERED: &str = "windrow-buffered";

impl EngineName {
    /// Refuses what no engine runs, and what this one does not have.
    fn check(self, args: &BenchArgs) -> Result<()> {
        match self {
            Self::Windrow | Self::WindrowBuffered => check_loads::<WindrowEngine>(args),
            #[cfg(feature = "rocksdb")]
            Self::Rocksdb => settings::check::<rocksdb::RocksDb<rocksdb::Plain>>(args).map(drop),
            #[cfg(feature = "rocksdb")]
            Self::Blobdb => settings::check::<rocksdb::RocksDb<rocksdb::Blobs>>(args).map(drop),
            #[cfg(feature = "rocksdb")]
            Self::BlobdbDirect => {
                settings::check::<rocksdb::RocksDb<rocksdb::DirectBlobs>>(args).map(drop)
            }
            #[cfg(feature = "leveldb")]
            Self::Leveldb => settings::check::<leveldb::LevelDb>(args)?
                .uncompressed(self.name())
                .map(drop),
            #[cfg(feature = "fjall")]
            Self::Fjall => settings::check::<fjall::Fjall<false>>(args).map(drop),
            #[cfg(feature = "fjall")]
            Self::FjallSeparated => settings::check::<fjall::Fjall<true>>(args).map(drop),
            #[cfg(feature = "redb")]
            Self::Redb => settings::check::<redb::Redb>(args)?
                .uncompressed(self.name())
                .map(drop),
            #[cfg(feature = "lmdb")]
            Self::Lmdb => settings::check::<lmdb::Lmdb>(args)?
                .uncompressed(self.name())
                .map(drop),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Windrow => WindrowEngine::NAME,
            Self::WindrowBuffered => WINDROW_BUFFERED,
            #[cfg(feature = "rocksdb")]
            Self::Rocksdb => rocksdb::RocksDb::<rocksdb::Plain>::NAME,
            #[cfg(feature = "rocksdb")]
            Self::Blobdb => rocksdb::RocksDb::<rocksdb::Blobs>::NAME,
            #[cfg(feature = "rocksdb")]
            Self::BlobdbDirect => rocksdb::RocksDb::<rocksdb::DirectBlobs>::NAME,
            #[cfg(feature = "leveldb")]
            Self::Leveldb => leveldb::LevelDb::NAME,
            #[cfg(feature = "fjall")]
            Self::Fjall => fjall::Fjall::<false>::NAME,
            #[cfg(feature = "fjall")]
            Self::FjallSeparated => fjall::Fjall::<true>::NAME,
            #[cfg(feature = "redb")]
            Self::Redb => redb::Redb::NAME,
            #[cfg(feature = "lmdb")]
            Self::Lmdb => lmdb::Lmdb::NAME,
        }
    }
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
        Command::Run(args) => run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Needs => tell_needs(),
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

fn run(args: &RunArgs) -> Result<()> {
    end_with_parent()?;
    let mut is_first = true;
    measure(args.engine, args.min_blob_bytes, &args.bench, |report| {
        if args.json {
            return print_object(report);
        }
        if is_first {
            print(&settings_text(report))?;
            print(&header())?;
            is_first = false;
        }
        print(&lines(report, &args.bench))
    })
}

/// Runs the loads of `args` on `engine`; `show` gets each report.
#[cfg_attr(
    not(any(feature = "rocksdb", feature = "fjall")),
    expect(
        unused_variables,
        reason = "no engine of this build keeps values apart"
    )
)]
fn measure(
    engine: EngineName,
    min_blob_bytes: u64,
    args: &BenchArgs,
    mut show: impl FnMut(&Report) -> Result<()>,
) -> Result<()> {
    let progress = &*args.progress();
    match engine {
        EngineName::Windrow => {
            let open = |folder: &Path| WindrowEngine::open(folder, args);
            run_loads(args, open, progress, show)
        }
        EngineName::WindrowBuffered => {
            let args = &BenchArgs {
                block_source: Some(BlockSourceArg::Buffered),
                ..args.clone()
            };
            let open = |folder: &Path| WindrowEngine::open(folder, args);
            run_loads(args, open, progress, |report| {
                show(&Report {
                    engine: WINDROW_BUFFERED.to_owned(),
                    ..report.clone()
                })
            })
        }
        #[cfg(feature = "rocksdb")]
        EngineName::Rocksdb => {
            let open = |folder: &Path| rocksdb::RocksDb::<rocksdb::Plain>::open(folder, args, 0);
            run_loads(args, open, progress, show)
        }
        #[cfg(feature = "rocksdb")]
        EngineName::Blobdb => {
            type BlobDb = rocksdb::RocksDb<rocksdb::Blobs>;
            let open = |folder: &Path| BlobDb::open(folder, args, min_blob_bytes);
            run_loads(args, open, progress, show)
        }
        #[cfg(feature = "rocksdb")]
        EngineName::BlobdbDirect => {
            type DirectBlobDb = rocksdb::RocksDb<rocksdb::DirectBlobs>;
            let open = |folder: &Path| DirectBlobDb::open(folder, args, min_blob_bytes);
            run_loads(args, open, progress, show)
        }
        #[cfg(feature = "leveldb")]
        EngineName::Leveldb => {
            let open = |folder: &Path| leveldb::LevelDb::open(folder, args);
            run_loads(args, open, progress, show)
        }
        #[cfg(feature = "fjall")]
        EngineName::Fjall => {
            let open = |folder: &Path| fjall::Fjall::<false>::open(folder, args, 0);
            run_loads(args, open, progress, show)
        }
        #[cfg(feature = "fjall")]
        EngineName::FjallSeparated => {
            let open = |folder: &Path| fjall::Fjall::<true>::open(folder, args, min_blob_bytes);
            run_loads(args, open, progress, show)
        }
        #[cfg(feature = "redb")]
        EngineName::Redb => {
            let open = |folder: &Path| redb::Redb::open(folder, args);
            run_loads(args, open, progress, show)
        }
        #[cfg(feature = "lmdb")]
        EngineName::Lmdb => {
            let open = |folder: &Path| lmdb::Lmdb::open(folder, args);
            run_loads(args, open, progress, show)
        }
    }
}

/// Prints, for each feature, what it needs and whether it is here.
fn tell_needs() -> Result<()> {
    print(&format!(
        "{:<9} {:<30} {:<8} {:<46} {}",
        "feature", "engines", "here", "needs beside Rust and Linux (Debian's package)", "remark"
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
        let line = format!("{name:<9} {engines:<30} {here:<8} {needs:<46} {remark}");
        print(line.trim_end())?;
    }
    for advice in needs::FEATURES.iter().filter_map(needs::Feature::advice) {
        print(&advice)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[cfg(feature = "fjall")]
    use windrow_bench::PresetArg;
    use windrow_bench::{Load, Mix, PolicyArgs};

    use super::*;

    #[test]
    fn buffered_windrow_reads_into_its_own_cache() {
        let args = BenchArgs {
            num: 100,
            // It gets its own source all the same.
            block_source: Some(BlockSourceArg::Mapped),
            ..BenchArgs::new(vec![Load::FillSeq])
        };
        let source_of = |engine| {
            let mut source = String::new();
            measure(engine, 0, &args, |report| {
                source.clone_from(&report.settings["block_source"]);
                Ok(())
            })
            .unwrap();
            source
        };
        assert_eq!(source_of(EngineName::Windrow), "Mapped");
        assert_eq!(source_of(EngineName::WindrowBuffered), "Buffered");
    }

    #[cfg(feature = "fjall")]
    #[test]
    fn what_is_shown_does_not_keep_an_engine_from_settling() {
        let args = BenchArgs {
            num: 100,
            stats_interval_seconds: Some(0.1),
            ..BenchArgs::new(vec![Load::FillSeq])
        };
        measure(EngineName::Fjall, 0, &args, |_| Ok(())).unwrap();
    }

    #[cfg(feature = "fjall")]
    #[test]
    fn a_report_has_the_shape_that_its_engine_got() {
        let got = |args: &BenchArgs| {
            let mut got = Vec::new();
            measure(EngineName::Fjall, 0, args, |report| {
                let shape = [
                    "l0_threshold",
                    "level_ratio",
                    "table_target_size",
                    "worker_threads",
                ];
                got.extend(shape.map(|name| report.settings.get(name).cloned()));
                Ok(())
            })
            .unwrap();
            got
        };
        let args = BenchArgs {
            num: 100,
            ..BenchArgs::new(vec![Load::FillSeq])
        };
        assert_eq!(got(&args), [const { None }; 4]);
        let chosen = BenchArgs {
            policy: PolicyArgs {
                preset: PresetArg::Lsma,
                level0_runs: Some(3),
                ..PolicyArgs::default()
            },
            background_threads: Some(2),
            ..args
        };
        let expected = ["3", "10", "2097152", "2"].map(|text| Some(text.to_owned()));
        assert_eq!(got(&chosen), expected);
    }

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
            BenchArgs {
                sync: true,
                num: 100,
                ops: Some(50),
                ..args(&[Load::FillSeq, Load::Overwrite, Load::ReadSeq])
            },
        ];
        for args in runs {
            let read_by = |engine: EngineName| {
                let mut read = Vec::new();
                measure(engine, 1000, &args, |report| {
                    assert_eq!(report.engine, engine.name());
                    read.push((report.name.clone(), report.found, report.checksum.clone()));
                    assert!(report.disk_bytes > 0);
                    assert!(report.settings.contains_key("version"));
                    assert_ne!(report.settings["version"], "unknown");
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

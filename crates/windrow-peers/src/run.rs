//! `run`: the loads of the bench on one engine, in this process.

use std::path::Path;

use clap::{Args, Parser};
use windrow::Result;
use windrow_bench::campaign::{end_with_parent, parsed_run, settings_text};
use windrow_bench::{
    BenchArgs, BlockSourceArg, Report, WindrowEngine, header, lines, parse_bytes, print,
    print_object, run_loads,
};

use crate::engines::{EngineName, WINDROW_BUFFERED};
#[cfg(feature = "fjall")]
use crate::fjall;
#[cfg(feature = "leveldb")]
use crate::leveldb;
#[cfg(feature = "lmdb")]
use crate::lmdb;
#[cfg(feature = "redb")]
use crate::redb;
#[cfg(feature = "rocksdb")]
use crate::rocksdb;

/// Arguments of `run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The engine
    #[arg(long, value_enum)]
    pub(crate) engine: EngineName,

    /// Print one JSON object per line instead of a table
    #[arg(long)]
    pub(crate) json: bool,

    /// BlobDB and fjall-separated separate values of this size or more from their keys. The default
    /// includes the large values of --mix
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, default_value_t = 1000)]
    pub(crate) min_blob_bytes: u64,

    #[command(flatten)]
    pub(crate) bench: BenchArgs,
}

/// The command line of a run, checked before the first run of a comparison.
#[derive(Debug, Parser)]
#[command(name = "run", disable_help_flag = true, args_override_self = true)]
struct RunLine {
    #[command(flatten)]
    run: RunArgs,
}

impl RunArgs {
    /// Parses the `arguments` after `run`.
    ///
    /// # Errors
    /// `InvalidArgument` with the first line of the error.
    pub(crate) fn parsed(arguments: &[String]) -> Result<Self> {
        parsed_run::<RunLine>(arguments).map(|line| line.run)
    }
}

pub(crate) fn run(args: &RunArgs) -> Result<()> {
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

/// Runs the loads of `args` on `engine`. `show` receives each report.
#[cfg_attr(
    not(any(feature = "rocksdb", feature = "fjall")),
    expect(unused_variables, reason = "no engine of this build separates values")
)]
pub(crate) fn measure(
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
        #[cfg(feature = "rocksdb")]
        EngineName::RocksdbDirectIo => {
            type DirectIoDb = rocksdb::RocksDb<rocksdb::DirectIo>;
            let open = |folder: &Path| DirectIoDb::open(folder, args, 0);
            run_loads(args, open, progress, show)
        }
        #[cfg(feature = "rocksdb")]
        EngineName::RocksdbOptimistic => {
            let open = |folder: &Path| rocksdb::Optimistic::open(folder, args);
            run_loads(args, open, progress, show)
        }
        #[cfg(feature = "rocksdb")]
        EngineName::RocksdbLocking => {
            let open = |folder: &Path| rocksdb::Locking::open(folder, args);
            run_loads(args, open, progress, show)
        }
        #[cfg(feature = "leveldb")]
        EngineName::Leveldb => {
            let open = |folder: &Path| leveldb::LevelDb::open(folder, args);
            run_loads(args, open, progress, show)
        }
        #[cfg(feature = "fjall")]
        EngineName::Fjall => {
            let open = |folder: &Path| fjall::Fjall::<fjall::Plain>::open(folder, args, 0);
            run_loads(args, open, progress, show)
        }
        #[cfg(feature = "fjall")]
        EngineName::FjallSeparated => {
            type Separated = fjall::Fjall<fjall::Separated>;
            let open = |folder: &Path| Separated::open(folder, args, min_blob_bytes);
            run_loads(args, open, progress, show)
        }
        #[cfg(feature = "fjall")]
        EngineName::FjallOptimistic => {
            type Optimistic = fjall::Fjall<fjall::Optimistic>;
            let open = |folder: &Path| Optimistic::open(folder, args, 0);
            run_loads(args, open, progress, show)
        }
        #[cfg(feature = "fjall")]
        EngineName::FjallSingleWriter => {
            type SingleWriter = fjall::Fjall<fjall::SingleWriter>;
            let open = |folder: &Path| SingleWriter::open(folder, args, 0);
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

#[cfg(test)]
mod tests {
    use clap::ValueEnum;
    #[cfg(feature = "fjall")]
    use windrow_bench::PresetArg;
    use windrow_bench::{Load, Mix, PolicyArgs};

    use super::*;

    #[test]
    fn windrow_buffered_reads_into_its_own_cache() {
        let args = BenchArgs {
            num: 100,
            // The engine replaces it.
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
    fn interval_reports_do_not_prevent_an_engine_from_settling() {
        let args = BenchArgs {
            num: 100,
            stats_interval_seconds: Some(0.1),
            ..BenchArgs::new(vec![Load::FillSeq])
        };
        measure(EngineName::Fjall, 0, &args, |_| Ok(())).unwrap();
    }

    #[cfg(feature = "fjall")]
    #[test]
    fn a_report_has_the_settings_of_its_engine() {
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
            // Some engines are asked each second whether they rest.
            unsettled: true,
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
        // The second run opens the store of the first one.
        let folder = tempfile::tempdir().unwrap();
        let kept = |loads: &[Load]| BenchArgs {
            db: Some(folder.path().to_owned()),
            unsettled: false,
            ..args(loads)
        };
        let reopened = [
            kept(&[Load::FillRandom]),
            BenchArgs {
                use_existing_db: true,
                ..kept(&[Load::ReadRandom])
            },
        ];
        for runs in runs.chunks(1).chain([&reopened[..]]) {
            let read_by = |engine: EngineName| {
                let mut read = Vec::new();
                for args in runs {
                    measure(engine, 1000, args, |report| {
                        assert_eq!(report.engine, engine.name());
                        read.push((report.name.clone(), report.found, report.checksum.clone()));
                        assert!(report.disk_bytes > 0);
                        assert!(report.settings.contains_key("version"));
                        assert_ne!(report.settings["version"], "unknown");
                        Ok(())
                    })
                    .unwrap();
                }
                read
            };
            let expected = read_by(EngineName::Windrow);
            for engine in EngineName::value_variants() {
                assert_eq!(read_by(*engine), expected, "{}", engine.name());
            }
        }
    }
}

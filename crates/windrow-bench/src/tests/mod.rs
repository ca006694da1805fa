//! The data set, the plan of each load, and whole runs on a small store.

mod faulty_engine;
mod loads;
mod no_op_engine;

use std::collections::BTreeMap;
use std::path::Path;

use clap::{Parser, ValueEnum};
use windrow::{ErrorKind, KeyspaceOptions, Result, limits};

use crate::measure::progress::Unseen;
use crate::measure::rate_limiter::Rate;
use crate::report::row;
use crate::{
    BenchArgs, CompactionShape, DataSet, Load, Mix, Operation, Report, ValueSizes, WindrowEngine,
    parse_bytes, run_loads,
};

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

fn data(key_size: usize, value_size: usize) -> Result<DataSet> {
    DataSet::new(1000, key_size, ValueSizes::same(value_size), 1)
}

#[test]
fn keys_are_padded_decimal_numbers() {
    let mut key = Vec::new();
    let data = data(16, 100).unwrap();
    data.key(42, &mut key);
    assert_eq!(key, b"0000000000000042");
    data.missing_key(42, &mut key);
    assert_eq!(key, b"0000000000000042.");
    self::data(20, 100).unwrap().key(7, &mut key);
    assert_eq!(key, b"00000000000000070000");
    self::data(3, 100).unwrap().key(999, &mut key);
    assert_eq!(key, b"999");
    for (key_size, value_size) in [
        (0, 100),
        (2, 100),
        (limits::KEY_BYTES_MAX, 100),
        (16, limits::VALUE_BYTES_MAX + 1),
    ] {
        assert!(self::data(key_size, value_size).is_err());
    }
}

#[test]
fn values_are_checked_byte_by_byte() {
    for value_size in [0, 1, 2, 5, 8, 9, 100, 5000] {
        let data = data(16, value_size).unwrap();
        let (mut key, mut value) = (Vec::new(), Vec::new());
        data.key(5, &mut key);
        data.value(&key, 7, &mut value);
        assert_eq!(value.len(), value_size);
        let checked = data.check(&key, &value).unwrap();
        assert_eq!(
            checked.generation,
            if value_size < 2 {
                checked.generation
            } else {
                7
            }
        );
        for position in 2..value.len() {
            value[position] ^= 1;
            assert!(data.check(&key, &value).is_err(), "byte {position}");
            value[position] ^= 1;
        }
        value.push(0);
        assert!(data.check(&key, &value).is_err());
    }
}

#[test]
fn values_shrink_as_is_asked() {
    let left = |line: &str| {
        let data = args(&format!("fillseq {line}")).data_set().unwrap();
        let block = data.block(64 << 10);
        lz4_flex::block::compress(block).len() as f64 / block.len() as f64
    };
    for ratio in [0.0, 0.2, 0.5, 1.0] {
        let left = left(&format!("--compression_ratio={ratio}"));
        // Each piece has a token and an offset beside its bytes.
        assert!(left >= ratio && left < ratio + 0.1, "{left} for {ratio}");
    }
    assert!((left("") - left("--compression-ratio 0.5")).abs() < 1e-9);
    for wrong in ["1.1", "-0.1", "nan"] {
        let line = format!("fillseq --compression-ratio={wrong}");
        assert!(args(&line).data_set().is_err(), "{wrong}");
    }
}

#[test]
fn keys_lead_back_to_their_records() {
    for key_size in [5, 16, 24] {
        let data = data(key_size, 100).unwrap();
        let mut key = Vec::new();
        for record in 0..1000 {
            data.record_key(record, &mut key);
            assert_eq!(key.len(), key_size);
            assert_eq!(data.record_of(&key), Some(record));
        }
        key[0] = b'x';
        assert_eq!(data.record_of(&key), None);
        assert_eq!(data.record_of(b"0"), None);
    }
}

#[test]
fn random_indexes_cover_the_key_space() {
    let data = DataSet::new(100, 16, ValueSizes::same(0), 9).unwrap();
    let mut met = [false; 100];
    for step in 0..5000 {
        met[usize::try_from(data.random_index(4, step)).unwrap()] = true;
    }
    assert!(met.iter().all(|&met| met));
}

#[test]
fn sizes_take_a_suffix() {
    for (text, bytes) in [
        ("0", 0),
        ("64", 64),
        ("64k", 64 << 10),
        ("64M", 64 << 20),
        ("64MB", 64_000_000),
        ("64mib", 64 << 20),
        ("1.5TB", 1_500_000_000_000),
        ("1PB", 1_000_000_000_000_000),
        ("1P", 1 << 50),
        ("2GiB", 2 << 30),
        ("7B", 7),
        ("18446744073709551615", u64::MAX),
    ] {
        assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
    }
    let sizes = args("fillseq --key-size 1K --value-size 4KB --mix-max-value-size 2K");
    assert_eq!((sizes.key_size, sizes.value_size), (Some(1024), Some(4000)));
    assert_eq!(sizes.mixgraph.mix_max_value_size, Some(2048));
    for wrong in [
        "",
        "M",
        "-1",
        "1e9",
        "many",
        "1XB",
        "99EB",
        "1.5.5K",
        "nanK",
        "infB",
        ".K",
        "99999999999T",
        "\u{e9}",
        "5 GB",
        "+5",
    ] {
        assert!(parse_bytes(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn arguments_have_the_defaults_of_the_command_line() {
    let made = BenchArgs::new(vec![Load::FillSeq, Load::YcsbA]);
    let parsed = args("fillseq,ycsb-a");
    assert_eq!(format!("{made:?}"), format!("{parsed:?}"));
}

#[test]
fn settings_reach_the_options() {
    let line = "fillseq --preset autumn --size-ratio 2 --scaling 0.5 --memtable-bytes 4M \
                --file-bytes 2M --base-bytes 10M --bits-per-key 0 --level0-runs 2 --filter-allocation uniform \
                --max-space-amp inf";
    let options = args(line).windrow_options().unwrap().keyspace;
    assert_eq!((options.memtable_bytes, options.level0_runs), (4 << 20, 2));
    assert_eq!(
        (options.file_bytes, options.base_bytes),
        (2 << 20, 10 << 20)
    );
    assert_eq!(
        options.filter_allocation,
        windrow::FilterAllocation::Uniform
    );
    let numbers = [
        options.size_ratio,
        options.scaling,
        options.bits_per_key,
        options.max_space_amp,
    ];
    assert_eq!(
        numbers.map(f64::to_bits),
        [2.0, 0.5, 0.0, f64::INFINITY].map(f64::to_bits)
    );
}

#[test]
fn placement_reaches_the_options() {
    use windrow::{MediumInPlace, MediumOrder};
    for (line, expected) in [
        ("", (120, 1024, MediumInPlace::LastLevel)),
        ("--preset parallax", (120, 1024, MediumInPlace::LastLevel)),
        (
            "--preset leveling",
            (u64::MAX, u64::MAX, MediumInPlace::LastLevel),
        ),
        (
            "--medium-from 200 --large-from never --medium-in-place before-last",
            (200, u64::MAX, MediumInPlace::LevelBeforeLast),
        ),
        (
            "--medium-from 1K --medium-in-place never",
            (1024, 1024, MediumInPlace::Never),
        ),
        // The variants of the Parallax paper: mediums as larges, all in the log, mediums as smalls.
        ("--large-from 120", (120, 120, MediumInPlace::LastLevel)),
        ("--large-from 64", (64, 64, MediumInPlace::LastLevel)),
        (
            "--preset leveling --large-from 1K",
            (1024, 1024, MediumInPlace::LastLevel),
        ),
        (
            "--medium-from never",
            (u64::MAX, 1024, MediumInPlace::LastLevel),
        ),
    ] {
        let options = args(&format!("fillseq {line}")).windrow_options();
        let found = options.unwrap().keyspace;
        let found = (found.medium_from, found.large_from, found.medium_in_place);
        assert_eq!(found, expected, "{line}");
    }
    let order = |line: &str| {
        let options = args(line).windrow_options().unwrap();
        options.keyspace.medium_order
    };
    assert_eq!(order("fillseq"), MediumOrder::Sorted);
    assert_eq!(
        order("fillseq --medium-order written"),
        MediumOrder::Written
    );
    let refused = args("fillseq --medium-from 2K --large-from 1K").windrow_options();
    assert!(refused.unwrap_err().to_string().contains("medium_from"));
}

/// Merges of a small tree are counted, for the load that they follow; its rate changes nothing of what is read.
#[test]
fn compactions_are_those_of_the_load() {
    let line = |rate: &str| {
        format!(
            "fillrandom,readrandom --num 20000 --ops 500 --memtable-bytes 64K --file-bytes 64K --base-bytes 256K {rate}"
        )
    };
    let free = reports(&line(""));
    let compactions = free[0].compactions.unwrap();
    assert!(compactions.count > 0 && compactions.longest_ms >= compactions.shortest_ms);
    assert!(compactions.seconds * 1e3 >= compactions.longest_ms);
    assert_eq!(free[1].compactions, Some(CompactionShape::default()));
    let paced = reports(&line("--rate 200000"));
    assert_eq!(paced[1].checksum, free[1].checksum);
    assert_eq!(paced[0].ops, 20_000);
}

#[test]
fn names_are_those_of_the_command_line() {
    for load in Load::value_variants() {
        assert_eq!(load.to_possible_value().unwrap().get_name(), load.name());
    }
}

#[test]
fn flags_of_db_bench_are_understood() {
    let args = args(
        "fillseq --num=10 --value_size=50 --key_size=20 --threads=2 --duration=5 --batch_size=3 \
         --seek_nexts=7 --reverse_iterator=true --use_existing_db=0 --histogram=1 --db /tmp/x \
         --benchmark_write_rate_limit=1700 --stats_interval_seconds=2 --readwritepercent=40 --sync=0 \
         --keyrange_dist_b=-2.5 --mix_get_ratio=0.5 --sine_mix_rate=1 --sine_d=100",
    );
    assert_eq!((args.value_size, args.key_size), (Some(50), Some(20)));
    assert_eq!((args.batch_size, args.seek_nexts), (3, Some(7)));
    assert!(args.reverse_iterator && !args.use_existing_db && args.histogram && !args.sync);
    assert_eq!(args.read_write_percent, 40);
    assert_eq!(args.mixgraph.keyrange_dist_b, Some(-2.5));
    let data = args.data_set().unwrap();
    // 1700 bytes a second are 25 entries of 70 bytes, rounded up.
    assert_eq!(args.companion_rate(&data), 25);
    let rate = |load| args.rate_of(load, &data);
    assert!(matches!(rate(Load::Overwrite), Rate::Steady(rate) if rate < 24.3));
    assert!(matches!(rate(Load::ReadRandom), Rate::Free));
    assert!(matches!(rate(Load::MixGraph), Rate::Wave(wave) if wave.d > 99.0));
    assert_eq!(self::args("fill100K,fill100k").loads, [Load::Fill100K; 2]);
    let named = self::args("--benchmarks=fillseq,readseq --duration=0 --stats_interval_seconds=0");
    assert_eq!(named.loads(), [Load::FillSeq, Load::ReadSeq]);
    assert!(!named.progress().is_shown());
    let blocks = self::args("fillseq --block_size=16384").windrow_options();
    assert_eq!(blocks.unwrap().keyspace.block_bytes, 16 << 10);
    for wrong in ["", "fillseq --benchmarks=readseq", "--benchmarks="] {
        let words = std::iter::once("bench").chain(wrong.split_whitespace());
        assert!(Command::try_parse_from(words).is_err(), "{wrong}");
    }
    let tree = self::args(
        "fillseq --cache_size=1000 --write_buffer_size=2000 --bloom_bits=7 --compression_type=lz4 \
         --max_bytes_for_level_base=3000 --target_file_size_base=4000 \
         --max_bytes_for_level_multiplier=8 --level0_file_num_compaction_trigger=2",
    );
    let policy = &tree.policy;
    assert_eq!(tree.cache_bytes, Some(1000));
    assert_eq!(policy.memtable_bytes, Some(2000));
    assert_eq!(
        (policy.base_bytes, policy.file_bytes),
        (Some(3000), Some(4000))
    );
    assert_eq!(
        (policy.size_ratio, policy.bits_per_key),
        (Some(8.0), Some(7.0))
    );
    assert_eq!(policy.level0_runs, Some(2));
}

#[test]
fn what_is_named_changes_options_and_nothing_else_does() {
    let policy = args("fillseq --preset leveling --memtable-bytes 2M --large-from 100").policy;
    let mut store = KeyspaceOptions::default();
    store.size_ratio = 7.0;
    let mut expected = store.clone();
    expected.memtable_bytes = 2 << 20;
    // What is large is not medium.
    (expected.medium_from, expected.large_from) = (100, 100);
    policy.change(&mut store).unwrap();
    assert_eq!(store, expected);
}

#[test]
fn equal_seeds_read_equal_data_whatever_the_threads() {
    let line = "fillrandom,overwrite,readrandom,seek10,readseq --num 3000 --seed 5";
    let checksums =
        |line: &str| -> Vec<String> { reports(line).into_iter().map(|r| r.checksum).collect() };
    let one = checksums(line);
    assert_eq!(one, checksums(&format!("{line} --threads 3")));
    assert_ne!(one, checksums(&line.replace("--seed 5", "--seed 6")));
}

#[test]
fn a_read_before_any_fill_is_refused() {
    for (load, fill) in [("readrandom", "fillrandom"), ("ycsb-c", "ycsb-load")] {
        let error = try_reports(&args(load)).unwrap_err();
        assert!(error.to_string().contains(fill), "{error}");
    }
}

#[test]
fn mixes_have_their_shares() {
    for mix in Mix::value_variants() {
        let data = DataSet::new(20_000, 24, ValueSizes::mix(*mix), 1).unwrap();
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let mut counts = BTreeMap::new();
        for index in 0..20_000 {
            data.key(index, &mut key);
            data.value(&key, 3, &mut value);
            assert_eq!(data.check(&key, &value).unwrap().generation, 3);
            *counts.entry(value.len()).or_insert(0.0) += 1.0 / 200.0;
        }
        for (size, fraction) in mix.fractions() {
            let percent: f64 = counts.remove(&size).unwrap_or(0.0);
            assert!(
                (percent - fraction as f64).abs() < 2.0,
                "{mix:?} {size}: {percent}"
            );
        }
        assert!(counts.is_empty());
    }
}

#[test]
fn workloads_do_what_they_are_for() {
    let loads = "ycsb-load,ycsb-a,ycsb-b,ycsb-c,ycsb-d,ycsb-e,ycsb-f";
    // Small memtables, so that records are in memory and on several levels.
    let tree = "--memtable-bytes 64K --file-bytes 32K --base-bytes 64K --size-ratio 2";
    let reports = reports(&format!(
        "{loads},readseq --mix sd --records 3000 --ops 2000 {tree}"
    ));
    let kinds = |name: &str| -> Vec<&str> {
        let report = reports.iter().find(|report| report.name == name).unwrap();
        report
            .operations
            .iter()
            .map(|kind| kind.operation.name())
            .collect()
    };
    assert_eq!(kinds("ycsb-load"), ["insert"]);
    assert_eq!(kinds("ycsb-a"), ["read", "update"]);
    assert_eq!(kinds("ycsb-b"), ["read", "update"]);
    assert_eq!(kinds("ycsb-c"), ["read"]);
    assert_eq!(kinds("ycsb-d"), ["read", "insert"]);
    assert_eq!(kinds("ycsb-e"), ["insert", "scan"]);
    assert_eq!(kinds("ycsb-f"), ["read", "read-modify-write"]);
    // What is live follows from what was inserted, and a walk meets just that.
    let inserted: u64 = reports
        .iter()
        .flat_map(|report| &report.operations)
        .filter(|kind| kind.operation == Operation::Insert)
        .map(|kind| kind.ops)
        .sum();
    let last = reports.last().unwrap();
    assert_eq!(last.found, 2000);
    let entries: u64 = last.levels.iter().map(|level| level.entries).sum();
    assert!(inserted > 3100 && entries >= inserted);
    let live = last.live_bytes.unwrap() as f64;
    assert!(
        (live / inserted as f64 / 252.0 - 1.0).abs() < 0.1,
        "{live} in {inserted}"
    );
    assert!(last.space_amplification.unwrap() > 0.9);
    assert!(reports.iter().all(|report| report.repeatable));
    // Mediums and larges are read from where they stand.
    let apart = reports[1].separated_reads;
    assert!(apart.transient_log_reads + apart.value_log_reads > 0);
    // The table has a line for each kind of operation, one for values apart, one for compactions, and one for
    // each cause of waits.
    let compactions = reports[1].compactions.map_or(0, |done| done.count.min(1));
    let lines = 4 + reports[1].stalls_by_cause.len() as u64 + compactions;
    assert_eq!(row(&reports[1]).lines().count() as u64, lines);
}

#[test]
fn a_store_that_another_run_left_is_read_on() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().display();
    let settings = format!("--records 500 --ops 400 --db {folder}");
    reports(&format!("ycsb-load,ycsb-a,ycsb-d {settings}"));
    let again = reports(&format!("ycsb-a,ycsb-e,ycsb-d,ycsb-c {settings}"));
    assert!(
        again
            .iter()
            .all(|report| report.space_amplification.is_some())
    );
    // Other settings make other records.
    for other in ["--seed 2", "--key-size 20", "--value-size 50"] {
        let line = format!("ycsb-c {settings} {other}");
        assert!(try_reports(&args(&line)).is_err(), "{other}");
    }
    let foreign = args(&format!("overwrite,ycsb-c {settings}"));
    assert!(try_reports(&foreign).is_err());
}

#[test]
fn threads_share_the_records() {
    let loads = "ycsb-load,ycsb-c,ycsb-a,ycsb-d,ycsb-e,ycsb-f,ycsb-c";
    let reports = reports(&format!("{loads} --records 1000 --ops 3000 --threads 4"));
    let repeatable: Vec<bool> = reports.iter().map(|report| report.repeatable).collect();
    assert_eq!(repeatable, [true, true, false, false, false, false, false]);
    let alone = self::reports("ycsb-load,ycsb-c --records 1000 --ops 3000");
    assert_eq!(reports[1].checksum, alone[1].checksum);
}

#[test]
fn values_too_short_to_tell_their_write_are_refused() {
    let error = try_reports(&args("ycsb-load --value-size 7")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn live_bytes_follow_writes_and_deletions() {
    let line = "fillseq,overwrite,deleterandom,readseq --num 500 --ops 1000 --value-size 84";
    let reports = reports(line);
    let live: Vec<Option<u64>> = reports.iter().map(|report| report.live_bytes).collect();
    let left = reports[3].found * 100;
    assert_eq!(live, [Some(50_000), Some(50_000), Some(left), Some(left)]);
    assert!(left < 20_000);
}

#[test]
fn what_had_any_size_leaves_an_unknown_rest() {
    let reports = reports("fillrandom,readrandom,overwrite,readseq --mix SD --num 500 --ops 500");
    let known: Vec<bool> = reports
        .iter()
        .map(|report| report.live_bytes.is_some())
        .collect();
    assert_eq!(known, [true, true, false, false]);
}

#[test]
fn what_is_live_after_updates_is_what_a_scan_finds() {
    let folder = tempfile::tempdir().unwrap();
    let with_folder = |line: &str| BenchArgs {
        db: Some(folder.path().to_owned()),
        ..args(line)
    };
    let settings = "--mix SD --num 700 --ops 2000";
    let written = try_reports(&with_folder(&format!("ycsb-load,ycsb-a {settings}"))).unwrap();
    // This one finds the records by a scan.
    let read = try_reports(&with_folder(&format!("ycsb-c {settings}"))).unwrap();
    assert_eq!(written[1].live_bytes, read[0].live_bytes);
    assert!(written[0].live_bytes.is_some() && written[0].live_bytes != written[1].live_bytes);
}

#[test]
fn nobody_waits_for_what_is_to_be_left_unsettled() {
    let reports = reports("ycsb-load,ycsb-c --num 300 --unsettled");
    // What was loaded is still in the memtable.
    assert_eq!(reports[1].block_reads, Some(0));
    assert!(reports[1].levels.iter().all(|level| level.bytes == 0));
}

#[test]
fn what_moved_is_told_by_purpose() {
    for report in reports("ycsb-load,ycsb-a --mix LD --num 700 --ops 2000") {
        let written = report.io_stats.iter().map(|moved| moved.written_bytes);
        assert_eq!(written.sum::<u64>(), report.written_bytes);
        let read = report.io_stats.iter().map(|moved| moved.read_bytes);
        assert_eq!(read.sum::<u64>(), report.read_bytes);
    }
}

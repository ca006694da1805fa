//! The command line.

use clap::{Parser, ValueEnum};
use windrow::KeyspaceOptions;

use super::{Command, args};
use crate::measure::rate_limiter::Rate;
use crate::{Load, parse_bytes};

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
fn only_named_options_change() {
    let policy = args("fillseq --preset leveling --memtable-bytes 2M --large-from 100").policy;
    let mut store = KeyspaceOptions::default();
    store.size_ratio = 7.0;
    let mut expected = store.clone();
    expected.memtable_bytes = 2 << 20;
    // A large value is not medium.
    (expected.medium_from, expected.large_from) = (100, 100);
    policy.change(&mut store).unwrap();
    assert_eq!(store, expected);
}

//! The data set, the plan of each load, and whole runs on a small store.

use clap::{Parser, ValueEnum};
use windrow::limits;

use crate::{BenchArgs, DataSet, Load, Report, WindrowEngine, parse_bytes, run};

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    bench: BenchArgs,
}

fn reports(line: &str) -> Vec<Report> {
    let words = std::iter::once("bench").chain(line.split_whitespace());
    let args = Command::try_parse_from(words).unwrap().bench;
    let mut reports = Vec::new();
    run::<WindrowEngine>(&args, |report| {
        reports.push(report.clone());
        Ok(())
    })
    .unwrap();
    reports
}

#[test]
fn keys_are_padded_decimal_numbers() {
    let mut key = Vec::new();
    let data = DataSet::new(1000, 16, 100, 1).unwrap();
    data.key(42, &mut key);
    assert_eq!(key, b"0000000000000042");
    data.missing_key(42, &mut key);
    assert_eq!(key, b"0000000000000042.");
    DataSet::new(1000, 20, 100, 1).unwrap().key(7, &mut key);
    assert_eq!(key, b"00000000000000070000");
    DataSet::new(1000, 3, 100, 1).unwrap().key(999, &mut key);
    assert_eq!(key, b"999");
    assert!(DataSet::new(1001, 3, 100, 1).is_err());
    assert!(DataSet::new(1, 0, 100, 1).is_err());
    for (key_size, value_size) in [
        (limits::KEY_BYTES_MAX, 100),
        (16, limits::VALUE_BYTES_MAX + 1),
    ] {
        assert!(DataSet::new(1, key_size, value_size, 1).is_err());
    }
}

#[test]
fn values_are_checked_byte_by_byte() {
    for value_size in [0, 1, 2, 5, 8, 9, 100, 5000] {
        let data = DataSet::new(1000, 16, value_size, 3).unwrap();
        let (mut key, mut value) = (Vec::new(), Vec::new());
        data.key(5, &mut key);
        data.value(&key, 7, &mut value);
        assert_eq!(value.len(), value_size);
        data.check(&key, &value).unwrap();
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
fn random_indexes_cover_the_key_space() {
    let data = DataSet::new(100, 16, 0, 9).unwrap();
    let mut met = [false; 100];
    for step in 0..5000 {
        met[usize::try_from(data.random_index(4, step)).unwrap()] = true;
    }
    assert!(met.iter().all(|&met| met));
}

#[test]
fn sizes_take_a_suffix() {
    assert_eq!(parse_bytes("64"), Ok(64));
    assert_eq!(parse_bytes("64k"), Ok(64 << 10));
    assert_eq!(parse_bytes("3M"), Ok(3 << 20));
    assert_eq!(parse_bytes("1G"), Ok(1 << 30));
    for wrong in ["", "M", "-1", "1.5G", "99999999999T", "\u{e9}"] {
        assert!(parse_bytes(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn names_are_those_of_the_command_line() {
    for load in Load::value_variants() {
        assert_eq!(load.to_possible_value().unwrap().get_name(), load.name());
    }
}

#[test]
fn every_load_runs_and_counts() {
    let names: Vec<_> = Load::value_variants().iter().map(|l| l.name()).collect();
    let line = format!("{} --num 2000 --ops 300 --write-rate 1000", names.join(","));
    let reports = reports(&line);
    assert_eq!(reports.len(), names.len());
    for report in &reports {
        let expected = match report.name {
            "fillseq" | "fillrandom" => 2000,
            _ => 300,
        };
        assert_eq!(report.ops, expected, "{}", report.name);
        assert!(report.max_us >= report.p50_us);
    }
    let named = |name| reports.iter().find(|r| r.name == name).unwrap();
    assert_eq!(named("readmissing").found, 0);
    assert!((100..300).contains(&named("readrandom").found));
    // The log and the table that it becomes, though all fits into one memtable.
    assert!(named("fillrandom").write_amplification >= 1.5);
    assert!(
        named("fillrandom")
            .levels
            .iter()
            .any(|level| level.entries > 0)
    );
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
    let args = Command::try_parse_from(["bench", "readrandom"])
        .unwrap()
        .bench;
    let error = run::<WindrowEngine>(&args, |_| Ok(())).unwrap_err();
    assert!(error.to_string().contains("fillrandom"), "{error}");
}

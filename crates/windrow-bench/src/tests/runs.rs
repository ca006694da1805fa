//! Whole runs on a small store: checksums, live bytes, and YCSB's records.

use windrow::ErrorKind;

use super::{args, reports, try_reports};
use crate::report::row;
use crate::{BenchArgs, CompactionShape, Operation};

/// A load reports its own compactions. A rate does not change the data that it reads.
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
    let limited = reports(&line("--rate 200000"));
    assert_eq!(limited[1].checksum, free[1].checksum);
    assert_eq!(limited[0].ops, 20_000);
}

#[test]
fn equal_seeds_read_equal_data_with_any_threads() {
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
fn workloads_have_their_kinds_of_operations() {
    let loads = "ycsb-load,ycsb-a,ycsb-b,ycsb-c,ycsb-d,ycsb-e,ycsb-f";
    // Small memtables put records in memory and on several levels.
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
    // The inserts determine the live records, and a walk meets exactly these.
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
    // Medium and large values are read from transient logs and value logs.
    let separated = reports[1].separated_reads;
    assert!(separated.transient_log_reads + separated.value_log_reads > 0);
    // The table has a line for each kind of operation, one for the device, one for separated values, one for compactions, and one for
    // each cause of stalls.
    let compactions = reports[1].compactions.map_or(0, |done| done.count.min(1));
    let lines = 5 + reports[1].stalls_by_cause.len() as u64 + compactions;
    assert_eq!(row(&reports[1]).lines().count() as u64, lines);
}

#[test]
fn a_run_continues_the_store_of_another_run() {
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
    // Other settings give other records.
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
fn values_too_short_for_a_generation_are_refused() {
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
fn overwrites_of_several_sizes_leave_unknown_live_bytes() {
    let reports = reports("fillrandom,readrandom,overwrite,readseq --mix SD --num 500 --ops 500");
    let known: Vec<bool> = reports
        .iter()
        .map(|report| report.live_bytes.is_some())
        .collect();
    assert_eq!(known, [true, true, false, false]);
}

#[test]
fn live_bytes_after_updates_are_those_of_a_scan() {
    let folder = tempfile::tempdir().unwrap();
    let with_folder = |line: &str| BenchArgs {
        db: Some(folder.path().to_owned()),
        ..args(line)
    };
    let settings = "--mix SD --num 700 --ops 2000";
    let written = try_reports(&with_folder(&format!("ycsb-load,ycsb-a {settings}"))).unwrap();
    // This run finds the records by a scan.
    let read = try_reports(&with_folder(&format!("ycsb-c {settings}"))).unwrap();
    assert_eq!(written[1].live_bytes, read[0].live_bytes);
    assert!(written[0].live_bytes.is_some() && written[0].live_bytes != written[1].live_bytes);
}

#[test]
fn unsettled_runs_do_not_wait() {
    let reports = reports("ycsb-load,ycsb-c --num 300 --unsettled");
    // The data is still in the memtable.
    assert_eq!(reports[1].block_reads, Some(0));
    assert!(reports[1].levels.iter().all(|level| level.bytes == 0));
}

#[test]
fn io_stats_add_up_to_the_totals() {
    for report in reports("ycsb-load,ycsb-a --mix LD --num 700 --ops 2000") {
        let written = report.io_stats.iter().map(|moved| moved.written_bytes);
        assert_eq!(written.sum::<u64>(), report.written_bytes);
        let read = report.io_stats.iter().map(|moved| moved.read_bytes);
        assert_eq!(read.sum::<u64>(), report.read_bytes);
    }
}

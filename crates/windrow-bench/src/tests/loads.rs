//! Every load on a small store: its operations, results and report.

use clap::ValueEnum;
use windrow::ErrorKind;

use super::{args, reports, try_reports};
use crate::load::kinds::Kind;
use crate::report::{histogram, row};
use crate::{BenchArgs, Load, Operation, Report, header};

#[test]
fn every_load_runs_and_counts() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    let lines = "a put 100\na get\nb get\na scan 3\na put 5\na get\na delete\na get\n";
    std::fs::write(&trace, lines).unwrap();
    let trace = trace.display();
    // Counters and postings are alone in a store.
    let of_kinds = |kinds: &[Kind]| {
        let loads = Load::value_variants().iter();
        let loads = loads.filter(|load| kinds.contains(&load.contents()));
        let names: Vec<&str> = loads.map(|load| load.name()).collect();
        let names = names.join(",");
        format!("{names} --num 2000 --ops 300 --write-rate 1000 --trace {trace}")
    };
    let kinds = [
        &[Kind::Entries, Kind::Records][..],
        &[Kind::Counters],
        &[Kind::Postings],
    ];
    let reports = kinds.map(|kinds| reports(&of_kinds(kinds))).concat();
    assert_eq!(reports.len(), Load::value_variants().len());
    for report in &reports {
        let name = report.name.as_str();
        let expected = match name {
            "fillsync" | "fill100K" => 2,
            "stats" | "levelstats" => 0,
            "compact" | "flush" | "waitforcompaction" | "readrandomsmall" => 1,
            "replay" => 8,
            "deleterange" => 1000,
            "ycsb-load" | "bulkload" | "ingest" | "compactfiltered" | "mergepostings"
            | "appendpostings" => 2000,
            _ if name.starts_with("fill") => 2000,
            _ => 300,
        };
        // The walks meet the entries that deleteseq and deleterandom have left.
        if !matches!(name, "readseq" | "readreverse" | "readtocache") {
            assert_eq!(report.ops, expected, "{name}");
        }
        let latency = &report.latency;
        assert!(latency.max_us >= latency.p999_us && latency.p95_us >= latency.p50_us);
        let sum: u64 = report.operations.iter().map(|kind| kind.ops).sum();
        assert_eq!(sum, report.ops, "{name}");
        // The blocks of a companion that scans belong to no operation.
        let is_reported = report.block_reads_per_op.is_some();
        assert_eq!(is_reported, name != "readwhilescanning", "{name}");
        assert!(report.disk_bytes > 0);
        if report.ops > 0 {
            check_measures(report);
        }
        let columns = header().split("  ").filter(|name| !name.is_empty()).count();
        assert!(columns > 5 && row(report).starts_with(name));
    }
    let of = |name| named(&reports, name);
    assert_eq!(of("readmissing").found, 0);
    assert_eq!(of("readmissing").runs_per_seek, None);
    assert_eq!(of("replay").found, 3);
    assert!(row(of("levelstats")).contains("level 0"));
    // The log and the table of its flush, although all data fits into one memtable.
    assert!(of("fillrandom").write_amplification.unwrap() >= 1.5);
    assert!(
        of("fillrandom")
            .levels
            .iter()
            .any(|level| level.entries > 0)
    );
}

/// The fields that every report has.
fn check_measures(report: &Report) {
    let curve = &report.latency_curve;
    assert!(curve.len() >= 2 && curve.len() <= 64, "{}", report.name);
    assert!(curve.is_sorted_by(|a, b| a.quantile < b.quantile && a.us <= b.us));
    let points = &report.series;
    assert!(!points.is_empty() && points.len() <= 600);
    assert!(points.is_sorted_by(|a, b| a.seconds < b.seconds));
    assert!(points.is_sorted_by_key(|point| point.settling));
    let mut began = 0.0;
    let mut ops = 0.0;
    for point in points {
        ops += point.ops_per_second * (point.seconds - began);
        began = point.seconds;
    }
    assert!(
        (ops / report.ops as f64 - 1.0).abs() < 1e-6,
        "{}",
        report.name
    );
    let written: u64 = points.iter().map(|point| point.written_bytes).sum();
    assert!(written <= report.written_bytes);
    assert!(report.settled_ops_per_second <= report.ops_per_second);
    if cfg!(target_os = "linux") {
        assert!(report.process_written_bytes >= Some(report.written_bytes));
        assert!(report.process_read_bytes.is_some() && report.peak_memory_bytes > Some(1 << 20));
        assert!(points.iter().all(|point| point.memory_bytes.is_some()));
    }
    // The JSON has all fields.
    let text = serde_json::to_string(report).unwrap();
    let read: Report = serde_json::from_str(&text).unwrap();
    assert_eq!((read.name, read.ops), (report.name.clone(), report.ops));
    assert_eq!(read.series.len(), report.series.len());
    assert_eq!(read.levels.len(), report.levels.len());
}

fn named<'a>(reports: &'a [Report], name: &str) -> &'a Report {
    reports.iter().find(|report| report.name == name).unwrap()
}

#[test]
fn reads_find_what_the_fills_wrote() {
    let reads = "readrandom,readhot,multireadrandom,seekrandom,seek10,fwdrange,revrange,readseq,\
                 readreverse,readtocache";
    for (fill, found) in [
        ("fillseq", 200),
        ("fillbatch", 200),
        ("filluniquerandom", 200),
    ] {
        let line = format!("{fill},{reads} --num 2000 --reads 200 --batch-size 7");
        let reports = reports(&line);
        for report in &reports[1..] {
            let expected = if report.name == "readtocache" {
                2000
            } else {
                found
            };
            assert_eq!(report.found, expected, "{fill} {}", report.name);
            assert!(report.repeatable);
        }
        // All data is in one table, and a scan begins with a seek.
        assert_eq!(named(&reports, "seek10").runs_per_seek, Some(1.0));
    }
    let reports = reports(&format!("fillrandom,{reads} --num 2000 --reads 200"));
    assert!((100..160).contains(&named(&reports, "readrandom").found));
}

#[test]
fn walks_in_both_directions_meet_the_same_entries() {
    for threads in [1, 3] {
        let line = format!("fillrandom,readseq,readreverse --num 3000 --threads {threads}");
        let reports = reports(&line);
        assert_eq!(reports[1].checksum, reports[2].checksum);
        assert!(reports[1].found == reports[2].found && reports[1].found > 1500);
    }
}

#[test]
fn batches_write_what_single_writes_write() {
    let checksum = |fill: &str, batch: u32| {
        let line = format!("{fill},readseq --num 2500 --threads 2 --batch-size {batch}");
        let reports = reports(&line);
        assert_eq!(reports[0].ops, 2500);
        assert_eq!(reports[0].live_bytes, Some(2500 * 116));
        reports[1].checksum.clone()
    };
    let expected = checksum("fillseq", 1);
    assert_eq!(checksum("fillseq", 64), expected);
    assert_eq!(checksum("fillbatch", 1), expected);
}

#[test]
fn values_grow_by_appending() {
    let reports = reports("fillseq,appendrandom,readseq --num 20 --ops 400 --value-size 50");
    // Each value has had twenty appends of 50 bytes.
    let (written, first) = (reports[1].written_bytes, reports[0].written_bytes);
    assert!(written > 5 * first, "{written} {first}");
    assert_eq!(reports[2].found, 20);
}

#[test]
fn large_values_are_read_back() {
    let reports = reports("fill100K,readseq,overwrite,readseq --num 5000");
    assert_eq!(reports[0].ops, 5);
    assert!(reports[0].live_bytes.unwrap() >= 3 * 100_000);
    assert!((1..=5).contains(&reports[1].found) && reports[3].found > 2500);
}

#[test]
fn live_bytes_of_several_sizes_are_unknown_after_deletes() {
    // Each key has a value of another size than the delete assumes.
    for seed in 0..4 {
        let line = format!("fillseq,deleteseq --mix SD --num 10 --seed {seed}");
        assert_eq!(reports(&line)[1].live_bytes, None);
    }
}

#[test]
fn loads_end_by_the_clock() {
    let loads = "fillrandom,readrandom,ycsb-load,ycsb-d";
    let reports = reports(&format!("{loads} --num 500 --duration 0.05"));
    for report in &reports {
        assert!(report.ops > 0, "{}", report.name);
        let is_timed = report.name != "ycsb-load";
        // ycsb-d may have reached its own bound.
        let is_whole = report.ops == 20 * 500 && report.name == "ycsb-d";
        assert_eq!(report.repeatable, !is_timed || is_whole, "{}", report.name);
        assert!(!is_timed || report.ops != 500);
    }
    // Inserts are bounded by the capacity: twice the records.
    assert!(reports[3].ops <= 20 * 500);
    // The same bound applies to larger requests.
    let asked = "--num 500 --ops 1000000000000 --duration 3600";
    assert_eq!(
        self::reports(&format!("ycsb-load,ycsb-d {asked}"))[1].ops,
        10_000
    );
    // The first bound ends the load.
    let bounded = self::reports("fillseq,readrandom --num 500 --duration 3600 --reads 70");
    assert_eq!((bounded[0].ops, bounded[1].ops), (500, 70));
}

#[test]
fn readers_with_a_writer_last_their_whole_duration() {
    let line = "fillseq,readwhilewriting --num 500 --reads 10";
    let timed = &reports(&format!("{line} --duration 0.2"))[1];
    assert!(timed.ops > 10 && timed.companion.is_some());
    assert!(timed.seconds >= 0.2);
    // The load has no warm-up, which would write.
    let cold = reports(&format!("{line} --warm-up 86400s"));
    assert_eq!(cold[1].ops, 10);
}

#[test]
fn loads_that_end_before_the_deadline_are_repeatable() {
    let loads =
        "fillseq,readrandom,overwrite,seek10,multireadrandom --num 500 --ops 70 --batch-size 7";
    for threads in [1, 2] {
        let free = reports(&format!("{loads} --threads {threads}"));
        let timed = reports(&format!("{loads} --threads {threads} --duration 3600"));
        for (free, timed) in free.iter().zip(&timed) {
            assert!(free.repeatable && timed.repeatable, "{}", timed.name);
            assert_eq!(timed.checksum, free.checksum, "{}", timed.name);
        }
    }
    // A load that the clock ends is not repeatable, nor are the loads after one that wrote.
    let cut = reports("fillseq,overwrite,readrandom --num 500 --duration 0.05 --reads 70");
    let repeatable: Vec<bool> = cut.iter().map(|report| report.repeatable).collect();
    assert_eq!(repeatable, [true, false, false]);
}

#[test]
fn a_warm_up_is_not_counted() {
    let line = "fillseq,readrandom,readseq,overwrite --num 500 --ops 100";
    let cold = reports(line);
    // The last warm-up cuts each walk short.
    for warm_up in ["--warm-up 400", "--warm_up 0.01s", "--warm-up 0.000001s"] {
        let warm = reports(&format!("{line} {warm_up}"));
        for (warm, cold) in warm.iter().zip(&cold) {
            assert_eq!((warm.ops, &warm.checksum), (cold.ops, &cold.checksum));
        }
    }
}

#[test]
fn contradictions_are_refused() {
    for (line, says) in [
        ("fillseq --use-existing-db --db /nowhere", "existing store"),
        ("replay", "--trace"),
        ("compress --compression zstd", "LZ4"),
        ("uncompress --compression zstd", "LZ4"),
        (
            "ycsb-load,ycsb-b --benchmark-write-rate-limit 1M",
            "use --rate",
        ),
    ] {
        let error = try_reports(&args(line)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{line}");
        assert!(error.to_string().contains(says), "{error}");
    }
    assert!(try_reports(&args("replay --trace /nowhere/trace")).is_err());
}

#[test]
fn refused_arguments_do_not_change_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display();
    let trace = folder.path().join("trace");
    std::fs::write(&trace, "a get\n").unwrap();
    reports(&format!("fillseq --num 70 --db {path}"));
    for (line, says) in [
        ("mixgraph --num 10", "ranges"),
        ("mixgraph --mix-get-ratio nan", "fractions"),
        ("mixgraph --mix-max-value-size 9", "10 bytes"),
        ("mixgraph --mix-max-value-size 100GB", "limit"),
        ("mixgraph --sine-mix-rate --sine-a nan", "numbers"),
        ("mixgraph --sine-mix-rate --sine-c inf", "numbers"),
        ("mixgraph --sine-mix-rate --sine-a 2 --sine-d=-2", "above 0"),
        ("mixgraph --sine-mix-rate --rate 100", "--rate"),
        ("ycsb-a", "ycsb-load"),
        (
            "ycsb-load,ycsb-a,readwhilewriting,ycsb-c",
            "readwhilewriting",
        ),
        ("ycsb-load,ycsb-d,overwrite,ycsb-e", "overwrite"),
        (
            "ycsb-load,ycsb-a,ycsb-d --num 990 --ops 1000 --key-size 3",
            "too short",
        ),
        ("replay --trace .", "regular file"),
        ("deleteseq --memtable-bytes 8EiB", "memtable_bytes"),
    ] {
        let line = format!("fillseq,{line} --db {path}");
        let error = try_reports(&args(&line)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{line}: {error}");
        assert!(error.to_string().contains(says), "{line}: {error}");
    }
    for fill in [Load::FillSeq, Load::YcsbLoad] {
        // More keys than any memory holds.
        let huge = BenchArgs {
            num: 1 << 53,
            db: Some(folder.path().to_owned()),
            ..BenchArgs::new(vec![fill])
        };
        let error = try_reports(&huge).unwrap_err();
        assert!(error.to_string().contains("state of the keys"), "{error}");
    }
    let left = reports(&format!(
        "replay,readseq --num 1000 --trace {} --db {path}",
        trace.display()
    ));
    assert_eq!(left[1].found, 70);
    // Valid arguments run.
    let line = "ycsb-load,deleteseq,readrandom,ycsb-d,ycsb-d,compact --num 900 --ops 400";
    assert!(reports(line)[4].operations[1].ops > 0);
}

#[test]
fn an_invalid_line_ends_a_replay() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.txt");
    std::fs::write(&trace, "a put 10\na get\na frobnicate 1\n").unwrap();
    let error = try_reports(&args(&format!("replay --trace {}", trace.display()))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("line 3"), "{error}");
}

#[test]
fn mixgraph_keeps_its_fractions() {
    let reports = reports("fillrandom,mixgraph,mixgraph,readseq --num 3000 --ops 3000");
    let kinds: Vec<_> = reports[1]
        .operations
        .iter()
        .map(|kind| kind.operation)
        .collect();
    assert_eq!(kinds, [Operation::Read, Operation::Write, Operation::Seek]);
    let reads = reports[1].operations[0].ops;
    assert!((2400..2600).contains(&reads), "{reads}");
    assert!(reports.iter().all(|report| report.repeatable));
    // The same keys stay hot, so later reads find earlier writes.
    assert!(reports[2].found > reports[1].found);
}

#[test]
fn histograms_have_a_line_for_each_point() {
    let reports = reports("fillseq --num 100");
    let lines = histogram(&reports[0]);
    assert_eq!(lines.lines().count(), reports[0].latency_curve.len());
    assert!(lines.contains("100.00000 %"));
}

#[test]
fn each_kind_of_operation_has_a_curve() {
    let reports = reports("ycsb-load,ycsb-a --num 2000");
    let mixed = &reports[1];
    assert_eq!(mixed.operations.len(), 2);
    for kind in &mixed.operations {
        let slowest = kind.latency_curve.last().unwrap();
        assert!(
            (slowest.us / kind.latency.max_us - 1.0).abs() < 0.01,
            "{kind:?}"
        );
    }
    let curves = mixed
        .operations
        .iter()
        .map(|kind| kind.latency_curve.len() + 1);
    let lines = histogram(mixed);
    let expected = mixed.latency_curve.len() + curves.sum::<usize>();
    assert_eq!(lines.lines().count(), expected, "{lines}");
    let headings = lines.lines().filter(|line| !line.ends_with("us"));
    assert_eq!(
        headings.map(str::trim).collect::<Vec<_>>(),
        ["read", "update"]
    );
}

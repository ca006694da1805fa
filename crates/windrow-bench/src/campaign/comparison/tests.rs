//! Comparisons: medians, ratios, loads that are not there, and checksums.

use super::*;

/// A report with these figures and nothing else.
fn report(engine: &str, kops: u32, space: Option<f64>, checksum: &str) -> Report {
    let io_stats = match engine {
        "windrow" => json!([{ "purpose": "log", "written_bytes": 30, "read_bytes": 10 }]),
        _ => json!([]),
    };
    let whole = json!({
        "name": "ycsb-a", "engine": engine, "ops": 1000, "seconds": 1.0,
        "settled_seconds": 1.0, "ops_per_second": f64::from(kops) * 2e3,
        "settled_ops_per_second": f64::from(kops) * 1e3,
        "cpu_seconds": 1.0, "cpu_us_per_op": 7.5,
        "p50_us": 1.0, "p95_us": 2.0, "p99_us": 3.0, "p999_us": 4.0, "max_us": 5.0,
        "latency_curve": [], "operations": [], "found": 1, "checksum": checksum,
        "repeatable": true, "user_bytes": 10, "write_amplification": 3.0, "io_amplification": 4.0,
        "separated_reads": { "transient_log_reads": 0, "value_log_reads": 0, "prefetched": 0 },
        "read_bytes": 10, "written_bytes": 30, "io_stats": io_stats,
        "device_reads_per_op": 1.5, "device_read_bytes_per_op": 6144.0,
        "device_written_bytes_per_op": 512.0,
        "process_read_bytes": 20, "process_written_bytes": 35,
        "peak_memory_bytes": 64 << 20, "stall_seconds": 0.0, "stalls_by_cause": [],
        "disk_bytes": 1, "space_amplification": space, "levels": [], "series": [],
    });
    serde_json::from_value(whole).unwrap()
}

fn run(engine: &str, round: u32, report: Report) -> Run {
    Run {
        label: format!("{engine} {round}"),
        engine: engine.to_owned(),
        round,
        group: "group".to_owned(),
        command: String::new(),
        reports: vec![report],
    }
}

#[test]
fn engines_are_compared_by_their_medians() {
    let runs = [
        run("windrow", 0, report("windrow", 90, Some(1.5), "a")),
        run("windrow", 1, report("windrow", 100, Some(1.25), "a")),
        run("windrow", 2, report("windrow", 400, Some(1.5), "a")),
        run("rocksdb", 0, report("rocksdb", 50, None, "a")),
    ];
    let runs: Vec<&Run> = runs.iter().collect();
    let comparisons = Comparison::all(&["windrow", "rocksdb", "broken"], &runs);
    assert_eq!(comparisons.len(), 1);
    let object = comparisons[0].object("group");
    let [windrow, rocksdb, broken] = [0, 1, 2].map(|place| &object["engines"][place]);
    assert_eq!(windrow[SETTLED]["median"], 1e5);
    assert_eq!(windrow[SETTLED]["min"], 9e4);
    assert_eq!(windrow[SETTLED]["max"], 4e5);
    assert_eq!(windrow[SPACE]["median"], 1.5);
    assert_eq!(rocksdb[SETTLED]["ratio"], 2.0);
    assert_eq!(rocksdb[SPACE], Value::Null);
    for engine in [windrow, rocksdb] {
        assert_eq!(engine[WRITTEN]["median"], 3.5);
        assert_eq!(engine["process_read_per_user_byte"]["median"], 2.0);
    }
    assert_eq!(windrow[OWN_WRITTEN]["median"], 3.0);
    for own in [
        OWN_WRITTEN,
        "io_amplification",
        "read_bytes",
        "written_bytes",
    ] {
        assert_eq!(rocksdb[own], Value::Null);
    }
    assert_eq!(broken["rounds"], 0);
    let lines = comparisons[0].lines();
    let lines: Vec<Vec<&str>> = lines
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let words = |line: &str| {
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        lines[0],
        words(
            "ycsb-a windrow 200.0 100.0 90.0 to 400.0 7.50 3.50x 3.00x 1.50x 3.0 64 1.500 6144 512 - -"
        )
    );
    assert_eq!(
        lines[1],
        words("rocksdb 100.0 50.0 2.00x 7.50 3.50x - - 3.0 64 1.500 6144 512 - -")
    );
    assert_eq!(lines[2], words("broken failed"));
}

/// A run of `engine` with one report for each of `loads`, which have their names as checksums.
fn run_with(engine: &str, loads: &[&str]) -> Run {
    let mut run = run(engine, 0, report(engine, 1, None, ""));
    let report = run.reports.remove(0);
    let named = loads.iter().map(|&name| Report {
        name: name.to_owned(),
        checksum: format!("{engine} {name}"),
        ..report.clone()
    });
    run.reports = named.collect();
    run
}

#[test]
fn loads_that_an_engine_leaves_out_are_not_there() {
    let first = run_with(
        "windrow",
        &["fill", "merge", "read", "fill", "range", "read"],
    );
    let other = run_with("leveldb", &["fill", "read", "fill", "scan", "read"]);
    let engines = ["windrow", "leveldb", "broken"];
    for runs in [[&first, &other], [&other, &first]] {
        let comparisons = Comparison::all(&engines, &runs);
        let loads: Vec<&str> = comparisons.iter().map(|load| load.load).collect();
        assert_eq!(loads.len(), 7);
        assert_eq!(loads[..4], ["fill", "merge", "read", "fill"]);
        assert_eq!(loads[6], "read");
        for comparison in &comparisons {
            let lines = comparison.lines();
            let lines: Vec<&str> = lines.lines().collect();
            let is_there = |engine: usize| !lines[engine].ends_with("not there");
            assert_eq!(is_there(0), comparison.load != "scan");
            assert_eq!(is_there(1), !["merge", "range"].contains(&comparison.load));
            assert!(lines[2].ends_with("failed"));
            let object = comparison.object("group");
            assert_eq!(object["engines"][1]["left_out"], !is_there(1));
            assert_eq!(object["engines"][2]["left_out"], false);
        }
    }
}

#[test]
fn data_after_other_loads_is_not_compared() {
    let all = |loads: [&[&str]; 2]| {
        let mut runs = [run_with("a", loads[0]), run_with("b", loads[1])];
        for run in &mut runs {
            // The first load reads the same.
            run.reports[0].checksum.clear();
        }
        check_checksums(&[&runs[0], &runs[1]])
    };
    assert!(all([&["fill", "merge", "read"], &["fill", "read"]]).is_ok());
    assert!(all([&["fill", "read"], &["fill", "read"]]).is_err());
}

#[test]
fn dropped_caches_stand_below_the_settings() {
    let mut cold = run("windrow", 0, report("windrow", 1, None, "a"));
    assert!(!settings_lines(&["windrow"], &[&cold]).contains("dropped"));
    let object = settings_object("group", &["windrow"], &[&cold]);
    assert_eq!(object["dropped_caches"], Value::Null);
    // No caches are dropped before a fill.
    cold.reports.push(Report {
        dropped_caches: Some(DroppedCaches::StoreFiles),
        ..cold.reports[0].clone()
    });
    let lines = settings_lines(&["windrow"], &[&cold]);
    let last = "dropped before each load: the cached pages of the store's files";
    assert_eq!(lines.lines().last(), Some(last));
    let object = settings_object("group", &["windrow"], &[&cold]);
    assert_eq!(object["dropped_caches"], "store_files");
}

#[test]
fn different_checksums_are_an_error() {
    let first = run("windrow", 0, report("windrow", 1, None, "a"));
    let same = run("rocksdb", 0, report("rocksdb", 1, None, "a"));
    let mut other = run("fjall", 0, report("fjall", 1, None, "b"));
    assert!(check_checksums(&[&first, &same]).is_ok());
    assert!(check_checksums(&[&first, &same, &other]).is_err());
    other.reports[0].ops += 1;
    assert!(check_checksums(&[&first, &same, &other]).is_ok());
}

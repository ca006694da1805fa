//! `stats` and `levels`, and the JSON of every command.

use std::fs;

use tempfile::TempDir;

use crate::common::{code, done, json, windrow};

#[test]
fn every_command_speaks_json() {
    let folder = TempDir::new().unwrap();
    for key in ["a", "b", "c"] {
        done(&windrow(&folder, &["put", "db", key, "1", "--json"]));
    }
    assert_eq!(
        json(&windrow(&folder, &["--json", "scan", "db"]))["key"],
        "c"
    );
    let stats = json(&windrow(&folder, &["stats", "db", "--json"]));
    assert!(stats["disk_bytes"].as_u64().unwrap() > 0);
    let levels = json(&windrow(&folder, &["levels", "db", "--json"]));
    assert_eq!(levels["keyspaces"][0]["name"], "default");
    let compacted = json(&windrow(&folder, &["compact", "db", "--json"]));
    assert!(compacted["disk_bytes_after"].is_u64());
    let verified = json(&windrow(&folder, &["verify", "db", "--json"]));
    assert_eq!(verified["sound"], true);
    let bench = ["bench", "fillseq,readseq", "--num", "100", "--json"];
    let report = json(&windrow(&folder, &bench));
    assert_eq!(
        (&report["name"], &report["found"]),
        (&"readseq".into(), &100.into())
    );
    let ycsb = [
        "bench",
        "ycsb-load,ycsb-f",
        "--mix",
        "sd",
        "--records",
        "500",
        "--json",
    ];
    let report = json(&windrow(&folder, &ycsb));
    assert_eq!(report["operations"][1]["operation"], "read-modify-write");
    assert!(report["operations"][1]["p999_us"].is_f64() && report["p95_us"].is_f64());
    assert!(report["space_amplification"].is_f64() && report["block_reads_per_op"].is_f64());
    let values = json(&windrow(&folder, &["values", "db", "--json"]));
    assert_eq!(values["keyspaces"][0]["name"], "default");
    for command in ["stats", "levels", "values", "verify", "scan"] {
        assert!(
            !done(&windrow(&folder, &[command, "db"])).is_empty(),
            "{command}"
        );
    }
}

#[test]
fn statistics_can_be_read_by_prometheus() {
    let folder = TempDir::new().unwrap();
    done(&windrow(&folder, &["put", "db", "a", "1"]));
    done(&windrow(&folder, &["compact", "db"]));
    done(&windrow(&folder, &["put", "db", "b", "2"]));
    let output = windrow(&folder, &["stats", "db", "--prometheus"]);
    let metrics = done(&output);
    for line in [
        "# HELP windrow_disk_bytes Bytes of all files of the database, with the reserve.",
        "# TYPE windrow_disk_bytes gauge",
        "# TYPE windrow_wal_written_bytes_total counter",
        "windrow_sequence_number 2",
        "windrow_user_writes_total 2",
        "windrow_memtable_entries{keyspace=\"default\"} 1",
        "windrow_level_entries{keyspace=\"default\",level=\"1\"} 1",
        "windrow_memtables{keyspace=\"default\"} 1",
        "windrow_level_false_positive_reads{keyspace=\"default\",level=\"0\"} 0",
    ] {
        assert!(
            metrics.lines().any(|found| found == line),
            "{line} in {metrics}"
        );
    }
    let both = ["stats", "db", "--prometheus", "--json"];
    assert_eq!(code(&windrow(&folder, &both)), 1);
}

#[test]
fn segments_are_shown() {
    let folder = TempDir::new().unwrap();
    let mut options = windrow::Options::default();
    options.keyspace.memtable_bytes = 64 << 10;
    options.keyspace.file_bytes = 64 << 10;
    options.keyspace.base_bytes = 256 << 10;
    options.keyspace.segment_limit = windrow::SegmentLimit::Fixed(4);
    options.keyspace.max_space_amp = f64::INFINITY;
    let db = windrow::Db::open(folder.path().join("db"), options).unwrap();
    let keyspace = db.keyspace("default").unwrap();
    for step in 0..30_000_u32 {
        let key = step.wrapping_mul(0x9e37_79b9).to_be_bytes();
        keyspace.insert(key, [b'x'; 90]).unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    let levels = db.stats().keyspaces.remove(0).levels;
    db.close().unwrap();
    let appended = levels.iter().find(|level| level.segments > level.files);
    let (level, files, segments) = appended
        .map(|it| (it.level, it.files, it.segments))
        .unwrap();

    let stats = windrow(&folder, &["stats", "db"]);
    let numbers = [level, files, segments].map(|number| number.to_string());
    let is_ruled = |letter: char| letter.is_whitespace() || !letter.is_ascii();
    let cells = |line: &str| -> Vec<String> {
        let cells = line.split(is_ruled).filter(|cell| !cell.is_empty());
        cells.map(String::from).collect()
    };
    let row = |line: &str| cells(line).get(1..4).is_some_and(|it| it == numbers);
    assert!(done(&stats).lines().any(row), "{numbers:?} in {stats:?}");
    for command in ["stats", "levels"] {
        let shown = json(&windrow(&folder, &[command, "db", "--json"]));
        assert_eq!(shown["keyspaces"][0]["levels"][level]["segments"], segments);
    }
    let metrics = windrow(&folder, &["stats", "db", "--prometheus"]);
    let sample =
        format!("windrow_level_segments{{keyspace=\"default\",level=\"{level}\"}} {segments}");
    assert!(done(&metrics).lines().any(|line| line == sample));
}

#[test]
fn commands_that_read_write_nothing() {
    let folder = TempDir::new().unwrap();
    done(&windrow(&folder, &["put", "db", "a", "1"]));
    let state = || {
        let files = fs::read_dir(folder.path().join("db")).unwrap();
        let state = files.map(|file| {
            let file = file.unwrap();
            let metadata = file.metadata().unwrap();
            let changed = metadata.modified().unwrap();
            (file.file_name(), metadata.len(), changed)
        });
        let mut state: Vec<_> = state.collect();
        state.sort();
        state
    };
    let before = state();
    for command in [
        &["get", "db", "a"][..],
        &["scan", "db"],
        &["stats", "db"],
        &["levels", "db"],
        &["values", "db"],
        &["verify", "db"],
    ] {
        done(&windrow(&folder, command));
    }
    assert_eq!(state(), before);
}

#[test]
fn counters_are_those_of_the_whole_life() {
    let folder = TempDir::new().unwrap();
    for key in ["a", "b", "c"] {
        done(&windrow(&folder, &["put", "db", key, "1"]));
    }
    let verified = windrow(&folder, &["verify", "db"]);
    let line = "sound: 3 entries (3 in the log); ";
    assert!(done(&verified).starts_with(line), "{verified:?}");
    let levels = windrow(&folder, &["levels", "db"]);
    assert!(done(&levels).contains("3 entries ("), "{levels:?}");
    done(&windrow(&folder, &["compact", "db"]));
    let verified = json(&windrow(&folder, &["verify", "db", "--json"]));
    let entries = (&verified["entries"], &verified["unflushed_entries"]);
    assert_eq!(entries, (&3.into(), &0.into()));
    let stats = json(&windrow(&folder, &["stats", "db", "--json"]));
    assert_eq!(stats["lifetime"]["user_writes"], 3);
    let stats = windrow(&folder, &["stats", "db"]);
    let rows: Vec<&str> = done(&stats).lines().collect();
    let has_row = |name: &str| rows.iter().any(|row| row.contains(name));
    assert!(
        has_row("since creation: given by writers") && has_row("flushes"),
        "{rows:?}"
    );
    // Nothing of this kind has happened.
    assert!(!has_row("garbage collections"), "{rows:?}");
}

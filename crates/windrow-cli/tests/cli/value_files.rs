//! Value files in `values`, `stats`, `levels` and `dump`.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::common::{code, done, json, windrow};

#[test]
fn value_logs_are_shown() {
    let folder = TempDir::new().unwrap();
    let mut options = windrow::Options::default();
    (options.keyspace.medium_from, options.keyspace.large_from) = (300, 300);
    let db = windrow::Db::open(folder.path().join("db"), options).unwrap();
    db.keyspace("default")
        .unwrap()
        .insert("large", [b'x'; 1000])
        .unwrap();
    db.close().unwrap();
    let get = windrow(&folder, &["get", "db", "large"]);
    assert_eq!(done(&get), "x".repeat(1000) + "\n");

    // The checksum, the codec, the key and the lengths take 13 bytes.
    let both = [
        "1013 B of values in 1 file, 0 B live, 0 B garbage, 1013 B unflushed",
        "value logs",
    ];
    let levels = windrow(&folder, &["levels", "db"]);
    let line = |line: &&str| both.iter().all(|part| line.contains(part));
    assert!(done(&levels).lines().any(|it| line(&it)), "{levels:?}");
    let row = |line: &str| line.contains("value logs") && line.contains("1013 B");
    let stats = windrow(&folder, &["stats", "db"]);
    assert!(done(&stats).lines().any(row), "{stats:?}");
    let stats = json(&windrow(&folder, &["stats", "db", "--json"]));
    assert_eq!(stats["value_log_bytes"], 0);
    for command in ["stats", "levels"] {
        let shown = json(&windrow(&folder, &[command, "db", "--json"]));
        let logs = &shown["keyspaces"][0]["value_logs"];
        assert_eq!((&logs["files"], &logs["bytes"]), (&1.into(), &1013.into()));
        assert_eq!(logs["live_bytes"], 0);
    }
    let metrics = windrow(&folder, &["stats", "db", "--prometheus"]);
    let sample = "windrow_value_log_bytes{keyspace=\"default\"} 1013";
    assert!(done(&metrics).lines().any(|line| line == sample));

    let files = fs::read_dir(folder.path().join("db")).unwrap();
    let log = files
        .map(|file| file.unwrap().path())
        .find(|path| path.extension().is_some_and(|end| end == "values"));
    let dump = windrow(&folder, &["dump", log.unwrap().to_str().unwrap()]);
    let record = "key \"large\", value_bytes 1000, checksum verified";
    assert!(done(&dump).contains(record), "{dump:?}");
}

/// A transient log that is half garbage, value logs of which one is collected, and a value that is not flushed.
fn with_value_files(folder: &Path) {
    let mut options = windrow::Options::default();
    let keyspace = &mut options.keyspace;
    keyspace.medium_in_place = windrow::MediumInPlace::Never;
    keyspace.max_space_amp = 1.1;
    keyspace.file_bytes = 4 << 10;
    keyspace.base_bytes = 1 << 20;
    keyspace.level0_runs = 1;
    let db = windrow::Db::open(folder.join("db"), options).unwrap();
    db.keyspace("empty").unwrap();
    let map = db.keyspace("map").unwrap();
    let put = |key: u8, length: usize| map.insert([key], vec![key; length]).unwrap();
    for half in [100..104, 100..102] {
        half.for_each(|key| put(key, 200));
        db.flush().unwrap();
    }
    // A log is full with 16 KiB.
    (0..32).for_each(|key| put(key, 2000));
    db.flush().unwrap();
    // Every other one becomes garbage, and value logs are collected.
    (0..32).step_by(2).for_each(|key| put(key, 20));
    db.flush().unwrap();
    db.wait_idle().unwrap();
    assert!(db.stats().garbage_collections > 0, "{:?}", db.stats());
    put(77, 3000);
    db.close().unwrap();
}

#[test]
fn value_files_are_listed() {
    let folder = TempDir::new().unwrap();
    with_value_files(folder.path());
    let shown = json(&windrow(&folder, &["values", "db", "--json"]));
    assert_eq!(shown["keyspaces"][0]["name"], "empty");
    assert_eq!(shown["keyspaces"][0]["files"], Value::Array(Vec::new()));
    let map = &shown["keyspaces"][1];
    let files = map["files"].as_array().unwrap();
    let number = |value: &Value| value.as_u64().unwrap();
    // Those with most garbage first.
    assert!(files.is_sorted_by_key(|file| std::cmp::Reverse(number(&file["garbage_bytes"]))));
    let of = |kind: &str| -> Vec<&Value> {
        let files = files.iter();
        files.filter(|file| file["kind"] == kind).collect()
    };
    // They are what statistics count, and each is what a file of the folder holds.
    let stats = json(&windrow(&folder, &["stats", "db", "--json"]));
    let stats = &stats["keyspaces"][1];
    let sum = |kinds: &[&str], field: &str| -> u64 {
        let files = kinds.iter().flat_map(|kind| of(kind));
        files.map(|file| number(&file[field])).sum()
    };
    for field in ["bytes", "live_bytes", "garbage_bytes"] {
        assert_eq!(
            sum(&["transient_log"], field),
            number(&stats["transient_logs"][field])
        );
        let logs = sum(&["value_log", "gc_output"], field);
        assert_eq!(logs, number(&stats["value_logs"][field]));
    }
    assert_eq!(map["transient_log_bytes"], stats["transient_logs"]["bytes"]);
    for file in files {
        let path = format!("db/{:06}.values", number(&file["number"]));
        let length = fs::metadata(folder.path().join(path)).unwrap().len();
        assert!(number(&file["bytes"]) <= length, "{file}");
        let referred = file["references"].as_array().unwrap().iter();
        let values: u64 = referred.map(|level| number(&level["values"])).sum();
        assert_eq!(values, number(&file["live_values"]), "{file}");
    }
    // Of six values in transient logs, two are garbage.
    assert_eq!(sum(&["transient_log"], "live_values"), 4);
    assert_eq!(sum(&["value_log", "gc_output"], "live_values"), 16);
    assert!(
        of("gc_output")
            .iter()
            .all(|file| file["garbage_bytes"] == 0)
    );
    let kinds = map["kinds"].as_array().unwrap();
    for kind in kinds {
        let name = kind["kind"].as_str().unwrap();
        assert_eq!(number(&kind["files"]), of(name).len() as u64);
        assert_eq!(number(&kind["bytes"]), sum(&[name], "bytes"));
    }

    let first = windrow(&folder, &["values", "db", "--limit", "1", "--json"]);
    let first = &json(&first)["keyspaces"][1];
    assert_eq!(first["files"].as_array().unwrap(), &files[..1]);
    assert_eq!(first["kinds"], map["kinds"]);

    let listed = windrow(&folder, &["values", "db"]);
    let listed = done(&listed);
    assert!(listed.contains("empty: no value files"), "{listed}");
    for kind in ["transient_log", "value_log", "gc_output"] {
        // An open for reading seals nothing: "value_log, open".
        let is_kind = |word: &str| word.trim_end_matches(',') == kind;
        let is_of_kind = |line: &str| line.split_whitespace().any(is_kind);
        // One row for each file and one for all of the kind.
        let rows = listed.lines().filter(|line| is_of_kind(line)).count();
        assert_eq!(rows, of(kind).len() + 1, "{kind} in {listed}");
        assert!(rows > 1, "{kind} in {listed}");
    }
    assert!(listed.contains("level 1: 1 table"), "{listed}");
    assert_eq!(code(&windrow(&folder, &["values", "nothing"])), 1);
}

//! The program as a person or a script meets it: output, JSON and exit codes.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "these tests run the program on real files, and fail by panicking"
)]

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// Runs the program in `folder` with `input` on standard input.
fn windrow_with(folder: &Path, arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_windrow"))
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The program may end before it has read everything.
    drop(child.stdin.take().unwrap().write_all(input));
    child.wait_with_output().unwrap()
}

fn windrow(folder: &TempDir, arguments: &[&str]) -> Output {
    windrow_with(folder.path(), arguments, b"")
}

/// Runs a line of shell in `folder`, in which `windrow` is the program.
fn shell(folder: &Path, line: &str) -> Output {
    let line = line.replace("windrow", env!("CARGO_BIN_EXE_windrow"));
    Command::new("bash")
        .args(["-o", "pipefail", "-c", &line])
        .current_dir(folder)
        .output()
        .unwrap()
}

fn text(output: &Output) -> &str {
    str::from_utf8(&output.stdout).unwrap()
}

fn problem(output: &Output) -> &str {
    str::from_utf8(&output.stderr).unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

#[track_caller]
fn done(output: &Output) -> &str {
    assert_eq!(code(output), 0, "{}", problem(output));
    text(output)
}

fn json(output: &Output) -> Value {
    serde_json::from_str(done(output).lines().last().unwrap()).unwrap()
}

#[test]
fn entries_go_in_come_out_and_go_away() {
    let folder = TempDir::new().unwrap();
    done(&windrow(&folder, &["put", "db", "user:1", "Ada"]));
    done(&windrow(
        &folder,
        &["put", "db", "0xff00", "0xcafe", "--sync"],
    ));
    done(&windrow_with(
        folder.path(),
        &["put", "db", "piped"],
        b"a\nb\x00",
    ));

    assert_eq!(done(&windrow(&folder, &["get", "db", "user:1"])), "Ada\n");
    assert_eq!(
        done(&windrow(&folder, &["get", "db", "ff00", "--hex"])),
        "\\xca\\xfe\n"
    );
    let raw = windrow(&folder, &["get", "db", "piped", "--raw"]);
    assert_eq!(raw.stdout, b"a\nb\x00");
    let object = json(&windrow(&folder, &["get", "db", "0xff00", "--json"]));
    assert_eq!(object["value_hex"], "cafe");

    assert_eq!(done(&windrow(&folder, &["delete", "db", "user:1"])), "");
    assert_eq!(code(&windrow(&folder, &["delete", "db", "user:1"])), 1);
    let missing = windrow(&folder, &["get", "db", "user:1"]);
    assert_eq!((code(&missing), text(&missing)), (1, ""));
}

#[test]
fn scans_respect_bounds_prefix_direction_and_limit() {
    let folder = TempDir::new().unwrap();
    let entries = b"a\t1\nab\t2\nb\t3\nba\t4\nc\t5\n";
    done(&windrow_with(
        folder.path(),
        &["load", "db", "--format", "tsv"],
        entries,
    ));
    let keys = |arguments: &[&str]| {
        let arguments = [&["scan", "db", "--keys-only"], arguments].concat();
        done(&windrow(&folder, &arguments))
            .lines()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(keys(&[]), ["a", "ab", "b", "ba", "c"]);
    assert_eq!(keys(&["--reverse", "--limit", "2"]), ["c", "ba"]);
    assert_eq!(keys(&["--prefix", "b"]), ["b", "ba"]);
    assert_eq!(keys(&["--from", "ab", "--to", "ba"]), ["ab", "b"]);
    assert_eq!(
        keys(&["--prefix", "b", "--from", "ba", "--reverse"]),
        ["ba"]
    );
    assert!(keys(&["--from", "b", "--to", "b"]).is_empty());
    assert!(keys(&["--from", "c", "--prefix", "b"]).is_empty());
    assert_eq!(
        done(&windrow(&folder, &["scan", "db", "--limit", "1"])),
        "a\t1\n"
    );
}

#[test]
fn what_a_scan_prints_can_be_loaded() {
    let folder = TempDir::new().unwrap();
    let lines = b"{\"key\":\"a\",\"value\":\"1\"}\n{\"key_hex\":\"ff\",\"value_hex\":\"00fe\"}\n";
    let load = ["load", "one", "--format", "jsonl", "--json"];
    let loaded = json(&windrow_with(folder.path(), &load, lines));
    assert_eq!(loaded["entries"], 2);
    let first = windrow(&folder, &["scan", "one", "--json"]);
    let load = ["load", "two", "--format", "jsonl"];
    done(&windrow_with(folder.path(), &load, &first.stdout));
    let second = windrow(&folder, &["scan", "two", "--json"]);
    assert_eq!(done(&first), done(&second));
}

#[test]
fn folders_and_lines_load() {
    let folder = TempDir::new().unwrap();
    fs::create_dir_all(folder.path().join("in/sub")).unwrap();
    fs::write(folder.path().join("in/b.txt"), "beta").unwrap();
    fs::write(folder.path().join("in/sub/a.txt"), "alpha\nline\n").unwrap();
    done(&windrow(
        &folder,
        &["load", "db", "in", "--keyspace", "files"],
    ));
    let scan = windrow(&folder, &["scan", "db", "--keyspace", "files"]);
    assert_eq!(done(&scan), "b.txt\tbeta\nsub/a.txt\talpha\\nline\\n\n");
    symlink("in", folder.path().join("link")).unwrap();
    let linked = json(&windrow(&folder, &["load", "linked", "link", "--json"]));
    assert_eq!(linked["entries"], 2);

    done(&windrow_with(
        folder.path(),
        &["load", "db"],
        b"first\r\nlast",
    ));
    let scan = windrow(&folder, &["scan", "db"]);
    assert_eq!(
        done(&scan),
        "0000000000000001\tfirst\n0000000000000002\tlast\n"
    );
}

#[test]
fn faults_name_the_line_and_keep_what_came_before() {
    let folder = TempDir::new().unwrap();
    let load = ["load", "db", "--format", "tsv"];
    let output = windrow_with(folder.path(), &load, b"a\t1\nno tab\nb\t2\n");
    assert_eq!(code(&output), 1);
    assert!(problem(&output).contains("line 2"), "{}", problem(&output));
    assert_eq!(done(&windrow(&folder, &["scan", "db"])), "a\t1\n");

    let output = windrow_with(folder.path(), &load, b"\tempty key\n");
    assert_eq!(code(&output), 1);
    assert!(problem(&output).contains("line 1"), "{}", problem(&output));

    let load = ["load", "json", "--format", "jsonl"];
    let output = windrow_with(
        folder.path(),
        &load,
        b"{\"key\":\"a\",\"value\":1.0}\n\n \r\n{\"key\"",
    );
    assert_eq!(code(&output), 1);
    assert!(problem(&output).contains("line 4"), "{}", problem(&output));
    assert_eq!(problem(&output).matches("line").count(), 1);
    let output = windrow_with(folder.path(), &load, b"{\"key\":\"b\",\"value\":1e3}\n\n");
    done(&output);
    let scan = windrow(&folder, &["scan", "json"]);
    assert_eq!(done(&scan), "a\t1.0\nb\t1e3\n");
}

/// The message of the first fault survives what follows from it.
#[test]
fn a_write_that_fails_names_the_line() {
    let folder = TempDir::new().unwrap();
    let lines = "line\n".repeat(100_000);
    fs::write(folder.path().join("lines"), lines).unwrap();
    let load = "trap '' XFSZ; ulimit -f 512; windrow load db lines";
    let output = shell(folder.path(), load);
    assert_eq!(code(&output), 2, "{}", problem(&output));
    for part in ["stopped after", "lines, line ", ".wal"] {
        assert!(problem(&output).contains(part), "{}", problem(&output));
    }
}

#[test]
fn wrong_requests_end_with_one() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    done(&windrow(&folder, &["put", "db", "a", "1"]));
    let long = "k".repeat(64 * 1024 + 1);
    for arguments in [
        &["get", "nowhere", "a"][..],
        &["get", "db", "a", "--keyspace", "nowhere"],
        &["get", "db", ""],
        &["get", "db", "0xabc"],
        &["get", "db", &long],
        &["put", "db", "", "x"],
        &["scan", "nowhere"],
        &["levels", "nowhere"],
        &["verify", "nowhere"],
        &["no-such-command"],
        &["scan"],
        &["demo", "--input", "nowhere"],
        &["load", "db", "nowhere"],
        &["dump", "nowhere"],
        &["bench", "readrandom", "--num", "10"],
        &["bench", "fillseq", "--size-ratio", "0.5"],
        &["bench", "fillseq", "--num", "1000", "--key-size", "2"],
        &["load", "db", "-", "--format", "folder"],
        &["load", "new", "file", "--format", "folder"],
        &["load", "new", "nowhere", "--format", "folder"],
        &["load", "new", ".", "--format", "tsv"],
        &["load", "new", "file", "--keyspace", ""],
        &["put", "new", "", "x"],
        &["put", "new", &long, "x"],
        &["put", "new", "a", "x", "--keyspace", &long],
        &["scan", "nowhere", "--from", "c", "--prefix", "b"],
        &["scan", "db", "--from", "b", "--to", "a"],
        &["compact", "db", "--from", "b", "--to", "a"],
        &["demo", "--input", "file"],
        &["bench", "fillseq", "--value-size", "18446744073709551615"],
        &["bench", "fillseq", "--key-size", "18446744073709551615"],
        &["bench", "readrandom", "--db", "new"],
        &["bench", "ycsb-a", "--db", "new"],
        &["bench", "ycsb-load", "--value-size", "7", "--db", "new"],
        &["bench", "ycsb-load", "--mix", "SD", "--value-size", "7"],
        &["bench", "fillseq", "--scaling", "2", "--db", "new"],
    ] {
        let output = windrow(&folder, arguments);
        assert_eq!(code(&output), 1, "{arguments:?}: {}", problem(&output));
        assert!(!problem(&output).is_empty(), "{arguments:?}");
        assert!(!problem(&output).contains("panicked"), "{arguments:?}");
    }
    assert!(!folder.path().join("nowhere").exists());
    assert!(!folder.path().join("new").exists());
    let output = windrow(&folder, &["get", "nowhere", "a", "--json"]);
    let object: Value = serde_json::from_str(text(&output)).unwrap();
    assert_eq!(object["error"]["kind"], "NotFound");
}

#[test]
fn the_environment_ends_with_two() {
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("in")).unwrap();
    fs::write(folder.path().join("in/file"), "content").unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    for arguments in [
        &["put", "file/db", "a", "1"][..],
        &["demo", "--input", "in", "--db", "file/db"],
    ] {
        let output = windrow(&folder, arguments);
        assert_eq!(code(&output), 2, "{arguments:?}: {}", problem(&output));
    }
}

#[test]
fn a_database_that_is_open_elsewhere_is_locked() {
    let folder = TempDir::new().unwrap();
    let db = windrow::Db::open(folder.path().join("db"), windrow::Options::default()).unwrap();
    for arguments in [
        &["get", "db", "a"][..],
        &["put", "db", "a", "1"],
        &["verify", "db"],
    ] {
        let output = windrow(&folder, arguments);
        assert_eq!(code(&output), 2, "{arguments:?}: {}", problem(&output));
    }
    db.close().unwrap();
    done(&windrow(&folder, &["put", "db", "a", "1"]));
}

#[test]
fn output_that_cannot_be_written_is_an_error_unless_the_reader_has_enough() {
    let folder = TempDir::new().unwrap();
    let lines = "line\n".repeat(20_000);
    done(&windrow_with(
        folder.path(),
        &["load", "db"],
        lines.as_bytes(),
    ));
    let output = shell(folder.path(), "windrow scan db | head -1");
    assert_eq!((code(&output), problem(&output)), (0, ""));
    if Path::new("/dev/full").exists() {
        let output = shell(folder.path(), "windrow scan db > /dev/full");
        assert_eq!(code(&output), 2, "{}", problem(&output));
    }
}

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
    let all_in_the_log = windrow(&folder, &["verify", "db"]);
    assert!(done(&all_in_the_log).contains("the logs were checked"));
    let verified = json(&windrow(&folder, &["verify", "db", "--json"]));
    assert_eq!(verified["sound"], true);
    assert_eq!(
        json(&windrow(&folder, &["delete", "db", "a", "--json"]))["deleted"],
        1
    );
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
        "# HELP windrow_disk_bytes Bytes of all files of the database, but for the reserve.",
        "# TYPE windrow_disk_bytes gauge",
        "# TYPE windrow_wal_bytes_total counter",
        "windrow_sequence_number 2",
        "windrow_level_entries{keyspace=\"default\",level=\"1\"} 1",
        "windrow_memtables{keyspace=\"default\"} 1",
        "windrow_memory_budget_bytes 536870912",
        "windrow_memory_bytes{part=\"jobs\"} 0",
        "windrow_write_stops_total{cause=\"level-0 runs\"} 0",
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
        "1013 B of values in 1 file, 0 B of it live, 0 B dead",
        "logs",
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

/// A run that is half dead, logs of which one is collected, and a value that is not flushed.
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
    // Every other one dies, and logs are collected.
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
    // Those with most that is dead first.
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
    assert_eq!(map["transient_bytes"], stats["transient_logs"]["bytes"]);
    for file in files {
        let path = format!("db/{:06}.values", number(&file["number"]));
        let length = fs::metadata(folder.path().join(path)).unwrap().len();
        assert!(number(&file["bytes"]) <= length, "{file}");
        let referred = file["references"].as_array().unwrap().iter();
        let values: u64 = referred.map(|level| number(&level["values"])).sum();
        assert_eq!(values, number(&file["live_values"]), "{file}");
    }
    // Of four values in a run two are dead, unless a merge has gathered the rest.
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
        let is_of_kind = |line: &str| line.split_whitespace().any(|word| word == kind);
        // One row for each file and one for all of the kind.
        let rows = listed.lines().filter(|line| is_of_kind(line)).count();
        assert_eq!(rows, of(kind).len() + 1, "{kind} in {listed}");
        assert!(rows > 1, "{kind} in {listed}");
    }
    assert!(listed.contains("level 1: 1 table"), "{listed}");
    assert_eq!(code(&windrow(&folder, &["values", "nothing"])), 1);
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
fn a_checkpoint_is_a_database() {
    let folder = TempDir::new().unwrap();
    done(&windrow(&folder, &["put", "db", "a", "1"]));
    done(&windrow(&folder, &["compact", "db"]));
    done(&windrow(&folder, &["put", "db", "b", "2"]));
    let made = json(&windrow(&folder, &["checkpoint", "db", "copy", "--json"]));
    assert_eq!(made["sequence"], 2);
    done(&windrow(&folder, &["put", "db", "c", "3"]));
    done(&windrow(&folder, &["compact", "db"]));
    let copied = windrow(&folder, &["scan", "copy", "--keys-only"]);
    assert_eq!(done(&copied), "a\nb\n");
    done(&windrow(&folder, &["verify", "copy"]));
    let again = windrow(&folder, &["checkpoint", "db", "copy"]);
    assert_eq!(code(&again), 1, "{}", problem(&again));
}

#[test]
fn a_keyspace_can_be_dropped() {
    let folder = TempDir::new().unwrap();
    done(&windrow(&folder, &["put", "db", "a", "1"]));
    done(&windrow(
        &folder,
        &["put", "db", "a", "2", "--keyspace", "log"],
    ));
    done(&windrow(&folder, &["compact", "db", "--keyspace", "log"]));
    let dropped = json(&windrow(&folder, &["drop-keyspace", "db", "log", "--json"]));
    let (before, after) = (&dropped["disk_bytes_before"], &dropped["disk_bytes_after"]);
    assert!(after.as_u64() < before.as_u64(), "{dropped}");
    let again = windrow(&folder, &["drop-keyspace", "db", "log"]);
    assert_eq!(code(&again), 1);
    assert!(problem(&again).contains("log"), "{}", problem(&again));
    let gone = ["get", "db", "a", "--keyspace", "log"];
    assert_eq!(code(&windrow(&folder, &gone)), 1);
    assert_eq!(done(&windrow(&folder, &["get", "db", "a"])), "1\n");
}

#[test]
fn files_of_a_database_can_be_dumped() {
    let folder = TempDir::new().unwrap();
    done(&windrow(&folder, &["put", "db", "a", "1"]));
    done(&windrow(&folder, &["compact", "db"]));
    let mut endings = Vec::new();
    for file in fs::read_dir(folder.path().join("db")).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        if ["LOCK", "RESERVE"].contains(&name.as_str()) {
            continue;
        }
        let path = format!("db/{name}");
        assert!(
            !done(&windrow(&folder, &["dump", &path])).is_empty(),
            "{name}"
        );
        let dumped = windrow(&folder, &["dump", &path, "--json"]);
        let records: Vec<Value> = done(&dumped)
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let ending = name.rsplit('.').next().unwrap();
        let (record, field, expected) = match ending {
            "CURRENT" => ("current", "manifest", None),
            "manifest" => ("create_keyspace", "name", Some("default")),
            "table" => ("value", "key", Some("a")),
            _ => ("wal_header", "offset", None),
        };
        let found = records.iter().find(|found| found["record"] == record);
        match expected {
            Some(text) => assert_eq!(found.unwrap()[field], text),
            None => assert!(found.unwrap()[field].is_u64()),
        }
        endings.push(ending.to_owned());
    }
    endings.sort();
    endings.dedup();
    assert_eq!(endings, ["CURRENT", "manifest", "table", "wal"]);
}

#[test]
fn a_fill_removes_nothing_but_a_store() {
    let folder = TempDir::new().unwrap();
    let mine = folder.path().join("mine/windrow/thesis");
    fs::create_dir_all(mine.parent().unwrap()).unwrap();
    fs::write(&mine, "years").unwrap();
    let fill = ["bench", "fillseq", "--num", "10", "--db", "mine"];
    let output = windrow(&folder, &fill);
    assert_eq!(code(&output), 1, "{}", text(&output));
    assert!(problem(&output).contains("mine/windrow"));
    assert_eq!(fs::read(&mine).unwrap(), b"years");
    fs::remove_file(&mine).unwrap();
    done(&windrow(&folder, &fill));
    // What the first fill left goes; it would be found with the second.
    let again = [
        "bench",
        "fillseq,readseq",
        "--num",
        "5",
        "--db",
        "mine",
        "--json",
    ];
    assert_eq!(json(&windrow(&folder, &again))["found"], 5);
}

#[test]
fn a_bench_tells_how_far_it_is_and_how_latencies_lie_where_asked() {
    let folder = TempDir::new().unwrap();
    let plain = ["bench", "fillseq", "--num", "100"];
    let output = windrow(&folder, &plain);
    assert!(!done(&output).contains("100.00000 %"));
    assert_eq!(problem(&output), "");
    // Any load takes longer than this interval.
    let asked = ["--histogram", "--stats-interval-seconds", "0.000001"];
    let output = windrow(&folder, &[&plain[..], &asked].concat());
    assert!(done(&output).contains("100.00000 %"));
    assert!(problem(&output).starts_with("fillseq: "), "{output:?}");
}

#[test]
fn damage_ends_with_three_and_names_the_file() {
    let folder = TempDir::new().unwrap();
    done(&windrow(&folder, &["put", "db", "a", "1"]));
    done(&windrow(&folder, &["compact", "db"]));
    let file = |ending: &str| {
        let mut files = fs::read_dir(folder.path().join("db")).unwrap();
        files.find_map(|file| {
            let path = file.unwrap().path();
            path.to_str().unwrap().ends_with(ending).then_some(path)
        })
    };
    for ending in [".table", "CURRENT"] {
        let path = file(ending).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        bytes[9] ^= 1;
        fs::write(&path, bytes).unwrap();
        let output = windrow(&folder, &["verify", "db"]);
        assert_eq!(code(&output), 3, "{ending}: {}", problem(&output));
        let name = path.file_name().unwrap().to_str().unwrap();
        let all = format!("{}{}", text(&output), problem(&output));
        assert!(all.contains(name), "{all}");
    }
}

#[test]
fn the_demo_survives_its_own_death() {
    let folder = TempDir::new().unwrap();
    fs::create_dir_all(folder.path().join("in/sub")).unwrap();
    for number in 0..300_usize {
        let content = format!("content of {number}\n").repeat(number);
        fs::write(folder.path().join(format!("in/sub/{number}")), content).unwrap();
    }
    let demo = ["demo", "--input", "in", "--db", "db"];
    let object = json(&windrow(&folder, &[&demo[..], &["--json"]].concat()));
    assert_eq!(object["mismatches"], 0);
    assert_eq!(object["entries"], 300);
    assert_eq!(object["recovered"], object["acknowledged"]);
    for field in [
        "bytes",
        "checked",
        "recovered",
        "write_amplification",
        "space_amplification",
        "seconds",
    ] {
        assert!(object[field].as_f64().unwrap() > 0.0, "{field}");
    }
    assert!(object["levels"].is_array());

    // The folder was kept, and is not taken for a new one.
    let again = windrow(&folder, &demo);
    assert_eq!(code(&again), 1, "{}", problem(&again));
    let fresh = windrow(&folder, &["demo", "--input", "in"]);
    assert!(done(&fresh).ends_with("mismatches: 0\n"));
}

/// Wherever its child dies, the demo says so: a broken pipe to the child is no reader who has enough.
#[test]
fn a_demo_whose_child_dies_early_fails() {
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("in")).unwrap();
    // A plan longer than a pipe holds, and work enough between the first load and the child.
    for number in 0..1000 {
        let name = format!("in/{number}{}", "x".repeat(100));
        fs::write(folder.path().join(name), "content").unwrap();
    }
    let mut demo = Command::new(env!("CARGO_BIN_EXE_windrow"))
        .args(["demo", "--input", "in", "--db", "db"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(demo.stdout.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("load ") {
        line.clear();
        assert!(stdout.read_line(&mut line).unwrap() > 0);
    }
    // The child cannot open the database; its parent has it open already.
    let manifest = fs::read_dir(folder.path().join("db"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|name| name == "manifest"));
    fs::write(manifest.unwrap(), "damaged").unwrap();
    stdout.read_to_string(&mut line).unwrap();
    let output = demo.wait_with_output().unwrap();
    assert_eq!(code(&output), 2, "{line}");
    let problem = problem(&output);
    assert!(
        problem.contains("the second load ended by itself"),
        "{problem}"
    );
}

#[test]
fn a_demo_leaves_no_folder_behind_even_when_it_is_killed() {
    let folder = TempDir::new().unwrap();
    let (input, temporary) = (folder.path().join("in"), folder.path().join("tmp"));
    fs::create_dir(&input).unwrap();
    fs::create_dir(&temporary).unwrap();
    for number in 0..100 {
        fs::write(input.join(number.to_string()), "content").unwrap();
    }
    for stage in ["database ", "load ", "kill ", "again "] {
        let mut demo = Command::new(env!("CARGO_BIN_EXE_windrow"))
            .args(["demo", "--input", "in"])
            .env("TMPDIR", &temporary)
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().starts_with(stage)));
        demo.kill().unwrap();
        demo.wait().unwrap();
        let is_gone = (0..200).any(|_| {
            std::thread::sleep(Duration::from_millis(50));
            fs::read_dir(&temporary).unwrap().next().is_none()
        });
        assert!(is_gone, "killed after {stage}");
    }
}

#[test]
fn the_demo_takes_files_whose_names_are_no_text() {
    let folder = TempDir::new().unwrap();
    let input = folder.path().join("in");
    fs::create_dir(&input).unwrap();
    fs::write(input.join(OsStr::from_bytes(b"\xff\n")), "content").unwrap();
    let object = json(&windrow(&folder, &["demo", "--input", "in", "--json"]));
    assert_eq!(object["mismatches"], 0);
    assert_eq!(object["recovered"], object["acknowledged"]);
    assert!(object["acknowledged"].as_u64().unwrap() > 0);
}

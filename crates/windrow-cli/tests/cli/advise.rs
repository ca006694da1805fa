//! `windrow advise`: advice from each source of a load, files of options that `windrow bench` takes, and refusals.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::common::{SMALL, json_error, objects, run, text};

/// The last object that the program prints.
#[track_caller]
fn object(arguments: &[&str]) -> Value {
    objects(arguments).pop().unwrap()
}

#[track_caller]
fn refused(arguments: &[&str], why: &str) {
    let output = run(&[&["advise"], arguments].concat());
    let problem = str::from_utf8(&output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {problem}");
    assert!(problem.contains(why), "{arguments:?}: {problem}");
}

/// A load that is described in full.
const LOAD: [&str; 8] = [
    "--keys",
    "20000",
    "--value-size",
    "100",
    "--updates",
    "80",
    "--gets",
    "20",
];

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

fn path(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).to_str().unwrap().to_owned()
}

#[test]
fn bench_takes_the_files_of_a_described_load() {
    let folder = TempDir::new().unwrap();
    let (file, steps) = (path(&folder, "best.options"), path(&folder, "steps"));
    let files = ["--output", &file, "--neighbours", &steps];
    let advice = object(&[&["advise"], &LOAD[..], &SMALL, &files].concat());
    let recommended = &advice["recommended"];
    let cost = |of: &Value| number(&of["costs"]["operation"]);
    assert!(cost(recommended) <= cost(&advice["default"]) + 1e-9);
    assert!(!advice["frontier"].as_array().unwrap().is_empty());
    assert!(number(&advice["compared"]) > 100.0);
    assert!(number(&recommended["write_amplification"]) > 1.0);
    assert!((number(&advice["demand"]["fractions"]["updates"]) - 0.8).abs() < 1e-9);

    let text = fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("# windrow advise: 20,000 keys"), "{text}");
    let mut names: Vec<String> = fs::read_dir(&steps)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert!(names.contains(&"default.options".to_owned()));
    assert!(names.contains(&"recommended.options".to_owned()));
    // One step down and one up, but for what is at an end of its ladder.
    assert!(names.len() >= 7, "{names:?}");
    for name in names {
        let options = path(&folder, &format!("steps/{name}"));
        let bench = [
            "bench",
            "fillrandom",
            "--num",
            "2000",
            "--options",
            &options,
        ];
        let report = object(&bench);
        assert_eq!(report["settings"]["memtable_bytes"], "65536");
    }
    // They would be measured with what comes next.
    refused(&[&LOAD[..], &["--neighbours", &steps]].concat(), "measured");
    let bench = object(&["bench", "fillrandom", "--num", "2000", "--options", &file]);
    let own = &recommended["options"]["bits_per_key"];
    assert_eq!(
        bench["settings"]["bits_per_key"],
        own.to_string().replace(".0", "")
    );
}

#[test]
fn flags_override_the_compression_of_an_options_file() {
    let folder = TempDir::new().unwrap();
    let file = path(&folder, "compressed.options");
    fs::write(&file, "compression = lz4\n").unwrap();
    let bench = ["bench", "fillrandom", "--num", "100"];
    let reported = |more: &[&str]| {
        let report = object(&[&bench[..], more].concat());
        report["settings"]["compression"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(reported(&["--options", &file]), "Lz4");
    assert_eq!(
        reported(&["--options", &file, "--compression", "none"]),
        "None"
    );
    assert_eq!(reported(&[]), "None");
    assert_eq!(reported(&["--compression", "lz4"]), "Lz4");
}

#[test]
fn people_see_the_recommendation_and_its_costs() {
    let output = run(&[&["advise"], &LOAD[..], &SMALL].concat());
    let text = str::from_utf8(&output.stdout).unwrap();
    assert!(output.status.success());
    for part in [
        "80.0 % updates, 20.0 % gets",
        "What nothing beats",
        "recommended",
        "written for each byte given",
        "operations a second and core",
        "default",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // What is chosen already is the default, and nothing else is compared.
    let held = [
        "--size-ratio",
        "5",
        "--scaling",
        "1",
        "--segment-limit",
        "1",
        "--large-from",
        "never",
        "--bits-per-key",
        "7",
    ];
    let output = run(&[&["advise"], &LOAD[..], &SMALL, &held].concat());
    let text = str::from_utf8(&output.stdout).unwrap();
    assert!(text.contains("keep it"), "{text}");
}

#[test]
fn a_measured_device_bounds_gets_and_scans() {
    let folder = TempDir::new().unwrap();
    let limits = path(&folder, "device.json");
    let scans = [
        "--scans",
        "20",
        "--scan-length",
        "10",
        "--memory",
        "1M",
        "--calibration",
        &limits,
    ];
    let asked = [&["advise"], &LOAD[..], &SMALL, &scans].concat();
    let refused = run(&asked);
    assert_eq!(refused.status.code(), Some(2));
    let advice = |random: u32| {
        let text = format!(
            r#"{{"random_reads_per_second":{random},"random_reads_at_32_per_second":100000,
            "sequential_read_bytes_per_second":2e9,"sequential_written_bytes_per_second":1e9,"is_direct":true}}"#
        );
        fs::write(&limits, text).unwrap();
        object(&asked)
    };
    let number = |advice: &Value, name: &str| {
        let costs = &advice["recommended"]["costs"];
        costs[name].as_f64().unwrap()
    };
    let (fast, slow) = (advice(20_000), advice(1_000));
    // A read of 4 KiB takes 1000 microseconds, its transfer included.
    let random_read = slow["demand"]["device"]["random_read"].as_f64().unwrap();
    assert!((random_read - 997.952).abs() < 1e-6);
    // A get waits for its requests one after the other, and a scan once for all of its first ones.
    for advice in [&fast, &slow] {
        let micros = advice["demand"]["device"]["random_read"].as_f64().unwrap();
        let requests = number(advice, "get_requests");
        assert!(requests > 0.1 && number(advice, "get") >= requests * micros);
        assert!(number(advice, "scan") >= number(advice, "scan_requests").min(1.0) * micros);
    }
    let text = run(&asked);
    let text = str::from_utf8(&text.stdout).unwrap();
    for part in [
        "gets a second, one thread",
        "requests of a get to the device",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn statistics_of_a_busy_store_are_a_load() {
    let folder = TempDir::new().unwrap();
    let stats = path(&folder, "stats.json");
    let level = |number: u64, entries: u64, answered: u64| {
        serde_json::json!({
            "level": number, "entries": entries, "tombstones": 0, "bytes": entries * 120,
            "gets_answered": answered,
        })
    };
    let no_files = serde_json::json!({"live_bytes": 0});
    let options = serde_json::json!({
        "memtable_bytes": 65536, "file_bytes": 16384, "base_bytes": 262_144, "size_ratio": 8.0,
        "segment_limit": "4", "medium_from": u64::MAX, "large_from": u64::MAX, "max_space_amp": 1.6,
        "filter_allocation": "uniform", "medium_order": "written",
    });
    let all = serde_json::json!({
        "user_bytes": 4_640_000, "user_writes": 40_000, "gets": 50_000, "seeks": 10_000,
        "sequence": 40_000,
        "keyspaces": [
            {"name": "main", "options": options, "gets_answered_by_memtables": 1000, "memtable_bytes": 0,
             "transient_logs": no_files, "value_logs": no_files,
             "levels": [level(0, 2000, 4000), level(1, 19_000, 40_000)]},
        ],
    });
    fs::write(&stats, all.to_string()).unwrap();
    let source = ["advise", "--stats", &stats];
    let advice = object(&[&source[..], &["--scan-length", "20"]].concat());
    let demand = &advice["demand"];
    assert_eq!(demand["keys"], 20_000);
    assert_eq!(demand["values"][0]["bytes"], 100);
    for (kind, fraction) in [
        ("inserts", 0.2),
        ("updates", 0.2),
        ("gets", 0.45),
        ("missing", 0.05),
        ("scans", 0.1),
    ] {
        assert!(
            (number(&demand["fractions"][kind]) - fraction).abs() < 1e-9,
            "{kind}"
        );
    }
    assert!(advice["demand"]["notes"].as_array().unwrap().is_empty());
    // What the store has now stands beside the default, which has its memtable.
    assert_eq!(advice["now"]["options"]["size_ratio"], 8.0);
    assert_eq!(advice["now"]["options"]["segment_limit"], "4");
    assert_eq!(advice["default"]["options"]["size_ratio"], 5.0);
    assert_eq!(advice["default"]["options"]["memtable_bytes"], 65536);
    // So has it all that is not searched.
    for (name, own) in [
        ("filter_allocation", "uniform"),
        ("medium_order", "written"),
    ] {
        assert_eq!(advice["default"]["options"][name], own);
        assert_eq!(advice["recommended"]["options"][name], own);
    }

    // What is given holds for the default, the rest is the store's.
    let given = [
        "--scan-length",
        "20",
        "--memtable-bytes",
        "128K",
        "--level0-runs",
        "3",
    ];
    let given = object(&[&source[..], &given, &["--max-space-amp", "4"]].concat());
    let default = &given["default"]["options"];
    assert_eq!(default["memtable_bytes"], 131_072);
    assert_eq!(default["level0_runs"], 3);
    assert_eq!(default["max_space_amp"], 4.0);
    assert_eq!(default["file_bytes"], 16384);
    assert_eq!(given["now"]["options"]["memtable_bytes"], 65536);

    refused(&["--stats", &stats], "--scan-length");
    refused(
        &["--stats", &stats, "--keyspace", "other"],
        "no such keyspace, but main",
    );
    // A flag goes before what was counted.
    let gets = object(&[&source[..], &["--gets", "1"]].concat());
    assert!((number(&gets["demand"]["fractions"]["gets"]) - 1.0).abs() < 1e-9);
}

#[test]
fn one_keyspace_of_statistics_has_the_fractions_of_all() {
    let folder = TempDir::new().unwrap();
    let stats = path(&folder, "stats.json");
    let level = |entries: u64, tombstones: u64, bytes: u64, answered: u64| {
        serde_json::json!({
            "level": 1, "entries": entries, "tombstones": tombstones, "bytes": bytes,
            "gets_answered": answered,
        })
    };
    let options =
        |memtable: u64| serde_json::json!({"memtable_bytes": memtable, "file_bytes": 16384});
    let no_files = serde_json::json!({"live_bytes": 0});
    let no_level = level(0, 0, 0, 0);
    let all = serde_json::json!({
        "user_bytes": 40_000_000, "user_writes": 100_000, "gets": 100_000, "seeks": 0,
        "sequence": 100_000,
        "keyspaces": [
            {"name": "small", "options": options(65536), "gets_answered_by_memtables": 10_000,
             "memtable_bytes": 0, "transient_logs": no_files, "value_logs": no_files,
             "levels": [no_level, level(20_000, 0, 20_000 * 116, 20_000)]},
            {"name": "other", "options": options(131_072), "gets_answered_by_memtables": 0,
             "memtable_bytes": 0, "transient_logs": no_files, "value_logs": no_files,
             "levels": [no_level, level(40_000, 10_000, 30_000 * 816 + 10_000 * 16, 50_000)]},
        ],
    });
    fs::write(&stats, all.to_string()).unwrap();
    let source = ["advise", "--stats", &stats];
    let reported = |keyspace: &str| object(&[&source[..], &["--keyspace", keyspace]].concat());
    let (small, other) = (reported("small"), reported("other"));
    assert_eq!(small["demand"]["keys"], 20_000);
    assert_eq!(small["demand"]["values"][0]["bytes"], 100);
    assert_eq!(small["now"]["options"]["memtable_bytes"], 65536);
    assert_eq!(other["demand"]["values"][0]["bytes"], 800);
    assert_eq!(other["now"]["options"]["memtable_bytes"], 131_072);
    // Of 100,000 writes 40,000 are keys; of 60,000 entries 10,000 are tombstones, and as many keys were
    // written again; of 100,000 gets 80,000 found.
    let deleted = 10.0 / 60.0;
    for (kind, fraction) in [
        ("inserts", 0.2 + deleted / 2.0),
        ("deletes", deleted / 2.0),
        ("updates", (0.6 - 2.0 * deleted) / 2.0),
        ("gets", 0.4),
        ("missing", 0.1),
    ] {
        for reported in [&small, &other] {
            let own = number(&reported["demand"]["fractions"][kind]);
            assert!((own - fraction).abs() < 1e-9, "{kind} {own}");
        }
    }
}

#[test]
fn statistics_of_an_idle_store_say_what_is_stored() {
    let folder = TempDir::new().unwrap();
    let db = path(&folder, "store");
    let arguments = [
        "bench",
        "fillrandom,overwrite",
        "--num",
        "5000",
        "--db",
        &db,
    ];
    object(&[&arguments[..], &SMALL].concat());
    let output = run(&["stats", &format!("{db}/windrow"), "--json"]);
    let stats = path(&folder, "stats.json");
    fs::write(&stats, &output.stdout).unwrap();
    refused(&["--stats", &stats], "does not say how often");
    let advice = object(&["advise", "--stats", &stats, "--updates", "1", "--gets", "1"]);
    let keys = number(&advice["demand"]["keys"]);
    assert!(keys > 2500.0 && keys < 8000.0, "{keys}");
    assert_eq!(advice["now"]["options"]["memtable_bytes"], 65536);
}

#[test]
fn a_trace_is_a_load_plain_and_compressed() {
    let folder = TempDir::new().unwrap();
    let mut lines = vec!["# a store is filled, and read".to_owned()];
    for key in 0..3000 {
        let bytes = if key % 10 == 0 { 2000 } else { 100 };
        lines.push(format!("user:{key:06} put {bytes}"));
    }
    for key in 0..3000 {
        lines.push(format!("user:{key:06},get\nuser:{key:06},scan,15"));
    }
    let plain = path(&folder, "trace.csv");
    fs::write(&plain, lines.join("\n")).unwrap();
    let advice = object(&[&["advise", "--trace", &plain], &SMALL[..]].concat());
    let demand = &advice["demand"];
    assert_eq!(demand["keys"], 3000);
    assert_eq!(demand["key_bytes"], 11);
    assert!((number(&demand["scan_length"]) - 15.0).abs() < 1e-9);
    assert_eq!(demand["values"][1]["bytes"], 2000);
    for kind in ["inserts", "gets", "scans"] {
        assert!((number(&demand["fractions"][kind]) - 1.0 / 3.0).abs() < 1e-9);
    }
    // In a store of a million keys the puts are updates.
    let filled = ["advise", "--trace", &plain, "--keys", "10000"];
    let filled = object(&[&filled[..], &SMALL].concat());
    assert!((number(&filled["demand"]["fractions"]["updates"]) - 1.0 / 3.0).abs() < 1e-9);

    let wrong = path(&folder, "wrong.csv");
    fs::write(&wrong, "user:1 put 100\nuser:1 fetch\n").unwrap();
    refused(&["--trace", &wrong], "line 2");
    fs::write(&wrong, "# nothing\n").unwrap();
    refused(&["--trace", &wrong], "no operation");
}

#[test]
fn impossible_requests_are_refused() {
    let folder = TempDir::new().unwrap();
    refused(&[], "--inserts");
    refused(&["--updates", "1", "--value-size", "100"], "--bytes");
    refused(&["--updates", "1", "--keys", "1000"], "--value-size");
    refused(
        &["--keys", "1000", "--value-size", "100", "--scans", "1"],
        "--scan-length",
    );
    refused(
        &["--keys", "1000", "--value-size", "x", "--gets", "1"],
        "number of bytes",
    );
    refused(
        &["--keys", "1000", "--value-size", "9", "--gets=-1"],
        "not negative",
    );
    let weights = ["--keys", "1000", "--value-size", "9"];
    let large = ["--updates", "1e308", "--gets", "1e308"];
    let output = run(&[&["advise"], &weights[..], &large].concat());
    let problem = str::from_utf8(&output.stderr).unwrap();
    assert!(
        !output.status.success() && problem.contains("to 1e12"),
        "{problem}"
    );
    let deletes = ["--inserts", "45", "--deletes", "55"];
    refused(&[&weights[..], &deletes].concat(), "more deletes than");
    refused(&[&LOAD[..], &["--device", "nvme"]].concat(), "--memory");
    refused(
        &[&LOAD[..], &["--memory", "1M"]].concat(),
        "memory of 1.00 MiB",
    );
    refused(&[&LOAD[..], &["--size-ratio", "1"]].concat(), "size_ratio");
    let nowhere = path(&folder, "nothing.json");
    let output = run(&["advise", "--stats", &nowhere]);
    assert!(!output.status.success());
    fs::write(&nowhere, "no statistics").unwrap();
    refused(&["--stats", &nowhere], "is no JSON");
    fs::write(&nowhere, "{}").unwrap();
    refused(&["--stats", &nowhere], "no keyspaces");
    fs::write(&nowhere, r#"{"keyspaces": []}"#).unwrap();
    refused(&["--stats", &nowhere], "has no keyspaces");
    // Options of a store are looked at before anything is simulated.
    let options = serde_json::json!({"size_ratio": 0.5});
    let stats = serde_json::json!({"keyspaces": [{"name": "main", "options": options}]});
    fs::write(&nowhere, stats.to_string()).unwrap();
    refused(
        &[&LOAD[..], &["--stats", &nowhere]].concat(),
        "does not take",
    );
}

#[test]
fn unwritable_destinations_are_refused_before_the_simulation() {
    let folder = TempDir::new().unwrap();
    let file = path(&folder, "file");
    fs::write(&file, "size_ratio = 4\n").unwrap();
    for source in ["--stats", "--trace", "--options"] {
        let files = [source, &file, "--output", &file];
        refused(&[&LOAD[..], &files].concat(), "would be overwritten");
        assert_eq!(fs::read_to_string(&file).unwrap(), "size_ratio = 4\n");
    }
    let blocked = path(&folder, "file/steps");
    for (flag, place) in [
        ("--output", "/no/such/folder/file"),
        ("--neighbours", &blocked),
    ] {
        let output = run(&[&["advise", "--json"], &LOAD[..], &[flag, place]].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        // One answer, which is the error.
        assert_eq!(text(&output), "");
        assert!(json_error(&output)["kind"].is_string(), "{output:?}");
    }
}

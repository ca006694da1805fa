//! `windrow simulate`: its predictions are what `windrow bench` measures under the same options, and bad
//! requests are refused.
//!
//! The bench runs many short loads one after the other, each of less than a memtable. It waits for background
//! work after each, with one thread. So each load is one flush, compactions run one after the other, and the
//! measurement does not depend on the speed of threads.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::common::{SMALL, objects, run};

/// Every value stands beside its key.
const IN_PLACE: [&str; 4] = ["--medium-from", "never", "--large-from", "never"];

/// Like [`SMALL`]. Three memtables of pointers would just fill four files of 16K, and one byte would decide between
/// an append and a rewrite.
const LONGER: [&str; 6] = [
    "--memtable-bytes",
    "64K",
    "--file-bytes",
    "24K",
    "--base-bytes",
    "256K",
];

/// What keys of 16 bytes have in common, and those of 24.
const SHARED: &str = "9";
const SHARED_OF_24: &str = "13";

/// A cause with at most this fraction of all written bytes is not compared.
const NEGLIGIBLE: f64 = 0.04;

/// One compaction changes this many files of a level.
const FEW: u64 = 16;

/// Without this, garbage collections run, and large values fill memtables early. Then the loads of the bench would
/// be cut elsewhere than the flushes of the simulation.
const SPACIOUS: [&str; 2] = ["--max-space-amp", "inf"];

/// A load of both commands.
struct Case<'a> {
    /// Sizes of entries, and the bytes of one on average.
    sizes: &'a [&'a str],
    entry_bytes: f64,
    /// Different keys, and the bytes of one that tables hold once a block: the bench's are numbers with zeros
    /// before and behind them.
    keys: u64,
    shared: &'a str,
    /// Writes of each load of the bench, a little less than fill a memtable, and how many loads there are.
    writes: u64,
    loads: usize,
    tree: [&'a str; 6],
    options: &'a [&'a str],
}

impl Case<'_> {
    fn measured(&self) -> Vec<Value> {
        let loads = vec!["overwrite"; self.loads].join(",");
        let (keys, writes) = (self.keys.to_string(), self.writes.to_string());
        let load = ["bench", &loads, "--num", &keys, "--ops", &writes];
        let load = [&load[..], &["--background-threads", "1"]].concat();
        objects(&[&load, self.sizes, &self.tree, self.options].concat())
    }

    fn reported(&self) -> Value {
        // An entry more, since less than a whole one counts for nothing.
        let bytes = (self.keys as f64 * self.entry_bytes + 1.0).round();
        let draws = self.writes as f64 * self.loads as f64;
        let updates = format!("{:.9}", draws / self.keys as f64 - 1.0);
        let load = [
            "simulate",
            "--shared-key-bytes",
            self.shared,
            "--drawn",
            "--bytes",
            &format!("{bytes}"),
            "--updates",
            &updates,
        ];
        let mut objects = objects(&[&load, self.sizes, &self.tree, self.options].concat());
        assert_eq!(objects.len(), 1);
        objects.remove(0)
    }

    /// Prediction and measurement agree: the levels are as many, and the bytes of each cause in each level are within
    /// a quarter of the larger. Causes with few bytes in both are not compared.
    #[track_caller]
    fn check(&self) {
        let (measured, reported) = (self.measured(), self.reported());
        let last = measured.last().unwrap();
        let levels = last["levels"].as_array().unwrap();
        assert_eq!(
            number(&reported["levels"]),
            levels.len() as u64 - 1,
            "levels"
        );
        let purpose = |name: &str, side: &str| -> u64 {
            let of = |report: &Value| {
                let io_stats = report["io_stats"].as_array().unwrap().iter();
                let mut own = io_stats.filter(|it| it["purpose"] == name);
                own.next().map_or(0, |own| number(&own[side]))
            };
            measured.iter().map(of).sum()
        };
        let all: u64 = measured
            .iter()
            .map(|report| number(&report["written_bytes"]))
            .sum();
        let check = |what: &str, measured: u64, reported: u64| {
            let apart = measured.abs_diff(reported) as f64;
            let larger = measured.max(reported) as f64;
            assert!(
                apart <= 0.25 * larger || larger <= NEGLIGIBLE * all as f64,
                "{what}: {measured} bytes, and {reported} predicted, of {all}"
            );
        };
        let io_stats = &reported["io_stats"];
        let wal = purpose("write-ahead log", "written_bytes");
        check("log", wal, number(&io_stats["wal"]));
        let logs = purpose("value logs", "written_bytes");
        check("value logs", logs, number(&io_stats["value_logs"]));
        let of_levels = |name: &str| levels.iter().map(|level| number(&level[name])).sum::<u64>();
        for (name, pointers_rewritten, side) in [
            ("gc_written", "pointer_rewrite_bytes", "written_bytes"),
            ("gc_read", "pointer_rewrite_read_bytes", "read_bytes"),
        ] {
            // Pointer rewrites are reported level by level.
            let collected = purpose("garbage collection", side) - of_levels(pointers_rewritten);
            check(name, collected, number(&io_stats[name]));
        }
        let tree = reported["tree"].as_array().unwrap();
        for level in 0..levels.len().max(tree.len()) {
            for (reported, measured) in [
                ("flushed", "flushed_bytes"),
                ("appended", "appended_bytes"),
                ("rewritten", "rewritten_bytes"),
                ("consolidated", "consolidated_bytes"),
                ("pointers_rewritten", "pointer_rewrite_bytes"),
                ("transient_logs", "transient_log_bytes"),
                ("read", "read_bytes"),
                ("consolidation_read", "consolidation_read_bytes"),
                ("pointer_rewrite_read", "pointer_rewrite_read_bytes"),
                ("transient_logs_read", "transient_log_read_bytes"),
            ] {
                let own = levels
                    .get(level)
                    .map_or(0, |level| number(&level[measured]));
                let other = tree.get(level);
                let other = other.map_or(0, |level| number(&level["io_stats"][reported]));
                check(&format!("{reported} in level {level}"), own, other);
            }
            // Files have the same sizes; otherwise compactions read and write other bytes as soon as the tree grows.
            let files = |level: Option<&Value>| level.map_or(0, |level| number(&level["files"]));
            let (own, other) = (files(levels.get(level)), files(tree.get(level)));
            assert!(
                own.max(other) <= 2 * own.min(other) || own.max(other) <= FEW,
                "level {level} has {own} files, and {other} predicted"
            );
        }
    }
}

#[track_caller]
fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

/// Entries of 16 and 100 bytes, in place, each drawn a few times.
fn in_place(keys: u64, options: &[&str]) {
    Case {
        sizes: &[],
        entry_bytes: 116.0,
        keys,
        shared: SHARED,
        writes: 385,
        loads: 130,
        tree: SMALL,
        options: &[&IN_PLACE, options].concat(),
    }
    .check();
}

#[test]
fn balanced() {
    in_place(16_000, &[]);
}

#[test]
fn leveling_by_four() {
    in_place(26_000, &["--preset", "leveling", "--size-ratio", "4"]);
}

#[test]
fn leveling_by_ten() {
    in_place(16_000, &["--preset", "leveling", "--size-ratio", "10"]);
}

#[test]
fn garnering() {
    in_place(16_000, &["--preset", "autumn", "--scaling", "0.8"]);
}

#[test]
#[ignore = "long: docs/testing.md has the command"]
fn strong_garnering() {
    in_place(16_000, &["--preset", "autumn", "--scaling", "0.4"]);
}

#[test]
#[ignore = "long: docs/testing.md has the command"]
fn three_segments() {
    in_place(16_000, &["--segment-limit", "3"]);
}

#[test]
fn one_segment() {
    in_place(16_000, &["--segment-limit", "1", "--size-ratio", "6"]);
}

#[test]
#[ignore = "long: docs/testing.md has the command"]
fn mostly_new_keys() {
    Case {
        sizes: &[],
        entry_bytes: 116.0,
        keys: 46_200,
        shared: SHARED,
        writes: 385,
        loads: 120,
        tree: SMALL,
        options: &IN_PLACE,
    }
    .check();
}

#[test]
#[ignore = "long: docs/testing.md has the command"]
fn longer_entries() {
    Case {
        sizes: &["--key-size", "24", "--value-size", "400"],
        entry_bytes: 424.0,
        keys: 5_000,
        shared: SHARED_OF_24,
        writes: 137,
        loads: 130,
        tree: SMALL,
        options: &IN_PLACE,
    }
    .check();
}

/// Values of 300 bytes, in transient logs.
fn in_transient_logs(options: &[&str]) {
    Case {
        sizes: &["--key-size", "24", "--value-size", "300"],
        entry_bytes: 324.0,
        keys: 9_000,
        shared: SHARED_OF_24,
        writes: 174,
        loads: 130,
        tree: SMALL,
        options,
    }
    .check();
}

#[test]
#[ignore = "long: docs/testing.md has the command"]
fn transient_logs() {
    in_transient_logs(&[]);
}

#[test]
#[ignore = "long: docs/testing.md has the command"]
fn transient_logs_down_to_the_level_before_the_last() {
    in_transient_logs(&["--preset", "parallax", "--medium-in-place", "before-last"]);
}

/// Values of 1004 bytes, in value logs. With a bound on space, the bytes of values behind a memtable would cut loads by
/// chance; `windrow-sim/tests/simulation/engine.rs` tests such garbage collections, step by step.
#[test]
fn value_logs() {
    Case {
        sizes: &["--key-size", "24", "--value-size", "1004"],
        entry_bytes: 1028.0,
        keys: 6_000,
        shared: SHARED_OF_24,
        writes: 770,
        loads: 65,
        tree: SMALL,
        options: &SPACIOUS,
    }
    .check();
}

fn mixed(mix: &str, entry_bytes: f64, writes: u64, tree: [&str; 6], options: &[&str]) {
    Case {
        sizes: &["--mix", mix],
        entry_bytes,
        keys: 12_000,
        shared: SHARED_OF_24,
        writes,
        // Level 1 is a file or two, so that a level below is few merges, and only many loads even out.
        loads: 200,
        tree,
        options,
    }
    .check();
}

#[test]
fn mostly_small() {
    mixed("SD", 251.0, 600, LONGER, &[]);
}

#[test]
fn mostly_medium() {
    mixed("MD", 289.0, 440, SMALL, &SPACIOUS);
}

#[test]
#[ignore = "long: docs/testing.md has the command"]
fn mostly_large() {
    mixed("LD", 649.0, 600, SMALL, &SPACIOUS);
}

#[test]
fn impossible_loads_are_refused() {
    for (arguments, says) in [
        (&["--bytes", "many"][..], "expected a number of bytes"),
        (&["--bytes", "0"], "less than one entry"),
        (&["--bytes", "10"], "less than one entry"),
        (&[], "--bytes"),
        (
            &["--bytes", "1GB", "--entry-size", "8"],
            "cannot have a key of 16",
        ),
        (
            &["--bytes", "1GB", "--entry-size", "99", "--mix", "SD"],
            "cannot be used with",
        ),
        (&["--bytes", "1GB", "--deletes", "2"], "part of deletes"),
        (&["--bytes", "1GB", "--deletes", "0.5"], "there are none"),
        (&["--bytes", "1GB", "--merges", "0.5"], "there are none"),
        (
            &["--bytes", "1GB", "--updates", "1", "--operand-size", "8"],
            "give --merges",
        ),
        (
            &[
                "--bytes",
                "1GB",
                "--updates",
                "1",
                "--merges",
                "0.6",
                "--deletes",
                "0.6",
            ],
            "together at most all",
        ),
        (
            &[
                "--bytes",
                "1GB",
                "--updates",
                "1",
                "--merges",
                "1",
                "--value-size",
                "500",
            ],
            "values in place alone",
        ),
        (
            &["--bytes", "1GB", "--distribution", "zipfian"],
            "there are none",
        ),
        (
            &["--bytes", "1GB", "--drawn", "--distribution", "sequential"],
            "order of inserts",
        ),
        (
            &["--bytes", "1GB", "--range-deletes-per-write", "0.1"],
            "--range-delete-part",
        ),
        (
            &["--bytes", "1GB", "--range-delete-part", "0.1"],
            "--range-deletes-per-write",
        ),
        (&["--bytes", "1GB", "--expiring", "0.1"], "--time-to-live"),
        (&["--bytes", "1GB", "--time-to-live", "9"], "--expiring"),
        (
            &["--bytes", "1GB", "--expiring", "1.5", "--time-to-live", "9"],
            "values that expire",
        ),
        (
            &["--bytes", "1GB", "--expiring", "1", "--time-to-live", "0"],
            "writes above 0",
        ),
        (&["--bytes", "33PiB"], "less than 32 PiB"),
        (&["--bytes", "20PiB"], "less than 16 PiB"),
        (&["--bytes", "1GB", "--updates=-1"], "not negative"),
        (&["--bytes", "1GB", "--exponent", "1"], "--exponent needs"),
        (&["--bytes", "1GB", "--size-ratio", "0.5"], "size_ratio"),
        (&["--bytes", "1GB", "--seeks-per-write", "nan"], "seeks"),
        (&["--bytes", "1GB", "--plot", "tree.png"], "ends in .svg"),
    ] {
        let output = run(&[&["simulate"], arguments].concat());
        let problem = str::from_utf8(&output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {problem}");
        assert!(problem.contains(says), "{arguments:?}: {problem}");
    }
}

#[test]
fn a_person_gets_tables_and_a_plot() {
    let folder = tempfile::tempdir().unwrap();
    let plot = folder.path().join("tree.svg");
    let plot = plot.to_str().unwrap();
    let output = run(&["simulate", "--bytes", "2GB", "--mix", "sd", "--plot", plot]);
    let text = str::from_utf8(&output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    for word in [
        "written for each byte given",
        "value logs",
        "options: memtable_bytes",
    ] {
        assert!(text.contains(word), "{text}");
    }
    assert!(output.stderr.is_empty());
    let svg = fs::read_to_string(plot).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("runs per seek"));
    let output = run(&[
        "simulate",
        "--bytes",
        "1GB",
        "--plot",
        "/no/such/folder/tree.svg",
    ]);
    // Before anything is simulated.
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty(), "{output:?}");
}

#[test]
fn reads_of_a_device_are_counted() {
    let folder = TempDir::new().unwrap();
    let limits = folder.path().join("device.json");
    let limits = limits.to_str().unwrap();
    let text = r#"{"random_reads_per_second":10000,"random_reads_at_32_per_second":100000,
        "sequential_read_bytes_per_second":2e9,"sequential_written_bytes_per_second":1e9,"is_direct":true}"#;
    fs::write(limits, text).unwrap();
    let load = [&["simulate", "--bytes", "5M"], &SMALL[..]].concat();
    let reads = |more: &[&str]| objects(&[&load[..], more].concat())[0]["reads"].clone();
    let amount = |reads: &Value, kind: &str, what: &str| reads[kind][what].as_f64().unwrap();
    assert!(reads(&[]).is_null());

    let counted = reads(&["--memory", "2M"]);
    assert!(counted["get"]["per_second"].is_null() && counted["device"].is_null());
    let device = ["--memory", "2M", "--calibration", limits];
    let timed = reads(&device);
    for kind in ["get", "missing", "seek"] {
        let requests = amount(&timed, kind, "requests");
        assert!((requests - amount(&counted, kind, "requests")).abs() < 1e-9);
        assert!((amount(&timed, kind, "bytes") / requests - 4096.0).abs() < 1.0);
    }
    let gets = amount(&timed, "get", "requests");
    assert!((0.4..0.9).contains(&gets), "{gets}");
    let rate = amount(&timed, "get", "per_second");
    assert!(rate < 10_000.0 / gets && rate > 8_000.0 / gets, "{rate}");

    let cold = reads(&[&device[..], &["--reads", "10"]].concat());
    assert!(amount(&cold, "get", "requests") > 0.99);
    let output = run(&[&load[..], &device].concat());
    let text = str::from_utf8(&output.stdout).unwrap();
    assert!(
        text.contains("device requests of a get") && text.contains("per second"),
        "{text}"
    );

    for wrong in [&["--device", "nvme"][..], &["--reads", "10"]] {
        let refused = run(&[&load[..], wrong].concat());
        let problem = str::from_utf8(&refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(1));
        assert!(problem.contains("--memory"), "{problem}");
    }
}

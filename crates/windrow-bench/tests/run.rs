//! The program `windrow-bench`: the output of a run on standard output and standard error.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]
#![expect(
    clippy::disallowed_methods,
    reason = "folders of the program are in the system's own file system"
)]

use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

/// The program with `loads`.
fn program(loads: &str) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_windrow-bench"));
    program.args(["run", loads]);
    program
}

/// Runs two loads of 100 operations, and `arguments` with them.
fn run(arguments: &[&str]) -> Output {
    let mut program = program("fillseq,readseq");
    let output = program
        .args(["--num", "100"])
        .args(arguments)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    output
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_run_prints_only_a_table() {
    let output = run(&[]);
    let table = text(output.stdout);
    let names: Vec<&str> = table
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| ["fillseq", "readseq"].contains(name))
        .collect();
    assert_eq!(names, ["fillseq", "readseq"], "{table}");
    assert!(!table.contains('%'), "{table}");
    // Standard error is not a terminal in this test.
    assert_eq!(text(output.stderr), "");
}

#[test]
fn histograms_stand_below_the_line_of_each_load() {
    let table = text(run(&["--histogram"]).stdout);
    let last_points = table.matches("  100.00000 %").count();
    assert_eq!(last_points, 2, "{table}");
}

#[test]
fn lines_at_an_interval_go_to_standard_error() {
    // Any load takes longer than this.
    let output = run(&["--json", "--stats-interval-seconds", "0.000001"]);
    let said = text(output.stderr);
    for load in ["fillseq: ", "readseq: "] {
        assert!(said.lines().any(|line| line.starts_with(load)), "{said}");
    }
    let reports = text(output.stdout);
    assert_eq!(reports.lines().count(), 2, "{reports}");
    assert!(reports.lines().all(|line| line.starts_with('{')));
}

#[test]
#[cfg(unix)]
fn the_next_run_removes_the_store_of_a_killed_one() {
    let folder = tempfile::tempdir().unwrap();
    let left = || std::fs::read_dir(folder.path()).unwrap().count();
    // The second load takes hours.
    let mut killed = program("fillseq,overwrite")
        .args(["--num", "100", "--ops", "1000000000000"])
        .env("TMPDIR", folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(killed.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("fillseq")));
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(left(), 1);
    let mut next = program("fillseq");
    next.args(["--num", "100"]).env("TMPDIR", folder.path());
    assert!(next.output().unwrap().status.success());
    assert_eq!(left(), 0);
}

#[test]
fn a_closed_output_ends_a_run_without_failure() {
    for json in [&[][..], &["--json"]] {
        let mut program = program("fillseq,overwrite");
        let mut run = program
            .args(["--num", "100"])
            .args(json)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(run.stdout.take());
        let output = run.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(text(output.stderr), "");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn caches_are_dropped_before_loads_on_existing_data() {
    let loads = "fillrandom,overwrite,readrandom,compact,levelstats,xxh3,readrandom";
    let output = program(loads)
        .args(["--num", "2000", "--ops", "500", "--drop-caches", "--json"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let reports = text(output.stdout);
    let reports = reports.lines().map(|line| {
        let report: serde_json::Value = serde_json::from_str(line).unwrap();
        let dropped = report["dropped_caches"].as_str().map(str::to_owned);
        (report["name"].as_str().unwrap().to_owned(), dropped)
    });
    for (load, dropped) in reports {
        let is_apart = ["fillrandom", "levelstats", "xxh3"].contains(&load.as_str());
        assert_eq!(dropped.is_none(), is_apart, "{load}");
        let by = dropped.unwrap_or_else(|| "system".to_owned());
        assert!(["system", "store_files"].contains(&by.as_str()), "{by}");
    }
    // The text says the same.
    let mut program = program("fillrandom,readrandom");
    let output = program.args(["--num", "2000", "--drop-caches"]).output();
    let table = text(output.unwrap().stdout);
    assert_eq!(
        table.matches("  dropped before the load: the ").count(),
        1,
        "{table}"
    );
}

/// Data that the program has just written is in the page cache, so only cold reads reach the device.
#[test]
#[cfg(target_os = "linux")]
fn reports_count_what_reaches_the_device() {
    // A folder on the device of the build: other places may be in memory.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let reports = |loads: &str, flags: &[&str]| -> Vec<serde_json::Value> {
        let mut program = program(loads);
        let settings = ["--num", "20000", "--ops", "2000", "--json", "--db"];
        program.args(settings).arg(folder.path()).args(flags);
        let output = program.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let lines = text(output.stdout);
        let lines = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        lines.collect()
    };
    let cold = &reports("fillrandom,readrandom,readmissing", &["--drop-caches"])[1..];
    let read = |report: &serde_json::Value| report["device_read_bytes_per_op"].as_f64();
    let Some(cold_bytes) = read(&cold[0]) else {
        eprintln!("skipped: the kernel does not count the I/O of a process with devices");
        return;
    };
    let of_device = |report: &serde_json::Value| report["device_reads"].as_u64();
    if of_device(&cold[0]).is_none() && cold_bytes == 0.0 {
        eprintln!("skipped: {} is on no device", folder.path().display());
        return;
    }
    assert!(
        cold_bytes > 0.0 && of_device(&cold[0]) != Some(0),
        "{cold:?}"
    );
    let per_asked = cold[0]["device_read_bytes_per_user_byte"].as_f64();
    assert!(per_asked > Some(0.0), "{cold:?}");
    // These reads return nothing.
    assert!(cold[1]["device_read_bytes_per_user_byte"].is_null());
}

//! `bench` by the command line.

use std::fs;

use tempfile::TempDir;

use crate::common::{code, done, json, problem, text, windrow};

#[test]
fn a_fill_removes_only_a_store() {
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
    // The second fill removes the entries of the first.
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
fn a_bench_shows_progress_and_latencies_on_request() {
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

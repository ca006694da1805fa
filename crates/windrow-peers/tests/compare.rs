//! The program `windrow-peers compare`: it reports its progress, and refuses wrong arguments before the first run.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]

use std::process::{Command, Output};

fn compare(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_windrow-peers");
    let mut command = Command::new(program);
    command.arg("compare").args(arguments).output().unwrap()
}

#[test]
fn compare_reports_each_run_with_its_number() {
    let engines = ["--engines", "windrow,windrow-buffered", "--rounds", "2"];
    let output = compare(&[&engines[..], &["fillseq", "--num", "100"]].concat());
    let reported = str::from_utf8(&output.stderr).unwrap();
    assert!(output.status.success(), "{reported}");
    for (number, engine, round) in [
        (1, "windrow", 1),
        (2, "windrow-buffered", 1),
        (3, "windrow-buffered", 2),
        (4, "windrow", 2),
    ] {
        let line = format!(
            "[{number} of 4] windrow-peers run --engine {engine} fillseq --num 100 (round {round} of 2)"
        );
        assert!(reported.contains(&line), "{line}: {reported}");
    }
}

#[test]
fn wrong_arguments_begin_no_campaign() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("campaign");
    let begun = ["--engines", "windrow", "--campaign", file.to_str().unwrap()];
    for (request, says) in [
        (["fillseq", "--engine", "windrow-buffered"], "--engines"),
        (["ycsb-load", "--value-size", "4"], "at least 8 bytes"),
        (["fillseq", "--size-ratio", "0.5"], "size_ratio"),
        (["fillseq", "--memory", "1M"], "the minimum is 64 MiB"),
    ] {
        let output = compare(&[&begun[..], &request].concat());
        let reported = str::from_utf8(&output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{reported}");
        assert!(reported.contains(says), "{reported}");
        assert!(!file.exists());
    }
}

//! What tests of several commands share: the program is run, and what it prints is read.

use std::process::{Command, Output};

use serde_json::Value;

/// A tree small enough to have several levels soon.
pub(crate) const SMALL: [&str; 6] = [
    "--memtable-bytes",
    "64K",
    "--file-bytes",
    "16K",
    "--base-bytes",
    "256K",
];

pub(crate) fn windrow(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windrow"));
    command.args(arguments).output().unwrap()
}

/// The objects that the program prints.
#[track_caller]
pub(crate) fn objects(arguments: &[&str]) -> Vec<Value> {
    let output = windrow(&[arguments, &["--json"]].concat());
    let problem = str::from_utf8(&output.stderr).unwrap();
    assert!(output.status.success(), "{arguments:?}: {problem}");
    let lines = str::from_utf8(&output.stdout).unwrap().lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

//! Runs the program and reads what it prints.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A tree small enough to have several levels soon.
pub(crate) const SMALL: [&str; 6] = [
    "--memtable-bytes",
    "64K",
    "--file-bytes",
    "16K",
    "--base-bytes",
    "256K",
];

/// Runs the program with full paths as arguments.
pub(crate) fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windrow"));
    command.args(arguments).output().unwrap()
}

/// The objects that the program prints.
#[track_caller]
pub(crate) fn objects(arguments: &[&str]) -> Vec<Value> {
    let output = run(&[arguments, &["--json"]].concat());
    let lines = done(&output).lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Runs the program in `folder` with `input` on standard input.
pub(crate) fn windrow_with(folder: &Path, arguments: &[&str], input: &[u8]) -> Output {
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

pub(crate) fn windrow(folder: &TempDir, arguments: &[&str]) -> Output {
    windrow_with(folder.path(), arguments, b"")
}

/// Runs a line of shell in `folder`, in which `windrow` is the program.
pub(crate) fn shell(folder: &Path, line: &str) -> Output {
    let line = line.replace("windrow", env!("CARGO_BIN_EXE_windrow"));
    Command::new("bash")
        .args(["-o", "pipefail", "-c", &line])
        .current_dir(folder)
        .output()
        .unwrap()
}

pub(crate) fn text(output: &Output) -> &str {
    str::from_utf8(&output.stdout).unwrap()
}

pub(crate) fn problem(output: &Output) -> &str {
    str::from_utf8(&output.stderr).unwrap()
}

pub(crate) fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

#[track_caller]
pub(crate) fn done(output: &Output) -> &str {
    assert_eq!(code(output), 0, "{}", problem(output));
    text(output)
}

pub(crate) fn json(output: &Output) -> Value {
    serde_json::from_str(done(output).lines().last().unwrap()).unwrap()
}

/// The error that the program writes under `--json`.
#[track_caller]
pub(crate) fn json_error(output: &Output) -> Value {
    let object: Value = serde_json::from_str(problem(output)).unwrap();
    object["error"].clone()
}

//! `demo`: it is killed, kills its child, and leaves nothing behind.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::common::{code, done, json, problem, windrow};

#[test]
fn the_demo_recovers_after_its_kill() {
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

/// The demo reports the death of its child: a broken pipe to the child is not a closed standard output.
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
        problem.contains("the second load ended before it was killed"),
        "{problem}"
    );
}

#[test]
fn a_killed_demo_leaves_no_folder() {
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
fn the_demo_loads_files_whose_names_are_not_utf8() {
    let folder = TempDir::new().unwrap();
    let input = folder.path().join("in");
    fs::create_dir(&input).unwrap();
    fs::write(input.join(OsStr::from_bytes(b"\xff\n")), "content").unwrap();
    let object = json(&windrow(&folder, &["demo", "--input", "in", "--json"]));
    assert_eq!(object["mismatches"], 0);
    assert_eq!(object["recovered"], object["acknowledged"]);
    assert!(object["acknowledged"].as_u64().unwrap() > 0);
}

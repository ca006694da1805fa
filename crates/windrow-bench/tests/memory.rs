//! `--memory`: the program locks all memory of the machine but a rest, and unlocks it at its end.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]
#![expect(clippy::print_stderr, reason = "a test that is skipped says why")]
#![expect(
    clippy::disallowed_methods,
    reason = "the test looks at files and at processes of the system"
)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};

const PROGRAM: &str = env!("CARGO_BIN_EXE_windrow-bench");
/// The memory that a test locks. Other programs may take more in the meantime.
const LOCKED_BYTES: u64 = 512 << 20;

/// The number after `name` in a file of the kernel, in bytes.
fn kernel(path: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? << 10)
}

/// An argument of --memory that makes the program lock little.
fn left() -> String {
    let available = kernel("/proc/meminfo", "MemAvailable:").unwrap();
    (available - LOCKED_BYTES.min(available / 2)).to_string()
}

/// A process that holds memory; `None` with a reason if this user may not lock it.
fn holder() -> Option<(Child, String)> {
    let mut child = Command::new(PROGRAM)
        .args(["hold-memory", &left()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    if line.contains("ulimit -l") {
        child.wait().unwrap();
        eprintln!("skipped: {line}");
        return None;
    }
    Some((child, line))
}

fn run(arguments: &[&str]) -> Output {
    Command::new(PROGRAM).args(arguments).output().unwrap()
}

#[test]
fn a_holder_locks_memory_and_ends_with_its_input() {
    let Some((mut child, line)) = holder() else {
        return;
    };
    assert_eq!(line, "held\n");
    let process = format!("/proc/{}", child.id());
    // It takes at least what no other program has taken in the meantime, and all of it is resident.
    let locked = kernel(&format!("{process}/status"), "VmLck:").unwrap();
    let resident = kernel(&format!("{process}/status"), "VmRSS:").unwrap();
    assert!(locked > 0 && resident > 8 << 20, "{locked}, {resident}");
    let first_to_end = fs::read_to_string(format!("{process}/oom_score_adj")).unwrap();
    assert_eq!(first_to_end.trim(), "1000");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn the_holder_of_a_killed_run_ends() {
    let Some((mut probe, _)) = holder() else {
        return;
    };
    drop(probe.stdin.take());
    probe.wait().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut killed = Command::new(PROGRAM)
        .args(["run", "fillseq,overwrite", "--num", "100"])
        // The second load takes hours.
        .args(["--ops", "1000000000000", "--memory", &left(), "--db"])
        .arg(folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(killed.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("fillseq")));
    let id = killed.id();
    let children = format!("/proc/{id}/task/{id}/children");
    let children = fs::read_to_string(children).unwrap();
    let children: Vec<&str> = children.split_whitespace().collect();
    let [holder] = children.as_slice() else {
        panic!("{children:?}");
    };
    let holder = format!("/proc/{holder}");
    let command = fs::read_to_string(format!("{holder}/cmdline")).unwrap();
    assert!(command.contains("hold-memory"), "{command}");
    // kill -9
    killed.kill().unwrap();
    killed.wait().unwrap();
    while is_alive(&holder) {
        thread::sleep(Duration::from_millis(10));
    }
}

/// Whether the process has not ended. Nobody may wait for an orphan, so its entry may stay.
fn is_alive(process: &str) -> bool {
    let stat = fs::read_to_string(Path::new(process).join("stat")).unwrap_or_default();
    let state = stat
        .rsplit(") ")
        .next()
        .and_then(|rest| rest.chars().next());
    state.is_some_and(|state| !"ZX".contains(state))
}

#[test]
fn what_cannot_be_left_is_refused_before_anything_is_created() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let file = folder.path().join("campaign");
    let (store, file) = (store.to_str().unwrap(), file.to_str().unwrap());
    for (size, says) in [
        ("63M", "the minimum is 64 MiB"),
        ("1PB", "that this machine has available"),
        ("much", "expected a number of bytes"),
    ] {
        let run_line = ["run", "fillseq", "--num", "10", "--memory", size];
        let campaign = [&["campaign", file][..], &run_line[1..]].concat();
        for line in [[&run_line[..], &["--db", store]].concat(), campaign] {
            let output = run(&line);
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(said.contains(says), "{said}");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    }
}

#[test]
fn a_run_that_may_not_lock_memory_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    // Root may lock memory by a capability. Its loss affects this thread and its children only.
    remove_capability_from_bounding_set(CapabilitySet::IPC_LOCK).unwrap_or_default();
    let output = Command::new("sh")
        .args(["-c", "ulimit -l 0; exec \"$0\" \"$@\"", PROGRAM])
        .args(["run", "fillseq", "--num", "10", "--memory", &left(), "--db"])
        .arg(&store)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("--memory locks memory"), "{said}");
    assert!(said.contains("ulimit -l"), "{said}");
    assert!(!store.exists());
}

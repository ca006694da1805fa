//! The program `windrow-bench`: the limits of a device, alone and in the reports of campaigns on the device.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]
#![expect(clippy::disallowed_methods, reason = "the test looks at files")]

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;

fn bench(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_windrow-bench");
    Command::new(program).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap()
}

#[test]
fn a_device_is_measured_as_a_table_and_as_json() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    let small = ["device", place, "--size", "2M", "--seconds", "0.01"];
    let table = bench(&small);
    assert_eq!(table.status.code(), Some(0), "{table:?}");
    let table = text(&table.stdout);
    for row in [
        "random reads of 4 KiB, one at a time",
        "sequential writes",
        "measured ",
    ] {
        assert_eq!(table.matches(row).count(), 1, "{table}");
    }
    let object = bench(&[&small[..], &["--json"]].concat());
    let object: Value = serde_json::from_slice(&object.stdout).unwrap();
    for limit in [
        "random_reads_per_second",
        "random_reads_at_32_per_second",
        "sequential_read_bytes_per_second",
        "sequential_written_bytes_per_second",
    ] {
        assert!(object[limit].as_f64() > Some(0.0), "{object}");
    }
    assert!(object["is_direct"].is_boolean());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    assert_eq!(
        bench(&["device", place, "--seconds", "0"]).status.code(),
        Some(1)
    );
    assert_eq!(bench(&["device", "/nowhere"]).status.code(), Some(2));
}

#[test]
fn a_campaign_on_the_device_begins_with_its_limits() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("campaign");
    let page = folder.path().join("page");
    let (file, page) = (file.to_str().unwrap(), page.to_str().unwrap());
    let run = |flags: &[&str]| {
        let line = [
            "campaign",
            file,
            "--rounds",
            "1",
            "fillseq,readseq",
            "--num",
            "100",
        ];
        let output = bench(&[flags, &line, &["--drop-caches"]].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        text(&output.stdout).to_owned()
    };
    let table = run(&[]);
    assert_eq!(table.matches("device: ").count(), 1, "{table}");
    assert!(table.contains("dropped before each load: "), "{table}");
    let begun = fs::read_to_string(file).unwrap();
    let header: Value = serde_json::from_str(begun.lines().next().unwrap()).unwrap();
    let limits = &header["campaign"]["device"];
    assert!(
        limits["random_reads_per_second"].as_f64() > Some(0.0),
        "{header}"
    );
    // A resumed campaign keeps its limits.
    let objects = run(&["--json"]);
    let objects = objects
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let objects: Vec<Value> = objects.collect();
    assert!(
        objects.iter().any(|object| object["device"] == *limits),
        "{objects:?}"
    );
    assert_eq!(fs::read_to_string(file).unwrap(), begun);
    let written = bench(&["report", file, "--output", page]);
    assert_eq!(written.status.code(), Some(0), "{written:?}");
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("random reads of 4 KiB, one at a time: "));
    // Campaigns in memory need no limits.
    let other = format!("{file}-2");
    let output = bench(&[
        "campaign", &other, "--rounds", "1", "fillseq", "--num", "10",
    ]);
    assert!(!text(&output.stdout).contains("device: "), "{output:?}");
}

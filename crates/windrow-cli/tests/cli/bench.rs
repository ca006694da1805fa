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

#[test]
#[cfg(target_os = "linux")]
fn a_bench_leaves_memory_and_drops_caches() {
    let folder = TempDir::new().unwrap();
    let with = |memory: &str| {
        let loads = ["bench", "fillrandom,readrandom", "--num", "1000"];
        let settings = ["--memory", memory, "--drop-caches", "--json"];
        windrow(&folder, &[&loads[..], &settings].concat())
    };
    assert_eq!(code(&with("1M")), 1);
    let available = fs::read_to_string("/proc/meminfo").unwrap();
    let (_, available) = available.split_once("MemAvailable:").unwrap();
    let kibibytes = available.split_whitespace().next().unwrap();
    let kibibytes: u64 = kibibytes.parse().unwrap();
    // It locks little, since other tests need memory, too.
    let left = kibibytes - (256 << 10).min(kibibytes / 2);
    let output = with(&format!("{left}K"));
    if problem(&output).contains("ulimit -l") {
        eprintln!("skipped: {}", problem(&output));
        return;
    }
    assert!(json(&output)["dropped_caches"].is_string(), "{output:?}");
}

#[test]
#[cfg(unix)]
fn a_device_has_limits() {
    let folder = TempDir::new().unwrap();
    let small = ["device", ".", "--size", "2M", "--seconds", "0.01"];
    let output = windrow(&folder, &small);
    assert!(done(&output).contains("sequential reads"), "{output:?}");
    let limits = json(&windrow(&folder, &[&small[..], &["--json"]].concat()));
    assert!(limits["random_reads_per_second"].as_f64() > Some(0.0));
    assert_eq!(code(&windrow(&folder, &["device", "missing"])), 2);
}

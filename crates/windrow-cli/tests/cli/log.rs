//! The job log as the program shows it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use windrow::{Db, Options};

use crate::common::{code, done, problem, text, windrow};

/// The names of the events, but for moves of files: whether one comes before the end of a command is a matter of time.
fn events(lines: &[String]) -> Vec<String> {
    let events = lines
        .iter()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    events
        .map(|event| event["event"].as_str().unwrap().to_owned())
        .filter(|name| name != "file_moved")
        .collect()
}

fn objects(folder: &TempDir, arguments: &[&str]) -> Vec<String> {
    let printed = windrow(folder, &[&["log", "db", "--json"], arguments].concat());
    done(&printed).lines().map(str::to_owned).collect()
}

#[test]
fn the_log_of_jobs_is_shown() {
    let folder = TempDir::new().unwrap();
    assert_eq!(code(&windrow(&folder, &["log", "db"])), 1);
    done(&windrow(&folder, &["put", "db", "key", "value"]));
    done(&windrow(&folder, &["flush", "db"]));
    let lines = windrow(&folder, &["log", "db"]);
    assert!(done(&lines).contains(" flush_ended keyspace=\"default\" entries=1 "));
    let expected = [
        "opened",
        "closed",
        "opened",
        "flush_began",
        "flush_ended",
        "closed",
    ];
    let before = objects(&folder, &[]);
    assert_eq!(events(&before), expected);
    assert_eq!(
        objects(&folder, &["--last", "2"]),
        before[before.len() - 2..]
    );

    // A crash may leave anything at the end.
    let path = folder.path().join("db/LOG");
    let mut log = fs::read(&path).unwrap();
    log.extend([0; 20]);
    log.extend(b"2026-11-27T0\xff");
    fs::write(&path, &log).unwrap();
    done(&windrow(&folder, &["put", "db", "key", "value"]));
    let all = objects(&folder, &[]);
    let (old, new) = all.split_at(before.len());
    assert_eq!(old, before);
    let (torn, new) = new.split_first().unwrap();
    assert!(torn.starts_with("{\"line\":\"2026-11-27T0"), "{torn}");
    assert_eq!(events(new), ["opened", "closed"]);
    assert!(problem(&windrow(&folder, &["log", "db"])).is_empty());

    fs::rename(&path, folder.path().join("db/LOG.old")).unwrap();
    done(&windrow(&folder, &["get", "db", "key"]));
    let lines = windrow(&folder, &["log", "db"]);
    assert_eq!(text(&lines).lines().count(), all.len());
}

#[test]
fn the_log_is_followed_through_its_rotation() {
    let folder = TempDir::new().unwrap();
    let mut options = Options::default();
    options.job_log_bytes = 4 << 10;
    let db = Db::open(folder.path().join("db"), options).unwrap();
    let keyspace = db.keyspace("default").unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_windrow"))
        .args(["log", "db", "--follow", "--json"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || {
        let line = lines.next().unwrap().unwrap();
        serde_json::from_str::<Value>(&line).unwrap()
    };
    assert_eq!(next()["event"], "opened");
    for number in 0..30_u32 {
        keyspace.insert(number.to_be_bytes(), "value").unwrap();
        db.flush().unwrap();
        loop {
            let event = next();
            if event["event"] == "flush_ended" {
                assert_eq!(event["entries"], 1);
                break;
            }
        }
    }
    assert!(folder.path().join("db/LOG.old").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    db.close().unwrap();
}

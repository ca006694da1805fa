//! `changes` and `consumers`.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::{code, done, json, json_error, problem, windrow};

/// The changes that `arguments` print as JSON.
#[track_caller]
fn changes(folder: &TempDir, arguments: &[&str]) -> Vec<Value> {
    let arguments = [&["changes", "db", "--json"][..], arguments].concat();
    let output = windrow(folder, &arguments);
    let lines = done(&output).lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn what_the_logs_have_is_printed_in_order() {
    let folder = TempDir::new().unwrap();
    done(&windrow(&folder, &["put", "db", "a", "1"]));
    done(&windrow(
        &folder,
        &["put", "db", "a\tb", "2", "--keyspace", "log"],
    ));
    done(&windrow(&folder, &["delete", "db", "a"]));
    let printed = windrow(&folder, &["changes", "db"]);
    let lines = "1\tinsert\tdefault\ta\t1\n2\tinsert\tlog\ta\\tb\t2\n3\tremove\tdefault\ta\n";
    assert_eq!(done(&printed), lines);
    let [second, third] = &changes(&folder, &["--from", "2"])[..] else {
        unreachable!("two changes")
    };
    let write = json!({ "keyspace": "log", "write": "insert", "key": "a\tb", "value": "2" });
    assert_eq!(
        *second,
        json!({ "sequence": 2, "change": "batch", "first_sequence": 2, "writes": [write] })
    );
    let write = json!({ "keyspace": "default", "write": "remove", "key": "a" });
    assert_eq!(third["writes"], json!([write]));
    // Nothing was written: the next open finds what the first one has found.
    assert_eq!(changes(&folder, &[]).len(), 3);
    assert_eq!(changes(&folder, &["--from", "4"]), Vec::<Value>::new());
    let above = windrow(&folder, &["changes", "db", "--from", "5"]);
    assert_eq!(code(&above), 1, "{}", problem(&above));
    done(&windrow(&folder, &["compact", "db", "--keyspace", "log"]));
    done(&windrow(&folder, &["compact", "db"]));
    let gone = windrow(&folder, &["changes", "db", "--json"]);
    assert_eq!(code(&gone), 1);
    assert_eq!(json_error(&gone)["kind"], "FellBehind");
    let nowhere = windrow(&folder, &["changes", "nowhere"]);
    assert_eq!(code(&nowhere), 1);
}

#[test]
fn a_consumer_reads_each_change_once_and_holds_it_until_then() {
    let folder = TempDir::new().unwrap();
    done(&windrow(&folder, &["put", "db", "a", "1"]));
    let created = windrow(&folder, &["changes", "db", "--consumer", "audit"]);
    assert_eq!(done(&created), "");
    assert!(
        problem(&created).contains("is new"),
        "{}",
        problem(&created)
    );
    done(&windrow(
        &folder,
        &["put", "db", "b", "2", "--keyspace", "log"],
    ));
    done(&windrow(&folder, &["compact", "db", "--keyspace", "log"]));
    done(&windrow(&folder, &["compact", "db"]));
    done(&windrow(
        &folder,
        &["drop-keyspace", "db", "default", "--yes"],
    ));

    let listed = json(&windrow(&folder, &["consumers", "db", "--json"]));
    assert_eq!(listed["name"], "audit");
    assert_eq!(listed["acknowledged"], 1);
    assert_eq!(listed["is_behind"], false);
    assert!(listed["held_bytes"].as_u64().unwrap() > 0, "{listed}");
    let table = windrow(&folder, &["consumers", "db"]);
    assert!(done(&table).contains("audit"), "{table:?}");

    let read = changes(&folder, &["--consumer", "audit"]);
    let kinds: Vec<&Value> = read.iter().map(|it| &it["change"]).collect();
    assert_eq!(kinds, ["keyspace_created", "batch", "keyspace_dropped"]);
    assert_eq!(read[1]["writes"][0]["value"], "2");
    assert_eq!(
        changes(&folder, &["--consumer", "audit"]),
        Vec::<Value>::new()
    );
    let listed = json(&windrow(&folder, &["consumers", "db", "--json"]));
    assert_eq!(listed["held_bytes"], 0);

    let both = windrow(
        &folder,
        &["changes", "db", "--consumer", "audit", "--from", "2"],
    );
    assert_eq!(code(&both), 1);
    let remove = ["consumers", "db", "--remove", "audit", "--json"];
    assert_eq!(json(&windrow(&folder, &remove))["removed"], "audit");
    assert_eq!(code(&windrow(&folder, &remove)), 1);
    let none = windrow(&folder, &["consumers", "db"]);
    assert_eq!(done(&none), "");
    assert!(problem(&none).contains("no consumers"), "{none:?}");
}

/// A follower in a process of its own, killed at the end of the test.
struct Follower {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Follower {
    fn start(folder: &TempDir, arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_windrow"))
            .args(["changes", "db", "--follow", "--json"])
            .args(arguments)
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// The next change. Waits for it.
    fn next(&mut self) -> Value {
        let line = self.lines.next().unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn a_follower_sees_what_this_process_commits() {
    let folder = TempDir::new().unwrap();
    let db = windrow::Db::open(folder.path().join("db"), windrow::Options::default()).unwrap();
    let keyspace = db.keyspace("default").unwrap();
    keyspace.insert("before", "").unwrap();
    let mut follower = Follower::start(&folder, &[]);
    assert_eq!(follower.next()["writes"][0]["key"], "before");
    for round in 0..4 {
        let value = "v".repeat(2000);
        keyspace.insert(format!("{round}"), &value).unwrap();
        let change = follower.next();
        assert_eq!(change["writes"][0]["key"], format!("{round}"));
        assert_eq!(change["writes"][0]["value"], value);
    }
    drop(follower);
    keyspace.insert("after", "").unwrap();
    db.close().unwrap();
}

/// Writes while others may have the database open.
fn put(folder: &TempDir, key: &str) {
    loop {
        let output = windrow(folder, &["put", "db", key, "v", "--json"]);
        if code(&output) == 0 {
            return;
        }
        assert_eq!(
            json_error(&output)["kind"],
            "Locked",
            "{}",
            problem(&output)
        );
    }
}

#[test]
fn followers_see_what_other_processes_write() {
    let folder = TempDir::new().unwrap();
    put(&folder, "first");
    done(&windrow(&folder, &["changes", "db", "--consumer", "c"]));
    put(&folder, "0");
    let mut reader = Follower::start(&folder, &["--from", "2"]);
    let mut consumer = Follower::start(&folder, &["--consumer", "c"]);
    for key in ["0", "1", "2"] {
        if key != "0" {
            put(&folder, key);
        }
        for follower in [&mut reader, &mut consumer] {
            assert_eq!(follower.next()["writes"][0]["key"], key);
        }
    }
}

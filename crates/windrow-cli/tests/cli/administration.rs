//! `keyspaces`, `drop-keyspace`, `prepared`, `flush`, `checkpoint`, `dump`, `verify`, `repair`, `completions` and `man`.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::common::{code, done, json, json_error, problem, windrow};

#[test]
fn a_checkpoint_is_a_database() {
    let folder = TempDir::new().unwrap();
    done(&windrow(&folder, &["put", "db", "a", "1"]));
    done(&windrow(&folder, &["compact", "db"]));
    done(&windrow(&folder, &["put", "db", "b", "2"]));
    let made = json(&windrow(&folder, &["checkpoint", "db", "copy", "--json"]));
    assert_eq!(made["sequence"], 2);
    done(&windrow(&folder, &["put", "db", "c", "3"]));
    done(&windrow(&folder, &["compact", "db"]));
    let copied = windrow(&folder, &["scan", "copy", "--keys-only"]);
    assert_eq!(done(&copied), "a\nb\n");
    done(&windrow(&folder, &["verify", "copy"]));
    let again = windrow(&folder, &["checkpoint", "db", "copy"]);
    assert_eq!(code(&again), 1, "{}", problem(&again));
}

#[test]
fn a_repair_writes_a_new_database_and_says_what_is_lost() {
    let folder = TempDir::new().unwrap();
    done(&windrow(&folder, &["put", "db", "a", "1"]));
    done(&windrow(&folder, &["compact", "db"]));
    done(&windrow(&folder, &["put", "db", "b", "2"]));
    let whole = json(&windrow(
        &folder,
        &["repair", "db", "--to", "same", "--json"],
    ));
    assert_eq!(whole["whole"], true);
    assert_eq!(whole["keyspaces"][0]["entries"], 2);
    let again = windrow(&folder, &["repair", "db", "--to", "same"]);
    assert_eq!(code(&again), 1, "{}", problem(&again));
    fs::remove_file(folder.path().join("db/CURRENT")).unwrap();
    let refused = windrow(&folder, &["scan", "db"]);
    assert_eq!(code(&refused), 3, "{}", problem(&refused));
    let repaired = windrow(&folder, &["repair", "db", "--to", "new"]);
    assert_eq!(code(&repaired), 3, "{}", problem(&repaired));
    let shown = String::from_utf8(repaired.stdout).unwrap();
    assert!(shown.contains("lost: CURRENT"), "{shown}");
    let scanned = windrow(&folder, &["scan", "new", "--keys-only"]);
    assert_eq!(done(&scanned), "a\nb\n");
    done(&windrow(&folder, &["verify", "new"]));
    let nowhere = windrow(&folder, &["repair", "nowhere", "--to", "other"]);
    assert_eq!(code(&nowhere), 1, "{}", problem(&nowhere));
}

#[test]
fn a_keyspace_can_be_dropped() {
    let folder = TempDir::new().unwrap();
    done(&windrow(&folder, &["put", "db", "a", "1"]));
    done(&windrow(
        &folder,
        &["put", "db", "a", "2", "--keyspace", "log"],
    ));
    done(&windrow(&folder, &["compact", "db", "--keyspace", "log"]));
    // Nobody can answer, so nothing is dropped.
    let asked = windrow(&folder, &["drop-keyspace", "db", "log"]);
    assert_eq!(code(&asked), 1);
    assert!(problem(&asked).contains("--yes"), "{}", problem(&asked));
    let listed = windrow(&folder, &["keyspaces", "db", "--json"]);
    let names: Vec<Value> = done(&listed)
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["name"].clone())
        .collect();
    assert_eq!(names, ["default", "log"]);
    let drop = ["drop-keyspace", "db", "log", "--yes", "--json"];
    let dropped = json(&windrow(&folder, &drop));
    let (before, after) = (&dropped["disk_bytes_before"], &dropped["disk_bytes_after"]);
    assert!(after.as_u64() < before.as_u64(), "{dropped}");
    let again = windrow(&folder, &drop);
    assert_eq!(code(&again), 1);
    assert_eq!(
        json_error(&again)["message"],
        "db has no keyspace \"log\"; it has \"default\""
    );
    let listed = windrow(&folder, &["keyspaces", "db"]);
    assert!(!done(&listed).contains("log"), "{listed:?}");
    let gone = ["get", "db", "a", "--keyspace", "log"];
    assert_eq!(code(&windrow(&folder, &gone)), 1);
    assert_eq!(done(&windrow(&folder, &["get", "db", "a"])), "1\n");
}

#[test]
fn files_of_a_database_can_be_dumped() {
    let folder = TempDir::new().unwrap();
    done(&windrow(&folder, &["put", "db", "a", "1"]));
    done(&windrow(&folder, &["compact", "db"]));
    let mut endings = Vec::new();
    for file in fs::read_dir(folder.path().join("db")).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        if ["LOCK", "LOG", "RESERVE"].contains(&name.as_str()) {
            continue;
        }
        let path = format!("db/{name}");
        assert!(
            !done(&windrow(&folder, &["dump", &path])).is_empty(),
            "{name}"
        );
        let dumped = windrow(&folder, &["dump", &path, "--json"]);
        let records: Vec<Value> = done(&dumped)
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let ending = name.rsplit('.').next().unwrap();
        let (record, field, expected) = match ending {
            "CURRENT" => ("current", "manifest", None),
            "manifest" => ("create_keyspace", "name", Some("default")),
            "table" => ("value", "key", Some("a")),
            _ => ("wal_header", "offset", None),
        };
        let found = records.iter().find(|found| found["record"] == record);
        match expected {
            Some(text) => assert_eq!(found.unwrap()[field], text),
            None => assert!(found.unwrap()[field].is_u64()),
        }
        endings.push(ending.to_owned());
    }
    endings.sort();
    endings.dedup();
    assert_eq!(endings, ["CURRENT", "manifest", "table", "wal"]);
}

#[test]
fn a_flush_leaves_nothing_in_memtables() {
    let folder = TempDir::new().unwrap();
    done(&windrow(&folder, &["put", "db", "a", "1"]));
    let held = || json(&windrow(&folder, &["keyspaces", "db", "--json"]));
    assert_eq!(
        (&held()["entries"], &held()["unflushed_entries"]),
        (&1.into(), &1.into())
    );
    let flushed = json(&windrow(&folder, &["flush", "db", "--json"]));
    assert!(flushed["table_bytes"].as_u64().unwrap() > 0, "{flushed}");
    assert_eq!(
        (&held()["entries"], &held()["unflushed_entries"]),
        (&1.into(), &0.into())
    );
    let again = windrow(&folder, &["flush", "db"]);
    assert_eq!(
        done(&again),
        "0 B written to tables, 0 B to transient logs\n"
    );
    assert_eq!(code(&windrow(&folder, &["flush", "nowhere"])), 1);
}

#[test]
fn shells_and_manuals_know_every_command() {
    let folder = TempDir::new().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let script = windrow(&folder, &["completions", shell]);
        for name in ["drop-keyspace", "--key-column", "completions"] {
            let name = name.trim_start_matches("--");
            assert!(done(&script).contains(name), "{shell}: {name}");
        }
    }
    assert_eq!(code(&windrow(&folder, &["completions", "csh"])), 1);
    let written = json(&windrow(&folder, &["man", "man1", "--json"]));
    let pages = fs::read_dir(folder.path().join("man1")).unwrap().count();
    assert_eq!(written["pages"], pages);
    let page = |name: &str| fs::read_to_string(folder.path().join("man1").join(name)).unwrap();
    assert!(page("windrow.1").contains("windrow"));
    assert!(page("windrow-load.1").contains("value\\-column"));
    assert!(!folder.path().join("man1/windrow-demo-writer.1").exists());
}

#[test]
fn prepared_transactions_are_listed_and_ended() {
    let folder = TempDir::new().unwrap();
    let db = windrow::Db::open(folder.path().join("db"), windrow::Options::default()).unwrap();
    let stock = db.keyspace("default").unwrap();
    for (key, name) in [("apples", "order 17"), ("pears", "order 18")] {
        let transaction = db.transaction();
        transaction.insert(&stock, key, "1").unwrap();
        transaction.prepare(name).unwrap();
    }
    drop(stock);
    db.close().unwrap();
    let prepared = |arguments: &[&str]| {
        let arguments = [&["prepared", "db"], arguments].concat();
        windrow(&folder, &arguments)
    };
    assert_eq!(done(&prepared(&[])), "order 17\norder 18\n");
    for command in ["keyspaces", "stats", "levels", "values"] {
        for form in [&[command, "db"][..], &[command, "db", "--json"]] {
            let shown = windrow(&folder, form);
            let text = done(&shown);
            assert!(
                text.contains("default") && !text.contains("windrow.prepared"),
                "{text}"
            );
        }
    }
    assert_eq!(
        done(&prepared(&["--commit", "order 17"])),
        "committed \"order 17\"\n"
    );
    let listed = json(&prepared(&["--json"]));
    assert_eq!(listed["name"], "order 18");
    let again = prepared(&["--commit", "order 17", "--json"]);
    assert_eq!(code(&again), 1);
    let message = "db has no prepared transaction \"order 17\"";
    assert_eq!(json_error(&again)["message"], message);
    let both = ["--commit", "order 18", "--roll-back", "order 18"];
    assert_eq!(code(&prepared(&both)), 1);
    let ended = json(&prepared(&["--roll-back", "order 18", "--json"]));
    assert_eq!(ended["rolled_back"], "order 18");
    assert_eq!(done(&prepared(&[])), "");
    assert_eq!(done(&windrow(&folder, &["scan", "db"])), "apples\t1\n");
}

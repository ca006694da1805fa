//! `backup`, `archive`, `backups`, `restore` and `purge`.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::common::{code, done, json, json_error, problem, windrow};

/// A database with two backups.
fn start() -> TempDir {
    let folder = TempDir::new().unwrap();
    done(&windrow(&folder, &["put", "db", "a", "1"]));
    done(&windrow(&folder, &["compact", "db"]));
    done(&windrow(&folder, &["backup", "db", "store/shop"]));
    done(&windrow(&folder, &["put", "db", "b", "2"]));
    let made = json(&windrow(&folder, &["backup", "db", "store/shop", "--json"]));
    assert_eq!((&made["backup"], &made["sequence"]), (&2.into(), &2.into()));
    assert!(made["copied_bytes"].as_u64() < made["bytes"].as_u64().map(|it| it + 1000));
    folder
}

fn listed(folder: &TempDir) -> Vec<Value> {
    let listed = windrow(folder, &["backups", "store/shop", "--json"]);
    let lines = str::from_utf8(&listed.stdout).unwrap().lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn numbers(folder: &TempDir) -> Vec<u64> {
    let numbers = listed(folder)
        .into_iter()
        .map(|it| it["backup"].as_u64().unwrap());
    numbers.collect()
}

#[test]
fn backups_are_listed_restored_and_purged() {
    let folder = start();
    let backups = listed(&folder);
    assert_eq!(numbers(&folder), [1, 2]);
    assert_eq!(backups[1]["sequence"], 2);
    assert!(backups[1]["created"].as_str().unwrap().ends_with('Z'));
    let table = windrow(&folder, &["backups", "store/shop"]);
    assert!(done(&table).contains("own bytes") && done(&table).lines().count() > 4);

    done(&windrow(&folder, &["restore", "store/shop", "newest"]));
    assert_eq!(done(&windrow(&folder, &["scan", "newest"])), "a\t1\nb\t2\n");
    let restore = ["restore", "store/shop", "first", "--backup", "1", "--json"];
    assert_eq!(json(&windrow(&folder, &restore))["sequence"], 1);
    assert_eq!(done(&windrow(&folder, &["scan", "first"])), "a\t1\n");
    done(&windrow(&folder, &["verify", "first"]));
    // Nothing is restored over a database.
    let again = windrow(&folder, &["restore", "store/shop", "newest"]);
    assert_eq!(code(&again), 1, "{}", problem(&again));
    assert_eq!(done(&windrow(&folder, &["scan", "newest"])), "a\t1\nb\t2\n");

    let verified = json(&windrow(
        &folder,
        &["backups", "store/shop", "--verify", "--json"],
    ));
    assert_eq!(verified["sound"], true);
    assert_eq!(verified["backups"], serde_json::json!([1, 2]));
    let one = ["backups", "store/shop", "--verify", "--backup", "2"];
    assert!(done(&windrow(&folder, &one)).starts_with("sound: 1 backup"));

    let old = ["purge", "store/shop", "--older-than", "1h"];
    assert!(done(&windrow(&folder, &old)).starts_with("0 backups"));
    let purged = json(&windrow(
        &folder,
        &["purge", "store/shop", "--keep", "1", "--json"],
    ));
    assert_eq!(purged["backups"], serde_json::json!([1]));
    assert_eq!(numbers(&folder), [2]);
    let last = ["purge", "store/shop", "--backup", "2", "--json"];
    assert!(json(&windrow(&folder, &last))["pieces"].as_u64() > Some(0));
    assert!(numbers(&folder).is_empty());
    let left: Vec<_> = fs::read_dir(folder.path().join("store/shop"))
        .unwrap()
        .collect();
    assert_eq!(left.len(), 1, "the lock: {left:?}");
}

#[test]
fn a_damaged_backup_is_named_and_ends_with_three() {
    let folder = start();
    let store = folder.path().join("store/shop");
    let flip = |path: &Path| {
        let mut bytes = fs::read(path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(path, bytes).unwrap();
    };
    // The table, which both backups have.
    let files = fs::read_dir(&store)
        .unwrap()
        .map(|file| file.unwrap().path());
    let pieces = files.filter(|path| path.extension().is_some_and(|it| it == "piece"));
    let largest = pieces
        .max_by_key(|path| path.metadata().unwrap().len())
        .unwrap();
    flip(&largest);
    done(&windrow(&folder, &["backups", "store/shop"]));
    let verified = windrow(&folder, &["backups", "store/shop", "--verify"]);
    assert_eq!(code(&verified), 3);
    let text = str::from_utf8(&verified.stdout).unwrap();
    let name = largest.file_name().unwrap().to_str().unwrap();
    assert!(text.contains(name) && text.contains("DAMAGED"), "{text}");
    flip(&largest);

    flip(&store.join("000002.backup"));
    let table = windrow(&folder, &["backups", "store/shop"]);
    assert_eq!(code(&table), 3);
    assert!(
        str::from_utf8(&table.stdout)
            .unwrap()
            .contains("000002.backup")
    );
    assert!(
        listed(&folder)[1]["damage"]
            .as_str()
            .unwrap()
            .contains("000002.backup")
    );
    let restored = windrow(&folder, &["restore", "store/shop", "copy", "--json"]);
    assert_eq!(code(&restored), 3);
    let error = json_error(&restored);
    assert_eq!(error["kind"], "Corruption");
    assert!(error["message"].as_str().unwrap().contains("backup 2"));
    assert!(!folder.path().join("copy").exists());
    let purged = windrow(&folder, &["purge", "store/shop", "--keep", "1"]);
    assert_eq!(code(&purged), 3, "{}", problem(&purged));
    // The older one is still there, and the damaged one can be removed.
    done(&windrow(
        &folder,
        &["restore", "store/shop", "copy", "--backup", "1"],
    ));
    done(&windrow(&folder, &["purge", "store/shop", "--backup", "2"]));
    assert_eq!(numbers(&folder), [1]);
}

#[test]
fn a_scrub_names_the_newest_backup_that_has_a_damaged_table_whole() {
    let folder = start();
    assert!(done(&windrow(&folder, &["scrub", "db", "--rate", "1M"])).starts_with("sound: "));
    let files = fs::read_dir(folder.path().join("db")).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    let mut tables = paths.filter(|path| path.extension().is_some_and(|it| it == "table"));
    let table = tables.next().unwrap();
    let mut bytes = fs::read(&table).unwrap();
    bytes[10] ^= 1;
    fs::write(&table, bytes).unwrap();
    // The third backup has the damage, too.
    done(&windrow(&folder, &["backup", "db", "store/shop"]));

    let alone = windrow(&folder, &["scrub", "db"]);
    assert_eq!(code(&alone), 3);
    let text = str::from_utf8(&alone.stdout).unwrap();
    assert!(
        text.contains("windrow repair") && text.contains("DAMAGED"),
        "{text}"
    );
    let named = ["scrub", "db", "--backups", "store/shop", "--json"];
    let output = windrow(&folder, &named);
    assert_eq!(code(&output), 3);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let damage = &report["damage"][0];
    let name = table.file_name().unwrap().to_str().unwrap();
    assert_eq!(
        (&damage["file"], &damage["backup"]),
        (&name.into(), &2.into())
    );

    done(&windrow(
        &folder,
        &["restore", "store/shop", "copy", "--backup", "2"],
    ));
    fs::copy(folder.path().join("copy").join(name), &table).unwrap();
    assert_eq!(json(&windrow(&folder, &named))["sound"], true);
}

/// Nobody knows whether it is damaged.
#[test]
fn a_backup_that_cannot_be_read_ends_with_two() {
    let folder = start();
    let manifest = folder.path().join("store/shop/000002.backup");
    fs::remove_file(&manifest).unwrap();
    fs::create_dir(&manifest).unwrap();
    let output = windrow(&folder, &["backups", "store/shop"]);
    assert_eq!(code(&output), 2);
    let table = str::from_utf8(&output.stdout).unwrap();
    assert!(table.contains("000002.backup"), "{table}");
    let listed = listed(&folder);
    assert_eq!(listed.len(), 2);
    assert_eq!(listed[0]["backup"], 1);
    assert!(listed[0]["sequence"].is_u64());
}

#[test]
fn wrong_requests_create_nothing() {
    let folder = start();
    for arguments in [
        &["backup", "nowhere", "store/other"][..],
        &["backup", "db", "db"],
        &["backups", "nowhere"],
        &["backups", "db"],
        &["backups", "store/shop", "--backup", "1"],
        &["backups", "store/shop", "--verify", "--backup", "7"],
        &["restore", "nowhere", "copy"],
        &["restore", "store/shop", "copy", "--backup", "7"],
        &["restore", "store/shop", "db"],
        &["purge", "nowhere", "--keep", "1"],
        &["purge", "store/shop"],
        &["purge", "store/shop", "--keep", "0"],
        &["purge", "store/shop", "--keep", "1", "--older-than", "1h"],
        &["purge", "store/shop", "--backup", "7"],
    ] {
        let output = windrow(&folder, arguments);
        assert_eq!(code(&output), 1, "{arguments:?}: {}", problem(&output));
    }
    for name in ["nowhere", "copy", "store/other"] {
        assert!(!folder.path().join(name).exists(), "{name}");
    }
    assert_eq!(numbers(&folder), [1, 2]);
}

#[test]
fn states_between_backups_are_listed_and_restored() {
    let folder = TempDir::new().unwrap();
    done(&windrow(&folder, &["put", "db", "a", "1"]));
    let archive = ["archive", "db", "store/shop", "--json"];
    let first = json(&windrow(&folder, &archive));
    assert_eq!(
        (&first["backup"], &first["stretches"]),
        (&1.into(), &0.into())
    );
    let mut ends = Vec::new();
    for key in ["b", "c", "d"] {
        done(&windrow(&folder, &["put", "db", key, "2"]));
        let archived = json(&windrow(&folder, &archive));
        assert!(archived["backup"].is_null(), "{archived}");
        ends.push(archived["sequence"].as_u64().unwrap());
    }
    let shown = windrow(&folder, &["backups", "store/shop"]);
    let shown = done(&shown);
    let range = format!("{}-{}", ends[0] - 1, ends[2]);
    assert!(
        shown.contains("archived until") && shown.contains(&range),
        "{shown}"
    );
    let listed = windrow(&folder, &["backups", "store/shop", "--json"]);
    let lines = str::from_utf8(&listed.stdout).unwrap().lines();
    let reach: Value = serde_json::from_str(lines.last().unwrap()).unwrap();
    assert_eq!(reach["reachable_from"], 1);
    assert_eq!(
        reach["sequences"],
        serde_json::json!([[ends[0] - 1, ends[2]]])
    );

    let number = ends[1].to_string();
    let restore = ["restore", "store/shop", "two", "--to-sequence", &number];
    assert!(done(&windrow(&folder, &restore)).contains("of backup 1"));
    let scanned = windrow(&folder, &["scan", "two"]);
    assert_eq!(done(&scanned), "a\t1\nb\t2\nc\t2\n");
    done(&windrow(&folder, &["verify", "two"]));
    let later = [
        "restore",
        "store/shop",
        "later",
        "--to-time",
        "9000-01-01 00:00:00",
    ];
    done(&windrow(&folder, &later));
    let scanned = windrow(&folder, &["count", "later"]);
    assert!(done(&scanned).contains('4'));
    let before = [
        "restore",
        "store/shop",
        "before",
        "--to-time",
        "2001-01-01 00:00:00",
    ];
    assert_eq!(code(&windrow(&folder, &before)), 1);
    let beyond = ["restore", "store/shop", "beyond", "--to-sequence", "999"];
    let beyond = windrow(&folder, &beyond);
    assert_eq!(code(&beyond), 1);
    assert!(
        problem(&beyond).contains(&ends[2].to_string()),
        "{}",
        problem(&beyond)
    );
    let both = [
        "restore",
        "store/shop",
        "x",
        "--to-sequence",
        "1",
        "--to-time",
        "2001-01-01 00:00:00",
    ];
    assert_ne!(code(&windrow(&folder, &both)), 0);

    let verified = ["backups", "store/shop", "--verify", "--json"];
    assert_eq!(json(&windrow(&folder, &verified))["stretches"], 3);
    let store = folder.path().join("store/shop");
    let names = fs::read_dir(&store)
        .unwrap()
        .map(|file| file.unwrap().path());
    let is_stretch = |path: &std::path::PathBuf| path.extension().is_some_and(|it| it == "archive");
    let mut names = names;
    let stretch = names.find(is_stretch).unwrap();
    let dumped = windrow(&folder, &["dump", stretch.to_str().unwrap()]);
    assert!(done(&dumped).starts_with("stretch:"), "{}", done(&dumped));
    let mut bytes = fs::read(&stretch).unwrap();
    bytes[20] ^= 1;
    fs::write(&stretch, bytes).unwrap();
    for command in [
        &["backups", "store/shop"][..],
        &["backups", "store/shop", "--verify"],
    ] {
        let listed = windrow(&folder, command);
        assert_eq!(code(&listed), 3);
        let text = str::from_utf8(&listed.stdout).unwrap();
        let name = stretch.file_name().unwrap().to_str().unwrap();
        assert!(text.contains(name), "{text}");
    }
}

//! Commands that read, while this process has the database open and writes to it.

use std::fs;

use tempfile::TempDir;
use windrow::{Db, Options};

use crate::common::{done, json, windrow};

#[test]
fn commands_read_what_was_committed_a_moment_ago() {
    let folder = TempDir::new().unwrap();
    let db = Db::open(folder.path().join("db"), Options::default()).unwrap();
    let keyspace = db.keyspace("default").unwrap();
    for round in 0..3_u8 {
        for key in 0..50_u8 {
            let length = if key == 7 { 5000 } else { 100 };
            keyspace
                .insert(format!("{round}-{key:02}"), vec![b'v'; length])
                .unwrap();
        }
        let count = windrow(&folder, &["count", "db"]);
        assert_eq!(
            done(&count).trim(),
            (u32::from(round) * 50 + 50).to_string()
        );
        let large = format!("{round}-07");
        assert_eq!(
            done(&windrow(&folder, &["get", "db", &large])).trim().len(),
            5000
        );
        if round == 1 {
            db.flush().unwrap();
        }
    }
    let listed = windrow(
        &folder,
        &[
            "scan",
            "db",
            "--prefix",
            "2-",
            "--limit",
            "1",
            "--keys-only",
        ],
    );
    assert_eq!(done(&listed).trim(), "2-00");
    let stats = json(&windrow(&folder, &["stats", "db", "--json"]));
    assert_eq!(stats["sequence"], 150);
    for command in ["levels", "verify", "keyspaces", "values"] {
        done(&windrow(&folder, &[command, "db"]));
    }
    // Nothing is left behind.
    let leases = fs::read_dir(folder.path().join("db/readers")).unwrap();
    assert_eq!(leases.count(), 0);
    keyspace.insert("last", "").unwrap();
    db.close().unwrap();
}

#[test]
fn copies_are_made_beside_a_writer() {
    let folder = TempDir::new().unwrap();
    let db = Db::open(folder.path().join("db"), Options::default()).unwrap();
    let keyspace = db.keyspace("default").unwrap();
    for key in 0..100_u8 {
        keyspace.insert([key], vec![key; 2000]).unwrap();
        if key == 50 {
            db.flush().unwrap();
        }
    }
    done(&windrow(&folder, &["checkpoint", "db", "copy"]));
    done(&windrow(&folder, &["backup", "db", "store"]));
    keyspace.clear().unwrap();
    db.flush().unwrap();
    done(&windrow(&folder, &["restore", "store", "restored"]));
    for copy in ["copy", "restored"] {
        assert_eq!(done(&windrow(&folder, &["count", copy])).trim(), "100");
        done(&windrow(&folder, &["verify", copy]));
    }
    assert_eq!(done(&windrow(&folder, &["count", "db"])).trim(), "0");
}

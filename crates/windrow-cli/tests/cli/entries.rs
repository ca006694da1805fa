//! `put`, `get`, `delete`, `scan` and `count`.

use tempfile::TempDir;

use crate::common::{code, done, json, json_error, problem, text, windrow, windrow_with};

#[test]
fn entries_are_written_read_and_deleted() {
    let folder = TempDir::new().unwrap();
    done(&windrow(&folder, &["put", "db", "user:1", "Ada"]));
    done(&windrow(
        &folder,
        &["put", "db", "0xff00", "0xcafe", "--sync"],
    ));
    done(&windrow_with(
        folder.path(),
        &["put", "db", "piped"],
        b"a\nb\x00",
    ));

    assert_eq!(done(&windrow(&folder, &["get", "db", "user:1"])), "Ada\n");
    assert_eq!(
        done(&windrow(&folder, &["get", "db", "ff00", "--hex"])),
        "\\xca\\xfe\n"
    );
    let raw = windrow(&folder, &["get", "db", "piped", "--raw"]);
    assert_eq!(raw.stdout, b"a\nb\x00");
    let object = json(&windrow(&folder, &["get", "db", "0xff00", "--json"]));
    assert_eq!(object["value_hex"], "cafe");

    assert_eq!(done(&windrow(&folder, &["delete", "db", "user:1"])), "");
    assert_eq!(code(&windrow(&folder, &["delete", "db", "user:1"])), 1);
    let missing = windrow(&folder, &["get", "db", "user:1"]);
    assert_eq!((code(&missing), text(&missing)), (1, ""));
    assert_eq!(problem(&missing), "windrow: there is no key \"user:1\"\n");
}

#[test]
fn json_says_whether_a_key_was_found() {
    let folder = TempDir::new().unwrap();
    done(&windrow(&folder, &["put", "db", "a", "1"]));
    for (command, key, found) in [
        ("get", "a", true),
        ("get", "b", false),
        ("delete", "a", true),
        ("delete", "a", false),
    ] {
        let output = windrow(&folder, &[command, "db", key, "--json"]);
        assert_eq!(code(&output), i32::from(!found), "{command} {key}");
        assert_eq!(problem(&output), "");
        let object: serde_json::Value = serde_json::from_str(text(&output)).unwrap();
        assert_eq!(
            (&object["key"], &object["found"]),
            (&key.into(), &found.into())
        );
        assert_eq!(object["value"].is_string(), found && command == "get");
    }
}

#[test]
fn an_expiry_goes_with_an_entry_through_scan_and_load() {
    let folder = TempDir::new().unwrap();
    let put = ["put", "db", "b", "2", "--ttl", "90min"];
    done(&windrow(&folder, &put));
    done(&windrow(&folder, &["put", "db", "a", "1"]));
    done(&windrow(
        &folder,
        &["put", "db", "gone", "3", "--ttl", "1ms"],
    ));
    let refused = windrow(&folder, &["put", "db", "x", "1", "--ttl", "soon"]);
    assert_eq!(code(&refused), 1);
    let expiry = |db: &str, key: &str| {
        let output = windrow(&folder, &["get", db, key, "--json"]);
        json(&output)["expires_at_ms"].as_u64()
    };
    assert_eq!(expiry("db", "a"), None);
    let until = expiry("db", "b").unwrap();
    // An hour and a half from now, give or take some centuries of a clock that is wrong.
    assert!(until > 90 * 60 * 1000, "{until}");
    // Nothing on a standard error that no person sees.
    let shown = windrow(&folder, &["get", "db", "b"]);
    assert_eq!((text(&shown), problem(&shown)), ("2\n", ""));
    let scan = windrow(&folder, &["scan", "db", "--json"]);
    let lines = done(&scan);
    assert_eq!(lines.matches("expires_at_ms").count(), 1, "{lines}");
    for (copy, bulk) in [("batches", &[][..]), ("bulk", &["--bulk"])] {
        let load = [&["load", copy, "--format", "jsonl"], bulk].concat();
        done(&windrow_with(folder.path(), &load, lines.as_bytes()));
        assert_eq!((expiry(copy, "a"), expiry(copy, "b")), (None, Some(until)));
        let again = windrow(&folder, &["scan", copy, "--json"]);
        assert_eq!(done(&again), lines);
    }
    let late = br#"{"key":"k","value":"v","expires_at_ms":281474976710656}"#;
    let load = ["load", "batches", "--format", "jsonl"];
    let refused = windrow_with(folder.path(), &load, late);
    assert_eq!(code(&refused), 1);
    assert!(
        problem(&refused).contains("line 1"),
        "{}",
        problem(&refused)
    );
    let levels = windrow(&folder, &["stats", "bulk"]);
    assert!(done(&levels).contains("expiring"));
}

#[test]
fn an_entry_that_never_expires_does_not_after_a_load() {
    let folder = TempDir::new().unwrap();
    let mut options = windrow::Options::default();
    options.keyspace.default_ttl = Some(std::time::Duration::from_secs(3600));
    for name in ["db", "batches", "bulk"] {
        let db = windrow::Db::open(folder.path().join(name), options.clone()).unwrap();
        let map = db.keyspace("default").unwrap();
        if name == "db" {
            map.insert("a", "1").unwrap();
            let lasting = map.with_expiry(windrow::Expiry::Never);
            lasting.insert("b", "2").unwrap();
        }
    }
    let scan = windrow(&folder, &["scan", "db", "--json"]);
    let lines = done(&scan);
    assert_eq!(lines.matches(r#""expires_at_ms":null"#).count(), 1);
    for (copy, bulk) in [("batches", &[][..]), ("bulk", &["--bulk"])] {
        let load = [&["load", copy, "--format", "jsonl"], bulk].concat();
        done(&windrow_with(folder.path(), &load, lines.as_bytes()));
        let again = windrow(&folder, &["scan", copy, "--json"]);
        assert_eq!(done(&again), lines);
    }
    // Elsewhere an entry that never expires has no such field.
    let load = ["load", "plain", "--format", "jsonl"];
    done(&windrow_with(folder.path(), &load, lines.as_bytes()));
    let again = windrow(&folder, &["scan", "plain", "--json"]);
    assert_eq!(done(&again).matches("expires_at_ms").count(), 1);
}

#[test]
fn a_time_to_live_without_an_end_creates_nothing() {
    let folder = TempDir::new().unwrap();
    let put = ["put", "db", "k", "v", "--ttl", "9000years"];
    let refused = windrow(&folder, &put);
    assert_eq!(code(&refused), 1);
    assert!(problem(&refused).contains("10889"), "{}", problem(&refused));
    assert!(!folder.path().join("db").exists());
}

#[test]
fn a_scan_ends_at_its_limit_from_either_end() {
    let folder = TempDir::new().unwrap();
    let load = ["load", "db", "--format", "tsv"];
    done(&windrow_with(folder.path(), &load, b"a\t1\nb\t2\nc\t3\n"));
    for (arguments, shown) in [
        (&["--limit", "0"][..], ""),
        (&["--limit", "2"], "a\t1\nb\t2\n"),
        (&["--limit", "2", "--reverse"], "c\t3\nb\t2\n"),
        (&["--reverse", "--keys-only"], "c\nb\na\n"),
        (&["--limit", "9", "--from", "b"], "b\t2\nc\t3\n"),
    ] {
        let scan = windrow(&folder, &[&["scan", "db"], arguments].concat());
        assert_eq!(done(&scan), shown, "{arguments:?}");
    }
}

#[test]
fn a_count_is_that_of_the_scan() {
    let folder = TempDir::new().unwrap();
    let load = ["load", "db", "--format", "tsv"];
    let entries = b"a\t1\nab\t2\nb\t3\nba\t4\nc\t5\n";
    done(&windrow_with(folder.path(), &load, entries));
    done(&windrow(&folder, &["compact", "db"]));
    done(&windrow(&folder, &["delete", "db", "ba"]));
    for (range, entries) in [
        (&[][..], 4),
        (&["--prefix", "a"], 2),
        (&["--from", "ab"], 3),
        (&["--from", "ab", "--to", "c"], 2),
        (&["--prefix", "a", "--from", "b"], 0),
    ] {
        let count = windrow(&folder, &[&["count", "db"], range].concat());
        assert_eq!(done(&count), format!("{entries}\n"), "{range:?}");
        let count = windrow(&folder, &[&["count", "db", "--json"], range].concat());
        assert_eq!(json(&count)["entries"], entries, "{range:?}");
        let scan = windrow(&folder, &[&["scan", "db"], range].concat());
        assert_eq!(done(&scan).lines().count(), entries, "{range:?}");
        // Scripts rely on an empty standard error.
        assert_eq!(problem(&scan), "");
    }
    let nowhere = ["count", "db", "--keyspace", "log", "--json"];
    let error = json_error(&windrow(&folder, &nowhere));
    assert_eq!(error["kind"], "NotFound");
    assert_eq!(
        error["message"],
        "db has no keyspace \"log\"; it has \"default\""
    );
}

#[test]
fn scans_respect_bounds_prefix_direction_and_limit() {
    let folder = TempDir::new().unwrap();
    let entries = b"a\t1\nab\t2\nb\t3\nba\t4\nc\t5\n";
    done(&windrow_with(
        folder.path(),
        &["load", "db", "--format", "tsv"],
        entries,
    ));
    let keys = |arguments: &[&str]| {
        let arguments = [&["scan", "db", "--keys-only"], arguments].concat();
        done(&windrow(&folder, &arguments))
            .lines()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(keys(&[]), ["a", "ab", "b", "ba", "c"]);
    assert_eq!(keys(&["--reverse", "--limit", "2"]), ["c", "ba"]);
    assert_eq!(keys(&["--prefix", "b"]), ["b", "ba"]);
    assert_eq!(keys(&["--from", "ab", "--to", "ba"]), ["ab", "b"]);
    assert_eq!(
        keys(&["--prefix", "b", "--from", "ba", "--reverse"]),
        ["ba"]
    );
    assert!(keys(&["--from", "b", "--to", "b"]).is_empty());
    assert!(keys(&["--from", "c", "--prefix", "b"]).is_empty());
    assert_eq!(
        done(&windrow(&folder, &["scan", "db", "--limit", "1"])),
        "a\t1\n"
    );
}

#[test]
fn load_reads_the_json_of_a_scan() {
    let folder = TempDir::new().unwrap();
    let lines = b"{\"key\":\"a\",\"value\":\"1\"}\n{\"key_hex\":\"ff\",\"value_hex\":\"00fe\"}\n";
    let load = ["load", "one", "--format", "jsonl", "--json"];
    let loaded = json(&windrow_with(folder.path(), &load, lines));
    assert_eq!(loaded["entries"], 2);
    let first = windrow(&folder, &["scan", "one", "--json"]);
    let load = ["load", "two", "--format", "jsonl"];
    done(&windrow_with(folder.path(), &load, &first.stdout));
    let second = windrow(&folder, &["scan", "two", "--json"]);
    assert_eq!(done(&first), done(&second));
}

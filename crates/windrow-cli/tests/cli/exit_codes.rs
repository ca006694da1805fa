//! How commands end that cannot do what they are asked, in text and in JSON.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::common::{code, done, json_error, problem, shell, text, windrow, windrow_with};

#[test]
fn wrong_requests_end_with_one() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    done(&windrow(&folder, &["put", "db", "a", "1"]));
    let long = "k".repeat(64 * 1024 + 1);
    for arguments in [
        &["get", "nowhere", "a"][..],
        &["get", "db", "a", "--keyspace", "nowhere"],
        &["get", "db", ""],
        &["get", "db", "0xabc"],
        &["get", "db", &long],
        &["put", "db", "", "x"],
        &["scan", "nowhere"],
        &["levels", "nowhere"],
        &["verify", "nowhere"],
        &["no-such-command"],
        &["scan"],
        &["demo", "--input", "nowhere"],
        &["load", "db", "nowhere"],
        &["dump", "nowhere"],
        &["bench", "readrandom", "--num", "10"],
        &["bench", "fillseq", "--size-ratio", "0.5"],
        &["bench", "fillseq", "--num", "1000", "--key-size", "2"],
        &["load", "db", "-", "--format", "folder"],
        &["load", "new", "file", "--format", "folder"],
        &["load", "new", "nowhere", "--format", "folder"],
        &["load", "new", ".", "--format", "tsv"],
        &["load", "new", "file", "--keyspace", ""],
        &["put", "new", "", "x"],
        &["put", "new", &long, "x"],
        &["put", "new", "a", "x", "--keyspace", &long],
        &["scan", "nowhere", "--from", "c", "--prefix", "b"],
        &["scan", "db", "--from", "b", "--to", "a"],
        &["compact", "db", "--from", "b", "--to", "a"],
        &["demo", "--input", "file"],
        &["bench", "fillseq", "--value-size", "18446744073709551615"],
        &["bench", "fillseq", "--key-size", "18446744073709551615"],
        &["bench", "readrandom", "--db", "new"],
        &["bench", "ycsb-a", "--db", "new"],
        &["bench", "ycsb-load", "--value-size", "7", "--db", "new"],
        &["bench", "ycsb-load", "--mix", "SD", "--value-size", "7"],
        &["bench", "fillseq", "--scaling", "2", "--db", "new"],
    ] {
        let output = windrow(&folder, arguments);
        assert_eq!(code(&output), 1, "{arguments:?}: {}", problem(&output));
        assert!(!problem(&output).is_empty(), "{arguments:?}");
        assert!(!problem(&output).contains("panicked"), "{arguments:?}");
    }
    assert!(!folder.path().join("nowhere").exists());
    assert!(!folder.path().join("new").exists());
}

#[test]
fn errors_are_objects_under_json() {
    let folder = TempDir::new().unwrap();
    done(&windrow(&folder, &["put", "db", "a", "1"]));
    for (arguments, kind, part) in [
        (&["get", "nowhere", "a"][..], "NotFound", "nowhere"),
        (
            &["get", "db", "a", "--keyspace", "b"],
            "NotFound",
            "\"default\"",
        ),
        (&["get", "db", "0xabc"], "InvalidArgument", "hexadecimal"),
        (&["no-such-command"], "InvalidArgument", "no-such-command"),
        (&["scan"], "InvalidArgument", "<DB>"),
        (
            &["drop-keyspace", "db", "default"],
            "InvalidArgument",
            "--yes",
        ),
    ] {
        let output = windrow(&folder, &[arguments, &["--json"]].concat());
        assert_eq!((code(&output), text(&output)), (1, ""), "{arguments:?}");
        let error = json_error(&output);
        assert_eq!(error["kind"], kind, "{arguments:?}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn the_environment_ends_with_two() {
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("in")).unwrap();
    fs::write(folder.path().join("in/file"), "content").unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    for arguments in [
        &["put", "file/db", "a", "1"][..],
        &["demo", "--input", "in", "--db", "file/db"],
    ] {
        let output = windrow(&folder, arguments);
        assert_eq!(code(&output), 2, "{arguments:?}: {}", problem(&output));
    }
}

#[test]
fn a_database_that_is_open_elsewhere_is_locked_for_writers() {
    let folder = TempDir::new().unwrap();
    let db = windrow::Db::open(folder.path().join("db"), windrow::Options::default()).unwrap();
    for arguments in [
        &["put", "db", "a", "1"][..],
        &["delete", "db", "a"],
        &["compact", "db"],
    ] {
        let output = windrow(&folder, arguments);
        assert_eq!(code(&output), 2, "{arguments:?}: {}", problem(&output));
        let own = format!("process {}", std::process::id());
        assert!(problem(&output).contains(&own), "{}", problem(&output));
    }
    db.close().unwrap();
    done(&windrow(&folder, &["put", "db", "a", "1"]));
}

#[test]
fn unwritable_output_is_an_error_unless_the_reader_closed_it() {
    let folder = TempDir::new().unwrap();
    let lines = "line\n".repeat(20_000);
    done(&windrow_with(
        folder.path(),
        &["load", "db"],
        lines.as_bytes(),
    ));
    let output = shell(folder.path(), "windrow scan db | head -1");
    assert_eq!((code(&output), problem(&output)), (0, ""));
    if Path::new("/dev/full").exists() {
        let output = shell(folder.path(), "windrow scan db > /dev/full");
        assert_eq!(code(&output), 2, "{}", problem(&output));
    }
}

#[test]
fn damage_ends_with_three_and_names_the_file() {
    let folder = TempDir::new().unwrap();
    done(&windrow(&folder, &["put", "db", "a", "1"]));
    done(&windrow(&folder, &["compact", "db"]));
    let file = |ending: &str| {
        let mut files = fs::read_dir(folder.path().join("db")).unwrap();
        files.find_map(|file| {
            let path = file.unwrap().path();
            path.to_str().unwrap().ends_with(ending).then_some(path)
        })
    };
    for ending in [".table", "CURRENT"] {
        let path = file(ending).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        bytes[9] ^= 1;
        fs::write(&path, bytes).unwrap();
        let output = windrow(&folder, &["get", "db", "a", "--json"]);
        assert_eq!(code(&output), 3, "{ending}: {}", problem(&output));
        let error = json_error(&output);
        let named = error["file"].as_str().unwrap();
        assert!(
            named.ends_with(path.file_name().unwrap().to_str().unwrap()),
            "{error}"
        );
        assert!(error["offset"].is_u64(), "{error}");
        let output = windrow(&folder, &["verify", "db"]);
        assert_eq!(code(&output), 3, "{ending}: {}", problem(&output));
        let name = path.file_name().unwrap().to_str().unwrap();
        let all = format!("{}{}", text(&output), problem(&output));
        assert!(all.contains(name), "{all}");
    }
}

//! Encrypted databases by the command line.

use std::fs;

use tempfile::TempDir;

use crate::common::{code, done, json_error, problem, windrow};

/// A folder with two files of keys.
fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    let key = |name: &str, digit: &str| format!("{name} {}\n", digit.repeat(64));
    fs::write(folder.path().join("keys"), key("first", "1")).unwrap();
    fs::write(folder.path().join("others"), key("second", "2")).unwrap();
    folder
}

/// All that a person does with a database in clear, with `--keys`.
#[test]
fn all_commands_take_keys() {
    let folder = folder();
    let with_keys =
        |arguments: &[&str]| windrow(&folder, &[&["--keys", "keys"], arguments].concat());
    done(&with_keys(&["put", "db", "legible", "recognizable"]));
    done(&with_keys(&["flush", "db"]));
    done(&with_keys(&["put", "db", "legible too", "recognizable"]));
    let value = with_keys(&["get", "db", "legible"]);
    assert!(done(&value).contains("recognizable"));
    let commands: [&[&str]; 13] = [
        &["scan", "db"],
        &["stats", "db"],
        &["levels", "db"],
        &["verify", "db"],
        &["scrub", "db"],
        &["log", "db"],
        &["changes", "db", "--from", "2"],
        &["dump", "db/CURRENT"],
        &["checkpoint", "db", "copy"],
        &["backup", "db", "store"],
        &["backups", "store", "--verify"],
        &["restore", "store", "restored"],
        &["repair", "db", "--to", "repaired"],
    ];
    for command in commands {
        let output = with_keys(command);
        assert_eq!(code(&output), 0, "{command:?}: {}", problem(&output));
    }
    assert!(done(&with_keys(&["log", "db"])).contains(" flush_ended "));
    for copy in ["copy", "restored", "repaired"] {
        let scanned = with_keys(&["scan", copy]);
        assert!(done(&scanned).contains("legible too"), "{copy}");
    }
    for folder in ["db", "copy", "store", "restored", "repaired"].map(|it| folder.path().join(it)) {
        for file in fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.is_file() {
                let bytes = fs::read(&path).unwrap();
                let is_legible = bytes.windows(7).any(|part| part == b"legible");
                assert!(!is_legible, "{}", path.display());
            }
        }
    }
}

#[test]
fn wrong_keys_are_refused() {
    let folder = folder();
    done(&windrow(
        &folder,
        &["--keys", "keys", "put", "db", "key", "value"],
    ));
    let refused = windrow(&folder, &["--keys", "others", "get", "db", "key"]);
    assert_eq!(code(&refused), 2);
    assert!(
        problem(&refused).contains("\"first\""),
        "{}",
        problem(&refused)
    );
    assert_ne!(code(&windrow(&folder, &["get", "db", "key"])), 0);
    for keys in ["none", "db"] {
        let refused = windrow(&folder, &["--json", "--keys", keys, "get", "db", "key"]);
        assert_eq!(code(&refused), 2);
        json_error(&refused);
    }
    let demo = windrow(&folder, &["--keys", "keys", "demo"]);
    assert_eq!(code(&demo), 1);
    // Nothing of all that has changed anything.
    let value = windrow(&folder, &["--keys", "keys", "get", "db", "key"]);
    assert!(done(&value).contains("value"));
}

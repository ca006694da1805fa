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

/// All that a person does with a database in clear, with `--key-file`.
#[test]
fn all_commands_take_keys() {
    let folder = folder();
    let with_keys =
        |arguments: &[&str]| windrow(&folder, &[&["--key-file", "keys"], arguments].concat());
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
        &["--key-file", "keys", "put", "db", "key", "value"],
    ));
    let refused = windrow(&folder, &["--key-file", "others", "get", "db", "key"]);
    assert_eq!(code(&refused), 2);
    assert!(
        problem(&refused).contains("\"first\""),
        "{}",
        problem(&refused)
    );
    assert_ne!(code(&windrow(&folder, &["get", "db", "key"])), 0);
    fs::write(folder.path().join("no keys"), "secret").unwrap();
    for (keys, expected) in [("none", 2), ("db", 2), ("no keys", 1)] {
        let refused = windrow(&folder, &["--json", "--key-file", keys, "get", "db", "key"]);
        assert_eq!(code(&refused), expected, "{keys}");
        let error = json_error(&refused);
        assert!(!error.to_string().contains("secret"));
    }
    let demo = windrow(&folder, &["--key-file", "keys", "demo"]);
    assert_eq!(code(&demo), 1);
    // Nothing of all that has changed anything.
    let value = windrow(&folder, &["--key-file", "keys", "get", "db", "key"]);
    assert!(done(&value).contains("value"));
}

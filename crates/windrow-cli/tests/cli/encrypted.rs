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
    fs::write(folder.path().join("no keys"), "secret").unwrap();
    for (keys, expected) in [("none", 2), ("db", 2), ("no keys", 1)] {
        let refused = windrow(&folder, &["--json", "--key-file", keys, "get", "db", "key"]);
        assert_eq!(code(&refused), expected, "{keys}");
        let error = json_error(&refused);
        assert!(!error.to_string().contains("secret"));
    }
    for command in [&["demo"][..], &["bench", "fillseq"]] {
        let refused = windrow(&folder, &[&["--key-file", "keys"], command].concat());
        assert_eq!(code(&refused), 1, "{command:?}");
        assert!(problem(&refused).contains("does not encrypt"));
    }
    // Nothing of all that has changed anything.
    let value = windrow(&folder, &["--key-file", "keys", "get", "db", "key"]);
    assert!(done(&value).contains("value"));
}

/// Without keys everything would count as damaged: a repair would lose all, and a purge advise to remove backups.
#[test]
fn what_is_encrypted_is_no_damage_without_keys() {
    let folder = folder();
    let with_keys =
        |arguments: &[&str]| windrow(&folder, &[&["--key-file", "keys"], arguments].concat());
    done(&with_keys(&["put", "db", "key", "value"]));
    done(&with_keys(&["backup", "db", "store"]));
    done(&with_keys(&["checkpoint", "db", "copy"]));
    // Its manifest says that it is encrypted.
    fs::remove_file(folder.path().join("copy/CURRENT")).unwrap();
    let commands: [&[&str]; 14] = [
        &["get", "db", "key"],
        &["log", "db"],
        &["put", "db", "key", "another"],
        &["put", "copy", "key", "another"],
        &["verify", "db"],
        &["changes", "db"],
        &["stats", "db"],
        &["repair", "db", "--to", "repaired"],
        &["repair", "copy", "--to", "repaired"],
        &["dump", "db/CURRENT"],
        &["backups", "store"],
        &["purge", "store", "--keep", "1"],
        &["restore", "store", "restored"],
        &["backup", "db", "second store"],
    ];
    for command in commands {
        let refused = windrow(&folder, command);
        assert_eq!(code(&refused), 1, "{command:?}: {}", problem(&refused));
        let problem = problem(&refused);
        assert!(problem.contains("--key-file"), "{command:?}: {problem}");
    }
    for made in ["repaired", "restored", "second store"] {
        assert!(!folder.path().join(made).exists(), "{made}");
    }
    let value = with_keys(&["get", "db", "key"]);
    assert!(done(&value).contains("value"));
}

#[cfg(unix)]
#[test]
fn a_file_of_keys_that_every_user_can_read_is_noticed() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = folder();
    let keys = folder.path().join("keys");
    for (mode, is_noticed) in [(0o600, false), (0o640, false), (0o644, true)] {
        fs::set_permissions(&keys, fs::Permissions::from_mode(mode)).unwrap();
        let put = windrow(
            &folder,
            &["--key-file", "keys", "put", "db", "key", "value"],
        );
        done(&put);
        let is_said = problem(&put).contains("every user can read the keys");
        assert_eq!(is_said, is_noticed, "{mode:o}");
    }
    fs::write(&keys, b"first \xff").unwrap();
    let refused = windrow(&folder, &["--key-file", "keys", "get", "db", "key"]);
    assert_eq!(code(&refused), 1);
    assert!(problem(&refused).contains("no text in UTF-8"));
}

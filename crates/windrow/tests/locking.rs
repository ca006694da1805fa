//! The locks of a database and of a folder of backups, and the message of a refused open.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]
#![expect(
    clippy::disallowed_methods,
    reason = "the test starts itself as another process"
)]

use std::any::Any;
use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{self, Child, Command, Stdio};

use windrow::backup::Backups;
use windrow::{Db, ErrorKind, Options, Result};

const FOLDER: &str = "WINDROW_TEST_FOLDER";
const READ_ONLY: &str = "WINDROW_TEST_READ_ONLY";
const BACKUPS: &str = "WINDROW_TEST_BACKUPS";

fn open(folder: &Path, read_only: bool) -> Result<Db> {
    if read_only {
        Db::open_read_only(folder, Options::default())
    } else {
        Db::open(folder, Options::default())
    }
}

fn open_backups(folder: &Path, read_only: bool) -> Result<Backups> {
    if read_only {
        Backups::open_read_only(folder)
    } else {
        Backups::open(folder)
    }
}

/// Opens the database or the backups in a process of its own, until it reads a line.
#[test]
#[ignore = "the other tests start it as a process"]
fn holder() {
    let folder = env::var_os(FOLDER).unwrap();
    let folder = Path::new(&folder);
    let read_only = env::var_os(READ_ONLY).is_some();
    let held: Box<dyn Any> = if env::var_os(BACKUPS).is_some() {
        Box::new(open_backups(folder, read_only).unwrap())
    } else {
        Box::new(open(folder, read_only).unwrap())
    };
    println!("open");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    drop(held);
}

/// Starts a process that opens the database.
fn start_holder(folder: &Path, read_only: bool) -> Child {
    start(folder, read_only.then_some(READ_ONLY).as_slice())
}

/// Starts a process that opens what the variables `set` say.
fn start(folder: &Path, set: &[&str]) -> Child {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "holder", "--ignored", "--nocapture"]);
    command.env(FOLDER, folder);
    command.env_remove(READ_ONLY).env_remove(BACKUPS);
    command.envs(set.iter().map(|name| (name, "1")));
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("open") {
        line.clear();
        assert!(
            output.read_line(&mut line).unwrap() > 0,
            "the holder does not open the folder"
        );
    }
    // The pipe stays open, so that the process can write the rest.
    child.stdout = Some(output.into_inner());
    child
}

fn end(mut child: Child) {
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert!(child.wait().unwrap().success());
}

fn refusal(folder: &Path, read_only: bool) -> String {
    let error = open(folder, read_only).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    error.to_string()
}

#[test]
fn a_refusal_names_the_writing_process() {
    let folder = tempfile::tempdir().unwrap();
    let child = start_holder(folder.path(), false);
    let named = format!("in process {} (locking", child.id());
    for read_only in [false, true] {
        let error = refusal(folder.path(), read_only);
        assert!(error.contains(&named), "{error}");
    }
    end(child);
    let lock = folder.path().join("LOCK");
    assert_eq!(fs::read(&lock).unwrap(), b"");
    let db = open(folder.path(), false).unwrap();
    let text = fs::read_to_string(&lock).unwrap();
    assert!(text.starts_with(&format!("{} locking", process::id())));
    for read_only in [false, true] {
        let error = refusal(folder.path(), read_only);
        assert!(error.ends_with("in this process"), "{error}");
    }
    drop(db);
}

#[test]
fn a_refusal_names_readers() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path(), false).unwrap());
    let child = start_holder(folder.path(), true);
    let reader = open(folder.path(), true).unwrap();
    let error = refusal(folder.path(), false);
    assert!(
        error.ends_with("in this process, for reading only"),
        "{error}"
    );
    drop(reader);
    let error = refusal(folder.path(), false);
    assert!(
        error.ends_with("in another process, for reading only"),
        "{error}"
    );
    end(child);
    drop(open(folder.path(), false).unwrap());
}

#[test]
fn a_refusal_of_backups_names_the_process_that_uses_them() {
    let folder = tempfile::tempdir().unwrap();
    let refusal = |read_only: bool| {
        let error = open_backups(folder.path(), read_only).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Locked);
        error.to_string()
    };
    let child = start(folder.path(), &[BACKUPS]);
    let named = format!(
        "the backups in {} are in use by process {} (locking",
        folder.path().display(),
        child.id()
    );
    for read_only in [false, true] {
        let error = refusal(read_only);
        assert!(error.contains(&named), "{error}");
    }
    end(child);
    let own = open_backups(folder.path(), false).unwrap();
    for read_only in [false, true] {
        let error = refusal(read_only);
        assert!(error.ends_with("are in use by this process"), "{error}");
    }
    drop(own);
    // Readers have no name.
    let child = start(folder.path(), &[BACKUPS, READ_ONLY]);
    let error = refusal(false);
    let reader = "are in use by another process, for reading only";
    assert!(error.ends_with(reader), "{error}");
    drop(open_backups(folder.path(), true).unwrap());
    end(child);
    drop(open_backups(folder.path(), false).unwrap());
}

/// A killed process leaves its name in the file. The next holder of the lock replaces it.
#[test]
fn a_leftover_name_has_no_effect() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = start_holder(folder.path(), false);
    child.kill().unwrap();
    child.wait().unwrap();
    let lock = folder.path().join("LOCK");
    assert!(!fs::read(&lock).unwrap().is_empty());
    let reader = open(folder.path(), true).unwrap();
    drop(reader);
    fs::write(&lock, [b'1'; 1000]).unwrap();
    let child = start_holder(folder.path(), false);
    let named = format!("in process {} (locking", child.id());
    let error = refusal(folder.path(), false);
    assert!(error.contains(&named), "{error}");
    end(child);
}

//! The folders that an open accepts, refuses, or creates a database in, on the real file system.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests change folders of databases that are closed"
)]

use std::fs;
use std::path::Path;

use windrow::{Db, Error, ErrorKind, Options};

fn open(path: &Path, create_if_missing: bool) -> Result<Db, Error> {
    let mut options = Options::default();
    options.create_if_missing = create_if_missing;
    Db::open(path, options)
}

/// A closed database with an entry in a table and one in a log.
fn database() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path(), true).unwrap();
    let keyspace = db.keyspace("main").unwrap();
    keyspace.insert("a", "1").unwrap();
    db.flush().unwrap();
    keyspace.insert("b", "2").unwrap();
    drop(keyspace);
    db.close().unwrap();
    folder
}

fn check(folder: &Path) {
    let db = open(folder, false).unwrap();
    let keyspace = db.keyspace("main").unwrap();
    assert_eq!(keyspace.get("a").unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!(keyspace.get("b").unwrap().as_deref(), Some(&b"2"[..]));
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
    let mut names: Vec<_> = entries.map(|entry| name(entry.unwrap())).collect();
    names.sort();
    names
}

#[test]
fn a_database_that_has_lost_current_is_damaged() {
    let folder = database();
    let current = folder.path().join("CURRENT");
    let line = fs::read(&current).unwrap();
    fs::remove_file(&current).unwrap();
    for create in [false, true] {
        let error = open(folder.path(), create).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        assert!(error.to_string().contains("CURRENT"), "{error}");
    }
    fs::write(&current, line).unwrap();
    check(folder.path());
}

#[test]
fn a_refused_open_of_a_missing_database_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    for path in [
        folder.path().join("missing"),
        folder.path().to_owned(),
        file.clone(),
        file.join("below"),
    ] {
        let error = open(&path, false).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        assert!(
            error.to_string().contains("there is no database in"),
            "{error}"
        );
    }
    assert_eq!(names(folder.path()), ["file"]);
    let error = open(&file, true).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    assert_eq!(names(folder.path()), ["file"]);
}

#[test]
fn no_database_is_created_among_other_files() {
    let folder = tempfile::tempdir().unwrap();
    for stranger in ["thesis.txt", "12.wal", "photos"] {
        let path = folder.path().join(stranger);
        fs::create_dir(&path).unwrap();
        let error = open(folder.path(), true).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.to_string().contains(stranger), "{error}");
        assert_eq!(names(folder.path()), [stranger]);
        fs::remove_dir(path).unwrap();
    }
    // An empty folder may hold files of the file system, of a desktop, or of an interrupted creation.
    for name in [".hidden", "lost+found", "LOCK", "000001.manifest"] {
        fs::write(folder.path().join(name), "").unwrap();
    }
    drop(open(folder.path(), true).unwrap());
    // An existing database may have other files beside it.
    fs::write(folder.path().join("thesis.txt"), "").unwrap();
    drop(open(folder.path(), true).unwrap());
    assert!(names(folder.path()).contains(&"thesis.txt".to_owned()));
}

#[test]
fn a_file_number_out_of_range_is_ignored_or_refused() {
    let folder = database();
    // A number above the limit: not a file of the database.
    for name in [
        "18446744073709551615.table",
        "18446744073709551614.wal",
        "72057594037927936.manifest",
    ] {
        let path = folder.path().join(name);
        fs::write(&path, "").unwrap();
        check(folder.path());
        check(folder.path());
        assert!(path.exists());
        fs::remove_file(path).unwrap();
    }
    // A valid name. Later numbers would soon reach the limit.
    for name in ["72057594037927935.table", "36028797018963967.table"] {
        let path = folder.path().join(name);
        fs::write(&path, "").unwrap();
        let error = open(folder.path(), true).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        assert!(error.to_string().contains(name), "{error}");
        fs::remove_file(path).unwrap();
        check(folder.path());
    }
}

#[test]
fn a_read_only_folder_can_be_read() {
    use std::os::unix::fs::PermissionsExt;

    let folder = database();
    let state = || -> Vec<_> {
        let own = |name: String| {
            let metadata = fs::metadata(folder.path().join(&name)).unwrap();
            (name, metadata.len(), metadata.modified().unwrap())
        };
        names(folder.path()).into_iter().map(own).collect()
    };
    let before = state();
    let set_mode = |folder_mode, file_mode| {
        for name in names(folder.path()) {
            let mode = fs::Permissions::from_mode(file_mode);
            fs::set_permissions(folder.path().join(name), mode).unwrap();
        }
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(folder_mode)).unwrap();
    };
    set_mode(0o555, 0o444);
    let read = || Db::open_read_only(folder.path(), Options::default());
    let (db, other) = (read().unwrap(), read().unwrap());
    let keyspace = db.keyspace("main").unwrap();
    assert_eq!(keyspace.get("a").unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!(keyspace.get("b").unwrap().as_deref(), Some(&b"2"[..]));
    let refused = keyspace.insert("a", "2").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ReadOnly, "{refused}");
    drop(keyspace);
    db.close().unwrap();
    set_mode(0o755, 0o644);
    let error = open(folder.path(), false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
    drop(other);
    assert_eq!(state(), before);
    let writer = open(folder.path(), false).unwrap();
    assert_eq!(read().unwrap_err().kind(), ErrorKind::Locked);
    drop(writer);
    check(folder.path());
}

/// The number of levels is a state of the database. It does not follow from the existing files.
#[test]
fn the_number_of_levels_outlives_a_close() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.keyspace.memtable_bytes = 16 << 10;
    options.keyspace.file_bytes = 8 << 10;
    options.keyspace.base_bytes = 32 << 10;
    options.keyspace.size_ratio = 3.0;
    let db = Db::open(folder.path(), options.clone()).unwrap();
    let keyspace = db.keyspace("levels").unwrap();
    for number in 0..20_000_u32 {
        let key = number.wrapping_mul(0x9e37_79b9).to_be_bytes();
        keyspace.insert(key, [7; 20]).unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    let shape = |db: &Db| -> Vec<(u64, u64)> {
        let levels = db.stats().keyspaces.remove(0).levels;
        levels
            .iter()
            .map(|level| (level.bytes, level.capacity))
            .collect()
    };
    let before = shape(&db);
    assert!(before.len() > 3, "{before:?}");
    drop(keyspace);
    db.close().unwrap();
    let db = Db::open(folder.path(), options).unwrap();
    assert_eq!(shape(&db), before);
    db.wait_idle().unwrap();
    assert_eq!(shape(&db), before);
}

#[test]
fn a_destroyed_database_leaves_the_files_of_others() {
    let folder = database();
    let path = folder.path();
    for name in ["notes.txt", "12.table", ".hidden"] {
        fs::write(path.join(name), "").unwrap();
    }
    Db::destroy(path, &Options::default()).unwrap();
    assert_eq!(names(path), [".hidden", "12.table", "LOCK", "notes.txt"]);
    for missing in [path, &path.join("missing"), &path.join("notes.txt")] {
        Db::destroy(missing, &Options::default()).unwrap();
        let error = open(missing, false).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    }
    assert!(!path.join("missing").exists());
    fs::remove_file(path.join("notes.txt")).unwrap();
    fs::remove_file(path.join("12.table")).unwrap();
    let db = open(path, true).unwrap();
    assert!(db.keyspace("main").unwrap().is_empty().unwrap());
}

#[test]
fn a_damaged_database_can_be_destroyed_and_an_open_one_cannot() {
    let folder = database();
    let path = folder.path();
    let writer = open(path, false).unwrap();
    let error = Db::destroy(path, &Options::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
    writer.close().unwrap();
    let reader = Db::open_read_only(path, Options::default()).unwrap();
    let error = Db::destroy(path, &Options::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
    reader.close().unwrap();
    check(path);
    fs::write(path.join("CURRENT"), "no such thing").unwrap();
    assert!(open(path, false).is_err());
    Db::destroy(path, &Options::default()).unwrap();
    assert_eq!(names(path), ["LOCK"]);
}

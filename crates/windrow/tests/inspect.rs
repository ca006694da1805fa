//! Files of a database are shown by their path alone, also while the database is open. Errors name damage,
//! and the sound rest is still shown.

#![expect(
    clippy::disallowed_methods,
    reason = "looks at and damages the files of a database"
)]
#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use windrow::backup::Backups;
use windrow::inspect::{self, Field};
use windrow::operators::Append;
use windrow::{
    Batch, Compression, Db, Durability, ErrorKind, Expiry, KeyspaceOptions, Options, TableWriter,
};

/// A database with a table of several blocks, edits, and a log with batches.
fn build(folder: &Path) -> Db {
    let db = Db::open(folder, Options::default()).unwrap();
    let mut options = KeyspaceOptions::default();
    options.block_bytes = 512;
    options.compression = Compression::Lz4;
    let letters = db.keyspace_with("letters", options).unwrap();
    for number in 0..200 {
        letters
            .insert(format!("key{number:03}"), b"value ".repeat(9))
            .unwrap();
    }
    letters.remove("key007").unwrap();
    db.flush().unwrap();
    let mut batch = Batch::new();
    batch.insert(&letters, "tab\there", "x").unwrap();
    batch.remove(&letters, "key008").unwrap();
    db.write_with(&batch, Durability::Sync).unwrap();
    letters.insert("last", "y").unwrap();
    db
}

/// The newest file with this ending.
fn newest(folder: &Path, ending: &str) -> PathBuf {
    let files = fs::read_dir(folder).unwrap();
    let files = files.map(|file| file.unwrap().path());
    files
        .filter(|path| path.to_str().unwrap().ends_with(ending))
        .max()
        .unwrap()
}

/// What a dump of the file shows, and its result.
fn dump(path: &Path) -> (String, windrow::Result<()>) {
    let mut out = Vec::new();
    let outcome = inspect::dump(&windrow::vfs::OsVfs, path, &mut out);
    (String::from_utf8(out).unwrap(), outcome)
}

fn lines_with(text: &str, start: &str) -> usize {
    let lines = text.lines();
    lines
        .filter(|line| line.trim_start().starts_with(start))
        .count()
}

#[test]
fn sound_files_are_shown_while_the_database_is_open() {
    let folder = tempfile::tempdir().unwrap();
    let db = build(folder.path());

    let (table, outcome) = dump(&newest(folder.path(), ".table"));
    outcome.unwrap();
    for name in ["table: ", "footer: ", "properties: ", "index: "] {
        assert_eq!(lines_with(&table, name), 1, "{table}");
    }
    assert!(lines_with(&table, "filter: ") >= 1, "{table}");
    assert!(lines_with(&table, "block: ") > 3, "{table}");
    assert!(table.contains("compression lz4"), "{table}");
    assert_eq!(lines_with(&table, "value: "), 199, "{table}");
    assert_eq!(lines_with(&table, "tombstone: key \"key007\""), 1);

    let (current, outcome) = dump(&newest(folder.path(), "CURRENT"));
    outcome.unwrap();
    let manifest = newest(folder.path(), ".manifest");
    let number: u64 = manifest
        .file_stem()
        .unwrap()
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    let named = format!("current: manifest {number}, length ");
    assert!(current.starts_with(&named), "{current}");

    let (manifest, outcome) = dump(&manifest);
    outcome.unwrap();
    assert!(
        manifest.contains("format_version: version 1\n"),
        "{manifest}"
    );
    assert!(manifest.contains("create_keyspace: keyspace 1, name letters\n"));
    assert!(manifest.contains("add_file: keyspace 1, level 0, file "));
    assert!(manifest.contains("smallest \"key000\", largest \"key199\""));
    assert!(lines_with(&manifest, "sync_marker: ") >= 2, "{manifest}");

    drop(db);
    let logs = fs::read_dir(folder.path()).unwrap();
    let logs = logs.map(|file| file.unwrap().path());
    let logs: Vec<String> = logs
        .filter(|path| path.extension().is_some_and(|ending| ending == "wal"))
        .map(|path| {
            let (text, outcome) = dump(&path);
            outcome.unwrap();
            assert_eq!(lines_with(&text, "end: "), 1);
            text
        })
        .collect();
    let shown = logs.concat();
    assert!(shown.contains(r#"  value: key "tab\there", value_bytes 1, sequence 202, keyspace 1"#));
    assert!(shown.contains(r#"  tombstone: key "key008", sequence 203, keyspace 1"#));
}

#[test]
fn the_manifest_of_a_backup_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let db = build(&folder.path().join("db"));
    let store = folder.path().join("backups");
    let backups = Backups::open(&store).unwrap();
    let made = db.backup(&backups).unwrap();
    let path = newest(&store, ".backup");
    let (shown, outcome) = dump(&path);
    outcome.unwrap();
    assert!(
        shown.starts_with("backup: number 1, unix_milliseconds 1"),
        "{shown}"
    );
    let files = format!(
        "sequence {}, files {}, bytes {}\n",
        made.sequence, made.files, made.bytes
    );
    assert!(shown.contains(&files), "{shown}");
    assert_eq!(lines_with(&shown, "file: name ") as u64, made.files);
    assert!(
        shown.contains("  file: name 000002.wal, pieces 1\n"),
        "{shown}"
    );
    for line in shown.lines().filter(|line| line.starts_with("    piece: ")) {
        let name = line.strip_prefix("    piece: name ").unwrap();
        assert!(store.join(name).exists(), "{line}");
    }
    assert!(shown.contains("\nstate: records "), "{shown}");
    assert!(shown.contains("  create_keyspace: keyspace 1, name letters\n"));

    let mut bytes = fs::read(&path).unwrap();
    bytes[30] ^= 1;
    fs::write(&path, bytes).unwrap();
    let (shown, outcome) = dump(&path);
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Corruption);
    assert_eq!(shown.lines().count(), 1, "{shown}");
    assert!(shown.contains("000001.backup"), "{shown}");
    // Pieces are parts of files.
    let (_, outcome) = dump(&newest(&store, ".piece"));
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn values_apart_from_their_tables_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.keyspace.medium_from = 120;
    let db = Db::open(folder.path(), options).unwrap();
    let mediums = db.keyspace("mediums").unwrap();
    for number in 0..50 {
        let value = format!("{number:04}").repeat(30);
        mediums.insert(format!("key{number:03}"), value).unwrap();
    }
    mediums.insert("small", "x").unwrap();
    db.flush().unwrap();

    let (table, outcome) = dump(&newest(folder.path(), ".table"));
    outcome.unwrap();
    assert_eq!(lines_with(&table, "transient_pointer: "), 50, "{table}");
    assert_eq!(lines_with(&table, "value: "), 1, "{table}");

    let path = newest(folder.path(), ".values");
    let sound = fs::read(&path).unwrap();
    let (values, outcome) = dump(&path);
    outcome.unwrap();
    let length = sound.len();
    assert_eq!(lines_with(&values, "values: file "), 1, "{values}");
    assert!(values.contains(&format!(", length {length}\n")), "{values}");
    assert_eq!(lines_with(&values, "value: "), 50, "{values}");
    let first = "value: offset 0, record_bytes 127, compression none, value_bytes 120, \
                 checksum not verified\n";
    assert!(values.contains(first), "{values}");
    // The pointers in the table lead to the same records.
    for line in table
        .lines()
        .filter(|line| line.contains("transient_pointer"))
    {
        let (_, place) = line.split_once("offset ").unwrap();
        let offset: usize = place.split(',').next().unwrap().parse().unwrap();
        let record = format!("value: offset {offset}, record_bytes 127, ");
        assert!(values.contains(&record), "{line}");
    }

    // A record with an unknown compression ends the dump.
    let mut bytes = sound.clone();
    bytes[127 + 4] = 9;
    fs::write(&path, bytes).unwrap();
    let (text, outcome) = dump(&path);
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(lines_with(&text, "value: "), 1, "{text}");
    fs::write(&path, &sound[..length - 1]).unwrap();
    let (text, outcome) = dump(&path);
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Corruption);
    assert_eq!(lines_with(&text, "value: "), 49, "{text}");
    fs::write(&path, sound).unwrap();
}

/// What the dumps of all files with this ending show.
fn dump_all(folder: &Path, ending: &str) -> String {
    let files = fs::read_dir(folder).unwrap();
    let files = files.map(|file| file.unwrap().path());
    files
        .filter(|path| path.to_str().unwrap().ends_with(ending))
        .map(|path| {
            let (text, outcome) = dump(&path);
            outcome.unwrap();
            text
        })
        .collect()
}

#[test]
fn operands_and_range_tombstones_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let append = Arc::new(Append::new(*b","));
    let options = Options::default().with_merge_operator("lists", append);
    let db = Db::open(folder.path(), options).unwrap();
    let lists = db.keyspace("lists").unwrap();
    for number in 0..20 {
        lists.insert(format!("key{number:02}"), "first").unwrap();
    }
    db.flush().unwrap();
    let write = || {
        lists.merge("key03", "second").unwrap();
        lists.delete_range("key05".."key09").unwrap();
        lists.delete_range("key15"..).unwrap();
    };
    write();
    db.flush().unwrap();
    let (table, outcome) = dump(&newest(folder.path(), ".table"));
    outcome.unwrap();
    for line in [
        r#"  operand: key "key03", operand_bytes 6, sequence 21"#,
        r#"  range_tombstone: key "key05", sequence 22, end "key09""#,
        // It reaches to the last key of all tables.
        r#"  range_tombstone: key "key15", sequence 23, end "key19\x00""#,
        r#"  range: start "key05", end "key09", sequence 22"#,
        "entries 3, tombstones 2, operands 1, ",
    ] {
        assert!(table.contains(line), "{line}: {table}");
    }
    assert_eq!(lines_with(&table, "range: start "), 2, "{table}");
    write();
    drop(lists);
    db.close().unwrap();
    let log = dump_all(folder.path(), ".wal");
    for line in [
        r#"  operand: key "key03", operand_bytes 6, sequence 24, keyspace 1"#,
        r#"  range_tombstone: key "key05", sequence 25, end "key09", keyspace 1"#,
        r#"  range_tombstone: key "key15", sequence 26, end "", keyspace 1"#,
    ] {
        assert!(log.contains(line), "{line}: {log}");
    }
    let manifest = dump_all(folder.path(), ".manifest");
    let counts = "entries 3, tombstones 2, range_tombstones 2, operands 1, ";
    assert!(manifest.contains(counts), "{manifest}");
    let operator = "  merge_operator: keyspace 1, name windrow.append.2c\n";
    assert!(manifest.contains(operator), "{manifest}");
}

#[test]
fn edits_of_names_expiry_and_external_tables_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path(), Options::default()).unwrap();
    let keyspace = db.keyspace("old name").unwrap();
    keyspace.rename("new name").unwrap();
    // It has expired one second after the beginning of 1970.
    let expiry = Expiry::At(SystemTime::UNIX_EPOCH + Duration::from_secs(1));
    let expiring = keyspace.with_expiry(expiry);
    expiring.insert("gone", "value").unwrap();
    keyspace.insert("stays", "value").unwrap();
    keyspace.compact_range::<&[u8]>(..).unwrap();
    let path = folder.path().join("elsewhere");
    let mut writer = TableWriter::create(&path, &Options::default()).unwrap();
    writer.insert("key", "value").unwrap();
    writer.finish().unwrap();
    db.ingest([(&keyspace, &path)]).unwrap();
    drop((keyspace, expiring));
    db.close().unwrap();
    let manifest = dump_all(folder.path(), ".manifest");
    for line in [
        "  create_keyspace: keyspace 1, name old name\n",
        "  rename_keyspace: keyspace 1, name new name\n",
        "  expired_by: unix_milliseconds 1000\n",
    ] {
        assert!(manifest.contains(line), "{line}: {manifest}");
    }
    let added = |end: &str| {
        let mut lines = manifest.lines();
        let starts = "add_file: keyspace 1, level ";
        lines.any(|line| line.trim_start().starts_with(starts) && line.ends_with(end))
    };
    assert!(added(", sealed yes, external yes"), "{manifest}");
    assert!(added(", sealed no, external no"), "{manifest}");
    let tables = dump_all(folder.path(), ".table");
    let external = r#"  value: key "key", value_bytes 5, sequence 0"#;
    assert!(tables.contains(external), "{tables}");
}

#[test]
fn damage_is_shown_and_what_is_left_too() {
    let folder = tempfile::tempdir().unwrap();
    drop(build(folder.path()));
    let damage = |path: &Path, at: usize| {
        let sound = fs::read(path).unwrap();
        let mut bytes = sound.clone();
        bytes[at] ^= 1;
        fs::write(path, bytes).unwrap();
        let (text, outcome) = dump(path);
        fs::write(path, sound).unwrap();
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(error.to_string().contains(name), "{error}");
        let damage = format!("damage: error {}\n", error.message());
        assert!(text.contains(&damage), "{text}");
        text
    };

    let table = newest(folder.path(), ".table");
    let length = fs::read(&table).unwrap().len();
    let text = damage(&table, 40); // the first block
    assert!(lines_with(&text, "block: ") >= 2, "{text}");
    let text = damage(&table, length - 100); // the footer
    assert_eq!(lines_with(&text, "footer: "), 0, "{text}");

    let manifest = newest(folder.path(), ".manifest");
    let text = damage(&manifest, 22);
    assert!(text.contains("end: offset 0, synced_up_to "), "{text}");
    damage(&newest(folder.path(), "CURRENT"), 3);
}

#[test]
fn other_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (name, kind) in [
        ("000099.table", ErrorKind::NotFound),
        ("000099.wal", ErrorKind::NotFound),
        ("000099.values", ErrorKind::NotFound),
        ("CURRENT", ErrorKind::NotFound),
        ("LOCK", ErrorKind::InvalidArgument),
        ("notes.txt", ErrorKind::InvalidArgument),
    ] {
        let (text, outcome) = dump(&folder.path().join(name));
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(name), "{error}");
        assert_eq!(text, "");
    }
}

#[test]
fn a_visitor_can_stop() {
    let folder = tempfile::tempdir().unwrap();
    drop(build(folder.path()));
    let mut seen = 0;
    let path = newest(folder.path(), ".table");
    let error = inspect::visit(&windrow::vfs::OsVfs, &path, &mut |record| {
        assert_eq!(record.field("nothing"), None);
        if record.name() == "table" {
            assert!(matches!(record.field("length"), Some(Field::Number(1..))));
        }
        seen += 1;
        if seen == 3 {
            return Err(std::io::Error::other("enough"));
        }
        Ok(())
    });
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(seen, 3);
}

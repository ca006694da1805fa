//! What statistics say of a database, through the public interface.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]

use std::path::Path;

use windrow::{Db, KeyspaceStats, Options, ValueFileStats};

fn open(folder: &Path) -> Db {
    Db::open(folder, Options::default()).unwrap()
}

fn only_keyspace(db: &Db) -> KeyspaceStats {
    let mut keyspaces = db.stats().keyspaces;
    assert_eq!(keyspaces.len(), 1);
    keyspaces.remove(0)
}

#[test]
fn entries_in_memtables_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    let keyspace = db.keyspace("main").unwrap();
    for number in 0..10_u8 {
        keyspace.insert([number], "value").unwrap();
    }
    for number in 0..3_u8 {
        keyspace.remove([number]).unwrap();
    }
    drop(keyspace);
    let check = |db: &Db, in_memtables: (u64, u64), in_tables: (u64, u64)| {
        let stats = only_keyspace(db);
        let entries = (stats.memtable_entries, stats.memtable_tombstones);
        assert_eq!(entries, in_memtables);
        let level = &stats.levels[0];
        assert_eq!((level.entries, level.tombstones), in_tables);
        let report = db.verify().unwrap();
        assert!(report.is_sound());
        let counted = (report.unflushed_entries, report.entries);
        assert_eq!(counted, (in_memtables.0, in_tables.0));
    };
    check(&db, (13, 3), (0, 0));
    // They are counted again when they are read from the log.
    db.close().unwrap();
    let reader = Db::open_read_only(folder.path(), Options::default()).unwrap();
    check(&reader, (13, 3), (0, 0));
    drop(reader);
    let db = open(folder.path());
    check(&db, (13, 3), (0, 0));
    db.flush().unwrap();
    // The flush drops the three values under tombstones.
    check(&db, (0, 0), (10, 3));
}

#[test]
fn large_values_that_only_memtables_refer_to_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    let keyspace = db.keyspace("main").unwrap();
    let insert = |keyspace: &windrow::Keyspace, from: u8| {
        for number in from..from + 10 {
            keyspace.insert([number], [number; 4000]).unwrap();
        }
    };
    let is_about = |bytes: u64, values: u64| bytes / 4000 == values && bytes % 4000 <= 100 * values;
    let check = |logs: ValueFileStats, live: u64, unflushed: u64| {
        assert!(is_about(logs.live_bytes, live), "{logs:?}");
        assert!(is_about(logs.unflushed_bytes, unflushed), "{logs:?}");
        assert_eq!(logs.garbage_bytes, 0, "{logs:?}");
    };
    insert(&keyspace, 0);
    check(only_keyspace(&db).value_logs, 0, 10);
    db.flush().unwrap();
    check(only_keyspace(&db).value_logs, 10, 0);
    insert(&keyspace, 10);
    check(only_keyspace(&db).value_logs, 10, 10);
    drop(keyspace);
    db.close().unwrap();
    let db = open(folder.path());
    check(only_keyspace(&db).value_logs, 10, 10);
    db.flush().unwrap();
    check(only_keyspace(&db).value_logs, 20, 0);
}

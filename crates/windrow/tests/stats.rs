//! Statistics through the public interface.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]

use std::ops::RangeInclusive;
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
    let check = |db: &Db, in_memtables: (u64, u64), in_tables: RangeInclusive<u64>| {
        let stats = only_keyspace(db);
        let entries = (stats.memtable_entries, stats.memtable_tombstones);
        assert_eq!(entries, in_memtables);
        let report = db.verify().unwrap();
        assert!(report.is_sound());
        assert_eq!(report.unflushed_entries, in_memtables.0);
        assert!(in_tables.contains(&report.entries), "{report:?}");
    };
    check(&db, (13, 3), 0..=0);
    // An open counts them again as it reads them from the log.
    db.close().unwrap();
    let reader = Db::open_read_only(folder.path(), Options::default()).unwrap();
    check(&reader, (13, 3), 0..=0);
    drop(reader);
    let db = open(folder.path());
    check(&db, (13, 3), 0..=0);
    db.flush().unwrap();
    // The flush drops the three values under tombstones, and a compaction may drop these.
    check(&db, (0, 0), 7..=10);
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

/// Only Linux says of each page of a mapping whether it is in memory.
#[cfg(target_os = "linux")]
#[test]
fn blocks_that_this_process_has_written_are_not_verified() {
    let folder = tempfile::tempdir().unwrap();
    // The blocks that a scan verifies.
    let verified = |db: &Db| {
        let before = db.stats().block_loads;
        assert_eq!(db.keyspace("k").unwrap().iter().unwrap().count(), 15_000);
        db.stats().block_loads - before
    };
    let db = open(folder.path());
    let keyspace = db.keyspace("k").unwrap();
    for _ in 0..2 {
        for number in 0..15_000_u32 {
            keyspace.insert(number.to_be_bytes(), [7; 100]).unwrap();
        }
        db.flush().unwrap();
        keyspace.compact_range::<&[u8]>(..).unwrap();
        assert_eq!(verified(&db), 0);
    }
    drop(keyspace);
    db.close().unwrap();
    let db = open(folder.path());
    let blocks = verified(&db);
    assert!(blocks > 300, "{blocks}");
}

#[test]
fn lifetime_counters_outlive_a_close() {
    let folder = tempfile::tempdir().unwrap();
    let mut rounds = Vec::new();
    for round in 0..3_u8 {
        let db = open(folder.path());
        let keyspace = db.keyspace("main").unwrap();
        let before = db.stats();
        if let Some((lifetime, levels)) = rounds.last() {
            let counted = &before.lifetime;
            assert_eq!(counted.user_bytes, *lifetime);
            assert_eq!(levels_io(&before), *levels);
        }
        keyspace.insert([round], [7; 99]).unwrap();
        db.flush().unwrap();
        keyspace.compact_range::<&[u8]>(..).unwrap();
        let stats = db.stats();
        assert_eq!(
            (stats.user_bytes, stats.user_writes, stats.flushes),
            (100, 1, 1)
        );
        let opens = u64::from(round) + 1;
        let lifetime = stats.lifetime;
        assert_eq!(
            (lifetime.user_bytes, lifetime.user_writes),
            (100 * opens, opens)
        );
        assert_eq!(lifetime.flushes, opens);
        assert!(lifetime.manifest_bytes > before.lifetime.manifest_bytes);
        assert!(lifetime.write_amplification() > 1.0);
        rounds.push((lifetime.user_bytes, levels_io(&stats)));
        drop(keyspace);
        db.close().unwrap();
    }
    let reader = Db::open_read_only(folder.path(), Options::default()).unwrap();
    let stats = reader.stats();
    assert_eq!(stats.user_bytes, 0);
    assert_eq!(stats.lifetime.user_bytes, 300);
    assert_eq!(levels_io(&stats), rounds[2].1);
    assert!(levels_io(&stats).iter().any(|written| *written > 0));
}

/// The bytes written to each level in the life of the database.
fn levels_io(stats: &windrow::Stats) -> Vec<u64> {
    let levels = stats.keyspaces[0].levels.iter();
    levels
        .map(|level| level.lifetime_io_stats.written())
        .collect()
}

#[test]
fn a_count_covers_the_range() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    let keyspace = db.keyspace("main").unwrap();
    for number in 0..100_u8 {
        keyspace.insert([number], vec![number; 5000]).unwrap();
    }
    db.flush().unwrap();
    let snapshot = db.snapshot();
    keyspace.remove([7]).unwrap();
    assert_eq!(keyspace.count::<&[u8]>(..).unwrap(), 99);
    assert_eq!(keyspace.count([5]..[10]).unwrap(), 4);
    assert_eq!(keyspace.count([100]..).unwrap(), 0);
    let view = keyspace.at(&snapshot).unwrap();
    assert_eq!(view.count([5]..=[10]).unwrap(), 6);
    // The count reads no value.
    assert_eq!(db.stats().value_log_reads, 0);
}

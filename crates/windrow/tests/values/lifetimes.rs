//! Readers, snapshots and checkpoints keep what they need of a transient log, and no more.

use std::fs;

use windrow::{BlockSource, Db, Options};

use super::common::Random;
use super::fixture::{
    Model, SOURCES, check, check_transient_logs_are_gone, key, one_transient_log, open, options,
    value_files, write,
};

#[test]
fn a_pinned_value_outlives_its_transient_log() {
    for source in SOURCES {
        let folder = tempfile::tempdir().unwrap();
        let (db, map, model) = one_transient_log(folder.path(), source, 50);
        let pin = |key| map.get_pinned(key).unwrap().unwrap();
        let pinned: Vec<_> = model.keys().map(pin).collect();
        map.compact_range::<&[u8]>(..).unwrap();
        check_transient_logs_are_gone(&db);
        drop(map);
        db.close().unwrap();
        drop(folder);
        assert!(pinned.iter().map(|value| &**value).eq(model.values()));
    }
}

#[test]
fn a_cursor_keeps_its_transient_logs() {
    for source in SOURCES {
        let folder = tempfile::tempdir().unwrap();
        let (db, map, model) = one_transient_log(folder.path(), source, 50);
        let mut cursor = map.cursor().unwrap();
        let mut range = map.iter().unwrap();
        let first = range.next().unwrap().unwrap();
        for number in 0..50 {
            map.insert(key(number), "new").unwrap();
        }
        map.compact_range::<&[u8]>(..).unwrap();
        db.wait_idle().unwrap();
        assert_eq!(db.stats().keyspaces[0].transient_logs.files, 0);
        assert_eq!(value_files(folder.path()).len(), 1);
        let mut seen = Model::new();
        let mut found = cursor.seek_to_first().unwrap();
        while found {
            let value = cursor.value().unwrap().to_vec();
            seen.insert(cursor.key().to_vec(), value);
            found = cursor.next().unwrap();
        }
        assert!(seen == model);
        drop(cursor);
        db.wait_idle().unwrap();
        assert_eq!(value_files(folder.path()).len(), 1);
        let rest: Model = range.by_ref().map(Result::unwrap).collect();
        assert_eq!(rest.len(), 49);
        assert!(std::iter::once(first).chain(rest).eq(model));
        drop(range);
        check_transient_logs_are_gone(&db);
    }
}

#[test]
fn a_snapshot_keeps_values_but_not_their_transient_log() {
    let folder = tempfile::tempdir().unwrap();
    let (db, map, model) = one_transient_log(folder.path(), BlockSource::Mapped, 50);
    let snapshot = db.snapshot();
    for number in 0..50 {
        match number % 3 {
            0 => map.remove(key(number)).unwrap(),
            1 => map.insert(key(number), [7; 300]).unwrap(),
            _ => map.insert(key(number), "new").unwrap(),
        }
    }
    map.compact_range::<&[u8]>(..).unwrap();
    check_transient_logs_are_gone(&db);
    let view = map.at(&snapshot).unwrap();
    let seen: Model = view.iter().unwrap().map(Result::unwrap).collect();
    assert!(seen == model);
    assert_eq!(map.iter().unwrap().count(), 33);
}

#[test]
fn a_checkpoint_contains_transient_logs() {
    const KEYS: u64 = 300;
    for source in SOURCES {
        let folder = tempfile::tempdir().unwrap();
        let (home, copy) = (folder.path().join("db"), folder.path().join("copy"));
        let (db, map) = open(&home, options(source));
        let (mut model, mut random) = (Model::new(), Random(9));
        write(&map, &mut model, &mut random, KEYS, 500);
        db.flush().unwrap();
        assert!(db.stats().keyspaces[0].transient_logs.files > 0);
        db.checkpoint(&copy).unwrap();
        let copied = value_files(&copy);
        assert!(!copied.is_empty());
        // The copy needs neither the source nor its files.
        map.compact_range::<&[u8]>(..).unwrap();
        check_transient_logs_are_gone(&db);
        drop(map);
        db.close().unwrap();
        fs::remove_dir_all(&home).unwrap();
        let (db, map) = open(&copy, options(source));
        let report = db.verify().unwrap();
        assert!(report.is_sound(), "{report:?}");
        assert!(report.values > 0);
        check(&map, &model, KEYS);
        map.compact_range::<&[u8]>(..).unwrap();
        check(&map, &model, KEYS);
        check_transient_logs_are_gone(&db);
    }
}

#[test]
fn the_transient_logs_of_a_dropped_keyspace_are_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let (db, map, model) = one_transient_log(folder.path(), BlockSource::Mapped, 20);
    let other = db.keyspace("other").unwrap();
    other.insert("key", [3; 400]).unwrap();
    db.flush().unwrap();
    let files = value_files(folder.path());
    assert_eq!(files.len(), 2);
    let mut range = map.iter().unwrap();
    let first = range.next().unwrap().unwrap();
    db.drop_keyspace("map").unwrap();
    drop(map);
    db.wait_idle().unwrap();
    // An open iterator still reads the keyspace.
    assert_eq!(value_files(folder.path()), files);
    let rest = range.by_ref().map(Result::unwrap);
    assert!(std::iter::once(first).chain(rest).eq(model));
    drop(range);
    db.wait_idle().unwrap();
    assert_eq!(value_files(folder.path()), files[1..]);
    assert_eq!(other.get("key").unwrap(), Some(vec![3; 400]));
    drop(other);
    db.close().unwrap();
    let db = Db::open(folder.path(), Options::default()).unwrap();
    let other = db.keyspace("other").unwrap();
    assert_eq!(other.get("key").unwrap(), Some(vec![3; 400]));
}

//! Reads that do not wait for a device give the answers of the others, or say that they do not know.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use common::Random;
use windrow::operators::Append;
use windrow::{Db, ErrorKind, Keyspace, Near, Options, View};

fn open(options: Options) -> (tempfile::TempDir, Db, Keyspace) {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path(), options).unwrap();
    let map = db.keyspace("map").unwrap();
    (folder, db, map)
}

fn near(view: &View, key: &str) -> Near<Vec<u8>> {
    view.get_near(key, <[u8]>::to_vec).unwrap()
}

#[test]
fn memtables_and_open_tables_answer() {
    let (_folder, db, map) = open(Options::default());
    map.insert("a", "1").unwrap();
    map.insert("b", "2").unwrap();
    let before = db.snapshot();
    map.remove("b").unwrap();
    map.insert_with_ttl("c", "3", Duration::ZERO).unwrap();
    for _ in 0..2 {
        // The first read of a table opens it.
        assert!(map.get("a").unwrap().is_some());
        assert_eq!(near(&map, "a"), Near::Found(b"1".to_vec()));
        assert_eq!(near(&map, "b"), Near::Absent);
        assert_eq!(near(&map, "c"), Near::Absent);
        assert_eq!(near(&map, "d"), Near::Absent);
        let before = map.at(&before).unwrap();
        assert_eq!(near(&before, "b"), Near::Found(b"2".to_vec()));
        db.flush().unwrap();
    }
    let error = |key: &str| map.get_near(key, <[u8]>::len).unwrap_err().kind();
    assert_eq!(error(""), ErrorKind::InvalidArgument);
    db.close().unwrap();
    assert_eq!(error("a"), ErrorKind::Closed);
}

#[test]
fn what_may_wait_is_unknown() {
    let mut options = Options::default();
    options.keyspace.medium_from = 100;
    options.keyspace.large_from = 100;
    let options = options.with_merge_operator("map", Arc::new(Append::new("|")));
    let (folder, db, map) = open(options.clone());
    map.insert("large", [7; 1000]).unwrap();
    map.merge("list", "x").unwrap();
    map.insert("small", "1").unwrap();
    for _ in 0..2 {
        assert_eq!(near(&map, "large"), Near::Unknown);
        assert_eq!(near(&map, "list"), Near::Unknown);
        db.flush().unwrap();
        assert!(map.get("small").unwrap().is_some());
    }
    assert_eq!(near(&map, "small"), Near::Found(b"1".to_vec()));
    // Nobody has opened the table yet.
    db.close().unwrap();
    let db = Db::open(folder.path(), options).unwrap();
    let map = db.keyspace("map").unwrap();
    assert_eq!(near(&map, "small"), Near::Unknown);
    assert!(map.get("small").unwrap().is_some());
    assert_eq!(near(&map, "small"), Near::Found(b"1".to_vec()));
}

/// A read that is not answered counts once, with the one that follows.
#[test]
fn only_answers_count_as_reads() {
    let mut options = Options::default();
    options.keyspace.medium_from = 100;
    options.keyspace.large_from = 100;
    let (_folder, db, map) = open(options);
    map.insert("large", [7; 1000]).unwrap();
    map.insert("small", "1").unwrap();
    let before = db.stats().gets;
    assert_eq!(near(&map, "large"), Near::Unknown);
    assert_eq!(db.stats().gets, before);
    assert_eq!(near(&map, "small"), Near::Found(b"1".to_vec()));
    assert_eq!(db.stats().gets, before + 1);
}

#[test]
fn random_histories_have_equal_answers() {
    for seed in 0..8 {
        let mut options = Options::default();
        options.keyspace.memtable_bytes = 64 << 10;
        options.keyspace.level0_runs = 2;
        let (_folder, db, map) = open(options);
        let mut random = Random(seed);
        let mut model = BTreeMap::new();
        let mut known = 0;
        for step in 0..6000_u64 {
            let key = format!("key{:03}", random.below(500));
            match random.below(10) {
                0 => {
                    map.remove(&key).unwrap();
                    model.remove(&key);
                }
                1..4 => {
                    let value = step.to_le_bytes().repeat(8);
                    map.insert(&key, &value).unwrap();
                    model.insert(key, value);
                }
                _ => match near(&map, &key) {
                    Near::Unknown => assert_eq!(map.get(&key).unwrap(), model.get(&key).cloned()),
                    Near::Found(value) => {
                        known += 1;
                        assert_eq!(Some(&value), model.get(&key));
                    }
                    Near::Absent => assert_eq!(model.get(&key), None),
                },
            }
            if random.below(500) == 0 {
                db.flush().unwrap();
            }
        }
        assert!(known > 1000, "{known}");
    }
}

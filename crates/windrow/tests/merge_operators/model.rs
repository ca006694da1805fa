//! A keyspace with operands is a sorted map, at every snapshot, through flushes, compactions, appends and opens.

use std::collections::BTreeMap;
use std::sync::Arc;

use windrow::operators::Append;
use windrow::{Batch, Db, KeyspaceOptions, Options, SegmentLimit, Snapshot, View};

use crate::common::Random;
use crate::tiny;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

const KEYS: u64 = 40;

fn key(number: u64) -> Vec<u8> {
    format!("key{number:03}").into_bytes()
}

/// Appends as the operator does.
fn append(model: &mut Model, key: Vec<u8>, operand: &[u8]) {
    match model.get_mut(&key) {
        Some(value) => {
            value.push(b',');
            value.extend_from_slice(operand);
        }
        None => {
            model.insert(key, operand.to_vec());
        }
    }
}

/// Compares all reads of `view` with `model`.
fn compare(view: &View, model: &Model, random: &mut Random) {
    let keys: Vec<_> = (0..KEYS).map(key).collect();
    let expected: Vec<_> = keys.iter().map(|key| model.get(key).cloned()).collect();
    assert_eq!(view.multi_get(&keys).unwrap(), expected);
    for (key, expected) in keys.iter().zip(&expected) {
        assert_eq!(view.get(key).unwrap(), *expected);
        assert_eq!(
            view.get_pinned(key).unwrap().as_deref(),
            expected.as_deref()
        );
        assert_eq!(view.contains_key(key).unwrap(), expected.is_some());
    }
    let forward: Vec<_> = view.iter().unwrap().map(Result::unwrap).collect();
    assert!(forward.iter().map(|(key, value)| (key, value)).eq(model));
    let backward: Vec<_> = view.iter().unwrap().rev().map(Result::unwrap).collect();
    assert!(
        backward
            .iter()
            .map(|(key, value)| (key, value))
            .eq(model.iter().rev())
    );
    // A walk that turns around at any entry.
    let entries: Vec<_> = model.iter().collect();
    let mut cursor = view.cursor().unwrap();
    let mut position = None;
    for _ in 0..30 {
        let (is_valid, wanted) = match (random.below(8), position) {
            (0..=2, Some(index)) => (cursor.next().unwrap(), Some(index + 1)),
            (3..=5, Some(index)) => (cursor.prev().unwrap(), usize::checked_sub(index, 1)),
            (6, _) => (cursor.seek_to_last().unwrap(), entries.len().checked_sub(1)),
            _ => {
                let key = key(random.below(KEYS + 1));
                let index = entries.partition_point(|(other, _)| **other < key);
                (cursor.seek(&key).unwrap(), Some(index))
            }
        };
        position = wanted.filter(|index| *index < entries.len());
        assert_eq!(is_valid, position.is_some());
        if let Some(index) = position {
            let (key, value) = entries[index];
            assert_eq!(cursor.key(), key);
            // Not every time, so that moves also leave operands that nobody has folded.
            if random.below(2) == 0 {
                assert_eq!(cursor.value().unwrap(), value);
            }
        }
    }
}

fn check(keyspace: KeyspaceOptions, seed: u64) -> (u64, u64) {
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::default().with_merge_operator("map", Arc::new(Append::new(",")));
    options.keyspace = keyspace;
    let mut random = Random(seed);
    let mut model = Model::new();
    let (mut appends, mut folded) = (0, 0);
    for _ in 0..3 {
        let db = Db::open(folder.path(), options.clone()).unwrap();
        let map = db.keyspace("map").unwrap();
        let mut held: Vec<(Snapshot, Model)> = Vec::new();
        for step in 0..6_000_u64 {
            // Some keys are hot.
            let choice = random.below(KEYS * 4);
            let key = key(if choice < KEYS { choice } else { choice % 4 });
            match random.below(40) {
                0..=2 => {
                    map.remove(&key).unwrap();
                    model.remove(&key);
                }
                3..=6 => {
                    let value = vec![b'v'; usize::try_from(random.below(400)).unwrap()];
                    map.insert(&key, &value).unwrap();
                    model.insert(key, value);
                }
                7..=9 => {
                    let mut batch = Batch::new();
                    for part in ["x", "yy", "zzz"] {
                        batch.merge(&map, &key, part).unwrap();
                        append(&mut model, key.clone(), part.as_bytes());
                    }
                    db.write(&batch).unwrap();
                }
                10..=12 => assert_eq!(map.get(&key).unwrap().as_ref(), model.get(&key)),
                _ => {
                    let length = usize::try_from(random.below(40)).unwrap();
                    let operand = format!("{step}-{}", "o".repeat(length));
                    map.merge(&key, &operand).unwrap();
                    append(&mut model, key, operand.as_bytes());
                }
            }
            match random.below(800) {
                0..=2 => held.push((db.snapshot(), model.clone())),
                3..=5 if !held.is_empty() => {
                    let gone = usize::try_from(random.below(held.len() as u64)).unwrap();
                    held.remove(gone);
                }
                6 => db.flush().unwrap(),
                7 => map.compact_range::<&[u8]>(..).unwrap(),
                8 => {
                    compare(&map, &model, &mut random);
                    for (snapshot, model) in &held {
                        compare(&map.at(snapshot).unwrap(), model, &mut random);
                    }
                }
                _ => {}
            }
        }
        db.wait_idle().unwrap();
        compare(&map, &model, &mut random);
        for (snapshot, model) in &held {
            compare(&map.at(snapshot).unwrap(), model, &mut random);
        }
        drop(held);
        map.compact_range::<&[u8]>(..).unwrap();
        compare(&map, &model, &mut random);
        let report = db.verify().unwrap();
        assert!(report.is_sound(), "{:?}", report.damage);
        let stats = db.stats();
        assert_eq!(stats.folds_failed, 0);
        appends += stats.appends;
        folded += stats.entries_folded;
        if random.below(2) == 0 {
            db.close().unwrap();
        }
    }
    (appends, folded)
}

#[test]
fn a_keyspace_with_operands_is_a_map() {
    let (_, folded) = check(tiny(), 1);
    assert!(folded > 1_000, "{folded}");
}

#[test]
fn a_keyspace_with_operands_and_appends_is_a_map() {
    let mut options = tiny();
    options.segment_limit = SegmentLimit::Fixed(12);
    options.file_bytes = 1 << 10;
    options.memtable_bytes = 4 << 10;
    let (appends, folded) = check(options, 2);
    assert!(appends > 0 && folded > 1_000, "{appends} {folded}");
}

#[test]
fn a_keyspace_with_operands_and_values_in_place_is_a_map() {
    let mut options = tiny();
    options.medium_from = u64::MAX;
    options.large_from = u64::MAX;
    check(options, 3);
}

/// Seeks remember which keys they found deleted, and a key with operands is none of them.
#[test]
fn seeks_over_tombstones_find_operands() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::default().with_merge_operator("map", Arc::new(Append::new(",")));
    options.keyspace = KeyspaceOptions::default();
    let db = Db::open(folder.path(), options).unwrap();
    let map = db.keyspace("map").unwrap();
    for number in 0..5_000 {
        map.insert(format!("a{number}"), "x").unwrap();
        map.remove(format!("a{number}")).unwrap();
    }
    for operand in ["1", "2"] {
        map.merge("b", operand).unwrap();
    }
    map.insert("c", "x").unwrap();
    for round in 0..6 {
        // The first two seeks find the span, and the others use it. A write of the key ends it.
        for _ in 0..4 {
            let mut cursor = map.cursor().unwrap();
            assert!(cursor.seek("a").unwrap());
            assert_eq!(cursor.key(), b"b", "round {round}");
            assert!(cursor.value().unwrap().starts_with(b"1,2"));
        }
        map.merge("b", "3").unwrap();
    }
    assert_eq!(map.count("a".."z").unwrap(), 2);
}

//! Random writes, loads, flushes, compactions, snapshots and opens give what a sorted map gives.

use std::collections::BTreeMap;

use windrow::Snapshot;

use crate::Store;
use crate::common::Random;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(random: &mut Random) -> Vec<u8> {
    format!("{:03}", random.below(300)).into_bytes()
}

fn value(random: &mut Random, step: u64) -> Vec<u8> {
    let bytes = match random.below(4) {
        0 => 10,
        1 => 60,
        2 => 300,
        _ => 2000,
    };
    let mut value = format!("{step} ").into_bytes();
    value.resize(bytes, b'.');
    value
}

/// Some entries, ascending: all over the keys, or close to each other.
fn entries(random: &mut Random, step: u64) -> Model {
    let count = 1 + random.below(40);
    let from = random.below(300);
    let is_narrow = random.below(2) == 0;
    let key = |random: &mut Random| {
        if is_narrow {
            format!("{:03}", (from + random.below(8)) % 300).into_bytes()
        } else {
            key(random)
        }
    };
    (0..count)
        .map(|_| (key(random), value(random, step)))
        .collect()
}

fn check(store: &Store, model: &Model) {
    let all: Vec<_> = store.keyspace.iter().unwrap().map(Result::unwrap).collect();
    assert!(all.iter().map(|(key, value)| (key, value)).eq(model));
    for key in (0..300).step_by(7).map(|key| format!("{key:03}")) {
        let found = store.keyspace.get(&key).unwrap();
        assert_eq!(found.as_ref(), model.get(key.as_bytes()), "{key}");
    }
}

fn check_snapshot(store: &Store, snapshot: &Snapshot, model: &Model) {
    let view = store.keyspace.at(snapshot).unwrap();
    let all: Vec<_> = view.iter().unwrap().map(Result::unwrap).collect();
    assert!(all.iter().map(|(key, value)| (key, value)).eq(model));
}

#[test]
fn loads_among_other_operations_answer_like_a_sorted_map() {
    for seed in 0..3 {
        let mut random = Random(seed);
        let mut store = Store::new();
        let mut model = Model::new();
        let mut snapshots: Vec<(Snapshot, Model)> = Vec::new();
        for step in 0..1000 {
            match random.below(100) {
                0..55 => {
                    let (key, value) = (key(&mut random), value(&mut random, step));
                    store.keyspace.insert(&key, &value).unwrap();
                    model.insert(key, value);
                }
                55..75 => {
                    let key = key(&mut random);
                    store.keyspace.remove(&key).unwrap();
                    model.remove(&key);
                }
                75..85 => {
                    let entries = entries(&mut random, step);
                    let loaded = store.keyspace.bulk_load(&entries).unwrap();
                    assert_eq!(loaded, entries.len() as u64);
                    model.extend(entries);
                }
                85..87 => store.db.flush().unwrap(),
                87 => {
                    let start = key(&mut random);
                    // Ten keys or more.
                    let end = [&start[..2], b"~"].concat();
                    store
                        .keyspace
                        .delete_range(start.clone()..end.clone())
                        .unwrap();
                    model.retain(|key, _| *key < start || *key >= end);
                }
                88..90 => {
                    let (one, other) = (key(&mut random), key(&mut random));
                    let range = one.clone().min(other.clone())..=one.max(other);
                    store.keyspace.compact_range(range).unwrap();
                }
                90..94 => snapshots.push((store.db.snapshot(), model.clone())),
                94..97 => {
                    if !snapshots.is_empty() {
                        let (snapshot, then) = snapshots.swap_remove(0);
                        check_snapshot(&store, &snapshot, &then);
                    }
                }
                97 => {
                    snapshots.clear();
                    store = store.reopened();
                }
                _ => check(&store, &model),
            }
        }
        check(&store, &model);
        store.check_sound();
    }
}

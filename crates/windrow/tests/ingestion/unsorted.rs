//! Bulk loads of entries in any order.

use std::collections::BTreeMap;

use windrow::{Error, ErrorKind};

use crate::Store;
use crate::common::Random;

/// Entries with keys of which some occur often, and values of all sizes.
fn entries(seed: u64, count: u64) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut random = Random(seed);
    let entry = |number: u64| {
        let key = format!("{:05}", random.below(count / 2 + 1)).into_bytes();
        let length = match random.below(4) {
            0 => 5,
            1 => 60,
            2 => 300,
            _ => 3000,
        };
        let mut value = format!("{number} ").into_bytes();
        value.resize(length, b'.');
        (key, value)
    };
    (0..count).map(entry).collect()
}

fn check(store: &Store, expected: &BTreeMap<Vec<u8>, Vec<u8>>) {
    let found: Vec<_> = store.keyspace.iter().unwrap().map(Result::unwrap).collect();
    assert!(found.iter().map(|(key, value)| (key, value)).eq(expected));
    store.check_sound();
}

#[test]
fn the_last_entry_of_each_key_is_loaded() {
    for (count, memory_bytes) in [(1, 1), (300, 1), (3000, 64 << 10), (3000, 1 << 30)] {
        let store = Store::new();
        store.keyspace.insert("00001", "old").unwrap();
        let entries = entries(count, count);
        let mut expected: BTreeMap<_, _> = entries.iter().cloned().collect();
        let loaded = expected.len() as u64;
        expected.entry(b"00001".to_vec()).or_insert(b"old".to_vec());
        let source = entries.into_iter().map(Ok::<_, Error>);
        let outcome = store
            .keyspace
            .try_bulk_load_unsorted(source, memory_bytes, |_| ());
        assert_eq!(outcome.unwrap(), loaded);
        check(&store, &expected);
        let store = store.reopened();
        check(&store, &expected);
        // Nothing is left of the sort.
        let levels: usize = store.files_by_level().iter().sum();
        let tables = store.data_files();
        let tables = tables.iter().filter(|name| name.ends_with(".table"));
        assert_eq!(tables.count(), levels);
        store.keyspace.compact_range::<&[u8]>(..).unwrap();
        check(&store, &expected);
    }
}

#[test]
fn values_that_are_all_replaced_leave_no_file() {
    let store = Store::new();
    let rounds = (0..40).flat_map(|round: u8| {
        (0..10).map(move |key| {
            (
                format!("{key}"),
                vec![round; if round < 39 { 5000 } else { 5 }],
            )
        })
    });
    let source = rounds.map(Ok::<_, Error>);
    let mut merged = 0;
    let outcome = store
        .keyspace
        .try_bulk_load_unsorted(source, 40_000, |count| merged = count);
    assert_eq!(outcome.unwrap(), 10);
    store.db.wait_idle().unwrap();
    assert!(
        store
            .data_files()
            .iter()
            .all(|name| name.ends_with(".table"))
    );
    assert_eq!(store.keyspace.get("7").unwrap(), Some(vec![39; 5]));
    store.check_sound();
}

#[test]
fn a_source_that_fails_leaves_nothing() {
    let store = Store::new();
    let entries = entries(5, 2000).into_iter().map(Ok);
    let failure = Error::new(ErrorKind::Io, "the source is gone");
    let source = entries.chain([Err(failure)]);
    let outcome = store
        .keyspace
        .try_bulk_load_unsorted(source, 20_000, |_| ());
    assert!(outcome.unwrap_err().to_string().contains("gone"));
    assert_eq!(store.data_files(), Vec::<String>::new());
    let nothing: [Result<(&str, &str), Error>; 0] = [];
    let outcome = store
        .keyspace
        .try_bulk_load_unsorted(nothing, 20_000, |_| ());
    assert_eq!(outcome.unwrap(), 0);
}

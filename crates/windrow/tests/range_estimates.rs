//! Estimates of the entries and bytes in a range, against what was written.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]

use std::ops::{Bound, RangeBounds};

use windrow::{Db, Keyspace, KeyspaceOptions, Options};

/// Options under which 20,000 entries make three levels of small tables.
fn small() -> KeyspaceOptions {
    let mut options = KeyspaceOptions::default();
    options.memtable_bytes = 256 << 10;
    options.file_bytes = 32 << 10;
    options.base_bytes = 128 << 10;
    options.size_ratio = 4.0;
    options
}

fn key(number: u64) -> [u8; 8] {
    // The order of writes is not that of keys.
    number.to_be_bytes()
}

fn fill(keyspace: &Keyspace, entries: u64, value_bytes: usize) {
    for step in 0..entries {
        let number = step * 7919 % entries;
        keyspace.insert(key(number), vec![7; value_bytes]).unwrap();
    }
}

/// The estimate is within a tenth of the truth, and `slack`.
fn assert_near(estimate: u64, truth: u64, slack: u64) {
    let allowed = truth / 10 + slack;
    assert!(
        estimate.abs_diff(truth) <= allowed,
        "{estimate}, not {truth}"
    );
}

fn assert_len(keyspace: &Keyspace, range: impl RangeBounds<[u8; 8]> + Clone, slack: u64) {
    let truth = keyspace.count(range.clone()).unwrap();
    assert_near(keyspace.approximate_len(range).unwrap(), truth, slack);
}

#[test]
fn tables_know_about_how_much_a_range_has() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path(), Options::default()).unwrap();
    let keyspace = db.keyspace_with("tree", small()).unwrap();
    fill(&keyspace, 20_000, 100);
    db.flush().unwrap();
    db.wait_idle().unwrap();
    keyspace.compact_range::<&[u8]>(..).unwrap();
    let all = keyspace.approximate_size::<&[u8]>(..).unwrap();
    assert_near(all, 20_000 * 120, 0);
    assert_len(&keyspace, .., 0);
    // A block of 4 KiB has about 35 entries, and an end of a range lies in one.
    for (from, to) in [
        (0, 20_000),
        (5000, 6000),
        (19_990, 20_000),
        (3, 4),
        (7, 19_000),
    ] {
        assert_len(&keyspace, key(from)..key(to), 50);
        assert_len(&keyspace, key(from)..=key(to), 50);
        let bounds = (Bound::Excluded(key(from)), Bound::Unbounded);
        assert_len(&keyspace, bounds, 50);
        let bytes = keyspace.approximate_size(key(from)..key(to)).unwrap();
        assert_near(bytes, (to - from) * 120, 8192);
    }
    assert_eq!(keyspace.approximate_len(key(30_000)..).unwrap(), 0);
    assert_eq!(keyspace.approximate_len(key(500)..key(400)).unwrap(), 0);
}

#[test]
fn values_apart_from_their_keys_count_in_the_size() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path(), Options::default()).unwrap();
    let keyspace = db.keyspace_with("tree", small()).unwrap();
    fill(&keyspace, 2000, 10_000);
    db.flush().unwrap();
    let half = keyspace.approximate_size(..key(1000)).unwrap();
    // A block has about 250 entries, and a bound may lie anywhere in it.
    assert_near(half, 1000 * 10_000, 125 * 10_000);
}

#[test]
fn memtables_count_exactly_while_a_range_is_short_and_by_a_sample_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path(), Options::default()).unwrap();
    let keyspace = db.keyspace("memory").unwrap();
    fill(&keyspace, 50_000, 20);
    for (from, to) in [(0, 1), (100, 400), (49_900, 50_000), (700, 700)] {
        let len = keyspace.approximate_len(key(from)..key(to)).unwrap();
        assert_eq!(len, to - from);
    }
    assert_eq!(keyspace.approximate_len(key(10)..=key(10)).unwrap(), 1);
    // The lists are the same in each run, since their lanes depend on the entries alone.
    for (from, to) in [(0, 50_000), (1000, 30_000), (20_000, 28_000)] {
        let len = keyspace.approximate_len(key(from)..key(to)).unwrap();
        assert_near(len, to - from, (to - from) / 5);
    }
    assert_eq!(keyspace.approximate_size::<&[u8]>(..).unwrap(), 0);
}

#[test]
fn a_removed_key_counts_neither_before_nor_after_the_flush() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path(), Options::default()).unwrap();
    let keyspace = db.keyspace("queue").unwrap();
    fill(&keyspace, 1000, 20);
    db.flush().unwrap();
    for number in 0..500 {
        keyspace.remove(key(number)).unwrap();
    }
    assert_near(keyspace.approximate_len::<&[u8]>(..).unwrap(), 500, 0);
    db.flush().unwrap();
    assert_near(keyspace.approximate_len::<&[u8]>(..).unwrap(), 500, 0);
}

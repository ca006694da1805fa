//! Range deletes: what readers see, at any time and at snapshots, through flushes, compactions and opens; and what
//! they cost.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]

mod common;

use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use windrow::operators::Append;
use windrow::{Batch, Db, Keyspace, KeyspaceOptions, Options, SegmentLimit, Snapshot, View};

use common::Random;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(number: u64) -> Vec<u8> {
    format!("key{number:06}").into_bytes()
}

fn tiny() -> Options {
    let mut keyspace = KeyspaceOptions::default();
    keyspace.memtable_bytes = 16 << 10;
    keyspace.file_bytes = 4 << 10;
    keyspace.base_bytes = 16 << 10;
    keyspace.block_bytes = 256;
    keyspace.size_ratio = 3.0;
    keyspace.segment_limit = SegmentLimit::Fixed(3);
    keyspace.max_space_amp = f64::INFINITY;
    let mut options = Options::default();
    options.background_threads = 4;
    options.keyspace = keyspace;
    options.with_merge_operator("map", Arc::new(Append::new(*b"|")))
}

/// Compares gets and scans in both directions.
fn compare(view: &View, model: &Model, random: &mut Random) {
    let found: Vec<_> = view.iter().unwrap().map(Result::unwrap).collect();
    let expected: Vec<_> = model.clone().into_iter().collect();
    assert_eq!(found, expected);
    let mut backward: Vec<_> = view.iter().unwrap().rev().map(Result::unwrap).collect();
    backward.reverse();
    assert_eq!(backward, expected);
    for _ in 0..50 {
        let key = key(random.below(1100));
        assert_eq!(view.get(&key).unwrap().as_ref(), model.get(&key));
        let from = (Bound::Excluded(&key[..]), Bound::Unbounded);
        let next = view.range::<&[u8]>(from).unwrap().next();
        let expected = model.range::<[u8], _>(from).next();
        assert_eq!(
            next.map(|it| it.unwrap().0).as_ref(),
            expected.map(|it| it.0)
        );
        let before = (Bound::Unbounded, Bound::Excluded(&key[..]));
        let last = view.range::<&[u8]>(before).unwrap().next_back();
        let expected = model.range::<[u8], _>(before).next_back();
        assert_eq!(
            last.map(|it| it.unwrap().0).as_ref(),
            expected.map(|it| it.0)
        );
    }
}

fn delete(map: &Keyspace, model: &mut Model, range: impl RangeBounds<Vec<u8>>) {
    let bounds = (range.start_bound(), range.end_bound());
    map.delete_range::<&Vec<u8>>(bounds).unwrap();
    model.retain(|key, _| !range.contains(key));
}

#[test]
fn a_keyspace_equals_a_map_through_range_deletes() {
    for seed in 0..6 {
        let folder = tempfile::tempdir().unwrap();
        let mut random = Random(seed);
        let mut model = Model::new();
        for _ in 0..3 {
            let db = Db::open(folder.path(), tiny()).unwrap();
            let map = db.keyspace("map").unwrap();
            compare(&map, &model, &mut random);
            let mut held: Vec<(Snapshot, Model)> = Vec::new();
            for step in 0..3000_u64 {
                let start = random.below(1000);
                let value = format!("{step} {seed}").into_bytes();
                match random.below(60) {
                    0 => delete(&map, &mut model, key(start)..key(start + random.below(300))),
                    1 => delete(&map, &mut model, key(start)..=key(start + random.below(20))),
                    2 if random.below(8) == 0 => delete(&map, &mut model, key(start)..),
                    3 if random.below(8) == 0 => delete(&map, &mut model, ..key(start)),
                    4 if random.below(20) == 0 => {
                        map.clear().unwrap();
                        model.clear();
                    }
                    5..10 => {
                        map.merge(key(start), &value).unwrap();
                        let old = model.entry(key(start)).or_default();
                        if !old.is_empty() {
                            old.push(b'|');
                        }
                        old.extend_from_slice(&value);
                    }
                    10..16 => {
                        map.remove(key(start)).unwrap();
                        model.remove(&key(start));
                    }
                    _ => {
                        map.insert(key(start), &value).unwrap();
                        model.insert(key(start), value);
                    }
                }
                match random.below(600) {
                    0 => held.push((db.snapshot(), model.clone())),
                    1 => db.flush().unwrap(),
                    2 => map.compact_range(key(start)..=key(start + 300)).unwrap(),
                    3 => compare(&map, &model, &mut random),
                    4 if !held.is_empty() => {
                        let (snapshot, state) = held.swap_remove(0);
                        compare(&map.at(&snapshot).unwrap(), &state, &mut random);
                    }
                    _ => {}
                }
            }
            compare(&map, &model, &mut random);
            map.compact_range::<&[u8]>(..).unwrap();
            compare(&map, &model, &mut random);
            for (snapshot, state) in &held {
                compare(&map.at(snapshot).unwrap(), state, &mut random);
            }
            let report = db.verify().unwrap();
            assert!(report.is_sound(), "{report:?}");
        }
    }
}

/// Twenty thousand keys in several levels.
fn filled(folder: &std::path::Path) -> (Db, Keyspace) {
    let mut options = tiny();
    options.keyspace.file_bytes = 16 << 10;
    let db = Db::open(folder, options).unwrap();
    let map = db.keyspace("map").unwrap();
    for number in 0..20_000 {
        map.insert(key(number), [7; 40]).unwrap();
    }
    map.compact_range::<&[u8]>(..).unwrap();
    (db, map)
}

#[test]
fn a_range_delete_costs_the_same_whatever_it_covers() {
    let folder = tempfile::tempdir().unwrap();
    let (db, map) = filled(folder.path());
    assert!(db.stats().disk_bytes > 1_000_000);
    let before = db.stats();
    map.delete_range(key(100)..key(19_900)).unwrap();
    let after = db.stats();
    assert!(after.wal_bytes - before.wal_bytes < 100);
    assert_eq!(after.sequence - before.sequence, 1);
    // Scans pass the hole by one seek into each run.
    for is_flushed in [false, true] {
        if is_flushed {
            db.flush().unwrap();
        }
        let before = db.stats();
        assert_eq!(map.iter().unwrap().count(), 200);
        assert_eq!(map.iter().unwrap().rev().count(), 200);
        let reads = db.stats().block_reads - before.block_reads;
        assert!(reads < 400, "{reads} blocks");
    }
    // Its space is free after a compaction, and so is its own. Covered files are not read for that.
    let before = db.stats();
    map.compact_range::<&[u8]>(..).unwrap();
    let after = db.stats();
    let read = after.compaction_bytes_read - before.compaction_bytes_read;
    assert!(read < 100_000, "{read} bytes");
    let levels = &after.keyspaces[0].levels;
    let entries: u64 = levels.iter().map(|level| level.entries).sum();
    assert_eq!(entries, 200);
    assert_eq!(map.iter().unwrap().count(), 200);
}

/// Parts of one range delete go down level by level, with cuts and in parallel parts.
#[test]
fn a_large_compaction_divides_a_range_delete() {
    let folder = tempfile::tempdir().unwrap();
    let (db, map) = filled(folder.path());
    let held = db.snapshot();
    map.delete_range(key(100)..key(19_900)).unwrap();
    for number in (0..20_000).step_by(7) {
        map.insert(key(number), b"again").unwrap();
    }
    let before = db.stats().subcompactions;
    map.compact_range::<&[u8]>(..).unwrap();
    let stats = db.stats();
    assert!(stats.subcompactions - before > 1, "no parts");
    let levels = &stats.keyspaces[0].levels;
    let tombstones: u64 = levels.iter().map(|level| level.tombstones).sum();
    assert!(tombstones > 1, "it is in one piece");
    let expected = |number: u64| number.is_multiple_of(7) || !(100..19_900).contains(&number);
    for number in 0..20_000 {
        let found = map.contains_key(key(number)).unwrap();
        assert_eq!(found, expected(number), "{number}");
    }
    let keys = map.iter().unwrap().count();
    assert_eq!(keys, (0..20_000).filter(|number| expected(*number)).count());
    assert_eq!(map.at(&held).unwrap().iter().unwrap().count(), 20_000);
    drop(held);
    map.compact_range::<&[u8]>(..).unwrap();
    let levels = &db.stats().keyspaces[0].levels;
    let entries: u64 = levels.iter().map(|level| level.entries).sum();
    assert_eq!(entries, keys as u64);
}

#[test]
fn a_batch_deletes_what_it_has_set_before() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path(), tiny()).unwrap();
    let map = db.keyspace("map").unwrap();
    map.insert("m", "old").unwrap();
    let mut batch = Batch::new();
    batch.insert(&map, "zzz", "gone").unwrap();
    batch.delete_range(&map, "a"..).unwrap();
    batch.insert(&map, "n", "new").unwrap();
    batch.delete_range(&map, "q".."b").unwrap();
    assert_eq!(batch.len(), 3);
    db.write(&batch).unwrap();
    let found: Vec<_> = map.iter().unwrap().map(Result::unwrap).collect();
    assert_eq!(found, [(b"n".to_vec(), b"new".to_vec())]);
}

/// A hole may reach behind the range of a reader, where newer files, which the reader leaves out, have keys.
#[test]
fn a_reader_remembers_no_deleted_keys_behind_its_range() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path(), Options::default()).unwrap();
    let map = db.keyspace("map").unwrap();
    for number in 0..60 {
        map.insert(key(number), "old").unwrap();
    }
    map.compact_range::<&[u8]>(..).unwrap();
    for number in 0..20 {
        map.remove(key(number)).unwrap();
    }
    map.delete_range(key(20)..key(59)).unwrap();
    db.flush().unwrap();
    map.insert(key(50), "new").unwrap();
    db.flush().unwrap();
    // The second seek confirms what the first one has found.
    for _ in 0..3 {
        assert_eq!(map.range(key(0)..key(30)).unwrap().count(), 0);
        assert_eq!(map.range(key(0)..=key(30)).unwrap().count(), 0);
    }
    let found: Vec<_> = map
        .range(key(0)..)
        .unwrap()
        .map(|it| it.unwrap().0)
        .collect();
    assert_eq!(found, [key(50), key(59)]);
}

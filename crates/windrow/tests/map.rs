//! A keyspace behaves like a sorted map, through flushes, compactions and opens, on the real file
//! system with real threads.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]

mod common;

use std::collections::BTreeMap;
use std::ops::Bound;

use windrow::{BlockSource, Compression, Db, KeyspaceOptions, Options, SegmentLimit};

use common::Random;

fn tiny(compression: Compression) -> KeyspaceOptions {
    let mut options = KeyspaceOptions::default();
    options.memtable_bytes = 16 << 10;
    options.file_bytes = 8 << 10;
    options.base_bytes = 32 << 10;
    options.block_bytes = 512;
    options.size_ratio = 3.0;
    options.compression = compression;
    options
}

fn check(source: BlockSource, keyspace: KeyspaceOptions) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.block_source = source;
    options.keyspace = keyspace;
    let mut appends = 0;
    let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    let mut random = Random(7);
    for round in 0..4 {
        let db = Db::open(folder.path(), options.clone()).unwrap();
        let map = db.keyspace("map").unwrap();
        for step in 0..6_000_u64 {
            let key = format!("key{:05}", random.below(4_000)).into_bytes();
            if random.below(5) == 0 {
                map.remove(&key).unwrap();
                model.remove(&key);
            } else {
                let value = format!("{round}-{step}-")
                    .repeat(usize::try_from(1 + random.below(8)).unwrap());
                map.insert(&key, &value).unwrap();
                model.insert(key, value.into_bytes());
            }
        }
        if round == 2 {
            map.compact_range::<&[u8]>(..).unwrap();
        }
        for key in 0..4_000 {
            let key = format!("key{key:05}").into_bytes();
            assert_eq!(map.get(&key).unwrap().as_ref(), model.get(&key));
        }
        let all: Vec<_> = map.iter().unwrap().map(Result::unwrap).collect();
        assert!(all.iter().map(|(key, value)| (key, value)).eq(model.iter()));
        let backward: Vec<_> = map.iter().unwrap().rev().map(Result::unwrap).collect();
        assert!(
            backward
                .iter()
                .map(|(key, value)| (key, value))
                .eq(model.iter().rev())
        );
        let (from, to) = (b"key01000".to_vec(), b"key01100".to_vec());
        let some: Vec<_> = map
            .range(from.clone()..to.clone())
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let expected = model.range((Bound::Included(from), Bound::Excluded(to)));
        assert!(some.iter().map(|(key, value)| (key, value)).eq(expected));
        let report = db.verify().unwrap();
        assert!(report.is_sound(), "{:?}", report.damage);
        appends += db.stats().appends;
        if round % 2 == 0 {
            db.wait_idle().unwrap();
            db.close().unwrap();
        }
    }
    appends
}

/// Large compactions are divided into subcompactions. Only the counter shows them.
#[test]
fn a_keyspace_with_subcompactions_is_a_map() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.background_threads = 4;
    options.keyspace = tiny(Compression::None);
    options.keyspace.level0_runs = 8;
    options.keyspace.base_bytes = 256 << 10;
    let db = Db::open(folder.path(), options).unwrap();
    let map = db.keyspace("map").unwrap();
    let mut random = Random(11);
    let mut model = BTreeMap::new();
    for step in 0..40_000_u64 {
        let key = random.below(20_000).to_be_bytes();
        map.insert(key, step.to_be_bytes()).unwrap();
        model.insert(key.to_vec(), step.to_be_bytes().to_vec());
    }
    map.compact_range::<&[u8]>(..).unwrap();
    let stats = db.stats();
    assert!(stats.subcompactions > stats.compactions, "{stats:?}");
    let all: Vec<_> = map.iter().unwrap().map(Result::unwrap).collect();
    assert!(all.iter().map(|(key, value)| (key, value)).eq(model.iter()));
    assert!(db.verify().unwrap().is_sound());
}

/// A manual compaction of all levels leaves no tombstone, except for snapshots.
#[test]
fn a_manual_compaction_drops_tombstones() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.keyspace = tiny(Compression::None);
    let db = Db::open(folder.path(), options).unwrap();
    let map = db.keyspace("map").unwrap();
    let tombstones = || -> u64 {
        let levels = db.stats().keyspaces.remove(0).levels;
        levels.iter().map(|level| level.tombstones).sum()
    };
    for key in 0..3_000_u32 {
        map.insert(key.to_be_bytes(), [1; 20]).unwrap();
    }
    let snapshot = db.snapshot();
    for key in (0..3_000_u32).filter(|key| key % 3 == 0) {
        map.remove(key.to_be_bytes()).unwrap();
    }
    map.compact_range::<&[u8]>(..).unwrap();
    assert!(
        tombstones() > 0,
        "a snapshot reads the entries that they hide"
    );
    drop(snapshot);
    map.compact_range::<&[u8]>(..).unwrap();
    assert_eq!(tombstones(), 0);
    assert_eq!(map.iter().unwrap().count(), 2_000);
}

#[test]
fn a_keyspace_is_a_map() {
    for (source, compression) in [
        (BlockSource::Mapped, Compression::None),
        (BlockSource::Buffered, Compression::None),
        (BlockSource::Mapped, Compression::Lz4),
    ] {
        check(source, tiny(compression));
    }
}

#[test]
fn a_keyspace_with_appends_is_a_map() {
    for source in [BlockSource::Mapped, BlockSource::Buffered] {
        let mut options = tiny(Compression::None);
        options.segment_limit = SegmentLimit::Fixed(12);
        options.max_space_amp = f64::INFINITY;
        let appends = check(source, options);
        assert!(appends > 9, "{appends}");
    }
}

#[cfg(feature = "zstd")]
#[test]
fn a_keyspace_is_a_map_when_zstd_packs_its_blocks() {
    check(BlockSource::Buffered, tiny(Compression::Zstd));
}

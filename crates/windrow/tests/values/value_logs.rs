//! Value logs: round trips, references, garbage collection and discard lists.

use std::fs;
use std::path::PathBuf;

use windrow::{BlockSource, Compression, Db, SegmentLimit};

use super::common::Random;
use super::fixture::{
    Model, check, key, medium, open, options, value, value_files, with_logs, write,
};

#[test]
fn large_values_go_to_logs_and_come_back() {
    const KEYS: u64 = 300;
    let (folder, copies) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (mut model, mut random) = (Model::new(), Random(21));
    for round in 0..4 {
        let (db, map) = open(folder.path(), with_logs());
        check(&map, &model, KEYS);
        for _ in 0..1500 {
            let number = random.below(KEYS);
            if random.below(5) == 0 {
                map.remove(key(number)).unwrap();
                model.remove(&key(number));
            } else {
                let value = value(&mut random);
                map.insert(key(number), &value).unwrap();
                model.insert(key(number), value);
            }
        }
        let mut batch = windrow::Batch::new();
        for number in 0..5 {
            let value = medium(&mut random, 100 + 300 * usize::try_from(number).unwrap());
            batch.insert(&map, key(number), &value).unwrap();
            model.insert(key(number), value);
        }
        db.write(&batch).unwrap();
        check(&map, &model, KEYS);
        let logs = db.stats().keyspaces[0].value_logs;
        assert!(logs.files > 0 && logs.live_bytes <= logs.bytes, "{logs:?}");
        let copy = copies.path().join(round.to_string());
        db.checkpoint(&copy).unwrap();
        // Later writes are not in the copy.
        map.insert(key(0), vec![1; 2000]).unwrap();
        let copied = Db::open(&copy, with_logs()).unwrap();
        check(&copied.keyspace("map").unwrap(), &model, KEYS);
        assert!(copied.verify().unwrap().is_sound());
        model.insert(key(0), vec![1; 2000]);
        if round % 2 == 0 {
            map.compact_range::<&[u8]>(..).unwrap();
            check(&map, &model, KEYS);
        }
        assert!(db.verify().unwrap().is_sound());
        drop((map, copied));
        // Every other round ends without a close, as after a kill.
        if round % 2 == 0 {
            db.close().unwrap();
        }
    }
}

/// The references of all subcompactions and appends are counted, beside garbage collections.
#[test]
fn a_keyspace_with_subcompactions_counts_all_references() {
    const KEYS: u64 = 20_000;
    let folder = tempfile::tempdir().unwrap();
    let mut options = with_logs();
    options.background_threads = 4;
    options.keyspace.memtable_bytes = 16 << 10;
    options.keyspace.file_bytes = 8 << 10;
    options.keyspace.base_bytes = 256 << 10;
    options.keyspace.level0_runs = 8;
    options.keyspace.medium_from = 72;
    options.keyspace.large_from = 72;
    options.keyspace.max_space_amp = 2.0;
    options.keyspace.segment_limit = SegmentLimit::Fixed(12);
    let (db, map) = open(folder.path(), options.clone());
    let (mut model, mut random) = (Model::new(), Random(29));
    for step in 0..40_000_u64 {
        let (key, value) = (key(random.below(KEYS)), step.to_be_bytes().repeat(8));
        map.insert(&key, &value).unwrap();
        model.insert(key, value);
    }
    map.compact_range::<&[u8]>(..).unwrap();
    db.wait_idle().unwrap();
    let stats = db.stats();
    assert!(stats.subcompactions > stats.compactions, "{stats:?}");
    let others = [stats.appends, stats.garbage_collections];
    assert!(others.iter().all(|count| *count > 0), "{others:?}");
    let report = db.verify().unwrap();
    assert!(report.is_sound(), "{:?}", report.damage);
    db.close().unwrap();
    let (db, map) = open(folder.path(), options);
    let all: Model = map.iter().unwrap().map(Result::unwrap).collect();
    assert!(all == model);
    assert!(db.verify().unwrap().is_sound());
}

#[test]
fn a_value_log_is_deleted_with_its_last_reference() {
    let folder = tempfile::tempdir().unwrap();
    let (db, map) = open(folder.path(), with_logs());
    for round in 0..8 {
        for number in 0..100 {
            map.insert(key(number), vec![round; 1000]).unwrap();
        }
    }
    map.compact_range::<&[u8]>(..).unwrap();
    db.wait_idle().unwrap();
    // All but the newest hundred values are garbage, and logs that contain no other values are deleted.
    let logs = db.stats().keyspaces[0].value_logs;
    assert!(logs.bytes < 400_000, "{logs:?}");
    for number in 0..100 {
        map.remove(key(number)).unwrap();
    }
    map.compact_range::<&[u8]>(..).unwrap();
    drop(map);
    db.close().unwrap();
    let (db, map) = open(folder.path(), with_logs());
    map.insert("small", "x").unwrap();
    db.flush().unwrap();
    db.wait_idle().unwrap();
    assert_eq!(value_files(folder.path()), Vec::<PathBuf>::new());
}

#[test]
fn a_read_only_open_counts_value_logs_alike() {
    for is_flushed in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let (db, map) = open(folder.path(), with_logs());
        map.insert("large", vec![1; 2000]).unwrap();
        if is_flushed {
            db.flush().unwrap();
        }
        map.insert("larger", vec![2; 3000]).unwrap();
        let written = db.stats().keyspaces[0].value_logs;
        assert!(written.files == 1 && written.bytes > 5000, "{written:?}");
        assert_eq!(written.live_bytes > 2000, is_flushed);
        db.close().unwrap();
        let db = Db::open_read_only(folder.path(), with_logs()).unwrap();
        assert_eq!(db.stats().keyspaces[0].value_logs, written);
        assert!(db.verify().unwrap().is_sound());
        let map = db.keyspace("map").unwrap();
        assert!(*map.get("larger").unwrap().unwrap() == [2; 3000]);
    }
}

/// Garbage collections run beside overwrites, removals, snapshots, cursors and opens. They change no answer, and keep
/// the bytes of logs near the live bytes.
fn check_gc(source: BlockSource, compression: Compression) {
    const KEYS: u64 = 400;
    let (folder, copies) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut options = options(source);
    options.keyspace.compression = compression;
    options.keyspace.large_from = 200;
    options.keyspace.max_space_amp = 1.3;
    let (mut model, mut random) = (Model::new(), Random(5));
    let mut garbage_collections = 0;
    for round in 0..5 {
        let (db, map) = open(folder.path(), options.clone());
        write(&map, &mut model, &mut random, KEYS, 3000);
        let (snapshot, then) = (db.snapshot(), model.clone());
        let mut cursor = map.iter().unwrap();
        let before = cursor.next().unwrap().unwrap();
        assert_eq!(Some(before), model.clone().pop_first());
        write(&map, &mut model, &mut random, KEYS, 3000);
        check(&map, &model, KEYS);
        if round % 2 == 0 {
            map.compact_range::<&[u8]>(..).unwrap();
        }
        db.wait_idle().unwrap();
        check(&map, &model, KEYS);
        assert!(db.verify().unwrap().is_sound(), "{:?}", db.verify());
        let at = map.at(&snapshot).unwrap();
        for number in 0..KEYS {
            assert_eq!(
                at.get(key(number)).unwrap(),
                then.get(&key(number)).cloned()
            );
        }
        assert!(cursor.map(Result::unwrap).eq(then.into_iter().skip(1)));
        drop((at, snapshot));
        let copy = copies.path().join(round.to_string());
        db.checkpoint(&copy).unwrap();
        let copied = Db::open(&copy, options.clone()).unwrap();
        check(&copied.keyspace("map").unwrap(), &model, KEYS);
        assert!(copied.verify().unwrap().is_sound());
        write(&map, &mut model, &mut random, KEYS, 2000);
        map.compact_range::<&[u8]>(..).unwrap();
        db.wait_idle().unwrap();
        let stats = db.stats();
        garbage_collections += stats.garbage_collections;
        let logs = stats.keyspaces[0].value_logs;
        assert!(
            logs.live_bytes + logs.garbage_bytes <= logs.bytes,
            "{logs:?}"
        );
        let entries = fs::read_dir(folder.path()).unwrap().map(Result::unwrap);
        let lists = entries.filter(|it| it.path().extension().is_some_and(|end| end == "dead"));
        let lengths: Vec<u64> = lists.map(|it| it.metadata().unwrap().len()).collect();
        assert_eq!(lengths.len(), stats.keyspaces[0].discard_lists);
        let length: u64 = lengths.into_iter().sum();
        assert_eq!(length, stats.keyspaces[0].discard_list_bytes);
        // The rest are the open log, and values that the newest ones replaced.
        assert!(
            logs.bytes < logs.live_bytes * 3 / 2 + (200 << 10),
            "{logs:?}"
        );
        drop((map, copied));
        if round % 2 == 0 {
            db.close().unwrap();
        }
    }
    assert!(garbage_collections > 5, "{garbage_collections}");
}

#[test]
fn garbage_collections_change_no_answer() {
    check_gc(BlockSource::Mapped, Compression::None);
    check_gc(BlockSource::Buffered, Compression::Lz4);
}

/// Many lists on logs that are not collected are rewritten as one.
#[test]
fn discard_lists_do_not_pile_up() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = with_logs();
    // A compaction could delete whole logs, and with them their lists.
    let level0_runs = std::mem::replace(&mut options.keyspace.level0_runs, 64);
    options.keyspace.max_space_amp = f64::INFINITY;
    let (db, map) = open(folder.path(), options.clone());
    let (mut model, mut random) = (Model::new(), Random(9));
    for _ in 0..60 {
        // A value that is overwritten before its flush is garbage after it.
        let first = random.below(90);
        for number in (0..10).chain(0..5).map(|step| first + step) {
            let value = medium(&mut random, 2000);
            map.insert(key(number), &value).unwrap();
            model.insert(key(number), value);
        }
        db.flush().unwrap();
    }
    db.wait_idle().unwrap();
    let lists = db.stats().keyspaces[0].discard_lists;
    assert!(lists > 40, "{lists}");
    options.keyspace.max_space_amp = 1.1;
    options.keyspace.level0_runs = level0_runs;
    let map = db.keyspace_with("map", options.keyspace).unwrap();
    db.wait_idle().unwrap();
    let stats = db.stats();
    assert!(stats.garbage_collections > 0);
    assert!(stats.keyspaces[0].discard_lists < 20, "{stats:?}");
    check(&map, &model, 100);
    assert!(db.verify().unwrap().is_sound());
}

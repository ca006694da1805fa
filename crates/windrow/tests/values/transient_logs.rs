//! Transient logs: which values they hold, their order, their space, and the tables that refer to them.

use windrow::inspect::Field;
use windrow::{BlockSource, Db, MediumInPlace, MediumOrder, Options};

use super::common::Random;
use super::fixture::{
    Model, check, check_transient_logs_are_gone, key, medium, open, options, tiny, value_files,
    write,
};

/// Values that come in key order stay in their tables, until an entry overlaps them.
#[test]
fn mediums_in_order_stay_in_tables() {
    for order in [MediumOrder::Sorted, MediumOrder::Written] {
        let folder = tempfile::tempdir().unwrap();
        let mut options = options(BlockSource::Mapped);
        options.keyspace.medium_order = order;
        let (db, map) = open(folder.path(), options);
        let (mut model, mut random) = (Model::new(), Random(21));
        let mut put = |numbers: &[u64]| {
            for &number in numbers {
                let value = medium(&mut random, 300);
                map.insert(key(number), &value).unwrap();
                model.insert(key(number), value);
            }
            db.flush().unwrap();
            check(&map, &model, 300);
            db.stats().transient_log_bytes_written
        };
        // The first flush does not know the order of keys.
        let first = put(&[40, 41, 42]);
        assert!(first > 0);
        for from in (50..250).step_by(20).chain([20, 0]) {
            let numbers: Vec<u64> = (from..from + 20).step_by(2).collect();
            assert_eq!(put(&numbers), first, "{order:?}, {from}");
        }
        db.wait_idle().unwrap();
        assert_eq!(db.stats().transient_log_bytes_written, first);
        assert!(put(&[52, 250]) > first, "{order:?}");
        assert!(db.verify().unwrap().is_sound());
    }
}

/// The lengths of the values in the transient log of one flush. It has medium values under descending keys. One of
/// them is overwritten, and a snapshot keeps others.
fn lengths_in_a_transient_log(order: MediumOrder) -> Vec<u64> {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(BlockSource::Mapped);
    options.keyspace.medium_order = order;
    let (db, map) = open(folder.path(), options);
    map.insert(key(6), [9; 300]).unwrap();
    map.insert(key(7), [9; 201]).unwrap();
    let snapshot = db.snapshot();
    for (number, length) in [(9, 202), (8, 203), (7, 204), (6, 205)] {
        map.insert(key(number), vec![1; length]).unwrap();
    }
    map.insert(key(5), [1; 20]).unwrap();
    map.insert(key(6), [1; 206]).unwrap();
    map.remove(key(8)).unwrap();
    db.flush().unwrap();
    let old = map.at(&snapshot).unwrap();
    assert_eq!(old.get(key(7)).unwrap(), Some(vec![9; 201]));
    assert_eq!(old.get(key(6)).unwrap(), Some(vec![9; 300]));
    assert_eq!(map.get(key(6)).unwrap(), Some(vec![1; 206]));
    assert!(db.verify().unwrap().is_sound());
    let transient_logs = db.stats().keyspaces[0].transient_logs;
    assert_eq!(
        transient_logs.live_bytes, transient_logs.bytes,
        "no garbage is written"
    );

    let mut lengths = Vec::new();
    windrow::inspect::visit(
        &windrow::vfs::OsVfs,
        &value_files(folder.path())[0],
        &mut |record| {
            if let Some(Field::Number(length)) = record.field("value_bytes") {
                lengths.push(length);
            }
            Ok(())
        },
    )
    .unwrap();
    lengths
}

#[test]
fn transient_logs_are_sorted_or_in_the_order_of_writes() {
    let sorted = lengths_in_a_transient_log(MediumOrder::Sorted);
    assert_eq!(sorted, [206, 300, 204, 201, 202]);
    let written = lengths_in_a_transient_log(MediumOrder::Written);
    assert_eq!(written, [300, 201, 202, 204, 206]);
}

/// The last live values of a transient log keep its file. However few they are, the space is bounded.
#[test]
fn garbage_in_transient_logs_takes_bounded_space() {
    const KEYS: u64 = 3000;
    let folder = tempfile::tempdir().unwrap();
    let options = options(BlockSource::Mapped);
    let (db, map) = open(folder.path(), options);
    let (mut model, mut random) = (Model::new(), Random(31));
    for round in 0..30 {
        for _ in 0..1000 {
            // Some keys are written much more often than others.
            let keys = 1 + random.below(KEYS);
            let key = key(random.below(keys));
            let value = medium(&mut random, 200);
            map.insert(&key, &value).unwrap();
            model.insert(key, value);
        }
        db.wait_idle().unwrap();
        let stats = &db.stats().keyspaces[0];
        let tables: u64 = stats.levels.iter().map(|level| level.bytes).sum();
        let logical = tables + stats.transient_logs.live_bytes;
        let tiny = tiny();
        let level0 = (tiny.level0_runs * tiny.memtable_bytes) as u64;
        let most = logical / 3 + level0;
        assert!(stats.transient_logs.bytes <= most, "{round}: {stats:?}");
    }
    assert!(db.stats().transient_log_bytes_read > 0);
    check(&map, &model, KEYS);
    assert!(db.verify().unwrap().is_sound());
    map.compact_range::<&[u8]>(..).unwrap();
    check_transient_logs_are_gone(&db);
}

/// Each open has other options of placement. No entry is lost, and a compaction that writes in place leaves no
/// transient log.
#[test]
fn options_of_placement_may_change() {
    const KEYS: u64 = 400;
    let folder = tempfile::tempdir().unwrap();
    let (mut model, mut random) = (Model::new(), Random(13));
    let with = |medium_from, in_place| {
        let mut options = tiny();
        options.medium_from = medium_from;
        options.medium_in_place = in_place;
        options
    };
    let off = tiny().large_from;
    // Whether flushes write transient logs, and whether a compaction removes all of them.
    let choices = [
        (with(120, MediumInPlace::LastLevel), true, true),
        (with(off, MediumInPlace::LastLevel), false, true),
        (with(120, MediumInPlace::LevelBeforeLast), true, true),
        (with(120, MediumInPlace::Never), true, false),
        (with(off, MediumInPlace::Never), false, false),
        (with(off, MediumInPlace::LastLevel), false, true),
        (with(120, MediumInPlace::Never), true, false),
        (with(120, MediumInPlace::LevelBeforeLast), true, true),
        (with(64, MediumInPlace::Never), true, false),
        (with(120, MediumInPlace::LastLevel), true, true),
    ];
    for (choice, separates, clears) in choices {
        let db = Db::open(folder.path(), options(BlockSource::Mapped)).unwrap();
        let map = db.keyspace_with("map", choice.clone()).unwrap();
        check(&map, &model, KEYS);
        write(&map, &mut model, &mut random, KEYS, 300);
        db.flush().unwrap();
        assert_eq!(
            db.stats().transient_log_bytes_written > 0,
            separates,
            "{choice:?}"
        );
        check(&map, &model, KEYS);
        let before = db.stats().keyspaces[0].transient_logs.files;
        map.compact_range::<&[u8]>(..).unwrap();
        check(&map, &model, KEYS);
        if clears {
            check_transient_logs_are_gone(&db);
        } else {
            db.wait_idle().unwrap();
            let transient_logs = db.stats().keyspaces[0].transient_logs.files;
            assert_eq!(transient_logs > 0, before > 0, "{choice:?}");
            let logs = db.stats().keyspaces[0].value_logs.files;
            assert_eq!(value_files(folder.path()).len(), transient_logs + logs);
        }
        let report = db.verify().unwrap();
        assert!(report.is_sound(), "{choice:?}: {report:?}");
    }
}

/// A compaction cuts tables of pointers by the same count of bytes by which it was planned. Otherwise they would be
/// shorter in each deeper level.
#[test]
fn tables_that_refer_to_transient_logs_have_one_size_in_all_levels() {
    const FILE_BYTES: u64 = 16 << 10;
    const VALUE_BYTES: u64 = 400;
    const KEYS: u64 = 30_000;
    let directory = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    let keyspace = &mut options.keyspace;
    keyspace.memtable_bytes = 64 << 10;
    keyspace.base_bytes = 128 << 10;
    keyspace.file_bytes = FILE_BYTES;
    keyspace.medium_from = 120;
    keyspace.medium_in_place = MediumInPlace::Never;
    let (db, map) = open(directory.path(), options);
    for step in 0..KEYS {
        let key = format!("{:016}", step * 7919 % KEYS);
        map.insert(key.as_bytes(), [7; 400]).unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    let stats = db.stats();
    let levels = &stats.keyspaces[0].levels[2..];
    let long = levels.iter().filter(|level| level.files >= 8);
    let lengths: Vec<u64> = long
        .map(|level| {
            let values = level.entries * VALUE_BYTES;
            assert!(
                level.bytes < values / 4,
                "values are in the tables: {level:?}"
            );
            (level.bytes + values / 4) / level.files as u64
        })
        .collect();
    assert!(!lengths.is_empty());
    assert!(
        lengths.iter().all(|&length| length > FILE_BYTES / 2),
        "{lengths:?}"
    );
}

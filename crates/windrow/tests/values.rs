//! Values that stand apart from their keys, on the real file system: nobody sees where a value is,
//! runs go when nothing needs them and not before, and damage is named and stays where it is.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests look at files and change them behind the back of the database"
)]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use windrow::inspect::Field;
use windrow::{
    BlockSource, Compression, Db, Error, ErrorKind, Keyspace, KeyspaceOptions, MediumInPlace,
    MediumOrder, Options, ValueFileStats,
};

use common::Random;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

const SOURCES: [BlockSource; 2] = [BlockSource::Mapped, BlockSource::Buffered];

/// Around both limits of every class, under a key of eight bytes: 56 with it, the least value that
/// can be medium, and totals of 119, 120, 1023 and 1024 bytes.
const LENGTHS: [usize; 12] = [0, 7, 63, 64, 111, 112, 113, 500, 1015, 1016, 1017, 3000];

fn key(number: u64) -> Vec<u8> {
    format!("key{number:05}").into_bytes()
}

/// A value of one of the lengths; half of it shrinks under compression.
fn value(random: &mut Random) -> Vec<u8> {
    let length = LENGTHS[usize::try_from(random.below(LENGTHS.len() as u64)).unwrap()];
    medium(random, length)
}

fn medium(random: &mut Random, length: usize) -> Vec<u8> {
    let byte = |at: usize, random: &mut Random| match at % 2 {
        0 => b'.',
        _ => random.below(256).to_le_bytes()[0],
    };
    (0..length).map(|at| byte(at, random)).collect()
}

/// Levels of a few files, and runs of many files.
fn tiny() -> KeyspaceOptions {
    let mut options = KeyspaceOptions::default();
    options.memtable_bytes = 32 << 10;
    options.file_bytes = 16 << 10;
    options.base_bytes = 64 << 10;
    options.block_bytes = 512;
    options.size_ratio = 3.0;
    options.medium_from = 120;
    options.large_from = 1024;
    options
}

fn options(source: BlockSource) -> Options {
    let mut options = Options::default();
    options.block_source = source;
    options.open_files_max = 16;
    options.keyspace = tiny();
    options
}

/// The value files in `folder`, ascending.
fn value_files(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "values"))
        .collect();
    paths.sort();
    paths
}

fn name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

/// Checks that the first keyspace has no run and the folder no value file.
fn check_transient_logs_are_gone(db: &Db) {
    db.wait_idle().unwrap();
    assert_eq!(
        db.stats().keyspaces[0].transient_logs,
        ValueFileStats::default()
    );
    let logs = db.stats().keyspaces[0].value_logs.files;
    assert_eq!(value_files(db.path()).len(), logs);
}

/// Writes `count` entries under keys below `keys`; a sixth of them are removals.
fn write(map: &Keyspace, model: &mut Model, random: &mut Random, keys: u64, count: u64) {
    for _ in 0..count {
        let key = key(random.below(keys));
        if random.below(6) == 0 {
            map.remove(&key).unwrap();
            model.remove(&key);
        } else {
            let value = value(random);
            map.insert(&key, &value).unwrap();
            model.insert(key, value);
        }
    }
}

/// Reads all of `model`, and nothing else, in every way.
fn check(map: &Keyspace, model: &Model, keys: u64) {
    let keys: Vec<Vec<u8>> = (0..keys).map(key).collect();
    let all = map.multi_get(&keys).unwrap();
    let mut into = Vec::new();
    for (key, found) in keys.iter().zip(all) {
        let expected = model.get(key);
        assert_eq!(found.as_ref(), expected);
        assert_eq!(map.get(key).unwrap().as_ref(), expected);
        assert_eq!(map.contains_key(key).unwrap(), expected.is_some());
        assert_eq!(map.get_into(key, &mut into).unwrap(), expected.is_some());
        assert_eq!(into, *expected.unwrap_or(&Vec::new()));
        let pinned = map.get_pinned(key).unwrap();
        assert_eq!(pinned.as_deref(), expected.map(Vec::as_slice));
    }
    let forward: Model = map.iter().unwrap().map(Result::unwrap).collect();
    assert!(forward == *model);
    let backward = map.iter().unwrap().rev().map(Result::unwrap);
    assert!(backward.eq(model.clone().into_iter().rev()));
    assert_eq!(map.first_key_value().unwrap(), model.clone().pop_first());
    assert_eq!(map.last_key_value().unwrap(), model.clone().pop_last());

    // Two steps forward, one back; every value twice, some never.
    let entries: Vec<_> = model.iter().collect();
    let mut cursor = map.cursor().unwrap();
    let (mut at, mut step) = (0, 0);
    let mut valid = cursor.seek_to_first().unwrap();
    while at < entries.len() {
        assert!(valid);
        assert_eq!(cursor.key(), entries[at].0);
        if step % 5 > 0 {
            assert_eq!(cursor.value().unwrap(), entries[at].1);
            assert_eq!(cursor.value().unwrap(), entries[at].1);
        }
        if step % 3 == 2 {
            valid = cursor.prev().unwrap();
            at -= 1;
        } else {
            valid = cursor.next().unwrap();
            at += 1;
        }
        step += 1;
    }
    assert!(!valid && cursor.value().unwrap().is_empty());
}

fn check_round_trips(source: BlockSource, compression: Compression, order: MediumOrder) {
    const KEYS: u64 = 600;
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(source);
    options.keyspace.compression = compression;
    options.keyspace.medium_order = order;
    let (mut model, mut random) = (Model::new(), Random(3));
    for round in 0..4 {
        let db = Db::open(folder.path(), options.clone()).unwrap();
        let map = db.keyspace("map").unwrap();
        check(&map, &model, KEYS);
        // What is in a memtable, and then in a run, and what came through merges to both.
        write(&map, &mut model, &mut random, KEYS, 30);
        check(&map, &model, KEYS);
        db.flush().unwrap();
        assert!(db.stats().transient_log_bytes_written > 0);
        check(&map, &model, KEYS);
        write(&map, &mut model, &mut random, KEYS, 1500);
        check(&map, &model, KEYS);
        db.wait_idle().unwrap();
        let report = db.verify().unwrap();
        assert!(report.is_sound(), "{report:?}");
        let stats = db.stats();
        assert!(
            stats.compactions > 0
                && stats.transient_log_bytes_written > 0
                && stats.transient_log_bytes_read > 0
        );
        if round == 2 {
            map.compact_range::<&[u8]>(..).unwrap();
            check(&map, &model, KEYS);
            check_transient_logs_are_gone(&db);
            // With a key of eight bytes, 1016 bytes and more are large.
            let larges = model.values().filter(|value| value.len() >= 1016).count();
            assert_eq!(db.verify().unwrap().values, larges as u64);
        }
        if round % 2 == 0 {
            db.close().unwrap();
        }
    }
}

#[test]
fn values_of_every_class_come_back_mapped() {
    check_round_trips(BlockSource::Mapped, Compression::None, MediumOrder::Sorted);
}

#[test]
fn values_of_every_class_come_back_buffered() {
    check_round_trips(BlockSource::Buffered, Compression::Lz4, MediumOrder::Sorted);
}

#[test]
fn values_of_every_class_come_back_out_of_unsorted_runs() {
    check_round_trips(BlockSource::Mapped, Compression::None, MediumOrder::Written);
}

/// What comes in the order of its keys is in tables from the start, until something overlaps it.
#[test]
fn mediums_in_order_go_to_no_run() {
    for order in [MediumOrder::Sorted, MediumOrder::Written] {
        let folder = tempfile::tempdir().unwrap();
        let mut options = options(BlockSource::Mapped);
        options.keyspace.medium_order = order;
        let db = Db::open(folder.path(), options).unwrap();
        let map = db.keyspace("map").unwrap();
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
        // Nobody knows yet how keys come.
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

/// The lengths of the values in the run of one flush of mediums under descending keys, one of them
/// overwritten, and one for a snapshot that can still be read.
fn lengths_in_a_run(order: MediumOrder) -> Vec<u64> {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(BlockSource::Mapped);
    options.keyspace.medium_order = order;
    let db = Db::open(folder.path(), options).unwrap();
    let map = db.keyspace("map").unwrap();
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
        "nothing dead is written"
    );

    let mut lengths = Vec::new();
    windrow::inspect::visit(&value_files(folder.path())[0], &mut |record| {
        if let Some(Field::Number(length)) = record.field("value_bytes") {
            lengths.push(length);
        }
        Ok(())
    })
    .unwrap();
    lengths
}

#[test]
fn runs_are_sorted_or_in_the_order_of_writing() {
    let sorted = lengths_in_a_run(MediumOrder::Sorted);
    assert_eq!(sorted, [206, 300, 204, 201, 202]);
    let written = lengths_in_a_run(MediumOrder::Written);
    assert_eq!(written, [300, 201, 202, 204, 206]);
}

/// A database with `count` mediums of 200 bytes in one run of one file, "key00000" and so on.
fn one_run(folder: &Path, source: BlockSource, count: u64) -> (Db, Keyspace, Model) {
    let mut options = Options::default();
    options.block_source = source;
    options.keyspace.medium_from = 120;
    let db = Db::open(folder, options).unwrap();
    let map = db.keyspace("map").unwrap();
    let (mut model, mut random) = (Model::new(), Random(5));
    for number in 0..count {
        let value = medium(&mut random, 200);
        map.insert(key(number), &value).unwrap();
        model.insert(key(number), value);
    }
    db.flush().unwrap();
    let transient_logs = db.stats().keyspaces[0].transient_logs;
    assert_eq!(transient_logs.files, 1);
    assert_eq!(transient_logs.live_bytes, transient_logs.bytes);
    (db, map, model)
}

/// The last live values of a transient log keep its file. However few they are, the space is bounded.
#[test]
fn garbage_in_transient_logs_takes_bounded_space() {
    const KEYS: u64 = 3000;
    let folder = tempfile::tempdir().unwrap();
    let options = options(BlockSource::Mapped);
    let db = Db::open(folder.path(), options).unwrap();
    let map = db.keyspace("map").unwrap();
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

#[test]
fn a_pinned_value_outlives_its_run() {
    for source in SOURCES {
        let folder = tempfile::tempdir().unwrap();
        let (db, map, model) = one_run(folder.path(), source, 50);
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

/// Of three values in one run the middle one is damaged.
fn with_damage(folder: &Path, source: BlockSource) -> (Db, Keyspace, Model) {
    let (db, map, model) = one_run(folder, source, 3);
    drop(map);
    db.close().unwrap();
    let file = value_files(folder).remove(0);
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(file, bytes).unwrap();
    let mut options = Options::default();
    options.block_source = source;
    let db = Db::open(folder, options).unwrap();
    let map = db.keyspace("map").unwrap();
    (db, map, model)
}

/// Checks that `error` names the run in `folder` and where its second record of three begins.
fn check_place(folder: &Path, error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Corruption);
    let file = &value_files(folder)[0];
    let offset = fs::metadata(file).unwrap().len() / 3;
    let place = format!("{} is damaged at offset {offset}:", name(file));
    assert!(error.to_string().contains(&place), "{error}");
}

#[test]
fn a_damaged_value_is_named_and_hurts_nothing_else() {
    for source in SOURCES {
        let folder = tempfile::tempdir().unwrap();
        let (db, map, model) = with_damage(folder.path(), source);
        let check_error = |error: &Error| {
            check_place(folder.path(), error);
            assert!(error.to_string().contains("\"key00001\""), "{error}");
        };
        for (number, (key, value)) in model.iter().enumerate() {
            assert!(map.contains_key(key).unwrap());
            if number == 1 {
                check_error(&map.get(key).unwrap_err());
                check_error(&map.get_pinned(key).unwrap_err());
                check_error(&map.get_into(key, &mut Vec::new()).unwrap_err());
            } else {
                assert_eq!(map.get(key).unwrap().as_ref(), Some(value));
            }
        }
        let keys: Vec<_> = model.keys().collect();
        check_error(&map.multi_get(&keys).unwrap_err());

        // Who looks at keys alone does not meet it; who does goes on behind it.
        let mut cursor = map.cursor().unwrap();
        let mut found = cursor.seek_to_first().unwrap();
        for (number, (key, value)) in model.iter().enumerate() {
            assert!(found);
            assert_eq!(cursor.key(), key);
            if number == 1 {
                check_error(&cursor.value().unwrap_err());
                check_error(&cursor.value().unwrap_err());
            } else {
                assert_eq!(cursor.value().unwrap(), value);
            }
            found = cursor.next().unwrap();
        }
        assert!(!found);
        assert!(!map.is_empty().unwrap());
        let report = db.verify().unwrap();
        assert_eq!((report.values, report.damage.len()), (3, 1));
        check_place(folder.path(), &report.damage[0]);
    }
}

#[test]
fn a_damaged_value_ends_an_iteration_for_good() {
    let folder = tempfile::tempdir().unwrap();
    let (_db, map, _) = with_damage(folder.path(), BlockSource::Mapped);
    let is_damage = |entry: Option<windrow::Result<_>>| {
        let error = entry.unwrap().map(|_: windrow::Entry| ()).unwrap_err();
        error.kind() == ErrorKind::Corruption
    };
    let mut forward = map.iter().unwrap();
    assert_eq!(forward.next().unwrap().unwrap().0, key(0));
    assert!(is_damage(forward.next()));
    assert!(is_damage(forward.next()));
    assert!(is_damage(forward.next_back()));
    let mut backward = map.iter().unwrap();
    assert_eq!(backward.next_back().unwrap().unwrap().0, key(2));
    assert!(is_damage(backward.next_back()));
    assert!(is_damage(backward.next_back()));
    assert!(is_damage(backward.next()));
}

/// A merge that would put a damaged value in place fails; nothing is lost by it.
#[test]
fn a_damaged_value_is_not_merged_away() {
    let folder = tempfile::tempdir().unwrap();
    let (db, map, model) = with_damage(folder.path(), BlockSource::Mapped);
    let error = map.compact_range::<&[u8]>(..).unwrap_err();
    check_place(folder.path(), &error);
    assert_eq!(map.get(key(0)).unwrap().as_ref(), model.get(&key(0)));
    assert_eq!(map.get(key(2)).unwrap().as_ref(), model.get(&key(2)));
    assert_eq!(db.stats().keyspaces[0].transient_logs.files, 1);
    // Once the key has another value the old one is needed no more.
    map.insert(key(1), "new").unwrap();
    map.compact_range::<&[u8]>(..).unwrap();
    check_transient_logs_are_gone(&db);
    assert_eq!(map.get(key(1)).unwrap().as_deref(), Some(&b"new"[..]));
}

/// Waits for background work alone, which nobody asks to try again, until at most `files` files of
/// runs are left.
fn await_runs(db: &Db, files: usize) {
    let start = Instant::now();
    while db.stats().keyspaces[0].transient_logs.files > files {
        assert!(start.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A merge that cannot be done rests while others are, and is done when it can be.
#[test]
fn a_damaged_value_holds_up_no_other_merge() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(BlockSource::Mapped);
    options.keyspace.memtable_bytes = 256 << 10;
    options.keyspace.file_bytes = 256 << 10;
    options.keyspace.base_bytes = 1 << 20;
    options.keyspace.medium_in_place = MediumInPlace::Never;
    let db = Db::open(folder.path(), options.clone()).unwrap();
    let map = db.keyspace("map").unwrap();
    let mut random = Random(37);
    for number in 0..10_000 {
        map.insert(key(number), medium(&mut random, 200)).unwrap();
    }
    map.compact_range::<&[u8]>(..).unwrap();
    let before = db.stats().keyspaces[0].transient_logs.files;
    assert!(before > 10);
    drop(map);
    db.close().unwrap();

    let first = value_files(folder.path()).remove(0);
    let file = fs::OpenOptions::new().write(true).read(true).open(first);
    let file = file.unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, 300).unwrap();
    file.write_all_at(&[byte[0] ^ 1], 300).unwrap();
    let mut in_place = options.keyspace.clone();
    in_place.medium_in_place = MediumInPlace::LastLevel;
    let db = Db::open(folder.path(), options).unwrap();
    let map = db.keyspace_with("map", in_place).unwrap();
    await_runs(&db, 8);
    assert!(db.stats().keyspaces[0].transient_logs.files > 0);
    let error = map.compact_range::<&[u8]>(..).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    file.write_all_at(&byte, 300).unwrap();
    await_runs(&db, 0);
    assert!(db.verify().unwrap().is_sound());
}

#[test]
fn a_missing_or_short_run_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (db, map, model) = one_run(folder.path(), BlockSource::Mapped, 3);
    drop(map);
    db.close().unwrap();
    let file = value_files(folder.path()).remove(0);
    let bytes = fs::read(&file).unwrap();
    fs::remove_file(&file).unwrap();
    for read_only in [false, true] {
        let opened = if read_only {
            Db::open_read_only(folder.path(), Options::default())
        } else {
            Db::open(folder.path(), Options::default())
        };
        let error = opened.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        let message = error.to_string();
        assert!(message.contains(name(&file)), "{message}");
        assert!(message.contains("missing"), "{message}");
    }
    fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
    let db = Db::open(folder.path(), Options::default()).unwrap();
    let map = db.keyspace("map").unwrap();
    let error = map.get(key(0)).unwrap_err();
    assert!(error.to_string().contains(name(&file)), "{error}");
    assert!(!db.verify().unwrap().is_sound());
    drop(map);
    db.close().unwrap();
    fs::write(&file, bytes).unwrap();
    let db = Db::open(folder.path(), Options::default()).unwrap();
    check(&db.keyspace("map").unwrap(), &model, 3);
}

#[test]
fn a_cursor_keeps_the_runs_of_its_moment() {
    for source in SOURCES {
        let folder = tempfile::tempdir().unwrap();
        let (db, map, model) = one_run(folder.path(), source, 50);
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
fn a_snapshot_keeps_values_and_not_their_run() {
    let folder = tempfile::tempdir().unwrap();
    let (db, map, model) = one_run(folder.path(), BlockSource::Mapped, 50);
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
fn a_checkpoint_takes_the_runs_along() {
    const KEYS: u64 = 300;
    for source in SOURCES {
        let folder = tempfile::tempdir().unwrap();
        let (home, copy) = (folder.path().join("db"), folder.path().join("copy"));
        let db = Db::open(&home, options(source)).unwrap();
        let map = db.keyspace("map").unwrap();
        let (mut model, mut random) = (Model::new(), Random(9));
        write(&map, &mut model, &mut random, KEYS, 500);
        db.flush().unwrap();
        assert!(db.stats().keyspaces[0].transient_logs.files > 0);
        db.checkpoint(&copy).unwrap();
        let copied = value_files(&copy);
        assert!(!copied.is_empty());
        // Neither what happens to the source nor its end matters.
        map.compact_range::<&[u8]>(..).unwrap();
        check_transient_logs_are_gone(&db);
        drop(map);
        db.close().unwrap();
        fs::remove_dir_all(&home).unwrap();
        let db = Db::open(&copy, options(source)).unwrap();
        let map = db.keyspace("map").unwrap();
        let report = db.verify().unwrap();
        assert!(report.is_sound(), "{report:?}");
        assert!(report.values > 0);
        check(&map, &model, KEYS);
        map.compact_range::<&[u8]>(..).unwrap();
        check(&map, &model, KEYS);
        check_transient_logs_are_gone(&db);
    }
}

/// Options are chosen anew at each opening; whatever they are, nothing is lost, and what merges into
/// the last level write in place leaves no run.
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
    // Whether new runs come, and whether compacting takes all runs away.
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

#[test]
fn a_dropped_keyspace_takes_its_runs_along() {
    let folder = tempfile::tempdir().unwrap();
    let (db, map, model) = one_run(folder.path(), BlockSource::Mapped, 20);
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
    // An iterator that is open can be read on.
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

/// What is in a folder, and when it was changed.
fn contents(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
    let entries = fs::read_dir(folder).unwrap();
    let read = |entry: fs::DirEntry| {
        let changed = entry.metadata().unwrap().modified().unwrap();
        (entry.path(), (fs::read(entry.path()).unwrap(), changed))
    };
    entries.map(|entry| read(entry.unwrap())).collect()
}

#[test]
fn who_reads_only_reads_values_and_writes_nothing() {
    const KEYS: u64 = 300;
    let folder = tempfile::tempdir().unwrap();
    let (mut model, mut random) = (Model::new(), Random(17));
    let db = Db::open(folder.path(), options(BlockSource::Mapped)).unwrap();
    let map = db.keyspace("map").unwrap();
    write(&map, &mut model, &mut random, KEYS, 500);
    db.flush().unwrap();
    write(&map, &mut model, &mut random, KEYS, 10);
    drop(map);
    db.close().unwrap();
    assert!(!value_files(folder.path()).is_empty());
    let before = contents(folder.path());
    for source in SOURCES {
        let db = Db::open_read_only(folder.path(), options(source)).unwrap();
        let map = db.keyspace("map").unwrap();
        check(&map, &model, KEYS);
        let report = db.verify().unwrap();
        assert!(report.is_sound() && report.values > 0, "{report:?}");
        drop(map);
        db.close().unwrap();
    }
    assert!(contents(folder.path()) == before);
}

/// Levels of a few files, and logs of many files.
fn with_logs() -> Options {
    let mut options = options(BlockSource::Mapped);
    options.keyspace.large_from = 300;
    options
}

#[test]
fn large_values_go_to_logs_and_come_back() {
    const KEYS: u64 = 300;
    let folder = tempfile::tempdir().unwrap();
    let (mut model, mut random) = (Model::new(), Random(21));
    for round in 0..4 {
        let db = Db::open(folder.path(), with_logs()).unwrap();
        let map = db.keyspace("map").unwrap();
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
        let copy = folder.path().join(format!("copies/{round}"));
        db.checkpoint(&copy).unwrap();
        // What is written from here on is not in the copy.
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
        // Every other time as after a kill: nothing is closed.
        if round % 2 == 0 {
            db.close().unwrap();
        }
    }
}

#[test]
fn a_log_goes_when_nothing_refers_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path(), with_logs()).unwrap();
    let map = db.keyspace("map").unwrap();
    for round in 0..8 {
        for number in 0..100 {
            map.insert(key(number), vec![round; 1000]).unwrap();
        }
    }
    map.compact_range::<&[u8]>(..).unwrap();
    db.wait_idle().unwrap();
    // All but the newest hundred are dead, and whole logs of them are gone.
    let logs = db.stats().keyspaces[0].value_logs;
    assert!(logs.bytes < 400_000, "{logs:?}");
    for number in 0..100 {
        map.remove(key(number)).unwrap();
    }
    map.compact_range::<&[u8]>(..).unwrap();
    drop(map);
    db.close().unwrap();
    let db = Db::open(folder.path(), with_logs()).unwrap();
    let map = db.keyspace("map").unwrap();
    map.insert("small", "x").unwrap();
    db.flush().unwrap();
    db.wait_idle().unwrap();
    assert_eq!(value_files(folder.path()), Vec::<PathBuf>::new());
}

#[test]
fn who_reads_only_counts_value_logs_alike() {
    for is_flushed in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(folder.path(), with_logs()).unwrap();
        let map = db.keyspace("map").unwrap();
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

/// Garbage collections beside overwrites, removals, snapshots, cursors and reopening change no answer, and keep
/// what the logs take near what is live.
fn check_gc(source: BlockSource, compression: Compression) {
    const KEYS: u64 = 400;
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(source);
    options.keyspace.compression = compression;
    options.keyspace.large_from = 200;
    options.keyspace.max_space_amp = 1.3;
    let (mut model, mut random) = (Model::new(), Random(5));
    let mut garbage_collections = 0;
    for round in 0..5 {
        let db = Db::open(folder.path(), options.clone()).unwrap();
        let map = db.keyspace("map").unwrap();
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
        let copy = folder.path().join(format!("copies/{round}"));
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
        // Some more: the log that is being written, and what the newest values took the place of.
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
fn garbage_collections_change_no_answer_mapped() {
    check_gc(BlockSource::Mapped, Compression::None);
}

#[test]
fn garbage_collections_change_no_answer_buffered() {
    check_gc(BlockSource::Buffered, Compression::Lz4);
}

/// The longest value there can be: written once, read without a copy, and collected around.
#[test]
fn a_value_of_a_gibibyte_is_a_value() {
    let folder = tempfile::tempdir().unwrap();
    let longest = windrow::limits::VALUE_BYTES_MAX;
    {
        let mut value = Vec::with_capacity(longest + 1);
        value.resize(longest, 0);
        let db = Db::open(folder.path(), Options::default()).unwrap();
        let map = db.keyspace("map").unwrap();
        map.insert("small", "x").unwrap();
        for (at, byte) in [(0, 1), (longest / 2, 2), (longest - 1, 3)] {
            value[at] = byte;
        }
        map.insert("large", &value).unwrap();
        value.push(0);
        let error = map.insert("too large", &value).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(db.stats().value_log_bytes >= longest as u64);
        assert!(db.stats().wal_bytes < 1 << 10);
    }
    let db = Db::open(folder.path(), Options::default()).unwrap();
    let map = db.keyspace("map").unwrap();
    db.flush().unwrap();
    let pinned = map.get_pinned("large").unwrap().unwrap();
    assert_eq!(pinned.len(), longest);
    assert_eq!(
        (pinned[0], pinned[longest / 2], pinned[longest - 1]),
        (1, 2, 3)
    );
    assert_eq!(pinned.iter().filter(|byte| **byte != 0).count(), 3);
    // What is pinned outlives its file.
    map.remove("large").unwrap();
    map.compact_range::<&[u8]>(..).unwrap();
    db.wait_idle().unwrap();
    assert_eq!(value_files(folder.path()), Vec::<PathBuf>::new());
    assert_eq!(pinned[longest - 1], 3);
    assert_eq!(map.get("small").unwrap().unwrap(), b"x");
}

/// Many lists on logs that are not collected are rewritten as one.
#[test]
fn discard_lists_do_not_pile_up() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = with_logs();
    // Merges could find whole logs dead, of which no list says anything any more.
    let level0_runs = std::mem::replace(&mut options.keyspace.level0_runs, 64);
    options.keyspace.max_space_amp = f64::INFINITY;
    let db = Db::open(folder.path(), options.clone()).unwrap();
    let map = db.keyspace("map").unwrap();
    let (mut model, mut random) = (Model::new(), Random(9));
    for _ in 0..60 {
        // What is written twice before its flush is dead with it.
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

/// A table of pointers is no shorter for being cut by another count than the one that its merge was planned by:
/// each level down would make shorter ones of it.
#[test]
fn tables_that_refer_to_runs_are_cut_to_one_size_in_all_levels() {
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
    let db = Db::open(directory.path(), options).unwrap();
    let map = db.keyspace("map").unwrap();
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
            assert!(level.bytes < values / 4, "they are not apart: {level:?}");
            (level.bytes + values / 4) / level.files as u64
        })
        .collect();
    assert!(!lengths.is_empty());
    assert!(
        lengths.iter().all(|&length| length > FILE_BYTES / 2),
        "{lengths:?}"
    );
}

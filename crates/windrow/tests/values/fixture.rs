//! Fixtures of these tests: options, values of every class, and checks against a model.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use windrow::{BlockSource, Db, Keyspace, KeyspaceOptions, Options, ValueFileStats};

use super::common::Random;

pub(crate) type Model = BTreeMap<Vec<u8>, Vec<u8>>;

pub(crate) const SOURCES: [BlockSource; 2] = [BlockSource::Mapped, BlockSource::Buffered];

/// Lengths around both limits of every class, under a key of eight bytes: the least value that can be medium, and
/// totals of 119, 120, 1023 and 1024 bytes.
pub(crate) const LENGTHS: [usize; 12] = [0, 7, 63, 64, 111, 112, 113, 500, 1015, 1016, 1017, 3000];

pub(crate) fn key(number: u64) -> Vec<u8> {
    format!("key{number:05}").into_bytes()
}

/// A value of one of the lengths. Compression halves it.
pub(crate) fn value(random: &mut Random) -> Vec<u8> {
    let length = LENGTHS[usize::try_from(random.below(LENGTHS.len() as u64)).unwrap()];
    medium(random, length)
}

pub(crate) fn medium(random: &mut Random, length: usize) -> Vec<u8> {
    let byte = |at: usize, random: &mut Random| match at % 2 {
        0 => b'.',
        _ => random.below(256).to_le_bytes()[0],
    };
    (0..length).map(|at| byte(at, random)).collect()
}

/// Levels of a few files, and transient logs of many files.
pub(crate) fn tiny() -> KeyspaceOptions {
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

pub(crate) fn options(source: BlockSource) -> Options {
    let mut options = Options::default();
    options.block_source = source;
    options.open_files_max = 16;
    options.keyspace = tiny();
    options
}

/// Levels of a few files, and value logs of many files.
pub(crate) fn with_logs() -> Options {
    let mut options = options(BlockSource::Mapped);
    options.keyspace.large_from = 300;
    options
}

/// Opens the database in `folder` and its keyspace "map".
pub(crate) fn open(folder: &Path, options: Options) -> (Db, Keyspace) {
    let db = Db::open(folder, options).unwrap();
    let map = db.keyspace("map").unwrap();
    (db, map)
}

/// The value files in `folder`, ascending.
pub(crate) fn value_files(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "values"))
        .collect();
    paths.sort();
    paths
}

pub(crate) fn name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

/// Checks that the first keyspace has no transient log, and the folder no value file except value logs.
pub(crate) fn check_transient_logs_are_gone(db: &Db) {
    db.wait_idle().unwrap();
    assert_eq!(
        db.stats().keyspaces[0].transient_logs,
        ValueFileStats::default()
    );
    let logs = db.stats().keyspaces[0].value_logs.files;
    assert_eq!(value_files(db.path()).len(), logs);
}

/// Writes `count` entries under keys below `keys`; a sixth of them are removals.
pub(crate) fn write(map: &Keyspace, model: &mut Model, random: &mut Random, keys: u64, count: u64) {
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

/// Checks that every kind of read finds exactly the entries of `model`.
pub(crate) fn check(map: &Keyspace, model: &Model, keys: u64) {
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

    // Two steps forward, one back. Some values are read twice, others never.
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

/// A database with one transient log of `count` medium values of 200 bytes, under "key00000" and so on.
pub(crate) fn one_transient_log(
    folder: &Path,
    source: BlockSource,
    count: u64,
) -> (Db, Keyspace, Model) {
    let mut options = Options::default();
    options.block_source = source;
    options.keyspace.medium_from = 120;
    let (db, map) = open(folder, options);
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

//! Damaged values: errors name them, compactions keep them, and they delay no other work.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use windrow::{BlockSource, Db, Error, ErrorKind, Keyspace, MediumInPlace, Options};

use super::common::Random;
use super::fixture::{
    Model, SOURCES, check, check_transient_logs_are_gone, key, medium, name, one_transient_log,
    open, options, value_files,
};

/// A database with three values in one transient log. The middle one is damaged.
fn with_damage(folder: &Path, source: BlockSource) -> (Db, Keyspace, Model) {
    let (db, map, model) = one_transient_log(folder, source, 3);
    drop(map);
    db.close().unwrap();
    let file = value_files(folder).remove(0);
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(file, bytes).unwrap();
    let mut options = Options::default();
    options.block_source = source;
    let (db, map) = open(folder, options);
    (db, map, model)
}

/// Checks that `error` names the transient log in `folder` and the offset of the second of its three records.
fn check_place(folder: &Path, error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Corruption);
    let file = &value_files(folder)[0];
    let offset = fs::metadata(file).unwrap().len() / 3;
    let place = format!("{} is damaged at offset {offset}:", name(file));
    assert!(error.to_string().contains(&place), "{error}");
}

#[test]
fn a_damaged_value_is_named_and_others_are_read() {
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

        // A cursor that reads keys alone finds no damage. After an error it moves on.
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

/// A compaction that would put a damaged value in place fails, and loses no entry.
#[test]
fn a_compaction_keeps_a_damaged_value() {
    let folder = tempfile::tempdir().unwrap();
    let (db, map, model) = with_damage(folder.path(), BlockSource::Mapped);
    let error = map.compact_range::<&[u8]>(..).unwrap_err();
    check_place(folder.path(), &error);
    assert_eq!(map.get(key(0)).unwrap().as_ref(), model.get(&key(0)));
    assert_eq!(map.get(key(2)).unwrap().as_ref(), model.get(&key(2)));
    assert_eq!(db.stats().keyspaces[0].transient_logs.files, 1);
    // The damaged value is dropped after its key has another value.
    map.insert(key(1), "new").unwrap();
    map.compact_range::<&[u8]>(..).unwrap();
    check_transient_logs_are_gone(&db);
    assert_eq!(map.get(key(1)).unwrap().as_deref(), Some(&b"new"[..]));
}

/// Waits until background work has left at most `files` transient log files. It asks for no retry.
fn await_transient_files(db: &Db, files: usize) {
    let start = Instant::now();
    while db.stats().keyspaces[0].transient_logs.files > files {
        assert!(start.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A failed compaction is retried later, and others continue meanwhile.
#[test]
fn a_damaged_value_delays_no_other_compaction() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(BlockSource::Mapped);
    options.keyspace.memtable_bytes = 256 << 10;
    options.keyspace.file_bytes = 256 << 10;
    options.keyspace.base_bytes = 1 << 20;
    options.keyspace.medium_in_place = MediumInPlace::Never;
    let (db, map) = open(folder.path(), options.clone());
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
    await_transient_files(&db, 8);
    assert!(db.stats().keyspaces[0].transient_logs.files > 0);
    let error = map.compact_range::<&[u8]>(..).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    file.write_all_at(&byte, 300).unwrap();
    await_transient_files(&db, 0);
    assert!(db.verify().unwrap().is_sound());
}

#[test]
fn a_missing_or_short_transient_log_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (db, map, model) = one_transient_log(folder.path(), BlockSource::Mapped, 3);
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
    let (db, map) = open(folder.path(), Options::default());
    let error = map.get(key(0)).unwrap_err();
    assert!(error.to_string().contains(name(&file)), "{error}");
    assert!(!db.verify().unwrap().is_sound());
    drop(map);
    db.close().unwrap();
    fs::write(&file, bytes).unwrap();
    let db = Db::open(folder.path(), Options::default()).unwrap();
    check(&db.keyspace("map").unwrap(), &model, 3);
}

//! Values of every class come back, through every kind of read.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use windrow::{BlockSource, Compression, Db, ErrorKind, MediumOrder, Options};

use super::common::Random;
use super::fixture::{
    Model, SOURCES, check, check_transient_logs_are_gone, open, options, value_files, write,
};

fn check_round_trips(source: BlockSource, compression: Compression, order: MediumOrder) {
    const KEYS: u64 = 600;
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(source);
    options.keyspace.compression = compression;
    options.keyspace.medium_order = order;
    let (mut model, mut random) = (Model::new(), Random(3));
    for round in 0..4 {
        let (db, map) = open(folder.path(), options.clone());
        check(&map, &model, KEYS);
        // Entries are in a memtable, then in a transient log, and at last in compacted tables.
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
fn values_of_every_class_come_back() {
    for (source, compression, order) in [
        (BlockSource::Mapped, Compression::None, MediumOrder::Sorted),
        (BlockSource::Buffered, Compression::Lz4, MediumOrder::Sorted),
        (BlockSource::Mapped, Compression::None, MediumOrder::Written),
    ] {
        check_round_trips(source, compression, order);
    }
}

/// The files of a folder: bytes and times of change.
fn contents(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
    let entries = fs::read_dir(folder).unwrap();
    let read = |entry: fs::DirEntry| {
        let changed = entry.metadata().unwrap().modified().unwrap();
        (entry.path(), (fs::read(entry.path()).unwrap(), changed))
    };
    entries.map(|entry| read(entry.unwrap())).collect()
}

#[test]
fn a_read_only_open_reads_values_and_writes_nothing() {
    const KEYS: u64 = 300;
    let folder = tempfile::tempdir().unwrap();
    let (mut model, mut random) = (Model::new(), Random(17));
    let (db, map) = open(folder.path(), options(BlockSource::Mapped));
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

/// The longest possible value is written once, read without a copy, and deleted.
#[test]
fn a_value_may_have_a_gibibyte() {
    let folder = tempfile::tempdir().unwrap();
    let longest = windrow::limits::VALUE_BYTES_MAX;
    {
        let mut value = Vec::with_capacity(longest + 1);
        value.resize(longest, 0);
        let (db, map) = open(folder.path(), Options::default());
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
    let (db, map) = open(folder.path(), Options::default());
    db.flush().unwrap();
    let pinned = map.get_pinned("large").unwrap().unwrap();
    assert_eq!(pinned.len(), longest);
    assert_eq!(
        (pinned[0], pinned[longest / 2], pinned[longest - 1]),
        (1, 2, 3)
    );
    assert_eq!(pinned.iter().filter(|byte| **byte != 0).count(), 3);
    // A pinned value outlives its file.
    map.remove("large").unwrap();
    map.compact_range::<&[u8]>(..).unwrap();
    db.wait_idle().unwrap();
    assert_eq!(value_files(folder.path()), Vec::<PathBuf>::new());
    assert_eq!(pinned[longest - 1], 3);
    assert_eq!(map.get("small").unwrap().unwrap(), b"x");
}

//! Databases that earlier builds of this format version wrote: every build that knows the version must read
//! from `golden` exactly what was written.
//!
//! Only a change of the format before its first release may require new ones. They are written by
//!
//!     cargo test -p windrow --test golden -- --ignored

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests copy the files of databases that are closed"
)]

mod backups;
mod expiring;
mod operands;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use windrow::{
    Batch, Compression, Db, KeyspaceOptions, MediumInPlace, Options, Result, SegmentLimit,
};

/// The databases of format version 1: one that was closed, and a checkpoint of it.
const DATABASES: [&str; 2] = ["closed", "checkpoint"];

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

fn golden(name: &str) -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    tests.join("golden/v1").join(name)
}

fn options() -> KeyspaceOptions {
    let mut options = KeyspaceOptions::preset(windrow::Preset::Leveling);
    options.memtable_bytes = 4 << 10;
    options.block_bytes = 256;
    options.file_bytes = 2 << 10;
    options.base_bytes = 3 << 10;
    options.size_ratio = 2.0;
    options.level0_runs = 2;
    options.segment_limit = SegmentLimit::Fixed(4);
    options.medium_from = 120;
    options.large_from = 1024;
    options
}

fn key(number: u32) -> Vec<u8> {
    match number % 3 {
        0 => format!("user/{:05}/name", number * 7 % 1000).into_bytes(),
        1 => (number * 31 % 251).to_be_bytes().to_vec(),
        _ => vec![0xff; 1 + (number % 40) as usize],
    }
}

/// What round `number` writes: a key and its value, or `None` for a removal.
fn write(number: u32) -> (Vec<u8>, Option<Vec<u8>>) {
    let value = || format!("{number}:{}", "value ".repeat((number % 9) as usize * 5));
    let is_removal = number % 5 == 4;
    let key = key(if is_removal { number / 2 } else { number });
    (key, (!is_removal).then(|| value().into_bytes()))
}

/// The number of flushed rounds, and of all rounds of each keyspace. The rest is only in the log.
const PLAIN: (u32, u32) = (500, 520);
const PACKED: (u32, u32) = (300, 310);

fn expected(rounds: u32) -> Contents {
    let mut contents = Contents::new();
    for number in 0..rounds {
        let (key, value) = write(number);
        match value {
            Some(value) => contents.insert(key, value),
            None => contents.remove(&key),
        };
    }
    contents
}

fn contents(db: &Db, keyspace: &str) -> Contents {
    let keyspace = db.keyspace(keyspace).unwrap();
    keyspace.iter().unwrap().collect::<Result<_>>().unwrap()
}

fn check(db: &Db) {
    let report = db.verify().unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(db.keyspace_names(), ["packed", "plain"]);
    assert!(report.values > 10, "{report:?}");
    for (name, (_, rounds)) in [("plain", PLAIN), ("packed", PACKED)] {
        let expected = expected(rounds);
        assert!(
            contents(db, name) == expected,
            "{name} holds something else"
        );
        let keyspace = db.keyspace(name).unwrap();
        for number in 0..rounds {
            let key = key(number);
            assert_eq!(keyspace.get(&key).unwrap().as_ref(), expected.get(&key));
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name() != "LOCK" && entry.file_name() != "LOG" {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

#[test]
fn databases_of_format_version_1_are_read_as_they_were_written() {
    for name in DATABASES {
        let folder = tempfile::tempdir().unwrap();
        copy(&golden(name), folder.path());
        let db = Db::open_read_only(folder.path(), Options::default()).unwrap();
        check(&db);
        // They have several levels, tombstones, and files of several segments.
        let stats = db.stats();
        for keyspace in &stats.keyspaces {
            let deep = keyspace
                .levels
                .iter()
                .skip(1)
                .filter(|level| level.files > 0);
            assert!(deep.count() >= 2, "{name}: {keyspace:?}");
            assert!(keyspace.levels.iter().any(|level| level.tombstones > 0));
            let mut levels = keyspace.levels.iter();
            assert!(levels.any(|level| level.segments > level.files));
            assert_eq!(keyspace.options.block_bytes, 256);
        }
        let compressions = stats.keyspaces.iter().map(|own| own.options.compression);
        let compressions: Vec<_> = compressions.collect();
        assert_eq!(compressions, [Compression::None, Compression::Lz4]);
        db.close().unwrap();

        let db = Db::open(folder.path(), Options::default()).unwrap();
        check(&db);
        for keyspace in ["plain", "packed"] {
            let keyspace = db.keyspace(keyspace).unwrap();
            keyspace.compact_range::<&[u8]>(..).unwrap();
        }
        db.wait_idle().unwrap();
        check(&db);
        db.close().unwrap();
        check(&Db::open(folder.path(), Options::default()).unwrap());
    }
}

#[test]
#[ignore = "writes into the source tree"]
fn make_the_databases_anew() {
    for name in DATABASES {
        if golden(name).exists() {
            fs::remove_dir_all(golden(name)).unwrap();
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let mut database = Options::default();
    database.keyspace = options();
    let db = Db::open(&path, database).unwrap();
    let plain = db.keyspace("plain").unwrap();
    db.keyspace("dropped").unwrap().insert("a", "b").unwrap();
    let mut compressed = options();
    compressed.compression = Compression::Lz4;
    compressed.medium_in_place = MediumInPlace::Never;
    compressed.file_bytes = 16 << 10;
    compressed.base_bytes = 16 << 10;
    let packed = db.keyspace_with("packed", compressed).unwrap();
    let write_all = |rounds: std::ops::Range<u32>, own: &windrow::Keyspace| {
        for number in rounds {
            match write(number) {
                (key, Some(value)) => own.insert(key, value).unwrap(),
                (key, None) => own.remove(key).unwrap(),
            }
            // Tombstones stay while there are deeper entries for them to hide.
            if number % 100 == 99 {
                db.flush().unwrap();
            }
        }
    };
    write_all(0..PLAIN.0, &plain);
    write_all(0..PACKED.0, &packed);
    db.wait_idle().unwrap();
    db.drop_keyspace("dropped").unwrap();
    let mut batch = Batch::new();
    for (own, (from, to)) in [(&plain, PLAIN), (&packed, PACKED)] {
        for number in from..to {
            match write(number) {
                (key, Some(value)) => batch.insert(own, key, value).unwrap(),
                (key, None) => batch.remove(own, key).unwrap(),
            }
        }
    }
    db.write(&batch).unwrap();
    let checkpoint = folder.path().join("checkpoint");
    db.checkpoint(&checkpoint).unwrap();
    drop((plain, packed, batch));
    db.close().unwrap();
    copy(&path, &golden("closed"));
    copy(&checkpoint, &golden("checkpoint"));
}

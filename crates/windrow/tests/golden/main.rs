//! Databases that earlier builds of this format version wrote: every build that knows the version must read
//! from `golden` exactly what was written.
//!
//! Only a change of the format before its first release may require new ones. They are written by
//!
//!     cargo test -p windrow --test golden -- --ignored make_the_databases_anew

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests copy the files of databases that are closed"
)]

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use windrow::runtime::{Runtime, Threads, Work, Workers};
use windrow::{
    Batch, Compression, Db, Expiry, KeyspaceOptions, MediumInPlace, Options, Result, SegmentLimit,
};

/// The databases of format version 1: one that was closed, and a checkpoint of it.
const DATABASES: [&str; 2] = ["closed", "checkpoint"];

/// One with entries that expire, those in its log included.
const EXPIRING: &str = "expiring";

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
        if entry.file_name() != "LOCK" {
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

/// The clock while the entries that expire were written, in 1987, in milliseconds.
const WRITTEN: u64 = 1 << 39;

/// When a third of them expired, in 2004, and when another third will have, in the year 4199.
const EXPIRED: u64 = 1 << 40;
const EXPIRES: u64 = 1 << 46;

/// The flushed rounds of entries that expire, and all rounds.
const EXPIRING_ROUNDS: (u32, u32) = (300, 320);

fn write_expiring(number: u32) -> (Vec<u8>, Vec<u8>, Expiry) {
    let key = key(number % 120);
    let length = [20, 150, 300, 1500][(number / 3 % 4) as usize];
    let value = format!("{number:0length$}").into_bytes();
    let at = |moment| Expiry::At(SystemTime::UNIX_EPOCH + Duration::from_millis(moment));
    let expiry = [Expiry::Never, at(EXPIRED), at(EXPIRES)][(number % 7 % 3) as usize];
    (key, value, expiry)
}

/// Threads whose clock stands still.
#[derive(Debug, Default)]
struct ThatYear(Threads);

impl Runtime for ThatYear {
    fn now(&self) -> Duration {
        self.0.now()
    }

    fn unix_time(&self) -> Duration {
        Duration::from_millis(WRITTEN)
    }

    fn sleep(&self, duration: Duration) {
        self.0.sleep(duration);
    }

    fn random(&self) -> u64 {
        self.0.random()
    }

    fn start(&self, work: Arc<dyn Work>, count: usize) -> io::Result<Box<dyn Workers>> {
        self.0.start(work, count)
    }

    fn step_instead_of_waiting(&self, work: &dyn Work) -> bool {
        self.0.step_instead_of_waiting(work)
    }
}

/// Compares what is there, when the clock shows this time, with what was written.
fn check_expiring(db: &Db, now: SystemTime) {
    let report = db.verify().unwrap();
    assert!(report.is_sound(), "{report:?}");
    let mut expected = BTreeMap::new();
    for number in 0..EXPIRING_ROUNDS.1 {
        let (key, value, expiry) = write_expiring(number);
        expected.insert(key, (value, expiry));
    }
    expected.retain(|_, (_, expiry)| *expiry > Expiry::At(now));
    let keyspace = db.keyspace("map").unwrap();
    let mut cursor = keyspace.cursor().unwrap();
    let mut found = BTreeMap::new();
    let mut is_valid = cursor.seek_to_first().unwrap();
    while is_valid {
        let value = cursor.value().unwrap().to_vec();
        found.insert(cursor.key().to_vec(), (value, cursor.expires_at()));
        is_valid = cursor.next().unwrap();
    }
    assert!(found == expected, "the keyspace holds something else");
}

#[test]
fn entries_that_expire_are_read_as_they_were_written() {
    let folder = tempfile::tempdir().unwrap();
    copy(&golden(EXPIRING), folder.path());
    let kinds = ["value", "transient_pointer", "value_log_pointer"];
    let mut dumps = String::new();
    for entry in fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_none_or(|extension| extension != "table")
        {
            continue;
        }
        let mut shown = Vec::new();
        windrow::inspect::dump(&path, &mut shown).unwrap();
        dumps.push_str(&String::from_utf8_lossy(&shown));
    }
    for kind in kinds {
        assert!(dumps.contains(&format!("expiring_{kind}")), "{kind}");
    }
    let that_year = Options::default().with_runtime(Arc::new(ThatYear::default()));
    let written = SystemTime::UNIX_EPOCH + Duration::from_millis(WRITTEN);
    let db = Db::open_read_only(folder.path(), that_year).unwrap();
    check_expiring(&db, written);
    db.close().unwrap();
    let today = written + Duration::from_secs(1 << 30);
    let db = Db::open(folder.path(), Options::default()).unwrap();
    check_expiring(&db, today);
    let map = db.keyspace("map").unwrap();
    map.compact_range::<&[u8]>(..).unwrap();
    check_expiring(&db, today);
    assert!(db.stats().entries_expired > 0);
    drop(map);
    db.close().unwrap();
    // What went stays away, also for a clock of that year.
    let that_year = Options::default().with_runtime(Arc::new(ThatYear::default()));
    check_expiring(&Db::open(folder.path(), that_year).unwrap(), today);
}

#[test]
#[ignore = "writes into the source tree"]
fn make_the_database_with_entries_that_expire_anew() {
    if golden(EXPIRING).exists() {
        fs::remove_dir_all(golden(EXPIRING)).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let mut database = Options::default().with_runtime(Arc::new(ThatYear::default()));
    database.keyspace = options();
    database.keyspace.file_bytes = 8 << 10;
    database.keyspace.base_bytes = 16 << 10;
    let db = Db::open(folder.path(), database).unwrap();
    let map = db.keyspace("map").unwrap();
    for number in 0..EXPIRING_ROUNDS.1 {
        let (key, value, expiry) = write_expiring(number);
        map.with_expiry(expiry).insert(key, value).unwrap();
        if number % 30 == 0 && number <= EXPIRING_ROUNDS.0 {
            db.flush().unwrap();
        }
    }
    drop(map);
    db.close().unwrap();
    copy(folder.path(), &golden(EXPIRING));
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

//! A database with entries that expire, those in its log included.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use windrow::runtime::{Runtime, Threads, Work, Workers};
use windrow::{Db, Expiry, Options};

use crate::{copy, golden, key, options};

const EXPIRING: &str = "expiring";

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
        windrow::inspect::dump(&windrow::vfs::OsVfs, &path, &mut shown).unwrap();
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
fn make_it_anew() {
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

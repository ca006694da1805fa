//! Bulk loads and ingestions of entries that expire.

use std::path::Path;
use std::time::{Duration, SystemTime};

use windrow::{ErrorKind, Expiry, FileCheck, LevelStats, Options, TableWriter};

use crate::operators::with_operator;
use crate::{TurnedClock, at, milliseconds, open};

fn time(milliseconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(milliseconds)
}

/// Values of every place, in any order, some keys twice; the last one counts.
#[test]
fn a_sorted_load_keeps_the_expiry_of_each_entry() {
    let folder = tempfile::tempdir().unwrap();
    let clock = TurnedClock::at(1000);
    let db = open(folder.path(), &clock);
    let map = db.keyspace("map").unwrap();
    let length = |number: u64| [10, 300, 5000][(number % 3) as usize];
    let entry = |round: u8, number: u64| {
        let later = number + u64::from(round);
        let expiry = match later % 4 {
            0 => Expiry::Never,
            _ => at(2000 + later),
        };
        let value = vec![round; length(number)];
        (format!("{number:04}"), value, expiry)
    };
    let numbers = (0..300).map(|number| number * 7 % 300);
    let entries = numbers.flat_map(|number| [entry(1, number), entry(2, number)]);
    for memory_bytes in [20_000, 100 << 20] {
        let entries = entries.clone().map(Ok::<_, windrow::Error>);
        map.try_bulk_load_unsorted(entries, memory_bytes, |_| ())
            .unwrap();
        for number in 0..300 {
            let (key, value, expiry) = entry(2, number);
            assert_eq!(map.expires_at(&key).unwrap(), Some(expiry), "{key}");
            assert_eq!(map.get(&key).unwrap(), Some(value), "{key}");
        }
        assert!(db.verify().unwrap().is_sound());
    }
    // The second load has replaced the first one.
    map.compact_range::<&[u8]>(..).unwrap();
    let sum = |of: fn(&LevelStats) -> u64| -> u64 {
        let levels = db.stats().keyspaces.swap_remove(0).levels;
        levels.iter().map(of).sum()
    };
    assert_eq!(sum(|level| level.expiring_entries), 225);
    assert!(sum(|level| level.expiring_bytes) > 300_000);
    clock.turn_to(5000);
    assert_eq!(map.count::<&[u8]>(..).unwrap(), 75);
    map.compact_range::<&[u8]>(..).unwrap();
    assert_eq!(sum(|level| level.entries), 75);
    assert_eq!(sum(|level| level.expiring_entries), 0);
    assert!(db.verify().unwrap().is_sound());
}

/// As the other writes with such a time: nobody sees the values, not even while the clock shows an earlier time.
#[test]
fn a_load_of_entries_that_live_for_no_time_removes() {
    for is_sorted in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let clock = TurnedClock::at(1000);
        let db = open(folder.path(), &clock);
        let map = db.keyspace("map").unwrap();
        // Enough that stays, or a compaction would record when the others expired.
        for number in 0..200 {
            map.insert(format!("a{number:03}"), [1; 100]).unwrap();
        }
        db.flush().unwrap();
        let (none, entries) = (map.with_ttl(Duration::ZERO), [("a100", "1"), ("b", "2")]);
        if is_sorted {
            none.bulk_load(entries).unwrap();
        } else {
            let entries = entries.into_iter().rev().map(Ok::<_, windrow::Error>);
            none.try_bulk_load_unsorted(entries, 1 << 20, |_| ())
                .unwrap();
        }
        assert_eq!(map.count::<&[u8]>(..).unwrap(), 199);
        drop((none, map, db));
        clock.turn_to(900);
        let db = open(folder.path(), &clock);
        let map = db.keyspace("map").unwrap();
        for _ in 0..2 {
            assert_eq!(map.count::<&[u8]>(..).unwrap(), 199);
            assert_eq!(map.get("a100").unwrap(), None);
            assert_eq!(map.get("b").unwrap(), None);
            map.compact_range::<&[u8]>(..).unwrap();
        }
    }
}

/// A file with entries that expire between others.
fn write(path: &Path) {
    let mut writer = TableWriter::create(path, &Options::default()).unwrap();
    for number in 0..500_u64 {
        let (key, value) = (format!("{number:04}"), vec![7; 100]);
        match number % 3 {
            0 => writer.insert(key, value).unwrap(),
            1 => writer.remove(key).unwrap(),
            _ => writer
                .insert_until(key, value, time(2000 + number))
                .unwrap(),
        }
    }
    let refused = writer.insert_until("9", "", time(1 << 48)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    let large = vec![0; (1 << 20) + 1];
    let refused = writer.insert_until("9", large, time(0)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    writer.finish().unwrap();
}

#[test]
fn an_ingested_file_keeps_its_expiries() {
    for check in [FileCheck::Whole, FileCheck::Metadata] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        write(&path);
        let clock = TurnedClock::at(1000);
        let folder = folder.path().join("db");
        let db = open(&folder, &clock);
        let map = db.keyspace("map").unwrap();
        map.insert("0001", "removed").unwrap();
        map.insert("0002", "replaced").unwrap();
        db.ingest_with([(&map, &path)], check).unwrap();
        assert_eq!(map.count::<&[u8]>(..).unwrap(), 333);
        assert_eq!(map.expires_at("0002").unwrap(), Some(at(2002)));
        clock.turn_to(2250);
        let left = 167 + (251..500).filter(|number| number % 3 == 2).count() as u64;
        assert_eq!(map.count::<&[u8]>(..).unwrap(), left);
        assert_eq!(map.get("0002").unwrap(), None);
        map.compact_range::<&[u8]>(..).unwrap();
        assert_eq!(map.count::<&[u8]>(..).unwrap(), left);
        drop((map, db));
        let db = open(&folder, &clock);
        let map = db.keyspace("map").unwrap();
        assert_eq!(map.count::<&[u8]>(..).unwrap(), left);
        assert!(db.verify().unwrap().is_sound());
    }
}

#[test]
fn a_keyspace_with_an_operator_refuses_such_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    write(&path);
    let clock = TurnedClock::at(1000);
    let db = windrow::Db::open(folder.path().join("db"), with_operator(&clock)).unwrap();
    let (map, other) = (db.keyspace("map").unwrap(), db.keyspace("other").unwrap());
    let refused = db.ingest([(&other, &path), (&map, &path)]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    assert!(refused.to_string().contains("\"map\""), "{refused}");
    let refused = map.bulk_load([("a", "b", at(2000))]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    let ttl = map.with_ttl(milliseconds(9));
    let refused = ttl.insert("a", "b").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    assert!(other.is_empty().unwrap() && map.is_empty().unwrap());
    db.ingest([(&other, &path)]).unwrap();
    assert_eq!(other.count::<&[u8]>(..).unwrap(), 333);
}

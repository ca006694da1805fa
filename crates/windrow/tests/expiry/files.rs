//! What expired entries leave on disk.

use std::sync::Arc;
use std::sync::mpsc::channel;

use windrow::{Compression, Db, ErrorKind, Event, Isolation, Keyspace, KeyspaceStats};

use crate::{TurnedClock, at, milliseconds, open, options, tiny};

fn stats(db: &Db) -> KeyspaceStats {
    let stats = db.stats();
    let mut keyspaces = stats.keyspaces.into_iter();
    keyspaces.find(|it| it.name == "map").unwrap()
}

fn tables(db: &Db) -> u64 {
    stats(db)
        .levels
        .iter()
        .map(|level| level.files as u64)
        .sum()
}

fn table_bytes(db: &Db) -> u64 {
    stats(db).levels.iter().map(|level| level.bytes).sum()
}

/// An hour of a time series, in a file of its own or in several.
fn write_hour(db: &Db, map: &Keyspace, hour: u64) {
    for minute in 0..60 {
        let key = format!("{hour:04} {minute:02}");
        map.insert_with_ttl(key, [7; 40], milliseconds(1000))
            .unwrap();
    }
    db.flush().unwrap();
}

/// Runs the jobs that are due.
fn settle(db: &Db) {
    db.wait_idle().unwrap();
}

#[test]
fn whole_files_go_without_being_read() {
    let folder = tempfile::tempdir().unwrap();
    let clock = TurnedClock::at(0);
    let db = open(folder.path(), &clock);
    let map = db.keyspace("map").unwrap();
    for hour in 0..50 {
        clock.turn_to(hour * 100);
        write_hour(&db, &map, hour);
        settle(&db);
    }
    let read = |db: &Db| db.stats().compaction_bytes_read;
    assert_eq!(map.count::<&[u8]>(..).unwrap(), 600, "ten hours live");
    assert!(tables(&db) <= 10, "{:?}", stats(&db).levels);
    assert_eq!(read(&db), 0);
    assert_eq!(db.stats().entries_expired, 40 * 60);
    clock.turn_to(1_000_000);
    settle(&db);
    assert_eq!((tables(&db), read(&db)), (0, 0));
    // The edit has the time at which the last entry expired, so nothing returns, and a clock that was far ahead is
    // forgotten.
    write_hour(&db, &map, 99);
    drop((map, db));
    clock.turn_to(0);
    let db = open(folder.path(), &clock);
    let map = db.keyspace("map").unwrap();
    assert_eq!(map.count::<&[u8]>(..).unwrap(), 60);
    map.insert_with_ttl("new", "", milliseconds(1)).unwrap();
    assert_eq!(map.expires_at("new").unwrap(), Some(at(5901)));
}

/// Flushes and compactions record no more than they need, either.
#[test]
fn a_clock_that_was_far_ahead_is_not_recorded_for_ever() {
    for is_flush in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let clock = TurnedClock::at(1000);
        let db = open(folder.path(), &clock);
        let map = db.keyspace("map").unwrap();
        map.insert("between", "").unwrap();
        map.insert_with_ttl("goes", "", milliseconds(10)).unwrap();
        if !is_flush {
            db.flush().unwrap();
        }
        // Beyond every moment.
        clock.turn_to(1 << 60);
        assert_eq!(map.count::<&[u8]>(..).unwrap(), 1);
        let refused = map.insert_with_ttl("new", "", milliseconds(1)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
        map.compact_range::<&[u8]>(..).unwrap();
        assert_eq!(map.count::<&[u8]>(..).unwrap(), 1);
        drop((map, db));
        clock.turn_to(900);
        let db = open(folder.path(), &clock);
        let map = db.keyspace("map").unwrap();
        assert_eq!(map.count::<&[u8]>(..).unwrap(), 1);
        map.insert_with_ttl("new", "", milliseconds(1)).unwrap();
        assert_eq!(map.expires_at("new").unwrap(), Some(at(1011)));
    }
}

#[test]
fn a_drop_of_whole_files_is_an_event() {
    let folder = tempfile::tempdir().unwrap();
    let clock = TurnedClock::at(0);
    let (sender, seen) = channel();
    let listener = move |event: &Event| {
        if let Event::ExpiredFilesDropped {
            keyspace,
            level,
            files,
            bytes,
            entries_dropped,
            ..
        } = event
        {
            assert_eq!(keyspace, "map");
            let of = (*level, *files, *bytes, *entries_dropped);
            sender.send(of).unwrap();
        }
    };
    let options = options(&clock).with_listener(Arc::new(listener));
    let db = Db::open(folder.path(), options).unwrap();
    let map = db.keyspace("map").unwrap();
    write_hour(&db, &map, 0);
    settle(&db);
    let (before, files) = (table_bytes(&db), tables(&db));
    assert!(seen.try_recv().is_err());
    clock.turn_to(1000);
    settle(&db);
    let seen: Vec<_> = seen.try_iter().collect();
    let sum = |of: fn(&(usize, usize, u64, u64)) -> u64| seen.iter().map(of).sum::<u64>();
    assert_eq!(sum(|it| it.1 as u64), files);
    assert_eq!((sum(|it| it.2), sum(|it| it.3)), (before, 60));
}

#[test]
fn a_snapshot_keeps_what_it_sees_and_what_its_transaction_must_find() {
    let folder = tempfile::tempdir().unwrap();
    let clock = TurnedClock::at(0);
    let db = open(folder.path(), &clock);
    let map = db.keyspace("map").unwrap();
    write_hour(&db, &map, 0);
    let transaction = db.transaction_with(Isolation::Snapshot);
    transaction.insert(&map, "0001 00", "own").unwrap();
    write_hour(&db, &map, 1);
    clock.turn_to(1000);
    settle(&db);
    let view = map.at(transaction.snapshot()).unwrap();
    assert_eq!(view.iter().unwrap().count(), 60);
    assert!(map.is_empty().unwrap());
    drop(view);
    let conflict = transaction.commit().unwrap_err();
    assert_eq!(conflict.kind(), ErrorKind::Conflict);
    write_hour(&db, &map, 2);
    settle(&db);
    assert_eq!(map.iter().unwrap().count(), 60);
    assert_eq!(tables(&db), 1);
}

/// The file of an expired key must not go while an older value of it is deeper.
#[test]
fn an_expired_entry_hides_what_is_older_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let clock = TurnedClock::at(0);
    let db = open(folder.path(), &clock);
    let map = db.keyspace("map").unwrap();
    for length in [10, 5000] {
        map.insert("key", "older").unwrap();
        map.compact_range::<&[u8]>(..).unwrap();
        map.insert_with_ttl("key", vec![1; length], milliseconds(1000))
            .unwrap();
        db.flush().unwrap();
        let now = clock.milliseconds.load(std::sync::atomic::Ordering::SeqCst) + 1000;
        clock.turn_to(now);
        settle(&db);
        assert_eq!(map.get("key").unwrap(), None);
        map.compact_range::<&[u8]>(..).unwrap();
        assert_eq!(map.get("key").unwrap(), None);
        assert_eq!(map.iter().unwrap().count(), 0);
        assert!(db.verify().unwrap().is_sound());
    }
}

#[test]
fn expired_bytes_of_an_idle_database_fall_below_their_bound() {
    let folder = tempfile::tempdir().unwrap();
    let clock = TurnedClock::at(0);
    let db = open(folder.path(), &clock);
    let map = db.keyspace("map").unwrap();
    // Entries that stay between entries that go, so no file goes as a whole.
    for number in 0..20_000_u64 {
        let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        if number % 4 == 0 {
            map.insert(key, [1; 40]).unwrap();
        } else {
            let ttl = milliseconds(1000 + number % 1000);
            map.insert_with_ttl(key, [1; 40], ttl).unwrap();
        }
    }
    map.compact_range::<&[u8]>(..).unwrap();
    let before = table_bytes(&db);
    clock.turn_to(1100);
    settle(&db);
    assert!(table_bytes(&db) > before / 10 * 9, "few have expired");
    clock.turn_to(10_000);
    settle(&db);
    let after = table_bytes(&db);
    // A quarter lives, and expired entries take at most 0.3 of that.
    assert!(after < before * 2 / 5, "{before} {after}");
    assert_eq!(map.iter().unwrap().count(), 5000);
    let read = db.stats().compaction_bytes_read;
    settle(&db);
    assert_eq!(
        db.stats().compaction_bytes_read,
        read,
        "the work has an end"
    );
}

/// Bytes that compactions read while the clock shows these times, and those of the tables at the end. Numbers from 0 to 999
/// have the time of their `expiry`.
fn read_for(compression: Compression, times: &[u64], expiry: impl Fn(u64) -> u64) -> (u64, u64) {
    let folder = tempfile::tempdir().unwrap();
    let clock = TurnedClock::at(0);
    let db = open(folder.path(), &clock);
    let mut options = tiny();
    options.compression = compression;
    let map = db.keyspace_with("map", options).unwrap();
    for number in 0..6000_u64 {
        let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        let ttl = milliseconds(expiry(number % 1000));
        map.insert_with_ttl(key, [1; 100], ttl).unwrap();
    }
    map.compact_range::<&[u8]>(..).unwrap();
    settle(&db);
    let read = |db: &Db| db.stats().compaction_bytes_read;
    let before = read(&db);
    for &now in times {
        clock.turn_to(now);
        settle(&db);
    }
    (read(&db) - before, table_bytes(&db))
}

#[test]
fn compressed_files_are_rewritten_when_much_of_them_has_expired() {
    // Values take little space, in logical bytes several times that of their tables.
    let expiry = |number| 1000 + number;
    let (read, bytes) = read_for(Compression::Lz4, &[1100], expiry);
    assert!(bytes < 6000 * 50, "{bytes} bytes are not compressed");
    assert_eq!(read, 0);
    let (read, _) = read_for(Compression::Lz4, &[1500], expiry);
    assert!(read > 0);
}

/// One entry of fifty lives very long, another one goes early: they say nothing of the others.
#[test]
fn files_are_not_rewritten_for_a_few_early_entries() {
    let expiry = |number| match number % 50 {
        25 => 4_000_000,
        0 => 1000 + number * 25,
        _ => 30_000,
    };
    let times: Vec<u64> = (0..30).map(|second| 999 + second * 1000).collect();
    let (read, bytes) = read_for(Compression::None, &times, expiry);
    assert_eq!(read, 0);
    let (read, after) = read_for(Compression::None, &[30_001], expiry);
    assert!(read > 0 && after < bytes / 4, "{read} {bytes} {after}");
}

#[test]
fn entries_of_short_lives_go_soon_between_entries_of_long_ones() {
    let expiry = |number| if number % 10 == 0 { 1_000_000 } else { 1000 };
    let (read, before) = read_for(Compression::None, &[999], expiry);
    assert_eq!(read, 0);
    let (_, after) = read_for(Compression::None, &[1001], expiry);
    assert!(after < before / 5, "{before} {after}");
}

#[test]
fn a_compaction_of_a_range_drops_a_single_expired_entry() {
    let folder = tempfile::tempdir().unwrap();
    let clock = TurnedClock::at(0);
    let db = open(folder.path(), &clock);
    let map = db.keyspace("map").unwrap();
    for number in 0..50_u64 {
        let ttl = if number == 7 { 1000 } else { 1 << 40 };
        map.insert_with_ttl(number.to_be_bytes(), "value", milliseconds(ttl))
            .unwrap();
    }
    map.compact_range::<&[u8]>(..).unwrap();
    clock.turn_to(1001);
    map.compact_range::<&[u8]>(..).unwrap();
    assert_eq!(db.stats().entries_expired, 1);
}

#[test]
fn expired_values_in_value_logs_are_collected() {
    let folder = tempfile::tempdir().unwrap();
    let clock = TurnedClock::at(0);
    let db = open(folder.path(), &clock);
    let map = db.keyspace("map").unwrap();
    for number in 0..300_u64 {
        map.insert_with_ttl(number.to_be_bytes(), [1; 5000], milliseconds(1000))
            .unwrap();
    }
    map.insert("stays", [2; 5000]).unwrap();
    map.compact_range::<&[u8]>(..).unwrap();
    let held = |db: &Db| stats(db).value_logs.bytes;
    assert!(held(&db) > 1_000_000);
    clock.turn_to(1000);
    map.compact_range::<&[u8]>(..).unwrap();
    settle(&db);
    assert!(held(&db) < 100_000, "{:?}", stats(&db).value_logs);
    assert_eq!(map.get("stays").unwrap().unwrap(), [2; 5000]);
    assert!(db.verify().unwrap().is_sound());
}

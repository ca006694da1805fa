//! What reads see of entries that expire.

use std::time::Duration;

use windrow::{ErrorKind, Expiry};

use crate::{TurnedClock, at, milliseconds, open};

/// Every place that an entry can be in: a memtable, level 0, a deeper level; and every place of its value.
#[test]
fn no_read_sees_an_expired_entry_wherever_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let clock = TurnedClock::at(1000);
    let db = open(folder.path(), &clock);
    let map = db.keyspace("map").unwrap();
    let mut now = 1000;
    for length in [10, 500, 5000] {
        for place in 0..3 {
            let value = vec![7; length];
            map.insert("key", "older").unwrap();
            map.insert_with_ttl("key", &value, milliseconds(10))
                .unwrap();
            map.insert("later", "stays").unwrap();
            match place {
                0 => {}
                1 => db.flush().unwrap(),
                _ => map.compact_range::<&[u8]>(..).unwrap(),
            }
            for moment in [now, now + 9] {
                clock.turn_to(moment);
                assert_eq!(map.get("key").unwrap().as_deref(), Some(&value[..]));
                assert_eq!(map.get_pinned("key").unwrap().as_deref(), Some(&value[..]));
                assert_eq!(map.expires_at("key").unwrap(), Some(at(now + 10)));
                let mut cursor = map.cursor().unwrap();
                assert!(cursor.seek_to_first().unwrap());
                assert_eq!(
                    (cursor.key(), cursor.value().unwrap()),
                    (&b"key"[..], &value[..])
                );
                assert_eq!(cursor.expires_at(), at(now + 10));
                assert!(cursor.next().unwrap());
                assert_eq!(
                    (cursor.key(), cursor.expires_at()),
                    (&b"later"[..], Expiry::Never)
                );
                assert!(cursor.prev().unwrap());
                assert_eq!(
                    (cursor.key(), cursor.value().unwrap()),
                    (&b"key"[..], &value[..])
                );
                assert_eq!(cursor.expires_at(), at(now + 10));
            }
            let (snapshot, mut cursor) = (db.snapshot(), map.cursor().unwrap());
            now += 10;
            clock.turn_to(now);
            assert_eq!(map.get("key").unwrap(), None);
            assert!(map.get_pinned("key").unwrap().is_none());
            assert!(!map.contains_key("key").unwrap());
            assert_eq!(map.expires_at("key").unwrap(), None);
            let keys = ["key", "later"];
            let found = map.multi_get(&keys).unwrap();
            assert_eq!((found[0].is_some(), found[1].is_some()), (false, true));
            assert_eq!(map.count::<&[u8]>(..).unwrap(), 1);
            assert_eq!(map.iter().unwrap().rev().count(), 1);
            // What began before sees it still.
            assert!(cursor.seek_to_first().unwrap());
            assert_eq!(cursor.key(), b"key");
            let view = map.at(&snapshot).unwrap();
            for _ in 0..2 {
                assert_eq!(view.get("key").unwrap().as_deref(), Some(&value[..]));
                assert_eq!(view.expires_at("key").unwrap(), Some(at(now)));
                assert_eq!(view.iter().unwrap().count(), 2);
                assert_eq!(view.iter().unwrap().rev().count(), 2);
                map.compact_range::<&[u8]>(..).unwrap();
            }
        }
    }
    assert!(db.verify().unwrap().is_sound());
}

#[test]
fn a_changed_key_has_the_expiry_of_its_last_write() {
    let folder = tempfile::tempdir().unwrap();
    let clock = TurnedClock::at(1000);
    let db = open(folder.path(), &clock);
    let map = db.keyspace("map").unwrap();
    map.insert_with_ttl("key", "first", milliseconds(10))
        .unwrap();
    map.insert_with_ttl("key", "second", milliseconds(20))
        .unwrap();
    clock.turn_to(1015);
    assert_eq!(map.get("key").unwrap().unwrap(), b"second");
    map.insert("key", "third").unwrap();
    clock.turn_to(9999);
    assert_eq!(map.get("key").unwrap().unwrap(), b"third");
    assert_eq!(map.expires_at("key").unwrap(), Some(Expiry::Never));
}

#[test]
fn an_expired_key_is_absent_for_changes_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let clock = TurnedClock::at(1000);
    let db = open(folder.path(), &clock);
    let map = db.keyspace("map").unwrap();
    for key in ["a", "b", "c", "d"] {
        map.insert_with_ttl(key, "old", milliseconds(10)).unwrap();
    }
    assert!(!map.insert_if_absent("a", "new").unwrap());
    clock.turn_to(1010);
    assert!(map.insert_if_absent("a", "new").unwrap());
    assert!(
        !map.compare_and_swap("b", Some(b"old"), Some(b"new"))
            .unwrap()
    );
    assert!(map.compare_and_swap("b", None, Some(b"new")).unwrap());
    let updated = map.update("c", |old| {
        assert_eq!(old, None);
        Some(b"new".to_vec())
    });
    assert_eq!(updated.unwrap().unwrap(), b"new");
    assert_eq!(map.fetch_remove("d").unwrap(), None);
    for key in ["a", "b", "c"] {
        assert_eq!(map.expires_at(key).unwrap(), Some(Expiry::Never));
    }
}

#[test]
fn a_time_to_live_of_zero_removes_and_one_without_end_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path(), &TurnedClock::at(1000));
    let map = db.keyspace("map").unwrap();
    map.insert("key", "value").unwrap();
    map.insert_with_ttl("key", "value", Duration::ZERO).unwrap();
    assert_eq!(map.get("key").unwrap(), None);
    let refused = map
        .insert_with_ttl("key", "value", Duration::MAX)
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    map.insert_with_ttl("key", "value", Duration::from_nanos(1))
        .unwrap();
    assert_eq!(map.expires_at("key").unwrap(), Some(at(1001)));
}

/// A seek that passes many expired entries does not let readers of an earlier moment skip them.
#[test]
fn expired_entries_that_a_seek_has_passed_are_not_skipped_by_earlier_readers() {
    let folder = tempfile::tempdir().unwrap();
    let clock = TurnedClock::at(1000);
    let db = open(folder.path(), &clock);
    let map = db.keyspace("map").unwrap();
    for number in 0..200 {
        let key = format!("{number:03}");
        map.insert_with_ttl(key, "value", milliseconds(10)).unwrap();
    }
    map.insert("last", "value").unwrap();
    let snapshot = db.snapshot();
    clock.turn_to(1010);
    for _ in 0..4 {
        assert_eq!(map.first_key_value().unwrap().unwrap().0, b"last");
    }
    let earlier = map.at(&snapshot).unwrap();
    assert_eq!(earlier.first_key_value().unwrap().unwrap().0, b"000");
    assert_eq!(earlier.iter().unwrap().count(), 201);
}

#[test]
fn an_older_cursor_keeps_what_jobs_have_dropped_since() {
    let folder = tempfile::tempdir().unwrap();
    let clock = TurnedClock::at(1000);
    let db = open(folder.path(), &clock);
    let map = db.keyspace("map").unwrap();
    for number in 0..200 {
        let key = format!("{number:03}");
        map.insert_with_ttl(key, "value", milliseconds(10)).unwrap();
    }
    map.insert("last", "value").unwrap();
    let mut earlier = map.cursor().unwrap();
    assert!(earlier.seek_to_first().unwrap());
    clock.turn_to(1010);
    // The entries become tombstones, at their sequence numbers.
    db.flush().unwrap();
    for _ in 0..4 {
        assert_eq!(map.first_key_value().unwrap().unwrap().0, b"last");
        assert_eq!(map.iter().unwrap().rev().count(), 1);
    }
    assert!(earlier.seek_to_first().unwrap());
    assert_eq!(earlier.key(), b"000");
    let mut seen = 1;
    while earlier.next().unwrap() {
        seen += 1;
    }
    assert_eq!(seen, 201);
    assert!(earlier.seek_to_last().unwrap());
    while earlier.prev().unwrap() {
        seen -= 1;
    }
    assert_eq!(seen, 1);
}

#[test]
fn a_clock_that_goes_back_brings_nothing_back() {
    let folder = tempfile::tempdir().unwrap();
    let clock = TurnedClock::at(1000);
    let db = open(folder.path(), &clock);
    let map = db.keyspace("map").unwrap();
    map.insert_with_ttl("key", "value", milliseconds(10))
        .unwrap();
    map.insert_with_ttl("later", "value", milliseconds(30))
        .unwrap();
    clock.turn_to(1020);
    assert_eq!(map.get("key").unwrap(), None);
    clock.turn_to(500);
    assert_eq!(map.get("key").unwrap(), None);
    assert!(map.contains_key("later").unwrap());
    // A new entry lives as long as it should by the moment that stands still.
    map.insert_with_ttl("new", "value", milliseconds(10))
        .unwrap();
    assert_eq!(map.expires_at("new").unwrap(), Some(at(1030)));
}

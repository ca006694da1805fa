//! Handles of a keyspace whose writes expire, and what transactions see of expiries.

use std::time::{Duration, SystemTime};

use windrow::{Batch, ErrorKind, Expiry};

use crate::{TurnedClock, at, milliseconds, open, tiny};

#[test]
fn every_write_of_a_handle_has_its_time_to_live() {
    let folder = tempfile::tempdir().unwrap();
    let clock = TurnedClock::at(1000);
    let db = open(folder.path(), &clock);
    let plain = db.keyspace("map").unwrap();
    let map = plain.with_ttl(milliseconds(10));
    map.insert("a", "").unwrap();
    assert!(map.insert_if_absent("b", "").unwrap());
    assert!(map.compare_and_swap("c", None, Some(b"")).unwrap());
    map.update("d", |_| Some(Vec::new())).unwrap();
    map.bulk_load([("e", "")]).unwrap();
    let unsorted = [("g", ""), ("f", "")].map(Ok::<_, windrow::Error>);
    map.try_bulk_load_unsorted(unsorted, 1, |_| ()).unwrap();
    let mut batch = Batch::new();
    batch.insert(&map, "h", "").unwrap();
    batch
        .insert_with_ttl(&map, "own", "", milliseconds(20))
        .unwrap();
    batch.insert(&plain, "plain", "").unwrap();
    db.write(&batch).unwrap();
    let transaction = db.transaction();
    transaction.insert(&map, "i", "").unwrap();
    transaction.commit().unwrap();
    for key in ["a", "b", "c", "d", "e", "f", "g", "h", "i"] {
        assert_eq!(plain.expires_at(key).unwrap(), Some(at(1010)), "{key}");
    }
    assert_eq!(map.expires_at("own").unwrap(), Some(at(1020)));
    assert_eq!(map.expires_at("plain").unwrap(), Some(Expiry::Never));
    clock.turn_to(1010);
    assert_eq!(map.count::<&[u8]>(..).unwrap(), 2);
    // The time begins with each write.
    assert!(map.insert_if_absent("b", "again").unwrap());
    assert_eq!(map.expires_at("b").unwrap(), Some(at(1020)));
    map.with_ttl(Duration::ZERO).insert("b", "").unwrap();
    assert_eq!(map.get("b").unwrap(), None);
}

#[test]
fn an_equal_value_renews_the_expiry() {
    let folder = tempfile::tempdir().unwrap();
    let clock = TurnedClock::at(1000);
    let db = open(folder.path(), &clock);
    let plain = db.keyspace("map").unwrap();
    let leases = plain.with_ttl(milliseconds(10));
    assert!(leases.insert_if_absent("job", "worker").unwrap());
    clock.turn_to(1009);
    let renew = |keyspace: &windrow::Keyspace| {
        let renewed = keyspace.compare_and_swap("job", Some(b"worker"), Some(b"worker"));
        renewed.unwrap()
    };
    assert!(renew(&leases));
    assert_eq!(plain.expires_at("job").unwrap(), Some(at(1019)));
    clock.turn_to(1018);
    assert!(renew(&plain));
    assert_eq!(plain.expires_at("job").unwrap(), Some(Expiry::Never));
    clock.turn_to(1030);
    assert!(renew(&leases));
    clock.turn_to(1040);
    assert!(!renew(&leases));
    assert!(leases.compare_and_swap("job", None, None).unwrap());
    assert_eq!(leases.get("job").unwrap(), None);
}

#[test]
fn an_expiry_of_one_entry_is_given_to_another() {
    let folder = tempfile::tempdir().unwrap();
    let clock = TurnedClock::at(1000);
    let db = open(folder.path(), &clock);
    let mut options = tiny();
    options.default_ttl = Some(milliseconds(100));
    let map = db.keyspace_with("map", options).unwrap();
    map.insert_with_ttl("a", "1", milliseconds(10)).unwrap();
    let expiry = map.expires_at("a").unwrap().unwrap();
    clock.turn_to(1005);
    map.with_expiry(expiry).insert("b", "2").unwrap();
    assert_eq!(map.expires_at("b").unwrap(), Some(at(1010)));
    let forever = map.with_expiry(Expiry::Never);
    forever.insert("c", "3").unwrap();
    assert_eq!(map.expires_at("c").unwrap(), Some(Expiry::Never));
    map.insert("d", "4").unwrap();
    assert_eq!(map.expires_at("d").unwrap(), Some(at(1105)));
    // One that has come, or lies before 1970, hides what was there.
    let ends = [
        at(1005),
        Expiry::At(SystemTime::UNIX_EPOCH - Duration::from_secs(1)),
    ];
    for end in ends {
        map.insert("e", "5").unwrap();
        map.with_expiry(end).insert("e", "6").unwrap();
        assert_eq!(map.get("e").unwrap(), None);
    }
    let never_comes = Expiry::At(SystemTime::UNIX_EPOCH + milliseconds(1 << 48));
    let refused = map.with_expiry(never_comes).insert("f", "");
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidArgument);
    // In a bulk load an entry's own expiry counts.
    let entries = [
        ("g", "", at(2000)),
        ("h", "", Expiry::Never),
        ("i", "", at(3)),
    ];
    map.bulk_load(entries).unwrap();
    assert_eq!(map.expires_at("g").unwrap(), Some(at(2000)));
    assert_eq!(map.expires_at("h").unwrap(), Some(Expiry::Never));
    assert_eq!(map.expires_at("i").unwrap(), None);
}

#[test]
fn a_transaction_says_when_what_it_sees_expires() {
    let folder = tempfile::tempdir().unwrap();
    let clock = TurnedClock::at(1000);
    let db = open(folder.path(), &clock);
    let map = db.keyspace("map").unwrap();
    map.insert_with_ttl("a", "1", milliseconds(10)).unwrap();
    map.insert("b", "2").unwrap();
    let transaction = db.transaction();
    let expires_at = |key| transaction.expires_at(&map, key).unwrap();
    transaction
        .insert_with_ttl(&map, "c", "3", milliseconds(5))
        .unwrap();
    transaction.insert(&map, "d", "4").unwrap();
    map.insert_with_ttl("a", "5", milliseconds(50)).unwrap();
    clock.turn_to(1010);
    assert_eq!(expires_at("a"), Some(at(1010)));
    assert_eq!(expires_at("b"), Some(Expiry::Never));
    assert_eq!(expires_at("c"), Some(at(1005)));
    assert_eq!(expires_at("d"), Some(Expiry::Never));
    transaction.remove(&map, "b").unwrap();
    assert_eq!(expires_at("b"), None);
    assert_eq!(expires_at("x"), None);
    // It is a read: the commit covers it.
    let conflict = transaction.commit().unwrap_err();
    assert_eq!(conflict.conflict(), Some(("map", &b"a"[..])));
    // Under a lock it is that of the newest value.
    let locking = db.locking_transaction();
    map.insert_with_ttl("a", "6", milliseconds(7)).unwrap();
    locking.get_for_update(&map, "a").unwrap();
    assert_eq!(locking.expires_at(&map, "a").unwrap(), Some(at(1017)));
}

/// Reads under a lock find the same whenever the entry expires, and whatever jobs drop.
#[test]
fn a_lock_keeps_the_moment_of_its_first_read() {
    let folder = tempfile::tempdir().unwrap();
    let clock = TurnedClock::at(1000);
    let db = open(folder.path(), &clock);
    let map = db.keyspace("map").unwrap();
    for length in [10, 5000] {
        let now = 1000 + length;
        clock.turn_to(now);
        let value = vec![7; usize::try_from(length).unwrap()];
        map.insert("b", "stays").unwrap();
        let transaction = db.locking_transaction();
        // Newer than its snapshot.
        map.insert_with_ttl("a", &value, milliseconds(10)).unwrap();
        let read = |key| transaction.get_for_update(&map, key).unwrap();
        assert_eq!(read("a").as_deref(), Some(&value[..]));
        clock.turn_to(now + 10);
        assert_eq!(map.get("a").unwrap(), None);
        map.compact_range::<&[u8]>(..).unwrap();
        assert_eq!(read("a").as_deref(), Some(&value[..]));
        assert_eq!(transaction.get(&map, "a").unwrap(), Some(value));
        let expires_at = transaction.expires_at(&map, "a").unwrap();
        assert_eq!(expires_at, Some(at(now + 10)));
        assert_eq!(read("b").as_deref(), Some(&b"stays"[..]));
        // A write without a lock is found.
        map.insert_if_absent("a", "other").unwrap();
        let conflict = transaction.get_for_update(&map, "a").unwrap_err();
        assert_eq!(conflict.kind(), ErrorKind::Conflict);
        drop(transaction);
        // Nothing is held any more.
        map.with_ttl(milliseconds(1)).insert("a", "last").unwrap();
        clock.turn_to(now + 11);
        map.compact_range::<&[u8]>(..).unwrap();
        let stats = db.stats();
        let levels = stats.keyspaces[0].levels.iter();
        assert_eq!(levels.map(|level| level.entries).sum::<u64>(), 1);
    }
}

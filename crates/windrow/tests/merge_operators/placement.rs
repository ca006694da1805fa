//! The result of a fold is placed by its size, like any other value, and its base is read from wherever it is.

use windrow::operators::Append;
use windrow::{Db, Keyspace};

use crate::open;

/// The bytes in use in transient logs and in value logs.
fn separated(db: &Db) -> (u64, u64) {
    let stats = db.stats();
    let keyspace = &stats.keyspaces[0];
    (
        keyspace.transient_logs.live_bytes,
        keyspace.value_logs.live_bytes,
    )
}

/// Compacts until no value log holds garbage beyond what the options allow, and checks all counts.
fn settle(db: &Db, map: &Keyspace) {
    map.compact_range::<&[u8]>(..).unwrap();
    db.wait_idle().unwrap();
    let report = db.verify().unwrap();
    assert!(report.is_sound(), "{:?}", report.damage);
}

#[test]
fn folds_change_the_place_of_values() {
    let folder = tempfile::tempdir().unwrap();
    let (db, map) = open(folder.path(), Append::new(""));
    // Two keys, so that files of the deeper levels are not moved only.
    let part = [b'x'; 50];
    let mut lengths = [0; 2];
    let mut was = (false, false);
    for round in 0..40 {
        for (index, key) in ["a", "b"].into_iter().enumerate() {
            for _ in 0..=index {
                map.merge(key, part).unwrap();
                lengths[index] += part.len();
            }
        }
        db.flush().unwrap();
        for (index, key) in ["a", "b"].into_iter().enumerate() {
            assert_eq!(map.get(key).unwrap().unwrap().len(), lengths[index]);
        }
        settle(&db, &map);
        for (index, key) in ["a", "b"].into_iter().enumerate() {
            assert_eq!(map.get(key).unwrap().unwrap().len(), lengths[index]);
        }
        let (_, log) = separated(&db);
        // Large from 1024 bytes on, the key included; what is larger is in value logs, once.
        let large: usize = lengths.iter().filter(|it| **it + 1 >= 1024).sum();
        assert_eq!(log > 0, large > 0, "round {round}: {lengths:?}");
        assert!(
            log >= large as u64 && log <= large as u64 + 200,
            "{log} for {large}"
        );
        was = (was.0 || large == 0, was.1 || large > 0);
    }
    assert_eq!(was, (true, true));
    db.close().unwrap();
    let (db, map) = open(folder.path(), Append::new(""));
    assert_eq!(map.get("b").unwrap().unwrap().len(), lengths[1]);
    assert!(db.verify().unwrap().is_sound());
}

/// A base in a transient log, in a sealed value log, in one that commits write to, and in one that was collected.
#[test]
fn bases_are_read_from_value_files() {
    let folder = tempfile::tempdir().unwrap();
    let (db, map) = open(folder.path(), Append::new(""));
    let sizes = [10, 300, 3_000];
    let key = |size: usize, number: usize| format!("{size:05}-{number:03}");
    for size in sizes {
        for number in 0..60 {
            map.insert(key(size, number), vec![b'v'; size]).unwrap();
        }
    }
    // A third of the keys gets operands in each round, so value logs are partly garbage.
    let check = |rounds: usize| {
        for size in sizes {
            for number in 0..60 {
                let operands = (0..rounds).filter(|round| number % 3 == round % 3).count();
                let value = map.get(key(size, number)).unwrap().unwrap();
                assert_eq!(value.len(), size + operands, "{size} {number}");
                assert!(value[..size].iter().all(|&byte| byte == b'v'));
                assert!(value[size..].iter().all(|&byte| byte == b'o'));
            }
        }
    };
    for round in 0..12 {
        for size in sizes {
            for number in (0..60).filter(|number| number % 3 == round % 3) {
                map.merge(key(size, number), "o").unwrap();
            }
        }
        check(round + 1);
        if round % 2 == 0 {
            db.flush().unwrap();
        } else {
            settle(&db, &map);
        }
        check(round + 1);
    }
    assert_eq!(db.stats().folds_failed, 0);
    assert!(db.stats().garbage_collections > 0);
    assert!(db.stats().entries_folded >= 12 * 60);
}

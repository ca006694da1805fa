//! What a lease keeps, and for how long.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use windrow::ErrorKind;

use crate::{check_equal, contents, leases, open, secondary};

/// Longer than any wait of the engine.
const PATIENCE: Duration = Duration::from_secs(60);

fn files(folder: &std::path::Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

/// Waits until `is_so`.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_state_can_read_files_that_the_writer_has_dropped_and_they_go_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    let keyspace = db.keyspace("k").unwrap();
    let fill = |round: u8| {
        for key in 0..2000_u16 {
            let length = if key % 100 == 0 { 2000 } else { 100 };
            keyspace
                .insert(key.to_be_bytes(), vec![round; length])
                .unwrap();
        }
        keyspace.compact_range::<&[u8]>(..).unwrap();
        db.wait_idle().unwrap();
    };
    fill(0);
    let before = contents(&db);
    let secondary = secondary(folder.path());
    // Nothing of it is read yet: its files are not open.
    let held = secondary.db();
    fill(1);
    fill(2);
    let with_held = files(folder.path());
    assert!(contents(&held) == before, "the held state");
    let newest = secondary.catch_up().unwrap();
    check_equal(&newest, &db, "now");
    drop(held);
    // The lease moves on, and the writer looks at it again.
    wait_until("the files of the old state go", || {
        files(folder.path()) + 2 < with_held
    });
    check_equal(&newest, &db, "now");
}

#[test]
fn a_lease_goes_with_the_last_state() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    db.keyspace("k").unwrap().insert("a", "1").unwrap();
    let secondary = secondary(folder.path());
    let other = secondary.clone();
    assert_eq!(leases(folder.path()).len(), 2, "a lock and a place");
    let state = secondary.db();
    drop((secondary, other));
    assert_eq!(leases(folder.path()).len(), 2);
    assert_eq!(contents(&state)["k"].len(), 1);
    drop(state);
    assert!(leases(folder.path()).is_empty());
}

#[test]
fn the_lease_of_a_dead_reader_goes_with_the_next_removal() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    let readers = folder.path().join("readers");
    fs::create_dir(&readers).unwrap();
    // A process that has ended holds no lock. One place is whole, one torn, and one lock has no place.
    fs::write(readers.join("0000000000000001.lock"), "process 1").unwrap();
    fs::write(readers.join("0000000000000001.place"), [7; 36]).unwrap();
    fs::write(readers.join("0000000000000002.place"), [7; 3]).unwrap();
    fs::write(readers.join("0000000000000003.lock"), "").unwrap();
    fs::write(readers.join("notes"), "of somebody else").unwrap();
    let keyspace = db.keyspace("k").unwrap();
    for round in 0..3_u8 {
        keyspace.insert("a", vec![round; 1000]).unwrap();
        keyspace.compact_range::<&[u8]>(..).unwrap();
    }
    db.wait_idle().unwrap();
    assert_eq!(leases(folder.path()), ["notes"]);
}

#[test]
fn a_reader_whose_lease_was_removed_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    let keyspace = db.keyspace("k").unwrap();
    keyspace.insert("a", "1").unwrap();
    let secondary = secondary(folder.path());
    for name in leases(folder.path()) {
        fs::remove_file(folder.path().join("readers").join(name)).unwrap();
    }
    keyspace.insert("b", "2").unwrap();
    // The first call notices, the second has a lease again.
    secondary.catch_up().unwrap();
    let state = secondary.catch_up().unwrap();
    check_equal(&state, &db, "now");
    assert_eq!(leases(folder.path()).len(), 2);
    let refused = secondary.db().keyspace("k").unwrap().insert("c", "3");
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::ReadOnly);
}

#[test]
fn a_follower_catches_up_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    let keyspace = db.keyspace("k").unwrap();
    let secondary = secondary(folder.path());
    secondary.follow(Duration::from_millis(5)).unwrap();
    for round in 0..5_u8 {
        keyspace.insert([round], "").unwrap();
        wait_until("the entry arrives", || {
            let state = secondary.db();
            state
                .keyspace("k")
                .is_ok_and(|k| k.contains_key([round]).unwrap())
        });
    }
}

//! A persist of a database without a log that was begun, and waits for a thread.

use std::sync::Arc;

use windrow::{Db, ErrorKind, Keyspace, Options, PendingPersist};
use windrow_sim::disk::{Effect, Fault, OperationKind, Repeat};
use windrow_sim::{CrashPolicy, SimDisk, SteppedRuntime};

use crate::common::FOLDER;

fn open(disk: &SimDisk, runtime: &SteppedRuntime) -> (Db, Keyspace) {
    let mut options = windrow_sim::unobserved(Options::default());
    options.log = false;
    options.reserve_bytes = 0;
    let options = options
        .with_vfs(Arc::new(disk.clone()))
        .with_runtime(Arc::new(runtime.clone()));
    let db = Db::open(FOLDER, options).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    (db, keyspace)
}

/// The keys that a power failure leaves.
fn surviving(disk: &SimDisk) -> Vec<Vec<u8>> {
    let disk = disk.crash(CrashPolicy::DropUnsynced);
    let (_db, keyspace) = open(&disk, &SteppedRuntime::new(2));
    let keys = keyspace.iter().unwrap().map(|entry| entry.unwrap().0);
    keys.collect()
}

/// A database in which a persist was begun between the writes of two keys.
fn begun() -> (SimDisk, Db, Keyspace, PendingPersist) {
    let disk = SimDisk::new();
    let (db, keyspace) = open(&disk, &SteppedRuntime::new(1));
    db.persist().unwrap();
    keyspace.insert("before", "1").unwrap();
    let pending = db.begin_persist().unwrap();
    keyspace.insert("later", "2").unwrap();
    assert!(!pending.is_ended());
    assert!(surviving(&disk).is_empty());
    (disk, db, keyspace, pending)
}

#[test]
fn a_begun_persist_has_what_came_before_it() {
    let (disk, db, _keyspace, pending) = begun();
    pending.wait().unwrap();
    assert_eq!(surviving(&disk), [b"before"]);
    db.persist().unwrap();
    assert_eq!(surviving(&disk), [&b"before"[..], b"later"]);
}

#[test]
fn whoever_needs_what_it_has_taken_makes_a_begun_persist() {
    type Call = fn(&Db, &Keyspace);
    let calls: [Call; 8] = [
        |db, _| drop(db.keyspace("new").unwrap()),
        |_, keyspace| keyspace.rename("other").unwrap(),
        |_, keyspace| {
            keyspace.bulk_load([("a", "b")]).unwrap();
        },
        |_, keyspace| keyspace.compact_range::<&[u8]>(..).unwrap(),
        |db, _| db.flush().unwrap(),
        |db, _| db.wait_idle().unwrap(),
        |db, _| drop(db.begin_persist().unwrap()),
        |db, _| db.checkpoint("/copy").unwrap(),
    ];
    for (number, call) in calls.into_iter().enumerate() {
        let (disk, db, keyspace, pending) = begun();
        call(&db, &keyspace);
        assert!(pending.is_ended(), "call {number}");
        pending.wait().unwrap();
        let left = surviving(&disk);
        assert_eq!(left[0], b"before");
        // A checkpoint includes a persist of its own.
        assert_eq!(left.len(), if number == 7 { 2 } else { 1 }, "call {number}");
    }
}

#[test]
fn a_worker_makes_a_begun_persist() {
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let (db, keyspace) = open(&disk, &runtime);
    keyspace.insert("before", "1").unwrap();
    let pending = db.begin_persist().unwrap();
    while !pending.is_ended() {
        assert!(runtime.step());
    }
    assert_eq!(surviving(&disk), [b"before"]);
    pending.wait().unwrap();
}

#[test]
fn a_close_gives_up_a_begun_persist() {
    let (disk, db, keyspace, pending) = begun();
    drop(keyspace);
    db.clone().close().unwrap();
    assert_eq!(pending.wait().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(db.begin_persist().unwrap_err().kind(), ErrorKind::Closed);
    assert!(surviving(&disk).is_empty());
}

#[test]
fn a_begun_persist_whose_flush_fails_leaves_the_one_before() {
    let (disk, db, _keyspace, pending) = begun();
    let full = Fault::io(OperationKind::Create, 0).with(Effect::NoSpace);
    disk.set_faults(vec![full]);
    let error = pending.wait().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSpace);
    assert_eq!(pending.wait().unwrap_err().kind(), ErrorKind::NoSpace);
    assert!(surviving(&disk).is_empty());
    // Nothing stays taken.
    db.keyspace("new").unwrap();
    db.begin_persist().unwrap().wait().unwrap();
    assert_eq!(surviving(&disk), [&b"before"[..], b"later"]);
}

#[test]
fn a_poisoned_database_makes_no_begun_persist() {
    let (disk, db, keyspace, pending) = begun();
    let failing = Fault {
        repeat: Repeat::FromThenOn,
        ..Fault::io(OperationKind::Sync, 0)
    };
    disk.set_faults(vec![failing]);
    let first = pending.wait().unwrap_err();
    assert_ne!(first.kind(), ErrorKind::Closed);
    assert!(surviving(&disk).is_empty());
    drop(keyspace);
    drop(db.close());
    assert!(surviving(&disk).is_empty());
}

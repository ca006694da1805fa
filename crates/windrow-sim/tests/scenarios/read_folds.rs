//! What gets have folded, between the get and the job that writes it: newer writes, locks, stalls, crashes and the end.

use std::sync::Arc;

use windrow::operators::AddU64;
use windrow::{Db, Durability, ErrorKind, Keyspace, Options};
use windrow_sim::disk::Image;
use windrow_sim::{CrashPolicy, SimDisk, SteppedRuntime};

use crate::common::{self, check_sound, kind, observe, on, small};

fn options(disk: &SimDisk, runtime: &SteppedRuntime) -> Options {
    let mut options = on(small(), disk, runtime);
    // What is flushed stays where it is.
    options.keyspace.level0_runs = 64;
    options.with_merge_operator("k", Arc::new(AddU64::Wrapping))
}

/// A database whose key "hot" has a base and two operands, in a run each.
struct Store {
    disk: SimDisk,
    runtime: SteppedRuntime,
    db: Db,
    keyspace: Keyspace,
}

impl Store {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut Options)) -> Self {
        let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(1));
        let mut options = options(&disk, &runtime);
        change(&mut options);
        let (db, keyspace) = common::open(options);
        keyspace.insert("hot", 0_u64.to_le_bytes()).unwrap();
        db.flush().unwrap();
        for _ in 0..2 {
            add(&keyspace, 1);
            db.flush().unwrap();
        }
        runtime.run_until_idle(100);
        Self {
            disk,
            runtime,
            db,
            keyspace,
        }
    }

    /// How many folds were kept and dropped, after all jobs.
    fn outcome(&self) -> (u64, u64) {
        self.runtime.run_until_idle(1000);
        let stats = self.db.stats();
        (stats.folds_kept, stats.folds_dropped)
    }
}

fn add(keyspace: &Keyspace, summand: u64) {
    keyspace.merge("hot", summand.to_le_bytes()).unwrap();
}

fn get(keyspace: &Keyspace) -> Option<u64> {
    let value = keyspace.get("hot").unwrap()?;
    Some(u64::from_le_bytes(value.try_into().unwrap()))
}

#[test]
fn a_fold_is_written_once_by_one_job() {
    let store = Store::new();
    let jobs = store.runtime.steps();
    for _ in 0..10 {
        assert_eq!(get(&store.keyspace), Some(2));
    }
    let sequence = store.db.stats().sequence;
    assert_eq!(store.outcome(), (1, 0));
    assert_eq!(store.runtime.steps(), jobs + 1);
    assert_eq!(store.db.stats().sequence, sequence + 1);
    assert_eq!(get(&store.keyspace), Some(2));
    assert_eq!(store.outcome(), (1, 0));
}

#[test]
fn a_newer_entry_drops_the_fold() {
    type Write = fn(&Db, &Keyspace);
    let writes: [(Write, Option<u64>); 6] = [
        (|_, keyspace| add(keyspace, 5), Some(7)),
        (
            |_, keyspace| keyspace.insert("hot", nine()).unwrap(),
            Some(9),
        ),
        (|_, keyspace| keyspace.remove("hot").unwrap(), None),
        (|_, keyspace| keyspace.delete_range("a".."z").unwrap(), None),
        (|db, keyspace| flushed(db, || add(keyspace, 5)), Some(7)),
        (
            |db, keyspace| flushed(db, || keyspace.delete_range("a".."z").unwrap()),
            None,
        ),
    ];
    for (number, (write, expected)) in writes.into_iter().enumerate() {
        let store = Store::new();
        assert_eq!(get(&store.keyspace), Some(2));
        let snapshot = store.db.snapshot();
        write(&store.db, &store.keyspace);
        assert_eq!(store.outcome(), (0, 1), "write {number}");
        for _ in 0..2 {
            assert_eq!(get(&store.keyspace), expected, "write {number}");
            let seen = store.keyspace.at(&snapshot).unwrap().get("hot").unwrap();
            assert_eq!(seen.unwrap(), 2_u64.to_le_bytes(), "write {number}");
            store.keyspace.compact_range::<&[u8]>(..).unwrap();
        }
        check_sound(&store.db);
    }
}

fn nine() -> [u8; 8] {
    9_u64.to_le_bytes()
}

fn flushed(db: &Db, write: impl FnOnce()) {
    write();
    db.flush().unwrap();
}

/// A get that has seen a newer operand has the better fold.
#[test]
fn the_newest_fold_of_a_key_is_written() {
    let store = Store::new();
    assert_eq!(get(&store.keyspace), Some(2));
    flushed(&store.db, || add(&store.keyspace, 5));
    assert_eq!(get(&store.keyspace), Some(7));
    assert_eq!(store.outcome(), (1, 0));
    assert_eq!(get(&store.keyspace), Some(7));
}

#[test]
fn a_key_that_a_transaction_keeps_for_itself_gets_no_base() {
    let store = Store::new();
    let locking = store.db.locking_transaction();
    locking.get_for_update(&store.keyspace, "hot").unwrap();
    assert_eq!(get(&store.keyspace), Some(2));
    assert_eq!(store.outcome(), (0, 1));
    locking.insert(&store.keyspace, "hot", nine()).unwrap();
    locking.commit().unwrap();
    assert_eq!(get(&store.keyspace), Some(9));

    let store = Store::new();
    let transaction = store.db.transaction();
    transaction.get(&store.keyspace, "hot").unwrap();
    transaction.insert(&store.keyspace, "other", "1").unwrap();
    let prepared = transaction.prepare("one").unwrap();
    assert_eq!(get(&store.keyspace), Some(2));
    assert_eq!(store.outcome(), (0, 1));
    prepared.commit().unwrap();
    assert_eq!(get(&store.keyspace), Some(2));
    assert_eq!(store.outcome(), (1, 1));
}

/// As documented: to a transaction the base is a write of its own.
#[test]
fn a_transaction_that_has_read_the_key_is_refused_once() {
    let store = Store::new();
    let attempt = || {
        let transaction = store.db.transaction();
        let value = transaction.get_for_update(&store.keyspace, "hot").unwrap();
        transaction
            .insert(&store.keyspace, "copy", value.unwrap())
            .unwrap();
        assert_eq!(get(&store.keyspace), Some(2));
        store.outcome();
        transaction.commit()
    };
    assert_eq!(kind(attempt()), ErrorKind::Conflict);
    attempt().unwrap();
    assert_eq!(store.outcome(), (1, 0));
}

/// Otherwise each get of a stalled keyspace would make a job due that drops its fold.
#[test]
fn folds_wait_as_long_as_writers_must() {
    let store = Store::with(|options| options.keyspace.level0_runs = 4);
    // More than three times as many runs delay writers. Callers that flush run no compactions.
    for _ in 0..20 {
        flushed(&store.db, || {
            for key in ["a", "z"] {
                store.keyspace.insert(key, "").unwrap();
            }
        });
    }
    assert_eq!(store.db.stats().compactions, 0);
    assert_eq!(get(&store.keyspace), Some(2));
    while store.db.stats().compactions == 0 {
        let stats = store.db.stats();
        assert_eq!((stats.folds_kept, stats.folds_dropped), (0, 0));
        assert!(store.runtime.step(), "a compaction is due");
    }
    assert_eq!(store.outcome(), (1, 0));
    assert_eq!(get(&store.keyspace), Some(2));
}

#[test]
fn folds_that_wait_end_with_their_keyspace_and_with_the_database() {
    let store = Store::new();
    assert_eq!(get(&store.keyspace), Some(2));
    store.db.drop_keyspace("k").unwrap();
    assert_eq!(store.outcome(), (0, 0));
    store.db.close().unwrap();

    let store = Store::new();
    assert_eq!(get(&store.keyspace), Some(2));
    store.db.close().unwrap();
    let runtime = SteppedRuntime::new(2);
    let (db, keyspace) = common::open(options(&store.disk, &runtime));
    assert_eq!(get(&keyspace), Some(2));
    assert_eq!(db.stats().lifetime.folds_kept, 0);
    db.wait_idle().unwrap();
    assert_eq!(db.stats().lifetime.folds_kept, 1);
}

/// What a crash leaves of `image`.
fn recovered(image: &Image, policy: CrashPolicy) -> (Option<u64>, bool) {
    let disk = SimDisk::from_image(image.crash(policy));
    let (db, keyspace) = common::open(options(&disk, &SteppedRuntime::new(1)));
    check_sound(&db);
    let found = get(&keyspace);
    db.wait_idle().unwrap();
    assert_eq!(get(&keyspace), found);
    (found, keyspace.get("synced").unwrap().is_some())
}

#[test]
fn a_crash_changes_no_value() {
    let store = Store::new();
    store.db.persist().unwrap();
    let images = observe(&store.disk, |_, image| image.clone());
    for _ in 0..3 {
        assert_eq!(get(&store.keyspace), Some(2));
        store.runtime.run_until_idle(100);
    }
    store
        .keyspace
        .insert_with("synced", "", Durability::Sync)
        .unwrap();
    store.db.flush().unwrap();
    store.keyspace.compact_range::<&[u8]>(..).unwrap();
    store.disk.stop_observing();
    assert_eq!(store.outcome(), (1, 0));
    let images: Vec<_> = images.try_iter().collect();
    let mut without = 0;
    for (at, image) in images.iter().enumerate() {
        for policy in CrashPolicy::all(at as u64) {
            let (found, is_synced) = recovered(image, policy);
            assert_eq!(found, Some(2), "change {at}, {policy:?}");
            without += usize::from(!is_synced);
        }
    }
    assert!(
        images.len() > 10 && without > 0,
        "{}, {without}",
        images.len()
    );
}

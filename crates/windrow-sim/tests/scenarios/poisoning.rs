//! Panics and failed syncs poison the database: it acknowledges nothing more, and reads succeed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use windrow::{Batch, Db, Durability, ErrorKind, Keyspace, Result};
use windrow_sim::disk::{Effect, Fault, OperationKind};
use windrow_sim::{CrashPolicy, SimDisk, SteppedRuntime};

use crate::common::{self, check_sound, kind, on, small};

/// Opens the database. Only callers run jobs.
fn open(disk: &SimDisk) -> (Db, Keyspace) {
    common::open(on(small(), disk, &SteppedRuntime::new(1)))
}

/// Writes "key" once for each of `rounds`, and flushes each.
fn flush_rounds(db: &Db, keyspace: &Keyspace, rounds: &[&str]) {
    for round in rounds {
        keyspace.insert("key", round).unwrap();
        db.flush().unwrap();
    }
}

/// Lets the next `kind` of I/O on a file with the extension `end` panic after it is done.
fn panic_at(disk: &SimDisk, kind: OperationKind, end: &'static str) {
    let mut is_armed = true;
    disk.on_change(move |event, _| {
        let is_due = event.is(kind, end) && std::mem::take(&mut is_armed);
        assert!(!is_due, "planted");
    });
}

/// Panics unless writes and jobs are refused as poisoned, and reads succeed.
fn check_poisoned(db: &Db, keyspace: &Keyspace) {
    for refused in [
        keyspace.insert("late", "1"),
        db.flush(),
        db.wait_idle(),
        keyspace.compact_range::<&[u8]>(..),
    ] {
        assert_eq!(kind(refused), ErrorKind::Poisoned);
    }
    assert_eq!(keyspace.get("late").unwrap(), None);
}

#[test]
fn a_panic_in_a_job_poisons() {
    for by_hand in [false, true] {
        let disk = SimDisk::new();
        let (db, keyspace) = open(&disk);
        flush_rounds(&db, &keyspace, &["1", "2", "3"]);
        panic_at(&disk, OperationKind::Create, "table");
        let outcome = if by_hand {
            keyspace.compact_range::<&[u8]>(..)
        } else {
            db.wait_idle()
        };
        assert_eq!(kind(outcome), ErrorKind::Poisoned);
        check_poisoned(&db, &keyspace);
        assert_eq!(keyspace.get("key").unwrap().unwrap(), b"3");
        assert_eq!(kind(db.close()), ErrorKind::Poisoned);
        let (db, keyspace) = open(&disk);
        assert_eq!(keyspace.get("key").unwrap().unwrap(), b"3");
        check_sound(&db);
    }
}

#[test]
fn a_panic_in_a_commit_after_its_record_poisons() {
    let disk = SimDisk::new();
    let (db, keyspace) = open(&disk);
    keyspace.insert("early", "1").unwrap();
    let mut batch = Batch::new();
    batch.insert(&keyspace, "left", "1").unwrap();
    batch.insert(&keyspace, "right", "1").unwrap();
    panic_at(&disk, OperationKind::Sync, "wal");
    let outcome = catch_unwind(AssertUnwindSafe(|| db.write_with(&batch, Durability::Sync)));
    assert!(outcome.is_err(), "the panic reaches the caller");
    check_poisoned(&db, &keyspace);
    assert_eq!(keyspace.iter().unwrap().count(), 1);
    drop((db, keyspace));
    let (_db, keyspace) = open(&disk);
    let halves = ["left", "right"].map(|key| keyspace.contains_key(key).unwrap());
    assert_eq!(halves[0], halves[1]);
    assert!(keyspace.contains_key("early").unwrap());
}

/// After a failed folder sync for one file, a later sync for another file may succeed and make nothing durable.
#[test]
fn a_failed_sync_of_the_folder_poisons() {
    type Work = fn(&Db, &Keyspace) -> Result<()>;
    let works: [(&str, Work); 2] = [
        ("a new log", |_, keyspace| {
            (0..20).try_for_each(|key| keyspace.insert(format!("key{key}"), [7; 600]))
        }),
        ("a table", |db, _| db.flush()),
    ];
    for (what, work) in works {
        for effect in [Effect::Io, Effect::NoSpace] {
            let disk = SimDisk::new();
            let (db, keyspace) = open(&disk);
            keyspace.insert("early", "1").unwrap();
            db.persist().unwrap();
            disk.set_faults([Fault::io(OperationKind::SyncDir, 0).with(effect)]);
            let error = work(&db, &keyspace).unwrap_err();
            assert_ne!(error.kind(), ErrorKind::NoSpace, "{what}: {error}");
            check_poisoned(&db, &keyspace);
            let (_db, keyspace) = open(&disk.crash(CrashPolicy::DropUnsynced));
            assert!(keyspace.contains_key("early").unwrap());
        }
    }
}

/// The engine rolls over a long manifest. The old manifest is still valid, but the names of other files may not be
/// durable.
#[test]
fn a_rollover_that_cannot_sync_the_folder_poisons() {
    let run = |fault: Option<Fault>| {
        let disk = SimDisk::new();
        let (db, keyspace) = open(&disk);
        disk.set_faults(fault);
        let (syncs, at) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let rollover = Arc::clone(&at);
        disk.on_change(move |event, _| {
            if event.kind == OperationKind::SyncDir {
                syncs.fetch_add(1, Ordering::Relaxed);
            } else if event.is(OperationKind::Create, "manifest") {
                rollover.store(syncs.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        });
        // The manifest holds the first and the last key of each table.
        let key = vec![7; 60 << 10];
        let work = || keyspace.insert(&key, "1").and_then(|()| db.flush());
        let outcome = (0..50).try_for_each(|_| work());
        (db, keyspace, outcome, at.load(Ordering::Relaxed))
    };
    let (.., outcome, rollover) = run(None);
    outcome.unwrap();
    assert!(rollover > 0, "no rollover");
    let (db, keyspace, outcome, _) = run(Some(Fault::io(OperationKind::SyncDir, rollover)));
    assert_eq!(kind(outcome), ErrorKind::Poisoned);
    check_poisoned(&db, &keyspace);
}

/// The files that a durable edit names stay, even if no caller learns of the edit.
#[test]
fn a_panic_after_an_edit_keeps_its_tables() {
    for by_hand in [false, true] {
        let disk = SimDisk::new();
        let (db, keyspace) = open(&disk);
        flush_rounds(&db, &keyspace, &["1", "2", "3"]);
        keyspace.insert("key", "4").unwrap();
        if by_hand {
            db.flush().unwrap();
        }
        // The edit is durable at the panic.
        panic_at(&disk, OperationKind::Sync, "manifest");
        let outcome = if by_hand {
            keyspace.compact_range::<&[u8]>(..)
        } else {
            db.flush()
        };
        assert_eq!(kind(outcome), ErrorKind::Poisoned);
        check_poisoned(&db, &keyspace);
        drop((db, keyspace));
        let (db, keyspace) = open(&disk);
        assert_eq!(keyspace.get("key").unwrap().unwrap(), b"4");
        check_sound(&db);
    }
}

#[test]
fn a_second_close_reports_the_same_failure() {
    let disk = SimDisk::new();
    let (db, keyspace) = open(&disk);
    keyspace.insert("key", "1").unwrap();
    disk.set_faults([Fault::io(OperationKind::Sync, 0)]);
    assert_eq!(kind(db.clone().close()), ErrorKind::Io);
    assert_eq!(kind(db.close()), ErrorKind::Io);
}

#[test]
fn reads_of_a_file_that_the_next_owner_removed_report_closed() {
    let disk = SimDisk::new();
    let (db, keyspace) = open(&disk);
    flush_rounds(&db, &keyspace, &["1", "2", "3"]);
    db.close().unwrap();
    let (db, keyspace) = open(&disk);
    let mut cursor = keyspace.cursor().unwrap();
    db.close().unwrap();
    let (db, keyspace) = open(&disk);
    keyspace.compact_range::<&[u8]>(..).unwrap();
    db.wait_idle().unwrap();
    assert_eq!(kind(cursor.seek_to_first()), ErrorKind::Closed);
}

/// Whether a locking transaction can have the lock of `key` at once.
fn is_free(db: &Db, keyspace: &Keyspace, key: &str) -> bool {
    let probe = db.locking_transaction_with(Duration::ZERO);
    probe.get_for_update(keyspace, key).is_ok()
}

#[test]
fn a_panic_of_a_preparation_keeps_neither_the_name_nor_locks() {
    let disk = SimDisk::new();
    let (db, keyspace) = open(&disk);
    let prepare = |key: &str| {
        let transaction = db.transaction();
        transaction.insert(&keyspace, key, "1").unwrap();
        transaction.prepare("order")
    };
    // Its keyspace exists from here on.
    prepare("first").unwrap().roll_back().unwrap();
    panic_at(&disk, OperationKind::Sync, "wal");
    let outcome = catch_unwind(AssertUnwindSafe(|| prepare("a").map(drop)));
    assert!(outcome.is_err(), "the panic reaches the caller");
    check_poisoned(&db, &keyspace);
    assert!(db.prepared_transactions().is_empty());
    assert!(is_free(&db, &keyspace, "a"));
    assert_eq!(db.memory().transactions, 0);
    assert_eq!(kind(prepare("a")), ErrorKind::Poisoned);
    drop((db, keyspace));
    // It was written before the panic.
    let (db, keyspace) = open(&disk);
    assert_eq!(db.prepared_transactions(), ["order"]);
    let prepared = db.prepared_transaction("order").unwrap();
    prepared.commit().unwrap();
    assert_eq!(keyspace.get("a").unwrap().unwrap(), b"1");
}

#[test]
fn a_panic_of_the_end_of_a_prepared_transaction_leaves_it_prepared() {
    for commits in [true, false] {
        let disk = SimDisk::new();
        let (db, keyspace) = open(&disk);
        let transaction = db.transaction();
        transaction.insert(&keyspace, "a", "1").unwrap();
        let prepared = transaction.prepare("order").unwrap();
        panic_at(&disk, OperationKind::Sync, "wal");
        let end = || {
            if commits {
                prepared.commit_with(Durability::Sync)
            } else {
                prepared.roll_back_with(Durability::Sync)
            }
        };
        assert!(catch_unwind(AssertUnwindSafe(end)).is_err());
        check_poisoned(&db, &keyspace);
        // Nobody knows which one it is before the next open.
        assert_eq!(db.prepared_transactions(), ["order"]);
        assert!(!is_free(&db, &keyspace, "a"));
        let again = db.prepared_transaction("order").unwrap();
        assert_eq!(kind(again.commit()), ErrorKind::Poisoned);
        drop((db, keyspace));
        let (db, keyspace) = open(&disk);
        assert!(db.prepared_transactions().is_empty());
        assert_eq!(keyspace.contains_key("a").unwrap(), commits);
        assert!(is_free(&db, &keyspace, "a"));
    }
}

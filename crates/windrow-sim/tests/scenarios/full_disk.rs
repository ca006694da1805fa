//! A full disk: what the reserve still allows, and how writing resumes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use windrow::{Batch, Db, Durability, ErrorKind, Keyspace, Options, StallCause};
use windrow_sim::disk::{Effect, Fault, OperationKind};
use windrow_sim::{CrashPolicy, SimDisk, SteppedRuntime};

use crate::common::{self, FOLDER, check_sound, entries, kind, observe, on};

const RESERVE: &str = "/data/db/RESERVE";
const RESERVE_BYTES: u64 = 64 << 10;

fn options(disk: &SimDisk, runtime: &SteppedRuntime) -> Options {
    let mut options = Options::default();
    options.reserve_bytes = RESERVE_BYTES;
    options.keyspace.memtable_bytes = 16 << 10;
    options.keyspace.file_bytes = 8 << 10;
    options.keyspace.base_bytes = 64 << 10;
    on(options, disk, runtime)
}

fn open(disk: &SimDisk) -> (Db, Keyspace) {
    common::open(options(disk, &SteppedRuntime::new(1)))
}

fn has_reserve(disk: &SimDisk) -> bool {
    disk.image().read(Path::new(RESERVE)).is_ok()
}

fn key(number: usize) -> String {
    format!("{number:06}")
}

/// Leaves space for `bytes` more.
fn leave(disk: &SimDisk, bytes: u64) {
    disk.set_quota(Some(disk.used_bytes() + bytes));
}

/// A value that does not compress.
fn noise(bytes: u32, number: u32) -> Vec<u8> {
    let byte = |at: u32| (at ^ number << 10).wrapping_mul(0x9e37_79b9).to_be_bytes()[1];
    (0..bytes).map(byte).collect()
}

/// Adds entries until the disk is full; returns how many were added.
fn fill(keyspace: &Keyspace) -> usize {
    for number in 0.. {
        if let Err(error) = keyspace.insert(key(number), [7; 100]) {
            assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
            return number;
        }
    }
    unreachable!("the disk has an end");
}

#[test]
fn a_full_disk_can_be_emptied_opened_and_written_again() {
    let disk = SimDisk::new();
    let (db, keyspace) = open(&disk);
    assert!(has_reserve(&disk));
    assert_eq!(db.stats().reserve_bytes, RESERVE_BYTES);
    leave(&disk, 100 << 10);
    let count = fill(&keyspace);
    assert!(db.stats().is_disk_full && !has_reserve(&disk));

    // Nothing can be added, alone or in a batch, and the error says why.
    let error = keyspace.insert("more", "").unwrap_err();
    assert!(error.to_string().contains("twice the reserve"), "{error}");
    let mut batch = Batch::new();
    batch.remove(&keyspace, key(0)).unwrap();
    batch.insert(&keyspace, "more", "").unwrap();
    assert_eq!(kind(db.write(&batch)), ErrorKind::NoSpace);
    let stats = db.stats();
    let reported = stats
        .stalls
        .iter()
        .find(|stall| stall.cause == StallCause::DiskFull);
    assert!(reported.unwrap().stops >= 2);

    // Existing entries can be read, removed and flushed.
    for number in 0..count / 2 {
        assert_eq!(keyspace.get(key(number)).unwrap().unwrap(), [7; 100]);
        keyspace.remove(key(number)).unwrap();
    }
    batch.clear();
    batch.remove(&keyspace, key(count - 1)).unwrap();
    db.write(&batch).unwrap();
    db.flush().unwrap();

    // The next process opens the database on the full disk, and can remove more.
    drop((db, keyspace));
    let disk = disk.end_process();
    leave(&disk, 20 << 10);
    let (db, keyspace) = open(&disk);
    assert_eq!(keyspace.iter().unwrap().count(), count - 1 - count / 2);
    assert!(db.stats().is_disk_full);
    assert_eq!(kind(keyspace.insert("more", "")), ErrorKind::NoSpace);
    keyspace.remove(key(count - 2)).unwrap();

    // A little space is not enough. With enough space, writing resumes without a call.
    leave(&disk, RESERVE_BYTES);
    assert_eq!(kind(keyspace.insert("more", "")), ErrorKind::NoSpace);
    leave(&disk, 3 * RESERVE_BYTES);
    keyspace.insert("more", "").unwrap();
    assert!(!db.stats().is_disk_full && has_reserve(&disk));
    check_sound(&db);
}

#[test]
fn background_work_restores_the_reserve() {
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let (db, keyspace) = common::open(options(&disk, &runtime));
    leave(&disk, 50 << 10);
    fill(&keyspace);
    runtime.run_until_idle(1000);
    leave(&disk, 10 << 10);
    fill(&keyspace);
    leave(&disk, RESERVE_BYTES);
    assert!(db.stats().is_disk_full);
    // The job tries again as long as there is no space.
    for _ in 0..3 {
        runtime.advance(Duration::from_secs(2));
        runtime.run_until_idle(1000);
        assert!(db.stats().is_disk_full && !has_reserve(&disk));
    }
    disk.set_quota(None);
    runtime.advance(Duration::from_secs(2));
    runtime.run_until_idle(1000);
    assert!(!db.stats().is_disk_full && has_reserve(&disk));
}

#[test]
fn a_database_opens_on_a_disk_without_a_free_byte() {
    for clean in [false, true] {
        let disk = SimDisk::new();
        let (db, keyspace) = open(&disk);
        for number in 0..300 {
            keyspace.insert(key(number), [7; 100]).unwrap();
        }
        if clean {
            db.close().unwrap();
        }
        let disk = disk.end_process();
        leave(&disk, 0);
        let (db, keyspace) = open(&disk);
        // A clean close has made the log short, and what the open removes is enough for the reserve.
        assert_eq!(db.stats().is_disk_full, !clean);
        assert_eq!(has_reserve(&disk), clean);
        assert_eq!(keyspace.iter().unwrap().count(), 300);
        keyspace.remove(key(7)).unwrap();
        if !clean {
            assert_eq!(kind(keyspace.insert("more", "")), ErrorKind::NoSpace);
        }
        db.close().unwrap();
        disk.set_quota(None);
        let (_db, keyspace) = open(&disk.end_process());
        assert_eq!(keyspace.iter().unwrap().count(), 299);
        keyspace.insert("more", "").unwrap();
    }
}

/// An open writes the whole manifest once more.
#[test]
fn a_database_with_a_long_manifest_opens_on_a_disk_without_a_free_byte() {
    for reopens in [false, true] {
        let disk = SimDisk::new();
        let mut options = options(&disk, &SteppedRuntime::new(1));
        options.reserve_bytes = 4 << 20;
        let (mut db, _keyspace) = common::open(options.clone());
        for number in 0..1500 {
            db.keyspace(&format!("{number:0200}")).unwrap();
        }
        if reopens {
            db.close().unwrap();
            db = Db::open(FOLDER, options.clone()).unwrap();
        }
        let disk = disk.end_process();
        drop(db);
        leave(&disk, 0);
        let options = on(options, &disk, &SteppedRuntime::new(1));
        let db = Db::open(FOLDER, options).unwrap();
        assert_eq!(db.keyspace_names().len(), 1501);
    }
}

#[test]
fn keyspaces_can_be_dropped_from_a_full_disk() {
    let disk = SimDisk::new();
    let (db, _keyspace) = open(&disk);
    leave(&disk, 100 << 10);
    // Until the manifest has no space left.
    let name = |number| format!("{number:0200}");
    let created = (0..10_000).take_while(|&number| db.keyspace(&name(number)).is_ok());
    let count = created.count();
    assert!(has_reserve(&disk));
    for number in 0..100 {
        db.drop_keyspace(&name(number)).unwrap();
    }
    assert!(db.stats().is_disk_full && !has_reserve(&disk));
    assert_eq!(db.keyspace_names().len(), 1 + count - 100);
}

#[test]
fn a_reserve_alone_is_no_database() {
    let disk = SimDisk::new();
    drop(open(&disk));
    let disk = disk.end_process();
    disk.edit(|image| {
        let others = image.files().into_iter().filter(|path| path != RESERVE);
        others.for_each(|path| image.remove(&path).unwrap());
    });
    let read = Db::open_read_only(FOLDER, options(&disk, &SteppedRuntime::new(1)));
    assert_eq!(kind(read), ErrorKind::NotFound);
    let (_db, keyspace) = open(&disk);
    keyspace.insert("key", "value").unwrap();
}

#[test]
fn checkpoints_and_readers_do_not_touch_the_reserve() {
    let disk = SimDisk::new();
    let (db, keyspace) = open(&disk);
    keyspace.insert("key", "value").unwrap();
    db.checkpoint("/data/copy").unwrap();
    let has_own = |folder: &str| {
        let path = Path::new(folder).join("RESERVE");
        disk.image().files().contains(&path)
    };
    assert!(has_own(FOLDER) && !has_own("/data/copy"));
    drop((db, keyspace));
    for folder in [FOLDER, "/data/copy"] {
        let had_own = has_own(folder);
        let db = Db::open_read_only(folder, options(&disk, &SteppedRuntime::new(1))).unwrap();
        let stats = db.stats();
        assert_eq!((stats.reserve_bytes, stats.is_disk_full), (0, false));
        drop(db);
        assert_eq!(has_own(folder), had_own);
    }
}

#[test]
fn without_a_reserve_every_write_is_tried() {
    let disk = SimDisk::new();
    let mut options = options(&disk, &SteppedRuntime::new(1));
    options.reserve_bytes = 0;
    let (db, keyspace) = common::open(options);
    assert!(!has_reserve(&disk));
    leave(&disk, 10 << 10);
    assert!(fill(&keyspace) > 0);
    assert!(!db.stats().is_disk_full);
    leave(&disk, 1 << 10);
    keyspace.insert("more", "").unwrap();
}

#[test]
fn a_failed_reserve_refuses_no_write() {
    for effect in [Effect::Io, Effect::TooManyFiles] {
        let disk = SimDisk::new();
        drop(open(&disk));
        let disk = disk.end_process();
        disk.edit(|image| image.remove(Path::new(RESERVE)).unwrap());
        // The manifest, CURRENT.new and the log come first.
        disk.set_faults([Fault::io(OperationKind::Create, 3)
            .with(effect)
            .from_then_on()]);
        let (db, keyspace) = open(&disk);
        assert!(!has_reserve(&disk) && !db.stats().is_disk_full);
        keyspace.insert("key", "value").unwrap();
    }
    let disk = SimDisk::new();
    disk.set_can_reserve(false);
    let (db, keyspace) = open(&disk);
    assert!(!has_reserve(&disk) && !db.stats().is_disk_full);
    keyspace.insert("key", "value").unwrap();
}

/// The power fails after each I/O of a history that fills the disk, removes entries, and fills it again.
#[test]
fn crashes_on_a_full_disk_lose_nothing() {
    let disk = SimDisk::new();
    let (db, keyspace) = open(&disk);
    let begun = Arc::new(AtomicUsize::new(0));
    let done = Arc::new(AtomicUsize::new(0));
    let states_seen = {
        let (begun, done) = (Arc::clone(&begun), Arc::clone(&done));
        observe(&disk, move |_, image| {
            let bounds = done.load(Ordering::Relaxed)..=begun.load(Ordering::Relaxed);
            (image.clone(), bounds)
        })
    };
    // The states after each acknowledged write.
    let mut states = vec![BTreeMap::new()];
    let mut write = |number: usize, adds: bool| {
        let mut next = states[states.len() - 1].clone();
        begun.store(states.len(), Ordering::Relaxed);
        let written = if adds {
            next.insert(key(number).into_bytes(), vec![7; 1000]);
            keyspace.insert_with(key(number), [7; 1000], Durability::Sync)
        } else {
            next.remove(key(number).as_bytes());
            keyspace.remove_with(key(number), Durability::Sync)
        };
        match written {
            Ok(()) => {
                done.store(states.len(), Ordering::Relaxed);
                states.push(next);
                true
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
                begun.store(states.len() - 1, Ordering::Relaxed);
                false
            }
        }
    };
    for _ in 0..2 {
        leave(&disk, 30 << 10);
        let full = (0..1000).find(|&number| !write(number, true)).unwrap();
        assert!((0..full).step_by(2).all(|number| write(number, false)));
        db.flush().unwrap();
        disk.set_quota(None);
        assert!(write(1, true));
    }
    disk.stop_observing();
    let policies = [CrashPolicy::DropUnsynced, CrashPolicy::KeepAll];
    let mut with_and_without = [0, 0];
    for (image, bounds) in states_seen {
        let has_reserve = image.read(Path::new(RESERVE)).is_ok();
        with_and_without[usize::from(has_reserve)] += 1;
        for policy in policies {
            let (_db, keyspace) = open(&SimDisk::from_image(image.crash(policy)));
            let found = entries(&keyspace);
            assert!(
                bounds.clone().any(|count| states[count] == found),
                "{policy:?} leaves no state after {bounds:?} writes"
            );
        }
    }
    assert!(
        with_and_without.iter().all(|count| *count > 20),
        "{with_and_without:?}"
    );
}

/// The first removal does not use up a reserve of the size of a log's preallocation, or less.
#[test]
fn removals_use_little_of_the_reserve() {
    for reserve_bytes in [256 << 10, 1 << 20, 1200 << 10] {
        let disk = SimDisk::new();
        let mut options = options(&disk, &SteppedRuntime::new(1));
        options.reserve_bytes = reserve_bytes;
        options.keyspace.memtable_bytes = 4 << 20;
        let (db, keyspace) = common::open(options);
        // Enough for the log to preallocate its maximum.
        for number in 0..30_000 {
            keyspace.insert(key(number), [7; 100]).unwrap();
        }
        leave(&disk, 0);
        fill(&keyspace);
        assert!(db.stats().is_disk_full);
        let before = disk.used_bytes();
        keyspace.remove(key(0)).unwrap();
        let taken = disk.used_bytes() - before;
        assert!(taken <= 16 << 10, "{taken} bytes for one removal");
    }
}

#[test]
fn a_reserve_that_cannot_grow_stays() {
    let disk = SimDisk::new();
    let mut options = options(&disk, &SteppedRuntime::new(1));
    options.reserve_bytes = 4 << 20;
    options.keyspace.memtable_bytes = 1 << 20;
    let (db, keyspace) = common::open(options);
    // A reserve of a sixteenth would have 256 KiB.
    for number in 0..4 {
        keyspace.insert(key(number), noise(1 << 20, 0)).unwrap();
    }
    leave(&disk, 100 << 10);
    db.flush().unwrap();
    let stats = db.stats();
    assert_eq!(stats.reserve_bytes, RESERVE_BYTES);
    assert!(has_reserve(&disk) && !stats.is_disk_full);
    keyspace.insert("more", "").unwrap();
    disk.set_quota(None);
    keyspace.insert("more", "").unwrap();
    db.flush().unwrap();
    assert!(db.stats().reserve_bytes > RESERVE_BYTES);
}

/// The flush of what is only in a log may need the reserve.
#[test]
fn the_reserve_grows_with_the_log() {
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let mut options = options(&disk, &runtime);
    options.reserve_bytes = 4 << 20;
    options.keyspace.memtable_bytes = 8 << 20;
    let (db, keyspace) = common::open(options);
    for number in 0..5000 {
        keyspace.insert(key(number), noise(1000, 0)).unwrap();
    }
    runtime.run_until_idle(1000);
    let stats = db.stats();
    assert_eq!(stats.flushes, 0);
    assert!(stats.reserve_bytes >= 4 << 16, "{}", stats.reserve_bytes);
}

#[test]
fn the_reserve_grows_with_the_database() {
    let disk = SimDisk::new();
    let mut options = options(&disk, &SteppedRuntime::new(1));
    options.reserve_bytes = 512 << 10;
    options.keyspace.memtable_bytes = 256 << 10;
    let db = Db::open(FOLDER, options.clone()).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    let reserved = |db: &Db| {
        let stats = db.stats();
        assert!(stats.disk_bytes > stats.reserve_bytes);
        stats.reserve_bytes
    };
    assert_eq!(reserved(&db), 64 << 10);
    let mut seen = Vec::new();
    for round in 0..12 {
        for number in 0..1000_u32 {
            let value = noise(1000, number);
            keyspace.insert(format!("{round}/{number}"), value).unwrap();
        }
        db.flush().unwrap();
        seen.push(reserved(&db));
    }
    assert!(seen.is_sorted(), "{seen:?}");
    assert_eq!(seen.last(), Some(&(512 << 10)));
    assert!(seen[0] < 512 << 10, "{seen:?}");
    drop(keyspace);
    db.close().unwrap();
    let db = Db::open(FOLDER, options.clone()).unwrap();
    assert_eq!(reserved(&db), 512 << 10);
    // An emptied database keeps back less after the next open.
    db.drop_keyspace("k").unwrap();
    db.wait_idle().unwrap();
    db.close().unwrap();
    assert_eq!(reserved(&Db::open(FOLDER, options).unwrap()), 64 << 10);
}

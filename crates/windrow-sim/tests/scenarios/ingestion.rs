//! Loads beside jobs that are stepped by hand, and on a full disk; [`all_or_nothing`]: under crashes and faults at each I/O.

mod all_or_nothing;

use windrow::{Db, Durability, ErrorKind, Keyspace, Options};
use windrow_sim::{CrashPolicy, SimDisk, SteppedRuntime};

use crate::common::{self, Entries, check_sound, entries, on, small};

fn options(disk: &SimDisk, runtime: &SteppedRuntime) -> Options {
    let mut options = on(small(), disk, runtime);
    options.keyspace.size_ratio = 2.0;
    options.keyspace.medium_from = 80;
    options.keyspace.large_from = 150;
    options.max_wal_bytes = 64 << 10;
    options
}

fn open(disk: &SimDisk) -> (Db, Keyspace) {
    common::open(options(disk, &SteppedRuntime::new(1)))
}

fn key(number: u32) -> Vec<u8> {
    format!("key{number:04}").into_bytes()
}

/// A value of any class, by its number.
fn value(number: u32, version: &str) -> Vec<u8> {
    let length = [20, 60, 90, 400][number as usize % 4];
    let mut value = format!("{version} {number} ").into_bytes();
    value.resize(length, b'.');
    value
}

/// Some entries in tables, some in the log alone. Both kinds lie among those of [`load`].
fn fill(db: &Db, keyspace: &Keyspace) {
    for number in (0..300).step_by(3) {
        keyspace.insert(key(number), value(number, "old")).unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    for number in (100..200).step_by(7) {
        keyspace
            .insert(key(number), value(number, "newer"))
            .unwrap();
    }
    keyspace.remove(key(150)).unwrap();
}

/// What a load adds: below and among other keys, and beyond them.
fn loaded() -> Entries {
    let numbers = (120..180).chain(400..520);
    numbers
        .map(|number| (key(number), value(number, "loaded")))
        .collect()
}

#[test]
fn a_write_after_a_load_needs_the_load() {
    let disk = SimDisk::new();
    let (db, keyspace) = open(&disk);
    fill(&db, &keyspace);
    keyspace.bulk_load(loaded()).unwrap();
    let mut expected = entries(&keyspace);
    keyspace.insert_with("later", "", Durability::Sync).unwrap();
    expected.insert(b"later".to_vec(), Vec::new());
    for round in 0..4 {
        let (again, keyspace) = open(&SimDisk::from_image(
            disk.image().crash(CrashPolicy::Random(round)),
        ));
        assert_eq!(entries(&keyspace), expected);
        check_sound(&again);
    }
}

#[test]
fn a_load_is_refused_before_the_disk_is_full() {
    let disk = SimDisk::new();
    let mut options = options(&disk, &SteppedRuntime::new(1));
    options.reserve_bytes = 64 << 10;
    let (db, keyspace) = common::open(options);
    fill(&db, &keyspace);
    disk.set_quota(Some(disk.used_bytes() + (1 << 20)));
    let entries = (0..100_000).map(|number| (format!("{number:08}"), [7; 50]));
    let outcome = keyspace.bulk_load(entries);
    assert_eq!(
        outcome.map_err(|error| error.kind()),
        Err(ErrorKind::NoSpace)
    );
    keyspace.insert("more", "").unwrap();
    assert!(!db.stats().is_disk_full);
}

/// Writes, flushes and compactions go on between the entries of a load. Claims of running jobs and snapshots come in
/// between.
#[test]
fn jobs_go_on_during_a_load() {
    for seed in 0..40_u32 {
        let disk = SimDisk::new();
        let runtime = SteppedRuntime::new(seed.into());
        let (db, keyspace) = common::open(options(&disk, &runtime));
        fill(&db, &keyspace);
        let mut model = entries(&keyspace);
        let mut snapshots = Vec::new();
        for round in 0..4_u32 {
            let version = format!("{seed} {round}");
            let first = (seed * 31 + round * 97) % 400;
            let load: Entries = (first..first + 60)
                .step_by(1 + round as usize % 2)
                .map(|number| (key(number), value(number, &version)))
                .collect();
            let mut step = 0_u32;
            let during = load.iter().inspect(|_| {
                step += 1;
                let number = (step * 17 + seed) % 500;
                let (key, value) = (key(number), value(number, "meanwhile"));
                keyspace.insert(&key, &value).unwrap();
                model.insert(key, value);
                if step.is_multiple_of(5) {
                    runtime.step();
                }
                if step == 40 {
                    db.flush().unwrap();
                    snapshots.push((db.snapshot(), model.clone()));
                }
            });
            keyspace.bulk_load(during).unwrap();
            model.extend(load);
            assert_eq!(entries(&keyspace), model);
            check_sound(&db);
            runtime.run_until_idle(1000);
            assert_eq!(entries(&keyspace), model);
            for (snapshot, then) in &snapshots {
                let view = keyspace.at(snapshot).unwrap();
                let found = view.iter().unwrap().collect::<windrow::Result<Entries>>();
                assert_eq!(found.unwrap(), *then);
            }
        }
        drop(snapshots);
        keyspace.compact_range::<&[u8]>(..).unwrap();
        assert_eq!(entries(&keyspace), model);
        check_sound(&db);
        db.close().unwrap();
        let (again, keyspace) = open(&disk.crash(CrashPolicy::DropUnsynced));
        assert_eq!(entries(&keyspace), model);
        check_sound(&again);
    }
}

#[test]
fn the_number_of_a_load_outlives_the_logs_that_have_it() {
    let mut disk = SimDisk::new();
    let (db, keyspace) = open(&disk);
    keyspace.bulk_load(loaded()).unwrap();
    drop((db, keyspace));
    for round in 0..4_u8 {
        disk = disk.end_process();
        let (db, keyspace) = open(&disk);
        // A new entry is above the loaded one.
        keyspace.insert(key(130), [round]).unwrap();
        assert_eq!(
            keyspace.get(key(130)).unwrap().as_deref(),
            Some(&[round][..])
        );
        assert_eq!(entries(&keyspace).len(), loaded().len());
        db.flush().unwrap();
        keyspace.bulk_load([(key(130), [round, 1])]).unwrap();
        check_sound(&db);
        db.close().unwrap();
    }
    let (_db, keyspace) = open(&disk.crash(CrashPolicy::DropUnsynced));
    assert_eq!(
        keyspace.get(key(130)).unwrap().as_deref(),
        Some(&[3, 1][..])
    );
}

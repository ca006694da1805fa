//! Secondaries on the simulated disk: within random histories, at each change of the disk, through crashes of the writer, and
//! after the time-out of a lease.

mod beside;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use windrow::backup::{Backups, FolderStore};
use windrow::{Batch, Db, Durability, ErrorKind, Keyspace, Secondary};
use windrow_sim::disk::{Fault, OperationKind};
use windrow_sim::history::{Generator, Operation, Profile};
use windrow_sim::model::Contents;
use windrow_sim::session::{self, Session, contents};
use windrow_sim::settings::Setting;
use windrow_sim::{CrashPolicy, SimDisk, SteppedRuntime};

use crate::backups::{BACKUPS, RESTORED, remove_all};
use crate::common::{FOLDER, check_sound, count, entries, kind, observe, on, small};

/// More background jobs than any of these histories needs.
const JOBS_MAX: usize = 10_000;

/// After so many batches comes a bulk load.
const LOAD_AFTER: u32 = 3;

/// States that a history holds at a time.
const HELD_MAX: usize = 3;

fn open(disk: &SimDisk, runtime: &SteppedRuntime) -> Db {
    Db::open(FOLDER, on(small(), disk, runtime)).unwrap()
}

/// Another process: it has a runtime of its own.
fn secondary(disk: &SimDisk, runtime: &SteppedRuntime) -> Secondary {
    Db::open_secondary(FOLDER, on(small(), disk, runtime)).unwrap()
}

/// The time-out of a lease, and more.
fn outlast_leases(writer: &SteppedRuntime) {
    for _ in 0..2 {
        writer.advance(Duration::from_secs(31));
        writer.run_until_idle(JOBS_MAX);
    }
}

/// Copies of `state`, which a writer may have left behind, are what it has `found`.
fn check_copies(state: &Db, found: &Contents, session: &Session, setting: &Setting) {
    let disk = &session.disk;
    let compare = |folder: &str| {
        let copy = Db::open_read_only(folder, setting.on(disk, &session.runtime)).unwrap();
        assert!(
            contents(&copy).unwrap() == *found,
            "{folder} in {}",
            setting.name
        );
        check_sound(&copy);
        copy.close().unwrap();
        remove_all(disk, folder);
    };
    state.checkpoint(session::CHECKPOINT).unwrap();
    compare(session::CHECKPOINT);
    let store = FolderStore::open(Arc::new(disk.clone()), BACKUPS).unwrap();
    let backups = Backups::new(Arc::new(store)).with_vfs(Arc::new(disk.clone()));
    let backups = backups.with_runtime(Arc::new(session.runtime.clone()));
    let made = state.backup(&backups).unwrap();
    backups.restore(made.number, RESTORED).unwrap();
    compare(RESTORED);
}

#[test]
fn states_within_a_history_are_those_of_the_model_and_do_not_change() {
    let mut compared = 0;
    for (seed, setting) in (1..).zip(&Setting::logged()) {
        let mut session = Session::new(seed, setting.clone());
        session.open().unwrap();
        let profile = Profile {
            kills: false,
            ..Profile::default()
        };
        let mut generator = Generator::new(seed, profile);
        let mut held = VecDeque::new();
        let mut reader = None;
        for step in 0..150 {
            let operation = generator.operation();
            let ends_process = matches!(
                operation,
                Operation::Reopen | Operation::ReopenEarlier(_) | Operation::Kill
            );
            if ends_process {
                // The disk of the next process has no leases.
                (held, reader) = (VecDeque::new(), None);
            }
            if matches!(operation, Operation::Turn(_) | Operation::ReopenEarlier(_)) {
                // Entries of older states expire.
                held.clear();
            }
            session.apply(&operation).unwrap();
            let open = || {
                let options = setting.on(&session.disk, &session.runtime);
                Db::open_secondary(session::FOLDER, options).unwrap()
            };
            let state = reader.get_or_insert_with(open).catch_up().unwrap();
            let found = contents(&state).unwrap();
            assert!(
                found == session.contents().unwrap(),
                "after step {step} of seed {seed} in {}: {operation:?}",
                setting.name
            );
            compared += 1;
            if step % 30 == 7 {
                check_copies(&state, &found, &session, setting);
            }
            held.push_back((found, state));
            if held.len() > HELD_MAX
                && let Some((then, state)) = held.pop_front()
            {
                assert!(contents(&state).unwrap() == then, "an older state");
                check_sound(&state);
            }
        }
        drop((held, reader));
        session.runtime.advance(Duration::from_secs(6));
        session.runtime.run_until_idle(JOBS_MAX);
        session.check_tables().unwrap();
    }
    assert!(compared > 1000, "{compared}");
}

/// Batch `number` sets the same number in both keyspaces.
fn write(db: &Db, [left, right]: [&Keyspace; 2], number: u32) {
    let mut batch = Batch::new();
    let length = if number.is_multiple_of(4) { 1300 } else { 150 };
    let value = [&number.to_be_bytes()[..], &vec![7; length]].concat();
    for keyspace in [left, right] {
        batch.insert(keyspace, "last", &value).unwrap();
        batch
            .insert(keyspace, number.to_be_bytes(), &value)
            .unwrap();
    }
    if number > 3 {
        batch
            .delete_range(left, ..(number - 3).to_be_bytes())
            .unwrap();
    }
    let durability = match number % 3 {
        0 => Durability::Sync,
        _ => Durability::Buffered,
    };
    db.write_with(&batch, durability).unwrap();
}

/// Loads the entry `loaded` with `number` in bulk, behind batch `number`.
fn load(db: &Db, number: u32) {
    let loaded = db.keyspace("loaded").unwrap();
    loaded.bulk_load([(number.to_be_bytes(), b"")]).unwrap();
}

/// The number of the last batch in `state`; everything in it must agree.
fn last_batch(state: &Db) -> u32 {
    let Ok(left) = state.keyspace("left") else {
        return 0;
    };
    let Ok(right) = state.keyspace("right") else {
        assert!(entries(&left).is_empty());
        return 0;
    };
    let (left, right) = (entries(&left), entries(&right));
    let Some(last) = right.get(&b"last"[..]) else {
        assert!(left.is_empty() && right.is_empty());
        return 0;
    };
    let number = u32::from_be_bytes(*last.first_chunk().unwrap());
    assert_eq!(left.get(&b"last"[..]), Some(last));
    assert_eq!(right.len(), number as usize + 1);
    let kept = if number > 3 { 4 } else { number as usize };
    assert_eq!(left.len(), kept + 1);
    let loaded = state.keyspace("loaded").map_or(0, |it| entries(&it).len());
    let before = (number as usize - 1) / LOAD_AFTER as usize;
    let with_last = number as usize / LOAD_AFTER as usize;
    assert!(
        (before..=with_last).contains(&loaded),
        "{loaded} at {number}"
    );
    number
}

/// Both keyspaces, many batches, and all that changes files.
fn work(db: &Db, runtime: &SteppedRuntime, numbers: std::ops::RangeInclusive<u32>) {
    let left = db.keyspace("left").unwrap();
    let right = db.keyspace("right").unwrap();
    db.keyspace("loaded").unwrap();
    for number in numbers {
        write(db, [&left, &right], number);
        match number % 7 {
            2 => db.flush().unwrap(),
            4 => {
                runtime.run_until_idle(JOBS_MAX);
            }
            5 => right.compact_range::<&[u8]>(..).unwrap(),
            _ => {}
        }
        if number.is_multiple_of(LOAD_AFTER) {
            load(db, number);
        }
    }
}

#[test]
fn at_each_change_of_the_disk_a_reader_finds_a_prefix() {
    let disk = SimDisk::new();
    let images = observe(&disk, |_, image| image.clone());
    let runtime = SteppedRuntime::new(3);
    let db = open(&disk, &runtime);
    work(&db, &runtime, 1..=16);
    db.close().unwrap();
    disk.stop_observing();
    let mut newest = 0;
    let mut looked = 0;
    for image in images {
        let disk = SimDisk::from_image(image);
        let runtime = SteppedRuntime::new(4);
        match Db::open_secondary(FOLDER, on(small(), &disk, &runtime)) {
            Ok(reader) => {
                let number = last_batch(&reader.db());
                assert!(
                    (newest..=newest + 1).contains(&number),
                    "{number} after {newest}"
                );
                newest = number;
                looked += 1;
            }
            Err(error) => assert_eq!((error.kind(), newest), (ErrorKind::NotFound, 0), "{error}"),
        }
    }
    assert_eq!(newest, 16);
    assert!(looked > 100, "{looked}");
}

#[test]
fn a_reader_follows_a_writer_that_comes_back() {
    let disk = SimDisk::new();
    let own = SteppedRuntime::new(5);
    drop(open(&disk, &own));
    let reader = secondary(&disk, &SteppedRuntime::new(6));
    let mut held = Vec::new();
    for round in 0..5 {
        let db = open(&disk, &own);
        work(&db, &own, round * 10 + 1..=round * 10 + 10);
        let state = reader.catch_up().unwrap();
        assert_eq!(last_batch(&state), round * 10 + 10);
        held.push(state);
        if round % 2 == 0 {
            db.close().unwrap();
        } else {
            drop(db);
        }
        for (round, state) in (1..).zip(&held) {
            assert_eq!(last_batch(state), round * 10);
        }
    }
    assert_eq!(last_batch(&reader.catch_up().unwrap()), 50);
}

/// Nobody reads the older state, so that none of its files is open.
#[test]
fn a_state_keeps_its_files_while_its_reader_has_newer_ones() {
    let disk = SimDisk::new();
    let (own, theirs) = (SteppedRuntime::new(17), SteppedRuntime::new(18));
    let db = open(&disk, &own);
    work(&db, &own, 1..=10);
    db.flush().unwrap();
    let reader = secondary(&disk, &theirs);
    let held = reader.db();
    for last in [20, 30, 40] {
        work(&db, &own, last - 9..=last);
        assert_eq!(last_batch(&reader.catch_up().unwrap()), last);
        theirs.advance(Duration::from_secs(6));
        theirs.run_until_idle(JOBS_MAX);
        own.advance(Duration::from_secs(6));
        own.run_until_idle(JOBS_MAX);
    }
    assert_eq!(last_batch(&held), 10);
}

#[test]
fn a_reader_that_sleeps_too_long_loses_its_files_and_nothing_else() {
    let disk = SimDisk::new();
    let (own, theirs) = (SteppedRuntime::new(7), SteppedRuntime::new(8));
    let db = open(&disk, &own);
    work(&db, &own, 1..=10);
    db.flush().unwrap();
    let reader = secondary(&disk, &theirs);
    let held = reader.db();
    work(&db, &own, 11..=30);
    own.run_until_idle(JOBS_MAX);
    assert!(db.stats().files_held_by_readers > 0);
    // It renews its lease in time, however long that is.
    for _ in 0..20 {
        theirs.advance(Duration::from_secs(6));
        theirs.run_until_idle(JOBS_MAX);
        own.advance(Duration::from_secs(6));
        own.run_until_idle(JOBS_MAX);
    }
    assert_eq!(last_batch(&held), 10);
    // Nothing of this state is open.
    let reader_asleep = secondary(&disk, &theirs);
    let held_asleep = reader_asleep.db();
    drop((held, reader));
    work(&db, &own, 31..=45);
    outlast_leases(&own);
    assert_eq!(db.stats().files_held_by_readers, 0);
    let left = held_asleep.keyspace("left").unwrap();
    let error = left
        .iter()
        .and_then(Iterator::collect::<windrow::Result<Vec<_>>>);
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(
        error.to_string().contains("given this reader up"),
        "{error}"
    );
    assert_eq!(last_batch(&reader_asleep.catch_up().unwrap()), 45);
    check_sound(&db);
}

#[test]
fn files_that_wait_outlive_the_process_that_has_dropped_them() {
    let disk = SimDisk::new();
    let own = SteppedRuntime::new(9);
    let db = open(&disk, &own);
    work(&db, &own, 1..=12);
    db.flush().unwrap();
    let theirs = SteppedRuntime::new(10);
    let reader = secondary(&disk, &theirs);
    work(&db, &own, 13..=30);
    own.run_until_idle(JOBS_MAX);
    drop(db);
    let db = open(&disk, &own);
    assert!(db.stats().files_held_by_readers > 0);
    assert_eq!(last_batch(&reader.db()), 12);
    let tables = count(&disk, "table");
    drop(reader);
    own.advance(Duration::from_secs(6));
    own.run_until_idle(JOBS_MAX);
    assert_eq!(db.stats().files_held_by_readers, 0);
    assert!(count(&disk, "table") < tables);
}

/// Ends the process of `db` without a close: nothing that it writes then arrives.
fn kill(disk: &SimDisk, db: Db) {
    let kinds = [
        OperationKind::Write,
        OperationKind::Sync,
        OperationKind::Create,
    ];
    disk.set_faults(kinds.map(|kind| Fault::io(kind, 0).from_then_on()));
    drop(db);
    disk.set_faults([]);
}

#[test]
fn a_reader_outlives_writers_that_are_killed() {
    let disk = SimDisk::new();
    let own = SteppedRuntime::new(15);
    drop(open(&disk, &own));
    let reader = secondary(&disk, &SteppedRuntime::new(16));
    let mut held = Vec::new();
    for round in 0..6 {
        let db = open(&disk, &own);
        work(&db, &own, round * 8 + 1..=round * 8 + 8);
        if round % 2 == 0 {
            held.push((round * 8 + 8, reader.catch_up().unwrap()));
        }
        kill(&disk, db);
        assert_eq!(last_batch(&reader.catch_up().unwrap()), round * 8 + 8);
        for (number, state) in &held {
            assert_eq!(last_batch(state), *number);
        }
    }
    let db = open(&disk, &own);
    assert_eq!(last_batch(&db), 48);
    drop((held, reader));
    own.advance(Duration::from_secs(6));
    own.run_until_idle(JOBS_MAX);
    assert_eq!(db.stats().files_held_by_readers, 0);
    check_sound(&db);
}

#[test]
fn a_reader_notices_that_the_newest_entries_are_lost() {
    for policy in CrashPolicy::all(1) {
        let disk = SimDisk::new();
        let own = SteppedRuntime::new(17);
        let db = open(&disk, &own);
        work(&db, &own, 1..=9);
        db.persist().unwrap();
        let left = db.keyspace("left").unwrap();
        let right = db.keyspace("right").unwrap();
        write(&db, [&left, &right], 10);
        write(&db, [&left, &right], 11);
        let reader = secondary(&disk, &SteppedRuntime::new(18));
        assert_eq!(last_batch(&reader.db()), 11);
        drop((left, right));
        kill(&disk, db);
        // As after a failed sync: the page cache has lost what the device has not.
        let lost = disk.crash(policy).image();
        let leases: Vec<_> = disk.image().files_with("lock").into_iter().collect();
        disk.edit(|image| {
            for path in image.files() {
                let is_lease = path.parent().is_some_and(|it| it.ends_with("readers"));
                if !is_lease {
                    let bytes = lost.read(&path);
                    image.remove(&path).unwrap();
                    if let Ok(bytes) = bytes {
                        image.write(&path, &bytes).unwrap();
                    }
                }
            }
        });
        assert_eq!(leases.len(), 1);
        let db = open(&disk, &own);
        let found = last_batch(&db);
        assert_eq!(last_batch(&reader.catch_up().unwrap()), found, "{policy:?}");
        work(&db, &own, found + 1..=found + 6);
        assert_eq!(
            last_batch(&reader.catch_up().unwrap()),
            found + 6,
            "{policy:?}"
        );
    }
}

#[test]
fn a_folder_can_have_a_database_again_and_readers_begin_anew() {
    let disk = SimDisk::new();
    let own = SteppedRuntime::new(19);
    let db = open(&disk, &own);
    work(&db, &own, 1..=12);
    let reader = secondary(&disk, &SteppedRuntime::new(20));
    db.close().unwrap();
    Db::destroy(FOLDER, &on(small(), &disk, &own)).unwrap();
    let db = open(&disk, &own);
    work(&db, &own, 1..=5);
    assert_eq!(last_batch(&reader.catch_up().unwrap()), 5);
}

#[test]
fn a_copy_of_a_read_only_open_is_durable() {
    for policy in CrashPolicy::all(2) {
        let disk = SimDisk::new();
        let own = SteppedRuntime::new(21);
        let db = open(&disk, &own);
        work(&db, &own, 1..=5);
        kill(&disk, db);
        let reader = Db::open_read_only(FOLDER, on(small(), &disk, &own)).unwrap();
        reader.checkpoint("/data/copy").unwrap();
        let disk = disk.crash(policy);
        let copy = Db::open("/data/copy", on(small(), &disk, &own)).unwrap();
        assert_eq!(last_batch(&copy), 5, "{policy:?}");
        check_sound(&copy);
    }
}

#[test]
fn leases_that_cannot_be_read_hold_everything() {
    let disk = SimDisk::new();
    let own = SteppedRuntime::new(11);
    let db = open(&disk, &own);
    work(&db, &own, 1..=12);
    own.run_until_idle(JOBS_MAX);
    drop(secondary(&disk, &SteppedRuntime::new(12)));
    disk.set_faults([Fault::io(OperationKind::List, 0).from_then_on()]);
    work(&db, &own, 13..=26);
    own.run_until_idle(JOBS_MAX);
    let held = db.stats().files_held_by_readers;
    assert!(held > 0);
    disk.set_faults([]);
    own.advance(Duration::from_secs(6));
    own.run_until_idle(JOBS_MAX);
    assert_eq!(db.stats().files_held_by_readers, 0);
    check_sound(&db);
}

#[test]
fn a_read_error_of_a_catch_up_passes() {
    let disk = SimDisk::new();
    let own = SteppedRuntime::new(13);
    let db = open(&disk, &own);
    work(&db, &own, 1..=5);
    let reader = secondary(&disk, &SteppedRuntime::new(14));
    for (number, operation) in (6..).zip([OperationKind::Read, OperationKind::Open]) {
        work(&db, &own, number..=number);
        disk.set_faults([Fault::io(operation, 0).from_then_on()]);
        assert_eq!(kind(reader.catch_up()), ErrorKind::Io, "{operation:?}");
        disk.set_faults([]);
        assert_eq!(last_batch(&reader.catch_up().unwrap()), number);
    }
}

//! Each operation of an archiving and of a restore to a state between backups fails in each way, and a writer is too fast.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use windrow::backup::RestoreTo;
use windrow::{Db, ErrorKind};
use windrow_sim::{SimDisk, SteppedRuntime};

use super::{
    check_states, contents, history, newest, open, options, restored, sequence, start, step,
};
use crate::backups::faults::each_fault;
use crate::backups::{RESTORED, backups, remove_all};
use crate::common::{FOLDER, check_sound, kind};

#[test]
fn after_a_failed_archiving_the_next_one_goes_on() {
    let start = start();
    start.db.archive(&start.backups).unwrap();
    let mut states = history(&start.db, &start.backups, 0..10, 5);
    step(&start.db, 10).unwrap();
    states.insert(sequence(&start.db), contents(&start.db));
    start.db.persist().unwrap();
    let image = start.disk.image();
    let mut failures = 0;
    each_fault(|fault| {
        let disk = SimDisk::from_image(image.clone());
        let runtime = SteppedRuntime::new(2);
        let db = open(&disk, &runtime, FOLDER).unwrap();
        let own = backups(&disk, &runtime).unwrap();
        disk.set_faults([fault]);
        let archived = db.archive(&own);
        let happened = !disk.fault_log().is_empty();
        disk.set_faults([]);
        if let Err(error) = &archived {
            failures += 1;
            assert!(happened, "{error}");
        }
        // The fault may have poisoned both.
        drop((own, db));
        let db = open(&disk, &runtime, FOLDER).unwrap();
        let own = backups(&disk, &runtime).unwrap();
        step(&db, 40).unwrap();
        db.archive(&own).unwrap();
        let check = own.verify(None).unwrap();
        assert!(check.is_sound(), "{check:?} after {fault}");
        let to = RestoreTo::Sequence(sequence(&db));
        let newest = own.list().unwrap().last().unwrap().number;
        let found = restored(&disk, &own, to, Some(newest)).unwrap();
        assert!(found.1 == contents(&db), "{fault}");
        let last = states.last_key_value().unwrap();
        let to = RestoreTo::Sequence(*last.0);
        match restored(&disk, &own, to, Some(1)) {
            Ok(found) => assert!(found.1 == *last.1, "{fault}"),
            // A new history has begun before the state was archived.
            Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound, "{error}"),
        }
        check_sound(&db);
        happened
    });
    assert!(failures > 60, "{failures}");
    check_states(
        &start.disk,
        &start.backups,
        &states
            .iter()
            .take(8)
            .map(|(&at, it)| (at, it.clone()))
            .collect(),
    );
}

#[test]
fn a_failed_restore_leaves_no_database_and_can_be_repeated() {
    let start = start();
    start.db.archive(&start.backups).unwrap();
    let states = history(&start.db, &start.backups, 0..15, 15);
    let (&number, state) = states.last_key_value().unwrap();
    let to = RestoreTo::Sequence(number);
    let image = start.disk.image();
    let mut failures = 0;
    each_fault(|fault| {
        let disk = SimDisk::from_image(image.clone());
        let own = backups(&disk, &start.runtime).unwrap();
        disk.set_faults([fault]);
        let made = own.restore_to(to, None, RESTORED);
        let happened = !disk.fault_log().is_empty();
        disk.set_faults([]);
        if let Err(error) = made {
            failures += 1;
            assert!(happened, "{error}");
            match open(&disk, &SteppedRuntime::new(2), RESTORED) {
                // The last sync may fail after everything else.
                Ok(db) => assert!(contents(&db) == *state, "{fault}"),
                Err(error) => assert!(
                    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Corruption),
                    "{error}"
                ),
            }
            remove_all(&disk, RESTORED);
            let found = restored(&disk, &own, to, None).unwrap();
            assert!(found.1 == *state, "{fault}");
        } else {
            let db = open(&disk, &SteppedRuntime::new(2), RESTORED).unwrap();
            assert!(contents(&db) == *state, "{fault}");
        }
        happened
    });
    assert!(failures > 50, "{failures}");
}

#[test]
fn an_archive_that_falls_behind_during_its_backup_says_so() {
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let mut options = options(&disk, &runtime);
    options.change_retention.bytes = 4 << 10;
    let db = Arc::new(Db::open(FOLDER, options).unwrap());
    for round in 0..20 {
        step(&db, round).unwrap();
    }
    let is_fast = Arc::new(AtomicBool::new(true));
    let write = {
        let (db, is_fast) = (Arc::downgrade(&db), Arc::clone(&is_fast));
        let runtime = runtime.clone();
        move |_| {
            if let Some(db) = db.upgrade().filter(|_| is_fast.load(Ordering::Relaxed)) {
                let keyspace = db.keyspace("main").unwrap();
                for key in 0..80_u8 {
                    keyspace.insert([key], [key; 200]).unwrap();
                }
                runtime.run_until_idle(1000);
            }
        }
    };
    let own = backups(&disk, &runtime).unwrap().with_progress(write);
    assert_eq!(kind(db.archive(&own)), ErrorKind::FellBehind);
    is_fast.store(false, Ordering::Relaxed);
    db.archive(&own).unwrap();
    step(&db, 20).unwrap();
    db.archive(&own).unwrap();
    let to = RestoreTo::Sequence(sequence(&db));
    let newest = own.newest().unwrap();
    let found = restored(&disk, &own, to, newest).unwrap();
    assert!(found.1 == contents(&db));
}

/// What an error hides may be the newest state, so another one is no answer.
#[test]
fn a_restore_to_a_time_gives_the_newest_state_or_an_error() {
    let start = start();
    start.db.archive(&start.backups).unwrap();
    history(&start.db, &start.backups, 0..10, 5);
    start.db.backup(&start.backups).unwrap();
    let newest_state = (sequence(&start.db), contents(&start.db));
    let image = start.disk.image();
    let mut failures = 0;
    each_fault(|fault| {
        let disk = SimDisk::from_image(image.clone());
        let own = backups(&disk, &start.runtime).unwrap();
        for to in [newest(), RestoreTo::Sequence(newest_state.0)] {
            disk.set_faults([fault]);
            let made = own.restore_to(to, None, RESTORED);
            disk.set_faults([]);
            match made {
                Ok(made) => assert_eq!(made.sequence, newest_state.0, "{to:?}, {fault}"),
                Err(error) => {
                    failures += 1;
                    assert_ne!(error.kind(), ErrorKind::NotFound, "{error}, {fault}");
                }
            }
            remove_all(&disk, RESTORED);
        }
        !disk.fault_log().is_empty()
    });
    assert!(failures > 50, "{failures}");
}

//! The power fails after each operation of an archiving, of a purge, and of a restore to a state between backups.

use windrow::ErrorKind;
use windrow::backup::{Purge, RestoreTo};
use windrow_sim::disk::OperationKind;
use windrow_sim::{CrashPolicy, SimDisk, SteppedRuntime};

use super::{
    Start, States, check_states, contents, history, open, restored, sequence, start, step,
};
use crate::backups::crashes::{count_syncs, policies, steps};
use crate::backups::{BACKUPS, RESTORED, backups, files};
use crate::common::{FOLDER, check_sound};

/// Archives once, and writes some more. Returns the states so far.
fn begin(start: &Start) -> States {
    start.db.archive(&start.backups).unwrap();
    history(&start.db, &start.backups, 0..14, 7)
}

#[test]
fn a_crash_leaves_an_archive_that_goes_on() {
    let start = start();
    let mut states = begin(&start);
    for round in 14..22 {
        step(&start.db, round).unwrap();
        states.insert(sequence(&start.db), contents(&start.db));
    }
    let archived = *states.keys().next_back().unwrap();
    let before = *states.keys().nth(12).unwrap();
    let seen = steps(&start.disk, || {
        start.db.archive(&start.backups).unwrap();
    });
    // A piece and a description, each with the folder, and the acknowledgement.
    assert!(count_syncs(&seen) >= 5, "{}", count_syncs(&seen));
    let (mut with, mut without) = (0, 0);
    for (event, image) in &seen {
        for policy in policies(event) {
            let disk = SimDisk::from_image(image.crash(policy));
            let runtime = SteppedRuntime::new(2);
            let backups = backups(&disk, &runtime).unwrap();
            let check = backups.verify(None).unwrap();
            assert!(check.is_sound(), "{check:?} after {event:?}");
            let reachable = backups.reachable().unwrap();
            let end = *reachable.states[0].sequences[0].end();
            with += usize::from(end == archived);
            without += usize::from(end < archived);
            let known = States::from([(before, states[&before].clone())]);
            check_states(&disk, &backups, &known);
            if end == archived {
                let known = States::from([(end, states[&end].clone())]);
                check_states(&disk, &backups, &known);
            }
            // It goes on where it has ended, in the same history.
            let db = open(&disk, &runtime, FOLDER).unwrap();
            step(&db, 40).unwrap();
            let archived = db.archive(&backups).unwrap();
            assert!(archived.backup.is_none(), "after {event:?}");
            let to = RestoreTo::Sequence(archived.sequence);
            let found = restored(&disk, &backups, to, None).unwrap();
            assert!(found.1 == contents(&db), "after {event:?}");
        }
    }
    assert!(with > 5 && without > 30, "{with} and {without}");
    let disk = SimDisk::from_image(seen.last().unwrap().1.crash(CrashPolicy::DropUnsynced));
    let backups = backups(&disk, &SteppedRuntime::new(2)).unwrap();
    check_states(&disk, &backups, &states);
}

/// The logs are synced before they are read. A database that has lost what its archive holds would go on in another way.
#[test]
fn what_an_archive_holds_its_database_does_not_lose() {
    let start = start();
    // The first archiving makes a backup, the second one writes a stretch.
    for rounds in [11..13, 24..26] {
        for round in rounds {
            step(&start.db, round).unwrap();
        }
        let (expected, number) = (contents(&start.db), sequence(&start.db));
        let durable = start.disk.crash(CrashPolicy::DropUnsynced);
        let durable = open(&durable, &SteppedRuntime::new(2), FOLDER).unwrap();
        assert!(sequence(&durable) < number);
        let seen = steps(&start.disk, || {
            let archived = start.db.archive(&start.backups).unwrap();
            assert_eq!(archived.sequence, number);
        });
        let mut with = 0;
        for (event, image) in &seen {
            for policy in policies(event) {
                let disk = SimDisk::from_image(image.crash(policy));
                let runtime = SteppedRuntime::new(2);
                let backups = backups(&disk, &runtime).unwrap();
                let reachable = backups.reachable().unwrap();
                let ranges = reachable.states.iter().flat_map(|it| &it.sequences);
                if ranges.map(|range| *range.end()).max() < Some(number) {
                    continue;
                }
                with += 1;
                let db = open(&disk, &runtime, FOLDER).unwrap();
                assert!(sequence(&db) >= number, "after {event:?}");
                assert!(contents(&db) == expected, "after {event:?}");
            }
        }
        assert!(with > 5, "{with}");
    }
}

/// A process ends after it has renamed the description of a stretch, whose name is not durable yet. The next one finds it.
#[test]
fn what_an_ended_process_has_archived_is_durable_before_it_is_acknowledged() {
    let start = start();
    let mut states = begin(&start);
    step(&start.db, 14).unwrap();
    states.insert(sequence(&start.db), contents(&start.db));
    let first = steps(&start.disk, || {
        start.db.archive(&start.backups).unwrap();
    });
    let renames = first.iter().filter(|(event, _)| {
        event.kind == OperationKind::Rename && event.path.starts_with(BACKUPS)
    });
    let mut ended = 0;
    for (_, image) in renames {
        ended += 1;
        let disk = SimDisk::from_image(image.clone());
        let runtime = SteppedRuntime::new(3);
        let db = open(&disk, &runtime, FOLDER).unwrap();
        let own = backups(&disk, &runtime).unwrap();
        step(&db, 40).unwrap();
        let second = steps(&disk, || {
            db.archive(&own).unwrap();
        });
        for (event, image) in &second {
            for policy in policies(event) {
                let disk = SimDisk::from_image(image.crash(policy));
                let runtime = SteppedRuntime::new(4);
                let db = open(&disk, &runtime, FOLDER).unwrap();
                let backups = backups(&disk, &runtime).unwrap();
                let archived = db.archive(&backups).unwrap();
                assert!(archived.backup.is_none(), "after {event:?}");
                let check = backups.verify(None).unwrap();
                assert!(check.is_sound(), "{check:?} after {event:?}");
                check_states(
                    &disk,
                    &backups,
                    &States::from([states
                        .last_key_value()
                        .map(|(&sequence, state)| (sequence, state.clone()))
                        .unwrap()]),
                );
            }
        }
    }
    assert_eq!(ended, 2);
}

#[test]
fn a_crash_during_a_purge_leaves_no_stretch_without_its_pieces() {
    let start = start();
    begin(&start);
    start.db.backup(&start.backups).unwrap();
    let states = history(&start.db, &start.backups, 14..21, 7);
    let (&number, state) = states.last_key_value().unwrap();
    let newest = States::from([(number, state.clone())]);
    let purge = Purge::KeepNewest(1);
    let seen = steps(&start.disk, || {
        let purged = start.backups.purge(purge).unwrap();
        assert!(purged.stretches > 1 && purged.pieces > 1, "{purged:?}");
    });
    // The manifest, the stretches, the pieces.
    assert_eq!(count_syncs(&seen), 3);
    let left = files(&start.disk, BACKUPS);
    for (event, image) in &seen {
        for policy in policies(event) {
            let disk = SimDisk::from_image(image.crash(policy));
            let backups = backups(&disk, &SteppedRuntime::new(2)).unwrap();
            let check = backups.verify(None).unwrap();
            assert!(check.is_sound(), "{check:?} after {event:?}");
            check_states(&disk, &backups, &newest);
            // The next purge does the rest.
            backups.purge(purge).unwrap();
            assert_eq!(files(&disk, BACKUPS), left);
        }
    }
}

#[test]
fn a_crash_leaves_all_of_a_restored_state_or_none_that_opens() {
    let start = start();
    let states = begin(&start);
    let (&number, state) = states.iter().nth(11).unwrap();
    let seen = steps(&start.disk, || {
        let to = RestoreTo::Sequence(number);
        start.backups.restore_to(to, None, RESTORED).unwrap();
    });
    assert!(count_syncs(&seen) > 10);
    let (mut complete, mut incomplete) = (0, 0);
    for (event, image) in &seen {
        for policy in policies(event) {
            let disk = SimDisk::from_image(image.crash(policy));
            match open(&disk, &SteppedRuntime::new(2), RESTORED) {
                Ok(db) => {
                    complete += 1;
                    assert_eq!(sequence(&db), number);
                    assert!(contents(&db) == *state, "after {event:?}");
                    check_sound(&db);
                }
                Err(error) => {
                    incomplete += 1;
                    let kind = error.kind();
                    assert!(
                        matches!(kind, ErrorKind::NotFound | ErrorKind::Corruption),
                        "{error}"
                    );
                }
            }
        }
    }
    assert!(
        complete > 3 && incomplete > 50,
        "{complete} and {incomplete}"
    );
    let disk = SimDisk::from_image(seen.last().unwrap().1.crash(CrashPolicy::DropUnsynced));
    let db = open(&disk, &SteppedRuntime::new(2), RESTORED).unwrap();
    assert!(contents(&db) == *state);
    assert!(
        files(&disk, RESTORED)
            .iter()
            .all(|path| !path.ends_with("REPAIRING"))
    );
}

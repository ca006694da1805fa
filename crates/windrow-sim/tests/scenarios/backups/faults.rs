//! Each operation of a backup, a restore and a purge fails in each way.

use windrow::ErrorKind;
use windrow::backup::Purge;
use windrow_sim::disk::{AfterFailedSync, Effect, Fault, OperationKind};
use windrow_sim::{CrashPolicy, SimDisk, SteppedRuntime};

use super::{
    BACKUPS, RESTORED, backups, contents, files, numbers, open, remove_all, restored, two_backups,
    write,
};
use crate::common::{FOLDER, check_sound};

const EFFECTS: [Effect; 6] = [
    Effect::Io,
    Effect::NoSpace,
    Effect::Interrupted,
    Effect::Short,
    Effect::TooManyFiles,
    Effect::FlippedBit,
];

/// Calls `test` with each fault, until it returns that the fault has not happened.
pub(crate) fn each_fault(mut test: impl FnMut(Fault) -> bool) {
    for kind in OperationKind::ALL {
        for effect in EFFECTS {
            for at in 0.. {
                if !test(Fault::io(kind, at).with(effect)) {
                    break;
                }
            }
        }
    }
}

#[test]
fn a_failed_backup_does_not_exist_and_the_next_one_continues() {
    let mut failures = 0;
    each_fault(|fault| {
        let disk = SimDisk::new();
        let runtime = SteppedRuntime::new(1);
        let db = open(&disk, &runtime, FOLDER).unwrap();
        let backups = backups(&disk, &runtime).unwrap();
        write(&db, 0..60, 0);
        db.wait_idle().unwrap();
        db.backup(&backups).unwrap();
        let first = contents(&db);
        write(&db, 60..90, 0);
        db.persist().unwrap();
        let second = contents(&db);
        disk.set_faults([fault]);
        let made = db.backup(&backups);
        let happened = !disk.fault_log().is_empty();
        disk.set_faults([]);
        if let Err(error) = &made {
            failures += 1;
            assert!(happened, "{error}");
            // The last sync of the folder may fail after everything else.
            let known = numbers(&backups);
            assert_eq!(known, [1], "{fault}: {error}");
        } else {
            assert_eq!(restored(&disk, &backups, 2), second, "{fault}");
        }
        // After a failed sync of the folder, it is opened again.
        drop(backups);
        let backups = super::backups(&disk, &runtime).unwrap();
        // A failed sync of its log poisons a database. Nothing else affects it.
        if db.persist().is_ok() {
            write(&db, 90..95, 0);
            let made = db.backup(&backups).unwrap();
            assert_eq!(
                restored(&disk, &backups, made.number),
                contents(&db),
                "{fault}"
            );
            check_sound(&db);
        }
        assert_eq!(restored(&disk, &backups, 1), first, "{fault}");
        happened
    });
    assert!(failures > 100, "{failures}");
}

#[test]
fn a_failed_restore_leaves_no_database_and_can_be_repeated() {
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let db = open(&disk, &runtime, FOLDER).unwrap();
    write(&db, 0..90, 0);
    db.wait_idle().unwrap();
    db.backup(&backups(&disk, &runtime).unwrap()).unwrap();
    let expected = contents(&db);
    let image = disk.image();
    let mut failures = 0;
    each_fault(|fault| {
        let disk = SimDisk::from_image(image.clone());
        let backups = backups(&disk, &runtime).unwrap();
        disk.set_faults([fault]);
        let made = backups.restore(1, RESTORED);
        let happened = !disk.fault_log().is_empty();
        disk.set_faults([]);
        if let Err(error) = made {
            failures += 1;
            assert!(happened, "{error}");
            // The names may all be there when the last sync of the folder fails.
            match open(&disk, &SteppedRuntime::new(2), RESTORED) {
                Ok(db) => assert_eq!(contents(&db), expected),
                Err(error) => assert!(
                    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Corruption),
                    "{error}"
                ),
            }
            remove_all(&disk, RESTORED);
            assert_eq!(restored(&disk, &backups, 1), expected, "{fault}");
        } else {
            let db = open(&disk, &SteppedRuntime::new(2), RESTORED).unwrap();
            assert_eq!(contents(&db), expected, "{fault}");
        }
        happened
    });
    assert!(failures > 50, "{failures}");
}

#[test]
fn a_failed_purge_leaves_whole_backups_and_can_be_repeated() {
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let db = open(&disk, &runtime, FOLDER).unwrap();
    let before = backups(&disk, &runtime).unwrap();
    for round in 0..3 {
        write(&db, round * 60..round * 60 + 60, 0);
        db.wait_idle().unwrap();
        db.backup(&before).unwrap();
    }
    drop(before);
    let expected = contents(&db);
    let image = disk.image();
    let mut failures = 0;
    each_fault(|fault| {
        let disk = SimDisk::from_image(image.clone());
        let backups = backups(&disk, &runtime).unwrap();
        disk.set_faults([fault]);
        let made = backups.purge(Purge::KeepNewest(1));
        let happened = !disk.fault_log().is_empty();
        disk.set_faults([]);
        failures += usize::from(made.is_err());
        assert!(made.is_ok() || happened);
        let left = numbers(&backups);
        assert!(left.contains(&3), "{left:?} after {fault}");
        drop(backups);
        let backups = super::backups(&disk, &runtime).unwrap();
        backups.purge(Purge::KeepNewest(1)).unwrap();
        assert_eq!(numbers(&backups), [3]);
        assert_eq!(restored(&disk, &backups, 3), expected, "{fault}");
        happened
    });
    assert!(failures > 10, "{failures}");
}

/// What the failed sync would have made durable may be lost, even if a later sync succeeds.
#[test]
fn after_a_failed_sync_of_the_folder_nothing_relies_on_it() {
    let mut refused = 0;
    for after in [
        AfterFailedSync::LostAtCrash,
        AfterFailedSync::Reverted,
        AfterFailedSync::Durable,
    ] {
        for is_purge in [false, true] {
            for at in 0.. {
                let disk = SimDisk::new();
                let runtime = SteppedRuntime::new(1);
                let db = open(&disk, &runtime, FOLDER).unwrap();
                let backups = backups(&disk, &runtime).unwrap();
                let mut states = two_backups(&db, &backups, 40);
                write(&db, 80..100, 0);
                states.push(contents(&db));
                let call = || {
                    if is_purge {
                        backups.purge(Purge::KeepNewest(1)).map(drop)
                    } else {
                        db.backup(&backups).map(drop)
                    }
                };
                disk.set_faults([Fault::io(OperationKind::SyncDir, at).then(after)]);
                let made = call();
                let happened = !disk.fault_log().is_empty();
                disk.set_faults([]);
                if !happened {
                    made.unwrap();
                    break;
                }
                assert_eq!(made.unwrap_err().kind(), ErrorKind::Io);
                for made in [call(), backups.purge(Purge::Backup(2)).map(drop)] {
                    refused += usize::from(made.is_err_and(|it| it.kind() == ErrorKind::Poisoned));
                }
                for policy in [CrashPolicy::DropUnsynced, CrashPolicy::KeepAll]
                    .into_iter()
                    .chain((0..4).map(CrashPolicy::Random))
                {
                    let disk = SimDisk::from_image(disk.image().crash(policy));
                    let backups = super::backups(&disk, &runtime).unwrap();
                    for number in numbers(&backups) {
                        let state = &states[usize::try_from(number).unwrap() - 1];
                        assert_eq!(restored(&disk, &backups, number), *state, "{at} {after:?}");
                    }
                }
            }
        }
    }
    assert!(refused > 30, "{refused}");
}

/// The device loses a write, or writes elsewhere. Nothing reports it, and no restore makes a wrong database of it.
#[test]
fn what_a_device_has_written_wrong_is_never_restored() {
    let mut refused = 0;
    for effect in [Effect::LostWrite, Effect::Misdirected] {
        for at in 0.. {
            let disk = SimDisk::new();
            let runtime = SteppedRuntime::new(1);
            let db = open(&disk, &runtime, FOLDER).unwrap();
            let backups = backups(&disk, &runtime).unwrap();
            write(&db, 0..60, 0);
            db.wait_idle().unwrap();
            disk.set_faults([Fault::io(OperationKind::Write, at).with(effect)]);
            let made = db.backup(&backups);
            let happened = !disk.fault_log().is_empty();
            disk.set_faults([]);
            if !happened {
                break;
            }
            made.unwrap();
            let sound = backups.verify(None).unwrap().is_sound();
            let restored = backups.restore(1, RESTORED);
            assert_eq!(restored.is_ok(), sound);
            if let Err(error) = restored {
                refused += 1;
                assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
                assert!(error.to_string().contains("backup 1"), "{error}");
                assert!(
                    files(&disk, RESTORED)
                        .iter()
                        .all(|path| path.ends_with("LOCK"))
                );
            }
            assert!(!files(&disk, BACKUPS).is_empty());
        }
    }
    assert!(refused > 10, "{refused}");
}

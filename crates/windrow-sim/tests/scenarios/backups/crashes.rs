//! The power fails after each operation of a backup, a purge and a restore.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use windrow::backup::{BackupReport, Backups, Purge};
use windrow::{Db, ErrorKind};
use windrow_sim::disk::{Event, Image, OperationKind};
use windrow_sim::{CrashPolicy, SimDisk, SteppedRuntime};

use super::{
    BACKUPS, RESTORED, backups, contents, files, numbers, open, restored, stored_bytes,
    two_backups, write,
};
use crate::common::{Entries, FOLDER, check_sound, observe};

/// A database with two backups, of which the test makes or removes more.
struct Start {
    disk: SimDisk,
    db: Db,
    backups: Backups,
    /// What each backup holds.
    states: Vec<Entries>,
}

fn start() -> Start {
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let db = open(&disk, &runtime, FOLDER).unwrap();
    let backups = backups(&disk, &runtime).unwrap();
    let states = two_backups(&db, &backups, 100);
    Start {
        disk,
        db,
        backups,
        states,
    }
}

/// What `call` does to the disk, one step after the other.
pub(crate) fn steps(disk: &SimDisk, call: impl FnOnce()) -> Vec<(Event, Image)> {
    let points = observe(disk, |event, image| (event.clone(), image.clone()));
    call();
    disk.stop_observing();
    points.try_iter().collect()
}

pub(crate) fn policies(event: &Event) -> impl Iterator<Item = CrashPolicy> {
    let random = event.index * 8..event.index * 8 + 4;
    [CrashPolicy::DropUnsynced, CrashPolicy::KeepAll]
        .into_iter()
        .chain(random.map(CrashPolicy::Random))
}

/// How many of `steps` make something durable.
pub(crate) fn count_syncs(steps: &[(Event, Image)]) -> usize {
    let is_sync = |(event, _): &&(Event, Image)| {
        matches!(event.kind, OperationKind::Sync | OperationKind::SyncDir)
    };
    steps.iter().filter(is_sync).count()
}

#[test]
fn a_crash_leaves_all_of_a_backup_or_none() {
    let mut start = start();
    write(&start.db, 200..260, 0);
    start.states.push(contents(&start.db));
    let steps = steps(&start.disk, || {
        start.db.backup(&start.backups).unwrap();
    });
    assert!(count_syncs(&steps) > 10);
    let (mut with, mut without) = (0, 0);
    for (event, image) in &steps {
        for policy in policies(event) {
            let disk = SimDisk::from_image(image.crash(policy));
            let runtime = SteppedRuntime::new(2);
            let backups = backups(&disk, &runtime).unwrap();
            let numbers = numbers(&backups);
            match &numbers[..] {
                [1, 2] => without += 1,
                [1, 2, 3] => with += 1,
                other => panic!("{other:?} after {event:?}"),
            }
            let newest = numbers.len();
            let restored = restored(&disk, &backups, newest as u64);
            assert!(restored == start.states[newest - 1], "after {event:?}");
            if policy == CrashPolicy::KeepAll {
                // The next attempt continues.
                let db = open(&disk, &runtime, FOLDER).unwrap();
                let number = db.backup(&backups).unwrap().number;
                assert_eq!(super::restored(&disk, &backups, number), contents(&db));
            }
        }
    }
    assert!(with > 2 && without > 100, "{with} and {without}");
    // It is durable when the call returns.
    let disk = SimDisk::from_image(steps.last().unwrap().1.crash(CrashPolicy::DropUnsynced));
    let backups = backups(&disk, &SteppedRuntime::new(2)).unwrap();
    assert_eq!(numbers(&backups), [1, 2, 3]);
}

/// The logs are synced before they are copied. A database that has lost what its backup holds would go on in another way.
#[test]
fn what_a_backup_holds_its_database_does_not_lose() {
    let start = start();
    write(&start.db, 200..203, 0);
    let (expected, sequence) = (contents(&start.db), start.db.stats().sequence);
    let durable = start.disk.crash(CrashPolicy::DropUnsynced);
    let durable = open(&durable, &SteppedRuntime::new(2), FOLDER).unwrap();
    assert!(durable.stats().sequence < sequence);
    let steps = steps(&start.disk, || {
        let made = start.db.backup(&start.backups).unwrap();
        assert_eq!(made.sequence, sequence);
    });
    let mut with = 0;
    for (event, image) in &steps {
        for policy in policies(event) {
            let disk = SimDisk::from_image(image.crash(policy));
            let runtime = SteppedRuntime::new(2);
            let backups = backups(&disk, &runtime).unwrap();
            if !numbers(&backups).contains(&3) {
                continue;
            }
            with += 1;
            let db = open(&disk, &runtime, FOLDER).unwrap();
            assert!(db.stats().sequence >= sequence, "after {event:?}");
            assert!(contents(&db) == expected, "after {event:?}");
        }
    }
    assert!(with > 5, "{with}");
}

/// The bytes of pieces that `made` has copied.
fn piece_bytes(disk: &SimDisk, made: &BackupReport) -> u64 {
    let manifest = Path::new(BACKUPS).join(format!("{:06}.backup", made.number));
    made.copied_bytes - disk.image().read(&manifest).unwrap().len() as u64
}

/// No object that a crash has left is put again.
#[test]
fn a_backup_after_a_crash_copies_nothing_again() {
    let start = start();
    write(&start.db, 200..300, 0);
    start.db.flush().unwrap();
    start.db.wait_idle().unwrap();
    let objects = |disk: &SimDisk| {
        files(disk, BACKUPS)
            .into_iter()
            .collect::<BTreeSet<PathBuf>>()
    };
    let known = objects(&start.disk);
    let mut made = None;
    let first = steps(&start.disk, || {
        made = Some(start.db.backup(&start.backups).unwrap());
    });
    let whole = piece_bytes(&start.disk, &made.unwrap());
    let (mut least, mut left) = (whole, 0);
    for (event, image) in &first {
        for policy in [CrashPolicy::DropUnsynced, CrashPolicy::KeepAll] {
            let disk = SimDisk::from_image(image.crash(policy));
            let runtime = SteppedRuntime::new(2);
            let backups = backups(&disk, &runtime).unwrap();
            if numbers(&backups) != [1, 2] {
                continue;
            }
            let durable = objects(&disk);
            left += durable.difference(&known).count();
            let before = stored_bytes(&disk);
            let db = open(&disk, &runtime, FOLDER).unwrap();
            let mut made = None;
            let second = steps(&disk, || made = Some(db.backup(&backups).unwrap()));
            let made = made.unwrap();
            let is_put = |event: &Event| {
                event.kind == OperationKind::Create && event.path.starts_with(BACKUPS)
            };
            for (put, _) in second.iter().filter(|(event, _)| is_put(event)) {
                // An object has another ending until it is complete.
                let object = put.path.with_extension("");
                let name = object.display();
                assert!(!durable.contains(&object), "{name} after {event:?}");
            }
            assert_eq!(made.copied_bytes, stored_bytes(&disk) - before);
            least = least.min(piece_bytes(&disk, &made));
            assert_eq!(restored(&disk, &backups, made.number), contents(&db));
        }
    }
    // Most of it was there after the last crashes.
    assert!(left > 10 && least * 2 < whole, "{left}, {least} of {whole}");
}

/// A process ends after it has renamed an object. The next one finds the object, which is not durable yet.
#[test]
fn what_an_ended_process_has_left_is_durable_before_a_backup_relies_on_it() {
    let start = start();
    write(&start.db, 200..230, 0);
    let first = steps(&start.disk, || {
        start.db.backup(&start.backups).unwrap();
    });
    let is_rename =
        |event: &Event| event.kind == OperationKind::Rename && event.path.starts_with(BACKUPS);
    let mut ended = 0;
    for (_, image) in first.iter().filter(|(event, _)| is_rename(event)) {
        ended += 1;
        let disk = SimDisk::from_image(image.clone());
        let runtime = SteppedRuntime::new(3);
        let db = open(&disk, &runtime, FOLDER).unwrap();
        let backups = backups(&disk, &runtime).unwrap();
        let second = steps(&disk, || {
            db.backup(&backups).unwrap();
        });
        for (event, image) in &second {
            for policy in policies(event) {
                let disk = SimDisk::from_image(image.crash(policy));
                numbers(&super::backups(&disk, &SteppedRuntime::new(4)).unwrap());
            }
        }
    }
    assert!(ended > 3, "{ended}");
}

/// A process ends after it has removed a manifest, and the removal is not durable yet. The next purge deletes pieces.
#[test]
fn what_an_ended_process_has_removed_stays_removed_when_a_purge_goes_on() {
    let start = start();
    let purge = Purge::KeepNewest(1);
    let first = steps(&start.disk, || drop(start.backups.purge(purge).unwrap()));
    let mut first = first.iter();
    let removal = first.find(|(event, _)| event.is(OperationKind::Remove, "backup"));
    let disk = SimDisk::from_image(removal.unwrap().1.clone());
    let backups = backups(&disk, &SteppedRuntime::new(3)).unwrap();
    let second = steps(&disk, || drop(backups.purge(purge).unwrap()));
    assert!(second.len() > 3);
    for (event, image) in &second {
        for policy in policies(event) {
            let disk = SimDisk::from_image(image.crash(policy));
            let backups = super::backups(&disk, &SteppedRuntime::new(4)).unwrap();
            assert_eq!(numbers(&backups), [2], "after {event:?}");
        }
    }
}

#[test]
fn a_crash_during_a_purge_leaves_whole_backups() {
    let mut start = start();
    write(&start.db, 200..300, 0);
    start.db.wait_idle().unwrap();
    start.db.backup(&start.backups).unwrap();
    start.states.push(contents(&start.db));
    let purge = Purge::KeepNewest(1);
    let steps = steps(&start.disk, || drop(start.backups.purge(purge).unwrap()));
    assert_eq!(count_syncs(&steps), 2);
    let left = files(&start.disk, BACKUPS);
    let mut before = 0;
    for (event, image) in &steps {
        for policy in policies(event) {
            let disk = SimDisk::from_image(image.crash(policy));
            let backups = backups(&disk, &SteppedRuntime::new(2)).unwrap();
            let numbers = numbers(&backups);
            assert_eq!(numbers.last(), Some(&3), "after {event:?}");
            before += usize::from(numbers.len() > 1);
            for number in numbers {
                let index = usize::try_from(number).unwrap() - 1;
                let restored = restored(&disk, &backups, number);
                assert!(restored == start.states[index], "after {event:?}");
            }
            // The next purge does the rest.
            backups.purge(purge).unwrap();
            assert_eq!(files(&disk, BACKUPS), left);
        }
    }
    assert!(
        before > 2 && steps.len() > 10,
        "{before} of {}",
        steps.len()
    );
    let disk = SimDisk::from_image(steps.last().unwrap().1.crash(CrashPolicy::DropUnsynced));
    assert_eq!(files(&disk, BACKUPS), left);
}

#[test]
fn a_crash_leaves_all_of_a_restored_database_or_none_that_opens() {
    let start = start();
    let steps = steps(&start.disk, || start.backups.restore(2, RESTORED).unwrap());
    assert!(count_syncs(&steps) > 10);
    let (mut complete, mut incomplete) = (0, 0);
    for (event, image) in &steps {
        // `CURRENT` is there before the folder is synced: many mixtures of names that may be lost.
        let is_rename = event.kind == OperationKind::Rename;
        let mixtures = if is_rename { 0..64 } else { 0..0 };
        for policy in policies(event).chain(mixtures.map(CrashPolicy::Random)) {
            let disk = SimDisk::from_image(image.crash(policy));
            match open(&disk, &SteppedRuntime::new(2), RESTORED) {
                Ok(db) => {
                    complete += 1;
                    assert!(contents(&db) == start.states[1], "after {event:?}");
                    check_sound(&db);
                }
                Err(error) => {
                    incomplete += 1;
                    let kind = error.kind();
                    assert!(
                        matches!(kind, ErrorKind::NotFound | ErrorKind::Corruption),
                        "{error}"
                    );
                    let current = Path::new(RESTORED).join("CURRENT");
                    assert!(disk.image().read(&current).is_err(), "{error}");
                }
            }
        }
    }
    assert!(
        complete > 3 && incomplete > 50,
        "{complete} and {incomplete}"
    );
    let disk = SimDisk::from_image(steps.last().unwrap().1.crash(CrashPolicy::DropUnsynced));
    let db = open(&disk, &SteppedRuntime::new(2), RESTORED).unwrap();
    assert!(contents(&db) == start.states[1]);
}

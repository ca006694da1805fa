//! The copy of the example `replica` becomes equal to its source again after a crash of either or both, wherever that was.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use windrow::{Batch, Change, Db, ErrorKind, Keyspace, Result};
use windrow_sim::disk::Image;
use windrow_sim::{CrashPolicy, SimDisk, SteppedRuntime};

use crate::common::{FOLDER, check_sound, entries, kind, observe, on, small};

#[path = "../../../windrow/examples/replica/replica.rs"]
mod replica;

use replica::{NOTES, Replica};

const CONSUMER: &str = "replica";

fn open(disk: &SimDisk) -> Db {
    Db::open(FOLDER, on(small(), disk, &SteppedRuntime::new(5))).unwrap()
}

fn catch_up(source: &Db, copy: &Db) -> Result<()> {
    let replica = Replica::new(copy.clone())?;
    replica.catch_up(source, &source.consumer(CONSUMER)?)
}

fn check_equal(source: &Db, copy: &Db, what: &str) {
    let mut names = copy.keyspace_names();
    names.retain(|name| name != NOTES);
    assert_eq!(names, source.keyspace_names(), "{what}");
    for name in names {
        let all = |db: &Db| entries(&db.keyspace(&name).unwrap());
        assert_eq!(all(copy), all(source), "{what}, {name}");
    }
}

fn write(source: &Db, keyspace: &Keyspace, round: u8) -> Result<()> {
    let other = source.keyspace("other")?;
    for key in 0..12_u8 {
        let mut batch = Batch::new();
        let length = if key == round { 1300 } else { 120 };
        batch.insert(keyspace, [key], vec![round; length])?;
        batch.insert(&other, [round, key], "")?;
        source.write(&batch)?;
    }
    other.delete_range(..[round.saturating_sub(1)])?;
    match round {
        1 => drop(source.keyspace("more")?),
        2 => source.swap_keyspaces("k", "more")?,
        3 => source.drop_keyspace("k")?,
        4 => keyspace.rename("k")?,
        5 => drop(keyspace.bulk_load([(b"loaded", b"as a table")])?),
        _ => {}
    }
    if round % 2 == 1 {
        source.flush()
    } else {
        Ok(())
    }
}

/// Which of both crash: the source, or the copy, or both.
const CRASHED: [[bool; 2]; 3] = [[true, false], [false, true], [true, true]];

/// Both disks at each change of either.
fn observe_both(disks: &[SimDisk; 2]) -> [Receiver<[Image; 2]>; 2] {
    [(0, 1), (1, 0)].map(|(own, other): (usize, usize)| {
        let other_disk = disks[other].clone();
        observe(&disks[own], move |_, image| {
            let mut both = [image.clone(), other_disk.image()];
            if own == 1 {
                both.swap(0, 1);
            }
            both
        })
    })
}

fn after_crash(both: &[Image; 2], crashed: [bool; 2], policy: CrashPolicy) -> [SimDisk; 2] {
    [0, 1].map(|index| {
        let image = &both[index];
        if crashed[index] {
            SimDisk::from_image(image.crash(policy))
        } else {
            SimDisk::from_image(image.clone()).end_process()
        }
    })
}

#[test]
fn a_copy_becomes_equal_after_a_crash_of_either() {
    let disks = [SimDisk::new(), SimDisk::new()];
    let (source, copy) = (open(&disks[0]), open(&disks[1]));
    let keyspace = source.keyspace("k").unwrap();
    let images = observe_both(&disks);
    for round in 0..7 {
        write(&source, &keyspace, round).unwrap();
        catch_up(&source, &copy).unwrap();
        check_equal(&source, &copy, "before any crash");
    }
    disks.iter().for_each(SimDisk::stop_observing);
    let images: Vec<[Image; 2]> = images.iter().flat_map(|seen| seen.try_iter()).collect();
    assert!(images.len() > 300, "{} changes", images.len());
    for (at, both) in images.iter().enumerate() {
        let policies = CrashPolicy::all(at as u64);
        for crashed in CRASHED {
            let policy = policies[at % policies.len()];
            let disks = after_crash(both, crashed, policy);
            let what = format!("change {at}, {crashed:?}, {policy:?}");
            if !disks.iter().all(exists) {
                continue;
            }
            let (source, copy) = (open(&disks[0]), open(&disks[1]));
            catch_up(&source, &copy).unwrap();
            check_equal(&source, &copy, &what);
            let keyspace = source.keyspace("after").unwrap();
            keyspace.insert("after", "the crash").unwrap();
            catch_up(&source, &copy).unwrap();
            check_equal(&source, &copy, &what);
            check_sound(&source);
        }
    }
}

/// Every change but tables that were added, which no change has.
#[test]
fn a_change_that_is_applied_again_changes_nothing() {
    let disks = [SimDisk::new(), SimDisk::new()];
    let (source, copy) = (open(&disks[0]), open(&disks[1]));
    let keyspace = source.keyspace("k").unwrap();
    catch_up(&source, &copy).unwrap();
    for round in 0..5 {
        write(&source, &keyspace, round).unwrap();
    }
    let mut feed = source.consumer(CONSUMER).unwrap().changes().unwrap();
    let mut changes = Vec::new();
    while let Some(change) = feed.next(Duration::ZERO).unwrap() {
        changes.push(change);
    }
    let kinds: [fn(&Change) -> bool; 4] = [
        |it| matches!(it, Change::Batch(_)),
        |it| matches!(it, Change::KeyspaceCreated { .. }),
        |it| matches!(it, Change::KeyspaceDropped { .. }),
        |it| matches!(it, Change::KeyspaceRenamed { .. }),
    ];
    for is_kind in kinds {
        assert!(changes.iter().any(is_kind));
    }

    let replica = Replica::new(copy.clone()).unwrap();
    let state = || {
        let names = copy.keyspace_names().into_iter();
        let contents = names.map(|name| {
            let all = entries(&copy.keyspace(&name).unwrap());
            (name, all)
        });
        contents.collect::<BTreeMap<_, _>>()
    };
    for (at, change) in changes.iter().enumerate() {
        let before = state();
        replica.apply(change).unwrap();
        let once = state();
        assert!(once != before, "{change:?}");
        // The newest one, and all before it: an older write must not come back.
        replica.apply(change).unwrap();
        for older in &changes[..at] {
            replica.apply(older).unwrap();
        }
        assert_eq!(state(), once, "{change:?}");
    }
    check_equal(&source, &copy, "after all changes");
}

/// A source whose consumer has fallen behind, and its copy.
fn behind(disks: &[SimDisk; 2]) -> (Db, Db) {
    let mut options = on(small(), &disks[0], &SteppedRuntime::new(5));
    options.change_retention.bytes = 4 << 10;
    let source = Db::open(FOLDER, options).unwrap();
    let copy = open(&disks[1]);
    let keyspace = source.keyspace("k").unwrap();
    keyspace.insert("first", "one").unwrap();
    catch_up(&source, &copy).unwrap();
    for round in 0..80_u8 {
        keyspace.insert([round], [round; 200]).unwrap();
    }
    keyspace.remove("first").unwrap();
    source.flush().unwrap();
    assert_eq!(kind(catch_up(&source, &copy)), ErrorKind::FellBehind);
    (source, copy)
}

/// What the program does after each of its starts.
fn catch_up_or_begin_again(source: &Db, copy: &Db) -> Result<()> {
    match catch_up(source, copy) {
        Err(error) if error.kind() == ErrorKind::FellBehind => {
            let replica = Replica::new(copy.clone())?;
            replica.begin_again(source, CONSUMER).map(drop)
        }
        outcome => outcome,
    }
}

#[test]
fn a_copy_that_has_fallen_behind_begins_again_through_crashes_of_either() {
    let disks = [SimDisk::new(), SimDisk::new()];
    let (source, copy) = behind(&disks);
    let images = observe_both(&disks);
    catch_up_or_begin_again(&source, &copy).unwrap();
    check_equal(&source, &copy, "begun again");
    let keyspace = source.keyspace("k").unwrap();
    keyspace.insert("last", "one").unwrap();
    catch_up(&source, &copy).unwrap();
    check_equal(&source, &copy, "after that");
    disks.iter().for_each(SimDisk::stop_observing);
    let images: Vec<[Image; 2]> = images.iter().flat_map(|seen| seen.try_iter()).collect();
    assert!(images.len() > 10, "{} changes", images.len());
    for (at, both) in images.iter().enumerate() {
        for policy in CrashPolicy::all(at as u64) {
            for crashed in CRASHED {
                let disks = after_crash(both, crashed, policy);
                let what = format!("change {at}, {crashed:?}, {policy:?}");
                let (source, copy) = (open(&disks[0]), open(&disks[1]));
                let keyspace = source.keyspace("k").unwrap();
                keyspace.insert("after", "the crash").unwrap();
                catch_up_or_begin_again(&source, &copy).unwrap();
                check_equal(&source, &copy, &what);
            }
        }
    }
}

#[test]
fn a_copy_notices_a_consumer_that_somebody_has_made_anew_and_another_source() {
    let disks = [SimDisk::new(), SimDisk::new()];
    let (source, copy) = (open(&disks[0]), open(&disks[1]));
    let keyspace = source.keyspace("k").unwrap();
    keyspace.insert("first", "one").unwrap();
    catch_up(&source, &copy).unwrap();
    source.remove_consumer(CONSUMER).unwrap();
    keyspace.insert("second", "one").unwrap();
    catch_up(&source, &copy).unwrap();
    check_equal(&source, &copy, "a new consumer");
    keyspace.remove("second").unwrap();
    keyspace.insert("third", "one").unwrap();
    catch_up(&source, &copy).unwrap();
    check_equal(&source, &copy, "after that");
    // A source that has done less.
    let other = open(&SimDisk::new());
    let keyspace = other.keyspace("k").unwrap();
    keyspace.insert("other", "one").unwrap();
    catch_up(&other, &copy).unwrap();
    check_equal(&other, &copy, "another source");
}

fn exists(disk: &SimDisk) -> bool {
    disk.image()
        .read(&Path::new(FOLDER).join("CURRENT"))
        .is_ok()
}

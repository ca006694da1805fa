//! Databases that have parted: a restored one, a copy of the folder, and one that was set back to an earlier copy. They use
//! the same sequence numbers for other changes, in the same store, and are never mixed.

use windrow::backup::{Backups, RestoreTo};
use windrow::{Db, ErrorKind};
use windrow_sim::{SimDisk, SteppedRuntime};

use super::{Start, States, check_states, contents, open, restored, sequence, start};
use crate::backups::{BACKUPS, RESTORED, files, remove_all};
use crate::common::{FOLDER, kind};

/// Inserts `keys` with `value`, and returns the state behind each.
fn insert(db: &Db, keys: std::ops::Range<u8>, value: &str) -> States {
    let main = db.keyspace("main").unwrap();
    let mut states = States::new();
    for key in keys {
        main.insert([key], value).unwrap();
        states.insert(sequence(db), contents(db));
    }
    states
}

/// Checks that a restore from backup `from` gives each of `states`.
fn check_from(disk: &SimDisk, backups: &Backups, from: u64, states: &States) {
    for (&sequence, state) in states {
        let to = RestoreTo::Sequence(sequence);
        let found = restored(disk, backups, to, Some(from)).unwrap();
        assert!(found == (sequence, state.clone()), "{sequence} from {from}");
    }
}

#[test]
fn a_restored_database_has_a_history_of_its_own() {
    let Start {
        disk, db, backups, ..
    } = start();
    db.archive(&backups).unwrap();
    let early = insert(&db, 0..3, "both");
    let (&parting, _) = early.last_key_value().unwrap();
    let one = insert(&db, 10..15, "one");
    db.archive(&backups).unwrap();
    let copy = "/data/copy";
    backups
        .restore_to(RestoreTo::Sequence(parting), None, copy)
        .unwrap();
    let other_runtime = SteppedRuntime::new(9);
    let other_db = open(&disk, &other_runtime, copy).unwrap();
    let archived = other_db.archive(&backups).unwrap();
    assert_eq!(archived.backup.as_ref().unwrap().number, 2);
    let other = insert(&other_db, 10..15, "other");
    other_db.archive(&backups).unwrap();
    // The first one goes on, and so does the second.
    let later = insert(&db, 20..23, "one");
    db.archive(&backups).unwrap();
    let other_later = insert(&other_db, 20..23, "other");
    other_db.archive(&backups).unwrap();
    assert!(backups.verify(None).unwrap().is_sound());
    check_states(&disk, &backups, &early.into_iter().take(2).collect());
    for (from, states) in [(1, [&one, &later]), (2, [&other, &other_later])] {
        for states in states {
            check_from(&disk, &backups, from, states);
            for sequence in states.keys() {
                let restored = backups.restore_to(RestoreTo::Sequence(*sequence), None, RESTORED);
                assert_eq!(kind(restored), ErrorKind::InvalidArgument);
            }
        }
    }
    // A backup that cannot be used may still be the one that is meant.
    let lost = format!("{BACKUPS}/000002.backup");
    disk.edit(|image| image.flip(lost.as_ref(), 30, 1)).unwrap();
    for (&sequence, state) in &later {
        let to = RestoreTo::Sequence(sequence);
        let error = backups.restore_to(to, None, RESTORED).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        assert!(error.to_string().contains("000002.backup"), "{error}");
        let found = restored(&disk, &backups, to, Some(1)).unwrap();
        assert!(found == (sequence, state.clone()), "{sequence}");
    }
}

/// Both have the consumer, so both take themselves for the database that was archived.
#[test]
fn copies_of_a_folder_are_not_mixed() {
    for is_acknowledged in [true, false] {
        // The second one has fewer writes than the first one, as many, or more.
        for (with_backup, end) in [(false, 13), (false, 15), (false, 17), (true, 13)] {
            let Start {
                disk, db, backups, ..
            } = start();
            db.archive(&backups).unwrap();
            let early = insert(&db, 0..3, "both");
            if is_acknowledged {
                db.archive(&backups).unwrap();
            }
            db.persist().unwrap();
            let image = disk.image();
            // The first one writes and archives.
            let one = insert(&db, 10..15, "one");
            db.archive(&backups).unwrap();
            db.close().unwrap();
            drop(backups);
            let store: Vec<_> = files(&disk, BACKUPS)
                .into_iter()
                .map(|path| (disk.image().read(&path).unwrap(), path))
                .collect();
            // The second one begins at the same place, with the store of now.
            let disk = SimDisk::from_image(image).end_process();
            disk.edit(|image| {
                for (bytes, path) in &store {
                    image.write(path, bytes).unwrap();
                }
            });
            let runtime = SteppedRuntime::new(9);
            let db = open(&disk, &runtime, FOLDER).unwrap();
            let own = crate::backups::backups(&disk, &runtime).unwrap();
            insert(&db, 10..end, "other");
            if with_backup {
                // It does not know of the parting.
                assert_eq!(db.backup(&own).unwrap().number, 2);
            }
            let archived = db.archive(&own).unwrap();
            let number = archived.backup.expect("a new history begins").number;
            assert_eq!(number, 2 + u64::from(with_backup));
            let other = insert(&db, 20..26, "other");
            db.archive(&own).unwrap();
            let from_first = RestoreTo::Sequence(*early.keys().next().unwrap());
            let found = restored(&disk, &own, from_first, Some(1)).unwrap();
            assert!(found.1 == early[&found.0]);
            check_from(&disk, &own, 1, &one);
            check_from(&disk, &own, number, &other);
            let check = own.verify(None).unwrap();
            assert_eq!(check.is_sound(), !with_backup, "{check:?}");
            if with_backup {
                // The changes behind it are those of the first one.
                let (&last, _) = one.last_key_value().unwrap();
                let restored = own.restore_to(RestoreTo::Sequence(last), Some(2), RESTORED);
                let error = restored.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
                assert!(error.to_string().contains("backup 2"), "{error}");
                // It is whole by itself.
                own.restore(2, RESTORED).unwrap();
                remove_all(&disk, RESTORED);
            }
        }
    }
}

/// A power failure takes back what was not archived, and later writes have its numbers.
#[test]
fn numbers_that_a_power_failure_has_freed_are_those_of_later_writes() {
    let Start {
        disk, db, backups, ..
    } = start();
    db.archive(&backups).unwrap();
    let mut states = insert(&db, 0..3, "kept");
    db.archive(&backups).unwrap();
    let lost = insert(&db, 10..14, "lost");
    let after_failure = disk.crash(windrow_sim::CrashPolicy::DropUnsynced);
    drop((db, backups));
    let disk = after_failure;
    let runtime = SteppedRuntime::new(2);
    let db = open(&disk, &runtime, FOLDER).unwrap();
    let own = crate::backups::backups(&disk, &runtime).unwrap();
    let after = insert(&db, 10..14, "after");
    assert!(after.keys().eq(lost.keys()));
    let archived = db.archive(&own).unwrap();
    assert!(archived.backup.is_none());
    states.extend(after);
    check_states(&disk, &own, &states);
    assert!(own.verify(None).unwrap().is_sound());
}

/// A database is archived in one store. If it is archived in another one in between, each goes on with a backup.
#[test]
fn an_archiving_to_another_store_leaves_no_gap_unnoticed() {
    let Start {
        disk, db, backups, ..
    } = start();
    let second = SimDisk::new();
    let runtime = SteppedRuntime::new(4);
    let other = crate::backups::backups(&second, &runtime).unwrap();
    db.archive(&backups).unwrap();
    let mut both = [States::new(), States::new()];
    for round in 0..4_u8 {
        let stores = [&backups, &other];
        let index = usize::from(round % 2);
        db.archive(stores[index]).unwrap();
        both[index].extend(insert(&db, round * 10..round * 10 + 3, "x"));
        db.archive(stores[index]).unwrap();
        let check = stores[index].verify(None).unwrap();
        assert!(check.is_sound(), "{check:?}");
    }
    check_states(&disk, &backups, &both[0]);
    check_states(&second, &other, &both[1]);
    let mut missing = 0;
    for (&sequence, state) in &both[1] {
        match restored(&disk, &backups, RestoreTo::Sequence(sequence), None) {
            // That of the backup with which it has gone on.
            Ok(found) => assert!(found.1 == *state),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
                missing += 1;
            }
        }
    }
    assert_eq!(missing, 5);
}

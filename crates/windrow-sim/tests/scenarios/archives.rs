//! The archive: each state between two backups is restored, or refused with a reason.
//!
//! [`crashes`] lets the power fail, [`damage`] and [`faults`] change bytes and fail operations, [`histories`] writes at
//! random, [`parted`] goes on with copies of the database.

mod crashes;
mod damage;
mod faults;
mod histories;
mod parted;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use windrow::backup::{Backups, Purge, RestoreTo};
use windrow::operators::Append;
use windrow::{Batch, Change, Db, Durability, ErrorKind, Options, Result};
use windrow_sim::{SimDisk, SteppedRuntime};

use crate::backups::{RESTORED, backups, remove_all};
use crate::common::{Entries, FOLDER, check_sound, entries, kind, on, small};

/// What a database holds, by keyspace.
type Contents = BTreeMap<String, Entries>;

/// States by sequence number.
type States = BTreeMap<u64, Contents>;

/// The newest state of a store.
fn newest() -> RestoreTo {
    RestoreTo::Time(SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 40))
}

fn options(disk: &SimDisk, runtime: &SteppedRuntime) -> Options {
    let mut options = on(small(), disk, runtime);
    options.keyspace.large_from = 400;
    options.max_wal_bytes = 64 << 10;
    options.reserve_bytes = 0;
    options.with_merge_operator("lists", Arc::new(Append::new(",")))
}

fn open(disk: &SimDisk, runtime: &SteppedRuntime, folder: &str) -> Result<Db> {
    let mut options = options(disk, runtime);
    options.create_if_missing = folder == FOLDER;
    Db::open(folder, options)
}

fn contents(db: &Db) -> Contents {
    let of = |name: String| {
        let entries = entries(&db.keyspace(&name).unwrap());
        (name, entries)
    };
    db.keyspace_names().into_iter().map(of).collect()
}

fn sequence(db: &Db) -> u64 {
    db.stats().sequence
}

/// Does the step `round` of a history of all kinds of changes but bulk loads.
fn step(db: &Db, round: u32) -> Result<()> {
    let main = db.keyspace("main")?;
    let key = (round * 7 % 40).to_be_bytes();
    match round % 13 {
        0 => {
            let mut batch = Batch::new();
            let lists = db.keyspace("lists")?;
            batch.insert(&main, key, [7; 50])?;
            batch.merge(&lists, "all", round.to_string())?;
            batch.remove(&main, (round % 40).to_be_bytes())?;
            db.write(&batch)
        }
        1 => main.insert(key, vec![u8::try_from(round % 251).unwrap(); 900]),
        2 => main.delete_range(key..(round * 7 % 40 + 5).to_be_bytes()),
        3 => {
            let gone = Duration::from_secs(3600 * u64::from(round % 7));
            let expiring = db.keyspace("expiring")?.with_ttl(gone);
            expiring.insert(key, round.to_be_bytes())
        }
        4 => db.keyspace("lists")?.merge(key, round.to_string()),
        5 => db.flush(),
        6 => {
            let passing = db.keyspace(&format!("passing-{}", round / 39))?;
            passing.insert(key, vec![9; 30])
        }
        7 if round % 39 == 33 => db.drop_keyspace(&format!("passing-{}", round / 39)),
        8 if round % 39 == 21 => db.swap_keyspaces("main", "expiring"),
        9 if round % 39 == 9 => db.keyspace("lists")?.insert("all", "begun anew"),
        10 => main.insert_with(key, [1; 20], Durability::Sync),
        _ => main.insert(key, vec![3; (round % 120) as usize]),
    }
}

/// Does `rounds` steps, with an archiving after each `each` of them. Returns the state behind each step.
fn history(db: &Db, backups: &Backups, rounds: std::ops::Range<u32>, each: u32) -> States {
    let mut states = States::new();
    for round in rounds {
        step(db, round).unwrap();
        states.insert(sequence(db), contents(db));
        if round % each == each - 1 {
            db.archive(backups).unwrap();
        }
    }
    states
}

/// Restores the state `to` and returns its sequence number and what it holds.
fn restored(
    disk: &SimDisk,
    backups: &Backups,
    to: RestoreTo,
    from: Option<u64>,
) -> Result<(u64, Contents)> {
    let restored = backups.restore_to(to, from, RESTORED)?;
    let db = open(disk, &SteppedRuntime::new(77), RESTORED).unwrap();
    check_sound(&db);
    assert_eq!(sequence(&db), restored.sequence);
    assert!(db.consumers().is_empty());
    let contents = contents(&db);
    db.close().unwrap();
    remove_all(disk, RESTORED);
    Ok((restored.sequence, contents))
}

/// Checks that each of `states` is restored.
fn check_states(disk: &SimDisk, backups: &Backups, states: &States) {
    for (&sequence, state) in states {
        let to = RestoreTo::Sequence(sequence);
        let found = restored(disk, backups, to, None).unwrap();
        assert_eq!(found.0, sequence);
        assert!(found.1 == *state, "the state {sequence} is another one");
    }
}

struct Start {
    disk: SimDisk,
    runtime: SteppedRuntime,
    db: Db,
    backups: Backups,
}

fn start() -> Start {
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let db = open(&disk, &runtime, FOLDER).unwrap();
    let backups = backups(&disk, &runtime).unwrap();
    Start {
        disk,
        runtime,
        db,
        backups,
    }
}

#[test]
fn each_state_behind_the_first_archiving_is_restored() {
    let Start {
        disk,
        runtime,
        db,
        backups,
    } = start();
    step(&db, 0).unwrap();
    let first = db.archive(&backups).unwrap();
    assert_eq!(first.backup.unwrap().number, 1);
    let mut states = history(&db, &backups, 1..90, 7);
    db.backup(&backups).unwrap();
    db.close().unwrap();
    let db = open(&disk, &runtime, FOLDER).unwrap();
    states.extend(history(&db, &backups, 90..130, 3));
    let last = db.archive(&backups).unwrap();
    assert_eq!(last.sequence, sequence(&db));
    // What is archived already is not archived again.
    let again = db.archive(&backups).unwrap();
    assert_eq!((again.stretches, again.backup), (0, None));
    assert!(backups.verify(None).unwrap().is_sound());
    let reachable = backups.reachable().unwrap();
    assert!(reachable.damage.is_empty());
    let ranges = reachable
        .states
        .iter()
        .map(|it| (it.backup, it.sequences.len()));
    // A keyspace with a large value was dropped before that was archived, or none was.
    assert_eq!(ranges.map(|it| it.0).collect::<Vec<_>>(), [1, 2]);
    check_states(&disk, &backups, &states);
    // The first backup leads to all of them as well.
    let newest = sequence(&db);
    let found = restored(&disk, &backups, RestoreTo::Sequence(newest), Some(1)).unwrap();
    assert_eq!(found, (newest, contents(&db)));
    let error = backups.restore_to(RestoreTo::Sequence(newest + 1), None, RESTORED);
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert!(error.to_string().contains(&newest.to_string()), "{error}");
}

#[test]
fn a_number_within_a_batch_stands_for_the_state_before_it() {
    let Start {
        disk, db, backups, ..
    } = start();
    db.archive(&backups).unwrap();
    let main = db.keyspace("main").unwrap();
    main.insert("before", "1").unwrap();
    let (before, number) = (contents(&db), sequence(&db));
    let mut batch = Batch::new();
    for key in 0..5_u8 {
        batch.insert(&main, [key], "2").unwrap();
    }
    db.write(&batch).unwrap();
    db.archive(&backups).unwrap();
    for within in 0..5 {
        let to = RestoreTo::Sequence(number + within);
        let found = restored(&disk, &backups, to, None).unwrap();
        assert_eq!(found, (number, before.clone()));
    }
    let to = RestoreTo::Sequence(number + 5);
    let found = restored(&disk, &backups, to, None).unwrap();
    assert_eq!(found, (number + 5, contents(&db)));
}

#[test]
fn a_time_stands_for_what_was_archived_then() {
    let Start {
        disk,
        runtime,
        db,
        backups,
    } = start();
    let hour = |hour: u64| Duration::from_secs(2_000_000 + 3600 * hour);
    let main = db.keyspace("main").unwrap();
    let mut states = Vec::new();
    for round in 0..6_u8 {
        runtime.set_unix_time(hour(10 * u64::from(round)));
        main.insert([round], "value").unwrap();
        db.archive(&backups).unwrap();
        if round == 3 {
            db.backup(&backups).unwrap();
        }
        states.push((sequence(&db), contents(&db)));
        // Not archived at the next time that is asked for.
        main.insert([round], "later").unwrap();
    }
    runtime.set_unix_time(hour(1000));
    for (round, state) in states.iter().enumerate() {
        for after in [0, 9] {
            let time = SystemTime::UNIX_EPOCH + hour(10 * round as u64 + after);
            let found = restored(&disk, &backups, RestoreTo::Time(time), None).unwrap();
            assert_eq!(found, *state, "{round} and {after}");
        }
    }
    let time = SystemTime::UNIX_EPOCH + hour(0) - Duration::from_millis(1);
    for time in [time, SystemTime::UNIX_EPOCH - Duration::from_secs(1)] {
        let restored = backups.restore_to(RestoreTo::Time(time), None, RESTORED);
        assert_eq!(kind(restored), ErrorKind::NotFound);
    }
}

/// The batch has numbers in the place of what is gone. They hide nothing else of it.
#[test]
fn a_feed_of_a_restored_database_gives_what_is_left_of_a_batch() {
    let Start {
        disk, db, backups, ..
    } = start();
    let main = db.keyspace("main").unwrap();
    db.archive(&backups).unwrap();
    let gone = db.keyspace("gone").unwrap();
    let first = sequence(&db) + 1;
    let mut batch = Batch::new();
    for (keyspace, key) in [(&main, "a"), (&gone, "b"), (&main, "c")] {
        batch.insert(keyspace, key, "value").unwrap();
    }
    db.write(&batch).unwrap();
    db.drop_keyspace("gone").unwrap();
    db.archive(&backups).unwrap();
    let newest = RestoreTo::Sequence(sequence(&db));
    backups.restore_to(newest, None, RESTORED).unwrap();

    let db = open(&disk, &SteppedRuntime::new(77), RESTORED).unwrap();
    let mut changes = db.changes(first).unwrap();
    let Ok(Some(Change::Batch(found))) = changes.next(Duration::ZERO) else {
        unreachable!("the batch comes first");
    };
    let keys: Vec<&[u8]> = found.iter().map(|entry| entry.key).collect();
    assert_eq!(keys, [b"a", b"c"]);
}

/// A bulk load is in no log.
#[test]
fn a_state_behind_a_bulk_load_comes_from_a_backup() {
    let Start {
        disk, db, backups, ..
    } = start();
    db.archive(&backups).unwrap();
    let main = db.keyspace("main").unwrap();
    let mut states = States::new();
    let mut put = |key: &str| {
        main.insert(key, "1").unwrap();
        states.insert(sequence(&db), contents(&db));
    };
    put("a");
    db.archive(&backups).unwrap();
    put("b");
    main.bulk_load([("c", "loaded"), ("d", "too")]).unwrap();
    let loaded = sequence(&db);
    main.insert("between", "the load and the backup").unwrap();
    let archived = db.archive(&backups).unwrap();
    assert_eq!(archived.backup.unwrap().number, 2);
    put("e");
    let archived = db.archive(&backups).unwrap();
    assert!(archived.backup.is_none());
    check_states(&disk, &backups, &states);
    // Between the load and the backup.
    let error = backups.restore_to(RestoreTo::Sequence(loaded), None, RESTORED);
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    let next = format!("backup 2, with sequence number {}", loaded + 1);
    assert!(error.to_string().contains(&next), "{error}");
    let reachable = backups.reachable().unwrap().states;
    assert_eq!(*reachable[0].sequences[0].end(), loaded - 1);
    assert_eq!(reachable[1].sequences, [loaded + 1..=loaded + 2]);
    let found = restored(&disk, &backups, RestoreTo::Sequence(loaded + 1), None).unwrap();
    assert!(found.1["main"].contains_key(&b"between"[..]));
}

/// Values in value logs go with their keyspace. Small ones are in the log.
#[test]
fn what_a_drop_has_taken_along_is_never_left_out_silently() {
    let Start {
        disk, db, backups, ..
    } = start();
    let (main, gone) = (db.keyspace("main").unwrap(), db.keyspace("gone").unwrap());
    main.insert("a", "1").unwrap();
    db.archive(&backups).unwrap();
    let mut states = States::new();
    gone.insert("small", "stays").unwrap();
    states.insert(sequence(&db), contents(&db));
    main.insert("b", "1").unwrap();
    states.insert(sequence(&db), contents(&db));
    let last = sequence(&db);
    gone.insert("large", vec![1; 2000]).unwrap();
    main.insert("c", "1").unwrap();
    let missing = sequence(&db);
    db.drop_keyspace("gone").unwrap();
    states.insert(sequence(&db), contents(&db));
    // A keyspace of which nothing is known any more.
    let passing = db.keyspace("passing").unwrap();
    passing.insert("x", "y").unwrap();
    let unknown = sequence(&db);
    passing.rename("renamed").unwrap();
    db.drop_keyspace("renamed").unwrap();
    main.insert("d", "1").unwrap();
    states.insert(sequence(&db), contents(&db));
    db.archive(&backups).unwrap();
    check_states(&disk, &backups, &states);
    for lacking in [missing, unknown] {
        let error = backups.restore_to(RestoreTo::Sequence(lacking), None, RESTORED);
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        assert!(error.to_string().contains("was dropped"), "{error}");
    }
    let reachable = backups.reachable().unwrap().states;
    let ranges = &reachable[0].sequences;
    assert_eq!(ranges.len(), 3, "{ranges:?}");
    assert_eq!(*ranges[0].end(), last);
    // With the archive at hand before the drop, nothing is lost.
    let gone = db.keyspace("gone").unwrap();
    gone.insert("large", vec![2; 2000]).unwrap();
    states = States::from([(sequence(&db), contents(&db))]);
    db.archive(&backups).unwrap();
    db.drop_keyspace("gone").unwrap();
    db.archive(&backups).unwrap();
    check_states(&disk, &backups, &states);
}

/// They name keyspaces by their ids, and hold what they held.
#[test]
fn prepared_transactions_are_prepared_as_they_were() {
    let Start {
        disk, db, backups, ..
    } = start();
    drop(db.keyspace("passing").unwrap());
    db.drop_keyspace("passing").unwrap();
    db.archive(&backups).unwrap();
    let main = db.keyspace("main").unwrap();
    let prepare = |name: &str| {
        let transaction = db.transaction();
        transaction.insert(&main, name, vec![5; 700]).unwrap();
        transaction.prepare(name).unwrap();
        sequence(&db)
    };
    let first = prepare("first");
    db.backup(&backups).unwrap();
    let second = prepare("second");
    let end_all = |db: &Db| {
        for name in db.prepared_transactions() {
            let prepared = db.prepared_transaction(&name).unwrap();
            match prepared.name() {
                "first" => prepared.commit().unwrap(),
                _ => prepared.roll_back().unwrap(),
            }
        }
    };
    end_all(&db);
    let ended = sequence(&db);
    let expected = contents(&db);
    db.archive(&backups).unwrap();
    for (to, from, prepared) in [
        (first, Some(1), &["first"][..]),
        (second, None, &["first", "second"]),
        (second, Some(1), &["first", "second"]),
        (ended, None, &[]),
        (ended, Some(1), &[]),
    ] {
        backups
            .restore_to(RestoreTo::Sequence(to), from, RESTORED)
            .unwrap();
        let copy = open(&disk, &SteppedRuntime::new(5), RESTORED).unwrap();
        assert_eq!(copy.prepared_transactions(), prepared, "{to} from {from:?}");
        let own = copy.keyspace("main").unwrap();
        if prepared.contains(&"first") {
            assert_eq!(kind(own.insert("first", "other")), ErrorKind::Conflict);
            end_all(&copy);
        }
        assert_eq!(contents(&copy), expected);
        check_sound(&copy);
        copy.close().unwrap();
        remove_all(&disk, RESTORED);
    }
}

/// A preparation that fails has created the keyspace of prepared transactions. So that can be older than a keyspace whose
/// creation is in the log before the first write to it.
#[test]
fn a_keyspace_may_come_between_a_failed_preparation_and_the_next() {
    let Start {
        disk, db, backups, ..
    } = start();
    let main = db.keyspace("main").unwrap();
    main.insert("key", "read").unwrap();
    db.archive(&backups).unwrap();
    let transaction = db.transaction();
    transaction.get(&main, "key").unwrap();
    transaction.insert(&main, "other", "failed").unwrap();
    main.insert("key", "changed").unwrap();
    assert_eq!(kind(transaction.prepare("failed")), ErrorKind::Conflict);
    let later = db.keyspace("later").unwrap();
    later.insert("key", "in between").unwrap();
    let transaction = db.transaction();
    transaction.insert(&main, "other", "prepared").unwrap();
    transaction.prepare("prepared").unwrap();
    let (newest, expected) = (sequence(&db), contents(&db));
    db.archive(&backups).unwrap();
    backups
        .restore_to(RestoreTo::Sequence(newest), Some(1), RESTORED)
        .unwrap();
    let copy = open(&disk, &SteppedRuntime::new(5), RESTORED).unwrap();
    assert_eq!(copy.prepared_transactions(), ["prepared"]);
    assert_eq!(contents(&copy), expected);
    check_sound(&copy);
}

#[test]
fn a_purge_keeps_the_changes_behind_each_backup_that_stays() {
    let Start {
        disk, db, backups, ..
    } = start();
    db.archive(&backups).unwrap();
    let mut parts = Vec::new();
    for part in 0..4 {
        parts.push(history(&db, &backups, part * 20..part * 20 + 20, 5));
        // Changes behind the end of the archive, up to the backup.
        step(&db, 11).unwrap();
        db.backup(&backups).unwrap();
    }
    db.archive(&backups).unwrap();
    let all = backups.reachable().unwrap();
    assert_eq!(all.states.len(), 5);
    // In the middle: nothing of the archive goes.
    let purged = backups.purge(Purge::Backup(3)).unwrap();
    assert_eq!(purged.stretches, 0);
    for states in &parts {
        check_states(&disk, &backups, states);
    }
    let purged = backups.purge(Purge::KeepNewest(2)).unwrap();
    assert_eq!(purged.backups, [1, 2]);
    assert!(purged.stretches > 5 && purged.pieces > 5, "{purged:?}");
    check_states(&disk, &backups, &parts[3]);
    for sequence in parts[..2].iter().flat_map(|states| states.keys()) {
        let error = backups.restore_to(RestoreTo::Sequence(*sequence), None, RESTORED);
        assert_eq!(kind(error), ErrorKind::NotFound);
    }
    assert!(backups.verify(None).unwrap().is_sound());
    // The archive goes on.
    step(&db, 12).unwrap();
    let archived = db.archive(&backups).unwrap();
    assert_eq!((archived.stretches, archived.backup), (1, None));
    // Without its backups it is of no use.
    for number in [4, 5] {
        backups.purge(Purge::Backup(number)).unwrap();
    }
    assert!(backups.reachable().unwrap().states.is_empty());
    step(&db, 14).unwrap();
    let archived = db.archive(&backups).unwrap();
    assert!(archived.backup.is_some());
    let found = restored(&disk, &backups, RestoreTo::Sequence(sequence(&db)), None).unwrap();
    assert_eq!(found.1, contents(&db));
    assert!(backups.verify(None).unwrap().is_sound());
}

#[test]
fn an_archive_that_has_fallen_behind_begins_again() {
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let mut options = options(&disk, &runtime);
    options.change_retention.bytes = 4 << 10;
    let db = Db::open(FOLDER, options).unwrap();
    let backups = backups(&disk, &runtime).unwrap();
    db.archive(&backups).unwrap();
    let main = db.keyspace("main").unwrap();
    main.insert("a", "1").unwrap();
    let before = States::from([(sequence(&db), contents(&db))]);
    db.archive(&backups).unwrap();
    for key in 0..90_u8 {
        main.insert([key], [key; 200]).unwrap();
    }
    let lost = sequence(&db) - 1;
    db.flush().unwrap();
    assert!(db.consumers()[0].is_behind);
    let archived = db.archive(&backups).unwrap();
    assert!(archived.backup.is_some());
    assert_eq!(db.consumers().len(), 1);
    main.insert("b", "1").unwrap();
    let after = States::from([(sequence(&db), contents(&db))]);
    db.archive(&backups).unwrap();
    check_states(&disk, &backups, &before);
    check_states(&disk, &backups, &after);
    let error = backups.restore_to(RestoreTo::Sequence(lost), None, RESTORED);
    assert_eq!(kind(error), ErrorKind::NotFound);
    assert!(backups.verify(None).unwrap().is_sound());
}

#[test]
fn a_rate_bounds_what_is_archived_and_applied() {
    use windrow::runtime::Runtime as _;
    let Start {
        disk,
        runtime,
        db,
        backups,
    } = start();
    db.archive(&backups).unwrap();
    drop(backups);
    let main = db.keyspace("main").unwrap();
    for key in 0..100_u32 {
        let value = [key.wrapping_mul(0x9e37_79b1).to_be_bytes(); 50].concat();
        main.insert(key.to_be_bytes(), value).unwrap();
    }
    let rate = 1000;
    let backups = crate::backups::backups(&disk, &runtime)
        .unwrap()
        .with_rate(rate);
    let before = runtime.now();
    let archived = db.archive(&backups).unwrap();
    let took = runtime.now().saturating_sub(before).as_secs();
    let bytes = archived.copied_bytes;
    assert!(
        bytes > 5 * rate && took + 2 > bytes / rate,
        "{bytes} in {took} s"
    );
    let before = runtime.now();
    let to = RestoreTo::Sequence(archived.sequence);
    backups.restore_to(to, None, RESTORED).unwrap();
    let took = runtime.now().saturating_sub(before).as_secs();
    assert!(took + 2 > bytes / rate, "{bytes} in {took} s");
}

//! The change feed through crashes, failed operations, damage and silence: what it has given out is never lost, what it gives
//! out is never wrong, and a place that was acknowledged stays.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use windrow::{BatchWrite, Change, Changes, Consumer, Db, ErrorKind, Options, Result, Retention};
use windrow_sim::disk::{AfterFailedSync, Effect, Fault, Image, OperationKind};
use windrow_sim::{CrashPolicy, SimDisk, SteppedRuntime};

use crate::common::{Entries, FOLDER, check_sound, entries, kind, observe, on, small};

type Contents = BTreeMap<String, Entries>;

/// What the consumer has seen and said.
#[derive(Debug, Clone, Default)]
struct Progress {
    given: Vec<Change>,
    /// The place that is being acknowledged, and the last one that was.
    acknowledging: u64,
    acknowledged: u64,
}

fn options(disk: &SimDisk) -> Options {
    let mut options = on(small(), disk, &SteppedRuntime::new(3));
    options.max_wal_bytes = 64 << 10;
    options
}

fn open(disk: &SimDisk) -> Db {
    Db::open(FOLDER, options(disk)).unwrap()
}

/// A database with some entries, and a consumer behind them.
fn begun(disk: &SimDisk) -> (Db, Consumer, Progress) {
    let db = open(disk);
    let keyspace = db.keyspace("k").unwrap();
    keyspace.insert("before", "the consumer").unwrap();
    let consumer = db.consumer("c").unwrap();
    let place = consumer.acknowledged().unwrap();
    let progress = Progress {
        acknowledging: place,
        acknowledged: place,
        ..Progress::default()
    };
    (db, consumer, progress)
}

fn contents(db: &Db) -> Contents {
    let names = db.keyspace_names().into_iter();
    names
        .map(|name| (name.clone(), entries(&db.keyspace(&name).unwrap())))
        .collect()
}

fn apply(contents: &mut Contents, change: &Change) {
    match change {
        Change::Batch(batch) => {
            for write in batch {
                let keyspace = contents.entry(write.keyspace.to_string()).or_default();
                match write.write {
                    BatchWrite::Insert(value) => {
                        drop(keyspace.insert(write.key.into(), value.into()));
                    }
                    BatchWrite::Remove => drop(keyspace.remove(write.key)),
                    other => unreachable!("{other:?}"),
                }
            }
        }
        Change::KeyspaceCreated { name, .. } => drop(contents.insert(name.clone(), Entries::new())),
        Change::KeyspaceDropped { name, .. } => drop(contents.remove(name)),
        Change::KeyspaceRenamed { from, to, .. } => {
            let (moved, other) = (contents.remove(from), contents.remove(to));
            contents.extend(moved.map(|moved| (to.clone(), moved)));
            contents.extend(other.map(|other| (from.clone(), other)));
        }
        other => unreachable!("{other:?}"),
    }
}

fn rest(changes: &mut Changes) -> Vec<Change> {
    std::iter::from_fn(|| changes.next(Duration::ZERO).unwrap()).collect()
}

/// Writes, flushes and compacts, while the consumer reads and acknowledges.
fn history(db: &Db, consumer: &Consumer, progress: &Mutex<Progress>) -> Result<()> {
    let mut changes = consumer.changes()?;
    let mut keyspace = db.keyspace("k")?;
    for round in 0..60_u32 {
        let length = if round % 6 == 1 { 1500 } else { 220 };
        for turn in 0..4_u8 {
            let value = vec![u8::try_from(round).unwrap(); length];
            keyspace.insert([u8::try_from(round % 9).unwrap(), turn], value)?;
        }
        match round {
            10 => drop(db.keyspace("other")?),
            20 => db.swap_keyspaces("k", "other")?,
            30 => db.drop_keyspace("k")?,
            40 => keyspace.rename("k")?,
            _ if round % 7 == 3 => keyspace.remove([u8::try_from(round % 5).unwrap(), 1])?,
            _ => {}
        }
        if round == 20 {
            keyspace = db.keyspace("other")?;
        }
        if round % 4 == 2 {
            while let Some(change) = changes.next(Duration::ZERO)? {
                progress.lock().unwrap().given.push(change);
            }
        }
        if round % 16 == 14 {
            let place = {
                let mut progress = progress.lock().unwrap();
                let half = progress.given.len() * 3 / 4;
                progress.acknowledging = progress.given[half].sequence();
                progress.acknowledging
            };
            consumer.acknowledge(place)?;
            progress.lock().unwrap().acknowledged = place;
        }
        if round % 12 == 11 {
            db.flush()?;
        }
    }
    keyspace.compact_range::<&[u8]>(..)
}

/// What `disk` holds after a crash has lost nothing of `progress`. Returns how many logs are kept.
fn check_survivor(disk: &SimDisk, progress: &Progress, what: &str) -> usize {
    let logs = disk.image().files_with("wal").len();
    let db = open(disk);
    let consumer = db.consumer("c").unwrap();
    let place = consumer.acknowledged().unwrap();
    assert!(
        (progress.acknowledged..=progress.acknowledging).contains(&place),
        "{what}: {place} is not from {} to {}",
        progress.acknowledged,
        progress.acknowledging
    );
    let mut changes = consumer.changes().unwrap();
    let left = rest(&mut changes);
    let behind = |change: &&Change| change.sequence() > place;
    let seen: Vec<_> = progress.given.iter().filter(behind).collect();
    assert!(
        seen.len() <= left.len(),
        "{what}: a change that was given out is lost"
    );
    for (seen, left) in seen.iter().zip(&left) {
        assert_eq!(*seen, left, "{what}");
    }
    let mut copy = Contents::new();
    let before = [(b"before".to_vec(), b"the consumer".to_vec())];
    copy.insert("k".to_owned(), before.into());
    let done = progress.given.iter().filter(|change| !behind(change));
    done.chain(&left)
        .for_each(|change| apply(&mut copy, change));
    assert_eq!(copy, contents(&db), "{what}");
    let keyspace = db.keyspace("after").unwrap();
    keyspace.insert("after", "the crash").unwrap();
    assert_eq!(rest(&mut changes).len(), 2, "{what}");
    check_sound(&db);
    logs
}

#[test]
fn a_crash_loses_nothing_that_was_given_out_and_no_place() {
    let disk = SimDisk::new();
    let (db, consumer, progress) = begun(&disk);
    let progress = Arc::new(Mutex::new(progress));
    let images = observe(&disk, {
        let progress = Arc::clone(&progress);
        move |_, image| (image.clone(), progress.lock().unwrap().clone())
    });
    history(&db, &consumer, &progress).unwrap();
    disk.stop_observing();
    let images: Vec<(Image, Progress)> = images.try_iter().collect();
    assert!(images.len() > 150, "{} changes", images.len());
    let mut logs = 0;
    for (at, (image, progress)) in images.iter().enumerate() {
        for policy in CrashPolicy::all(at as u64) {
            let disk = SimDisk::from_image(image.crash(policy));
            let what = format!("change {at}, {policy:?}");
            logs = logs.max(check_survivor(&disk, progress, &what));
        }
    }
    assert!(logs > 5, "at most {logs} logs");
}

#[test]
fn a_failed_operation_loses_nothing_that_was_given_out() {
    let mut failed = 0;
    for (kind, effect) in [
        (OperationKind::Write, Effect::Io),
        (OperationKind::Write, Effect::NoSpace),
        (OperationKind::Sync, Effect::Io),
        (OperationKind::SyncDir, Effect::Io),
        (OperationKind::Create, Effect::Io),
        (OperationKind::Reserve, Effect::NoSpace),
    ] {
        for at in (0..).step_by(3) {
            let disk = SimDisk::new();
            let (db, consumer, progress) = begun(&disk);
            let progress = Mutex::new(progress);
            let fault = Fault::io(kind, at)
                .with(effect)
                .then(AfterFailedSync::LostAtCrash);
            disk.set_faults([fault]);
            failed += u32::from(history(&db, &consumer, &progress).is_err());
            let is_hit = !disk.fault_log().is_empty();
            disk.set_faults([]);
            let progress = progress.into_inner().unwrap();
            for policy in CrashPolicy::all(at) {
                let what = format!("{kind:?} {effect:?} {at}, {policy:?}");
                check_survivor(&disk.crash(policy), &progress, &what);
            }
            if !is_hit {
                break;
            }
        }
    }
    assert!(failed > 30, "{failed} histories failed");
}

/// A database whose consumer holds several logs, and the changes in them.
fn held(disk: &SimDisk) -> (Db, Consumer, Vec<Change>) {
    let (db, consumer, progress) = begun(disk);
    let keyspace = db.keyspace("k").unwrap();
    for round in 0..240_u32 {
        let length = if round % 18 == 1 { 1500 } else { 220 };
        keyspace
            .insert(round.to_be_bytes(), vec![9; length])
            .unwrap();
        if round % 30 == 29 {
            db.flush().unwrap();
        }
    }
    drop(progress);
    let all = rest(&mut consumer.changes().unwrap());
    assert_eq!(all.len(), 240);
    (db, consumer, all)
}

#[test]
fn a_change_that_could_not_be_read_comes_with_the_next_call() {
    let mut failed = 0;
    for kind in [
        OperationKind::Open,
        OperationKind::Read,
        OperationKind::Length,
    ] {
        for at in 0.. {
            let disk = SimDisk::new();
            let (db, consumer, all) = held(&disk);
            drop((consumer, db));
            let db = open(&disk);
            let consumer = db.consumer("c").unwrap();
            disk.set_faults([Fault::io(kind, at)]);
            let mut found = Vec::new();
            let mut errors = 0;
            let mut changes = loop {
                match consumer.changes() {
                    Ok(changes) => break changes,
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
                        errors += 1;
                    }
                }
            };
            loop {
                match changes.next(Duration::ZERO) {
                    Ok(Some(change)) => found.push(change),
                    Ok(None) => break,
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
                        errors += 1;
                    }
                }
            }
            assert_eq!(found, all, "{kind:?} {at}");
            assert!(errors <= 1);
            failed += errors;
            if disk.fault_log().is_empty() {
                break;
            }
        }
    }
    assert!(failed > 15, "{failed} reads failed");
}

/// The logs that only the consumer needs.
fn kept_logs(disk: &SimDisk) -> Vec<PathBuf> {
    let mut logs = disk.image().files_with("wal");
    logs.sort();
    // The last one was written; the one before it is long gone from recovery as well.
    logs.truncate(logs.len() - 2);
    assert!(logs.len() > 2, "{logs:?}");
    logs
}

#[test]
fn damage_to_a_kept_log_is_named_and_harms_nothing_else() {
    let disk = SimDisk::new();
    let (db, consumer, all) = held(&disk);
    let before = contents(&db);
    drop(consumer);
    db.close().unwrap();
    let logs = kept_logs(&disk);
    let image = disk.image();
    let mut damaged = 0;
    for (index, path) in logs.iter().enumerate() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let length = image.read(path).unwrap().len();
        for offset in (index..length).step_by(43) {
            let disk = SimDisk::from_image(image.clone());
            disk.edit(|image| image.flip(path, offset, 1 << (offset % 8)))
                .unwrap();
            let db = open(&disk);
            assert_eq!(contents(&db), before);
            let consumer = db.consumer("c").unwrap();
            let mut changes = consumer.changes().unwrap();
            let mut found = Vec::new();
            let error = loop {
                match changes.next(Duration::ZERO) {
                    Ok(Some(change)) => found.push(change),
                    Ok(None) => break None,
                    Err(error) => break Some(error),
                }
            };
            assert_eq!(found[..], all[..found.len()], "{name} {offset}");
            let error = error.unwrap_or_else(|| panic!("{name} {offset}: no error"));
            assert_eq!(error.kind(), ErrorKind::Corruption);
            assert!(error.to_string().contains(&name), "{error}");
            assert!(error.offset().is_some(), "{error}");
            assert_eq!(kind(changes.next(Duration::ZERO)), ErrorKind::Corruption);
            damaged += 1;
        }
    }
    assert!(damaged > 100, "{damaged}");
    // A missing log, and one that is cut.
    for cut in [false, true] {
        let disk = SimDisk::from_image(image.clone());
        let path = &logs[1];
        disk.edit(|image| {
            let bytes = image.read(path).unwrap();
            image.remove(path).unwrap();
            if cut {
                image.write(path, &bytes[..bytes.len() / 2]).unwrap();
            }
        });
        let db = open(&disk);
        assert_eq!(contents(&db), before);
        let mut changes = db.consumer("c").unwrap().changes().unwrap();
        let error = loop {
            match changes.next(Duration::ZERO) {
                Ok(change) => assert!(change.is_some(), "the end without an error"),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Corruption);
        let report = db.verify().unwrap();
        assert_eq!(report.damage.len(), 1, "{:?}", report.damage);
    }
}

#[test]
fn a_silent_consumer_falls_behind_once_it_holds_logs() {
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let mut options = on(small(), &disk, &runtime);
    options.change_retention = Retention {
        idle: Duration::from_secs(100),
        ..Retention::default()
    };
    let day = 24 * 3600;
    runtime.set_unix_time(Duration::from_secs(day));
    let db = Db::open(FOLDER, options.clone()).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    let (silent, busy) = (db.consumer("silent").unwrap(), db.consumer("busy").unwrap());
    let write = |byte: u8| {
        for key in 0..50_u8 {
            keyspace.insert([key], [byte; 200]).unwrap();
        }
        db.flush().unwrap();
    };
    let behind = || {
        db.consumers()
            .iter()
            .map(|it| it.is_behind)
            .collect::<Vec<_>>()
    };
    // Silence while there is nothing to acknowledge is nothing.
    runtime.set_unix_time(Duration::from_secs(day + 1000));
    write(1);
    assert_eq!(behind(), [false, false]);
    busy.acknowledge(db.snapshot().sequence()).unwrap();
    runtime.set_unix_time(Duration::from_secs(day + 1100));
    write(2);
    assert_eq!(behind(), [false, false]);
    runtime.set_unix_time(Duration::from_secs(day + 1101));
    write(3);
    assert_eq!(behind(), [false, true]);
    assert_eq!(kind(silent.changes()), ErrorKind::FellBehind);
    assert!(!rest(&mut busy.changes().unwrap()).is_empty());
    drop((silent, busy, keyspace));
    db.close().unwrap();
    let db = Db::open(FOLDER, options).unwrap();
    assert_eq!(
        kind(db.consumer("silent").unwrap().changes()),
        ErrorKind::FellBehind
    );
}

#[test]
fn a_feed_ends_when_its_consumer_no_longer_holds_what_comes_next() {
    let disk = SimDisk::new();
    let mut options = options(&disk);
    options.change_retention.bytes = 1;
    let db = Db::open(FOLDER, options).unwrap();
    let (a, b) = (db.keyspace("a").unwrap(), db.keyspace("b").unwrap());
    let consumer = db.consumer("c").unwrap();
    let mut changes = consumer.changes().unwrap();
    for key in 0..60_u8 {
        a.insert([key], [key; 200]).unwrap();
        assert_eq!(rest(&mut changes).len(), 1);
    }
    db.flush().unwrap();
    assert!(db.consumers()[0].is_behind);
    // The feed has read everything, but the new name has no place in the order.
    a.rename("other").unwrap();
    b.insert("2", "2").unwrap();
    for _ in 0..2 {
        assert_eq!(kind(changes.next(Duration::ZERO)), ErrorKind::FellBehind);
    }
    db.remove_consumer("c").unwrap();
    assert_eq!(kind(changes.next(Duration::ZERO)), ErrorKind::NotFound);
    // A place beyond what the feed has given out.
    let consumer = db.consumer("c").unwrap();
    let mut changes = consumer.changes().unwrap();
    b.insert("3", "3").unwrap();
    consumer.acknowledge(db.snapshot().sequence()).unwrap();
    b.insert("4", "4").unwrap();
    assert_eq!(kind(changes.next(Duration::ZERO)), ErrorKind::FellBehind);
    assert_eq!(rest(&mut consumer.changes().unwrap()).len(), 1);
}

#[test]
fn a_feed_that_falls_behind_between_two_changes_says_so() {
    let disk = SimDisk::new();
    let mut options = options(&disk);
    options.change_retention.bytes = 30 << 10;
    let db = Db::open(FOLDER, options).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    let consumer = db.consumer("c").unwrap();
    let write = |byte: u8| {
        for key in 0..6_u8 {
            keyspace.insert([key], vec![byte; 2000]).unwrap();
        }
    };
    write(0);
    let mut changes = consumer.changes().unwrap();
    // What the feed knows is that all of these are held.
    assert!(changes.next(Duration::ZERO).unwrap().is_some());
    while !db.consumers()[0].is_behind {
        for byte in 1..4_u8 {
            write(byte);
            db.flush().unwrap();
            keyspace.compact_range::<&[u8]>(..).unwrap();
        }
    }
    db.wait_idle().unwrap();
    for _ in 0..2 {
        assert_eq!(kind(changes.next(Duration::ZERO)), ErrorKind::FellBehind);
    }
}

#[test]
fn what_a_place_has_passed_is_durable() {
    for policy in CrashPolicy::all(1) {
        for is_new in [false, true] {
            let disk = SimDisk::new();
            let (db, consumer, _) = begun(&disk);
            let keyspace = db.keyspace("k").unwrap();
            keyspace.insert("buffered", "1").unwrap();
            let name = if is_new { "new" } else { "c" };
            if is_new {
                db.consumer(name).unwrap();
            } else {
                consumer.acknowledge(db.snapshot().sequence()).unwrap();
            }
            let db = open(&disk.crash(policy));
            let place = db.consumer(name).unwrap().acknowledged().unwrap();
            assert_eq!(place, db.snapshot().sequence(), "{policy:?}");
            let found = db.keyspace("k").unwrap().get("buffered").unwrap();
            assert_eq!(found.as_deref(), Some(&b"1"[..]), "{policy:?}");
        }
    }
}

/// After a crash at each change while a consumer falls behind and is removed, each either holds everything or is as after
/// the call, and an open after a crash within an open loses nothing that is held.
#[test]
fn crashes_while_logs_are_kept_and_let_go_lose_no_held_change() {
    let disk = SimDisk::new();
    let (db, consumer, all) = held(&disk);
    let place = consumer.acknowledged().unwrap();
    // The other one stays.
    db.consumer("late").unwrap();
    drop((db, consumer));
    let images = observe(&disk, |_, image| image.clone());
    let mut bounded = options(&disk);
    let db = open(&disk);
    db.close().unwrap();
    bounded.change_retention.bytes = 1;
    let db = Db::open(FOLDER, bounded).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    for key in 0..60_u8 {
        keyspace.insert([key], [key; 200]).unwrap();
    }
    db.flush().unwrap();
    assert!(db.consumers().iter().all(|it| it.is_behind));
    db.remove_consumer("c").unwrap();
    disk.stop_observing();
    let (mut whole, mut behind, mut gone) = (0, 0, 0);
    for (at, image) in images.try_iter().enumerate() {
        for policy in CrashPolicy::all(at as u64) {
            let db = open(&SimDisk::from_image(image.crash(policy)));
            let stats = db.consumers();
            match stats.iter().find(|it| it.name == "c") {
                None => gone += 1,
                Some(stats) if stats.is_behind => {
                    let changes = db.consumer("c").unwrap().changes();
                    assert_eq!(kind(changes), ErrorKind::FellBehind);
                    behind += 1;
                }
                Some(stats) => {
                    assert_eq!(stats.acknowledged, place);
                    let found = rest(&mut db.consumer("c").unwrap().changes().unwrap());
                    assert_eq!(found[..all.len()], all, "change {at}, {policy:?}");
                    whole += 1;
                }
            }
            check_sound(&db);
        }
    }
    assert!(
        whole > 50 && behind > 5 && gone > 0,
        "{whole} {behind} {gone}"
    );
}

#[test]
fn a_full_disk_refuses_no_acknowledgement_and_no_removal() {
    let disk = SimDisk::new();
    let (db, consumer, all) = held(&disk);
    let has_reserve = || disk.image().read(Path::new("/data/db/RESERVE")).is_ok();
    assert!(has_reserve());
    disk.set_quota(Some(disk.used_bytes()));
    let mut acknowledged = 0;
    while has_reserve() {
        let place = all[acknowledged.min(20)].sequence();
        consumer.acknowledge(place).unwrap();
        acknowledged += 1;
        assert!(acknowledged < 100_000);
    }
    assert!(db.stats().is_disk_full);
    let before = disk.image().files_with("wal").len();
    db.remove_consumer("c").unwrap();
    assert!(disk.image().files_with("wal").len() < before);
    check_sound(&db);
}

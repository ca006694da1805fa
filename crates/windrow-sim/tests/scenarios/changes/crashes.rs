//! Crashes and failed operations beside a consumer, and while logs are kept for it and let go.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use windrow::{BatchWrite, Change, Consumer, Db, ErrorKind, Result};
use windrow_sim::disk::{AfterFailedSync, Effect, Fault, Image, OperationKind};
use windrow_sim::{CrashPolicy, SimDisk};

use super::{Contents, begun, contents, held, open, options, rest};
use crate::common::{Entries, FOLDER, check_sound, kind, observe};

/// What the consumer has seen and said.
#[derive(Debug, Clone)]
struct Progress {
    given: Vec<Change>,
    /// The place that is being acknowledged, and the last one that was.
    acknowledging: u64,
    acknowledged: u64,
}

impl Progress {
    /// Nothing is seen yet.
    fn of(consumer: &Consumer) -> Self {
        let place = consumer.acknowledged().unwrap();
        Self {
            given: Vec::new(),
            acknowledging: place,
            acknowledged: place,
        }
    }
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
    let (db, consumer) = begun(&disk);
    let progress = Arc::new(Mutex::new(Progress::of(&consumer)));
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
            let (db, consumer) = begun(&disk);
            let progress = Mutex::new(Progress::of(&consumer));
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

#[test]
fn what_a_place_has_passed_is_durable() {
    for policy in CrashPolicy::all(1) {
        for is_new in [false, true] {
            let disk = SimDisk::new();
            let (db, consumer) = begun(&disk);
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

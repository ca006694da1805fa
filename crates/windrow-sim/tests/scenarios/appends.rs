//! Compactions that append to table files: appends, consolidations and failures change no answer.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use windrow::{BlockSource, Db, Keyspace, Options, Result, SegmentLimit, Stats, View};
use windrow_sim::disk::{AfterFailedSync, Effect, Fault, OperationKind};
use windrow_sim::{CrashPolicy, SimDisk, SteppedRuntime};

use crate::common::{Entries, check_sound, entries, observe, on, open, small};

const COPY: &str = "/data/copy";

/// Options under which a few entries make several levels of files with many segments.
fn options(disk: &SimDisk, runtime: &SteppedRuntime) -> Options {
    let mut options = on(small(), disk, runtime);
    options.block_source = BlockSource::Buffered;
    options.keyspace.file_bytes = 4 << 10;
    options.keyspace.base_bytes = 8 << 10;
    options.keyspace.level0_runs = 4;
    options.keyspace.size_ratio = 4.0;
    options.keyspace.segment_limit = SegmentLimit::Fixed(12);
    options.keyspace.max_space_amp = f64::INFINITY;
    options
}

/// Writes the steps of a round to `keyspace` and `model`; some are removals.
fn write(keyspace: &Keyspace, model: &mut Entries, round: u64) {
    for step in 0..100 {
        let mixed = (round * 100 + step).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
        let key = format!("key{:04}", mixed % 700).into_bytes();
        if mixed.is_multiple_of(5) {
            keyspace.remove(&key).unwrap();
            model.remove(&key);
        } else {
            let value = format!("{round}-{step}").repeat(6).into_bytes();
            keyspace.insert(&key, &value).unwrap();
            model.insert(key, value);
        }
    }
}

fn check(db: &Db, keyspace: &Keyspace, model: &Entries) {
    assert!(entries(keyspace) == *model);
    for number in 0..700 {
        let key = format!("key{number:04}").into_bytes();
        assert_eq!(keyspace.get(&key).unwrap().as_ref(), model.get(&key));
    }
    check_sound(db);
}

/// The number of segments besides the first of each file.
fn more_segments(stats: &Stats) -> usize {
    let levels = stats.keyspaces[0].levels.iter();
    levels.map(|level| level.segments - level.files).sum()
}

#[test]
fn appends_and_opens_change_no_answer() {
    let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(1));
    let (mut db, mut keyspace) = open(options(&disk, &runtime));
    let mut model = Entries::new();
    let mut snapshots: Vec<(View, Entries)> = Vec::new();
    let (mut appends, mut consolidated, mut most) = (0, 0, 0);
    for round in 0..60 {
        write(&keyspace, &mut model, round);
        if round % 2 == 0 {
            db.wait_idle().unwrap();
        }
        if round % 7 == 0 {
            let view = keyspace.at(&db.snapshot()).unwrap();
            snapshots.push((view, model.clone()));
        }
        check(&db, &keyspace, &model);
        for (view, model) in &snapshots {
            let seen: Entries = view.iter().unwrap().collect::<Result<_>>().unwrap();
            assert!(seen == *model);
            for number in (0..700).step_by(13) {
                let key = format!("key{number:04}").into_bytes();
                assert_eq!(view.get(&key).unwrap().as_ref(), model.get(&key));
            }
        }
        let stats = db.stats();
        most = most.max(more_segments(&stats));
        if round % 20 == 19 {
            snapshots.clear();
            appends += stats.appends;
            consolidated += stats.consolidation_bytes_written;
            drop(keyspace);
            db.close().unwrap();
            (db, keyspace) = open(options(&disk, &runtime));
            assert_eq!(more_segments(&db.stats()), more_segments(&stats));
            check(&db, &keyspace, &model);
        }
    }
    assert!(
        appends > 30 && consolidated > 0 && most > 10,
        "{appends}, {consolidated}, {most}"
    );
}

#[test]
fn seeks_trigger_consolidation() {
    let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(1));
    let (db, keyspace) = open(options(&disk, &runtime));
    let mut model = Entries::new();
    for round in 0..25 {
        write(&keyspace, &mut model, round);
        db.flush().unwrap();
        db.wait_idle().unwrap();
    }
    // Without reads there is no consolidation.
    let before = db.stats();
    let level0 = |stats: &Stats| stats.keyspaces[0].levels[0].files;
    assert!(level0(&before) > 0 && more_segments(&before) > 2);
    runtime.advance(Duration::from_secs(9));
    runtime.run_until_idle(1000);
    assert_eq!(
        db.stats().consolidation_bytes_written,
        before.consolidation_bytes_written
    );

    let runs_per_seek = || {
        let before = db.stats();
        for number in (0..700).step_by(10) {
            let key = format!("key{number:04}").into_bytes();
            let mut cursor = keyspace.cursor().unwrap();
            let found = cursor.seek(&key).unwrap().then(|| cursor.key().to_vec());
            assert_eq!(
                found.as_ref(),
                model.range(key..).next().map(|(key, _)| key)
            );
        }
        let after = db.stats();
        let (seeks, visited) = (
            after.seeks - before.seeks,
            after.runs_visited - before.runs_visited,
        );
        assert_eq!(seeks, 70);
        visited as f64 / seeks as f64
    };
    let first = runs_per_seek();
    let mut last = first;
    for _ in 0..20 {
        last = runs_per_seek();
        runtime.advance(Duration::from_secs(2));
        runtime.run_until_idle(1000);
    }
    let after = db.stats();
    assert!(after.consolidation_bytes_written > before.consolidation_bytes_written);
    assert!(after.consolidation_bytes_read >= after.consolidation_bytes_written);
    assert_eq!((level0(&after), more_segments(&after)), (0, 0));
    assert!(last < first / 1.5, "{first} and then {last} runs a seek");
    check(&db, &keyspace, &model);
}

/// The engine cuts off the bytes of a failed append: the file is as before, and the next append is right. A
/// checkpoint with the same file shows no change.
#[test]
fn a_failed_append_changes_no_answer() {
    use AfterFailedSync::{Durable, LostAtCrash, Reverted};
    let plans = [
        (OperationKind::Open, Effect::Io, LostAtCrash),
        (OperationKind::Write, Effect::Io, LostAtCrash),
        (OperationKind::Write, Effect::NoSpace, LostAtCrash),
        (OperationKind::Sync, Effect::Io, LostAtCrash),
        (OperationKind::Sync, Effect::Io, Reverted),
        (OperationKind::Sync, Effect::Io, Durable),
    ];
    for (kind, effect, after) in plans {
        let (mut failed, mut written_over) = (0, 0);
        for rounds in 8..16 {
            // If the file cannot be cut, the next append overwrites the bytes.
            let cuts = rounds % 4 > 0;
            for at in 0.. {
                let fault = Fault::io(kind, at).with(effect).then(after);
                match with_fault(rounds, fault, cuts) {
                    Outcome::NoFault => break,
                    Outcome::Elsewhere => {}
                    Outcome::Append { again } => {
                        failed += 1;
                        written_over += u32::from(again);
                    }
                }
            }
        }
        assert!(failed > 2, "{kind:?}, {effect:?}, {after:?}: {failed}");
        assert!(written_over > 0, "{kind:?}, {effect:?}, {after:?}");
    }
}

enum Outcome {
    NoFault,
    Elsewhere,
    /// The fault hit an append. The next append may go to the same file.
    Append {
        again: bool,
    },
}

/// Lets compactions meet the fault after `rounds` of writes. `cuts`: whether files can be cut.
fn with_fault(rounds: u64, fault: Fault, cuts: bool) -> Outcome {
    let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(1));
    let (db, keyspace) = open(options(&disk, &runtime));
    let mut model = Entries::new();
    let synced = observe(&disk, |event, _| {
        let is_synced = event.is(OperationKind::Sync, "table");
        is_synced.then(|| event.path.clone())
    });
    for round in 0..rounds {
        write(&keyspace, &mut model, round);
        db.wait_idle().unwrap();
    }
    for round in rounds..rounds + 4 {
        write(&keyspace, &mut model, round);
    }
    let copied = entries(&keyspace);
    db.checkpoint(COPY).unwrap();
    let length = |path: &Path| disk.image().read(path).unwrap().len();
    let lengths: BTreeMap<PathBuf, usize> = disk
        .image()
        .files()
        .into_iter()
        .map(|path| (path.clone(), length(&path)))
        .collect();
    let no_cut = Fault::io(OperationKind::Truncate, 0).from_then_on();
    disk.set_faults(std::iter::once(fault).chain((!cuts).then_some(no_cut)));
    let outcome = db.wait_idle();
    let Some(hit) = disk.fault_log().pop() else {
        return Outcome::NoFault;
    };
    let before: BTreeSet<PathBuf> = synced.try_iter().flatten().collect();
    let own = |path: &&PathBuf| hit.contains(path.to_str().unwrap());
    let Some(path) = before.iter().find(own).filter(|_| outcome.is_err()) else {
        return Outcome::Elsewhere;
    };
    if let Some(known) = lengths.get(path).filter(|_| cuts) {
        assert_eq!(length(path), *known, "bytes remain behind the end");
    }
    check(&db, &keyspace, &model);
    disk.set_faults([]);
    db.wait_idle().unwrap();
    let again = synced.try_iter().flatten().any(|other| other == *path);
    check(&db, &keyspace, &model);
    db.persist().unwrap();
    let crashed = disk.crash(CrashPolicy::DropUnsynced);
    for disk in [crashed, disk.end_process()] {
        let copy = Db::open(COPY, options(&disk, &runtime)).unwrap();
        assert!(entries(&copy.keyspace("k").unwrap()) == copied);
        check_sound(&copy);
        let (db, keyspace) = open(options(&disk, &runtime));
        check(&db, &keyspace, &model);
        let mut model = model.clone();
        write(&keyspace, &mut model, 99);
        db.wait_idle().unwrap();
        check(&db, &keyspace, &model);
    }
    Outcome::Append { again }
}

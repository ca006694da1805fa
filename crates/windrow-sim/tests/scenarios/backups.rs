//! Backups: what they copy, beside which work, of which databases, and at which rate.
//!
//! [`crashes`] lets the power fail, [`damage`] and [`faults`] change bytes and fail operations, [`histories`] writes
//! at random.

pub(crate) mod crashes;
mod damage;
pub(crate) mod faults;
mod histories;

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use windrow::backup::{BackupPhase, Backups, FolderStore, Purge};
use windrow::runtime::Runtime;
use windrow::{Db, Options, Result, SegmentLimit};
use windrow_sim::{SimDisk, SteppedRuntime};

use crate::common::{Entries, FOLDER, check_sound, entries, on, small};

/// The folder of the backups.
pub(crate) const BACKUPS: &str = "/data/backups";

/// The folder of a restored database.
pub(crate) const RESTORED: &str = "/data/restored";

fn options(disk: &SimDisk, runtime: &SteppedRuntime) -> Options {
    let mut options = on(small(), disk, runtime);
    options.keyspace.level0_runs = 1;
    options.keyspace.size_ratio = 2.0;
    options.keyspace.large_from = 400;
    options.max_wal_bytes = 64 << 10;
    options
}

fn open(disk: &SimDisk, runtime: &SteppedRuntime, folder: &str) -> Result<Db> {
    let mut options = options(disk, runtime);
    options.create_if_missing = folder == FOLDER;
    Db::open(folder, options)
}

pub(crate) fn backups(disk: &SimDisk, runtime: &SteppedRuntime) -> Result<Backups> {
    let store = FolderStore::open(Arc::new(disk.clone()), BACKUPS)?;
    let backups = Backups::new(Arc::new(store));
    Ok(backups
        .with_vfs(Arc::new(disk.clone()))
        .with_runtime(Arc::new(runtime.clone())))
}

/// Writes small and large values, and removes some. Equal rounds with equal `seed` write equal bytes; others write as many.
fn write(db: &Db, rounds: Range<u32>, seed: u32) {
    let keyspace = db.keyspace("main").unwrap();
    for round in rounds {
        let key = (round * 7 % 64).to_be_bytes();
        let times = if round % 9 == 0 { 150 } else { 30 };
        let value = [(round ^ seed << 16).to_be_bytes(); 150];
        keyspace.insert(key, value[..times].concat()).unwrap();
        if round % 5 == 0 {
            keyspace.remove((round % 64).to_be_bytes()).unwrap();
        }
    }
}

fn contents(db: &Db) -> Entries {
    entries(&db.keyspace("main").unwrap())
}

/// Makes a backup after each of the first two times `rounds` rounds of writes, and returns what they hold.
fn two_backups(db: &Db, backups: &Backups, rounds: u32) -> Vec<Entries> {
    let backup = |begin| {
        write(db, begin..begin + rounds, 0);
        db.wait_idle().unwrap();
        db.backup(backups).unwrap();
        contents(db)
    };
    [0, rounds].map(backup).to_vec()
}

/// Restores backup `number` and returns what it holds.
fn restored(disk: &SimDisk, backups: &Backups, number: u64) -> Entries {
    backups.restore(number, RESTORED).unwrap();
    let runtime = SteppedRuntime::new(77);
    let db = open(disk, &runtime, RESTORED).unwrap();
    check_sound(&db);
    let entries = contents(&db);
    db.close().unwrap();
    remove_all(disk, RESTORED);
    entries
}

pub(crate) fn files(disk: &SimDisk, folder: &str) -> Vec<PathBuf> {
    let mut files = disk.image().files();
    files.retain(|path| path.starts_with(folder));
    files
}

pub(crate) fn remove_all(disk: &SimDisk, folder: &str) {
    for path in files(disk, folder) {
        disk.edit(|image| image.remove(&path)).unwrap();
    }
}

/// The bytes of all objects of the store.
fn stored_bytes(disk: &SimDisk) -> u64 {
    let objects = files(disk, BACKUPS);
    let lengths = objects
        .iter()
        .map(|path| disk.image().read(path).unwrap().len() as u64);
    lengths.sum()
}

/// The numbers of the backups, all of which can be used.
fn numbers(backups: &Backups) -> Vec<u64> {
    let listed = backups.list().unwrap();
    let number = |listed: &windrow::backup::ListedBackup| {
        assert!(listed.backup.is_ok(), "{listed:?}");
        listed.number
    };
    listed.iter().map(number).collect()
}

#[test]
fn each_backup_restores_its_own_state() {
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let mut expected = Vec::new();
    // Each round in an open of its own, twice.
    for round in 0..3 {
        let db = open(&disk, &runtime, FOLDER).unwrap();
        let backups = backups(&disk, &runtime).unwrap();
        for half in 0..2 {
            let first = (2 * round + half) * 150;
            write(&db, first..first + 150, 0);
            if half == 1 {
                db.flush().unwrap();
                db.wait_idle().unwrap();
            }
            let made = db.backup(&backups).unwrap();
            expected.push(contents(&db));
            assert_eq!(made.number, expected.len() as u64);
            assert_eq!(made.sequence, db.stats().sequence);
        }
        db.close().unwrap();
    }
    let backups = backups(&disk, &runtime).unwrap();
    assert!(backups.verify(None).unwrap().is_sound());
    for (number, expected) in (1..).zip(&expected) {
        assert_eq!(restored(&disk, &backups, number), *expected, "{number}");
    }
    let purged = backups.purge(Purge::KeepNewest(2)).unwrap();
    assert_eq!(purged.backups, [1, 2, 3, 4]);
    assert!(purged.pieces > 0);
    assert_eq!(numbers(&backups), [5, 6]);
    for (number, expected) in (5..).zip(&expected[4..]) {
        assert_eq!(restored(&disk, &backups, number), *expected, "{number}");
    }
    let before = stored_bytes(&disk);
    let freed = backups.list().unwrap()[0]
        .backup
        .as_ref()
        .unwrap()
        .own_bytes;
    let purged = backups.purge(Purge::Backup(5)).unwrap();
    assert_eq!((purged.backups, purged.bytes), (vec![5], freed));
    assert!(stored_bytes(&disk) < before - freed);
    assert_eq!(restored(&disk, &backups, 6), expected[5]);
}

/// A table to which segments are appended, a value log and a log: each adds what it has grown by.
#[test]
fn a_file_that_has_grown_adds_what_it_has_grown_by() {
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let mut options = options(&disk, &runtime);
    options.keyspace.segment_limit = SegmentLimit::Fixed(12);
    options.keyspace.max_space_amp = f64::INFINITY;
    let db = Db::open(FOLDER, options).unwrap();
    let backups = backups(&disk, &runtime).unwrap();
    let (mut known, mut shared) = (BTreeSet::new(), 0);
    let mut lengths = std::collections::BTreeMap::new();
    for round in 0..8 {
        write(&db, round * 80..round * 80 + 80, 0);
        db.flush().unwrap();
        db.wait_idle().unwrap();
        write(&db, round * 80..round * 80 + 5, 1);
        db.persist().unwrap();
        let before = stored_bytes(&disk);
        let made = db.backup(&backups).unwrap();
        let copied = stored_bytes(&disk) - before;
        assert_eq!(made.copied_bytes, copied);
        let mut grown = 0;
        for path in files(&disk, FOLDER) {
            let extension = path.extension().and_then(|it| it.to_str());
            if matches!(extension, Some("table" | "values" | "dead" | "wal")) {
                let length = disk.image().read(&path).unwrap().len() as u64;
                let before = lengths.insert(path.clone(), length).unwrap_or(0);
                shared += u64::from(before > 0 && before < length && extension == Some("table"));
                grown += length - before;
            }
        }
        let manifest = PathBuf::from(BACKUPS).join(format!("{:06}.backup", made.number));
        let manifest = disk.image().read(&manifest).unwrap().len() as u64;
        assert!(copied <= grown + manifest, "{copied} of {grown}");
        known.insert(made.number);
    }
    assert!(
        db.stats().appends > 3 && shared > 3,
        "{shared} tables have grown"
    );
    assert_eq!(numbers(&backups).len(), known.len());
    assert_eq!(restored(&disk, &backups, 8), contents(&db));
    // The restored tables are files of their own, so appends to them continue.
    backups.restore(8, RESTORED).unwrap();
    let copy = open(&disk, &runtime, RESTORED).unwrap();
    write(&copy, 900..1000, 2);
    copy.flush().unwrap();
    copy.wait_idle().unwrap();
    check_sound(&copy);
}

/// A log that grows between the backups. After so many pieces that more of them would slow the restore, it is one again.
#[test]
fn a_file_does_not_fall_into_ever_more_pieces() {
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let mut options = options(&disk, &runtime);
    // One log for all of it.
    options.keyspace.memtable_bytes = 64 << 10;
    let db = Db::open(FOLDER, options).unwrap();
    let backups = backups(&disk, &runtime).unwrap();
    let (mut states, mut copied) = (Vec::new(), Vec::new());
    for round in 0..70 {
        write(&db, round..round + 1, 0);
        copied.push(db.backup(&backups).unwrap().copied_bytes);
        states.push(contents(&db));
    }
    assert_eq!(db.stats().flushes, 0);
    // One backup copies the whole log, and the next one again what it has grown by.
    let sizes: Vec<u64> = (1..)
        .zip(&copied)
        .map(|(number, copied)| {
            let manifest = PathBuf::from(BACKUPS).join(format!("{number:06}.backup"));
            copied - disk.image().read(&manifest).unwrap().len() as u64
        })
        .collect();
    let whole = (1..sizes.len()).filter(|at| sizes[*at] > 10 * sizes[0]);
    assert_eq!(whole.collect::<Vec<_>>(), [64], "{sizes:?}");
    for number in [1, 63, 64, 65, 66, 70] {
        let state = &states[usize::try_from(number).unwrap() - 1];
        assert_eq!(restored(&disk, &backups, number), *state, "{number}");
    }
}

/// Both give the same numbers to files of the same lengths.
#[test]
fn databases_that_have_parted_do_not_share_different_files() {
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let backups = backups(&disk, &runtime).unwrap();
    let db = open(&disk, &runtime, FOLDER).unwrap();
    write(&db, 0..200, 0);
    db.backup(&backups).unwrap();
    db.close().unwrap();
    let mut written = Vec::new();
    let mut names = Vec::new();
    for (number, seed) in [(2, 1), (3, 2)] {
        let folder = format!("/data/parted{seed}");
        backups.restore(1, &folder).unwrap();
        // Runtimes with different numbers, as two processes have.
        let runtime = SteppedRuntime::new(10 + u64::from(seed));
        let db = open(&disk, &runtime, &folder).unwrap();
        write(&db, 200..400, seed);
        db.flush().unwrap();
        runtime.run_until_idle(1000);
        assert_eq!(db.backup(&backups).unwrap().number, number);
        written.push(contents(&db));
        let own = files(&disk, &folder);
        let name = |path: &PathBuf| path.file_name().unwrap().to_owned();
        names.push(own.iter().map(name).collect::<Vec<_>>());
    }
    assert!(written[0] != written[1]);
    assert_eq!(names[0], names[1]);
    for (number, written) in (2..).zip(written) {
        assert_eq!(restored(&disk, &backups, number), written);
    }
}

/// Writes, flushes, compactions and garbage collections run while a backup reads. It holds what was there when it began.
#[test]
fn a_backup_beside_writers_and_jobs_holds_one_state() {
    let disk = SimDisk::new();
    disk.forbid_removal_in_use(".table");
    let runtime = SteppedRuntime::new(1);
    let mut options = options(&disk, &runtime);
    options.keyspace.max_space_amp = 1.06;
    options.reserve_bytes = 0;
    let db = Arc::new(Db::open(FOLDER, options).unwrap());
    let (calls, copying) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let progress = {
        let (db, runtime) = (Arc::downgrade(&db), runtime.clone());
        let (calls, copying) = (Arc::clone(&calls), Arc::clone(&copying));
        move |progress: windrow::backup::BackupProgress| {
            let call = calls.fetch_add(1, Ordering::Relaxed);
            copying.fetch_add(
                u32::from(progress.phase == BackupPhase::Copying),
                Ordering::Relaxed,
            );
            if let Some(db) = db.upgrade() {
                write(&db, call * 40..call * 40 + 40, 3);
                runtime.run_until_idle(1000);
                runtime.advance(Duration::from_secs(1));
            }
        }
    };
    let backups = backups(&disk, &runtime).unwrap().with_progress(progress);
    for round in 0..3 {
        write(&db, round * 300..round * 300 + 300, 0);
        let before = contents(&db);
        let jobs = db.stats();
        let made = db.backup(&backups).unwrap();
        let after = db.stats();
        assert!(after.compactions > jobs.compactions + 3);
        assert!(contents(&db) != before);
        let quiet = backups_to_read(&disk);
        assert_eq!(restored(&disk, &quiet, made.number), before);
    }
    assert!(db.stats().garbage_collections > 0);
    assert!(copying.load(Ordering::Relaxed) > 10);
}

/// The same backups without a listener, beside those that are open.
fn backups_to_read(disk: &SimDisk) -> Backups {
    let store = FolderStore::open_read_only(Arc::new(SimDisk::from_image(disk.image())), BACKUPS);
    Backups::new(Arc::new(store.unwrap())).with_vfs(Arc::new(disk.clone()))
}

#[test]
fn a_rate_bounds_what_is_read() {
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let db = open(&disk, &runtime, FOLDER).unwrap();
    write(&db, 0..500, 0);
    db.wait_idle().unwrap();
    let rate = 1000;
    let backups = backups(&disk, &runtime).unwrap().with_rate(rate);
    let time = |call: &dyn Fn()| {
        let before = runtime.now();
        call();
        runtime.now().saturating_sub(before).as_secs()
    };
    // New files are read twice, and the bucket lets the bytes of a quarter of a second pass at once.
    let bytes = AtomicU32::new(0);
    let took = time(&|| {
        let made = db.backup(&backups).unwrap();
        bytes.store(u32::try_from(made.bytes).unwrap(), Ordering::Relaxed);
    });
    let bytes = u64::from(bytes.load(Ordering::Relaxed));
    assert!(bytes > 20 * rate, "{bytes}");
    assert!(
        (2 * bytes / rate - 2..2 * bytes / rate + 5).contains(&took),
        "{took}"
    );
    // The second one reads what has changed.
    let took = time(&|| {
        db.backup(&backups).unwrap();
    });
    assert!(took < 3, "{took}");
    for call in [
        &(|| drop(backups.verify(Some(1)).unwrap())) as &dyn Fn(),
        &|| backups.restore(1, RESTORED).unwrap(),
    ] {
        let took = time(call);
        assert!(
            (bytes / rate - 2..bytes / rate + 5).contains(&took),
            "{took}"
        );
    }
}

/// By the clock of the system. One whose time lies ahead is not old.
#[test]
fn a_purge_by_age_or_count_keeps_the_newest() {
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let db = open(&disk, &runtime, FOLDER).unwrap();
    let backups = backups(&disk, &runtime).unwrap();
    let hours = |hours: u64| Duration::from_secs(1_000_000 + 3600 * hours);
    for hour in [0, 1, 30, 2, 3] {
        runtime.set_unix_time(hours(hour));
        write(&db, 0..20, u32::try_from(hour).unwrap());
        db.backup(&backups).unwrap();
    }
    runtime.set_unix_time(hours(4));
    for kept in [5, 6, usize::MAX] {
        let purged = backups.purge(Purge::KeepNewest(kept)).unwrap();
        assert!(purged.backups.is_empty(), "{kept}");
    }
    let older = |age: u64| Purge::OlderThan(Duration::from_secs(3600 * age));
    assert!(backups.purge(older(4)).unwrap().backups.is_empty());
    assert_eq!(backups.purge(older(2)).unwrap().backups, [1, 2]);
    assert_eq!(numbers(&backups), [3, 4, 5]);
    runtime.set_unix_time(hours(100));
    assert_eq!(backups.purge(older(1)).unwrap().backups, [3, 4]);
    assert_eq!(restored(&disk, &backups, 5), contents(&db));
}

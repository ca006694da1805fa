//! Scrubs: what they find, how fast they read, where they go on, and what they leave alone.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use windrow::backup::{Backups, FolderStore};
use windrow::{Db, Event, Options, Scrub, ScrubReport};
use windrow_sim::disk::{Fault, OperationKind};
use windrow_sim::{CrashPolicy, SimDisk, SteppedRuntime};

use crate::common::{FOLDER, entries, listen, on, small};

const BACKUPS: &str = "/data/backups";

/// The time in which the background checks everything once.
const INTERVAL: Duration = Duration::from_secs(1000);

/// A step reads about as much.
const STEP_BYTES: u64 = 1 << 20;

/// Where the system's clock begins.
const START: Duration = Duration::from_secs(2_000_000);

/// Options under which values of 100 bytes are in transient logs, and those of 500 in value logs.
fn all_kinds(disk: &SimDisk, runtime: &SteppedRuntime) -> Options {
    let mut options = on(small(), disk, runtime);
    options.keyspace.medium_from = 64;
    options.keyspace.large_from = 400;
    options.keyspace.max_space_amp = f64::INFINITY;
    options
}

/// Files of all kinds, complete ones and growing ones.
fn make_all_kinds(options: &Options) {
    let db = Db::open(FOLDER, options.clone()).unwrap();
    db.consumer("c").unwrap();
    let keyspace = db.keyspace("k").unwrap();
    for number in 0..900_u16 {
        let length = [20, 100, 500][usize::from(number % 3)];
        let key = (number % 60).to_be_bytes();
        let [_, byte] = number.to_be_bytes();
        keyspace.insert(key, vec![byte; length]).unwrap();
        if number % 100 == 0 {
            db.flush().unwrap();
            db.wait_idle().unwrap();
        }
    }
    keyspace.compact_range::<&[u8]>(..).unwrap();
    keyspace.insert("unflushed", "1").unwrap();
    drop(keyspace);
    db.close().unwrap();
}

fn names(report: &ScrubReport) -> Vec<&str> {
    report.damage.iter().map(|it| it.file.as_str()).collect()
}

fn name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

/// The files and messages of the damage that is found.
fn damage_events(options: Options) -> (Options, Receiver<(String, String)>) {
    listen(options, |event| match event {
        Event::DamageFound { file, damage, .. } => Some((file.clone(), damage.clone())),
        _ => None,
    })
}

#[test]
fn a_damaged_byte_in_each_kind_of_file_is_found_once() {
    let disk = SimDisk::new();
    let options = all_kinds(&disk, &SteppedRuntime::new(1));
    make_all_kinds(&options);
    let (options, events) = damage_events(options);
    let db = Db::open(FOLDER, options).unwrap();
    let sound = db.scrub(&Scrub::default()).unwrap();
    assert!(sound.is_sound() && sound.files > 5, "{sound:?}");
    // By extension: the flips, and those that were found.
    let mut counts: BTreeMap<String, [usize; 2]> = BTreeMap::new();
    let image = disk.image();
    for path in image.files() {
        let extension = path.extension().and_then(|it| it.to_str());
        let Some(extension) =
            extension.filter(|it| ["table", "values", "dead", "wal"].contains(it))
        else {
            continue;
        };
        let length = image.read(&path).unwrap().len();
        let last = length.checked_sub(1);
        let others = (0..length).step_by(length.div_ceil(12).max(1));
        for offset in others.chain(last) {
            let flip = || disk.edit(|image| image.flip(&path, offset, 4)).unwrap();
            flip();
            let report = db.scrub(&Scrub::default()).unwrap();
            let is_in_verify = !db.verify().unwrap().is_sound();
            flip();
            let found = events.try_iter().count();
            assert_eq!(found, report.damage.len());
            assert!(found <= 1, "{path:?} at {offset}: {report:?}");
            assert!(found == 1 || !is_in_verify, "{path:?} at {offset}");
            if found == 1 {
                assert_eq!(names(&report), [name(&path)], "{report:?}");
                let damage = report.damage[0].to_string();
                assert!(damage.contains("windrow repair"), "{damage}");
            }
            let counts = counts.entry(extension.to_owned()).or_default();
            *counts = [counts[0] + 1, counts[1] + found];
        }
    }
    let [flips, found] = counts["table"];
    assert_eq!(flips, found, "every byte of a table has a checksum");
    for extension in ["values", "dead", "wal"] {
        assert!(counts[extension][1] > 10, "{extension}: {counts:?}");
    }
    // No file of the log that is written, and no value log that is, can be judged.
    assert!(db.scrub(&Scrub::default()).unwrap().is_sound());
    let found: usize = counts.values().map(|count| count[1]).sum();
    assert_eq!(db.stats().damaged_files, found as u64);
}

/// A database of about 8 MiB in large values, whose background work is stepped.
fn make_large(disk: &SimDisk, runtime: &SteppedRuntime) -> Options {
    let mut options = on(small(), disk, runtime);
    options.keyspace.medium_from = u64::MAX;
    options.keyspace.large_from = u64::MAX;
    options.keyspace.file_bytes = 256 << 10;
    options.keyspace.memtable_bytes = 1 << 20;
    options.keyspace.base_bytes = 64 << 20;
    options.keyspace.level0_runs = 64;
    options.full_scrub_interval = INTERVAL;
    runtime.set_unix_time(START);
    let db = Db::open(FOLDER, options.clone()).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    for number in 0..80_u8 {
        let value = vec![number; 100 << 10];
        // Each flush has keys between those of the others.
        let key = number % 4 * 20 + number / 4;
        keyspace.insert([key], value).unwrap();
        if number % 4 == 3 {
            db.flush().unwrap();
        }
    }
    drop(keyspace);
    db.close().unwrap();
    options
}

fn table_bytes(disk: &SimDisk) -> u64 {
    let image = disk.image();
    let tables = image.files_with("table").into_iter();
    let lengths = tables.map(|path| image.read(&path).unwrap().len() as u64);
    lengths.sum()
}

/// Lets `seconds` pass from `start` on, a second at a time, and runs what is due. `look` sees each second.
fn pass(runtime: &SteppedRuntime, start: u64, seconds: u64, mut look: impl FnMut(u64)) {
    for second in start..start + seconds {
        runtime.set_unix_time(START + Duration::from_secs(second));
        runtime.advance(Duration::from_secs(1));
        runtime.run_until_idle(3);
        look(second);
    }
}

#[test]
fn the_background_reads_each_byte_once_in_its_time() {
    let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(1));
    let (options, events) = damage_events(make_large(&disk, &runtime));
    let total = table_bytes(&disk);
    assert!(total > 7 * STEP_BYTES);
    let damaged = disk.edit(|image| {
        let path = image.files_with("table").into_iter().nth(5).unwrap();
        image.flip(&path, 200_000, 1).unwrap();
        path
    });
    let db = Db::open(FOLDER, options.clone()).unwrap();
    // Not in the first minute, and never faster than a step a second, however late it is.
    pass(&runtime, 500, 59, |_| ());
    assert_eq!(db.stats().scrubbed_bytes, 0);
    let mut before = 0;
    pass(&runtime, 559, 480, |second| {
        let bytes = db.stats().scrubbed_bytes;
        assert!(bytes - before <= STEP_BYTES + (200 << 10), "at {second}");
        before = bytes;
        // The pass began with its first look.
        let wanted = total * second.saturating_sub(560) / INTERVAL.as_secs();
        assert!(bytes <= wanted + 2 * STEP_BYTES, "at {second}: {bytes}");
        assert!(bytes + STEP_BYTES / 2 >= wanted, "at {second}: {bytes}");
    });
    let half = db.stats().scrubbed_bytes;
    assert!((total / 3..total * 2 / 3).contains(&half), "{half}");
    let found = events.try_iter().collect::<Vec<_>>();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, name(&damaged));
    // The table stays readable elsewhere: a get fails if it has to look into the damaged block.
    let keyspace = db.keyspace("k").unwrap();
    let readable = |key: &u8| keyspace.get([*key]).is_ok();
    let count = (0..80).filter(readable).count();
    assert!((60..80).contains(&count), "{count}");
    drop(keyspace);
    db.close().unwrap();

    // The next open goes on where this one was, and reports the damage once more.
    let db = Db::open(FOLDER, options).unwrap();
    pass(&runtime, 1039, 500, |_| ());
    let rest = db.stats().scrubbed_bytes;
    let (least, most) = (total - half - 2 * STEP_BYTES, total - half + STEP_BYTES);
    assert!((least..most).contains(&rest), "{rest} of {total}: {half}");
    assert_eq!(events.try_iter().count(), 1);
    assert_eq!(db.stats().damaged_files, 1);
    // Then it rests until the next pass is due.
    pass(&runtime, 1539, 20, |_| ());
    assert_eq!(db.stats().scrubbed_bytes, rest);
    pass(&runtime, 1559, 480, |_| ());
    assert!(db.stats().scrubbed_bytes > rest + total / 3);
    assert_eq!(events.try_iter().count(), 1);
    db.close().unwrap();
}

#[test]
fn an_interrupted_scrub_goes_on_where_it_was() {
    let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(1));
    let options = make_large(&disk, &runtime);
    let total = table_bytes(&disk);
    let damaged = disk.edit(|image| {
        let path = image.files_with("table").into_iter().min().unwrap();
        image.flip(&path, 200_000, 1).unwrap();
        path
    });
    let db = Db::open(FOLDER, options.clone()).unwrap();
    let image = Cell::new(None);
    let stop_at = total / 2;
    let look = |at: windrow::ScrubProgress| {
        if at.done >= stop_at {
            image.set(image.take().or_else(|| Some(disk.image())));
        }
    };
    let whole = db.scrub(&Scrub::default().with_progress(&look)).unwrap();
    assert_eq!(names(&whole), [name(&damaged)]);
    assert_eq!(whole.resumed_bytes, 0);
    let left = disk
        .image()
        .files()
        .into_iter()
        .map(|path| name(&path).to_owned());
    assert!(!left.into_iter().any(|it| it.starts_with("SCRUB.")));
    db.close().unwrap();

    // The process ends within the pass, or the power fails: nothing has synced the note.
    let image = image.take().unwrap();
    for policy in CrashPolicy::all(7) {
        let disk = SimDisk::from_image(image.crash(policy));
        let options = on(options.clone(), &disk, &SteppedRuntime::new(2));
        let db = Db::open(FOLDER, options).unwrap();
        let report = db.scrub(&Scrub::default()).unwrap();
        assert_eq!(names(&report), [name(&damaged)], "{policy:?}");
        let all = report.bytes + report.resumed_bytes;
        assert!((whole.bytes - STEP_BYTES..whole.bytes + STEP_BYTES).contains(&all));
        match policy {
            CrashPolicy::KeepAll => assert!(report.resumed_bytes >= stop_at),
            CrashPolicy::DropUnsynced => assert_eq!(report.resumed_bytes, 0),
            _ => {}
        }
        db.close().unwrap();
    }
}

#[test]
fn files_that_a_merge_removes_meanwhile_are_no_damage() {
    let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(1));
    let options = make_large(&disk, &runtime);
    let before = disk.image().files_with("table");
    let db = Db::open(FOLDER, options).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    let is_merged = Cell::new(false);
    let merge = |_| {
        if !is_merged.replace(true) {
            keyspace.compact_range::<&[u8]>(..).unwrap();
            db.wait_idle().unwrap();
        }
    };
    let report = db.scrub(&Scrub::default().with_progress(&merge)).unwrap();
    assert!(report.is_sound(), "{report:?}");
    let after = disk.image().files_with("table");
    assert!(before.iter().all(|path| !after.contains(path)));
    assert_eq!(db.stats().damaged_files, 0);
}

fn backups(disk: &SimDisk, runtime: &SteppedRuntime) -> Backups {
    let store = FolderStore::open(Arc::new(disk.clone()), BACKUPS).unwrap();
    Backups::new(Arc::new(store))
        .with_vfs(Arc::new(disk.clone()))
        .with_runtime(Arc::new(runtime.clone()))
}

#[test]
fn the_newest_backup_that_has_the_file_whole_is_named() {
    for extension in ["table", "values"] {
        let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(1));
        let mut options = on(small(), &disk, &runtime);
        options.keyspace.large_from = 400;
        options.keyspace.level0_runs = 64;
        let backups = backups(&disk, &runtime);
        let write = |range: std::ops::Range<u32>| {
            let db = Db::open(FOLDER, options.clone()).unwrap();
            let keyspace = db.keyspace("k").unwrap();
            for number in range {
                keyspace.insert(number.to_be_bytes(), [7; 500]).unwrap();
            }
            db.flush().unwrap();
            drop(keyspace);
            // Another open reads the files again for its backup.
            db.close().unwrap();
            let db = Db::open(FOLDER, options.clone()).unwrap();
            let number = db.backup(&backups).unwrap().number;
            db.close().unwrap();
            number
        };
        write(0..3);
        let has = |disk: &SimDisk| disk.image().files_with(extension);
        let path: PathBuf = has(&disk).into_iter().min().unwrap();
        let whole = write(10..13);
        disk.edit(|image| image.flip(&path, 100, 1)).unwrap();
        // This one has the damage.
        let last = write(20..23);
        assert_eq!((whole, last), (2, 3));

        let db = Db::open(FOLDER, options.clone()).unwrap();
        let alone = db.scrub(&Scrub::default()).unwrap();
        assert_eq!(
            (names(&alone), alone.damage[0].backup),
            (vec![name(&path)], None)
        );
        let report = db.scrub(&Scrub::default().with_backups(&backups)).unwrap();
        assert_eq!(
            (names(&report), report.damage[0].backup),
            (vec![name(&path)], Some(whole))
        );
        let next_step = report.damage[0].next_step();
        assert!(
            next_step.starts_with("backup 2 has this file whole: restore it"),
            "{next_step}"
        );
        db.close().unwrap();

        // What it says helps.
        backups.restore(whole, "/data/restored").unwrap();
        let copy = disk
            .image()
            .read(&Path::new("/data/restored").join(name(&path)));
        disk.edit(|image| image.write(&path, &copy.unwrap()))
            .unwrap();
        let db = Db::open(FOLDER, options).unwrap();
        let report = db.scrub(&Scrub::default().with_backups(&backups)).unwrap();
        assert!(
            report.is_sound() && db.verify().unwrap().is_sound(),
            "{report:?}"
        );
        assert_eq!(entries(&db.keyspace("k").unwrap()).len(), 9);
    }
}

#[test]
fn a_device_that_cannot_read_a_file_is_reported_and_poisons_nothing() {
    let disk = SimDisk::new();
    let options = all_kinds(&disk, &SteppedRuntime::new(1));
    make_all_kinds(&options);
    let (options, events) = damage_events(options);
    let db = Db::open(FOLDER, options).unwrap();
    let reads = |db: &Db| {
        disk.set_faults([]);
        let report = db.scrub(&Scrub::default()).unwrap();
        assert!(report.is_sound());
        disk.operations(OperationKind::Read)
    };
    let count = reads(&db);
    for at in (0..count).step_by(5) {
        disk.set_faults([Fault::io(OperationKind::Read, at)]);
        let report = db.scrub(&Scrub::default()).unwrap();
        disk.set_faults([]);
        assert!(report.damage.len() <= 1, "{report:?}");
        assert_eq!(events.try_iter().count(), report.damage.len());
    }
    assert!(db.stats().damaged_files > 3);
    db.keyspace("k")
        .unwrap()
        .insert("still", "written")
        .unwrap();
    db.close().unwrap();
}

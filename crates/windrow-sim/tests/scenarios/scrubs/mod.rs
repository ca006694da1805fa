//! Scrubs: what they find, how fast they read, where they go on, and what they leave alone.

mod failures;
mod notes;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use windrow::backup::{Backups, FolderStore};
use windrow::vfs::Vfs;
use windrow::{Compression, Db, ErrorKind, Event, Options, Scrub, ScrubReport};
use windrow_sim::disk::{Effect, Fault, OperationKind};
use windrow_sim::{CrashPolicy, SimDisk, SteppedRuntime};

use crate::common::{FOLDER, count, entries, kind, listen, on, open, small};
use crate::hooked_disk::HookedDisk;

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
    // By extension.
    let mut flips: BTreeMap<String, u64> = BTreeMap::new();
    let image = disk.image();
    // What is written cannot be judged.
    let active = image.files_with("wal").into_iter().max().unwrap();
    for path in image.files().into_iter().filter(|path| *path != active) {
        let extension = path.extension().and_then(|it| it.to_str());
        let Some(extension) =
            extension.filter(|it| ["table", "values", "dead", "wal"].contains(it))
        else {
            continue;
        };
        let length = image.read(&path).unwrap().len();
        let others = (0..length).step_by(length.div_ceil(12).max(1));
        for offset in others.chain([length - 1]) {
            let flip = || disk.edit(|image| image.flip(&path, offset, 4)).unwrap();
            flip();
            let report = db.scrub(&Scrub::default()).unwrap();
            flip();
            assert_eq!(names(&report), [name(&path)], "at {offset}: {report:?}");
            let damage = report.damage[0].to_string();
            assert!(damage.contains("windrow repair"), "{damage}");
            assert_eq!(events.try_iter().count(), 1);
            *flips.entry(extension.to_owned()).or_default() += 1;
        }
    }
    assert!(db.scrub(&Scrub::default()).unwrap().is_sound());
    assert!(flips.len() == 4 && flips.values().all(|count| *count > 20));
    assert_eq!(db.stats().damaged_files, flips.values().sum::<u64>());
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
fn values_that_are_longer_than_their_table_are_checked_to_the_last() {
    let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(1));
    let mut options = on(small(), &disk, &runtime);
    options.keyspace.memtable_bytes = 16 << 20;
    options.keyspace.medium_from = 64;
    options.keyspace.large_from = u64::MAX;
    options.full_scrub_interval = INTERVAL;
    runtime.set_unix_time(START);
    let (options, events) = damage_events(options);
    let (db, keyspace) = open(options.clone());
    for number in 0..30_u8 {
        keyspace.insert([number], vec![1; 100 << 10]).unwrap();
    }
    keyspace.insert("z", vec![0xE7; 100 << 10]).unwrap();
    db.flush().unwrap();
    drop(keyspace);
    db.close().unwrap();
    disk.edit(|image| {
        let is_in = |path: &PathBuf| {
            let bytes = image.read(path).unwrap();
            bytes.windows(9).rposition(|it| it == [0xE7; 9])
        };
        let files = image.files_with("values");
        let mut places = files.into_iter().filter_map(|it| Some((is_in(&it)?, it)));
        let (offset, path) = places.next().unwrap();
        image.flip(&path, offset, 1).unwrap();
    });
    let db = Db::open(FOLDER, options).unwrap();
    pass(&runtime, 0, INTERVAL.as_secs() + 100, |_| ());
    let (file, damage) = events.try_recv().unwrap();
    assert!(file.ends_with(".values"), "{file}: {damage}");
    assert!(db.stats().scrubbed_bytes > 3 * STEP_BYTES);
}

/// Values in a value log, and the other half in a log that a consumer keeps: 6 MiB each if a large value has 100 KiB.
fn make_long_logs(options: &Options, large_bytes: usize) {
    let (db, keyspace) = open(options.clone());
    db.consumer("c").unwrap();
    for number in 0..60_u8 {
        keyspace
            .insert([number], vec![number; large_bytes])
            .unwrap();
        for half in ["a", "b"] {
            let value = vec![number; large_bytes / 2];
            keyspace.insert(half, value).unwrap();
        }
    }
    db.flush().unwrap();
    drop(keyspace);
    db.close().unwrap();
}

fn long_logs(disk: &SimDisk, runtime: &SteppedRuntime) -> Options {
    let mut options = on(small(), disk, runtime);
    options.keyspace.memtable_bytes = 16 << 20;
    options.keyspace.file_bytes = 16 << 20;
    options.keyspace.base_bytes = 16 << 20;
    options.keyspace.medium_from = 64 << 10;
    options.keyspace.large_from = 64 << 10;
    options.keyspace.compression = Compression::None;
    options
}

#[test]
fn long_logs_and_value_logs_are_checked_to_the_last_byte_each_byte_once() {
    let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(1));
    let options = long_logs(&disk, &runtime);
    make_long_logs(&options, 100 << 10);
    let db = Db::open(FOLDER, options).unwrap();
    let sound = db.scrub(&Scrub::default()).unwrap();
    assert!(sound.is_sound());
    assert!((11 * STEP_BYTES..12 * STEP_BYTES).contains(&sound.bytes));
    for extension in ["values", "wal"] {
        let image = disk.image();
        let length = |path: &PathBuf| image.read(path).unwrap().len();
        let path = image.files_with(extension).into_iter().max_by_key(length);
        let path = path.unwrap();
        for offset in (300..6_100_000).step_by(300_000) {
            let flip = || disk.edit(|image| image.flip(&path, offset, 1)).unwrap();
            flip();
            let report = db.scrub(&Scrub::default()).unwrap();
            flip();
            assert_eq!(names(&report), [name(&path)], "at {offset}");
        }
    }
}

#[test]
fn damage_of_a_transient_log_does_not_hide_that_of_the_table() {
    let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(1));
    let mut options = on(small(), &disk, &runtime);
    options.keyspace.memtable_bytes = 1 << 20;
    options.keyspace.medium_from = 64;
    options.keyspace.large_from = u64::MAX;
    let (db, keyspace) = open(options);
    for number in 0..300_u16 {
        let value = [0xE7; 100];
        keyspace.insert(number.to_be_bytes(), value).unwrap();
    }
    keyspace.insert("the last one", "in place").unwrap();
    db.flush().unwrap();
    let damage = |extension: &str, bytes: &[u8]| {
        disk.edit(|image| {
            let path = image.files_with(extension).into_iter().next().unwrap();
            let file = image.read(&path).unwrap();
            let places = file.windows(bytes.len()).enumerate();
            let (offset, _) = places.clone().find(|(_, it)| *it == bytes).unwrap();
            image.flip(&path, offset, 1).unwrap();
            name(&path).to_owned()
        })
    };
    let values = damage("values", &[0xE7; 9]);
    let table = damage("table", b"in place");
    let report = db.scrub(&Scrub::default()).unwrap();
    assert_eq!(names(&report), [values, table]);
}

#[test]
fn the_references_behind_the_last_block_of_a_step_are_checked() {
    let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(1));
    let mut options = on(small(), &disk, &runtime);
    options.keyspace.memtable_bytes = 16 << 20;
    options.keyspace.medium_from = u64::MAX;
    options.keyspace.large_from = 1 << 20;
    options.keyspace.compression = Compression::None;
    let (db, keyspace) = open(options);
    keyspace.insert("in a value log", vec![7; 3 << 20]).unwrap();
    // Its second block ends the first step.
    let in_place = 5 << 18;
    for key in ["y", "z"] {
        keyspace.insert(key, vec![7; in_place / 2]).unwrap();
    }
    db.flush().unwrap();
    let path = disk.image().files_with("table").into_iter().next().unwrap();
    let length = disk.image().read(&path).unwrap().len();
    assert!((in_place..in_place + 10_000).contains(&length));
    for offset in (in_place..length).step_by(3) {
        let flip = || disk.edit(|image| image.flip(&path, offset, 1)).unwrap();
        flip();
        let report = db.scrub(&Scrub::default()).unwrap();
        flip();
        assert_eq!(names(&report), [name(&path)], "at {offset}");
    }
}

#[test]
fn without_a_log_the_files_are_checked_as_well() {
    let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(1));
    let mut options = all_kinds(&disk, &runtime);
    options.log = false;
    let (db, keyspace) = open(options.clone());
    for number in 0..300_u16 {
        let length = [20, 100, 500][usize::from(number % 3)];
        keyspace
            .insert(number.to_be_bytes(), vec![1; length])
            .unwrap();
        if number % 100 == 0 {
            db.persist().unwrap();
        }
    }
    let sound = db.scrub(&Scrub::default()).unwrap();
    assert!(sound.is_sound() && sound.files > 2, "{sound:?}");
    keyspace.compact_range::<&[u8]>(..).unwrap();
    db.persist().unwrap();
    let table = disk.image().files_with("table").into_iter().max().unwrap();
    disk.edit(|image| image.flip(&table, 10, 1)).unwrap();
    assert_eq!(names(&db.scrub(&Scrub::default()).unwrap()), [name(&table)]);
    drop(keyspace);
    db.close().unwrap();
    let db = Db::open(FOLDER, options).unwrap();
    assert_eq!(names(&db.scrub(&Scrub::default()).unwrap()), [name(&table)]);
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

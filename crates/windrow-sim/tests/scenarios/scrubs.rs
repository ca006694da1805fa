//! Scrubs: what they find, how fast they read, where they go on, and what they leave alone.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use windrow::backup::{Backups, FolderStore};
use windrow::vfs::Vfs;
use windrow::{Db, ErrorKind, Event, Options, Scrub, ScrubReport};
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
        let runtime = SteppedRuntime::new(2);
        runtime.set_unix_time(START);
        let options = on(options.clone(), &disk, &runtime);
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
fn a_scrub_that_goes_on_checks_what_has_come_since_and_none_goes_on_after_a_day() {
    let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(1));
    let options = make_large(&disk, &runtime);
    let db = Db::open(FOLDER, options.clone()).unwrap();
    let image = Cell::new(None);
    let look = |_| image.set(image.take().or_else(|| Some(disk.image())));
    db.scrub(&Scrub::default().with_progress(&look)).unwrap();
    db.close().unwrap();
    let image = image.take().unwrap();
    let day = Duration::from_secs(24 * 3600);
    for (later, is_resumed) in [(day, true), (day + Duration::from_secs(1), false)] {
        let disk = SimDisk::from_image(image.clone());
        let options = on(options.clone(), &disk, &runtime);
        runtime.set_unix_time(START + later);
        let (db, keyspace) = open(options);
        keyspace.insert("since", vec![7; 1000]).unwrap();
        db.flush().unwrap();
        let new = disk.image().files_with("table").into_iter().max().unwrap();
        disk.edit(|image| image.flip(&new, 10, 1)).unwrap();
        let report = db.scrub(&Scrub::default()).unwrap();
        assert_eq!(names(&report), [name(&new)]);
        assert_eq!(report.resumed_bytes > 0, is_resumed);
    }
}

#[test]
fn only_an_open_for_writing_leaves_a_note_and_none_is_written_after_a_close() {
    let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(1));
    let options = make_large(&disk, &runtime);
    let notes = |disk: &SimDisk| {
        let files = disk.image().files();
        let is_note = |path: &&PathBuf| name(path).starts_with("SCRUB");
        files.iter().filter(is_note).cloned().collect::<Vec<_>>()
    };
    let seen = Cell::new(0);
    let look = |_| seen.set(seen.get() + notes(&disk).len());
    let scrub = Scrub::default().with_progress(&look);
    let db = Db::open_read_only(FOLDER, options.clone()).unwrap();
    assert!(db.scrub(&scrub).unwrap().is_sound());
    db.close().unwrap();
    let reader = Db::open_secondary(FOLDER, options.clone()).unwrap();
    assert!(reader.db().scrub(&scrub).unwrap().is_sound());
    drop(reader);
    assert_eq!(seen.get(), 0);
    let db = Db::open(FOLDER, options.clone()).unwrap();
    assert!(db.scrub(&scrub).unwrap().is_sound());
    assert!(seen.get() > 0);
    assert!(notes(&disk).is_empty());
    db.close().unwrap();

    // Whoever hears of the damage closes the database, before the step is noted.
    let damaged = disk.image().files_with("table").into_iter().min().unwrap();
    disk.edit(|image| image.flip(&damaged, 10, 1)).unwrap();
    let opened = Arc::new(Mutex::new(None::<Db>));
    let to_close = Arc::clone(&opened);
    let (options, closed) = listen(options, move |event| match event {
        Event::DamageFound { .. } => {
            let db = to_close.lock().unwrap().take()?;
            Some(thread::spawn(|| db.close()).join().unwrap())
        }
        _ => None,
    });
    let db = Db::open(FOLDER, options).unwrap();
    *opened.lock().unwrap() = Some(db.clone());
    assert_eq!(kind(db.scrub(&Scrub::default())), ErrorKind::Closed);
    assert!(closed.recv().unwrap().is_ok());
    assert_eq!(notes(&disk), Vec::<PathBuf>::new());
}

#[test]
fn a_note_does_not_keep_a_database_from_being_created() {
    let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(1));
    disk.create_dir_all(Path::new(FOLDER)).unwrap();
    for note in ["SCRUB", "SCRUB.hand"] {
        drop(disk.create(&Path::new(FOLDER).join(note)).unwrap());
    }
    let db = Db::open(FOLDER, on(small(), &disk, &runtime)).unwrap();
    assert!(db.scrub(&Scrub::default()).unwrap().is_sound());
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

/// What jobs have failed at.
fn failures(options: Options) -> (Options, Receiver<(&'static str, String)>) {
    listen(options, |event| match event {
        Event::JobFailed { job, error, .. } => Some((*job, error.clone())),
        _ => None,
    })
}

#[test]
fn a_scrub_that_panics_ends_with_a_report_and_poisons_nothing() {
    let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(1));
    let hooked = HookedDisk::new(&disk);
    let (options, events) = failures(make_large(&disk, &runtime));
    let options = options.with_vfs(Arc::new(hooked.clone()));
    let panic_at_tables = |_| {
        let hook = |path: &Path| assert!(path.extension().is_none_or(|it| it != "table"));
        *hooked.hook.lock().unwrap() = Some(Box::new(hook));
    };
    let (db, keyspace) = open(options);
    pass(&runtime, 0, 400, panic_at_tables);
    let (job, error) = events.try_recv().unwrap();
    assert_eq!(job, "scrub");
    assert!(error.contains(".table panicked"), "{error}");
    keyspace.insert("still", "written").unwrap();
    assert_eq!(db.stats().damaged_files, 0);
    *hooked.hook.lock().unwrap() = None;
    assert!(db.scrub(&Scrub::default()).unwrap().is_sound());
    // One panic is not the last try.
    panic_at_tables(0);
    assert!(db.scrub(&Scrub::default()).unwrap().is_sound());
}

#[test]
fn too_many_open_files_are_an_error_after_three_tries_and_no_damage() {
    let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(1));
    let options = make_large(&disk, &runtime);
    let (options, events) = failures(options);
    let (db, keyspace) = open(options);
    let fault = Fault::io(OperationKind::Read, 0).with(Effect::TooManyFiles);
    let note = || disk.image().read(&Path::new(FOLDER).join("SCRUB")).ok();
    // The pass begins.
    pass(&runtime, 0, 65, |_| ());
    let begun = note();
    assert!(begun.is_some());
    disk.set_faults([fault.from_then_on()]);
    let at = Cell::new(0);
    pass(&runtime, 400, 2, |_| {
        at.set(at.get() + events.try_iter().count());
    });
    assert_eq!((at.get(), note()), (0, begun.clone()));
    pass(&runtime, 402, 1, |_| ());
    let (job, error) = events.try_recv().unwrap();
    assert!(
        job == "scrub" && error.contains("could not read"),
        "{error}"
    );
    let report = db.scrub(&Scrub::default()).unwrap();
    assert!(report.damage.is_empty() && !report.is_sound());
    assert!(report.left_out.len() >= count(&disk, "table"), "{report:?}");
    assert_eq!(events.try_iter().count(), report.left_out.len());
    disk.set_faults([]);
    assert!(db.scrub(&Scrub::default()).unwrap().is_sound());
    assert_eq!(db.stats().damaged_files, 0);
    keyspace.insert("still", "written").unwrap();
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
    disk.set_faults([]);
    assert!(db.scrub(&Scrub::default()).unwrap().is_sound());
    let reads = disk.operations(OperationKind::Read);
    for at in (0..reads).step_by(5) {
        let fault = Fault::io(OperationKind::Read, at);
        // One read that fails is tried again.
        disk.set_faults([fault]);
        assert!(db.scrub(&Scrub::default()).unwrap().is_sound());
        disk.set_faults([fault.from_then_on()]);
        let report = db.scrub(&Scrub::default()).unwrap();
        disk.set_faults([]);
        assert!(report.left_out.is_empty(), "{report:?}");
        assert!(!report.damage.is_empty() || at + 5 >= reads);
        assert_eq!(events.try_iter().count(), report.damage.len());
    }
    assert!(db.stats().damaged_files > 3);
    db.keyspace("k")
        .unwrap()
        .insert("still", "written")
        .unwrap();
    db.close().unwrap();
}

//! Repairs: what they keep, what they say, and what a crash or an error during one leaves.

mod logs;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use windrow::{Db, ErrorKind, ManifestUse, Options, RepairReport, Result, TableWriter};
use windrow_sim::disk::{Fault, Image, OperationKind};
use windrow_sim::{CrashPolicy, SimDisk, SteppedRuntime};

use crate::common::{Entries, FOLDER, check_sound, entries, observe, on, small};

const NEW: &str = "/data/new/db";

fn options(disk: &SimDisk) -> Options {
    let mut options = on(small(), disk, &SteppedRuntime::new(1));
    options.keyspace.medium_from = 100;
    options.keyspace.large_from = 1000;
    options
}

fn open_new(disk: &SimDisk) -> Result<Db> {
    let mut options = options(disk);
    options.create_if_missing = false;
    Db::open(NEW, options)
}

fn repair(disk: &SimDisk) -> Result<RepairReport> {
    Db::repair(FOLDER, NEW, &options(disk))
}

/// All keyspaces and their entries.
fn contents(db: &Db) -> BTreeMap<String, Entries> {
    let names = db.keyspace_names().into_iter();
    let all = names.map(|name| {
        let all = entries(&db.keyspace(&name).unwrap());
        (name, all)
    });
    all.collect()
}

/// A value of a size of each class.
fn value(number: u32) -> Vec<u8> {
    let bytes = [20, 300, 2000][number as usize % 3];
    number.to_be_bytes().repeat(bytes / 4)
}

/// A closed database with tables in several levels, entries in logs, overwritten and removed keys, and all kinds of
/// value files.
fn closed_database() -> (SimDisk, BTreeMap<String, Entries>) {
    let disk = SimDisk::new();
    let db = Db::open(FOLDER, options(&disk)).unwrap();
    let main = db.keyspace("main").unwrap();
    let other = db.keyspace("other").unwrap();
    for round in 0..3_u32 {
        for key in 0..60_u32 {
            let keyspace = if key % 4 == 0 { &other } else { &main };
            keyspace
                .insert(key.to_be_bytes(), value(key + round))
                .unwrap();
        }
        db.flush().unwrap();
        db.wait_idle().unwrap();
        main.remove((5 + round).to_be_bytes()).unwrap();
    }
    main.delete_range(&20_u32.to_be_bytes()[..]..&25_u32.to_be_bytes()[..])
        .unwrap();
    db.flush().unwrap();
    for key in 50..70_u32 {
        main.insert(key.to_be_bytes(), value(key)).unwrap();
    }
    other.remove(8_u32.to_be_bytes()).unwrap();
    let expected = contents(&db);
    drop((main, other));
    db.close().unwrap();
    (disk, expected)
}

fn files(image: &Image, folder: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = image.files().into_iter();
    let files = files.filter(|path| path.starts_with(folder));
    files
        .map(|path| (path.clone(), image.read(&path).unwrap()))
        .collect()
}

/// Removes the files with these endings.
fn remove(disk: &SimDisk, endings: &[&str]) {
    disk.edit(|image| {
        let is_removed = |path: &PathBuf| {
            let path = path.to_string_lossy();
            endings.iter().any(|ending| path.ends_with(ending))
        };
        for path in image.files().into_iter().filter(is_removed) {
            image.remove(&path).unwrap();
        }
    });
}

#[test]
fn a_sound_database_is_kept_whole_and_is_not_touched() {
    let (disk, expected) = closed_database();
    let before = files(&disk.image(), FOLDER);
    let report = repair(&disk).unwrap();
    assert!(report.is_whole(), "{report:?}");
    assert_eq!(report.manifest, ManifestUse::Whole);
    assert_eq!(files(&disk.image(), FOLDER), before);
    let db = open_new(&disk).unwrap();
    assert_eq!(contents(&db), expected);
    check_sound(&db);
    // Later writes count as newer.
    let main = db.keyspace("main").unwrap();
    main.insert(1_u32.to_be_bytes(), "new").unwrap();
    main.remove(2_u32.to_be_bytes()).unwrap();
    assert_eq!(
        main.get(1_u32.to_be_bytes()).unwrap().as_deref(),
        Some(&b"new"[..])
    );
    assert_eq!(main.get(2_u32.to_be_bytes()).unwrap(), None);
    let left: Vec<_> = disk.image().files_with("table").into_iter().collect();
    db.close().unwrap();
    drop(open_new(&disk).unwrap());
    // No temporary table was left.
    assert_eq!(disk.image().files_with("table"), left);
}

#[test]
fn without_a_manifest_keyspaces_have_numbers_and_the_newest_versions() {
    let (disk, expected) = closed_database();
    remove(&disk, &["CURRENT", ".manifest"]);
    let report = repair(&disk).unwrap();
    assert_eq!(report.manifest, ManifestUse::Missing);
    let db = open_new(&disk).unwrap();
    let found = contents(&db);
    let names: Vec<_> = found.keys().map(String::as_str).collect();
    assert_eq!(names, ["keyspace-1", "keyspace-2"]);
    assert_eq!(found["keyspace-1"], expected["main"]);
    assert_eq!(found["keyspace-2"], expected["other"]);
    check_sound(&db);
}

#[test]
fn without_a_manifest_bulk_loaded_entries_stay_beside_others_and_are_the_oldest() {
    let disk = SimDisk::new();
    let db = Db::open(FOLDER, options(&disk)).unwrap();
    let main = db.keyspace("main").unwrap();
    let loaded = (0..100_u32).map(|key| (key.to_be_bytes(), value(key)));
    main.bulk_load(loaded).unwrap();
    for key in 50..1000_u32 {
        main.insert(key.to_be_bytes(), value(key + 1)).unwrap();
    }
    main.remove(70_u32.to_be_bytes()).unwrap();
    let expected = contents(&db);
    drop(main);
    db.close().unwrap();
    remove(&disk, &["CURRENT", ".manifest"]);
    repair(&disk).unwrap();
    let db = open_new(&disk).unwrap();
    assert_eq!(contents(&db)["keyspace-1"], expected["main"]);
    check_sound(&db);
}

#[test]
fn a_lost_range_tombstone_brings_nothing_back_outside_of_the_loss() {
    let disk = SimDisk::new();
    let mut two_runs = options(&disk);
    two_runs.keyspace.memtable_bytes = 64 << 10;
    two_runs.keyspace.file_bytes = 64 << 10;
    two_runs.keyspace.base_bytes = 64 << 10;
    two_runs.keyspace.level0_runs = 8;
    let db = Db::open(FOLDER, two_runs).unwrap();
    let main = db.keyspace("main").unwrap();
    for key in 0..200_u32 {
        main.insert(key.to_be_bytes(), "old").unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    let older = disk.image().files_with("table");
    main.delete_range(&60_u32.to_be_bytes()[..]..&190_u32.to_be_bytes()[..])
        .unwrap();
    // Blocks behind that of the tombstone.
    for key in (60..190_u32).step_by(2) {
        main.insert(key.to_be_bytes(), &noise(key)[..90]).unwrap();
    }
    db.flush().unwrap();
    let expected = entries(&main);
    drop(main);
    db.close().unwrap();
    let mut damaged = 0;
    for table in disk.image().files_with("table") {
        let length = disk.image().read(&table).unwrap().len();
        let at_most = if older.contains(&table) { 0 } else { length };
        for at in (0..at_most).step_by(29) {
            let disk = SimDisk::from_image(disk.image());
            disk.edit(|image| image.flip(&table, at, 1)).unwrap();
            let report = repair(&disk).unwrap();
            damaged += usize::from(!report.is_whole());
            let found = entries(&open_new(&disk).unwrap().keyspace("main").unwrap());
            let is_lost = |key: &[u8]| {
                report.losses.iter().any(|loss| {
                    let is_above = loss.from.as_deref().is_none_or(|from| from <= key);
                    is_above && loss.to.as_deref().is_none_or(|to| key <= to)
                })
            };
            for key in (0..200_u32).map(u32::to_be_bytes) {
                let is_same = found.get(&key[..]) == expected.get(&key[..]);
                assert!(is_same || is_lost(&key), "{at}: {key:?}, {report:?}");
            }
        }
    }
    assert!(damaged > 0);
}

#[test]
fn without_a_manifest_a_table_without_its_footer_is_a_loss() {
    let (disk, _) = closed_database();
    remove(&disk, &["CURRENT", ".manifest"]);
    let table = disk.image().files_with("table").pop().unwrap();
    let bytes = disk.image().read(&table).unwrap();
    disk.edit(|image| image.write(&table, &bytes[..bytes.len() - 1]).unwrap());
    let report = repair(&disk).unwrap();
    let name = table.file_name().unwrap().to_str();
    let is_reported = report
        .losses
        .iter()
        .any(|loss| loss.file.as_deref() == name);
    assert!(is_reported, "{report:?}");
    check_sound(&open_new(&disk).unwrap());
}

#[test]
fn tables_that_do_not_say_their_keyspace_join_no_other() {
    const EXTERNAL: &str = "/data/external";
    let disk = SimDisk::new();
    let db = Db::open(FOLDER, options(&disk)).unwrap();
    let [first, second] = ["main", "other"].map(|name| db.keyspace(name).unwrap());
    let mut writer = TableWriter::create(EXTERNAL, &options(&disk)).unwrap();
    writer.insert("both", "ingested").unwrap();
    writer.finish().unwrap();
    db.ingest([(&first, EXTERNAL)]).unwrap();
    first.insert("first", "1").unwrap();
    second.insert("both", "2").unwrap();
    drop((first, second));
    db.flush().unwrap();
    db.close().unwrap();
    remove(&disk, &["CURRENT", ".manifest", ".wal"]);
    repair(&disk).unwrap();
    let found = contents(&open_new(&disk).unwrap());
    let entry = |key: &str, value: &str| Entries::from([(key.into(), value.into())]);
    assert_eq!(found["keyspace-1"], entry("first", "1"));
    assert_eq!(found["keyspace-2"], entry("both", "2"));
    let own: Vec<_> = found
        .keys()
        .filter(|name| name.starts_with("table-"))
        .collect();
    assert_eq!((own.len(), found.len()), (1, 3), "{own:?}");
    assert_eq!(found[own[0]], entry("both", "ingested"));
}

#[test]
fn a_manifest_without_its_last_edits_still_names_the_keyspaces() {
    let (disk, expected) = closed_database();
    let manifest = disk.image().files_with("manifest").pop().unwrap();
    let length = disk.image().read(&manifest).unwrap().len();
    for cut in [length / 4, length / 2, length - 30] {
        let disk = SimDisk::from_image(disk.image());
        disk.edit(|image| {
            let bytes = image.read(&manifest).unwrap();
            image.write(&manifest, &bytes[..cut]).unwrap();
        });
        let report = repair(&disk).unwrap();
        assert_eq!(report.manifest, ManifestUse::Part, "{cut}");
        assert!(!report.is_whole());
        // Compactions had removed them, and the edits that say so are lost.
        let is_claimed = report
            .losses
            .iter()
            .any(|loss| loss.what == "the table is missing");
        assert!(!is_claimed, "{cut}: {report:?}");
        assert_eq!(contents(&open_new(&disk).unwrap()), expected, "{cut}");
    }
}

/// Bytes of a large value that cannot be compressed.
fn noise(seed: u32) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    (0..3000).map(|_| next()).collect()
}

#[test]
fn a_lost_newest_value_does_not_bring_an_older_one_back() {
    let disk = SimDisk::new();
    let db = Db::open(FOLDER, options(&disk)).unwrap();
    let main = db.keyspace("main").unwrap();
    main.insert("key", noise(1)).unwrap();
    db.flush().unwrap();
    main.insert("key", noise(2)).unwrap();
    main.insert("other", "small").unwrap();
    db.flush().unwrap();
    drop(main);
    db.close().unwrap();
    disk.edit(|image| {
        for path in image.files_with("values") {
            let bytes = image.read(&path).unwrap();
            let newest = noise(2);
            let found = bytes.windows(8).position(|bytes| *bytes == newest[..8]);
            if let Some(offset) = found {
                image.flip(&path, offset, 1).unwrap();
            }
        }
    });
    let report = repair(&disk).unwrap();
    let loss = &report.losses[0];
    assert_eq!(report.losses.len(), 1, "{report:?}");
    assert_eq!(loss.from.as_deref(), Some(&b"key"[..]));
    assert_eq!(loss.keyspace.as_deref(), Some("main"));
    assert_eq!(loss.sequences, Some((2, 2)));
    let main = open_new(&disk).unwrap().keyspace("main").unwrap();
    assert_eq!(main.get("key").unwrap(), None);
    assert_eq!(main.get("other").unwrap().as_deref(), Some(&b"small"[..]));
}

#[test]
fn a_crash_during_a_repair_leaves_a_folder_that_does_not_open() {
    let (disk, expected) = closed_database();
    // The text in its lock need not be durable.
    let disk = SimDisk::from_image(disk.image().crash(CrashPolicy::KeepAll));
    let before = files(&disk.image(), FOLDER);
    let points = observe(&disk, |event, image| (event.clone(), image.clone()));
    repair(&disk).unwrap();
    disk.stop_observing();
    // It is durable.
    let left = disk.crash(CrashPolicy::DropUnsynced);
    assert_eq!(contents(&open_new(&left).unwrap()), expected);
    let (mut whole, mut refused, mut missing) = (0, 0, 0);
    let mut without_lock = 0;
    for (event, image) in points.try_iter() {
        for policy in [
            CrashPolicy::DropUnsynced,
            CrashPolicy::KeepAll,
            CrashPolicy::Random(event.index),
        ] {
            let disk = SimDisk::from_image(image.crash(policy));
            assert_eq!(files(&disk.image(), FOLDER), before, "after {event:?}");
            let left = disk.image().files();
            let has = |name: &str| left.contains(&Path::new(NEW).join(name));
            let is_marked = has("REPAIRING");
            without_lock += u64::from(is_marked && has("CURRENT") && !has("LOCK"));
            // On a disk of its own and first: an open for writing creates the lock.
            let reader = SimDisk::from_image(disk.image());
            let reader = Db::open_read_only(NEW, options(&reader));
            if is_marked {
                let kind = reader.as_ref().err().map(windrow::Error::kind);
                let is_refused = matches!(kind, Some(ErrorKind::Corruption | ErrorKind::NotFound));
                assert!(is_refused, "after {event:?}: {kind:?}");
            }
            match open_new(&disk) {
                Ok(db) => {
                    whole += 1;
                    assert_eq!(contents(&db), expected, "after {event:?}");
                    check_sound(&db);
                }
                Err(error) if error.kind() == ErrorKind::NotFound => missing += 1,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
                    assert!(is_marked, "after {event:?}");
                    let again = Db::repair(NEW, "/data/again", &options(&disk)).unwrap_err();
                    assert_eq!(again.kind(), ErrorKind::Corruption, "after {event:?}");
                    refused += 1;
                }
            }
        }
    }
    assert!(
        (1..20).contains(&whole) && refused > 20 && missing > 1 && without_lock > 0,
        "{whole}, {refused}, {missing}, {without_lock}"
    );
}

#[test]
fn a_failed_repair_leaves_a_folder_that_does_not_open() {
    let (sound, _) = closed_database();
    let before = files(&sound.image(), FOLDER);
    let mut failures = 0;
    for kind in OperationKind::ALL {
        for at in (0..).step_by(7) {
            let disk = SimDisk::from_image(sound.image());
            disk.set_faults([Fault::io(kind, at)]);
            let repaired = repair(&disk);
            let failed = disk.fault_log().len() == 1;
            disk.set_faults([]);
            assert_eq!(files(&disk.image(), FOLDER), before);
            if !failed {
                repaired.unwrap();
                break;
            }
            failures += 1;
            if let Ok(report) = &repaired {
                assert_eq!(report.manifest, ManifestUse::Whole, "{kind:?} {at}");
                assert!(report.is_whole(), "{kind:?} {at}: {report:?}");
            }
            if let Err(error) = repaired {
                let is_explained = matches!(error.kind(), ErrorKind::Io | ErrorKind::Poisoned);
                assert!(is_explained, "{kind:?} {at}: {error:?}");
                let is_last_sync = open_new(&disk).is_ok();
                assert!(
                    !is_last_sync || kind == OperationKind::SyncDir,
                    "{kind:?} {at}"
                );
            }
        }
    }
    assert!(failures > 10, "{failures}");
}

#[test]
fn a_repair_takes_an_empty_folder_outside_of_a_database_that_nobody_writes() {
    let (disk, _) = closed_database();
    let within = Db::repair(FOLDER, Path::new(FOLDER).join("new"), &options(&disk));
    assert_eq!(within.unwrap_err().kind(), ErrorKind::InvalidArgument);
    let nowhere = Db::repair("/data/nowhere", NEW, &options(&disk));
    assert_eq!(nowhere.unwrap_err().kind(), ErrorKind::NotFound);
    let db = Db::open(FOLDER, options(&disk)).unwrap();
    assert_eq!(repair(&disk).unwrap_err().kind(), ErrorKind::Locked);
    db.close().unwrap();
    repair(&disk).unwrap();
    assert_eq!(repair(&disk).unwrap_err().kind(), ErrorKind::AlreadyExists);
}

#[test]
fn entries_that_expire_keep_their_moment() {
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let on_clock = || {
        let mut options = on(small(), &disk, &runtime);
        options.keyspace.medium_from = 100;
        options
    };
    let db = Db::open(FOLDER, on_clock()).unwrap();
    let main = db.keyspace("main").unwrap();
    let later = Duration::from_secs(100);
    main.insert_with_ttl("soon", vec![b's'; 300], later)
        .unwrap();
    main.insert("never", "n").unwrap();
    drop(main);
    db.flush().unwrap();
    db.close().unwrap();
    Db::repair(FOLDER, NEW, &on_clock()).unwrap();
    let db = Db::open(NEW, on_clock()).unwrap();
    let main = db.keyspace("main").unwrap();
    assert!(main.contains_key("soon").unwrap());
    runtime.set_unix_time(Duration::from_secs(4_000_000_000));
    assert!(!main.contains_key("soon").unwrap());
    assert!(main.contains_key("never").unwrap());
}

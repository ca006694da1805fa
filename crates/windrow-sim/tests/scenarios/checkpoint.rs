//! Checkpoints: neither database changes the other, and a crash or an error leaves all of a checkpoint or none.

use std::path::{Path, PathBuf};

use windrow::vfs::Vfs;
use windrow::{Db, ErrorKind, Options, Result, SegmentLimit};
use windrow_sim::disk::{Effect, Fault, Image, OperationKind};
use windrow_sim::{CrashPolicy, SimDisk, SteppedRuntime};

use crate::common::{Entries, FOLDER, check_sound, entries, observe, on, small};

const COPY: &str = "/data/copies/copy";

fn options(disk: &SimDisk) -> Options {
    let mut options = on(small(), disk, &SteppedRuntime::new(1));
    options.keyspace.level0_runs = 1;
    options.keyspace.size_ratio = 2.0;
    options.max_wal_bytes = 64 << 10;
    options
}

fn open(disk: &SimDisk, folder: &str) -> Result<Db> {
    let mut options = options(disk);
    options.create_if_missing = folder == FOLDER;
    Db::open(folder, options)
}

fn write(db: &Db, rounds: std::ops::Range<u32>) {
    let keyspace = db.keyspace("main").unwrap();
    for round in rounds {
        let key = (round * 7 % 64).to_be_bytes();
        keyspace
            .insert(key, [round.to_be_bytes(); 30].concat())
            .unwrap();
        if round % 5 == 0 {
            keyspace.remove((round % 64).to_be_bytes()).unwrap();
        }
    }
}

fn contents(db: &Db) -> Entries {
    entries(&db.keyspace("main").unwrap())
}

fn files(image: &Image, folder: &str) -> Vec<PathBuf> {
    let mut files = image.files();
    files.retain(|path| path.starts_with(folder));
    files
}

fn bytes(image: &Image, folder: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let files = files(image, folder);
    files
        .into_iter()
        .map(|path| (path.clone(), image.read(&path).unwrap()))
        .collect()
}

#[test]
fn neither_database_can_change_the_other() {
    for can_link in [true, false] {
        let disk = SimDisk::new();
        disk.set_can_link(can_link);
        disk.forbid_removal_in_use(".table");
        let db = open(&disk, FOLDER).unwrap();
        write(&db, 0..400);
        db.flush().unwrap();
        write(&db, 400..420);
        let before = contents(&db);
        db.checkpoint(COPY).unwrap();
        let links = disk.image().files().len();
        assert!(links > 12, "{links} files");
        let copied = bytes(&disk.image(), COPY);

        // The source compacts everything and continues. The files of the copy stay byte for byte, except that the
        // source may append to shared tables.
        write(&db, 420..900);
        db.keyspace("main")
            .unwrap()
            .compact_range::<&[u8]>(..)
            .unwrap();
        db.wait_idle().unwrap();
        let after = contents(&db);
        let mut present = bytes(&disk.image(), COPY);
        for ((path, bytes), (_, copied)) in present.iter_mut().zip(&copied) {
            if path.extension().is_some_and(|it| it == "table") {
                assert!(can_link || bytes.len() == copied.len());
                bytes.truncate(copied.len());
            }
        }
        assert!(present == copied);

        // The copy compacts everything and continues. The files of the source stay byte for byte.
        let own = bytes(&disk.image(), FOLDER);
        let copy = open(&disk, COPY).unwrap();
        assert_eq!(contents(&copy), before);
        check_sound(&copy);
        write(&copy, 2000..2500);
        copy.keyspace("main")
            .unwrap()
            .compact_range::<&[u8]>(..)
            .unwrap();
        copy.wait_idle().unwrap();
        let own_after = contents(&copy);
        copy.close().unwrap();
        assert_eq!(bytes(&disk.image(), FOLDER), own);
        assert_eq!(contents(&db), after);
        check_sound(&db);
        db.close().unwrap();
        let disk = disk.crash(CrashPolicy::DropUnsynced);
        assert_eq!(contents(&open(&disk, FOLDER).unwrap()), after);
        assert_eq!(contents(&open(&disk, COPY).unwrap()), own_after);
    }
}

/// Both have the same table files. Only the source may append to them.
#[test]
fn the_source_appends_to_files_shared_with_its_checkpoint() {
    for can_link in [true, false] {
        let disk = SimDisk::new();
        disk.set_can_link(can_link);
        disk.forbid_removal_in_use(".table");
        let open = |folder: &str| {
            let mut options = options(&disk);
            options.keyspace.segment_limit = SegmentLimit::Fixed(12);
            options.keyspace.max_space_amp = f64::INFINITY;
            Db::open(folder, options).unwrap()
        };
        let db = open(FOLDER);
        write(&db, 0..400);
        db.flush().unwrap();
        db.wait_idle().unwrap();
        let before = contents(&db);
        db.checkpoint(COPY).unwrap();
        let copied = bytes(&disk.image(), COPY);

        // The source appends behind the end that the copy knows.
        let appends = db.stats().appends;
        write(&db, 400..550);
        db.flush().unwrap();
        db.wait_idle().unwrap();
        assert!(db.stats().appends > appends + 2);
        let after = contents(&db);
        let grown = bytes(&disk.image(), COPY);
        let mut longer = 0;
        for ((path, bytes), (same, more)) in copied.iter().zip(&grown) {
            assert_eq!(path, same);
            assert!(more.starts_with(bytes), "{path:?} has changed");
            longer += usize::from(more.len() > bytes.len());
        }
        assert_eq!((longer > 0, copied.len()), (can_link, grown.len()));

        // The copy reads as before, and appends to none of them.
        let copy = open(COPY);
        assert_eq!(contents(&copy), before);
        check_sound(&copy);
        let own = bytes(&disk.image(), FOLDER);
        for rounds in 0..6 {
            write(&copy, 2000 + 100 * rounds..2100 + 100 * rounds);
            copy.wait_idle().unwrap();
        }
        assert!(
            copy.stats().appends > 0,
            "the copy appends to its own files"
        );
        assert_eq!(bytes(&disk.image(), FOLDER), own);
        let is_shared = |path: &PathBuf| path.extension().is_some_and(|end| end == "table");
        for (path, bytes) in grown.iter().filter(|(path, _)| is_shared(path)) {
            if let Ok(left) = disk.image().read(path) {
                assert!(left == *bytes, "{path:?} has changed");
            }
        }
        let own_after = contents(&copy);
        copy.close().unwrap();
        assert_eq!(contents(&db), after);
        check_sound(&db);
        db.close().unwrap();
        for (folder, expected) in [(FOLDER, &after), (COPY, &own_after)] {
            let db = open(folder);
            assert_eq!(contents(&db), *expected);
            check_sound(&db);
        }
    }
}

#[test]
fn a_crash_leaves_all_of_a_checkpoint_or_none_that_opens() {
    for can_link in [true, false] {
        let disk = SimDisk::new();
        disk.set_can_link(can_link);
        let db = open(&disk, FOLDER).unwrap();
        write(&db, 0..300);
        db.persist().unwrap();
        let expected = contents(&db);
        let points = observe(&disk, |event, image| (event.clone(), image.clone()));
        db.checkpoint(COPY).unwrap();
        disk.stop_observing();
        let (mut complete, mut incomplete) = (0, 0);
        for (event, image) in points.try_iter() {
            let policies = [CrashPolicy::DropUnsynced, CrashPolicy::KeepAll];
            let random = (0..6).map(|seed| CrashPolicy::Random(event.index * 8 + seed));
            for policy in policies.into_iter().chain(random) {
                let disk = SimDisk::from_image(image.crash(policy));
                let source = open(&disk, FOLDER).unwrap();
                let is_whole = contents(&source) == expected;
                assert!(is_whole, "the source is not whole after {event:?}");
                check_sound(&source);
                match open(&disk, COPY) {
                    Ok(copy) => {
                        complete += 1;
                        assert!(contents(&copy) == expected, "after {event:?}");
                        check_sound(&copy);
                    }
                    Err(error) => {
                        incomplete += 1;
                        let kind = error.kind();
                        assert!(
                            matches!(kind, ErrorKind::NotFound | ErrorKind::Corruption),
                            "{error}"
                        );
                        let current = Path::new(COPY).join("CURRENT");
                        assert!(disk.image().read(&current).is_err(), "{error}");
                    }
                }
            }
        }
        assert!(
            complete > 3 && incomplete > 50,
            "{complete} and {incomplete}"
        );
    }
}

/// The logs are synced before they are copied. A source that has lost what its copy holds would go on in another way.
#[test]
fn what_a_checkpoint_holds_its_source_does_not_lose() {
    for can_link in [true, false] {
        let disk = SimDisk::new();
        disk.set_can_link(can_link);
        let db = open(&disk, FOLDER).unwrap();
        write(&db, 0..300);
        db.persist().unwrap();
        write(&db, 300..303);
        let (expected, sequence) = (contents(&db), db.stats().sequence);
        let durable = open(&disk.crash(CrashPolicy::DropUnsynced), FOLDER).unwrap();
        assert!(durable.stats().sequence < sequence);
        let points = observe(&disk, |event, image| (event.clone(), image.clone()));
        db.checkpoint(COPY).unwrap();
        disk.stop_observing();
        let mut complete = 0;
        for (event, image) in points.try_iter() {
            let policies = [CrashPolicy::DropUnsynced, CrashPolicy::KeepAll];
            let random = (0..6).map(|seed| CrashPolicy::Random(event.index * 8 + seed));
            for policy in policies.into_iter().chain(random) {
                let disk = SimDisk::from_image(image.crash(policy));
                let Ok(copy) = open(&disk, COPY) else {
                    continue;
                };
                complete += 1;
                let source = open(&disk, FOLDER).unwrap();
                for db in [&copy, &source] {
                    assert!(db.stats().sequence >= sequence, "after {event:?}");
                    assert!(contents(db) == expected, "after {event:?}");
                }
            }
        }
        assert!(complete > 7, "{complete}");
    }
}

#[test]
fn a_failed_checkpoint_leaves_the_source_unchanged_and_can_be_repeated() {
    for kind in OperationKind::ALL {
        for effect in [Effect::Io, Effect::NoSpace] {
            for at in 0..200 {
                let disk = SimDisk::new();
                let db = open(&disk, FOLDER).unwrap();
                write(&db, 0..100);
                db.persist().unwrap();
                let expected = contents(&db);
                disk.set_faults([Fault::io(kind, at).with(effect)]);
                let made = db.checkpoint(COPY);
                let failed = disk.fault_log().len() == 1;
                disk.set_faults([]);
                write(&db, 100..110);
                if let Err(error) = &made {
                    assert!(failed, "{error}");
                    // Files that may be durable stay, and so do files that could not be listed.
                    if db.checkpoint(COPY).is_err() {
                        let names = files(&disk.image(), COPY);
                        assert!(!names.is_empty());
                        for path in names {
                            disk.edit(|image| image.remove(&path)).unwrap();
                        }
                        db.checkpoint(COPY).unwrap();
                    }
                    assert_eq!(contents(&open(&disk, COPY).unwrap()), contents(&db));
                } else {
                    assert_eq!(contents(&open(&disk, COPY).unwrap()), expected);
                }
                check_sound(&db);
                if !failed {
                    break;
                }
            }
        }
    }
}

#[test]
fn the_target_must_be_empty() {
    let disk = SimDisk::new();
    let db = open(&disk, FOLDER).unwrap();
    write(&db, 0..10);
    db.checkpoint(COPY).unwrap();
    for (taken, kind) in [
        (COPY, ErrorKind::AlreadyExists),
        (FOLDER, ErrorKind::InvalidArgument),
    ] {
        let before = bytes(&disk.image(), taken);
        let error = db.checkpoint(taken).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert_eq!(bytes(&disk.image(), taken), before);
    }
    // A folder with other files does not even get a lock.
    let other = Path::new("/data/other/file");
    disk.create_dir_all(Path::new("/data/other")).unwrap();
    drop(disk.create(other).unwrap());
    let error = db.checkpoint("/data/other").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
    assert_eq!(files(&disk.image(), "/data/other"), [other]);
}

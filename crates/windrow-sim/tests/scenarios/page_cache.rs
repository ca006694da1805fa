//! What jobs leave in the page cache, and write backs that fail.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use windrow::{Db, ErrorKind, Keyspace, Options, Scrub};
use windrow_sim::disk::{AfterFailedSync, Fault, OperationKind};
use windrow_sim::{CrashPolicy, SimDisk, SteppedRuntime};

use crate::common::{self, check_sound, entries, kind, on};

const PAGE_BYTES: u64 = 4096;

/// The pages that stay or leave together.
const PIECE_PAGES: u64 = 64;

/// The pages of filters, index and footer at the end of a table of these tests, at most.
const METADATA_PAGES: u64 = 16;

/// The entries that a table of these tests has.
const ENTRIES: u64 = 4000;

/// Opens a database with one table file for a few megabytes. Only callers run jobs.
fn open(disk: &SimDisk, change: impl FnOnce(&mut Options)) -> (Db, Keyspace) {
    let mut options = Options::default();
    options.keyspace.memtable_bytes = 16 << 20;
    options.keyspace.file_bytes = 16 << 20;
    options.keyspace.medium_from = u64::MAX;
    options.keyspace.large_from = u64::MAX;
    change(&mut options);
    common::open(on(options, disk, &SteppedRuntime::new(1)))
}

/// Writes every `step`th entry.
fn write(keyspace: &Keyspace, step: usize, filling: u8) {
    for number in (0..ENTRIES).step_by(step) {
        let mut value = vec![filling; 1000];
        value[..8].copy_from_slice(&number.to_le_bytes());
        keyspace.insert(number.to_be_bytes(), value).unwrap();
    }
}

/// The longest file with `extension`.
fn longest(disk: &SimDisk, extension: &str) -> PathBuf {
    let image = disk.image();
    let length = |path: &PathBuf| image.read(path).unwrap().len();
    let files = image.files_with(extension);
    files.into_iter().max_by_key(length).unwrap()
}

fn pages_of(disk: &SimDisk, path: &Path) -> u64 {
    let length = disk.image().read(path).unwrap().len() as u64;
    length.div_ceil(PAGE_BYTES)
}

fn resident(disk: &SimDisk, path: &Path) -> BTreeSet<u64> {
    disk.resident_pages(path).unwrap()
}

/// Puts only some pages of `path` into the page cache: those of `hot`, as parts of 100.
fn heat(disk: &SimDisk, path: &Path, hot: Range<u64>) -> BTreeSet<u64> {
    let bytes = pages_of(disk, path) * PAGE_BYTES;
    let range = bytes * hot.start / 100..bytes * hot.end / 100;
    disk.set_resident(path, range).unwrap();
    resident(disk, path)
}

/// How many pages of `part`, in parts of 100, of `path` are resident: none, some or all.
fn temperature(disk: &SimDisk, path: &Path, part: Range<u64>) -> &'static str {
    let pages = pages_of(disk, path);
    let part = pages * part.start / 100..pages * part.end / 100;
    let here = resident(disk, path);
    match here.range(part.clone()).count() as u64 {
        0 => "cold",
        all if all == part.end - part.start => "hot",
        _ => "mixed",
    }
}

#[test]
fn outputs_of_flushes_stay() {
    let disk = SimDisk::new();
    let (db, keyspace) = open(&disk, |_| {});
    write(&keyspace, 1, 1);
    db.flush().unwrap();
    let table = longest(&disk, "table");
    assert_eq!(temperature(&disk, &table, 0..100), "hot");
}

#[test]
fn a_scrub_leaves_the_page_cache_as_it_was() {
    let disk = SimDisk::new();
    let (db, keyspace) = open(&disk, |_| {});
    db.consumer("c").unwrap();
    write(&keyspace, 1, 1);
    // The log ends, and is kept for the consumer.
    drop(keyspace);
    db.close().unwrap();
    let (db, _) = open(&disk, |_| {});
    let files = ["table", "wal"].map(|extension| longest(&disk, extension));
    let before = files.each_ref().map(|file| heat(&disk, file, 30..60));
    let report = db.scrub(&Scrub::default()).unwrap();
    assert!(report.is_sound() && report.bytes > 7 << 20, "{report:?}");
    assert_eq!(files.each_ref().map(|file| resident(&disk, file)), before);
}

#[test]
fn a_compaction_leaves_hot_pages_resident_and_cold_ones_not() {
    let disk = SimDisk::new();
    let (db, keyspace) = open(&disk, |_| {});
    write(&keyspace, 1, 1);
    db.flush().unwrap();
    write(&keyspace, 50, 2);
    db.flush().unwrap();
    let input = longest(&disk, "table");
    let before = heat(&disk, &input, 30..60);
    // It holds the input.
    let iterator = keyspace.iter().unwrap();
    keyspace.compact_range::<&[u8]>(..).unwrap();

    let after = resident(&disk, &input);
    assert!(after.is_superset(&before));
    let metadata = pages_of(&disk, &input) - METADATA_PAGES;
    let added = after.difference(&before).filter(|page| **page < metadata);
    assert_eq!(added.count(), 0);
    let output = longest(&disk, "table");
    let output = if output == input {
        let tables = disk.image().files_with("table");
        let others = tables.into_iter().filter(|table| *table != input);
        others.max_by_key(|table| pages_of(&disk, table)).unwrap()
    } else {
        output
    };
    let edge = 100 * PIECE_PAGES / pages_of(&disk, &output) + 1;
    assert_eq!(temperature(&disk, &output, 0..30 - edge), "cold");
    assert_eq!(temperature(&disk, &output, 30 + edge..60 - edge), "hot");
    assert_eq!(temperature(&disk, &output, 60 + edge..90 - edge), "cold");
    drop(iterator);
}

#[test]
fn a_compaction_of_resident_tables_leaves_everything_resident() {
    let disk = SimDisk::new();
    let (db, keyspace) = open(&disk, |_| {});
    for step in [1, 50] {
        write(&keyspace, step, 3);
        db.flush().unwrap();
    }
    keyspace.compact_range::<&[u8]>(..).unwrap();
    let output = longest(&disk, "table");
    assert_eq!(temperature(&disk, &output, 0..100), "hot");
}

#[test]
fn verify_and_a_checkpoint_leave_the_page_cache_as_it_was() {
    let disk = SimDisk::new();
    disk.set_can_link(false);
    let (db, keyspace) = open(&disk, |options| options.keyspace.large_from = 900);
    let smalls = db.keyspace("smalls").unwrap();
    for step in [1, 7] {
        write(&keyspace, step, 4);
        for number in 0..ENTRIES {
            smalls
                .insert(number.to_be_bytes(), vec![5; 300 / step])
                .unwrap();
        }
        db.flush().unwrap();
    }
    let all = || {
        let image = disk.image();
        let files = ["table", "values", "dead"].map(|extension| image.files_with(extension));
        files.concat()
    };
    let before: Vec<_> = all().iter().map(|path| heat(&disk, path, 20..45)).collect();
    assert!(all().len() > 4);
    check_sound(&db);
    let is_same = |what: &str| {
        for (path, before) in all().iter().zip(&before) {
            assert_eq!(resident(&disk, path), *before, "{what}: {}", path.display());
        }
    };
    is_same("verify");
    db.checkpoint("/data/copy").unwrap();
    let copies: Vec<_> = all()
        .into_iter()
        .filter(|path| path.starts_with("/data/copy"))
        .collect();
    assert!(copies.len() > 4);
    for copy in copies {
        assert!(resident(&disk, &copy).len() as u64 <= PIECE_PAGES);
        let bytes = disk.image().read(&copy).unwrap();
        assert!(!bytes.is_empty());
    }
}

#[test]
fn garbage_collection_keeps_hot_values_hot_and_cold_ones_cold() {
    for (hot, expected) in [(0..100, "hot"), (0..0, "cold")] {
        let disk = SimDisk::new();
        let (db, keyspace) = open(&disk, |options| {
            options.keyspace.medium_from = 900;
            options.keyspace.large_from = 900;
            options.keyspace.file_bytes = 1 << 20;
            options.keyspace.max_space_amp = 1.06;
            options.reserve_bytes = 0;
        });
        write(&keyspace, 1, 6);
        // Half of the values are garbage at once.
        write(&keyspace, 2, 7);
        db.flush().unwrap();
        let logs = disk.image().files_with("values");
        for path in &logs {
            heat(&disk, path, hot.clone());
        }
        db.wait_idle().unwrap();
        assert!(db.stats().garbage_collections > 0);
        let outputs = disk.image().files_with("values");
        let mut outputs = outputs.into_iter().filter(|path| !logs.contains(path));
        let output = outputs.next().unwrap();
        assert!(pages_of(&disk, &output) > 6 * PIECE_PAGES);
        assert_eq!(temperature(&disk, &output, 0..50), expected);
        check_sound(&db);
    }
}

/// What a failed write back leaves is as unknown as what a failed sync leaves, and no later sync reports it.
#[test]
fn a_write_back_that_fails_fails_its_job_and_loses_nothing() {
    use AfterFailedSync::{Durable, LostAtCrash, Reverted};

    let started = || {
        let disk = SimDisk::new();
        let (db, keyspace) = open(&disk, |_| {});
        write(&keyspace, 1, 8);
        (disk, db, keyspace)
    };
    let write_backs = {
        let (disk, db, keyspace) = started();
        disk.set_faults([]);
        db.flush().unwrap();
        keyspace.compact_range::<&[u8]>(..).unwrap();
        disk.operations(OperationKind::WriteBack)
    };
    assert!(write_backs > 4);
    for at in 0..write_backs {
        for after in [LostAtCrash, Reverted, Durable] {
            let (disk, db, keyspace) = started();
            db.persist().unwrap();
            let expected = entries(&keyspace);
            disk.set_faults([Fault::io(OperationKind::WriteBack, at).then(after)]);
            let outcome = db
                .flush()
                .and_then(|()| keyspace.compact_range::<&[u8]>(..));
            assert_eq!(kind(outcome), ErrorKind::Io, "write back {at}");
            assert_eq!(entries(&keyspace), expected);
            let crashed = disk.crash(CrashPolicy::DropUnsynced);
            assert_eq!(entries(&open(&crashed, |_| {}).1), expected);

            // The job succeeds when it is tried again.
            disk.set_faults([]);
            db.flush().unwrap();
            keyspace.compact_range::<&[u8]>(..).unwrap();
            check_sound(&db);
            let crashed = disk.crash(CrashPolicy::DropUnsynced);
            let (db, keyspace) = open(&crashed, |_| {});
            assert_eq!(entries(&keyspace), expected);
            check_sound(&db);
        }
    }
}

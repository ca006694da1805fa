//! Checkpoints on the real file system, beside writes and compactions.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]
#![expect(
    clippy::disallowed_methods,
    reason = "the test looks at files and runs threads beside the database"
)]

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use windrow::{Batch, Db, Durability, ErrorKind, Keyspace, Options, Result};

fn options() -> Options {
    let mut options = Options::default();
    options.keyspace.memtable_bytes = 16 << 10;
    options.keyspace.file_bytes = 8 << 10;
    options.keyspace.base_bytes = 16 << 10;
    options.keyspace.level0_runs = 2;
    options.max_wal_bytes = 64 << 10;
    options.keyspace.medium_from = 100;
    options
}

/// The number of tables and value files in `folder`, and of those that have another name.
fn linked_files(folder: &Path) -> (usize, usize) {
    let paths = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let is_one = |path: &PathBuf| {
        let end = path.extension();
        end.is_some_and(|end| end == "table" || end == "values")
    };
    let links: Vec<u64> = paths
        .filter(is_one)
        .map(|path| fs::metadata(path).unwrap().nlink())
        .collect();
    (
        links.len(),
        links.iter().filter(|count| **count > 1).count(),
    )
}

fn values(keyspace: &Keyspace) -> Vec<Vec<u8>> {
    let entries = keyspace.iter().unwrap();
    let values = entries.map(|entry| entry.map(|(_, value)| value));
    values.collect::<Result<_>>().unwrap()
}

#[test]
fn a_checkpoint_is_one_state_of_a_database_under_load() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path().join("db"), options()).unwrap();
    let (left, right) = (db.keyspace("left").unwrap(), db.keyspace("right").unwrap());
    // Each batch writes its number to two keyspaces, so the keyspaces always agree.
    let (written, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut number = 0_u64;
            while !is_over.load(Ordering::Relaxed) {
                number += 1;
                let mut batch = Batch::new();
                // All values are medium; flushes write them to a transient log.
                let length = if number.is_multiple_of(2) { 12 } else { 24 };
                let (key, value) = (
                    (number % 97).to_be_bytes(),
                    number.to_be_bytes().repeat(length),
                );
                for keyspace in [&left, &right] {
                    batch.insert(keyspace, key, &value).unwrap();
                    batch
                        .insert(keyspace, "newest", number.to_be_bytes())
                        .unwrap();
                }
                db.write_with(&batch, Durability::Buffered).unwrap();
                written.store(number, Ordering::Release);
            }
        });
        for round in 0..6 {
            std::thread::sleep(std::time::Duration::from_millis(50));
            let target = folder.path().join(format!("copies/{round}"));
            let least = written.load(Ordering::Acquire);
            db.checkpoint(&target).unwrap();
            let most = written.load(Ordering::Acquire) + 1;
            let copy = Db::open_read_only(&target, Options::default()).unwrap();
            assert!(copy.verify().unwrap().is_sound());
            let (left, right) = (
                copy.keyspace("left").unwrap(),
                copy.keyspace("right").unwrap(),
            );
            assert!(values(&left) == values(&right), "half of a batch");
            let newest = left.get("newest").unwrap().unwrap_or_else(|| vec![0; 8]);
            let newest = u64::from_be_bytes(newest.try_into().unwrap());
            assert!(
                (least..=most).contains(&newest),
                "{newest}, not {least} to {most}"
            );
        }
        is_over.store(true, Ordering::Relaxed);
        writer.join().unwrap();
    });
    left.insert("medium", [7; 200]).unwrap();
    db.flush().unwrap();
    db.wait_idle().unwrap();
    let last = folder.path().join("copies/last");
    db.checkpoint(&last).unwrap();
    let (all, linked) = linked_files(&last);
    assert!(
        all > 0 && linked == all,
        "{linked} of {all} files are linked"
    );
    let newest = left.get("newest").unwrap();
    drop((left, right));
    db.close().unwrap();

    // The copy does not need its source.
    fs::remove_dir_all(folder.path().join("db")).unwrap();
    let copy = Db::open(&last, options()).unwrap();
    let left = copy.keyspace("left").unwrap();
    assert_eq!(left.get("newest").unwrap(), newest);
    left.compact_range::<&[u8]>(..).unwrap();
    assert!(copy.verify().unwrap().is_sound());
}

#[test]
fn a_checkpoint_within_the_folder_of_the_database_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("db");
    let db = Db::open(&own, Options::default()).unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&own, &link).unwrap();
    for target in [
        own.clone(),
        own.join("copy"),
        own.join("deep/copy"),
        link.join("copy"),
        folder.path().join("db/../db/copy"),
        // The folders `new` and `newer` do not exist yet.
        folder.path().join("new/../db/copy"),
        folder.path().join("new/newer/../../link/copy"),
    ] {
        let error = db.checkpoint(&target).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(!own.join("copy").exists() && !own.join("deep").exists());
    }
    // A folder beside it may have a name with the same beginning.
    db.checkpoint(folder.path().join("db-copy")).unwrap();
}

//! An open for reading only changes nothing and needs no space.

use std::path::Path;

use windrow::{Batch, Db, ErrorKind, KeyspaceOptions, Options};
use windrow_sim::{SimDisk, SteppedRuntime};

use crate::common::{FOLDER, check_sound, kind, on};

fn options(disk: &SimDisk, runtime: &SteppedRuntime) -> Options {
    let mut options = on(Options::default(), disk, runtime);
    options.keyspace.memtable_bytes = 4 << 10;
    options.keyspace.level0_runs = 1;
    options.max_wal_bytes = 1 << 20;
    options
}

/// A database with tables, frozen memtables, a log, and due compactions.
fn filled() -> (SimDisk, SteppedRuntime) {
    let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(1));
    let db = Db::open(FOLDER, options(&disk, &runtime)).unwrap();
    let keyspace = db.keyspace("main").unwrap();
    for round in 0..5_u8 {
        keyspace.insert("key", [round; 100]).unwrap();
        db.flush().unwrap();
    }
    for number in 0..100_u8 {
        keyspace.insert([number], [number; 100]).unwrap();
    }
    let disk = disk.end_process();
    (disk, runtime)
}

#[test]
fn no_call_writes() {
    let (disk, runtime) = filled();
    let before = disk.changes();
    disk.set_quota(Some(0));
    let db = Db::open_read_only(FOLDER, options(&disk, &runtime)).unwrap();
    let keyspace = db.keyspace("main").unwrap();
    assert_eq!(keyspace.get("key").unwrap().unwrap(), [4; 100]);
    assert_eq!(keyspace.iter().unwrap().count(), 101);
    let snapshot = db.snapshot();
    assert_eq!(keyspace.at(&snapshot).unwrap().iter().unwrap().count(), 101);
    check_sound(&db);
    assert!(db.stats().disk_bytes > 0);
    let same = db
        .keyspace_with("main", KeyspaceOptions::default())
        .unwrap();
    assert_eq!(same.options(), keyspace.options());
    db.wait_idle().unwrap();
    runtime.run_until_idle(100);

    let mut batch = Batch::new();
    batch.insert(&keyspace, "a", "b").unwrap();
    for refused in [
        kind(keyspace.insert("a", "b")),
        kind(keyspace.remove("key")),
        kind(keyspace.compact_range::<&[u8]>(..)),
        kind(db.write(&batch)),
        kind(db.write(&Batch::new())),
        kind(db.flush()),
        kind(db.persist()),
        kind(db.drop_keyspace("main")),
    ] {
        assert_eq!(refused, ErrorKind::ReadOnly);
    }
    assert_eq!(kind(db.keyspace("other")), ErrorKind::NotFound);
    drop(same);
    db.close().unwrap();
    assert_eq!(kind(keyspace.get("key")), ErrorKind::Closed);
    drop((keyspace, snapshot));
    assert_eq!(disk.changes(), before);

    // A writer finds everything.
    disk.set_quota(None);
    let db = Db::open(FOLDER, options(&disk, &runtime)).unwrap();
    assert_eq!(db.keyspace("main").unwrap().iter().unwrap().count(), 101);
}

#[test]
fn many_readers_or_one_writer_hold_the_lock() {
    let (disk, runtime) = filled();
    let read = || Db::open_read_only(FOLDER, options(&disk, &runtime));
    let write = || Db::open(FOLDER, options(&disk, &runtime));
    let (one, other) = (read().unwrap(), read().unwrap());
    assert_eq!(kind(write()), ErrorKind::Locked);
    drop(one);
    assert_eq!(kind(write()), ErrorKind::Locked);
    other.close().unwrap();
    let writer = write().unwrap();
    assert_eq!(kind(read()), ErrorKind::Locked);
    writer.close().unwrap();
    read().unwrap();
}

#[test]
fn reading_needs_a_database_but_no_lock_file() {
    let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(1));
    let read = |disk: &SimDisk| Db::open_read_only(FOLDER, options(disk, &runtime));
    assert_eq!(kind(read(&disk)), ErrorKind::NotFound);
    assert_eq!(disk.changes(), 0);
    let (disk, runtime) = filled();
    let lock = Path::new(FOLDER).join("LOCK");
    disk.edit(|image| image.remove(&lock)).unwrap();
    let db = Db::open_read_only(FOLDER, options(&disk, &runtime)).unwrap();
    assert_eq!(db.keyspace("main").unwrap().iter().unwrap().count(), 101);
    assert!(!disk.image().files().contains(&lock));
}

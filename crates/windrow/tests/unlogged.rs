//! Databases without a log: what survives is the state of the last `persist`.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "looks at the folder of the database, and listens"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tempfile::TempDir;
use windrow::{Batch, Db, Durability, Error, ErrorKind, Event, EventListener, Keyspace, Options};

fn unlogged() -> Options {
    let mut options = Options::default();
    options.log = false;
    options.job_log_bytes = 0;
    options.keyspace.memtable_bytes = 16 << 10;
    options.keyspace.file_bytes = 8 << 10;
    options.keyspace.base_bytes = 32 << 10;
    options.keyspace.level0_runs = 2;
    options.keyspace.medium_from = 200;
    options.keyspace.large_from = 1000;
    options
}

fn open(folder: &TempDir, options: Options) -> Db {
    Db::open(folder.path().join("db"), options).unwrap()
}

/// Writes `rounds` versions of 100 keys, with values of three sizes, and lets jobs run.
fn write(db: &Db, keyspace: &Keyspace, name: &str, rounds: usize) {
    for round in 0..rounds {
        for key in 0..100_usize {
            let value = format!("{name} {round} ").repeat(1 + key % 3 * 40);
            keyspace.insert(format!("{key:03}"), value).unwrap();
        }
    }
    db.wait_idle().unwrap();
}

fn contents(db: &Db) -> Vec<(String, Vec<u8>, Vec<u8>)> {
    let mut all = Vec::new();
    for name in db.keyspace_names() {
        for entry in db.keyspace(&name).unwrap().iter().unwrap() {
            let (key, value) = entry.unwrap();
            all.push((name.clone(), key, value));
        }
    }
    all
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let names = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    names
        .filter(|path| path.extension().is_some_and(|it| it == extension))
        .collect()
}

fn tables(folder: &Path) -> usize {
    files(folder, "table").len()
}

#[test]
fn an_open_finds_the_state_of_the_last_persist() {
    let folder = TempDir::new().unwrap();
    let db = open(&folder, unlogged());
    let map = db.keyspace("map").unwrap();
    let other = db.keyspace("other").unwrap();
    write(&db, &map, "first", 3);
    other.insert("key", "value").unwrap();
    db.persist().unwrap();
    let persisted = contents(&db);

    // Flushes, merges, loads and changes of keyspaces count no more than writes do.
    write(&db, &map, "second", 20);
    db.flush().unwrap();
    map.compact_range::<&[u8]>(..).unwrap();
    db.keyspace("late").unwrap().insert("late", "late").unwrap();
    db.flush().unwrap();
    let load = [("loaded", "1"), ("loaded too", "2")];
    map.bulk_load(load).unwrap();
    other.rename("renamed").unwrap();
    db.drop_keyspace("renamed").unwrap();
    assert_ne!(contents(&db), persisted);
    drop((map, other));
    db.close().unwrap();

    for options in [unlogged(), Options::default(), unlogged()] {
        let db = open(&folder, options);
        assert_eq!(contents(&db), persisted);
        assert!(db.verify().unwrap().is_sound());
        db.close().unwrap();
    }
    let db = Db::open_read_only(folder.path().join("db"), Options::default()).unwrap();
    assert_eq!(contents(&db), persisted);
}

#[test]
fn a_persist_that_was_begun_has_nothing_that_came_later() {
    // Flushes of newer entries would overtake the point in about every second round.
    for _ in 0..8 {
        check_a_begun_persist();
    }
}

fn check_a_begun_persist() {
    let folder = TempDir::new().unwrap();
    let db = open(&folder, unlogged());
    let map = db.keyspace("map").unwrap();
    write(&db, &map, "first", 3);
    let persisted = contents(&db);
    let pending = db.begin_persist().unwrap();
    // More than a memtable, flushes and merges included.
    write(&db, &map, "second", 20);
    db.flush().unwrap();
    pending.wait().unwrap();
    assert!(pending.is_ended());
    map.compact_range::<&[u8]>(..).unwrap();
    drop((map, pending));
    db.close().unwrap();
    let db = open(&folder, Options::default());
    assert!(contents(&db) == persisted);

    // With a log nothing is left to do.
    let pending = db.begin_persist().unwrap();
    assert!(pending.is_ended());
    pending.wait().unwrap();
}

#[test]
fn writes_and_reads_see_everything_and_the_log_gets_nothing() {
    let folder = TempDir::new().unwrap();
    let db = open(&folder, unlogged());
    let map = db.keyspace("map").unwrap();
    let mut batch = Batch::new();
    batch.insert(&map, "large", vec![7; 50_000]).unwrap();
    batch.insert(&map, "small", "8").unwrap();
    db.write(&batch).unwrap();
    assert_eq!(map.get("large").unwrap().unwrap(), vec![7; 50_000]);
    let transaction = db.transaction();
    transaction.insert(&map, "in a transaction", "9").unwrap();
    transaction.commit().unwrap();
    write(&db, &map, "many", 10);
    // Logs have their heads alone.
    let logs = files(&folder.path().join("db"), "wal");
    assert!(!logs.is_empty());
    for log in logs {
        let bytes = fs::read(log).unwrap();
        for written in ["in a transaction", "many"] {
            let mut places = bytes.windows(written.len());
            assert!(!places.any(|it| it == written.as_bytes()), "{written}");
        }
    }
    let stats = db.stats();
    let values = stats.keyspaces.iter().map(|it| it.value_logs.bytes);
    db.persist().unwrap();
    assert!(values.sum::<u64>() > 0, "large values are in value logs");
    let all = contents(&db);
    assert!(all.iter().any(|it| it.1 == b"in a transaction"));
    drop(map);
    db.close().unwrap();
    let db = open(&folder, unlogged());
    assert_eq!(contents(&db), all);
}

#[test]
fn what_needs_a_log_is_refused() {
    let folder = TempDir::new().unwrap();
    let mut synced = unlogged();
    synced.durability = Durability::Sync;
    let kind = |error: Error| error.kind();
    let refused = Db::open(folder.path().join("db"), synced).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);

    let db = open(&folder, unlogged());
    let map = db.keyspace("map").unwrap();
    map.insert("key", "value").unwrap();
    let sync = map.insert_with("key", "synced", Durability::Sync);
    assert_eq!(sync.map_err(kind), Err(ErrorKind::InvalidArgument));
    assert_eq!(map.get("key").unwrap().unwrap(), b"value");
    let transaction = db.transaction();
    transaction.insert(&map, "key", "prepared").unwrap();
    let prepared = transaction.prepare("name");
    assert_eq!(
        prepared.map(drop).map_err(kind),
        Err(ErrorKind::InvalidArgument)
    );
    let consumer = db.consumer("consumer").map(drop);
    assert_eq!(consumer.map_err(kind), Err(ErrorKind::InvalidArgument));
    let changes = db.changes(1).map(drop);
    assert_eq!(changes.map_err(kind), Err(ErrorKind::InvalidArgument));
    let secondary = Db::open_secondary(folder.path().join("db"), Options::default()).map(drop);
    assert_eq!(secondary.map_err(kind), Err(ErrorKind::Unsupported));
    drop(map);
    db.close().unwrap();

    let is_refused = || {
        let refused = Db::open(folder.path().join("db"), unlogged()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    };
    let db = open(&folder, Options::default());
    db.consumer("consumer").unwrap();
    db.close().unwrap();
    is_refused();
    let db = open(&folder, Options::default());
    db.remove_consumer("consumer").unwrap();
    let map = db.keyspace("map").unwrap();
    let transaction = db.transaction();
    transaction.insert(&map, "key", "prepared").unwrap();
    transaction.prepare("name").unwrap();
    drop(map);
    db.close().unwrap();
    is_refused();
    let db = open(&folder, Options::default());
    let prepared = db.prepared_transaction("name").unwrap();
    prepared.commit().unwrap();
    db.close().unwrap();
    let db = open(&folder, unlogged());
    let map = db.keyspace("map").unwrap();
    assert_eq!(map.get("key").unwrap().unwrap(), b"prepared");
}

#[test]
fn a_log_that_was_written_before_counts_until_a_persist() {
    let folder = TempDir::new().unwrap();
    let db = open(&folder, Options::default());
    let map = db.keyspace("map").unwrap();
    map.insert("logged", "1").unwrap();
    drop(map);
    db.close().unwrap();
    for _ in 0..2 {
        let db = open(&folder, unlogged());
        let map = db.keyspace("map").unwrap();
        assert_eq!(contents(&db).len(), 1);
        map.insert("lost", "2").unwrap();
        db.flush().unwrap();
        drop(map);
        db.close().unwrap();
    }
    let db = open(&folder, unlogged());
    db.keyspace("map").unwrap().insert("kept", "3").unwrap();
    db.persist().unwrap();
    db.close().unwrap();
    let db = open(&folder, Options::default());
    let map = db.keyspace("map").unwrap();
    assert_eq!(contents(&db).len(), 2);
    map.insert("logged again", "4").unwrap();
    drop(map);
    db.close().unwrap();
    let db = open(&folder, unlogged());
    assert_eq!(contents(&db).len(), 3);
}

#[test]
fn a_checkpoint_persists_and_does_not_change() {
    let folder = TempDir::new().unwrap();
    let copy = folder.path().join("copy");
    let db = open(&folder, unlogged());
    let map = db.keyspace("map").unwrap();
    write(&db, &map, "first", 5);
    db.checkpoint(&copy).unwrap();
    let persisted = contents(&db);
    write(&db, &map, "second", 5);
    drop(map);
    db.close().unwrap();
    let db = open(&folder, unlogged());
    assert_eq!(contents(&db), persisted);
    let map = db.keyspace("map").unwrap();
    write(&db, &map, "third", 20);
    db.persist().unwrap();
    let copied = Db::open(&copy, Options::default()).unwrap();
    assert_eq!(contents(&copied), persisted);
    assert!(copied.verify().unwrap().is_sound());
}

#[test]
fn files_of_the_last_persist_stay_until_the_next() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("db");
    let db = open(&folder, unlogged());
    let map = db.keyspace("map").unwrap();
    write(&db, &map, "first", 5);
    db.persist().unwrap();
    db.wait_idle().unwrap();
    db.persist().unwrap();
    let level_files = |db: &Db| {
        let keyspaces = db.stats().keyspaces;
        let levels = keyspaces.iter().flat_map(|keyspace| &keyspace.levels);
        levels.map(|level| level.files).sum::<usize>()
    };
    let persisted = level_files(&db);
    assert_eq!(tables(&path), persisted);
    write(&db, &map, "second", 50);
    map.compact_range::<&[u8]>(..).unwrap();
    db.wait_idle().unwrap();
    assert!(tables(&path) > level_files(&db));
    // What is newer than the persist goes as usual.
    assert!(tables(&path) <= level_files(&db) + persisted);
    assert_eq!(db.stats().files_held_by_readers, 0);
    db.persist().unwrap();
    db.wait_idle().unwrap();
    db.persist().unwrap();
    assert_eq!(tables(&path), level_files(&db));
}

#[test]
fn a_repair_keeps_what_counts_and_loses_nothing_again() {
    let folder = TempDir::new().unwrap();
    let db = open(&folder, unlogged());
    let map = db.keyspace("map").unwrap();
    write(&db, &map, "first", 5);
    db.persist().unwrap();
    let persisted = contents(&db);
    write(&db, &map, "second", 5);
    db.flush().unwrap();
    drop(map);
    db.close().unwrap();
    let new = folder.path().join("new");
    let report = Db::repair(folder.path().join("db"), &new, &unlogged()).unwrap();
    assert!(report.is_whole());
    let repaired = Db::open(&new, unlogged()).unwrap();
    assert_eq!(contents(&repaired), persisted);
}

/// What a listener gets whose database is in the slot.
#[derive(Debug, Default)]
struct Caller {
    db: Mutex<Option<Db>>,
    outcomes: Mutex<Vec<[Option<ErrorKind>; 4]>>,
}

impl EventListener for Caller {
    fn on_event(&self, event: &Event) {
        if let (Event::FlushEnded { .. }, Some(db)) = (event, &*self.db.lock().unwrap()) {
            let kind = |error: Error| error.kind();
            let calls = [
                db.keyspace("map").map(drop),
                db.keyspace("new").map(drop),
                db.persist(),
                db.begin_persist().map(drop),
            ];
            let kinds = calls.map(|outcome| outcome.map_err(kind).err());
            self.outcomes.lock().unwrap().push(kinds);
        }
    }
}

#[test]
fn a_listener_of_a_persist_does_not_wait_for_it() {
    let folder = TempDir::new().unwrap();
    let caller = Arc::new(Caller::default());
    let listener: Arc<dyn EventListener> = Arc::<Caller>::clone(&caller);
    let db = open(&folder, unlogged().with_listener(listener));
    let map = db.keyspace("map").unwrap();
    map.insert("key", "value").unwrap();
    *caller.db.lock().unwrap() = Some(db.clone());
    db.persist().unwrap();
    *caller.db.lock().unwrap() = None;
    let refused = Some(ErrorKind::InvalidArgument);
    assert_eq!(
        *caller.outcomes.lock().unwrap(),
        [[None, refused, refused, refused]]
    );
}

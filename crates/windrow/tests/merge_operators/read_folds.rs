//! Gets that have folded operands of several tables give the key a base, so that the next ones search one source.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use windrow::operators::{AddU64, Append};
use windrow::{Db, ErrorKind, Isolation, Keyspace, MergeError, MergeOperator, Operands, Options};

use crate::tiny;

fn options(operator: impl MergeOperator + 'static) -> Options {
    let mut options = Options::default().with_merge_operator("map", Arc::new(operator));
    options.keyspace = tiny();
    // What is flushed stays where it is.
    options.keyspace.level0_runs = 64;
    options
}

fn open(folder: &Path) -> (Db, Keyspace) {
    let db = Db::open(folder, options(AddU64::Wrapping)).unwrap();
    let map = db.keyspace("map").unwrap();
    (db, map)
}

fn add(map: &Keyspace, key: &str, summand: u64) {
    map.merge(key, summand.to_le_bytes()).unwrap();
}

fn number(value: Option<Vec<u8>>) -> u64 {
    u64::from_le_bytes(value.unwrap().try_into().unwrap())
}

fn get(map: &Keyspace, key: &str) -> u64 {
    number(map.get(key).unwrap())
}

/// A base of `key`, and `operands` of 1, each in a run of its own.
fn spread(db: &Db, map: &Keyspace, key: &str, operands: u64) {
    map.insert(key, 0_u64.to_le_bytes()).unwrap();
    db.flush().unwrap();
    for _ in 0..operands {
        add(map, key, 1);
        db.flush().unwrap();
    }
}

/// More than one.
const MANY: u64 = 2;

/// What a call has changed in the statistics: blocks that were read, folds that were kept, and bytes in the log.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    /// At most [`MANY`].
    blocks: u64,
    kept: u64,
    dropped: u64,
    is_logged: bool,
}

fn seen<R>(db: &Db, call: impl FnOnce() -> R) -> (R, Seen) {
    db.wait_idle().unwrap();
    let before = db.stats();
    let answer = call();
    db.wait_idle().unwrap();
    let after = db.stats();
    let seen = Seen {
        // What the job reads does not count there.
        blocks: (after.block_reads - before.block_reads).min(MANY),
        kept: after.folds_kept - before.folds_kept,
        dropped: after.folds_dropped - before.folds_dropped,
        is_logged: after.wal_bytes > before.wal_bytes,
    };
    (answer, seen)
}

/// Reads `blocks` blocks, and changes nothing.
fn plain(blocks: u64) -> Seen {
    Seen {
        blocks,
        kept: 0,
        dropped: 0,
        is_logged: false,
    }
}

/// Reads `blocks` blocks, and gives `kept` keys a base.
fn keeping(blocks: u64, kept: u64) -> Seen {
    Seen {
        kept,
        is_logged: true,
        ..plain(blocks)
    }
}

#[test]
fn the_second_get_searches_one_source() {
    let folder = tempfile::tempdir().unwrap();
    let (db, map) = open(folder.path());
    spread(&db, &map, "hot", 3);
    let before = db.snapshot();
    assert_eq!(seen(&db, || get(&map, "hot")), (3, keeping(MANY, 1)));
    assert_eq!(seen(&db, || get(&map, "hot")), (3, plain(0)));
    // Increments go on above the new base.
    add(&map, "hot", 10);
    assert_eq!(seen(&db, || get(&map, "hot")), (13, plain(0)));
    let between = db.snapshot();
    db.flush().unwrap();
    assert_eq!(seen(&db, || get(&map, "hot")), (13, plain(1)));
    // With the next operand there are two sources again, and the value goes where the operand is.
    add(&map, "hot", 100);
    assert_eq!(seen(&db, || get(&map, "hot")), (113, plain(1)));
    assert_eq!(seen(&db, || get(&map, "hot")), (113, plain(0)));
    db.flush().unwrap();
    assert_eq!(seen(&db, || get(&map, "hot")), (113, plain(1)));
    // Snapshots see what they saw, also after everything was rewritten.
    for _ in 0..2 {
        for (snapshot, expected) in [(&before, 3), (&between, 13)] {
            let view = map.at(snapshot).unwrap();
            assert_eq!(number(view.get("hot").unwrap()), expected);
        }
        assert_eq!(get(&map, "hot"), 113);
        map.compact_range::<&[u8]>(..).unwrap();
    }
    drop((before, between));
    // The base is as durable as any write.
    db.close().unwrap();
    let (_db, map) = open(folder.path());
    assert_eq!(get(&map, "hot"), 113);
}

#[test]
fn operands_without_a_base_are_folded_too() {
    let folder = tempfile::tempdir().unwrap();
    let (db, map) = open(folder.path());
    for _ in 0..2 {
        add(&map, "new", 1);
        db.flush().unwrap();
    }
    assert_eq!(seen(&db, || get(&map, "new")).1, keeping(MANY, 1));
    assert_eq!(seen(&db, || get(&map, "new")), (2, plain(0)));
    // One operand is found by one search, as a value is.
    add(&map, "once", 1);
    map.insert("other", "").unwrap();
    db.flush().unwrap();
    assert_eq!(seen(&db, || get(&map, "once")), (1, plain(1)));
}

#[test]
fn a_get_of_many_keys_folds_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let (db, map) = open(folder.path());
    let keys = ["a", "b", "c"];
    for _ in 0..2 {
        for key in keys {
            add(&map, key, 1);
        }
        db.flush().unwrap();
    }
    map.insert("c", 9_u64.to_le_bytes()).unwrap();
    let get = || {
        let values = map.multi_get(&keys).unwrap();
        values.into_iter().map(number).collect::<Vec<_>>()
    };
    assert_eq!(seen(&db, get), (vec![2, 2, 9], keeping(MANY, 2)));
    assert_eq!(seen(&db, get), (vec![2, 2, 9], plain(0)));
}

#[test]
fn reads_that_would_gain_nothing_fold_for_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let (db, map) = open(folder.path());
    spread(&db, &map, "hot", 2);
    let snapshot = db.snapshot();
    let view = map.at(&snapshot).unwrap();
    let read = || number(view.get("hot").unwrap());
    assert_eq!(seen(&db, read), (2, plain(MANY)));
    assert!(seen(&db, || map.contains_key("hot").unwrap()).0);
    for isolation in [Isolation::Snapshot, Isolation::Serializable] {
        let transaction = db.transaction_with(isolation);
        let read = || number(transaction.get(&map, "hot").unwrap());
        assert_eq!(seen(&db, read), (2, plain(MANY)));
    }
    let scan = || map.iter().unwrap().count();
    assert_eq!(seen(&db, scan).1.kept, 0);
    // It writes the key itself, at once.
    let update = || map.update("hot", |old| old.map(<[u8]>::to_vec)).unwrap();
    let seen = seen(&db, update).1;
    assert_eq!((seen.kept, seen.dropped), (0, 0));
}

#[test]
fn a_long_value_with_short_operands_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path(), options(Append::new([]))).unwrap();
    let map = db.keyspace("map").unwrap();
    map.insert("list", vec![1; 1000]).unwrap();
    map.insert("short", vec![1; 10]).unwrap();
    for _ in 0..2 {
        db.flush().unwrap();
        map.merge("list", [2; 10]).unwrap();
        map.merge("short", [2; 10]).unwrap();
    }
    db.flush().unwrap();
    let length = |key: &str| map.get(key).unwrap().unwrap().len();
    assert_eq!(seen(&db, || length("list")), (1020, plain(MANY)));
    assert_eq!(seen(&db, || length("short")), (30, keeping(MANY, 1)));
    assert_eq!(seen(&db, || length("list")), (1020, plain(MANY)));
}

/// A value that is large enough for a value log goes there, as that of any write.
#[test]
fn a_large_value_is_separated() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(Append::new([]));
    options.keyspace.large_from = 500;
    let db = Db::open(folder.path(), options).unwrap();
    let map = db.keyspace("map").unwrap();
    for part in [1_u8, 2] {
        map.merge("list", [part; 400]).unwrap();
        db.flush().unwrap();
    }
    let expected = [[1; 400], [2; 400]].concat();
    let is_right = || map.get("list").unwrap().unwrap() == expected;
    assert_eq!(seen(&db, is_right), (true, keeping(MANY, 1)));
    assert!(db.stats().value_log_bytes >= 800);
    assert_eq!(seen(&db, is_right), (true, plain(0)));
}

/// Fails as long as it is said to.
struct Failing(Arc<AtomicBool>);

impl MergeOperator for Failing {
    fn name(&self) -> &'static str {
        "test.failing"
    }

    fn full_merge(
        &self,
        key: &[u8],
        base: Option<&[u8]>,
        operands: Operands<'_>,
        result: &mut Vec<u8>,
    ) -> Result<(), MergeError> {
        if self.0.load(Ordering::Relaxed) {
            return Err(MergeError::new("as it was said to"));
        }
        AddU64::Wrapping.full_merge(key, base, operands, result)
    }
}

#[test]
fn what_cannot_be_folded_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let fails = Arc::new(AtomicBool::new(false));
    let db = Db::open(folder.path(), options(Failing(Arc::clone(&fails)))).unwrap();
    let map = db.keyspace("map").unwrap();
    spread(&db, &map, "hot", 2);
    fails.store(true, Ordering::Relaxed);
    let read = || map.get("hot").unwrap_err().kind();
    assert_eq!(seen(&db, read), (ErrorKind::Merge, plain(MANY)));
    fails.store(false, Ordering::Relaxed);
    assert_eq!(seen(&db, || get(&map, "hot")), (2, keeping(MANY, 1)));
}

#[test]
fn an_open_for_reading_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (original, copy) = (folder.path().join("db"), folder.path().join("checkpoint"));
    let (db, map) = open(&original);
    spread(&db, &map, "hot", 2);
    db.checkpoint(&copy).unwrap();
    db.close().unwrap();
    for folder in [&original, &copy] {
        let db = Db::open_read_only(folder, options(AddU64::Wrapping)).unwrap();
        let map = db.keyspace("map").unwrap();
        for _ in 0..2 {
            assert_eq!(seen(&db, || get(&map, "hot")), (2, plain(MANY)));
        }
    }
}

//! The name of the operator is recorded, and an open without the operator can do everything else.

use std::sync::Arc;

use windrow::operators::{AddU64, Append};
use windrow::{Batch, Db, ErrorKind, MergeError, MergeOperator, Operands, Options};

use crate::{open, tiny};

/// An operator that is no ready one.
struct Own;

impl MergeOperator for Own {
    fn name(&self) -> &'static str {
        "test.own"
    }

    fn full_merge(
        &self,
        key: &[u8],
        base: Option<&[u8]>,
        operands: Operands<'_>,
        result: &mut Vec<u8>,
    ) -> Result<(), MergeError> {
        Append::new("+").full_merge(key, base, operands, result)
    }
}

fn without_operator() -> Options {
    let mut options = Options::default();
    options.keyspace = tiny();
    options
}

#[test]
fn an_open_without_the_operator_does_everything_else() {
    let folder = tempfile::tempdir().unwrap();
    let (db, map) = open(folder.path(), Own);
    map.insert("plain", "value").unwrap();
    map.insert("both", "base").unwrap();
    for operand in ["1", "2"] {
        map.merge("both", operand).unwrap();
        map.merge("only", operand).unwrap();
    }
    db.close().unwrap();

    let db = Db::open(folder.path(), without_operator()).unwrap();
    let map = db.keyspace("map").unwrap();
    assert_eq!(map.get("plain").unwrap().as_deref(), Some(&b"value"[..]));
    for round in 0..3 {
        for key in ["both", "only"] {
            let error = map.get(key).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Merge);
            assert!(error.to_string().contains("test.own"), "{error}");
            assert!(map.contains_key(key).unwrap());
        }
        assert_eq!(map.count::<&[u8]>(..).unwrap(), 3 + round);
        map.insert(format!("new{round}"), "value").unwrap();
        match round {
            0 => db.flush().unwrap(),
            _ => map.compact_range::<&[u8]>(..).unwrap(),
        }
    }
    // A value or a removal replaces operands, and their number does not matter then.
    map.insert("only", "value").unwrap();
    assert_eq!(map.get("only").unwrap().as_deref(), Some(&b"value"[..]));
    let error = map.merge("plain", "1").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let error = Batch::new().merge(&map, "plain", "1").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(db.verify().unwrap().is_sound());
    db.close().unwrap();

    let (db, map) = open(folder.path(), Own);
    assert_eq!(map.get("both").unwrap().as_deref(), Some(&b"base+1+2"[..]));
    map.compact_range::<&[u8]>(..).unwrap();
    assert_eq!(map.get("both").unwrap().as_deref(), Some(&b"base+1+2"[..]));
    assert!(db.verify().unwrap().is_sound());
}

#[test]
fn another_operator_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path(), Own).0.close().unwrap();
    let options = without_operator().with_merge_operator("map", Arc::new(AddU64::Wrapping));
    let error = Db::open(folder.path(), options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let message = error.to_string();
    for part in ["map", "test.own", "windrow.add_u64.wrapping"] {
        assert!(message.contains(part), "{message}");
    }
    // The refusal has changed nothing, and another keyspace may have it.
    let options = without_operator().with_merge_operator("other", Arc::new(AddU64::Wrapping));
    let db = Db::open(folder.path(), options).unwrap();
    db.keyspace("other")
        .unwrap()
        .merge("n", 1_u64.to_le_bytes())
        .unwrap();
}

/// A keyspace that has values may get an operator later.
#[test]
fn an_old_keyspace_gets_an_operator() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path(), without_operator()).unwrap();
    let map = db.keyspace("map").unwrap();
    map.insert("key", "base").unwrap();
    let error = map.merge("key", "1").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    db.close().unwrap();
    let (db, map) = open(folder.path(), Own);
    map.merge("key", "1").unwrap();
    db.flush().unwrap();
    assert_eq!(map.get("key").unwrap().as_deref(), Some(&b"base+1"[..]));
}

#[test]
fn ready_operators_are_found_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let (db, map) = open(folder.path(), Append::new(b"\x00:"));
    map.merge("key", "1").unwrap();
    map.merge("key", "2").unwrap();
    db.close().unwrap();
    for _ in 0..2 {
        let db = Db::open_read_only(folder.path(), Options::default()).unwrap();
        let map = db.keyspace("map").unwrap();
        assert_eq!(map.get("key").unwrap().as_deref(), Some(&b"1\x00:2"[..]));
        db.close().unwrap();
        let db = Db::open(folder.path(), without_operator()).unwrap();
        let map = db.keyspace("map").unwrap();
        map.compact_range::<&[u8]>(..).unwrap();
        assert_eq!(map.get("key").unwrap().as_deref(), Some(&b"1\x00:2"[..]));
        db.close().unwrap();
    }
}

#[test]
fn a_checkpoint_has_the_operator() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy");
    let (db, map) = open(&folder.path().join("db"), Append::new(","));
    map.merge("key", "1").unwrap();
    db.checkpoint(&copy).unwrap();
    map.merge("key", "2").unwrap();
    let db = Db::open(&copy, Options::default()).unwrap();
    let map = db.keyspace("map").unwrap();
    assert_eq!(map.get("key").unwrap().as_deref(), Some(&b"1"[..]));
}

#[test]
fn long_operands_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (_db, map) = open(folder.path(), Append::new(""));
    let long = vec![b'x'; windrow::limits::OPERAND_BYTES_MAX];
    map.merge("key", &long).unwrap();
    let longer = vec![b'x'; long.len() + 1];
    let error = map.merge("key", &longer).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    map.merge("key", &long).unwrap();
    let length = |value: Option<Vec<u8>>| value.unwrap().len();
    assert_eq!(length(map.get("key").unwrap()), 2 * long.len());
    // Longer than a value that a table may hold.
    for _ in 0..2 {
        map.compact_range::<&[u8]>(..).unwrap();
        assert_eq!(length(map.get("key").unwrap()), 2 * long.len());
        map.merge("key", "x").unwrap();
        assert_eq!(length(map.get("key").unwrap()), 2 * long.len() + 1);
        map.insert("key", [&long[..], &long[..]].concat()).unwrap();
    }
}

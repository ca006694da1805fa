//! An operator that errs or panics loses nothing and holds up its key alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use windrow::{Db, ErrorKind, Keyspace, MergeError, MergeOperator, Operands};

use crate::open;

/// How an operator fails.
#[derive(Clone, Copy)]
enum Failure {
    Error,
    Panic,
}

/// Appends bytes; fails for keys that begin with `bad` while it is out of order.
struct Fragile {
    failure: Failure,
    is_broken: Arc<AtomicBool>,
}

impl Fragile {
    fn join(
        &self,
        key: &[u8],
        parts: impl Iterator<Item = Vec<u8>>,
    ) -> Result<Vec<u8>, MergeError> {
        if key.starts_with(b"bad") && self.is_broken.load(Ordering::Relaxed) {
            match self.failure {
                Failure::Error => return Err(MergeError::new("no such thing")),
                // As a panic, without its message.
                Failure::Panic => std::panic::resume_unwind(Box::new(())),
            }
        }
        Ok(parts.collect::<Vec<_>>().concat())
    }
}

impl MergeOperator for Fragile {
    fn name(&self) -> &'static str {
        "test.fragile"
    }

    fn full_merge(
        &self,
        key: &[u8],
        base: Option<&[u8]>,
        operands: Operands<'_>,
        result: &mut Vec<u8>,
    ) -> Result<(), MergeError> {
        let parts = base.into_iter().chain(operands).map(<[u8]>::to_vec);
        result.append(&mut self.join(key, parts)?);
        Ok(())
    }

    fn partial_merge(
        &self,
        key: &[u8],
        operands: Operands<'_>,
        result: &mut Vec<u8>,
    ) -> Result<bool, MergeError> {
        result.append(&mut self.join(key, operands.map(<[u8]>::to_vec))?);
        Ok(true)
    }
}

fn write(map: &Keyspace, round: u8) {
    for key in ["a", "bad", "bad/large", "c"] {
        map.merge(key, [round]).unwrap();
    }
}

fn expected(rounds: u8) -> Vec<u8> {
    (0..rounds).collect()
}

/// The sound keys have their values, and the others report the operator's failure.
fn check_broken(db: &Db, map: &Keyspace, rounds: u8) {
    for key in ["a", "c"] {
        assert_eq!(map.get(key).unwrap(), Some(expected(rounds)));
    }
    let error = map.get("bad").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Merge);
    let message = error.to_string();
    assert!(
        message.contains("test.fragile") && message.contains("\"bad\""),
        "{message}"
    );
    assert_eq!(
        map.multi_get(&["a", "bad"]).unwrap_err().kind(),
        ErrorKind::Merge
    );
    // Whether the key exists needs no fold, and a cursor passes it.
    assert!(map.contains_key("bad").unwrap());
    assert_eq!(map.count::<&[u8]>(..).unwrap(), 4);
    let mut cursor = map.cursor().unwrap();
    let mut read = Vec::new();
    let mut is_valid = cursor.seek_to_first().unwrap();
    while is_valid {
        read.push(cursor.value().is_ok());
        is_valid = cursor.next().unwrap();
    }
    assert_eq!(read, [true, false, false, true]);
    let is_ok = |entry: windrow::Result<windrow::Entry>| match entry {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Merge);
            false
        }
    };
    let mut both_ends = map.iter().unwrap();
    let from_the_ends = [
        both_ends.next(),
        both_ends.next_back(),
        both_ends.next_back(),
        both_ends.next(),
        both_ends.next(),
    ];
    let expected = [Some(true), Some(true), Some(false), Some(false), None];
    assert_eq!(from_the_ends.map(|entry| entry.map(is_ok)), expected);
    let transaction = db.transaction();
    let entries = transaction.iter(map).unwrap();
    assert_eq!(entries.map(is_ok).collect::<Vec<_>>(), read);
    assert!(db.verify().unwrap().is_sound());
}

fn check(failure: Failure) {
    let folder = tempfile::tempdir().unwrap();
    let is_broken = Arc::new(AtomicBool::new(true));
    let operator = || Fragile {
        failure,
        is_broken: Arc::clone(&is_broken),
    };
    let (db, map) = open(folder.path(), operator());
    map.insert("bad/large", []).unwrap();
    for round in 0..4 {
        write(&map, round);
        if round % 2 == 0 {
            db.flush().unwrap();
        }
        check_broken(&db, &map, round + 1);
    }
    map.compact_range::<&[u8]>(..).unwrap();
    check_broken(&db, &map, 4);
    let stats = db.stats();
    assert!(stats.folds_failed > 0, "{stats:?}");
    db.close().unwrap();
    let (db, map) = open(folder.path(), operator());
    check_broken(&db, &map, 4);
    // Nothing is lost: all is there once the operator works.
    is_broken.store(false, Ordering::Relaxed);
    for _ in 0..2 {
        for key in ["a", "bad", "bad/large", "c"] {
            assert_eq!(map.get(key).unwrap(), Some(expected(4)), "{key}");
        }
        map.compact_range::<&[u8]>(..).unwrap();
    }
}

#[test]
fn an_operator_that_errs_holds_up_its_key_alone() {
    check(Failure::Error);
}

#[test]
fn an_operator_that_panics_holds_up_its_key_alone() {
    check(Failure::Panic);
}

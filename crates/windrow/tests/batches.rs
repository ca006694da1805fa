//! Batches that are read back: entry by entry, and as bytes in another database.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]

use std::path::Path;
use std::sync::Arc;

use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use windrow::operators::Append;
use windrow::{Batch, BatchEntry, BatchWrite, Db, ErrorKind, Options};

const NAMES: [&str; 3] = ["alpha", "beta", "gamma"];

/// A database whose keyspaces have the names of `NAMES`, created in the given order.
fn open(folder: &Path, order: [usize; 3]) -> Db {
    let options = NAMES.iter().fold(Options::default(), |options, name| {
        options.with_merge_operator(*name, Arc::new(Append::new(b",")))
    });
    let db = Db::open(folder, options).unwrap();
    for index in order {
        db.keyspace(NAMES[index]).unwrap();
    }
    db
}

#[derive(Debug, Clone)]
enum Op {
    Insert(Vec<u8>),
    Remove,
    Merge(Vec<u8>),
    /// Up to before the key followed by these bytes.
    DeleteRange(Vec<u8>),
    DeleteFrom,
}

type Writes = Vec<(usize, Vec<u8>, Op)>;

fn writes() -> impl Strategy<Value = Writes> {
    let bytes = || proptest::collection::vec(any::<u8>(), 0..300);
    let op = prop_oneof![
        bytes().prop_map(Op::Insert),
        Just(Op::Remove),
        bytes().prop_map(Op::Merge),
        proptest::collection::vec(any::<u8>(), 1..5).prop_map(Op::DeleteRange),
        Just(Op::DeleteFrom)
    ];
    let key = proptest::collection::vec(any::<u8>(), 1..20);
    proptest::collection::vec((0..3_usize, key, op), 0..20)
}

fn batch_of(db: &Db, writes: &Writes) -> Batch {
    let mut batch = Batch::new();
    for (index, key, op) in writes {
        let keyspace = db.existing_keyspace(NAMES[*index]).unwrap().unwrap();
        match op {
            Op::Insert(value) => batch.insert(&keyspace, key, value),
            Op::Remove => batch.remove(&keyspace, key),
            Op::Merge(operand) => batch.merge(&keyspace, key, operand),
            Op::DeleteRange(more) => batch.delete_range(&keyspace, key.clone()..end(key, more)),
            Op::DeleteFrom => batch.delete_range(&keyspace, key.clone()..),
        }
        .unwrap();
    }
    batch
}

fn end(key: &[u8], more: &[u8]) -> Vec<u8> {
    [key, more].concat()
}

/// Whether `batch` yields exactly `writes`.
fn holds(batch: &Batch, writes: &Writes) -> bool {
    let ends = writes.iter().map(|(_, key, op)| match op {
        Op::DeleteRange(more) => end(key, more),
        _ => Vec::new(),
    });
    let ends: Vec<_> = ends.collect();
    let expected = writes
        .iter()
        .zip(&ends)
        .map(|((index, key, op), end)| BatchEntryParts {
            keyspace: NAMES[*index],
            key,
            write: match op {
                Op::Insert(value) => BatchWrite::Insert(value),
                Op::Remove => BatchWrite::Remove,
                Op::Merge(operand) => BatchWrite::Merge(operand),
                Op::DeleteRange(_) => BatchWrite::DeleteRange(Some(end)),
                Op::DeleteFrom => BatchWrite::DeleteRange(None),
            },
        });
    batch.iter().len() == writes.len() && batch.iter().zip(expected).all(|(is, be)| be.is(&is))
}

struct BatchEntryParts<'a> {
    keyspace: &'a str,
    key: &'a [u8],
    write: BatchWrite<'a>,
}

impl BatchEntryParts<'_> {
    fn is(&self, entry: &BatchEntry<'_>) -> bool {
        (self.keyspace, self.key, self.write) == (&*entry.keyspace, entry.key, entry.write)
    }
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]

    /// The other database has other ids for the same names.
    #[test]
    fn a_batch_has_the_same_writes_in_another_database(writes in writes()) {
        let folders = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let from = open(folders.0.path(), [0, 1, 2]);
        let to = open(folders.1.path(), [2, 0, 1]);
        let batch = batch_of(&from, &writes);
        prop_assert!(holds(&batch, &writes));
        let bytes = batch.to_bytes().unwrap();
        let received = to.batch_from_bytes(&bytes).unwrap();
        prop_assert!(holds(&received, &writes));
        prop_assert_eq!(to.batch_from_bytes(&received.to_bytes().unwrap()).unwrap().len(), writes.len());

        from.write(&batch).unwrap();
        to.write(&received).unwrap();
        for name in NAMES {
            let entries = |db: &Db| -> Vec<_> {
                let keyspace = db.existing_keyspace(name).unwrap().unwrap();
                keyspace.iter().unwrap().map(Result::unwrap).collect()
            };
            prop_assert_eq!(entries(&from), entries(&to));
        }
    }

    #[test]
    fn damaged_bytes_are_no_batch(writes in writes(), at in any::<usize>(), bit in 0..8) {
        let folder = tempfile::tempdir().unwrap();
        let db = open(folder.path(), [0, 1, 2]);
        let mut bytes = batch_of(&db, &writes).to_bytes().unwrap();
        let at = at % bytes.len();
        let cut = db.batch_from_bytes(&bytes[..at]).unwrap_err();
        prop_assert_eq!(cut.kind(), ErrorKind::Corruption);
        bytes[at] ^= 1_u8 << bit;
        let damaged = db.batch_from_bytes(&bytes).unwrap_err();
        prop_assert_eq!(damaged.kind(), ErrorKind::Corruption);
    }
}

#[test]
fn a_batch_needs_its_keyspaces_and_their_merge_operators() {
    let folders = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let from = open(folders.0.path(), [0, 1, 2]);
    let alpha = from.keyspace("alpha").unwrap();
    let mut batch = Batch::new();
    batch.merge(&alpha, "key", "operand").unwrap();
    let bytes = batch.to_bytes().unwrap();

    let to = Db::open(folders.1.path(), Options::default()).unwrap();
    let error = to.batch_from_bytes(&bytes).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("alpha"), "{error}");
    assert!(to.keyspace_names().is_empty());
    to.keyspace("alpha").unwrap();
    let error = to.batch_from_bytes(&bytes).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn a_batch_has_the_present_names_of_its_keyspaces() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path(), [0, 1, 2]);
    let alpha = db.keyspace("alpha").unwrap();
    let mut batch = Batch::new();
    batch.insert(&alpha, "key", "value").unwrap();
    alpha.rename("delta").unwrap();
    let names: Vec<_> = batch
        .iter()
        .map(|entry| entry.keyspace.to_string())
        .collect();
    assert_eq!(names, ["delta"]);
    assert_eq!(
        db.batch_from_bytes(&batch.to_bytes().unwrap())
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn a_batch_for_a_dropped_keyspace_has_no_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path(), [0, 1, 2]);
    let mut batch = Batch::new();
    batch
        .insert(&db.keyspace("alpha").unwrap(), "key", "old")
        .unwrap();
    assert!(batch.to_bytes().is_ok());
    db.drop_keyspace("alpha").unwrap();
    assert_eq!(batch.to_bytes().unwrap_err().kind(), ErrorKind::NotFound);
    // Another one has its name now.
    batch
        .insert(&db.keyspace("alpha").unwrap(), "key", "new")
        .unwrap();
    assert_eq!(batch.to_bytes().unwrap_err().kind(), ErrorKind::NotFound);
}

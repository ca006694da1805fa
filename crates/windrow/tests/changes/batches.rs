//! Batches are given out as they were written.

use std::time::{Duration, SystemTime};

use windrow::{Batch, BatchWrite, Change, Db, ErrorKind, KeyspaceOptions};

use crate::{batch, open, rest};

/// One line for each write.
fn shown(change: &Change) -> Vec<String> {
    let write = |write: windrow::BatchEntry<'_>| {
        let key = String::from_utf8_lossy(write.key).into_owned();
        let what = match write.write {
            BatchWrite::Insert(value) if value.len() > 20 => format!("{} bytes", value.len()),
            BatchWrite::Insert(value) => String::from_utf8_lossy(value).into_owned(),
            BatchWrite::InsertUntil(value, time) => {
                let seconds = time
                    .duration_since(SystemTime::UNIX_EPOCH)
                    .unwrap()
                    .as_secs();
                let year = 1970 + seconds / 31_556_952;
                format!(
                    "{} bytes until {}",
                    value.len(),
                    if year > 2500 { "later" } else { "soon" }
                )
            }
            BatchWrite::Remove => "removed".to_owned(),
            BatchWrite::Merge(operand) => format!("+ {}", String::from_utf8_lossy(operand)),
            BatchWrite::DeleteRange(end) => {
                format!("up to {:?}", end.map(String::from_utf8_lossy))
            }
            other => unreachable!("{other:?}"),
        };
        format!("{} {key}: {what}", write.keyspace)
    };
    batch(change).iter().map(write).collect()
}

fn write_each_kind(db: &Db) {
    let plain = db.keyspace("plain").unwrap();
    let list = db.keyspace("list").unwrap();
    plain.insert("a", "one").unwrap();
    let mut both = Batch::new();
    both.insert(&plain, "b", vec![7; 5000]).unwrap();
    both.merge(&list, "a", "first").unwrap();
    both.remove(&plain, "a").unwrap();
    both.delete_range(&list, "c".."d").unwrap();
    both.delete_range(&list, "x"..).unwrap();
    db.write(&both).unwrap();
    let long = Duration::from_secs(1000 * 31_556_952);
    plain.insert_with_ttl("t", "gone", long).unwrap();
    plain.insert_with_ttl("u", vec![8; 6000], long).unwrap();
    plain.insert("b", vec![9; 3000]).unwrap();
}

fn expected() -> Vec<Vec<&'static str>> {
    vec![
        vec!["plain a: one"],
        vec![
            "plain b: 5000 bytes",
            "list a: + first",
            "plain a: removed",
            "list c: up to Some(\"d\")",
            "list x: up to None",
        ],
        vec!["plain t: 4 bytes until later"],
        vec!["plain u: 6000 bytes until later"],
        vec!["plain b: 3000 bytes"],
    ]
}

#[test]
fn every_kind_of_write_is_given_out_once_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    write_each_kind(&db);
    let mut changes = db.changes(1).unwrap();
    let all = rest(&mut changes);
    assert_eq!(all.iter().map(shown).collect::<Vec<_>>(), expected());
    let numbers: Vec<_> = all
        .iter()
        .map(|it| (batch(it).first(), batch(it).last()))
        .collect();
    assert_eq!(numbers, [(1, 1), (2, 6), (7, 7), (8, 8), (9, 9)]);
    assert_eq!(changes.position(), 10);
    db.keyspace("plain").unwrap().insert("c", "new").unwrap();
    assert_eq!(
        rest(&mut changes).iter().map(shown).collect::<Vec<_>>(),
        [["plain c: new"]]
    );
    assert!(rest(&mut changes).is_empty());
}

#[test]
fn a_feed_that_begins_within_a_batch_gives_out_all_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    write_each_kind(&db);
    for from in 0..=11 {
        let found = db.changes(from).map(|mut changes| rest(&mut changes));
        if from > 10 {
            assert_eq!(found.unwrap_err().kind(), ErrorKind::InvalidArgument);
            continue;
        }
        let skipped = [0, 0, 1, 1, 1, 1, 1, 2, 3, 4, 5][usize::try_from(from).unwrap()];
        let found: Vec<_> = found.unwrap().iter().map(shown).collect();
        assert_eq!(found, expected()[skipped..], "{from}");
    }
}

#[test]
fn kept_values_are_those_that_were_written_then() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    let consumer = db.consumer("late").unwrap();
    write_each_kind(&db);
    let plain = db.keyspace("plain").unwrap();
    // All value logs are garbage, and all logs could go.
    for round in 0..3_u8 {
        for key in ["b", "u"] {
            plain.insert(key, vec![round; 4000]).unwrap();
        }
        db.flush().unwrap();
        plain.compact_range::<&[u8]>(..).unwrap();
    }
    plain.remove("b").unwrap();
    plain.remove("u").unwrap();
    db.flush().unwrap();
    plain.compact_range::<&[u8]>(..).unwrap();
    db.wait_idle().unwrap();
    let check = |db: &Db| {
        let found = rest(&mut db.consumer("late").unwrap().changes().unwrap());
        let batches = found.iter().filter(|it| matches!(it, Change::Batch(_)));
        let found: Vec<_> = batches.map(shown).collect();
        assert_eq!(found[..5], expected());
        assert!(db.verify().unwrap().is_sound());
    };
    check(&db);
    let held: Vec<_> = db.consumers().iter().map(|it| it.held_bytes).collect();
    assert!(held[0] > 20_000, "{held:?}");
    drop((consumer, plain));
    db.close().unwrap();
    let db = open(folder.path());
    let consumer = db.consumer("late").unwrap();
    check(&db);
    // Nothing is held any more.
    consumer.acknowledge(db.snapshot().sequence()).unwrap();
    assert_eq!(db.consumers()[0].held_bytes, 0);
    assert!(db.verify().unwrap().is_sound());
}

#[test]
fn prepared_transactions_come_with_their_commit() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    let plain = db
        .keyspace_with("plain", KeyspaceOptions::default())
        .unwrap();
    let transaction = db.transaction();
    transaction.insert(&plain, "k", "v").unwrap();
    transaction.prepare("p").unwrap();
    let mut changes = db.changes(1).unwrap();
    assert!(rest(&mut changes).is_empty());
    db.prepared_transaction("p").unwrap().commit().unwrap();
    assert_eq!(
        rest(&mut changes).iter().map(shown).collect::<Vec<_>>(),
        [["plain k: v"]]
    );
}

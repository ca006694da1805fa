//! Changes that have no entries in the logs are events, at their place in the order.

use std::collections::BTreeSet;

use windrow::{Change, ErrorKind};

use crate::{batch, open, rest};

/// One line for each change.
fn lines(changes: &[Change]) -> Vec<String> {
    let line = |change: &Change| match change {
        Change::Batch(batch) => {
            let writes = batch
                .iter()
                .map(|write| format!("{} {}", write.keyspace, String::from_utf8_lossy(write.key)));
            writes.collect::<Vec<_>>().join(", ")
        }
        Change::KeyspaceCreated { name, .. } => format!("+ {name}"),
        Change::KeyspaceDropped { name, .. } => format!("- {name}"),
        Change::KeyspaceRenamed { from, to, .. } => format!("{from} -> {to}"),
        Change::TablesAdded { keyspaces, .. } => format!("tables of {}", keyspaces.join(", ")),
        other => unreachable!("{other:?}"),
    };
    changes.iter().map(line).collect()
}

#[test]
fn keyspaces_change_at_their_place_in_the_order() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    let a = db.keyspace("a").unwrap();
    a.insert("before", "1").unwrap();
    let consumer = db.consumer("c").unwrap();
    a.insert("1", "1").unwrap();
    let b = db.keyspace("b").unwrap();
    b.insert("2", "2").unwrap();
    db.swap_keyspaces("a", "b").unwrap();
    a.insert("3", "3").unwrap();
    a.rename("other").unwrap();
    a.insert("4", "4").unwrap();
    db.flush().unwrap();
    db.keyspace("b").unwrap().insert("5", "5").unwrap();
    let tables = db.keyspace("other").unwrap();
    tables.bulk_load([(b"6".to_vec(), b"6".to_vec())]).unwrap();
    let dropped = db.keyspace("gone").unwrap();
    dropped.insert("7", "7").unwrap();
    db.drop_keyspace("gone").unwrap();
    db.drop_keyspace("a").unwrap();
    let expected = [
        "a 1",
        "+ b",
        "a -> b",
        "b 3",
        "b -> other",
        "other 4",
        "+ b",
        "b 5",
        "tables of other",
        "+ gone",
        "- gone",
        "- a",
    ];
    for _ in 0..2 {
        let all = rest(&mut consumer.changes().unwrap());
        assert_eq!(lines(&all), expected);
        // Each has its own place.
        for (index, change) in all.iter().enumerate() {
            let rest = rest(&mut db.changes(change.sequence()).unwrap());
            assert_eq!(rest, all[index..]);
        }
    }
    let all = rest(&mut consumer.changes().unwrap());
    let sequences: BTreeSet<u64> = all.iter().map(Change::sequence).collect();
    assert_eq!(sequences.len(), expected.len());
    db.flush().unwrap();
    drop((a, b, tables, dropped, consumer));
    db.close().unwrap();
    let db = open(folder.path());
    let consumer = db.consumer("c").unwrap();
    assert_eq!(lines(&rest(&mut consumer.changes().unwrap())), expected);
}

#[test]
fn without_a_consumer_tables_are_reported_and_names_are_those_of_today() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    let a = db.keyspace("a").unwrap();
    a.insert("1", "1").unwrap();
    a.bulk_load([(b"2".to_vec(), b"2".to_vec())]).unwrap();
    a.rename("z").unwrap();
    a.insert("3", "3").unwrap();
    // Nothing is flushed, since the load overlaps no key.
    let found = lines(&rest(&mut db.changes(1).unwrap()));
    assert_eq!(found, ["z 1", "tables of ", "z 3"]);
}

#[test]
fn a_rename_that_no_consumer_holds_any_more_is_not_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    let consumer = db.consumer("c").unwrap();
    let a = db.keyspace("a").unwrap();
    a.insert("1", "1").unwrap();
    a.rename("z").unwrap();
    a.insert("2", "2").unwrap();
    let all = rest(&mut consumer.changes().unwrap());
    assert_eq!(lines(&all), ["+ a", "a 1", "a -> z", "z 2"]);
    consumer.acknowledge(db.snapshot().sequence()).unwrap();
    // The log is still there, and the names before the rename are gone.
    let mut changes = db.changes(all[1].sequence()).unwrap();
    let next = changes.next(std::time::Duration::ZERO).unwrap().unwrap();
    assert_eq!(lines(&[next]), ["z 1"]);
    for _ in 0..2 {
        let error = changes.next(std::time::Duration::ZERO).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FellBehind);
    }
    let mut changes = db.changes(all[3].sequence()).unwrap();
    assert_eq!(lines(&rest(&mut changes)), ["z 2"]);
}

#[test]
fn tables_of_a_keyspace_that_was_dropped_later_do_not_come() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    let a = db.keyspace("a").unwrap();
    let consumer = db.consumer("c").unwrap();
    let gone = db.keyspace("gone").unwrap();
    gone.bulk_load([(b"1".to_vec(), b"1".to_vec())]).unwrap();
    a.bulk_load([(b"2".to_vec(), b"2".to_vec())]).unwrap();
    db.drop_keyspace("gone").unwrap();
    let all = rest(&mut consumer.changes().unwrap());
    assert_eq!(lines(&all), ["+ gone", "tables of a", "- gone"]);
}

#[test]
fn changes_of_a_group_come_together_and_whole() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    let consumer = db.consumer("c").unwrap();
    let keyspace = db.keyspace("k").unwrap();
    std::thread::scope(|scope| {
        for writer in 0..4_u8 {
            let keyspace = &keyspace;
            let db = &db;
            scope.spawn(move || {
                for round in 0..200_u8 {
                    let mut pair = windrow::Batch::new();
                    pair.insert(keyspace, [writer, round, 0], "left").unwrap();
                    pair.insert(keyspace, [writer, round, 1], "right").unwrap();
                    db.write(&pair).unwrap();
                }
            });
        }
    });
    let all = rest(&mut consumer.changes().unwrap());
    let mut next = [0_u8; 4];
    let mut sequence = all[0].sequence() + 1;
    for change in &all[1..] {
        let batch = batch(change);
        assert_eq!(batch.first(), sequence);
        sequence = batch.last() + 1;
        let keys: Vec<_> = batch.iter().map(|write| write.key.to_vec()).collect();
        for pair in keys.chunks(2) {
            let writer = usize::from(pair[0][0]);
            assert_eq!(pair[0][..2], pair[1][..2]);
            assert_eq!((pair[0][1], pair[0][2], pair[1][2]), (next[writer], 0, 1));
            next[writer] += 1;
        }
    }
    assert_eq!(next, [200; 4]);
}

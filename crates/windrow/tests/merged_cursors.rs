//! Cursors over several keyspaces, against a sorted list.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]

use proptest::prelude::{Just, Strategy, prop_assert, prop_assert_eq, prop_oneof, proptest};
use windrow::{Db, ErrorKind, Keyspace, MergedCursor, Options};

#[derive(Debug, Clone, Copy)]
enum Move {
    First,
    Last,
    Seek(u8),
    Next,
    Prev,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        1 => Just(Move::First),
        1 => Just(Move::Last),
        2 => (0..24_u8).prop_map(Move::Seek),
        6 => Just(Move::Next),
        6 => Just(Move::Prev),
    ];
    proptest::collection::vec(one, 1..60)
}

fn make(cursor: &mut MergedCursor, step: Move) -> windrow::Result<bool> {
    match step {
        Move::First => cursor.seek_to_first(),
        Move::Last => cursor.seek_to_last(),
        Move::Seek(key) => cursor.seek([key]),
        Move::Next => cursor.next(),
        Move::Prev => cursor.prev(),
    }
}

/// The position in `entries` after a move from `at`.
fn modelled(entries: &[(u8, usize)], at: Option<usize>, step: Move) -> Option<usize> {
    let found = match step {
        Move::First => Some(0),
        Move::Last => entries.len().checked_sub(1),
        Move::Seek(key) => Some(entries.partition_point(|entry| entry.0 < key)),
        Move::Next => at.map(|at| at + 1),
        Move::Prev => at.and_then(|at| at.checked_sub(1)),
    };
    found.filter(|&at| at < entries.len())
}

fn open(keyspaces: usize) -> (tempfile::TempDir, Db, Vec<Keyspace>) {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path(), Options::default()).unwrap();
    let names = (0..keyspaces).map(|number| number.to_string());
    let keyspaces = names.map(|name| db.keyspace(&name).unwrap()).collect();
    (folder, db, keyspaces)
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    #[test]
    fn it_moves_through_the_entries_of_all_keyspaces_in_order(
        sets in proptest::collection::vec(proptest::collection::btree_set(1..24_u8, 0..12), 0..4),
        moves in moves(),
        (from, to) in (0..12_u8, 12..25_u8),
    ) {
        let (_folder, db, keyspaces) = open(sets.len());
        let mut entries = Vec::new();
        for (number, (keyspace, keys)) in keyspaces.iter().zip(&sets).enumerate() {
            for key in keys {
                keyspace.insert([*key], [*key, 100 + u8::try_from(number).unwrap()]).unwrap();
                entries.push((*key, number));
            }
        }
        entries.retain(|(key, _)| (from..to).contains(key));
        entries.sort_unstable();
        let list: Vec<&Keyspace> = keyspaces.iter().collect();
        let mut cursor = db.merged_cursor(&list, [from]..[to]).unwrap();
        // Later writes are not seen.
        for keyspace in &keyspaces {
            keyspace.insert([from + 1], "late").unwrap();
            keyspace.remove([from + 2]).unwrap();
        }
        let mut at = None;
        for step in moves {
            at = modelled(&entries, at, step);
            prop_assert_eq!(make(&mut cursor, step).unwrap(), at.is_some(), "{:?}", step);
            prop_assert_eq!(cursor.is_valid(), at.is_some());
            prop_assert_eq!(cursor.keyspace(), at.map(|at| entries[at].1));
            if let Some(at) = at {
                let (key, number) = entries[at];
                let value = [key, 100 + u8::try_from(number).unwrap()];
                prop_assert_eq!(cursor.key(), &[key]);
                prop_assert_eq!(cursor.value().unwrap(), &value);
            } else {
                prop_assert!(cursor.key().is_empty() && cursor.value().unwrap().is_empty());
            }
        }
    }
}

#[test]
fn a_keyspace_of_another_database_is_refused() {
    let (_folder, db, _) = open(0);
    let (_other_folder, _other, keyspaces) = open(1);
    let error = db.merged_cursor::<&[u8]>(&[&keyspaces[0]], ..).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn an_error_repeats() {
    let (_folder, db, keyspaces) = open(2);
    for keyspace in &keyspaces {
        keyspace.insert("key", "value").unwrap();
    }
    db.flush().unwrap();
    let list: Vec<&Keyspace> = keyspaces.iter().collect();
    let mut cursor = db.merged_cursor::<&[u8]>(&list, ..).unwrap();
    // The tables are not open yet.
    db.close().unwrap();
    for step in [Move::First, Move::Next, Move::Prev, Move::Last] {
        let error = make(&mut cursor, step).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed, "{step:?}");
        assert!(!cursor.is_valid());
    }
}

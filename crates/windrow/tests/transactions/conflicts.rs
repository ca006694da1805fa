//! What a commit covers: each kind of read beside each kind of write, while the write is in a memtable, a frozen
//! memtable or a table, or was compacted.

use windrow::{Batch, ErrorKind, Isolation, Transaction};

use super::{Store, is_conflict, text};

/// What happens to a write after it, until the commit of the transaction.
#[derive(Debug, Clone, Copy)]
enum Later {
    Nothing,
    Flush,
    Compaction,
}

const LATER: [Later; 3] = [Later::Nothing, Later::Flush, Later::Compaction];

fn settle(store: &Store, later: Later) {
    match later {
        Later::Nothing => {}
        Later::Flush => store.db.flush().unwrap(),
        Later::Compaction => store.keyspace.compact_range::<&[u8]>(..).unwrap(),
    }
}

/// Keys b, d, f, h.
fn store() -> Store {
    let store = Store::new();
    fill(&store);
    store
}

/// Leaves the keys b, d, f, h and no others.
fn fill(store: &Store) {
    let mut batch = Batch::new();
    for entry in store.keyspace.iter().unwrap() {
        batch.remove(&store.keyspace, entry.unwrap().0).unwrap();
    }
    for (key, value) in [("b", "1"), ("d", "2"), ("f", "3"), ("h", "4")] {
        batch.insert(&store.keyspace, key, value).unwrap();
    }
    store.db.write(&batch).unwrap();
}

/// A read, and the keys whose change it does and does not notice.
type Case = (
    fn(&Store, &Transaction),
    &'static [&'static str],
    &'static [&'static str],
);

const CASES: &[Case] = &[
    (
        |store, it| drop(it.get(&store.keyspace, "d").unwrap()),
        &["d"],
        &["c", "e"],
    ),
    (
        |store, it| drop(it.get(&store.keyspace, "c").unwrap()),
        &["c"],
        &["b", "d"],
    ),
    (
        |store, it| drop(it.multi_get(&store.keyspace, &["a", "f"]).unwrap()),
        &["a", "f"],
        &["b"],
    ),
    (
        |store, it| drop(it.get_for_update(&store.keyspace, "d").unwrap()),
        &["d"],
        &["f"],
    ),
    // A whole scan covers everything.
    (
        |store, it| assert_eq!(it.iter(&store.keyspace).unwrap().count(), 4),
        &["a", "b", "c", "z"],
        &[],
    ),
    // The first entry of a range: the keys before it as well, but none behind it.
    (
        |store, it| assert!(it.range(&store.keyspace, "c"..).unwrap().next().is_some()),
        &["c", "cc", "d"],
        &["b", "e", "f"],
    ),
    (
        |store, it| assert!(it.iter(&store.keyspace).unwrap().next_back().is_some()),
        &["h", "z"],
        &["g", "f"],
    ),
    // The end that was not found.
    (
        |store, it| assert_eq!(it.range(&store.keyspace, "e".."g").unwrap().count(), 1),
        &["e", "f", "ff"],
        &["d", "g"],
    ),
    (
        |store, it| assert_eq!(it.prefix(&store.keyspace, "g").unwrap().count(), 0),
        &["g", "gz"],
        &["f", "h"],
    ),
    (
        |store, it| {
            let back = it.range(&store.keyspace, "e".."g").unwrap().rev();
            assert_eq!(back.count(), 1);
        },
        &["e", "ee", "f", "fz"],
        &["dz", "g"],
    ),
    // Two steps forward and three back.
    (
        |store, it| {
            let mut cursor = it.cursor(&store.keyspace).unwrap();
            assert!(cursor.seek("d").unwrap() && cursor.next().unwrap());
            assert!(cursor.prev().unwrap() && cursor.prev().unwrap());
            assert_eq!(cursor.key(), b"b");
        },
        &["b", "c", "d", "e", "f"],
        &["a", "g", "h"],
    ),
    // Two seeks cover two ranges, and nothing in between.
    (
        |store, it| {
            let mut cursor = it.cursor(&store.keyspace).unwrap();
            assert!(cursor.seek("a").unwrap() && cursor.seek("g").unwrap());
        },
        &["a", "b", "g", "h"],
        &["c", "d", "f", "i"],
    ),
    // A cursor without a move has read nothing.
    (
        |store, it| drop(it.cursor(&store.keyspace).unwrap()),
        &[],
        &["b"],
    ),
];

#[test]
fn a_serializable_commit_notices_changes_of_what_was_read_alone() {
    for later in LATER {
        let store = Store::new();
        for (position, (read, noticed, unnoticed)) in CASES.iter().enumerate() {
            let noticed = noticed.iter().map(|key| (*key, true));
            let unnoticed = unnoticed.iter().map(|key| (*key, false));
            for (step, (key, expected)) in noticed.chain(unnoticed).enumerate() {
                fill(&store);
                let transaction = store.db.transaction();
                read(&store, &transaction);
                transaction.insert(&store.keyspace, "own", "x").unwrap();
                if (step + position).is_multiple_of(2) {
                    store.keyspace.remove(key).unwrap();
                } else {
                    store.keyspace.insert(key, "new").unwrap();
                }
                settle(&store, later);
                let found = is_conflict(transaction.commit());
                assert_eq!(found, expected, "case {position}, key {key}, {later:?}");
                assert_eq!(store.text("own").is_empty(), expected);
            }
        }
    }
}

#[test]
fn a_snapshot_commit_notices_changes_of_written_keys_alone() {
    for later in LATER {
        for (key, expected) in [("b", true), ("c", true), ("d", false), ("e", false)] {
            let store = store();
            let transaction = store.db.transaction_with(Isolation::Snapshot);
            assert_eq!(transaction.iter(&store.keyspace).unwrap().count(), 4);
            transaction.insert(&store.keyspace, "b", "x").unwrap();
            transaction.remove(&store.keyspace, "c").unwrap();
            let mut batch = Batch::new();
            batch.insert(&store.keyspace, "z", "0").unwrap();
            batch.insert(&store.keyspace, key, "new").unwrap();
            store.db.write(&batch).unwrap();
            settle(&store, later);
            assert_eq!(
                is_conflict(transaction.commit()),
                expected,
                "{key} {later:?}"
            );
        }
    }
}

#[test]
fn a_key_that_came_and_went_has_changed() {
    for later in LATER {
        let store = store();
        let transaction = store.db.transaction();
        assert_eq!(transaction.get(&store.keyspace, "new").unwrap(), None);
        transaction.insert(&store.keyspace, "own", "x").unwrap();
        store.keyspace.insert("new", "1").unwrap();
        store.keyspace.remove("new").unwrap();
        settle(&store, later);
        assert!(is_conflict(transaction.commit()), "{later:?}");
    }
}

#[test]
fn the_conflict_names_keyspace_and_key() {
    let store = store();
    let other = store.db.keyspace("other").unwrap();
    let transaction = store.db.transaction();
    transaction.get(&other, "key\n").unwrap();
    transaction.insert(&store.keyspace, "own", "x").unwrap();
    other.insert("key\n", "1").unwrap();
    let error = transaction.commit().unwrap_err();
    assert_eq!(error.conflict(), Some(("other", &b"key\n"[..])));
    let expected =
        "key \"key\\n\" of keyspace \"other\" was changed by another write after it was read";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn own_writes_are_no_reads() {
    let store = store();
    let transaction = store.db.transaction();
    transaction.insert(&store.keyspace, "b", "mine").unwrap();
    transaction.remove(&store.keyspace, "d").unwrap();
    assert_eq!(
        transaction.get(&store.keyspace, "b").unwrap().unwrap(),
        b"mine"
    );
    assert_eq!(transaction.get(&store.keyspace, "d").unwrap(), None);
    store.keyspace.insert("b", "theirs").unwrap();
    store.keyspace.insert("d", "theirs").unwrap();
    // The order is: theirs, mine.
    transaction.commit().unwrap();
    assert_eq!(
        (store.text("b"), store.text("d")),
        ("mine".into(), String::new())
    );
}

#[test]
fn a_transaction_that_writes_nothing_commits() {
    let store = store();
    let transaction = store.db.transaction();
    assert_eq!(transaction.iter(&store.keyspace).unwrap().count(), 4);
    store.keyspace.insert("b", "new").unwrap();
    transaction.commit().unwrap();
}

#[test]
fn a_roll_back_to_a_savepoint_restores_the_writes() {
    let store = store();
    let transaction = store.db.transaction();
    let keyspace = &store.keyspace;
    let seen = || -> Vec<String> {
        let entries = transaction.iter(keyspace).unwrap().map(Result::unwrap);
        entries
            .map(|(key, value)| format!("{}{}", key.escape_ascii(), value.escape_ascii()))
            .collect()
    };
    transaction.insert(keyspace, "a", "0").unwrap();
    let first = transaction.savepoint();
    transaction.insert(keyspace, "a", "1").unwrap();
    transaction.remove(keyspace, "b").unwrap();
    let second = transaction.savepoint();
    transaction.insert(keyspace, "b", "5").unwrap();
    transaction.remove(keyspace, "a").unwrap();
    transaction.insert(keyspace, "a", "2").unwrap();
    assert_eq!(seen(), ["a2", "b5", "d2", "f3", "h4"]);
    transaction.roll_back_to(second).unwrap();
    assert_eq!(seen(), ["a1", "d2", "f3", "h4"]);
    transaction.insert(keyspace, "b", "6").unwrap();
    transaction.roll_back_to(second).unwrap();
    assert_eq!(seen(), ["a1", "d2", "f3", "h4"]);
    transaction.roll_back_to(first).unwrap();
    assert_eq!(seen(), ["a0", "b1", "d2", "f3", "h4"]);
    assert!(transaction.roll_back_to(second).is_err());
    transaction.remove(keyspace, "h").unwrap();
    transaction.commit().unwrap();
    assert_eq!(
        (store.text("a"), store.text("h")),
        ("0".into(), String::new())
    );
}

#[test]
fn a_transaction_that_has_read_too_much_reads_on_and_cannot_write() {
    let store = store();
    let transaction = store.db.transaction();
    let key = |number: usize| {
        let mut key = number.to_be_bytes().to_vec();
        key.resize(60_000, 0);
        key
    };
    let most = windrow::limits::TRANSACTION_READS_BYTES_MAX / 60_000;
    for number in 0..most - 1 {
        transaction.get(&store.keyspace, key(number)).unwrap();
    }
    transaction.insert(&store.keyspace, "own", "x").unwrap();
    for number in 0..=most {
        transaction.get(&store.keyspace, key(number)).unwrap();
    }
    assert_eq!(
        transaction.get(&store.keyspace, "b").unwrap().unwrap(),
        b"1"
    );
    assert_eq!(transaction.iter(&store.keyspace).unwrap().count(), 5);
    let refused = transaction
        .insert(&store.keyspace, "more", "x")
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    let refused = transaction.commit().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    assert_eq!(store.text("own"), "");
}

#[test]
fn a_leaked_cursor_refuses_the_commit() {
    let store = store();
    let transaction = store.db.transaction();
    let mut cursor = transaction.cursor(&store.keyspace).unwrap();
    assert!(cursor.seek_to_first().unwrap());
    #[expect(clippy::mem_forget, reason = "the leak is what is tested")]
    std::mem::forget(cursor);
    transaction.insert(&store.keyspace, "own", "x").unwrap();
    let refused = transaction.commit().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn arguments_are_checked() {
    let (store, other) = (store(), store());
    let transaction = store.db.transaction();
    let foreign = transaction.get(&other.keyspace, "b").unwrap_err();
    assert_eq!(foreign.kind(), ErrorKind::InvalidArgument);
    assert!(transaction.insert(&other.keyspace, "b", "").is_err());
    assert!(transaction.cursor(&other.keyspace).is_err());
    assert!(transaction.insert(&store.keyspace, "", "").is_err());
    assert!(transaction.get(&store.keyspace, "").is_err());
    // A dropped keyspace cannot be covered.
    transaction.get(&store.keyspace, "b").unwrap();
    let kept = store.db.keyspace("kept").unwrap();
    transaction.insert(&kept, "own", "x").unwrap();
    store.db.drop_keyspace("data").unwrap();
    let refused = transaction.commit().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotFound);
}

#[test]
fn a_savepoint_of_another_transaction_is_refused() {
    let store = Store::with(&[("a", "1")]);
    let other_store = Store::new();
    let transaction = store.db.transaction();
    transaction.insert(&store.keyspace, "a", "2").unwrap();
    let own = transaction.savepoint();
    transaction.insert(&store.keyspace, "a", "3").unwrap();
    for other in [store.db.transaction(), other_store.db.transaction()] {
        for _ in 0..3 {
            let refused = transaction.roll_back_to(other.savepoint()).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
            assert!(
                refused.to_string().contains("another transaction"),
                "{refused}"
            );
            assert!(other.roll_back_to(own).is_err());
        }
    }
    let found = transaction.get(&store.keyspace, "a").unwrap();
    assert_eq!(text(found), "3");
    transaction.roll_back_to(own).unwrap();
    transaction.commit().unwrap();
    assert_eq!(store.text("a"), "2");
}

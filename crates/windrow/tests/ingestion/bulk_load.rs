//! What a bulk load does to the keyspace, to readers and to transactions.

use std::cell::Cell;
use std::fs;
use std::path::Path;

use windrow::{Db, ErrorKind, Options};

use crate::{Store, numbered, small, text};

#[test]
fn loaded_entries_are_there_and_durable() {
    let store = Store::new();
    assert_eq!(
        store.keyspace.bulk_load(numbered(0, 5000, 40)).unwrap(),
        5000
    );
    let check = |store: &Store| {
        assert_eq!(store.keyspace.iter().unwrap().count(), 5000);
        for (key, value) in numbered(0, 5000, 40).step_by(97) {
            assert_eq!(store.keyspace.get(&key).unwrap(), Some(value), "{key}");
        }
        assert_eq!(store.keyspace.get("key").unwrap(), None);
        let backward = store.keyspace.iter().unwrap().rev();
        let backward = backward.map(|entry| entry.unwrap().0);
        assert_eq!(backward.last().unwrap(), b"key0000000");
        store.check_sound();
    };
    check(&store);
    let store = store.reopened();
    check(&store);
    store.keyspace.compact_range::<&[u8]>(..).unwrap();
    check(&store);
}

#[test]
fn a_load_replaces_older_values_and_is_replaced_by_newer_ones() {
    let store = Store::new();
    store.keyspace.insert("a", "old").unwrap();
    store.keyspace.insert("b", "old").unwrap();
    store.db.flush().unwrap();
    store.keyspace.insert("c", "old, in the memtable").unwrap();
    store.keyspace.remove("d").unwrap();
    let snapshot = store.db.snapshot();
    let entries = ["a", "c", "d", "e"].map(|key| (key, format!("loaded {key}")));
    assert_eq!(store.keyspace.bulk_load(entries).unwrap(), 4);
    let texts = |store: &Store| ["a", "b", "c", "d", "e"].map(|key| store.text(key));
    let loaded = ["loaded a", "old", "loaded c", "loaded d", "loaded e"];
    assert_eq!(texts(&store), loaded);
    let before = store.keyspace.at(&snapshot).unwrap();
    let before = ["a", "b", "c", "d", "e"].map(|key| text(before.get(key).unwrap()));
    assert_eq!(before, ["old", "old", "old, in the memtable", "", ""]);

    store.keyspace.insert("a", "new").unwrap();
    store.keyspace.remove("c").unwrap();
    let newest = ["new", "old", "", "loaded d", "loaded e"];
    assert_eq!(texts(&store), newest);
    let store = store.reopened();
    assert_eq!(texts(&store), newest);
    store.keyspace.compact_range::<&[u8]>(..).unwrap();
    assert_eq!(texts(&store), newest);
    store.check_sound();
}

#[test]
fn entries_become_visible_together_at_the_end() {
    let store = Store::new();
    let seen = Cell::new(0);
    let entries = numbered(0, 3000, 100).inspect(|_| {
        assert_eq!(store.keyspace.iter().unwrap().count(), 0);
        seen.set(seen.get() + 1);
    });
    store.keyspace.bulk_load(entries.step_by(1)).unwrap();
    assert_eq!(seen.get(), 3000);
    assert_eq!(store.keyspace.iter().unwrap().count(), 3000);
}

#[test]
fn writes_during_a_load_come_before_it() {
    let store = Store::new();
    let entries = numbered(0, 100, 20).inspect(|(key, _)| {
        store.keyspace.insert(key, "written meanwhile").unwrap();
        store.keyspace.insert("other", "written meanwhile").unwrap();
    });
    store.keyspace.bulk_load(entries).unwrap();
    assert!(store.text("key0000042").starts_with("value 42"));
    assert_eq!(store.text("other"), "written meanwhile");
    let store = store.reopened();
    assert!(store.text("key0000042").starts_with("value 42"));
    store.check_sound();
}

#[test]
fn keys_out_of_order_are_refused_by_name_and_leave_nothing() {
    for (second, reason) in [
        ("kez\n", "ascending"),
        ("key", "ascending"),
        ("", "at least one byte"),
    ] {
        let store = Store::new();
        store.keyspace.bulk_load([("a", "1")]).unwrap();
        let before = store.data_files();
        let first = numbered(0, 2000, 500);
        let wrong = [
            ("kez\n".to_owned(), Vec::new()),
            (second.to_owned(), Vec::new()),
        ];
        let error = store.keyspace.bulk_load(first.chain(wrong)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        let message = error.to_string();
        assert!(message.contains(reason), "{message}");
        if !second.is_empty() {
            let named = format!("\"{}\"", second.escape_default());
            assert!(message.contains(&named), "{message}");
        }
        store.db.wait_idle().unwrap();
        assert_eq!(store.data_files(), before);
        assert_eq!(store.keyspace.iter().unwrap().count(), 1);
        assert_eq!(store.keyspace.bulk_load(numbered(0, 10, 20)).unwrap(), 10);
    }
}

#[test]
fn a_source_that_fails_ends_the_load() {
    #[derive(Debug)]
    enum Failure {
        Source,
        Store,
    }
    impl From<windrow::Error> for Failure {
        fn from(_: windrow::Error) -> Self {
            Self::Store
        }
    }
    let store = Store::new();
    let entries = numbered(0, 1000, 100).map(Ok);
    let outcome = store
        .keyspace
        .try_bulk_load(entries.chain([Err(Failure::Source)]));
    assert!(matches!(outcome, Err(Failure::Source)));
    let twice = [Ok(("a", "")), Ok(("a", ""))];
    let outcome = store.keyspace.try_bulk_load(twice);
    assert!(matches!(outcome, Err(Failure::Store)));
    assert_eq!(store.keyspace.iter().unwrap().count(), 0);
    assert_eq!(store.data_files(), Vec::<String>::new());
}

/// The wait would be one for the load itself.
#[test]
fn a_source_that_waits_for_all_jobs_gets_an_error() {
    let store = Store::new();
    let db = store.db.clone();
    let entries = numbered(0, 10, 20).inspect(|_| {
        let error = db.wait_idle().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    });
    assert_eq!(store.keyspace.bulk_load(entries).unwrap(), 10);
    store.db.wait_idle().unwrap();
}

#[test]
fn a_load_of_nothing_changes_nothing() {
    let store = Store::new();
    let sequence = store.db.stats().sequence;
    let nothing: [(&str, &str); 0] = [];
    assert_eq!(store.keyspace.bulk_load(nothing).unwrap(), 0);
    assert_eq!(store.db.stats().sequence, sequence);
    assert_eq!(store.data_files(), Vec::<String>::new());
}

#[test]
fn tables_go_to_the_deepest_level_with_space_for_them() {
    let store = Store::new();
    // The tree gets the levels that it needs, so nothing has to move.
    store.keyspace.bulk_load(numbered(0, 5000, 100)).unwrap();
    let levels = store.files_by_level();
    let (last, others) = levels.split_last().unwrap();
    assert!(
        others.iter().all(|files| *files == 0) && *last > 20,
        "{levels:?}"
    );
    store.db.wait_idle().unwrap();
    assert_eq!(store.files_by_level(), levels);
    assert_eq!(store.db.stats().compactions, 0);
    // A neighbour goes beside it.
    store.keyspace.bulk_load(numbered(5000, 100, 100)).unwrap();
    assert!(store.files_by_level().last() > Some(last));
    // What overlaps goes to the level above.
    store.keyspace.bulk_load(numbered(2000, 100, 100)).unwrap();
    let above = store.files_by_level()[levels.len() - 2];
    assert_eq!(above, 1, "{:?}", store.files_by_level());
    // What overlaps a table of level 0 goes above it.
    store.keyspace.insert("key0003000", "new").unwrap();
    store.db.flush().unwrap();
    store.keyspace.bulk_load(numbered(2990, 20, 100)).unwrap();
    assert!(store.text("key0003000").starts_with("value 3000"));
    store.db.wait_idle().unwrap();
    assert_eq!(store.keyspace.iter().unwrap().count(), 5100);
    store.check_sound();
}

#[test]
fn entries_are_written_once() {
    const COUNT: usize = 100_000;
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path(), Options::default()).unwrap();
    let keyspace = db.keyspace("data").unwrap();
    let given = || numbered(0, COUNT, 100);
    assert_eq!(keyspace.bulk_load(given()).unwrap(), COUNT as u64);
    db.wait_idle().unwrap();
    let stats = db.stats();
    assert_eq!((stats.bulk_loads, stats.user_writes), (1, COUNT as u64));
    let given = given().map(|(key, value)| key.len() + value.len());
    let given = given.sum::<usize>() as u64;
    assert_eq!(stats.user_bytes, given);
    // By the count of the engine, and by what there is.
    for written in [stats.written_bytes(), file_bytes(folder.path())] {
        let amplification = written as f64 / given as f64;
        assert!((0.9..=1.05).contains(&amplification), "{amplification}");
    }
}

/// The bytes of all files of a database, without the space that it keeps back.
fn file_bytes(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).unwrap().map(Result::unwrap);
    files
        .filter(|file| file.file_name() != "RESERVE")
        .map(|file| file.metadata().unwrap().len())
        .sum()
}

#[test]
fn values_of_all_sizes_are_loaded() {
    let store = Store::new();
    store.keyspace.bulk_load(numbered(0, 100, 300)).unwrap();
    let sizes = [10, 100, 500, 2000, 40_000, 3_000_000];
    for (round, letter) in (b'a'..=b'c').enumerate() {
        // The second round overlaps the first, so its medium values go apart.
        let entries = (0..60).map(|number| {
            let size = sizes[number % sizes.len()] + round;
            (format!("key{number:07}"), vec![letter; size])
        });
        store.keyspace.bulk_load(entries).unwrap();
        for number in 0..60 {
            let value = store
                .keyspace
                .get(format!("key{number:07}"))
                .unwrap()
                .unwrap();
            assert_eq!(value.len(), sizes[number % sizes.len()] + round);
            assert!(value.iter().all(|byte| *byte == letter));
        }
        store.check_sound();
    }
    let store = store.reopened();
    store.keyspace.compact_range::<&[u8]>(..).unwrap();
    assert_eq!(store.keyspace.iter().unwrap().count(), 100);
    store.check_sound();
}

#[test]
fn operands_after_a_load_fold_with_loaded_values() {
    let folder = tempfile::tempdir().unwrap();
    let append = std::sync::Arc::new(windrow::operators::Append::new(*b","));
    let options = small().with_merge_operator("data", append);
    let db = Db::open(folder.path(), options).unwrap();
    let keyspace = db.keyspace("data").unwrap();
    keyspace.merge("a", "lost").unwrap();
    keyspace.bulk_load([("a", "1"), ("b", "1")]).unwrap();
    keyspace.merge("a", "2").unwrap();
    for _ in 0..2 {
        assert_eq!(text(keyspace.get("a").unwrap()), "1,2");
        keyspace.compact_range::<&[u8]>(..).unwrap();
    }
}

#[test]
fn a_load_conflicts_with_transactions_that_have_read_its_keys() {
    let store = Store::new();
    store.keyspace.insert("b", "old").unwrap();
    let mut by_key = store.db.transaction();
    assert_eq!(text(by_key.get(&store.keyspace, "b").unwrap()), "old");
    let mut by_range = store.db.transaction();
    assert_eq!(
        by_range.range(&store.keyspace, "a".."d").unwrap().count(),
        1
    );
    let mut elsewhere = store.db.transaction();
    assert_eq!(by_key.get(&store.keyspace, "x").unwrap(), None);
    assert_eq!(elsewhere.get(&store.keyspace, "x").unwrap(), None);
    store
        .keyspace
        .bulk_load([("b", "loaded"), ("c", "loaded")])
        .unwrap();
    for transaction in [&mut by_key, &mut by_range, &mut elsewhere] {
        transaction.insert(&store.keyspace, "y", "").unwrap();
    }
    let kind = |outcome: windrow::Result<()>| outcome.map_err(|error| error.kind());
    assert_eq!(kind(by_key.commit()), Err(ErrorKind::Conflict));
    assert_eq!(kind(by_range.commit()), Err(ErrorKind::Conflict));
    assert_eq!(kind(elsewhere.commit()), Ok(()));
}

#[test]
fn a_load_within_an_update_is_noticed() {
    let store = Store::new();
    store.keyspace.insert("a", "old").unwrap();
    let mut seen = Vec::new();
    let outcome = store.keyspace.update("a", |old| {
        seen.push(text(old.map(<[u8]>::to_vec)));
        if seen.len() == 1 {
            store.keyspace.bulk_load([("a", "loaded")]).unwrap();
        }
        Some(b"updated".to_vec())
    });
    assert_eq!(text(outcome.unwrap()), "updated");
    assert_eq!(seen, ["old", "loaded"]);
}

#[test]
fn loads_into_deleted_keys_are_seen_by_seeks() {
    let store = Store::new();
    store.keyspace.bulk_load(numbered(0, 400, 20)).unwrap();
    for (key, _) in numbered(0, 300, 20) {
        store.keyspace.remove(key).unwrap();
    }
    let first = || {
        let first = store.keyspace.iter().unwrap().next();
        String::from_utf8(first.unwrap().unwrap().0).unwrap()
    };
    // The second seek skips what the first one has found empty, and so does each later one.
    for _ in 0..4 {
        assert_eq!(first(), "key0000300");
    }
    store.keyspace.bulk_load(numbered(100, 3, 20)).unwrap();
    assert_eq!(first(), "key0000100");
    assert_eq!(store.keyspace.iter().unwrap().count(), 103);
}

#[test]
fn a_checkpoint_has_loaded_tables() {
    let store = Store::new();
    store.keyspace.insert("key0000001x", "between").unwrap();
    store.keyspace.bulk_load(numbered(0, 1000, 400)).unwrap();
    let target = tempfile::tempdir().unwrap();
    let target = target.path().join("copy");
    store.db.checkpoint(&target).unwrap();
    let copy = Db::open(&target, small()).unwrap();
    let keyspace = copy.keyspace("data").unwrap();
    assert_eq!(keyspace.iter().unwrap().count(), 1001);
    assert!(copy.verify().unwrap().is_sound());
    keyspace.compact_range::<&[u8]>(..).unwrap();
    assert_eq!(keyspace.iter().unwrap().count(), 1001);
}

#[test]
fn a_dropped_keyspace_or_a_reader_takes_no_load() {
    let store = Store::new();
    let kind = |outcome: windrow::Result<u64>| outcome.unwrap_err().kind();
    let entries = numbered(0, 2000, 100).inspect(|(key, _)| {
        if key == "key0001000" {
            store.db.drop_keyspace("data").unwrap();
        }
    });
    assert_eq!(kind(store.keyspace.bulk_load(entries)), ErrorKind::NotFound);
    assert_eq!(
        kind(store.keyspace.bulk_load([("a", "")])),
        ErrorKind::NotFound
    );
    assert_eq!(store.data_files(), Vec::<String>::new());
    store.db.keyspace("data").unwrap();
    let Store { db, folder, .. } = store;
    db.close().unwrap();
    let db = Db::open_read_only(folder.path(), small()).unwrap();
    let keyspace = db.keyspace("data").unwrap();
    assert_eq!(kind(keyspace.bulk_load([("a", "")])), ErrorKind::ReadOnly);
}

#[test]
fn a_range_delete_before_a_load_does_not_hide_it() {
    let store = Store::new();
    let load = || {
        store
            .keyspace
            .bulk_load([("b", "loaded"), ("d", "loaded")])
            .unwrap()
    };
    let texts = || ["a", "b", "c", "d"].map(|key| store.text(key));
    for round in 0..3 {
        for key in ["a", "b", "c"] {
            store.keyspace.insert(key, "old").unwrap();
        }
        // No end, an end behind the keys, and a range that ends before they do.
        match round {
            0 => store.keyspace.delete_range::<&str>(..).unwrap(),
            1 => store.keyspace.delete_range("a".."z").unwrap(),
            _ => store.keyspace.delete_range("a".."c\0").unwrap(),
        }
        load();
        assert_eq!(texts(), ["", "loaded", "", "loaded"], "round {round}");
        store.keyspace.compact_range::<&[u8]>(..).unwrap();
        assert_eq!(texts(), ["", "loaded", "", "loaded"], "round {round}");
        store.check_sound();
        store.keyspace.delete_range("b".."e").unwrap();
        assert_eq!(texts(), ["", "", "", ""], "round {round}");
        store.db.flush().unwrap();
        load();
        assert_eq!(texts(), ["", "loaded", "", "loaded"], "round {round}");
        store.check_sound();
    }
}

#[test]
fn a_prepared_transaction_forbids_loads_of_its_keys() {
    let store = Store::new();
    let transaction = store.db.transaction();
    transaction
        .insert(&store.keyspace, "b", "prepared")
        .unwrap();
    let prepared = transaction.prepare("one").unwrap();
    let load = || store.keyspace.bulk_load([("a", "loaded"), ("b", "loaded")]);
    assert_eq!(load().unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(store.data_files(), Vec::<String>::new());
    store.keyspace.bulk_load([("c", "loaded")]).unwrap();
    prepared.commit().unwrap();
    assert_eq!(store.text("b"), "prepared");
    load().unwrap();
    assert_eq!(store.text("b"), "loaded");
}

#[test]
fn a_wide_flush_without_keys_in_a_table_does_not_hold_it_up() {
    let store = Store::new();
    // While the load runs, others write keys at its ends and beside it.
    let entries = numbered(0, 5000, 100).inspect(|(key, _)| {
        if ["key0000001", "key0004998"].contains(&key.as_str()) {
            for key in ["aaa", key, "zebra"] {
                store.keyspace.insert(key, "written meanwhile").unwrap();
            }
            store.db.flush().unwrap();
        }
    });
    store.keyspace.bulk_load(entries).unwrap();
    // The first and the last table are above the keys that they hide; the others went down.
    let levels = store.files_by_level();
    assert!(levels[0] <= 4, "{levels:?}");
    assert!(levels.last() > Some(&20), "{levels:?}");
    assert!(store.text("key0000001").starts_with("value 1"));
    assert!(store.text("key0004998").starts_with("value 4998"));
    assert_eq!(store.text("zebra"), "written meanwhile");
    store.db.wait_idle().unwrap();
    assert_eq!(store.keyspace.iter().unwrap().count(), 5002);
    // A range delete in the wide table counts as a key.
    store
        .keyspace
        .delete_range("key0000100".."key0000200")
        .unwrap();
    store.db.flush().unwrap();
    store.keyspace.bulk_load(numbered(150, 10, 100)).unwrap();
    assert!(store.text("key0000155").starts_with("value 155"));
    assert_eq!(store.text("key0000145"), "");
    let store = store.reopened();
    assert!(store.text("key0000155").starts_with("value 155"));
    store.db.wait_idle().unwrap();
    assert_eq!(store.keyspace.iter().unwrap().count(), 5002 - 90);
    store.check_sound();
}

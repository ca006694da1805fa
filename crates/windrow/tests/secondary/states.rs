//! A state is a prefix of the commit order, and never changes.

use windrow::{Batch, Compression, Db, Durability, ErrorKind, KeyspaceOptions, Options};

use crate::{check_equal, contents, leases, open, secondary};

#[test]
fn a_catch_up_has_every_commit_before_it_and_older_states_do_not_change() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    let (plain, list) = (db.keyspace("plain").unwrap(), db.keyspace("list").unwrap());
    let secondary = secondary(folder.path());
    let mut states = Vec::new();
    for round in 0..40_u32 {
        let mut batch = Batch::new();
        for key in 0..20_u32 {
            let length = if key == round % 20 { 3000 } else { 200 };
            let key = (key * 7 + round).to_be_bytes();
            batch.insert(&plain, key, vec![b'v'; length]).unwrap();
            batch.merge(&list, [0], round.to_string()).unwrap();
        }
        db.write(&batch).unwrap();
        match round % 10 {
            2 => plain
                .delete_range((round * 3).to_be_bytes()..(round * 4).to_be_bytes())
                .unwrap(),
            3 => db.flush().unwrap(),
            5 => plain.remove(round.to_be_bytes()).unwrap(),
            7 => plain.compact_range::<&[u8]>(..).unwrap(),
            _ => {}
        }
        let state = secondary.catch_up().unwrap();
        check_equal(&state, &db, &format!("round {round}"));
        states.push((contents(&db), state));
    }
    for (round, (contents_then, state)) in states.iter().enumerate() {
        assert_eq!(
            &contents(state),
            contents_then,
            "the state of round {round}"
        );
    }
    let newest = states.pop().unwrap().1;
    check_equal(&secondary.db(), &newest, "the newest");
}

#[test]
fn keyspaces_come_go_and_change_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    let secondary = secondary(folder.path());
    let check = |what: &str| {
        let state = secondary.catch_up().unwrap();
        check_equal(&state, &db, what);
        state
    };
    check("nothing");
    let one = db.keyspace("one").unwrap();
    one.insert("a", "1").unwrap();
    let before = check("one keyspace");
    one.rename("first").unwrap();
    let two = db.keyspace("two").unwrap();
    two.insert("b", vec![b'2'; 5000]).unwrap();
    check("a new name and another keyspace");
    db.swap_keyspaces("first", "two").unwrap();
    check("swapped");
    db.drop_keyspace("two").unwrap();
    check("dropped");
    db.keyspace("two").unwrap().insert("c", "3").unwrap();
    check("made anew");
    let names = before.keyspace_names();
    assert_eq!(names, ["one"]);
    assert_eq!(
        before.keyspace("one").unwrap().get("a").unwrap().unwrap(),
        b"1"
    );
}

#[test]
fn bulk_loads_are_there_at_once_and_writes_after_them_too() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    let keyspace = db.keyspace("k").unwrap();
    let secondary = secondary(folder.path());
    for round in 0..4_u8 {
        keyspace.insert([round, 0], "before").unwrap();
        let entries = (0..2000_u16).map(|key| {
            let key = [&[round, 1][..], &key.to_be_bytes()].concat();
            (key, vec![round; 100])
        });
        keyspace.bulk_load(entries).unwrap();
        check_equal(&secondary.catch_up().unwrap(), &db, "now");
        keyspace.insert([round, 2], "after").unwrap();
        check_equal(&secondary.catch_up().unwrap(), &db, "now");
    }
}

#[test]
fn the_writer_may_end_and_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let secondary = {
        let db = open(folder.path());
        db.keyspace("k").unwrap().insert("0", "").unwrap();
        secondary(folder.path())
    };
    let held = secondary.db();
    for round in 1..8_u8 {
        let db = open(folder.path());
        let keyspace = db.keyspace("k").unwrap();
        for key in 0..100_u8 {
            keyspace.insert([round, key], vec![round; 900]).unwrap();
        }
        if round % 2 == 0 {
            keyspace.compact_range::<&[u8]>(..).unwrap();
        }
        let during = secondary.catch_up().unwrap();
        check_equal(&during, &db, &format!("in round {round}"));
        let expected = contents(&db);
        db.close().unwrap();
        let after = contents(&secondary.catch_up().unwrap());
        assert!(after == expected, "after the close in round {round}");
    }
    assert_eq!(contents(&held)["k"].len(), 1);
}

#[test]
fn a_state_refuses_writes_and_has_the_calls_of_a_reader() {
    let folder = tempfile::tempdir().unwrap();
    let writer = open(folder.path());
    let keyspace = writer.keyspace("k").unwrap();
    keyspace.insert_with("a", "1", Durability::Sync).unwrap();
    let state = secondary(folder.path()).db();
    let k = state.keyspace("k").unwrap();
    assert_eq!(k.insert("b", "2").unwrap_err().kind(), ErrorKind::ReadOnly);
    assert_eq!(state.flush().unwrap_err().kind(), ErrorKind::ReadOnly);
    let missing = state.keyspace("missing").unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    let snapshot = state.snapshot();
    keyspace.insert("a", "2").unwrap();
    assert_eq!(k.at(&snapshot).unwrap().get("a").unwrap().unwrap(), b"1");
    assert_eq!(state.stats().keyspaces.len(), 1);
    state.verify().unwrap();
    state.close().unwrap();
    assert_eq!(k.get("a").unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn a_folder_without_a_database_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    for path in [folder.path().to_owned(), folder.path().join("missing")] {
        let error = Db::open_secondary(&path, Options::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        assert!(leases(&path).is_empty());
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn recorded_options_count() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    let mut options = KeyspaceOptions::default();
    options.compression = Compression::Lz4;
    let keyspace = db.keyspace_with("k", options).unwrap();
    keyspace.insert("a", vec![0; 10_000]).unwrap();
    db.flush().unwrap();
    let state = secondary(folder.path()).db();
    let k = state.keyspace("k").unwrap();
    assert_eq!(k.options().compression, Compression::Lz4);
    assert_eq!(k.get("a").unwrap().unwrap().len(), 10_000);
}

//! The changes, applied to an empty database, give the same database.

use std::collections::BTreeMap;

use windrow::{Batch, Change, Db, Entry, Keyspace};

use crate::common::Random;
use crate::{batch_for, open, rest};

/// Everything in the keyspaces of `db`.
fn contents(db: &Db) -> BTreeMap<String, Vec<Entry>> {
    let keyspaces = db.keyspace_names().into_iter();
    let entries = |name: String| {
        let keyspace = db.keyspace(&name).unwrap();
        let entries = keyspace.iter().unwrap().map(Result::unwrap).collect();
        (name, entries)
    };
    keyspaces.map(entries).collect()
}

fn apply(db: &Db, change: &Change) {
    match change {
        Change::Batch(batch) => db.write(&batch_for(db, batch)).unwrap(),
        Change::KeyspaceCreated { name, .. } => drop(db.keyspace(name).unwrap()),
        Change::KeyspaceDropped { name, .. } => db.drop_keyspace(name).unwrap(),
        Change::KeyspaceRenamed { from, to, .. } => {
            if db.existing_keyspace(to).unwrap().is_some() {
                db.swap_keyspaces(from, to).unwrap();
            } else {
                db.keyspace(from).unwrap().rename(to).unwrap();
            }
        }
        other => unreachable!("{other:?}"),
    }
}

/// Adds some writes to keyspaces with random names.
fn random_batch(db: &Db, random: &mut Random) -> Batch {
    let mut batch = Batch::new();
    for _ in 0..=random.below(5) {
        let names = db.keyspace_names();
        let index = usize::try_from(random.below(names.len() as u64)).unwrap();
        let keyspace: Keyspace = db.keyspace(&names[index]).unwrap();
        let key = [u8::try_from(random.below(40)).unwrap()];
        match random.below(8) {
            0 => batch.remove(&keyspace, key),
            1 => batch.delete_range(&keyspace, key..[key[0] + 5]),
            2 if names[index] == "list" => batch.merge(&keyspace, key, "x"),
            3 => batch.insert(&keyspace, key, vec![key[0]; 2000]),
            _ => batch.insert(&keyspace, key, vec![key[0]; 50]),
        }
        .unwrap();
    }
    batch
}

#[test]
fn an_empty_database_becomes_equal_by_the_changes() {
    for seed in 0..6 {
        let folder = tempfile::tempdir().unwrap();
        let (source, target) = (folder.path().join("source"), folder.path().join("target"));
        let mut random = Random(seed);
        let mut db = open(&source);
        db.consumer("copy").unwrap();
        db.keyspace("list").unwrap();
        let copy = open(&target);
        for step in 0..300 {
            let name = |random: &mut Random| format!("k{}", random.below(3));
            match random.below(40) {
                0 => db.flush().unwrap(),
                1 => {
                    db.close().unwrap();
                    db = open(&source);
                }
                2 | 3 => drop(db.keyspace(&name(&mut random)).unwrap()),
                4 => drop(db.drop_keyspace(&name(&mut random))),
                5 => {
                    let names = (name(&mut random), name(&mut random));
                    drop(db.swap_keyspaces(&names.0, &names.1));
                }
                6 => {
                    if let Some(keyspace) = db.existing_keyspace(&name(&mut random)).unwrap() {
                        drop(keyspace.rename(&name(&mut random)));
                    }
                }
                7 => {
                    for name in db.keyspace_names() {
                        let keyspace = db.keyspace(&name).unwrap();
                        keyspace.compact_range::<&[u8]>(..).unwrap();
                    }
                }
                8 => {
                    let consumer = db.consumer("copy").unwrap();
                    let mut changes = consumer.changes().unwrap();
                    for _ in 0..random.below(100) {
                        if let Some(change) = changes.next(std::time::Duration::ZERO).unwrap() {
                            apply(&copy, &change);
                            consumer.acknowledge(change.sequence()).unwrap();
                        }
                    }
                }
                _ => db.write(&random_batch(&db, &mut random)).unwrap(),
            }
            assert!(
                db.consumers().iter().all(|it| !it.is_behind),
                "{seed} {step}"
            );
        }
        let consumer = db.consumer("copy").unwrap();
        for change in rest(&mut consumer.changes().unwrap()) {
            apply(&copy, &change);
        }
        assert_eq!(contents(&copy), contents(&db), "seed {seed}");
        assert!(db.verify().unwrap().is_sound());
    }
}

//! Secondaries beside threads that write: each state has whole batches, and none falls back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use windrow::{Batch, Db, Durability};

use crate::{open, secondary};

/// Each batch sets the same number in two keyspaces, and appends it to a list.
fn write(db: &Db, writer: u8, rounds: u32) {
    let (left, right) = (db.keyspace("left").unwrap(), db.keyspace("right").unwrap());
    let list = db.keyspace("list").unwrap();
    for round in 1..=rounds {
        let mut batch = Batch::new();
        let length = if round % 50 == 0 { 2500 } else { 60 };
        let value = [&round.to_be_bytes()[..], &vec![writer; length]].concat();
        batch.insert(&left, [writer], &value).unwrap();
        batch
            .insert(
                &left,
                [&[writer][..], &round.to_be_bytes()].concat(),
                &value,
            )
            .unwrap();
        batch.insert(&right, [writer], &value).unwrap();
        batch.merge(&list, [writer], "x").unwrap();
        let durability = if round % 97 == 0 {
            Durability::Sync
        } else {
            Durability::Buffered
        };
        db.write_with(&batch, durability).unwrap();
    }
}

/// The number of `writer` in the state `db`, after a check that all of it agrees.
fn number(db: &Db, writer: u8) -> u32 {
    let read = |keyspace: &str| {
        let value = db.keyspace(keyspace).unwrap().get([writer]).unwrap();
        value.map_or(0, |value| u32::from_be_bytes(*value.first_chunk().unwrap()))
    };
    let number = read("left");
    assert_eq!(read("right"), number);
    let list = db.keyspace("list").unwrap().get([writer]).unwrap();
    let appended = list.map_or(0, |list| list.len().div_ceil(2));
    assert_eq!(appended, number as usize);
    let left = db.keyspace("left").unwrap();
    let own = left.prefix([writer]).unwrap().map(Result::unwrap).count();
    assert_eq!(own, number as usize + usize::from(number > 0));
    number
}

#[test]
fn states_have_whole_batches_and_do_not_fall_back() {
    const WRITERS: u8 = 2;
    const ROUNDS: u32 = 1500;
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    for name in ["left", "right", "list"] {
        db.keyspace(name).unwrap();
    }
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let secondary = secondary(folder.path());
                    let mut numbers = [0; WRITERS as usize];
                    loop {
                        let is_last = is_over.load(Ordering::Acquire);
                        let state = secondary.catch_up().unwrap();
                        for writer in 0..WRITERS {
                            let number = number(&state, writer);
                            assert!(number >= numbers[usize::from(writer)]);
                            numbers[usize::from(writer)] = number;
                        }
                        if is_last {
                            return numbers;
                        }
                    }
                })
            })
            .collect();
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn({
                    let db = &db;
                    move || write(db, writer, ROUNDS)
                })
            })
            .collect();
        for _ in 0..6 {
            db.flush().unwrap();
            db.keyspace("left")
                .unwrap()
                .compact_range::<&[u8]>(..)
                .unwrap();
        }
        for writer in writers {
            writer.join().unwrap();
        }
        is_over.store(true, Ordering::Release);
        for reader in readers {
            assert_eq!(reader.join().unwrap(), [ROUNDS; WRITERS as usize]);
        }
    });
}

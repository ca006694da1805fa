//! The change feed and its consumers: what was given out is never lost, what is given out is never wrong, and a place that
//! was acknowledged stays.
//!
//! [`crashes`] lets the power fail and operations fail, [`reads`] fails reads and damages logs, [`bounds`] lets consumers fall
//! behind. [`tasks`] polls.

mod bounds;
mod crashes;
mod reads;
mod tasks;

use std::collections::BTreeMap;
use std::time::Duration;

use windrow::{Change, Changes, Consumer, Db, Options};
use windrow_sim::{SimDisk, SteppedRuntime};

use crate::common::{Entries, FOLDER, entries, on, small};

type Contents = BTreeMap<String, Entries>;

fn options(disk: &SimDisk) -> Options {
    let mut options = on(small(), disk, &SteppedRuntime::new(3));
    options.max_wal_bytes = 64 << 10;
    options
}

fn open(disk: &SimDisk) -> Db {
    Db::open(FOLDER, options(disk)).unwrap()
}

/// A database with some entries, and a consumer behind them.
fn begun(disk: &SimDisk) -> (Db, Consumer) {
    let db = open(disk);
    let keyspace = db.keyspace("k").unwrap();
    keyspace.insert("before", "the consumer").unwrap();
    let consumer = db.consumer("c").unwrap();
    (db, consumer)
}

fn contents(db: &Db) -> Contents {
    let names = db.keyspace_names().into_iter();
    names
        .map(|name| (name.clone(), entries(&db.keyspace(&name).unwrap())))
        .collect()
}

fn rest(changes: &mut Changes) -> Vec<Change> {
    std::iter::from_fn(|| changes.next(Duration::ZERO).unwrap()).collect()
}

/// A database whose consumer holds several logs, and the changes in them.
fn held(disk: &SimDisk) -> (Db, Consumer, Vec<Change>) {
    let (db, consumer) = begun(disk);
    let keyspace = db.keyspace("k").unwrap();
    for round in 0..240_u32 {
        let length = if round % 18 == 1 { 1500 } else { 220 };
        keyspace
            .insert(round.to_be_bytes(), vec![9; length])
            .unwrap();
        if round % 30 == 29 {
            db.flush().unwrap();
        }
    }
    let all = rest(&mut consumer.changes().unwrap());
    assert_eq!(all.len(), 240);
    (db, consumer, all)
}

//! A feed follows the live end, and waits for it.

use std::thread;
use std::time::Duration;

use windrow::{Durability, ErrorKind};

use crate::{batch, open};

/// Longer than any test runs. A feed looks again each second all the same, so the schedules show that no wake-up is lost.
const LONG: Duration = Duration::from_secs(600);

#[test]
fn followers_see_what_concurrent_writers_commit() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    let keyspace = db.keyspace("k").unwrap();
    let consumer = db.consumer("c").unwrap();
    thread::scope(|scope| {
        for writer in 0..3_u8 {
            let keyspace = &keyspace;
            scope.spawn(move || {
                for round in 0..1000_u32 {
                    let key = [&[writer][..], &round.to_be_bytes()].concat();
                    let durability = match round % 50 {
                        0 => Durability::Sync,
                        _ => Durability::Buffered,
                    };
                    let value = vec![writer; if round % 100 == 0 { 3000 } else { 80 }];
                    keyspace.insert_with(key, value, durability).unwrap();
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..5 {
                thread::yield_now();
                db.flush().unwrap();
            }
        });
        for acknowledges in [true, false] {
            let (db, consumer) = (&db, &consumer);
            scope.spawn(move || {
                let mut changes = if acknowledges {
                    consumer.changes().unwrap()
                } else {
                    db.changes(consumer.acknowledged().unwrap() + 1).unwrap()
                };
                let (mut next, mut seen) = ([0_u32; 3], 0);
                while seen < 3000 {
                    let change = match changes.next(LONG) {
                        // Nobody holds what the other one has acknowledged.
                        Err(error) if error.kind() == ErrorKind::FellBehind && !acknowledges => {
                            return;
                        }
                        change => change.unwrap().unwrap(),
                    };
                    for write in batch(&change) {
                        let writer = usize::from(write.key[0]);
                        assert_eq!(write.key[1..], next[writer].to_be_bytes());
                        next[writer] += 1;
                        seen += 1;
                    }
                    if acknowledges && seen % 7 == 0 {
                        consumer.acknowledge(change.sequence()).unwrap();
                    }
                }
                assert_eq!(next, [1000; 3]);
            });
        }
    });
}

#[test]
fn a_close_ends_a_wait() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    let mut changes = db.changes(1).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(move || changes.next(LONG).unwrap_err().kind());
        db.keyspace("k").unwrap();
        db.close().unwrap();
        assert_eq!(waiting.join().unwrap(), ErrorKind::Closed);
    });
}

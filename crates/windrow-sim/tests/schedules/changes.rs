//! A consumer of changes beside writers, flushes of two keyspaces, and renames: each commit comes once and in order, and wakes a
//! feed that waits for it.

use std::time::Duration;

use shuttle::thread;
use windrow::{BatchWrite, Change, Consumer, Durability};
use windrow_sim::SimDisk;

use crate::{Bank, TRANSFERS, account, amount_of, explore};

/// No wait ends by itself, so a lost wake-up is a deadlock.
const LONG: Duration = Duration::from_secs(3600);

/// Reads `transfers` transfers of each of `writers` writers, and acknowledges some of them. Returns the events.
fn follow(consumer: &Consumer, writers: u64, transfers: u64, events: usize) -> Vec<Change> {
    let mut changes = consumer.changes().unwrap();
    let mut others = Vec::new();
    let mut seen = vec![0; usize::try_from(writers).unwrap()];
    while others.len() < events || seen.iter().any(|&amount| amount < transfers) {
        let change = changes.next(LONG).unwrap().unwrap();
        let Change::Batch(batch) = &change else {
            others.push(change);
            continue;
        };
        for write in batch.iter().filter(|it| &*it.keyspace == "left") {
            let writer = (0..writers).find(|&it| account(it) == write.key).unwrap();
            let last = &mut seen[usize::try_from(writer).unwrap()];
            let BatchWrite::Insert(value) = write.write else {
                unreachable!("{:?}", write.write)
            };
            *last += 1;
            assert_eq!(amount_of(value), *last);
        }
        if batch.last().is_multiple_of(3) {
            consumer.acknowledge(batch.last()).unwrap();
        }
    }
    others
}

#[test]
fn a_consumer_follows_writers_beside_flushes_of_two_keyspaces() {
    explore(|| {
        let disk = SimDisk::new();
        let bank = Bank::open(&disk);
        let consumer = bank.db.consumer("c").unwrap();
        let slow = bank.db.consumer("slow").unwrap();
        let follower = thread::spawn(move || follow(&consumer, 2, TRANSFERS, 0));
        let writers = [0, 1].map(|writer| {
            let bank = bank.clone();
            thread::spawn(move || {
                for amount in 1..=TRANSFERS {
                    bank.transfer(writer, amount, Durability::Buffered).unwrap();
                }
            })
        });
        bank.db.flush().unwrap();
        for writer in writers {
            writer.join().unwrap();
        }
        follower.join().unwrap();
        bank.db.flush().unwrap();
        assert!(bank.db.verify().unwrap().is_sound());
        let mut changes = slow.changes().unwrap();
        let rest = std::iter::from_fn(|| changes.next(Duration::ZERO).unwrap());
        assert!(rest.count() > 0);
        bank.db.close().unwrap();
    });
}

#[test]
fn a_waiting_feed_sees_a_change_of_keyspaces() {
    explore(|| {
        let disk = SimDisk::new();
        let bank = Bank::open(&disk);
        let consumer = bank.db.consumer("c").unwrap();
        let follower = thread::spawn(move || follow(&consumer, 1, 1, 1));
        let writer = bank.clone();
        let writer = thread::spawn(move || writer.transfer(0, 1, Durability::Buffered).unwrap());
        let renamed = bank.right.rename("other");
        renamed.unwrap();
        writer.join().unwrap();
        let events = follower.join().unwrap();
        assert!(matches!(&events[..], [Change::KeyspaceRenamed { to, .. }] if to == "other"));
        bank.db.close().unwrap();
    });
}

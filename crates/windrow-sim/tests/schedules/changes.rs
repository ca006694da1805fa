//! A consumer of changes beside writers, flushes of two keyspaces, and renames: each commit comes once and in order, and wakes a
//! thread or a task that waits for it.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use shuttle::sync::{Condvar, Mutex};
use shuttle::thread;
use windrow::{BatchWrite, Change, Changes, Consumer, Durability, ErrorKind, Result};
use windrow_sim::SimDisk;

use crate::{Bank, TRANSFERS, account, amount_of, explore};

/// No wait ends by itself, so a lost wake-up is a deadlock.
const LONG: Duration = Duration::from_secs(3600);

/// Waits for the next change.
type Next = fn(&mut Changes) -> Result<Change>;

/// As a thread.
fn block(changes: &mut Changes) -> Result<Change> {
    changes.next(LONG).map(Option::unwrap)
}

/// Wakes the thread that polls for its task.
#[derive(Default)]
struct Alarm {
    has_rung: Mutex<bool>,
    changed: Condvar,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        *self.has_rung.lock().unwrap() = true;
        self.changed.notify_one();
    }
}

/// As a task.
fn await_next(changes: &mut Changes) -> Result<Change> {
    let alarm = Arc::<Alarm>::default();
    let waker = Waker::from(Arc::clone(&alarm));
    loop {
        if let Poll::Ready(answer) = changes.poll_change(&mut Context::from_waker(&waker)) {
            return answer.unwrap();
        }
        let mut has_rung = alarm.has_rung.lock().unwrap();
        while !*has_rung {
            has_rung = alarm.changed.wait(has_rung).unwrap();
        }
        *has_rung = false;
    }
}

/// Reads `transfers` transfers of each of `writers` writers by `next`, and acknowledges some of them. Returns the events.
fn follow(
    consumer: &Consumer,
    next: Next,
    writers: u64,
    transfers: u64,
    events: usize,
) -> Vec<Change> {
    let mut changes = consumer.changes().unwrap();
    let mut others = Vec::new();
    let mut seen = vec![0; usize::try_from(writers).unwrap()];
    while others.len() < events || seen.iter().any(|&amount| amount < transfers) {
        let change = next(&mut changes).unwrap();
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
        let follower = thread::spawn(move || follow(&consumer, block, 2, TRANSFERS, 0));
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
        let follower = thread::spawn(move || follow(&consumer, block, 1, 1, 1));
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

/// One task waits on for a transfer that comes only when the others have theirs: they must not be lost behind it.
#[test]
fn tasks_follow_a_writer_beside_a_thread() {
    explore(|| {
        let disk = SimDisk::new();
        let bank = Bank::open(&disk);
        let follower = |name, next: Next, transfers| {
            let consumer = bank.db.consumer(name).unwrap();
            thread::spawn(move || follow(&consumer, next, 1, transfers, 0))
        };
        let waits_on = follower("waits on", await_next, 3);
        let others: [(_, Next); 2] = [("task", await_next), ("thread", block)];
        let others = others.map(|(name, next)| follower(name, next, 2));
        for amount in 1..=2 {
            bank.transfer(0, amount, Durability::Buffered).unwrap();
        }
        for other in others {
            other.join().unwrap();
        }
        bank.transfer(0, 3, Durability::Buffered).unwrap();
        waits_on.join().unwrap();
        bank.db.close().unwrap();
    });
}

#[test]
fn a_close_wakes_tasks() {
    explore(|| {
        let disk = SimDisk::new();
        let bank = Bank::open(&disk);
        let tasks = [0, 1].map(|_| {
            let mut changes = bank.db.changes(bank.db.snapshot().sequence() + 1).unwrap();
            thread::spawn(move || await_next(&mut changes).unwrap_err().kind())
        });
        bank.db.clone().close().unwrap();
        for task in tasks {
            assert_eq!(task.join().unwrap(), ErrorKind::Closed);
        }
    });
}

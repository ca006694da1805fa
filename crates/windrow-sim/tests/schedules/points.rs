//! The points of a database without a log, beside writers, jobs, a checkpoint and a change of keyspaces.

use shuttle::thread;
use windrow::{Db, Durability};
use windrow_sim::{CrashPolicy, SimDisk};

use crate::{Bank, TRANSFERS, WRITERS, explore, options};

fn open(disk: &SimDisk) -> Bank {
    let mut options = options(disk);
    options.log = false;
    Bank::open_with(options)
}

/// Makes a point by `persist`. Returns amounts that it must have.
fn amounts_at(bank: &Bank, persist: impl FnOnce(&Db)) -> Vec<Option<u64>> {
    let before = (0..WRITERS).map(|writer| bank.amount(writer)).collect();
    persist(&bank.db);
    before
}

fn is_later(amounts: &[Option<u64>], earlier: &[Option<u64>]) -> bool {
    amounts
        .iter()
        .zip(earlier)
        .all(|(now, before)| now >= before)
}

#[test]
fn a_point_that_was_begun_has_nothing_that_came_later() {
    explore(|| {
        let disk = SimDisk::new();
        let bank = open(&disk);
        let mut threads = Vec::new();
        for writer in 0..WRITERS {
            let bank = bank.clone();
            threads.push(thread::spawn(move || {
                for amount in 1..=TRANSFERS {
                    bank.transfer(writer, amount, Durability::Buffered).unwrap();
                }
            }));
        }
        let other = bank.clone();
        let other = thread::spawn(move || {
            other.db.flush().unwrap();
            other.db.keyspace("new").unwrap();
        });
        let amounts = || -> Vec<_> { (0..WRITERS).map(|writer| bank.amount(writer)).collect() };
        let before = amounts();
        let pending = bank.db.begin_persist().unwrap();
        let after = amounts();
        bank.db.flush().unwrap();
        pending.wait().unwrap();
        other.join().unwrap();
        for thread in threads {
            thread.join().unwrap();
        }
        bank.db.close().unwrap();

        let found = open(&disk.crash(CrashPolicy::DropUnsynced)).audit();
        assert!(is_later(&found, &before) && is_later(&after, &found));
    });
}

#[test]
fn a_close_beside_points_ends() {
    explore(|| {
        let disk = SimDisk::new();
        let bank = open(&disk);
        let threads = [0, 1, 2].map(|number| {
            let db = bank.db.clone();
            thread::spawn(move || match number {
                // Each may come behind the close.
                0 => drop(db.persist()),
                1 => drop(db.begin_persist()),
                _ => drop(db.keyspace("new")),
            })
        });
        bank.db.clone().close().unwrap();
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

#[test]
fn a_point_beside_writers_is_a_prefix_of_their_commits() {
    explore(|| {
        let disk = SimDisk::new();
        let bank = open(&disk);
        bank.db.persist().unwrap();
        let mut threads = Vec::new();
        for writer in 0..WRITERS {
            let bank = bank.clone();
            threads.push(thread::spawn(move || {
                for amount in 1..=TRANSFERS {
                    bank.transfer(writer, amount, Durability::Buffered).unwrap();
                }
            }));
        }
        let other = bank.clone();
        let other = thread::spawn(move || {
            other.db.keyspace("new").unwrap();
            other.db.drop_keyspace("new").unwrap();
            amounts_at(&other, |db| db.checkpoint("/copy").unwrap())
        });
        amounts_at(&bank, |db| db.persist().unwrap());
        let at_least = amounts_at(&bank, |db| db.persist().unwrap());
        let copied_at_least = other.join().unwrap();
        for thread in threads {
            thread.join().unwrap();
        }
        bank.db.close().unwrap();

        let disk = disk.crash(CrashPolicy::DropUnsynced);
        let again = open(&disk);
        let found = again.audit();
        assert!(is_later(&found, &at_least) && is_later(&found, &copied_at_least));
        assert!(again.db.verify().unwrap().is_sound());
        let copy = options(&disk);
        let db = Db::open("/copy", copy).unwrap();
        let copy = Bank {
            left: db.keyspace("left").unwrap(),
            right: db.keyspace("right").unwrap(),
            db,
        };
        assert!(is_later(&copy.audit(), &copied_at_least));
    });
}

//! A secondary beside writers, flushes and compactions: each of its states has whole transfers, none falls back, and its files
//! stay.

use std::sync::Arc;

use shuttle::thread;
use windrow::{Db, Durability};
use windrow_sim::SimDisk;

use crate::runtime::ScheduledRuntime;
use crate::{Bank, TRANSFERS, WRITERS, explore, options};

/// The state `db` as a bank.
fn bank(db: Db) -> Bank {
    let left = db.keyspace("left").unwrap();
    let right = db.keyspace("right").unwrap();
    Bank { db, left, right }
}

#[test]
fn states_beside_writers_have_whole_transfers() {
    explore(|| {
        let disk = SimDisk::new();
        let own = Bank::open(&disk);
        let reader = {
            let disk = disk.clone();
            thread::spawn(move || {
                let theirs = options(&disk).with_runtime(Arc::new(ScheduledRuntime::default()));
                let secondary = Db::open_secondary("/bank", theirs).unwrap();
                let first = bank(secondary.db());
                let found = first.audit();
                let mut newest = found.clone();
                for _ in 0..3 {
                    thread::yield_now();
                    let amounts = bank(secondary.catch_up().unwrap()).audit();
                    for (before, after) in newest.iter().zip(&amounts) {
                        assert!(before <= after, "{before:?} and then {after:?}");
                    }
                    newest = amounts;
                }
                // Its files are still there, though most were never open.
                assert_eq!(first.audit(), found);
                secondary
            })
        };
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let bank = own.clone();
                thread::spawn(move || {
                    for amount in 1..=TRANSFERS {
                        bank.transfer(writer, amount, Durability::Buffered).unwrap();
                    }
                    let late = bank.db.keyspace(&format!("late {writer}")).unwrap();
                    late.insert("key", "value").unwrap();
                })
            })
            .collect();
        own.db.flush().unwrap();
        for writer in writers {
            writer.join().unwrap();
        }
        let secondary = reader.join().unwrap();
        let last = bank(secondary.catch_up().unwrap());
        let amounts = last.audit();
        assert_eq!(amounts, vec![Some(TRANSFERS); amounts.len()]);
        for writer in 0..WRITERS {
            let late = last.db.keyspace(&format!("late {writer}")).unwrap();
            assert!(late.contains_key("key").unwrap(), "of writer {writer}");
        }
        own.db.close().unwrap();
    });
}

//! A counter in several tables beside gets that fold its operands, and the job that writes what they have folded: no operand
//! counts twice, and none is lost.

use std::sync::Arc;

use shuttle::thread;
use windrow::operators::AddU64;
use windrow::{Db, Keyspace};
use windrow_sim::SimDisk;

use crate::{explore, options};

fn add(counters: &Keyspace, summand: u64) {
    counters.merge("hot", summand.to_le_bytes()).unwrap();
}

fn count(value: Option<Vec<u8>>) -> u64 {
    u64::from_le_bytes(value.unwrap().try_into().unwrap())
}

/// Adds an operand in a table of its own.
fn add_flushed(db: &Db, counters: &Keyspace, summand: u64) {
    add(counters, summand);
    db.flush().unwrap();
}

#[test]
fn no_fold_hides_an_operand() {
    explore(|| {
        let disk = SimDisk::new();
        let mut options = options(&disk);
        // What is flushed stays where it is.
        options.keyspace.level0_runs = 64;
        let options = options.with_merge_operator("counters", Arc::new(AddU64::Wrapping));
        let db = Db::open("/counters", options).unwrap();
        let counters = db.keyspace("counters").unwrap();
        for summand in [1, 1] {
            add_flushed(&db, &counters, summand);
        }
        let snapshot = db.snapshot();
        let mut threads = Vec::new();
        for _ in 0..2 {
            let counters = counters.clone();
            threads.push(thread::spawn(move || {
                let first = count(counters.get("hot").unwrap());
                let second = count(counters.get("hot").unwrap());
                assert!([2, 12, 22].contains(&first) && [2, 12, 22].contains(&second));
                assert!(first <= second, "an operand is gone");
            }));
        }
        add(&counters, 10);
        add_flushed(&db, &counters, 10);
        for thread in threads {
            thread.join().unwrap();
        }
        let view = counters.at(&snapshot).unwrap();
        assert_eq!(count(view.get("hot").unwrap()), 2);
        assert_eq!(count(counters.get("hot").unwrap()), 22);
        db.wait_idle().unwrap();
        // Without other writes a fold is kept.
        let kept = db.stats().folds_kept;
        for summand in [100, 100] {
            add_flushed(&db, &counters, summand);
        }
        assert_eq!(count(counters.get("hot").unwrap()), 222);
        db.wait_idle().unwrap();
        assert!(db.stats().folds_kept > kept);
        assert_eq!(count(view.get("hot").unwrap()), 2);
        counters.compact_range::<&[u8]>(..).unwrap();
        assert_eq!(count(counters.get("hot").unwrap()), 222);
        assert!(db.verify().unwrap().is_sound());
        db.close().unwrap();
    });
}

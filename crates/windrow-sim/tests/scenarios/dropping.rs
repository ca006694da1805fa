//! A keyspace is dropped during a job for it, or while logs are kept for it.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use windrow::runtime::{Runtime, Work, Workers};
use windrow::{Db, ErrorKind, Options};
use windrow_sim::{CrashPolicy, SimDisk, SteppedRuntime};

use crate::common::{FOLDER, count, kind, log_bytes, on};

/// Drops the keyspace "gone" when a compaction sleeps for the first time.
#[derive(Debug)]
struct Dropping {
    stepped: SteppedRuntime,
    db: Mutex<Option<Db>>,
    sleeps: AtomicUsize,
}

impl Runtime for Dropping {
    fn now(&self) -> Duration {
        self.stepped.now()
    }

    fn unix_time(&self) -> Duration {
        self.stepped.unix_time()
    }

    fn sleep(&self, duration: Duration) {
        self.sleeps.fetch_add(1, Ordering::Relaxed);
        let db = self.db.lock().unwrap().take();
        if let Some(db) = db {
            db.drop_keyspace("gone").unwrap();
        }
        self.stepped.sleep(duration);
    }

    fn random(&self) -> u64 {
        self.stepped.random()
    }

    fn start(&self, work: Arc<dyn Work>, count: usize) -> io::Result<Box<dyn Workers>> {
        self.stepped.start(work, count)
    }

    fn step_instead_of_waiting(&self, work: &dyn Work) -> bool {
        self.stepped.step_instead_of_waiting(work)
    }
}

#[test]
fn a_compaction_of_a_dropped_keyspace_stops() {
    for by_hand in [false, true] {
        let disk = SimDisk::new();
        let runtime = Arc::new(Dropping {
            stepped: SteppedRuntime::new(1),
            db: Mutex::default(),
            sleeps: AtomicUsize::new(0),
        });
        let mut options =
            on(Options::default(), &disk, &runtime.stepped)
                .with_runtime(Arc::<Dropping>::clone(&runtime));
        options.compaction_bytes_per_second = 512 << 10;
        options.keyspace.level0_runs = if by_hand { 64 } else { 2 };
        let db = Db::open(FOLDER, options).unwrap();
        let gone = db.keyspace("gone").unwrap();
        for round in 0..2_u32 {
            for number in 0..2000_u32 {
                let key = [number.to_be_bytes(), round.to_be_bytes()].concat();
                gone.insert(key, [7; 1000]).unwrap();
            }
            gone.insert([0], "").unwrap();
            gone.insert([255], "").unwrap();
            db.flush().unwrap();
        }
        assert_eq!(runtime.sleeps.load(Ordering::Relaxed), 0);
        *runtime.db.lock().unwrap() = Some(db.clone());
        if by_hand {
            let refused = gone.compact_range::<&[u8]>(..);
            assert_eq!(kind(refused), ErrorKind::NotFound);
        } else {
            runtime.stepped.run_until_idle(100);
            db.wait_idle().unwrap();
        }
        let sleeps = runtime.sleeps.load(Ordering::Relaxed);
        assert_eq!(sleeps, 1, "the compaction continued");
        assert_eq!(db.stats().compactions, 0);
        drop(gone);
        db.wait_idle().unwrap();
        assert_eq!(count(&disk, "table"), 0);
        drop(runtime.db.lock().unwrap().take());
        db.close().unwrap();
    }
}

/// The engine removes the logs of a dropped keyspace before the current log is durable. Entries that a
/// power failure then takes from the current log count as never written.
#[test]
fn logs_of_a_dropped_keyspace_are_removed_before_later_ones_are_durable() {
    let disk = SimDisk::new();
    let open = |disk: &SimDisk, runtime: &SteppedRuntime| {
        let mut options = on(Options::default(), disk, runtime);
        options.keyspace.memtable_bytes = 256 << 10;
        options.max_wal_bytes = 1 << 20;
        Db::open(FOLDER, options)
    };
    let runtime = SteppedRuntime::new(1);
    let db = open(&disk, &runtime).unwrap();
    let kept = db.keyspace("kept").unwrap();
    db.keyspace("gone").unwrap().insert("key", "value").unwrap();
    let mut number = 0_u64;
    let mut write = || {
        number += 1;
        kept.insert(number.to_be_bytes(), [7; 500]).unwrap();
    };
    // The most that is kept without a flush of the memtable that pins the oldest log.
    while log_bytes(&disk) < (768 << 10) - 3000 {
        write();
        runtime.run_until_idle(1000);
    }
    let before = count(&disk, "wal");
    db.drop_keyspace("gone").unwrap();
    runtime.run_until_idle(1000);
    (0..20).for_each(|_| write());
    runtime.run_until_idle(1000);
    assert!(count(&disk, "wal") < before);
    let crashed = disk.crash(CrashPolicy::DropUnsynced);
    for round in 0..3_u8 {
        let runtime = SteppedRuntime::new(1);
        let db = open(&crashed, &runtime).unwrap();
        let kept = db.keyspace("kept").unwrap();
        assert!(kept.get(1_u64.to_be_bytes()).unwrap().is_some());
        kept.insert([round], "value").unwrap();
        drop(kept);
        db.close().unwrap();
    }
}

/// A power failure that leaves the drop of a keyspace leaves all that was acknowledged before.
#[test]
fn writes_before_a_drop_survive_if_the_drop_does() {
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let open = |disk: &SimDisk| Db::open(FOLDER, on(Options::default(), disk, &runtime)).unwrap();
    let db = open(&disk);
    let kept = db.keyspace("kept").unwrap();
    db.keyspace("gone").unwrap();
    kept.insert("key", "value").unwrap();
    db.drop_keyspace("gone").unwrap();
    let crashed = disk.crash(CrashPolicy::DropUnsynced);
    let db = open(&crashed);
    assert!(db.existing_keyspace("gone").unwrap().is_none());
    let kept = db.existing_keyspace("kept").unwrap().unwrap();
    assert!(kept.get("key").unwrap().is_some());
}

//! Options of a keyspace that change while writers use it: the next writes keep to the new ones. The test steps all jobs.

use windrow::{Db, Keyspace, Options, StallCause};
use windrow_sim::{SimDisk, SteppedRuntime};

use crate::common::{FOLDER, check_sound, on};

const KIB: usize = 1 << 10;

/// A database with one keyspace whose values are in its memtables and tables, and that compacts nothing.
fn open(runtime: &SteppedRuntime) -> (Db, Keyspace) {
    let mut options = Options::default();
    options.keyspace.memtable_bytes = 64 * KIB;
    options.keyspace.base_bytes = 64 << 20;
    options.keyspace.level0_runs = 64;
    options.keyspace.medium_from = u64::MAX;
    options.keyspace.large_from = u64::MAX;
    let db = Db::open(FOLDER, on(options, &SimDisk::new(), runtime)).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    (db, keyspace)
}

/// Changes the options of the keyspace, as a second caller would, while `keyspace` stays in use.
fn change(db: &Db, keyspace: &Keyspace, change: impl FnOnce(&mut windrow::KeyspaceOptions)) {
    let mut options = keyspace.options();
    change(&mut options);
    db.keyspace_with("k", options).unwrap();
}

/// Writes `bytes` in values of 1 KiB and runs the jobs that are due after each one. Returns the number of flushes.
fn flushes(db: &Db, keyspace: &Keyspace, runtime: &SteppedRuntime, bytes: usize) -> u64 {
    let before = db.stats().flushes;
    for number in 0..bytes / KIB {
        let key = (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        keyspace.insert(key.to_be_bytes(), [7; KIB]).unwrap();
        runtime.run_until_idle(10);
    }
    db.stats().flushes - before
}

#[test]
fn memtables_have_the_size_that_was_set_last() {
    let runtime = SteppedRuntime::new(1);
    let (db, keyspace) = open(&runtime);
    let flushes = |bytes| flushes(&db, &keyspace, &runtime, bytes);
    let resize = |bytes| change(&db, &keyspace, |options| options.memtable_bytes = bytes);
    let medium = flushes(1024 * KIB);
    assert!((8..=32).contains(&medium), "{medium}");
    // The memtable that is being written is below its old size and above the new one: the next write freezes it.
    db.flush().unwrap();
    assert_eq!(flushes(20 * KIB), 0);
    resize(16 * KIB);
    assert_eq!(flushes(2 * KIB), 1);
    let small = flushes(1024 * KIB);
    assert!(small >= 2 * medium, "{small} and {medium}");
    resize(4096 * KIB);
    assert_eq!(flushes(1024 * KIB), 0);
    let stats = db.stats();
    assert_eq!(stats.keyspaces[0].options.memtable_bytes, 4096 * KIB);
    check_sound(&db);
}

/// The delays and stops of `cause` so far.
fn stalls(db: &Db, cause: StallCause) -> (u64, u64) {
    let stats = db.stats();
    let mut stalls = stats.stalls.iter().filter(|stall| stall.cause == cause);
    let stall = stalls.next().unwrap();
    (stall.delays, stall.stops)
}

#[test]
fn writers_are_throttled_by_the_bound_on_runs_that_was_set_last() {
    const RUNS: usize = 24;
    let runtime = SteppedRuntime::new(1);
    let (db, keyspace) = open(&runtime);
    for _ in 0..RUNS {
        keyspace.insert("key", [7; 64]).unwrap();
        db.flush().unwrap();
    }
    assert_eq!(db.stats().keyspaces[0].levels[0].files, RUNS);
    let stalls_of_a_write = || {
        let before = stalls(&db, StallCause::Level0Runs);
        keyspace.insert("key", vec![7; 32 * KIB]).unwrap();
        let after = stalls(&db, StallCause::Level0Runs);
        (after.0 - before.0, after.1 - before.1)
    };
    let bound = |runs| change(&db, &keyspace, |options| options.level0_runs = runs);
    assert_eq!(stalls_of_a_write(), (0, 0));
    // Between three and eight times the bound, writers are slowed. No job runs meanwhile.
    bound(4);
    assert_eq!(stalls_of_a_write(), (1, 0));
    bound(64);
    assert_eq!(stalls_of_a_write(), (0, 0));
    assert_eq!(db.stats().compactions, 0);
    // From there on they wait for a compaction, which the waiting writer runs.
    bound(3);
    assert_eq!(stalls_of_a_write().1, 1);
    assert!(db.stats().compactions > 0);
    assert!(db.stats().keyspaces[0].levels[0].files < RUNS);
    check_sound(&db);
}

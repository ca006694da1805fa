//! Transient runs of many short files: merges keep their number to what they can read side by side.

use std::sync::Arc;

use windrow::{Db, Options};
use windrow_sim::{SimDisk, SteppedRuntime};

/// `RUN_FILES_MAX` of the engine.
const MAX: u32 = 4096;

const KEYS: u32 = 20_000;

/// Values that stand alone in their run files.
const PER_FLUSH: u32 = 512;

/// What is in so many run files is so little that its bytes are no debt.
#[test]
fn run_files_do_not_pile_up_however_short_they_are() {
    let mut options = Options::default()
        .with_vfs(Arc::new(SimDisk::new()))
        .with_runtime(Arc::new(SteppedRuntime::new(1)));
    options.keyspace.memtable_bytes = 4 << 20;
    options.keyspace.file_bytes = 64 << 10;
    options.keyspace.base_bytes = 2 << 20;
    options.keyspace.size_ratio = 2.0;
    options.keyspace.scaling = 1.0;
    options.keyspace.max_space_amp = f64::INFINITY;
    options.keyspace.level0_runs = 1;
    let db = Db::open("/data/db", options.clone()).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    let key = |number: u32| number.wrapping_mul(0x9E37_79B1).to_be_bytes();
    for number in 0..KEYS {
        keyspace.insert(key(number), [1; 110]).unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    keyspace.compact_range::<&[u8]>(..).unwrap();
    assert_eq!(db.stats().keyspaces[0].runs.files, 0);

    // A run file has a quarter of this.
    options.keyspace.file_bytes = 1 << 10;
    let keyspace = db.keyspace_with("k", options.keyspace).unwrap();
    let mut most = 0;
    let flushes = MAX / PER_FLUSH + 1;
    for number in 0..flushes * PER_FLUSH {
        keyspace.insert(key(number), [2; 260]).unwrap();
        if number % PER_FLUSH == PER_FLUSH - 1 {
            db.flush().unwrap();
            db.wait_idle().unwrap();
            let files = u32::try_from(db.stats().keyspaces[0].runs.files).unwrap();
            assert!(files <= MAX, "{files} run files");
            most = most.max(files);
        }
    }
    assert_eq!(most, MAX);
    for number in 0..KEYS {
        let is_new = number < flushes * PER_FLUSH;
        let value = if is_new { vec![2; 260] } else { vec![1; 110] };
        assert_eq!(keyspace.get(key(number)).unwrap(), Some(value));
    }
    assert!(db.verify().unwrap().is_sound());
    db.close().unwrap();
}

//! Flushes of a few ascending keys leave no level full of small files.

use windrow_sim::{SimDisk, SteppedRuntime};

use crate::common::{Entries, check_sound, entries, on, open, small};

/// How many flushes the test makes.
const FLUSHES: usize = 100;

#[test]
fn flushes_of_ascending_keys_leave_few_files() {
    let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(1));
    let mut options = on(small(), &disk, &runtime);
    options.keyspace.file_bytes = 256 << 10;
    options.keyspace.base_bytes = 1 << 20;
    let (db, keyspace) = open(options.clone());
    let mut model = Entries::new();
    for number in 0..FLUSHES {
        let (key, value) = (format!("{number:04}").into_bytes(), vec![7; 100]);
        keyspace.insert(&key, &value).unwrap();
        model.insert(key, value);
        db.flush().unwrap();
        db.wait_idle().unwrap();
    }
    let stats = db.stats();
    let levels = &stats.keyspaces[0].levels;
    let files: usize = levels.iter().map(|level| level.files).sum();
    // At most three of each size, each four times the one before: 1, 4, 16 and 64 flushes.
    assert!(files <= 12, "{files} files");
    assert!(stats.trivial_moves > 0);
    assert!(entries(&keyspace) == model);
    check_sound(&db);
    drop(keyspace);
    db.close().unwrap();
    let (db, keyspace) = open(options);
    assert!(entries(&keyspace) == model);
    check_sound(&db);
}

//! Readers in other processes, with other keys than the writer.

use std::sync::Arc;
use std::time::Duration;

use windrow::{Db, Options};
use windrow_encryption::{EncryptedVfs, KeyRing};
use windrow_sim::{SimDisk, SteppedRuntime};

use crate::{FOLDER, encrypted, key, options, value, with_keys};

fn on(vfs: &EncryptedVfs, runtime: &SteppedRuntime) -> Options {
    options(vfs).with_runtime(Arc::new(runtime.clone()))
}

fn write(db: &Db, round: u64) {
    let keyspace = db.keyspace("main").unwrap();
    for key in 0..60_u64 {
        keyspace.insert(key.to_be_bytes(), value(round)).unwrap();
    }
    db.flush().unwrap();
    keyspace.compact_range::<&[u8]>(..).unwrap();
}

/// The writer cannot read where the reader is, since it has not got the new key yet. So it keeps everything for it.
#[test]
fn a_reader_with_a_key_that_the_writer_lacks_is_not_given_up() {
    let disk = SimDisk::new();
    let (own, theirs) = (SteppedRuntime::new(1), SteppedRuntime::new(2));
    let db = Db::open(FOLDER, on(&encrypted(&disk), &own)).unwrap();
    write(&db, 1);
    let keys = KeyRing::new("second", key(2)).with_older("first", key(1));
    let reader = Db::open_secondary(FOLDER, on(&with_keys(&disk, keys), &theirs)).unwrap();
    let held = reader.db();
    write(&db, 2);
    for _ in 0..10 {
        for runtime in [&theirs, &own] {
            runtime.advance(Duration::from_secs(6));
            runtime.run_until_idle(1000);
        }
    }
    assert!(db.stats().files_held_by_readers > 0);
    for entry in held.keyspace("main").unwrap().iter().unwrap() {
        assert_eq!(entry.unwrap().1, value(1));
    }
    // Its lock is gone with it.
    drop((held, reader));
    own.advance(Duration::from_secs(6));
    own.run_until_idle(1000);
    assert_eq!(db.stats().files_held_by_readers, 0);
    db.close().unwrap();
}

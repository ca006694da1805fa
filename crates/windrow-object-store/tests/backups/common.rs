//! What the tests share: a database with some history, and looks at a store.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use object_store::ObjectStore;
use windrow::backup::{BackupStore, Backups};
use windrow::{Db, Options, Result};
use windrow_object_store::{Bucket, BucketStore};

/// Where the tests have their backups.
pub(crate) const PREFIX: &str = "backups/shop";

pub(crate) fn bucket(objects: &Arc<dyn ObjectStore>) -> Bucket {
    Bucket::new(Arc::clone(objects), PREFIX).unwrap()
}

/// Opens the backups for writing, as a service does that is the only writer.
pub(crate) fn open(objects: &Arc<dyn ObjectStore>) -> Result<Backups> {
    let bucket = bucket(objects);
    BucketStore::unlock(&bucket)?;
    Ok(Backups::new(Arc::new(BucketStore::open(
        &bucket, "a test",
    )?)))
}

pub(crate) fn open_read_only(objects: &Arc<dyn ObjectStore>) -> Backups {
    Backups::new(Arc::new(BucketStore::open_read_only(&bucket(objects))))
}

pub(crate) fn options() -> Options {
    let mut options = Options::default();
    options.keyspace.memtable_bytes = 64 << 10;
    options.keyspace.file_bytes = 64 << 10;
    options.keyspace.base_bytes = 256 << 10;
    options
}

/// Bytes that no compression makes smaller.
pub(crate) fn noise(seed: u32, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b1) | 1;
    let bytes = (0..length).map(|_| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()[0]
    });
    bytes.collect()
}

/// Writes `keys` keys, whose values `seed` chooses.
pub(crate) fn fill(db: &Db, keys: u32, seed: u32) {
    let keyspace = db.keyspace("k").unwrap();
    for key in 0..keys {
        let value = noise(key ^ seed.rotate_left(16), 200);
        keyspace.insert(key.to_be_bytes(), value).unwrap();
    }
}

/// The entries of the database.
pub(crate) type Entries = Vec<(Vec<u8>, Vec<u8>)>;

pub(crate) fn entries(db: &Db) -> Entries {
    let keyspace = db.keyspace("k").unwrap();
    keyspace.iter().unwrap().collect::<Result<_>>().unwrap()
}

/// The entries of backup `number`, restored below `folder`.
pub(crate) fn restored(backups: &Backups, number: u64, folder: &Path) -> Entries {
    let target = folder.join(format!("restored {number}"));
    backups.restore(number, &target).unwrap();
    let db = Db::open(&target, options()).unwrap();
    let entries = entries(&db);
    db.close().unwrap();
    std::fs::remove_dir_all(&target).unwrap();
    entries
}

/// The names of all objects of backups below the prefix.
pub(crate) fn names(objects: &Arc<dyn ObjectStore>) -> BTreeSet<String> {
    let store = BucketStore::open_read_only(&bucket(objects));
    let listed = store.list().unwrap();
    listed.into_iter().map(|object| object.name).collect()
}

/// Checks every byte of every backup, and returns their numbers.
pub(crate) fn sound(objects: &Arc<dyn ObjectStore>) -> Vec<u64> {
    let check = open_read_only(objects).verify(None).unwrap();
    assert!(check.is_sound(), "{check:?}");
    check.backups
}

//! The space of deleted keys becomes free without a call, and cursors soon have no tombstones to pass.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a step that fails ends the test"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "the test waits for background work that begins when nothing is written"
)]

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use windrow::{
    Db, Keyspace, KeyspaceOptions, MergeError, MergeOperator, Operands, Options, Snapshot,
};

const KEYS: u32 = 80_000;

struct Store {
    db: Db,
    keys: Keyspace,
    folder: tempfile::TempDir,
}

impl Store {
    /// Values of all keys, in tables.
    fn full() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(folder.path(), Options::default()).unwrap();
        let mut options = KeyspaceOptions::default();
        options.memtable_bytes = 1 << 20;
        let keys = db.keyspace_with("keys", options).unwrap();
        for key in 0..KEYS {
            // Values that no codec makes smaller.
            let value: Vec<u8> = (0..25_u32)
                .flat_map(|part| (key ^ part << 24).wrapping_mul(2_654_435_761).to_be_bytes())
                .collect();
            keys.insert(key.to_be_bytes(), value).unwrap();
        }
        let store = Self { db, keys, folder };
        store.db.flush().unwrap();
        store.db.wait_idle().unwrap();
        store
    }

    fn remove(&self, keys: impl Iterator<Item = u32>) {
        for key in keys {
            self.keys.remove(key.to_be_bytes()).unwrap();
        }
        self.db.persist().unwrap();
    }

    /// Tombstones in memtables and tables.
    fn tombstones(&self) -> u64 {
        let stats = self.db.stats();
        let keyspace = stats.keyspaces.iter().find(|it| it.name == "keys").unwrap();
        let levels: u64 = keyspace.levels.iter().map(|level| level.tombstones).sum();
        keyspace.memtable_tombstones + levels
    }

    fn table_bytes(&self) -> u64 {
        let stats = self.db.stats();
        let keyspace = stats.keyspaces.iter().find(|it| it.name == "keys").unwrap();
        keyspace.levels.iter().map(|level| level.bytes).sum()
    }

    fn wait_until(&self, is_done: impl Fn(&Self) -> bool) {
        for _ in 0..600 {
            if is_done(self) {
                return;
            }
            thread::sleep(Duration::from_millis(100));
            self.db.wait_idle().unwrap();
        }
        panic!("{} tombstones after a minute", self.tombstones());
    }

    /// Waits until nothing is compacted for three seconds. Files with tombstones that stay must not be compacted again
    /// and again.
    fn wait_until_quiet(&self) {
        for _ in 0..10 {
            let compactions = self.db.stats().compactions;
            thread::sleep(Duration::from_secs(3));
            self.db.wait_idle().unwrap();
            if self.db.stats().compactions == compactions {
                return;
            }
        }
        panic!("compactions do not end");
    }
}

#[test]
fn deleted_keys_free_their_space_when_idle() {
    let store = Store::full();
    let before = store.table_bytes();
    store.remove(0..KEYS / 4);
    store.wait_until(|store| store.tombstones() == 0);
    let after = store.table_bytes();
    assert!(
        after <= before / 100 * 78,
        "{before} bytes before, {after} after"
    );
    let passed = store.db.stats().entries_passed;
    assert_eq!(store.keys.iter().unwrap().count(), 3 * KEYS as usize / 4);
    assert_eq!(store.db.stats().entries_passed, passed);
}

#[test]
fn scattered_deletes_go_too() {
    let store = Store::full();
    store.remove((0..KEYS).filter(|key| key % 2 == 0));
    store.wait_until(|store| store.tombstones() == 0);
    assert_eq!(store.keys.iter().unwrap().count(), KEYS as usize / 2);
}

#[test]
fn tombstones_that_a_snapshot_needs_wait_for_its_end() {
    let store = Store::full();
    // The snapshot is between the deletes of two keys, so it needs the entry of one and the tombstone of the other.
    store.remove(0..KEYS / 8);
    let snapshot: Snapshot = store.db.snapshot();
    store.remove(KEYS / 8..KEYS / 8 * 7);
    store.wait_until(|store| {
        let stats = store.db.stats();
        let keyspace = stats.keyspaces.iter().find(|it| it.name == "keys").unwrap();
        keyspace.memtable_tombstones == 0
    });
    store.wait_until_quiet();
    assert!(store.tombstones() >= u64::from(KEYS / 4 * 3));
    let view = store.keys.at(&snapshot).unwrap();
    assert_eq!(view.iter().unwrap().count(), 7 * KEYS as usize / 8);
    drop((view, snapshot));
    store.wait_until(|store| store.tombstones() == 0);
    assert_eq!(store.keys.iter().unwrap().count(), KEYS as usize / 8);
}

#[test]
fn deleted_ranges_free_their_space_when_idle() {
    let store = Store::full();
    let before = store.table_bytes();
    let half = (KEYS / 2).to_be_bytes();
    store.keys.delete_range(..half).unwrap();
    store.db.persist().unwrap();
    store.wait_until(|store| store.table_bytes() <= before / 100 * 60);
    assert_eq!(store.keys.iter().unwrap().count(), KEYS as usize / 2);
    store.keys.clear().unwrap();
    store.db.persist().unwrap();
    store.wait_until(|store| store.table_bytes() == 0);
    assert!(store.keys.is_empty().unwrap());
}

#[test]
fn a_deleted_range_that_a_snapshot_sees_waits_for_its_end() {
    let store = Store::full();
    let before = store.table_bytes();
    let snapshot = store.db.snapshot();
    store.keys.clear().unwrap();
    store.wait_until_quiet();
    assert!(store.table_bytes() >= before);
    let view = store.keys.at(&snapshot).unwrap();
    assert_eq!(view.iter().unwrap().count(), KEYS as usize);
    drop((view, snapshot));
    store.wait_until(|store| store.table_bytes() == 0);
}

/// Folds nothing.
struct Broken;

impl MergeOperator for Broken {
    fn name(&self) -> &'static str {
        "test.broken"
    }

    fn full_merge(
        &self,
        _: &[u8],
        _: Option<&[u8]>,
        _: Operands<'_>,
        _: &mut Vec<u8>,
    ) -> Result<(), MergeError> {
        Err(MergeError::new("no such thing"))
    }
}

#[test]
fn tombstones_below_operands_that_nothing_folds_go() {
    let Store { db, keys, folder } = Store::full();
    drop(keys);
    db.close().unwrap();
    let options = Options::default().with_merge_operator("keys", Arc::new(Broken));
    let db = Db::open(folder.path(), options).unwrap();
    let keys = db.keyspace("keys").unwrap();
    let store = Store { db, keys, folder };
    for key in 0..KEYS / 2 {
        store.keys.remove(key.to_be_bytes()).unwrap();
        store.keys.merge(key.to_be_bytes(), "more").unwrap();
    }
    store.db.flush().unwrap();
    store.wait_until_quiet();
    store.keys.compact_range::<&[u8]>(..).unwrap();
    assert_eq!(store.tombstones(), 0);
    assert!(store.keys.get(0_u32.to_be_bytes()).is_err());
    let untouched = store.keys.range((KEYS / 2).to_be_bytes()..).unwrap();
    assert_eq!(untouched.count(), KEYS as usize / 2);
}

//! LMDB through `heed`: a copy-on-write B-tree in a mapped file.
//!
//! - It has no write buffer, no cache, no filters and no compression. Its pages are in the system's page cache, which
//!   counts as its resident memory and which no setting bounds. Pages that it reads do not count as bytes read.
//! - It has one writer at a time, so its transactions are locking ones, with a lock on the whole store. A bulk load appends
//!   (`MDB_APPEND`) in one transaction. A range delete is one call that deletes key by key.
//! - Each put is a transaction, and so is each get, which sees the latest puts in no other way. LMDB could renew one
//!   transaction for all gets of a thread, but the binding has no call for that: it allocates a small object for each.
//! - A thread keeps its slot in the table of readers, so gets take no lock. A thread has one read transaction at a
//!   time: no get beside a scan of the same thread.
//! - Without `--sync` it syncs only at the end of a load (`MDB_NOSYNC`). A crash of the system may then damage the
//!   whole store, while the other engines lose only the latest writes.

mod store;

use std::path::Path;

use windrow::Result;
use windrow_bench::{
    Answer, BenchArgs, Counters, Engine, Entry, Feature, LevelShape, TransactionCalls, Transactions,
};

pub(crate) use self::store::Position;
use self::store::Store;
use crate::settings::{Reported, Settings, reported};

/// An open LMDB.
pub(crate) struct Lmdb {
    store: Store,
    settings: Reported,
}

impl Lmdb {
    /// Opens or creates the store in `folder` with the settings of `args`.
    pub(crate) fn open(folder: &Path, args: &BenchArgs) -> Result<Self> {
        let settings = Settings::of(args, Self::NAME)?.uncompressed(Self::NAME)?;
        // Each reading thread has a slot: the threads of a load, one beside them, and the main thread.
        let readers = u32::try_from(args.threads).unwrap_or(u32::MAX / 4) + 8;
        Ok(Self {
            store: Store::open(folder, MAP_BYTES, readers, settings.sync)?,
            settings: reported(&[
                ("map_size", Some(MAP_BYTES.to_string())),
                ("nosync", Some((!settings.sync).to_string())),
                ("version", Some(version())),
            ]),
        })
    }
}

fn version() -> String {
    let version = heed::lmdb_version();
    format!("{}.{}.{}", version.major, version.minor, version.patch)
}

/// Address space for the mapped file: more than any load writes. It costs nothing, so all loads get the same, even
/// replays, whose writes are unknown beforehand.
#[cfg(target_pointer_width = "64")]
const MAP_BYTES: usize = 1 << 42;

/// Address space for the mapped file: what may be free in one piece.
#[cfg(not(target_pointer_width = "64"))]
const MAP_BYTES: usize = 1 << 30;

impl Engine for Lmdb {
    const NAME: &'static str = "lmdb";
    // LMDB's default.
    const KEY_BYTES_MAX: usize = 511;
    const FEATURES: &'static [Feature] = &[
        Feature::LockingTransactions,
        Feature::Updates,
        Feature::RangeDeletes,
        Feature::BulkLoads,
    ];
    const MARKER: &'static str = "data.mdb";
    type Scan<'a> = Position<'a>;

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.store.put(key, value)
    }

    fn put_synced(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.store.put(key, value)?;
        self.store.sync()
    }

    fn put_batch(&self, entries: &[Entry]) -> Result<()> {
        self.store.put_batch(entries)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.store.delete(key)
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.store.get(key, value)
    }

    fn multi_get(&self, keys: &[Vec<u8>], answers: &mut [Answer]) -> Result<()> {
        self.store.multi_get(keys, answers)
    }

    fn scan(&self) -> Result<Position<'_>> {
        self.store.position()
    }

    fn transact(
        &self,
        _: Transactions,
        work: &mut dyn FnMut(&mut dyn TransactionCalls) -> Result<()>,
    ) -> Result<()> {
        self.store.transact(work)
    }

    fn update(&self, key: &[u8], change: &mut dyn FnMut(&mut Vec<u8>)) -> Result<()> {
        let mut value = Vec::new();
        self.store.transact(&mut |calls| {
            calls.get(key, &mut value)?;
            change(&mut value);
            calls.put(key, &value)
        })
    }

    fn delete_range(&self, from: &[u8], to: &[u8]) -> Result<()> {
        self.store.delete_range(from, to)
    }

    fn bulk_load(&self, entries: &mut dyn Iterator<Item = Entry>) -> Result<()> {
        self.store.append(entries)
    }

    /// Syncs; there is no background work.
    fn settle(&self) -> Result<()> {
        self.store.sync()
    }

    fn counters(&self) -> Result<Counters> {
        Counters::of_process()
    }

    fn levels(&self) -> Result<Vec<LevelShape>> {
        Ok(Vec::new())
    }

    fn settings(&self) -> Reported {
        self.settings.clone()
    }

    fn close(self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use windrow_bench::Load;

    use super::*;

    #[test]
    fn the_map_size_is_independent_of_the_arguments() {
        let folder = tempfile::tempdir().unwrap();
        let args = BenchArgs {
            num: 1,
            value_size: Some(1),
            ..BenchArgs::new(vec![Load::Replay])
        };
        let store = Lmdb::open(folder.path(), &args).unwrap();
        assert_eq!(store.settings()["map_size"], MAP_BYTES.to_string());
        store.put(b"key", &vec![7; 1 << 20]).unwrap();
        let mut value = Vec::new();
        assert!(store.get(b"key", &mut value).unwrap());
        assert_eq!(value.len(), 1 << 20);
    }
}

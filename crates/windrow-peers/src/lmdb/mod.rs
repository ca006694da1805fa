//! LMDB through `heed`: a tree of pages that are copied when written, in a file that is mapped.
//!
//! It has no write buffer, no cache of its own, no filters and no compression: its pages are the
//! system's page cache, which counts as its resident memory and which no setting bounds. Each put is a
//! transaction of its own, and so is each get, as it sees the latest puts in no other way. Without
//! `--sync` it never syncs (`MDB_NOSYNC`) but at the end of a load; after a crash of the system the
//! whole store may then be damaged, where the other engines lose the latest writes alone. Pages that it
//! reads are not among the bytes read, since they are mapped.

mod store;

use std::path::Path;

use windrow::{Error, Result};
use windrow_bench::{Answer, BenchArgs, Counters, Engine, Entry, LevelShape, Mix};

pub(crate) use self::store::Position;
use self::store::Store;
use crate::settings::{Settings, Told, told};

/// An open LMDB.
pub(crate) struct Lmdb {
    store: Store,
    settings: Told,
}

impl Lmdb {
    /// Opens or creates the store in `folder` with the settings of `args`.
    pub(crate) fn open(folder: &Path, args: &BenchArgs) -> Result<Self> {
        let settings = Settings::of(args, Self::NAME)?.uncompressed(Self::NAME)?;
        let map_bytes = map_bytes(args)?;
        // Each thread reads in one transaction for its scan and one for its gets.
        let readers = u32::try_from(args.threads).unwrap_or(u32::MAX / 4) * 2 + 8;
        Ok(Self {
            store: Store::open(folder, map_bytes, readers, settings.sync)?,
            settings: told(&[
                ("map_size", Some(map_bytes.to_string())),
                ("nosync", Some((!settings.sync).to_string())),
            ]),
        })
    }
}

/// Addresses to keep free for the mapped file: more than it can get. They cost nothing.
fn map_bytes(args: &BenchArgs) -> Result<usize> {
    const PAGE: u64 = 4 << 10;
    let largest = match args.mix {
        Some(mix) => Mix::shares(mix).into_iter().map(|(size, _)| size).max(),
        None => args.value_size,
    };
    // A key and a value stand in a page of half its entries; or the value has pages of its own.
    let key = args.key_size.unwrap_or(24) as u64;
    let entry = (key + largest.unwrap_or(100) as u64 + 32).min(u64::MAX / PAGE);
    let entry = if entry > PAGE / 4 {
        entry.next_multiple_of(PAGE) + PAGE
    } else {
        entry
    };
    let inserts = args.ops.unwrap_or(args.num).max(args.num);
    let entries = args.num.saturating_add(inserts);
    let bytes = entries.saturating_mul(entry).saturating_mul(4) | (1 << 30);
    let bytes = bytes.checked_next_multiple_of(PAGE);
    bytes
        .and_then(|bytes| usize::try_from(bytes).ok())
        .ok_or_else(|| Error::invalid_argument("this machine cannot map so much data"))
}

impl Engine for Lmdb {
    const NAME: &'static str = "lmdb";
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

    fn settings(&self) -> Told {
        self.settings.clone()
    }

    fn close(self) -> Result<()> {
        Ok(())
    }
}

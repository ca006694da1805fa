//! LevelDB's options, and what they are in Windrow. Options that are not set have the values that `leveldb/options.h`
//! documents, so a program that opens many databases needs as little memory as before. Windrow's own options that have
//! no counterpart keep their defaults, or follow from these.

use std::sync::Arc;

use windrow::{Compression, Options};

use crate::key_order::KeyOrder;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// The options of an open.
pub(crate) struct OpenOptions {
    pub(crate) create_if_missing: bool,
    pub(crate) error_if_exists: bool,
    pub(crate) write_buffer_bytes: usize,
    pub(crate) open_files: i32,
    /// The capacity of the cache.
    pub(crate) cache_bytes: usize,
    pub(crate) block_bytes: usize,
    pub(crate) file_bytes: usize,
    pub(crate) is_compressed: bool,
    /// Those of a Bloom filter policy.
    pub(crate) bits_per_key: Option<i32>,
    pub(crate) order: Option<Arc<KeyOrder>>,
}

/// The cache of a database that is given none.
const CACHE_BYTES: usize = 8 * MIB;

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            create_if_missing: false,
            error_if_exists: false,
            write_buffer_bytes: 4 * MIB,
            open_files: 1000,
            cache_bytes: CACHE_BYTES,
            block_bytes: 4 * KIB,
            file_bytes: 2 * MIB,
            is_compressed: true,
            bits_per_key: None,
            order: None,
        }
    }
}

impl OpenOptions {
    /// Sets the capacity of the cache; `None` for that of a database that is given none.
    pub(crate) fn set_cache(&mut self, bytes: Option<usize>) {
        self.cache_bytes = bytes.unwrap_or(CACHE_BYTES);
    }

    /// Windrow's options. Sizes outside of what LevelDB or Windrow accepts become the nearest that both accept, as
    /// LevelDB does it.
    pub(crate) fn to_windrow(&self) -> Options {
        let mut options = Options::default();
        options.create_if_missing = self.create_if_missing;
        options.error_if_exists = self.error_if_exists;
        options.cache_bytes = self.cache_bytes as u64;
        options.open_files_max =
            usize::try_from(self.open_files).map_or(16, |files| files.clamp(16, 50_000));

        let memtable_bytes = self.write_buffer_bytes.clamp(64 * KIB, 1024 * MIB);
        let budget = 8 * memtable_bytes as u64 + options.cache_bytes;
        options.memory_budget = options.memory_budget.max(budget);
        options.max_wal_bytes = options.max_wal_bytes.max(4 * memtable_bytes as u64);
        let keyspace = &mut options.keyspace;
        keyspace.memtable_bytes = memtable_bytes;
        keyspace.file_bytes = self.file_bytes.clamp(MIB, 1024 * MIB) as u64;
        keyspace.base_bytes = keyspace.file_bytes.max(4 * memtable_bytes as u64);
        keyspace.block_bytes = self.block_bytes.clamp(KIB, MIB);
        keyspace.compression = if self.is_compressed {
            Compression::Lz4
        } else {
            Compression::None
        };
        if let Some(bits) = self.bits_per_key {
            keyspace.bits_per_key = f64::from(bits.clamp(1, 64));
        }
        options
    }
}

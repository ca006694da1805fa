//! The options of an open, a column family, a read and a write.
//!
//! Options that are not set have the values that `rocksdb/options.h` documents, as far as Windrow has them.
//!
//! Concurrency: no state.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use windrow::{
    CompactionFilter, Durability, KeyspaceOptions, MergeOperator, Options, Result, Snapshot,
};
use windrow_ffi::key_order::KeyOrder;
use windrow_ffi::leveldb;

use crate::cache::Cache;
use crate::filter::Filter;
use crate::log::Logger;
use crate::prefix::Prefix;
use crate::statistics::Statistics;
use crate::status::unsupported;

const MIB: usize = 1 << 20;

/// The options of a database and of a column family.
#[derive(Clone)]
pub(crate) struct OpenOptions {
    /// Those that LevelDB has, too.
    pub(crate) common: leveldb::OpenOptions,
    pub(crate) create_missing_families: bool,
    /// A custom comparator.
    pub(crate) order: Option<Arc<KeyOrder>>,
    pub(crate) prefix: Option<Arc<Prefix>>,
    pub(crate) merge_operator: Option<Arc<dyn MergeOperator>>,
    /// A compaction filter, which goes before the factory of one.
    pub(crate) filter: Option<Arc<Filter>>,
    pub(crate) filter_factory: Option<Arc<Filter>>,
    /// The size of level 1, and how much larger each level is than the one above it.
    pub(crate) base_bytes: Option<u64>,
    pub(crate) size_ratio: Option<f64>,
    pub(crate) level0_runs: Option<usize>,
    pub(crate) background_threads: Option<usize>,
    pub(crate) wal_bytes: u64,
    pub(crate) compaction_bytes_per_second: u64,
    /// Whether values are separated from `blob_bytes` on.
    pub(crate) has_blobs: bool,
    pub(crate) blob_bytes: u64,
    /// Bits of a filter for each key; `None` for those of Windrow.
    pub(crate) bits_per_key: Option<f64>,
    pub(crate) cache: Option<Arc<Cache>>,
    pub(crate) logger: Option<Arc<Logger>>,
    /// What all databases with these options count.
    pub(crate) statistics: Option<Arc<Statistics>>,
    /// The setters without an effect that were called.
    pub(crate) ignored: BTreeSet<&'static str>,
    /// What no open with these options can do.
    pub(crate) unsupported: Option<&'static str>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            common: leveldb::OpenOptions {
                write_buffer_bytes: 64 * MIB,
                open_files: i32::MAX,
                cache_bytes: 32 * MIB,
                file_bytes: 64 * MIB,
                ..leveldb::OpenOptions::default()
            },
            create_missing_families: false,
            order: None,
            prefix: None,
            merge_operator: None,
            filter: None,
            filter_factory: None,
            base_bytes: None,
            size_ratio: None,
            level0_runs: None,
            background_threads: None,
            wal_bytes: 0,
            compaction_bytes_per_second: 0,
            has_blobs: false,
            blob_bytes: 0,
            bits_per_key: None,
            cache: None,
            logger: None,
            statistics: None,
            ignored: BTreeSet::new(),
            unsupported: None,
        }
    }
}

impl OpenOptions {
    /// # Errors
    /// `Unsupported` if an option was set that Windrow can neither follow nor ignore.
    pub(crate) fn check(&self) -> Result<()> {
        self.unsupported
            .map_or(Ok(()), |what| Err(unsupported(what)))
    }

    /// What decides in compactions.
    pub(crate) fn filter(&self) -> Option<&Arc<Filter>> {
        self.filter.as_ref().or(self.filter_factory.as_ref())
    }

    /// Windrow's options of a keyspace. Sizes out of range become the nearest in range.
    pub(crate) fn keyspace(&self, ttl: Option<Duration>) -> KeyspaceOptions {
        let mut keyspace = self.common.to_windrow().keyspace;
        keyspace.default_ttl = ttl;
        if let Some(base_bytes) = self.base_bytes {
            keyspace.base_bytes = base_bytes.clamp(keyspace.file_bytes, 1 << 50);
        }
        if let Some(size_ratio) = self.size_ratio {
            keyspace.size_ratio = size_ratio.clamp(2.0, 1000.0);
        }
        if let Some(level0_runs) = self.level0_runs {
            keyspace.level0_runs = level0_runs.clamp(1, 64);
        }
        if let Some(bits) = self.bits_per_key {
            keyspace.bits_per_key = bits.clamp(0.0, 64.0);
        }
        if self.has_blobs {
            keyspace.large_from = self.blob_bytes.max(1);
            keyspace.medium_from = keyspace.medium_from.min(keyspace.large_from);
        }
        keyspace
    }

    /// Windrow's options of a database with column families of these options.
    pub(crate) fn to_windrow(&self, families: &[FamilyOptions<'_>]) -> Options {
        let mut common = self.common.clone();
        for family in families {
            let bytes = family.options.common.write_buffer_bytes;
            common.write_buffer_bytes = common.write_buffer_bytes.max(bytes);
        }
        let mut options = common.to_windrow();
        // `LOG` is the file of this interface.
        options.job_log_bytes = 0;
        if let Some(threads) = self.background_threads {
            options.background_threads = threads.clamp(1, 64);
        }
        if self.wal_bytes > 0 {
            let memtable_bytes = options.keyspace.memtable_bytes as u64;
            options.max_wal_bytes = self.wal_bytes.max(memtable_bytes);
        }
        options.compaction_bytes_per_second = self.compaction_bytes_per_second;
        options.keyspace = self.keyspace(None);
        for family in families {
            if let Some(operator) = &family.options.merge_operator {
                options = options.with_merge_operator(family.name, Arc::clone(operator));
            }
            if let Some(filter) = family.options.filter() {
                let filter = Arc::clone(filter) as Arc<dyn CompactionFilter>;
                options = options.with_compaction_filter(family.name, filter);
            }
        }
        options
    }
}

/// A column family that an open names.
#[derive(Clone, Copy)]
pub(crate) struct FamilyOptions<'a> {
    pub(crate) name: &'a str,
    pub(crate) options: &'a OpenOptions,
    /// How long its values stay.
    pub(crate) ttl: Option<Duration>,
}

/// The options of a read.
#[derive(Default, Clone)]
pub(crate) struct ReadOptions {
    pub(crate) snapshot: Option<Snapshot>,
    /// The first key, and the one behind the last.
    pub(crate) lower: Option<Vec<u8>>,
    pub(crate) upper: Option<Vec<u8>>,
    /// Whether an iterator ends with the prefix of its first key.
    pub(crate) prefix_same_as_start: bool,
    /// Whether the prefix has no meaning.
    pub(crate) total_order_seek: bool,
    /// Whether an iterator sees what is written after its creation.
    pub(crate) is_tailing: bool,
    /// What no read with these options can do.
    pub(crate) unsupported: Option<&'static str>,
}

impl ReadOptions {
    /// # Errors
    /// As [`OpenOptions::check`].
    pub(crate) fn check(&self) -> Result<()> {
        self.unsupported
            .map_or(Ok(()), |what| Err(unsupported(what)))
    }
}

/// The options of a write.
#[derive(Default, Clone, Copy)]
pub(crate) struct WriteOptions {
    pub(crate) durability: Durability,
    /// Whether a batch may have writes for column families that do not exist.
    pub(crate) ignores_missing_families: bool,
}

/// The options of transactions: their own, or those of a database that has them.
#[derive(Clone, Copy)]
pub(crate) struct LockTimeouts {
    /// How long a transaction waits for a lock.
    pub(crate) transaction: Duration,
    /// The same for a write without a transaction.
    pub(crate) write: Duration,
}

impl Default for LockTimeouts {
    fn default() -> Self {
        Self {
            transaction: Duration::from_secs(1),
            write: Duration::from_secs(1),
        }
    }
}

/// A year.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// A time of RocksDB in milliseconds; a negative one has no end.
pub(crate) fn timeout(milliseconds: i64) -> Duration {
    u64::try_from(milliseconds).map_or(FOREVER, Duration::from_millis)
}
